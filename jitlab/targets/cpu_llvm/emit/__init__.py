"""A Program becomes LLVM text: phases, loops, instructions.

Parts, in the order of the data: values, function_text, instructions, llvm_arithmetic, reductions, vector_emitter, body, phase,
codegen, register_gaps.
"""
