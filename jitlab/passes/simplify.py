"""The simplifying passes. Each keeps every bit of the results and every source position of what it leaves out.

A pass is a pattern, which is asked of every node first, and a replacement. What it absorbs hands on its sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitlab.ir import DEVICE, ArrayType, Graph, Node, plain
from jitlab.ops.base import Elementwise, Generated, Operation
from jitlab.ops.elementwise.arithmetic import Add, Mul, Neg, RealDiv, Sub
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.concatenation import Concatenate
from jitlab.ops.layout.creation import Fill
from jitlab.ops.layout.indexing import Scatter
from jitlab.ops.layout.views import Reshape, Update, View, compose, identity_map
from jitlab.ops.leaf_operations import Constant
from jitlab.ops.library_operations import Library

from .rewriting import absorb, exactly, instead, leave_out, operation_key, rewrite, same


def remove_dead(graph: Graph) -> Graph:
    """x = exp(a); return b -> return b"""
    live = graph.without_dead()
    return graph if len(live.nodes) == len(graph.nodes) else live


#: What keeps equal operations apart: they are compiled, or placed, differently.
MARKS = ("_XlaCompile", "_XlaScope", DEVICE)


def merge_equal(graph: Graph) -> Graph:
    """exp(a) + exp(a) -> e = exp(a); e + e

    Not merged: operations with different marks, two outputs with each other, arrays that an update changes afterwards (each
    may be changed in place), and what NumPy runs.
    """
    changed = _changed_later(graph)
    outputs: set[str] = set()
    first: dict[Any, Node] = {}

    def earlier(node: Node) -> Node | None:
        """The equal node before this one; what was asked already counts as before."""
        if node.name in changed or not _is_pure(node):
            return None
        marks = None if isinstance(node.op, Constant) else tuple(node.attrs.get(k) for k in MARKS)
        equal = first.setdefault((operation_key(node.op), node.inputs, marks), node)
        if equal is node or (equal.name in outputs and node.name in outputs):
            return None
        if node.name in outputs:
            outputs.add(equal.name)  # it becomes this output
        return equal

    def start() -> None:
        first.clear()
        outputs.clear()
        outputs.update(node.name for node in graph.outputs)

    start()
    if all(earlier(node) is None for node in graph.nodes):
        return graph
    start()
    return graph.rewrite(earlier)


def fold_constants(graph: Graph) -> Graph:
    """cast(2, f32) * 3f32 -> 6f32, for numbers: as NumPy computes them"""

    def match(node: Node) -> Constant | None:
        if not isinstance(node.op, Elementwise) or not node.inputs or node.ndim:
            return None
        if not all(isinstance(source.op, Constant) for source in node.inputs):
            return None
        try:
            with np.errstate(all="ignore"):
                value = np.asarray(node.op.numpy(*(source.op.numpy() for source in node.inputs)))
        except (ArithmeticError, ValueError, TypeError):
            return None  # NumPy's error belongs to the run
        return Constant(value.dtype, (), value.tobytes()) if value.dtype == node.dtype else None

    def replace(node: Node, folded: Constant) -> Node:
        return absorb(instead(node, folded), *node.inputs)

    return rewrite(graph, match, replace)


def reduce_strength(graph: Graph) -> Graph:
    """x * 1, x / 1, x - 0, -(-x), and a cast there and back that loses nothing -> x

    Never x + 0.0: it turns -0.0 into 0.0. Nor anything of complex numbers: their products make NaN of infinities.
    """

    def match(node: Node) -> Node | None:
        kept = _unchanged_operand(node)
        return kept if kept is not None and kept.dtype == node.dtype and same(kept.shape, node.shape) else None

    return leave_out(graph, match, lambda node, kept: [source for source in node.inputs if source is not kept])


def _unchanged_operand(node: Node) -> Node | None:
    match node:
        case Node(Neg(), (Node(Neg(), (x,)),)):
            return x
        case Node(Cast(), (Node(Cast(), (x,)),)):
            return x if _is_exact(x.dtype, node.inputs[0].dtype) else None
        case Node(Mul(), (x, y)):
            return x if _is_number(y, 1) else y if _is_number(x, 1) else None
        case Node(RealDiv(), (x, y)):
            return x if _is_number(y, 1) else None
        case Node(Sub(), (x, y)):
            return x if _is_number(y, 0) else None
        case Node(Add(), (x, y)) if node.dtype.kind in "iu":
            return x if _is_number(y, 0) else y if _is_number(x, 0) else None
    return None


def reshape_by_views(graph: Graph) -> Graph:
    """reshape(reshape(x)) -> reshape(x); a reshape that only makes or drops axes of length 1 -> a view, which fuses"""

    def match(node: Node) -> tuple[Operation, Node] | None:
        if not isinstance(node.op, Reshape):
            return None
        (x,) = node.inputs
        base = x.inputs[0] if isinstance(x.op, Reshape) else x
        view = _view_for_reshape(base.type, node.shape)
        if view is not None:
            return view, base
        return (node.op, base) if base is not x else None

    return rewrite(graph, match, _over_the_base)


def _view_for_reshape(x: ArrayType, shape: tuple[int, ...]) -> View | None:
    new = [axis for axis, n in enumerate(shape) if exactly(n) != exactly(1)]
    old = [axis for axis, n in enumerate(x.shape) if exactly(n) != exactly(1)]
    if not same(tuple(shape[axis] for axis in new), tuple(x.shape[axis] for axis in old)):
        return None
    where = dict(zip(old, new, strict=True))
    return View(tuple((0, 1, where.get(axis)) for axis in range(x.ndim)), shape)


def compose_views(graph: Graph) -> Graph:
    """transpose(transpose(x)[1:]) -> one view of x"""

    def match(node: Node) -> tuple[Operation, Node] | None:
        match node:
            case Node(View() as outer, (Node(View() as inner, (base,)),)):
                return compose(outer, inner), base
        return None

    return rewrite(graph, match, _over_the_base)


def _over_the_base(node: Node, found: tuple[Operation, Node]) -> Node:
    """The found operation over the base of the node's input, which is left out."""
    op, base = found
    skipped = [source for source in node.inputs if source is not base]
    return absorb(instead(node, op, base), *skipped)


def forward_updates(graph: Graph) -> Graph:
    """b = update(a, v at [1:]); b[1:] -> v

    Not where parts beside it are read, too, as a stencil does: b lies in memory for them, so that v would be kept twice.
    """
    beside = {node.inputs[0].name for node in graph.nodes if _reads_beside(node)}

    def match(node: Node) -> Node | None:
        match node:
            case Node(View() as view, (Node(Update() as update, (_, value)) as updated,)) if (
                updated.name not in beside
                and exactly((view.map, view.shape)) == exactly((update.map, update.shape))
                and same(value.shape, view.shape)
                and _reaches_each_once(update)
            ):
                return value
        return None

    return leave_out(graph, match, lambda node, value: node.inputs)


def _reads_beside(node: Node) -> bool:
    """Is this a part of an updated array, as large as the part that was updated, some elements away from it?"""
    match node:
        case Node(View() as view, (Node(Update() as update),)) if update.shape and same(view.shape, update.shape):
            steps, others = ([(step, axis) for _, step, axis in entries] for entries in (view.map, update.map))
            return bool(exactly(steps) == exactly(others) and exactly(view.map) != exactly(update.map))
    return False


def read_whole_updates(graph: Graph) -> Graph:
    """b = zeros(n); b[::-1] = v -> b = v[::-1], a view, when b is not changed later

    The gradient of each transpose, flip and new axis is such an update. An output stays an array of its own.
    """
    changed = _changed_later(graph)
    outputs = {node.name for node in graph.outputs}

    def match(node: Node) -> tuple[Operation, Node] | None:
        if not isinstance(node.op, Update) or node.name in changed or node.name in outputs:
            return None
        base, value = node.inputs
        view = _inverse(node.op, base.shape) if same(value.shape, node.op.shape) else None
        return None if view is None else (view, value)

    return rewrite(graph, match, lambda node, found: instead(node, found[0], found[1]))


def _changed_later(graph: Graph) -> set[str]:
    """The names of arrays that an update, a loop or a branch may change in place."""
    names = {node.inputs[0].name for node in graph.nodes if isinstance(node.op, (Update, Scatter)) and node.inputs[0].ndim}
    for node in graph.nodes:
        if hasattr(node.op, "graphs"):
            names.update(source.name for source in node.inputs if source.ndim)
    return names


def _inverse(update: Update, shape: tuple[int, ...]) -> View | None:
    """The view of the value that the updated base is, when the update reaches all of the base."""
    entries: dict[int, tuple[int, int, int | None]] = {}
    for axis, ((offset, step, value_axis), n) in enumerate(zip(update.map, shape, strict=True)):
        if value_axis is None:
            if not same(n, 1):
                return None
            continue
        flipped = same(step, -1) and same(offset, n - 1)
        if value_axis in entries or not same(update.shape[value_axis], n) or not (flipped or same((offset, step), (0, 1))):
            return None
        entries[value_axis] = (offset, step, axis)
    if any(axis not in entries and not same(n, 1) for axis, n in enumerate(update.shape)):
        return None
    return View(tuple(entries.get(axis, (0, 1, None)) for axis in range(len(update.shape))), shape)


def drop_what_does_nothing(graph: Graph) -> Graph:
    """x[:], x.reshape(x.shape), a cast to its own dtype, a part of no elements updated -> x; b[:] = computed -> computed"""

    def match(node: Node) -> Node | None:
        match node:
            case Node(View(entries), (x,)) if same(entries, identity_map(x.ndim)) and same(x.shape, node.shape):
                return x
            case Node(Reshape(), (x,)) if same(x.shape, node.shape):
                return x
            case Node(Cast(dtype), (x,)) if dtype == x.dtype:
                return x
            case Node(Concatenate(), (x,)):
                return x
            case Node(Update(_, shape), (base, _)) if 0 in plain(shape):
                return base
            case Node(Update(entries, _), (base, value)) if same(entries, identity_map(base.ndim)):
                # a value that is memory of its own already; a number or a view would have to be copied when it is changed
                fresh = not isinstance(value.op, (View, Reshape, Constant, Generated)) and not value.op.is_parameter
                return value if fresh and base.ndim and same(value.shape, base.shape) else None
        return None

    return leave_out(graph, match, lambda node, kept: [])


def _is_pure(node: Node) -> bool:
    op = node.op
    if op.has_effects or op.is_parameter:
        return False
    if isinstance(op, Item):
        return isinstance(node.inputs[0].op, Library)
    return op.why_not_compiled(*(source.type for source in node.inputs)) is None


def _is_number(node: Node, value: int) -> bool:
    """Is it this number, or an array full of it: not complex, and 0.0 rather than -0.0?"""
    match node:
        case Node(Constant() as c, _) | Node(Fill(), (Node(Constant() as c, _),)) if not c.shape and c.dtype.kind in "iuf":
            number = c.value[()]
            return bool(number == value and not np.signbit(number))
    return False


def _is_exact(narrow: np.dtype, wide: np.dtype) -> bool:
    """Does each value of one dtype have its own in the other, and come back as itself?"""
    a, b = narrow.kind, wide.kind
    if a == "b" or narrow == wide:
        return True
    if a in "iu" and b in "f":
        return narrow.itemsize * 8 - (a == "i") <= np.finfo(wide).nmant + 1
    return a in "iuf" and b in "iuf" and bool(np.can_cast(narrow, wide, "safe"))


def _reaches_each_once(update: Update) -> bool:
    """False when an axis of the value is not one of the base: several elements are then written to one place."""
    used = {axis for _, _, axis in update.map}
    return all(axis in used or int(n) == 1 for axis, n in enumerate(update.shape))
