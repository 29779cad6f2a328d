"""The gradients of JAX, where it is installed (`pip install jitlab[jax]`): real ones are equal, complex ones conjugates."""

import numpy as np
import pytest

from tests.gradients.slopes import second_slope_of, slope_of

jax = pytest.importorskip("jax", reason="JAX is not installed; it is an extra of its own, as it is large")
jnp = jax.numpy

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
X = np.array([-2.0, -0.7, 0.4, 0.4, 1.0, 3.0])
M = np.linspace(-1.0, 2.0, 9).reshape(3, 3) + 2 * np.eye(3)
Z = np.array([1 + 2j, -0.5 + 0.3j, 0.7 - 1.1j])
WEIGHTS = np.arange(6.0)


REAL = {
    "max with ties": (lambda np, x: np.max(x.reshape(2, 3), axis=1), np.array([1.0, 3.0, 3.0, 2.0, 2.0, 2.0])),
    "maximum with ties": (lambda np, x: np.maximum(x, 0.4), X),
    "prod with zeros": (lambda np, x: np.prod(x, axis=0), np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 4.0]])),
    "var": (lambda np, x: np.var(x.reshape(2, 3), axis=1, ddof=1) ** 2, X),
    "norm": (lambda np, x: np.linalg.norm(x), X),
    "power": (lambda np, x: x ** np.array([0.0, 1.0, 2.0, 0.5, 1.5, -1.0]), np.abs(X)),
    "power of itself": (lambda np, x: x**x, np.abs(X)),
    "arctan2": (lambda np, x: np.arctan2(x, x[::-1]), X),
    "cumsum": (lambda np, x: np.cumsum(x) ** 2 * WEIGHTS, X),
    "cumprod": (lambda np, x: np.cumprod(x) * WEIGHTS, np.array([1.0, 2.0, 0.0, 3.0, 0.0, 1.0])),
    "sort with ties": (lambda np, x: np.sort(x) ** 2 * WEIGHTS, X),
    "positions": (lambda np, x: x[np.array([0, 0, 2, -1])] ** 2 * WEIGHTS[:4], X),
    "slices": (lambda np, x: x[1:] * x[:-1] * x[::-1][:5], X),
    "where": (lambda np, x: np.where(x > 0, x * x, -x), X),
    "floor and mod": (lambda np, x: np.floor(x) * np.mod(x, 1.5), X),
    "softmax": (lambda np, x: np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x))) * WEIGHTS, X),
    "logaddexp": (lambda np, x: np.logaddexp(x, x[::-1] * 2), X),
    "interp": (lambda np, x: np.interp(x, np.array([-1.0, 0.5, 2.0]), np.array([1.0, 3.0, 2.0])), X),
    "einsum": (lambda np, x: np.einsum("i,j,ij->j", x[:3], x[3:], M), X),
    "matrices": (lambda np, x: np.tanh(M @ x.reshape(3, 2)) @ x.reshape(2, 3), X),
    "solve": (lambda np, x: np.linalg.solve(x, M), M + np.eye(3)),
    "det": (lambda np, x: np.linalg.det(x) * np.linalg.inv(x), M + np.eye(3)),
    "concatenate": (lambda np, x: np.concatenate([x, x[:2] ** 2, np.sin(x)]) ** 2, X),
}
COMPLEX = {
    "abs": lambda np, z: np.abs(z) ** 3,
    "parts": lambda np, z: np.real(z * z) * np.imag(z),
    "conj": lambda np, z: np.real(np.conj(z) * z * z),
    "angle": lambda np, z: np.angle(z) ** 2,
    "quotient": lambda np, z: np.real(1 / (z * z + 1)),
    "functions": lambda np, z: np.imag(np.exp(z) * np.sqrt(z) + np.tanh(z) * np.log(z)),
    "product": lambda np, z: np.abs(np.prod(z) + (z @ z) * 1j),
    "power": lambda np, z: np.real(z**3 + z**1.5),
    "fft": lambda np, z: np.abs(np.fft.fft(z)) ** 3,
    "through reals": lambda np, z: np.abs(np.exp(2j * np.real(z)) + np.real(z)),
}


TWICE = ["var", "norm", "power of itself", "softmax", "matrices", "cumsum"]


def slope_by_jax(function):
    return jax.grad(lambda x: jnp.sum(function(jnp, x)))


@pytest.fixture(scope="module")
def expected():
    """All of JAX's gradients, compiled at once: one by one they take minutes."""

    def every():
        real = {name: slope_by_jax(function)(jnp.asarray(x)) for name, (function, x) in REAL.items()}
        of_complex = {name: slope_by_jax(function)(jnp.asarray(Z)) for name, function in COMPLEX.items()}
        twice = {n: jax.grad(lambda x, n=n: jnp.sum(slope_by_jax(REAL[n][0])(x)))(jnp.asarray(REAL[n][1])) for n in TWICE}
        return real, of_complex, twice

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        return jax.tree_util.tree_map(np.asarray, jax.jit(every)())
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("name", REAL)
def test_a_gradient_is_that_of_jax(name, expected):
    function, x = REAL[name]
    np.testing.assert_allclose(slope_of(lambda x: function(np, x), x), expected[0][name], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", COMPLEX)
def test_a_complex_gradient_is_the_conjugate_of_that_of_jax(name, expected):
    found = slope_of(lambda z: COMPLEX[name](np, z), Z)
    np.testing.assert_allclose(found, np.conj(expected[1][name]), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", TWICE)
def test_a_second_derivative_is_that_of_jax(name, expected):
    function, x = REAL[name]
    np.testing.assert_allclose(second_slope_of(lambda x: function(np, x), x), expected[2][name], rtol=1e-7, atol=1e-9)
