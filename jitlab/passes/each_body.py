"""Loops and branches: each pass runs on their bodies too, and what their bodies do not need is no longer handed in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from jitlab.ir import Graph, Node
from jitlab.ir.graphs.graph import must_run
from jitlab.ops.control_flow import Branch, Loop
from jitlab.ops.host_operations import Item

from .rewriting import instead, rewrite


def with_bodies(one: Callable[[Graph], Graph]) -> Callable[[Graph], Graph]:
    """The pass on a graph and on the bodies in it, innermost first."""

    def deep(graph: Graph) -> Graph:
        changed: dict[str, Loop | Branch] = {}
        for node in graph.nodes:
            if isinstance(node.op, Loop):
                body, test = deep(node.op.body), None if node.op.test is None else deep(node.op.test)
                if body is not node.op.body or test is not node.op.test:
                    changed[node.name] = replace(node.op, body=body, test=test)
            elif isinstance(node.op, Branch):
                then, orelse = deep(node.op.then), deep(node.op.orelse)
                if then is not node.op.then or orelse is not node.op.orelse:
                    changed[node.name] = replace(node.op, then=then, orelse=orelse)
        if changed:
            graph = rewrite(graph, lambda node: changed.get(node.name), lambda node, op: instead(node, op, *node.inputs))
        return one(graph)

    deep.__name__, deep.__doc__ = one.__name__, one.__doc__
    return deep


def drop_unused_inputs(graph: Graph) -> Graph:
    """loop carrying x, y where only x is read afterwards and y changes nothing -> loop carrying x

    What no iteration changes is captured, not carried; results that nobody reads and captures that no body reads go.
    """
    results = {node.name for node in graph.outputs}
    read: dict[Node, set[int]] = {}
    fixed: dict[Node, set[int]] = {}  # results that have to stay results: the program gives them out
    for node in graph.nodes:
        if isinstance(node.op, Item):
            read.setdefault(node.inputs[0], set()).add(node.op.index)
            if node.name in results:
                fixed.setdefault(node.inputs[0], set()).add(node.op.index)
    slim: dict[str, _Slim] = {}
    for node in graph.nodes:
        if isinstance(node.op, Loop):
            slim[node.name] = _slim_loop(node.op, read.get(node, set()), fixed.get(node, set()))
        elif isinstance(node.op, Branch):
            slim[node.name] = _slim_branch(node.op, read.get(node, set()))
    if all(s.op is None for s in slim.values()):
        return graph
    made: dict[Node, _Slim] = {}

    def rule(node: Node) -> Node | None:
        if node.name in slim and slim[node.name].op is not None:
            s = slim[node.name]
            new = instead(node, s.op, *(node.inputs[k] for k in s.inputs))
            made[new] = s
            s.before = node.inputs
            return new
        if isinstance(node.op, Item) and node.inputs[0] in made:
            s = made[node.inputs[0]]
            if node.op.index in s.unchanged:
                return s.before[node.op.index]
            return instead(node, Item(s.results[node.op.index], node.op.type), node.inputs[0])
        return None

    return graph.rewrite(rule)


class _Slim:
    """A loop or branch with fewer inputs or results; `op` None: there is nothing to leave out."""

    def __init__(
        self, op: Loop | Branch | None = None, inputs: Sequence[int] = (), results: dict[int, int] | None = None,
        unchanged: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        self.op = op
        self.inputs = inputs  # which of the inputs are left, in their new order
        self.results = results or {}  # old number of a result -> new number
        self.unchanged = unchanged  # results that are the inputs of the same number
        self.before: tuple[Node, ...] = ()


def _slim_loop(op: Loop, read: set[int], fixed: set[int]) -> _Slim:
    carried, body = len(op.types), op.body
    unchanged = {k for k in range(carried) if body.outputs[k] is body.parameters[k] and k not in fixed}
    number = {parameter: k for k, parameter in enumerate(body.parameters)}
    live = (set(read) | _used(op.test)) - unchanged
    while True:  # what computes the next value of what lives, lives
        needed = _needed(body, [body.outputs[k] for k in sorted(live) if k < carried])
        more = {number[p] for p in needed if p in number} - unchanged
        if more <= live:
            break
        live |= more
    kept = sorted(k for k in live if k < carried)
    used = {number[p] for p in needed if p in number} | _used(op.test)
    captures = [k for k in sorted(used) if k >= carried or k in unchanged]
    if len(kept) == carried and len(captures) == len(body.parameters) - carried:
        return _Slim()
    order = [*kept, *captures]
    outputs = [body.outputs[k] for k in kept]
    new = replace(
        op, body=_with(body, order, outputs), types=tuple(op.types[k] for k in kept),
        test=None if op.test is None else _with(op.test, order, op.test.outputs),
    )  # fmt: skip
    return _Slim(new, order, {k: i for i, k in enumerate(kept)}, frozenset(unchanged))


def _slim_branch(op: Branch, read: set[int]) -> _Slim:
    kept = sorted(read)
    every = range(len(op.then.parameters))
    sides = [_with(side, every, [side.outputs[k] for k in kept]) for side in op.graphs]
    used = set().union(*(_used(side) for side in sides))
    captures = [k for k in range(len(op.then.parameters)) if k in used]
    if len(kept) == len(op.types) and len(captures) == len(op.then.parameters):
        return _Slim()
    then, orelse = (_with(side, captures, side.outputs) for side in sides)
    new = Branch(then, orelse, tuple(op.types[k] for k in kept))
    return _Slim(new, [0, *(k + 1 for k in captures)], {k: i for i, k in enumerate(kept)})


def _used(graph: Graph | None) -> set[int]:
    """Numbers of the parameters that a graph reads."""
    if graph is None:
        return set()
    inputs = {source for node in graph.nodes for source in node.inputs} | set(graph.outputs)
    return {k for k, parameter in enumerate(graph.parameters) if parameter in inputs}


def _needed(graph: Graph, outputs: Sequence[Node]) -> set[Node]:
    needed = set(outputs)
    for node in reversed(graph.nodes):
        if node in needed or must_run(node.op) or hasattr(node.op, "least"):
            needed.add(node)
            needed.update(node.inputs)
    return needed


def _with(graph: Graph, parameters: Sequence[int], outputs: Sequence[Node]) -> Graph:
    """The graph with these of its parameters, in this order, and these outputs."""
    new = Graph(graph.name, [graph.parameters[k] for k in parameters], list(graph.nodes), list(outputs), sizes=graph.sizes)
    new._names = dict(graph._names)
    new.marked_only = graph.marked_only
    return new.without_dead()
