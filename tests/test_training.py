"""The training step: one trace, one cluster, no host operation, and the weights of plain NumPy."""

import numpy as np
import pytest

from jitlab import events
from jitlab.api import function
from jitlab.differentiation import grad, gradients, value_and_grad
from jitlab.errors import CaptureError
from jitlab.variable import Variable

RNG = np.random.default_rng(0)
X = RNG.normal(size=(97, 16))
Y = np.eye(5)[RNG.integers(0, 5, 97)]


def loss(W, b, X, Y):
    z = X @ W + b
    z = z - z.max(axis=1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -(Y * logp).sum(axis=1).mean()


def trained_by_hand(steps):
    W, b = np.zeros((16, 5)), np.zeros(5)
    for _ in range(steps):
        z = X @ W + b
        z = z - z.max(axis=1, keepdims=True)
        p = np.exp(z)
        p /= p.sum(axis=1, keepdims=True)
        d = (p - Y) / len(X)
        W, b = W - 0.5 * (X.T @ d), b - 0.5 * d.sum(axis=0)
    return W, b


def test_200_steps_give_the_weights_of_numpy():
    @function
    def step(W, b, X, Y):
        value, (gW, gb) = value_and_grad(loss, (0, 1))(W, b, X, Y)
        return W - 0.5 * gW, b - 0.5 * gb, value

    seen = []
    W, b = np.zeros((16, 5)), np.zeros(5)
    with events.listen(seen.append):
        for _ in range(200):
            W, b, value = step(W, b, X, Y)
    want_W, want_b = trained_by_hand(200)
    np.testing.assert_allclose(W, want_W, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(b, want_b, rtol=1e-5, atol=1e-12)
    assert isinstance(value, np.float64)
    assert [type(e).__name__ for e in seen].count("Traced") == 1
    (plan,) = [e.plan for e in seen if isinstance(e, events.PlanMade)]
    assert len(plan["clusters"]) == 1
    assert all(op["cluster"] for op in plan["ops"])
    assert not [e for e in seen if isinstance(e, events.HostOperationRan)]


def test_gradients_keep_the_form_of_the_argument():
    def energy(params):
        return (params["w"] ** 2).sum() + 3.0 * params["b"][0].sum()

    found = grad(energy)({"w": np.arange(3.0), "b": [np.ones(2)]})
    np.testing.assert_array_equal(found["w"], [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(found["b"][0], [3.0, 3.0])
    value, slope = value_and_grad(np.sin)(0.5)
    assert (value, slope) == pytest.approx((np.sin(0.5), np.cos(0.5)))


def test_gradients_of_values_in_a_traced_function():
    @function
    def f(a, b):
        y = a * a * b
        first, second, none = gradients([y], [a, b, np.ones(3)])
        assert none is None
        return first, second

    a, b = np.arange(1.0, 4.0), np.full(3, 2.0)
    first, second = f(a, b)
    np.testing.assert_allclose(first, 2 * a * b)
    np.testing.assert_allclose(second, a * a)


def test_what_has_no_derivative_says_so():
    with pytest.raises(CaptureError, match="a 0-d float"):
        grad(lambda x: x * 2)(np.ones(3))
    with pytest.raises(CaptureError, match="only float and complex"):
        grad(lambda x: (x * 2.0).sum())(np.arange(3))
    with pytest.raises(CaptureError, match="being traced"):
        gradients([np.ones(3)], [np.ones(3)])
    with pytest.raises(TypeError, match="names argument 3"):
        grad(lambda x: x.sum(), 3)(np.ones(3))


def test_a_variable_holds_state_between_calls():
    v = Variable([1.0, 2.0])

    @function
    def advance(x):
        before = v.read_value()
        v.assign_add(2 * x)
        return before, v + x

    before, after = advance(np.ones(2))
    np.testing.assert_array_equal(before, [1.0, 2.0])
    np.testing.assert_array_equal(after, [4.0, 5.0])
    before, _ = advance(np.ones(2))
    np.testing.assert_array_equal(before, [3.0, 4.0])
    np.testing.assert_array_equal(v.numpy(), [5.0, 6.0])
    with pytest.raises(ValueError, match="keeps its shape"):
        v.assign(np.ones(3))
