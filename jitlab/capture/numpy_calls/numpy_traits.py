"""What NumPy's functions do that the table of operations does not tell: which keep 0-d arrays, which write, which make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab.ops.table import UPDATE_METHODS, UPDATES

#: Functions whose 0-d results stay arrays; every other 0-d result is a NumPy scalar.
KEEPS_ZERO_D: frozenset[Any] = frozenset(
    {
        np.zeros, np.ones, np.full, np.empty, np.ndarray, np.zeros_like, np.ones_like, np.full_like, np.empty_like, np.array,
        np.asarray, np.asanyarray, np.ascontiguousarray, np.copy, np.broadcast_to, np.where, np.tensordot, np.select, np.cov,
        np.require, np.asfortranarray, np.asarray_chkfinite, np.astype, np.roll, np.resize, np.pad, np.i0, np.isin,
    }
)  # fmt: skip

#: Sums and products that are computed in the dtype of `out=`.
ADDS_IN_OUT: frozenset[Any] = frozenset(
    {
        np.sum, np.prod, np.cumsum, np.cumprod, np.nansum, np.nanprod, np.nancumsum, np.nancumprod, np.cumulative_sum,
        np.cumulative_prod, np.ndarray.sum, np.ndarray.prod, np.ndarray.cumsum, np.ndarray.cumprod,
        *(getattr(u, method) for u in (np.add, np.multiply) for method in ("reduce", "accumulate", "reduceat")),
    }
)  # fmt: skip

#: Functions that take `out=` and hand it on to nobody.
IGNORES_OUT = frozenset({"hfft", "ifft2", "irfft2"})  # of np.fft


def is_of_fft(function: Any, names: frozenset[str]) -> bool:
    """Is it one of these functions of np.fft? (That is loaded by a program that uses it: it takes time.)"""
    name = getattr(function, "__name__", "")
    return name in names and getattr(vars(np).get("fft"), name, None) is function



#: Functions that make arrays from numbers: recorded although no array is among their arguments.
CREATION: frozenset[Any] = frozenset(
    {
        np.zeros, np.ones, np.full, np.empty, np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.arange, np.linspace,
        np.eye, np.identity, np.tri, np.logspace, np.geomspace, np.indices, np.meshgrid, np.copy, np.stack, np.concatenate,
        np.vstack, np.hstack, np.column_stack, np.dstack, np.diag, np.repeat, np.tile, np.zeros_like, np.ones_like,
        np.full_like, np.empty_like, np.ndarray, np.asfortranarray, np.require,
    }
)  # fmt: skip

#: Functions that write into their first argument: run on a copy of it, which is then assigned.
WRITES_FIRST = frozenset({np.put, np.place, np.putmask, np.put_along_axis, *UPDATES.known()})
WRITING_METHODS = frozenset({"sort", "partition", "put", *UPDATE_METHODS.known()})
UPDATES_BY_METHOD = {getattr(np.ndarray, name): name for name in UPDATE_METHODS.known()}

#: What NumPy tells from types alone.
TYPE_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x, axis=None: x.size if axis is None else x.shape[axis],
    np.isscalar: lambda x: x.is_scalar,
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.isrealobj: lambda x: x.dtype.kind != "c",
    np.iterable: lambda x: x.ndim > 0,
    np.finfo: lambda x: np.finfo(x.dtype),
    np.iinfo: lambda x: np.iinfo(x.dtype),
    np.min_scalar_type: lambda x: x.dtype,
}

#: What NumPy tells from dtypes, whichever argument the array is.
DTYPE_FUNCTIONS: frozenset[Any] = frozenset({np.result_type, np.can_cast, np.common_type})


def dtype_function(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """One of those, of stand-ins for traced arrays."""

    def stand_in(x: Any) -> Any:
        if not hasattr(type(x), "capture"):
            return x
        if function is np.common_type:
            return np.empty(0, x.dtype)
        return x.dtype if x.weak is None else x.weak(0)

    return function(*map(stand_in, args), **{key: stand_in(x) for key, x in kwargs.items()})


UNSUPPORTED_ATTRIBUTES = frozenset({"flags", "base", "ctypes", "data", "setflags", "resize"})

#: Functions whose result has the axes of its arguments in memory, as ufuncs have.
KEEP_ORDER = frozenset({np.where, np.clip, np.ndarray.clip})

OPERATOR_FUNCTIONS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "matmul": np.matmul, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "lshift": np.left_shift, "rshift": np.right_shift,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "neg": np.negative, "pos": np.positive, "abs": np.absolute,
    "invert": np.invert, "divmod": np.divmod,
}  # fmt: skip


def operator_function(name: str) -> Any:
    """The ufunc behind an operator; a reflected one is a ufunc of the operands the other way round."""
    stem = name.strip("_")
    if stem in OPERATOR_FUNCTIONS:
        return OPERATOR_FUNCTIONS[stem]
    return ReflectedUfunc(OPERATOR_FUNCTIONS[stem[1:]])


class ReflectedUfunc:
    """The ufunc of a reflected operator: its operands come the other way round."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc
        self.__name__ = ufunc.__name__

    def __call__(self, x: Any, y: Any) -> Any:
        return self.ufunc(y, x)


def keeps_order(function: Any) -> bool:
    """The result's axes lie in memory as those of the arguments."""
    ufunc = function.ufunc if isinstance(function, ReflectedUfunc) else function
    if isinstance(ufunc, np.ufunc):
        return ufunc.signature is None  # np.matmul and its like lay out their results row by row
    return function in KEEP_ORDER


def is_foreign(x: Any) -> bool:
    """An array that is not plain, or a container of another library that NumPy would read as one."""
    kind = type(x)
    if kind in _NEVER_FOREIGN or isinstance(x, (np.generic, type)):
        return False
    if isinstance(x, np.ndarray):
        return True
    return (hasattr(kind, "__array__") or hasattr(kind, "__array_interface__")) and not hasattr(kind, "__jitlab_tensor__")


_NEVER_FOREIGN = frozenset({np.ndarray, bool, int, float, complex, str, bytes, type(None), type(...), slice, list, tuple, dict})


def is_at(function: Any) -> bool:
    return isinstance(getattr(function, "__self__", None), np.ufunc) and function.__name__ == "at"


class OnCopy:
    """`function(copy of the first argument, ...)`, and the copy: a writing function made functional."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", "function")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.function == other.function

    def __hash__(self) -> int:
        return hash((type(self), self.function))

    def __call__(self, first: Any, *args: Any, **kwargs: Any) -> Any:
        first = np.array(first)
        self.function(first, *args, **kwargs)
        return first


class IntoCopy(OnCopy):
    """`function(..., out=copy of the first argument)`, and the copy."""

    def __call__(self, first: Any, *args: Any, **kwargs: Any) -> Any:
        first = np.array(first)
        try:
            self.function(*args, out=first, **kwargs)
        except TypeError as error:
            raise TypeError(str(error)) from None  # NumPy's own kinds of it are not made from a text
        return first


def read_item(x: Any, index: Any) -> Any:
    return x[index]


read_item.__name__ = "indexing"  # what a user calls it

#: Functions that read or change the world outside the program: each call happens, in its place.
WORLD: frozenset[Any] = frozenset(
    getattr(np, name)
    for name in (
        "load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt", "fromfile", "fromregex", "memmap",
        "seterr", "geterr", "seterrcall", "geterrcall", "setbufsize", "getbufsize", "errstate", "set_printoptions",
        "get_printoptions", "printoptions", "show_config", "show_runtime", "info", "test",
    )
    if hasattr(np, name)
)  # fmt: skip


def lender(array: Any) -> Any:
    """The object that is no array and whose memory an array stands in (bytes, a bytearray); None: NumPy's own, or no array."""
    owner = array if isinstance(array, np.ndarray) else None
    while isinstance(owner, np.ndarray) or type(owner).__name__ == "DummyArray":  # which holds what as_strided sees
        owner = owner.base  # type: ignore[union-attr]
    return owner


def lends(x: Any) -> bool:
    """May NumPy make an array of it that stands in its memory?"""
    if isinstance(x, (np.ndarray, np.generic)):
        return False
    try:
        memoryview(x)
    except (TypeError, BufferError, ValueError):
        return False
    return True


def full_name(kind: type) -> str:
    """ "numpy.ma.MaskedArray"."""
    return f"{kind.__module__}.{kind.__qualname__}"


def a_kind(x: Any) -> str:
    """What kind of object it is: "a list", "an Adam"."""
    name = type(x).__name__
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"
