"""Nests of a body joined and turned: statements over one space share a loop, a recurrence runs along memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from jitlab.ir import NotFused, Origins, Poly
from jitlab.ir.programs.program import (
    ASCENDING,
    ONE,
    PARALLEL,
    SERIAL,
    Buffer,
    Call,
    CheckedIndex,
    Expr,
    Finish,
    For,
    Gemm,
    Index,
    Kernel,
    Let,
    Load,
    Local,
    LoopKind,
    Repeat,
    Scalar,
    Statement,
    Store,
    blocks,
    expressions,
    walk,
)
from jitlab.lower.fusion.findings import Obstacle
from jitlab.lower.fusion.inside import origins_of
from jitlab.lower.fusion.stages import Stage
from jitlab.lower.program_builder import Shared

from .dependence import Position, Relation, relation
from .ranges import Ranges
from .schedule import collapse, replaced, substitute

Kind = TypeVar("Kind", bound=Expr)
Loops = list[tuple[str, Poly]]
Accesses = list[tuple[Buffer, Position | None, Index]]

#: How an element that one nest wrote may be read by a later one in the same loop, and one that it read be overwritten.
THEN_READ = frozenset({Relation.DISJOINT, Relation.SAME})
THEN_WRITTEN = frozenset({Relation.DISJOINT, Relation.SAME, Relation.AHEAD})


class Written(NamedTuple):
    """A statement of a body, and the stages that it computes."""

    statement: Statement
    stages: Sequence[Stage]


def joined(written: Sequence[Written], shared: Shared) -> list[Statement]:
    """A body's statements, neighbouring nests over one space in one."""
    if shared.level == "O0":
        return [s for s, _ in written]
    out: list[Written] = []
    for s, stages in written:
        nest = perfect(s)
        at = len(out)
        while nest is not None and at and isinstance(out[at - 1].statement, Let):
            at -= 1
        before = perfect(out[at - 1].statement) if nest is not None and at else None
        if nest is not None and before is not None and _may_pass([let for let, _ in out[at:]], before[1]):
            found, joint, kind = _joint(before, nest, shared)
            _note(out[at - 1 : at], [Written(s, stages)], found, joint is not None)
            if joint is not None:
                out[at - 1 :] = [*out[at:], Written(nest_of(before[0], joint, kind), [*out[at - 1].stages, *stages])]
                continue
        out.append(Written(s, stages))
    for is_straight, run in groupby(out, lambda one: isinstance(one.statement, (Let, Store))):
        if is_straight:  # numbers and single elements, one after the other
            same = list(run)
            _note(same, same, (), True)
    return [s for s, _ in out]


def _note(first: Sequence[Written], second: Sequence[Written], found: Sequence[NotFused], is_joined: bool) -> None:
    """Two nests decide on the edges between them: nothing is in the way where they were joined; else what was found is, where
    the stages are in no group because one of them changes memory in place."""
    made = {node for one in first for stage in one.stages for node in stage.made}
    for stage in dict.fromkeys(stage for one in second for stage in one.stages):
        for node in made & stage.rejected.keys():
            if not (stage.node.origins <= _origins(second) and node.origins <= _origins(first)):
                continue
            if is_joined:
                stage.rejected[node] = ()
            elif found and any(obstacle.code is NotFused.UPDATED for obstacle in stage.rejected[node]):
                ends = {NotFused.READ_AGAIN: node}
                stage.rejected[node] = tuple(Obstacle(code, ends.get(code, stage.node)) for code in found)


def _origins(written: Sequence[Written]) -> Origins:
    return origins_of([s for s, _ in written])


def collapsed(statements: Sequence[Statement]) -> list[Statement]:
    """Nests with loops over rows and columns made one where memory allows."""
    nests = [(s, perfect(s)) for s in statements]
    return [s if nest is None else nest_of(*collapse(*nest[:2]), nest[2]) for s, nest in nests]


def turned(loop: Repeat, shared: Shared) -> list[Statement]:
    """repeat i: for a: x[a, i] = f(x[a, i-1])  ->  for a: repeat i: ..., when that is the order of memory.

    Else the loop with nests in its body collapsed.
    """
    nest = perfect(loop.body[0]) if len(loop.body) == 1 and loop.test is None and shared.level != "O0" else None
    whole = Repeat(loop.symbol, loop.count, collapsed(loop.body), loop.before, loop.test, loop.origins)
    if nest is None or any(loop.symbol in n.symbols for _, n in nest[0]):
        return [whole]
    loops, body, _ = nest
    every = list(_accesses(body))
    near = sum(index.coefficient(loops[-1][0]).value in (1, -1) for _, _, index in every)
    along = sum(_step_of(index, loop.symbol) in (1, -1) for _, _, index in every)
    if along <= near or not all(_apart(s, every, loops, loop.symbol) for s in body if isinstance(s, Store)):
        return [whole]
    return _jammed(loop, loops, list(body), shared)


def _jammed(loop: Repeat, loops: Loops, body: list[Statement], shared: Shared) -> list[Statement]:
    """Some rows side by side (`Shape.jam_rows`), then the rows left over."""
    (v, n), outer, jam = loops[-1], loops[:-1], shared.sizes.shape.jam_rows

    def rows(copies: list[list[Statement]]) -> Repeat:
        together = [s for same in zip(*copies, strict=True) for s in same]
        return Repeat(loop.symbol, loop.count, together, origins=loop.origins)

    if any(symbol in shared.sizes.samples for symbol in n.symbols) or shared.sizes.value(n) < 2 * jam:
        return [nest_of(loops, [rows([body])])]
    blocks = shared.sizes.quotient(n, jam)
    first = [Index.of(Poly.constant(k), {v: Poly.constant(jam)}) for k in range(jam)]
    last = Index.of(blocks.scale(jam), {v: ONE})
    main = rows([_copy_of(body, {v: at}, shared) for at in first])
    rest = rows([_copy_of(body, {v: last}, shared)])
    both = [nest_of([(v, blocks)], [main]), nest_of([(v, n - blocks.scale(jam))], [rest])]
    return [nest_of(outer, both)] if outer else both


def _copy_of(body: list[Statement], values: dict[str, Index], shared: Shared) -> list[Statement]:
    """The statements elsewhere in the nest, with names of their own."""
    copy = substitute(body, values, positions=True)
    names = {s.name: shared.name("l") for s in copy if isinstance(s, Let)}
    instead: dict[int, Expr] = {}
    for s in copy:
        for e in expressions(s):
            for local in _parts(e, Local):
                if local.name in names:
                    instead[id(local)] = Local(names[local.name], local.dtype, local.origins)
    out: list[Statement] = []
    for s in copy:
        if isinstance(s, Let):
            out.append(Let(names[s.name], replaced(s.value, instead), s.origins))
        else:
            assert isinstance(s, Store)
            out.append(Store(s.buffer, s.offset, replaced(s.value, instead), s.origins, s.gathered, s.position))
    return out


def without_unread(kernels: Sequence[Kernel], temps: Sequence[Buffer]) -> tuple[list[Kernel], list[Buffer]]:
    """Temporaries whose every read was forwarded are not stored."""
    read: set[str] = set()
    for kernel in kernels:
        for s in walk(kernel.body):
            read.update(load.buffer.name for load in _reads(s))
            if isinstance(s, Gemm):
                read.update((s.a.name, s.b.name))
            elif isinstance(s, Call):
                read.update(b.name for b in (*s.ins, *s.outs))
            elif isinstance(s, Finish):
                read.update(b.name for b in s.partials)
            elif isinstance(s, Store) and _checks(s):
                read.add(s.buffer.name)
    unread = {b.name for b in temps if b.name not in read}
    if unread:
        for kernel in kernels:
            kernel.body[:] = _without(kernel.body, unread)
    return list(kernels), [b for b in temps if b.name not in unread]


def _checks(s: Store) -> bool:
    """Does it look whether an index is in range?"""
    return bool(s.gathered) or any(_parts(e, CheckedIndex) for e in expressions(s))


def _without(body: Sequence[Statement], unread: set[str]) -> list[Statement]:
    out = []
    for s in body:
        if (isinstance(s, Store) and s.buffer.name in unread) or (isinstance(s, Gemm) and s.out.name in unread):
            continue
        for block in blocks(s):
            block[:] = _without(block, unread)
        if not (isinstance(s, For) and not s.body):
            out.append(s)
    return out


def perfect(s: Statement) -> tuple[Loops, list[Statement], LoopKind] | None:
    """The loops and the innermost statements of a nest that only stores, element by element, and its innermost loop's kind."""
    loops: Loops = []
    while isinstance(s, For):
        if len(s.extent) > 1 or s.extent[0].terms or s.accumulators or s.kind == SERIAL and not isinstance(s.body[0], For):
            return None
        loops.append((s.var, s.extent[0].const))
        if len(s.body) == 1 and isinstance(s.body[0], For):
            s = s.body[0]
            continue
        if all(isinstance(inner, Let) or (isinstance(inner, Store) and _is_plain(inner)) for inner in s.body):
            return loops, s.body, s.kind
        return None
    return None


def _is_plain(s: Store) -> bool:
    return s.position is not None and not s.gathered


def nest_of(loops: Sequence[tuple[str, Poly]], body: list[Statement], kind: LoopKind = PARALLEL) -> Statement:
    """Loops around statements. `kind`: of the innermost; where that is not parallel, those around it are serial."""
    for v, n in reversed(loops):
        body = [For(v, (Index(n),), body, kind)]
        kind = kind if kind == PARALLEL else SERIAL
    return body[0]


def _may_pass(lets: Sequence[Statement], body: Sequence[Statement]) -> bool:
    """May these be evaluated before the nest? They read nothing that it writes."""
    written = {s.buffer.name for s in body if isinstance(s, Store)}
    return all(load.buffer.name not in written for s in lets for e in expressions(s) for load in _loads(e))


def _joint(
    first: tuple[Loops, list[Statement], LoopKind], second: tuple[Loops, list[Statement], LoopKind], shared: Shared
) -> tuple[list[NotFused], list[Statement] | None, LoopKind]:
    """The statements of both nests in one and its kind, or all for which that would give other values (neither where it would
    save no traffic)."""
    loops, body, kind = first
    theirs, after, other = second
    found = [NotFused.DIFFERENT_SPACE] if [n for _, n in loops] != [n for _, n in theirs] else []
    if len(loops) != len(theirs):
        return found, None, kind
    after = substitute(after, {v: Index.var(w) for (v, _), (w, _) in zip(theirs, loops, strict=True)}, positions=True)
    if not {b.name for b, _, _ in _accesses(body)} & {b.name for b, _, _ in _accesses(after)}:
        return found, None, kind
    pairs = [(a, b) for a in reversed(body) for b in after]
    found += dict.fromkeys(code for a, b in pairs for code in _clashes(a, b, loops, shared.ranges))
    if found:
        return found, None, kind
    clashes = (code for a, b in pairs for code in _clashes(a, b, loops, shared.ranges, THEN_READ))
    is_parallel = kind == other == PARALLEL and next(clashes, None) is None
    return found, _forwarded([*body, *after], shared), PARALLEL if is_parallel else ASCENDING


def _clashes(
    a: Statement, b: Statement, loops: Loops, ranges: Ranges, then_written: frozenset[Relation] = THEN_WRITTEN
) -> Iterator[NotFused]:
    """Why b of an iteration may not run before a of the next ones."""
    if isinstance(a, Store):
        assert a.position is not None
        if not _related(a.position, [x for x in _reads(b) if x.buffer is a.buffer], loops, ranges, THEN_READ):
            yield NotFused.READ_AGAIN
    if isinstance(b, Store):
        assert b.position is not None
        if not _related(b.position, [x for x in _reads(a) if x.buffer is b.buffer], loops, ranges, then_written):
            yield NotFused.OVERLAP
        if isinstance(a, Store) and a.buffer is b.buffer:
            assert a.position is not None
            if relation(b.position, a.position, loops, ranges) not in then_written:
                yield NotFused.UPDATED


def _related(
    write: Position, reads: Sequence[Load], loops: Loops, ranges: Ranges, allowed: frozenset[Relation]
) -> bool:
    return all(
        x.position is not None and not x.gathered and relation(write, x.position, loops, ranges) in allowed for x in reads
    )


def _forwarded(body: Sequence[Statement], shared: Shared) -> list[Statement]:
    """x[i] = v; y[i] = x[i]  ->  let l = v; x[i] = l; y[i] = l"""
    stored: dict[str, tuple[int, Index]] = {}  # buffer -> its last store so far
    names: dict[int, Expr] = {}
    out: list[Statement] = list(body)
    for number, s in enumerate(body):
        instead: dict[int, Expr] = {}
        for load in _reads(s):
            last = stored.get(load.buffer.name)
            if last is None or load.gathered or last[1] != load.offset:
                continue
            source = out[last[0]]
            assert isinstance(source, Store)
            if last[0] not in names:
                trivial = isinstance(source.value, (Local, Scalar))
                names[last[0]] = source.value if trivial else Local(shared.name("l"), source.value.dtype)
            instead[id(load)] = names[last[0]]
            names[last[0]].origins |= load.origins
        if instead:
            value = replaced(s.value, instead)  # type: ignore[union-attr]
            if isinstance(s, Let):
                out[number] = Let(s.name, value, s.origins)
            else:
                assert isinstance(s, Store)
                out[number] = Store(s.buffer, s.offset, value, s.origins, s.gathered, s.position)
        if isinstance(s, Store):
            stored[s.buffer.name] = number, s.offset
    result: list[Statement] = []
    for number, s in enumerate(out):
        local = names.get(number)
        if isinstance(s, Store) and isinstance(local, Local) and local is not s.value:
            result.append(Let(local.name, s.value, s.origins))
            s = Store(s.buffer, s.offset, local, s.origins, s.gathered, s.position)
        result.append(s)
    return result


def _apart(write: Store, every: Accesses, loops: Loops, symbol: str) -> bool:
    """Do different iterations of the nest touch different elements of what is written, in whatever turn of the loop?"""
    assert write.position is not None
    for buffer, position, _ in every:
        if buffer is not write.buffer:
            continue
        if position is None:
            return False
        for v, _ in loops:
            if not any(_only(w, v, symbol) and w == r for w, r in zip(write.position, position, strict=True)):
                return False
    return True


def _only(index: Index, v: str, symbol: str) -> bool:
    """Does this subscript move with v alone?"""
    return index.vars == (v,) and symbol not in index.const.symbols and symbol not in index.coefficient(v).symbols


def _step_of(index: Index, symbol: str) -> int | None:
    """How far one turn of the loop moves an access."""
    terms = [(m, k) for m, k in index.const.terms if symbol in m]
    return terms[0][1] if len(terms) == 1 and terms[0][0] == (symbol,) else None


def _accesses(body: Sequence[Statement]) -> Iterator[tuple[Buffer, Position | None, Index]]:
    for s in body:
        if isinstance(s, Store):
            yield s.buffer, s.position, s.offset
        for load in _reads(s):
            yield load.buffer, None if load.gathered else load.position, load.offset


def _reads(s: Statement) -> list[Load]:
    return [load for e in expressions(s) for load in _loads(e)]


def _loads(e: Expr) -> list[Load]:
    return _parts(e, Load)


def _parts(e: Expr, kind: type[Kind]) -> list[Kind]:
    """The different sub-expressions of a kind, itself included."""
    found: dict[int, Kind] = {}
    seen: set[int] = set()
    todo = [e]
    while todo:
        x = todo.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, kind):
            found[id(x)] = x
        todo.extend(x.parts)
    return list(found.values())
