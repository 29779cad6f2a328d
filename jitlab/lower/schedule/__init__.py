"""From groups of stages to statements: loops, vectors, blocks of rows, library calls.

Parts, in the order of the data: ranges, dependence, inlining, memory_order, schedule, loop_fusion, row_blocking, library_calls,
loops_and_branches, statements.
"""
