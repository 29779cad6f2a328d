"""Kernels of a Program as LLVM text for NVPTX, which many threads run.

Parts, in the order of the data: parts (of a Program), schedules (which threads do what), slots (of a launch), gpu_emitter,
teams (of threads), running_values (of reductions), held_rows (in registers), kernel_writer (the function of a phase),
product_writer (that of a product of matrices), kernel_module (all of a Program).
"""
