"""Other ways to write a program in which two operations share a kernel: each is built, lowered, and told only where they do.

Marks, options and a second copy are what clusters and fusion can flip by themselves (`would fuse if` of an edge). Here the
program itself would be another one with the same meaning, so the few operations of the edge are built anew and compiled.
Code is written only where the operation and each operand has an expression of its own in the program; else words say it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from jitlab import events
from jitlab.cluster import cluster
from jitlab.compile import planned
from jitlab.ir import (
    ArrayType,
    ClusteringOptions,
    Edge,
    Graph,
    Moving,
    Node,
    NotFused,
    expression,
    is_operation,
    of_one_expression,
)
from jitlab.messages import Message
from jitlab.ops.base import Elementwise, Reduction
from jitlab.ops.build_nodes import apply
from jitlab.ops.elementwise.arithmetic import Mul
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.layout.indexing import Gather, Take
from jitlab.ops.layout.views import View, expand_dims, transpose
from jitlab.ops.leaf_operations import Constant, Parameter
from jitlab.ops.linear_algebra.matrix_products import MatMul
from jitlab.ops.reducing.axis_reductions import Sum
from jitlab.runtime import Executable
from jitlab.support.lazy import Kept
from jitlab.support.lazy_dataclass import dataclass

from .plan_questions import Place, is_move

#: Edges of one plan for which another way is looked for: each takes some milliseconds.
MOST_EDGES = 12

#: Multiplications up to which a product is told as a sum. Loops take some nanoseconds for each, a call of the library one
#: microsecond and next to nothing for each: a larger product would be slower as a sum, whatever the fusion saves.
SMALL_WORK = 1 << 9

#: Answers that are kept.
MOST_HELD = 1000
_held: Kept[str, bool] = Kept(MOST_HELD)


@dataclass(frozen=True)
class Alternative:
    """`said` follows "would fuse if"; in `graph` the operations `producer` and `consumer` stand for the edge's."""

    said: Message
    graph: Graph
    producer: str
    consumer: str

    def compiled(self) -> Executable:
        """The other program, lowered."""
        options = replace(ClusteringOptions(), level="ON", min_size=1)
        names = {node.name: "alternative" for node in self.graph.nodes}
        return planned(cluster(self.graph, options, names=names))

    def holds(self) -> bool:
        """Do the two share a kernel that is no library's? Asked once: many edges are alike, and programs are traced again."""
        return _held.of(self._written(), self._share)

    def _share(self) -> bool:
        place = Place(self.compiled().plan)
        kernel = place.kernel.get(self.consumer)
        return kernel is not None and kernel.kind == "nest" and place.together(self.producer, self.consumer)

    def _written(self) -> str:
        """The program without its names, and which two of its operations are asked about."""
        nodes = (*self.graph.parameters, *(node for node in self.graph.nodes if not node.op.is_parameter))
        number = {node: n for n, node in enumerate(nodes)}
        lines = [f"{node.op!r} {[number[x] for x in node.inputs]} {node.type}" for node in nodes]
        asked = [number[node] for node in nodes if node.name in (self.producer, self.consumer)]
        return "\n".join((*lines, f"{asked}"))


class Alternatives:
    """Of the edges of one graph that lie between kernels."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._known: dict[tuple[Node, Node], Alternative | None] = {}

    def of(self, edge: Edge) -> Alternative | None:
        key = edge.producer, edge.consumer
        if key not in self._known:
            if len(self._known) >= MOST_EDGES:
                return None
            with events.muted():
                self._known[key] = self._tried(edge)
        return self._known[key]

    def _tried(self, edge: Edge) -> Alternative | None:
        way = WAYS.get(edge.reason.code)
        if way is None or edge.producer not in self.graph.nodes or edge.consumer not in self.graph.nodes:
            return None
        if any(isinstance(n, Moving) for node in (edge.producer, edge.consumer) for n in node.shape):
            return None
        made = way(_Region(self.graph), edge)
        return made if made is not None and made.holds() else None


class _Region:
    """A graph with the few operations of an edge, whose operands are parameters."""

    def __init__(self, graph: Graph) -> None:
        self.old, self.graph = graph, Graph("alternative")
        self._parameters: dict[tuple[Node, tuple[int, ...]], Node] = {}

    def reader(self, node: Node) -> tuple[Node, Node] | None:
        """(the operation that works on a value, as it is handed to it): what leaves each element in its place is looked
        through."""
        known = node
        for _ in range(4):
            users = [user for user in self.old.nodes if known in user.inputs and is_operation(user)]
            if len(users) != 1:
                return None
            if not is_move(users[0]):
                return users[0], known
            if users[0].shape != node.shape or _reorders(users[0], known):
                return None
            known = users[0]
        return None

    def parameter(self, node: Node, axes: Sequence[int] | None = None, ndim: int | None = None) -> Node:
        """What stands for an operand: its shape (filled up to `ndim` axes with 1 in front) in the order of `axes`."""
        shape = tuple(int(n) for n in node.shape)
        shape = (1,) * ((ndim or len(shape)) - len(shape)) + shape
        if axes is not None:
            shape = tuple(shape[axis] for axis in axes)
        if isinstance(node.op, Constant) and not node.ndim:
            return apply(node.op)
        key = node, shape
        if key not in self._parameters:
            kind = ArrayType(shape, node.dtype)
            self._parameters[key] = self.graph.append(Node(Parameter(kind), (), kind, name=node.name))
        return self._parameters[key]

    def finished(self, said: Message, producer: Node, consumer: Node, out: Node | None = None) -> Alternative:
        self.graph.outputs = [out or consumer]
        return Alternative(said, self.graph, producer.name, consumer.name)


def _reduced_last(region: _Region, edge: Edge) -> Alternative | None:
    """x - x.mean(axis=0)  ->  y = x.T; y - y.mean(axis=1, keepdims=True), which is the other's result turned"""
    total = edge.producer
    if not isinstance(total.op, Reduction):
        return None
    (x,) = total.inputs
    gone = total.op.axes
    axes = (*(axis for axis in range(x.ndim) if axis not in gone), *gone)
    reduced = range(x.ndim - len(gone), x.ndim)
    with region.graph.building():
        turned = region.parameter(x, axes)
        small = {total: apply(replace(total.op, axes=tuple(reduced)), turned)}
        first, node, out = None, edge.consumer, None
        while out is None:
            known = next((source for source in node.inputs if source in small), None)
            if known is None or not (is_move(node) or isinstance(node.op, Elementwise)):
                return None
            if is_move(node) and node.type.count == total.type.count:
                if _reorders(node, known):
                    return None
                small[node] = small[known]
            elif isinstance(node.op, Elementwise) and node.type.count == total.type.count:
                operands = [small[n] if n in small else region.parameter(n) for n in node.inputs]
                if any(n.ndim and n.shape != small[total].shape for n in operands):
                    return None
                first = small[node] = first or apply(node.op, *operands)
            elif isinstance(node.op, Elementwise) and node.ndim == x.ndim:
                if not all(_stands_for(n, x, gone) for n in node.inputs if n in small):
                    return None  # read along other axes than those that are left of x
                operands = [
                    expand_dims(small[n], reduced) if n in small
                    else turned if n is x else region.parameter(n, axes, x.ndim) if n.ndim else region.parameter(n)
                    for n in node.inputs
                ]  # fmt: skip
                out = apply(node.op, *operands)
                break
            else:
                return None
            readers = [reader for reader in region.old.nodes if node in reader.inputs and is_operation(reader)]
            if len(readers) != 1:
                return None
            node = readers[0]
    word = _operand(total, x)
    said = Message("flip.reduced_last", {"name": total.op.word})
    if word:
        moved = f"np.moveaxis({word}, {_axes_text(gone)}, {_axes_text(range(-len(gone), 0))})"
        other = f"{word}.T" if x.ndim == 2 else moved
        said = Message("flip.reduced_last_of", {"name": total.op.word, "other": other})
    return region.finished(said, small[total], first or out, out)


def _reorders(move: Node, value: Node) -> bool:
    """Do the elements of a value lie along other axes, or the other way round, where it is moved?"""
    if not isinstance(move.op, View):
        return [n for n in move.shape if n != 1] != [n for n in value.shape if n != 1]
    seen = [(axis, offset, step) for offset, step, axis in move.op.map if axis is not None and move.shape[axis] != 1]
    return seen != sorted(seen) or any(offset or step != 1 for _, offset, step in seen)


def _stands_for(value: Node, x: Node, gone: Sequence[int]) -> bool:
    """Does a reduction's result meet x as with keepdims=True: each axis that is left where it was?"""
    shape = (1,) * (x.ndim - value.ndim) + tuple(value.shape)
    return shape == tuple(1 if axis in gone else n for axis, n in enumerate(x.shape))


def _summed(region: _Region, edge: Edge) -> Alternative | None:
    """np.tanh(a @ b)  ->  np.tanh((a[:, None, :] * b.T).sum(axis=2)), and the same of an operand: np.exp(a) @ b"""
    product = edge.consumer if isinstance(edge.consumer.op, MatMul) else edge.producer
    if isinstance(product.op, MatMul) and int(product.type.count) * int(product.inputs[0].shape[-1]) > SMALL_WORK:
        return None
    if product is edge.consumer:
        return _operand_summed(region, edge)
    if not isinstance(product.op, MatMul) or any(node.ndim != 2 for node in product.inputs):
        return None
    reader = (edge.consumer, product) if not is_move(edge.consumer) else region.reader(product)
    if reader is None or not isinstance(reader[0].op, Elementwise) or reader[0].ndim != 2:
        return None
    a, b = product.inputs
    with region.graph.building():
        total = _sum_of_products(region.parameter(a), region.parameter(b))
        operands = [total if node is reader[1] else region.parameter(node) for node in reader[0].inputs]
        out = apply(reader[0].op, *operands)
    return region.finished(_product_said(product), total, out)


def _operand_summed(region: _Region, edge: Edge) -> Alternative | None:
    value, product = edge.producer, edge.consumer
    a, b = product.inputs
    if not isinstance(value.op, Elementwise) or any(node.ndim != 2 for node in product.inputs):
        return None
    with region.graph.building():
        inner = apply(value.op, *(region.parameter(node) for node in value.inputs))
        left, right = (inner if node is value else region.parameter(node) for node in (a, b))
        total = _sum_of_products(left, right)
    row = "again_for_columns" if a is value else "again_for_rows"
    said = Message(f"flip.{row}", {"what": _product_said(product), "name": value.op.word})
    return region.finished(said, inner, total)


def _sum_of_products(a: Node, b: Node) -> Node:
    return apply(Sum((2,)), apply(Mul(), expand_dims(a, (1,)), expand_dims(transpose(b), (0,))))


def _product_said(product: Node) -> Message:
    """What it would be, in code where the product is the program's own, and how much work its loops have."""
    found = _factors(product)
    work = int(product.type.count) * int(product.inputs[0].shape[-1])
    if found is None:
        return Message("flip.products", {"name": product.op.word, "work": work})
    code = f"({found[0]}[:, None, :] * {found[1]}).sum(axis=2)"
    return Message("flip.products_in_code", {"name": product.op.word, "work": work, "code": code})


def _factors(product: Node) -> tuple[str, str] | None:
    """The first factor and the second one turned, as the program writes them: `a @ b`, `np.dot(a, b)`, `a.dot(b)`."""
    if any(of_one_expression(node, product) and not isinstance(node.op, (Cast, Parameter)) for node in product.inputs):
        return None  # what is multiplied is no value of the program
    match expression(product):
        case ast.BinOp(op=ast.MatMult(), left=a, right=b):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="dot" | "matmul"), args=[a, b], keywords=[]):
            pass
        case ast.Call(func=ast.Attribute(value=a, attr="dot"), args=[b], keywords=[]):
            pass
        case _:
            return None
    left, right = _in_brackets(a), _in_brackets(b)
    return left, right.removesuffix(".T") if right.endswith(".T") else f"{right}.T"


def _in_brackets(part: ast.expr) -> str:
    """An expression as it is written before a dot or a bracket."""
    text = ast.unparse(part)
    return text if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({text})"


def _picked_first(region: _Region, edge: Edge) -> Alternative | None:
    """np.exp(x)[rows]  ->  np.exp(x[rows])"""
    value, pick = edge.producer, edge.consumer
    if not isinstance(value.op, Elementwise) or not isinstance(pick.op, (Take, Gather)) or pick.inputs[0] is not value:
        return None
    if any(node.ndim and node.shape != value.shape for node in value.inputs):
        return None
    with region.graph.building():
        indices = [region.parameter(node) for node in pick.inputs[1:]]
        operands = [
            apply(pick.op, region.parameter(node), *indices) if node.ndim else region.parameter(node) for node in value.inputs
        ]
        out = apply(value.op, *operands)
    picked = next((operand for operand in operands if isinstance(operand.op, (Take, Gather))), None)
    if picked is None:
        return None
    names = [_operand(value, node) for node in value.inputs if node.ndim]
    which = " and ".join(names) if all(names) else f"what {value.op.word} reads"
    said = Message("flip.picked_first", {"pick": pick.op.word, "which": which, "name": value.op.word})
    return region.finished(said, picked, out)


def _operand(reader: Node, node: Node) -> str:
    """An operand of an operation, as the program writes it there; "" where it writes no such thing."""
    written = expression(reader)
    if written is None or of_one_expression(reader, node):
        return ""
    names = {part.id for part in ast.walk(written) if isinstance(part, ast.Name)}
    if node.op.is_parameter:
        return node.name if node.name in names else ""
    made = expression(node)
    for part in ast.walk(written):
        if isinstance(part, ast.Name) and part.id == node.called:
            return part.id
        if made is not None and part is not written and ast.dump(part) == ast.dump(made):
            return _in_brackets(made)
    return ""


def _axes_text(axes: Sequence[int]) -> str:
    listed = list(axes)
    return str(listed[0]) if len(listed) == 1 else str(tuple(listed))


WAYS: dict[Any, Callable[[_Region, Edge], Alternative | None]] = {
    NotFused.REDUCED_OUTER_AXIS: _reduced_last, NotFused.LIBRARY_CALL: _summed, NotFused.GATHERED: _picked_first,
}  # fmt: skip
