"""A fix as it is written at the call: the name of a parameter means nothing there, what stands in its place does. And an option
as it is written where the function is made: in its decorator, or in the call of `jl.function`."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType

from jitlab.ir import Source
from jitlab.support import trees

from .definitions import Site

#: A call that is longer is not written out.
MOST_LETTERS = 200


def at_call(
    lines: Sequence[str], function: str, code: CodeType | None, site: Site | None, *, is_method: bool
) -> tuple[str, str]:
    """Assignments to parameters ("t = np.asarray(t, np.float64)") as the caller writes them, and the form that they have then.

    "line" is the assignments where the call passes variables of those names, "call" the call with its arguments changed;
    "words" say it where the call cannot be read, or does not show the argument.
    """
    call = _call(function, site) if site is not None else None
    given = _arguments(call, code, is_method) if call is not None and code is not None else {}
    changes: list[tuple[str, ast.Assign]] = []
    for line in lines:
        match trees.parse(line).body:
            case [ast.Assign(targets=[target]) as assign]:
                root = next(node.id for node in ast.walk(target) if isinstance(node, ast.Name))
                changes.append((root, assign))
    found = [(given.get(root), root, assign) for root, assign in changes]
    if all(isinstance(node, ast.Name) and node.id == root for node, root, _ in found):
        return "; ".join(lines), "line"
    if all(isinstance(node, ast.Name) for node, _, _ in found) and not _are_names(changes):
        names = {root: node for node, root, _ in found if node is not None}
        return "; ".join(ast.unparse(_Renamed(names).visit(assign)) for _, assign in changes), "line"
    if call is not None and _are_names(changes) and all(node is not None for node, _, _ in found):
        new = {id(node): _Renamed({root: node}).visit(assign.value) for node, root, assign in found if node is not None}
        args = [new.get(id(node), node) for node in call.args]
        keywords = [ast.keyword(word.arg, new.get(id(word.value), word.value)) for word in call.keywords]
        text = ast.unparse(ast.Call(call.func, args, keywords))
        if len(text) <= MOST_LETTERS and "\n" not in text:
            return text, "call"
    return _words(changes, site), "words"


def with_option(made: Source | None, option: str) -> str:
    """The decorator or the call that made a function, with "name=value" as an option more; "" where it cannot be read.

    "@jl.function(reduce_retracing=True)", "jl.function(jl.grad(loss), reduce_retracing=True)".
    """
    text = "".join(linecache.getlines(made.file)) if made is not None else ""
    name, _, value = option.partition("=")
    for node, is_decorator in _makers(text):
        if made is None or (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) != _ends(made):
            continue
        keyword = ast.keyword(name, trees.parse_expression(value))
        code = ast.unparse(_called_with(node, keyword))
        return f"@{code}" if is_decorator else code
    return ""


def _ends(source: Source) -> tuple[int, int, int, int]:
    return source.line, source.column, source.end_line, source.end_column


def _called_with(node: ast.expr, keyword: ast.keyword) -> ast.expr:
    """`jl.function`, `jl.function(f)`, `jl.function(autograph=False)(f)` with one more option."""
    match node:
        case ast.Call(func=ast.Call(), args=args, keywords=keywords):
            return ast.Call(_called_with(node.func, keyword), args, keywords)
        case ast.Call(func=func, args=args, keywords=keywords):
            return ast.Call(func, args, [*(word for word in keywords if word.arg != keyword.arg), keyword])
    return ast.Call(node, [], [keyword])


@lru_cache(maxsize=16)
def _makers(text: str) -> tuple[tuple[ast.expr, bool], ...]:
    """What may have made a function, and whether it is a decorator."""
    try:
        nodes = list(ast.walk(trees.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    decorators = [decorator for node in nodes for decorator in getattr(node, "decorator_list", ())]
    known = {id(decorator) for decorator in decorators}
    calls = [(node, False) for node in nodes if isinstance(node, ast.Call) and id(node) not in known]
    return (*((decorator, True) for decorator in decorators), *calls)


def _are_names(changes: Sequence[tuple[str, ast.Assign]]) -> bool:
    return all(isinstance(assign.targets[0], ast.Name) for _, assign in changes)


def _words(changes: Sequence[tuple[str, ast.Assign]], site: Site | None) -> str:
    """ "pass `np.asarray(…, np.float64)` for `t` at the call in In [4], line 8"."""
    said = []
    for _, assign in changes:
        path = ast.unparse(assign.targets[0])
        said.append(f"`{ast.unparse(_Left(path).visit(assign.value))}` for `{path}`")
    where = f" in {site}" if site is not None and site.file else ""
    return f"pass {' and '.join(said)} at the call{where}"


class _Left(ast.NodeTransformer):
    """A path of an argument, left open."""

    def __init__(self, path: str) -> None:
        self.path = path

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Name, ast.Subscript)) and ast.unparse(node) == self.path:
            return ast.Name("…", ast.Load())
        return super().generic_visit(node)


class _Renamed(ast.NodeTransformer):
    """Expressions in the place of names."""

    def __init__(self, names: dict[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802
        return self.names.get(node.id, node)


def _call(function: str, site: Site) -> ast.Call | None:
    """The one call of this function in that line; None where there is none, or more."""
    text = "".join(linecache.getlines(site.file)) if site.file else ""
    name = function.rsplit(".", 1)[-1]
    found = [
        call for call in _calls(text)
        if call.lineno <= site.line <= (call.end_lineno or call.lineno)
        and (call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")) == name
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=16)
def _calls(text: str) -> tuple[ast.Call, ...]:
    try:
        return tuple(node for node in ast.walk(trees.parse(text)) if isinstance(node, ast.Call))
    except (SyntaxError, ValueError, RecursionError):
        return ()


def _arguments(call: ast.Call, code: CodeType, is_method: bool) -> dict[str, ast.expr]:
    """What the call passes, by parameter; {} where arguments are unpacked into it."""
    if any(isinstance(node, ast.Starred) for node in call.args) or any(word.arg is None for word in call.keywords):
        return {}
    names = code.co_varnames[: code.co_argcount][1 if is_method else 0 :]
    return {**dict(zip(names, call.args, strict=False)), **{word.arg: word.value for word in call.keywords if word.arg}}
