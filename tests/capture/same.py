"""Deep comparison with NumPy: values, dtypes, shapes, types, and which results share memory."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def leaves(x: Any) -> list[Any]:
    if isinstance(x, (list, tuple)):
        return [leaf for item in x for leaf in leaves(item)]
    if isinstance(x, dict):
        return [leaf for key in x for leaf in leaves(x[key])]
    return [x]


def assert_same(mine: Any, theirs: Any, *, numbers_become_scalars: bool = False) -> None:
    """The same structure, types, bits."""
    if isinstance(theirs, (list, tuple)):
        assert type(mine) is type(theirs) and len(mine) == len(theirs)
        for x, y in zip(mine, theirs, strict=True):
            assert_same(x, y, numbers_become_scalars=numbers_become_scalars)
    elif isinstance(theirs, dict):
        assert list(mine) == list(theirs)
        for key in theirs:
            assert_same(mine[key], theirs[key], numbers_become_scalars=numbers_become_scalars)
    elif isinstance(theirs, (np.ndarray, np.generic)):
        assert type(mine) is type(theirs), (mine, theirs)
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape, (mine, theirs)
        np.testing.assert_array_equal(mine, theirs)
    elif numbers_become_scalars and isinstance(theirs, (bool, int, float, complex)):
        assert_same(mine, np.asarray(theirs)[()])
    else:
        assert type(mine) is type(theirs) and mine == theirs, (mine, theirs)


def assert_same_sharing(mine: list[Any], theirs: list[Any]) -> None:
    """Two results are one object, or share memory, exactly where NumPy's do."""
    for (x, u), (y, v) in itertools.combinations(zip(mine, theirs, strict=True), 2):
        if isinstance(u, np.ndarray) and isinstance(v, np.ndarray):
            assert (x is y) == (u is v)
            assert np.shares_memory(x, y) == np.shares_memory(u, v)


def assert_like(mine: Any, theirs: Any) -> None:
    """As `assert_same`; a Python nan is like another."""
    if isinstance(theirs, float) and theirs != theirs:
        assert type(mine) is type(theirs) and mine != mine
    elif isinstance(theirs, (list, tuple)):
        assert type(mine) is type(theirs) and len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert_like(one, other)
    else:
        assert_same(mine, theirs)
