"""Kernels of a Program as numba.cuda functions, to read, paste and run, and what runs exactly these.

Parts, in the order of the data: python_text, python_emitter, python_reductions, python_kernel, numba_module, numba_launcher.
"""
