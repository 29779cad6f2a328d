"""Program -> machine code, one folder a kind of machine; llvm has what several of them print.

Parts, in the order of the data: target, devices, llvm, cpu_llvm, gpu_cuda.
"""
