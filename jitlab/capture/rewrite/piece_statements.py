"""The statements of a program that runs in pieces: each as Python runs it, as it is captured, and in parts."""

from __future__ import annotations

import ast
import builtins
import copy
import types
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeVar

from jitlab.capture.drivers.helpers import Helpers
from jitlab.capture.drivers.piece_traces import PieceTrace
from jitlab.capture.positions import register_wrapper
from jitlab.capture.refusals import Refusal
from jitlab.ir import Source
from jitlab.support.later import Later
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass

from .flow_rewrite import may_jump
from .splitting import Group, Step, may_work, split

if TYPE_CHECKING:
    from . import effect_statements
else:  # for statements of programs in pieces
    effect_statements = Later(f"{__package__}.effect_statements")

Node = TypeVar("Node", bound=ast.AST)

#: The name that holds what a displayed expression, or a call, gives.
RESULT = "__jl_result__"
#: The name by which a `for`, `with` or `try` calls its blocks back.
BODY = "__jl_body__"
#: The number with which a `for` calls back for its iterator.
ITERATOR = -1
#: How a statement may end.
BREAK, CONTINUE, RETURN = "break", "continue", "return"


class Statement:
    """One statement. `shows`: what expressions give is displayed. `header`: the name of a test or iterable that it computes."""

    def __init__(
        self, program: Program, node: ast.stmt, *, shows: bool = False, group: Group | None = None, header: str = ""
    ) -> None:  # fmt: skip
        self.program, self.node, self.shows, self.group, self.header = program, node, shows, group, header
        self.is_display = shows and isinstance(node, ast.Expr)
        self.step: Step | None = None
        self.is_loop = False  # of a cell: it is captured whole where it can be rolled
        self.end: ast.stmt | ast.expr = node  # where what a user is told of ends
        self.is_whole = False  # it has been tried to take it apart, or it can't be
        self.failures = 0
        self.asks = False  # its calls ask what to call: a function that it calls is not captured whole
        self.raised = self.waits = 0  # captures in succession that ended with an error; runs before the next one
        self.plain_reason = program.never_captured(node)
        self._parts: Parts | None | Literal[""] = ""
        self._rest: Statement | None = None
        self._plain: types.CodeType | None = None
        self._converted: types.CodeType | None = None

    @property
    def source(self) -> Source:
        node, last = self.node, self.end
        return Source(
            self.program.filename, node.lineno, node.col_offset, last.end_lineno or node.lineno, last.end_col_offset or -1
        )

    @lazy
    def received(self) -> effect_statements.Received:
        """The names of what it only gives something to."""
        return effect_statements.only_received([self.node])

    def plain(self) -> types.CodeType:
        """What Python runs."""
        if self._plain is None:
            self._plain = self.program.plain_code(self)
        return self._plain

    def ask_for_helpers(self) -> None:
        """From now on its calls do, and those of what it is a step of."""
        for statement in (self, self._rest):
            if statement is not None:
                statement.asks, statement._plain = True, None
        if self.group is not None:
            self.group.asks = True

    def converted(self) -> types.CodeType:
        """What is run to capture it."""
        if self._converted is None:
            self._converted = self.program.converted_code(self)
        return self._converted

    def parts(self) -> Parts | None:
        """Its blocks, and what runs them; None: only Python can run it."""
        if self._parts == "":
            before = Segment()
            self._parts = self.program.parts_of(self.node, before)
            if self._parts is not None:
                self._parts.before = before
        return self._parts

    @property
    def known_parts(self) -> Parts | None:
        """Its blocks, where it has run in parts."""
        return self._parts or None

    def is_made_of(self, parts: Parts | None) -> None:
        self._parts = parts

    # ---- in steps
    def split(self) -> list[Statement] | None:
        """The statement in steps, so that NumPy work in it is captured though the statement is not; None: there is nothing."""
        if self.group is None:
            group = split(self.node)
            if group is None:
                return None
            group.is_display = self.is_display
            final = Statement(self.program, group.final, shows=self.shows, group=group)
            return [*(self._of_step(step, group) for step in group.steps), final]
        if self.step is None:
            return None
        found = self.group.split_step(self.group.steps.index(self.step))
        return None if found is None else [self._of_step(step, found[0]) for step in found[1]]

    def _of_step(self, step: Step, group: Group) -> Statement:
        statement = Statement(self.program, step.node, group=group)
        statement.step = step
        return statement

    def rest(self) -> Statement:
        """The whole statement from this step on, to be run by Python."""
        assert self.group is not None and self.step is not None
        if self._rest is None:
            rest = self.group.rest(self.group.steps.index(self.step))
            self._rest = Statement(self.program, rest, shows=self.group.is_display, group=self.group)
            self._rest.asks = self.group.asks
        return self._rest


@dataclass
class Segment:
    """Consecutive statements, and the traces of the pieces that start at each of them. A run counts statements, and other runs
    may be under way (threads, recursion): where a statement is taken apart, those go on in this segment, and the run that did
    it, and later ones, in `newer`."""

    statements: list[Statement] = field(default_factory=list)
    traces: dict[int, list[PieceTrace]] = field(default_factory=dict)
    retired: dict[int, Refusal] = field(default_factory=dict)
    newer: Segment | None = None

    @property
    def newest(self) -> Segment:
        return self if self.newer is None else self.newer.newest

    def with_steps(self, at: int, steps: list[Statement]) -> Segment:
        """The newer one, in which steps have the place of a statement; traces that lay across it are gone."""
        more = len(steps) - 1
        across = {n for n, traces in self.traces.items() if n <= at and any(n + trace.length > at for trace in traces)}
        traces = {n if n <= at else n + more: traces for n, traces in self.traces.items() if n not in across}
        retired = {n if n <= at else n + more: reason for n, reason in self.retired.items()}
        self.newer = Segment([*self.statements[:at], *steps, *self.statements[at + 1 :]], traces, retired)
        return self.newer


# ---- in parts


@dataclass
class Parts:
    """A compound statement as blocks. `before`: what is captured of its header."""

    before: Segment = field(default_factory=Segment, kw_only=True)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All of its statements."""
        return (self.before,)


@dataclass
class Condition(Parts):
    """`if`: the test as Python, the branches as segments."""

    test: Test
    body: Segment
    orelse: Segment

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self.before, self.body, self.orelse


@dataclass
class Loop(Parts):
    """`while`: what is captured of the test runs before each iteration, in `turn`. `whole`: the statement as it stands."""

    whole: Statement
    turn: Segment
    test: Test
    body: Segment
    orelse: Segment

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self.before, self.turn, self.body, self.orelse


@dataclass
class Scoped(Parts):
    """The statements of a `with jit_scope(...)`, each a piece of its own in the scope."""

    contexts: list[types.CodeType]
    body: Segment

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self.before, self.body


@dataclass
class Jump(Parts):
    kind: str  # "break" or "continue"


@dataclass
class Wrapped(Parts):
    """`for`, `with` or `try`: Python runs the statement itself, whose blocks call back: `if __jl_body__(0): break`."""

    whole: Statement  # as it stands
    code: types.CodeType
    blocks: list[Segment]
    handlers: frozenset[int]  # the blocks that begin with an error in hand
    rest: Statement | None  # of a `for`: the iterations that are left, as Python runs them; block 0 is its body

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self.before, *self.blocks

    def rest_code(self) -> types.CodeType:
        assert self.rest is not None
        code = self.rest.plain()
        register_wrapper(code)
        return code


@dataclass
class Test:
    """A condition: its code, whose truth is asked in it, so that an error of that is the line's."""

    code: types.CodeType
    header: str  # the name that holds what was captured of it, or ""


class Program:
    """A cell or the body of a function, ready to be run any number of times; the traces of its pieces stay with it."""

    filename: str
    segment: Segment
    trace_count = 0
    asks_for_warnings = False  # in a run of it floating-point warnings were errors, or recorded

    def __init__(self) -> None:
        self.helpers = Helpers()

    # ---- what a cell and a body do each in its own way
    def never_captured(self, node: ast.stmt) -> Refusal | None:
        """Why it is known beforehand that Python has to run a statement."""
        raise NotImplementedError

    def plain_code(self, statement: Statement) -> types.CodeType:
        raise NotImplementedError

    def converted_code(self, statement: Statement) -> types.CodeType:
        raise NotImplementedError

    def value_code(self, node: ast.expr) -> types.CodeType:
        """The code of an expression, as Python runs it."""
        raise NotImplementedError

    def context_code(self, node: ast.expr) -> types.CodeType:
        """The code of an expression, converted."""
        raise NotImplementedError

    def wrapper_code(self, node: ast.stmt) -> types.CodeType:
        """The code of a statement whose blocks call back."""
        raise NotImplementedError

    def new_name(self) -> str:
        """A name for what is captured of a header."""
        raise NotImplementedError

    def segment_of(self, body: Sequence[ast.stmt], *, shown: str = "none") -> Segment:
        raise NotImplementedError

    # ---- in parts
    def parts_of(self, node: ast.stmt, before: Segment, *, shows: bool = False) -> Parts | None:
        """A compound statement in parts, None for one that only Python can run; what is captured of its header comes before."""
        shown = "all" if shows else "none"
        if isinstance(node, ast.If):
            test = self._test(node.test, before)
            return Condition(test, self.segment_of(node.body, shown=shown), self.segment_of(node.orelse, shown=shown))
        if isinstance(node, ast.While):
            turn = Segment()
            test = self._test(node.test, turn)
            body, orelse = self.segment_of(node.body, shown=shown), self.segment_of(node.orelse, shown=shown)
            return Loop(self._headed(node, node.test), turn, test, body, orelse)
        if isinstance(node, ast.For):
            node = copy.copy(node)
            if not _calls_builtin(node.iter):
                node.iter = self._header(node.iter, before)
            return self.wrapped(node, shown)
        if isinstance(node, ast.With) and is_scope(node):
            return Scoped([self.context_code(item.context_expr) for item in node.items], self.segment_of(node.body))
        return self.wrapped(node, shown) if isinstance(node, (ast.With, ast.Try)) else None

    def wrapped(self, node: ast.For | ast.With | ast.Try, shown: str) -> Wrapped:
        blocks: list[Segment] = []
        handlers: set[int] = set()

        def called(body: list[ast.stmt]) -> list[ast.stmt]:
            if not body:
                return []
            call = _call_back(len(blocks))
            blocks.append(self.segment_of(body, shown=shown))
            # a `break` in a `finally` that nobody wrote would be warned of
            jumps = len(blocks) == 1 and isinstance(node, ast.For) or any(map(may_jump, body))
            return [_located(ast.If(call, [ast.Break()], []) if jumps else ast.Expr(call), body[0])]

        statement, rest = copy.copy(node), None
        statement.body = called(node.body)
        if isinstance(statement, ast.Try):
            statement.handlers = [copy.copy(handler) for handler in statement.handlers]
            for handler in statement.handlers:
                handlers.add(len(blocks))
                handler.body = called(handler.body)
            statement.orelse, statement.finalbody = called(statement.orelse), called(statement.finalbody)
        elif isinstance(statement, ast.For):
            statement.orelse = called(statement.orelse)
            left, iterable = copy.copy(statement), statement.iter
            statement.iter = _located(_call_back(ITERATOR, iterable), iterable)
            left.iter, left.body = _located(_call_back(ITERATOR), iterable), node.body
            rest = Statement(self, _once(left))
        code = self.wrapper_code(_once(statement))
        register_wrapper(code)
        whole = self._headed(node, node.iter) if isinstance(node, ast.For) else Statement(self, node)
        return Wrapped(whole, code, blocks, frozenset(handlers), rest)

    def _headed(self, node: ast.stmt, header: ast.expr) -> Statement:
        """A loop of which a user is told by its header: statements of its body have been told of."""
        statement = Statement(self, node)
        statement.end = header
        return statement

    def _test(self, node: ast.expr, before: Segment) -> Test:
        test = self._header(node, before)
        header = test.id if test is not node and isinstance(test, ast.Name) else ""
        for _ in range(2):
            test = ast.copy_location(ast.UnaryOp(ast.Not(), test), node)
        return Test(self.value_code(test), header)

    def _header(self, node: ast.expr, before: Segment) -> ast.expr:
        """A test or an iterable; when there may be something to capture in it, that becomes a statement before it."""
        if not may_work(node):
            return node
        name = self.new_name()
        store = ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), node)], node), node)
        before.statements.append(Statement(self, store, header=name))
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _call_back(number: int, *given: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(BODY, ast.Load()), [ast.Constant(number), *given], [])


def _located(made: Node, at: ast.AST) -> Node:
    """What we put in the place of `at`, whose parts have places of their own or its."""
    for part in ast.walk(made):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return made


def _once(statement: ast.stmt) -> ast.While:
    """`while True: <statement>; break`, so that a block of it may leave it with `break`."""
    return _located(ast.While(ast.Constant(True), [statement, ast.Break()], []), statement)


def _calls_builtin(node: ast.expr) -> bool:
    """`range(...)`, `enumerate(...)`: made for the loop."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id)


def is_scope(node: ast.With) -> bool:
    """`with jl.jit_scope(...):`, by its name."""
    return all(
        isinstance(item.context_expr, ast.Call)
        and item.optional_vars is None
        and (getattr(item.context_expr.func, "attr", None) or getattr(item.context_expr.func, "id", None)) == "jit_scope"
        for item in node.items
    )
