"""Programs on one NVIDIA GPU: kernels by LLVM's NVPTX, and what loads and launches them. `gpu_driver` is what the rest asks of
a GPU: `cuda_driver` is a real one, `simulated_driver` one on the processor.

Parts, in the order of the data: device_blocks, gpu_driver, kernels, ptx, ptx_gaps, gpu_peaks, page_locked, cuda_driver,
simulation, simulated_driver, dlpack, device_array, numba_source, gpu_code, gpu_launcher, warm_calls, kernel_listing,
gpu_target.
"""
