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


def sorted_as_numpy(x):
    y = x * 2
    return Tensor(np.sort(y.asnumpy())) + 1


def shown_and_written(x):
    y = x * 2
    print(y.asnumpy().sum(), end="")
    z = y.asnumpy()
    z[0] = 7
    return y + z


def kept_in_a_list(x):
    found = []
    for part in (x, x + 1):
        found.append(part.sum().asnumpy())
    return x[0].asnumpy() + np.stack(found)


def inside_a_try(x):
    try:
        y = (x @ x).asnumpy()
    except ValueError:
        y = x.asnumpy()
    return x * 2 + y


def in_a_helper(x):
    return sorted_as_numpy(x * 3).asnumpy().max() + inside_a_try(x)


PLAIN = [sorted_as_numpy, shown_and_written, kept_in_a_list, inside_a_try, in_a_helper]


@pytest.mark.parametrize("mode", ["ast", "bytecode"])
@pytest.mark.parametrize("program", PLAIN)
def test_asnumpy_between_captured_pieces_gives_what_python_gives(program, mode, capsys):
    want = program(Tensor([3.0, 1.0, 2.0]))
    compiled = mindspore.jit(program, capture_mode=mode)
    for _ in range(3):
        found = compiled(Tensor([3.0, 1.0, 2.0]))
        assert is_tensor(found) and found.dtype == want.dtype
        np.testing.assert_array_equal(found.asnumpy(), want)


@pytest.mark.parametrize("mode", ["ast", "bytecode"])
@pytest.mark.parametrize("program", PLAIN[:3])
def test_asnumpy_is_an_error_of_strict_mode(program, mode, capsys):
    with pytest.raises((AttributeError, jl.errors.UnsupportedError), match="In JIT strict mode|cannot be traced whole"):
        mindspore.jit(program, capture_mode=mode, fullgraph=True)(Tensor([3.0, 1.0, 2.0]))


def test_one_number_of_a_tensor_is_a_tensor():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    for number in (x[0, 1], x.sum(), x.max(axis=0)[1], x[0] @ x[1], np.add(x[0, 0], x[0, 1])):
        assert is_tensor(number) and number.shape == () and float(number) > 1
