"""`for` and `while` of converted code: which are Python's, which become Loops, and which are unrolled, with the reason.

A loop over a Tensor, or on a traced test, is a Loop. A loop over a Python range of more than 16 numbers is tried as one: its
body is traced with a symbolic index; where that can't be (NotRolled), everything is put back and Python runs the iterations.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from jitlab import events
from jitlab.capture.guards.leaves import COMPLEX, FLOAT, UNDEFINED, Variables, leaf_type
from jitlab.capture.numpy_calls.explanations import said_of
from jitlab.capture.numpy_calls.functions import call_function
from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.positions import describe, here, is_added, spans
from jitlab.capture.tracers.symbolic import SymbolicRange, call_builtin
from jitlab.capture.tracers.tensor import Tensor, current_capture, no_value
from jitlab.errors import InvalidArgumentError, Unfit
from jitlab.ir import NotRolled, Symbolic

from .blocks import Again
from .conditions import FEW, Body, capture_of, is_traced, left, run, tensor_of
from .iterables import Counted, Counting, Iteration, TracedRange, iteration
from .jumps import BREAK, CONTINUE, Mixed, Outcome, Returned
from .looping import LoopTracer, Names
from .staging import follow, if_, if_jump, negated, returned_value
from .traced_checks import never_runs

if TYPE_CHECKING:
    from jitlab.capture.state import Capture

#: As FEW, of loops with loops in them.
FEW_LOOPS = 2
#: The most that jit_compile=True unrolls, and from where on a warning is given.
MOST_COMPILED, LARGE = 1000, 50_000
#: The most operations that jl.jit and cells record of a loop that is unrolled: a longer one has run before it is compiled.
MOST_RECORDED = 10_000


def while_(test: Callable[[], Any], body: Body, orelse: Body | None, names: Names) -> Outcome:
    """A `while`: Python's, until its test or a way out of it is traced."""
    turns, before = 0, _recorded()
    while True:
        value = run(test)
        if is_traced(value):
            return _staged_while(test, body, orelse, names)
        if not value:
            break
        turns += 1
        _check_unrolling()
        _check_length(turns, before)
        outcome, staged = _turn(body, names, lambda: _staged_while(test, body, orelse, names))
        if staged is not None:
            return staged[0]
        if outcome is BREAK:
            return None
        if outcome is not None and outcome is not CONTINUE:
            return outcome
    return None if orelse is None else left(orelse)


def _turn(body: Body, names: Names, stage: Callable[[], Outcome]) -> tuple[Outcome, tuple[Outcome] | None]:
    """An iteration of a Python loop. One that only a run knows to be the last is put back: the loop is staged from there."""
    capture = current_capture()
    if capture is None:
        return left(body), None
    mark, done = capture.mark(), len(capture.effects.undo)
    variables = Variables(body)
    before = variables.values(names.assigned)
    outcome = left(body)
    if not isinstance(outcome, Mixed):
        return outcome, None
    capture.rollback(mark)
    capture.effects.back_to(done)
    variables.restore(before)
    with capture.effects.once_more():
        return None, (stage(),)


def _staged_while(test: Callable[[], Any], body: Body, orelse: Body | None, names: Names) -> Outcome:
    capture = capture_of()
    variables = Variables(test, body, orelse)
    tracer = LoopTracer(capture, names, variables, body, test=test)
    outcome, stopped = tracer.trace()
    return _ended(outcome, stopped, orelse, names, variables)


def _ended(outcome: Outcome, stopped: Any, orelse: Body | None, names: Names, variables: Variables) -> Outcome:
    """After a Loop: its `else`, unless it was left."""
    if orelse is None:
        return outcome
    if stopped is False:
        return left(orelse)
    return if_jump(stopped, lambda: outcome, orelse, None, names.assigned, names.after, names.after, variables)


def for_(iterable: Any, body: Callable[[Any], Outcome], orelse: Body | None, names: Names) -> Outcome:
    """A `for` while something is recorded."""
    capture = capture_of()
    iterable = tensor_of(iterable)
    variables = Variables(body, orelse)
    kept: Unfit = NotRolled("value", "pythons_iterations")
    found = _rolled(capture, iterable, FEW_LOOPS if _has_loops(body.__code__) else FEW)
    if found is not None:
        has_numbers = not isinstance(iterable, (SymbolicRange, TracedRange))
        must = not has_numbers or (found.is_array and capture.policy.wants_bools)
        mark, before = capture.mark(), variables.values(names.assigned)
        done = len(capture.effects.undo)
        try:
            tracer = LoopTracer(
                capture, names, variables, body, count=found.count, element=found.at, goes_on=found.test, start=found.start,
                must=must and not any(b.attempt for b in capture.blocks),
            )
            outcome, stopped = tracer.trace()
            if isinstance(iterable, Counting):
                iterable.used_up(capture, stopped is False)
            return _ended(outcome, stopped, orelse, names, variables)
        except NotRolled as refusal:
            if not has_numbers:
                raise
            kept = refusal
        except Again:  # of a loop around it
            raise
        except Exception as error:
            if must:
                raise
            kept = error if isinstance(error, Unfit) else NotRolled(getattr(error, "code", "error"), said_of(error))
        capture.rollback(mark)
        capture.effects.back_to(done)
        variables.restore(before)
        count = 0 if found.count is None else int(found.count)
        _tell(capture, count, kept)
        capture.loop_refused(count, kept)
    if capture.policy.wants_bools and isinstance(iterable, Tensor) and iterable.shape and not int(iterable.shape[0]):
        _check_names_of_no_turn(names, variables)
    _check_unrolling(kept)
    items = iterable if isinstance(iterable, (Tensor, Counted, Counting, str)) else capture.iterate(iterable)
    outcome = _unrolled(capture, iter(items), body, names, variables)
    if isinstance(outcome, Mixed):
        gone = Mixed(False, outcome.returned, False, outcome.value) if outcome.returned is not False else None
        if orelse is not None:
            raise NotReplayable("value", "chosen_else")
        return gone
    if outcome is BREAK:
        return None
    return outcome if outcome is not None or orelse is None else left(orelse)


def _check_names_of_no_turn(names: Names, variables: Variables) -> None:
    """A loop over an array without elements gives no name a value."""
    wanted = [name for name in names.assigned if name in names.after and name not in names.targets]
    for name, value in variables.values(tuple(wanted)).items():
        if value is UNDEFINED:
            raise never_runs(name, describe(here()))


def _has_loops(code: types.CodeType) -> bool:
    """Are there loops in a body? Each of its iterations would have them."""
    if not {"for_", "while_"}.isdisjoint(code.co_names):
        return True
    return any(isinstance(c, types.CodeType) and is_added(c) and _has_loops(c) for c in code.co_consts)


def _rolled(capture: Capture, iterable: Any, few: int) -> Iteration | None:
    """How a loop can be counted that is worth rolling, or has no other form."""
    if isinstance(iterable, (SymbolicRange, TracedRange)):
        return iteration(capture, iterable)
    if not capture.rolls:
        return None
    found = iteration(capture, iterable)
    if found is None or found.count is None:
        return None
    return found if (found.is_array and capture.policy.wants_bools and int(found.count) > 0) or int(found.count) > few else None


def _unrolled(
    capture: Capture, items: Iterator[Any], body: Callable[[Any], Outcome], names: Names, variables: Variables
) -> Outcome:
    """Python's own loop. Where only a run knows whether an iteration was the last, the others follow in a side of a Branch."""
    turns = 0
    limit = MOST_COMPILED if capture.strict else None
    nodes = _recorded()
    for item in items:
        turns += 1
        _check_length(turns, nodes)
        if limit is not None and turns > limit and len(capture.graph.nodes) > nodes:
            raise InvalidArgumentError(
                f"a loop of more than {limit} iterations in {capture.name} cannot be rolled, and is too long to be unrolled.",
                where=describe(here()), why=capture.why_unrolled or "each of its iterations would be compiled by itself",
                hint=f"write it over arrays, or leave {capture.policy.strict_name} away",
            )  # fmt: skip
        if turns == LARGE and len(capture.graph.nodes) > nodes:
            warnings.warn(
                f"Large unrolled loop detected: more than {LARGE} iterations are recorded one by one ({describe(here())}).",
                stacklevel=2,
            )
        outcome = left(body, item)
        if outcome is None or outcome is CONTINUE:
            continue
        if not isinstance(outcome, Mixed):
            return outcome
        wanted = tuple(dict.fromkeys((*names.after, *names.head)))
        gone = Mixed(outcome.broke, outcome.returned, False, outcome.value, outcome.lacking)
        return follow(gone, lambda: _unrolled(capture, items, body, names, variables), names.assigned, wanted, variables)
    return None


def _check_unrolling(why: Unfit | None = None) -> None:
    """A loop of a cell that does not become a node is Python's, around captured blocks."""
    capture = current_capture()
    if capture is not None and capture.only_rolled and not capture.functions and not capture.blocks:
        raise NotRolled(why.code, why.said) if why is not None else NotRolled("value", "pythons_iterations")


def _recorded() -> int:
    capture = current_capture()
    return 0 if capture is None else len(capture.graph.nodes)


def _check_length(turns: int, before: int) -> None:
    """A loop that would be a program of very many operations is Python's where Python can run it."""
    capture = current_capture()
    if capture is None or capture.policy.wants_bools or capture.strict or len(capture.graph.nodes) - before <= MOST_RECORDED:
        return
    raise NotReplayable("too_long", "many_operations", turns=turns - 1, most=MOST_RECORDED)


def _tell(capture: Capture, iterations: int, why: Unfit) -> None:
    """A loop was not rolled: why."""
    capture.why_unrolled = str(why)
    if events.active():
        lines = spans(here())
        events.send(events.LoopKept(function=capture.name, lines=lines, code=why.code, said=why.said, iterations=iterations))


# ---- builtins that take the items of a generator


def reduced(
    capture: Capture, function: Any, items: Any, spread: bool, test: Callable[..., Any] | None, element: Callable[..., Any]
) -> Any:
    """`any`, `all`, `sum`, `min` or `max` of `element(item) for item in items if test(item)` as a loop.

    NotImplemented where that is for Python to do.
    """
    items = tensor_of(items)
    found = iteration(capture, items)
    if found is None and not isinstance(items, _CONTAINERS):
        return NotImplemented

    def given(item: Any) -> Any:
        return element(*item) if spread else element(item)

    def wanted(item: Any) -> Any:
        return True if test is None else test(*item) if spread else test(item)

    if function is sum:
        return _summed(items, wanted, given)
    if function is min or function is max:
        return NotImplemented if test is not None or found is None or not found.count else _extreme(function, found, given)
    return _decided(items, wanted, given, function is any)


#: What is gone through as often as one likes.
_CONTAINERS: tuple[type, ...] = (list, tuple, dict, set, frozenset, str, type({}.keys()), type({}.values()), type({}.items()))


def _decided(items: Any, wanted: Callable[[Any], Any], element: Callable[[Any], Any], ends: bool) -> Any:
    """Is there an item of which the element is `ends`?"""

    def asked(item: Any) -> Outcome:
        value = element(item)
        if not is_traced(value):
            return Returned(ends) if bool(value) is ends else None
        return if_jump(value if ends else negated(value), lambda: Returned(ends), None, None, (), (), ())

    def body(item: Any) -> Outcome:
        test = wanted(item)
        if not is_traced(test):
            return asked(item) if test else None
        return if_jump(test, lambda: asked(item), None, None, (), (), ())

    outcome = for_(items, body, None, Names((), (), (), ()))
    outcome = follow(outcome, lambda: Returned(not ends), (), ())
    return outcome.value if isinstance(outcome, Returned) else returned_value(outcome)


def _summed(items: Any, wanted: Callable[[Any], Any], element: Callable[[Any], Any]) -> Any:
    total: Any = 0

    def body(item: Any) -> Outcome:
        def add() -> Outcome:
            nonlocal total
            total = total + element(item)
            return None

        test = wanted(item)
        if is_traced(test):
            if_(test, add, None, ("total",), ("total",))
        elif test:
            add()
        return None

    for_(items, body, None, Names(("total",), ("total",), ("total",), ("total",)))
    check_sum(total)
    return total


def _extreme(function: Any, found: Iteration, element: Callable[[Any], Any]) -> Any:
    """The smallest or largest, as Python compares them: each with the best of those before it."""
    best = element(found.at(0))

    def body(number: Any) -> Outcome:
        nonlocal best
        best = one_of(function, best, element(found.at(number.extent if isinstance(number, Symbolic) else number)))
        return None

    assert found.count is not None
    for_(Counted(1, found.count, 1), body, None, Names(("best",), ("best",), ("best",), ("best",)))
    return best


def one_of(function: Any, *values: Any) -> Any:
    """`min` or `max` of numbers, some of them traced."""
    capture = capture_of(*values)
    if not any(isinstance(x, (Tensor, Symbolic)) for x in values):
        return function(*values)
    result = call_builtin(capture, function, values)
    return capture.perform(call_function, function, values, {}) if result is NotImplemented else result


def check_sum(x: Any) -> None:
    """From Python 3.12 on `sum` keeps what is lost where it adds up Python's own floats."""
    if sys.version_info >= (3, 12) and isinstance(x, Tensor) and x.capture.policy.keeps_kinds:
        if not leaf_type(x).kinds.isdisjoint((FLOAT, COMPLEX)):
            raise no_value(x, "sum()")


#: The builtins that `reduced` knows.
REDUCING = frozenset({any, all, sum, min, max})

__all__ = ["REDUCING", "check_sum", "for_", "reduced", "while_"]
