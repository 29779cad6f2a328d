"""Calls of functions of the user's in a statement that Python runs, so that those compile by themselves.

before: total += solve(a, b)
after:  total += __jl_helper__(solve)(a, b)     # solve, or what runs it compiled as far as it goes
"""

from __future__ import annotations

import ast
import copy
from typing import Any

from .splitting import FRAME_CALLS

#: The name of what gives a statement the function to call.
HELPER = "__jl_helper__"


def with_helpers(node: ast.stmt) -> ast.stmt:
    """The statement, whose calls ask what to call; those that are made later, of functions in it, do not."""
    return _Asking().visit(copy.deepcopy(node))  # type: ignore[no-any-return]


class _Asking(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = node.func
        looks = isinstance(called, ast.Name) and called.id in FRAME_CALLS
        is_function = isinstance(called, (ast.Name, ast.Attribute)) and called.lineno == called.end_lineno
        if is_function and not looks:  # of a method on another line than its object Python says that line
            ask = ast.copy_location(ast.Name(HELPER, ast.Load()), called)
            node.func = ast.copy_location(ast.Call(ask, [called], []), called)
        return node

    def _later(self, node: Any) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_GeneratorExp = _later


__all__ = ["HELPER", "with_helpers"]
