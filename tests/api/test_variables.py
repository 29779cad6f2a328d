"""Variables: made in the first call only, whose body runs twice; what is captured."""

from __future__ import annotations

import numpy as np
import pytest

import jitlab as jl
from jitlab import TensorSpec


class Model:
    def __init__(self):
        self.v, self.runs = None, 0

    @jl.function
    def scale(self, x):
        self.runs += 1
        if self.v is None:
            self.v = jl.Variable(np.ones_like(x) * 3)
        return self.v * x


def test_a_first_call_that_makes_a_variable_runs_the_body_twice():
    model = Model()
    assert model.scale(np.array([1.0, 2.0])).tolist() == [3, 6]
    assert (model.runs, model.scale.experimental_get_tracing_count()) == (2, 2)
    model.v.assign([5.0, 5.0])
    assert model.scale(np.array([1.0, 2.0])).tolist() == [5, 10]
    assert (model.runs, model.scale.experimental_get_tracing_count()) == (2, 2)
    other = Model()
    assert other.scale(np.array([1.0])).tolist() == [3] and model.v is not other.v


def test_another_shape_later_is_an_error_of_the_multiply():
    model = Model()
    model.scale(np.ones(2))
    with pytest.raises(ValueError, match="broadcast"):
        model.scale(np.ones(3))


def test_a_function_that_always_makes_one_fails_at_once():
    def always(x):
        return jl.Variable(1.0) + x

    f = jl.function(always)
    for _ in range(2):
        with pytest.raises(ValueError, match="jl.function only supports singleton jl.Variables created on the first call"):
            f(np.ones(2))
    assert f.experimental_get_tracing_count() == 0


def test_a_later_trace_makes_none():
    made = []

    @jl.function
    def f(x, make):
        if make and not made:
            made.append(jl.Variable(1.0))
        return x * 2

    f(np.ones(1), False)
    with pytest.raises(ValueError, match="Creating variables on a non-first call to a function"):
        f(np.ones(1), True)


def test_the_initial_value_depends_on_the_arguments_of_the_first_call():
    kept = []

    @jl.function
    def f(x):
        if not kept:
            kept.append(jl.Variable(x.sum() + 1))
        return kept[0] + x

    assert f(np.array([1.0, 2.0])).tolist() == [5, 6]
    assert kept[0].numpy() == 4
    assert f(np.array([0.0, 0.0])).tolist() == [4, 4]


def test_get_concrete_function_makes_variables_too():
    model = Model()
    concrete = model.scale.get_concrete_function(TensorSpec([2], np.float64))
    assert model.v.shape == (2,) and concrete.variables == (model.v,)
    assert concrete(np.array([1.0, 2.0])).tolist() == [3, 6]


def test_an_initial_value_that_has_to_wait_says_so():
    kept = []

    @jl.function
    def f(x):
        if not kept:
            kept.append(jl.Variable(x * 2))
        return kept[0] + x

    with pytest.raises(ValueError, match="depends on an argument that has no value yet"):
        f.get_concrete_function(TensorSpec([2], np.float64))


def test_with_jit_compile():
    kept = []

    @jl.function(jit_compile=True)
    def f(x):
        if not kept:
            kept.append(jl.Variable(x * 2))
        return kept[0] + x

    assert f(np.ones(2)).tolist() == [3, 3]


def test_variables_are_read_at_each_call_and_python_values_once():
    v, k = jl.Variable(1.5), 2.0
    f = jl.function(lambda: v * k)
    assert f() == 3.0
    v.assign(6.0)
    k = 100.0
    assert f() == 12.0 and f.experimental_get_tracing_count() == 1
    assert f.get_concrete_function().variables == (v,)


def test_a_captured_array_is_an_input():
    table = np.array([1.0, 2.0])
    f = jl.function(lambda x: x + table)
    assert f(np.zeros(2)).tolist() == [1, 2]
    table[:] = 5
    assert f(np.zeros(2)).tolist() == [5, 5]
    (captured,) = f.get_concrete_function(np.zeros(2)).captured_inputs
    assert captured is table


def test_seed_003_state_by_effect_and_by_value():
    state = jl.Variable(1)

    @jl.function
    def add(x):
        state.assign_add(x)

    assert add(np.array(2)) is None and state.numpy() == 3
    assert jl.function(lambda state, x: state + x)(np.array(1), np.array(2)) == 3


def test_seed_003_a_loop_of_assignments():
    v = jl.Variable(1)

    @jl.function
    def f(n):
        for i in range(n):
            v.assign_add(i)

    assert f(3) is None and v.numpy() == 4
