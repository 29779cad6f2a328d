"""Consecutive statements of a file or cell that a `with` can stand around: found by the places that have to be inside."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence

from jitlab.ir import Source
from jitlab.support import trees
from jitlab.support.lazy_dataclass import dataclass


@dataclass(frozen=True)
class TextBlock:
    """Lines `first` to `last` of a file: whole statements of one block, which share no line with others."""

    file: str
    first: int
    last: int
    texts: tuple[str, ...]
    inside_strings: frozenset[int]  # lines whose first column is inside a string: they are not moved

    def holds(self, source: Source) -> bool:
        return source.file == self.file and self.first <= source.line <= self.last

    def under(self, *heads: str) -> tuple[str, ...]:
        """The lines with `heads` above them, moved to the right."""
        first = self.texts[0]
        lead = first[: len(first) - len(first.lstrip())]
        moved = [
            text if not text.strip() or self.first + n in self.inside_strings else f"    {text}"
            for n, text in enumerate(self.texts)
        ]  # fmt: skip
        return (*(lead + head for head in heads), *moved)


class Unsplit(Exception):
    """No statements can be told apart there; the text says why."""


def block_around(places: Sequence[Source]) -> TextBlock:
    """The smallest block with all these places of one file; Unsplit where there is none in the function that they are in."""
    file = places[0].file
    lines = [line.rstrip("\r\n") for line in linecache.getlines(file)]
    try:
        tree = trees.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        raise Unsplit("The source is not at hand, so no lines can be given.") from None
    if not lines:
        raise Unsplit("The source is not at hand, so no lines can be given.")
    if any(isinstance(node, ast.Lambda) and all(_covers(node, place) for place in places) for node in ast.walk(tree)):
        raise Unsplit("A lambda has no statements that a scope could stand around: write it as a def.")
    strings = frozenset(
        line for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    )  # fmt: skip
    found: TextBlock | None = None
    level: list[ast.stmt] = tree.body
    while True:
        numbers = [_number(level, place) for place in places]
        if any(number is None for number in numbers):
            break
        first, last = level[min(n for n in numbers if n is not None)], level[max(n for n in numbers if n is not None)]
        begin, end = _first_line(first), last.end_lineno or last.lineno
        if _is_apart(level, first, last, lines):
            found = TextBlock(file, begin, end, tuple(lines[begin - 1 : end]), strings)
        if first is not last:
            break
        inner = next((block for block in _blocks_of(first) if all(_number(block, place) is not None for place in places)), None)
        if inner is None:
            break
        if isinstance(first, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found = None  # what is around a function is not run when it is captured
        level = inner
    if found is None:
        raise Unsplit("No whole statements of one block hold both: write them on lines of their own.")
    return found


def _number(level: Sequence[ast.stmt], place: Source) -> int | None:
    return next((n for n, s in enumerate(level) if _first_line(s) <= place.line <= (s.end_lineno or s.lineno)), None)


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min(statement.lineno, *(d.lineno for d in decorators)) if decorators else statement.lineno


def _blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block:
            yield block
    for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield handler.body


def _is_apart(level: Sequence[ast.stmt], first: ast.stmt, last: ast.stmt, lines: Sequence[str]) -> bool:
    """Do these statements have their lines for themselves? An `elif` and what stands behind a colon or semicolon have not."""
    head = lines[_first_line(first) - 1]
    begin = first.col_offset if not getattr(first, "decorator_list", None) else len(head) - len(head.lstrip())
    if head[:begin].strip() or head.lstrip().startswith("elif"):
        return False
    after = level[level.index(last) + 1 :]
    return not (after and after[0].lineno == last.end_lineno) and not lines[(last.end_lineno or last.lineno) - 1].endswith("\\")


def _covers(node: ast.Lambda, place: Source) -> bool:
    begin, end = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return begin <= (place.line, max(place.column, 0)) < end and place.column >= 0
