"""Native code for the processor, through LLVM text and llvmlite.

Parts, in the order of the data: cpu_shape, peaks, math, emit, located, machine, compiling, calls, listing, cpu_target.
"""
