"""The user's source or bytecode becomes code that asks `__jl__`: statements, control flow, names.

Parts, in the order of the data: staleness, piece_statements, cell_code, body_code, splitting, liveness, handlers, convert,
effect_statements, flow_rewrite, helper_calls, stitched_code, bytecode, recursion_limit.
"""
