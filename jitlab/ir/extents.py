"""Extents: integers that remember the shape symbols they were computed from.

A trace is exact, so every extent has a value; beside it, it keeps a polynomial over *symbols*, one for each axis of each
argument. Python's control flow uses the value, a Program uses the polynomial, and two traces of different sizes that give
the same Program text share one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, SupportsIndex

from jitlab.errors import InternalError, Unfit
from jitlab.support.lazy_dataclass import dataclass

from .size_facts import BELOW, EQUAL, QUOTIENT, REMAINDER, VALUE, here, noted

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


class NotRolled(Unfit):
    """A loop cannot be traced with a symbolic index."""


class Symbolic:
    """What a program holds for an integer without a fixed value: no int, so that a caller that needs its value has to ask.

    Rules of operations take it where an extent or an operand is wanted, by its `extent`; everywhere else asking for its
    value (`operator.index`) raises NotRolled.
    """

    __slots__ = ("extent",)
    extent: Moving

    def __index__(self) -> int:
        raise NotRolled("index_value", "no_value", value=self.extent.expr)


class Extent(int):
    """An axis length (or a number computed from some): an ordinary int with the polynomial it came from.

    `+`, `-`, `*` and an exact `//` by an int keep the polynomial; everything else gives a plain int, and is noted where
    somebody wants to know for which other sizes it would be the same (size_facts.py).
    """

    expr: Poly

    def __new__(cls, value: SupportsIndex, expr: Poly) -> Extent:
        self = super().__new__(cls, bare(value) if isinstance(value, int) else value)
        self.expr = expr
        return self

    @classmethod
    def symbol(cls, name: str, value: int) -> Extent:
        return cls(value, Poly.symbol(name))

    @property
    def moving(self) -> frozenset[str]:
        """The symbols in it that have no fixed value: those of loops, and integers found at run time."""
        return _NONE

    def __add__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        return _extent(bare(self) + bare(other), self.expr + poly(other), self, other)

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        return _extent(bare(self) - bare(other), self.expr - poly(other), self, other)

    def __rsub__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        return _extent(bare(other) - bare(self), poly(other) - self.expr, self, other)

    def __mul__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        return _extent(bare(self) * bare(other), self.expr * poly(other), self, other)

    __rmul__ = __mul__

    def __neg__(self) -> int:
        return _extent(-bare(self), self.expr.scale(-1), self)

    def __pos__(self) -> int:
        return self

    def __floordiv__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        value = bare(self) // bare(other)
        quotient = _exact_quotient(self.expr, poly(other))
        if quotient is not None:
            return _extent(value, quotient, self, other)
        noted(QUOTIENT, self.expr, int(other), value)
        return value

    def __mod__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        value = bare(self) % bare(other)
        noted(REMAINDER, self.expr, int(other), value)
        return value

    def __eq__(self, other: object) -> bool:
        return _compared(self, other, int.__eq__(self, other), EQUAL)

    def __ne__(self, other: object) -> bool:
        return _compared(self, other, int.__ne__(self, other), EQUAL, False)

    def __lt__(self, other: int) -> bool:
        return _compared(self, other, int.__lt__(self, other), BELOW)

    def __ge__(self, other: int) -> bool:
        return _compared(self, other, int.__ge__(self, other), BELOW, False)

    def __gt__(self, other: int) -> bool:
        return _compared(self, other, int.__gt__(self, other), BELOW, turned=True)

    def __le__(self, other: int) -> bool:
        return _compared(self, other, int.__le__(self, other), BELOW, False, turned=True)

    def __bool__(self) -> bool:
        value = bare(self) != 0
        noted(EQUAL, self.expr, 0, not value)
        return value

    def __hash__(self) -> int:
        noted(VALUE, self.expr, 0, bare(self))
        return int.__hash__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)  # what leaves a capture is a plain int


#: An int's value without a note of it.
bare = int.__int__


def _compared(one: Extent, other: Any, answer: bool, question: int, when: bool = True, *, turned: bool = False) -> bool:
    """The answer of a comparison, noted: it is `when` where the question's is yes; `turned`: where `other < one`."""
    facts = here.facts
    if facts is None:
        return answer
    holds = answer is when
    if type(other) is int:
        facts.note(question, one.expr, other + turned, holds is not turned)
    elif not isinstance(other, int):  # a float
        facts.note(VALUE, one.expr, 0, bare(one))
    else:
        difference = one.expr - poly(other)
        facts.note(question, difference.scale(-1) if turned else difference, 0, holds)
    return answer


def _valued(name: str) -> Any:
    """A method of int that wants the value."""
    method = getattr(int, name)

    def of_value(self: Extent, *args: Any, **kwargs: Any) -> Any:
        noted(VALUE, self.expr, 0, bare(self))
        return method(self, *args, **kwargs) if callable(method) else method.__get__(self)

    return of_value if callable(method) else property(of_value)


_TEXTS = {"__repr__", "__str__", "__format__"}
_OTHERS = {*vars(Extent), *vars(object), "__getnewargs__", "from_bytes"} - _TEXTS
for _name in (_TEXTS | set(vars(int))) - _OTHERS:
    setattr(Extent, _name, _valued(_name))


class Moving(Extent):
    """An extent with symbols that have no fixed value: a loop's, or an integer found at run time.

    As an int it is a *sample* that capture chose, so nothing may be decided from `int(x)` where it could be otherwise; what
    is known about it stands in `Bounds`. Two of them are equal when their polynomials are.
    """

    _moving: frozenset[str]

    @classmethod
    def of(cls, value: int, expr: Poly, moving: frozenset[str]) -> Moving:
        self = cls(value, expr)
        self._moving = moving
        return self

    @classmethod
    def symbol(cls, name: str, value: int) -> Moving:
        return cls.of(value, Poly.symbol(name), frozenset({name}))

    @property
    def moving(self) -> frozenset[str]:
        return self._moving

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moving) and self.expr == other.expr

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.expr)

    def __floordiv__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        quotient = None if int(other) == 0 else _exact_quotient(self.expr, poly(other))
        if quotient is None:
            raise NotRolled("index_value", "no_polynomial", one=self.expr, other=poly(other))
        return _extent(bare(self) // bare(other), quotient, self, other)

    def _no_polynomial(self, other: Any) -> Any:
        raise NotRolled("index_value", "no_value", value=self.expr)

    __mod__ = __rmod__ = __rfloordiv__ = __divmod__ = __rdivmod__ = __truediv__ = __rtruediv__ = _no_polynomial
    __lt__ = __le__ = __gt__ = __ge__ = _no_polynomial
    __pow__ = __rpow__ = _no_polynomial  # type: ignore[assignment]


def poly(value: int) -> Poly:
    """The polynomial of an extent, a constant one for a plain int."""
    return value.expr if isinstance(value, Extent) else Poly.constant(bare(value))


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


def symbols_in(x: Any) -> set[str]:
    """The symbols in the Extents of an operation's fields (or of a tuple)."""
    if isinstance(x, Extent):
        return set(x.expr.symbols)
    if isinstance(x, tuple):
        return {name for part in x for name in symbols_in(part)}
    if is_dataclass(x) and not isinstance(x, type) and not hasattr(x, "nodes"):
        return {name for f in fields(x) for name in symbols_in(getattr(x, f.name))}
    return set()


def plain(shape: Iterable[int]) -> tuple[int, ...]:
    """A shape without its polynomials, for NumPy and for people."""
    return tuple(int(n) for n in shape)


def symbol_of(n: int) -> str | None:
    """The symbol that an extent is; None for any other."""
    terms = n.expr.terms if isinstance(n, Extent) else ()
    return terms[0][0][0] if len(terms) == 1 and len(terms[0][0]) == 1 and terms[0][1] == 1 else None


def alike(mine: Sequence[int], theirs: Sequence[int]) -> bool:
    """Are two shapes the same today? Of lengths that move their samples are."""
    return len(mine) == len(theirs) and all(
        int(m) == int(n) if isinstance(m, Moving) or isinstance(n, Moving) else m == n
        for m, n in zip(mine, theirs, strict=True)
    )


_NONE: frozenset[str] = frozenset()


def _extent(value: int, expr: Poly, *operands: int) -> int:
    """The extent with this polynomial, computed of these operands: a plain int where no symbol is left."""
    if expr.value is not None:
        if expr.value != value:
            raise InternalError(f"jitlab made a mistake: a size is {value}, and what it was computed from gives {expr.value}")
        return expr.value
    moving = _NONE.union(*(x.moving for x in operands if isinstance(x, Moving)))
    moving = moving.intersection(expr.symbols) if moving else moving
    return Moving.of(value, expr, moving) if moving else Extent(value, expr)


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
