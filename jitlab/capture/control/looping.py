"""Loops as nodes: the body is traced once, and again where a type turns out wider; what it changes is carried.

Which names and arrays are carried is found, not declared: names that the body binds anew and an iteration or the program
behind the loop still wants, and cells that have moved when the body ends. Everything else that it reads is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.guards.leaves import (
    UNDEFINED,
    WHICH,
    Form,
    LeafType,
    Mismatch,
    Variables,
    described,
    fitted,
    fresh,
    is_same_type,
    joined,
    leaf_node,
    leaf_type,
    taken_apart,
)
from jitlab.capture.numpy_calls.functions import apply_operator
from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.positions import describe, here
from jitlab.capture.tracers.symbolic import LoopIndex
from jitlab.capture.tracers.tensor import Tensor
from jitlab.capture.tracers.tensor_array import TensorArray, Unprepared
from jitlab.errors import ControlFlowError, ControlFlowTypeError, ControlFlowValueError
from jitlab.ir import ArrayType, Extent, Moving, Node, NotRolled, Poly, Symbolic, plain, poly
from jitlab.ops.build_nodes import apply, constant, elementwise
from jitlab.ops.control_flow import Loop
from jitlab.ops.elementwise.arithmetic import Add
from jitlab.ops.elementwise.comparison import GreaterEqual, LogicalNot
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.creation import Fill
from jitlab.ops.leaf_operations import Parameter
from jitlab.support.lazy_dataclass import dataclass

from .blocks import Again, Block, again, block, close
from .conditions import condition, condition_node, left, run
from .exactness import watch_turns
from .jumps import Mixed, Outcome, Returned
from .loop_memory import LoopMemory
from .number_kinds import check_exact, give_kinds, kind_node
from .staging import Side, both, either, flags

if TYPE_CHECKING:
    from jitlab.capture.state import Capture

#: How often a body is traced at most until the types of what it carries settle.
MOST_RUNS = 8
_FLAG = LeafType(ArrayType((), np.dtype(bool)), None, True)


@dataclass(frozen=True)
class Names:
    """The names of a loop: what it assigns, and which of those are wanted after it, at its head, and by an iteration."""

    assigned: tuple[str, ...]
    after: tuple[str, ...]
    head: tuple[str, ...]
    reads: tuple[str, ...]
    targets: tuple[str, ...] = ()


@dataclass(eq=False)
class Carried:
    """A name with a value that an iteration takes from the one before."""

    form: Form
    kinds: list[LeafType]
    initial: list[Any] | None  # leaves; None: nothing yet (a placeholder that no iteration looks at)


@dataclass(eq=False)
class Entry:
    """One carried value of the Loop."""

    initial: Node
    kind: LeafType
    next: Node
    parameters: dict[Block, Node]
    take: Callable[[Node], None]  # what is done with the result


#: Names of a block -> the Tensors that they hold when it begins, and their parameters.
Bound = dict[str, list[tuple[Tensor, Node]]]


@dataclass(eq=False)
class Test:
    """The graph that is asked before each iteration."""

    block: Block
    result: Node
    stopped: Node | None  # the parameter that says that the loop was left
    bound: Bound


Traced = tuple[Side, list[str], Bound, Any, Test | None]


class LoopTracer:
    """One loop while it becomes a node. `must`: it has no other form, so what does not fit together is the user's error."""

    def __init__(
        self, capture: Capture, names: Names, variables: Variables, body: Callable[..., Outcome], *,
        count: int | None = None, element: Callable[[int], Any] | None = None, test: Callable[[], Any] | None = None,
        goes_on: Callable[[Any], Any] | None = None, start: Any = None, must: bool = True,
    ) -> None:  # fmt: skip
        self.capture, self.names, self.variables = capture, names, variables
        self.body, self.element, self.test = body, element, test
        self.count, self.start, self.must = count, start, must
        if goes_on is not None and element is not None:
            self.test = lambda: goes_on(element(self.index))
        self.endless = False  # its test is always True
        self.before = variables.values(names.assigned)
        self.carried: dict[str, Carried] = {}
        self.kept: set[str] = set()  # names whose arrays are written in place: they stay bound to them
        self.symbol = ""
        self.index: Any = 0
        self.bound: Bound = {}
        self.most: int | None = None  # iterations, by `set_loop_options`
        self.is_left = test is not None or goes_on is not None  # an iteration may be the last before its time
        self.limit: int | None = None  # iterations that one run does: with more, Python takes the call

    # ---- tracing
    def trace(self) -> tuple[Outcome, Any]:
        """Trace the loop and add its node. Gives how it was left, and whether by break: False or a traced bool."""
        capture = self.capture
        for name in self.names.reads:
            self.carry(name, self.before.get(name, UNDEFINED))
        done = len(capture.effects.undo)
        half_defined, capture.half_defined = capture.half_defined, {}
        try:
            for number in range(MOST_RUNS):
                try:
                    with capture.effects.once_more() if number else nullcontext():
                        found = self.once()
                except (Again, Unprepared) as signal:
                    if getattr(signal, "tracer", None) not in (None, self):
                        raise
                    self.prepare()
                    capture.effects.back_to(done)
                    continue
                finally:
                    self.variables.restore(self.before)
                return self.emit(*found)
        finally:
            if half_defined is not None:
                half_defined.update(capture.half_defined or {})
            capture.half_defined = half_defined
        raise self.refusal("type", "types_unsettled", times=MOST_RUNS)

    def prepare(self) -> None:
        """TensorArrays of which more is known now begin with their elements as one array."""
        for name in self.names.reads:
            value = self.before.get(name)
            if isinstance(value, TensorArray):
                self.carry(name, value)

    def carry(self, name: str, value: Any) -> None:
        """A name that an iteration may read: its value before the loop is the first."""
        if value is UNDEFINED or name in self.kept:
            return
        form, leaves = taken_apart(value)
        if leaves:
            self.carried[name] = Carried(form, [leaf_type(leaf) for leaf in leaves], leaves)

    def once(self) -> Traced:
        capture = self.capture
        self.index = index = capture.enter_loop(self.count)
        self.symbol = capture.loops[-1][0]
        bound: Bound = {}
        try:
            with block(capture, "body", attempt=not self.must, repeats=True) as made:
                self.bind(made, bound)
                self.bound = bound
                capture.tracers = (*capture.tracers, self)
                outcome = left(self.body) if self.element is None else left(self.body, self.element(index))
                side = Side(made, outcome, self.variables.values(self.names.assigned))
                self.check_aliases(made, side, bound)
                changed = self.changed(side, bound)
                for name in changed:
                    side.keep(name, side.values[name])
                if isinstance(outcome, (Returned, Mixed)):
                    side.keep("return", outcome.value)
                stop = self.stops(outcome)
                self.is_left = self.is_left or stop is not None
            for name in changed:
                self.settle(name, side)
            test = self.trace_test(stop is not None) if self.test is not None or stop is not None else None
        finally:
            capture.tracers = tuple(tracer for tracer in capture.tracers if tracer is not self)
            capture.leave_loop()
        return side, changed, bound, stop, test

    def bind(self, made: Block, bound: Bound) -> None:
        """Names hold parameters; what an iteration does not read of the one before has no value."""
        for name in self.names.assigned:
            if name in self.carried and name not in self.kept:
                carried = self.carried[name]
                tensors = []
                for kind in carried.kinds:
                    node = made.graph.append(Node(Parameter(kind.type), (), kind.type, name=name))
                    tensors.append(fresh(self.capture, node, kind))
                    if kind.among:
                        which = made.graph.append(Node(Parameter(WHICH.type), (), WHICH.type, name="kind"))
                        give_kinds(tensors[-1], which, kind.among)
                bound[name] = [(tensor, tensor._cell.node) for tensor in tensors]
                self.variables.set(name, carried.form.make(iter(tensors)))
            elif name not in self.names.reads:
                self.variables.set(name, UNDEFINED)

    def limit_turns(self, most: int) -> None:
        """What a turn does is put off, and where there are more, Python does it all."""
        self.limit = most

    # ---- what the body did
    def check_aliases(self, made: Block, side: Side, bound: Bound) -> None:
        """An array that is written in place stays the same array: it cannot be a value of its own in each iteration."""
        for name, parameters in bound.items():
            (_, before), (_, now) = taken_apart(self.before[name]), taken_apart(side.values[name])
            for k, (tensor, parameter) in enumerate(parameters):
                if tensor.is_scalar:
                    continue
                written = tensor._cell.node is not parameter
                stays = len(now) == len(parameters) and now[k] is tensor
                start = before[k] if k < len(before) else None
                entered = made.cells.get(start._cell) if isinstance(start, Tensor) else None
                moved = isinstance(start, Tensor) and entered is not None and start._cell.node is not entered.parameter
                if (written or moved) and not stays:
                    raise self.refusal("aliasing", "bound_anew", name=repr(name))
                if written or moved:  # by this name, or by another one: this one sees it
                    self.kept.add(name)
                    del self.carried[name]
                    raise Again

    def changed(self, side: Side, bound: Bound) -> list[str]:
        """The names that the loop gives or carries."""
        result = []
        for name, (form, kinds) in (self.capture.half_defined or {}).items():
            if name in self.names.reads and name not in bound and self.before.get(name) is UNDEFINED:
                self.carried[name] = Carried(form, kinds, None)
                raise Again
        for name in self.names.head:
            value = side.values[name]
            if name in bound:
                form, leaves = taken_apart(value)
                if form.key != self.carried[name].form.key or any(
                    x is not tensor for x, (tensor, _) in zip(leaves, bound[name], strict=True)
                ):
                    result.append(name)
            elif value is not UNDEFINED and value is not self.before[name]:
                result.append(name)
        return result

    def settle(self, name: str, side: Side) -> None:
        """The type of a name after an iteration is the one before it, or the body is traced again with a wider one."""
        form, leaves = side.forms[name], side.leaves[name]
        kinds = [leaf_type(leaf) for leaf in leaves]
        carried = self.carried.get(name)
        before = self.before[name]
        if carried is None:
            if name in self.names.reads and before is not UNDEFINED:
                self.changes_kind(name, before, side.values[name])
            if not leaves and before is not UNDEFINED and not self.runs():
                self.changes_kind(name, before, side.values[name])
            return
        if form.key != carried.form.key:
            if side.values[name] is None:
                hint = f"give {name} a value of the same type in each iteration"
                raise self.error(ControlFlowValueError, "none_after", hint, name=repr(name))
            raise self.error(ControlFlowTypeError, "other_structure", name=repr(name))
        wider = list(carried.kinds)
        for k, (mine, other) in enumerate(zip(carried.kinds, kinds, strict=True)):
            if self.is_settled(name, mine, other):
                continue
            started = leaf_type(carried.initial[k]) if carried.initial is not None else mine
            try:
                both = joined(mine, other, kinds=self.capture.policy.keeps_kinds)
            except Mismatch as mismatch:
                if started.weak and not other.weak and not mine.weak and mismatch.kind == "dtype":
                    among = mine.kinds | other.kinds if self.capture.policy.keeps_kinds else frozenset[int]()
                    wide = LeafType(ArrayType((), np.result_type(mine.dtype, other.dtype)), None, True, among)
                    both = self.from_weak(name, started, wide, other)
                else:
                    raise self.loop_mismatch(name, started, other, mismatch.kind) from None
            if not both.weak and mine.weak:
                both = self.from_weak(name, started, both, other)
            elif both == mine:
                continue
            wider[k] = both
        if wider != carried.kinds:
            carried.kinds = wider
            raise Again

    def is_settled(self, name: str, mine: LeafType, other: LeafType) -> bool:
        try:
            return is_same_type(mine, other, kinds=self.capture.policy.keeps_kinds)
        except NotRolled as refusal:
            raise NotRolled(refusal.code, "other_length", name=name) from None

    def from_weak(self, name: str, started: LeafType, wide: LeafType, other: LeafType) -> LeafType:
        """A Python number that becomes a NumPy scalar with the first iteration: it starts as one."""
        if not started.weak:
            raise self.loop_mismatch(name, started, other, "dtype")
        return wide

    # ---- errors and refusals
    def refusal(self, code: str, row: str, **args: Any) -> Exception:
        return (NotReplayable if self.must else NotRolled)(code, row, **args)

    def error(
        self, kind: type[ControlFlowError], row: str,
        hint: str = "give it that type before the loop, or another name in the loop", **args: Any,
    ) -> Exception:  # fmt: skip
        refusal = NotRolled("kind", row, **args)
        if not self.must:
            return refusal
        why = "the loop is traced once: every iteration has to give what the next one takes"
        return kind(str(refusal), where=describe(here()), why=why, hint=hint)

    def changes_kind(self, name: str, before: Any, after: Any) -> None:
        if before is None:
            hint = f"start with a value of the type that {name} has in the loop"
            raise self.error(ControlFlowValueError, "none_before", hint, name=repr(name), after=described(after))
        if after is None:
            raise self.error(ControlFlowValueError, "none_after", f"give {name} a value in each iteration", name=repr(name))
        kinds = {"before": described(before), "after": described(after)}
        raise self.error(ControlFlowTypeError, "other_structure_of", name=repr(name), **kinds)

    def loop_mismatch(self, name: str, before: LeafType, after: LeafType, kind: str) -> Exception:
        if kind == "shape":
            args = {"name": repr(name), "before": plain(before.type.shape), "after": plain(after.type.shape)}
            if not self.must or name in self.capture.loose_shapes:
                return self.refusal("shape", "loop_shape", **args)
            hint = "set_loop_options(shape_invariants=...) runs such a loop as plain Python"
            return self.error(ControlFlowValueError, "loop_shape", hint, **args)
        if kind == "layout":
            return self.refusal("layout", "loop_layout", name=repr(name))
        return self.error(ControlFlowTypeError, "loop_dtype", name=repr(name), before=before.dtype, after=after.dtype)

    # ---- the end of the loop
    def stops(self, outcome: Outcome) -> Any:
        """Whether this iteration is the last: None if never, True, or a traced bool."""
        ways = flags(outcome)
        broke, returned = ways["<broke>"], ways["<returned>"]
        if broke is False and returned is False:
            return None
        stop = returned if broke is False else broke if returned is False else either(broke, lambda: returned)
        return stop if isinstance(stop, bool) else condition(stop)

    def runs(self) -> bool:
        """Is it known that there is an iteration? (`while True` has one.)"""
        if self.endless:
            return True
        return self.count is not None and self.capture.bounds.decides(poly(self.count) - Poly.constant(1)) is True

    def trace_test(self, stops: bool) -> Test:
        """The graph that is asked before each iteration: the user's test, where the loop was not left."""
        capture = self.capture
        bound: Bound = {}
        stopped: Node | None = None
        with block(capture, "test", attempt=not self.must, repeats=True) as made:
            self.bind(made, bound)
            values = self.variables.values(self.names.assigned)
            if stops:
                stopped = made.graph.append(Node(Parameter(_FLAG.type), (), _FLAG.type, name="stopped"))
            go = capture.fresh(apply(LogicalNot(), stopped), is_scalar=True) if stopped is not None else True
            asked = go if self.test is None else run(self.test)
            self.endless = asked is True and self.test is not None
            if self.endless:
                asked = go
            elif go is not True and self.test is not None:  # the user's test is asked only where the loop goes on
                asked = both(go, partial(run, self.test))
            node = made.graph.own(condition_node(asked, "while loop"))
            now = self.variables.values(self.names.assigned)
            if any(now[name] is not values[name] for name in values):
                raise self.refusal("test", "test_binds")
        if made.moved():
            raise self.refusal("test", "test_writes")
        return Test(made, node, stopped, bound)

    # ---- the node
    def emit(
        self, side: Side, changed: list[str], bound: Bound, stop: Any, test: Test | None
    ) -> tuple[Outcome, Any]:
        capture = self.capture
        body = side.block
        entries: list[Entry] = []
        results: dict[str, dict[int, Any]] = {}
        memory = LoopMemory(self, side, changed, bound)
        for name in changed:
            results[name] = {}
            carried = self.carried.get(name)
            kinds = carried.kinds if carried is not None else [leaf_type(leaf) for leaf in side.leaves[name]]
            initial = self.initial_leaves(name, carried, kinds, side)
            if carried is None and initial is not None:
                kinds = [self.with_start(x, kind) for x, kind in zip(initial, kinds, strict=True)]
            for k, kind in enumerate(kinds):
                last = self.last_value(side.leaves[name][k], memory) if carried is None and stop is None else None
                if last is not None:
                    results[name][k] = last
                    continue
                tensors = {body: bound[name][k]} if name in bound else {}
                if test is not None and name in test.bound:
                    tensors[test.block] = test.bound[name][k]
                entries += self.leaf_entries(
                    side, name, k, kind, None if initial is None else initial[k], tensors, results[name], memory
                )
        for cell in dict.fromkeys((*body.moved(),)):
            capture.before_read(cell)
            kind = LeafType(cell.node.type, None, False)
            with again(capture, body):
                following = fitted(body.end(cell, cell.node), kind)
            parameters = {body: body.cells[cell].parameter}
            if test is not None and cell in test.block.cells:
                parameters[test.block] = test.block.cells[cell].parameter

            entries.append(Entry(cell.node, kind, following, parameters, partial(cell.move_on, ())))
        if self.limit is not None:
            entries.append(self.turns_entry(body, self.limit))
        gone: dict[str, Any] = {}
        outcome = self.outcome_entries(side, stop, test, entries, gone, memory)
        for name in bound:  # what did not change is passed in
            if name not in changed:
                self.pass_in(name, bound, body)
                if test is not None:
                    self.pass_in(name, test.bound, test.block)
        self.add_node(entries, body, test)
        memory.settle()
        for name in changed:
            self.variables.set(name, side.forms[name].make(iter([results[name][k] for k in range(len(side.leaves[name]))])))
        return outcome()

    def leaf_entries(
        self, side: Side, name: str, k: int, kind: LeafType, start: Any, tensors: dict[Block, tuple[Tensor, Node]],
        results: dict[int, Any], memory: LoopMemory,
    ) -> Iterator[Entry]:  # fmt: skip
        """What the loop carries for a leaf of a name: its value, and which kind of number and which array it is. `tensors`
        stand for it in the blocks."""
        capture, leaf = self.capture, side.leaves[name][k]
        with again(capture, side.block) as graph:
            following = fitted(graph.own(side.nodes[name][k]), kind)
        first = self.zeros(kind) if start is None else fitted(leaf_node(start), kind)
        after, result = self.left_kind(leaf, kind), partial(results.__getitem__, k)

        def take(item: Node) -> None:
            results[k] = fresh(capture, item, after)

        yield Entry(first, kind, following, {made: parameter for made, (_, parameter) in tensors.items()}, take)
        if kind.among:
            asked = {made: found.which for made, (x, _) in tensors.items() if (found := x._cell.kinds) is not None}
            yield self.kind_entry(leaf, start, kind, side.block, asked, result)
        yield from memory.entries(leaf, start, tensors[side.block][0] if side.block in tensors else None, result)

    def turns_entry(self, body: Block, limit: int) -> Entry:
        """Counts the iterations. One that may not have been the last is for Python to find out."""
        turn = body.graph.append(Node(Parameter(WHICH.type), (), WHICH.type, name="turn"))
        with again(self.capture, body):
            following = elementwise(Add(), turn, constant(np.int64(1)))
        return Entry(
            constant(np.int64(0)), WHICH, following, {body: turn},
            lambda item: watch_turns(self.capture, elementwise(GreaterEqual(), item, constant(np.int64(limit))), limit),
        )  # fmt: skip

    def with_start(self, start: Any, kind: LeafType) -> LeafType:
        """The type of what the loop leaves in a name that no iteration reads: without an iteration that is what was there."""
        return kind if self.runs() else joined(leaf_type(start), kind, kinds=self.capture.policy.keeps_kinds)

    def left_kind(self, leaf: Any, kind: LeafType) -> LeafType:
        """The type behind the loop of what is of the type `kind` in it."""
        last = leaf_type(leaf)
        return last if kind.among and self.runs() and not last.among and last.dtype == kind.dtype else kind

    def kind_entry(
        self, leaf: Any, start: Any, kind: LeafType, body: Block, parameters: dict[Block, Node], result: Callable[[], Tensor]
    ) -> Entry:
        """Which number `result()` is in the program."""
        for value in (leaf, start):
            if value is not None:
                check_exact(self.capture, value, kind)
        with again(self.capture, body) as graph:
            following = graph.own(kind_node(leaf))
        first = constant(np.int64(kind.kind)) if start is None else kind_node(start)
        after = self.left_kind(leaf, kind).among
        return Entry(first, WHICH, following, parameters, lambda item: give_kinds(result(), item, after) if after else None)

    def initial_leaves(self, name: str, carried: Carried | None, kinds: list[LeafType], side: Side) -> list[Any] | None:
        """What a name holds before the first iteration; None: nothing that anybody may look at."""
        if carried is not None:
            return carried.initial
        before = self.before[name]
        if before is not UNDEFINED:
            form, leaves = taken_apart(before)
            if form.key == side.forms[name].key and len(leaves) == len(kinds):
                try:
                    both = [joined(leaf_type(x), kind) for x, kind in zip(leaves, kinds, strict=True)]
                    if both == [replace(kind, among=frozenset()) for kind in kinds]:
                        return leaves
                    same = [replace(one, is_scalar=kind.is_scalar) for one, kind in zip(both, kinds, strict=True)] == kinds
                    if (same or self.capture.policy.keeps_kinds) and not self.runs():
                        return leaves
                except Mismatch as mismatch:
                    if not self.runs():
                        raise self.loop_mismatch(name, mismatch.mine, mismatch.other, mismatch.kind) from None
        if not self.runs() and name in self.names.after:
            if name in self.names.targets and self.start is not None and capture_wants(self.capture, kinds):
                return [self.start]
            if before is not UNDEFINED and kinds:
                self.changes_kind(name, before, side.values[name])
            self.check_runs(name)
        return None

    def check_runs(self, name: str) -> None:
        """A name that only the loop gives is used after it: it has to run once."""
        capture = self.capture
        from .traced_checks import add_run_check

        if self.test is not None and self.count is None and self.element is None:
            go = condition_node(run(self.test), "while loop")
        else:
            go = self.first_asked()
        add_run_check(capture, go, name)

    def first_asked(self) -> Node:
        """Does a `for` have a first iteration?"""
        if self.count is not None:
            assert isinstance(self.count, Moving)
            node: Node = self.capture.perform(apply_operator, "__gt__", LoopIndex(self.capture, self.count).tensor(), 0).node()
            return node
        index, self.index = self.index, 0
        assert self.test is not None
        answer = condition_node(run(self.test), "for loop")
        self.index = index
        return answer

    def last_value(self, leaf: Any, memory: LoopMemory) -> Any:
        """What an index or a view is after the last iteration, where that is known; None: the loop has to carry it."""
        if isinstance(leaf, Tensor):
            return memory.last(leaf)
        if not isinstance(leaf, Symbolic) or self.count is None or not self.runs():
            return None
        extent = leaf.extent
        if self.symbol not in extent.moving:
            return leaf
        expr = extent.expr.substitute({self.symbol: poly(self.count) - Poly.constant(1)})
        if expr.value is not None:
            return expr.value
        sizes = self.capture.root.symbol_values()
        return Extent(expr.evaluate(sizes), expr) if set(expr.symbols) <= set(sizes) else None

    def zeros(self, kind: LeafType) -> Node:
        zero = constant(np.zeros((), kind.dtype))
        if any(isinstance(n, Moving) and self.symbol in n.moving for n in kind.type.shape):
            raise self.refusal("shape", "moving_shape_kept")
        return self.capture.graph.add(Fill(kind.type.shape), zero) if kind.type.shape else zero

    def pass_in(self, name: str, bound: Bound, made: Block) -> None:
        """A name that the loop does not change: its parameter stands for the value before the loop."""
        _, leaves = taken_apart(self.before[name])
        for leaf, (tensor, parameter), kind in zip(leaves, bound[name], self.carried[name].kinds, strict=True):
            made.passed[parameter] = fitted(leaf_node(leaf), kind)
            if tensor._cell.kinds is not None:
                made.passed[tensor._cell.kinds.which] = kind_node(leaf)

    def outcome_entries(
        self, side: Side, stop: Any, test: Test | None, entries: list[Entry], gone: dict[str, Any], memory: LoopMemory
    ) -> Callable[[], tuple[Outcome, Any]]:  # fmt: skip
        """Carry how the loop was left. Gives what tells it once the node stands."""
        if stop is None:
            return lambda: (None, False)
        capture, body = self.capture, side.block
        assert test is not None and test.stopped is not None
        ways = flags(side.outcome)

        def flag(value: Any, key: str, parameters: dict[Block, Node]) -> None:
            with again(capture, body) as graph:
                node = graph.own(condition_node(value))

            def take(item: Node) -> None:
                gone[key] = capture.fresh(item, is_scalar=True)

            entries.append(Entry(constant(np.False_), _FLAG, node, parameters, take))

        if isinstance(stop, Node):
            with again(capture, body):
                stop = capture.fresh(stop, is_scalar=True)
        flag(stop, "stop", {test.block: test.stopped})
        returned = ways["<returned>"]
        if returned is False:
            return lambda: (None, gone["stop"])
        if ways["<broke>"] is not False:
            flag(returned, "returned", {})
        form, kinds = side.forms["return"], [leaf_type(leaf) for leaf in side.leaves["return"]]
        found: dict[int, Tensor] = {}
        for k, kind in enumerate(kinds):
            entries += self.leaf_entries(side, "return", k, kind, None, {}, found, memory)

        def outcome() -> tuple[Outcome, Any]:
            if self.endless and ways["<broke>"] is False:
                return Returned(form.make(iter(found.values()))), gone["stop"]
            flagged = gone.get("returned", gone["stop"])
            return Mixed(False, flagged, value=form.make(iter(found.values()))), gone["stop"]

        return outcome

    def add_node(self, entries: list[Entry], body: Block, test: Test | None) -> None:
        capture = self.capture
        blocks, outputs = [body], [[entry.next for entry in entries]]
        if test is not None:
            blocks.append(test.block)
            outputs.append([test.result])
        if not entries and not any(made.graph.must_run for made in blocks):
            return
        own = [[e.parameters.get(made) or made.graph.parameter(e.initial) for e in entries] for made in blocks]
        captures, graphs = close(blocks, own, outputs, capture.root.symbol_values())
        types = tuple(entry.kind.type for entry in entries)
        count = self.count
        if self.most is not None:
            count = self.most if count is None or int(count) > self.most else count
        elif self.limit is not None:
            count = self.limit
        loop = Loop(graphs[0], types, self.symbol, count, graphs[1] if test is not None else None)
        node = capture.graph.add(loop, *(entry.initial for entry in entries), *captures)
        items = [capture.graph.add(Item(k, entry.kind.type), node) for k, entry in enumerate(entries)]
        for entry, item in zip(entries, items, strict=True):
            entry.take(item)


def set_options(capture: Capture, most: Any, loose: Sequence[Any]) -> None:
    """What `set_loop_options` says about the loop whose body is being traced."""
    if not capture.tracers:
        return
    tracer = capture.tracers[-1]
    if most is not None:
        tracer.most = int(most)
    for name in tracer.bound:
        _, leaves = taken_apart(tracer.variables.get(name))
        if any(leaf is value for leaf in leaves for value in loose):
            capture.loose_shapes |= {name}


def capture_wants(capture: Capture, kinds: Sequence[LeafType]) -> bool:
    """The target of an empty range reads as the range's start, where the contract is asked for."""
    return capture.policy.wants_bools and len(kinds) == 1 and kinds[0].weak is int
