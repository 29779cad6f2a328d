"""The gradient of loops and branches: the forward one saves what the backward one needs, and both are nodes again.

A loop is run once more with stacks behind what it carries, one slot an iteration for each value that the backward half reads
(`residuals` chooses which); the backward loop goes through the slots from the last to the first. It carries the cotangents of
what the loop carried, and those of what it only read, which grow in place. Where the number of iterations has no known bound,
blocks of a fixed length take turns on one stack: the state at the start of a block is computed again from the beginning.
The loop as it was and the one that saves become one in the pass `join_replays`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import numpy as np

from jitlab.errors import NoGradientError
from jitlab.ir import ArrayType, Bounds, Extent, Graph, Moving, Node, Poly, current_bounds, poly
from jitlab.ir.bounds import sample
from jitlab.ir.graphs.graph import is_definition
from jitlab.ops.build_nodes import apply, constant, elementwise
from jitlab.ops.control_flow import Branch, Define, Loop
from jitlab.ops.elementwise.arithmetic import FloorDiv, Maximum, Minimum, add
from jitlab.ops.elementwise.comparison import Less
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.creation import zeros
from jitlab.ops.layout.views import AxisMap, Update, View
from jitlab.ops.leaf_operations import Length, Parameter
from jitlab.support.lazy_dataclass import dataclass

from .residuals import Joint, copy_into, joint, moved, nothing, renamed, slot, substituted

INT64 = np.dtype("i8")
ONE = Poly.constant(1)

#: How many bytes the stacks of a block take, and its least and greatest length.
BLOCK_BYTES, LEAST_BLOCK, MOST_BLOCK = 32 << 20, 64, 16384


class Walk(Protocol):
    """The reverse pass over one graph, as `gradient.py` runs it."""

    graph: Graph
    depends: set[Node]
    inside: bool  # the graph is a body of this pass's own: its loops may be changed as they stand
    free: set[Node]  # values that the backward half of the body has anyway

    def take(self, x: Node) -> Node | None:
        """What has flowed to a value so far, which is then forgotten; None: nothing."""

    def give(self, x: Node, g: Node) -> None:
        """More flows to a value."""

    def inner(
        self, graph: Graph, ys: list[Node], xs: list[Node], weights: list[Node], seeds: dict[Node, Node], free: set[Node]
    ) -> list[Node | None]:
        """The pass over a body."""


def pull_back_control(walk: Walk, node: Node, g: Sequence[Node | None]) -> None:
    """Give each input of a loop or branch its share."""
    if isinstance(node.op, Loop):
        _pull_back_loop(walk, node, g)
    else:
        _pull_back_branch(walk, node, g)


# ---- branches


def _pull_back_branch(walk: Walk, node: Node, g: Sequence[Node | None]) -> None:
    """if c: y = f(x) else: y = h(x)  ->  if c: x' += f'(x)·y' else: x' += h'(x)·y'"""
    op: Branch = node.op
    inputs = node.inputs[1:]
    weighed = [k for k, x in enumerate(g) if x is not None]
    reached = [_reached(side, weighed) for side in op.graphs]
    wanted = [k for k, x in enumerate(inputs) if x in walk.depends and any(k in r for r in reached)]
    if not wanted:
        return
    given = {k: so_far for k in wanted if (so_far := walk.take(inputs[k])) is not None}
    seeded = list(given)
    price = [_price(walk, x, 1) for x in inputs]
    halves, stores = [], []
    bounds = _bounds()
    for side in op.graphs:
        with _restored(bounds):
            _define(bounds, side)
            half = joint(side, wanted, weighed, seeded, price, walk.inner)
            halves.append(half)
            stores.append([_Store.of(x) for x in half.saved])
    saved = [store for side in stores for store in side]
    call = node
    if saved:
        sides = []
        for number, (side, half) in enumerate(zip(op.graphs, halves, strict=True)):
            graph, known = Graph(side.name, sizes=side.sizes), dict[Node, Node]()
            with graph.building():
                for p in half.parameters:
                    known[p] = apply(Parameter(p.type))
                kept: list[Node] = []
                mine = stores[number]
                places = {store: nothing(store.type) for store in saved}
                for x in (*half.parameters, *half.fore):
                    if x not in known:
                        copy_into(graph, [x], known)
                    for store in mine:
                        if store.value is x:
                            places[store] = store.put(known[x], places[store], ())
                kept = [places[store] for store in saved]
            graph.outputs = [*(known[y] for y in half.outputs), *kept]
            sides.append(graph.without_dead())
        made = Branch(sides[0], sides[1], (*op.types, *(s.type for s in saved)), None if walk.inside else op)
        call = _replaced(walk, node, made, [], [])
    values = {store: apply(Item(len(op.types) + k, store.type), call) for k, store in enumerate(saved)}
    handed = sorted({k for half in halves for k, p in enumerate(half.parameters) if p in half.handed})
    graphs = []
    for half, mine in zip(halves, stores, strict=True):
        graph, known = Graph("gradient", sizes=op.then.sizes), dict[Node, Node]()
        with graph.building(), _restored(bounds):
            slots = {store: apply(Parameter(store.type)) for store in saved}
            for k in handed:
                known[half.parameters[k]] = apply(Parameter(inputs[k].type))
            for x in (*half.weights, *half.seeds):
                known[x] = apply(Parameter(x.type))
            by = renamed(half.behind)
            for store in mine:
                known[store.value] = store.get(slots[store], (), by)
            copy_into(graph, half.behind, known, by)
        graph.outputs = [known[x] for x in half.results]
        graphs.append(graph.without_dead())
    back = apply(
        Branch(graphs[0], graphs[1], tuple(inputs[k].type for k in wanted)),
        node.inputs[0], *values.values(), *(inputs[k] for k in handed), *(y for y in g if y is not None),
        *given.values(),
    )  # fmt: skip
    for position, k in enumerate(wanted):
        walk.give(inputs[k], apply(Item(position, inputs[k].type), back))


# ---- loops


@dataclass(eq=False)
class _Active:
    """What flows through a loop: the numbers of the carried values, and of those only read, that have a cotangent."""

    carried: list[int]
    read: list[int]


@dataclass(eq=False)
class _Halves:
    """A loop's body with its gradient, and the stacks between the two."""

    op: Loop
    inputs: tuple[Node, ...]
    joint: Joint
    stores: list[_Store]

    @property
    def handed(self) -> list[int]:
        """What is only read and the backward half reads, too."""
        first = len(self.op.types)
        return [k for k, p in enumerate(self.joint.parameters) if k >= first and p in self.joint.handed]


def _pull_back_loop(walk: Walk, node: Node, g: Sequence[Node | None]) -> None:
    """for i in range(n): x = f(x, a[i])  ->  for i in reversed(range(n)): x', a'[i] += f'(saved[i])·x'"""
    op: Loop = node.op
    active = _active(walk, node, g)
    if not active.carried and not active.read:
        return
    bounds = _bounds()
    count = op.count
    length: int | None = bounds.greatest(count) if isinstance(count, Moving) else count
    if length is not None and not isinstance(length, Extent) and length < 1:
        for k in active.carried:
            if (x := g[k]) is not None:
                walk.give(node.inputs[k], x)
        return
    price = [
        float(x.type.nbytes) + 1 if k < len(op.types) else _price(walk, x, 16 if length is None else int(length))
        for k, x in enumerate(node.inputs)
    ]
    with _restored(bounds):
        _enter(bounds, op.symbol, count, op.body)
        numbers = [*active.carried, *active.read]
        half = joint(op.body, numbers, active.carried, active.read, price, walk.inner)
        carried = [p for p in half.parameters[: len(op.types)] if p in half.handed]
        halves = _Halves(op, node.inputs, half, [_Store.of(x) for x in (*carried, *half.saved)])
    so_far = [*(g[k] for k in active.carried), *(walk.take(node.inputs[k]) for k in active.read)]
    first = [
        nothing(node.inputs[k].type) if x is None else x
        for k, x in zip((*active.carried, *active.read), so_far, strict=True)
    ]
    if length is None:
        found = _in_blocks(walk, node, halves, first)
    else:
        forward, stacks = _forward_loop(walk, node, halves, length)
        number = None
        if op.test is not None:
            number = apply(Item(len(op.types) + len(stacks), ArrayType((), INT64)), forward)
        assert op.count is not None
        found = _backward_loop(halves, first, stacks, [halves.inputs[k] for k in halves.handed], op.count, number)
    for k, x in zip((*active.carried, *active.read), found, strict=True):
        walk.give(halves.inputs[k], x)


def _forward_loop(walk: Walk, node: Node, halves: _Halves, length: int) -> tuple[Node, list[Node]]:
    """The loop with a stack for each value that is saved, and with the number of its iterations where a test ends it."""
    op, bounds = halves.op, _bounds()
    symbol = op.symbol if walk.inside else bounds.unique("i")
    counted = op.test is not None
    loop = _saving(halves, op, symbol, length, op.count, counted, Moving.symbol(symbol, 2))
    loop = Loop(loop.body, loop.types, symbol, op.count, loop.test, None if walk.inside else op)
    start = len(walk.graph.nodes)
    fresh = [zeros((length, *store.type.shape), store.type.dtype) for store in halves.stores]
    if counted:
        fresh.append(constant(0, INT64))
    call = _replaced(walk, node, loop, fresh, walk.graph.nodes[start:])
    stacks = [
        apply(Item(len(op.types) + k, type), call) for k, type in enumerate(loop.types[len(op.types) :][: len(halves.stores)])
    ]
    return call, stacks


def _saving(
    halves: _Halves, op: Loop, symbol: str, length: int, count: int | None, counted: bool, number: Moving,
    at: int | None = None,
) -> Loop:  # fmt: skip
    """The body that saves. `number` stands for the loop's symbol, `at` is the slot of an iteration, if it is another."""
    half, carried = halves.joint, len(halves.op.types)
    by: dict[str, Extent] = {} if poly(number) == Poly.symbol(op.symbol) else {op.symbol: number}
    slot_of = number if at is None else at
    graph, known = Graph(op.body.name, sizes=op.body.sizes), dict[Node, Node]()
    with graph.building(), _restored(_bounds()):
        if by:
            by |= renamed(op.body.nodes)

        def parameter(x: Node) -> None:
            known[x] = apply(Parameter(substituted(x.type, by)))

        for x in half.parameters[:carried]:
            parameter(x)
        stacks = {store: apply(Parameter(store.type.with_shape((length, *store.type.shape)))) for store in halves.stores}
        so_far = apply(Parameter(ArrayType((), INT64))) if counted else None
        for x in half.parameters[carried:]:
            parameter(x)
        for x in (*half.parameters, *half.fore):
            if x not in known:
                copy_into(graph, [x], known, by)
            for store in halves.stores:
                if store.value is x:
                    stacks[store] = store.put(known[x], stacks[store], (slot_of,), by)
        more = [] if so_far is None else [apply(Length(moved(poly(slot_of) + ONE, 3)))]
    graph.outputs = [*(known[y] for y in half.outputs), *stacks.values(), *more]
    types = (*op.types, *(x.type for x in stacks.values()), *(x.type for x in more))
    extra = [x.type for x in (*stacks.values(), *more)]
    test = None if op.test is None else _with_more(substituted(op.test, by) if by else op.test, carried, extra)
    return Loop(graph.without_dead(), types, symbol, count, test)


def _backward_loop(
    halves: _Halves, first: Sequence[Node], stacks: Sequence[Node], handed: Sequence[Node], count: int,
    times: Node | None = None, base: int | None = None,
) -> list[Node]:  # fmt: skip
    """The loop over the slots of the stacks from the last to the first. `times` is how many of `count` iterations there were,
    if not all; `base` is the number of the first slot's iteration."""
    half, op = halves.joint, halves.op
    bounds = _bounds()
    graph, known = Graph("gradient", sizes=op.body.sizes), dict[Node, Node]()
    symbol = bounds.unique("i")
    with graph.building(), _restored(bounds):
        _enter(bounds, symbol, count, None)
        last = poly(count) - ONE
        for x in (*half.weights, *half.seeds):
            known[x] = apply(Parameter(x.type))
        slots = [apply(Parameter(x.type)) for x in stacks]
        for k, x in zip(halves.handed, handed, strict=True):
            known[half.parameters[k]] = apply(Parameter(x.type))
        if times is not None:
            most = bounds.greatest(count)
            assert most is not None
            last = poly(_defined(apply(Parameter(times.type)), most)) - ONE
        at = moved(last - Poly.symbol(symbol), 2)
        number = at if base is None else moved(poly(base) + poly(at), 2)
        assert isinstance(number, Moving)
        by = {op.symbol: number, **renamed(half.behind)}
        for store, stack in zip(halves.stores, slots, strict=True):
            known[store.value] = store.get(stack, (at,), by)
        copy_into(graph, half.behind, known, by)
    graph.outputs = [known[x] for x in half.results]
    types = tuple(x.type for x in first)
    inputs = [*first, *stacks, *handed, *([] if times is None else [times])]
    test = None if times is None else _below([x.type for x in inputs], symbol)
    call = apply(Loop(graph.without_dead(), types, symbol, count, test), *inputs)
    return [apply(Item(k, type), call) for k, type in enumerate(types)]


def _in_blocks(walk: Walk, node: Node, halves: _Halves, first: Sequence[Node]) -> list[Node]:
    """m iterations, and no bound for m: for each block of at most BLOCK of them, the last first, the state at its start is
    computed from the beginning, then the block saves and is run backwards. Memory is that of one block; from the second block
    on iterations are computed again, m * m / (2 * BLOCK) of them in all."""
    op = halves.op
    if op.has_effects:
        raise NoGradientError(
            "a loop that does more than give results, and has no bound on its iterations, has no gradient.",
            why="its iterations are computed again on the way back, and so would be its effects",
            hint="set_loop_options(maximum_iterations=...), or a for loop with break",
        )
    bounds, carried = _bounds(), len(op.types)
    each = sum(store.type.nbytes for store in halves.stores)
    block = min(max(BLOCK_BYTES // max(each, 1), LEAST_BLOCK), MOST_BLOCK)
    if op.test is None:
        assert isinstance(op.count, Moving)
        number = elementwise(Maximum(), apply(Length(op.count)), constant(0, INT64))  # below 1 nothing runs
    else:
        symbol = op.symbol if walk.inside else bounds.unique("i")
        counting = _saving(replace(halves, stores=[]), op, symbol, 0, op.count, True, Moving.symbol(symbol, 2))
        counting = replace(counting, replays=None if walk.inside else op)
        call = _replaced(walk, node, counting, fresh := [constant(0, INT64)], fresh)
        number = apply(Item(carried, ArrayType((), INT64)), call)
    blocks = elementwise(FloorDiv(), add(number, np.int64(block - 1)), np.int64(block))
    graph = Graph("blocks", sizes=op.body.sizes)
    symbol = bounds.unique("i")
    with graph.building(), _restored(bounds):
        _enter(bounds, symbol, None, None)
        cotangents = [apply(Parameter(x.type)) for x in first]
        values = [apply(Parameter(x.type)) for x in halves.inputs]
        total, last = (_defined(apply(Parameter(x.type)), None) for x in (number, blocks))
        start = moved((poly(last) - ONE - Poly.symbol(symbol)).scale(block), 2)
        bounds.assume(poly(start))
        before = bounds.unique("i")
        with _restored(bounds):
            by = {op.symbol: Moving.symbol(before, 2), **renamed(op.body.nodes)}
            body = substituted(op.body, by)
        state = apply(Loop(body, op.types, before, start), *values)
        values[:carried] = [apply(Item(k, type), state) for k, type in enumerate(op.types)]
        rest = apply(Length(moved(poly(total) - poly(start), 2)))
        here = _defined(elementwise(Minimum(), rest, constant(block, INT64)), block)
        inner = bounds.unique("i")
        number_in = moved(poly(start) + Poly.symbol(inner), 2)
        assert isinstance(number_in, Moving)
        saving = _saving(halves, op, inner, block, here, False, number_in, Moving.symbol(inner, 2))
        stacks = [zeros((block, *store.type.shape), store.type.dtype) for store in halves.stores]
        call = apply(replace(saving, test=None), *values[:carried], *stacks, *values[carried:])
        stacks = [apply(Item(carried + k, x.type), call) for k, x in enumerate(stacks)]
        handed = [values[k] for k in halves.handed]
        graph.outputs = _backward_loop(halves, cotangents, stacks, handed, here, base=start)
    inputs = [*first, *halves.inputs, number, blocks]
    types = tuple(x.type for x in first)
    back = apply(Loop(graph.without_dead(), types, symbol, None, _below([x.type for x in inputs], symbol)), *inputs)
    return [apply(Item(k, type), back) for k, type in enumerate(types)]


def _defined(node: Node, most: int | None) -> Moving:
    """The extent whose value is that of a node of 0 or more."""
    bounds = _bounds()
    symbol = bounds.unique("d")
    apply(Define(symbol, 0, most), node)
    bounds.add(symbol, 0, most)
    return Moving.symbol(symbol, sample(0, most, 0))


def _below(types: Sequence[ArrayType], symbol: str) -> Graph:
    """The test that asks whether the number of the iteration is below the last of what the loop is handed."""
    graph = Graph("test")
    with graph.building():
        *_, times = [apply(Parameter(type)) for type in types]
        graph.outputs = [elementwise(Less(), apply(Length(Moving.symbol(symbol, 2))), times)]
    return graph


# ---- what is shared


@dataclass(frozen=True, eq=False)
class _Store:
    """A value that is saved, and the type of the place where it is."""

    value: Node
    type: ArrayType

    @classmethod
    def of(cls, value: Node) -> _Store:
        type = slot(value.type)
        assert type is not None, f"{value!r} has no greatest size"
        return cls(value, type)

    def _region(self, at: Sequence[int], shape: Sequence[int]) -> AxisMap:
        return (*((n, 1, None) for n in at), *((0, 1, axis) for axis in range(len(shape))))

    def put(self, value: Node, place: Node, at: Sequence[int], by: Mapping[str, Extent] | None = None) -> Node:
        """The place with a value in it."""
        if not at and not any(isinstance(n, Moving) for n in value.shape):
            return value
        return apply(Update(self._region(at, value.shape), value.shape), place, value)

    def get(self, place: Node, at: Sequence[int], by: Mapping[str, Extent]) -> Node:
        """The value, where other extents stand for some symbols."""
        shape: tuple[int, ...] = substituted(self.value.type.shape, by)
        if not at and not any(isinstance(n, Moving) for n in shape):
            return place
        return apply(View(self._region(at, shape), shape), place)


def _replaced(walk: Walk, node: Node, op: Loop | Branch, more: Sequence[Node], fresh: Sequence[Node]) -> Node:
    """The call that also saves: in a body of our own the node itself becomes it, elsewhere it stands behind.

    `more` are the first values of what it carries beyond `node`, made by the nodes `fresh`.
    """
    carried = len(node.op.types) if isinstance(node.op, Loop) else len(node.inputs)
    inputs = (*node.inputs[:carried], *more, *node.inputs[carried:])
    if not walk.inside:
        return apply(op, *inputs)
    nodes = walk.graph.nodes
    if fresh:
        moving = set(fresh)
        nodes[:] = [x for x in nodes if x not in moving]
        place = nodes.index(node)
        nodes[place:place] = fresh
    node.op, node.inputs = op, inputs
    return node


def _with_more(test: Graph, carried: int, types: Sequence[ArrayType]) -> Graph:
    """A test that is handed more carried values, which it does not read."""
    graph, known = Graph(test.name, sizes=test.sizes), dict[Node, Node]()
    with graph.building():
        for x in test.parameters[:carried]:
            known[x] = apply(Parameter(x.type))
        for type in types:
            apply(Parameter(type))
        for x in test.parameters[carried:]:
            known[x] = apply(Parameter(x.type))
        copy_into(graph, test.nodes, known)
    graph.outputs = [known[y] for y in test.outputs]
    return graph


def _active(walk: Walk, node: Node, g: Sequence[Node | None]) -> _Active:
    """What depends on the xs and reaches a result with a cotangent, through any number of iterations."""
    op: Loop = node.op
    carried = len(op.types)
    reached = [_reached(op.body, [k]) for k in range(carried)]
    varied = {k for k, x in enumerate(node.inputs) if x in walk.depends}
    useful = {k for k, x in enumerate(g) if x is not None}
    while True:
        more = {k for k in range(carried) if reached[k] & varied} - varied
        if not more:
            break
        varied |= more
    while True:
        more = {p for k in useful for p in reached[k] if p < carried} - useful
        if not more:
            break
        useful |= more
    floats = {k for k in range(carried) if op.types[k].dtype.kind in "fc"}
    read = {p for k in useful for p in reached[k] if p >= carried} & varied
    return _Active(sorted(varied & useful & floats), sorted(read))


def _reached(body: Graph, outputs: Sequence[int]) -> set[int]:
    """The float and complex parameters that some outputs depend on by way of floats."""
    kinds = "fcV"
    live = {body.outputs[k] for k in outputs if body.outputs[k].dtype.kind in kinds}
    for node in reversed(body.nodes):
        if node in live:
            live.update(x for x in node.inputs if x.dtype.kind in kinds)
    return {k for k, p in enumerate(body.parameters) if p in live}


def _price(walk: Walk, x: Node, times: int) -> float:
    """What it costs an iteration of the loop around to hand in a value that the body only reads."""
    if not walk.inside or x in walk.free:
        return 0.0
    return (float(x.type.nbytes) + 1) / max(times, 1)


def _bounds() -> Bounds:
    bounds = current_bounds.get()
    assert bounds is not None
    return bounds


@contextmanager
def _restored(bounds: Bounds) -> Iterator[None]:
    """What is learnt inside is forgotten; names stay given."""
    state = bounds.state()
    try:
        yield
    finally:
        bounds.restore(state, names=False)


def _enter(bounds: Bounds, symbol: str, count: int | None, body: Graph | None) -> None:
    """Into a body: its symbol and those that it defines have bounds."""
    bounds.add(symbol, 0, None if count is None else poly(count) - ONE)
    if count is not None:
        bounds.assume(poly(count) - ONE)
    bounds.depth += 1
    if body is not None:
        _define(bounds, body)


def _define(bounds: Bounds, graph: Graph) -> None:
    for node in graph.nodes:
        if is_definition(node.op) and node.op.symbol not in bounds:
            bounds.add(node.op.symbol, node.op.least, node.op.most)

