"""The bounds of loop variables and loop symbols while a Program is written.

A trace is exact, and a Program is written anew for each (equal text shares the code): symbols of sizes count with their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from jitlab.ir import Bounds, Poly
from jitlab.ir.programs.program import ONE, ZERO, Index

#: A variable with its least and greatest value, both inclusive; None: no bound is known.
Range = tuple[str, Poly | None, Poly | None]


class Ranges(Bounds):
    """Bounds in the symbols of a Program."""

    def __init__(self, sizes: dict[str, int], asked: Callable[[Sequence[str]], None]) -> None:
        """`asked` is told of the sizes whose values decide something."""
        super().__init__()
        self._asked = asked
        self.sizes = sizes  # the very dict: it grows while symbols are named
        self._ends: dict[str, tuple[Poly | None, Poly | None]] = {}  # bounds with their symbols of sizes

    def asked(self, expr: Poly) -> None:
        self._asked([name for name in expr.symbols if name not in self])

    @contextmanager
    def inside(self, *ranges: Range) -> Iterator[None]:
        """In a body where these hold; it runs, so no range is empty."""
        before = self.state()
        for name, least, most in ranges:
            self.add_range(name, least, most)
        try:
            yield
        finally:
            self.restore(before)

    def add_range(self, name: str, least: Poly | None, most: Poly | None) -> None:
        """A new innermost variable, whose range is not empty."""
        self.add(name, least, most)
        self._ends[name] = least, most
        if least is not None and most is not None:
            self.assume(most - least)

    @contextmanager
    def loops(self, loops: Sequence[tuple[str, Poly]]) -> Iterator[None]:
        """In the body of loops from 0 to these extents."""
        with self.inside(*((v, ZERO, n - ONE) for v, n in loops)):
            yield

    def greatest_size(self, p: Poly) -> Poly | None:
        """A bound from above in symbols of sizes alone; None: none is known."""
        for name in reversed(self.symbols):
            if name not in p.symbols:
                continue
            coefficient, rest = _split(p, name)
            least, most = self._ends[name]
            rising = coefficient is not None and self.proves_nonnegative(coefficient)
            if coefficient is None or not (rising or self.proves_nonnegative(coefficient.scale(-1))):
                return None
            end = most if rising else least
            if end is None:
                return None
            p = rest + coefficient * end
        return p


def _split(p: Poly, name: str) -> tuple[Poly | None, Poly]:
    """p = coefficient * name + rest; no coefficient when the name is there with a higher power."""
    coefficient, rest = Poly(), Poly()
    for monomial, c in p.terms:
        count = monomial.count(name)
        if count > 1:
            return None, Poly()
        if count:
            left = list(monomial)
            left.remove(name)
            coefficient = coefficient + Poly.of({tuple(left): c})
        else:
            rest = rest + Poly.of({monomial: c})
    return coefficient, rest


def as_poly(index: Index, rename: Callable[[str], str] = lambda v: v) -> Poly:
    """An index with its loop variables as symbols."""
    total = index.const
    for v, k in index.terms:
        total = total + k * Poly.symbol(rename(v))
    return total
