"""Random graphs over the operations: elementwise, reductions, views, products, updates, gathers; sizes small and odd."""

import numpy as np

from jitlab.ir import Graph, plain
from jitlab.ir.graphs.verify import verify
from jitlab.ops.build_nodes import apply, elementwise
from jitlab.ops.elementwise.arithmetic import Abs, Add, Maximum, Mul, Neg, Sub
from jitlab.ops.elementwise.math_functions import Exp, Tanh
from jitlab.ops.layout.concatenation import Concatenate
from jitlab.ops.layout.indexing import Take
from jitlab.ops.layout.views import Update, View, broadcast_to, expand_dims, reshape, transpose
from jitlab.ops.linear_algebra.matrix_products import MatMul
from jitlab.ops.reducing.axis_reductions import ArgMax, Max, Mean, Sum

from .compiling import parameter

SIZES = (1, 2, 3, 5, 8, 17, 40)


def random_graph(seed, length=12):
    """A verified graph and its arguments. Values stay near 1, so results can be compared closely."""
    rng = np.random.default_rng(seed)
    n, m = rng.choice(SIZES, 2)
    shapes = [(n, m), (m,), (n, 1), (n, m), ()]
    arrays = [rng.uniform(-1, 1, shape) for shape in shapes]
    positions = rng.integers(-n, n, size=4)
    graph = Graph("random")
    with graph.building():
        nodes = [parameter(graph, a, f"x{i}") for i, a in enumerate(arrays)]
        index = parameter(graph, positions, "positions")
        for _ in range(length):
            new = _random_node(rng, nodes, index)
            if new is not None and new.dtype.kind == "f" and int(new.type.size) < 20_000:
                nodes.append(new)
        count = int(rng.integers(1, 4))
        graph.outputs = [nodes[-1 - i] for i in range(count) if nodes[-1 - i] not in graph.parameters] or [
            elementwise(Add(), nodes[0], 1.0)
        ]
    return verify(graph), [*arrays, positions]


def _random_node(rng, nodes, index):
    x = nodes[int(rng.integers(len(nodes)))]
    y = nodes[int(rng.integers(len(nodes)))]
    kind = rng.choice(["binary", "unary", "reduce", "view", "softmax", "matmul", "update", "join", "take", "reshape", "argmax"])
    try:
        if kind == "binary":
            op = [Add(), Sub(), Mul(), Maximum()][int(rng.integers(4))]
            return elementwise(Mul(), elementwise(op, x, y), 0.5)
        if kind == "unary":
            return elementwise([Tanh(), Abs(), Neg()][int(rng.integers(3))], x)
        if kind == "reduce" and x.ndim:
            axes = tuple(sorted(rng.choice(x.ndim, size=int(rng.integers(1, x.ndim + 1)), replace=False).tolist()))
            op = [Max, Mean][int(rng.integers(2))](axes)
            out = apply(op, x)
            return expand_dims(out, axes) if rng.random() < 0.6 else out
        if kind == "softmax" and x.ndim:
            axis = x.ndim - 1
            e = elementwise(Exp(), elementwise(Sub(), x, expand_dims(apply(Max((axis,)), x), (axis,))))
            from jitlab.ops.elementwise.arithmetic import RealDiv

            return elementwise(RealDiv(), e, expand_dims(apply(Sum((axis,)), e), (axis,)))
        if kind == "argmax" and x.ndim:
            from jitlab.ops.build_nodes import cast

            return elementwise(Mul(), cast(apply(ArgMax((x.ndim - 1,)), x), np.float64), 0.01)
        if kind == "view" and x.ndim:
            if rng.random() < 0.4:
                return transpose(x)
            entries, shape = [], []
            for axis, n in enumerate(x.shape):
                if int(n) > 2 and rng.random() < 0.5:
                    step = int(rng.choice([1, 2, -1]))
                    length = (n - 2) if step == 1 else (int(n) + 1) // 2 if step == 2 else n
                    entries.append(((n - 1) if step == -1 else 1 if step == 1 else 0, step, axis))
                    shape.append(length)
                else:
                    entries.append((0, 1, axis))
                    shape.append(n)
            return apply(View(tuple(entries), tuple(shape)), x)
        if kind == "matmul" and x.ndim == 2 and y.ndim == 2:
            a, b = (x, y) if int(x.shape[1]) == int(y.shape[0]) else (x, transpose(y))
            if int(a.shape[1]) == int(b.shape[0]):
                return elementwise(Mul(), apply(MatMul(), a, b), 1.0 / int(a.shape[1]))
        if kind == "update" and x.ndim and plain(x.shape) == plain(y.shape) and int(x.shape[0]) > 2:
            shape = (x.shape[0] - 1, *x.shape[1:])
            part = apply(View(tuple((0, 1, a) for a in range(x.ndim)), shape), y)
            return apply(Update(((1, 1, 0), *((0, 1, a) for a in range(1, x.ndim))), shape), x, part)
        if kind == "join" and x.ndim and plain(x.shape[1:]) == plain(y.shape[1:]) and y.ndim == x.ndim:
            return apply(Concatenate(0), x, y)
        if kind == "take" and x.ndim == 2 and int(x.shape[0]) == int(nodes[0].shape[0]):
            return apply(Take(0), x, index)
        if kind == "reshape" and x.ndim == 2:
            if rng.random() < 0.5:
                return reshape(x, (x.shape[0] * x.shape[1],))
            return broadcast_to(expand_dims(x, (0,)), (2, *x.shape))
    except ValueError:
        return None
    return None
