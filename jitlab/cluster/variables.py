"""Reads and writes of variables in one cluster: reads happen when it starts, writes when it ends.

Of two such operations, A with a path to B, one cluster may hold both only if A is a read or B is a write: then B sees what it
would have seen. Variables are not told apart. What calls a body counts as a read and a write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

READ, WRITE = 1, 2

KINDS = {
    "ReadVariableOp": READ,
    "AssignVariableOp": WRITE,
    "AssignAddVariableOp": READ | WRITE,
    "AssignSubVariableOp": READ | WRITE,
}


def unsafe_before(kinds: Sequence[int], before: Mapping[int, Sequence[int]]) -> tuple[list[int], list[int]]:
    """For operations in program order: what each does to variables (0: nothing) and what stands before each.

    Gives bits: each operation's own (0 for most), and those of the operations it may not share a cluster with.
    """
    numbers = [i for i, kind in enumerate(kinds) if kind]
    own = [0] * len(kinds)
    for bit, i in enumerate(numbers):
        own[i] = 1 << bit
    writes = sum(own[i] for i in numbers if kinds[i] & WRITE)  # a path from a plain read is no harm
    reaches = [0] * len(kinds)
    unsafe = [0] * len(kinds)
    for i, kind in enumerate(kinds):
        for source in before.get(i, ()):
            reaches[i] |= reaches[source] | own[source]
        if kind & READ:
            unsafe[i] = reaches[i] & writes
    return own, unsafe
