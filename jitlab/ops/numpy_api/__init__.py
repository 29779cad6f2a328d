"""NumPy's functions as it declares them, and the rules that build operations of their arguments.

Parts, in the order of the data: signatures, call_binding, arguments, rules_arrays, rules_creation, rules_views, rules_indexing,
rules_joining, rules_elementwise, rules_reductions, rules_questions, ufunc_methods, grids.
"""
