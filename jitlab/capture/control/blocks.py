"""Blocks: the sub-graphs in which the bodies of loops and the sides of branches are traced.

While a block is traced it is the capture's graph. Values of the graphs around it become parameters where they are first used;
a cell of an array from outside is *entered*: it has a parameter for its value, and goes on from there. When the block ends the
cells are put back, and which of them have moved is known: that is what a loop carries and what a branch gives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from jitlab.capture.effect_log import Memory, restored
from jitlab.capture.numpy_calls.host_fallback import NotReplayable, effect_of
from jitlab.capture.numpy_calls.numpy_traits import a_kind
from jitlab.capture.positions import describe, here
from jitlab.capture.tracers.tensor import Cell, inaccessible
from jitlab.errors import Signal
from jitlab.ir import Graph, Node, NotRolled, current_bounds
from jitlab.ops.leaf_operations import Constant, Length, Parameter
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import contextmanager

from .purity import IMMUTABLE, READING, assigns_outside

if TYPE_CHECKING:
    from jitlab.capture.state import Capture
    from jitlab.capture.tracers.arrays import Arrays


class Again(Signal):
    """A loop's body has to be traced once more, with what has been learnt. `tracer`: of that loop, None for the innermost."""

    def __init__(self, tracer: Any = None) -> None:
        super().__init__()
        self.tracer = tracer


class BodyGraph(Graph):
    """A graph inside another: what its operations read of the graphs around it becomes its parameters."""

    def __init__(self, name: str, outer: Graph) -> None:
        super().__init__(name)
        self.outer = outer
        self.mine: set[Node] = set()
        self.captures: dict[Node, Node] = {}  # nodes of the graph around -> the parameters that stand for them

    def add(self, op: Any, *inputs: Node, sources: Any = None, name: str | None = None) -> Node:
        return super().add(op, *map(self.own, inputs), sources=sources, name=name)

    def append(self, node: Node) -> Node:
        self.mine.add(node)
        return super().append(node)

    def own(self, node: Node) -> Node:
        """The node that stands for a value here: itself, or a parameter for one of the graphs around."""
        if node in self.mine:
            return node
        if isinstance(node.op, (Constant, Length)) and not node.shape:
            return self._again(node)
        if isinstance(self.outer, BodyGraph):
            node = self.outer.own(node)
        known = self.captures.get(node)
        if known is None:
            known = self.captures[node] = self.parameter(node)
        return known

    def _again(self, node: Node) -> Node:
        """A constant is written down once more: nobody has to pass it in."""
        known = self.captures.get(node)
        if known is None or known not in self.mine:
            known = self.captures[node] = super().add(node.op, sources=node.sources)
            known.weak = node.weak
        return known

    def parameter(self, stands_for: Node) -> Node:
        """A new parameter of a node's type."""
        node = Node(Parameter(stands_for.type), (), stands_for.type, name=stands_for.name)
        node.weak = stands_for.weak
        return self.append(node)

    def finished(self, parameters: list[Node], outputs: list[Node], sizes: dict[str, int]) -> Graph:
        """The plain graph with these parameters, without what no output needs."""
        graph = Graph(self.name, parameters, list(self.nodes), outputs, sizes=dict(sizes))
        graph.scope_count, graph.marked_only = self.scope_count, self.marked_only
        graph._names = dict(self._names)
        return graph.without_dead()


@dataclass
class Entered:
    """A cell from outside, in a block."""

    outside: Node  # its value in the graph around the block, when the block began to use it
    parameter: Node
    reads: dict[Any, Node]
    written: bool
    end: Node | None = None  # its value when the block ended

    @property
    def has_moved(self) -> bool:
        return self.end is not None and self.end is not self.parameter


@dataclass(eq=False)
class Block:
    """A body or a side while it is traced, and what was found."""

    capture: Arrays
    graph: BodyGraph
    attempt: bool  # a loop that may be unrolled instead: what has effects on Python objects refuses first
    cells: dict[Cell, Entered] = field(default_factory=dict)
    made: dict[int, Any] = field(default_factory=dict)  # containers that the program made inside: it may change them
    repeats: bool = False  # a loop's: what it finds in a cell may be of an iteration before
    passed: dict[Node, Node] = field(default_factory=dict)  # parameters made for a value from outside -> that value

    def moved(self) -> list[Cell]:
        return [cell for cell, entered in self.cells.items() if entered.has_moved]

    def end(self, cell: Cell, outside: Node) -> Node:
        """The value of a cell at the end of the block."""
        entered = self.cells.get(cell)
        return self.graph.own(outside) if entered is None or entered.end is None else entered.end

    def outside(self) -> Iterator[tuple[Node, Node]]:
        """What it reads from outside: (the value there, its parameter)."""
        for entered in self.cells.values():
            yield entered.outside, entered.parameter
        for outside, parameter in self.graph.captures.items():
            if isinstance(parameter.op, Parameter):
                yield outside, parameter
        for parameter, outside in self.passed.items():
            yield outside, parameter

    def live(self, outputs: Sequence[Node]) -> set[Node]:
        """The nodes that these outputs (or effects) need."""
        live = set(outputs)
        for node in Graph("", [], self.graph.nodes, list(outputs)).without_dead().nodes:
            live.add(node)
            live.update(node.inputs)
        return live


@contextmanager
def block(capture: Arrays, name: str, *, attempt: bool = False, repeats: bool = False) -> Iterator[Block]:
    """Trace what runs inside into a graph of its own."""
    made = Block(capture, BodyGraph(name, capture.graph), attempt, repeats=repeats)
    journal, outer = len(capture.journal), capture.graph
    bounds = current_bounds.get()
    known = bounds.state() if bounds is not None else None
    capture.blocks.append(made)
    capture.graph = made.graph
    try:
        with made.graph.building():
            yield made
    finally:
        if bounds is not None and known is not None:
            bounds.restore(known, names=False)
        for cell, entered in made.cells.items():
            entered.end = cell.node
            cell.node, cell.reads, cell.written = entered.outside, entered.reads, entered.written
        del capture.journal[journal:]
        capture.blocks.pop()
        capture.graph = outer


@contextmanager
def again(capture: Arrays, made: Block) -> Iterator[BodyGraph]:
    """Go on at the end of a block: its cells have the values that they had there."""
    outer, capture.graph = capture.graph, made.graph
    before = {cell: (cell.node, cell.reads, cell.written) for cell in made.cells}
    for cell, entered in made.cells.items():
        assert entered.end is not None
        cell.node, cell.reads = entered.end, {}
    capture.blocks.append(made)
    journal = len(capture.journal)
    try:
        with made.graph.building():
            yield made.graph
    finally:
        for cell, entered in made.cells.items():
            entered.end = cell.node
            known = before.get(cell, (entered.outside, entered.reads, entered.written))
            cell.node, cell.reads, cell.written = known
        del capture.journal[journal:]
        capture.blocks.pop()
        capture.graph = outer


def enter(capture: Arrays, cell: Cell) -> None:
    """Make sure that a cell's value is one of the graph that is being traced."""
    if cell.home is capture.graph or (capture.blocks and cell in capture.blocks[-1].cells):
        return
    if cell.home is not capture.root and all(cell.home is not b.graph for b in capture.blocks):
        raise inaccessible(cell)
    inside = cell.home is capture.root
    for b in capture.blocks:
        if inside and cell not in b.cells:
            entered = Entered(cell.node, b.graph.parameter(cell.node), cell.reads, cell.written)
            b.cells[cell] = entered
            cell.node, cell.reads = entered.parameter, {}
        inside = inside or cell.home is b.graph


def close(
    blocks: Sequence[Block], own: Sequence[Sequence[Node]], outputs: Sequence[Sequence[Node]], sizes: dict[str, int]
) -> tuple[list[Node], list[Graph]]:
    """The values that some blocks read from outside, and their graphs: all take those after parameters of their own."""
    read: dict[Node, None] = {}
    for made, mine, wanted in zip(blocks, own, outputs, strict=True):
        live = made.live(wanted)
        read.update((outside, None) for outside, p in made.outside() if p in live and p not in mine)
    graphs = []
    for made, mine, wanted in zip(blocks, own, outputs, strict=True):
        chosen: dict[Node, Node] = {}
        same: dict[Node, Node] = {}
        for outside, parameter in made.outside():
            if parameter not in mine and outside in read:
                first = chosen.setdefault(outside, parameter)
                if first is not parameter:
                    same[parameter] = first
        if same:
            for node in made.graph.nodes:
                node.inputs = tuple(same.get(x, x) for x in node.inputs)
        parameters = [*mine, *(chosen.get(outside) or made.graph.parameter(outside) for outside in read)]
        graphs.append(made.graph.finished(parameters, [same.get(x, x) for x in wanted], sizes))
    return list(read), graphs


def refuse(capture: Arrays, code: str, row: Any, **args: Any) -> None:
    """Before a side effect: a loop that is traced on trial is not rolled. `row` and `args`: of NotRolled."""
    if any(b.attempt for b in capture.blocks):
        refusal, source = NotRolled(code, row, **args), here()
        raise NotRolled(code, "at", what=refusal.said, place=describe(source)) if source else refusal


def refuse_own(capture: Arrays, owner: Any) -> None:
    """Before a store into what the program made itself, outside of the block: each run decides whether it happens."""
    if capture.is_own(owner):
        raise NotReplayable("effect", "chosen_store", owner=a_kind(owner))


class Effects:
    """What the program did to Python's containers and objects since a point, to be taken back before a body is traced again."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], None]] = []
        self.reruns = 0  # bodies that are traced once more: they print nothing

    def before_call(self, capture: Arrays, function: Any, owner: Any) -> None:
        """A call that may do more than return a value comes next."""
        if capture.blocks and id(owner) not in capture.blocks[-1].made and not _is_harmless(function, owner):
            name = getattr(function, "__qualname__", type(function).__name__)
            refuse(capture, "effect", effect_of(name))
            if isinstance(owner, (list, dict, set)):
                refuse_own(capture, owner)
                self.undo.append(restored(owner))

    def before_filling(self, capture: Capture, x: Any) -> None:
        """`x op= v` comes next."""
        if type(x) in _FILLED and not (capture.blocks and id(x) in capture.blocks[-1].made):
            self.before_call(capture, _FILLED[type(x)], x)
            capture.effect(_FILLED[type(x)], x)

    def before_store(self, capture: Arrays, owner: Any, name: Any, *, is_item: bool) -> None:
        """An attribute or an item is about to be stored."""
        if not capture.blocks or id(owner) in capture.blocks[-1].made:
            return
        refuse(capture, "effect", "stores", owner=a_kind(owner))
        refuse_own(capture, owner)
        if is_item and isinstance(owner, (list, dict)):
            self.undo.append(restored(owner))
        elif not is_item and hasattr(owner, name):
            self.undo.append(partial(setattr, owner, name, getattr(owner, name)))

    def before_assigning(self, capture: Arrays, function: Any, memory: Memory | None) -> None:
        """A function of the program's comes next: a name around it that it assigns counts what each run does."""
        name = assigns_outside(function.__code__)[0] if capture.blocks else ""
        if name:
            refuse(capture, "effect", "function_assigns", function=function.__name__, name=name)
            if memory is None or memory.namespace(function, name) is None:
                raise NotReplayable("effect", "function_assigns", function=function.__name__, name=name)

    def back_to(self, point: int) -> None:
        while len(self.undo) > point:
            self.undo.pop()()

    @contextmanager
    def once_more(self) -> Iterator[None]:
        self.reruns += 1
        try:
            yield
        finally:
            self.reruns -= 1


#: Containers that `x op= v` changes, and what does the same.
_FILLED: dict[type, Callable[..., Any]] = {
    list: list.extend, set: set.update, dict: dict.update, deque: deque.extend, bytearray: bytearray.extend,
}  # fmt: skip
_HARMLESS_MODULES = frozenset({"math", "cmath", "operator", "_operator", "functools", "jitlab"})


def _is_harmless(function: Any, owner: Any) -> bool:
    """A function without effects: mathematics, types, methods that only read."""
    name = getattr(function, "__name__", "")
    if name == "jit_scope":
        return False
    if isinstance(owner, (list, dict, set)):
        return name in READING
    if isinstance(owner, IMMUTABLE) or isinstance(function, type):
        return True
    module = getattr(function, "__module__", None) or type(owner).__module__
    return module.split(".")[0] in (*_HARMLESS_MODULES, "scipy", "numpy")
