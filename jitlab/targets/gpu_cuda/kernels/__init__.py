"""Kernels of a Program as LLVM text for NVPTX, which many threads run.

Parts, in the order of the data: schedules (which threads do what), slots (of a launch), gpu_emitter, teams (threads that work
together), running_values (of reductions), kernel_writer (the function of a phase), kernel_module (all of a Program).
"""
