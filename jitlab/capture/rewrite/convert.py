"""A copy of a user's function whose loads, calls and stores go through `__jl__`; line and column stay the user's.

before: y = np.tanh(x @ W) + b[0]
after:  y = __jl__.call(__jl__.name(np, "np").tanh, x @ __jl__.name(W, "W")) + __jl__.item(b, 0)
"""

from __future__ import annotations
import __future__

import ast
import builtins
import inspect
import linecache
import re
import textwrap
import types
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from jitlab.capture.positions import register, register_added
from jitlab.ir.texts import keep_text
from jitlab.support import locks, trees
from jitlab.support.later import Later
from jitlab.support.lazy import Kept, OfEach

from .flow_rewrite import (
    ADDED,
    GIVEN,
    HOOK,
    FlowConverter,
    argument_names,
    bound_names,
    frame_call,
    function_node,
    is_added,
    looks_at_frames,
    parameters,
    placed,
    walrus_names,
)
from .recursion_limit import room_for
from .splitting import FRAME_CALLS
from .staleness import is_compiled_from, may_have_changed, texts_of

if TYPE_CHECKING:
    from . import effect_statements
else:  # many functions only compute
    effect_statements = Later(f"{__package__}.effect_statements")

_BUILTIN_NAMES = frozenset(dir(builtins))

#: Of the code of each function its converted copy.
_codes: OfEach[types.CodeType | None] = OfEach()
_trees: Kept[tuple[str, int, int], ast.Module | None] = Kept(64)
_lock = locks.shared("conversions")


def converted(function: types.FunctionType, hooks: Any) -> types.FunctionType | None:
    """The converted copy of a function, with its own globals, closure and defaults; None when it has no source to convert."""
    code = function.__code__
    with locks.Released(_lock), _lock:
        new = _codes.of(code, _convert_code, function)
    if new is None:
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[HOOK] = types.CellType(hooks)
    closure = tuple(cells[name] for name in new.co_freevars)
    twin = types.FunctionType(new, function.__globals__, function.__name__, function.__defaults__, closure)
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__qualname__ = function.__qualname__
    return twin


def _convert_code(function: types.FunctionType) -> types.CodeType | None:
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    found = find_definition(function)
    if found is None:
        return None
    _keep_text(function, found[0])
    with room_for(found[0]):
        return _convert(function, *found)


def _convert(
    function: types.FunctionType, definition: ast.FunctionDef | ast.Lambda, classes: tuple[str, ...]
) -> types.CodeType | None:
    code = function.__code__
    body = Converter(classes).function(trees.copied(definition))
    name = code.co_name
    if isinstance(body, ast.FunctionDef):  # under its own name it would hide a global that it calls: itself
        name = body.name = f"{code.co_name}__jl"
    module = ast.Module(body=[factory(body, (HOOK, *code.co_freevars))], type_ignores=[])
    flags = code.co_flags & FUTURE_FLAGS
    trees.place(module)
    compiled = trees.code_of(module, code.co_filename, "exec", flags=flags)
    new = _inner_code(compiled, name, code.co_firstlineno)
    if new is None or not set(new.co_freevars) <= {HOOK, *code.co_freevars}:
        return None
    new = qualified(new.replace(co_name=code.co_name), new.co_qualname, code.co_qualname)
    register(new)
    return new


def _keep_text(function: types.FunctionType, definition: ast.FunctionDef | ast.Lambda) -> None:
    """Reports show what was compiled, also when the file has been edited since."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if lines:
        first = definition.lineno
        if isinstance(definition, ast.FunctionDef):
            first = min([first, *(decorator.lineno for decorator in definition.decorator_list)])
        keep_text(code.co_filename, lines, first, definition.end_lineno or first)


def qualified(code: types.CodeType, before: str, name: str, around: types.CodeType | None = None) -> types.CodeType:
    """The code, and that of the functions in it, under the name that the user's has, not the factory's.

    Functions that conversion added run the user's own lines: they bear the name of the function around them.
    """
    added = around is not None and is_added(code)
    full = around.co_qualname if added and around is not None else re.sub(_ADDED_PARTS, "", code.co_qualname)
    if not added:
        full = name + full.removeprefix(before) if full.startswith(before) else full
    named = code.replace(co_qualname=full, co_name=around.co_name if added and around is not None else code.co_name)
    constants = tuple(qualified(c, before, name, named) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    named = named.replace(co_consts=constants)
    if added:
        register_added(named)
    return named


_ADDED_PARTS = rf"\.{ADDED}\w+\.<locals>"


FUTURE_FLAGS = __future__.annotations.compiler_flag


def factory(body: ast.stmt, names: Sequence[str]) -> ast.stmt:
    """`def factory(names...): <body>`: so that these are free names of the body."""
    made = function_node("__jl_factory__", parameters(*names), [body])
    for part in (made, *made.args.args):
        ast.copy_location(part, body)
    return made


def _inner_code(module: types.CodeType, name: str, line: int) -> types.CodeType | None:
    """The function's code object inside the factory's."""
    factory = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    for constant in factory.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name == name:
            return constant
    return None


_adopted: OfEach[ast.FunctionDef] = OfEach()


def adopt(function: types.FunctionType, definition: ast.FunctionDef) -> None:
    """From now on this is the definition of a function whose source cannot be read."""
    _adopted.put(function.__code__, definition)
    _codes.forget(function.__code__)


def find_definition(function: types.FunctionType) -> tuple[ast.FunctionDef | ast.Lambda, tuple[str, ...]] | None:
    """The function's definition in its file (positions are the file's), and the classes around it."""
    code = function.__code__
    adopted = _adopted.get(code)
    if adopted is not None:
        return adopted, ()
    for lines in texts_of(code, function.__globals__):
        tree = _parse(code.co_filename, lines) if lines else None
        if tree is None:
            return _find_by_inspect(function)
        candidates = [found for found in _defined.of(tree, _all_definitions, tree) if _may_be(found[0], code)]
        if len(candidates) > 1:  # several lambdas on a line
            column = _first_column(code)
            candidates = [found for found in candidates if _body_column(found[0]) == column]
        if len(candidates) == 1 and (not may_have_changed(code) or is_compiled_from(lines, candidates[0][0], code)):
            return candidates[0]
    return None


def _find_by_inspect(function: types.FunctionType) -> tuple[ast.FunctionDef | ast.Lambda, tuple[str, ...]] | None:
    """Source that `inspect` knows of though its file does not parse as a whole; columns move by the indentation."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = trees.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    ast.increment_lineno(tree, max(first, 1) - 1)
    candidates = [found for found in _definitions(tree, ()) if _may_be(found[0], function.__code__)]
    return candidates[0] if len(candidates) == 1 else None


def _parse(filename: str, lines: list[str]) -> ast.Module | None:
    text = "".join(lines)
    return _trees.of((filename, len(text), hash(text)), _tree_of, text)


def _tree_of(text: str) -> ast.Module | None:
    try:
        return trees.parse(text)
    except SyntaxError:
        return None


_defined: OfEach[list[tuple[ast.FunctionDef | ast.Lambda, tuple[str, ...]]]] = OfEach()


def _all_definitions(tree: ast.Module) -> list[tuple[ast.FunctionDef | ast.Lambda, tuple[str, ...]]]:
    return list(_definitions(tree, ()))


def _definitions(node: ast.AST, classes: tuple[str, ...]) -> Iterable[tuple[ast.FunctionDef | ast.Lambda, tuple[str, ...]]]:
    todo = [(child, classes) for child in reversed(trees.children(node))]
    while todo:
        child, around = todo.pop()
        if isinstance(child, (ast.FunctionDef, ast.Lambda)):
            yield child, around
        inside = (*around, child.name) if isinstance(child, ast.ClassDef) else around
        if parts := trees.children(child):
            todo += [(part, inside) for part in reversed(parts)]


def _may_be(node: ast.FunctionDef | ast.Lambda, code: types.CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        if code.co_name != "<lambda>" or node.lineno != code.co_firstlineno:
            return False
    else:
        first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        if node.name != code.co_name or first != code.co_firstlineno:
            return False
    a = node.args
    names = [arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    names += [arg.arg for arg in (a.vararg, a.kwarg) if arg is not None]
    given = code.co_varnames[: len(names)]
    return all(mine == theirs or theirs.endswith(mine) for mine, theirs in zip(names, given, strict=False)) and (
        len(names)
        == code.co_argcount
        + code.co_kwonlyargcount
        + bool(code.co_flags & inspect.CO_VARARGS)
        + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    )


def _first_column(code: types.CodeType) -> tuple[int, int, int, int] | None:
    """Where the code's returned expression stands."""
    spans: list[Any] = [p for p in code.co_positions() if None not in p and p[2] != p[3]]
    if not spans:
        return None
    line, _, column, _ = min(spans, key=lambda p: (p[0], p[2]))
    end_line, end_column = max((p[1], p[3]) for p in spans)
    return line, column, end_line, end_column


def _body_column(node: ast.FunctionDef | ast.Lambda) -> tuple[int, int, int, int] | None:
    if isinstance(node, ast.FunctionDef):
        return None
    body = node.body
    return body.lineno, body.col_offset, body.end_lineno or body.lineno, body.end_col_offset or 0


def _formats(node: ast.expr) -> bool:
    """`"...".format(...)`, of a text that stands there."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "format":
        return False
    return isinstance(node.func.value, ast.Constant) and isinstance(node.func.value.value, str)


def _is_print(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "print"


class Converter(FlowConverter):
    """Rewrites one function (or the statements of a cell). `scopes` are the names that are local, innermost last."""

    def __init__(self, classes: Sequence[str] = ()) -> None:
        self.classes = list(classes)
        self.scopes: list[frozenset[str]] = []
        self.outward: list[frozenset[str]] = []  # names declared global or nonlocal
        self.own_lists: dict[str, effect_statements.OwnList] = {}  # by their names, lists of the function's own
        self.flows = []

    # ---- definitions
    def function(self, node: ast.FunctionDef | ast.Lambda) -> ast.stmt:
        """The definition without decorators, defaults and annotations, its body rewritten."""
        if isinstance(node, ast.Lambda):
            bare = ast.copy_location(ast.Lambda(args=self._bare_arguments(node.args), body=node.body), node)
            return ast.copy_location(ast.Expr(self._lambda(bare)), node)
        definition = function_node(self.mangled(node.name), self._bare_arguments(node.args), node.body)
        return self._definition(ast.copy_location(definition, node))

    def _bare_arguments(self, args: ast.arguments) -> ast.arguments:
        def bare(arg: ast.arg | None) -> ast.arg | None:
            return None if arg is None else ast.copy_location(ast.arg(arg=self.mangled(arg.arg)), arg)

        return ast.arguments(
            posonlyargs=[bare(a) for a in args.posonlyargs],  # type: ignore[misc]
            args=[bare(a) for a in args.args],  # type: ignore[misc]
            vararg=bare(args.vararg), kwonlyargs=[bare(a) for a in args.kwonlyargs],  # type: ignore[misc]
            kw_defaults=[None for _ in args.kwonlyargs], kwarg=bare(args.kwarg), defaults=[],
        )  # fmt: skip

    def _definition(self, node: ast.FunctionDef) -> ast.FunctionDef:
        inner, free, outer = bound_names(node.body)
        bound = inner | argument_names(node.args)
        made = {} if self.scopes else _lists_of(node)
        if made:
            self.own_lists = effect_statements.own_lists(node, made)
        self.scopes.append(bound)
        self.outward.append(free | outer)
        if looks_at_frames(node.body):
            self.flows.append(None)
            node.body = self.block(node.body)
            self.flows.pop()
        else:
            self.flowing(node, bound, free, outer)
        self.outward.pop()
        self.scopes.pop()
        return node

    def _lambda(self, node: ast.Lambda) -> ast.Lambda:
        self.scopes.append(argument_names(node.args) | walrus_names(node.body))
        self.outward.append(frozenset())
        node.body = self.visit(node.body)
        self.outward.pop()
        self.scopes.pop()
        return node

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            result.extend(new if isinstance(new, list) else [new])
        return result

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.mangled(node.name)
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self._outer_arguments(node.args)
        return node if _yields(node) else self._definition(node)

    def _outer_arguments(self, args: ast.arguments) -> ast.arguments:
        args.defaults = [self.visit(d) for d in args.defaults]
        args.kw_defaults = [None if d is None else self.visit(d) for d in args.kw_defaults]
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
            if arg is not None:
                arg.arg = self.mangled(arg.arg)
        return args

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.args = self._outer_arguments(node.args)
        return self._lambda(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.bases = [self.visit(b) for b in node.bases]
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        self.classes.append(node.name)
        self.scopes.append(frozenset())
        self.outward.append(frozenset())
        self.flows.append(None)
        node.body = self.block(node.body)
        self.flows.pop()
        self.outward.pop()
        self.scopes.pop()
        self.classes.pop()
        return node

    # ---- loads
    def visit_Name(self, node: ast.Name) -> ast.AST:
        own, node.id = self.own_lists.get(node.id), self.mangled(node.id)
        is_looked_into = own is not None and own.is_read and not hasattr(node, effect_statements.AS_IT_IS)
        if is_looked_into and isinstance(node.ctx, ast.Load):
            return self.hook("listed", node, node)
        if not isinstance(node.ctx, ast.Load) or node.id.startswith(ADDED) or self._is_local(node.id):
            return node  # the conversion's own, a loop's item among them: that is new in each turn
        return self.hook("name", node, node, ast.Constant(node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        value, name = self.visit(node.value), self.mangled(node.attr)
        if isinstance(node.ctx, ast.Load):
            return self.hook("attribute", node, value, ast.Constant(name))
        return ast.copy_location(ast.Attribute(self.hook("place", node, value), name, node.ctx), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        value, index = self.visit(node.value), self.visit(node.slice)
        if isinstance(node.ctx, ast.Load):
            return self.hook("item", node, value, index)
        return ast.copy_location(ast.Subscript(self.hook("place", node, value), index, node.ctx), node)

    # ---- calls
    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = frame_call(node, FRAME_CALLS)
        if name and not self._is_local(name):
            node.args = [self.visit(a) for a in node.args]
            if name == "super" and not node.args and self.flow is not None and self.flow.depth and self.flow.first:
                names = ("__class__", self.flow.first)  # what Python finds by itself where the function is the user's own
                node.args = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in names]
            return node
        if (generated := self._generated(node)) is not None:
            return generated
        if isinstance(node.func, ast.Attribute):  # a method, or a function of a module: found here, called by the hook
            attribute = ast.Constant(self.mangled(node.func.attr))
            function: ast.expr = self.hook("function", node.func, self.visit(node.func.value), attribute)
        else:
            function = self.visit(node.func)
        args = [self._printed(a) if _is_print(node) else self.visit(a) for a in node.args]
        keywords = [self.visit(k) for k in node.keywords]
        return self.hook("call", node, function, *args, keywords=keywords)

    def _printed(self, node: ast.expr) -> Any:
        """An argument of `print`: of its texts each value knows who gets it."""
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    part.value = self._shown(self.visit(part.value))
                    part.format_spec = self.visit(part.format_spec) if part.format_spec is not None else None
            return node
        made = self.visit(node)
        if _formats(node):
            made.args[1:] = [x if isinstance(x, ast.Starred) else self._shown(x) for x in made.args[1:]]
            for keyword in made.keywords:
                keyword.value = self._shown(keyword.value) if keyword.arg else keyword.value
        return made

    def _shown(self, value: ast.expr) -> ast.expr:
        return self.hook("shown", value, self.visit(ast.copy_location(ast.Name("print", ast.Load()), value)), value)

    def _generated(self, node: ast.Call) -> ast.expr | None:
        """`any(e for t in items if c)`: the items, a function of one of them, and the generator of them all."""
        made = node.args[0] if len(node.args) == 1 and not node.keywords else None
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _REDUCING or not isinstance(made, ast.GeneratorExp) or len(made.generators) != 1:
            return None
        (part,) = made.generators
        targets = part.target.elts if isinstance(part.target, ast.Tuple) else [part.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if len(set(names)) < len(targets) or part.is_async or not self._deferred(made.elt, *part.ifs):
            return None
        function, items = self.visit(node.func), self._iterable(part.iter)
        bodies = [ast.BoolOp(ast.And(), part.ifs) if len(part.ifs) > 1 else part.ifs[0], made.elt] if part.ifs else [made.elt]
        by_item = [self.visit(placed(ast.Lambda(parameters(*names), trees.copied(body)), node)) for body in bodies]
        if not part.ifs:
            by_item = [ast.Constant(None), *by_item]
        given = f"{ADDED}items"
        part.iter = ast.Name(given, ast.Load())
        generator = self.visit(placed(ast.Lambda(parameters(given), made), node))
        spread = ast.Constant(isinstance(part.target, ast.Tuple))
        return self.hook("generated", node, function, items, spread, *by_item, generator)

    # ---- texts
    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        node.value = self.hook("text", node.value, node.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            node.right = self.hook("text", node.right, node.right)
        return node

    # ---- containers
    def _container(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return node  # type: ignore[no-any-return]
        return self.hook("made", node, node)

    visit_List = visit_Set = _container

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        found = self._container(node)
        node.values = [v if k is not None else self._filling(v) for k, v in zip(node.keys, node.values, strict=True)]
        return found

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        value = self.visit(node.value)
        return ast.copy_location(ast.keyword(node.arg, value if node.arg else self._filling(value)), node)

    def _filling(self, value: ast.expr, *filled: ast.expr) -> ast.expr:
        return self.hook("filling", value, value, *filled)

    # ---- iteration and unpacking
    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self.hook("iterate", node.iter, self.visit(node.iter))
        node.target = self.visit(node.target)
        node.ifs = [self.visit(test) for test in node.ifs]
        return node

    def _comprehension(self, node: Any) -> ast.AST:
        names = frozenset(n.id for g in node.generators for n in trees.walk(g.target) if isinstance(n, ast.Name))
        node.generators[0].iter = _Visited(self.visit(node.generators[0].iter))  # belongs to the scope around
        self.scopes.append(names)
        self.generic_visit(node)
        self.scopes.pop()
        return node if isinstance(node, ast.GeneratorExp) else self.hook("made", node, node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit__Visited(self, node: _Visited) -> ast.AST:
        return node.value

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            value = self.hook("spread", node.value, value)
        return ast.copy_location(ast.Starred(value, node.ctx), node)

    # ---- what only gives something out
    def visit_Expr(self, node: ast.Expr) -> Any:
        return self._put_off(node) or self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        return self._put_off(node) or self._one_by_one(node) or self._assignment(node)

    def _one_by_one(self, node: ast.Assign) -> list[ast.stmt] | None:
        """`a.b, c = v, w` as statements of which each may be put off: all values are there before the first store."""
        pairs = effect_statements.stores_of_values(node)
        if pairs is None:
            return None
        names = [f"{ADDED}value_{n}" for n in range(len(pairs))]
        made = [ast.Assign([ast.Name(name, ast.Store())], value) for name, (_, value) in zip(names, pairs, strict=True)]
        made += [ast.Assign([target], ast.Name(name, ast.Load())) for name, (target, _) in zip(names, pairs, strict=True)]
        return self.block([placed(statement, node) for statement in made])

    def _put_off(self, node: ast.Expr | ast.Assign | ast.AugAssign) -> list[ast.stmt] | None:
        """Such a statement may be done after what is captured behind it."""
        found = effect_statements.giving(node) if _may_give(node) else None
        if found is None:
            return None
        whole = trees.copied(node)
        if isinstance(whole, ast.AugAssign):
            otherwise: ast.AST = self._augmented(whole)
        else:
            otherwise = self._assignment(whole) if isinstance(whole, ast.Assign) else self.generic_visit(whole)
        assert isinstance(otherwise, ast.stmt)
        found.own = self.own_lists.get(found.root.id) if found.root is not None else None
        return effect_statements.with_later(found, node, self.hook, self.visit, self._receiver, self.mangled, [otherwise])

    def _receiver(self, name: ast.Name) -> ast.expr:
        """A container that gets something: under a name around the function it is not read."""
        if self._is_local(self.mangled(name.id)):
            return ast.copy_location(ast.Name(self.mangled(name.id), ast.Load()), name)
        return self.hook("receiver", name, ast.Constant(self.mangled(name.id)))

    def _assignment(self, node: ast.Assign) -> ast.AST:
        value = self.visit(node.value)
        if any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
            value = self.hook("unpack", node.value, value)
        elif any(isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice) for target in node.targets):
            value = self._filling(value)
        return ast.copy_location(ast.Assign([self.visit(t) for t in node.targets], value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        return self._put_off(node) or self._augmented(node)

    def visit_Augmented(self, node: effect_statements.Augmented) -> ast.AST:
        given = ast.Name(GIVEN, ast.Load())
        return self.hook("stepped", node, given, ast.Constant(node.op), self.visit(node.loaded), self.visit(node.operand))

    def _augmented(self, node: ast.AugAssign) -> ast.AST:
        if isinstance(node.target, ast.Name) and not self._is_local(node.target.id):
            load = self.visit(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            name = ast.Constant(type(node.op).__name__)
            value = self.hook("augmented", node, name, load, self.visit(node.value))
            return ast.copy_location(ast.Assign([self.visit(node.target)], value), node)
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and isinstance(node.op, _CHANGING):
            node.value = self._filling(node.value, ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        elif isinstance(node.op, (ast.Add, ast.BitOr)) and not isinstance(node.value, ast.Constant):
            node.value = self._filling(node.value)
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(part, ast.MatchClass) for case in node.cases for part in trees.walk(case.pattern)):
            node.subject = self.hook("matched", node.subject, node.subject)
        return node

    # ---- left as they are
    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        return node

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:
        return node

    # ---- helpers
    def hook(self, name: str, at: ast.AST, *args: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
        """`__jl__.name(args)` at the position of `at`."""
        function = ast.Attribute(ast.Name(HOOK, ast.Load()), name, ast.Load())
        call = ast.Call(function, list(args), list(keywords))
        for node in (function.value, function, call):
            ast.copy_location(node, at)
        for node in (function.value, function):  # on one line: Python gives a call the last line of its function's name
            node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
        for arg in args:
            if not hasattr(arg, "lineno"):
                ast.copy_location(arg, at)
        return call

    def mangled(self, name: str) -> str:
        if not self.classes or not name.startswith("__") or name.endswith("__") or name.startswith(ADDED):
            return name
        stem = self.classes[-1].lstrip("_")
        return f"_{stem}{name}" if stem else name

    def _is_local(self, name: str) -> bool:
        if self.outward and name in self.outward[-1]:
            return False
        return any(name in scope for scope in self.scopes)


#: What changes a list, a set, a dict or a deque where it stands.
_CHANGING = (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
#: Builtins that take a generator's items one by one.
_REDUCING = frozenset({"any", "all", "sum", "min", "max"})


def _may_give(node: ast.Expr | ast.Assign | ast.AugAssign) -> bool:
    """A call, or a store into something, whose value nobody takes."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, (ast.Attribute, ast.Subscript)) or effect_statements.adds_items(node)
    return len(node.targets) == 1 and isinstance(node.targets[0], (ast.Attribute, ast.Subscript))


def _lists_of(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """The names under which a function makes lists and dicts, outside of its loops and branches, and how they are written."""
    made: dict[str, ast.expr] = {}
    for part in function.body:
        if (isinstance(part, ast.Assign) and len(part.targets) == 1) or (isinstance(part, ast.AnnAssign) and part.value):
            target, value = part.targets[0] if isinstance(part, ast.Assign) else part.target, part.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs = list(zip(target.elts, value.elts, strict=True))
            kinds = ast.List, ast.Dict
            made |= {name.id: item for name, item in pairs if isinstance(name, ast.Name) and isinstance(item, kinds)}
    return made


class _Visited(ast.expr):
    """An expression that has been rewritten already."""

    def __init__(self, value: ast.AST) -> None:
        super().__init__()
        self.value = value
        ast.copy_location(self, value)


def _yields(node: ast.FunctionDef) -> bool:
    """Is it a generator?"""
    stack: list[ast.AST] = list(node.body)
    while stack:
        child = stack.pop()
        if isinstance(child, (ast.Yield, ast.YieldFrom, ast.Await)):
            return True
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(trees.children(child))
    return False
