"""Singular values, and what is defined by them: the pseudo-inverse and least squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Moving, Node, at_least, same_extent
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise
from jitlab.ops.elementwise.arithmetic import Maximum, add, divide, multiply, real_dtype, subtract
from jitlab.ops.layout.concatenation import part_view
from jitlab.ops.layout.creation import Eye, zeros
from jitlab.ops.layout.views import expand_dims, squeeze
from jitlab.ops.library_operations import call, results_of
from jitlab.ops.numpy_api.arguments import NoValue, node
from jitlab.ops.registry import rule

from .linear_systems import (
    SYMMETRIC,
    A,
    B,
    MatrixLibrary,
    adjoint,
    check_matrices,
    hermitian_part,
    inverse_differences,
    least,
    linalg_dtype,
    matrices,
    named,
    no_gradient,
    square,
    total,
)
from .matrix_products import matmul

WIDE = np.concatenate([A, B], axis=1)[:, :4]


class Svd(MatrixLibrary):
    """u, s, v^H with a[..., m, n] = u @ diag(s) @ v^H, s descending; `full`: u and v are square.

    `hermitian`: from the eigenvalues of a Hermitian matrix, of which the lower triangle is read.

    Gradient: J. Townsend, "Differentiating the singular value decomposition" (2016), and for complex matrices Z.-Q. Wan,
    S.-X. Zhang, "Automatic differentiation for complex valued SVD" (2019), for what does not depend on the vectors' phases.
    Between equal singular values nothing flows through the vectors. There is none for the vectors that only full matrices
    have.
    """

    full: bool = False
    hermitian: bool = False
    tf_name: ClassVar[str | None] = "Svd"

    def numpy(self, a: Any) -> Any:
        return tuple(np.linalg.svd(a, full_matrices=self.full, hermitian=self.hermitian))

    def loop(self) -> tuple[str, str] | None:
        if self.hermitian:
            return None
        return ("svd_f", "(m,n)->(m,m),(p),(n,n)") if self.full else ("svd_s", "(m,n)->(m,p),(p),(p,n)")

    def flops(self, m: int, n: int) -> float:
        return 22 * m * n * min(m, n)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (a,) = types
        *stack, m, n = a.shape
        k = least(m, n)
        u = ArrayType((*stack, m, m if self.full else k), a.dtype)
        return u, ArrayType((*stack, k), real_dtype(a.dtype)), ArrayType((*stack, n if self.full else k, n), a.dtype)

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        u, s, vh = results_of(out)
        of_u, of_s, of_vh = g
        m, n = inputs[0].shape[-2:]
        if self.full and not same_extent(m, n):
            tall = at_least(m - n, 1)
            extra = of_u if tall else of_vh
            if extra is not None:
                raise no_gradient(
                    out, f"np.linalg.svd(full_matrices=True) has no gradient through {'u' if extra is of_u else 'vh'}.",
                    why="the vectors beyond the smaller extent of the matrix are any orthonormal ones",
                    hint="full_matrices=False gives the vectors that have a gradient",
                )  # fmt: skip
            if tall:
                u = apply(part_view(u.type, u.ndim - 1, 0, n), u)
            else:
                vh = apply(part_view(vh.type, vh.ndim - 2, 0, m), vh)
        result = _svd_gradient(u, s, vh, of_u, of_s, of_vh)
        return [hermitian_part(result) if self.hermitian else result]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), A
        yield cls(), WIDE
        yield cls(full=True), np.stack([WIDE.T, -WIDE.T]).astype("f4")
        yield cls(full=True), WIDE + 0.5j * WIDE[::-1]
        yield cls(hermitian=True), SYMMETRIC
        yield cls(), np.empty((2, 0, 3))


class SvdVals(MatrixLibrary):
    """The descending singular values of each matrix. Gradient: u diag(g) v^H, Giles (2008), 3.2, the vectors being computed
    for it."""

    hermitian: bool = False

    def numpy(self, a: Any) -> Any:
        return np.linalg.svd(a, compute_uv=False, hermitian=self.hermitian)

    def loop(self) -> tuple[str, str] | None:
        return None if self.hermitian else ("svd", "(m,n)->(p)")

    def flops(self, m: int, n: int) -> float:
        return 8 / 3 * m * n * min(m, n)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (Svd().results(*types)[1],)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        u, s, vh = results_of(apply(Svd(hermitian=self.hermitian), *inputs))
        result = _svd_gradient(u, s, vh, None, g, None)
        return [hermitian_part(result) if self.hermitian else result]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), A
        yield cls(), np.stack([WIDE.T, -WIDE.T]).astype("f4")
        yield cls(), WIDE + 0.5j * WIDE[::-1]
        yield cls(hermitian=True), SYMMETRIC
        yield cls(), np.empty((2, 0, 3))


def _svd_gradient(u: Node, s: Node, vh: Node, of_u: Node | None, of_s: Node | None, of_vh: Node | None) -> Node:
    """The cotangent of a from those of u, s and v^H, all with min(m, n) vectors."""
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    dtype = u.dtype
    row, column = expand_dims(cast(s, dtype), (s.ndim - 1,)), expand_dims(cast(s, dtype), (s.ndim,))
    inner, outer = None, None
    if of_u is not None or of_vh is not None:
        apart = cast(inverse_differences(multiply(s, s)), dtype)
    if of_u is not None:
        turning = matmul(adjoint(u), of_u)
        j = multiply(apart, turning)
        inner = multiply(add(j, adjoint(j)), row)
        if at_least(m - k, 1):
            outer = matmul(divide(subtract(of_u, matmul(u, turning)), row), vh)
    if of_vh is not None:
        turning = matmul(vh, adjoint(of_vh))
        j = multiply(apart, turning)
        inner = total(inner, multiply(column, add(j, adjoint(j))))
        if dtype.kind == "c":  # the phase that u and v share
            diagonal = multiply(turning, cast(apply(Eye((k, k), 0)), dtype))
            inner = add(inner, multiply(divide(subtract(adjoint(diagonal), diagonal), column), 0.5))
        if at_least(n - k, 1):
            beyond = divide(subtract(of_vh, matmul(adjoint(turning), vh)), column)
            outer = total(outer, matmul(u, beyond))
    left = None if of_s is None else multiply(u, expand_dims(cast(of_s, dtype), (s.ndim - 1,)))
    left = total(left, None if inner is None else matmul(u, inner))
    result = total(None if left is None else matmul(left, vh), outer)
    assert result is not None
    return result


class Pinv(MatrixLibrary):
    """The pseudo-inverse of a[..., m, n]; singular values up to `rcond` (the second operand) times the largest count as 0.

    Gradient: G. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate" (1973), eq. 4.12, where the rank does not change.
    """

    hermitian: bool = False

    def numpy(self, a: Any, rcond: Any) -> Any:
        return np.linalg.pinv(a, rcond, self.hermitian)

    def flops(self, m: int, n: int) -> float:
        return 24 * m * n * min(m, n)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        a = types[0]
        return (ArrayType((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        a, _ = inputs
        result = _pinv_gradient(a, out, g)
        return [hermitian_part(result) if self.hermitian else result, None]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        small = np.float64(1e-15)
        yield cls(), A, small
        yield cls(), WIDE, small
        yield cls(), np.stack([WIDE.T, -WIDE.T]).astype("f4"), np.array([1e-6, 1e-5])
        yield cls(), WIDE + 0.5j * WIDE[::-1], small
        yield cls(hermitian=True), SYMMETRIC, small


def _pinv_gradient(a: Node, p: Node, g: Node) -> Node:
    """-p^H g p^H + (1 - a p) g^H p p^H + p^H p g^H (1 - p a); the last two vanish for a square matrix of full rank."""
    ph, gh = adjoint(p), adjoint(g)
    first = matmul(matmul(ph, g), ph)
    second = matmul(matmul(gh, p), ph)
    third = matmul(ph, matmul(p, gh))
    second = subtract(second, matmul(a, matmul(p, second)))
    third = subtract(third, matmul(matmul(third, p), a))
    return add(subtract(second, first), third)


class Lstsq(MatrixLibrary):
    """The least-squares solution of smallest norm of a[m, n] @ x = b[m, k], the rank of a and its singular values.

    Gradient: x is pinv(a) @ b, see `Pinv`.
    """

    rcond: float | None = None
    tf_name: ClassVar[str | None] = "MatrixSolveLs"

    def numpy(self, a: Any, b: Any) -> Any:
        x, _, rank, s = np.linalg.lstsq(a, b, self.rcond)
        return x, np.int32(rank), s

    def flops(self, m: int, n: int) -> float:
        return 12 * m * n * min(m, n)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        a, b = types
        m, n = a.shape
        s = ArrayType((least(m, n),), real_dtype(a.dtype))
        return ArrayType((n, b.shape[1]), a.dtype), ArrayType((), np.dtype("i4")), s

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        a, b = inputs
        of_x, _, of_s = g
        of_a, of_b = None, None
        if of_x is not None:
            smallest = rounding_of(a.shape, np.dtype("f8")) if self.rcond is None else constant(self.rcond)
            p = apply(Pinv(), a, smallest)
            of_a = _pinv_gradient(a, p, matmul(of_x, adjoint(b)))
            of_b = matmul(adjoint(p), of_x)
        if of_s is not None:
            u, s, vh = results_of(apply(Svd(), a))
            of_a = total(of_a, _svd_gradient(u, s, vh, None, of_s, None))
        return [of_a, of_b]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), A, B
        yield cls(), WIDE, B
        yield cls(1e-3), WIDE.astype("f4"), B.astype("f4")
        yield cls(), WIDE + 0.5j * WIDE[::-1], B - 1j


def rounding_of(extents: Sequence[int], dtype: np.dtype) -> Node:
    """The larger of two extents times the dtype's rounding: what NumPy takes for 0 beside the largest singular value."""
    m, n = extents
    if isinstance(m, Moving) or isinstance(n, Moving):
        longest = elementwise(Maximum(), as_node(m), as_node(n))
        return multiply(cast(longest, dtype), np.finfo(dtype).eps)
    return constant(max(int(m), int(n)) * np.finfo(dtype).eps, dtype)


# rules


@rule(np.linalg.svd)
def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    x = square(a) if hermitian else matrices(a)
    if not compute_uv:
        return apply(SvdVals(bool(hermitian)), x)
    return named(np.linalg.svd, call(Svd(bool(full_matrices), bool(hermitian)), x))


@rule(np.linalg.svdvals)
def svdvals(x: Any, /) -> Node:
    return apply(SvdVals(), matrices(x))


@rule(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = NoValue) -> Node:
    x = node(a)
    if rcond is not None and rtol is not NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is NoValue else rtol
    if rcond is None:
        rcond = rounding_of(x.shape[-2:], x.dtype)
    check_matrices(x)
    if not all(at_least(n, 1) for n in x.shape[-2:]):
        return zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    x = square(x) if hermitian else matrices(x)
    return apply(Pinv(bool(hermitian)), x, node(rcond))


@rule(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Node, ...]:
    x, y = node(a), node(b)
    vector = y.ndim == 1
    if vector:
        y = expand_dims(y, (1,))
    for matrix in (x, y):
        if matrix.ndim != 2:
            raise np.linalg.LinAlgError(f"{matrix.ndim}-dimensional array given. Array must be two-dimensional")
    if not same_extent(x.shape[0], y.shape[0]):
        raise np.linalg.LinAlgError("Incompatible dimensions")
    dtype = linalg_dtype(x.dtype, y.dtype)
    if at_least(x.shape[0] - x.shape[1], 1):
        raise Unsupported("lstsq_residuals", "data_dependent")
    if isinstance(rcond, Node):
        raise Unsupported("traced_argument_value", name="rcond")
    op = Lstsq(None if rcond is None else float(rcond))
    results: Any = call(op, cast(x, dtype), cast(y, dtype))
    solution, rank, s = results
    return squeeze(solution, (1,)) if vector else solution, zeros((0,), real_dtype(dtype)), rank, s
