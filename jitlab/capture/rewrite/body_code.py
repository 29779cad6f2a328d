"""The body of a function as statements, each the code of a function: as Python runs it, and converted (bodies.py)."""

from __future__ import annotations

import ast
import copy
import sys
import types
from collections import Counter
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Any

from jitlab.capture.drivers.calls import refused_syntax
from jitlab.capture.drivers.pieces import MISSING
from jitlab.capture.positions import register
from jitlab.capture.refusals import Refusal
from jitlab.messages import Message
from jitlab.support import trees

from .convert import FUTURE_FLAGS, Converter, factory, qualified
from .flow_rewrite import HOOK, argument_names, bound_names, function_node, parameters
from .helper_calls import HELPER, with_helpers
from .liveness import bound_for_certain, each_read, reads
from .piece_statements import BODY, BREAK, CONTINUE, RESULT, Program, Segment, Statement
from .splitting import TEMPORARY

#: The name that holds what was captured of a test or an iterable.
TEST = "__jl_test__"


class Cells(dict[str, types.CellType]):
    """Local names of a call, each a cell, as the names are that inner functions share; those of steps as they are met."""

    def __missing__(self, name: str) -> types.CellType:
        return self.setdefault(name, types.CellType())


class Frame(MutableMapping[str, Any]):
    """The local names of one call that are bound, and what they hold."""

    def __init__(self, names: Iterable[str]) -> None:
        self.cells = Cells({name: types.CellType() for name in names})

    def __getitem__(self, name: str) -> Any:
        try:
            return self.cells[name].cell_contents
        except ValueError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        self.cells[name].cell_contents = value

    def __delitem__(self, name: str) -> None:
        del self.cells[name].cell_contents

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.cells if name in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.cells and self.get(name, MISSING) is not MISSING

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Body(Program):
    """The body of a function as statements; the traces of its pieces stay with it."""

    def __init__(self, function: types.FunctionType, definition: ast.FunctionDef | ast.Lambda, classes: Sequence[str]) -> None:
        super().__init__()
        code = function.__code__
        self.function, self.name, self.filename = function, code.co_name, code.co_filename
        self.inner_name = f"{self.name}__jl" if self.name.isidentifier() else "lambda__jl"
        self.classes = tuple(classes)
        self.flags = code.co_flags & FUTURE_FLAGS
        self.free = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self.arguments = arguments = definition.args
        self.first = next((arg.arg for arg in (*arguments.posonlyargs, *arguments.args)), "")
        nodes = definition.body if isinstance(definition, ast.FunctionDef) else [_returning(definition.body)]
        nodes = [_Prepared(self.first).visit(copy.deepcopy(node)) for node in nodes]
        bound, self.nonlocals, self.globals = bound_names(nodes)
        self.outside = self.globals | self.nonlocals
        self.locals = (argument_names(arguments) | bound | {TEST, RESULT, BODY}) - self.outside
        self.loads = Counter(name for node in nodes for name in each_read(node))
        loops = (loop for node in nodes for loop in ast.walk(node) if isinstance(loop, (ast.For, ast.While)))
        self.repeated = {id(part) for loop in loops for part in ast.walk(loop)}
        self.segment = self.segment_of(nodes)

    def segment_of(self, body: Sequence[ast.stmt], *, shown: str = "none") -> Segment:
        return Segment([Statement(self, node) for node in body if not _does_nothing(node)])

    def never_captured(self, node: ast.stmt) -> Refusal | None:
        refused = refused_syntax(node, self.filename, node.lineno)
        if refused is not None:
            return refused
        if isinstance(node, (ast.FunctionDef, ast.Delete)):
            keyword = "def" if isinstance(node, ast.FunctionDef) else "del"
            return Refusal("statement", Message("refused.keyword", {"keyword": keyword}))
        outside = sorted(_stored(node) & self.outside)
        return Refusal("statement", Message("refused.assigns", {"name": outside[0]})) if outside else None

    def reads(self, node: ast.stmt) -> list[str]:
        """The local names whose values a statement needs: those it reads, and those that it may leave as they were."""
        kept = (_stored(node) & self.wanted(node)) - bound_for_certain([node])
        return sorted(self.own(reads(node) | kept))

    # ---- code: functions of no arguments around the local names. They give None, a jump's name, or (what is returned,).
    def plain_code(self, statement: Statement) -> types.CodeType:
        node = statement.node
        if not statement.asks:
            return self.wrapper_code(node)
        return self.inner_code(self.function_of(with_helpers(node)), reads(node) | _stored(node), (HELPER,))

    def converted_code(self, statement: Statement) -> types.CodeType:
        node = statement.node
        return self._converted(self.function_of(node), reads(node) | _stored(node), self.wanted(node))

    def value_code(self, node: ast.expr) -> types.CodeType:
        return self.wrapper_code(_returning(node))

    def context_code(self, node: ast.expr) -> types.CodeType:
        return self._converted(self.function_of(_returning(node)), reads(node))

    def wrapper_code(self, node: ast.stmt) -> types.CodeType:
        return self.inner_code(self.function_of(node), reads(node) | _stored(node), ())

    def new_name(self) -> str:
        return TEST

    def own(self, names: Iterable[str]) -> frozenset[str]:
        """Those of the names that are local, steps of a statement among them."""
        return frozenset(name for name in names if name in self.locals or name.startswith(TEMPORARY))

    def function_of(self, node: ast.stmt) -> ast.FunctionDef:
        """`def f(): nonlocal ...; <statement>`, with its jumps as what it returns."""
        statement = _Jumps().visit(copy.deepcopy(node))
        stored = _stored(node)
        body: list[ast.stmt] = []
        inner = sorted(self.own(stored) | (stored & self.nonlocals))
        if inner:
            body.append(ast.Nonlocal(inner))
        if stored & self.globals:
            body.append(ast.Global(sorted(stored & self.globals)))
        return ast.copy_location(function_node(self.inner_name, parameters(), [*body, statement]), node)

    def wanted(self, node: ast.stmt) -> frozenset[str]:
        """The names that are read after a statement."""
        own = Counter() if id(node) in self.repeated else Counter(each_read(node))
        return frozenset(name for name, count in self.loads.items() if count > own[name]) | self.outside

    def _converted(
        self, definition: ast.FunctionDef, names: frozenset[str], wanted: frozenset[str] | None = None
    ) -> types.CodeType:
        converter = Converter(self.classes)
        converter.wanted = wanted
        converter.scopes.append(self.locals | self.own(names))
        converter.outward.append(self.outside)
        statement = converter.function(definition)
        code = self.inner_code(statement, names, (HOOK,))
        register(code)
        return code

    def inner_code(self, definition: ast.stmt, names: frozenset[str], more: Sequence[str]) -> types.CodeType:
        """The code of a function inside one that has these of the local names, and the names around the user's function."""
        around = [*more, *sorted(self.own(names) | set(map(self.unmangled, self.free)))]
        outer = factory(definition, around)
        for name in reversed(self.classes):  # private names are the class's
            around_it = ast.ClassDef(name=name, bases=[], keywords=[], body=[outer], decorator_list=[])
            if sys.version_info >= (3, 12):
                around_it.type_params = []
            outer = ast.copy_location(around_it, definition)
        module = ast.fix_missing_locations(ast.Module([outer], []))
        code = trees.code_of(module, self.filename, "exec", flags=self.flags)
        for _ in range(len(self.classes) + 2):
            code = next(c for c in code.co_consts if isinstance(c, types.CodeType))
        code = code.replace(co_name=self.name)  # a name of its own would have hidden a global of that name
        return qualified(code, code.co_qualname, self.function.__qualname__)

    def unmangled(self, name: str) -> str:
        stem = self.classes[-1].lstrip("_") if self.classes else ""
        return name.removeprefix(f"_{stem}") if stem and name.startswith(f"_{stem}__") else name


class _Prepared(ast.NodeTransformer):
    """`super()` with its arguments, and no annotations of local names."""

    def __init__(self, first: str) -> None:
        self.first = first

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.first:
            node.args = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in ("__class__", self.first)]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def _inner(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _inner


class _Jumps(ast.NodeTransformer):
    """Jumps out of a statement as what its function returns."""

    def __init__(self) -> None:
        self.depth = 0

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = node.value if node.value is not None else ast.copy_location(ast.Constant(None), node)
        return ast.copy_location(ast.Return(ast.copy_location(ast.Tuple([value], ast.Load()), node)), node)

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return self._jump(node, BREAK)

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return self._jump(node, CONTINUE)

    def _jump(self, node: ast.stmt, kind: str) -> ast.AST:
        return node if self.depth else ast.copy_location(ast.Return(ast.copy_location(ast.Constant(kind), node)), node)

    def _loop(self, node: Any) -> ast.AST:
        self.depth += 1
        node.body = [self.visit(child) for child in node.body]
        self.depth -= 1
        node.orelse = [self.visit(child) for child in node.orelse]
        return node  # type: ignore[no-any-return]

    visit_For = visit_While = visit_AsyncFor = _loop

    def _inner(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _inner


# ---- syntax


def _returning(value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Return(value), value)


def _does_nothing(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _stored(node: ast.stmt) -> frozenset[str]:
    """Names that a statement binds, deletes or declares in the function it stands in."""
    return frozenset().union(*bound_names([node]))
