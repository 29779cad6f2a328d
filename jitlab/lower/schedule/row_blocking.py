"""Kernels that go over the rows of one matrix, one after the other: together, a block of rows at a time.

before: for i: t[i] = A[i, :] @ x          after: for each block of rows:
        for each block of rows:                       for i in block: t[i] = A[i, :] @ x
          y += t[block] @ A[block, :]                 y += t[block] @ A[block, :]

The rows are still in the cache when they are read again: `(A @ x) @ A` reads A from memory once.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitlab.ir import Poly
from jitlab.ir.programs.program import (
    LANES,
    ONE,
    PARALLEL,
    SERIAL,
    Buffer,
    Call,
    Expr,
    Finish,
    For,
    Gemm,
    Index,
    Load,
    Partial,
    Statement,
    Step,
    Store,
    expressions,
    walk,
)

from .schedule import substitute


def in_blocks(first: Sequence[Statement], second: Sequence[Statement]) -> list[Statement] | None:
    """One body for two kernels, or None: one is a loop over rows, the other goes over the same rows in blocks, and what one
    writes of the rows that the other reads, it writes in the same rows."""
    return _in_blocks(first, second, rows_come_first=True) or _in_blocks(second, first, rows_come_first=False)


def _in_blocks(alone: Sequence[Statement], other: Sequence[Statement], *, rows_come_first: bool) -> list[Statement] | None:
    if len(alone) != 1 or not isinstance(alone[0], For):
        return None
    rows = alone[0]
    at = next((n for n, s in enumerate(other) if isinstance(s, For) and _block_of(s) is not None), None)
    if at is None or _is_one_step(rows) or rows.accumulators or len(rows.extent) != 1:
        return None
    before, blocks, after = other[:at], other[at], other[at + 1 :]
    assert isinstance(blocks, For)
    inner = _block_of(blocks)
    assert inner is not None
    size, left = inner.extent
    passed = before if rows_come_first else after  # what the rows move past
    if rows.extent[0] != Index(left.const) or any(isinstance(s, (Gemm, Call, Finish)) for s in walk([*rows.body, *passed])):
        return None
    written, read = _stores([rows]), _loads([rows])
    theirs = [*passed, blocks]
    if {b.name for b, _ in (*written, *read)} & {b.name for b, _ in _stores(theirs)}:
        return None
    for buffer, offset in _loads(theirs):
        for stored, place in written:
            if stored is buffer and not _same_rows(place, rows, offset, blocks, inner, size.const):
                return None
    var = f"{rows.var}'"
    there = {rows.var: Index.of(Poly(), {var: ONE, blocks.var: size.const})}
    moved = For(var, inner.extent, substitute(rows.body, there), rows.kind)
    body = [moved, *blocks.body] if rows_come_first else [*blocks.body, moved]
    kind = blocks.kind if rows.kind == PARALLEL else SERIAL
    return [*before, For(blocks.var, blocks.extent, body, kind), *after]


def _is_one_step(rows: For) -> bool:
    """Is a row so little work that vectors go along the rows? It is a number, or what is reduced without lanes."""
    inner = [s for s in walk(rows.body) if isinstance(s, For)]
    in_order = any(isinstance(s, Step) and not s.bound for loop in inner for s in loop.body)
    return not inner or (in_order and all(loop.kind != LANES for loop in inner))


def _block_of(s: For) -> For | None:
    """The loop over the rows of one block, in a loop over blocks: its extent is min(size, rows - size * block)."""
    if len(s.body) != 1 or not isinstance(s.body[0], For):
        return None
    inner = s.body[0].body[0]
    if not isinstance(inner, For) or len(inner.extent) != 2:
        return None
    size, left = inner.extent
    return inner if not size.vars and left.vars == (s.var,) and left.coefficient(s.var) == size.const.scale(-1) else None


def _same_rows(store: Index, rows: For, load: Index, blocks: For, inner: For, step: Poly) -> bool:
    """Does a load in the block see what the store in the same row wrote?"""
    stride = store.coefficient(rows.var)
    if not stride.terms or load.coefficient(inner.var) != stride or load.coefficient(blocks.var) != stride * step:
        return False
    here = _without(store, rows.var)
    there = _without(_without(load, inner.var), blocks.var)
    if here.const != there.const or len(here.vars) > 1 or len(there.vars) > 1:
        return False
    if not here.vars and not there.vars:
        return True
    if not here.vars or not there.vars or here.coefficient(here.vars[0]) != ONE or there.coefficient(there.vars[0]) != ONE:
        return False
    extents = [_extent(rows.body, here.vars[0]), _extent(blocks.body, there.vars[0])]
    return extents[0] is not None and extents[0] == extents[1] == stride and not here.const.terms


def _without(index: Index, var: str) -> Index:
    return index.substitute({var: Index()})


def _extent(statements: Sequence[Statement], var: str) -> Poly | None:
    for s in walk(statements):
        if isinstance(s, For) and s.var == var and len(s.extent) == 1 and not s.extent[0].vars:
            return s.extent[0].const
    return None


def _stores(statements: Sequence[Statement]) -> list[tuple[Buffer, Index]]:
    found = [(s.buffer, s.offset) for s in walk(statements) if isinstance(s, Store)]
    return found + [(buffer, s.index) for s in walk(statements) if isinstance(s, Partial) for buffer in s.partials]


def _loads(statements: Sequence[Statement]) -> list[tuple[Buffer, Index]]:
    found: list[tuple[Buffer, Index]] = []
    seen: set[int] = set()

    def visit(e: Expr) -> None:
        if id(e) in seen:
            return
        seen.add(id(e))
        if isinstance(e, Load):
            found.append((e.buffer, e.offset))
        for part in e.parts:
            visit(part)

    for s in walk(statements):
        for e in expressions(s):
            visit(e)
    return found
