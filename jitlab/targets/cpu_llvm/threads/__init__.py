"""Threads for loops whose iterations may run at once: which loops are cut into pieces, how many threads there may be, the code
of a pool, and the process's own. Nothing Python runs in them.

Parts, in the order of the data: cut_phases, processors, pool_code, pool, thread_words.
"""
