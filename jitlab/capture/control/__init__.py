"""Control flow while a program is recorded: `if`, loops, and what they decide about names.

Parts, in the order of the data: conditions, iterables, purity, blocks, jumps, staging, rolling, looping, number_kinds,
chosen_memory, loop_memory, exactness, traced_checks, python_values.
"""
