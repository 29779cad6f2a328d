"""Program -> machine code, one folder a kind of machine.

Parts, in the order of the data: target, devices, cpu_llvm.
"""
