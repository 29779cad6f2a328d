"""Graphs: operations on arrays, in order, and what is asked of them.

Parts, in the order of the data: graph, operation, called, bodies, verify, dot.
"""
