"""What the operations of a cluster should give: values op by op, and beside each how far compiled code may be from it.

The bounds are those of docs/reference/numerics.md. An operation that is exact gives the same bits for the same inputs. A
function is within 3 ULP of its true value, a sum of n elements within (8 + log2 n)·eps·Σ|x|, a product of n or a matrix product
within n·eps of the same expression of absolute values. The true value is that of the operation in a wider type, rounded,
where that is cheap; else NumPy's own, and both sides' errors are allowed for. What an operation makes of inputs that are
off themselves is found at the corners of what they may be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from jitlab.ir import Graph, Node, bind_extents
from jitlab.ir.graphs.graph import decided_by
from jitlab.ops.base import Elementwise, Generated, Operation, Reduction
from jitlab.ops.host_operations import HostCall, Item
from jitlab.ops.layout.concatenation import Concatenate
from jitlab.ops.layout.indexing import Gather, Scatter, ScatterAdd, Take
from jitlab.ops.layout.views import Reshape, Update, View
from jitlab.ops.library_operations import Library
from jitlab.ops.linear_algebra.matrix_products import Product
from jitlab.ops.reducing.axis_reductions import ArgExtreme, Mean, Prod, Sum
from jitlab.ops.reducing.scans import CumProd, CumSum, Scan
from jitlab.ops.reducing.sorting import Sort
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import quietly

#: ULPs that a function of ours may be from the true value, and those that NumPy and SciPy may be where they are the reference.
OURS, NUMPYS, SCIPYS = 3, 4, 16
#: A function of complex numbers is made of several of real ones.
COMPLEX = 4
#: Elements of an operation up to which float64 is checked in NumPy's long double; products count their multiplications.
CHEAP, CHEAP_PRODUCT = 1 << 21, 1 << 24
#: Inputs that are off at the same time, for which every corner is looked at.
CORNERS = 3

WIDER = {
    np.dtype("f2"): np.dtype("f8"), np.dtype("f4"): np.dtype("f8"), np.dtype("c8"): np.dtype("c16"),
}  # fmt: skip
LONG = {np.dtype("f8"): np.dtype(np.longdouble), np.dtype("c16"): np.dtype(np.clongdouble)}
HAS_LONG = np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Value:
    """A value with `off`, how far compiled code may be from it, element by element: None, the same bits; `unknown`: nobody
    has stated a bound for `why`."""

    value: Any
    off: Array | None = None
    unknown: str = ""
    is_wide: bool = False  # a wider type was asked for it, or for what it is made of

    def __bool__(self) -> bool:
        return bool(self.value)


class Unbounded(Exception):
    """There is no bound for what this operation does with inputs that are off."""


@quietly
def reference(nodes: Sequence[Node], values: dict[Node, Value], symbols: Mapping[str, int]) -> None:
    """Add the value of each node to `values`, which has those that the nodes read from elsewhere."""
    known = dict(symbols)
    for node in nodes:
        if node not in values:
            values[node] = _value(node, [values[source] for source in node.inputs], known)
        found: Any = values[node]
        known |= decided_by(node.op, tuple(x.value for x in found) if isinstance(found, tuple) else found.value)


def _value(node: Node, inputs: Sequence[Value], symbols: Mapping[str, int]) -> Any:
    op = node.op
    if hasattr(op, "graphs"):
        return _control(node, inputs, symbols)
    if isinstance(op, Item):
        whole = inputs[0]
        if isinstance(whole, tuple):
            return whole[op.index]
        return Value(whole.value[op.index], whole.off, whole.unknown, whole.is_wide)
    op = bind_extents(op, symbols)
    plain = op.numpy(*(x.value for x in inputs))
    if isinstance(plain, tuple):
        inexact = not op.exact or any(x.off is not None or x.unknown for x in inputs)
        said = _name(op) if inexact else ""
        return tuple(Value(part, None, said) for part in plain)
    unknown = next((x.unknown for x in inputs if x.unknown), "")
    is_wide = any(x.is_wide for x in inputs)
    if unknown:
        return Value(plain, None, unknown, is_wide)
    try:
        value, off, wide = _bounded(op, plain, inputs)
    except Unbounded:
        return Value(plain, None, _name(op), is_wide)
    return Value(value, off, "", is_wide or wide)


def _control(node: Node, inputs: Sequence[Value], symbols: Mapping[str, int]) -> tuple[Value, ...]:
    """A loop or branch; where its condition may be off, so may be everything that it gives."""
    doubt: list[str] = []

    def inside(graph: Graph, arguments: Sequence[Value], symbols: Mapping[str, int] = MappingProxyType({})) -> list[Value]:
        values = dict(zip(graph.parameters, arguments, strict=True))
        reference(graph.nodes, values, {**graph.symbol_values(), **symbols})
        results = [values[output] for output in graph.outputs]
        if graph is getattr(node.op, "test", None) and (results[0].unknown or _is_off(results[0])):
            doubt.append("a loop whose end depends on values that are off")
        return results

    if node.op.name == "If" and (inputs[0].unknown or _is_off(inputs[0])):
        doubt.append("a branch that depends on values that are off")
    results = node.op.run(dict(symbols), tuple(inputs), inside)
    if doubt:
        return tuple(Value(x.value, None, doubt[0], x.is_wide) for x in results)
    return tuple(results)


def _is_off(x: Value) -> bool:
    return x.off is not None and bool(np.any(x.off > 0))


def _name(op: Any) -> str:
    return f"{op.name}, for which no bound is stated"


def _bounded(op: Any, plain: Any, inputs: Sequence[Value]) -> tuple[Any, Array | None, bool]:
    """The reference value, how far from it compiled code may be, and whether a wider type gave it."""
    inexact = is_inexact(op, [np.asarray(x.value).dtype for x in inputs]) and np.asarray(plain).dtype.kind in "fc"
    off = any(x.off is not None for x in inputs)
    if not inexact and not off:
        return plain, None, False
    if isinstance(op, (Library, HostCall)) and not isinstance(op, Sort):
        raise Unbounded
    wide = _wider(op, inputs) if inexact else None
    arrays = [x.value for x in inputs] if wide is None else [_as(x.value, wide) for x in inputs]
    true = plain if wide is None else op.numpy(*arrays)
    value = plain if wide is None else np.asarray(true).astype(np.asarray(plain).dtype)[()]
    spread = _spread(op, true, arrays, inputs) if off else 0.0
    own = _own(op, value, inputs, wide is not None) if inexact else 0.0
    total = np.asarray(spread + own, np.float64)
    total = np.where(np.isnan(total), np.inf, total)
    if wide is not None or off:  # the rounding of the reference, and of a result between two corners
        total = total + np.where(total > 0, _ulp(value), 0.0)
    return value, np.broadcast_to(total, np.shape(value)), wide is not None


def is_inexact(op: Any, dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Is it only within a bound of NumPy's? The length of a complex number is a hypotenuse, its root a function."""
    return not op.exact or (type(op).__name__ in ("Abs", "Sign", "Sqrt") and any(d.kind == "c" for d in dtypes))


def _wider(op: Any, inputs: Sequence[Value]) -> np.dtype[Any] | None:
    """The type in which the operation is near its true value, where that is cheap."""
    dtypes = {np.asarray(x.value).dtype for x in inputs}
    floating = sorted((d for d in dtypes if d.kind in "fc"), key=lambda d: d.itemsize)
    if not floating:
        return None
    if floating[-1] in WIDER:
        return WIDER[floating[-1]]
    if not HAS_LONG or floating[-1] not in LONG or hasattr(op, "scipy_name") or getattr(op, "ufunc", 1) is None:
        return None
    if isinstance(op, Product):
        x, y = (np.asarray(v.value) for v in inputs)
        work = x.size * (y.shape[-1] if y.ndim > 1 else 1)
        return LONG[floating[-1]] if work <= CHEAP_PRODUCT else None
    if not isinstance(op, (Sum, Mean, Prod)) and not isinstance(getattr(op, "ufunc", None), np.ufunc):
        return None
    size = max(np.size(x.value) for x in inputs)
    return LONG[floating[-1]] if size <= CHEAP * (8 if isinstance(op, Reduction) else 1) else None


def _as(value: Any, wide: np.dtype[Any]) -> Any:
    array = np.asarray(value)
    if array.dtype.kind not in "fc":
        return value
    real = array.dtype.kind == "f" and wide.kind == "c"
    return array.astype(np.dtype(f"f{wide.itemsize // 2}") if real else wide)


def _own(op: Any, value: Any, inputs: Sequence[Value], is_true: bool) -> Any:
    """The bound of an inexact operation whose inputs are right."""
    first = np.abs(np.asarray(inputs[0].value)).astype(np.float64)
    eps = float(np.finfo(np.asarray(value).dtype).eps)
    sides = 1 if is_true else 2
    if isinstance(op, (Sum, Mean)):
        n = _count(inputs[0].value, op)
        most = (8 + math.log2(max(n, 1))) * eps * np.sum(first, axis=op.axes)
        # NumPy adds the rows of an outer axis one to the other
        theirs = 0.0 if is_true else n * eps * np.sum(first, axis=op.axes)
        return (most + theirs) / (n if isinstance(op, Mean) else 1)
    if isinstance(op, Prod):
        return sides * _count(inputs[0].value, op) * eps * np.prod(first, axis=op.axes)
    if isinstance(op, Product):
        second = np.abs(np.asarray(inputs[1].value)).astype(np.float64)
        return sides * np.asarray(inputs[0].value).shape[-1] * eps * np.matmul(first, second)
    if not isinstance(op, Elementwise):
        raise Unbounded
    theirs = 0 if is_true else SCIPYS if hasattr(op, "scipy_name") else NUMPYS
    ulps = OURS * (COMPLEX if np.asarray(value).dtype.kind == "c" else 1) + theirs
    return ulps * _ulp(value)


def _count(x: Any, op: Any) -> int:
    return math.prod(np.shape(x)[axis] for axis in op.axes)


def _ulp(value: Any) -> Any:
    """The distance to the next number of the type, of each element; 0 for integers."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc":
        return np.zeros(array.shape)
    size = np.abs(array).astype(array.real.dtype)
    found = np.spacing(size).astype(np.float64)
    return np.where(np.isfinite(found), found, 0.0)


# -- inputs that are off


def _spread(op: Operation, true: Any, arrays: Sequence[Any], inputs: Sequence[Value]) -> Any:
    """How far the result moves when the inputs move as far as they may."""
    offs = [np.zeros(()) if x.off is None else x.off for x in inputs]
    off = [n for n, x in enumerate(inputs) if x.off is not None]
    if isinstance(op, (Elementwise, Generated)):
        return _at_corners(op, true, arrays, inputs, off)
    if isinstance(op, (View, Reshape)):
        return np.asarray(op.numpy(inputs[0].off), np.float64)
    if isinstance(op, (Concatenate, Update)):
        full = [np.broadcast_to(o, np.shape(x.value)).astype(np.float64) for o, x in zip(offs, inputs, strict=True)]
        return np.asarray(op.numpy(*full), np.float64)
    if isinstance(op, (Take, Gather, Scatter)):
        data = 2 if isinstance(op, Scatter) else 1
        if any(n >= data for n in off):
            raise Unbounded  # an index that is off
        full = [np.broadcast_to(o, np.shape(x.value)).astype(np.float64) for o, x in zip(offs, inputs, strict=True)]
        moved = op.numpy(*full[:data], *(x.value for x in inputs[data:]))
        if isinstance(op, ScatterAdd):
            sizes = [np.abs(x.value) for x in inputs[:data]]
            return moved + 16 * _ulp(op.numpy(*sizes, *(x.value for x in inputs[data:])))
        return np.asarray(moved, np.float64)
    (x,) = inputs if len(inputs) == 1 else (inputs[0],)
    value = np.asarray(x.value)
    if isinstance(op, (Sum, Mean)) and value.dtype.kind != "b":
        total = np.sum(offs[0], axis=op.axes)
        return total / _count(value, op) if isinstance(op, Mean) else total
    if isinstance(op, (Prod, CumProd)):
        relative = np.log1p(np.where(offs[0] > 0, offs[0] / np.abs(value), 0.0))
        added = np.sum(relative, axis=op.axes) if isinstance(op, Prod) else _scanned(op, relative)
        return np.abs(true).astype(np.float64) * np.expm1(added)
    if isinstance(op, CumSum):
        eps = np.finfo(value.dtype).eps if value.dtype.kind in "fc" else 0.0
        n = value.shape[op.axis]
        return _scanned(op, offs[0]) + n * eps * _scanned(op, np.abs(value).astype(np.float64))
    if isinstance(op, Sort):
        return np.max(offs[0], initial=0.0)
    if isinstance(op, ArgExtreme):
        return _turned(op, value, offs[0])
    if isinstance(op, Product):
        a, b = (np.abs(np.asarray(x.value)).astype(np.float64) for x in inputs)
        ea, eb = (np.broadcast_to(o, np.shape(x.value)) for o, x in zip(offs, inputs, strict=True))
        return np.matmul(a, eb) + np.matmul(ea, b) + np.matmul(ea, eb)
    if isinstance(op, (Reduction, Scan)) and op.exact:
        return _at_corners(op, true, arrays, inputs, off)
    raise Unbounded


def _scanned(op: Any, x: Array) -> Array:
    turned = np.flip(x, op.axis) if op.reverse else x
    total = np.cumsum(turned, axis=op.axis)
    return np.flip(total, op.axis) if op.reverse else total


def _turned(op: Any, value: Array, off: Array) -> Array:
    """Where another element may be the extreme: everything; elsewhere nothing."""
    sign = -1 if "Min" in type(op).__name__ else 1
    best = np.max(sign * value - off, axis=op.axes, keepdims=True)
    near = np.sum(sign * value + off >= best, axis=op.axes)
    return np.where(near > 1, np.inf, 0.0)


def _at_corners(op: Any, true: Any, arrays: Sequence[Any], inputs: Sequence[Value], off: Sequence[int]) -> Any:
    """The farthest result of all combinations of least and greatest inputs; of many inputs one at a time, and summed."""
    if len(off) > CORNERS:
        return sum(_at_corners(op, true, arrays, inputs, [n]) for n in off)
    farthest: Any = 0.0
    for signs in itertools.product((-1, 1), repeat=len(off)):
        moved = list(arrays)
        for n, sign in zip(off, signs, strict=True):
            moved[n] = _moved(arrays[n], inputs[n].off, sign)
        found = op.numpy(*moved)
        farthest = np.maximum(farthest, distance(found, true))
    return farthest


@quietly
def _moved(value: Any, off: Any, sign: int) -> Any:
    array = np.asarray(value)
    if array.dtype.kind == "b":
        return np.where(off > 0, sign > 0, array)
    if array.dtype.kind in "iu":
        return (array + sign * np.ceil(np.where(np.isfinite(off), off, 0))).astype(array.dtype)
    return (array + (sign * np.asarray(off)).astype(array.real.dtype)).astype(array.dtype)


@quietly
def distance(a: Any, b: Any) -> Any:
    """|a - b| of each element: 0 for two NaNs and for equal infinities, inf where one alone is NaN or infinite."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "b" or b.dtype.kind == "b":
        return (a != b).astype(np.float64)
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        wide = np.maximum(a, b) - np.minimum(a, b)
        return wide.astype(np.float64)
    found = np.abs(a - b).astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(found), np.inf, found))
