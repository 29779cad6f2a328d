"""One training step of softmax regression, MNIST-like: 784 pixels, 10 classes; the sizes are batches."""

import numpy as np

TITLE = "softmax-regression training step (784 x 10)"
SIZES = {"small": (8, 784, 10), "medium": (128, 784, 10), "large": (12_755, 784, 10)}  # batch, pixels, classes
SMALL = (8, 30, 10)
UNSUPPORTED = {"numexpr": "it has no matrix product"}


def program(W, b, X, Y):
    z = X @ W + b
    z = z - z.max(axis=1, keepdims=True)
    e = np.exp(z)
    p = e / e.sum(axis=1, keepdims=True)
    d = (p - Y) / X.shape[0]
    return W - 0.5 * (X.T @ d), b - 0.5 * d.sum(axis=0)


def inputs(shape, dtype, rng):
    batch, pixels, classes = shape
    W = (rng.normal(size=(pixels, classes)) * 0.01).astype(dtype)
    X = rng.uniform(size=(batch, pixels)).astype(dtype)
    Y = np.eye(classes, dtype=dtype)[rng.integers(0, classes, batch)]
    return W, np.zeros(classes, dtype), X, Y


def for_numba(numba):
    """Numba has no `axis=` for max: the products as they are, the rest in loops by hand."""

    @numba.njit
    def run(W, b, X, Y):
        p = X @ W
        rows, classes = p.shape
        rate, n = p.dtype.type(0.5), p.dtype.type(rows)
        new_b = b.copy()
        for i in range(rows):
            m = p[i, 0] + b[0]
            for k in range(classes):
                p[i, k] += b[k]
                m = max(m, p[i, k])
            s = p.dtype.type(0)
            for k in range(classes):
                p[i, k] = np.exp(p[i, k] - m)
                s += p[i, k]
            for k in range(classes):
                p[i, k] = (p[i, k] / s - Y[i, k]) / n
                new_b[k] -= rate * p[i, k]
        product = X.T @ p
        for i in range(product.shape[0]):
            for k in range(classes):
                product[i, k] = W[i, k] - rate * product[i, k]
        return product, new_b

    return run
