"""A body and its gradient, cut in two: what runs forwards and saves, and what runs backwards and reads what was saved.

What is saved is a minimum cut: of all the values from which the backward half could compute what it needs, those with the
fewest bytes. Cheap operations (elements, moves) may be computed a second time; sums, products of matrices, loops and library
calls never are. So a loop over `x[i] = sin(x[i - 1])` saves one number an iteration, not the array it carries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from jitlab.errors import NoGradientError
from jitlab.ir import ArrayType, Extent, Graph, Moving, Node, Poly, current_bounds
from jitlab.ir.graphs.graph import is_definition, symbols_of
from jitlab.ops.base import Elementwise, Generated
from jitlab.ops.build_nodes import apply, constant
from jitlab.ops.host_operations import SEVERAL
from jitlab.ops.layout.concatenation import Concatenate
from jitlab.ops.layout.creation import zeros
from jitlab.ops.layout.indexing import Gather, Take
from jitlab.ops.layout.moving_subscripts import Position
from jitlab.ops.layout.views import Reshape, Update, View
from jitlab.ops.layout.windows import SlidingWindows
from jitlab.ops.leaf_operations import Constant, Length, Parameter
from jitlab.support.lazy_dataclass import dataclass

#: What the backward half may compute again.
CHEAP = (Elementwise, Generated, View, Reshape, Update, Take, Gather, SlidingWindows, Concatenate, Position, Length, Constant)
#: Bodies of more values are not cut: what the backward half needs is saved as it is.
MOST_VALUES = 600

PullBack = Callable[[Graph, list[Node], list[Node], list[Node], dict[Node, Node], set[Node]], list[Node | None]]


@dataclass(eq=False)
class Joint:
    """A copy of a body with its gradient behind it, and how the two are told apart."""

    graph: Graph
    parameters: list[Node]  # of the body
    outputs: list[Node]  # of the body
    weights: list[Node]  # parameters: the cotangents of some outputs
    seeds: list[Node]  # parameters: what is added to
    results: list[Node]  # the cotangents of some parameters
    saved: list[Node]  # values (not parameters) that the forward half gives
    handed: list[Node]  # parameters of the body that the backward half reads
    fore: list[Node]  # what the forward half may compute, in an order in which each comes as early as it can
    behind: list[Node]  # what the backward half computes, in order


def joint(
    body: Graph, wanted: Sequence[int], weighed: Sequence[int], seeded: Sequence[int], price: Sequence[float],
    pull_back: PullBack,
) -> Joint:  # fmt: skip
    """The body with the cotangents of its `wanted` parameters, given those of its `weighed` outputs.

    The cotangents of `seeded` parameters start from values that are handed in. `price` is what it costs to hand a parameter
    to the backward half, in bytes an iteration.
    """
    graph = Graph(body.name, sizes=body.sizes)
    known: dict[Node, Node] = {}
    parameters = [graph.append(_again(p, (), known)) for p in body.parameters]
    for node in body.nodes:
        graph.append(_again(node, [known[x] for x in node.inputs], known))
    outputs = [known[y] for y in body.outputs]
    with graph.building():
        weights = [apply(Parameter(outputs[k].type)) for k in weighed]
        seeds = {parameters[k]: apply(Parameter(parameters[k].type)) for k in seeded}
        free = {p for p, bytes in zip(parameters, price, strict=True) if not bytes}
        found = pull_back(graph, [outputs[k] for k in weighed], [parameters[k] for k in wanted], weights, seeds, free)
        results = [
            nothing(x.type) if g is None else g
            for x, g in zip((parameters[k] for k in wanted), found, strict=True)
        ]
    back, backwards = set(weights) | set(seeds.values()), []
    for node in graph.nodes:
        if not back.isdisjoint(node.inputs):
            back.add(node)
            backwards.append(node)
    definitions = {node.op.symbol: node for node in graph.nodes if is_definition(node.op) and node not in back}
    reads = {node: _read(node, definitions) for node in graph.nodes}
    needed = dict.fromkeys(x for node in backwards for x in reads[node] if x not in back)
    needed.update(dict.fromkeys(x for x in results if x not in back))
    cost = dict(zip(parameters, price, strict=True))
    chosen = _cut(list(needed), reads, cost)
    again = _upwards(needed, reads, chosen)
    return Joint(
        graph, parameters, outputs, weights, list(seeds.values()), results,
        [x for x in chosen if x not in cost], [x for x in parameters if x in chosen or x in again],
        _early(graph, len(body.nodes), reads, back), [node for node in graph.nodes if node in again or node in back],
    )  # fmt: skip


def _early(graph: Graph, own: int, reads: Mapping[Node, list[Node]], back: set[Node]) -> list[Node]:
    """The forward nodes; those that the gradient added directly behind what they read, before it is written over."""
    place: dict[Node, int] = {}
    first = {node for node in graph.nodes[:own]}
    for k, node in enumerate(graph.nodes):
        if node not in back:
            place[node] = k if node in first else max((place.get(x, -1) for x in reads[node]), default=-1)
    return sorted(place, key=lambda node: place[node])


def nothing(type: ArrayType) -> Node:
    """Zeros."""
    return zeros(type.shape, type.dtype) if type.shape else constant(0, type.dtype)


def slot(type: ArrayType) -> ArrayType | None:
    """The type of a place where a value of this type fits in every iteration; None: its size has no known bound."""
    bounds = current_bounds.get()
    shape: list[int] = []
    for n in type.shape:
        if isinstance(n, Moving):
            most = None if bounds is None else bounds.greatest(n)
            if most is None:
                return None
            n = max(most, 0)
        shape.append(n)
    return type.with_shape(tuple(shape))


def _read(node: Node, definitions: Mapping[str, Node]) -> list[Node]:
    """What a node depends on: its inputs, and what gives the symbols in it their values."""
    if not definitions:
        return list(node.inputs)
    mine = (definitions[s] for s in sorted(symbols_of(node)) if s in definitions)
    return [*node.inputs, *(definition for definition in mine if definition is not node)]


def _bytes(node: Node) -> float:
    """What it costs to save a value in each iteration."""
    if node.dtype == SEVERAL or is_definition(node.op):
        return float("inf")
    return float(node.type.nbytes) + 1 if slot(node.type) is not None else float("inf")


def _is_cheap(node: Node) -> bool:
    return isinstance(node.op, CHEAP) or is_definition(node.op)


def _cut(needed: list[Node], reads: Mapping[Node, list[Node]], cost: Mapping[Node, float]) -> dict[Node, None]:
    """The cheapest values that are enough to compute what is needed from; of several such sets, the one nearest to it."""
    region: dict[Node, None] = {}
    stack = list(needed)
    while stack:
        node = stack.pop()
        if node not in region:
            region[node] = None
            stack.extend(reads[node] if node not in cost and _is_cheap(node) else ())
    if len(region) > MOST_VALUES:
        chosen = {x: None for x in needed if _bytes(x) < float("inf") and not isinstance(x.op, (Constant, Length))}
        if set(_upwards(dict.fromkeys(needed), reads, chosen)).issubset(x for x in region if x in cost or _is_cheap(x)):
            return {x: None for x in chosen if cost.get(x, 1)}
    flow = _Flow()
    for node in region:
        price = cost.get(node)
        flow.edge((node, 0), (node, 1), _bytes(node) if price is None else price)
        if price is not None or not _is_cheap(node):
            flow.edge("start", (node, 0), float("inf"))
        else:
            for source in reads[node]:
                flow.edge((source, 1), (node, 0), float("inf"))
    for node in needed:
        flow.edge((node, 1), "end", float("inf"))
    after = flow.after_the_cut("start", "end")
    return {node: None for node in region if (node, 1) in after and (node, 0) not in after and cost.get(node, 1)}


class _Flow:
    """The maximum flow by shortest paths (Edmonds and Karp 1972), and the minimum cut nearest to the end."""

    def __init__(self) -> None:
        self.rest: dict[Any, dict[Any, float]] = {"start": {}, "end": {}}

    def edge(self, a: Any, b: Any, capacity: float) -> None:
        self.rest.setdefault(a, {})[b] = capacity
        self.rest.setdefault(b, {}).setdefault(a, 0.0)

    def after_the_cut(self, start: Any, end: Any) -> set[Any]:
        rest = self.rest
        while (path := self._path(start, end)) is not None:
            amount = min(rest[a][b] for a, b in path)
            if amount == float("inf"):
                raise NoGradientError(
                    "a loop or branch has no gradient: a value inside has a size that no bound is known of.",
                    why="what the way back needs of it can be neither saved nor computed again",
                    hint="slice arrays by bounds that the loop's range gives",
                )
            for a, b in path:
                rest[a][b] -= amount
                rest[b][a] += amount
        after, queue = {end}, deque([end])
        while queue:
            b = queue.popleft()
            for a in rest[b]:
                if a not in after and rest[a][b] > 0:
                    after.add(a)
                    queue.append(a)
        return after

    def _path(self, start: Any, end: Any) -> list[tuple[Any, Any]] | None:
        came: dict[Any, Any] = {start: None}
        queue = deque([start])
        while queue:
            a = queue.popleft()
            for b, left in self.rest[a].items():
                if left > 0 and b not in came:
                    came[b] = a
                    if b == end:
                        path = []
                        while came[b] is not None:
                            path.append((came[b], b))
                            b = came[b]
                        return path
                    queue.append(b)
        return None


def _upwards(needed: Iterable[Node], reads: Mapping[Node, list[Node]], chosen: Mapping[Node, None]) -> set[Node]:
    """What has to be computed again for what is needed, where the chosen values are there; free parameters among it."""
    found: set[Node] = set()
    stack = [x for x in needed if x not in chosen]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(x for x in reads.get(node, ()) if x not in chosen)
    return found


# ---- copies


def _again(node: Node, inputs: Sequence[Node], known: dict[Node, Node]) -> Node:
    copy = known[node] = Node(node.op, inputs, node.type, name=node.name, sources=node.sources, attrs=node.attrs)
    copy.weak = node.weak
    return copy


def copy_into(graph: Graph, nodes: Iterable[Node], known: dict[Node, Node], by: Mapping[str, Extent] | None = None) -> None:
    """Append copies of nodes, with `known` inputs, and with other extents for the symbols in `by`."""
    for node in nodes:
        copy = _again(node, [known[x] for x in node.inputs], known)
        if by:
            copy.op, copy.type = substituted(node.op, by), substituted(node.type, by)
        graph.append(copy)


def substituted(x: Any, by: Mapping[str, Extent]) -> Any:
    """A copy of an operation, a type or a body in which other extents stand for the symbols in `by`.

    The sample that an extent has as an int stays: a symbol and what stands for it are taken to have the same.
    """
    if isinstance(x, Extent):
        if not any(s in by for s in x.expr.symbols):
            return x
        expr = x.expr.substitute({s: e.expr for s, e in by.items()})
        if expr.value is not None:
            return expr.value
        moving = (x.moving | frozenset().union(*(e.moving for e in by.values()))).intersection(expr.symbols)
        return Moving.of(int(x), expr, moving) if moving else Extent(int(x), expr)
    if isinstance(x, tuple):
        parts = tuple(substituted(part, by) for part in x)
        return x if all(a is b for a, b in zip(parts, x, strict=True)) else parts
    if isinstance(x, Graph):
        graph, known = Graph(x.name, sizes=x.sizes), dict[Node, Node]()
        copy_into(graph, (*x.parameters, *x.nodes), known, by)
        graph.outputs = [known[y] for y in x.outputs]
        return graph
    if is_dataclass(x) and not isinstance(x, type):
        changed = {f.name: substituted(getattr(x, f.name), by) for f in fields(x) if f.init}
        if is_definition(x) and x.symbol in by:  # type: ignore[attr-defined]
            changed["symbol"] = by[x.symbol].expr.symbols[0]  # type: ignore[attr-defined]
        return x if all(getattr(x, name) is value for name, value in changed.items()) else replace(x, **changed)
    return x


def renamed(nodes: Iterable[Node]) -> dict[str, Extent]:
    """New symbols for those that these nodes define, with the same bounds."""
    bounds = current_bounds.get()
    assert bounds is not None
    by: dict[str, Extent] = {}
    for node in nodes:
        if is_definition(node.op):
            symbol = bounds.unique("d")
            by[node.op.symbol] = Moving.symbol(symbol, 2)
            bounds.add(symbol, node.op.least, node.op.most)
    return by


def moved(n: Poly, value: int) -> int:
    """The extent with this polynomial over symbols without fixed values, and this sample."""
    bounds = current_bounds.get()
    assert bounds is not None
    if n.value is not None:
        return n.value
    moving = frozenset(s for s in n.symbols if s in bounds)
    return Moving.of(value, n, moving) if moving else Extent(value, n)
