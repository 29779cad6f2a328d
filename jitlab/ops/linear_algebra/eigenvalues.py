"""Eigenvalues and eigenvectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, cast
from jitlab.ops.elementwise.arithmetic import Real, conj, multiply, real_dtype, subtract
from jitlab.ops.layout.views import expand_dims
from jitlab.ops.library_operations import call, results_of
from jitlab.ops.reducing.axis_reductions import Sum
from jitlab.ops.registry import rule

from .linear_systems import (
    HERMITIAN,
    SYMMETRIC,
    A,
    MatrixLibrary,
    adjoint,
    hermitian_part,
    inverse_differences,
    named,
    solved,
    square,
    total,
)
from .matrix_products import matmul


class Hermitian(MatrixLibrary, family=True):
    """Of symmetric or Hermitian matrices, of which one triangle is read: the gradient is that of such a matrix."""

    lower: bool = True

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), SYMMETRIC
        yield cls(lower=False), np.stack([SYMMETRIC, np.diag([3.0, 1.0, 2.0])]).astype("f4")
        yield cls(), HERMITIAN
        yield cls(), np.empty((2, 0, 0))


class Eigh(Hermitian):
    """Ascending eigenvalues and eigenvectors (columns) of symmetric or Hermitian matrices; one triangle is read.

    Gradient: Giles (2008), 3.1, made Hermitian: a change of the matrix is one of both triangles. Between equal eigenvalues
    nothing flows through the vectors, which is right for whatever does not depend on the choice of their basis; of complex
    matrices that includes the phase of each vector.
    """

    tf_name: ClassVar[str | None] = "SelfAdjointEigV2"

    def numpy(self, a: Any) -> Any:
        return tuple(np.linalg.eigh(a, "L" if self.lower else "U"))

    def loop(self) -> tuple[str, str]:
        return "eigh_lo" if self.lower else "eigh_up", "(m,m)->(m),(m,m)"

    def flops(self, m: int, n: int) -> float:
        return 9 * n**3

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (a,) = types
        return ArrayType(a.shape[:-1], real_dtype(a.dtype)), a

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        values, vectors = results_of(out)
        of_values, of_vectors = g
        through_vectors = None
        if of_vectors is not None:
            turning = matmul(adjoint(vectors), of_vectors)
            through_vectors = matmul(vectors, multiply(cast(inverse_differences(values), turning.dtype), turning))
        return [_spectral(vectors, of_values, through_vectors)]


class Eigvalsh(Hermitian):
    """Ascending eigenvalues of symmetric or Hermitian matrices; one triangle is read.

    Gradient: Giles (2008), 3.1, from the eigenvectors, which are computed for it; made Hermitian as that of `Eigh`.
    """

    def numpy(self, a: Any) -> Any:
        return np.linalg.eigvalsh(a, "L" if self.lower else "U")

    def loop(self) -> tuple[str, str]:
        return "eigvalsh_lo" if self.lower else "eigvalsh_up", "(m,m)->(m)"

    def flops(self, m: int, n: int) -> float:
        return 4 / 3 * n**3

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (a,) = types
        return (ArrayType(a.shape[:-1], real_dtype(a.dtype)),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (a,) = inputs
        _, vectors = results_of(apply(Eigh(self.lower), a))
        return [_spectral(vectors, g, None)]


def _spectral(vectors: Node, of_values: Node | None, through_vectors: Node | None) -> Node:
    """The Hermitian part of (V diag(of_values) + through_vectors) V^H."""
    scaled = None
    if of_values is not None:
        scaled = multiply(vectors, expand_dims(cast(of_values, vectors.dtype), (of_values.ndim - 1,)))
    both = total(scaled, through_vectors)
    assert both is not None
    return hermitian_part(matmul(both, adjoint(vectors)))


class Eig(MatrixLibrary):
    """Eigenvalues and unit eigenvectors (columns) of complex square matrices, in LAPACK's order.

    Gradient: C. Boeddeker, P. Hanebrink, L. Drude, J. Heymann, R. Haeb-Umbach, "On the computation of complex-valued
    gradients with application to statistically optimum beamforming" (2017), for what does not depend on the vectors' phases.
    """

    tf_name: ClassVar[str | None] = "Eig"
    operands = (
        (A + 0.5j * A[::-1],), (np.stack([A + 0.5j * A[::-1], A + 2j * A[::-1]]).astype("c8"),), (np.empty((2, 0, 0), "c16"),),
    )

    def numpy(self, a: Any) -> Any:
        return tuple(np.linalg.eig(a))

    def flops(self, m: int, n: int) -> float:
        return 25 * n**3

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (a,) = types
        return ArrayType(a.shape[:-1], a.dtype), a

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        values, vectors = results_of(out)
        of_values, of_vectors = g
        through_vectors = None
        turned = adjoint(vectors)
        if of_vectors is not None:
            # the part of a change along the vector itself leaves its length as it is
            along = apply(Sum((vectors.ndim - 2,)), multiply(conj(vectors), of_vectors))
            along = cast(apply(Real(), along), vectors.dtype)
            away = subtract(of_vectors, multiply(vectors, expand_dims(along, (along.ndim - 1,))))
            through_vectors = multiply(conj(inverse_differences(values)), matmul(turned, away))
        scaled = None if of_values is None else multiply(expand_dims(of_values, (of_values.ndim,)), turned)
        both = total(scaled, None if through_vectors is None else matmul(through_vectors, turned))
        assert both is not None
        return [solved(turned, both)]


class Eigvals(MatrixLibrary):
    """Eigenvalues of complex square matrices, in LAPACK's order.

    Gradient: V^-H diag(g) V^H with the eigenvectors V, which are computed for it: Giles (2008), 3.1.
    """

    operands = Eig.operands

    def numpy(self, a: Any) -> Any:
        return np.linalg.eigvals(a)

    def flops(self, m: int, n: int) -> float:
        return 10 * n**3

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (a,) = types
        return (ArrayType(a.shape[:-1], a.dtype),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (a,) = inputs
        _, vectors = results_of(apply(Eig(), a))
        turned = adjoint(vectors)
        return [solved(turned, multiply(expand_dims(g, (g.ndim,)), turned))]


# rules


@rule(np.linalg.eigh)
def eigh(a: Any, UPLO: Any = "L") -> Any:
    lower = _reads_lower(UPLO)
    return named(np.linalg.eigh, call(Eigh(lower), square(a)))


@rule(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: Any = "L") -> Node:
    lower = _reads_lower(UPLO)
    return apply(Eigvalsh(lower), square(a))


@rule(np.linalg.eig)
def eig(a: Any) -> Any:
    return named(np.linalg.eig, call(Eig(), _complex(square(a), "eig")))


@rule(np.linalg.eigvals)
def eigvals(a: Any) -> Node:
    return apply(Eigvals(), _complex(square(a), "eigvals"))


def _reads_lower(uplo: Any) -> bool:
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return bool(uplo.upper() == "L")


def _complex(a: Node, name: str) -> Node:
    if a.dtype.kind != "c":
        raise Unsupported("real_eigenvalues", "data_dependent", name=name)
    return a
