"""Which names a function reads later: a loop carries, and a branch gives, only what somebody still wants."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from jitlab.support import trees
from jitlab.support.lazy_dataclass import dataclass

Names = frozenset[str]
_NONE: Names = frozenset()


@dataclass(frozen=True)
class Life:
    """Of an `if` or a loop: the names that are read after it, and those read when its body begins (again)."""

    after: Names
    head: Names  # of a loop: wanted by the next iteration, by its test, or after it
    body: Names  # of a loop: wanted by an iteration from the one before (or from before the loop)
    leave: Names = _NONE  # where the block that it stands in may be left: at its end, by break or continue


def lives(body: Sequence[ast.stmt], after: Names = _NONE) -> dict[int, Life]:
    """The Life of each `if`, `while` and `for` of a function's body, by the id of its node. `after`: what is read behind it."""
    analysis = _Analysis(body, after)
    analysis.block(body, after, _NONE, _NONE)
    return analysis.found


def read_before_bound(body: Sequence[ast.stmt]) -> Names:
    """The names that statements read as they were before the first of them, and those that functions defined there read."""
    return _Analysis(body, _NONE).block(body, _NONE, _NONE, _NONE)


class _Analysis:
    """Backwards through the statements. What is read by nested functions counts as read everywhere."""

    def __init__(self, body: Sequence[ast.stmt], after: Names) -> None:
        self.found: dict[int, Life] = {}
        self.after = after  # read behind the function, however it ends
        self.always = frozenset(_read_by_functions(body))

    def block(self, body: Sequence[ast.stmt], after: Names, on_break: Names, on_continue: Names) -> Names:
        live = after | self.always
        leave = live | on_break | on_continue
        for statement in reversed(body):
            live = self.statement(statement, live, on_break, on_continue) | self.always
            life = self.found.get(id(statement))
            if life is not None:
                self.found[id(statement)] = replace(life, leave=leave)
        return live

    def statement(self, node: ast.stmt, after: Names, on_break: Names, on_continue: Names) -> Names:
        match node:
            case ast.If():
                self.found[id(node)] = Life(after, after, _NONE)
                sides = self.block(node.body, after, on_break, on_continue) | self.block(
                    node.orelse, after, on_break, on_continue
                )
                return _walrus_killed(sides, node.test) | reads(node.test)
            case ast.While():
                return self.loop(node, reads(node.test), _NONE, after, on_break, on_continue)
            case ast.For() | ast.AsyncFor():
                live = self.loop(node, reads(node.target), bound_by(node.target), after, on_break, on_continue)
                return live | reads(node.iter)
            case ast.Return() | ast.Raise():
                return reads(node) | self.after
            case ast.Break():
                return on_break
            case ast.Continue():
                return on_continue
            case ast.Try():
                return self.guarded(node, after, on_break, on_continue)
            case ast.With() | ast.AsyncWith():
                live = self.block(node.body, after, on_break, on_continue)
                for item in reversed(node.items):
                    if item.optional_vars is not None:
                        live = live - bound_by(item.optional_vars) | reads(item.optional_vars)
                    live |= reads(item.context_expr)
                return live
            case ast.Match():
                live = after
                for case in node.cases:
                    live |= self.block(case.body, after, on_break, on_continue)
                    live |= reads(case.pattern) | (reads(case.guard) if case.guard else _NONE)
                return live | reads(node.subject)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return after - {node.name} | reads(node)
            case ast.ClassDef():
                return after - {node.name} | reads(node)
            case ast.AugAssign():
                return after | reads(node)
            case ast.Assign():
                killed = frozenset().union(*(bound_by(target) for target in node.targets))
                return after - killed | reads(node)
            case ast.AnnAssign():
                return (after - bound_by(node.target) if node.value is not None else after) | reads(node)
            case ast.Delete():
                return after - frozenset().union(*(bound_by(target) for target in node.targets)) | reads(node)
            case ast.Import() | ast.ImportFrom():
                return after - {(a.asname or a.name).split(".")[0] for a in node.names}
        return after | reads(node)

    def loop(
        self, node: ast.For | ast.AsyncFor | ast.While, at_head: Names, killed: Names, after: Names, on_break: Names,
        on_continue: Names,
    ) -> Names:  # fmt: skip
        left = self.block(node.orelse, after, on_break, on_continue)
        head = left | at_head
        while True:
            body = self.block(node.body, head, after, head)
            wider = left | at_head | (body - killed)
            if wider <= head:
                break
            head |= wider
        self.found[id(node)] = Life(after | left, head, (body - killed) | at_head)
        return head

    def guarded(self, node: ast.Try, after: Names, on_break: Names, on_continue: Names) -> Names:
        before = self.always
        final = self.block(node.finalbody, after, on_break, on_continue)
        self.always |= final
        handlers = _NONE
        for handler in node.handlers:
            live = self.block(handler.body, final, on_break, on_continue)
            handlers |= live - ({handler.name} if handler.name else _NONE) | (reads(handler.type) if handler.type else _NONE)
        self.always |= handlers  # an exception may come at any statement
        live = self.block([*node.body, *node.orelse], final, on_break, on_continue)
        self.always = before
        return live | final | handlers


def reads(node: ast.AST) -> Names:
    """The names that an expression or a statement reads, also inside the functions in it."""
    return frozenset(each_read(node))


def each_read(node: ast.AST) -> Iterator[str]:
    """The same, each as often as it stands there."""
    for part in trees.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            yield part.target.id
        elif isinstance(part, ast.Nonlocal):
            yield from part.names


def bound_by(target: ast.AST) -> Names:
    """The names that a target binds (or unbinds) for certain."""
    if isinstance(target, ast.Name):
        return frozenset({target.id})
    if isinstance(target, (ast.Tuple, ast.List)):
        return frozenset().union(*map(bound_by, target.elts))
    return bound_by(target.value) if isinstance(target, ast.Starred) else _NONE


def bound_for_certain(body: Sequence[ast.stmt]) -> Names:
    """The names that statements bind whichever way they go: none in a loop, which may have no iteration."""
    found: Names = _NONE
    for node in body:
        match node:
            case ast.If():
                found |= bound_for_certain(node.body) & bound_for_certain(node.orelse)
            case ast.With() | ast.AsyncWith():
                found |= bound_for_certain(node.body)
                found |= _NONE.union(*(bound_by(item.optional_vars) for item in node.items if item.optional_vars is not None))
            case ast.Try():
                found |= bound_for_certain(node.finalbody)
            case ast.Assign():
                found |= _NONE.union(*map(bound_by, node.targets))
            case ast.AnnAssign() if node.value is not None:
                found |= bound_by(node.target)
            case ast.AugAssign():
                found |= bound_by(node.target)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found |= {node.name}
            case ast.Import() | ast.ImportFrom():
                found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return found


def _walrus_killed(live: Names, test: ast.expr) -> Names:
    """`if (n := f()):` binds n for certain where the test is nothing but that."""
    return live - {test.target.id} if isinstance(test, ast.NamedExpr) else live


def _read_by_functions(body: Iterable[ast.stmt]) -> set[str]:
    """Names that functions defined in the body read: they may be called at any time."""
    found: set[str] = set()

    todo: list[ast.AST] = list(body)
    for node in todo:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)):
            found.update(reads(node))
        else:
            todo += trees.children(node)
    return found


__all__ = ["Life", "bound_by", "bound_for_certain", "each_read", "lives", "reads"]
