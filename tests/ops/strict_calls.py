"""Functions under jit_compile=True against NumPy: types, dtypes, shapes, values, or the same kind of error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import jitlab as jl


def compiles(function: Callable[..., Any], *args: Any, exact: bool = True) -> None:
    """Wholly compiled, the function gives what it gives as plain Python; the bits unless not `exact`."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = list(leaves(function(*copies(args))))
        got = list(leaves(jl.function(function, jit_compile=True)(*copies(args))))
    assert len(got) == len(want)
    for number, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        assert type(mine) is type(theirs), f"result {number}: {type(mine)} instead of {type(theirs)}"
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), f"result {number}: {mine!r} instead of {theirs!r}"
        if exact or theirs.dtype.kind not in "fc":
            same = np.array_equal(mine, theirs, equal_nan=theirs.dtype.kind in "fc")
            assert same, f"result {number}: {mine!r} instead of {theirs!r}"
        else:
            eps = np.finfo(theirs.dtype).eps
            np.testing.assert_allclose(mine, theirs, rtol=200 * eps, atol=200 * eps, err_msg=f"result {number}")


def refuses(function: Callable[..., Any], *args: Any) -> None:
    """Compiled or plain, the function raises the same kind of error with the same words."""
    raised: list[Exception] = []
    for way in (function, jl.function(function, jit_compile=True)):
        try:
            way(*copies(args))
        except Exception as error:
            raised.append(error)
    assert len(raised) == 2 and isinstance(raised[1], type(raised[0])), f"{raised}"
    assert str(raised[0]) in str(raised[1]), f"{raised[1]} instead of {raised[0]}"


def leaves(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        for item in result:
            yield from leaves(item)
    else:
        yield result


def copies(args: tuple[Any, ...]) -> list[Any]:
    return [a.copy() if type(a) is np.ndarray else a for a in args]


_random = np.random.default_rng(5)


def sample(dtype: str, *shape: int) -> np.ndarray:
    """A small array of a dtype, some of its values equal."""
    values = np.round(_random.normal(size=shape) * 2, 1)
    if np.dtype(dtype).kind == "c":
        return (values + 1j * values[..., ::-1]).astype(dtype)
    if np.dtype(dtype).kind == "u":
        values = np.abs(values)
    return values.astype(dtype)
