"""Extents: integers that remember the shape symbols they were computed from (design D6).

A trace is exact, so every extent has a value; beside it, it keeps a polynomial over *symbols*, one for each axis of each
argument. Python's control flow uses the value, a Program uses the polynomial, and two traces of different sizes that give
the same Program text share one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, SupportsIndex

Monomial = tuple[str, ...]  # the symbols of a product, sorted; () is the constant term


@dataclass(frozen=True, slots=True)
class Poly:
    """A polynomial with integer coefficients over named symbols; terms are sorted, so equal polynomials are equal objects."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @classmethod
    def constant(cls, value: int) -> Poly:
        return cls((((), int(value)),)) if value else cls()

    @classmethod
    def symbol(cls, name: str) -> Poly:
        return cls((((name,), 1),))

    @classmethod
    def of(cls, terms: Mapping[Monomial, int]) -> Poly:
        return cls(tuple(sorted((m, k) for m, k in terms.items() if k)))

    def __add__(self, other: Poly) -> Poly:
        terms = dict(self.terms)
        for monomial, k in other.terms:
            terms[monomial] = terms.get(monomial, 0) + k
        return Poly.of(terms)

    def __sub__(self, other: Poly) -> Poly:
        return self + other.scale(-1)

    def __mul__(self, other: Poly) -> Poly:
        terms: dict[Monomial, int] = {}
        for m1, k1 in self.terms:
            for m2, k2 in other.terms:
                monomial = tuple(sorted(m1 + m2))
                terms[monomial] = terms.get(monomial, 0) + k1 * k2
        return Poly.of(terms)

    def scale(self, k: int) -> Poly:
        return Poly.of({m: c * k for m, c in self.terms})

    @property
    def value(self) -> int | None:
        """The number, when no symbol is left."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == () else None

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols in order of first appearance."""
        return tuple(dict.fromkeys(s for monomial, _ in self.terms for s in monomial))

    def substitute(self, values: Mapping[str, Poly]) -> Poly:
        if not any(s in values for s in self.symbols):
            return self
        total = Poly()
        for monomial, k in self.terms:
            product = Poly.constant(k)
            for name in monomial:
                product = product * values.get(name, Poly.symbol(name))
            total = total + product
        return total

    def evaluate(self, values: Mapping[str, int]) -> int:
        total = 0
        for monomial, k in self.terms:
            for name in monomial:
                k *= values[name]
            total += k
        return total

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, k in sorted(self.terms, key=lambda term: (term[0] == (), term[0])):  # the constant comes last
            factors = "*".join(monomial)
            sign = "-" if k < 0 else "+" if text else ""
            number = str(abs(k)) if not monomial or abs(k) != 1 else ""
            text += sign + number + ("*" if number and factors else "") + factors
        return text


class Extent(int):
    """An axis length (or a number computed from some): an ordinary int with the polynomial it came from.

    `+`, `-`, `*` and an exact `//` by an int keep the polynomial; everything else gives a plain int.
    """

    expr: Poly

    def __new__(cls, value: SupportsIndex, expr: Poly) -> Extent:
        self = super().__new__(cls, value)
        self.expr = expr
        return self

    @classmethod
    def symbol(cls, name: str, value: int) -> Extent:
        return cls(value, Poly.symbol(name))

    def __add__(self, other: int) -> int:
        return _extent(int(self) + int(other), self.expr + poly(other)) if isinstance(other, int) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return _extent(int(self) - int(other), self.expr - poly(other)) if isinstance(other, int) else NotImplemented

    def __rsub__(self, other: int) -> int:
        return _extent(int(other) - int(self), poly(other) - self.expr) if isinstance(other, int) else NotImplemented

    def __mul__(self, other: int) -> int:
        return _extent(int(self) * int(other), self.expr * poly(other)) if isinstance(other, int) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> int:
        return _extent(-int(self), self.expr.scale(-1))

    def __pos__(self) -> int:
        return self

    def __floordiv__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        value = int(self) // int(other)
        quotient = _exact_quotient(self.expr, poly(other))
        return value if quotient is None else _extent(value, quotient)

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)  # what leaves a capture is a plain int


def poly(value: int) -> Poly:
    """The polynomial of an extent, a constant one for a plain int."""
    return value.expr if isinstance(value, Extent) else Poly.constant(int(value))


def evaluate_extent(extent: int, symbols: Mapping[str, int]) -> int:
    """The value of an extent where `symbols` have these values; a plain int is itself.

    An Extent that depends on a loop's symbol holds, as an int, its value for the sample that capture took of that symbol.
    """
    if not isinstance(extent, Extent) or not any(s in symbols for s in extent.expr.symbols):
        return int(extent)
    return extent.expr.evaluate(symbols)


def bind_extents(x: Any, symbols: Mapping[str, int]) -> Any:
    """A copy of an operation (or of a tuple) in which each Extent is the plain int it is for these values of the symbols."""
    if isinstance(x, Extent):
        return evaluate_extent(x, symbols)
    if isinstance(x, tuple):
        parts = tuple(bind_extents(part, symbols) for part in x)
        return x if all(a is b for a, b in zip(parts, x, strict=True)) else parts
    if is_dataclass(x) and not isinstance(x, type):
        changed = {f.name: bind_extents(getattr(x, f.name), symbols) for f in fields(x) if f.init}
        return x if all(getattr(x, name) is value for name, value in changed.items()) else replace(x, **changed)
    return x


def plain(shape: Iterable[int]) -> tuple[int, ...]:
    """A shape without its polynomials, for NumPy and for people."""
    return tuple(int(n) for n in shape)


def _extent(value: int, expr: Poly) -> int:
    return value if expr.value is not None else Extent(value, expr)


def _exact_quotient(dividend: Poly, divisor: Poly) -> Poly | None:
    """dividend / divisor when it leaves no remainder for any value of the symbols; the divisor has one term."""
    if len(divisor.terms) != 1:
        return None
    (symbols, factor) = divisor.terms[0]
    terms: dict[Monomial, int] = {}
    for monomial, k in dividend.terms:
        rest = list(monomial)
        for name in symbols:
            if name not in rest:
                return None
            rest.remove(name)
        if k % factor:
            return None
        terms[tuple(rest)] = k // factor
    return Poly.of(terms)
