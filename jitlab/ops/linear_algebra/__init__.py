"""Products of matrices, LAPACK's functions and Fourier transforms.

Parts, in the order of the data: matrix_products, tensor_products, einsum, linear_systems, factorizations, eigenvalues,
singular_values, norms, fourier.
"""
