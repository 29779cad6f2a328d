"""`tf.random`: numbers drawn by NumPy at each run, from one generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operations import call, dims, made_names
from .tensors import array

_generator = np.random.default_rng()


def set_seed(seed: int) -> None:
    """From here on the same numbers are drawn as after every other call with this seed."""
    _generator.bit_generator.state = np.random.default_rng(seed).bit_generator.state


def _uniform(shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = np.float32, seed: Any = None) -> Any:
    """Numbers from minval to maxval, which is not among them."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return call(_generator.integers, minval, maxval, tuple(dims(shape)), dtype=dtype)
    if minval == 0 and maxval in (None, 1) and dtype in (np.float32, np.float64):
        return call(_generator.random, tuple(dims(shape)), dtype=dtype)
    return call(_generator.uniform, minval, 1 if maxval is None else maxval, tuple(dims(shape))).astype(dtype)


def _normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = np.float32, seed: Any = None) -> Any:
    """Normally distributed numbers."""
    return call(_generator.normal, mean, stddev, tuple(dims(shape))).astype(dtype)


def _truncated_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = np.float32, seed: Any = None) -> Any:
    """The same, without those beyond two standard deviations."""
    u = call(_generator.uniform, -0.9544997361036416, 0.9544997361036416, tuple(dims(shape)))
    from scipy.special import erfinv

    return (mean + stddev * np.sqrt(2.0) * call(erfinv, u)).astype(dtype)


def _shuffle(value: Any, seed: Any = None) -> Any:
    """The entries of the first axis in another order."""
    return call(_generator.permutation, array(value))


NAMES = made_names(_uniform, _normal, _truncated_normal, _shuffle)

__all__ = ["NAMES", "set_seed"]
