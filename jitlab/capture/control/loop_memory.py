"""Which arrays the names of a loop stand for: in an iteration, that is what the one before left, and after the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jitlab.capture.guards.leaves import WHICH
from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.ir import Extent, Moving, Node, Poly, poly
from jitlab.ops.layout.views import View
from jitlab.ops.leaf_operations import Parameter
from jitlab.support.lazy_dataclass import dataclass

from .blocks import again
from .chosen_memory import OWN, Chosen, Origin, as_number, ends_here, is_array, origin, resolved

if TYPE_CHECKING:
    from .looping import Bound, Entry, LoopTracer
    from .staging import Side


@dataclass(eq=False)
class Handed:
    """An array that an iteration takes from the one before: what it is in the first one, and what the next one is handed."""

    tensor: Tensor
    start: Any
    first: Origin = OWN
    next: Any = None  # None: the loop does not change it
    among: dict[int, Tensor] = field(default_factory=dict)
    own: bool = False  # may it be an array that an iteration made?
    part_of: Cell | None = None
    which: Node | None = None  # the parameter that says which array it is, where that is asked for


class LoopMemory:
    """What the arrays are that a loop carries and leaves, found when its body has been traced."""

    def __init__(self, tracer: LoopTracer, side: Side, changed: list[str], bound: Bound) -> None:
        self.tracer, self.capture, self.body = tracer, tracer.capture, side.block
        self.handed: dict[Cell, Handed] = {}
        self.chosen: list[Chosen] = []
        self.late: list[Callable[[], None]] = []
        self.owners: dict[Cell, Callable[[], Tensor]] = {}
        for name, pairs in bound.items():
            initial = tracer.carried[name].initial
            for k, (tensor, _) in enumerate(pairs):
                if is_array(tensor):
                    handed = self.handed[tensor._cell] = Handed(tensor, None if initial is None else initial[k])
                    handed.own = not is_array(handed.start)
                    if is_array(handed.start):
                        handed.first = resolved(self.capture, handed.start)
                        handed.among.update(handed.first.among)
                    if name in changed:
                        handed.next = side.leaves[name][k]
        self.spread()
        leaves = [leaf for name in (*changed, "return") for leaf in side.leaves.get(name, ())]
        self.origins = {id(leaf): self.origin(leaf) for leaf in leaves}

    def spread(self) -> None:
        """Find all arrays that a name may stand for in some iteration; none of them may be written in one."""
        grows = True
        while grows:
            grows = False
            for handed in self.handed.values():
                found = OWN if handed.next is None else self.origin(handed.next)
                if found.part_of is not None and handed.part_of is None:
                    handed.part_of, grows = found.part_of, True
                if not found.among.keys() <= handed.among.keys() or (handed.next is not None and found.own and not handed.own):
                    handed.among.update(found.among)
                    handed.own = handed.own or found.own
                    grows = True
        for handed in self.handed.values():
            if handed.next is not None:
                for other in handed.among.values():
                    self.refuse_moved(other._cell.reaches())
                if handed.part_of is not None:
                    self.refuse_moved([handed.part_of])

    def refuse_moved(self, cells: Any) -> None:
        for cell in cells:
            entered = self.body.cells.get(cell)
            if entered is not None and entered.has_moved:
                raise self.tracer.refusal("aliasing", "written_sometimes")

    def origin(self, value: Any) -> Origin:
        """Which memory a value has at the end of the body."""
        with again(self.capture, self.body):
            return origin(self.capture, value, self.body, self.of_handed)

    def of_handed(self, value: Tensor) -> Origin | None:
        handed = self.handed.get(value._cell)
        if handed is None:
            return None
        if handed.next is None and is_array(handed.start) and not value._path:
            return handed.first
        if handed.part_of is not None or not handed.among:
            return Origin(part_of=handed.part_of)
        if value._path:
            return Origin(part_of=next(iter(handed.among.values()))._cell)
        if handed.which is None:
            handed.which = self.body.graph.append(Node(Parameter(WHICH.type), (), WHICH.type, name="which"))
        return Origin(handed.which, dict(handed.among), handed.own)

    # ---- after the loop
    def last(self, leaf: Any) -> Tensor | None:
        """A view of an array from outside that the last iteration makes, where it is known that there is one."""
        tracer = self.tracer
        if not is_array(leaf) or leaf._cell.home is self.body.graph or tracer.count is None or not tracer.runs():
            return None
        found = Tensor(leaf._cell, tuple(map(self.of_last, leaf._path))) if leaf._path else leaf
        found._locked = leaf._locked
        return None if ends_here(self.capture, found) else found

    def of_last(self, step: Any) -> Any:
        shape = tuple(map(self.at_last, step.shape))
        if isinstance(step, View):
            return View(tuple((self.at_last(offset), self.at_last(by), axis) for offset, by, axis in step.map), shape)
        return replace(step, shape=shape)

    def at_last(self, n: int) -> int:
        """A number of a view, in the last iteration."""
        tracer = self.tracer
        if not isinstance(n, Moving) or tracer.symbol not in n.moving or tracer.count is None:
            return n
        expr = n.expr.substitute({tracer.symbol: poly(tracer.count) - Poly.constant(1)})
        known = self.capture.root.symbol_values()
        around = {outer.symbol: int(outer.index) for outer in self.capture.tracers}
        if expr.value is not None:
            return expr.value
        if not set(expr.symbols) <= {*known, *around}:
            return n
        value, moving = expr.evaluate({**known, **around}), frozenset(expr.symbols) & frozenset(around)
        return Moving.of(value, expr, moving) if moving else Extent(value, expr)

    def entries(self, leaf: Any, start: Any, parameter: Tensor | None, result: Callable[[], Tensor]) -> Iterator[Entry]:
        """The number that says which array `result()` is, where it may be one from outside.

        `start` is what there is without an iteration, `parameter` stands for it in the body.
        """
        from .looping import Entry

        if not (is_array(leaf) or is_array(start)):
            return
        found = self.origins[id(leaf)]
        among, handed = dict(found.among), None if parameter is None else self.handed.get(parameter._cell)
        first = resolved(self.capture, start) if is_array(start) else OWN
        if not self.tracer.runs():
            among.update(first.among)
        if found.part_of is not None:
            self.late.append(partial(_is_part, result, found.part_of))
            among = {}
        elif found.is_own and is_array(leaf):
            owner = self.owners.setdefault(leaf._cell, result)
            if owner is not result:  # two names for one array
                self.late.append(partial(_is_part_of_other, result, owner))
        if not among and (handed is None or handed.which is None):
            return
        with again(self.capture, self.body) as graph:
            following = graph.own(as_number(found.which))

        own = found.own or not self.tracer.runs() and not is_array(start)

        def take(item: Node) -> None:
            if among:
                self.chosen.append(Chosen(item, among, result(), own))

        parameters = {} if handed is None or handed.which is None else {self.body: handed.which}
        yield Entry(as_number(first.which), WHICH, following, parameters, take)

    def settle(self) -> None:
        """The Loop stands."""
        for step in self.late:
            step()
        for chosen in self.chosen:
            chosen.settle()


def _is_part_of_other(result: Callable[[], Tensor], owner: Callable[[], Tensor]) -> None:
    if result() is not owner():
        _is_part(result, owner()._cell)


def _is_part(result: Callable[[], Tensor], whole: Cell) -> None:
    result()._cell.stands_for_part_of(whole, by_data=True)

