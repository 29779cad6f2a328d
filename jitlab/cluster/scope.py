"""jit_scope: marks on the operations made inside a block. What becomes of a mark is the clusterer's business."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jitlab.errors import EagerScopeError, OptionError
from jitlab.ir import DECISIONS, Decision, Graph, NodeDef, Scope, current_graph, deciding, outside
from jitlab.messages import by_contract
from jitlab.support.direct_calls import in_direct_call

CompileOps = bool | Callable[[NodeDef], Any]


@contextmanager
def jit_scope(
    compile_ops: CompileOps = True, separate_compiled_gradients: bool = False, *, strict: bool = False, cut: Any = (),
    fuse: Any = (),
) -> Iterator[None]:  # fmt: skip
    """A block whose operations are compiled, are never compiled, or are fused otherwise than the compiler would.

    `cut` and `fuse` mark nothing: they decide of the edges between operations made inside, as `f.whatif` does. What is cut goes
    through memory; what is fused shares a kernel, where that can be.

    Args:
        compile_ops: True: compile what is made inside. False: never. A function of an operation's `NodeDef` is asked for each.
        separate_compiled_gradients: True: gradients of what is made inside get a scope of their own.
        strict: True: in this graph nothing compiles that is not marked.
        cut: a pair of operations' kinds or names, `("Exp", "Sum")`, or a list of pairs.
        fuse: a pair of operations' kinds or names, or a list of pairs.

    Returns:
        A context manager.

    Raises:
        EagerScopeError: nothing is captured here, so that NumPy runs each operation at once.
        OptionError: `cut` or `fuse` is no pair and no list of pairs, or stands together with marks.
        TypeError: `compile_ops` is neither a bool nor a function.

    Example:
        >>> @jl.function
        ... def f(x):
        ...     with jl.jit_scope(cut=("Exp", "Sum")):
        ...         return np.exp(x).sum()
        >>> len(jl.explain(f, np.ones(8)).kernels)
        2
    """
    graph = current_graph() or outside.graph
    if graph is None and (outside.is_python or outside.unmarked or in_direct_call()):
        yield
        return
    if graph is None:
        raise EagerScopeError(
            by_contract(
                "xla.experimental.jit_scope is not supported when eager execution is enabled. Try use it inside tf.function."
            ),
            why="outside a traced function NumPy has already run each operation when the next line starts",
            hint="put the block into a function under @jl.function or @jl.jit, or start the cell with %%jit",
        )
    if cut or fuse:
        if compile_ops is not True or separate_compiled_gradients or strict:
            raise OptionError(
                "jit_scope was given cut= or fuse= together with marks", why="those two mark nothing",
                hint="two scopes, one inside the other: with jl.jit_scope(strict=True), jl.jit_scope(cut=...):",
            )  # fmt: skip
        at = next(iter(sorted(graph.position())), None)
        with deciding(Decision(_pairs("cut", cut), _pairs("fuse", fuse), at)):
            yield
        return
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


def _only_decides(*marks: Any, cut: Any = (), fuse: Any = (), **others: Any) -> bool:
    """A scope that is given nothing else has no effect on the clusters: it counts nothing and marks nothing."""
    return not marks and not others and bool(cut or fuse)


jit_scope.__jitlab_no_effect__ = _only_decides  # type: ignore[attr-defined]


def _pairs(option: str, value: Any) -> tuple[tuple[str, str], ...]:
    listed = [value] if isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[0], str) else value
    try:
        pairs = tuple((a, b) for a, b in listed)
    except (TypeError, ValueError):
        pairs = ((None, None),)
    if not all(isinstance(name, str) for pair in pairs for name in pair):
        raise OptionError(f'jit_scope({option}={value!r}) is no pair and no list of pairs, as in {option}=("Exp", "Sum")')
    return pairs


def _as_bool(value: Any) -> bool:
    try:
        return bool(operator.index(value)) if not hasattr(value, "dtype") else bool(value)
    except TypeError:
        raise TypeError(
            f"jit_scope(compile_ops={value!r}): {type(value).__name__!r} object cannot be interpreted as an integer;"
            " pass True, False, or a function of an operation's node_def"
        ) from None


def without_scopes(graph: Graph) -> Graph:
    """The same graph with nothing marked: the clusterer decides alone."""
    plain = graph.rewrite(lambda node: None)
    plain.marked_only = False
    for node in plain.nodes:
        node.attrs = {name: value for name, value in node.attrs.items() if not name.startswith("_Xla") and name != DECISIONS}
    return plain
