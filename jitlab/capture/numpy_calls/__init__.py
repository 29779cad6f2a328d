"""Calls of NumPy while a program is recorded: rules, layouts of results, random numbers, plain NumPy at run time.

Parts, in the order of the data: functions, plain_operators, conversions, numpy_traits, numpy_source, layouts, ordering,
piecewise, draws, native_draws, host_fallback, index_grids, counterparts, explanations.
"""
