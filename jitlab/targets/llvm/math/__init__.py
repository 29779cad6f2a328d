"""Functions of floats in vector code, with their polynomials.

Parts, in the order of the data: bits, math, huge, num, coefficients, fit.
"""
