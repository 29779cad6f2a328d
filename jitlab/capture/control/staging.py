"""`if` on a traced value: both sides are traced, and what they leave behind is what one Branch gives.

What leaves a side: the names it assigns that are still wanted, the arrays it writes into, and how it was left (a jump).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
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
    joined,
    leaf_node,
    leaf_type,
    taken_apart,
)
from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.positions import describe, here
from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.errors import ControlFlowTypeError, ControlFlowValueError
from jitlab.ir import Node, plain
from jitlab.ops.build_nodes import apply, constant
from jitlab.ops.control_flow import Branch
from jitlab.ops.elementwise.comparison import LogicalNot
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.creation import Fill
from jitlab.support.lazy_dataclass import dataclass

from .blocks import Block, again, block, close, refuse
from .chosen_memory import OWN, Chosen, Origin, as_number, is_array, is_same, origin
from .conditions import BOOL, Body, capture_of, condition, is_traced, left, run, tensor_of, truth
from .exactness import watch_way
from .jumps import BREAK, CONTINUE, Mixed, Outcome, Returned
from .number_kinds import check_exact, give_kinds, is_mixed, kind_node
from .traced_checks import AlwaysRaises, add_check, add_raise, belongs_to_program, has_effects

if TYPE_CHECKING:
    from jitlab.capture.state import Capture


# ---- sides


@dataclass(eq=False)
class Side:
    """One way through an `if`: its graph, how it was left, and what the names held then. `error`: what it always raises."""

    block: Block
    outcome: Outcome
    values: dict[str, Any]
    error: Exception | None = None
    leaves: dict[str, list[Any]] = field(default_factory=dict)
    nodes: dict[str, list[Node]] = field(default_factory=dict)
    forms: dict[str, Form] = field(default_factory=dict)

    def keep(self, key: str, value: Any) -> None:
        """Take a value apart while its graph is being built."""
        self.block.capture.before_leaving(value)
        self.forms[key], self.leaves[key] = taken_apart(value)
        self.nodes[key] = [leaf_node(leaf) for leaf in self.leaves[key]]

    def outcome_of(self, capture: Capture, body: Callable[[], Any]) -> Any:
        """What `body` gives in it; None and the `error` where that always raises."""
        try:
            return run(body)
        except Exception as error:
            if not isinstance(error, AlwaysRaises) and not belongs_to_program(capture, error):
                raise
            self.error = error


def trace_side(
    capture: Capture, variables: Variables, assigned: Sequence[str], wanted: Sequence[str], name: str, body: Body
) -> Side:
    before = variables.values(assigned)
    try:
        with block(capture, name) as made:
            side = Side(made, None, {})
            side.outcome = side.outcome_of(capture, body)
            if side.error is not None:
                return side
            side.values = variables.values(assigned)
            for key in filter(side.values.__contains__, wanted):  # others are as they were
                if side.values[key] is not UNDEFINED and side.values[key] is not before[key]:
                    side.keep(key, side.values[key])
            keep_outcome(side)
    finally:
        variables.restore(before)
    return side


def keep_outcome(side: Side) -> None:
    outcome = side.outcome
    if isinstance(outcome, (Returned, Mixed)):
        side.keep("return", outcome.value)
    for way, value in flags(outcome).items():
        side.keep(way, value)


def flags(outcome: Outcome) -> dict[str, Any]:
    """Which way a block was left."""
    if isinstance(outcome, Mixed):
        return {"<broke>": outcome.broke, "<returned>": outcome.returned, "<continued>": outcome.continued}
    return {
        "<broke>": outcome is BREAK, "<returned>": isinstance(outcome, Returned), "<continued>": outcome is CONTINUE
    }  # fmt: skip


# ---- joining


class Joint:
    """The Branch that two sides become, while it is put together."""

    def __init__(self, capture: Capture, sides: tuple[Side, Side]) -> None:
        self.capture = capture
        self.sides = sides
        self.outputs: tuple[list[Node], list[Node]] = ([], [])
        self.types: list[LeafType] = []
        self.late: list[Callable[[list[Node]], None]] = []  # what is done with the results
        self.results: dict[tuple[int, int], Result] = {}  # by the two values that they are made of
        self.owners: dict[Cell, Result] = {}  # arrays made in a side -> what stands for them
        self.chosen: list[Chosen] = []

    def add(self, nodes: tuple[Node, Node], kind: LeafType) -> int:
        """One more result: its value in either side."""
        for side, node, outputs in zip(self.sides, nodes, self.outputs, strict=True):
            with again(self.capture, side.block) as graph:
                outputs.append(fitted(graph.own(node), kind))
        self.types.append(kind)
        return len(self.types) - 1

    def placeholder(self, number: int, kind: LeafType) -> Node:
        """A value in one side that nobody will look at."""
        with again(self.capture, self.sides[number].block) as graph:
            zero = constant(np.zeros((), kind.dtype))
            return graph.add(Fill(kind.type.shape), zero) if kind.type.shape else zero

    def result(self, name: str, number: int) -> Result:
        """What a leaf of a name is after the Branch."""
        x, y = (side.leaves[name][number] for side in self.sides)
        if x is y or (type(x) is type(y) and type(x) in (bool, int, float, complex) and repr(x) == repr(y)):
            return Result(x)
        known = self.results.get((id(x), id(y)))
        if known is None:
            try:
                kind = joined(leaf_type(x), leaf_type(y), kinds=self.capture.policy.keeps_kinds and not name.startswith("<"))
            except Mismatch as mismatch:
                raise branch_mismatch(name, mismatch) from None
            known = self.results[id(x), id(y)] = Result()
            first, second = (side.nodes[name][number] for side in self.sides)
            place = self.add((first, second), kind)
            self.late.append(lambda items: known.bind(fresh(self.capture, items[place], kind)))
            if kind.among:
                self.decide_kind(known, (x, y), kind)
            if not kind.is_scalar:
                self.decide_memory(known, (x, y))
        return known

    def decide_kind(self, result: Result, values: tuple[Any, Any], kind: LeafType) -> None:
        """Which number a value is in the program; UNDEFINED: nobody will look at it."""
        numbers = []
        for side, value in zip(self.sides, values, strict=True):
            with again(self.capture, side.block):
                if value is not UNDEFINED:
                    check_exact(self.capture, value, kind)
                numbers.append(constant(np.int64(kind.kind)) if value is UNDEFINED else kind_node(value))
        place = self.add((numbers[0], numbers[1]), WHICH)
        self.late.append(lambda items: give_kinds(result.value, items[place], kind.among))

    def half_result(self, number: int, leaf: Any, node: Node, kind: LeafType) -> Result:
        """What a leaf is after the Branch that one side alone gives: an array from outside of it is that array."""
        with again(self.capture, self.sides[number].block):
            found = origin(self.capture, leaf, self.sides[number].block)
        if is_array(leaf) and found.part_of is None and leaf._cell.home is not self.sides[number].block.graph:
            return Result(leaf)
        other = self.placeholder(1 - number, kind)
        place, result = self.add((node, other) if number == 0 else (other, node), kind), Result()
        self.late.append(lambda items: result.bind(fresh(self.capture, items[place], kind)))
        if kind.among:
            self.decide_kind(result, (leaf, UNDEFINED) if number == 0 else (UNDEFINED, leaf), kind)
        if not found.is_own:
            self.remember(result, (found, OWN) if number == 0 else (OWN, found))
        return result

    def decide_memory(self, result: Result, values: tuple[Any, Any]) -> None:
        """Which memory an array has that is one value in one side and another in the other."""
        origins: list[Origin] = []
        for side, value in zip(self.sides, values, strict=True):
            with again(self.capture, side.block):
                origins.append(origin(self.capture, value, side.block))
                if is_array(value) and origins[-1].is_own:
                    owner = self.owners.setdefault(value._cell, result)
                    if owner is not result:  # of two names for one array in one side, and for another pair in the other
                        self.late.append(partial(_is_part, result, owner))
        self.remember(result, origins)

    def remember(self, result: Result, origins: Sequence[Origin]) -> None:
        """An array that may be one from outside of the sides."""
        whole = next((x.part_of for x in origins if x.part_of is not None), None)
        if whole is not None:
            return self.late.append(lambda items: result.cell.stands_for_part_of(whole, by_data=True))
        if all(x.is_own for x in origins):
            return None
        numbers: list[Node] = []
        for side, one in zip(self.sides, origins, strict=True):
            with again(self.capture, side.block):
                numbers.append(as_number(one.which))
        place, among = self.add((numbers[0], numbers[1]), WHICH), {**origins[0].among, **origins[1].among}

        def take(items: list[Node]) -> None:
            self.chosen.append(Chosen(items[place], among, result.value, any(one.own for one in origins)))

        return self.late.append(take)

    def cells(self) -> None:
        """The arrays that either side writes into."""
        capture = self.capture
        moved = dict.fromkeys((*self.sides[0].block.moved(), *self.sides[1].block.moved()))
        for cell in moved:
            capture.before_read(cell)
            ends = [side.block.end(cell, cell.node) for side in self.sides]
            kind = LeafType(cell.node.type, None, False)
            number = self.add((ends[0], ends[1]), kind)
            self.late.append(partial(_write, cell, number))

    def emit(self, test: Node) -> None:
        """Add the Branch, and give its results to who waits for them."""
        capture = self.capture
        if not self.types and not any(side.block.graph.must_run for side in self.sides):
            items: list[Node] = []
        else:
            graph = capture.graph
            blocks = [side.block for side in self.sides]
            captures, graphs = close(blocks, ((), ()), self.outputs, capture.root.symbol_values())
            types = tuple(kind.type for kind in self.types)
            node = graph.add(Branch(graphs[0], graphs[1], types), test, *captures)
            items = [graph.add(Item(number, kind.type), node) for number, kind in enumerate(self.types)]
        for step in self.late:
            step(items)
        for chosen in self.chosen:
            chosen.settle()


class Result:
    """What a value is after a Branch; known when the Branch stands."""

    def __init__(self, value: Any = UNDEFINED) -> None:
        self.value = value

    def bind(self, value: Any) -> None:
        self.value = value

    @property
    def cell(self) -> Cell:
        cell: Cell = self.value._cell
        return cell


def _is_part(result: Result, whole: Result, items: list[Node]) -> None:
    result.cell.stands_for_part_of(whole.cell, by_data=True)


def _write(cell: Cell, number: int, items: list[Node]) -> None:
    cell.move_on((), items[number])


BRANCHES = ("main", "else")


def join_names(
    joint: Joint, wanted: Sequence[str], before: dict[str, Any], variables: Variables, *, lenient: bool = False
) -> None:
    """Bind each name to what either side left in it."""
    for name in wanted:
        join_value(joint, name, before.get(name, UNDEFINED), partial(variables.set, name), lenient)


def join_value(joint: Joint, name: str, before: Any, bind: Callable[[Any], None], lenient: bool = False) -> None:
    first, second = joint.sides
    shown, give = ("the return value", "return") if name == "return" else (repr(name), f"give {name}")
    values = [side.values.get(name, UNDEFINED) for side in (first, second)]
    if values[0] is values[1]:
        if values[0] is not before:
            bind(values[0])
        return
    for number, value in enumerate(values):
        if value is UNDEFINED:
            if lenient:
                return half_defined(joint, name, 1 - number, bind)
            error = ControlFlowValueError(
                f"{shown} must also be initialized in the {BRANCHES[number]} branch",
                where=describe(here()), why="a traced value decides, so both branches are recorded and both have to give it",
                hint=f"give {name} a value before the `if`, or in both branches",
            )  # fmt: skip
            error.undefined = name, BRANCHES[number]
            raise error
        if value is None:
            raise ControlFlowValueError(
                f"{shown} is None at the end of the {BRANCHES[number]} branch.",
                where=describe(here()), why="a traced value decides, and None and a value cannot be the result of one Branch",
                hint=f"{give} a value of the same type in both branches",
            )  # fmt: skip
    for side in joint.sides:
        if name not in side.forms:
            with again(joint.capture, side.block):
                side.keep(name, side.values[name])
    if first.forms[name].key != second.forms[name].key:
        raise ControlFlowTypeError(
            f"{shown} must have the same nested structure in the main and else branches, and is"
            f" {described(values[0])} in one and {described(values[1])} in the other",
            where=describe(here()), why="a traced value decides, so one form has to hold the values of both branches",
            hint=f"{give} the same form in both branches",
        )  # fmt: skip
    bind_joined(joint, name, bind)


def bind_joined(joint: Joint, name: str, bind: Callable[[Any], None]) -> None:
    """Results for the leaves of a value that both sides have."""
    first = joint.sides[0]
    results = [joint.result(name, number) for number in range(len(first.leaves[name]))]
    form = first.forms[name]
    joint.late.append(lambda items: bind(form.make(result.value for result in results)))


def half_defined(joint: Joint, name: str, number: int, bind: Callable[[Any], None]) -> None:
    """A name that one side alone gives, where the program goes on only if that side was taken: anything for the other."""
    side, capture = joint.sides[number], joint.capture
    if name not in side.forms:
        with again(capture, side.block):
            side.keep(name, side.values[name])
    kinds = [leaf_type(leaf) for leaf in side.leaves[name]]
    if capture.half_defined is not None:
        capture.half_defined[name] = side.forms[name], kinds
    results = [joint.half_result(number, *found) for found in zip(side.leaves[name], side.nodes[name], kinds, strict=True)]
    form = side.forms[name]
    joint.late.append(lambda items: bind(form.make(result.value for result in results)))


def branch_mismatch(name: str, mismatch: Mismatch) -> Exception:
    """What differs between the branches is said; a shape that depends on data can't be recorded at all."""
    mine, other = mismatch.mine, mismatch.other
    if mismatch.kind == "shape":
        one, others = plain(mine.type.shape), plain(other.type.shape)
        return NotReplayable("data_dependent_shape", "branch_shapes", name=repr(name), one=one, other=others)
    if mismatch.kind == "layout":
        return NotReplayable("layout", "branch_layout", name=repr(name))
    return ControlFlowTypeError(
        f"{name!r} has dtype {mine.dtype} in the main branch, but dtype {other.dtype} in the else branch",
        where=describe(here()), why="a traced value decides, so one array has to hold the values of both branches",
        hint=f"cast one of them: {name}.astype(...)",
    )  # fmt: skip


# ---- a side that raises: the other one is how the program goes on


def raised(capture: Capture, test: Node, side: Side, is_then: bool) -> None:
    """One side of a branch always raises: what it does before happens where it is taken, and then that."""
    error = side.error
    assert error is not None
    if side.block.moved() or side.block.graph.must_run:
        with block(capture, "else") as made:
            nothing = Side(made, None, {})
        joint = Joint(capture, (side, nothing) if is_then else (nothing, side))
        joint.cells()
        joint.emit(test)
    add_raise(capture, error, test, is_then)


def going_on(capture: Capture, body: Callable[..., Any]) -> Any:
    """What comes where the other side has not raised."""
    try:
        return run(body)
    except Exception as error:
        if isinstance(error, AlwaysRaises) or not belongs_to_program(capture, error):
            raise
        add_raise(capture, error, constant(np.True_), True)
        raise AlwaysRaises from None


def sides_or_rest(
    capture: Capture, test: Node, bodies: tuple[Callable[[], Any], Callable[[], Any]], trace: Callable[..., Side]
) -> tuple[Side, Side] | tuple[Any]:
    """Both sides, as `trace(name, body)` gives them; where one raises, what the other gives, which is then no side but what
    follows."""
    done = len(capture.effects.undo)
    first = trace("then", bodies[0])
    if first.error is not None:
        raised(capture, test, first, True)
        return (going_on(capture, bodies[1]),)
    second = trace("else", bodies[1])
    if second.error is not None:
        raised(capture, test, second, False)
        capture.effects.back_to(done)
        with capture.effects.once_more():
            return (going_on(capture, bodies[0]),)
    return first, second


# ---- sides that return what no Branch gives: one is recorded, and where a run takes the other, Python takes the call


def unlike(capture: Capture, sides: tuple[Side, Side]) -> int | None:
    """The side that is left out, where both return and what they return has not one form."""
    if capture.strict or capture.guarded or not capture.policy.wants_bools or has_effects(capture):
        return None
    found = [side.outcome for side in sides if isinstance(side.outcome, (Returned, Mixed))]
    if len(found) < 2 or all(isinstance(outcome, Mixed) for outcome in found):
        return None
    if sides[0].forms["return"].key == sides[1].forms["return"].key:
        return None
    mixed = next((n for n, outcome in enumerate(found) if isinstance(outcome, Mixed)), None)
    if mixed is not None:
        return None if found[mixed].returned is False else 1 - mixed  # type: ignore[union-attr]
    return 1 if found[1].value is None else 0  # what is returned first is the exception


def the_other(capture: Capture, test: Node, body: Body, left_out: int, done: int) -> Outcome:
    """What the side gives that is recorded."""
    capture.effects.back_to(done)
    watch_way(capture, test, left_out == 0)
    with capture.effects.once_more():
        return going_on(capture, body)  # type: ignore[no-any-return]


# ---- the statements


def if_(test: Any, then: Body, orelse: Body | None, assigned: Sequence[str], live: Sequence[str]) -> None:
    """`if` on a traced value, without jumps."""
    capture = capture_of(test)
    node = condition(test)
    if isinstance(node, bool):
        side = then if node else orelse
        if side is not None:
            run(side)
        return
    variables = Variables(then, orelse)
    before = variables.values(assigned)
    trace = partial(trace_side, capture, variables, assigned, live)
    sides = sides_or_rest(capture, node, (then, orelse or _nothing), trace)
    if len(sides) == 1:
        return
    joint = Joint(capture, sides)
    join_names(joint, live, before, variables)
    joint.cells()
    joint.emit(node)


def _nothing() -> None:
    return None


def if_jump(
    test: Any, then: Body, orelse: Body | None, rest: Body | None, assigned: Sequence[str], live: Sequence[str],
    leave: Sequence[str], variables: Variables | None = None,
) -> Outcome:  # fmt: skip
    """`if` on a traced value with a jump in it, and what follows it in its block."""
    capture = capture_of(test)
    node = condition(test)
    variables = variables or Variables(then, orelse, rest)
    if isinstance(node, bool):
        side = then if node else orelse
        outcome = None if side is None else left(side)
        return follow(outcome, rest, assigned, leave, variables) if rest is not None else outcome
    before = variables.values(assigned)
    done = len(capture.effects.undo)
    wanted = list(dict.fromkeys((*live, *leave)))
    bodies = [then, orelse or _nothing]
    sides = sides_or_rest(capture, node, (bodies[0], bodies[1]), partial(trace_side, capture, variables, assigned, wanted))
    if len(sides) == 1:
        return sides[0] if rest is None else follow(sides[0], rest, assigned, leave, variables)
    if (left_out := unlike(capture, sides)) is not None:
        outcome = the_other(capture, node, bodies[1 - left_out], left_out, done)
        return outcome if rest is None else follow(outcome, rest, assigned, leave, variables)
    ends = [side.outcome is None for side in sides]
    if rest is not None and ends[0] != ends[1]:  # one side goes on: what follows belongs to it
        number = ends.index(True)
        other = sides[1 - number].outcome
        if not isinstance(other, Mixed):
            body = bodies[number]

            def extended() -> Outcome:
                run(body)
                return left(rest)

            bodies[number] = extended
            capture.effects.back_to(done)
            with capture.effects.once_more():
                trace = partial(trace_side, capture, variables, assigned, leave)
                sides = sides_or_rest(capture, node, (bodies[0], bodies[1]), trace)
            if len(sides) == 1:
                return sides[0]  # type: ignore[no-any-return]
            if (left_out := unlike(capture, sides)) is not None:
                return the_other(capture, node, bodies[1 - left_out], left_out, done)
            return _joined(capture, node, sides, leave, before, variables)
    outcome = _joined(capture, node, sides, wanted if rest is not None else leave, before, variables)
    return outcome if rest is None else follow(outcome, rest, assigned, leave, variables)


def _joined(
    capture: Capture, node: Node, sides: tuple[Side, Side], wanted: Sequence[str], before: dict[str, Any],
    variables: Variables,
) -> Outcome:  # fmt: skip
    """The outcome of a Branch, its names bound."""
    joint = Joint(capture, sides)
    join_names(joint, wanted, before, variables, lenient=any(side.outcome is not None for side in sides))
    joint.cells()
    found: dict[str, Any] = {}
    outcome = join_outcomes(joint, found)
    joint.emit(node)
    return outcome(found)


def join_outcomes(joint: Joint, found: dict[str, Any]) -> Callable[[dict[str, Any]], Outcome]:
    """How the two sides were left, together; called when the Branch stands."""
    ways = [flags(side.outcome) for side in joint.sides]
    for key in ways[0]:
        values = [way[key] for way in ways]
        if values[0] is values[1] and isinstance(values[0], bool):
            found[key] = values[0]
        else:
            bind_joined(joint, key, partial(found.__setitem__, key))
    returned = [way["<returned>"] for way in ways]
    if any(value is not False for value in returned):
        join_returned(joint, returned, found)
    lacking = "else" if returned[1] is False else "main"

    def outcome(found: dict[str, Any]) -> Outcome:
        broke, returned, continued = found["<broke>"], found["<returned>"], found["<continued>"]
        if broke is False and returned is False and isinstance(continued, bool):
            return CONTINUE if continued else None
        if returned is True:
            return Returned(found.get("return"))
        if broke is True:
            return BREAK
        return Mixed(broke, returned, continued, found.get("return"), lacking)

    return outcome


def join_returned(joint: Joint, returned: list[Any], found: dict[str, Any]) -> None:
    """The value that is returned: of the side that returns, else of both."""
    name = "return"
    for side in joint.sides:
        side.values[name] = side.outcome.value if isinstance(side.outcome, (Returned, Mixed)) else UNDEFINED
    bind = partial(found.__setitem__, name)
    lone = [number for number, value in enumerate(returned) if value is not False]
    if len(lone) == 1:
        half_defined(joint, name, lone[0], bind)
    else:
        join_value(joint, name, UNDEFINED, bind)


def follow(
    outcome: Outcome, rest: Body, assigned: Sequence[str], leave: Sequence[str], variables: Variables | None = None
) -> Outcome:
    """What comes after a statement of which only a run knows whether it jumped."""
    if outcome is None:
        return left(rest)
    if not isinstance(outcome, Mixed):
        return outcome
    gone: Any = False
    ways = {key: way for key, way in flags(outcome).items() if way is not False}
    jumped: Outcome = outcome
    if len(ways) == 1:  # where it was left, it was left this way
        known: dict[str, Outcome] = {"<broke>": BREAK, "<returned>": Returned(outcome.value), "<continued>": CONTINUE}
        jumped = known[next(iter(ways))]
    for way in ways.values():
        gone = way if gone is False else either(gone, partial(_itself, way))
    return if_jump(gone, lambda: jumped, rest, None, assigned, (), leave, variables)


def returned_value(outcome: Outcome) -> Any:
    """What a function returns whose end was left in several ways."""
    assert isinstance(outcome, Mixed), outcome
    if outcome.returned is True:
        return outcome.value
    raise ControlFlowValueError(
        f"the {outcome.lacking} branch must also have a return statement.",
        where=describe(here()), why="a traced value decides whether the function returns a value here, or None at its end",
        hint="return a value in both branches, or at the end of the function",
    )  # fmt: skip


def refuse_mixed(outcome: Mixed) -> bool:
    """A jump out of a block of Python's own (`with`, `try`, `match`) that a traced value decides: the call runs as Python."""
    raise NotReplayable("value", "chosen_leaving")


# ---- expressions


def choose(test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """`a if test else b` on a traced test."""
    capture = capture_of(test)
    node = condition(test)
    if isinstance(node, bool):
        return then() if node else orelse()
    found: list[Any] = []
    sides = sides_or_rest(capture, node, (then, orelse), partial(_trace_expression, capture))
    if len(sides) == 1:
        return sides[0]
    joint = Joint(capture, sides)
    join_value(joint, _EXPRESSION, UNDEFINED, found.append)
    joint.cells()
    joint.emit(node)
    return found[0]


#: What the value of a conditional expression is called.
_EXPRESSION = "the expression"


def _trace_expression(capture: Capture, name: str, expression: Callable[[], Any]) -> Side:
    with block(capture, name) as made:
        side = Side(made, None, {})
        value = side.values[_EXPRESSION] = side.outcome_of(capture, expression)
        if value is not None:
            side.keep(_EXPRESSION, value)
    return side


def both(value: Any, other: Callable[[], Any]) -> Any:
    """`a and b` where a is traced: b is evaluated only where a holds."""
    test = truth(value)
    if isinstance(test, bool):
        return other() if test else value
    return choose(test, other, lambda: _like_test(value, test))


def either(value: Any, other: Callable[[], Any]) -> Any:
    """`a or b` where a is traced."""
    test = truth(value)
    if isinstance(test, bool):
        return value if test else other()
    return choose(test, lambda: _like_test(value, test), other)


def _like_test(value: Any, test: Any) -> Any:
    """Python gives the operand itself, not its truth; for bools that is the same."""
    value = tensor_of(value)
    is_bool = isinstance(value, Tensor) and value.dtype == np.dtype(bool) and not is_mixed(value)
    return test if is_bool else value


def negated(value: Any) -> Any:
    """`not a` where a is traced."""
    node = condition(value, "expression")
    return not node if isinstance(node, bool) else fresh(capture_of(value), apply(LogicalNot(), node), BOOL)


def _itself(value: Any) -> Any:
    return value


def is_same_array(x: Tensor, y: Tensor) -> Any:
    """`x is y`: traced where a traced value decided which arrays they are."""
    capture = x.capture
    for tracer in capture.tracers if x is not y else ():
        if any(tensor is x or tensor is y for pairs in tracer.bound.values() for tensor, _ in pairs):
            raise tracer.refusal("aliasing", "is_in_loop")
    same = is_same(capture, x, y)
    return fresh(x.capture, same, BOOL) if isinstance(same, Node) else same


def contains(container: Any, item: Any) -> Any:
    """`item in container` where one of them is traced."""
    container = tensor_of(container)
    if isinstance(container, Tensor):
        return (container == item).any()
    if isinstance(container, (list, tuple)):
        result: Any = False
        for other in container:
            same = item == other
            result = either(result, partial(_itself, same)) if is_traced(result) else (result or same)
        return result
    if isinstance(container, range) or hasattr(container, "count") and hasattr(container, "start"):
        low, high = (container.start, container.stop) if container.step > 0 else (container.stop + 1, container.start + 1)
        inside = both(item >= low, lambda: item < high) if is_traced(item >= low) else (item >= low and item < high)
        return inside if abs(container.step) == 1 else both(inside, lambda: (item - container.start) % container.step == 0)
    refuse(capture_of(item), "index_value", "looked_up", kind=type(container).__name__)
    return item in container


def check(test: Any, message: Callable[[], Any] | None) -> bool:
    """`assert` on a traced test."""
    node = condition(test, "assert statement")
    if isinstance(node, bool):
        return node
    add_check(capture_of(test), node, message)
    return True


__all__ = [
    "Body", "Joint", "Side", "both", "capture_of", "check", "choose", "condition", "contains", "either", "flags", "follow",
    "if_", "if_jump", "is_same_array", "is_traced", "negated", "refuse_mixed", "returned_value", "run", "tensor_of", "truth",
]  # fmt: skip
