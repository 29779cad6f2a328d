"""jit_scope: marks on the operations made inside a block (semantics §1). What becomes of a mark is the clusterer's business."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jitlab.errors import EagerScopeError
from jitlab.ir import NodeDef, Scope, current_graph, outside

CompileOps = bool | Callable[[NodeDef], Any]


@contextmanager
def jit_scope(
    compile_ops: CompileOps = True, separate_compiled_gradients: bool = False, *, strict: bool = False
) -> Iterator[None]:
    """Compile, or with False never compile, the operations made inside.

    `compile_ops` may be a function of an operation's `NodeDef`, asked once for each. Gradients of what is made inside get a
    scope of their own with `separate_compiled_gradients`. `strict`: in this graph nothing compiles that is not marked.
    """
    graph = current_graph() or outside.graph
    if graph is None:
        raise EagerScopeError(
            "xla.experimental.jit_scope is not supported when eager execution is enabled. Try use it inside tf.function.",
            why="outside a captured function NumPy has already run each operation when the next line starts",
            hint="put the block into a function under @jl.function or @jl.jit, or start the cell with %%jit",
        )
    wanted = compile_ops if callable(compile_ops) else _as_bool(compile_ops)
    if graph.scopes:
        name = graph.scopes[-1].name
    else:
        name = f"jit_scope_{graph.scope_count}"
        graph.scope_count += 1
    graph.marked_only |= bool(strict)
    graph.scopes.append(Scope(name, wanted, bool(separate_compiled_gradients)))
    try:
        yield
    finally:
        graph.scopes.pop()


def _as_bool(value: Any) -> bool:
    try:
        return bool(operator.index(value)) if not hasattr(value, "dtype") else bool(value)
    except TypeError:
        raise TypeError(
            f"jit_scope(compile_ops={value!r}): {type(value).__name__!r} object cannot be interpreted as an integer;"
            " pass True, False, or a function of an operation's node_def"
        ) from None
