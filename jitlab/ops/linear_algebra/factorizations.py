"""Cholesky and QR factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node, at_least
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, cast
from jitlab.ops.elementwise.arithmetic import Real, add, multiply, subtract
from jitlab.ops.layout.concatenation import concatenate, part_view
from jitlab.ops.layout.creation import Eye, Tri, zeros
from jitlab.ops.library_operations import Copying, InC, Lying, UfuncLoop, call, in_double, results_of
from jitlab.ops.registry import rule

from .linear_systems import (
    HERMITIAN,
    LAPACK,
    SYMMETRIC,
    A,
    MatrixLibrary,
    adjoint,
    hermitian_part,
    least,
    matrices,
    named,
    no_gradient,
    solved,
    square,
    total,
)
from .matrix_products import matmul

TALL = np.concatenate([A, A[:2] ** 2 - 1.5])


class Cholesky(MatrixLibrary):
    """The triangular l with l @ l^H = a (with `upper` u, u^H @ u = a) of a positive definite matrix, of which one triangle is
    read. Raises LinAlgError at run time for one that is not.

    Gradient: I. Murray, "Differentiation of the Cholesky decomposition" (2016), eq. 9, made Hermitian: a change of the matrix
    is one of both triangles.
    """

    upper: bool = False
    tf_name: ClassVar[str | None] = "Cholesky"

    def numpy(self, a: Any) -> Any:
        return np.linalg.cholesky(a, upper=self.upper)

    def loop(self) -> tuple[str, str]:
        return "cholesky_up" if self.upper else "cholesky_lo", "(m,m)->(m,m)"

    def flops(self, m: int, n: int) -> float:
        return n**3 / 3

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return types

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        factor, of_factor = (adjoint(out), adjoint(g)) if self.upper else (out, g)
        turned = adjoint(factor)
        left = solved(turned, _half_lower(matmul(turned, of_factor)))
        return [hermitian_part(adjoint(solved(turned, adjoint(left))))]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), SYMMETRIC
        yield cls(upper=True), np.stack([SYMMETRIC, np.eye(3)]).astype("f4")
        yield cls(upper=True), SYMMETRIC
        yield cls(), HERMITIAN
        yield cls(), np.empty((2, 0, 0))


class Qr(MatrixLibrary):
    """q with orthonormal columns and upper triangular r, q @ r = a[..., m, n]; with `complete` q is square.

    Gradient for m >= n: S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions with application in
    optimum experimental design" (2010); for m < n: H. Liao, J. Liu, L. Wang, T. Xiang, "Differentiable programming tensor
    networks" (2019), III.A.2. There is none for the columns that only a complete q has. The first min(m, n) columns have to
    be independent.
    """

    complete: bool = False
    may_raise: ClassVar[bool] = False
    tf_name: ClassVar[str | None] = "Qr"

    def numpy(self, a: Any) -> Any:
        return tuple(np.linalg.qr(a, "complete" if self.complete else "reduced"))

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC | None:
        if self.complete:
            return None  # which of NumPy's functions it is depends on which extent is more
        return _by_reflectors(outs[0], outs[1], ins[0])

    def flops(self, m: int, n: int) -> float:
        return 4 * m * n * min(m, n)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (a,) = types
        rows, columns = a.shape[-2:]
        k = rows if self.complete else least(rows, columns)
        stack = a.shape[:-2]
        return ArrayType((*stack, rows, k), a.dtype), ArrayType((*stack, k, columns), a.dtype)

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (a,) = inputs
        if self.complete and at_least(a.shape[-2] - a.shape[-1], 1):
            raise no_gradient(
                out, "np.linalg.qr(mode='complete') of a tall matrix has no gradient.",
                why="columns of q beyond those of the matrix are any orthonormal ones",
                hint="mode='reduced' gives the columns that have a gradient",
            )  # fmt: skip
        q, r = results_of(out)
        return [_qr_gradient(a, q, r, *g)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), TALL
        yield cls(), np.stack([TALL.T, -TALL.T]).astype("f4")
        yield cls(complete=True), TALL + 0.5j * TALL[::-1]
        yield cls(), np.empty((2, 0, 3))


class QrTriangle(MatrixLibrary):
    """The upper triangular factor r of a QR factorisation alone. Gradient: that of `Qr`."""

    numpy_word: ClassVar[str] = "qr"
    may_raise: ClassVar[bool] = False
    operands = (TALL,), (TALL.T,), (np.stack([A, A.T]).astype("f4"),)

    def numpy(self, a: Any) -> Any:
        return np.linalg.qr(a, "r")

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC | None:
        return _by_reflectors(None, outs[0], ins[0])

    def flops(self, m: int, n: int) -> float:
        return 2 * m * n * min(m, n)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return Qr().results(*types)[1:]

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (a,) = inputs
        q, r = results_of(apply(Qr(), a))
        return [_qr_gradient(a, q, r, None, g)]


class QrRaw(MatrixLibrary):
    """What LAPACK's geqrf leaves: h (transposed as NumPy gives it) with r and the reflectors, and their factors tau."""

    numpy_word: ClassVar[str] = "qr"
    may_raise: ClassVar[bool] = False
    operands = (TALL,), (np.stack([TALL.T, -TALL.T]).astype("f4"),)

    def numpy(self, a: Any) -> Any:
        return tuple(np.linalg.qr(a, "raw"))

    def flops(self, m: int, n: int) -> float:
        return 2 * m * n * min(m, n)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (a,) = types
        rows, columns = a.shape[-2:]
        stack = a.shape[:-2]
        return ArrayType((*stack, columns, rows), a.dtype), ArrayType((*stack, least(rows, columns)), a.dtype)


def _by_reflectors(q: Lying | None, r: Lying, matrix: Lying) -> InC:
    """As NumPy does it: LAPACK leaves r and reflectors in a copy of the matrix, from which q is made."""
    (dtype, extents), (*stack, k, _) = matrix, r[1]
    wide, is_cast = in_double(dtype), dtype != in_double(dtype)
    copy, reflectors = ("temp", 0), ("temp", 1)
    temps: list[Lying] = [(wide, extents), (wide, (*stack, k))]
    steps: list[Any] = [Copying(copy, ("in", 0)), UfuncLoop(LAPACK, "qr_r_raw", "(m,n)->(p)", (copy, reflectors), True)]
    if q is not None:
        made = ("temp", 2) if is_cast else ("out", 0)
        steps.append(UfuncLoop(LAPACK, "qr_reduced", "(m,n),(k)->(m,k)", (copy, reflectors, made), True))
        if is_cast:
            temps.append((wide, q[1]))
            steps.append(Copying(("out", 0), made))
    return InC((*steps, Copying(("out", 0 if q is None else 1), copy, upper=True)), tuple(temps))


def _half_lower(x: Node) -> Node:
    """The lower triangle, its diagonal halved."""
    shape = (x.shape[-2], x.shape[-1])
    below = multiply(x, cast(apply(Tri(shape, -1)), x.dtype))
    return add(below, multiply(multiply(x, cast(apply(Eye(shape, 0)), x.dtype)), 0.5))


def _qr_gradient(a: Node, q: Node, r: Node, of_q: Node | None, of_r: Node | None) -> Node:
    rows, columns = a.shape[-2:]
    if at_least(rows - columns, 0):
        return _tall_gradient(q, r, of_q, of_r)
    last = a.ndim - 1
    rest = columns - rows  # a = [x y], r = [u v]: x = q u, v = q^H y
    u = apply(part_view(r.type, last, 0, rows), r)
    if of_r is None:
        of_u, of_y = None, zeros((*a.shape[:-1], rest), a.dtype)
    else:
        y = apply(part_view(a.type, last, rows, rest), a)
        of_u = apply(part_view(of_r.type, last, 0, rows), of_r)
        of_v = apply(part_view(of_r.type, last, rows, rest), of_r)
        of_q = total(of_q, matmul(y, adjoint(of_v)))
        of_y = matmul(q, of_v)
    return concatenate([_tall_gradient(q, u, of_q, of_u), of_y], last)


def _tall_gradient(q: Node, r: Node, of_q: Node | None, of_r: Node | None) -> Node:
    """[of_q + q copyltu(m)] r^-H with m = r of_r^H - of_q^H q; the diagonal of r is real, also of complex matrices."""
    through_r = None if of_r is None else matmul(r, adjoint(of_r))
    if of_q is None:
        assert through_r is not None
        m = through_r
    else:
        turned = matmul(adjoint(of_q), q)
        m = subtract(through_r, turned) if through_r is not None else multiply(turned, -1)
    inner = matmul(q, _copied_below(m))
    inner = inner if of_q is None else add(of_q, inner)
    return adjoint(solved(r, adjoint(inner)))


def _copied_below(m: Node) -> Node:
    """The Hermitian matrix with the lower triangle of m, of the diagonal the real part."""
    shape = (m.shape[-2], m.shape[-1])
    below = multiply(m, cast(apply(Tri(shape, -1)), m.dtype))
    middle = cast(apply(Real(), m), m.dtype) if m.dtype.kind == "c" else m
    diagonal = multiply(middle, cast(apply(Eye(shape, 0)), m.dtype))
    return add(add(below, adjoint(below)), diagonal)


# rules


@rule(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: Any = False) -> Node:
    return apply(Cholesky(bool(upper)), square(a))


@rule(np.linalg.qr)
def qr(a: Any, mode: Any = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r", "raw"):
        if mode in ("f", "full", "e", "economic"):
            raise Unsupported("deprecated_mode")
        raise ValueError(f"Unrecognized mode '{mode}'")
    x = matrices(a)
    if mode == "r":
        return apply(QrTriangle(), x)
    if mode == "raw":
        return call(QrRaw(), x)
    return named(np.linalg.qr, call(Qr(mode == "complete"), x))
