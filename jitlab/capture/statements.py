"""The statements of a cell: each as it stands and converted, and how they lie in loops, conditions and consecutive runs."""

from __future__ import annotations

import ast
import copy
import types
from dataclasses import dataclass

from jitlab.ir import Source

from .convert import HOOK, Converter
from .pieces import Namespace, PieceTrace
from .positions import register

#: The name that holds the value of a displayed expression until it is displayed.
RESULT = "__jl_result__"


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
        target = ast.copy_location(ast.Name(RESULT, ast.Store()), node)
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
                load = ast.copy_location(ast.Name(RESULT, ast.Load()), node.target)
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
