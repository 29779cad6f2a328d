"""The values of a cluster that still reach memory between its kernels, each with why; and what fusion keeps out of memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from jitlab.ir import (
    Cluster,
    Edge,
    Moving,
    Node,
    Poly,
    Reason,
    Stored,
    Temporary,
    in_two,
    in_words,
    inner_nodes,
    is_operation,
    of_one_expression,
)
from jitlab.ir.programs.program import Buffer, Call, Finish, Gemm, Kernel, Partial, Store, walk
from jitlab.messages import Message
from jitlab.ops.base import Elementwise, Reduction
from jitlab.ops.control_flow import Branch, Loop
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.layout.views import Reshape, Update, View
from jitlab.ops.layout.windows import SlidingWindows
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass

from .fusion.groups import Group
from .fusion.stages import Stage
from .program_builder import Shared
from .sizes import Sizes
from .value_names import called, called_all

#: Views in NumPy: nothing is moved for them.
_VIEWS = (View, Reshape, SlidingWindows)


def temporaries(
    cluster: Cluster, kernels: Sequence[Kernel], temps: Sequence[Buffer], shared: Shared, edges: Sequence[Edge],
    groups: Sequence[Group],
) -> list[Temporary]:  # fmt: skip
    """One for each temporary buffer of the Program, in its order."""
    node_of = {buffer.name: node for node, buffer in shared.places.items()}
    known = {node.name: node for node in every(cluster.nodes)}
    copies = {copy.node.name: copy for copy in shared.copies}
    kept = {copy.node: copy.reason for copy in shared.copies}
    readers = _readers(cluster)
    whole = _Whole(cluster, [groups, *shared.bodies])
    makers: dict[str, tuple[str, str]] | None = None
    by_producer: dict[Node, list[Edge]] = {}
    for edge in edges:
        by_producer.setdefault(edge.producer, []).append(edge)
    result = []
    for buffer in temps:
        nbytes = size_of(buffer.shape, shared.sizes) * buffer.dtype.itemsize
        node = node_of.get(buffer.name)
        if node is not None:
            found = by_producer.get(node, [])
            consumers = tuple(edge.consumer for edge in found) or tuple(readers.get(node, ()))
            reason = found[0].reason if found else kept.get(node) or _why_stored(node, consumers, whole)
            result.append(Temporary(node.name, cluster.name, node, consumers, nbytes, reason))
            continue
        if makers is None:
            makers = _makers(kernels)
        kind, name = makers.get(buffer.name, ("copy", ""))
        maker = known.get(name, cluster.nodes[-1])
        copy = copies.get(maker.name)
        if kind == "partial":
            reason = _stored(Stored.PARTIAL_RESULTS, "blocks", name=called(maker))
        elif kind == "operand":
            reason = _stored(Stored.LIBRARY_OPERAND, "operand_rows", name=called(maker))
        elif copy is not None:
            reason = copy.reason
        else:
            reason = _stored(Stored.KEPT, "kept_before", name=called(maker))
        name = f"{maker.name} {'in blocks' if kind == 'partial' else 'operand' if kind == 'operand' else 'copy'}"
        result.append(Temporary(name, cluster.name, maker, (maker,), nbytes, reason))
    return result


def size_of(shape: Iterable[Poly], sizes: Sizes) -> int:
    """Elements of a buffer of these extents."""
    return math.prod(map(sizes.value, shape))


def moved_op_by_op(nodes: Iterable[Node]) -> int | None:
    """Bytes that NumPy moves when it runs the operations one by one, each distinct element of each once. None where nobody
    knows beforehand: a loop until a test says no, a branch, extents that change from turn to turn."""
    total = 0
    nodes = list(nodes)
    passing = _cast_in_passing(nodes)
    for node in nodes:
        if node in passing or _is_in_place(node):
            continue
        if isinstance(node.op, Loop):
            each = moved_op_by_op(node.op.body.nodes)
            if node.op.count is None or isinstance(node.op.count, Moving) or each is None:
                return None
            total += max(int(node.op.count), 0) * each
        elif isinstance(node.op, Branch) or any(isinstance(n, Moving) for n in node.shape):
            return None
        elif is_operation(node) and not isinstance(node.op, _VIEWS):
            cost = node.op.cost(node.type, *(source.type for source in node.inputs))
            wider = sum(source.type.nbytes - source.inputs[0].type.nbytes for source in node.inputs if source in passing)
            total += max(cost.read_bytes - wider - _read_again(node), 0) + cost.written_bytes
    return total


def _is_in_place(node: Node) -> bool:
    """Is it the store of a ufunc's result where the ufunc has written it itself: `a[1:] += b`, `np.add(a, b, out=c[0])`?"""
    is_store = isinstance(node.op, Update) and isinstance(node.inputs[1].op, Elementwise)
    return is_store and of_one_expression(node.inputs[1], node)


def _cast_in_passing(nodes: Sequence[Node]) -> set[Node]:
    """The casts that no array is made for: a ufunc or a sum of another dtype than its operand's casts it some thousand elements
    at a time."""
    return {
        source
        for node in nodes
        for source in node.inputs
        if isinstance(source.op, Cast) and isinstance(node.op, (Elementwise, Reduction)) and of_one_expression(source, node)
    }


def _read_again(node: Node) -> int:
    """Bytes of elements that several inputs of an operation are, or that one input repeats: views of one array."""
    inputs: dict[Node, int] = {}
    for source in node.inputs:
        root = source
        while isinstance(root.op, _VIEWS):
            (root,) = root.inputs
        inputs[root] = inputs.get(root, 0) + source.type.nbytes
    return sum(max(nbytes - root.type.nbytes, 0) for root, nbytes in inputs.items())


def every(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes and those of the bodies in them."""
    for node in nodes:
        yield node
        yield from (inner for inner, _, _ in inner_nodes(node))


def _readers(cluster: Cluster) -> dict[Node, list[Node]]:
    found: dict[Node, list[Node]] = {}
    for node in every(cluster.nodes):
        for source in dict.fromkeys(node.inputs):
            found.setdefault(source, []).append(node)
    return found


@dataclass
class _Whole:
    """A cluster with its bodies; looked through where it is asked for."""

    cluster: Cluster
    blocks: Sequence[Sequence[Group]]

    @lazy
    def carried(self) -> set[Node]:
        """What bodies give: loops carry it, branches hand it on."""
        return {n for node in every(self.cluster.nodes) for graph in getattr(node.op, "graphs", ()) for n in graph.outputs}

    def readers(self, node: Node) -> list[Stage]:
        """The stages of its own nest that read a value."""
        groups = (group for groups in self.blocks for group in groups if node in group.nodes)
        return [stage for group in groups for stage in group.stages if node in stage.reads]


def _why_stored(node: Node, consumers: Sequence[Node], whole: _Whole) -> Reason:
    """Why a value lies in memory although no edge was cut: one kernel makes and reads it, or nothing reads it."""
    if any(hasattr(reader.op, "graphs") for reader in consumers):
        return _stored(Stored.LOOP_VALUE, "body_reads", name=called(node))
    if node in whole.carried or node.op.name == "Item" or hasattr(node.op, "graphs"):
        return _stored(Stored.LOOP_VALUE, "carried", name=called(node))
    stages = whole.readers(node)
    if not consumers and not stages:
        return in_two(Stored.UNREAD, Message("stored.unread", {"name": called(node)}), ":", Message("stored.may_raise"))
    own = {stage.node for stage in stages}
    late = [stage for stage in stages if not own.isdisjoint(stage.reads)] or stages
    readers = [n for stage in late for n in stage.computed if node in n.inputs and is_operation(n)] or consumers
    if len(readers) > 1:
        return _stored(Stored.KEPT, "later_loop_of", readers=called_all(readers), name=called(node))
    return _stored(Stored.KEPT, "later_loop", reader=called_all(readers), name=called(node))


def _stored(code: Stored, row: str, **args: str) -> Reason:
    return in_words(code, Message(f"stored.{row}", args))


def _makers(kernels: Sequence[Kernel]) -> dict[str, tuple[str, str]]:
    """What fills each buffer that is no value's own ("partial", "operand" or "copy"), and for which operation, by its name."""
    found: dict[str, tuple[str, str]] = {}
    written: dict[str, tuple[str, str]] = {}
    for kernel in kernels:
        for s in walk(kernel.body):
            if isinstance(s, (Partial, Finish)):
                for buffer in s.partials:
                    if buffer.name not in found:
                        found[buffer.name] = "partial", _name_of(s.accumulator.op, kernel)
            elif isinstance(s, (Call, Gemm)):
                for buffer in s.ins if isinstance(s, Call) else (s.a, s.b):
                    found.setdefault(buffer.name, ("operand", _origin(s)))
            elif isinstance(s, Store):
                written[s.buffer.name] = "copy", _origin(s)
    return written | found


def _name_of(op: object, kernel: Kernel) -> str:
    """The operation whose accumulator this is: its steps know."""
    for s in walk(kernel.body):
        accumulator = getattr(s, "accumulator", None)
        if accumulator is not None and accumulator.op is op and getattr(s, "origins", None):
            return _origin(s)
    return ""


def _origin(s: object) -> str:
    return next((origin.name for origin in sorted(getattr(s, "origins", ()))), "")
