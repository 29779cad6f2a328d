"""Cells: a notebook cell as statements; consecutive ones that can be captured are one piece, the others run as Python.

`for`, `while` and `if` run their headers as Python and their bodies as pieces, each traced once for each kind of inputs and
then reused (design D5: a host loop). After a cell the namespace is what plain Python would have left: outputs are assigned,
arrays written in place, views of the user's arrays are views of them.
"""

from __future__ import annotations

import ast
import builtins
import copy
import time
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from jitlab import events
from jitlab.errors import CaptureError, InvalidArgumentError, JitlabError
from jitlab.ir import Source, interpret, is_operation

from .changes import Change, changes, distance
from .convert import HOOK, Converter
from .draws import random_state, set_random_state
from .hooks import HOOKS
from .host import NotReplayable
from .pieces import MISSING, CellCapture, CellStructure, EndPiece, Names, Namespace, PieceTrace, StaticNeeded, finish_piece
from .positions import describe, display_name, register, spans
from .trace import Trace

Executor = Callable[[Trace], Callable[[Sequence[Any]], list[Any]]]

#: Traces of one piece after which it runs as Python: it changes more often than it repeats.
MOST_TRACES = 16
#: Cells whose traces are kept for the next time they are run.
MOST_PROGRAMS = 256
_RESULT = "__jl_result__"


class CellConverter(Converter):
    """Converts a statement of a cell: every name that is not local to a function inside it is looked up by the capture."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or node.id == HOOK or self._is_local(node.id):
            return node
        return self.hook("lookup", node, ast.Constant(node.id))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if isinstance(node.target, ast.Name):
            load = self.visit(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            value = self.hook("augmented", node, ast.Constant(type(node.op).__name__), load, self.visit(node.value))
            return ast.copy_location(ast.Assign([node.target], value), node)
        return super().visit_AugAssign(node)


# ---- programs


class Statement:
    """One statement: as it stands, and converted."""

    def __init__(self, node: ast.stmt, filename: str, is_last: bool) -> None:
        self.node = node
        self.filename = filename
        self.is_display = is_last and isinstance(node, ast.Expr)
        self.plain_reason: tuple[str, str] | None = self._never_captured()
        self.failures = 0
        self.body: Block | None = None
        self._plain: types.CodeType | None = None
        self._converted: types.CodeType | None = None

    def _never_captured(self) -> tuple[str, str] | None:
        node = self.node
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
            for part in ast.walk(node):
                if isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                    return "statement", "it waits, yields, or binds a name with :="
            return None
        if isinstance(node, ast.With) and is_scope(node):
            return None
        return "statement", f"a `{_KEYWORDS.get(type(node), type(node).__name__.lower())}` statement is not captured"

    @property
    def source(self) -> Source:
        node = self.node
        return Source(self.filename, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or -1)

    @property
    def text(self) -> str:
        return ast.unparse(self.node).split("\n")[0]

    def plain(self) -> types.CodeType:
        if self._plain is None:
            node = self._displayed(self.node) if self.is_display else self.node
            self._plain = compile(ast.Module([node], []), self.filename, "exec", dont_inherit=True)
        return self._plain

    def refuse(self, error: Exception) -> None:
        """Raise an error at the statement's own line, so that the traceback shows it."""
        node = ast.Raise(ast.Name("error", ast.Load()))
        for part in ast.walk(node):
            ast.copy_location(part, self.node)
        exec(compile(ast.Module([node], []), self.filename, "exec", dont_inherit=True), {"error": error})

    def converted(self) -> types.CodeType:
        if self._converted is None:
            node = copy.deepcopy(self._displayed(self.node) if self.is_display else self.node)
            body = CellConverter().block([node])
            module = ast.fix_missing_locations(ast.Module(body, []))
            self._converted = compile(module, self.filename, "exec", dont_inherit=True)
            register(self._converted)
        return self._converted

    def contexts(self) -> list[types.CodeType]:
        """The scopes of a `with jit_scope(...)`, converted."""
        assert isinstance(self.node, ast.With)
        codes = []
        for item in self.node.items:
            value = CellConverter().visit(copy.deepcopy(item.context_expr))
            codes.append(compile(ast.fix_missing_locations(ast.Expression(value)), self.filename, "eval", dont_inherit=True))
            register(codes[-1])
        return codes

    def _displayed(self, node: ast.stmt) -> ast.stmt:
        assert isinstance(node, ast.Expr)
        target = ast.copy_location(ast.Name(_RESULT, ast.Store()), node)
        return ast.copy_location(ast.Assign([target], node.value), node)


_KEYWORDS = {
    ast.FunctionDef: "def", ast.ClassDef: "class", ast.Delete: "del", ast.ImportFrom: "import", ast.AnnAssign: "name: type",
}  # fmt: skip


def is_scope(node: ast.With) -> bool:
    """`with jl.jit_scope(...):`, by its name."""
    return all(
        isinstance(item.context_expr, ast.Call)
        and item.optional_vars is None
        and (getattr(item.context_expr.func, "attr", None) or getattr(item.context_expr.func, "id", None)) == "jit_scope"
        for item in node.items
    )


class Segment:
    """Consecutive simple statements, and the traces of the pieces that start at each of them."""

    def __init__(self, statements: list[Statement]) -> None:
        self.statements = statements
        self.traces: dict[int, list[PieceTrace]] = {}
        self.retired: set[int] = set()


@dataclass
class Loop:
    """`for` or `while`: header as Python, body as a block."""

    node: ast.For | ast.While
    header: types.CodeType
    assign: types.CodeType | None
    body: Block
    orelse: Block


@dataclass
class Condition:
    node: ast.If
    test: types.CodeType
    body: Block
    orelse: Block


@dataclass
class Jump:
    kind: str  # "break" or "continue"


Block = list["Segment | Loop | Condition | Jump"]


@dataclass
class CellResult:
    """What a cell did: the value to display, the traces it made, how often pieces ran, and what Python ran."""

    value: Any = None
    has_value: bool = False
    traces: list[PieceTrace] = field(default_factory=list)
    runs: int = 0
    statements: list[tuple[str, str, Source]] = field(default_factory=list)  # run as Python: reason, text, where


class CellProgram:
    """A cell, ready to be run any number of times; its traces stay with it."""

    def __init__(self, source: str, filename: str, namespace: Namespace, first_line: int = 1) -> None:
        self.namespace = namespace  # what its traces read names from
        tree = ast.parse(source, filename)
        ast.increment_lineno(tree, first_line - 1)
        self.source, self.filename = source, filename
        self.trace_count = 0
        self.block = self.block_of(tree.body, top=True)

    def block_of(self, body: list[ast.stmt], *, top: bool = False) -> Block:
        block: Block = []
        for node in body:
            is_last = top and node is body[-1]
            step = self._control(node)
            if step is None:
                statement = Statement(node, self.filename, is_last)
                if not block or not isinstance(block[-1], Segment):
                    block.append(Segment([]))
                assert isinstance(block[-1], Segment)
                block[-1].statements.append(statement)
            else:
                block.append(step)
        return block

    def _control(self, node: ast.stmt) -> Loop | Condition | Jump | None:
        """A step of the host loop, None for a simple statement (and for loops that only Python itself can run)."""
        if isinstance(node, ast.Break):
            return Jump("break")
        if isinstance(node, ast.Continue):
            return Jump("continue")
        if isinstance(node, ast.If):
            test = self._expression(node.test)
            return Condition(node, test, self.block_of(node.body), self.block_of(node.orelse))
        if isinstance(node, (ast.For, ast.While)) and not _jumps_out(node.body):
            header = self._expression(node.iter if isinstance(node, ast.For) else node.test)
            assign = None
            if isinstance(node, ast.For) and not isinstance(node.target, ast.Name):
                load = ast.copy_location(ast.Name(_RESULT, ast.Load()), node.target)
                store = ast.copy_location(ast.Assign([node.target], load), node.target)
                assign = compile(ast.Module([store], []), self.filename, "exec", dont_inherit=True)
            return Loop(node, header, assign, self.block_of(node.body), self.block_of(node.orelse))
        return None

    def _expression(self, node: ast.expr) -> types.CodeType:
        return compile(ast.Expression(node), self.filename, "eval", dont_inherit=True)


def _jumps_out(body: list[ast.stmt]) -> bool:
    """A break or continue of this loop inside a `with`, `try` or `match`, which are run whole by Python."""

    def inside(node: ast.AST, compound: bool) -> bool:
        if isinstance(node, (ast.Break, ast.Continue)):
            return compound
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            return any(inside(child, compound) for child in node.orelse)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return False
        compound = compound or isinstance(node, (ast.With, ast.Try, ast.Match, getattr(ast, "TryStar", ast.Try)))
        return any(inside(child, compound) for child in ast.iter_child_nodes(node) if isinstance(child, ast.AST))

    return any(inside(statement, False) for statement in body)


class _Run:
    """One run of a cell."""

    def __init__(
        self, program: CellProgram, namespace: Namespace, executor: Executor, *, strict: bool, title: str, result: CellResult
    ) -> None:
        self.program = program
        self.namespace = namespace
        self.executor = executor
        self.strict = strict
        self.title = title
        self.result = result
        self.scopes: list[Statement] = []

    # ---- control flow
    def block(self, block: Block) -> str:
        """"", or "break" or "continue"."""
        for step in block:
            if isinstance(step, Segment):
                self.segment(step)
            elif isinstance(step, Jump):
                return step.kind
            elif isinstance(step, Condition):
                jump = self.block(step.body if eval(step.test, self.namespace) else step.orelse)
                if jump:
                    return jump
            else:
                jump = self.loop(step)
                if jump:
                    return jump
        return ""

    def loop(self, loop: Loop) -> str:
        for _ in self._turns(loop):
            if self.block(loop.body) == "break":
                return ""
        return self.block(loop.orelse)

    def _turns(self, loop: Loop) -> Iterator[None]:
        if isinstance(loop.node, ast.While):
            while eval(loop.header, self.namespace):
                yield
            return
        for item in eval(loop.header, self.namespace):
            if isinstance(loop.node.target, ast.Name):
                self.namespace[loop.node.target.id] = item
            else:
                self.namespace[_RESULT] = item
                try:
                    exec(loop.assign, self.namespace)  # type: ignore[arg-type]
                finally:
                    del self.namespace[_RESULT]
            yield

    # ---- pieces
    def segment(self, segment: Segment) -> None:
        at = 0
        while at < len(segment.statements):
            at += self.piece(segment, at)

    def piece(self, segment: Segment, at: int) -> int:
        """Run a piece that starts at a statement, or that statement as Python; how many statements it was."""
        statement = segment.statements[at]
        if statement.plain_reason is not None:
            self.plain(statement, *statement.plain_reason)
            return 1
        if at in segment.retired:
            self.plain(statement, "retraced", f"it was captured {MOST_TRACES} times and never fitted again")
            return 1
        for trace in segment.traces.get(at, ()):
            gathered = trace.gather()
            if gathered is not None:
                return self.perform(trace, *gathered, segment, at)
        made, reason = self.capture(segment, at)
        if made is None:
            statement.failures += 1
            if reason[0] in ("effect", "foreign_type", "value") and statement.failures >= 2:
                statement.plain_reason = reason
            if isinstance(statement.node, ast.With) and is_scope(statement.node):
                self.scoped(statement)
            else:
                self.plain(statement, *reason)
            return 1
        known = segment.traces.setdefault(at, [])
        known.insert(0, made)
        if len(known) > MOST_TRACES:
            segment.retired.add(at)
            known.clear()
        gathered = made.gather()
        if gathered is None:
            self.plain(statement, "value", "what it reads changes while it is read")
            return 1
        return self.perform(made, *gathered, segment, at)

    def scoped(self, statement: Statement) -> None:
        """A jit_scope that could not be captured whole: its statements are pieces of their own, each in the scope."""
        assert isinstance(statement.node, ast.With)
        if statement.body is None:
            statement.body = self.program.block_of(statement.node.body)
        self.scopes.append(statement)
        try:
            self.block(statement.body)
        finally:
            self.scopes.pop()

    def perform(self, trace: PieceTrace, inputs: list[Any], numbers: tuple[Any, ...], segment: Segment, at: int) -> int:
        states = [(generator, random_state(generator)) for generator in trace.generators]
        started = time.perf_counter_ns()
        refusal: Exception | None = None
        try:
            trace.perform(inputs, numbers, self.namespace)
        except InvalidArgumentError:
            raise
        except Exception as error:
            refusal = error
        if refusal is not None:  # below `except`: what Python raises now has no other error behind it
            for generator, state in states:
                set_random_state(generator, state)
            self.replace(segment.statements[at : at + trace.length], refusal)
            return trace.length
        if trace.is_silent:
            return trace.length
        self.result.runs += 1
        if events.active():
            events.send(
                events.FunctionCalled(
                    cell=events.current_cell(), function=trace.name, trace=trace.number, start_ns=started,
                    duration_ns=time.perf_counter_ns() - started,
                )
            )  # fmt: skip
        return trace.length

    def replace(self, statements: list[Statement], refusal: Exception) -> None:
        """Run the statements of a piece that failed as Python. When one of them raises, it alone is the one to tell of."""
        text = str(refusal).split("\n")[0]
        if isinstance(refusal, NotReplayable):
            for statement in statements:
                self.plain(statement, refusal.code, text)
            return
        times = []
        for statement in statements:
            started = time.perf_counter_ns()
            try:
                exec(statement.plain(), self.namespace)
            except Exception as error:
                self.tell(statement, "error", f"{type(error).__name__}: {str(error).split(chr(10))[0]}", started)
                raise
            times.append((started, time.perf_counter_ns()))
        for statement, (started, ended) in zip(statements, times, strict=True):
            self.tell(statement, "error", text, started, ended)

    def plain(self, statement: Statement, code: str, text: str) -> None:
        """Run a statement as Python."""
        if self.strict and code not in ("statement", "effect", "compiled_function", "error"):
            error = CaptureError(
                f"`{statement.text}` cannot be captured, and --strict leaves nothing to NumPy.",
                where=describe(statement.source), why=text, hint="take it out of the cell, or leave --strict away",
            )  # fmt: skip
            statement.refuse(error)
        started = time.perf_counter_ns()
        try:
            exec(statement.plain(), self.namespace)
        finally:
            self.tell(statement, code, text, started)

    def tell(self, statement: Statement, code: str, text: str, started: int, ended: int = 0) -> None:
        """Python ran a statement."""
        self.result.statements.append((code, text, statement.source))
        if events.active() and not isinstance(statement.node, (ast.Pass, ast.Import, ast.ImportFrom, ast.FunctionDef)):
            events.send(
                events.StatementRan(
                    cell=events.current_cell(), reason=code, text=text, lines=spans(statement.source),
                    start_ns=started, duration_ns=(ended or time.perf_counter_ns()) - started,
                )
            )  # fmt: skip

    def capture(self, segment: Segment, at: int) -> tuple[PieceTrace | None, tuple[str, str]]:
        """Capture statements from `at` on as far as it goes; the trace of none is None, with the reason."""
        try:
            return self._capture(segment, at, static=False)
        except StaticNeeded:
            return self._capture(segment, at, static=True)

    def _capture(self, segment: Segment, at: int, *, static: bool) -> tuple[PieceTrace | None, tuple[str, str]]:
        started = time.perf_counter_ns()
        capture = CellCapture(self.title, self.namespace, strict=self.strict, static=static)
        names = Names(capture)
        length, reason = 0, ("", "")
        trace: PieceTrace | None = None
        with capture.recording(), ExitStack() as stack:
            for scope in self.scopes:
                for code in scope.contexts():
                    stack.enter_context(eval(code, {HOOK: HOOKS, "__builtins__": builtins}, names))
            for statement in segment.statements[at:]:
                if statement.plain_reason is not None:
                    break
                marked = capture.mark_statement()
                capture.made_now.clear()
                try:
                    exec(statement.converted(), {HOOK: HOOKS, "__builtins__": builtins}, names)
                    for name, value in capture.assigned.items():
                        if marked[1][0].get(name, MISSING) is not value:
                            CellStructure(capture).of(value)  # what can't be given back ends the piece before it
                except StaticNeeded:
                    raise
                except InvalidArgumentError:
                    capture.rollback_statement(marked)
                    if self.strict and not length:
                        raise
                    reason = ("no_loop_body", "")
                    break
                except Exception as error:
                    capture.rollback_statement(marked)
                    reason = _reason(error)
                    break
                length += 1
            if length:
                self.program.trace_count += 1
                trace = finish_piece(capture, length, self.program.trace_count)
        capture.close()
        if trace is None:
            return None, reason
        if not trace.outputs and not trace.graph.nodes and not trace.writes:
            return None, ("effect", "nothing in it is captured") if reason[0] == "" else reason
        if not trace.graph.nodes:  # Python alone: nothing to compile, nothing to tell
            trace.is_silent = True
            trace.run = interpreted(trace)
            return trace, reason
        trace.run = self.executor(trace)
        self._send_traced(trace, segment.traces.get(at, []), started)
        self.result.traces.append(trace)
        return trace, reason

    def _send_traced(self, trace: PieceTrace, before: list[PieceTrace], started: int) -> None:
        if not events.active():
            return
        found = [Change("first_call")]
        nearest = None
        if before:
            candidates = [(changes(old.read_leaves, trace.read_leaves), old) for old in before]
            found, nearest = min(candidates, key=lambda candidate: distance(candidate[0]))
            found = found or [Change("aliasing", before="other names share memory", after="these names share memory")]
        first = found[0]
        source = nearest.uses.get(first.path) if nearest is not None else None
        events.send(
            events.Traced(
                cell=events.current_cell(), function=trace.name, trace=trace.number,
                causes=tuple(dict.fromkeys(change.cause for change in found)), argument=first.path, before=first.before,
                after=first.after, lines=spans(source), fix=first.fix,
                operations=sum(is_operation(node) for node in trace.graph.nodes), start_ns=started,
                duration_ns=time.perf_counter_ns() - started,
            )
        )  # fmt: skip






def _reason(error: Exception) -> tuple[str, str]:
    if isinstance(error, EndPiece):
        return error.code, error.text
    if isinstance(error, JitlabError):
        return "value", error.what
    return "error", f"{type(error).__name__}: {error}"


def interpreted(trace: Trace) -> Callable[[Sequence[Any]], list[Any]]:
    """The executor that runs a graph op by op on NumPy."""
    return lambda inputs: interpret(trace.graph, inputs)


_programs: OrderedDict[tuple[str, str, int], CellProgram] = OrderedDict()


def run_cell(
    source: str,
    namespace: Namespace,
    filename: str,
    *,
    first_line: int = 1,
    strict: bool = False,
    executor: Executor = interpreted,
    title: str = "",
    result: CellResult | None = None,
) -> CellResult:
    """Run a cell in the user's namespace, captured as far as it goes.

    `executor(trace)` gives what runs a trace's graph. `first_line` is the line of the file (or cell) on which the source
    begins. `result` is filled also when the cell raises.
    """
    key = (source, filename, first_line)
    program = _programs.get(key)
    if program is None or program.namespace is not namespace:
        program = _programs[key] = CellProgram(source, filename, namespace, first_line)
        while len(_programs) > MOST_PROGRAMS:
            _programs.popitem(last=False)
    _programs.move_to_end(key)
    result = result if result is not None else CellResult()
    run = _Run(program, namespace, executor, strict=strict, title=title or display_name(filename), result=result)
    namespace.setdefault("__builtins__", builtins)
    try:
        run.block(program.block)
    finally:
        value = namespace.pop(_RESULT, MISSING)
    if value is not MISSING:
        result.value, result.has_value = value, True
    return result


__all__ = ["CellProgram", "CellResult", "EndPiece", "PieceTrace", "interpreted", "run_cell"]
