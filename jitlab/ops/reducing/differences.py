"""Differences and sums along an axis: diff, gradient, trapezoid, unwrap; convolution, interpolation, polynomials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node, plain, same_extent
from jitlab.ops.base import Cost, Unsupported
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise, fitting, shape_of
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.elementwise import comparison as co
from jitlab.ops.layout.concatenation import concatenate, pad
from jitlab.ops.layout.creation import fill
from jitlab.ops.layout.indexing import Take, read_index
from jitlab.ops.layout.views import broadcast_to, expand_dims, reshape
from jitlab.ops.library_operations import Library
from jitlab.ops.numpy_api.arguments import as_axis, node, nodes, operand
from jitlab.ops.registry import rule

from . import axis_reductions as re
from .scans import cumsum, scatter_along
from .sorting import ArgSort, SearchSorted

FLOAT64, INT64 = np.dtype("f8"), np.dtype("i8")


def part(x: Node, axis: int, s: slice) -> Node:
    """x[..., s, ...]"""
    return read_index(x, (*(slice(None),) * axis, s))


def neighbours(x: Node, axis: int) -> Node:
    """The difference of neighbours; of bools, where they differ."""
    later, sooner = part(x, axis, slice(1, None)), part(x, axis, slice(None, -1))
    return elementwise(co.NotEqual(), later, sooner) if x.dtype.kind == "b" else ar.subtract(later, sooner)


@rule(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Node:
    x = node(ary)
    x = reshape(x, (x.type.size,))
    if x.dtype.kind == "b":
        np.ediff1d(np.zeros(2, bool))
    parts = [ar.subtract(part(x, 0, slice(1, None)), part(x, 0, slice(None, -1)))]
    for given, name in ((to_begin, "to_begin"), (to_end, "to_end")):
        if given is None:
            continue
        end = node(given)
        if not np.can_cast(end.dtype, x.dtype, casting="same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        end = cast(reshape(end, (end.type.size,)), x.dtype)
        parts = [end, *parts] if name == "to_begin" else [*parts, end]
    return concatenate(parts, 0) if len(parts) > 1 else parts[0]


@rule(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """Second-order differences inside, first- or second-order ones at the ends."""
    x = node(f)
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        axes = tuple(as_axis(a, x.ndim) for a in (axis if isinstance(axis, tuple) else (axis,)))
    spacings = _spacings(x, axes, varargs)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    x = cast(x, FLOAT64) if x.dtype.kind in "iu" else x
    found = []
    for along, h in zip(axes, spacings, strict=True):
        if int(x.shape[along]) < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required."
            )
        if x.dtype.kind == "b":
            np.gradient(np.zeros(3, bool))  # bools are not subtracted
        if isinstance(h, Node) and h.ndim:
            even = _gradients(x, along, read_index(h, 0), edge_order)
            same = re.reduce(re.All, elementwise(co.Equal(), h, read_index(h, 0)), (0,))  # as NumPy: then it is a number
            found.append(ar.select(same, even, _gradients(x, along, h, edge_order)))
        else:
            found.append(_gradients(x, along, h, edge_order))
    return found[0] if len(found) == 1 else tuple(found)


def _spacings(x: Node, axes: Sequence[int], varargs: Sequence[Any]) -> list[Any]:
    """A number, or the differences of the coordinates, for each axis."""
    if not varargs:
        return [1.0] * len(axes)
    if len(varargs) == 1 and not shape_of(operand(varargs[0])):
        return [operand(varargs[0])] * len(axes)
    if len(varargs) != len(axes):
        raise TypeError("invalid number of arguments")
    found: list[Any] = []
    for given, axis in zip(varargs, axes, strict=True):
        h = operand(given)
        if shape_of(h):
            h = node(h)
            if h.ndim != 1:
                raise ValueError("distances must be either scalars or 1d")
            if not same_extent(h.shape[0], x.shape[axis]):
                raise ValueError("when 1d, distances must match the length of the corresponding dimension")
            h = neighbours(cast(h, FLOAT64) if h.dtype.kind in "iu" else h, 0)
        found.append(h)
    return found


def _gradients(x: Node, axis: int, h: Any, edge_order: int) -> Node:
    dtype = x.dtype
    behind, here, ahead = (part(x, axis, s) for s in (slice(None, -2), slice(1, -1), slice(2, None)))
    even = not (isinstance(h, Node) and h.ndim)

    def at(k: int) -> Node:
        return part(x, axis, slice(k, k + 1) if k != -1 else slice(-1, None))

    def sum_of(*terms: tuple[Any, Node]) -> Node:
        total = ar.multiply(*terms[0])
        for weight, value in terms[1:]:
            total = ar.add(total, ar.multiply(weight, value))
        return total

    if even:
        inside = ar.divide(ar.subtract(ahead, behind), _times(2.0, h))
    else:
        first, second = part(h, 0, slice(None, -1)), part(h, 0, slice(1, None))
        both = ar.add(first, second)
        weights = (
            ar.divide(ar.negative(second), ar.multiply(first, both)),
            ar.divide(ar.subtract(second, first), ar.multiply(first, second)),
            ar.divide(first, ar.multiply(second, both)),
        )
        across = [a for a in range(x.ndim) if a != axis]
        inside = sum_of(*((expand_dims(w, across), v) for w, v in zip(weights, (behind, here, ahead), strict=True)))
    if edge_order == 1:
        left, right = (h, h) if even else (read_index(h, 0), read_index(h, -1))
        start = ar.divide(ar.subtract(at(1), at(0)), left)
        stop = ar.divide(ar.subtract(at(-1), at(-2)), right)
    elif even:
        start = sum_of((_over(-1.5, h), at(0)), (_over(2.0, h), at(1)), (_over(-0.5, h), at(2)))
        stop = sum_of((_over(0.5, h), at(-3)), (_over(-2.0, h), at(-2)), (_over(1.5, h), at(-1)))
    else:
        u, v = read_index(h, 0), read_index(h, 1)
        both = ar.add(u, v)
        start = sum_of(
            (ar.divide(ar.negative(ar.add(ar.multiply(2.0, u), v)), ar.multiply(u, both)), at(0)),
            (ar.divide(both, ar.multiply(u, v)), at(1)),
            (ar.divide(ar.negative(u), ar.multiply(v, both)), at(2)),
        )
        u, v = read_index(h, -2), read_index(h, -1)
        both = ar.add(u, v)
        stop = sum_of(
            (ar.divide(v, ar.multiply(u, both)), at(-3)),
            (ar.divide(ar.negative(ar.add(v, u)), ar.multiply(u, v)), at(-2)),
            (ar.divide(ar.add(ar.multiply(2.0, v), u), ar.multiply(v, both)), at(-1)),
        )
    return concatenate([cast(p, dtype) for p in (start, inside, stop)], axis)


def _times(number: float, h: Any) -> Any:
    """Of Python numbers a Python number, which stays weak in NumPy's promotion."""
    return number * h if type(h) in (int, float) else ar.multiply(number, h)


def _over(number: float, h: Any) -> Any:
    return number / h if type(h) in (int, float) and h else ar.divide(number, h)


@rule(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * np.pi) -> Node:
    """Jumps of more than half a period are taken out."""
    x = node(p)
    axis = as_axis(axis, x.ndim)
    if isinstance(period, Node):
        raise Unsupported("traced_period")
    step = neighbours(x, axis)
    dtype = np.result_type(step.dtype, period)
    if dtype.kind in "iu":
        high, odd = divmod(period, 2)
        ambiguous = odd == 0
    else:
        high, ambiguous = period / 2, True
    low = -high
    discont = period / 2 if discont is None else operand(discont)
    inside = ar.add(elementwise(ar.FloorMod(), ar.subtract(step, low), period), low)
    if ambiguous:
        edge = elementwise(co.LogicalAnd(), ar.equal(inside, low), ar.greater(step, 0))
        inside = ar.select(edge, constant(high, inside.dtype), inside)
    away = ar.subtract(inside, step)
    away = ar.select(elementwise(co.Less(), elementwise(ar.Abs(), step), discont), ar.zero_like(away), away)
    first = cast(part(x, axis, slice(None, 1)), dtype)
    rest = cast(ar.add(part(x, axis, slice(1, None)), cumsum(away, axis)), dtype)
    return concatenate([first, rest], axis)


# -- convolution


class Convolve(Library):
    """The discrete convolution of two vectors: whole ("full"), where they overlap wholly ("valid"), or its middle ("same")."""

    mode: str

    def numpy(self, *arrays: Any) -> Any:
        return np.convolve(*arrays, mode=self.mode)  # type: ignore[call-overload]

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        a, v = types
        long, short = (a, v) if int(a.shape[0]) >= int(v.shape[0]) else (v, a)
        n, m = long.shape[0], short.shape[0]
        length = {"full": n + m - 1, "same": n, "valid": n - m + 1}[self.mode]
        return (ArrayType((length,), np.result_type(a.dtype, v.dtype)),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """With the cotangent of the whole convolution: each input's is the correlation with the other one."""
        a, v = inputs
        n, m = a.shape[0], v.shape[0]
        short = m if int(n) >= int(m) else n
        before, after = {
            "full": (0, 0),
            "same": ((short - 1) // 2, (short - 1) - (short - 1) // 2),
            "valid": (short - 1, short - 1),
        }[self.mode]
        zero = constant(0, g.dtype)
        whole = pad(g, [(before, after)], [(zero, zero)]) if self.mode != "full" else g
        return [apply(Convolve("valid"), whole, _reversed(ar.conj(other))) for other in (v, a)]

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        a, v = types
        return Cost(2 * out.count * min(a.count, v.count), a.nbytes + v.nbytes, out.nbytes)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        a, v = np.array([0.5, -1.5, 2.0, 3.0, 1.0]), np.array([1.0, -2.0])
        yield cls("full"), a, v
        yield cls("same"), a, v
        yield cls("same"), v, a
        yield cls("same"), a, np.array([1.0, 0.5, -2.0])
        yield cls("valid"), v + 1j, a
        yield cls("full"), np.array([1, 2, 3]), np.array([4, 5], np.int8)


def _reversed(x: Node) -> Node:
    return read_index(x, slice(None, None, -1))


def _mode(mode: Any) -> str:
    """The name of the mode, of its first letter or of NumPy's number; raises what NumPy raises."""
    np.convolve(np.zeros(1), np.zeros(1), mode)
    if isinstance(mode, str):
        return next(name for name in ("valid", "same", "full") if name.startswith(mode[0].lower()))
    return ("valid", "same", "full")[mode]


@rule(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Node:
    x, y = _vector(node(a), "a"), _vector(node(v), "v")
    mode = _mode(mode)
    dtype = np.result_type(x.dtype, y.dtype)
    return apply(Convolve(mode), cast(x, dtype), cast(y, dtype))


def _vector(x: Node, name: str) -> Node:
    if x.ndim == 0:
        x = reshape(x, (1,))
    if x.ndim > 1:
        raise ValueError("object too deep for desired array")
    if int(x.shape[0]) == 0:
        raise ValueError(f"{name} cannot be empty")
    return x


class Correlate(Library):
    """c[k] = Σ a[n + k] conj(v[n])."""

    mode: str

    def numpy(self, *arrays: Any) -> Any:
        return np.correlate(*arrays, mode=self.mode)  # type: ignore[call-overload]

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return Convolve(self.mode).results(*types)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """It is the convolution with v turned round; where v is the longer one, the result is turned round."""
        a, v = inputs
        turned = int(v.shape[0]) > int(a.shape[0])
        if self.mode == "same" and turned:
            raise NotImplementedError("the gradient of np.correlate with the longer array second and mode 'same'")
        by_a, by_v = Convolve(self.mode).gradient(g, out, a, _reversed(ar.conj(v)))
        assert by_v is not None
        return [by_a, ar.conj(_reversed(by_v))]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        a, v = np.array([0.5, -1.5, 2.0, 3.0, 1.0]), np.array([1.0, -2.0, 0.25])
        yield cls("valid"), a, v
        yield cls("full"), a, v
        yield cls("full"), v, a
        yield cls("same"), a, v
        yield cls("valid"), a + 2j, v - 1j


@rule(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Node:
    x, y = node(a), node(v)
    for operand_ in (x, y):
        if operand_.ndim > 1:
            raise ValueError("object too deep for desired array")
        if operand_.ndim == 0 or int(operand_.shape[0]) == 0:
            np.correlate(np.zeros(plain(x.shape)), np.zeros(plain(y.shape)), mode)
    x, y = (reshape(z, (1,)) if z.ndim == 0 else z for z in (x, y))
    dtype = np.result_type(x.dtype, y.dtype)
    return apply(Correlate(_mode(mode)), cast(x, dtype), cast(y, dtype))


# -- interpolation


class Interp(Library):
    """Linear interpolation at x of the points (xp, fp); `left` and `right` of them."""

    exact: ClassVar[bool] = True
    is_silent: ClassVar[bool] = True

    def numpy(self, *arrays: Any) -> Any:
        x, xp, fp, left, right = arrays
        return np.asarray(np.interp(x, xp, fp, left[()], right[()]))

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (ArrayType(types[0].shape, types[2].dtype),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """Between two points the weights of their values, and the slope; outside the ends' own."""
        x, xp, fp, left, right = inputs
        n = xp.shape[0]
        if int(n) == 1:
            raise NotImplementedError("the gradient of np.interp of one point")
        places = apply(SearchSorted("right"), xp, x)
        k = apply(ar.Clip(), ar.subtract(places, 1), constant(0, INT64), as_node(n - 2, INT64))
        x0, x1 = apply(Take(0), xp, k), apply(Take(0), xp, ar.add(k, 1))
        f0, f1 = apply(Take(0), fp, k), apply(Take(0), fp, ar.add(k, 1))
        low, high = elementwise(co.Less(), x, read_index(xp, 0)), ar.greater(x, read_index(xp, -1))
        outside = ar.either(low, high)
        none = ar.zero_like(g)
        width = ar.subtract(x1, x0)
        width = ar.select(ar.equal(width, 0), constant(1.0), width)
        slope, t = ar.divide(ar.subtract(f1, f0), width), ar.divide(ar.subtract(x, x0), width)
        inner = ar.select(outside, none, g)
        flat = reshape(k, (x.type.size,))

        def at(values: Node, where: Node, shape: tuple[int, ...]) -> Node:
            return scatter_along(shape, reshape(values, (x.type.size,)), where, 0)

        after = ar.add(flat, 1)
        by_x = _real(ar.multiply(inner, ar.conj(slope)), x)
        by_f = ar.add(
            at(ar.multiply(inner, ar.subtract(1.0, t)), flat, fp.shape), at(ar.multiply(inner, t), after, fp.shape)
        )
        by_p = ar.negative(
            ar.add(at(ar.multiply(by_x, ar.subtract(1.0, t)), flat, xp.shape), at(ar.multiply(by_x, t), after, xp.shape))
        )
        every = tuple(range(x.ndim))
        ends = [re.reduce(re.Sum, ar.select(side, g, none), every) for side in (low, high)]
        return [by_x, by_p, by_f, *ends]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        x, xp, fp = np.array([[0.1, 1.7, -3.0], [2.5, 9.0, 0.3]]), np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, -1, 4, 2])
        yield cls(), x, xp, fp, np.array(0.5), np.array(-2.0)
        yield cls(), x, xp, fp + 1j * fp[::-1], np.array(0.5 + 0j), np.array(-2.0 + 1j)


def _real(x: Node, like: Node) -> Node:
    return apply(ar.Real(), x) if x.dtype.kind == "c" and like.dtype.kind != "c" else x


@rule(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Node:
    places, points, values = node(x), node(xp), node(fp)
    dtype = np.dtype("c16") if values.dtype.kind == "c" else FLOAT64
    for given in (places, points):
        if given.dtype.kind == "c" and period is None:
            raise TypeError("Cannot cast array data from dtype('complex128') to dtype('float64') according to the rule 'safe'")
    places, points, values = cast(places, FLOAT64), cast(points, FLOAT64), cast(values, dtype)
    if points.ndim != 1 or values.ndim != 1:
        raise ValueError("Data points must be 1-D sequences" if period is not None else "object too deep for desired array")
    if not same_extent(points.shape[0], values.shape[0]):
        raise ValueError("fp and xp are not of the same length.")
    if int(points.shape[0]) == 0:
        raise ValueError("array of sample points is empty")
    if period is not None:
        if isinstance(period, Node):
            raise Unsupported("traced_period")
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period, left, right = abs(period), None, None
        places, points = (elementwise(ar.FloorMod(), v, period) for v in (places, points))
        order = apply(ArgSort(0), points)
        points, values = apply(Take(0), points, order), apply(Take(0), values, order)
        first, last = slice(0, 1), slice(-1, None)
        points = concatenate(
            [ar.subtract(read_index(points, last), period), points, ar.add(read_index(points, first), period)], 0
        )
        values = concatenate([read_index(values, last), values, read_index(values, first)], 0)
    ends = [
        read_index(values, k) if end is None else as_node(operand(end), dtype) for k, end in ((0, left), (-1, right))
    ]
    return apply(Interp(), places, points, values, *ends)


# -- polynomials and pieces


@rule(np.polyval)
def polyval(p: Any, x: Any) -> Node:
    """Horner's scheme."""
    if isinstance(p, Node):
        coefficients: list[Any] = [read_index(p, k) for k in range(int(p.shape[0]))]
    elif isinstance(p, (list, tuple, np.ndarray)):
        whole = node(p)
        coefficients = [read_index(whole, k) for k in range(int(whole.shape[0]))]
    else:
        raise Unsupported("polynomial_class", "foreign_type", kind=type(p).__name__)
    places = node(x)
    result: Any = fill(places.shape, 0, places.dtype)
    for c in coefficients:
        result = ar.add(ar.multiply(result, places), c)
    found: Node = result
    return found


@rule(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Node:
    """Of numbers: choices. Functions see only the elements of their piece, however many those are."""
    values = node(x)
    if any(callable(f) for f in funclist):
        raise Unsupported("piecewise_functions", "data_dependent")
    if isinstance(condlist, Node) and condlist.ndim > (values.ndim != 0):
        conditions = [read_index(condlist, k) for k in range(int(condlist.shape[0]))]
    elif isinstance(condlist, (list, tuple)) and condlist and (values.ndim == 0 or _is_sequence(condlist[0])):
        conditions = nodes(condlist)
    else:
        conditions = [node(condlist)]
    pieces = [operand(f) for f in funclist]
    n = len(conditions)
    if len(pieces) not in (n, n + 1):
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    if any(plain(c.shape) != plain(values.shape) for c in conditions):
        raise Unsupported("conditions_shape")
    none = ar.zero_like(values)
    result = broadcast_to(none, values.shape) if len(pieces) == n else _piece(pieces[-1], values)
    for condition, piece in zip(conditions, pieces, strict=False):
        result = ar.select(cast(condition, bool), _piece(piece, values), result)
    return result


def _is_sequence(x: Any) -> bool:
    return isinstance(x, (list, tuple, np.ndarray)) or (isinstance(x, Node) and x.ndim > 0)


def _piece(value: Any, x: Node) -> Node:
    if shape_of(value):
        raise Unsupported("array_piece")
    return broadcast_to(as_node(fitting(value, x.dtype), x.dtype), x.shape)
