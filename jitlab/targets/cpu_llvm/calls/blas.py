"""The BLAS that NumPy brings, by C pointer."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

#: Spellings of a function of CBLAS with 64-bit integers in the wheels of NumPy.
PATTERNS = ("scipy_cblas_{}64_", "cblas_{}64_", "cblas_{}$NEWLAPACK$ILP64")


@cache
def blas_address(name: str) -> int:
    """The address of a function of CBLAS, as "dgemm" (64-bit integers); 0 when NumPy's BLAS has no such symbol."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return 0
    for pattern in PATTERNS:
        function = getattr(library, pattern.format(name), None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


@cache
def threads_address() -> int:
    """The address of the function that tells on how many threads NumPy's BLAS runs now; 0 when it has none by these names."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return 0
    for name in ("scipy_openblas_get_num_threads64_", "openblas_get_num_threads64_", "openblas_get_num_threads"):
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0
