"""The lines that keep a what-if: `with jl.jit_scope(...)` around statements, tried on the captured graph before they are told.

A scope marks the operations made inside. Here the marks are put onto a copy of the captured graph, which then goes through the
stages as it would have; only lines whose plan has just the kernels of the changed one are told.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitlab import events
from jitlab.ir import Graph, Joined, Node, is_operation
from jitlab.runtime import Executable

from .definitions import Site
from .questions import Question

Marks = Callable[[Node], "tuple[int, bool] | None"]  # of a node: the number of its scope, and whether that compiles it


@dataclass(frozen=True)
class Keep:
    """`lines` stand for lines `first` to `last` of `file`."""

    file: str
    first: int
    last: int
    lines: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "first": self.first, "last": self.last, "lines": list(self.lines)}

    def __str__(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True)
class SourceText:
    """The statements that made a graph. `file` as node sources have it, `line` the number of the text's first line, `name`
    what the module jitlab is called there; `in_function`: its statements are the body of the one function."""

    file: str
    line: int
    text: str
    name: str = "jl"
    in_function: bool = True

    @classmethod
    def of_function(cls, function: Any) -> SourceText | None:
        """Of a `jl.function` or `jl.jit`; None where there is no source."""
        plain = inspect.unwrap(getattr(function, "python_function", function))
        plain = getattr(plain, "__func__", plain)
        try:
            lines, first = inspect.getsourcelines(plain)
        except (OSError, TypeError):
            return None
        names = getattr(plain, "__globals__", {})
        return cls(plain.__code__.co_filename, first, "".join(lines), module_name(names))

    @classmethod
    def around(cls, file: str, texts: Sequence[str], lines: Iterable[int], name: str) -> SourceText | None:
        """Of a file or cell: the innermost function with all these lines, else the whole text."""
        wanted = list(lines)
        try:
            tree = ast.parse("".join(texts))
        except (SyntaxError, ValueError):
            return None
        if not texts or not wanted:
            return None
        found = [
            f for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))
            and f.body[0].lineno <= min(wanted) and max(wanted) <= (f.end_lineno or f.lineno)
        ]  # fmt: skip
        if not found:
            return cls(file, 1, "".join(texts), name, in_function=False)
        inner = max(found, key=lambda f: f.lineno)
        return cls(file, inner.lineno, "".join(texts[inner.lineno - 1 : inner.end_lineno]), name)

    def statements(self) -> list[ast.stmt]:
        """The statements that scopes can stand around, their lines those of the file; [] where the text is not understood."""
        try:
            tree = ast.parse(textwrap.dedent(self.text))
        except SyntaxError:
            return []
        ast.increment_lineno(tree, self.line - 1)
        body = tree.body
        if self.in_function:
            found = next((s for s in body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
            body = found.body if found is not None else []
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # a docstring
        return body

    def line_texts(self, first: int, last: int) -> list[str]:
        lines = self.text.splitlines()
        return lines[first - self.line : last - self.line + 1]


def module_name(names: Mapping[str, Any]) -> str:
    """What the module jitlab is called among these names."""
    return next((name for name, value in names.items() if getattr(value, "__name__", "") == "jitlab"), "jl")


def keep(
    executable: Executable, changed: Executable, question: Question, source: SourceText | None
) -> tuple[Keep | None, str]:
    """The lines that keep a change, and else why there are none."""
    if question.fuse or question.target is not None:
        return None, "No scope says that: which operations share a kernel is the compiler's own decision."
    if question.cut and question.keep_out:
        return None, "No one scope says both: ask for the cut and for what is kept out apart."
    if source is None:
        return None, "The source is not at hand, so no lines can be given."
    captured, again = getattr(executable, "captured", None), getattr(executable, "again", None)
    if captured is None or again is None:
        return None, "The captured graph is not kept, so no lines can be tried."
    if any(c.reason.code is Joined.MUST for c in executable.clustering.clusters):
        return None, "jit_compile=True puts everything into one cluster whatever a scope says."
    writer = _Writer(executable, captured, again, changed, question, source)
    if writer.refusal:
        return None, writer.refusal
    for lines in writer.proposals():
        return lines, ""
    return None, writer.failure


class _Writer:
    """Proposes scopes, and tries each."""

    def __init__(
        self, executable: Executable, captured: Graph, again: Callable[[Graph], Executable], changed: Executable,
        question: Question, source: SourceText,
    ) -> None:  # fmt: skip
        self.graph, self.again, self.question, self.source = captured, again, question, source
        self.wanted = kernels_of(changed)
        self.statements = source.statements()
        self.named = {node.name: node for node in executable.graph.nodes}
        self.failure = "No scope keeps just this change: it would make clusters, and those change more than this edge."
        self.refusal = self._refusal()

    def _refusal(self) -> str:
        if any(name not in self.named for name in (*(n for pair in self.question.cut for n in pair), *self.question.keep_out)):
            return "A scope does not reach into a loop or a branch: it marks the loop as a whole."
        if not self.statements:
            return "The statements could not be read, so no lines can be given."
        if any(node.attrs.get("_XlaScope") for node in self.graph.nodes):
            return "The function has jit_scopes of its own: which lines they take is for them to say."
        for node in self.graph.nodes:
            if is_operation(node) and self._statement(node) is None:
                first = min(((source.file, source.line) for source in node.sources), default=None)
                at = f" ({Site(*first)})" if first is not None else ""
                return f"{node.op.name} is made in another function{at}: no scope in one place holds all that runs here."
        return ""

    def _statement(self, node: Node) -> int | None:
        """The number of the top-level statement that made a node; None when it is none of them, or several."""
        found = {
            n for n, s in enumerate(self.statements) for source in node.sources
            if source.file == self.source.file and s.lineno <= source.line <= (s.end_lineno or s.lineno)
        }  # fmt: skip
        return next(iter(found)) if len(found) == 1 else None

    def proposals(self) -> Iterator[Keep]:
        if self.question.keep_out:
            yield from self._kept_out()
        else:
            yield from self._cut()

    def _cut(self) -> Iterator[Keep]:
        """All statements up to one in a scope, the others in a second one; strict, so that scopes count."""
        if len(self.question.cut) > 1:
            self.failure = "Several cuts at once: ask for each, and put a scope around the statements between."
            return
        (pair,) = self.question.cut
        ends = [self._statement(self.named[name]) for name in pair]
        assert ends[0] is not None and ends[1] is not None
        if ends[0] == ends[1]:
            names = " and ".join(self.named[name].op.name for name in pair)
            self.failure = f"One statement makes {names}, and a scope goes around whole statements. Split it in two first."
            return
        places = [place for node in self.graph.nodes if is_operation(node) and (place := self._statement(node)) is not None]
        first, last = min(places), max(places)
        for at in range(ends[0], ends[1]):
            if self._holds(lambda node, at=at: (int((self._statement(node) or 0) > at), True)):  # type: ignore[misc]
                head = f"with {self.source.name}.jit_scope(strict=True):"
                yield self._lines(first, last, [(head, first, at), (head, at + 1, last)])
                return

    def _kept_out(self) -> Iterator[Keep]:
        """One scope around the statements: compile_ops=False where all of them is kept out, else a function of the kind."""
        nodes = [self.named[name] for name in self.question.keep_out]
        places = [self._statement(node) for node in nodes]
        assert all(place is not None for place in places)
        first, last = min(p for p in places if p is not None), max(p for p in places if p is not None)
        kinds = sorted({node.op.name for node in nodes})
        shown = repr(kinds[0]) if len(kinds) == 1 else repr(tuple(kinds))
        test = f"lambda op: op.op {'!=' if len(kinds) == 1 else 'not in'} {shown}"
        ways: list[tuple[str, Callable[[Node], bool]]] = [
            ("compile_ops=False", lambda node: False), (test, lambda node: node.op.name not in kinds)
        ]  # fmt: skip

        def marks(node: Node, compiles: Callable[[Node], bool]) -> tuple[int, bool] | None:
            place = self._statement(node)
            return (0, compiles(node)) if place is not None and first <= place <= last else None

        for argument, compiles in ways:
            if self._holds(lambda node, compiles=compiles: marks(node, compiles)):  # type: ignore[misc]
                yield self._lines(first, last, [(f"with {self.source.name}.jit_scope({argument}):", first, last)])
                return
        self.failure = "No scope keeps just this change: it would keep out other operations of the same lines, too."

    def _holds(self, marks: Marks) -> bool:
        """Do these marks give the plan that is wanted?"""
        with events.muted():
            made = self.again(marked(self.graph, marks))
            made.prepare(self._arguments())
        return kernels_of(made) == self.wanted

    def _arguments(self) -> list[Any]:
        import numpy as np

        return [np.broadcast_to(np.zeros((), p.dtype), tuple(int(n) for n in p.shape)) for p in self.graph.parameters]

    def _lines(self, first: int, last: int, parts: Sequence[tuple[str, int, int]]) -> Keep:
        start = self.statements[first].lineno
        end = max(s.end_lineno or s.lineno for s in self.statements[first : last + 1])
        lines: list[str] = []
        for head, low, high in parts:
            begin = self.statements[low].lineno
            stop = self.statements[high].end_lineno or self.statements[high].lineno
            texts = self.source.line_texts(begin, stop)
            indent = texts[0][: len(texts[0]) - len(texts[0].lstrip())]
            lines.append(indent + head)
            lines += [f"    {text}" if text.strip() else text for text in texts]
        return Keep(self.source.file, start, end, tuple(lines))


def marked(graph: Graph, marks: Marks) -> Graph:
    """The graph as capture would have made it inside scopes."""

    def rule(node: Node) -> None:
        found = marks(node)
        if found is not None:
            number, compiles = found
            scope = f"jit_scope_{number}".encode()
            node.attrs.update(_XlaCompile=compiles, _XlaScope=scope, _XlaSeparateCompiledGradients=False)

    new = graph.rewrite(rule)
    new.marked_only = graph.marked_only or all(marks(node) is not None for node in graph.nodes if is_operation(node))
    return new


def kernels_of(executable: Executable) -> set[frozenset[str]]:
    """Which operations share a kernel."""
    return {frozenset(node.name for node in kernel.nodes) for kernel in executable.plan.kernels}
