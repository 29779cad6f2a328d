"""Random programs of loops over overlapping slices, as graphs: what the dependence test has to get right."""

import numpy as np

from jitlab.ir import ArrayType, Extent, Graph, Moving
from jitlab.ir.graphs.verify import verify
from jitlab.ops.build_nodes import apply, elementwise
from jitlab.ops.control_flow import Branch, Loop
from jitlab.ops.elementwise.arithmetic import Add, Maximum, Mul, Sub
from jitlab.ops.elementwise.comparison import Less
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.views import Update, View, transpose
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.linear_algebra.matrix_products import MatMul
from jitlab.ops.reducing.axis_reductions import Max, Sum

f8 = np.dtype("f8")
SIZES = (4, 5, 7, 10)


class RandomProgram:
    """A graph over arrays of n x n and n elements, made by one generator of random numbers."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.n = Extent.symbol("n", int(self.rng.choice(SIZES)))
        self.symbols = 0
        n = int(self.n)
        self.arrays = [self.rng.uniform(-1, 1, (n, n)), self.rng.uniform(-1, 1, (n, n)), self.rng.uniform(-1, 1, n)]
        self.graph = Graph("random")
        types = [ArrayType((self.n,) * a.ndim, f8) for a in self.arrays]
        start = [self.graph.add(Parameter(t), name=f"x{k}") for k, t in enumerate(types)]
        with self.graph.building():
            cells = self.statements(list(start), [], int(self.rng.integers(2, 5)), depth=0)
            self.graph.outputs = [c for c, s in zip(cells, start, strict=True) if c is not s]
            if not self.graph.outputs:
                self.graph.outputs = [elementwise(Add(), cells[0], 1.0)]
        verify(self.graph)

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def statements(self, cells, loops, count, depth):
        """The cells after some random statements; `loops`: the (symbol, count) around."""
        numbers = []
        for _ in range(count):
            kind = self.pick("update", "update", "update", "rebind", "number", "loop", "branch", "old")
            k = int(self.rng.integers(len(cells)))
            if kind == "update":
                cells[k] = self.update(cells, numbers, loops, k)
            elif kind == "rebind":
                cells[k] = self.value(cells, numbers, loops, cells[k].shape)
            elif kind == "number":
                numbers.append(self.number(cells, numbers, loops))
            elif kind == "loop" and depth < 2:
                cells = self.loop(cells, loops, depth)
            elif kind == "branch" and depth < 2:
                cells = self.branch(cells, numbers, loops, depth)
            elif kind == "old":  # a value of now, wanted after its source has changed
                value = self.value(cells, numbers, loops, cells[k].shape)
                cells[k] = self.update(cells, numbers, loops, k)
                cells[k] = elementwise(Mul(), elementwise(Add(), cells[k], value), 0.5)
        return cells

    def offset(self, loops, room):
        """An offset from 0 to `room`, perhaps one that moves with a loop whose count fits."""
        fitting = [s for s, count in loops if count <= room]
        if fitting and self.rng.random() < 0.6:
            return self.pick(*fitting) + self.pick(0, 1)
        return int(self.rng.integers(0, room + 1))

    def region(self, ndim, loops, length):
        """A map of `length` elements an axis within n (0: one element), perhaps transposed, flipped or a row."""
        order = list(range(ndim))
        if ndim == 2 and self.rng.random() < 0.25:
            order.reverse()
        entries = []
        for axis in order:
            if length is None:
                fitting = [s for s, count in loops if count <= int(self.n)]
                at = self.pick(*fitting) if fitting and self.rng.random() < 0.8 else int(self.rng.integers(0, int(self.n)))
                entries.append((at, 1, None))
            elif self.rng.random() < 0.15:
                entries.append((self.n - 1, -1, axis))
            else:
                room = int(self.n) - length
                entries.append((self.offset(loops, room) if room else 0, 1, axis))
        return tuple(entries)

    def length(self, loops):
        """Elements an axis: n less a constant so large that moving offsets fit."""
        if any(count <= int(self.n) - 2 for _, count in loops) and self.rng.random() < 0.7:
            most = max(count for _, count in loops if count <= int(self.n) - 2)
            return max(int(self.n) - most - 1, 1)
        return int(self.n) - int(self.rng.integers(0, 3))

    def update(self, cells, numbers, loops, k):
        base = cells[k]
        length = None if self.rng.random() < 0.25 else self.length(loops)
        entries = self.region(base.ndim, loops, length)
        shape = () if length is None else (self.extent(length),) * base.ndim
        return apply(Update(entries, shape), base, self.value(cells, numbers, loops, shape))

    def extent(self, length):
        return self.n - (int(self.n) - length) if length != 1 else 1

    def value(self, cells, numbers, loops, shape):
        """An expression of two or three reads of this shape."""
        result = self.read(cells, numbers, loops, shape)
        for _ in range(int(self.rng.integers(1, 3))):
            op = self.pick(Add(), Sub(), Maximum(), Mul())
            result = elementwise(Mul(), elementwise(op, result, self.read(cells, numbers, loops, shape)), 0.5)
        return result

    def read(self, cells, numbers, loops, shape):
        if not shape:
            return self.number(cells, numbers, loops)
        if numbers and self.rng.random() < 0.15:
            scaled = elementwise(Mul(), self.part(cells, loops, shape), self.pick(*numbers))
            return scaled
        if len(shape) == 2 and self.rng.random() < 0.2:  # a column and a row, broadcast
            column = self.line(cells, loops, shape[0], column=True)
            return elementwise(Maximum(), column, self.line(cells, loops, shape[1], column=False))
        if len(shape) == 1 and int(shape[0]) == int(self.n) and self.rng.random() < 0.2:
            return elementwise(Mul(), apply(MatMul(), cells[0], cells[2]), 1.0 / int(self.n))
        part = self.part(cells, loops, shape)
        return transpose(part) if len(shape) == 2 and self.rng.random() < 0.15 else part

    def part(self, cells, loops, shape):
        source = self.pick(*[c for c in cells if c.ndim == len(shape)])
        return apply(View(self.region(len(shape), loops, int(shape[0])), shape), source)

    def line(self, cells, loops, extent, column):
        matrix = self.pick(*[c for c in cells if c.ndim == 2])
        fitting = [s for s, count in loops if count <= int(self.n)]
        at = self.pick(*fitting) if fitting and self.rng.random() < 0.7 else int(self.rng.integers(0, int(self.n)))
        moving = (self.offset([], int(self.n) - int(extent)), 1)
        if column:
            return apply(View(((*moving, 0), (at, 1, None)), (extent, 1)), matrix)
        return apply(View(((at, 1, None), (*moving, 1)), (1, extent)), matrix)

    def number(self, cells, numbers, loops):
        """An element, a reduction, or arithmetic of both."""
        kind = self.pick("element", "element", "sum", "dot", "sum of numbers")
        source = self.pick(*cells)
        if kind == "sum":
            part = self.part(cells, loops, (self.extent(self.length(loops)),) * source.ndim)
            op = self.pick(Sum, Max)(tuple(range(part.ndim)))
            return elementwise(Mul(), apply(op, part), 1 / int(self.n) ** part.ndim)
        if kind == "dot":
            shape = (self.extent(self.length(loops)),)
            product = apply(MatMul(), self.part(cells, loops, shape), self.part(cells, loops, shape))
            return elementwise(Mul(), product, 1 / int(self.n))
        element = apply(View(self.region(source.ndim, loops, None), ()), source)
        return elementwise(Maximum(), element, self.pick(*numbers)) if kind == "sum of numbers" and numbers else element

    def loop(self, cells, loops, depth):
        symbol = f"i{self.symbols}"
        self.symbols += 1
        limit = int(self.n) - self.pick(0, 2, 2)
        inner = [s for s, _ in loops if s.expr.symbols]
        triangular = bool(inner) and self.rng.random() < 0.3
        count = self.pick(*inner) if triangular else self.n - (int(self.n) - limit)
        reach = dict((str(s.expr), c) for s, c in loops)[str(count.expr)] - 1 if triangular else limit
        moving = Moving.symbol(symbol, max(limit // 2, 2))
        body = Graph("body", sizes={"n": int(self.n)})
        parameters = [body.add(Parameter(c.type), name=f"{symbol}_p{k}") for k, c in enumerate(cells)]
        with body.building():
            around = [*loops, (moving, max(reach, 1))]
            after = self.statements(list(parameters), around, int(self.rng.integers(1, 4)), depth + 1)
        if self.rng.random() < 0.2:
            after[0], after[1] = after[1], after[0]
        carried = [k for k, c in enumerate(after) if c is not parameters[k]]
        order = carried + [k for k in range(len(cells)) if k not in carried]
        body.parameters = [parameters[k] for k in order]
        body.outputs = [after[k] for k in carried]
        if not carried:
            return cells
        node = apply(Loop(body, tuple(cells[k].type for k in carried), symbol, count), *(cells[k] for k in order))
        result = list(cells)
        for number, k in enumerate(carried):
            result[k] = apply(Item(number, cells[k].type), node)
        return result

    def branch(self, cells, numbers, loops, depth):
        condition = apply(Less(), self.number(cells, numbers, loops), self.number(cells, numbers, loops))
        graphs, afters = [], []
        for name in ("then", "orelse"):
            side = Graph(name, sizes={"n": int(self.n)})
            parameters = [side.add(Parameter(c.type), name=f"{name}_p{k}") for k, c in enumerate(cells)]
            with side.building():
                after = self.statements(list(parameters), loops, int(self.rng.integers(0, 3)), depth + 1)
            graphs.append(side)
            afters.append([parameters[k] if a is None else a for k, a in enumerate(after)])
        moved = [
            k for k in range(len(cells))
            if any(after[k] is not graph.parameters[k] for after, graph in zip(afters, graphs, strict=True))
        ]  # fmt: skip
        if not moved:
            return cells
        for graph, after in zip(graphs, afters, strict=True):
            graph.outputs = [after[k] for k in moved]
        node = apply(Branch(*graphs, tuple(cells[k].type for k in moved)), condition, *cells)
        result = list(cells)
        for number, k in enumerate(moved):
            result[k] = apply(Item(number, cells[k].type), node)
        return result
