"""The gradient, as operations appended to the graph that computes the values (reverse mode).

Which scope a new operation gets is the contract's: the gradient of a marked operation goes where the
operation went, or into a scope of its own; what belongs to no operation (the first cotangent, the sums of several) gets what
the calling scope sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

import numpy as np

from jitlab.errors import NoGradientError
from jitlab.ir import Bounds, Graph, Node, Sources, current_bounds, plain, positions, proving, pulling_back
from jitlab.ir.graphs.graph import is_definition, symbols_of
from jitlab.ops.base import Operation
from jitlab.ops.build_nodes import apply, cast, constant
from jitlab.ops.control_flow import Branch, Loop
from jitlab.ops.elementwise.arithmetic import Clip, Extreme, FloorMod, Fmod, Pow, Real, RealDiv, add, at_risk
from jitlab.ops.elementwise.casts import Select
from jitlab.ops.elementwise.sum_of_many import AddN
from jitlab.ops.host_operations import SEVERAL, Item
from jitlab.ops.layout.creation import Fill, fill, zeros
from jitlab.ops.layout.indexing import Gather, Scatter, ScatterAdd, Take
from jitlab.ops.layout.views import Update, View, broadcast_to, reshape
from jitlab.ops.leaf_operations import Constant
from jitlab.ops.reducing.axis_reductions import ExtremeOf, Sum
from jitlab.support.lazy_dataclass import dataclass

from .control_gradient import pull_back_control

Cotangents = dict[Node, list[Node]]  # a value -> what flows back to it from each of its uses


def gradients(
    graph: Graph,
    ys: Sequence[Node],
    xs: Sequence[Node],
    grad_ys: Sequence[Node | None] | None = None,
    name: str = "gradients",
    *,
    unconnected: str | None = None,
    since: int = 0,
) -> list[Node | None]:
    """Append the derivatives of the sum of `ys` with respect to each of `xs`; `grad_ys` weigh the ys.

    None stands for an x that no y depends on, or that is no float or complex number; with `unconnected="zero"`, zeros do.
    What was computed of the xs before node number `since` counts as constant.
    """
    with graph.building(), _with_bounds(graph), pulling_back():
        reverse = _Reverse(graph, _unique_scope(graph, name), _dependents(graph.nodes[since:], xs))
        first = []
        for y, grad_y in zip(ys, grad_ys or [None] * len(ys), strict=True):
            if y.dtype.kind in "fc":
                with _at(y.sources | graph.position()):
                    first.append((y, _first_cotangent(y, grad_y)))
        totals = reverse.run(first)
        return [_result(x, totals.get(x), unconnected) for x in xs]


@dataclass(eq=False)
class _Reverse:
    """The walk over a graph from its last node to its first, with what has flowed to each value so far."""

    graph: Graph
    scope: str
    depends: set[Node]
    inside: bool = False  # the graph is a body of our own
    free: set[Node] = field(default_factory=set)  # of a body: values that its backward half has anyway
    cotangents: Cotangents = field(default_factory=dict)
    masked: bool = False  # somewhere some elements do not matter: they have a cotangent of 0
    risky: bool = False  # somewhere something may be infinite or NaN

    def run(self, first: Sequence[tuple[Node, Node]]) -> dict[Node, Node]:
        """The cotangent of each value that one reaches."""
        before = list(self.graph.nodes)
        self.masked = self.masked or _contains(before, _passes_over)
        self.risky = self.risky or _contains(before, _is_risky)
        for y, g in first:
            self.cotangents.setdefault(y, []).append(g)
        totals: dict[Node, Node] = {}
        of_results: dict[Node, Cotangents] = {}  # a call with several results -> the cotangents of its Items
        risk = at_risk.set(self._at_risk(before))
        try:
            self._walk(before, of_results, totals)
        finally:
            at_risk.reset(risk)
        return totals

    def _at_risk(self, nodes: Sequence[Node]) -> set[Node]:
        """The values that may be infinite or NaN though no argument is, where a cotangent may be 0 because they do not matter.

        In a body they may come from outside.
        """
        if not self.masked or not self.risky:
            return set()
        found = set(self.graph.parameters) if self.inside else set()
        for node in nodes:
            if node.dtype.kind in "fcV" and (_contains([node], _is_risky) or not found.isdisjoint(node.inputs)):
                found.add(node)
        return found

    def _walk(self, before: Sequence[Node], of_results: dict[Node, Cotangents], totals: dict[Node, Node]) -> None:
        cotangents = self.cotangents
        for node in (*reversed(before), *self.graph.parameters):
            if node in of_results:
                self.pull_back(node, _gathered(node, of_results.pop(node)))
            elif node in cotangents and node in self.depends:
                totals[node] = self.total(node, cotangents.pop(node))
                if isinstance(node.op, Item):
                    of_results.setdefault(node.inputs[0], {})[node] = [totals[node]]
                elif not node.op.is_parameter:
                    self.pull_back(node, totals[node])

    def pull_back(self, node: Node, g: Node | tuple[Node | None, ...]) -> None:
        """Give each input of a node its share of the node's cotangent (of those of its results, for a call with several)."""
        with _in_scope_of(self.graph, node, self.scope), _at(node.sources), self.graph.gradient_names_of(node):
            if isinstance(node.op, (Loop, Branch)):
                assert isinstance(g, tuple)
                pull_back_control(self, node, g)
                return
            if not node.op.differentiable:
                raise NoGradientError(
                    f"{node.op.word} has no gradient.",
                    where="; ".join(source.place for source in sorted(node.sources)),
                    why="the value to differentiate depends on it",
                    hint="compute it from operations that have one, or take the gradient of something before it",
                )
            shares = node.op.gradient(g, node, *node.inputs)
            for source, share in zip(node.inputs, shares, strict=True):
                if share is not None:
                    self.give(source, share)

    def give(self, x: Node, g: Node) -> None:
        if x in self.depends:
            self.cotangents.setdefault(x, []).append(_like(g, x))

    def take(self, x: Node) -> Node | None:
        parts = self.cotangents.pop(x, None)
        return None if parts is None else self.total(x, parts)

    def total(self, node: Node, parts: Sequence[Node]) -> Node:
        """The sum of the cotangents of a value's uses. In a body, what flows to a region is added there, in place."""
        if not self.inside:
            return _total(node, parts)
        whole = [x for x in parts if not _is_part(x)]
        with _at(node.sources):
            total = _total(node, whole) if whole else None
            for part in parts:
                if _is_part(part):
                    total = part if total is None else _added_in_place(total, part)
        assert total is not None
        return total

    def inner(
        self, graph: Graph, ys: list[Node], xs: list[Node], weights: list[Node], seeds: dict[Node, Node], free: set[Node]
    ) -> list[Node | None]:
        """The pass over a body; what flows to some parameters is added to their `seeds`."""
        given = {x: [seed] for x, seed in seeds.items()}
        reverse = _Reverse(graph, "", _dependents(graph.nodes, xs), True, free, given, self.masked, self.risky)
        totals = reverse.run(list(zip(ys, weights, strict=True)))
        return [totals.get(x) for x in xs]


def _contains(nodes: Sequence[Node], wanted: Callable[[Operation], bool]) -> bool:
    """Is there such an operation among the nodes, or in the bodies of their loops and branches?"""
    return any(wanted(node.op) or any(_contains(x.nodes, wanted) for x in getattr(node.op, "graphs", ())) for node in nodes)


def _passes_over(op: Operation) -> bool:
    """Do some elements of its operands get no cotangent?"""
    return isinstance(op, (Select, Extreme, ExtremeOf, Clip, View, Update, Take, Gather, Scatter))


def _is_risky(op: Operation) -> bool:
    """May it be infinite or NaN where its operands are finite?"""
    return getattr(op, "singular", False) or isinstance(op, (RealDiv, Pow, FloorMod, Fmod))


def _is_part(g: Node) -> bool:
    """A value in one region and zeros elsewhere: what flows back through a subscript."""
    if not isinstance(g.op, (Update, ScatterAdd)):
        return False
    base = g.inputs[0]
    return isinstance(base.op, Fill) and isinstance(base.inputs[0].op, Constant) and not base.inputs[0].op.value.any()


def _added_in_place(total: Node, part: Node) -> Node:
    """update(zeros, v) + total  ->  update(total, view(total) + v)"""
    _, value, *rest = part.inputs
    if isinstance(part.op, ScatterAdd):
        return apply(part.op, total, value, *rest)
    region = part.op.map, part.op.shape
    return apply(Update(*region), total, add(apply(View(*region), total), value))


@contextmanager
def _with_bounds(graph: Graph) -> Iterator[None]:
    """What is known of symbols without fixed values: what the capture knows, or what a finished graph says."""
    if current_bounds.get() is not None or not any(isinstance(node.op, (Loop, Branch)) for node in graph.nodes):
        yield
        return
    bounds = Bounds(graph.symbol_values())
    for name in sorted({name for node in graph.nodes for name in _names_of(node)}):
        stem, number = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
        while number and bounds.counted(stem) <= int(number):
            bounds.unique(stem)
    for node in graph.nodes:
        if is_definition(node.op):
            bounds.add(node.op.symbol, node.op.least, node.op.most)
    with proving(bounds):
        yield


def _names_of(node: Node) -> set[str]:
    """The symbols of a node, and those of the loops and definitions in it."""
    names = symbols_of(node)
    if hasattr(node.op, "symbol"):
        names.add(node.op.symbol)
    for body in getattr(node.op, "graphs", ()):
        for inner in body.nodes:
            names |= _names_of(inner)
    return names


def sum_to_shape(g: Node, shape: Sequence[int]) -> Node:
    """The cotangent of what was broadcast from `shape`: summed over the axes that repeated."""
    extra = g.ndim - len(shape)
    repeated = [axis + extra for axis, n in enumerate(shape) if int(n) == 1 and int(g.shape[axis + extra]) != 1]
    axes = (*range(extra), *repeated)
    if axes:
        g = apply(Sum(axes), g)
    return reshape(g, tuple(shape))


def _dependents(nodes: Sequence[Node], xs: Sequence[Node]) -> set[Node]:
    """The xs and the float and complex values computed from them, and the calls with several results that read such values."""
    depends = {x for x in xs if x.dtype.kind in "fc"}
    for node in nodes:
        if (node.dtype.kind in "fc" or node.dtype == SEVERAL) and not depends.isdisjoint(node.inputs):
            depends.add(node)
    return depends


def _first_cotangent(y: Node, grad_y: Node | None) -> Node:
    if grad_y is None:
        return fill(y.shape, 1, y.dtype) if y.ndim else constant(1, y.dtype)
    return broadcast_to(cast(grad_y, y.dtype), y.shape)


def _total(node: Node, parts: Sequence[Node]) -> Node:
    """The sum of the cotangents of a value's uses, the last use first."""
    sources = node.sources or frozenset().union(*(part.sources for part in parts))
    with _at(sources):
        return apply(AddN(), *parts) if len(parts) > 1 else parts[0]


def _gathered(call: Node, of_items: Cotangents) -> tuple[Node | None, ...]:
    """The cotangent of each result of a call, None where none flows."""
    parts: dict[int, list[Node]] = {}
    for item, (g,) in of_items.items():
        parts.setdefault(item.op.index, []).append(g)
    types = call.op.types if hasattr(call.op, "types") else call.op.results(*(x.type for x in call.inputs))
    return tuple(_total(call, parts[k]) if k in parts else None for k in range(len(types)))


def _like(share: Node, source: Node) -> Node:
    """A cotangent in the shape and dtype of its value."""
    if plain(share.shape) != plain(source.shape):
        if share.type.size < source.type.size:
            share = broadcast_to(share, source.shape)
        else:
            share = sum_to_shape(share, source.shape)
    if share.dtype.kind == "c" and source.dtype.kind == "f":
        share = apply(Real(), share)
    return cast(share, source.dtype)


def _result(x: Node, total: Node | None, unconnected: str | None) -> Node | None:
    if total is None and unconnected == "zero":
        return zeros(x.shape, x.dtype if x.dtype.kind in "fc" else np.dtype("f8"))
    return total


def _unique_scope(graph: Graph, name: str) -> str:
    """What separate gradient scopes are called after: gradients, gradients_1, ...."""
    stem = (name or "gradients").rstrip("/").replace("/", "_")
    count = graph.gradient_names.get(stem, 0)
    graph.gradient_names[stem] = count + 1
    return f"{stem}_{count}" if count else stem


@contextmanager
def _in_scope_of(graph: Graph, node: Node, gradient_scope: str) -> Iterator[None]:
    """Attributes for the operations of the node's gradient, when the node is marked with all three."""
    attrs = node.attrs
    if not attrs.get("_XlaCompile") or not {"_XlaScope", "_XlaSeparateCompiledGradients"} <= attrs.keys():
        yield
        return
    scope = attrs["_XlaScope"]
    if attrs["_XlaSeparateCompiledGradients"]:
        scope = f"{scope}_grad_{gradient_scope}"
    with graph.with_attrs({"_XlaCompile": True, "_XlaScope": scope}):
        yield


@contextmanager
def _at(sources: Sources) -> Iterator[None]:
    with positions(lambda: sources):
        yield
