"""A statement in steps: what NumPy can be captured of it by itself, and the rest, in Python's own order of evaluation.

before: out.append(np.tanh(x).sum())
after:  __jl_t0__ = np.tanh(x).sum()    # captured
        out.append(__jl_t0__)           # Python

Names and attributes stay where they are, so they are read later than Python reads them. A captured step rebinds nothing, and
nobody can tell; a step that Python has to run may, so from there on the statement runs as it was written (`Group.rest`).
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable, Iterator
from typing import Any

TEMPORARY = "__jl_t"
_BUILTIN_NAMES = frozenset(dir(builtins))
#: Builtins that only look at a number or array they are given: nothing is rebound when Python runs them.
_LOOKING = frozenset({"float", "int", "bool", "complex", "str", "repr", "format", "abs", "round", "len", "max", "min"})
#: Calls that look at the frame they stand in.
FRAME_CALLS = frozenset({"locals", "vars", "dir", "globals", "eval", "exec", "super", "__import__"})
_BINDING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)

_Holes = list[tuple[Callable[[ast.expr], None], ast.expr, bool]]


_names_made = 0


def new_name() -> str:
    """A name that no program has."""
    global _names_made
    _names_made += 1
    return f"{TEMPORARY}{_names_made}__"  # in a method Python takes it for no private name of the class


class Step:
    """One hoisted expression. `exposed`: a name is read before it in the statement that is read after it in the steps."""

    def __init__(self, name: str, value: ast.expr, exposed: bool) -> None:
        self.name, self.value, self.exposed = name, value, exposed
        self.node: ast.stmt = ast.copy_location(ast.Assign([_store(name, value)], value), value)


class Group:
    """The steps of one statement, in order, and the statement itself over their names. `names`: those of all steps that it has
    had, also of those that were put in a step's place since."""

    names: set[str]
    asks = False  # its calls ask what to call

    def __init__(self, original: ast.stmt, whole: ast.stmt, steps: list[Step], final: ast.stmt | None = None) -> None:
        self.original = original
        self.whole = whole  # with names of steps in it
        self.steps = steps
        self.final = final or whole
        self.names = {step.name for step in steps}
        self.is_display = False

    def rest(self, at: int) -> ast.stmt:
        """The statement with all steps from `at` on back in their places."""
        return _Put({step.name: step.value for step in self.steps[at:]}).visit(copy.deepcopy(self.whole))  # type: ignore[no-any-return]

    def split_step(self, at: int) -> tuple[Group, list[Step]] | None:
        """A step that could not be captured whole, in steps: those before it, and itself over their names; and the group that
        has those, as runs under way go on with this one."""
        step, whole = self.steps[at], self.whole
        if isinstance(step.node, ast.AugAssign):
            if _is_trivial(step.value):
                return None
            assert isinstance(whole, ast.AugAssign)
            steps = [Step(new_name(), step.value, True)]
            last = Step(step.name, _load(steps[0].name, step.value), True)
            last.node = ast.copy_location(ast.AugAssign(step.node.target, step.node.op, last.value), step.node)
            whole = copy.copy(whole)
            whole.value = last.value
        else:
            value = copy.deepcopy(step.value)
            steps = _hoisted(value, step.exposed)
            if not steps:
                return None
            last = Step(step.name, value, step.exposed and not _looks_only(value))
        made = [*steps, last]
        group = Group(self.original, whole, [*self.steps[:at], *made, *self.steps[at + 1 :]], self.final)
        self.names |= group.names
        group.names, group.is_display = self.names, self.is_display
        return group, made


def split(node: ast.stmt) -> Group | None:
    """The statement in steps; None when there is nothing to take out of it."""
    if any(isinstance(part, _BINDING) for part in ast.walk(node)):
        return None
    whole = copy.deepcopy(node)
    if isinstance(whole, (ast.Expr, ast.Return)):
        steps = [] if whole.value is None else _hoisted(whole.value)
    elif isinstance(whole, ast.Assign):
        steps = _of_assignment(whole)
    elif isinstance(whole, ast.AugAssign):
        return _of_augmented(node, whole)
    elif isinstance(whole, (ast.Assert, ast.AnnAssign)):
        field = "test" if isinstance(whole, ast.Assert) else "value"
        value = getattr(whole, field)
        if value is None or _is_trivial(value):
            return None
        steps = [Step(new_name(), value, False)]
        setattr(whole, field, _load(steps[0].name, value))
    else:
        return None
    return Group(node, whole, steps) if steps else None


def _of_assignment(whole: ast.Assign) -> list[Step]:
    if all(isinstance(target, ast.Name) for target in whole.targets):
        return _hoisted(whole.value)
    if _is_trivial(whole.value):
        return []
    step = Step(new_name(), whole.value, False)
    whole.value = _load(step.name, step.value)
    return [step]


def _of_augmented(node: ast.stmt, whole: ast.AugAssign) -> Group | None:
    """`owner[i] += v` is a load, `+=` of what was loaded, and a store."""
    target = whole.target
    if isinstance(target, ast.Name):
        if _is_trivial(whole.value):
            return None
        step = Step(new_name(), whole.value, True)
        whole.value = _load(step.name, step.value)
        return Group(node, whole, [step])
    owner = target.value
    if not _is_trivial(owner) or not (isinstance(target, ast.Attribute) or _is_trivial(target.slice)):
        return None
    loaded = copy.deepcopy(target)
    loaded.ctx = ast.Load()
    place = Step(new_name(), loaded, True)
    added = Step(place.name, whole.value, True)
    added.node = ast.copy_location(ast.AugAssign(_store(place.name, target), whole.op, whole.value), node)
    final = ast.copy_location(ast.Assign([target], _load(place.name, target)), node)
    return Group(node, whole, [place, added], final)


def _hoisted(expression: ast.expr, exposed: bool = False) -> list[Step]:
    """Take the operands of an expression out of it, those that are more than a name."""
    steps = []
    for put, operand, is_exposed in _operands(expression):
        step = Step(new_name(), operand, exposed or is_exposed)
        put(_load(step.name, operand))
        steps.append(step)
    return steps


def _operands(expression: ast.expr) -> _Holes:
    """The operands that are always evaluated, in order: how to replace each, and whether a name is read before it."""
    holes: _Holes = []
    reads = False
    for put, operand in _children(expression):
        if isinstance(operand, ast.Starred):
            return []
        if not _is_trivial(operand):
            holes.append((put, operand, reads))
        elif _reads(operand):
            reads = True
    return holes


def _children(node: Any) -> Iterator[tuple[Callable[[ast.expr], None], ast.expr]]:
    match node:
        case ast.Call():
            if isinstance(node.func, ast.Name) and node.func.id in FRAME_CALLS:
                return
            if any(keyword.arg is None for keyword in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
                return
            if isinstance(node.func, ast.Attribute) and not _is_trivial(node.func):
                yield _field(node.func, "value"), node.func.value
            else:
                yield _field(node, "func"), node.func
            yield from _items(node.args)
            for keyword in node.keywords:
                yield _field(keyword, "value"), keyword.value
        case ast.BinOp():
            yield _field(node, "left"), node.left
            yield _field(node, "right"), node.right
        case ast.UnaryOp():
            yield _field(node, "operand"), node.operand
        case ast.Compare():
            yield _field(node, "left"), node.left
            if len(node.comparators) == 1:
                yield from _items(node.comparators)
        case ast.BoolOp():
            yield from _items(node.values, 1)
        case ast.IfExp():
            yield _field(node, "test"), node.test
        case ast.Attribute():
            yield _field(node, "value"), node.value
        case ast.Subscript():
            yield _field(node, "value"), node.value
            if isinstance(node.slice, ast.Tuple):
                yield from _items(node.slice.elts)
            elif not isinstance(node.slice, ast.Slice):
                yield _field(node, "slice"), node.slice
        case ast.Tuple() | ast.List() | ast.Set():
            yield from _items(node.elts)
        case ast.Dict():
            if None in node.keys:
                return
            for n in range(len(node.keys)):
                yield _item(node.keys, n), node.keys[n]  # type: ignore[misc]
                yield _item(node.values, n), node.values[n]
        case ast.JoinedStr():
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield _field(part, "value"), part.value


def may_work(node: ast.expr) -> bool:
    """Is there anything in it that NumPy could do?"""
    if _is_trivial(node) or any(isinstance(part, _BINDING) for part in ast.walk(node)):
        return False
    work = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Subscript)
    return any(isinstance(part, work) for part in ast.walk(node))


def _field(node: ast.AST, name: str) -> Callable[[ast.expr], None]:
    return lambda value: setattr(node, name, value)


def _item(items: list[Any], n: int) -> Callable[[ast.expr], None]:
    return lambda value: items.__setitem__(n, value)


def _items(items: list[ast.expr], most: int | None = None) -> Iterator[tuple[Callable[[ast.expr], None], ast.expr]]:
    for n in range(len(items) if most is None else most):
        yield _item(items, n), items[n]


def _is_trivial(node: ast.expr) -> bool:
    """A constant, a name, an attribute of one, a function, or numbers with a sign: nothing to capture."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    if isinstance(node, ast.Slice):
        return all(part is None or _is_trivial(part) for part in (node.lower, node.upper, node.step))
    if isinstance(node, ast.Tuple):
        return all(map(_is_trivial, node.elts))
    if isinstance(node, ast.JoinedStr):
        return all(_is_trivial(part.value) for part in node.values if isinstance(part, ast.FormattedValue))
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, (ast.Constant, ast.Name, ast.Lambda))


def _reads(node: ast.expr) -> bool:
    """Does a trivial expression read a name that could be bound anew?"""
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    return any(name not in _BUILTIN_NAMES and not name.startswith(TEMPORARY) for name in names)


def _looks_only(node: ast.expr) -> bool:
    """`float(__jl_t0__)` and the like, over steps alone."""
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    named = isinstance(node.func, ast.Name) and node.func.id in _LOOKING
    method = isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist") and _is_step(node.func.value)
    return (named or method) and all(_is_step(a) or isinstance(a, ast.Constant) for a in node.args)


def _is_step(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id.startswith(TEMPORARY)


def _load(name: str, at: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def _store(name: str, at: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Store()), at)


class _Put(ast.NodeTransformer):
    """Puts expressions back where their names stand."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        value = self.values.get(node.id)
        return node if value is None or not isinstance(node.ctx, ast.Load) else self.visit(copy.deepcopy(value))
