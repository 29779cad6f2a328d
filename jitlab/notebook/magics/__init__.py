"""The magics, and how a `%%jit` cell runs.

Parts, in the order of the data: magics, running, timing, rounds, put_back, plain_cell, blas_threads,
compare, kept_factors, run_commands, completion, waiting.
"""
