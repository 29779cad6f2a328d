"""A Program becomes LLVM text: phases, loops, reductions.

Parts, in the order of the data: reductions, phase, quick, codegen, register_gaps.
"""
