"""The gradient, as operations appended to the graph that computes the values (reverse mode).

Which scope a new operation gets is the contract's (semantics §1.9): the gradient of a marked operation goes where the
operation went, or into a scope of its own; what belongs to no operation (the first cotangent, the sums of several) gets what
the calling scope sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from jitlab.errors import NoGradientError
from jitlab.ir import Graph, Node, Sources, plain, positions
from jitlab.ops.arithmetic import Real, add
from jitlab.ops.build import apply, cast, constant
from jitlab.ops.creation import fill, zeros
from jitlab.ops.host import SEVERAL, Item
from jitlab.ops.reductions import Sum
from jitlab.ops.views import broadcast_to, reshape

Cotangents = dict[Node, list[Node]]  # a value -> what flows back to it from each of its uses


def gradients(
    graph: Graph,
    ys: Sequence[Node],
    xs: Sequence[Node],
    grad_ys: Sequence[Node | None] | None = None,
    name: str = "gradients",
    *,
    unconnected: str | None = None,
) -> list[Node | None]:
    """Append the derivatives of the sum of `ys` with respect to each of `xs`; `grad_ys` weigh the ys.

    None stands for an x that no y depends on, or that is no float or complex number; with `unconnected="zero"`, zeros do.
    """
    cotangents: Cotangents = {}
    with graph.building():
        scope = _unique_scope(graph, name)
        before = list(graph.nodes)
        depends = _dependents(before, xs)
        for y, grad_y in zip(ys, grad_ys or [None] * len(ys), strict=True):
            if y.dtype.kind in "fc":
                with _at(y.sources | graph.position()):
                    cotangents.setdefault(y, []).append(_first_cotangent(y, grad_y))
        totals: dict[Node, Node] = {}
        of_results: dict[Node, Cotangents] = {}  # a call with several results -> the cotangents of its Items
        for node in (*reversed(before), *graph.parameters):
            if node in of_results:
                _pull_back(graph, node, _gathered(node, of_results.pop(node)), scope, depends, cotangents)
            elif node in cotangents and node in depends:
                totals[node] = _total(node, cotangents.pop(node))
                if isinstance(node.op, Item):
                    of_results.setdefault(node.inputs[0], {})[node] = [totals[node]]
                elif not node.op.is_parameter:
                    _pull_back(graph, node, totals[node], scope, depends, cotangents)
        return [_result(x, totals.get(x), unconnected) for x in xs]


def sum_to_shape(g: Node, shape: Sequence[int]) -> Node:
    """The cotangent of what was broadcast from `shape`: summed over the axes that repeated."""
    extra = g.ndim - len(shape)
    repeated = [axis + extra for axis, n in enumerate(shape) if int(n) == 1 and int(g.shape[axis + extra]) != 1]
    axes = (*range(extra), *repeated)
    if axes:
        g = apply(Sum(axes), g)
    return reshape(g, tuple(shape))


def _dependents(nodes: Sequence[Node], xs: Sequence[Node]) -> set[Node]:
    """The xs and the float and complex values computed from them, and the calls with several results that read such values."""
    depends = {x for x in xs if x.dtype.kind in "fc"}
    for node in nodes:
        if (node.dtype.kind in "fc" or node.dtype == SEVERAL) and not depends.isdisjoint(node.inputs):
            depends.add(node)
    return depends


def _first_cotangent(y: Node, grad_y: Node | None) -> Node:
    if grad_y is None:
        return fill(y.shape, 1, y.dtype) if y.ndim else constant(1, y.dtype)
    return broadcast_to(cast(grad_y, y.dtype), y.shape)


def _total(node: Node, parts: Sequence[Node]) -> Node:
    """The sum of the cotangents of a value's uses, the last use first."""
    sources = node.sources or frozenset().union(*(part.sources for part in parts))
    with _at(sources):
        total = parts[0]
        for part in parts[1:]:
            total = add(total, part)
    return total


def _gathered(call: Node, of_items: Cotangents) -> tuple[Node | None, ...]:
    """The cotangent of each result of a call, None where none flows."""
    parts: dict[int, list[Node]] = {}
    for item, (g,) in of_items.items():
        parts.setdefault(item.op.index, []).append(g)
    types = call.op.types if hasattr(call.op, "types") else call.op.results(*(x.type for x in call.inputs))
    return tuple(_total(call, parts[k]) if k in parts else None for k in range(len(types)))


def _pull_back(
    graph: Graph, node: Node, g: Node | tuple[Node | None, ...], scope: str, depends: set[Node], cotangents: Cotangents
) -> None:
    """Give each input of a node its share of the node's cotangent (of those of its results, for a call with several)."""
    with _in_scope_of(graph, node, scope), _at(node.sources):
        if not node.op.differentiable:
            raise NoGradientError(
                f"{node.op.name} has no gradient.",
                where="; ".join(f"{source.file}, line {source.line}" for source in sorted(node.sources)),
                why="the value to differentiate depends on it",
                hint="compute it from operations that have one, or take the gradient of something before it",
            )
        shares = node.op.gradient(g, node, *node.inputs)
        for source, share in zip(node.inputs, shares, strict=True):
            if share is not None and source in depends:
                cotangents.setdefault(source, []).append(_like(share, source))


def _like(share: Node, source: Node) -> Node:
    """A cotangent in the shape and dtype of its value."""
    if plain(share.shape) != plain(source.shape):
        if share.type.size < source.type.size:
            share = broadcast_to(share, source.shape)
        else:
            share = sum_to_shape(share, source.shape)
    if share.dtype.kind == "c" and source.dtype.kind == "f":
        share = apply(Real(), share)
    return cast(share, source.dtype)


def _result(x: Node, total: Node | None, unconnected: str | None) -> Node | None:
    if total is None and unconnected == "zero":
        return zeros(x.shape, x.dtype if x.dtype.kind in "fc" else np.dtype("f8"))
    return total


def _unique_scope(graph: Graph, name: str) -> str:
    """What separate gradient scopes are called after: gradients, gradients_1, ... (semantics §1.9)."""
    stem = (name or "gradients").rstrip("/").replace("/", "_")
    count = graph.gradient_names.get(stem, 0)
    graph.gradient_names[stem] = count + 1
    return f"{stem}_{count}" if count else stem


@contextmanager
def _in_scope_of(graph: Graph, node: Node, gradient_scope: str) -> Iterator[None]:
    """Attributes for the operations of the node's gradient, when the node is marked with all three."""
    attrs = node.attrs
    if not attrs.get("_XlaCompile") or not {"_XlaScope", "_XlaSeparateCompiledGradients"} <= attrs.keys():
        yield
        return
    scope = attrs["_XlaScope"]
    if attrs["_XlaSeparateCompiledGradients"]:
        scope = f"{scope}_grad_{gradient_scope}"
    with graph.with_attrs({"_XlaCompile": True, "_XlaScope": scope}):
        yield


@contextmanager
def _at(sources: Sources) -> Iterator[None]:
    with positions(lambda: sources):
        yield
