"""Operations on elements: each element of the result is made of one element of each operand.

Parts, in the order of the data: casts, scalars, arithmetic, comparison, math_functions, rare_functions, special,
complex_bodies, sum_of_many, instruction_weights.
"""
