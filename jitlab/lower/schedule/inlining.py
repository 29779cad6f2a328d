"""Reading a value at an index: views, casts and elementwise work are folded into the expressions that read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jitlab.errors import Signal
from jitlab.ir import UNKNOWN, Node, Poly, plain
from jitlab.ir.programs.program import Apply, CheckedIndex, Expr, Index, IndexValue, Load, Scalar, contiguous_strides
from jitlab.lower.sizes import Sizes
from jitlab.ops.base import Elementwise, Generated
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.layout.indexing import Gather, Take
from jitlab.ops.layout.moving_subscripts import Position as CheckedPosition
from jitlab.ops.layout.views import Reshape, Update, View
from jitlab.ops.layout.windows import SlidingWindows
from jitlab.ops.leaf_operations import Constant, Length
from jitlab.ops.reducing.scans import Scan
from jitlab.ops.runtime_checks import Check
from jitlab.support.lazy import lazy

Position = tuple[Index, ...]
Resolve = Callable[[Node, Position], "Expr | None"]


class Ref(Expr):
    """A value of another stage, met while dependencies are looked for (`Reader` with a resolver that makes these)."""

    def __init__(self, node: Node, position: Position) -> None:
        self.node = node
        self.position = position
        self.dtype = node.dtype
        self.origins = UNKNOWN

    @lazy
    def depends(self) -> frozenset[str]:
        return frozenset(name for index in self.position for name in index.names)


class Unreadable(Signal):
    """These values have to be in memory before they can be read this way."""

    def __init__(self, *nodes: Node) -> None:
        super().__init__(", ".join(node.name for node in nodes))
        self.nodes = nodes


class Reader:
    """Expressions for values at positions. `resolve` answers for values that have a place; everything else is computed.

    The same value at the same position is the same Expr object.
    """

    def __init__(self, sizes: Sizes, resolve: Resolve, scalar: Callable[[Node], Scalar], check: Callable[[Node], int]) -> None:
        self.sizes, self.resolve, self.scalar, self.check = sizes, resolve, scalar, check
        self._memo: dict[tuple[Node, Position], Expr] = {}

    def read(self, node: Node, position: Position) -> Expr:
        key = (node, position)
        expr = self._memo.get(key)
        if expr is None:
            expr = self.resolve(node, position) or self.compute(node, position)
            self._memo[key] = expr
        return expr

    def compute(self, node: Node, position: Position) -> Expr:
        """The value from its inputs, whether or not it has a place itself."""
        op = node.op
        if isinstance(op, Constant) and node.ndim == 0:
            return self.scalar(node)
        if isinstance(op, Length):
            return Apply(Cast(np.dtype("i8")), (IndexValue(Index(self.sizes.of(op.extent))),), node.dtype, origins=node.origins)
        if isinstance(op, CheckedPosition):
            value = self.read(node.inputs[0], ())
            return CheckedIndex(value, self.sizes.of(op.extent), self.check(node), origins=node.origins)
        if isinstance(op, Check):
            return CheckedIndex(self.read(node.inputs[0], ()), self.sizes.of(1), self.check(node), origins=node.origins)
        if isinstance(op, Elementwise):
            op, sources = op.with_known(node)
            args = tuple(self.read(source, broadcast_position(source, node, position)) for source in sources)
            return Apply(op, args, node.dtype, origins=node.origins)
        if isinstance(op, View):
            (base,) = node.inputs
            return _folded(node, self.read(base, self.view_position(op, position)))
        if isinstance(op, Reshape):
            return _folded(node, self._read_reshaped(node, position))
        if isinstance(op, SlidingWindows):
            return self._read_windows(node, position)
        if isinstance(op, Generated):
            indices = tuple(IndexValue(i) for i in position)
            args = tuple(self.read(source, ()) for source in node.inputs)
            return Apply(op, args, node.dtype, indices, origins=node.origins)
        if isinstance(op, Scan) and node.shape[op.axis] == 1:
            return _folded(node, self.read(node.inputs[0], position))
        if isinstance(op, Take):
            (_, picked) = node.inputs
            n, axis = picked.ndim, op.axis
            rest = (*position[:axis], Index(), *position[axis + n :])
            return self._read_gathered(node, rest, [(axis, picked, position[axis : axis + n])])
        if isinstance(op, Gather):
            return self._read_gathered(node, *gather_positions(node, node.inputs[0], node.inputs[1:], position))
        raise Unreadable(node)

    def view_position(self, op: View | Update, position: Position) -> Position:
        """Where in the base a view's position lies."""
        result = []
        for offset, step, axis in op.map:
            index = Index(self.sizes.of(offset))
            if axis is not None:
                index = index + position[axis].scale(self.sizes.of(step))
            result.append(index)
        return tuple(result)

    def _read_windows(self, node: Node, position: Position) -> Expr:
        """An element of the base, which has to have a place: most lie in several windows, and are computed once."""
        base, at = node.inputs[0], list(position[:-1])
        at[node.op.axis] = at[node.op.axis] + position[-1]
        place = self.read(base, tuple(at))
        if not isinstance(place, (Ref, Load)) or (isinstance(place, Load) and place.gathered):
            raise Unreadable(base)
        return _folded(node, place)

    def _read_reshaped(self, node: Node, position: Position) -> Expr:
        (base,) = node.inputs
        matched = self._same_up_to_ones(node, base, position)
        if matched is not None:
            return self.read(base, matched)
        strides = contiguous_strides([self.sizes.of(n) for n in node.shape])
        flat = Index()
        for index, stride in zip(position, strides, strict=True):
            flat = flat + index.scale(stride)
        return self.read_flat(base, flat)

    def read_flat(self, node: Node, flat: Index) -> Expr:
        """The element number `flat` in C order. Raises Unreadable when that needs the value in memory."""
        shape = tuple(self.sizes.of(n) for n in node.shape)
        if len(shape) == 1:
            return self.read(node, (flat,))
        if not shape:
            return self.read(node, ())
        resolved = self.resolve(node, tuple(Index() for _ in shape))
        if isinstance(resolved, Ref):
            return Ref(node, (flat,))
        if isinstance(resolved, Load):
            if resolved.buffer.contiguous and resolved.buffer.shape == shape:
                return Load(resolved.buffer, flat)
            raise Unreadable(node)
        if resolved is not None:
            raise Unreadable(node)
        if isinstance(node.op, Reshape):
            return _folded(node, self.read_flat(node.inputs[0], flat))
        if isinstance(node.op, Elementwise):
            args = []
            op, sources = node.op.with_known(node)
            for source in sources:
                if source.type.size == 1 and source.ndim == 0:
                    args.append(self.read(source, ()))
                elif plain(source.shape) == plain(node.shape):
                    args.append(self.read_flat(source, flat))
                else:
                    raise Unreadable(node)
            return Apply(op, tuple(args), node.dtype, origins=node.origins)
        raise Unreadable(node)

    def _same_up_to_ones(self, node: Node, base: Node, position: Position) -> Position | None:
        """The base's position when the reshape only adds or drops axes of extent 1."""
        mine = [(self.sizes.of(n), i) for n, i in zip(node.shape, position, strict=True) if n != 1]
        theirs = [self.sizes.of(n) for n in base.shape if n != 1]
        if [n for n, _ in mine] != theirs:
            return None
        rest = iter(i for _, i in mine)
        return tuple(Index() if n == 1 else next(rest) for n in base.shape)

    def _read_gathered(self, node: Node, rest: Position, picks: Sequence[tuple[int, Node, Position]]) -> Expr:
        """x at positions that integer arrays give: x has to have a place, the integers may be computed."""
        source = node.inputs[0]
        place = self.read(source, rest)
        indices = [self.read(index, position) for _, index, position in picks]
        if isinstance(place, Ref):
            return Apply(None, (place, *indices), node.dtype)
        if not isinstance(place, Load) or place.gathered:
            raise Unreadable(source)
        gathered = self.gathered(node, source, picks, indices, place)
        return Load(place.buffer, place.offset, gathered, origins=place.origins | node.origins)

    def gathered(
        self, node: Node, source: Node, picks: Sequence[tuple[int, Node, Position]], indices: Sequence[Expr], place: Load
    ) -> tuple[tuple[Expr, Poly], ...]:
        """Each index, checked against its axis of `source`, with the stride it moves by."""
        result = []
        for (axis, _, _), index in zip(picks, indices, strict=True):
            at = CheckedIndex(index, self.sizes.of(source.shape[axis]), self.check(node), origins=node.origins)
            result.append((at, self._axis_stride(source, axis, place)))
        return tuple(result)

    def _axis_stride(self, source: Node, axis: int, place: Load) -> Poly:
        """How far one step along `axis` moves in the buffer that holds `source`."""
        moved = self.read(source, tuple(Index.var("?") if a == axis else Index() for a in range(source.ndim)))
        assert isinstance(moved, Load), f"{source!r} does not lie in {place.buffer.name}"
        return moved.offset.coefficient("?")


def _folded(node: Node, expr: Expr) -> Expr:
    """The expression, which stands for this node, too: one that only says which element of its input it is."""
    expr.origins |= node.origins
    return expr


def broadcast_position(source: Node, node: Node, position: Position) -> Position:
    """The position in an operand that broadcasts to `node`: 0 where its extent is 1."""
    shift = len(position) - source.ndim
    return tuple(Index() if n == 1 else position[axis + shift] for axis, n in enumerate(source.shape))


def gather_positions(
    node: Node, base: Node, indices: Sequence[Node], position: Position
) -> tuple[Position, list[tuple[int, Node, Position]]]:
    """Gather and Scatter: the base's position with 0 on the gathered axes, and (axis, index array, its position) for those."""
    axes = node.op.axes
    rank = len(position) - (base.ndim - len(axes))
    rest = iter(position[rank:])
    at = tuple(Index() if axis in axes else next(rest) for axis in range(base.ndim))
    picks = []
    for axis, index in zip(axes, indices, strict=True):
        shift = rank - index.ndim
        own = tuple(Index() if n == 1 else position[shift + a] for a, n in enumerate(index.shape))
        picks.append((axis, index, own))
    return at, picks
