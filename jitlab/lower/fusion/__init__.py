"""Which stages share a nest of loops, and what keeps the others out.

Parts, in the order of the data: findings, stages, groups, nest_limits, recomputing, cuts, obstacles, fusion, rejections,
sentences, inside.
"""
