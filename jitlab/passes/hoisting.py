"""Products that a loop takes row by row become one product of matrices before the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jitlab.ir import Extent, Graph, Moving, Node, Poly, poly
from jitlab.ops.build_nodes import apply
from jitlab.ops.control_flow import Loop
from jitlab.ops.layout.views import AxisMap, View, identity_map
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.linear_algebra.matrix_products import MatMul
from jitlab.support.lazy_dataclass import dataclass

from .rewriting import instead

#: Multiplications from which on a product of matrices is worth its memory.
WORTH = 1 << 16

#: A product of whole columns may do so many times the work of the parts that the loop takes.
MORE = 4


def hoist_products(graph: Graph) -> Graph:
    """for i: out[i] = a[i] @ b  ->  c = a @ b; for i: out[i] = c[i]   where the loop changes neither a nor b"""
    values = graph.symbol_values()
    found = {node.name: _Products(node, values) for node in graph.nodes if isinstance(node.op, Loop)}
    if not any(products.list for products in found.values()):
        return graph

    def rule(node: Node) -> Node | None:
        products = found.get(node.name)
        return products.hoisted(node) if products is not None and products.list else None

    return graph.rewrite(rule)


@dataclass(frozen=True)
class _Operand:
    """A view of an array that the loop only reads. `k`: the base axis that is summed, `moving`: the one where the loop's
    number says which row is read, `free`: the one that is left in the result."""

    number: int  # of the loop's input
    map: AxisMap
    k: int
    moving: int | None = None
    free: int | None = None


@dataclass(frozen=True)
class _Product:
    node: Node
    left: _Operand
    right: _Operand
    start: int
    step: int
    sample: int  # of the loop's symbol


class _Products:
    def __init__(self, loop: Node, values: Mapping[str, int]) -> None:
        self.loop, self.values = loop, values
        op = loop.op
        self.list: list[_Product] = []
        if op.count is None or op.test is not None or not set(poly(op.count).symbols) <= set(values) or int(op.count) < 1:
            return
        self.number = {p: k for k, p in enumerate(op.body.parameters) if k >= len(op.types)}
        for node in op.body.nodes:
            if isinstance(node.op, MatMul) and node.dtype in (np.dtype("f4"), np.dtype("f8")):
                product = self._product(node)
                if product is not None:
                    self.list.append(product)

    def _product(self, node: Node) -> _Product | None:
        a, b = node.inputs
        left = self._operand(a, a.ndim - 1)
        right = self._operand(b, max(b.ndim - 2, 0))
        if left is None or right is None or (left.moving is None) == (right.moving is None):
            return None
        mover, other = (left, right) if left.moving is not None else (right, left)
        if mover.free is not None:
            return None
        assert mover.moving is not None
        offset = mover.map[mover.moving][0]
        start, step = _line(poly(offset), self.loop.op.symbol)
        if step is None or not set(start.symbols) <= set(self.values):
            return None
        first = start.evaluate(self.values)
        count, k = int(self.loop.op.count), int(a.shape[-1])
        columns = 1
        if other.free is not None:
            columns = int(self.loop.inputs[other.number].shape[other.free])
            if columns > MORE * int(node.type.size):
                return None
        if count * k * columns < WORTH:
            return None
        begin = first if start.value is not None else Extent(first, start)
        return _Product(node, left, right, begin, step, (int(offset) - first) // step)

    def _operand(self, node: Node, k: int) -> _Operand | None:
        """The operand whose axis `k` is summed; None when the loop changes it, or more of it moves than one row's number."""
        base, entries, shape = node, identity_map(node.ndim), node.shape
        if isinstance(node.op, View):
            (base,) = node.inputs
            entries, shape = node.op.map, node.op.shape
        number = self.number.get(base)
        where = {axis: place for place, (_, _, axis) in enumerate(entries) if axis is not None}
        if number is None or len(where) != len(shape) or len(shape) > 2:
            return None
        free = where[1 - k] if len(shape) == 2 else None
        moving = None
        for place, (offset, step, axis) in enumerate(entries):
            moves = self._moves(offset) or self._moves(step) or (axis is not None and self._moves(shape[axis]))
            if not moves or place == free:
                continue
            if axis is not None or moving is not None:
                return None
            moving = place
        return _Operand(number, entries, where[k], moving, free)

    def _moves(self, n: int) -> bool:
        return self.loop.op.symbol in poly(n).symbols

    # -- the rewrite

    def hoisted(self, loop: Node) -> Node:
        """The loop (a copy, in the new graph) reading products made before it."""
        op = loop.op
        body = op.body.rewrite(lambda node: None)  # a copy, which may be changed
        new_of = dict(zip(op.body.nodes, body.nodes, strict=True))
        wholes = []
        for product in self.list:
            a, b = loop.inputs[product.left.number], loop.inputs[product.right.number]
            k = product.node.inputs[0].shape[-1]
            left, right = self._whole(a, product, product.left, k, 0), self._whole(b, product, product.right, k, 1)
            wholes.append(apply(MatMul(), left, right))
            node = new_of[product.node]
            node.op, node.inputs = self._row(product), (body.add(Parameter(wholes[-1].type), name="products"),)
        return instead(loop, replace(op, body=body), *loop.inputs, *wholes)

    def _whole(self, base: Node, product: _Product, operand: _Operand, k: int, side: int) -> Node:
        """All rows (side 0) or columns (side 1) that the loop takes, as one matrix, or the vector that it takes each time."""
        outer, inner = (0, 1) if side == 0 else (1, 0)
        entries: list[tuple[int, int, int | None]] = []
        shape: list[int] = [k]
        for place, (offset, step, _) in enumerate(operand.map):
            if place == operand.k:
                axis = inner if operand.moving is not None or operand.free is not None else 0
                entries.append((offset, step, axis))
            elif place == operand.moving:
                entries.append((product.start, product.step, outer))
                shape = [self.loop.op.count, k] if side == 0 else [k, self.loop.op.count]
            elif place == operand.free:
                entries.append((0, 1, outer))
                shape = [base.shape[place], k] if side == 0 else [k, base.shape[place]]
            else:
                entries.append((offset, step, None))
        return apply(View(tuple(entries), tuple(shape)), base)

    def _row(self, product: _Product) -> View:
        """What of the whole product one iteration takes."""
        number = Moving.symbol(self.loop.op.symbol, product.sample)
        entries: list[tuple[int, int, int | None]] = []
        for operand in (product.left, product.right):
            if operand.moving is not None:
                entries.append((number, 1, None))
            elif operand.free is not None:
                offset, step, _ = operand.map[operand.free]
                entries.append((offset, step, 0))
        return View(tuple(entries), product.node.shape)


def _line(p: Poly, symbol: str) -> tuple[Poly, int | None]:
    """(start, step) with p = start + step * symbol; no step when it is anything else."""
    steps = [(m, c) for m, c in p.terms if symbol in m]
    if len(steps) != 1 or steps[0][0] != (symbol,):
        return p, None
    return p - Poly.symbol(symbol).scale(steps[0][1]), steps[0][1]
