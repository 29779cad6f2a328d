"""`input_signature`: checked when the function is made, converted and refused when it is called."""

from __future__ import annotations

import numpy as np
import pytest

import jitlab as jl
from jitlab import TensorSpec
from jitlab.errors import BindingError

f32 = np.float32
VECTOR = TensorSpec([None], f32)


@pytest.mark.parametrize(
    "function, signature, text",
    [
        (lambda x: x, {"x": VECTOR}, "must be either a tuple or a list"),
        (lambda x: x, VECTOR, "must be either a tuple or a list"),
        (lambda x: x, [1], "must be a possibly nested sequence of TensorSpec objects"),
        (lambda x: x, [[VECTOR, "a"]], "must be a possibly nested sequence of TensorSpec objects"),
        (lambda x, y: x, [VECTOR], "input_signature missing type constraint for y"),
        (lambda x: x, [VECTOR, VECTOR, VECTOR], "contains 2 extra type constraints"),
        (lambda x, *, k: x, [VECTOR], "must have a default value"),
    ],
)
def test_errors_of_the_signature_itself(function, signature, text):
    with pytest.raises(TypeError, match=text):
        jl.function(function, input_signature=signature)


def test_there_is_one_trace():
    f = jl.function(lambda x: x + 1, input_signature=[VECTOR])
    for x in (np.ones(1, f32), np.ones(5, f32), np.ones(3), [1, 2], (1.5,), np.ones(0, f32)):
        result = f(x)
        assert result.dtype == f32 and np.array_equal(result, np.asarray(x, f32) + 1)
    assert f.experimental_get_tracing_count() == 1
    assert f.input_signature == (VECTOR,)
    assert jl.function(lambda x: x).input_signature is None


def test_numbers_take_the_dtype():
    f = jl.function(lambda x: x / 2, input_signature=[TensorSpec([], f32)])
    assert f(1) == 0.5 and f(1).dtype == f32 and f(True is False or 3.0) == 1.5


@pytest.mark.parametrize(
    "args, kwargs, text",
    [
        ((np.ones(2, np.int32),), {}, "Can not cast"),
        ((np.ones((2, 2), f32),), {}, "Can not cast"),
        (("text",), {}, "Can not cast"),
        ((np.ones(1, f32), 3), {}, "Can not cast 3 to Literal"),
        ((), {}, "missing a required argument: 'x'"),
        ((np.ones(1, f32), 2, 3), {}, "too many positional arguments"),
        ((np.ones(1, f32),), {"z": 1}, "got an unexpected keyword argument 'z'"),
    ],
)
def test_what_does_not_fit_is_a_type_error_and_a_value_error(args, kwargs, text):
    f = jl.function(lambda x, k=2: x * k, input_signature=[VECTOR])
    for kind in (TypeError, ValueError, BindingError):
        with pytest.raises(kind, match="Binding inputs to jl.function failed due to") as error:
            f(*args, **kwargs)
        assert text in str(error.value)


def test_parameters_without_a_spec_keep_their_default():
    f = jl.function(lambda x, k=2, *, flag=True: x * k, input_signature=[VECTOR])
    assert f([1], 2).tolist() == [2] == f([1], k=2, flag=True).tolist()
    with pytest.raises(TypeError, match="Can not cast False to Literal"):
        f([1], flag=False)


def test_var_keywords_are_dropped_and_var_positionals_take_the_rest():
    f = jl.function(lambda x, *rest, **options: x + sum(rest), input_signature=[VECTOR, VECTOR, VECTOR])
    assert f([1], [2], [3]).tolist() == [6]
    with pytest.raises(TypeError, match="Binding inputs"):
        f([1], [2])
    with pytest.raises(TypeError, match="Binding inputs"):
        f([1], [2], [3], k=1)


def test_specs_nest():
    f = jl.function(lambda pair: pair[0] + pair[1]["b"], input_signature=[(VECTOR, {"b": TensorSpec([], f32)})])
    assert f(([1, 2], {"b": 3})).tolist() == [4, 5]
    with pytest.raises(TypeError, match="Can not cast"):
        f(([1, 2], {"c": 3}))


def test_self_is_exempt():
    class Model:
        @jl.function(input_signature=[VECTOR])
        def double(self, x):
            return x * 2

    model = Model()
    assert model.double([1]).tolist() == [2] == Model.double(model, [1]).tolist()


def test_tensors_inside_a_trace_fit_or_do_not():
    f = jl.function(lambda x: x + 1, input_signature=[VECTOR])
    assert jl.function(lambda x: f(x) + f([1, 2]))(np.ones(2, f32)).tolist() == [4, 5]
    with pytest.raises(TypeError, match="Can not cast"):
        jl.function(lambda x: f(x))(np.ones(2))


def test_an_array_that_fits_is_written_into():
    def fill(x):
        x[:] = 7

    x = np.ones(3, f32)
    jl.function(fill, input_signature=[VECTOR])(x)
    assert x.tolist() == [7, 7, 7]


def test_the_signature_is_the_concrete_function():
    f = jl.function(lambda x: x + 1, input_signature=[VECTOR])
    concrete = f.get_concrete_function()
    assert f.get_concrete_function(TensorSpec([2], f32)) is concrete
    assert f.get_concrete_function(np.ones(4, f32)) is concrete
    with pytest.raises(TypeError, match="Can not cast"):
        f.get_concrete_function(TensorSpec([2, 2], f32))
    with pytest.raises(TypeError, match="Can not cast"):
        f.get_concrete_function(TensorSpec([2], np.int32))
    with pytest.raises(TypeError, match="missing a required argument"):
        jl.function(lambda x: x).get_concrete_function()
