"""How long a user waits before anything is computed: imports, first calls, other sizes, and what a warm call costs.

Parts: functions (what is called), child (one process, one figure), __main__ (the table, beside JAX and Numba).
"""
