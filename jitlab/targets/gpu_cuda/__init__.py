"""Programs on one NVIDIA GPU: kernels by LLVM's NVPTX (`kernels/`), and what loads and launches them.

`driver.py` is what the rest asks of a GPU, `cuda_driver.py` the real one, `simulated_driver.py` one on the processor; `ptx.py`
makes what the first one loads, `device_array.py` has the arrays, `gpu_target.py` the target, `gpu_launcher.py` what launches a
cluster's kernels.
"""
