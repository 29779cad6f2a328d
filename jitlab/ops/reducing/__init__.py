"""Operations along axes: sums, extremes, scans, sorting, statistics.

Parts, in the order of the data: axis_reductions, scans, differences, sorting, nan_statistics, sets.
"""
