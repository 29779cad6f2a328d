"""Text of LLVM for any machine: functions, values, arithmetic, and the expressions of loops. Targets stand on it.

Parts, in the order of the data: program_phases, features, values, function_text, located_text, assembly_places, instructions,
math, invariant_division, llvm_arithmetic, vector_emitter, expressions.
"""
