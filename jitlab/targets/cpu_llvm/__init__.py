"""Native code for the processor, through LLVM text and llvmlite.

Parts, in the order of the data: cpu_shape, cpu_schedule, peaks, emit, located, machine, preparing, compiling, calibration,
speeds, cost_model, threads, libraries, calls, listing, cpu_target.
"""
