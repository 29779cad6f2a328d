"""Linear algebra: products of matrices and vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node, same_extent
from jitlab.ops.base import Cost, Operation, broadcast_shapes, shape_text
from jitlab.ops.build_nodes import apply, cast, result_dtype
from jitlab.ops.elementwise.arithmetic import conj, multiply
from jitlab.ops.layout.views import expand_dims, squeeze, transpose

M = np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 1.0]])
N = np.array([[1.0, 2.0, -1.0, 0.5], [0.0, 1.5, 3.0, -2.0], [2.5, -0.5, 1.0, 1.0]])


HALF = np.dtype("f2")


class Product(Operation, family=True):
    """Sums of products over the inner axis; both inputs have one dtype."""

    library: ClassVar[str] = "BLAS"  # of floats and where no loop is written for it
    exact: ClassVar[bool] = False

    def numpy(self, *arrays: Any) -> Any:
        return np.matmul(*arrays)

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        x, y = types
        flops = (8 if out.dtype.kind == "c" else 2) * out.count * int(x.shape[-1])
        return Cost(flops, x.nbytes + y.nbytes, out.nbytes)


class MatMul(Product):
    """x @ y of matrices or vectors: a vector on the left is a row, on the right a column, and its axis goes away."""

    operands = (
        (M, N), (M, N[:, 0]), (M[0], N), (M[0], N[:, 0]), (M + 1j, N - 0.5j),
        (np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)), (M > 0, N > 0), (np.empty((2, 0)), np.empty((0, 3))),
    )
    numpy_word: ClassVar[str] = "@"

    def result(self, *types: ArrayType) -> ArrayType:
        x, y = types
        check_matmul(x, y)
        return ArrayType((*x.shape[:-1], *y.shape[1:]), x.dtype)

    def node_attrs(self) -> dict[str, Any]:
        """Upstream's MatMul can transpose; here a transpose is an operation of its own."""
        return {"transpose_a": False, "transpose_b": False}

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, y = inputs
        xc, yc = conj(x), conj(y)
        if x.ndim == 1 and y.ndim == 1:
            return [multiply(g, yc), multiply(g, xc)]
        if x.ndim == 1:
            return [apply(MatMul(), g, transpose(yc)), outer(xc, g)]
        if y.ndim == 1:
            return [outer(g, yc), apply(MatMul(), transpose(xc), g)]
        return [apply(MatMul(), g, transpose(yc)), apply(MatMul(), transpose(xc), g)]


class BatchMatMul(Product):
    """x @ y of stacks of matrices; the leading axes broadcast."""

    numpy_word: ClassVar[str] = "@"
    tf_name: ClassVar[str | None] = "BatchMatMulV2"
    operands = (
        (np.stack([M, M + 1]), np.stack([N, -N])), (np.stack([M, M + 1]), N),
        (np.stack([M, M + 1])[:, None], np.stack([N, -N, N / 2])),
    )

    def result(self, *types: ArrayType) -> ArrayType:
        x, y = types
        check_matmul(x, y)
        return ArrayType((*broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]), x.dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, y = inputs
        return [matmul(g, swap_last(conj(y))), matmul(swap_last(conj(x)), g)]


def check_matmul(x: ArrayType, y: ArrayType) -> None:
    """Raises NumPy's ValueError unless x @ y has a meaning."""
    signature = "(n?,k),(k,m?)->(n?,m?)"
    for position, operand in enumerate((x, y)):
        if operand.ndim == 0:
            raise ValueError(
                f"matmul: Input operand {position} does not have enough dimensions "
                f"(has 0, gufunc core with signature {signature} requires 1)"
            )
    k, axis = y.shape[-2 if y.ndim > 1 else 0], 0
    if not same_extent(x.shape[-1], k):
        raise ValueError(
            f"matmul: Input operand 1 has a mismatch in its core dimension {axis}, with gufunc signature {signature} "
            f"(size {int(k)} is different from {int(x.shape[-1])})"
        )


def matmul(x: Node, y: Node) -> Node:
    """`x @ y` as NumPy has it."""
    dtype = np.matmul.resolve_dtypes((x.dtype, y.dtype, None))[-1]
    if dtype == HALF:  # as NumPy adds them up: products of halves may be beyond what a half holds
        return cast(matmul(cast(x, "f4"), cast(y, "f4")), HALF)
    x, y = cast(x, dtype), cast(y, dtype)
    if x.ndim <= 2 and y.ndim <= 2:
        return apply(MatMul(), x, y)
    if x.ndim == 0 or y.ndim == 0:
        check_matmul(x.type, y.type)
    if x.ndim == 1:
        return squeeze(matmul(expand_dims(x, (0,)), y), (-2,))
    if y.ndim == 1:
        return squeeze(matmul(x, expand_dims(y, (-1,))), (-1,))
    return apply(BatchMatMul(), x, y)


def outer(x: Node, y: Node) -> Node:
    """All products of an element of x with one of y, both vectors."""
    return multiply(expand_dims(x, (1,)), expand_dims(y, (0,)))


def dot(x: Node, y: Node) -> Node:
    """`np.dot(x, y)`: a product with a number, else sums over the last axis of x and the second to last of y."""
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    if x.ndim <= 2 and y.ndim <= 2:
        check_dot(x, y)
        return matmul(x, y)
    check_dot(x, y)
    from jitlab.ops.layout.views import reshape

    k = x.shape[-1]
    dtype = result_dtype(x, y)
    rows = reshape(cast(x, dtype), (math.prod(x.shape[:-1]), k))
    if y.ndim == 1:
        return reshape(matmul(rows, cast(y, dtype)), x.shape[:-1])
    order = (y.ndim - 2, *range(y.ndim - 2), y.ndim - 1)
    rest = (*y.shape[:-2], y.shape[-1])
    columns = reshape(transpose(cast(y, dtype), order), (k, math.prod(rest)))
    return reshape(matmul(rows, columns), (*x.shape[:-1], *rest))


def check_dot(x: Node, y: Node) -> None:
    """Raises NumPy's ValueError unless the summed axes agree."""
    axis = max(y.ndim - 2, 0)
    if not same_extent(x.shape[-1], y.shape[axis]):
        raise ValueError(
            f"shapes {shape_text(x.shape)} and {shape_text(y.shape)} not aligned: "
            f"{int(x.shape[-1])} (dim {x.ndim - 1}) != {int(y.shape[axis])} (dim {axis})"
        )


def swap_last(x: Node) -> Node:
    """The last two axes exchanged."""
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
