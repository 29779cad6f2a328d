"""NumPy's conversions of arrays (`np.asarray`, `np.array(copy=None)`, `x.astype(copy=False)`, `np.float64(x)`): they give the
array itself where it is as it is wanted, and a copy only where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import TRACED_DTYPES, plain
from jitlab.ops.layout.views import expand_dims_view

from .layouts import is_in_columns, is_in_rows

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

#: Function -> what it wants without being asked: whether to copy (None: where it has to), the order, the fewest axes.
CONVERSIONS: dict[Any, tuple[Any, str | None, int]] = {
    np.array: (True, "K", 0), np.asarray: (None, None, 0), np.asanyarray: (None, None, 0), np.ascontiguousarray: (None, "C", 1),
    np.asfortranarray: (None, "F", 1), np.require: (None, "A", 0), np.asarray_chkfinite: (None, None, 0),
    np.ndarray.astype: (True, "K", 0), np.astype: (True, "K", 0), **{dtype.type: (None, None, 0) for dtype in TRACED_DTYPES},
}  # fmt: skip
_AS_TYPE = frozenset({np.ndarray.astype, np.astype})
_FLAGS = {
    "C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F", "A": "A", "ALIGNED": "A",
    "W": "W", "WRITEABLE": "W", "O": "O", "OWNDATA": "O", "E": "E", "ENSUREARRAY": "E",
}  # fmt: skip


def converted(capture: Arrays, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor | None:
    """The array itself, or a view with more axes; None where NumPy gives a copy (or an error)."""
    x = args[0]
    default_copy, default_order, least = CONVERSIONS[function]
    copy, order = kwargs.get("copy", default_copy), kwargs.get("order") or default_order
    dtype = args[1] if function in _AS_TYPE else function if isinstance(function, type) else kwargs.get("dtype")
    if not isinstance(x, Tensor) or x.is_scalar or (copy and function is not np.require) or isinstance(copy, Tensor):
        return None
    if dtype is not None and (np.dtype(dtype).num != x.dtype.num or (dtype is function and not x.ndim)):
        return None
    wanted: set[str] = set()
    if function is np.require:
        wanted, order = required(kwargs.get("requirements")), required_order(kwargs.get("requirements"))
        if "" in wanted or {"C", "F"} <= wanted or ("W" in wanted and x.readonly) or ("O" in wanted and not owns(x)):
            return None
    if order in ("C", "F"):
        if x.ndim:
            capture.layout.read(x)
            capture.layout.values = True  # `is` tells x itself from a copy
        lies = is_in_rows if order == "C" else is_in_columns
        shape = plain(x.type.shape)
        if not x.decided_by_layout(lambda strides: lies(strides, shape)):
            return None
    missing = max(least, int(kwargs.get("ndmin", 0))) - x.ndim
    return x.along([expand_dims_view(x.type, tuple(range(missing)))]) if missing > 0 else x


def required(names: Any) -> set[str]:
    """One letter for each of `np.require`'s requirements, "" for one that it does not know."""
    return {_FLAGS.get(str(name).upper(), "") for name in ([names] if isinstance(names, str) else names or ())}


def required_order(names: Any) -> str:
    return "F" if "F" in (wanted := required(names)) else "C" if "C" in wanted else "A"


def owns(x: Tensor) -> bool:
    """The array is the one that its memory was made for."""
    input = x._cell.input
    return not x._path and (input is None or (x is input.tensor and bool(input.value.flags.owndata)))


def copy_refused(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """`copy=False` where there has to be one: `astype` makes it all the same."""
    return function not in _AS_TYPE and kwargs.get("copy") is False


NO_COPY = (
    "Unable to avoid copy while creating an array as requested.\nIf using `np.array(obj, copy=False)` replace it with "
    "`np.asarray(obj)` to allow a copy when needed (no behavior change in NumPy 1.x)."
)
