"""What debug locations say about assembly: the number of each instruction's place, put beside the code that has none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

_LOC = re.compile(r"\t\.loc\t\d+ (\d+)")
_LABEL = re.compile(r"[.$]L\w+")


def is_instruction(line: str) -> bool:
    """Not a label, a directive or a remark."""
    return line.startswith("\t") and not line.startswith(("\t.", "\t#", "\t//"))


def numbers_beside(own: Sequence[str], located: Iterable[str]) -> tuple[list[int], int]:
    """The number of each instruction of `own`, by the assembly `located` of the same code with debug locations, and how many
    have none as LLVM made other code beside locations."""
    ours, found = [line for line in own if is_instruction(line)], list(_located(located))
    if _renamed(ours) == _renamed([text for text, _ in found]):
        return [number for _, number in found], 0
    result, strays = [0] * len(ours), len(ours)
    theirs = _renamed([text for text, _ in found])
    for i, j, n in difflib.SequenceMatcher(None, _renamed(ours), theirs, autojunk=False).get_matching_blocks():
        result[i : i + n] = [number for _, number in found[j : j + n]]
        strays -= n
    return result, strays


def _located(lines: Iterable[str]) -> Iterable[tuple[str, int]]:
    """Each instruction with the line its location says."""
    number = 0
    for line in lines:
        found = _LOC.match(line)
        if found:
            number = int(found[1])
        elif not line.startswith(("\t", ".", "$")) and line.endswith((":", "(")):
            number = 0  # a function begins
        elif is_instruction(line):
            yield line, number


def _renamed(lines: Sequence[str]) -> list[str]:
    """The instructions with labels by order of appearance: debug locations bring labels of their own."""
    names: dict[str, str] = {}
    return [_LABEL.sub(lambda found: names.setdefault(found[0], f".L{len(names)}"), line) for line in lines]
