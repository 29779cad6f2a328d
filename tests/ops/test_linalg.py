"""np.linalg through the table: what NumPy gives for every argument form, dtype, stack and empty matrix, and its errors."""

import numpy as np
import pytest

from jitlab.ops import Unsupported
from tests.ops.calling import F, agrees
from tests.ops.programs import Program

L = np.linalg
random = np.random.default_rng(5)


def normal(*shape, dtype="f8"):
    dtype = np.dtype(dtype)
    x = random.normal(size=shape)
    if dtype.kind == "c":
        x = x + 1j * random.normal(size=shape)
    return (5 * x if dtype.kind in "iu" else x).astype(dtype)


def definite(n, *stack, dtype="f8"):
    """Positive definite, and well away from singular also when it is cut to integers."""
    inexact = dtype if np.dtype(dtype).kind in "fc" else "f8"
    a = normal(*stack, n, n, dtype=inexact)
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)).astype(dtype)


UNARY = (
    *(L.inv, L.det, L.slogdet, L.cholesky, L.eigh, L.eigvalsh, L.svd, L.svdvals, L.pinv, L.qr, L.matrix_rank, L.cond),
    *(L.norm, L.matrix_norm, L.vector_norm, L.trace, L.matrix_transpose, L.diagonal, L.tensorinv),
)
each_dtype = pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4", "?", "f2"])
stacks = pytest.mark.parametrize("stack", [(), (2,)], ids=["matrix", "stack"])
ORDERS = (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc", 0, 3, 2.5, "bad")


@each_dtype
@stacks
def test_factors_inverses_and_what_they_tell(dtype, stack):
    a, wide = definite(3, *stack, dtype=dtype), normal(*stack, 3, 4).astype(dtype)
    for function in UNARY:
        agrees(function, a)
        agrees(function, wide)
        agrees(function, np.swapaxes(wide, -1, -2))
    if np.dtype(dtype).kind == "c":
        agrees(L.eig, a)
        agrees(L.eigvals, a)


@each_dtype
@stacks
def test_argument_forms(dtype, stack):
    a, wide = definite(3, *stack, dtype=dtype), normal(*stack, 3, 4).astype(dtype)
    tall = np.swapaxes(wide, -1, -2)
    for b in (normal(3), normal(3, 2), normal(2, 3, 2, dtype="f4"), normal(2), normal(3, 0), normal()):
        agrees(L.solve, a, b)
    for x in (wide, tall):
        for mode in ("reduced", "complete", "r", "raw", "bad"):
            agrees(L.qr, x, mode)
        for full in (True, False):
            agrees(L.svd, x, full)
            agrees(L.svd, x, full, False)
        agrees(L.pinv, x, rcond=0.5)
        agrees(L.pinv, x, rtol=None)
        agrees(L.pinv, x, rtol=0.5)
        agrees(L.matrix_rank, x, tol=1.0)
        agrees(L.matrix_rank, x, rtol=0.1)
        agrees(L.trace, x, offset=1, dtype="c8")
        agrees(L.diagonal, x, offset=-1)
    agrees(L.pinv, wide, 0.5, rtol=0.1)
    agrees(L.matrix_rank, wide, 0.5, rtol=0.1)
    for function in (L.svd, L.pinv, L.matrix_rank):
        agrees(function, a, hermitian=True)
    agrees(L.svd, a, hermitian=True, compute_uv=False)
    agrees(L.cholesky, a, upper=True)
    for uplo in ("U", "l", "X"):
        agrees(L.eigh, a, uplo)
        agrees(L.eigvalsh, a, UPLO=uplo)
    for n in (-3, -1, 0, 1, 2, 3, 4, 7, 2.5):
        agrees(L.matrix_power, a, n)


@each_dtype
def test_norms(dtype):
    x, a = normal(2, 3, 4).astype(dtype), definite(3, dtype=dtype)
    for order in ORDERS:
        agrees(L.norm, x, order)
        agrees(L.norm, x[0], order)
        agrees(L.norm, x[0, 0], order)
        agrees(L.norm, x, order, axis=-1)
        agrees(L.norm, x, order, axis=(-1, 0), keepdims=True)
        agrees(L.vector_norm, x, ord=order)
        agrees(L.vector_norm, x, ord=order, axis=1, keepdims=True)
        agrees(L.matrix_norm, x, ord=order)
        agrees(L.cond, a, order)
        agrees(L.cond, x, order)
    agrees(L.vector_norm, x, axis=(2, 0), keepdims=True)
    agrees(L.norm, x, axis=(0, 0))
    agrees(L.norm, x, axis=(0, 1, 2))
    agrees(L.norm, x, axis=5)
    agrees(L.norm, x, axis="x")


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3), (0, 3), (3, 0), (2, 3, 0), (3,), ()])
def test_empty_matrices_and_what_is_none(shape):
    x = np.ones(shape)
    for function in UNARY:
        agrees(function, x)
    agrees(L.solve, x, x)
    if len(shape) == 2:
        agrees(L.lstsq, x if shape[0] <= shape[1] else x.T, np.ones((min(shape), 2)))
    agrees(L.matrix_power, x, 3)
    for order in (2, -2, 1, np.inf, "nuc", -1):
        agrees(L.matrix_norm, x, ord=order)


def test_least_squares_and_systems_of_tensors():
    for dtype in ("f4", "f8", "c16", "i4"):
        a = normal(3, 4).astype(dtype)
        for b in (normal(3), normal(3, 2), normal(3, 0), normal(4), normal(2, 3, 1)):
            agrees(L.lstsq, a, b)
        agrees(L.lstsq, a, normal(3, 2), 1e-3)
        agrees(L.lstsq, a[:, :3], normal(3))
    agrees(L.lstsq, np.ones((3, 3)), normal(3))  # of rank one
    agrees(L.tensorinv, normal(4, 6, 8, 3))
    agrees(L.tensorinv, normal(24, 8, 3), ind=1)
    agrees(L.tensorinv, normal(24, 8, 3), ind=0)
    agrees(L.tensorsolve, normal(6, 4, 2, 3, 4), normal(6, 4))
    agrees(L.tensorsolve, normal(2, 6, 3), normal(6), axes=(0, 2), messages=False)
    agrees(L.tensorsolve, normal(2, 3, 6), normal(6), axes=(1,))
    agrees(L.tensorsolve, normal(2, 3, 5), normal(2, 3))


def test_errors_that_only_the_numbers_tell():
    singular = np.ones((2, 3, 3))
    for function in (L.inv, L.cholesky):
        agrees(function, -singular)
    agrees(L.solve, singular, np.ones(3))
    agrees(L.eigh, np.full((3, 3), np.nan), messages=False)
    agrees(L.svd, np.full((3, 3), np.nan))
    for order in ORDERS[:9]:
        agrees(L.cond, singular, order)
        agrees(L.cond, np.where(np.eye(3, dtype=bool), np.nan, singular), order)


def test_named_results_are_numpys():
    a = definite(3)
    for function in (L.eigh, L.slogdet, L.svd, L.qr):
        graph, _ = Program(function, (a,)).graph()
        with graph.building():
            result = F[function](graph.parameters[0])
        assert type(result) is type(function(a)) and result._fields == function(a)._fields


@pytest.mark.parametrize(
    ("function", "args", "reason"),
    [
        (L.eig, (definite(3),), "gives real or complex numbers depends on the data"),
        (L.eigvals, (definite(3),), "gives real or complex numbers depends on the data"),
        (L.lstsq, (normal(4, 2), normal(4)), "depends on the rank of a tall matrix"),
    ],
)
def test_results_whose_type_the_numbers_decide_are_left_to_numpy(function, args, reason):
    with pytest.raises(Unsupported, match=reason) as refused:
        Program(function, args).graph()
    assert refused.value.code == "data_dependent"
