"""Slopes of np.linalg, einsum and np.fft against finite differences, of the first and the second order."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.errors import NoGradientError
from jitlab.ops.build_nodes import apply, elementwise
from jitlab.ops.elementwise.arithmetic import Abs, Real, Square, multiply
from jitlab.ops.layout.indexing import read_index
from jitlab.ops.layout.views import expand_dims
from jitlab.ops.linear_algebra.linear_systems import hermitian_part
from tests.ops.calling import F, right_slope

L = np.linalg
random = np.random.default_rng(11)


def normal(*shape, complex=False):
    x = random.normal(size=shape)
    return x + 1j * random.normal(size=shape) if complex else x


def regular(n, *stack, complex=False):
    return normal(*stack, n, n, complex=complex) + 3 * np.eye(n)


def definite(n, *stack, complex=False):
    a = normal(*stack, n, n, complex=complex)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)


both = pytest.mark.parametrize("complex", [False, True], ids=["real", "complex"])


def squares(x):
    """|x|² of each element: no phase is left."""
    size = elementwise(Abs(), x)
    return elementwise(Square(), size)


@both
def test_solutions_inverses_and_determinants(complex):
    a, b = regular(3, complex=complex), normal(3, complex=complex)
    right_slope(F[L.solve], a, b, second=True)
    right_slope(F[L.solve], regular(2, 2, complex=complex), normal(2, 1, complex=complex))
    right_slope(F[L.solve], a, normal(2, 3, 2, complex=complex))
    right_slope(F[L.inv], a, second=True)
    right_slope(F[L.inv], regular(2, 2, complex=complex))
    right_slope(F[L.det], a, second=True)
    right_slope(F[L.det], regular(2, 2, complex=complex))
    right_slope(lambda a: F[L.slogdet](a).logabsdet, a, second=True)
    right_slope(lambda a: multiply(F[L.slogdet](a).sign, F[L.slogdet](a).logabsdet), regular(2, 2, complex=complex))
    right_slope(F[L.tensorsolve], normal(2, 3, 6) + 3 * np.eye(6).reshape(2, 3, 6), normal(2, 3))
    for n in (-2, 0, 1, 3, 5):
        right_slope(lambda a, n=n: F[L.matrix_power](a, n), regular(2, complex=complex) / 3)


@both
def test_cholesky_factors(complex):
    a = definite(3, complex=complex)
    right_slope(F[L.cholesky], a, hermitian=True)
    right_slope(lambda a: F[L.cholesky](a, upper=True), definite(2, 2, complex=complex), hermitian=True)
    right_slope(lambda a: F[L.cholesky](hermitian_part(a)), definite(2, complex=complex), second=True)


@both
def test_eigenvalues_and_eigenvectors_of_hermitian_matrices(complex):
    a = definite(3, complex=complex)
    right_slope(F[L.eigvalsh], a, hermitian=True)
    right_slope(lambda a: F[L.eigh](a).eigenvalues, definite(2, 2, complex=complex), hermitian=True)
    right_slope(lambda a: squares(F[L.eigh](a, "U").eigenvectors), a, hermitian=True)
    right_slope(lambda a: multiply(squares(F[L.eigh](a)[1]), F[L.eigh](a)[0]), a, hermitian=True)
    right_slope(lambda a: F[L.eigvalsh](hermitian_part(a)), a, second=True)
    if not complex:
        right_slope(lambda a: F[L.eigh](a)[1], a, hermitian=True)


def test_eigenvalues_of_complex_matrices():
    a = regular(3, complex=True)
    right_slope(F[L.eigvals], a, second=True)
    right_slope(lambda a: F[L.eig](a).eigenvalues, regular(2, 2, complex=True))
    right_slope(lambda a: squares(F[L.eig](a).eigenvectors), a)
    right_slope(lambda a: multiply(squares(F[L.eig](a)[1]), F[L.eig](a)[0]), a)


@both
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_singular_values_and_vectors(shape, complex):
    a = normal(*shape, complex=complex)
    right_slope(F[L.svdvals], a)
    right_slope(lambda a: F[L.svd](a, compute_uv=False), a)
    right_slope(lambda a: F[L.svd](a, full_matrices=False).S, a)
    for part in (0, 2):
        right_slope(lambda a, part=part: squares(F[L.svd](a, full_matrices=False)[part]), a)
        if not complex:
            right_slope(lambda a, part=part: F[L.svd](a, full_matrices=False)[part], a)

    def approximation(a):  # of rank one: it does not depend on the phase that u and vh share
        u, s, vh = F[L.svd](a, full_matrices=False)
        largest = read_index(s, (Ellipsis, slice(0, 1)))
        left, right = read_index(u, (Ellipsis, slice(0, 1))), read_index(vh, (Ellipsis, slice(0, 1), slice(None)))
        return F[np.matmul](multiply(left, expand_dims(largest, (largest.ndim - 1,))), right)

    right_slope(approximation, a)


def test_full_matrices_have_slopes_as_far_as_they_are_determined():
    a = normal(4, 2)
    right_slope(lambda a: F[L.svd](a).S, a)
    right_slope(lambda a: F[L.svd](a).Vh, a)
    right_slope(lambda a: F[L.svd](a).U, a.T)
    with pytest.raises(NoGradientError, match="through u"):
        right_slope(lambda a: F[L.svd](a).U, a)
    with pytest.raises(NoGradientError, match="through vh"):
        right_slope(lambda a: F[L.svd](a).Vh, a.T)
    with pytest.raises(NoGradientError, match="complete"):
        right_slope(lambda a: F[L.qr](a, "complete").Q, a)


def test_singular_values_of_hermitian_matrices():
    a = definite(3) - 4.1 * np.eye(3)
    right_slope(lambda a: F[L.svd](a, hermitian=True, compute_uv=False), a, hermitian=True)
    right_slope(lambda a: squares(F[L.svd](a, hermitian=True).U), a, hermitian=True)
    right_slope(lambda a: F[L.pinv](a, hermitian=True), a, hermitian=True)


@both
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_qr_factors(shape, complex):
    a = normal(*shape, complex=complex)
    for part in (0, 1):
        right_slope(lambda a, part=part: F[L.qr](a)[part], a)
    right_slope(lambda a: F[np.matmul](F[L.qr](a).Q, F[L.qr](a).R), a)
    right_slope(lambda a: F[L.qr](a, "r"), a, second=shape == (4, 2))


@both
def test_pseudo_inverses_and_least_squares(complex):
    for shape in ((3, 3), (4, 2), (2, 2, 4)):
        right_slope(F[L.pinv], normal(*shape, complex=complex), second=shape == (4, 2))
    low = normal(4, 2, complex=complex) @ normal(2, 3, complex=complex)
    right_slope(lambda u, v: F[L.pinv](F[np.matmul](u, v)), low[:, :2], low[:2])  # of rank two
    for part in (0, 3):
        right_slope(lambda a, b, part=part: F[L.lstsq](a, b)[part], normal(2, 4, complex=complex), normal(2, complex=complex))


@both
def test_norms_and_condition_numbers(complex):
    a = regular(3, complex=complex)
    for order in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        right_slope(lambda a, order=order: F[L.norm](a, order, axis=(0, 1)), a)
        right_slope(lambda a, order=order: F[L.cond](a, order), a)
    for order in (None, 0, 1, 2, 3, 2.5, np.inf, -np.inf):
        right_slope(lambda a, order=order: F[L.vector_norm](a, axis=1, ord=order), a)
    right_slope(F[L.norm], a, second=True)
    right_slope(lambda a: F[L.norm](a, "nuc"), a, second=not complex)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ij,jk->ik", ((2, 3), (3, 4))),
        ("ij,jk,kl->li", ((2, 3), (3, 2), (2, 4))),
        ("bij,bj->bi", ((2, 3, 4), (2, 4))),
        ("ii->i", ((3, 3),)),
        ("iij,j->", ((3, 3, 2), (2,))),
        ("...i,...i", ((2, 3), (4, 1, 3))),
        ("i,j->ji", ((2,), (3,))),
        ("ij->", ((2, 3),)),
    ],
)
def test_einsum(text, shapes):
    right_slope(lambda *xs: F[np.einsum](text, *xs), *(normal(*s) for s in shapes), second=True)
    right_slope(lambda *xs: F[np.einsum](text, *xs), *(normal(*s, complex=True) for s in shapes))


def test_products():
    right_slope(F[np.kron], normal(2, 3), normal(2, 2), second=True)
    right_slope(F[np.cross], normal(2, 3), normal(3))
    right_slope(F[np.vecdot], normal(2, 3, complex=True), normal(3, complex=True))
    right_slope(F[np.matvec], normal(2, 3), normal(4, 3))
    right_slope(F[np.vecmat], normal(4, 2, complex=True), normal(2, 3, complex=True))
    right_slope(lambda *xs: F[L.multi_dot](list(xs)), normal(2, 3), normal(3, 4), normal(4, 2), normal(2))
    right_slope(F[L.trace], normal(2, 3, 3))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 4, 7])
def test_fourier_transforms(norm, n):
    real, complex = normal(2, 5), normal(2, 4, complex=True)
    for name in ("fft", "ifft", "irfft", "hfft"):
        right_slope(lambda x, name=name: F[getattr(np.fft, name)](x, n, norm=norm), complex)
    for name in ("fft", "rfft", "ihfft"):
        right_slope(lambda x, name=name: F[getattr(np.fft, name)](x, n, norm=norm), real)
    right_slope(lambda x: F[np.fft.rfft](x, n, axis=0, norm=norm), real)


def test_fourier_transforms_along_several_axes():
    for name in ("fftn", "ifftn", "rfftn", "fft2"):
        right_slope(F[getattr(np.fft, name)], normal(3, 4))
    right_slope(F[np.fft.irfftn], normal(3, 3, complex=True))
    right_slope(lambda x: F[np.fft.irfft2](x, (2, 5)), normal(3, 3, complex=True))
    right_slope(lambda x: squares(F[np.fft.rfft](x)), normal(5), second=True)
    right_slope(F[np.fft.fftshift], normal(3, 4))


def test_real_parts_of_spectra_are_what_they_were():
    x = normal(6)
    right_slope(lambda x: apply(Real(), F[np.fft.rfft](elementwise(Square(), x))), x, second=True)


def test_slopes_are_those_of_jax():
    jax = pytest.importorskip("jax", reason="JAX is a peer of the benchmarks, not needed to run jitlab")

    def of_definite(np, a):
        values, vectors = np.linalg.eigh(a)
        return np.sum(np.linalg.cholesky(a) ** 3) + np.sum(vectors**4) + np.sum(values**2) + np.linalg.slogdet(a)[1]

    def of_tall(np, a):
        q, r = np.linalg.qr(a)
        return np.sum(q**4) + np.sum(r**3) + np.linalg.norm(a, "nuc") + np.sum(np.abs(np.fft.rfft(a, axis=0)) ** 2)

    with jax.enable_x64(True):
        for program, x in ((of_definite, definite(3)), (of_tall, normal(4, 2))):
            theirs = jax.jit(jax.grad(lambda x, program=program: program(jax.numpy, x)))(x)
            mine = jl.grad(lambda x, program=program: program(np, x))(x)
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-10 * np.max(np.abs(theirs)))
