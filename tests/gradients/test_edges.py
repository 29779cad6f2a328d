"""Where a function has no slope, or an infinite one, docs/internals/gradients.md holds: no NaN from what does not matter."""

import numpy as np
import pytest

import jitlab as jl
from tests.gradients.slopes import second_slope_of, slope_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
X = np.array([-1.0, 0.0, 4.0])


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda x: np.where(x > 0, np.sqrt(x), 0), [0, 0, 0.25]),
        (lambda x: np.where(x == 0, 0, 1 / x), [-1, 0, -1 / 16]),
        (lambda x: np.where(x != 0, x * (1 / x) * x, 0), [1, 0, 1]),
        (lambda x: np.where(x > 0, np.sin(1 / x) * np.log(x), 0), [0, 0, np.sin(0.25) / 4 - np.cos(0.25) * np.log(4) / 16]),
        (lambda x: np.where(x > 0, x**-0.5, x**2), [-2, 0, -1 / 16]),
        (lambda x: np.where(x < 1, x, x * np.exp(x * 1000)), [1, 1, np.inf]),
        (lambda x: np.where(x > 0, np.log(x), np.exp(1000 * x)), [0, 1000, 0.25]),
        (lambda x: (1 / x)[2:] * 2, [0, 0, -1 / 8]),
        (lambda x: np.maximum(1 / x, np.where(x > 0, 2.0, -2.0)), [-1, -np.inf, 0]),
        (lambda x: np.where(x > 0, np.where(x > 2, np.log(x - 2), 1 / (x - 2)), np.sqrt(x)), [np.nan, np.inf, 0.5]),
        (lambda x: np.select([x > 0, x < 0], [np.sqrt(x), np.sqrt(-x)], 0.0), [-0.5, 0, 0.25]),
    ],
    ids=lambda value: None,
)
def test_what_is_not_taken_puts_no_nan_into_a_gradient(function, slope):
    np.testing.assert_allclose(slope_of(function, X), slope, rtol=1e-12)


def test_nor_does_it_in_a_loop():
    def function(x):
        r, s = 1 / x, x * 0
        for _ in range(20):
            s = s + np.where(x != 0, r * x * x * 0.1, 0)
        return s

    np.testing.assert_allclose(slope_of(function, X), [2, 0, 2])


def test_a_branch_not_taken_does_not_count():
    def function(x):
        if x > 0:
            return np.sqrt(x) * 3
        return x * 0.5

    assert jl.grad(function)(np.float64(0.0)) == 0.5


def test_the_second_derivative_of_what_is_not_taken_is_zero():
    np.testing.assert_allclose(second_slope_of(lambda x: np.where(x > 0, np.sqrt(x), 0), X), [0, 0, -1 / 32])


def test_the_second_derivative_at_a_minimum_sees_slopes_where_the_first_is_zero():
    """The cotangent of exp is 0 there, and its slope is not."""
    np.testing.assert_allclose(second_slope_of(lambda x: (np.exp(x) - 1) ** 2, [0.0]), [2.0])
    np.testing.assert_allclose(second_slope_of(lambda x: (np.sqrt(x) - 1) ** 2, [1.0]), [0.5])
    np.testing.assert_allclose(second_slope_of(lambda x: np.where(x > -9, (1 / x - 2) ** 2, x), [0.5]), [32.0])


@pytest.mark.parametrize(
    ("function", "x", "slope"),
    [
        (np.abs, [-2.0, 0.0, 3.0], [-1, 0, 1]),
        (lambda x: np.max(x, axis=1), [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], [[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]]),
        (np.min, [1.0, 1.0, 3.0], [0.5, 0.5, 0]),
        (lambda x: np.maximum(x, 0.0), [-1.0, 0.0, 1.0], [0, 0.5, 1]),
        (lambda x: np.minimum(x, x * x), [0.0, 1.0, 2.0], [0.5, 1.5, 1]),
        (lambda x: np.clip(x, -1.0, 1.0), [-2.0, -1.0, 0.0, 1.0, 2.0], [0, 1, 1, 1, 0]),
        (np.prod, [2.0, 0.0, 3.0], [0, 6, 0]),
        (np.prod, [2.0, 0.0, 0.0], [0, 0, 0]),
        (np.var, [2.0, 2.0, 2.0], [0, 0, 0]),
        (lambda x: np.hypot(x, 0 * x), [0.0, 3.0], [0, 1]),
        (lambda x: x**0, [-2.0, 0.0, 3.0], [0, 0, 0]),
        (lambda x: x**1, [-2.0, 0.0, 3.0], [1, 1, 1]),
        (lambda x: x**2, [-2.0, 0.0, 3.0], [-4, 0, 6]),
        (lambda x: x**0.5, [0.0, 4.0], [np.inf, 0.25]),
        (lambda x: x ** np.array([0.0, 1.0, 2.0]), [0.0, 0.0, 0.0], [0, 1, 0]),
        (lambda x: np.zeros(2) ** x, [1.0, 2.0], [0, 0]),
        (lambda x: np.floor(x) * x, [1.5, -0.5], [1, -1]),
        (lambda x: np.abs(x * (1 + 1j)), [0.0, 2.0], [0, np.sqrt(2)]),
    ],
    ids=lambda value: None,
)
def test_ties_and_tips(function, x, slope):
    np.testing.assert_allclose(slope_of(function, x), slope, atol=1e-12)


def test_a_complex_slope_is_the_conjugate_of_the_derivative():
    """As `tf.gradients` has it: steepest ascent is along the gradient of a real function."""
    z = np.array([1 + 2j, -0.5 + 0.3j])
    np.testing.assert_allclose(slope_of(lambda z: np.real(z**3), z), np.conj(3 * z**2))
    np.testing.assert_allclose(slope_of(lambda z: np.abs(z) ** 2, z), 2 * z)
    np.testing.assert_allclose(slope_of(np.imag, z), [1j, 1j])


# What has no cotangent


def test_a_stopped_value_counts_as_constant():
    x = np.array([3.0, 4.0])
    np.testing.assert_array_equal(jl.grad(lambda x: (jl.stop_gradient(x) * x).sum())(x), x)
    np.testing.assert_array_equal(jl.grad(lambda x: (jl.stop_gradient({"a": [x]})["a"][0] * x).sum())(x), x)
    assert jl.stop_gradient(x) is x


def test_what_was_computed_before_counts_as_constant():
    @jl.function
    def program(x):
        before = x * 2
        return jl.grad(lambda z: (z * before).sum())(x)

    np.testing.assert_array_equal(program(np.array([3.0])), [6.0])


def test_several_ys_weights_and_what_is_not_connected():
    @jl.function
    def program(x, y, w):
        a, b = np.sin(x) * y, y * 2
        dx, dy, dw = jl.gradients([a, b], [x, y, w], grad_ys=[w, None])
        assert dw is None
        return dx, dy

    x, y, w = np.array([0.3, 0.4]), np.array([2.0, 3.0]), np.array([10.0, 20.0])
    dx, dy = program(x, y, w)
    np.testing.assert_allclose(dx, w * y * np.cos(x))
    np.testing.assert_allclose(dy, w * np.sin(x) + 2)


# Hessians


def test_a_hessian_is_a_loop_of_gradients():
    def rosenbrock(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    n = 20
    x = np.linspace(-1.0, 1.0, n)
    expected = np.diag(np.r_[1200 * x[:-1] ** 2 - 400 * x[1:] + 2, 0] + np.r_[0, np.full(n - 1, 200.0)])
    expected += np.diag(-400 * x[:-1], 1) + np.diag(-400 * x[:-1], -1)
    hessian = jl.hessian(rosenbrock)
    np.testing.assert_allclose(hessian(x), expected, rtol=1e-12, atol=1e-9)
    assert [node.op.name for node in hessian.get_concrete_function(x).graph.nodes].count("While") == 1


def test_a_hessian_of_a_matrix_has_its_shape_twice():
    weights = np.arange(6.0).reshape(2, 3)
    found = jl.hessian(lambda w, x: ((w @ x) ** 2).sum(), 0)(weights, np.array([1.0, 2.0, 3.0]))
    assert found.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(found[1, 0, 1], [2, 4, 6])
    assert not found[0, :, 1].any()
