"""Where the temporaries of a Program lie: memory that no later kernel reads is given to the next one that asks."""

from __future__ import annotations

from collections.abc import Callable

from .program import Buffer, Call, Finish, Gemm, Load, Program, all_expressions, walk, written

#: Each piece of scratch memory starts at a multiple of so many bytes.
ALIGNMENT = 128


def lives(program: Program) -> dict[str, tuple[int, int]]:
    """The first and the last kernel that uses each temporary."""
    names = {buffer.name for buffer in program.temps}
    found: dict[str, tuple[int, int]] = {}
    for number, kernel in enumerate(program.kernels if len(names) > 1 else ()):  # one alone shares with nobody
        used = {b.name for s in walk(kernel.body) for b in (*written(s), *_read(s))}
        used |= {e.buffer.name for e in all_expressions(kernel.body) if isinstance(e, Load)}
        for name in used & names:
            found[name] = (found.get(name, (number, number))[0], number)
    return found


def _read(statement: object) -> tuple[Buffer, ...]:
    """What a statement reads as a whole."""
    if isinstance(statement, Gemm):
        return statement.a, statement.b
    if isinstance(statement, Call):
        return statement.ins
    return statement.partials if isinstance(statement, Finish) else ()


def scratch_places(program: Program, bytes_of: Callable[[Buffer], int]) -> tuple[list[int], int]:
    """The offset of each temporary, then of each row, in the scratch memory of a call, and the bytes of all.

    A temporary takes the first gap between those that are alive in one of its own kernels. Within a kernel no two share memory:
    its code relies on that. Rows have memory of their own.
    """
    known = lives(program)
    order = sorted(range(len(program.temps)), key=lambda i: known.get(program.temps[i].name, (0, 0)))
    places = [0] * len(program.temps)
    taken: list[tuple[int, int, int]] = []  # start, end and last kernel of what is alive, by start
    end = 0
    for i in order:
        first, last = known.get(program.temps[i].name, (0, len(program.kernels)))
        size = aligned(bytes_of(program.temps[i]))
        taken = [piece for piece in taken if piece[2] >= first]
        at = 0
        for start, stop, _ in taken:
            if start - at >= size:
                break
            at = max(at, stop)
        places[i] = at
        taken = sorted([*taken, (at, at + size, last)])
        end = max(end, at + size)
    for row in program.rows:
        places.append(end)
        end += aligned(bytes_of(row))
    return places, end


def aligned(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
