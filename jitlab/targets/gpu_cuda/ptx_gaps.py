"""Instructions of PTX to which LLVM left no place: what makes a register belongs to those that read it."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Numbers of places of an instruction.
Numbers = frozenset[int]

_REGISTER = re.compile(r"%[a-z]+\d+")
_SPLIT = re.compile(r"\s*(?:@!?(%p\d+)\s+)?([a-z][\w.]*)\s*(.*)")
_LABEL = re.compile(r"\$L\w+")

#: They write no register.
_ONLY_READ = ("st", "bra", "bar", "barrier", "ret", "call", "red", "membar", "fence")


def filled(lines: Sequence[str], numbers: Sequence[Numbers]) -> list[Numbers]:
    """The numbers of a function's lines (labels and directives have none) with gaps filled: along registers, and those of jumps
    by where they lead."""
    made = [_parts(line) for line in lines]
    found = list(numbers)
    gaps = [k for k, parts in enumerate(made) if parts is not None and not found[k]]
    changed = True
    while gaps and changed:
        changed = False
        readers: dict[str, set[int]] = {}
        for parts, own in zip(made, found, strict=True):
            for name in parts[1] if parts is not None else ():
                readers.setdefault(name, set()).update(own)
        for k in gaps:
            parts = made[k]
            assert parts is not None
            wanted = frozenset(n for name in parts[0] for n in readers.get(name, ()))
            if not parts[0]:
                wanted = _led_to(lines, found, k)
            if wanted - found[k]:
                found[k], changed = found[k] | wanted, True
    return found


def _parts(line: str) -> tuple[list[str], list[str]] | None:
    """The registers that an instruction writes, and those that it reads; None of what is no instruction."""
    match = _SPLIT.match(line) if line.startswith("\t") and line.rstrip().endswith(";") else None
    if match is None:
        return None
    guard, word, operands = match.groups()
    guards = [guard] if guard else []
    if word.partition(".")[0] in _ONLY_READ:
        return [], [*guards, *_REGISTER.findall(operands)]
    first = operands[: operands.index("}") + 1] if operands.startswith("{") else operands.partition(",")[0]
    return _REGISTER.findall(first), [*guards, *_REGISTER.findall(operands[len(first) :])]


def _led_to(lines: Sequence[str], found: Sequence[Numbers], k: int) -> Numbers:
    """Of a jump, or what the function goes on with: the places of the work that it leads to."""
    label = _LABEL.search(lines[k])
    starts = [n for n, line in enumerate(lines) if label is not None and line.startswith(f"{label[0]}:")]
    rest = found[starts[0] if starts else k :]
    return next((own for own in rest if own), frozenset())
