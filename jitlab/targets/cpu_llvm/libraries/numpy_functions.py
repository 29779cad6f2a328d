"""Where NumPy's compiled functions lie: inner loops of ufuncs, SciPy's too, and what sorts a dtype's elements.

They stand in structs that NumPy's headers make public. Each is compared with what Python says of the same object, and one
function of each kind is tried, before an address is given: 0 where anything is otherwise, and NumPy is called as from Python.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from jitlab.targets.cpu_llvm.calls.entry import layout_is_known, numpy_api

#: In NumPy's C API: of a dtype, the functions that work on its elements; and where, among those, the three that sort stand,
#: with the three that find an order behind them.
GET_FUNCTIONS, SORTS = 365, 33
KINDS = {"quicksort": 0, "heapsort": 1, "mergesort": 2, "stable": 2}

#: The flag of invalid operations in C's fenv.h.
FE_INVALID = 0x10 if sys.platform == "win32" else 1

_Loop = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 4)
_Sort = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
_Order = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)


class _Ufunc(ctypes.Structure):
    """The first fields of NumPy's PyUFuncObject."""

    _fields_ = (
        ("head", ctypes.c_char * object.__basicsize__),
        ("nin", ctypes.c_int), ("nout", ctypes.c_int), ("nargs", ctypes.c_int), ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int), ("reserved", ctypes.c_int), ("name", ctypes.c_char_p), ("types", ctypes.c_void_p),
    )  # fmt: skip


@cache
def loop(module: str, name: str, signature: str, types: str) -> tuple[int, int]:
    """The address of an inner loop for these types ("d->d"), and of what it is given; zeros where it is not known."""
    found = _loop(module, name, signature, types)
    return found if found[0] and _is_as_known(module) else (0, 0)


def _loop(module: str, name: str, signature: str, types: str) -> tuple[int, int]:
    try:
        ufunc = getattr(import_module(module), name)
    except (ImportError, AttributeError):
        return 0, 0
    own = signature if any(map(str.isalpha, signature)) else None  # a ufunc of single elements
    known = ufunc.signature and ufunc.signature.replace(" ", "") if type(ufunc) is np.ufunc else ""
    if not layout_is_known() or known != own:
        return 0, 0
    c = _Ufunc.from_address(id(ufunc))
    said = (ufunc.nin, ufunc.nout, ufunc.nargs, len(ufunc.types), ufunc.__name__.encode())
    if said != (c.nin, c.nout, c.nargs, c.ntypes, c.name) or types not in ufunc.types:
        return 0, 0
    letters = "".join(ufunc.types).replace("->", "")
    if ctypes.string_at(c.types, len(letters)) != bytes(np.dtype(letter).num for letter in letters):
        return 0, 0
    number = ufunc.types.index(types)
    return c.functions[number] or 0, c.data[number] or 0 if c.data else 0


@cache
def _is_as_known(module: str) -> bool:
    """Does a loop of the module give what its ufunc gives, and tell by a flag what that raises?"""
    x = np.random.default_rng(1).standard_normal((2, 3, 3))
    if module == "scipy.special":
        from scipy import special

        y, out = np.abs(x[0, 0]), np.empty(3)
        _run(_loop(module, "gammaln", "()->()", "d->d"), [y, out], [3], [8, 8])
        return bool(out.tobytes() == special.gammaln(y).tobytes())
    if module == "numpy.fft._pocketfft_umath":
        z, out = x[0] + 1j * x[1], np.empty((3, 3), complex)
        _run(_loop(module, "fft", "(n),()->(m)", "Dd->D"), [z, np.ones(()), out], [3, 3, 3], [48, 0, 48, 16, 16])
        return out.tobytes() == np.fft.fft(z).tobytes()
    test, clear = flag_functions()
    if not (test and clear):
        return False
    out, (dims, steps) = np.empty_like(x), ([1, 3], [72, 72, 24, 8, 24, 8])
    address = _loop(module, "inv", "(m,m)->(m,m)", "d->d")
    flags = []
    for matrix, place in ((x[0], out[0]), (np.zeros((3, 3)), out[1]), (x[1], out[1])):
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(clear)(FE_INVALID)
        _run(address, [np.ascontiguousarray(matrix), place], dims, steps)
        flags.append(bool(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(test)(FE_INVALID)))
    return flags == [False, True, False] and out.tobytes() == np.linalg.inv(x).tobytes()


def _run(address: tuple[int, int], arrays: list[Any], dimensions: list[int], steps: list[int]) -> None:
    args = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    words = (ctypes.c_int64 * len(dimensions))(*dimensions), (ctypes.c_int64 * len(steps))(*steps)
    if address[0]:
        _Loop(address[0])(args, *words, address[1])


@cache
def flag_functions() -> tuple[int, int]:
    """The addresses of C's `fetestexcept` and `feclearexcept`."""
    for name in ("ucrtbase",) if sys.platform == "win32" else (None, "libm.so.6"):
        try:
            library = ctypes.CDLL(name)
            found = [ctypes.cast(function, ctypes.c_void_p).value for function in (library.fetestexcept, library.feclearexcept)]
        except (AttributeError, OSError):
            continue
        return found[0] or 0, found[1] or 0
    return 0, 0


@cache
def python_function(name: str) -> int:
    """The address of a function of Python's C API."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@cache
def sort_function(dtype: np.dtype[Any], kind: str, finds_order: bool) -> int:
    """The address of what sorts elements that lie beside one another, or finds their order; 0 where it is not known."""
    if not layout_is_known() or kind not in KINDS or dtype.char not in "?bhilqBHILQefdFD" or not dtype.isnative:
        return 0
    of_dtype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(numpy_api()[GET_FUNCTIONS])(id(dtype))
    number = SORTS + KINDS[kind] + (3 if finds_order else 0)
    address = ctypes.cast(of_dtype, ctypes.POINTER(ctypes.c_void_p))[number] if of_dtype else None
    return address if address and _sorts_alike(address, dtype, kind, finds_order) else 0


def _sorts_alike(address: int, dtype: np.dtype[Any], kind: Any, finds_order: bool) -> bool:
    """Is it NumPy's function, to the bit of zeros with a sign, at a few lengths?"""
    rng = np.random.default_rng(1)
    for n in (5, 40, 700):
        x = (rng.integers(-9, 9, n) * rng.choice([-0.0, 1.0], n)).astype(dtype) if dtype.kind in "fc" else (
            rng.integers(0, 90, n).astype(dtype)
        )  # fmt: skip
        if finds_order:
            got, want = np.arange(n), np.argsort(x, kind=kind)
            status = _Order(address)(x.ctypes.data, got.ctypes.data, n, None)
        else:
            got, want = x.copy(), np.sort(x, kind=kind)
            status = _Sort(address)(got.ctypes.data, n, None)
        if status != 0 or got.tobytes() != want.tobytes():
            return False
    return True
