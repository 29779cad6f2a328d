"""Loops and branches as statements: what is carried has one place for all iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jitlab.ir import Graph, Node, Poly, sources_of
from jitlab.ir.programs.program import (
    ONE,
    ZERO,
    Assign,
    Buffer,
    Define,
    Expr,
    If,
    Index,
    IndexValue,
    Let,
    Local,
    Read,
    Repeat,
    Statement,
    Store,
    Variable,
)
from jitlab.lower.block import Block, branch_base, with_items
from jitlab.lower.fusion.stages import Stage
from jitlab.ops import control_flow as ops
from jitlab.ops.leaf_operations import Parameter

from .loop_fusion import collapsed, turned

if TYPE_CHECKING:
    from .statements import BlockWriter


def name_definitions(writer: BlockWriter) -> None:
    """The symbols that a block defines are known before it is arranged."""
    for node in writer.block.nodes:
        if isinstance(node.op, ops.Define):
            least, most = node.op.least, node.op.most
            name = writer.sizes.bind(node.op.symbol, "d", _sample(least, most))
            bounds = (None if end is None else Poly.constant(int(end)) for end in (least, most))
            writer.ranges.add_range(name, *bounds)


def write_define(writer: BlockWriter, node: Node) -> list[Statement]:
    """A number found at run time becomes a symbol, for what follows."""
    value = writer.reader().read(node.inputs[0], ())
    symbol = writer.sizes.name_of(node.op.symbol)
    number = writer.values[node] = IndexValue(Index(Poly.symbol(symbol)))
    kept = writer.buffers.get(node)  # the number itself is a result
    stored = [] if kept is None else [Store(kept, Index(), number, node.origins)]
    return [Define(symbol, value, node.origins), *stored]


def write_loop(writer: BlockWriter, stage: Stage, computed: dict[Node, None]) -> list[Statement]:
    """Repeat: carried arrays stay in one buffer, carried numbers in variables."""
    node, op = stage.node, stage.node.op
    items = {item.op.index: item for item in stage.items}
    reader = writer.reader(computed)
    assert writer.arranged is not None
    memory: list[Statement] = []
    start: list[Statement] = []
    places: dict[int, Buffer] = {}
    variables: dict[int, Variable] = {}
    for k, type in enumerate(op.types):
        init = node.inputs[k]
        if type.ndim:
            places[k] = writer.buffers[items[k]]
            if items[k] not in writer.arranged.in_place:
                memory += writer.copy(places[k], init, reader, node)
        else:
            variables[k] = writer.shared.variable(type.dtype)
            start.append(Assign(variables[k], reader.read(init, ()), init.origins))
    captured = _captures(writer, node.inputs[len(op.types) :], reader, start)
    count = None if op.count is None else writer.sizes.of(op.count)
    symbol = writer.sizes.bind(op.symbol, "i", max(writer.sizes.value(count) // 2, 1) if count is not None else 1)
    with writer.ranges.inside((symbol, ZERO, None if count is None else count - ONE)):
        before: list[Statement] = []
        test: Expr | None = None
        if op.test is not None:
            before, (test,) = _body(writer, op.test, places, variables, captured, len(op.types), {}, computed)
            before = collapsed(before)
        targets = {k: op.body.parameters[k] for k in places}
        body, results = _body(writer, op.body, places, variables, captured, len(op.types), targets, computed)
        body += _assign(op.body, variables, results)
    _carrying([*start, *before, *body], node)
    loop = turned(Repeat(symbol, count, body, before, test, node.origins), writer.shared)
    return _phases(writer, memory, [*start, *loop, *_results(writer, items, variables)])


def write_branch(writer: BlockWriter, stage: Stage, computed: dict[Node, None]) -> list[Statement]:
    """If: numbers in variables, arrays in place where a side only changes them."""
    node, op = stage.node, stage.node.op
    items = {item.op.index: item for item in stage.items}
    reader = writer.reader(computed)
    assert writer.arranged is not None
    memory: list[Statement] = []
    start: list[Statement] = []
    condition = reader.read(node.inputs[0], ())
    variables = {k: writer.shared.variable(t.dtype) for k, t in enumerate(op.types) if not t.ndim}
    changed: dict[int, int] = {}  # number of an input -> of the result that takes its place
    for k, item in items.items():
        base = branch_base(op, k) if item.ndim else None
        if base is not None and (item in writer.arranged.in_place or base not in changed):
            changed[base] = k
    for base, k in changed.items():
        if items[k] not in writer.arranged.in_place:
            memory += writer.copy(writer.buffers[items[k]], node.inputs[1 + base], reader, node)
    captured = _captures(writer, node.inputs[1:], reader, start)
    sides = []
    for graph in op.graphs:
        places = {base: writer.buffers[items[k]] for base, k in changed.items()}
        targets = {k: graph.parameters[base] for base, k in changed.items()}
        extra: dict[Node, Buffer] = {}
        for k, type in enumerate(op.types):
            if type.ndim and k not in targets:
                targets[k] = Node(Parameter(type), (), type, name=f"result_{k}")
                extra[targets[k]] = writer.buffers[items[k]]
        body, results = _body(writer, graph, places, {}, captured, 0, targets, computed, extra)
        sides.append([*collapsed(body), *_assign(None, variables, results)])
    _carrying([*start, *sides[0], *sides[1]], node)
    choice = If(condition, sides[0], sides[1], node.origins)
    return _phases(writer, memory, [*start, choice, *_results(writer, items, variables)])


def _captures(
    writer: BlockWriter, sources: Sequence[Node], reader: object, start: list[Statement]
) -> list[Node | Expr]:
    """What bodies read from around them: arrays as they are, numbers bound once."""
    captured: list[Node | Expr] = []
    for source in sources:
        if source.ndim:
            captured.append(source)
            continue
        value, statements = writer.bind(reader.read(source, ()), source)  # type: ignore[attr-defined]
        start += statements
        captured.append(value)
    return captured


def _body(
    writer: BlockWriter, graph: Graph, places: dict[int, Buffer], variables: dict[int, Variable],
    captured: Sequence[Node | Expr], first: int, targets: dict[int, Node], computed: dict[Node, None],
    extra: dict[Node, Buffer] | None = None,
) -> tuple[list[Statement], list[Expr]]:  # fmt: skip
    """A body's statements, and its 0-d results. Inputs from number `first` on are captured, unless they have places."""
    parameters = graph.parameters
    owned = {parameters[k] for k in places} | set(extra or ())
    block = Block(with_items(graph.nodes), [], list(parameters), owned, True, list(graph.outputs), targets)
    inner = type(writer)(writer.shared, block, writer)
    inner.buffers.update({parameters[k]: place for k, place in places.items()})
    inner.buffers.update(extra or {})
    statements: list[Statement] = []
    used = {source for node in graph.nodes for source in node.inputs} | set(graph.outputs)
    for k, variable in variables.items():
        if parameters[k] in used:
            name = writer.shared.name("l")
            inner.values[parameters[k]] = Local(name, variable.dtype)
            statements.append(Let(name, Read(variable)))
    for parameter, outer in zip(parameters[first:], captured, strict=True):
        if isinstance(outer, Node):
            inner.captured[parameter] = writer.shared.captured[parameter] = outer
        else:
            inner.values[parameter] = outer
    state = writer.ranges.state()
    statements += inner.statements()
    reader = inner.reader(computed)
    results = [reader.read(node, ()) for node in graph.outputs if not node.ndim]
    writer.ranges.restore(state)
    return statements, results


def _assign(graph: Graph | None, variables: dict[int, Variable], results: Sequence[Expr]) -> list[Statement]:
    """The variables' next values: all are bound by now, so the order does not matter. `graph`: a loop's body."""
    statements: list[Statement] = []
    for (k, variable), value in zip(variables.items(), results, strict=True):
        if graph is None or graph.outputs[k] is not graph.parameters[k]:
            statements.append(Assign(variable, value))
    return statements


def _carrying(statements: Sequence[Statement], node: Node) -> None:
    """What only carries numbers from turn to turn, and out of a branch, is of the loop or branch itself."""
    for s in statements:
        if isinstance(s, (Let, Assign)) and not sources_of(s.origins):
            s.origins = node.origins


def _results(writer: BlockWriter, items: dict[int, Node], variables: dict[int, Variable]) -> list[Statement]:
    """What the loop or branch gives: numbers are bound, and stored where they are to lie in memory."""
    statements: list[Statement] = []
    for k, item in items.items():
        if item.ndim:
            continue
        local = Local(writer.shared.name("l"), item.dtype)
        statements.append(Let(local.name, Read(variables[k]), item.origins))
        place = writer.buffers.get(item)
        if place is None:
            writer.values[item] = local
        else:
            statements.append(Store(place, Index(), local, item.origins))
    return statements


def _phases(writer: BlockWriter, memory: list[Statement], rest: list[Statement]) -> list[Statement]:
    """In a cluster, statements that share registers are one phase: a loop of one iteration."""
    from jitlab.ir.programs.program import For

    if writer.block.ordered:
        return [*memory, *rest]
    return [*memory, For("z", (Index(ONE),), rest)]


def _sample(least: int | None, most: int | None) -> int:
    low = int(least) if least is not None else 0
    return (low + int(most)) // 2 if most is not None else low + 8
