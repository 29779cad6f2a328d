"""What became of the bodies of loops and branches: their nests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitlab.ir import Nest, Origin, Origins
from jitlab.ir.programs.program import Call, Expr, For, Gemm, If, Kernel, Repeat, Statement, blocks, expressions, walk


def inner_nests(kernel: Kernel) -> tuple[Nest, ...]:
    """The nests and calls in the loops and branches of a kernel, in the order they stand there."""
    return tuple(nest for s in kernel.body for nest in _nests(s, False))


def _nests(s: Statement, inside: bool) -> Iterator[Nest]:
    if isinstance(s, (Repeat, If)):
        for block in blocks(s):
            yield from _block(block)
    elif isinstance(s, For) and not inside:
        for inner in s.body:
            yield from _nests(inner, False)


def _block(statements: Sequence[Statement]) -> Iterator[Nest]:
    scalars: list[Statement] = []
    for s in statements:
        if not isinstance(s, (For, Gemm, Call, Repeat, If)):
            scalars.append(s)
            continue
        yield from _scalars(scalars)
        scalars = []
        if isinstance(s, (Repeat, If)):
            yield from _nests(s, True)
        else:
            calls = any(isinstance(inner, (Gemm, Call)) for inner in walk([s]))
            yield Nest("library" if calls else "nest", origins_of([s]))
    yield from _scalars(scalars)


def _scalars(statements: Sequence[Statement]) -> Iterator[Nest]:
    origins = origins_of(statements)
    if origins:
        yield Nest("scalars", origins)


def origins_of(statements: Sequence[Statement]) -> Origins:
    """Every operation that the statements and what they evaluate came from."""
    found: set[Origin] = set()
    seen: set[int] = set()
    todo: list[Expr] = []
    for s in walk(statements):
        if not isinstance(s, For) and hasattr(s, "origins"):
            found |= s.origins
        todo += expressions(s)
    while todo:
        e = todo.pop()
        if id(e) not in seen:
            seen.add(id(e))
            found |= e.origins
            todo += e.parts
    return frozenset(found)
