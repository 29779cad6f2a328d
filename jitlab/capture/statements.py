"""The statements of a cell: each as it stands and converted, and how they lie in loops, conditions and consecutive runs."""

from __future__ import annotations

import ast
import builtins
import copy
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jitlab import trees
from jitlab.ir import Source

from .convert import Converter
from .flow import ADDED, HOOK, LOOP, bound_names, looks_at_frames, may_jump
from .piece_traces import Namespace, PieceTrace
from .positions import register, register_wrapper
from .splitting import FRAME_CALLS, Group, Step, may_work, new_name, split

#: The name that holds the value of a displayed expression until it is displayed.
RESULT = "__jl_result__"
#: The name by which a `with` or `try` calls its blocks back.
BODY = "__jl_body__"

#: compile(tree, filename, mode): IPython's knows the future statements of earlier cells, and allows `await`.
Compiler = Callable[[Any, str, str], types.CodeType]


def python_compiler(tree: Any, filename: str, mode: str) -> types.CodeType:
    """Compile as a script is compiled."""
    return trees.code_of(tree, filename, mode)


class CellConverter(Converter):
    """Converts a statement of a cell: every name that is not local to a function inside it is looked up by the capture."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or node.id.startswith(ADDED) or self._is_local(node.id):
            return node
        return self.hook("lookup", node, ast.Constant(node.id))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if isinstance(node.target, ast.Name) and not self._is_local(node.target.id):
            load = self.visit(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            value = self.hook("augmented", node, ast.Constant(type(node.op).__name__), load, self.visit(node.value))
            return ast.copy_location(ast.Assign([node.target], value), node)
        return super().visit_AugAssign(node)


    def loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        """A loop as a function: the names that it binds are its variables, taken from the cell and given back to it."""
        names = sorted(bound_names([node])[0])
        head = node.iter if isinstance(node, ast.For) else node.test
        first = "".join(f"    if {name} is {HOOK}.MISSING: del {name}\n" for name in names)
        getters = "".join(f"lambda: {name}, " for name in names)
        text = f"def {LOOP}({', '.join(names)}):\n    pass\n{first}    return ({getters})\n"
        function, call = trees.parse(f"{text}{HOOK}.loop({LOOP}, {tuple(names)!r})").body
        for part in (*ast.walk(function), *ast.walk(call)):
            if "lineno" in part._attributes:
                ast.copy_location(part, head)
        assert isinstance(function, ast.FunctionDef)
        _, *unbound, result = function.body
        function.body = [node]
        bound = frozenset(names)
        self.wanted = bound
        self.scopes.append(bound)
        self.outward.append(frozenset())
        self.flowing(function, bound, frozenset(), frozenset())
        self.outward.pop()
        self.scopes.pop()
        function.body = [*unbound, *function.body, result]
        return [function, call]


# ---- programs


class Statement:
    """One statement: as it stands, and converted. `shows`: what expressions give is displayed."""

    def __init__(
        self, node: ast.stmt, filename: str, shows: bool = False, compiler: Compiler = python_compiler,
        group: Group | None = None,
    ) -> None:  # fmt: skip
        self.node = node
        self.filename = filename
        self.compiler = compiler
        self.shows = shows
        self.is_display = shows and isinstance(node, ast.Expr)
        self.group = group
        self.step: Step | None = None
        self.otherwise: Block | None = None  # of a loop: as it runs when it is not captured whole
        self.is_loop = False
        self.is_whole = False  # it has been tried to take it apart, or it can't be
        self.header = ""  # the name of a test or an iterable that this computes
        self.waits = waits(node)
        self.plain_reason: tuple[str, str] | None = self._never_captured()
        self.failures = 0
        self.body: Block | None = None
        self._rest: Statement | None = None
        self._plain: types.CodeType | None = None
        self._converted: types.CodeType | None = None

    def _never_captured(self) -> tuple[str, str] | None:
        node = self.node
        if self.waits:
            return "statement", "it waits"
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
            for part in ast.walk(node):
                if isinstance(part, (ast.Yield, ast.YieldFrom)):
                    return "statement", "it yields"
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in FRAME_CALLS:
                    return "effect", f"{part.func.id} looks at the names around it"
                if isinstance(part, _SCOPES) and any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(part)):
                    return "statement", "it binds a name with := inside a comprehension"
            return None
        if isinstance(node, ast.With) and is_scope(node):
            return None
        return "statement", f"a `{_KEYWORDS.get(type(node), type(node).__name__.lower())}` statement is not captured"

    # ---- in steps
    def split(self) -> list[Statement] | None:
        """The statement in steps, so that NumPy work in it is captured though the statement is not; None: there is nothing."""
        if self.group is None:
            if not isinstance(self.node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Assert, ast.AnnAssign)) or self.waits:
                return None
            group = split(self.node)
            if group is None:
                return None
            group.is_display = self.is_display
            final = Statement(group.final, self.filename, self.shows, self.compiler, group)
            return [*(self._of_step(step, group) for step in group.steps), final]
        if self.step is None:
            return None
        steps = self.group.split_step(self.group.steps.index(self.step))
        return None if steps is None else [self._of_step(step, self.group) for step in steps]

    def _of_step(self, step: Step, group: Group) -> Statement:
        statement = Statement(step.node, self.filename, False, self.compiler, group)
        statement.step = step
        return statement

    def rest(self) -> Statement:
        """The whole statement from this step on, to be run by Python."""
        assert self.group is not None and self.step is not None
        if self._rest is None:
            rest = self.group.rest(self.group.steps.index(self.step))
            self._rest = Statement(rest, self.filename, self.group.is_display, self.compiler, self.group)
        return self._rest

    @property
    def source(self) -> Source:
        node = self.node
        return Source(self.filename, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or -1)

    @property
    def text(self) -> str:
        return ast.unparse(self.node if self.group is None else self.group.original).split("\n")[0]

    def plain(self) -> types.CodeType:
        if self._plain is None:
            if self.shows and not self.is_display:  # expressions inside are displayed by Python
                self._plain = self.compiler(ast.Interactive([self.node]), self.filename, "single")
            else:
                node = self._displayed(self.node) if self.is_display else self.node
                self._plain = self.compiler(ast.Module([node], []), self.filename, "exec")
        return self._plain

    def refuse(self, error: Exception) -> None:
        """Raise an error at the statement's own line, so that the traceback shows it."""
        node = ast.Raise(ast.Name("error", ast.Load()))
        for part in ast.walk(node):
            ast.copy_location(part, self.node)
        exec(trees.code_of(ast.Module([node], []), self.filename, "exec"), {"error": error})

    def converted(self) -> types.CodeType:
        if self._converted is None:
            node = copy.deepcopy(self._displayed(self.node) if self.is_display else self.node)
            converter = CellConverter()
            body = converter.loop(node) if isinstance(node, (ast.For, ast.While)) else converter.block([node])
            module = ast.fix_missing_locations(ast.Module(body, []))
            self._converted = trees.code_of(module, self.filename, "exec")
            register(self._converted)
        return self._converted

    def contexts(self) -> list[types.CodeType]:
        """The scopes of a `with jit_scope(...)`, converted."""
        assert isinstance(self.node, ast.With)
        codes = []
        for item in self.node.items:
            value = CellConverter().visit(copy.deepcopy(item.context_expr))
            codes.append(trees.code_of(ast.fix_missing_locations(ast.Expression(value)), self.filename, "eval"))
            register(codes[-1])
        return codes

    def _displayed(self, node: ast.stmt) -> ast.stmt:
        assert isinstance(node, ast.Expr)
        target = ast.copy_location(ast.Name(RESULT, ast.Store()), node)
        return ast.copy_location(ast.Assign([target], node.value), node)


_KEYWORDS = {
    ast.FunctionDef: "def", ast.ClassDef: "class", ast.Delete: "del", ast.ImportFrom: "import", ast.AnnAssign: "name: type",
}  # fmt: skip


_SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
def waits(node: ast.AST) -> bool:
    """`await`, `async for` or `async with` outside the functions in it."""
    level = [node]
    while level:
        level = [node for node in level if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
        for node in level:
            if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or getattr(node, "is_async", False):
                return True
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return False


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

    def replace(self, at: int, steps: list[Statement]) -> None:
        """Steps take the place of a statement; traces that lay across it are gone."""
        more = len(steps) - 1
        across = {n for n, traces in self.traces.items() if n <= at and any(n + trace.length > at for trace in traces)}
        traces = {n if n <= at else n + more: traces for n, traces in self.traces.items() if n not in across}
        retired = {n if n <= at else n + more for n in self.retired}
        self.statements[at : at + 1] = steps  # no interrupt comes between these three
        self.traces = traces
        self.retired = retired


@dataclass
class Loop:
    """`while`: what is captured of the test runs before each turn, in `before`."""

    node: ast.While
    test: types.CodeType
    body: Block
    orelse: Block
    before: Segment | None = None


@dataclass
class Condition:
    """`if`: the test as Python, the branches as blocks; what is captured of the test stands before it."""

    node: ast.If
    test: types.CodeType
    body: Block
    orelse: Block


@dataclass
class Jump:
    kind: str  # "break" or "continue"


@dataclass
class Wrapped:
    """`for`, `with` or `try`: Python runs the statement itself, whose blocks call back: `if __jl_body__(0): break`."""

    node: ast.For | ast.With | ast.Try
    code: types.CodeType
    blocks: list[Block]
    handlers: frozenset[int]  # the blocks that begin with an error in hand

    @property
    def is_loop(self) -> bool:
        """Is block 0 the body of a loop, which a `break` in it leaves?"""
        return isinstance(self.node, ast.For)


Block = list["Segment | Loop | Condition | Jump | Wrapped"]


class CellProgram:
    """A cell, ready to be run any number of times; its traces stay with it.

    `shown`: which statements display what expressions give, in IPython's words: "last_expr", "last", "all" or "none".
    """

    def __init__(
        self, source: str | list[ast.stmt], filename: str, namespace: Namespace, first_line: int = 1, *,
        shown: str = "last_expr", compiler: Compiler = python_compiler,
    ) -> None:  # fmt: skip
        self.namespace = namespace  # what its traces read names from
        self.filename = filename
        self.compiler = compiler
        self.trace_count = 0
        if isinstance(source, str):
            tree = trees.parse(source, filename)
            ast.increment_lineno(tree, first_line - 1)
            source = tree.body
        self.block = self.block_of(source, top=True, shown=shown)

    def block_of(self, body: list[ast.stmt], *, top: bool = False, shown: str = "none") -> Block:
        block: Block = []
        for node in body:
            shows = shown == "all" or (
                node is body[-1] and (shown == "last" or (shown == "last_expr" and isinstance(node, ast.Expr)))
            )
            compiles = not waits(node) and not (top and not self._compiles(node))
            if compiles and not shows and isinstance(node, (ast.For, ast.While)) and may_roll(node):
                _last_segment(block).statements.append(self._loop(node))
                continue
            step = self._control(node, block, shows) if compiles else None
            if step is None:
                _last_segment(block).statements.append(Statement(node, self.filename, shows, self.compiler))
            else:
                block.append(step)
        return block

    def _loop(self, node: ast.For | ast.While) -> Statement:
        """A loop that may be captured whole; otherwise it is Python's, around captured blocks."""
        statement = Statement(node, self.filename, False, self.compiler)
        statement.is_loop, statement.plain_reason, statement.is_whole = True, None, True
        return statement

    def host_loop(self, statement: Statement) -> Block:
        """A loop that is not captured whole."""
        if statement.otherwise is None:
            node = copy.deepcopy(statement.node)
            block: Block = []
            statement.otherwise = block
            step = self._control(node, block, False)
            if step is not None:
                block.append(step)
            else:
                _last_segment(block).statements.append(Statement(node, self.filename, False, self.compiler))
        return statement.otherwise

    def _compiles(self, node: ast.stmt) -> bool:
        """Python refuses `break` outside a loop and the like when it compiles, and then so do we."""
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Break, ast.Continue)):
            try:
                trees.code_of(ast.Module([node], []), self.filename, "exec")
            except SyntaxError:
                return False
        return True

    def _control(self, node: ast.stmt, before: Block, shows: bool) -> Loop | Condition | Jump | Wrapped | None:
        """A step of the host loop, None for a simple statement (and for loops that only Python itself can run)."""
        shown = "all" if shows else "none"
        if isinstance(node, ast.Break):
            return Jump("break")
        if isinstance(node, ast.Continue):
            return Jump("continue")
        if isinstance(node, ast.If):
            test = self._test(node.test, before)
            return Condition(node, test, self.block_of(node.body, shown=shown), self.block_of(node.orelse, shown=shown))
        if isinstance(node, ast.While) and not _jumps_out(node.body):
            captured: Block = []
            test = self._test(node.test, captured)
            loop = Loop(node, test, self.block_of(node.body, shown=shown), self.block_of(node.orelse, shown=shown))
            if captured:
                assert isinstance(captured[0], Segment)
                loop.before = captured[0]
            return loop
        if isinstance(node, ast.For) and not _jumps_out(node.body):
            node = copy.copy(node)
            if not _calls_builtin(node.iter):
                node.iter = self._header(node.iter, before)
            return self._wrapped(node, shown)
        if (isinstance(node, ast.With) and not is_scope(node)) or isinstance(node, ast.Try):
            return self._wrapped(node, shown)
        return None

    def _wrapped(self, node: ast.For | ast.With | ast.Try, shown: str) -> Wrapped:
        blocks: list[Block] = []
        handlers: set[int] = set()

        def called(body: list[ast.stmt]) -> list[ast.stmt]:
            if not body:
                return []
            call = ast.Call(ast.Name(BODY, ast.Load()), [ast.Constant(len(blocks))], [])
            blocks.append(self.block_of(body, shown=shown))
            test = ast.If(call, [ast.Break()], [])
            for part in ast.walk(test):
                ast.copy_location(part, body[0])
            return [test]

        statement = copy.copy(node)
        statement.body = called(node.body)
        if isinstance(statement, ast.Try):
            statement.handlers = [copy.copy(handler) for handler in statement.handlers]
            for handler in statement.handlers:
                handlers.add(len(blocks))
                handler.body = called(handler.body)
            statement.orelse, statement.finalbody = called(statement.orelse), called(statement.finalbody)
        elif isinstance(statement, ast.For):
            statement.orelse = called(statement.orelse)
        loop = ast.copy_location(ast.While(ast.Constant(True), [statement, ast.Break()], []), node)
        ast.copy_location(loop.test, node)
        ast.copy_location(loop.body[1], node)
        code = self.compiler(ast.Module([loop], []), self.filename, "exec")
        register_wrapper(code)
        return Wrapped(node, code, blocks, frozenset(handlers))

    def _test(self, node: ast.expr, before: Block) -> types.CodeType:
        """The code of a condition; its truth is asked in it, so that an error of that is the line's."""
        test = self._header(node, before)
        for _ in range(2):
            test = ast.copy_location(ast.UnaryOp(ast.Not(), test), node)
        return self.compiler(ast.Expression(test), self.filename, "eval")

    def _header(self, node: ast.expr, before: Block) -> ast.expr:
        """A test or an iterable; when there may be something to capture in it, that becomes a statement before it."""
        if not may_work(node):
            return node
        name = new_name()
        store = ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), node)], node), node)
        statement = Statement(store, self.filename, False, self.compiler)
        statement.header = name
        _last_segment(before).statements.append(statement)
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _calls_builtin(node: ast.expr) -> bool:
    """`range(...)`, `enumerate(...)`: made for the loop."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id)


def _last_segment(block: Block) -> Segment:
    if not block or not isinstance(block[-1], Segment):
        block.append(Segment([]))
    assert isinstance(block[-1], Segment)
    return block[-1]


def may_roll(node: ast.For | ast.While) -> bool:
    """May a loop of a cell become one node? Nothing in it is known beforehand to be Python's."""
    never = (
        ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal,
        ast.Delete, ast.Try, ast.With, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Match, ast.Raise,
    )  # fmt: skip
    return not may_jump(node) and not looks_at_frames([node]) and not any(isinstance(part, never) for part in ast.walk(node))


def _jumps_out(body: list[ast.stmt]) -> bool:
    """A break or continue of this loop inside a `match` and the like, which are run whole by Python."""

    def inside(node: ast.AST, compound: bool) -> bool:
        if isinstance(node, (ast.Break, ast.Continue)):
            return compound
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            return any(inside(child, compound) for child in node.orelse)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return False
        compound = compound or isinstance(node, (ast.Match, getattr(ast, "TryStar", ast.Match)))
        compound = compound or (isinstance(node, ast.With) and is_scope(node))
        return any(inside(child, compound) for child in ast.iter_child_nodes(node) if isinstance(child, ast.AST))

    return any(inside(statement, False) for statement in body)
