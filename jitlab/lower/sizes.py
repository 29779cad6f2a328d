"""Extents of a cluster in canonical symbols: equalities that operations need are united, then symbols are renumbered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jitlab.ir import Extent, Moving, Node, Poly, Shape, poly
from jitlab.ir.size_facts import VALUE, here, noted, sizes_are_seen
from jitlab.ops.base import Elementwise
from jitlab.ops.layout.views import Update
from jitlab.ops.linear_algebra.matrix_products import Product
from jitlab.support.lazy_dataclass import dataclass

#: Lengths and offsets below this are part of a Program's text; larger numbers are run-time symbols like any other.
BAKED = 16


@dataclass(frozen=True)
class Origin:
    """What a symbol of a Program is: a polynomial over the graph's symbols; by `number` its quotient, rounded `up` or down."""

    expr: Poly
    number: int = 0
    up: bool = False

    def evaluate(self, values: Mapping[str, int]) -> int:
        value = self.expr.evaluate(values)
        return _quotient(value, self.number, self.up) if self.number else value


class Sizes:
    """Polynomials of a Program. Symbols are n0, n1, ... in order of first use, so that equal Programs have equal text."""

    def __init__(self, nodes: Sequence[Node], values: dict[str, int], shape: Shape) -> None:
        self.shape = shape
        self._known = values  # of the graph's symbols
        self._equal: dict[str, Poly] = {}
        self._names: dict[str, Poly] = {}
        self.symbols: list[str] = []
        self.values: dict[str, int] = {}  # of the Program's symbols
        self.origins: dict[str, Origin] = {}  # of each what it is of the graph's sizes
        self._of: dict[Poly, Poly] = {}  # what `of` has answered
        self.samples: dict[str, int] = {}  # of those that have no value of their own: numbers of iterations, run-time integers
        self._unite_all(nodes)

    def of(self, extent: int) -> Poly:
        """The polynomial of an extent."""
        asked = poly(extent)
        known = self._of.get(asked)
        if known is None:
            known = self._of[asked] = self._rename(self._normal(_symbolic(asked)))
        return known

    def fresh(self, value: int, stem: str = "n", origin: Origin | None = None) -> Poly:
        """A new run-time symbol (a stride of an argument)."""
        name = f"{stem}{len(self.symbols)}"
        self.symbols.append(name)
        self.values[name] = int(value)
        if origin is not None:
            self.origins[name] = origin
        return Poly.symbol(name)

    def quotient(self, p: Poly, number: int, *, up: bool = False) -> Poly:
        """A new symbol: how often a number goes into an extent, or `up`: how many of it hold the extent."""
        origin = self._of_graph(p)
        value = p.evaluate(self.values)
        return self.fresh(_quotient(value, number, up), "n", None if origin is None else Origin(origin, number, up))

    def value(self, p: Poly) -> int:
        """Today's value, or an example where loops decide."""
        value = p.evaluate({**self.values, **self.samples} if self.samples else self.values)
        origin = self._of_graph(p)
        if origin is None:
            self.asked(p.symbols)
            return value
        return Extent(value, origin) if origin.value is None else value

    @property
    def told(self) -> dict[str, int]:
        """The values of all symbols, for decisions: each is an extent, so that what is asked of it is noted."""
        exprs = {name: origin.expr for name, origin in self.origins.items() if not origin.number}
        made = {name: Extent(value, exprs.get(name, Poly.symbol(f"?{name}"))) for name, value in self.values.items()}
        return {**made, **self.samples}

    def asked(self, symbols: Iterable[str]) -> None:
        """The values of symbols of the Program decide something."""
        if here.facts is not None:
            for name in symbols:
                origin = self.origins.get(name)
                if origin is None:
                    sizes_are_seen()
                else:
                    noted(VALUE, origin.expr, 0, origin.expr.evaluate(self._known))

    def _of_graph(self, p: Poly) -> Poly | None:
        """A polynomial of the Program in the graph's own symbols."""
        found = {name: self.origins.get(name) for name in p.symbols}
        if any(origin is None or origin.number for origin in found.values()):
            return None
        return p.substitute({name: origin.expr for name, origin in found.items() if origin is not None})

    def bind(self, symbol: str, stem: str, sample: int) -> str:
        """The Program's name for a symbol of the graph that the Program itself gives values to."""
        name = f"{stem}{len(self.samples)}"
        self._names[symbol] = Poly.symbol(name)
        self._of.clear()
        self.samples[name] = sample
        return name

    def name_of(self, symbol: str) -> str:
        """The Program's name for a symbol of the graph that was bound."""
        return self._names[symbol].symbols[0]

    def _rename(self, p: Poly) -> Poly:
        for name in p.symbols:
            if name not in self._names:
                is_number = name.startswith("#")
                value = int(name[1:]) if is_number else self._known[name]
                self._names[name] = self.fresh(value, origin=Origin(Poly.constant(value) if is_number else Poly.symbol(name)))
        return p.substitute(self._names)

    def _normal(self, p: Poly) -> Poly:
        while True:
            q = p.substitute(self._equal)
            if q == p:
                return p
            p = q

    def _unite(self, a: int, b: int) -> None:
        """An operation needs a = b: replace one symbol by what it equals. The trace is exact, so they are equal today."""
        p, q = self._normal(_symbolic(poly(a))), self._normal(_symbolic(poly(b)))
        difference = p - q
        if not difference.terms or any(s not in self._known and s[0] != "#" for s in difference.symbols):
            return
        if not _are_equal(a, b):
            return
        single = [(m[0], k) for m, k in difference.terms if len(m) == 1 and abs(k) == 1]
        for name, k in reversed(single):
            rest = difference - Poly.symbol(name).scale(k)
            if name not in rest.symbols:
                self._equal[name] = rest.scale(-k)
                return

    def _unite_all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._unite_operands(node)
            for graph in getattr(node.op, "graphs", ()):
                self._unite_all(graph.nodes)

    def _unite_operands(self, node: Node) -> None:
        op = node.op
        if isinstance(op, Elementwise):
            for source in node.inputs:
                for n, m in zip(reversed(source.shape), reversed(node.shape), strict=False):
                    if n != 1:
                        self._unite(n, m)
        elif isinstance(op, Product):
            a, b = node.inputs
            self._unite(a.shape[-1], b.shape[-2] if b.ndim > 1 else b.shape[0])
        elif isinstance(op, Update):
            for n, m in zip(node.inputs[1].shape, op.shape, strict=True):
                self._unite(n, m)


def _are_equal(a: int, b: int) -> bool:
    """Today, or as samples."""
    return int(a) == int(b) if isinstance(a, Moving) or isinstance(b, Moving) else a == b


def _quotient(value: int, number: int, up: bool) -> int:
    return -(-value // number) if up else value // number


def _symbolic(p: Poly) -> Poly:
    """The polynomial with a large constant term as a symbol, `#<number>`: the same program for another number."""
    constant = dict(p.terms).get((), 0)
    if abs(constant) < BAKED:
        return p
    symbol = Poly.symbol(f"#{abs(constant)}").scale(1 if constant > 0 else -1)
    return p - Poly.constant(constant) + symbol
