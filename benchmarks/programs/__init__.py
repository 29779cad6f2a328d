"""Programs as people write them, decorated with `jl.jit` and otherwise unchanged: `python -m benchmarks.programs`."""
