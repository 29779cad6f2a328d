"""Control flow of converted code: `if`, `while` and `for` become nested functions that hooks of `__jl__` call.

before: while i < n:                  after: def __jl_test_1(): return i < n
            i += step                        def __jl_body_2():
                                                 nonlocal i
                                                 i += step
                                             __jl__.while_(__jl_test_1, __jl_body_2, None, names...)

A name stays the user's own local variable: the nested functions share its cell, and the hooks read and bind it there. On
Python's values the hooks do what Python does. A jump is what a nested function returns: None (it ran to its end), `BREAK`,
`CONTINUE` or `returned(value)`; what follows a statement that may jump is a nested function, too, so that both ways can be
traced to their ends.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import TypeVar

from jitlab.support import trees
from jitlab.support.lazy_dataclass import dataclass

from .liveness import Life, lives

HOOK = "__jl__"
#: The names of what conversion adds begin with this.
ADDED = "__jl_"
#: The function that a loop of a cell is.
LOOP = f"{ADDED}loop"
#: The function that gives something out later, and what says that it may (effect_statements.py).
EFFECT, GIVEN = f"{ADDED}effect__", f"{ADDED}given__"
#: Functions that look at the frame they are called in: where one is called, control flow stays as it stands.
_LOOK_AT_FRAMES = frozenset({"locals", "vars", "dir", "eval", "exec"})


@dataclass
class Flow:
    """The function whose control flow is converted."""

    name: str
    bound: frozenset[str]  # its local names
    free: frozenset[str]  # those that it declares nonlocal
    outer: frozenset[str]  # those that it declares global
    lives: dict[int, Life]
    first: str | None = None  # its first argument
    depth: int = 0  # nested functions that are being written
    added: int = 0
    hidden: set[str] = field(default_factory=set)  # names that nested functions bind


class FlowConverter(ast.NodeTransformer):
    """The part of the Converter that rewrites control flow. The last of `flows` is None where it stays as it stands."""

    flows: list[Flow | None]
    #: What is read after the function has ended; None: the names around it that it binds.
    wanted: frozenset[str] | None = None
    scopes: list[frozenset[str]]

    def hook(self, name: str, at: ast.AST, *args: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
        raise NotImplementedError

    def mangled(self, name: str) -> str:
        raise NotImplementedError

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        raise NotImplementedError

    @property
    def flow(self) -> Flow | None:
        return self.flows[-1] if self.flows else None

    # ---- functions
    def flowing(self, node: ast.FunctionDef, bound: frozenset[str], free: frozenset[str], outer: frozenset[str]) -> None:
        """Rewrite the body of a function that looks at no frames."""
        every = (*node.args.posonlyargs, *node.args.args)
        first = every[0].arg if every else None
        wanted = self._all(free | outer) if self.wanted is None or self.flows else self.wanted
        flow = Flow(node.name, self._all(bound), self._all(free), self._all(outer), lives(node.body, wanted), first)
        self.flows.append(flow)
        body = self.tail(node.body)
        self.flows.pop()
        head: list[ast.stmt] = []
        if flow.outer:
            head.append(ast.Global(sorted(flow.outer)))
        if flow.free:
            head.append(ast.Nonlocal(sorted(flow.free)))
        if flow.hidden:  # never run: it makes the names local to this function
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in sorted(flow.hidden)]
            body.append(ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], []))
        for new in (*head, *body[-1:]):
            placed(new, node)
        node.body = head + body

    def _all(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(map(self.mangled, names))

    def tail(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A block whose end is the end of the function (the user's, or an added one)."""
        result: list[ast.stmt] = []
        for number, statement in enumerate(body):
            if isinstance(statement, (ast.If, ast.While, ast.For)) and may_jump(statement):
                return result + self._control(statement, list(body[number + 1 :]), tail=True)
            new = self.visit(statement)
            result.extend(new if isinstance(new, list) else [new])
        return result

    def _added(self, kind: str, body: list[ast.stmt], at: ast.AST, argument: str | None = None) -> ast.FunctionDef:
        """`def __jl_<kind>_<n>(): <body>`, which binds the user's own variables."""
        flow = self.flow
        assert flow is not None
        flow.added += 1
        name = f"{ADDED}{kind}_{flow.added}"
        flow.depth += 1
        inner = self.tail(body)
        flow.depth -= 1
        bound = {n for n in bound_names(inner)[0] if not n.startswith(ADDED)}
        declared: list[ast.stmt] = []
        outer, shared = sorted(bound & flow.outer), sorted(bound - flow.outer)
        flow.hidden.update(set(shared) & flow.bound)
        if outer:
            declared.append(ast.Global(outer))
        if shared:
            declared.append(ast.Nonlocal(shared))
        given = parameters(*([argument] if argument is not None else []))
        new = function_node(name, given, [*declared, *inner] or [ast.Pass()])
        for part in (*declared, *given.args, *new.body[:1]):
            if not hasattr(part, "lineno"):
                placed(part, at)
        return ast.copy_location(new, at)

    # ---- statements
    def _control(self, node: ast.If | ast.While | ast.For, rest: list[ast.stmt], *, tail: bool) -> list[ast.stmt]:
        flow = self.flow
        assert flow is not None
        life = flow.lives[id(node)]
        jumping = may_jump(node)
        parts: list[ast.stmt] = [*node.body, *node.orelse]
        if isinstance(node, ast.For):
            parts.append(ast.Assign([node.target], ast.Constant(None)))
        if isinstance(node, ast.While):
            parts.append(ast.Expr(node.test))
        assigned = self._all(bound_names(parts)[0]) - flow.outer

        def names(wanted: frozenset[str]) -> ast.expr:
            return _constant(sorted(assigned & self._all(wanted)))

        left = self._all(bound_names(rest)[0]) - flow.outer
        leave = _constant(sorted((assigned | left) & self._all(life.leave)))
        defined: list[ast.stmt] = []

        def added(kind: str, body: list[ast.stmt], argument: str | None = None) -> ast.expr:
            if not body:
                return ast.Constant(None)
            new = self._added(kind, body, body[0], argument)
            defined.append(new)
            return ast.Name(new.name, ast.Load())

        at: ast.expr
        if isinstance(node, ast.If):
            at = node.test
            test = self.visit(node.test)
            then, orelse = added("then", node.body), added("else", node.orelse)
            if not jumping:
                call = self.hook("if_", at, test, then, orelse, _constant(sorted(assigned)), names(life.after))
                return [*defined, _statement(call, at)]
            follows = added("rest", rest)
            every = _constant(sorted(assigned | left))
            call = self.hook("if_jump", at, test, then, orelse, follows, every, names(life.after), leave)
        else:
            sets = [_constant(sorted(assigned)), names(life.after), names(life.head), names(life.body)]
            if isinstance(node, ast.While):
                at = node.test
                returned = ast.copy_location(_Answer(node.test), node.test)
                test_name = added("test", [returned])
                call = self.hook("while_", at, test_name, added("body", node.body), added("orelse", node.orelse), *sets)
            else:
                at = node.iter
                iterable = self._iterable(node.iter)
                item = ADDED + "item"
                value = ast.copy_location(ast.Name(item, ast.Load()), node.target)
                bind = ast.copy_location(ast.Assign([node.target], value), node.target)
                body = added("body", [bind, *node.body], item)
                targets = _constant(sorted(self._all(bound_names([bind])[0])))
                call = self.hook("for_", at, iterable, body, added("orelse", node.orelse), targets, *sets)
            if not jumping:
                return [*defined, _statement(call, at)]
            if rest:
                call = self.hook("follow", at, call, added("rest", rest), _constant(sorted(left)), leave)
        if tail:
            return [*defined, self._left(call, at)]
        outcome = ast.copy_location(ast.Name(f"{ADDED}outcome", ast.Store()), at)
        read = ast.copy_location(ast.Name(f"{ADDED}outcome", ast.Load()), at)
        leaving = ast.copy_location(ast.If(self.hook("jumped", at, read), [self._left(read, at)], []), at)
        return [*defined, ast.copy_location(ast.Assign([outcome], call), at), leaving]

    def _iterable(self, node: ast.expr) -> ast.expr:
        """A `range(...)` in the head of a `for` keeps the extents of its numbers."""
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name == "range" and not node.keywords:
            if not any(isinstance(arg, ast.Starred) for arg in node.args):
                return self.hook("counted", node, self.visit(node.func), *map(self.visit, node.args))
        return self.visit(node)  # type: ignore[no-any-return]

    def _left(self, outcome: ast.expr, at: ast.AST) -> ast.stmt:
        """Leave the function, added or the user's, with an outcome."""
        flow = self.flow
        assert flow is not None
        value = outcome if flow.depth else self.hook("value_of", at, outcome)
        return ast.copy_location(ast.Return(value), at)

    def _compound(self, node: ast.If | ast.While | ast.For) -> ast.AST | list[ast.stmt]:
        if self.flow is not None:
            return self._control(node, [], tail=False)
        if isinstance(node, ast.For):
            node.iter = self.hook("iterate", node.iter, self.visit(node.iter))
            node.target = self.visit(node.target)
        else:
            node.test = self.visit(node.test)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    visit_If = visit_While = visit_For = _compound

    def visit_Return(self, node: ast.Return) -> ast.AST:
        node.value = None if node.value is None else self.visit(node.value)
        if self.flow is None or not self.flow.depth:
            return node
        value = node.value if node.value is not None else ast.copy_location(ast.Constant(None), node)
        return ast.copy_location(ast.Return(self.hook("returned", node, value)), node)

    def visit__Answer(self, node: _Answer) -> ast.AST:
        return ast.copy_location(ast.Return(self.visit(node.value)), node)

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return self._jump(node, "BREAK") if self.flow is not None else node

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return self._jump(node, "CONTINUE") if self.flow is not None else node

    def _jump(self, node: ast.stmt, name: str) -> ast.stmt:
        value = ast.Attribute(ast.Name(HOOK, ast.Load()), name, ast.Load())
        return placed(ast.Return(value), node)

    def _declaration(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        if self.flow is not None:  # declared at the head of the function
            return ast.copy_location(ast.Pass(), node)
        node.names = [self.mangled(name) for name in node.names]
        return node

    visit_Global = visit_Nonlocal = _declaration

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        target = node.target
        value = None if node.value is None else self.visit(node.value)
        node.target = self.visit(target)
        if self.flow is None or not isinstance(target, ast.Name):
            node.value = value
            return node
        if value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], value), node)  # a nonlocal name cannot be annotated

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        test = self.visit(node.test)
        message = None if node.msg is None else self.visit(node.msg)
        if self.flow is None:
            node.test, node.msg = test, message
            return node
        later = ast.Constant(None) if message is None else _lambda(message)
        checked = self.hook("checked", node, test, later)
        error = placed(ast.Call(ast.Name("AssertionError", ast.Load()), [], []), node)
        if message is not None:
            error.args = [message]
        negated = ast.copy_location(ast.UnaryOp(ast.Not(), checked), node)
        return ast.copy_location(ast.If(negated, [ast.copy_location(ast.Raise(error), node)], []), node)

    def visit_Try(self, node: ast.Try) -> ast.AST:
        self.generic_visit(node)
        for handler in node.handlers:
            handler.type = self.hook("caught", handler, *([] if handler.type is None else [handler.type]))
        if node.handlers or node.finalbody:
            node.body = self._tried(node.body, "trying" if node.handlers else "inside_try")
        if node.orelse and node.finalbody:
            node.orelse = self._tried(node.orelse, "inside_try")
        return node

    def _tried(self, body: list[ast.stmt], hook: str) -> list[ast.stmt]:
        return [ast.copy_location(ast.With([ast.withitem(self.hook(hook, body[0]))], body), body[0])]

    # ---- expressions
    def _deferred(self, *nodes: ast.expr) -> bool:
        """May these be evaluated later, in a function of their own?"""
        if not self.flows or self.flow is None:
            return False
        banned = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
        return not any(isinstance(part, banned) for node in nodes for part in trees.walk(node))

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if not self._deferred(node.body, node.orelse):
            return self.generic_visit(node)
        test, body, orelse = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        return self.hook("choose", node, test, _lambda(body), _lambda(orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if not self._deferred(*node.values[1:]):
            return self.generic_visit(node)
        first, *others = [self.visit(value) for value in node.values]
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.hook(name, node, first, *map(_lambda, others))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not) and self.flow is not None:
            return self.hook("not_", node, node.operand)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        of_constant = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is not None
        equality = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot) if of_constant else (ast.Eq, ast.NotEq)
        if len(node.ops) == 1 and isinstance(node.ops[0], equality):
            self.generic_visit(node)
            return self.hook("equal", node, node.left, ast.Constant(type(node.ops[0]).__name__), node.comparators[0])
        if self.flow is None or not self._deferred(*node.comparators):
            self.generic_visit(node)
            node.comparators = [
                self.hook("filling", other, other) if isinstance(op, (ast.In, ast.NotIn)) else other
                for op, other in zip(node.ops, node.comparators, strict=True)
            ]
            return node
        left = self.visit(node.left)
        others = [self.visit(other) for other in node.comparators]
        asks = isinstance(node.ops[0], (ast.In, ast.NotIn)) or (
            isinstance(node.ops[0], (ast.Is, ast.IsNot)) and not isinstance(node.comparators[0], ast.Constant)
        )
        if len(others) == 1 and not asks:
            return ast.copy_location(ast.Compare(left, node.ops, others), node)
        signs = ast.Tuple([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        return self.hook("compare", node, left, placed(signs, node), *map(_lambda, others))


class _Answer(ast.Return):
    """The `return` of an added test function: no jump of the user's."""

    value: ast.expr


# ---- names


#: The most frequent nodes that bind no name themselves.
_BINDS_NOTHING = frozenset({
    ast.Assign, ast.Attribute, ast.AugAssign, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Expr, ast.For,
    ast.If, ast.IfExp, ast.List, ast.Return, ast.Slice, ast.Subscript, ast.Tuple, ast.UnaryOp, ast.While, ast.keyword,
})  # fmt: skip


def bound_names(body: Sequence[ast.stmt]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Names that statements bind (not those declared outward), declare nonlocal, and declare global."""
    bound: set[str] = set()
    free: set[str] = set()
    outer: set[str] = set()

    todo: list[ast.AST] = list(body)
    for child in todo:
        if type(child) in _BINDS_NOTHING:
            todo += trees.children(child)
            continue
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(child.name)
            continue
        if isinstance(child, ast.Lambda):  # what it binds is its own
            todo.append(child.args)
            continue
        if isinstance(child, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            bound.update(walrus_names(child))
            continue
        if isinstance(child, ast.Global):
            outer.update(child.names)
        elif isinstance(child, ast.Nonlocal):
            free.update(child.names)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, (ast.Store, ast.Del)):
            bound.add(child.id)
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            bound.update((a.asname or a.name).split(".")[0] for a in child.names)
        elif isinstance(child, ast.ExceptHandler) and child.name:
            bound.add(child.name)
        elif isinstance(child, (ast.MatchAs, ast.MatchStar)) and child.name:
            bound.add(child.name)
        elif isinstance(child, ast.MatchMapping) and child.rest:
            bound.add(child.rest)
        todo += trees.children(child)
    return frozenset(bound - outer - free), frozenset(free), frozenset(outer)


def argument_names(args: ast.arguments) -> frozenset[str]:
    every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
    return frozenset(arg.arg for arg in every if arg is not None)


def walrus_names(node: ast.AST) -> frozenset[str]:
    return frozenset(n.target.id for n in trees.walk(node) if isinstance(n, ast.NamedExpr))


def may_jump(node: ast.stmt) -> bool:
    """Does a statement hold a `return`, or a `break` or `continue` of a loop around it?"""

    def inside(part: ast.AST, in_loop: bool) -> bool:
        if isinstance(part, ast.Return):
            return True
        if isinstance(part, (ast.Break, ast.Continue)):
            return not in_loop
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return False
        if isinstance(part, (ast.For, ast.While, ast.AsyncFor)):
            return any(inside(child, True) for child in part.body) or any(inside(child, in_loop) for child in part.orelse)
        return any(inside(child, in_loop) for child in trees.children(part))

    return inside(node, False)


def is_added(code: types.CodeType) -> bool:
    """Is it the code of a function that conversion added?"""
    return code.co_name.startswith(ADDED) or (code.co_argcount == 1 and code.co_varnames[0] == f"{ADDED}later")


def looks_at_frames(body: Sequence[ast.AST]) -> bool:
    """Does it call what reads or writes the variables of the frame it stands in?"""
    calls = [part for statement in body for part in trees.walk(statement) if isinstance(part, ast.Call)]
    return any([frame_call(call, _LOOK_AT_FRAMES) for call in calls])


def frame_call(node: ast.AST, names: Collection[str]) -> str:
    """The one of these names that is called, where it looks at the frame it stands in; "" for others."""
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return name if name in names and not (name in ("vars", "dir") and node.args) else ""  # type: ignore[attr-defined]


# ---- nodes


def parameters(*names: str) -> ast.arguments:
    """The parameters of a function, all without a default."""
    every = [ast.arg(arg=name) for name in names]
    return ast.arguments(posonlyargs=[], args=every, vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])


def function_node(name: str, given: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """`def name(given): <body>`, without decorators and annotations."""
    made = ast.FunctionDef(name=name, args=given, body=body, decorator_list=[], returns=None)
    if sys.version_info >= (3, 12):
        made.type_params = []
    return made


def _lambda(body: ast.expr) -> ast.expr:
    """`lambda: body`, marked as added by the name of an argument that nobody gives."""
    later = parameters(ADDED + "later")
    later.defaults = [ast.Constant(None)]
    for part in (*later.args, *later.defaults):
        ast.copy_location(part, body)
    return ast.copy_location(ast.Lambda(later, body), body)


def _constant(names: Sequence[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def _statement(call: ast.expr, at: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Expr(call), at)


_Node = TypeVar("_Node", bound=ast.AST)


def placed(node: _Node, at: ast.AST) -> _Node:
    """The node, everything in it at `at`."""
    for part in trees.walk(node):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return node


__all__ = [
    "ADDED", "HOOK", "Flow", "FlowConverter", "argument_names", "bound_names", "frame_call", "function_node",
    "is_added", "looks_at_frames", "may_jump", "parameters", "placed", "walrus_names",
]  # fmt: skip
