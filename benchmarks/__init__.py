"""Programs in plain NumPy, timed against numexpr, Numba and JAX by one runner: `python -m benchmarks.run`."""
