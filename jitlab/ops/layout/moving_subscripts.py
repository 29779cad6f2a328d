"""Subscripts that move with a loop: offsets and lengths are proved from the loops' bounds, or found at run time.

NumPy's wrap of negatives and its clamp of slices are kept. What is proved costs nothing; a bound that is not becomes an
integer computed at run time (`Define`), an index that may be out of range is checked there (`Position`): it never clamps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import (
    ArrayType,
    Bounds,
    Extent,
    Graph,
    Moving,
    Node,
    Poly,
    Symbolic,
    as_length,
    current_bounds,
    current_graph,
    poly,
)
from jitlab.ir.bounds import sample
from jitlab.ops.base import Cost, Operation, Unsupported
from jitlab.ops.build_nodes import apply
from jitlab.ops.control_flow import Define
from jitlab.ops.elementwise.arithmetic import Add, FloorDiv, Maximum, Minimum
from jitlab.ops.elementwise.casts import Cast, Select
from jitlab.ops.elementwise.comparison import Less
from jitlab.ops.leaf_operations import Constant, Length
from jitlab.support.lazy_dataclass import dataclass

INT64 = np.dtype("i8")
ONE = Poly.constant(1)


class Position(Operation):
    """A position on an axis of `extent` elements: a negative one counts from the end, one outside raises IndexError."""

    extent: int
    axis: int  # of the array that is indexed, for the message
    numpy_word: ClassVar[str] = "[...]"
    may_raise: ClassVar[bool] = True
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        (index,) = arrays
        n = int(self.extent)
        if not -n <= int(index) < n:
            raise IndexError(f"index {int(index)} is out of bounds for axis {self.axis} with size {n}")
        return np.int64(int(index) + n if int(index) < 0 else int(index))

    def result(self, *types: ArrayType) -> ArrayType:
        (index,) = types
        assert index.shape == () and index.dtype == INT64, f"a position that is {index}"
        return index

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, 0, 0)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(5, 0), np.int64(3)
        yield cls(5, 0), np.int64(-5)


@dataclass(frozen=True, slots=True)
class Defined:
    """An integer that has a symbol: the node that gave it one, and where it stands in its graph."""

    graph: Graph
    at: int
    node: Node
    symbol: str
    extent: Moving


def in_loop() -> Bounds | None:
    """The bounds, inside a loop that is being rolled: integers found at run time may become symbols there."""
    bounds = current_bounds.get()
    return bounds if bounds is not None and bounds.depth else None


def is_symbolic(x: Any) -> bool:
    """An integer without a fixed value that a subscript may hold: a loop's index, or a 0-d integer found at run time."""
    if isinstance(x, Node):
        return x.ndim == 0 and x.dtype.kind in "iu" and in_loop() is not None
    return isinstance(x, (Symbolic, Moving))


def is_positive(n: Moving) -> bool:
    """Is a length that moves known to be 1 at least?"""
    bounds = current_bounds.get()
    return bounds is not None and bounds.proves_nonnegative(poly(n) - ONE)


def extent_of(x: Any) -> int:
    """The extent that an integer of the program stands for; one found at run time gets a symbol."""
    if isinstance(x, Symbolic):
        return x.extent
    return define(x) if isinstance(x, Node) else x


def define(node: Node, least: int | None = None, most: int | None = None) -> int:
    """The extent whose value is that of a 0-d integer node: a new symbol, unless it is known what the node is."""
    bounds = _bounds()
    if isinstance(node.op, Length):
        return node.op.extent
    if isinstance(node.op, Constant):
        return int(node.op.value)
    known = bounds.defined.get(node)
    if known is None or known.symbol not in bounds or not _is_seen(known):
        low, high = bounds.noted.get(node, (0 if _is_unsigned(node) else None, None))
        least, most = low if least is None else least, high if most is None else most
        symbol = bounds.unique("d")
        fixed = (None if least is None else bounds.least(least), None if most is None else bounds.greatest(most))
        made = _once(Define(symbol, *fixed), _as_int64(node))
        bounds.add(symbol, least, most)
        low_end = 0 if least is None else int(least)
        high_end = None if most is None else int(most)
        if high_end is not None and low_end == 0:
            low_end = min(2, max(high_end, 0))  # it may be a length: not to be taken for a 1
        value = sample(low_end, None if high_end is None else max(high_end, low_end), len(bounds.symbols))
        graph = _graph()
        known = bounds.defined[node] = Defined(graph, len(graph.nodes) - 1, made, symbol, Moving.symbol(symbol, value))
    return known.extent


def position(index: Any, n: int, axis: int) -> int:
    """The non-negative offset of `index` on an axis of n elements, by proof or checked at run time."""
    bounds = _bounds()
    if isinstance(index, Node) and index not in bounds.noted and not isinstance(index.op, (Length, Constant)):
        return _checked(index, n, axis)
    e = extent_of(index)
    if bounds.proves_nonnegative(e):
        if bounds.proves_nonnegative(poly(n) - poly(e) - ONE):
            return e
    elif bounds.proves_nonnegative(poly(e).scale(-1) - ONE) and bounds.proves_nonnegative(poly(n) + poly(e)):
        return n + e
    return _checked(_number(e), n, axis)


def _checked(index: Node, n: int, axis: int) -> int:
    return define(_once(Position(n, axis), _as_int64(index)), 0, n - 1)


def slice_extents(s: slice, n: int) -> tuple[int, int, int]:
    """Start, length and step of a slice over an axis of n elements, clamped as Python does."""
    bounds = _bounds()
    step = 1 if s.step is None else extent_of(s.step)
    up = _is_up(step)
    low, high = (0, n) if up else (-1, n - 1)
    start = _clamped(s.start, low if up else high, n, low, high)
    stop = _clamped(s.stop, high if up else low, n, low, high)
    span = stop - start if up else start - stop
    if bounds.proves_nonnegative(poly(span).scale(-1)):
        return 0, 0, step
    if not bounds.proves_nonnegative(span):
        span = define(_once(Maximum(), _number(span), _number(0)), 0, n)
        bounds.assume(poly(n) - poly(start) - poly(span) if up else poly(start) + ONE - poly(span))
    return start, as_length(rounded_up(span, step if up else -step)), step


def _is_up(step: int) -> bool:
    """Does a slice of this step go upwards? One that moves has to be known to be above or below 0."""
    if not isinstance(step, Moving):
        if step == 0:
            raise ValueError("slice step cannot be zero")
        return step > 0
    above, below = (_bounds().proves_nonnegative(poly(step).scale(sign) - ONE) for sign in (1, -1))
    if not above and not below:
        raise Unsupported("slice_step", "data_dependent")
    return above


def _clamped(bound: Any, default: int, n: int, low: int, high: int) -> int:
    """A bound of a slice between `low` and `high`."""
    if bound is None:
        return default
    bounds = _bounds()
    if isinstance(bound, Node) and bound not in bounds.noted and not isinstance(bound.op, (Length, Constant)):
        node = _as_int64(bound)
        if not _is_unsigned(bound):
            node = _once(Maximum(), _wrapped(node, n), _number(low))
        return define(_once(Minimum(), node, _number(high)), low, high)
    e = extent_of(bound)
    negative = bounds.decides(e)
    if negative is False:
        e = n + e
    above = True if negative else bounds.decides(poly(e) - poly(low))
    below = bounds.decides(poly(high) - poly(e))
    if negative is not None and above is not None and below is not None:
        return low if not above else e if below else high
    node = _number(e)
    if negative is None:
        node = _wrapped(node, n)
    if not above:
        node = _once(Maximum(), node, _number(low))
    return define(_once(Minimum(), node, _number(high)), low, high)


def _wrapped(node: Node, n: int) -> Node:
    """node + n where the node is negative."""
    return _once(Select(), _once(Less(), node, _number(0)), _once(Add(), node, _number(n)), node)


def rounded_up(span: int, stride: int) -> int:
    """span / stride rounded up, for a stride of 1 or more; 0 or less where the span is."""
    if isinstance(stride, Moving):
        return _quotient(span, stride)
    if stride == 1:
        return span
    if not isinstance(span, Moving):
        return -(-int(span) // stride)
    rest = dict(span.expr.terms).get((), 0)
    if all(k % stride == 0 for monomial, k in span.expr.terms if monomial):
        return (span - rest) // stride + -(-rest // stride)
    return _quotient(span, stride)


def _quotient(span: int, stride: int) -> int:
    """The same as a symbol that is found at run time."""
    bounds = _bounds()
    most, narrowest = bounds.greatest(span), bounds.least(stride)
    quotient = _once(FloorDiv(), _number(span + (stride - 1)), _number(stride))
    length = define(
        quotient,
        0 if bounds.proves_nonnegative(span) else None,
        None if most is None else max(-(-most // (narrowest or 1)), 0),
    )
    bounds.assume(poly(span) + poly(stride) - ONE - poly(length) * poly(stride))
    return length


def length_of_range(start: int, stop: int, step: int) -> int:
    """How many numbers `range(start, stop, step)` has."""
    span = stop - start if step > 0 else start - stop
    bounds = _bounds()
    if bounds.proves_nonnegative(poly(span).scale(-1)):
        return 0
    if not bounds.proves_nonnegative(span):
        span = define(_once(Maximum(), _number(span), _number(0)), 0, None)
    return as_length(rounded_up(span, abs(step)))


def _number(n: int) -> Node:
    """The 0-d int64 node of an extent."""
    if isinstance(n, Extent):
        return _once(Length(n))
    return _once(Constant(INT64, (), np.int64(n).tobytes()))


def _is_unsigned(node: Node) -> bool:
    """Never negative as an int64 either."""
    return node.dtype.kind == "u" and node.dtype.itemsize < 8


def _as_int64(node: Node) -> Node:
    return node if node.dtype == INT64 else _once(Cast(INT64), node)


def _once(op: Operation, *inputs: Node) -> Node:
    """The node of this operation on these inputs; the one that stands already, so that equal bounds are known to be equal."""
    bounds, graph = _bounds(), _graph()
    key = (id(graph), op, inputs)
    known = bounds.made.get(key)
    if known is not None and _stands(*known):
        standing: Node = known[2]
        return standing
    node = apply(op, *inputs)
    bounds.made[key] = (graph, len(graph.nodes) - 1, node)  # it holds the graph, so that its id is not given to another
    return node


def _stands(graph: Graph, at: int, node: Node) -> bool:
    """It has not been taken back since."""
    return at < len(graph.nodes) and graph.nodes[at] is node


def _is_seen(known: Defined) -> bool:
    """It stands in the graph being built, or in one around it."""
    graph: Any = _graph()
    while graph is not None and graph is not known.graph:
        graph = getattr(graph, "outer", None)
    return graph is not None and _stands(known.graph, known.at, known.node)


def _graph() -> Graph:
    graph = current_graph()
    assert graph is not None, "no graph is being built"
    return graph


def _bounds() -> Bounds:
    bounds = current_bounds.get()
    assert bounds is not None, "a symbol that moves, outside of a recording"
    return bounds
