"""A block of nodes to lower: a cluster's, or those of a body; and which of its arrays may change in place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from jitlab.ir import Node, poly
from jitlab.ir.graphs.graph import must_run
from jitlab.ops.control_flow import Branch, Define, Loop
from jitlab.ops.host_operations import SEVERAL, Item
from jitlab.ops.layout.indexing import Scatter
from jitlab.ops.layout.views import Update, View, identity_map
from jitlab.ops.leaf_operations import Constant, Length
from jitlab.ops.library_operations import Library
from jitlab.support.lazy_dataclass import dataclass

#: An update that leaves no more elements of any axis as they are is one of all but a rim.
WIDEST_RIM = 16


@dataclass(eq=False)
class Block:
    """`outputs` get memory of their own. In a body (`ordered`) 0-d values are bound in order and `results` are what the body
    gives; each array among them ends in the place of its target, an input that the body may overwrite."""

    nodes: list[Node]
    outputs: list[Node]
    inputs: list[Node]
    owned: set[Node] = field(default_factory=set)  # the inputs that may be overwritten
    ordered: bool = False
    results: list[Node] = field(default_factory=list)
    targets: dict[int, Node] = field(default_factory=dict)  # number of a result -> the input in whose place it ends
    finals: dict[int, tuple[Node, Node]] = field(default_factory=dict)  # result -> (its value, the update that moves it)
    _order: list[tuple[Node, Node]] = field(default_factory=list)  # the finals in the order they run
    _moves: dict[tuple[Node, Node], tuple[Node, Node]] = field(default_factory=dict)  # one for each, however often it is asked

    @property
    def all_nodes(self) -> list[Node]:
        """The nodes, then the values and stores that bring results to their places."""
        return [*self.nodes, *(value for value, _ in self._order), *(update for _, update in self._order)]

    def move_results(self, in_place: dict[Node, Node]) -> None:
        """Add a store for each result that does not end in its place, over the last version that lies there."""
        last = {root(node, in_place): node for node in self.nodes}
        self.finals = {}
        for number, target in self.targets.items():
            value = self.results[number]
            if root(value, in_place) is not target:
                key = (value, last.get(target, target))
                if key not in self._moves:
                    self._moves[key] = _move(value, *key[1:], name=target.name)
                self.finals[number] = self._moves[key]
        self._order = _in_order(list(self.finals.values()))

    def forget_moves(self) -> None:
        self.finals, self._order = {}, []

    @property
    def unread(self) -> set[Node]:
        """What may raise for the values that it is given, or draws, and has to run for that alone: nobody reads its result."""
        read = {*self.outputs, *self.results}
        for node in reversed(self.all_nodes):
            if not isinstance(node.op, Item) or node in read:
                read.update(node.inputs)
        return {node for node in self.nodes if must_run(node.op) and node not in read}

    @property
    def needed(self) -> set[Node]:
        """What has to be computed: outputs, numbers that a body gives, arrays in their places, what may raise."""
        wanted = {*self.outputs, *self.unread}
        for number, node in enumerate(self.results):
            wanted.add(self.finals[number][1] if number in self.finals else node)
        return wanted


def _in_order(moves: list[tuple[Node, Node]]) -> list[tuple[Node, Node]]:
    """Results that read what another one overwrites are moved before it, unless they do so both ways."""
    left, result = list(moves), []
    reads = {value: _behind(value) for value, _ in moves}
    while left:
        free = [m for m in left if not any(m[1].inputs[0] in reads[value] for value, _ in left if value is not m[0])]
        result.append(free[0] if free else left[0])
        left.remove(result[-1])
    return result


def _behind(value: Node) -> set[Node]:
    """The nodes a value is computed from."""
    seen, todo = {value}, [value]
    while todo:
        for source in todo.pop().inputs:
            if source not in seen:
                seen.add(source)
                todo.append(source)
    return seen


def with_items(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with an Item for each array result of a loop or branch, and for each result of a call, read or not."""
    have = {(n.inputs[0], n.op.index) for n in nodes if isinstance(n.op, Item)}
    result = []
    for node in nodes:
        result.append(node)
        if has_several(node):
            types = node.op.types if is_control(node) else node.op.results(*(source.type for source in node.inputs))
            for k, type in enumerate(types):
                if (type.ndim or not is_control(node)) and (node, k) not in have:
                    result.append(Node(Item(k, type), [node], type, name=f"{node.name}_{k}", sources=node.sources))
    return result


def root(node: Node, in_place: dict[Node, Node]) -> Node:
    """The first version of an array, whose place this one has taken over."""
    while node in in_place:
        node = in_place[node]
    return node


def overwritten(node: Node) -> Iterator[tuple[Node, Node]]:
    """(result, base): the new versions of arrays that an operation makes, each of which could take its base's place."""
    if isinstance(node.op, (Update, Scatter)):
        yield node, node.inputs[0]
    elif isinstance(node.op, Item) and is_control(node.inputs[0]):
        base = carried_input(node)
        if base is not None and node.ndim:
            yield node, base


def is_control(node: Node) -> bool:
    return isinstance(node.op, (Loop, Branch))


def has_several(node: Node) -> bool:
    """Does it give what Items read?"""
    return is_control(node) or (isinstance(node.op, Library) and node.dtype == SEVERAL)


def carried_input(item: Node) -> Node | None:
    """The input of a loop or branch that a result is a new version of; None for a result made inside."""
    (node,) = item.inputs
    where = item.op.index if isinstance(node.op, Loop) else branch_base(node.op, item.op.index)
    if where is None:
        return None
    return node.inputs[where] if isinstance(node.op, Loop) else node.inputs[1 + where]


def branch_base(op: Branch, number: int) -> int | None:
    """Which of its captures a branch's array result is a version of: on both sides, or on one if the other side makes none."""
    found = [graph_base(graph.outputs[number], graph.parameters) for graph in op.graphs]
    bases = [base for base in found if base is not None]
    return bases[0] if bases else None


def graph_base(node: Node, parameters: Sequence[Node]) -> int | None:
    """The parameter that a node is a version of, through updates, loops and branches."""
    while not node.op.is_parameter:
        base = next((base for _, base in overwritten(node)), None)
        if base is None:
            return None
        node = base
    return parameters.index(node)


def covers(update: Node) -> bool:
    """Does an update replace every element of its base?"""
    op, base = update.op, update.inputs[0]
    if not isinstance(op, Update) or len(op.shape) != base.ndim:
        return False
    same = all(poly(n) == poly(m) for n, m in zip(op.shape, base.shape, strict=True))
    whole = all((poly(o).value, poly(s).value, a) == (0, 1, i) for i, (o, s, a) in enumerate(op.map))
    return same and whole


def rim(update: Node) -> tuple[int, ...] | None:
    """How many elements of each axis an update leaves as they are, where it replaces all but a rim of its base: a few of each
    axis, whatever the sizes; else None."""
    op = update.op
    if not isinstance(op, Update) or len(op.shape) != update.inputs[0].ndim:
        return None
    base = update.inputs[0]
    if any((poly(step).value, axis) != (1, i) for i, (_, step, axis) in enumerate(op.map)):
        return None
    left = [(poly(n) - poly(m)).value for n, m in zip(base.shape, op.shape, strict=True)]
    widths = tuple(width for width in left if width is not None and width <= WIDEST_RIM)
    return widths if len(widths) == base.ndim and any(widths) else None


def is_number(node: Node) -> bool:
    """A 0-d value that needs no order: constants and lengths are the same everywhere."""
    return isinstance(node.op, (Constant, Length))


def binds(node: Node) -> bool:
    """In a body, is this a 0-d value to be computed once, at its place in the order?"""
    return node.ndim == 0 and not is_number(node) and not is_control(node) and not isinstance(node.op, (Item, Define, Library))


def _move(value: Node, base: Node, name: str) -> tuple[Node, Node]:
    """The value and the update that stores it over all of `base`."""
    entries, shape = identity_map(base.ndim), base.shape
    copy = Node(View(entries, shape), [value], base.type, name=f"{value.name}_moved", sources=value.sources)
    copy.called, copy.within = value.called, value.within
    return copy, Node(Update(entries, shape), [base, copy], base.type, name=f"{name}_next", sources=value.sources)
