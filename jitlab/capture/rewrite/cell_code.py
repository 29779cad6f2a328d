"""The statements of a cell as code: as Python runs them, converted, and how they lie in loops and conditions (cells.py)."""

from __future__ import annotations

import ast
import copy
import math
import types
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jitlab.capture.drivers.piece_traces import Namespace
from jitlab.capture.positions import register
from jitlab.capture.refusals import Refusal
from jitlab.messages import Message
from jitlab.support import trees
from jitlab.support.later import Later

from .convert import Converter
from .flow_rewrite import ADDED, HOOK, LOOP, bound_names, looks_at_frames, may_jump, placed
from .handlers import refused_try
from .helper_calls import with_helpers
from .liveness import read_before_bound
from .piece_statements import BREAK, CONTINUE, RESULT, Jump, Parts, Program, Segment, Statement, is_scope
from .splitting import FRAME_CALLS, new_name

if TYPE_CHECKING:
    from . import effect_statements
else:  # for loops that print or store
    effect_statements = Later(f"{__package__}.effect_statements")

#: What a loop that is gone through once more asks whether a statement of it is done.
DONE = "__jl_done__"
#: Why a statement with an `await` is Python's.
WAITS = Refusal("statement", Message("refused.waits"))
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

    def loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        """A loop as a function: the names that it binds are its variables, taken from the cell and given back to it."""
        names = sorted(bound_names([node])[0], key=_places_of_names(node).__getitem__)
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


class CellProgram(Program):
    """A cell. `place`: which one, and the line in it where it begins, also when its source changes.

    `shown`: which statements display what expressions give, in IPython's words: "last_expr", "last", "all" or "none".
    """

    place: tuple[str, int]
    has_run = False
    title = ""  # of the cell, when it ran last
    room = 0  # on Python's stack, for walks through its statements
    _names_read: frozenset[str] | None = None

    def __init__(
        self, nodes: list[ast.stmt], filename: str, namespace: Namespace, shown: str, compiler: Compiler
    ) -> None:
        super().__init__()
        self.namespace = namespace  # what its traces read names from
        self.filename = filename
        self.compiler = compiler
        self.segment = self.segment_of(nodes, top=True, shown=shown)
        self.waits = any(statement.plain_reason is WAITS for statement in self.segment.statements)

    @property
    def statements(self) -> list[Statement]:
        """Those of the cell, as they were written."""
        return [statement for statement in self.segment.statements if not statement.header]

    @property
    def names_read(self) -> frozenset[str]:
        """The names whose values a run finds, or a function that it defines."""
        if self._names_read is None:
            self._names_read = read_before_bound([statement.node for statement in self.statements])
        return self._names_read

    def module_code(self) -> types.CodeType:
        """The whole cell."""
        return self.compiler(ast.Module([statement.node for statement in self.statements], []), self.filename, "exec")

    def segment_of(self, body: Sequence[ast.stmt], *, top: bool = False, shown: str = "none") -> Segment:
        segment = Segment()
        for node in body:
            shows = shown == "all" or (
                node is body[-1] and (shown == "last" or (shown == "last_expr" and isinstance(node, ast.Expr)))
            )
            statement = Statement(self, node, shows=shows)
            if statement.plain_reason is WAITS or (top and not self._compiles(node)):
                statement.is_made_of(None)
            elif not shows and isinstance(node, (ast.For, ast.While)) and may_roll(node):
                statement.is_loop, statement.plain_reason = True, None
            elif not (isinstance(node, ast.With) and is_scope(node)):
                statement.is_made_of(self.parts_of(node, segment, shows=shows))
            segment.statements.append(statement)
        return segment

    def parts_of(self, node: ast.stmt, before: Segment, *, shows: bool = False) -> Parts | None:
        if isinstance(node, ast.Break):
            return Jump(BREAK)
        if isinstance(node, ast.Continue):
            return Jump(CONTINUE)
        if isinstance(node, (ast.For, ast.While)) and _jumps_out(node.body):
            return None
        return super().parts_of(node, before, shows=shows)

    def _compiles(self, node: ast.stmt) -> bool:
        """Python refuses `break` outside a loop and the like when it compiles, and then so do we."""
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Break, ast.Continue)):
            try:
                trees.code_of(ast.Module([node], []), self.filename, "exec")
            except SyntaxError:
                return False
        return True

    def never_captured(self, node: ast.stmt) -> Refusal | None:
        if waits(node):
            return WAITS
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
            for part in ast.walk(node):
                if isinstance(part, (ast.Yield, ast.YieldFrom)):
                    return Refusal("statement", Message("refused.yields"))
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in FRAME_CALLS:
                    return Refusal("effect", Message("refused.looks_around", {"name": part.func.id}))
                if isinstance(part, _SCOPES) and any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(part)):
                    return Refusal("statement", Message("refused.walrus"))
            return None
        if isinstance(node, ast.With) and is_scope(node):
            return None
        if isinstance(node, ast.Try) and not refused_try(node) and not may_jump(node):
            parts = [*node.body, *node.orelse, *node.finalbody]
            return next(filter(None, map(self._never_inside, parts)), None)
        keyword = _KEYWORDS.get(type(node), type(node).__name__.lower())
        return Refusal("statement", Message("refused.keyword", {"keyword": keyword}))

    def _never_inside(self, node: ast.stmt) -> Refusal | None:
        """Of a statement of a `try`, or of an `if` in it."""
        if isinstance(node, ast.If):
            test = ast.copy_location(ast.Expr(node.test), node)
            return next(filter(None, map(self._never_inside, [test, *node.body, *node.orelse])), None)
        return None if isinstance(node, (ast.Pass, ast.Raise)) else self.never_captured(node)

    # ---- code
    def plain_code(self, statement: Statement) -> types.CodeType:
        if statement.shows and not statement.is_display:  # expressions inside are displayed by Python
            return self.compiler(ast.Interactive([statement.node]), self.filename, "single")
        node = _displayed(statement)
        return self.compiler(ast.Module([with_helpers(node) if statement.asks else node], []), self.filename, "exec")

    def replay_code(self, statement: Statement) -> types.CodeType:
        """A loop in which a function says, of the place of each statement that may give something out, whether it is done."""
        return self.compiler(ast.Module([_Asking().visit(trees.copied(statement.node))], []), self.filename, "exec")

    def converted_code(self, statement: Statement) -> types.CodeType:
        node = copy.deepcopy(_displayed(statement))
        converter = CellConverter()
        body = converter.loop(node) if isinstance(node, (ast.For, ast.While)) else converter.block([node])
        return self._registered(ast.Module(body, []), "exec")

    def value_code(self, node: ast.expr) -> types.CodeType:
        return self.compiler(ast.Expression(node), self.filename, "eval")

    def context_code(self, node: ast.expr) -> types.CodeType:
        return self._registered(ast.Expression(CellConverter().visit(copy.deepcopy(node))), "eval")

    def wrapper_code(self, node: ast.stmt) -> types.CodeType:
        return self.compiler(ast.Module([node], []), self.filename, "exec")

    def new_name(self) -> str:
        return new_name()

    def raising(self, at: ast.stmt) -> types.CodeType:
        """`raise error` at a statement's own line, so that the traceback shows it."""
        node = ast.Raise(ast.Name("error", ast.Load()))
        for part in ast.walk(node):
            ast.copy_location(part, at)
        return trees.code_of(ast.Module([node], []), self.filename, "exec")

    def _registered(self, tree: ast.Module | ast.Expression, mode: str) -> types.CodeType:
        code = trees.code_of(ast.fix_missing_locations(tree), self.filename, mode)
        register(code)
        return code


class _Asking(ast.NodeTransformer):
    """`if not __jl_done__(line, column): print(x)` for `print(x)`."""

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.stmt) or effect_statements.giving(node) is None:
            return self.generic_visit(node)
        place: list[ast.expr] = [ast.Constant(node.lineno), ast.Constant(node.col_offset)]
        test = ast.UnaryOp(ast.Not(), ast.Call(ast.Name(DONE, ast.Load()), place, []))
        return placed(ast.If(test, [node], []), node)


def _places_of_names(node: ast.AST) -> defaultdict[str, tuple[float, float]]:
    """Where each name is bound first."""
    found: defaultdict[str, tuple[float, float]] = defaultdict(lambda: (math.inf, math.inf))
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            found[part.id] = min(found[part.id], (part.lineno, part.col_offset))
    return found


def _displayed(statement: Statement) -> ast.stmt:
    """The statement; of a displayed expression, the one that keeps what it gives."""
    node = statement.node
    if not statement.is_display:
        return node
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
