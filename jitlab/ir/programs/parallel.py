"""Which loops of a Program are parallel: their iterations may run in any order, or at once, and give the same bits.

A loop is parallel where no iteration reads or writes what another one writes. That is proved on the offsets of its accesses; a
loop about which nothing is proved is serial, and right only upwards. (`x[:-1] = x[1:] * 2` is such a loop: each iteration reads
what the next one overwrites.) A row of scratch belongs to one iteration of the loops around it, so that it hinders none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jitlab.ir.extents import Poly

from .program import (
    ZERO,
    Assign,
    Buffer,
    Call,
    Define,
    Expr,
    Finish,
    For,
    Gemm,
    Index,
    Load,
    Partial,
    Program,
    Repeat,
    Statement,
    Step,
    Store,
    blocks,
    expressions,
    walk,
)

#: In the place of a variable: the number of a partial result that is read.
_PART = "#"


@dataclass(frozen=True)
class _Access:
    """`extents`: of the loops inside the one that is looked at, around this access; None: not known before a run."""

    buffer: Buffer
    offset: Index
    extents: Mapping[str, Poly | None]
    is_write: bool
    is_gathered: bool


def parallel_loops(program: Program) -> dict[int, frozenset[str]]:
    """The parallel loops by id, each with the names of the rows of scratch that every iteration needs for itself."""
    found = {}
    for kernel in program.kernels:
        for s in walk(kernel.body):
            if isinstance(s, For):
                rows = _private_rows(s)
                if rows is not None:
                    found[id(s)] = rows
    return found


def _private_rows(loop: For) -> frozenset[str] | None:
    """The rows that an iteration writes for itself; None where the loop is serial."""
    inside = list(walk(loop.body))
    own = {a.name for s in inside if isinstance(s, For) for a in s.accumulators}
    for s in inside:
        if isinstance(s, (Assign, Define, Repeat, Gemm, Call)):
            return None
        if isinstance(s, (Step, Partial)) and s.accumulator.name not in own:
            return None
    accesses = list(_accesses(loop.body, {}))
    rows = set()
    for name in {a.buffer.name for a in accesses if a.is_write}:
        mine = [a for a in accesses if a.buffer.name == name]
        if mine[0].buffer.kind == "row" and not any(a.offset.coefficient(loop.var).terms for a in mine):
            rows.add(name)
        elif not all(_are_apart(w, a, loop) for w in mine if w.is_write for a in mine):
            return None
    return frozenset(rows)


def _accesses(statements: Sequence[Statement], extents: Mapping[str, Poly | None]) -> Iterator[_Access]:
    for s in statements:
        if isinstance(s, Store):
            yield _Access(s.buffer, s.offset, extents, True, bool(s.gathered))
        elif isinstance(s, Partial):
            for buffer in s.partials:
                yield _Access(buffer, s.index, extents, True, False)
        elif isinstance(s, Finish):
            for buffer in s.partials:
                offset = s.base + Index.of(ZERO, {_PART: s.stride})
                yield _Access(buffer, offset, {**extents, _PART: s.count}, False, False)
        for load in _loads(expressions(s)):
            yield _Access(load.buffer, load.offset, extents, False, bool(load.gathered))
        inner = {**extents, s.var: _extent(s)} if isinstance(s, For) else extents
        for block in blocks(s):
            yield from _accesses(block, inner)


def _loads(roots: Sequence[Expr]) -> Iterator[Load]:
    seen: set[int] = set()
    todo = list(roots)
    while todo:
        e = todo.pop()
        if id(e) not in seen:
            seen.add(id(e))
            todo.extend(e.parts)
            if isinstance(e, Load):
                yield e


def _extent(s: For) -> Poly | None:
    """A bound of the number of iterations: a number, where there is one."""
    known = [index.const for index in s.extent if not index.vars]
    return next((p for p in known if p.value is not None), known[0] if known else None)


def _are_apart(one: _Access, other: _Access, loop: For) -> bool:
    """Are the elements different in any two iterations of the loop?"""
    step = one.offset.coefficient(loop.var)
    between = one.offset.const - other.offset.const
    around = {v for v, _ in (*one.offset.terms, *other.offset.terms)} - {loop.var, *one.extents, *other.extents}
    if one.is_gathered or other.is_gathered or other.offset.coefficient(loop.var) != step or between.value is None:
        return False
    if any(one.offset.coefficient(v) != other.offset.coefficient(v) for v in around):
        return False
    step = step if _is_size(step) else step.scale(-1)
    extent = _extent(loop)
    inner = {c for access in (one, other) for v, c in access.offset.terms if v in access.extents}
    return any(_stay_below(one, other, step, between, row, extent) for row in (None, *inner))


def _stay_below(
    one: _Access, other: _Access, step: Poly, between: Poly, row: Poly | None, extent: Poly | None
) -> bool:
    """Is what loops inside add to an offset less than a step of this loop? Multiples of `row` apart: they are more than all
    steps of this loop together, so that elements in different rows are different."""
    mine, theirs = _reach(one, row), _reach(other, row)
    if mine is None or theirs is None:
        return False
    (low, high), (their_low, their_high) = mine, theirs
    apart = (between + high - their_low, their_high - low - between)  # at most, either way
    one_more = Poly.constant(1)
    if not all(_is_size(step - one_more - most) for most in apart):
        return False
    if row is None:
        return True
    return extent is not None and all(_is_size(row - one_more - step * (extent - one_more) - most) for most in apart)


def _reach(access: _Access, row: Poly | None) -> tuple[Poly, Poly] | None:
    """The least and the greatest of what the loops inside add to an offset, multiples of `row` apart; None: not known."""
    low = high = ZERO
    for var, step in access.offset.terms:
        if var not in access.extents or (row is not None and _divides(row, step)):
            continue
        extent = access.extents[var]
        if extent is None:
            return None
        whole = step * (extent - Poly.constant(1))
        if _is_size(step):
            high = high + whole
        elif _is_size(step.scale(-1)):
            low = low + whole
        else:
            return None
    return low, high


def _divides(row: Poly, step: Poly) -> bool:
    """Is it proved that `step` is a multiple of `row`, a product of symbols and a number?"""
    if len(row.terms) != 1:
        return False
    ((names, k),) = row.terms
    return all(c % k == 0 and not Counter(names) - Counter(product) for product, c in step.terms)


def _is_size(p: Poly) -> bool:
    """Is it proved to be 0 or more? A size that a loop or a stride is made of is 1 or more where anything runs."""
    if not all(name.startswith("n") for name in p.symbols):
        return False
    shifted = p.substitute({name: Poly.symbol(name) + Poly.constant(1) for name in p.symbols})
    return all(k >= 0 for _, k in shifted.terms)
