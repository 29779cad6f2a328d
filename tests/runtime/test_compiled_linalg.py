"""np.linalg, np.fft and einsum as machine code: NumPy's results, types, errors and lines under jit_compile=True."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitlab as jl
from jitlab.errors import InvalidArgumentError

L = np.linalg


def same_results(got, want, exact=True):
    assert type(got) is type(want)
    if isinstance(want, tuple):
        for mine, theirs in zip(got, want, strict=True):
            same_results(mine, theirs, exact)
    elif exact or want.dtype.kind == "i":
        np.testing.assert_array_equal(got, want)
    else:
        eps = np.finfo(want.dtype).eps
        np.testing.assert_allclose(got, want, rtol=64 * eps, atol=64 * eps * np.max(np.abs(want), initial=0))
    if not isinstance(want, tuple):
        assert got.dtype == want.dtype


def factors(a, b, w):
    """What LAPACK computes of the arrays as they are: bit for bit."""
    return (
        *(L.solve(a, b), L.inv(a), L.det(a), L.slogdet(a), L.cholesky(a), L.eigh(a), L.eigvalsh(a), L.svd(w), L.qr(w)),
        *(L.svdvals(w), L.pinv(w), L.lstsq(w, b), L.qr(w, "r"), L.svd(w, full_matrices=False), np.fft.rfft(w), np.fft.fft(a)),
    )


def derived(a, b, w):
    """What is made of products, sums and those."""
    return (
        *(L.matrix_rank(w), L.cond(a), L.cond(a, 1), L.norm(w, "nuc"), L.norm(a), L.matrix_power(a, 3)),
        *(np.einsum("ij,jk,i->k", a, w, b), np.einsum("ii->i", a), np.kron(a, w), np.vecdot(a, b), L.multi_dot([w.T, a, w])),
        np.fft.irfft(np.fft.rfft(b)),
        *(np.fft.fftn(w), np.fft.fftshift(a), np.vecmat(b, w), L.trace(a), L.vector_norm(w, ord=3, axis=0)),
    )


compiled = {f: jl.function(f, jit_compile=True) for f in (factors, derived)}


@st.composite
def systems(draw, extents=((3, 5),)):
    """A positive definite matrix, a vector, and a matrix with as many rows and more columns."""
    n, columns = draw(st.sampled_from(extents))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    scale = 10.0 ** draw(st.integers(-3, 3))
    a = random.normal(size=(n, n))
    return (a @ a.T + np.eye(n)) * scale, random.normal(size=n), random.normal(size=(n, columns))


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(systems(extents=((2, 3), (3, 5), (20, 30))))
def test_factors_are_numpys_bit_for_bit(arrays):
    same_results(compiled[factors](*arrays), factors(*arrays))


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(systems())
def test_what_is_derived_of_them_is_numpys_within_rounding(arrays):
    same_results(compiled[derived](*arrays), derived(*arrays), exact=False)


def test_stacks_and_other_dtypes_compile():
    random = np.random.default_rng(0)

    def f(a, z):
        return L.inv(a), L.eigh(a), L.eig(z), L.solve(a, z), np.fft.ifft(z, 5), np.einsum("...ij->...", a)

    a, z = random.normal(size=(2, 3, 3)).astype("f4"), random.normal(size=(2, 3, 3)) + 1j
    a = a @ np.swapaxes(a, 1, 2) + np.eye(3, dtype="f4")
    same_results(jl.function(f, jit_compile=True)(a, z), f(a, z), exact=False)


def test_a_library_call_stands_among_fused_operations():
    def f(a, b):
        return np.exp(L.solve(a * 2, b - 1)).sum() + 1

    a, b = np.eye(3) * 2, np.ones(3)
    with jl.expect(clusters=1, fallbacks=0):
        assert jl.function(f, jit_compile=True)(a, b) == f(a, b)


def test_errors_of_the_numbers_come_from_the_line_of_the_call():
    def f(a):
        doubled = a * 2
        return L.inv(doubled) + 1

    compute = jl.function(f, jit_compile=True)
    compute(np.eye(2))
    with pytest.raises(L.LinAlgError, match=rf"Singular matrix.*line {f.__code__.co_firstlineno + 2}"):
        compute(np.ones((2, 2)))
    np.testing.assert_array_equal(compute(np.eye(2)), f(np.eye(2)))
    with pytest.raises(L.LinAlgError, match="must be square"):
        compute(np.ones((2, 3)))


def test_eigenvalues_of_a_real_matrix_are_left_to_numpy():
    def f(a):
        return L.eigvals(a * 1.0).sum()

    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(jl.function(f)(a), f(a))
    with pytest.raises(InvalidArgumentError, match="gives real or complex numbers depends on the data"):
        jl.function(f, jit_compile=True)(a)


def test_writing_through_the_diagonal_that_einsum_gives():
    def f(a):
        diagonal = np.einsum("ii->i", a)
        diagonal[:] = 0
        turned = np.einsum("ij->ji", a)
        turned[0] += 1
        return diagonal

    mine, theirs = np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(jl.function(f, jit_compile=True)(mine), f(theirs))
    np.testing.assert_array_equal(mine, theirs)


def test_gradients_compile():
    def loss(a, b):
        q, r = L.qr(a)
        values, vectors = L.eigh(a @ a.T)
        spectrum = np.fft.rfft(L.solve(a, b))
        return L.slogdet(a).logabsdet + np.sum(q[:, 0]) + r[0, 1] + vectors[0, 0] ** 2 + values[1] + np.sum(np.abs(spectrum))

    random = np.random.default_rng(4)
    a, b = random.normal(size=(3, 3)) + 3 * np.eye(3), random.normal(size=3)
    got = jl.grad(loss, (0, 1))(a, b)
    for x, slope in zip((a, b), got, strict=True):
        for index in np.ndindex(x.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = x.copy()
                moved[index] += step
                ends.append(loss(moved, b) if x is a else loss(a, moved))
            np.testing.assert_allclose(slope[index], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-7)


def test_the_same_call_written_twice_is_made_once():
    def f(a):
        q = L.qr(a)[0]
        q += 1
        return q, L.qr(a)[0], L.slogdet(a)[1], L.slogdet(a)[1] * 2, L.eigh(a)[1], L.eigh(a)[1], L.eigh(a)[0]

    a = np.eye(3) * 2 + 1
    with jl.record() as record:
        got = jl.function(f, jit_compile=True)(a)
    same_results(got, f(a))
    names = [op.op for op in record.report().ops]
    assert (names.count("LogMatrixDeterminant"), names.count("SelfAdjointEigV2")) == (1, 1)


def test_the_order_of_a_contraction_can_be_asked_for_once():
    def f(a, b):
        path = np.einsum_path("ij,jk,k->i", a, a, b, optimize="optimal")[0]
        return np.einsum("ij,jk,k->i", a, a, b, optimize=path)

    a, b = np.arange(9.0).reshape(3, 3), np.arange(3.0)
    np.testing.assert_array_equal(jl.function(f, jit_compile=True)(a, b), f(a, b))
