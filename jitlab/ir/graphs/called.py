"""What the program calls a value: the name that it is assigned to, else the expression that makes it.

Nodes have names that capture gave them (`realdiv_1`); a user knows `inv6`, and wrote `1 / r**6`. Every text that speaks of a
node says the program's word, and NumPy's where it has none. What is a step on the way to the value of an expression is "part
of" it, and what the derivative of an expression is made of the "gradient of" it: neither is what stands there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any, NamedTuple

from jitlab.ir.plans.decisions import COTANGENT
from jitlab.ir.texts import definition_of
from jitlab.ir.types import Source, Sources
from jitlab.support import trees
from jitlab.support.lazy import Kept
from jitlab.support.lazy_dataclass import dataclass

from .bodies import every_node
from .dot import line_text
from .graph import Graph, Node

#: An expression is cut to so many characters.
LONGEST = 40

#: Files of more lines are not parsed as a whole for a name.
MOST_LINES = 3000

#: Before the expression that a value is not, but belongs to.
PART, GRADIENT = "part of ", "gradient of "

Span = tuple[int, int, int, int]  # line, column, last line, last column


@dataclass(frozen=True)
class _Words:
    """Of a piece of text: the name that the value of an expression gets, the head of a loop or branch, and the functions."""

    names: dict[Span, str] = field(default_factory=dict)
    heads: dict[Span, str] = field(default_factory=dict)
    functions: list[tuple[int, int, str]] = field(default_factory=list)  # first and last line, name; the outer one first


class _Piece(NamedTuple):
    """A definition, or a whole file: its lines, the number of the first, and the words in it."""

    lines: tuple[str, ...]
    first: int
    words: _Words


def name_values(graph: Graph) -> None:
    """Tell each node of a graph, and of the bodies in it, what the program calls it and in which helper: `called`, `within`."""
    spans = {node: source for node in every_node(graph) if (source := _outermost(node.sources)) is not None}
    inner, parts = _steps(spans)
    main = graph.name.rpartition(".")[2]
    pieces: dict[tuple[str, int], _Piece | None] = {}  # by file and line
    known: dict[Source, tuple[str, str, str, str]] = {}
    for node, span in spans.items():
        if span not in known:
            at = span.file, span.line
            if at not in pieces:
                pieces[at] = _piece(span)
            known[span] = _spoken(span, pieces[at], main)
        name, text, head, node.within = known[span]
        if hasattr(node.op, "graphs"):
            node.called = head or text
        elif COTANGENT in node.attrs:
            node.called = GRADIENT + (name or text) if name or text else ""
        elif node in parts:
            node.called = text and PART + text
        else:
            node.called = name if name and node not in inner else text


def written(nodes: Iterable[Node]) -> dict[Node, str]:
    """How the program writes each operation: its expression, the head of a loop; else, as of a part of an expression, NumPy's
    word for it. Made when somebody reads a report."""
    found: dict[Node, str] = {}
    pieces: dict[tuple[str, int], tuple[tuple[str, ...], int] | None] = {}
    for node in nodes:
        source = _outermost(node.sources)
        text = node.called
        if hasattr(node.op, "graphs") or not text:
            pass
        elif source is None or text.startswith((PART, GRADIENT)):
            text = ""
        else:
            at = source.file, source.line
            if at not in pieces:
                pieces[at] = definition_of(source, MOST_LINES)
            text = (piece := pieces[at]) is not None and _short(_text_of(source, *piece)) or text
        found[node] = text or str(node.op.word)
    return found


def _steps(spans: dict[Node, Source]) -> tuple[set[Node], set[Node]]:
    """Of several operations that one expression became, its value is the one that no other of them reads. Those that are read;
    and which of them are more than the same elements in another shape. Operations of one turn stand together."""
    runs: list[list[Node]] = []
    for node, span in spans.items():
        if not runs or spans[runs[-1][-1]] != span:
            runs.append([])
        runs[-1].append(node)
    inner, parts = set(), set()
    for run in runs:
        if len({node.op.name for node in run}) == 1:  # `x = np.tanh(x)`, turn after turn
            continue
        together = set(run)
        for node in reversed(run):
            for source in together.intersection(node.inputs):
                inner.add(source)
                if node in parts or not _is_seen_only(node):
                    parts.add(source)
    return inner, parts


def expression(node: Node) -> ast.expr | None:
    """The whole expression that a node stands for, or is a part of; None where nobody knows it, and in a gradient."""
    span = _outermost(node.sources)
    piece = None if span is None or COTANGENT in node.attrs else definition_of(span, MOST_LINES)
    if span is None or piece is None:
        return None
    try:
        return trees.parse_expression(f"({_text_of(span, *piece)})")
    except (SyntaxError, ValueError, RecursionError):
        return None


def of_one_expression(a: Node, b: Node) -> bool:
    """Did the same expression become both?"""
    span = _outermost(a.sources)
    return span is not None and span == _outermost(b.sources)


def told(word: str, called: str, within: str = "", *, lines: str = "", mark: str = "`") -> str:
    """The program's word and its line: "`inv6` (line 7)", "`d ** 2` in dist". `word`, NumPy's for the operation, is said of
    what has none, and of a part of an expression: "part of `x.mean()` (sum)"."""
    before = next((start for start in (PART, GRADIENT) if called.startswith(start)), "")
    shown = f"{before}{mark}{called.removeprefix(before)}{mark}" if called else word
    where = ", ".join(part for part in (word if before else "", lines) if part)
    return shown + (f" in {within}" if within else "") + (f" ({where})" if where else "")


def told_node(node: Node, *, lines: bool = False) -> str:
    """The same of a node."""
    return told(node.op.word, node.called, node.within, lines=line_text(s.line for s in node.sources) if lines else "")


def line_of(wanted: str) -> tuple[str, int | None]:
    """What a user says of an operation, and in which line: "exp(x), line 7" -> ("exp(x)", 7)."""
    found = re.fullmatch(r"(.+?),\s*line\s+(\d+)", wanted.strip(), re.DOTALL)
    return (found[1], int(found[2])) if found else (wanted, None)


def is_written(wanted: str, *texts: str | None) -> bool:
    """Is one of the texts what is wanted, however it is spaced and wherever it was cut?"""
    known = {re.sub(r"\s", "", text) for text in texts if text}
    return re.sub(r"\s", "", wanted) in known or re.sub(r"\s", "", _short(wanted)) in known


def _is_seen_only(node: Node) -> bool:
    """Is its result one of its input's, or has the elements of its input in another shape or order?"""
    return len(node.inputs) == 1 and (node.op.name in ("Reshape", "Item") or hasattr(node.op, "map"))


def _outermost(sources: Sources) -> Source | None:
    """The span that stands for all: the first one that lies in no other."""
    if len(sources) == 1:
        (only,) = sources
        return only if only.column >= 0 else None
    known = sorted(source for source in sources if source.column >= 0)
    return next((source for source in known if not any(_holds(other, source) for other in known)), None)


def _holds(outer: Source, inner: Source) -> bool:
    starts = (outer.line, outer.column) <= (inner.line, inner.column)
    ends = (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    return outer != inner and outer.file == inner.file and starts and ends


def _piece(source: Source) -> _Piece | None:
    found = definition_of(source, MOST_LINES)
    return _Piece(*found, _words(*found)) if found is not None else None


def _spoken(source: Source, piece: _Piece | None, main: str) -> tuple[str, str, str, str]:
    """(the name that the value gets, its expression, the head of the loop or branch, the helper), each "" where it has none."""
    if piece is None:
        return "", "", "", ""
    words = piece.words
    around = [name for first, last, name in words.functions if first <= source.line <= last]
    within = around[-1] if around and around[-1] != main else ""
    text = _short(_text_of(source, piece.lines, piece.first))
    return words.names.get(source[1:], ""), text, words.heads.get(source[1:], ""), within


def _text_of(source: Source, lines: tuple[str, ...], first: int) -> str:
    """The text of a span; columns count bytes."""
    rows = [line.encode() for line in lines[source.line - first : source.end_line - first + 1]]
    if not rows or len(rows) != source.end_line - source.line + 1:
        return ""
    rows[-1] = rows[-1][: source.end_column]
    rows[0] = rows[0][source.column :]
    return " ".join(row.decode(errors="replace") for row in rows)


def _short(text: str) -> str:
    """An expression in at most so many characters: of a long one the longest operands are left out first, which leaves what
    is done with them: "np.cumsum(…, axis=1)", "… / …"."""
    text = re.sub(r"(?<=[(\[{]) | (?=[)\]}])", "", re.sub(r"\s+", " ", text)).strip()
    if len(text) <= LONGEST:
        return text
    raw, left_out = text.encode(), list[tuple[int, int]]()
    for operand in sorted(_operands(text), key=lambda span: span[0] - span[1]):
        left_out.append(operand)
        shown, end = "", 0
        for start, stop in sorted(left_out):
            shown, end = shown + raw[end:start].decode(errors="replace") + "…", stop
        shown += raw[end:].decode(errors="replace")
        if len(shown) <= LONGEST:
            return shown
    return text[: LONGEST - 1] + "…"


def _operands(text: str) -> list[tuple[int, int]]:
    """Where the operands of an expression stand, in bytes; none of a text that is no expression."""
    try:
        node: Any = trees.parse_expression(f"({text})")
    except (SyntaxError, ValueError, RecursionError):
        return []
    parts = [getattr(node, name, None) for name in ("left", "right", "operand", "value", "slice")]
    parts += [*getattr(node, "comparators", ()), *getattr(node, "values", ()), *getattr(node, "args", ())]
    parts += [keyword.value for keyword in getattr(node, "keywords", ())]
    if isinstance(method := getattr(node, "func", None), ast.Attribute) and not isinstance(method.value, ast.Name):
        parts.append(method.value)
    spans = [(part.col_offset - 1, (part.end_col_offset or 0) - 1) for part in parts if isinstance(part, ast.expr)]
    return [(start, end) for start, end in spans if end - start > len("…")]


_known: Kept[tuple[tuple[str, ...], int], _Words] = Kept(64)


def _words(lines: tuple[str, ...], first: int) -> _Words:
    """What the expressions of a piece of text are called, by their spans. The text may be indented."""
    return _known.of((lines, first), _words_of, lines, first)


def _words_of(lines: tuple[str, ...], first: int) -> _Words:
    found = _Words()
    indented = bool(lines) and lines[0][:1] in (" ", "\t")
    text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    try:
        tree = trees.parse(f"if True:\n{text}" if indented else text)
    except (SyntaxError, ValueError, RecursionError):  # a cell with magics, half of a statement
        tree = ast.Module([], [])
    ast.increment_lineno(tree, first - 1 - indented)
    _read(tree, found)
    return found


def _read(tree: ast.AST, words: _Words) -> None:
    for node in trees.walk(tree):
        match node:
            case ast.Assign(targets=[*targets], value=value):
                name = next((target.id for target in targets if isinstance(target, ast.Name)), "")
                words.names.setdefault(_span(value), name)
                for target in targets:
                    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
                        words.names.update(_paired(target, value))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) | ast.NamedExpr(
                target=ast.Name(id=name), value=value
            ):
                words.names[_span(value)] = name
            case ast.AugAssign(target=ast.Name(id=name)):
                words.names[_span(node)] = name
            case ast.For(target=target, iter=where):
                words.heads[_span(where)] = words.heads[_span(node)] = _short(f"for {_text(target)} in {_text(where)}")
            case ast.While(test=test):
                words.heads[_span(test)] = words.heads[_span(node)] = _short(f"while {_text(test)}")
            case ast.If(test=test):
                words.heads[_span(test)] = words.heads[_span(node)] = _short(f"if {_text(test)}")
            case ast.FunctionDef(name=name):
                words.functions.append((node.lineno, node.end_lineno or node.lineno, name))
            case _:
                pass


def _paired(target: ast.Tuple | ast.List, value: ast.Tuple | ast.List) -> Iterator[tuple[Span, str]]:
    """`a, b = x, y` names both."""
    if len(target.elts) == len(value.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            if isinstance(one, ast.Name):
                yield _span(other), one.id


def _text(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except (ValueError, RecursionError):
        return "…"


def _span(node: ast.expr | ast.stmt) -> Span:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or -1
