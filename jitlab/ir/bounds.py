"""What is known about integers without a fixed value: the bounds of loops' symbols, and what they prove.

A trace is exact, so symbols of shapes have values. The symbols of loops lie between bounds that are polynomials over the
symbols of the loops around them; an integer found at run time lies between whatever bounds are known. Nothing here guesses:
None and False mean "not proved".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import contextmanager, variable

from .extents import Extent, Monomial, Moving, NotRolled, Poly, poly
from .size_facts import VALUE, here, noted

#: Where a sample lies in its range, by the depth of the loop: irrational, so that equal samples mean equal polynomials.
SAMPLES = (0.6180339887, 0.4142135624, 0.7320508076, 0.2360679775, 0.5497787144, 0.3166247904)


@dataclass(frozen=True)
class State:
    """A point to go back to."""

    symbols: int
    facts: int
    counts: tuple[tuple[str, int], ...]
    depth: int


class Bounds:
    """Symbols without fixed values, outermost first, each with its bounds; and expressions known to be 0 or more."""

    def __init__(self, sizes: Mapping[str, int] | None = None) -> None:
        self.sizes: dict[str, int] = dict(sizes or {})  # the values of the symbols of shapes
        self._ranges: dict[str, tuple[Poly | None, Poly | None]] = {}
        self._facts: list[Poly] = []
        self._counts: dict[str, int] = {}
        self.depth = 0  # how many loops are being rolled around here
        self.noted: dict[Any, tuple[int | None, int | None]] = {}  # the bounds of integer values that have no symbol
        self.defined: dict[Any, Any] = {}  # what has a symbol already, for the caller that gives symbols
        self.made: dict[Any, Any] = {}
        self._least: dict[Poly, int | None] = {}
        self._proved: dict[Poly, bool] = {}

    # ---- what is known
    def add(self, symbol: str, least: int | Poly | None, most: int | Poly | None) -> None:
        """A new innermost symbol with its bounds, both inclusive; None: no bound is known."""
        assert symbol not in self._ranges, f"{symbol} has bounds already"
        self._ranges[symbol] = (self._bound(least), self._bound(most))
        self._forget()

    def assume(self, expr: int | Poly) -> None:
        """From now on `expr` is known to be 0 or more: inside a loop, its count less one."""
        known = self.known(_poly(expr))
        if known.value is None:
            self._facts.append(known)
            self._forget()

    def unique(self, stem: str) -> str:
        """A name for a new symbol: i0, i1, ... for loops, d0, d1, ... for integers found at run time."""
        number = self._counts.get(stem, 0)
        self._counts[stem] = number + 1
        return f"{stem}{number}"

    def counted(self, stem: str) -> int:
        """The number of the next symbol of this stem."""
        return self._counts.get(stem, 0)

    def state(self) -> State:
        return State(len(self._ranges), len(self._facts), tuple(self._counts.items()), self.depth)

    def restore(self, state: State, *, names: bool = True) -> None:
        """Forget what was learnt since; `names`: names given since may be given again."""
        for symbol in list(self._ranges)[state.symbols :]:
            del self._ranges[symbol]
        del self._facts[state.facts :]
        self.depth = state.depth
        if names:
            self._counts = dict(state.counts)
        self._forget()

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._ranges

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols without fixed values, outermost first."""
        return tuple(self._ranges)

    def range_of(self, symbol: str) -> tuple[Poly | None, Poly | None]:
        """The bounds of a symbol, over the symbols around it."""
        return self._ranges[symbol]

    # ---- proofs
    def asked(self, expr: Poly) -> None:
        """The values of the sizes in a polynomial decide something."""
        if here.facts is not None:
            for name in expr.symbols:
                if name in self.sizes and name not in self._ranges:
                    noted(VALUE, Poly.symbol(name), 0, self.sizes[name])

    def known(self, expr: Poly) -> Poly:
        """The polynomial with the sizes put in."""
        self.asked(expr)
        terms: dict[Monomial, int] = {}
        for monomial, k in expr.terms:
            rest: list[str] = []
            for name in monomial:
                value = None if name in self._ranges else self.sizes.get(name)
                if value is None:
                    rest.append(name)
                else:
                    k *= value
            key = tuple(rest)
            terms[key] = terms.get(key, 0) + k
        return Poly.of(terms)

    def least(self, expr: int | Poly) -> int | None:
        """A number that `expr` is never below; None: none is known."""
        return self._least_known(self.known(_poly(expr)))

    def greatest(self, expr: int | Poly) -> int | None:
        """A number that `expr` is never above; None: none is known."""
        low = self._least_known(self.known(_poly(expr)).scale(-1))
        return None if low is None else -low

    def proves_nonnegative(self, expr: int | Poly) -> bool:
        """Is `expr` 0 or more for every value of the symbols? False: no, or not proved."""
        expr = self.known(_poly(expr))
        proved = self._proved.get(expr)
        if proved is None:
            proved = self._proved[expr] = any(self._starts_at_zero(way) for way in self._ways(expr))
        return proved

    def proves_equal(self, left: int | Poly, right: int | Poly) -> bool:
        difference = self.known(_poly(left) - _poly(right))
        if not difference.terms:
            return True
        return self.proves_nonnegative(difference) and self.proves_nonnegative(difference.scale(-1))

    def proves_unequal(self, left: int | Poly, right: int | Poly) -> bool:
        difference = _poly(left) - _poly(right)
        one = Poly.constant(1)
        return self.proves_nonnegative(difference - one) or self.proves_nonnegative(difference.scale(-1) - one)

    def decides(self, expr: int | Poly) -> bool | None:
        """True: 0 or more, always; False: below 0, always; None: not proved."""
        expr = _poly(expr)
        if self.proves_nonnegative(expr):
            return True
        return False if self.proves_nonnegative(expr.scale(-1) - Poly.constant(1)) else None

    def _starts_at_zero(self, expr: Poly) -> bool:
        low = self._least_known(expr)
        return low is not None and low >= 0

    def _ways(self, expr: Poly) -> Iterator[Poly]:
        """The expression, and what is left of it without one or two facts: if any of them is 0 or more, so is it."""
        yield expr
        mine = set(expr.symbols)
        near = [fact for fact in self._facts if mine.intersection(fact.symbols)]
        if mine and len(near) < len(self._facts):  # facts about bounds of our symbols are near, too
            wider = {s for name in mine for bound in self._ranges.get(name, ()) if bound is not None for s in bound.symbols}
            near += [fact for fact in self._facts if fact not in near and wider.intersection(fact.symbols)]
        for fact in near:
            yield expr - fact
        for one, other in itertools.combinations_with_replacement(near, 2):
            yield expr - one - other

    def _least_known(self, expr: Poly) -> int | None:
        if expr.value is not None:
            return expr.value
        if expr not in self._least:
            self._least[expr] = self._eliminated(expr)
        return self._least[expr]

    def _eliminated(self, expr: Poly) -> int | None:
        """The innermost symbol replaced by the bound that makes the expression least, and so on outwards."""
        symbol = self._innermost(expr)
        if symbol is None:
            return None
        low, high = self._ranges[symbol]
        rest, coefficient = _split(expr, symbol)
        if coefficient is None:
            return self._least_of_powers(expr, symbol)
        rising = self._least_known(coefficient)
        if rising is not None and rising >= 0:
            return None if low is None else self._least_known(rest + coefficient * low)
        falling = self._least_known(coefficient.scale(-1))
        if falling is not None and falling >= 0:
            return None if high is None else self._least_known(rest + coefficient * high)
        if low is None or high is None:
            return None
        # one of them, as it is linear
        ends = self._least_known(rest + coefficient * low), self._least_known(rest + coefficient * high)
        return None if ends[0] is None or ends[1] is None else min(ends[0], ends[1])

    def _least_of_powers(self, expr: Poly, symbol: str) -> int | None:
        """The same where the symbol is squared: term by term, if it is never negative."""
        low, high = self._ranges[symbol]
        if low is None or not self._starts_at_zero(low):
            return None
        total = Poly()
        for power, factor in _powers(expr, symbol).items():
            at: Poly | None = low
            if power:
                rising, falling = self._least_known(factor), self._least_known(factor.scale(-1))
                if falling is not None and falling >= 0:
                    at = high
                elif rising is None or rising < 0:
                    return None
            if at is None:
                return None
            for _ in range(power):
                factor = factor * at
            total = total + factor
        return self._least_known(total)

    def _innermost(self, expr: Poly) -> str | None:
        mine = expr.symbols
        if any(name not in self._ranges for name in mine):
            return None  # a symbol that nothing is known of
        return next(name for name in reversed(self._ranges) if name in mine)

    def _bound(self, bound: int | Poly | None) -> Poly | None:
        return None if bound is None else self.known(_poly(bound))

    def _forget(self) -> None:
        self._least.clear()
        self._proved.clear()


def _poly(expr: int | Poly) -> Poly:
    return expr if isinstance(expr, Poly) else poly(expr)


def _split(expr: Poly, symbol: str) -> tuple[Poly, Poly | None]:
    """(rest, coefficient) with expr = rest + coefficient * symbol; no coefficient where the symbol stands squared."""
    parts = _powers(expr, symbol)
    return parts.get(0, Poly()), parts.get(1, Poly()) if max(parts) < 2 else None


def _powers(expr: Poly, symbol: str) -> dict[int, Poly]:
    """The factor of each power of the symbol."""
    terms: dict[int, dict[Monomial, int]] = {}
    for monomial, k in expr.terms:
        power = monomial.count(symbol)
        terms.setdefault(power, {})[tuple(name for name in monomial if name != symbol)] = k
    return {power: Poly.of(part) for power, part in terms.items()}


#: What is known in the recording under way; None outside of one, where samples are compared as they are.
current_bounds: ContextVar[Bounds | None] = variable("jitlab_bounds", None)


@contextmanager
def proving(bounds: Bounds) -> Iterator[Bounds]:
    """Make these the bounds that the rules of operations prove by."""
    token = current_bounds.set(bounds)
    try:
        yield bounds
    finally:
        current_bounds.reset(token)


# ---- questions that the rules of operations ask about extents. Without a symbol that moves, the numbers answer.


def same_extent(m: int, n: int) -> bool:
    """Are two extents equal? Raises NotRolled where that is not known for every iteration."""
    if not isinstance(m, Moving) and not isinstance(n, Moving):
        return m == n
    if m == n:
        return True
    bounds = current_bounds.get()
    if bounds is None:
        return int(m) == int(n)
    if bounds.proves_equal(m, n):
        return True
    raise NotRolled("extents", "lengths_differ")


def same_shape(mine: Sequence[int], theirs: Sequence[int]) -> bool:
    """Are two shapes equal, extent by extent?"""
    return len(mine) == len(theirs) and all(same_extent(m, n) for m, n in zip(mine, theirs, strict=True))


def is_one(n: int) -> bool:
    """Is an extent 1, so that it broadcasts? One that moves is taken as it is: a length that may differ from its partner's
    is refused where the two meet."""
    return not isinstance(n, Moving) and n == 1


def at_least(n: int, least: int) -> bool:
    """Is an extent `least` or more? Raises NotRolled where that is not known for every iteration."""
    if not isinstance(n, Moving):
        return n >= least
    bounds = current_bounds.get()
    answer = None if bounds is None else bounds.decides(n.expr - Poly.constant(least))
    if answer is None:
        if bounds is None:
            return int(n) >= least
        raise NotRolled("extents", "length_below", least=least)
    return answer


def as_length(n: int) -> int:
    """An extent that is to be a length: 0 or more by proof, and a sample of 2 or more, so that no rule takes it for a 1."""
    bounds = current_bounds.get()
    if not isinstance(n, Moving) or bounds is None:
        return n
    if not bounds.proves_nonnegative(n):
        raise NotRolled("extents", "negative_length", length=n.expr)
    if int(n) < 2:
        raise NotRolled("extents", "short_length", length=n.expr)
    return n


def sample(least: int, most: int | None, depth: int) -> int:
    """A value between the bounds that stands for all: not near the ends where the range is wide."""
    if most is None:
        return max(least, 0) + 5 + depth
    inner = (least + 2, most - 2) if most - least >= 5 else (least, most)
    wanted = least + int((most - least) * SAMPLES[depth % len(SAMPLES)])
    return min(max(wanted, inner[0]), inner[1])


def fixed(n: int) -> bool:
    """Has an extent a value that is the same in every iteration?"""
    return not isinstance(n, Moving)


__all__ = [
    "Bounds", "Extent", "NotRolled", "as_length", "at_least", "current_bounds", "fixed", "is_one", "proving", "same_extent",
    "same_shape", "sample",
]  # fmt: skip
