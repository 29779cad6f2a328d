"""The first and last byte that each load and store of a Program reaches, for the sizes it is given: all lie in their buffers.

Loop variables run from 0 below the least of affine extents, so the largest value of an affine offset is found by putting in
the end of each loop, innermost first. What hangs on integers that only a run knows is checked by the Program itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jitlab.ir import Lowered, Poly
from jitlab.ir.programs.program import Buffer, Define, For, Gemm, If, Index, Load, Repeat, Store, expressions, walk

Loops = tuple[tuple[str, tuple[Index, ...]], ...]  # outermost first: variable, extents


class Unknown(Exception):
    """Only a run knows."""


def beyond(lowered: Lowered) -> list[str]:
    """Accesses outside of their buffers: "y0[a0+4] reaches 36 of 32"."""
    program = lowered.program
    at_a_run = {symbol for kernel in program.kernels for symbol in _run_time_symbols(kernel.body)}
    values = {name: n for name, n in lowered.symbol_values.items() if name not in at_a_run}
    found = []
    for kernel in program.kernels:
        for buffer, offset, loops in _accesses(kernel.body, (), values):
            try:
                if any(_most(extent, loops[:n], values) < 1 for n, (_, extents) in enumerate(loops) for extent in extents):
                    continue  # a loop that has no iteration
                size = _size(buffer, values)
                first, last = -_most(offset.scale(Poly.constant(-1)), loops, values), _most(offset, loops, values)
            except Unknown:
                continue
            if first < 0 or last >= size:
                found.append(f"{buffer.name}[{offset}] reaches {first} to {last} of {size}")
    return found


def _run_time_symbols(body: Any) -> Iterator[str]:
    for statement in walk(body):
        if isinstance(statement, (Define, Repeat)):
            yield statement.symbol


def _accesses(body: Any, loops: Loops, values: Mapping[str, int]) -> Iterator[tuple[Buffer, Index, Loops]]:
    for statement in body:
        if isinstance(statement, For):
            yield from _accesses(statement.body, (*loops, (statement.var, statement.extent)), values)
        elif isinstance(statement, Repeat):
            inner = (*loops, (statement.symbol, (Index(statement.count),))) if statement.count is not None else loops
            yield from _accesses(statement.before, inner, values)
            yield from _accesses(statement.body, inner, values)
        elif isinstance(statement, If):
            yield from _accesses(statement.then, loops, values)
            yield from _accesses(statement.orelse, loops, values)
        elif isinstance(statement, Store) and not statement.gathered:
            yield statement.buffer, statement.offset, loops
        elif isinstance(statement, Gemm):
            yield from _of_product(statement, loops)
        for expression in expressions(statement):
            yield from ((load.buffer, load.offset, loops) for load in _loads(expression))


def _of_product(g: Gemm, loops: Loops) -> Iterator[tuple[Buffer, Index, Loops]]:
    one = Poly.constant(1)

    def last(offset: Index, rows: Any, apart: Any, columns: Any) -> Index:
        return offset + Index((rows - one) * apart + columns - one)

    if not (g.m.terms and g.n.terms and g.k.terms):  # nothing
        return
    yield g.out, last(g.out_offset, g.m, g.n, g.n), loops
    a, b = ((g.k, g.m) if g.transpose_a else (g.m, g.k)), ((g.n, g.k) if g.transpose_b else (g.k, g.n))
    yield g.a, last(g.a_offset, a[0], g.lda, a[1]), loops
    yield g.b, last(g.b_offset, b[0], g.ldb, b[1]), loops


def _loads(expression: Any) -> Iterator[Load]:
    seen, todo = set(), [expression]
    while todo:
        e = todo.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if isinstance(e, Load) and not e.gathered:
            yield e
        todo.extend(e.parts)


def _number(p: Any, values: Mapping[str, int]) -> int:
    try:
        return int(p.evaluate(values))
    except KeyError:
        raise Unknown from None


def _most(offset: Index, loops: Loops, values: Mapping[str, int]) -> int:
    """The largest value of an offset."""
    if not loops:
        if offset.vars:
            raise Unknown
        return _number(offset.const, values)
    *outer, (var, extents) = loops
    offset = _with_symbol(offset, var)
    factor = offset.coefficient(var)
    if var not in offset.vars:
        return _most(offset, tuple(outer), values)
    rest = Index.of(offset.const, {v: c for v, c in offset.terms if v != var})
    if _number(factor, values) <= 0:
        return _most(rest, tuple(outer), values)
    ends = [rest + (extent + Index(Poly.constant(-1))).scale(factor) for extent in extents]
    return min(_most(end, tuple(outer), values) for end in ends)


def _with_symbol(offset: Index, symbol: str) -> Index:
    """The number of a turn, which stands in polynomials, as a variable."""
    if any(symbol in c.symbols for _, c in offset.terms) or any(m.count(symbol) > 1 for m, _ in offset.const.terms):
        raise Unknown
    times = Poly.of({tuple(s for s in m if s != symbol): k for m, k in offset.const.terms if symbol in m})
    rest = Poly.of({m: k for m, k in offset.const.terms if symbol not in m})
    return Index.of(rest, {**dict(offset.terms), symbol: times}) if times.terms else offset


def _size(buffer: Buffer, values: Mapping[str, int]) -> int:
    """Elements from the first to the last one of a buffer."""
    shape = [_number(n, values) for n in buffer.shape]
    if 0 in shape:
        return 0
    strides = [_number(n, values) for n in buffer.strides]
    if min(strides, default=0) < 0:
        raise Unknown
    return 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
