"""What `jl.grad`, `jl.function` and `jl.jit` wrap may be one of them: each keeps its own fields."""

import numpy as np
import pytest

import jitlab as jl


def wave(x):
    return np.sin(3.0 * x) * np.exp(-x * x)


def differences(f, x, h=1e-4):
    return (f(x + h) - f(x - h)) / (2 * h)


def test_the_gradient_of_a_gradient_is_the_second_derivative():
    slope = jl.grad(wave)
    curvature = jl.grad(slope)
    third = jl.grad(curvature)
    assert slope(0.3) == pytest.approx(differences(wave, 0.3), rel=1e-6)
    assert curvature(0.3) == pytest.approx(differences(slope, 0.3), rel=1e-6)
    assert third(0.3) == pytest.approx(differences(curvature, 0.3), rel=1e-6)


def test_value_and_gradient_of_a_gradient():
    value, slope = jl.value_and_grad(jl.grad(wave))(np.float64(0.3))
    assert value == jl.grad(wave)(0.3)
    assert slope == jl.grad(jl.grad(wave))(0.3)


@pytest.mark.parametrize("outer", [jl.function, jl.jit])
@pytest.mark.parametrize("inner", [jl.function, jl.jit, jl.grad])
def test_a_function_around_another_keeps_its_own_account(outer, inner):
    one = inner(wave)
    two = outer(one)
    assert two(0.3) == one(0.3)
    assert jl.grad(two)(0.3) == pytest.approx(differences(one, 0.3), rel=1e-6)
    assert "ledger" not in vars(one) or two.ledger is not one.ledger


def test_the_gradient_of_a_python_number_is_a_numpy_scalar():
    assert type(jl.grad(wave)(0.3)) is np.float64
    assert type(jl.grad(lambda x: x["a"] * x["b"])({"a": 2.0, "b": np.float32(3)})["a"]) is np.float64


def test_attributes_of_a_function_are_kept_and_hide_nothing():
    def f(x):
        return x + 1

    f.unit, f.ledger = "m", "of my own"
    compiled = jl.function(f)
    assert compiled.unit == "m"
    assert compiled.ledger != "of my own"
    assert compiled(np.ones(2)).tolist() == [2.0, 2.0]
