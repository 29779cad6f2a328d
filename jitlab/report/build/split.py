"""Where a run that fell back to Python can be split: the statements whose results have another size each time go into a cell of
their own, or out of the function, and what stands above and below them stays compiled."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jitlab import messages
from jitlab.capture.drivers.trace import BY_DATA
from jitlab.events import Span
from jitlab.report.render import wording
from jitlab.support.lazy_dataclass import dataclass

from .advice import without_mask

if TYPE_CHECKING:
    from jitlab.report.recording import Recording

Json = dict[str, Any]
READS_PART = "Indexing"  # an operation whose expression may only pass on what another statement has selected


@dataclass(frozen=True)
class Split:
    """`name`: of the function that is split, "" of a cell. `above`, `below`: how many operations stay compiled there."""

    name: str
    lines: tuple[int, ...]
    statements: int
    above: int
    below: int
    again: bool  # the next run is recorded anew
    mask: str = ""  # how to write what a boolean mask selects, in place of the split

    def advice(self) -> Json:
        """`verdict.next` of docs/reference/report-format.md."""
        kept, lines = self.above + self.below, wording.line_text(self.lines)
        args: Json = {"lines": lines, "kept": kept} | ({"name": self.name} if self.name else {})
        said = "split_function" if self.name else "split" if self.statements == 1 else "split_several"
        why = [messages.text("advice.around", above=self.above, below=self.below)] if self.above and self.below else []
        why += [messages.text("advice.recorded_anew")] if self.again else []
        why += [f"{messages.text('advice.or_else')} {self.mask}"] if self.mask else []
        return {
            "text": messages.text(f"next.{said}", **args), "advice": said, "args": args, "code": None,
            "why": " ".join(why) or None, "section": "clusters",
        }  # fmt: skip


def split(recording: Recording, data: Mapping[str, Any]) -> Json | None:
    """What to do about a run that fell back; None where nobody knows that a split keeps anything compiled."""
    cuts = {tally.cut[0]: tally.again for tally in recording.statements.values() if tally.fell_back and tally.cut}
    found = [made for cut, again in cuts.items() for plan in _given_up(data) if (made := _around(data, plan, cut, again))]
    best = max(found, key=lambda made: made.above + made.below, default=None)
    return best.advice() if best is not None else None


def _given_up(data: Mapping[str, Any]) -> list[Json]:
    return [plan for plan in data["plans"] if plan.get("given_up")]


def _around(data: Mapping[str, Any], plan: Json, cut: Span, again: bool) -> Split | None:
    ops = [op for op in data["ops"] if op["plan"] == plan["name"]]
    varying = [op for op in ops if op["cluster"] is None and op["reason"] and op["reason"]["code"] == BY_DATA]
    places = [tuple(span) for op in varying for span in op["lines"]]
    if cut not in places or any(span[0] != cut[0] for span in places):
        return None
    body = _Body.of(cut, plan["function"])
    if body is None:
        return None
    statements = [body.at(place) for place in dict.fromkeys(places)]
    if None in statements or not all(body.selects(op) for op in varying):
        return None
    apart = sorted({s for s in statements if s is not None}, key=lambda s: s.lineno)
    if not all(map(body.stands_alone, apart)):
        return None
    last = next((n for n, s in enumerate(apart) if not body.gives_an_array(s, places)), len(apart))
    ends = apart[last].lineno if last < len(apart) else body.last + 1  # what stands below has a number in it
    apart = apart[: last + 1]
    own = {line for s in apart for line in _lines(s)}
    at = [line for op in ops if op["cluster"] is not None and (line := _line_of(op, cut[0])) is not None]
    kept = [line for line in at if body.first <= line < ends and line not in own]
    if not kept:
        return None
    first = apart[0].lineno
    above = sum(line < first for line in kept)
    mask = without_mask(varying[0], {(plan["name"], op["name"]): op for op in data["ops"] if op["plan"] == plan["name"]})
    return Split(body.name, tuple(sorted(own)), len(apart), above, len(kept) - above, again, str(mask or ""))


def _line_of(op: Json, file: str) -> int | None:
    """The line that an operation begins in; None of what is made in a function that is called there."""
    if op.get("within") or any(span[0] != file for span in op["lines"]):
        return None
    return min((int(span[1]) for span in op["lines"]), default=None)


def _lines(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


class _Body:
    """The statements of a cell, or of the function that was called, as the program has them."""

    def __init__(self, name: str, statements: Sequence[ast.stmt]) -> None:
        self.name, self.statements = name, statements
        self.first = statements[0].lineno
        self.last = statements[-1].end_lineno or statements[-1].lineno

    @classmethod
    def of(cls, cut: Span, function: str) -> _Body | None:
        """Around a place: of the innermost function, which has to be the one that was captured, else of the cell."""
        try:
            tree = ast.parse("".join(linecache.getlines(cut[0])))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        around = [node for node in ast.walk(tree) if isinstance(node, _SCOPES) and cut[1] in _whole(node)]
        inner = max(around, key=lambda node: node.lineno, default=None)
        if inner is None:
            return cls("", tree.body) if tree.body else None
        if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) or inner.name != function.rsplit(".", 1)[-1]:
            return None
        return cls(inner.name, inner.body)

    def at(self, place: Span) -> ast.stmt | None:
        """The statement of the body in which a place lies."""
        return next((s for s in self.statements if place[1] in _lines(s) and place[3] in _lines(s)), None)

    def stands_alone(self, statement: ast.stmt) -> bool:
        """It has its lines for itself."""
        return not any(other is not statement and set(_lines(other)) & set(_lines(statement)) for other in self.statements)

    def selects(self, op: Json) -> bool:
        """Is it in its own statement that the data decide? An expression may pass on what was selected above it."""
        if op["op"] != READS_PART:
            return True
        for place in op["lines"]:
            statement = self.at(place)
            node = _node_at(statement, place) if statement is not None else None
            if node is None or not isinstance(node, ast.Subscript):
                return False
        return True

    def gives_an_array(self, statement: ast.stmt, places: Sequence[tuple[Any, ...]]) -> bool:
        """Does it bind nothing but arrays whose lengths the data decide? A number is part of what is recorded below it."""
        if not isinstance(statement, ast.Assign):
            return False
        value = statement.value
        if isinstance(value, ast.Subscript) and _span_of(value.value) in {place[1:] for place in places}:
            return True
        return _span_of(value) in {place[1:] for place in places}


_SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda


def _whole(node: Any) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _span_of(node: ast.expr) -> tuple[Any, ...]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _node_at(statement: ast.stmt, place: Sequence[Any]) -> ast.expr | None:
    """The outermost expression at a place."""
    return next(_nodes_at(statement, tuple(place[1:])), None)


def _nodes_at(statement: ast.stmt, span: tuple[Any, ...]) -> Iterator[ast.expr]:
    return (node for node in ast.walk(statement) if isinstance(node, ast.expr) and _span_of(node) == span)
