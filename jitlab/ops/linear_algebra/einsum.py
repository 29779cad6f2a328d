"""`np.einsum`: read once, at capture, and made of diagonals, sums, products and MatMuls, which compile and fuse.

Operands are contracted two at a time, in the order that `np.einsum_path` finds for their shapes; each contraction is a MatMul
over the labels that both have and nobody else wants, or where that would be a product of vectors in a stack, a sum of products.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitlab.errors import Signal
from jitlab.ir import ArrayType, Node, is_one, plain, same_extent
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, cast
from jitlab.ops.layout.views import View, expand_dims, reshape
from jitlab.ops.numpy_api.arguments import as_dtype, node, refuse
from jitlab.ops.reducing import axis_reductions as re
from jitlab.ops.registry import rule
from jitlab.support.lazy_dataclass import dataclass

from . import matrix_products
from .tensor_products import moved, sum_of_products

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
Labels = tuple[int, ...]  # a letter's code; of the axes that an ellipsis stands for -1 (the last), -2, ...


class Malformed(Signal):
    """NumPy is asked what is wrong."""


@dataclass(frozen=True)
class Term:
    """An operand, one label an axis, each once."""

    value: Node
    labels: Labels


@rule(np.einsum)
def einsum(
    *operands: Any, out: Any = None, optimize: Any = False, dtype: Any = None, order: Any = "K", casting: Any = "safe"
) -> Node:
    refuse(out=out, order=order)
    if any(isinstance(x, Node) for x in operands[:1]):
        text, arrays = _from_lists(operands)
    elif operands and isinstance(operands[0], str):
        text, arrays = operands[0], [node(x) for x in operands[1:]]
    else:
        text, arrays = _from_lists(operands)
    wanted = np.result_type(*(x.dtype for x in arrays)) if arrays and dtype is None else as_dtype(dtype)
    try:
        inputs, result = read(text, [x.ndim for x in arrays])
        if not all(np.can_cast(x.dtype, wanted, casting) for x in arrays):
            raise Malformed
        sizes = _sizes(inputs, [x.shape for x in arrays])
    except Malformed:
        examples = [np.broadcast_to(np.ones((), x.dtype), plain(x.shape)) for x in arrays]
        np.einsum(text, *examples, **({} if dtype is None else {"dtype": wanted, "casting": casting}))
        raise Unsupported("subscripts", text=repr(text)) from None
    terms = [_distinct(cast(x, wanted), labels, sizes) for x, labels in zip(arrays, inputs, strict=True)]
    for picked in _path(terms, result, optimize):
        chosen = [terms.pop(k) for k in sorted(picked, reverse=True)][::-1]
        kept = {label for term in terms for label in term.labels} | set(result)
        term = _summed(chosen[0], kept.union(*(t.labels for t in chosen[1:])))
        for k, other in enumerate(chosen[1:], 2):
            still = kept.union(*(t.labels for t in chosen[k:]))
            term = contract(term, _summed(other, still | set(term.labels)), still)
        terms.append(_summed(term, kept))
    (term,) = terms
    return moved(term.value, [term.labels.index(label) for label in result])


@rule(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: Any = False) -> Any:
    """What NumPy says: shapes decide alone, so it is known while a program is captured."""
    refuse(einsum_call=einsum_call or None)
    examples = [np.broadcast_to(np.ones((), x.dtype), plain(x.shape)) if isinstance(x, Node) else x for x in operands]
    return np.einsum_path(*examples, optimize=optimize)


def read(text: str, ndims: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand's axes and of the result's. Raises Malformed."""
    inputs, arrow, output = text.replace(" ", "").partition("->")
    parts = inputs.split(",")
    if len(parts) != len(ndims):
        raise Malformed
    labels = [_labels(part, ndim) for part, ndim in zip(parts, ndims, strict=True)]
    hidden = min((label for part in labels for label in part if label < 0), default=0)
    ellipsis = tuple(range(hidden, 0))
    count = Counter(label for part in labels for label in part)
    if not arrow:
        return labels, (*ellipsis, *sorted(label for label, times in count.items() if times == 1 and label > 0))
    if "..." not in output and ellipsis:
        raise Malformed
    result = _labels(output, len(output.replace("...", "")) + len(ellipsis))
    if len(set(result)) < len(result) or any(label > 0 and label not in count for label in result):
        raise Malformed
    return labels, result


def _labels(part: str, ndim: int) -> Labels:
    before, dots, after = part.partition("...")
    if not set(before + after) <= set(LETTERS):
        raise Malformed
    hidden = ndim - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        raise Malformed
    return (*map(ord, before), *range(-hidden, 0), *map(ord, after))


def _from_lists(operands: Sequence[Any]) -> tuple[str, list[Node]]:
    """The form `einsum(a, [0, 1], b, [1, 2], [0, 2])` as text."""
    count = len(operands) // 2
    arrays = [node(x) for x in operands[0 : 2 * count : 2]]
    try:
        texts = ["".join("..." if n is Ellipsis else LETTERS[n] for n in numbers) for numbers in operands[1 : 2 * count : 2]]
        output = ["".join("..." if n is Ellipsis else LETTERS[n] for n in operands[-1])] if len(operands) % 2 else []
    except (IndexError, TypeError) as error:
        raise Unsupported("subscript_lists") from error
    return "->".join([",".join(texts), *output]), arrays


def _sizes(inputs: Sequence[Labels], shapes: Sequence[Sequence[int]]) -> dict[int, int]:
    """The extent of each label: extents of 1 broadcast."""
    sizes: dict[int, int] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        mine = dict(zip(labels, shape, strict=True))
        for label, n in zip(labels, shape, strict=True):
            if not same_extent(n, mine[label]):
                raise Malformed
            known = sizes.setdefault(label, n)
            if is_one(known):
                sizes[label] = n
            elif not is_one(n) and not same_extent(known, n):
                raise Malformed
            elif not is_one(n) and not hasattr(known, "expr"):
                sizes[label] = n  # a literal met a symbol: the symbol is the more general
    return sizes


def _distinct(x: Node, labels: Labels, sizes: dict[int, int]) -> Term:
    """The operand with an axis for each of its labels: diagonals where one is repeated, broadcast axes left out."""
    view = diagonal_of_labels(x.type, labels, sizes)
    return Term(x if view is None else apply(view, x), tuple(_own(x.type, labels, sizes)))


def _own(x: ArrayType, labels: Labels, sizes: dict[int, int]) -> list[int]:
    """The labels of an operand along which it does not broadcast."""
    found = dict.fromkeys(label for label, n in zip(labels, x.shape, strict=True) if not is_one(n) or is_one(sizes[label]))
    return list(found)


def diagonal_of_labels(x: ArrayType, labels: Labels, sizes: dict[int, int]) -> View | None:
    """The view that `_distinct` takes; None for all of x."""
    own = _own(x, labels, sizes)
    if own == list(labels):
        return None
    entries: list[tuple[int, int, int | None]] = []
    for label, n in zip(labels, x.shape, strict=True):
        entries.append((0, 1, None) if is_one(n) and not is_one(sizes[label]) else (0, 1, own.index(label)))
    return View(tuple(entries), tuple(sizes[label] for label in own))


def _path(terms: Sequence[Term], result: Labels, optimize: Any) -> Iterable[tuple[int, ...]]:
    """Which operands are contracted next, as positions among those that are left."""
    if len(terms) < 3:
        return [tuple(range(len(terms)))]
    names = dict(zip({label: None for term in terms for label in term.labels}, LETTERS, strict=False))
    if any(label not in names for term in terms for label in term.labels):
        return [tuple(range(len(terms)))]
    texts = ("".join(names[label] for label in labels) for labels in (*(term.labels for term in terms), result))
    *inputs, output = texts
    examples = [np.broadcast_to(np.ones(()), plain(term.value.shape)) for term in terms]
    way = "greedy" if optimize in (False, True) else optimize
    path, _ = np.einsum_path(f"{','.join(inputs)}->{output}", *examples, optimize=way)
    return [tuple(step) for step in path[1:]]


def _summed(term: Term, kept: set[int]) -> Term:
    """The term without the labels that nobody wants."""
    gone = tuple(axis for axis, label in enumerate(term.labels) if label not in kept)
    if not gone:
        return term
    total = cast(re.reduce(re.Sum, term.value, gone), term.value.dtype)
    return Term(total, tuple(label for label in term.labels if label in kept))


def contract(x: Term, y: Term, kept: set[int]) -> Term:
    """The product of two terms, summed over the labels of both that are not kept."""
    shared = [label for label in x.labels if label in y.labels]
    batch, inner = [n for n in shared if n in kept], [n for n in shared if n not in kept]
    left, right = ([n for n in term.labels if n not in shared] for term in (x, y))
    if not inner or (batch and not (left and right)):
        labels = (*batch, *left, *right)
        value = sum_of_products(_aligned(x, [*labels, *inner]), _aligned(y, [*labels, *inner]), len(inner))
        return Term(value, labels)
    a, b = moved(x.value, _order(x, [*batch, *left, *inner])), moved(y.value, _order(y, [*batch, *inner, *right]))
    sizes = {label: n for term in (x, y) for label, n in zip(term.labels, term.value.shape, strict=True)}
    groups = [[sizes[label] for label in group] for group in (batch, left, inner, right)]
    stack, rows, summed, columns = ([math.prod(group)] if group else [] for group in groups)
    value = matrix_products.matmul(reshape(a, (*stack, *rows, *summed)), reshape(b, (*stack, *summed, *columns)))
    return Term(reshape(value, (*groups[0], *groups[1], *groups[3])), (*batch, *left, *right))


def _aligned(term: Term, labels: Sequence[int]) -> Node:
    """The term's value with an axis for each label, of length 1 where it has none."""
    mine = [label for label in labels if label in term.labels]
    value = moved(term.value, _order(term, mine))
    return expand_dims(value, tuple(axis for axis, label in enumerate(labels) if label not in term.labels))


def _order(term: Term, labels: Sequence[int]) -> list[int]:
    return [term.labels.index(label) for label in labels]


def einsum_view(x: ArrayType, subscripts: Any, optimize: Any = False, **options: Any) -> list[View] | None:
    """The view of x that `np.einsum(subscripts, x)` is when it sums nothing and is not told to be a copy; else None."""
    if options or not isinstance(subscripts, str):
        return None
    try:
        (labels,), result = read(subscripts, [x.ndim])
        sizes = _sizes([labels], [x.shape])
    except Malformed:
        return None
    if set(labels) != set(result):
        return None
    entries = tuple((0, 1, result.index(label)) for label in labels)
    return [View(entries, tuple(sizes[label] for label in result))]
