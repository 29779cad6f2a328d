"""What a recording and its stages took for granted of sizes: a comparison, a remainder, a value. For other sizes of which the
same holds they would do the same, step for step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from jitlab.support.transactions import contextmanager, keep

if TYPE_CHECKING:
    from .extents import Poly

#: What was asked of a polynomial: is it a number, is it below it, its value, its remainder and its quotient by a number.
EQUAL, BELOW, VALUE, REMAINDER, QUOTIENT = range(5)

#: So many facts are worth comparing.
MOST = 2000


class SizeFacts:
    """Facts about the sizes of one recording, each a question about a polynomial over its symbols, with the answer.

    `unknown`: something was asked that no fact tells, so that they say nothing of other sizes. `seen`: the program itself has
    looked at the sizes of its arguments; of those that the data decide they say all."""

    def __init__(self) -> None:
        self.facts: dict[tuple[int, Poly, int], int] = {}
        self.unknown = self.seen = False
        self._asked: dict[tuple[int, int, int], Poly] = {}  # by the id of the polynomial: the same is asked again and again

    def note(self, question: int, expr: Poly, number: int, answer: int) -> None:
        key = id(expr), question, number
        if self._asked.get(key) is expr:
            return
        if len(self._asked) > MOST:
            self._asked.clear()
        self._asked[key] = expr
        if expr.value is None:
            self.facts[question, expr, number] = answer
            if len(self.facts) > MOST:
                self.unknown = True

    def hold(self, values: Mapping[str, int]) -> bool:
        """Are the answers the same for these values of the symbols?"""
        try:
            return not (self.unknown or self.seen) and all(
                _ANSWERS[question](expr.evaluate(values), number) == answer
                for (question, expr, number), answer in self.facts.items()
            )
        except KeyError:  # of a symbol that is computed of others
            return False

    def hold_of(self, names: Container[str], values: Mapping[str, int]) -> bool:
        """The same for the facts about these symbols, as far as their values are known."""
        return not self.unknown and all(
            _ANSWERS[question](expr.evaluate(values), number) == answer
            for (question, expr, number), answer in list(self.facts.items())
            if any(name in names for name in expr.symbols) and all(name in values for name in expr.symbols)
        )


_ANSWERS: dict[int, Callable[[int, int], int]] = {
    EQUAL: lambda value, number: value == number,
    BELOW: lambda value, number: value < number,
    VALUE: lambda value, _: value,
    REMAINDER: lambda value, number: value % number,
    QUOTIENT: lambda value, number: value // number,
}


class _Here(threading.local):
    facts: SizeFacts | None = None


here = _Here()
keep(lambda: here.facts, lambda before: setattr(here, "facts", before))


@contextmanager
def noting(facts: SizeFacts | None) -> Iterator[None]:
    """Inside, in this thread, what is asked of sizes is noted; None: not (reports ask for numbers that decide nothing)."""
    before, here.facts = here.facts, facts
    try:
        yield
    finally:
        here.facts = before


def begun() -> SizeFacts:
    """The facts that are noted from now on, until the innermost `noting` ends."""
    if here.facts is None:
        here.facts = SizeFacts()
    return here.facts


def sizes_are_seen() -> None:
    """A stage gets sizes in a form of which nothing can be noted."""
    if here.facts is not None:
        here.facts.unknown = True


def sizes_are_shown() -> None:
    """The program gets the sizes of arguments as numbers."""
    if here.facts is not None:
        here.facts.seen = True


def noted(question: int, expr: Any, number: int, answer: int) -> None:
    if here.facts is not None:
        here.facts.note(question, expr, number, answer)
