"""The ledger of a function: each trace with its cause, its cost and what would have avoided it.

Parts, in the order of the data: definitions, callsite, places, misses, in_pieces, ledger, patterns, fixes, frequency.
"""
