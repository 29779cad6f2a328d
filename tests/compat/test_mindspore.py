"""What mindspore's programs rely on beyond names."""

import pickle

import numpy as np
import pytest

import jitlab as jl
from jitlab.compat import mindspore
from jitlab.compat.mindspore import Tensor


def halves(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = (x * 2).astype(np.int32)
    return y


def returned(x):
    if x.max() > 1:
        return x
    return x.astype(np.float64)


def counted(x):
    y = x.sum()
    while y < 10:
        y = (y + 1).astype(np.float64)
    return y


@pytest.mark.parametrize("function", [halves, returned])
@pytest.mark.parametrize("options", [{}, {"jit_level": "O1"}, {"fullgraph": True}])
@pytest.mark.parametrize("sign", [1, -1])
def test_sides_of_different_type_are_a_type_error(function, options, sign):
    traced = mindspore.jit(function, **options)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"Type Join Failed: .*float32 in the main branch"):
            traced(Tensor(sign * np.ones(3, np.float32)))


@pytest.mark.parametrize("make", [jl.jit, lambda f: mindspore.jit(f, capture_mode="bytecode")])
@pytest.mark.parametrize("sign", [1, -1])
def test_elsewhere_python_takes_the_side(make, sign):
    x = sign * np.ones(3, np.float32)
    for function in (halves, returned, counted):
        traced = make(function)
        for _ in range(3):
            got, want = traced(x), function(x)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


def test_sides_of_one_type_and_other_shapes_are_no_error():
    @mindspore.jit
    def f(x):
        if x.sum() > 0:
            y = x[:2]
        else:
            y = x * 3
        return y

    for x in (np.ones(3), -np.ones(3)):
        np.testing.assert_array_equal(f(x), x[:2] if x.sum() > 0 else x * 3)


# ---- Tensors


WEIGHTS = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


class Layer:
    def __init__(self):
        self.weights = [WEIGHTS, Tensor([1.0, 2.0, 3.0])]
        self.bias = Tensor(np.float32(0.5))

    @mindspore.jit
    def forward(self, x):
        return x @ self.weights[0].T * 2 + self.bias, self.weights[1].sum()


def is_tensor(value):
    return isinstance(value, Tensor) and type(value.asnumpy()) is np.ndarray


def test_a_tensor_gives_its_memory_as_a_numpy_array():
    x = Tensor([1.0, 2.0])
    assert x.dtype == np.float32 and is_tensor(x) and is_tensor(x * 2) and is_tensor(Tensor(shape=(2, 3)))
    x.asnumpy()[0] = 7
    assert x[0] == 7 and repr(pickle.loads(pickle.dumps(x))) == repr(x)


def test_tensors_in_arguments_names_and_objects_are_compiled_and_results_are_tensors():
    layer, x = Layer(), Tensor(np.ones((4, 3), np.float32))
    with jl.record() as recording:
        for _ in range(8):
            y, total = layer.forward(x)
    assert is_tensor(y) and is_tensor(total) and total.asnumpy() == 6
    np.testing.assert_array_equal(y.asnumpy(), np.ones((4, 3)) @ WEIGHTS.asnumpy().T * 2 + 0.5)
    report = recording.report()
    assert report.clusters and not report.statements
    assert Layer.forward.experimental_get_tracing_count() == 1


def test_an_argument_that_is_given_back_is_that_argument_and_one_that_is_written_is_written():
    @mindspore.jit
    def f(x, y):
        x += y
        return x, y * 2

    x, y = Tensor(np.zeros(3)), Tensor(np.ones(3))
    for n in range(1, 8):
        first, second = f(x, y)
        assert first is x and is_tensor(second)
        np.testing.assert_array_equal(x.asnumpy(), np.full(3, float(n)))
