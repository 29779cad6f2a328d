"""A Program becomes LLVM text: phases, loops, reductions.

Parts, in the order of the data: reductions, drawing, phase, quick, codegen, register_gaps.
"""
