"""On how many threads the BLAS that NumPy brings runs its products, and how it runs on one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

#: OpenBLAS's functions, as NumPy's wheels and others spell them; {} is get or set.
PATTERNS = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """What asks for the number, and what sets it; None of another BLAS."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None
    for pattern in PATTERNS:
        asks, sets = (getattr(library, pattern.format(word), None) for word in ("get", "set"))
        if asks is not None and sets is not None:
            asks.restype, sets.argtypes, sets.restype = ctypes.c_int, [ctypes.c_int], None
            return asks, sets
    return None


def blas_threads() -> int:
    """So many; 0 where that is not known."""
    found = _functions()
    return found[0]() if found is not None else 0


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Inside, BLAS runs on one thread, where that can be asked for."""
    before, found = blas_threads(), _functions()
    if found is None or before <= 1:
        yield
        return
    found[1](1)
    try:
        yield
    finally:
        found[1](before)
