"""Sorting and searching: NumPy's own code as one call inside a cluster; their gradients are gathers by the order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.ops.base import Cost, Unsupported
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise
from jitlab.ops.elementwise.arithmetic import Minimum, add, is_nan, multiply, subtract
from jitlab.ops.elementwise.arithmetic import select as choose
from jitlab.ops.layout.creation import fill
from jitlab.ops.layout.indexing import Gather, positions_along, read_index
from jitlab.ops.layout.views import expand_dims, reshape, transpose
from jitlab.ops.library_operations import InC, Library, Lying, SortLoop, call
from jitlab.ops.numpy_api.arguments import along, as_axes, as_axis, flattened, node, nodes, refuse
from jitlab.ops.numpy_api.rules_reductions import flag
from jitlab.ops.registry import rule, update

from .scans import scatter_along

INT64 = np.dtype("i8")
X = np.array([[0.5, -1.5, 2.0, -0.25], [3.0, -0.75, 1.0, 1.25]])
WITH_NAN = np.array([[-0.0, 1.0, np.nan, 0.0], [np.inf, -np.inf, 3.0, 0.0]])
INTS = np.array([[100, 7, -3, 7], [7, -128, 127, 0]], np.int8)


class Ordered(Library, family=True):
    """Elements of one axis in another order."""

    axis: int
    exact: ClassVar[bool] = True

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (types[0],)

    def order(self, x: Node) -> Node:
        """Where each element of the result comes from."""
        raise NotImplementedError

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """Each cotangent goes where its element came from."""
        (x,) = inputs
        return [scatter_along(x.shape, g, self.order(x), self.axis)]

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        n = max(int(types[0].shape[self.axis]), 2)
        return Cost(int(int(types[0].size) * np.log2(n)), types[0].nbytes, types[0].nbytes)


class Sort(Ordered):
    """`np.sort` along one axis; NaN last. Equal elements share no gradient: each keeps its own."""

    kind: str = "quicksort"

    def numpy(self, *arrays: Any) -> Any:
        return np.sort(arrays[0], axis=self.axis, kind=self.kind)  # type: ignore[call-overload]

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC | None:
        return InC((SortLoop(("out", 0), ("in", 0), self.axis, self.kind),))

    def order(self, x: Node) -> Node:
        return apply(ArgSort(self.axis, "stable"), x)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(0), X
        yield cls(1), WITH_NAN
        yield cls(1, "stable"), INTS
        yield cls(1), X + 1j * X[::-1]
        yield cls(0), np.zeros((0, 3))


class Positions(Library, family=True):
    """Places of elements, of the shape of the first input."""

    exact: ClassVar[bool] = True
    is_silent: ClassVar[bool] = True

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (types[0].with_dtype(np.dtype(np.intp)),)


class ArgSort(Positions):
    """The order that sorts an axis."""

    axis: int
    kind: str = "quicksort"

    def numpy(self, *arrays: Any) -> Any:
        return np.argsort(arrays[0], axis=self.axis, kind=self.kind)  # type: ignore[arg-type]

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC | None:
        return InC((SortLoop(("out", 0), ("in", 0), self.axis, self.kind, finds_order=True),))

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(0), X
        yield cls(1, "stable"), WITH_NAN
        yield cls(1, "stable"), INTS


class Partition(Ordered):
    """`np.partition`: the elements `kth` where a sort puts them, smaller ones before, larger ones after."""

    kth: tuple[int, ...]
    is_silent: ClassVar[bool] = True

    def numpy(self, *arrays: Any) -> Any:
        result = arrays[0].copy("K")
        result.partition(np.array(self.kth, np.intp), self.axis)
        return result

    def order(self, x: Node) -> Node:
        return apply(ArgPartition(self.axis, self.kth), x)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(1, (2,)), X
        yield cls(1, (0, 3)), INTS


class ArgPartition(Positions):
    """The order that partitions an axis."""

    axis: int
    kth: tuple[int, ...]

    def numpy(self, *arrays: Any) -> Any:
        return arrays[0].argpartition(np.array(self.kth, np.intp), self.axis)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(1, (2,)), X


class LexSort(Positions):
    """The order that sorts by several keys, the last one first."""

    axis: int

    def numpy(self, *arrays: Any) -> Any:
        return np.lexsort(arrays, axis=self.axis)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(-1), np.array([1.0, 0.0, 1.0, 0.0]), np.array([3, 3, 1, 2])


class SearchSorted(Positions):
    """Where elements would stand in a sorted vector; with a third input, the order that sorts it."""

    side: str

    def numpy(self, *arrays: Any) -> Any:
        return arrays[0].searchsorted(arrays[1], self.side, *arrays[2:])

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return super().results(types[1])

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls("left"), np.array([-1.0, 0.5, 0.5, 3.0]), X
        yield cls("right"), np.array([3, 1, 2]), np.array([2, 5], np.int8), np.array([1, 2, 0])


class Digitize(Positions):
    """The bin of each element; bins that are not monotonic are NumPy's ValueError."""

    right: bool
    may_raise: ClassVar[bool] = True

    def numpy(self, *arrays: Any) -> Any:
        return np.digitize(arrays[0], arrays[1], self.right)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(False), X, np.array([-1.0, 0.5, 2.0])
        yield cls(True), X, np.array([2.0, 0.5, -1.0])


class IsIn(Library):
    """Which elements are among those of the second input?"""

    assume_unique: bool = False
    invert: bool = False
    kind: str | None = None
    exact: ClassVar[bool] = True

    def numpy(self, *arrays: Any) -> Any:
        x, among = arrays
        kind: Any = self.kind
        return np.isin(x, among, assume_unique=self.assume_unique, invert=self.invert, kind=kind)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (types[0].with_dtype(np.dtype(bool)),)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), INTS, np.array([7, 0])
        yield cls(invert=True), X, np.array([0.5, np.nan])


# -- rules


def sort_kind(kind: Any, order: Any, stable: Any) -> str:
    """The algorithm that NumPy takes for its arguments; raises its errors."""
    refuse(order=order)
    options: dict[str, Any] = {} if stable is None else {"stable": bool(stable)}
    np.sort(np.zeros(0), kind=kind, **options)
    if stable:
        return "stable"
    return "quicksort" if kind is None else str(kind)


@rule(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Node:
    x, axis = flattened(node(a), axis)
    return apply(Sort(axis, sort_kind(kind, order, stable)), x)


@rule(np.argsort, method="argsort")
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Node:
    x = node(a)
    if x.ndim == 0 and axis in (None, 0, -1):
        return fill(np.argsort(np.zeros(())).shape, 0, np.intp)  # releases of NumPy differ in its rank
    x, axis = flattened(x, axis)
    return apply(ArgSort(axis, sort_kind(kind, order, stable)), x)


@update(method="sort")
def sort_in_place(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Node:
    x = node(a)
    return apply(Sort(as_axis(axis, x.ndim), sort_kind(kind, order, stable)), x)


def _kth(kth: Any, x: Node, axis: int) -> tuple[int, ...]:
    """The positions, non-negative and sorted. Raises ValueError as NumPy does."""
    if isinstance(kth, Node):
        raise Unsupported("traced_positions", "data_dependent")
    given = np.atleast_1d(np.asarray(kth))
    n = int(x.shape[axis])
    np.partition(np.zeros(n), given)  # raises what NumPy raises
    return tuple(sorted({int(k) % n for k in given})) if n else ()


@rule(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Node:
    refuse(order=order)
    x, axis = flattened(node(a), axis)
    return apply(Partition(axis, _kth(kth, x, axis)), x)


@rule(np.argpartition, method="argpartition")
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Node:
    refuse(order=order)
    x, axis = along(node(a), axis)
    return apply(ArgPartition(axis, _kth(kth, x, axis)), x)


@update(method="partition")
def partition_in_place(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Node:
    refuse(order=order)
    x = node(a)
    axis = as_axis(axis, x.ndim)
    return apply(Partition(axis, _kth(kth, x, axis)), x)


@rule(np.lexsort)
def lexsort(keys: Any, axis: Any = -1) -> Node:
    parts = [read_index(keys, k) for k in range(int(keys.shape[0]))] if isinstance(keys, Node) else nodes(keys)
    if not parts:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if parts[0].ndim == 0 and axis in (0, -1):
        return constant(np.intp(0))
    axis = as_axis(axis, parts[0].ndim)
    if any(tuple(map(int, p.shape)) != tuple(map(int, parts[0].shape)) for p in parts):
        raise ValueError("all keys need to be the same shape")
    result = call(LexSort(axis), *parts)
    assert isinstance(result, Node)
    return result


@rule(np.searchsorted, method="searchsorted")
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Node:
    x, values = node(a), node(v)
    _check_vector(x)
    if side not in ("left", "right"):
        np.searchsorted(np.zeros(1), 0, side)
    order = [] if sorter is None else [node(sorter)]
    for o in order:
        if o.dtype.kind not in "iu":
            raise TypeError("sorter must only contain integers")
        if tuple(map(int, o.shape)) != tuple(map(int, x.shape)):
            raise ValueError("sorter.size must equal a.size")
    dtype = np.promote_types(x.dtype, values.dtype)
    return apply(SearchSorted(side), cast(x, dtype), cast(values, dtype), *(cast(o, np.intp) for o in order))


def _check_vector(x: Node) -> None:
    if x.ndim != 1:
        raise ValueError("object of too small depth for desired array" if x.ndim == 0 else "object too deep for desired array")


@rule(np.digitize)
def digitize(x: Any, bins: Any, right: Any = False) -> Node:
    values, edges = node(x), node(bins)
    if values.dtype.kind == "c":
        raise TypeError("x may not be complex")
    _check_vector(edges)
    return apply(Digitize(bool(right)), values, edges)


@rule(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None
) -> Node:
    return apply(IsIn(bool(assume_unique), bool(invert), kind), node(element), node(test_elements))


if hasattr(np, "in1d"):

    @rule(np.in1d)
    def in1d(ar1: Any, ar2: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None) -> Node:
        x = node(ar1)
        return apply(IsIn(bool(assume_unique), bool(invert), kind), reshape(x, (x.type.size,)), node(ar2))


# -- order statistics


def _median_of_row(x: Any) -> Any:
    """`np.median` of some floats, by the same partition: its way through NumPy's Python takes five times as long for a few."""
    middle, is_odd = divmod(x.size, 2)
    part = x.copy()
    part.partition([middle, -1] if is_odd else [middle - 1, middle, -1])
    last = part[-1]  # where there is a NaN
    if last != last:
        return last
    if is_odd:
        return np.add.reduce(part[middle : middle + 1])  # as a mean is made: -0.0 becomes what it becomes there
    return np.add.reduce(part[middle - 1 : middle + 1]) / part.dtype.type(2)


class OrderStatistic(Library):
    """Medians, quantiles and percentiles along the last axis: NumPy's function of that name. The second input, where there is
    one, holds the probabilities, whose axes come first in the result."""

    numpy_name: str  # "median", "quantile", "percentile", or one of them with "nan" before it
    method: str = "linear"
    q: int | float | None = None  # a Python number, which is weak in NumPy's promotion
    exact: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return {"nan": "Nan"}.get(self.numpy_name[:3], "") + self.numpy_name.removeprefix("nan").capitalize()

    @property
    def word(self) -> str:
        return self.numpy_name

    def numpy(self, *arrays: Any) -> Any:
        if self.numpy_name == "median" and arrays[0].ndim == 1 and arrays[0].size and arrays[0].dtype.char in "df":
            return _median_of_row(arrays[0])
        function = getattr(np, self.numpy_name)
        q = list(arrays[1:]) if self.q is None else [self.q]
        options = {"method": self.method} if q else {}
        return function(arrays[0], *q, axis=-1, **options)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, *q = types
        dtype = np.asarray(self.numpy(np.ones((1,), x.dtype), *(np.zeros((), t.dtype) for t in q))).dtype
        return (ArrayType((*(q[0].shape if q else ()), *x.shape[:-1]), dtype),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """A statistic is a point between two neighbours in the order. Where it lies is what it gives for the ranks."""
        from jitlab.ops.elementwise.math_functions import Floor

        x, *rest = inputs
        axis, n = x.ndim - 1, x.shape[-1]
        order = apply(ArgSort(axis, "stable"), x)
        ranks = cast(apply(ArgSort(axis, "stable"), order), np.dtype("f8"))
        if self.numpy_name.startswith("nan"):
            ranks = choose(is_nan(x), constant(np.nan), ranks)
        where = apply(self, ranks, *(cast(q, np.dtype("f8")) for q in rest))
        where = choose(is_nan(where), constant(0.0), where)
        low = elementwise(Floor(), where)
        part = cast(subtract(where, low), g.dtype)
        before = cast(low, INT64)
        after = elementwise(Minimum(), add(before, 1), subtract(as_node(n, INT64), 1))

        def scattered(number: Node, share: Node) -> Node:
            """Cotangents of q... × rest... into x: the axes of q go last, they pick along x's axis."""
            lead = number.ndim - axis
            turn = (*range(lead, number.ndim), *range(lead))
            shape = (*x.shape[:-1], math.prod(number.shape[:lead]))
            place, value = (reshape(transpose(part, turn), shape) for part in (number, share))
            return scatter_along(x.shape, value, take_along(order, place, axis), axis)

        one = constant(1, g.dtype)
        total = add(scattered(before, multiply(g, subtract(one, part))), scattered(after, multiply(g, part)))
        return [total, *(None for _ in rest)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls("median"), X
        yield cls("nanmedian"), WITH_NAN
        yield cls("percentile", "linear", 30), X.astype(np.float32)
        yield cls("quantile"), X, np.array([[0.1, 0.5], [0.75, 0.9]], np.float32)
        yield cls("percentile", "nearest"), INTS, np.array(30.0)
        yield cls("nanquantile", "hazen"), WITH_NAN, np.array([0.3, 0.6])


def take_along(x: Node, where: Node, axis: int) -> Node:
    """`np.take_along_axis`."""
    return apply(Gather(tuple(range(x.ndim))), x, *positions_along(x.shape, where, axis))


def _with_last(x: Node, axis: Any) -> tuple[Node, tuple[int, ...]]:
    """x with its reduced axes as the last one, and which they were."""
    axes = as_axes(axis, x.ndim, number=False)
    kept = [a for a in range(x.ndim) if a not in axes]
    if len(axes) == 1 and axes[0] == x.ndim - 1:
        return x, axes
    moved = transpose(x, (*kept, *axes)) if [*kept, *axes] != list(range(x.ndim)) else x
    if len(axes) != 1:
        moved = reshape(moved, (*(x.shape[a] for a in kept), math.prod(x.shape[a] for a in axes)))
    return moved, axes


def _keep(result: Node, lead: int, axes: tuple[int, ...], keepdims: Any) -> Node:
    return expand_dims(result, tuple(lead + a for a in axes)) if flag(keepdims) else result


def median_rule(name: str) -> Any:
    def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Node:
        refuse(out=out)
        if overwrite_input:
            raise Unsupported("argument_of", name="overwrite_input")
        x, axes = _with_last(node(a), axis)
        return _keep(apply(OrderStatistic(name), x), 0, axes, keepdims)

    return median


def quantile_rule(name: str) -> Any:
    def quantile(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: Any = False,
        method: Any = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
        interpolation: Any = None,
    ) -> Node:
        refuse(out=out, interpolation=interpolation)
        if overwrite_input:
            raise Unsupported("argument_of", name="overwrite_input")
        given = node(a)
        if not isinstance(q, Node):
            getattr(np, name)(np.ones(1, given.dtype), q, method=method)  # a probability out of range
        if weights is not None:
            raise Unsupported("argument_of", name="weights")
        x, axes = _with_last(given, axis)
        if type(q) in (int, float):
            return _keep(apply(OrderStatistic(name, method, q), x), 0, axes, keepdims)
        probability = node(q)
        result = apply(OrderStatistic(name, method), x, probability)
        return _keep(result, probability.ndim, axes, keepdims)

    return quantile


for _name in ("median", "nanmedian"):
    rule(getattr(np, _name))(median_rule(_name))
for _name in ("quantile", "percentile", "nanquantile", "nanpercentile"):
    rule(getattr(np, _name))(quantile_rule(_name))
