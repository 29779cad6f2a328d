"""Every example of the seed on `tf.function`, with only the import changed, and its exact result."""

import numpy as np
import pytest

from jitlab.compat import tensorflow as tf


def equals(found, expected, dtype):
    """A tensor of this dtype and value."""
    assert isinstance(found, tf.Tensor)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)
    return True


def test_example_usage():
    @tf.function
    def f(x, y):
        return x ** 2 + y

    x = tf.constant([2, 3])
    y = tf.constant([3, -2])
    assert equals(f(x, y), [7, 7], np.int32)


def test_data_dependent_control_flow():
    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0:
            return x * x
        else:
            return -x // 2

    assert equals(f(tf.constant(-2)), 1, np.int32)
    assert equals(f(tf.constant(3)), 9, np.int32)
    assert f.experimental_get_tracing_count() == 1


def test_early_return():
    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0:
            return x * x
        return -x // 2

    assert equals(f(tf.constant(-2)), 1, np.int32)
    assert equals(f(tf.constant(3)), 9, np.int32)


def test_closure_of_tensor_and_variable():
    x = tf.constant([-2, -3])
    y = tf.Variable([3, -2])

    @tf.function
    def f():
        return x ** 2 + y

    assert equals(f(), [7, 7], np.int32)


def test_side_effects_on_a_variable():
    v = tf.Variable(1)

    @tf.function
    def f(x):
        for i in tf.range(x):
            v.assign_add(i)

    assert f(3) is None
    assert equals(v.read_value(), 4, np.int32)


def test_python_effects_happen_once():
    l = []  # noqa: E741

    @tf.function
    def f(x):
        for i in x:
            l.append(i + 1)  # Caution! Will only happen once when tracing

    for _ in range(3):
        f(tf.constant([1, 2, 3]))
    assert len(l) == 1
    with pytest.raises(TypeError, match="out of scope"):
        l[0] + 1


def test_tensor_array():
    @tf.function
    def f(x):
        ta = tf.TensorArray(dtype=tf.int32, size=0, dynamic_size=True)
        for i in range(len(x)):
            ta = ta.write(i, x[i] + 1)
        return ta.stack()

    assert equals(f(tf.constant([1, 2, 3])), [2, 3, 4], np.int32)


def test_concrete_function_has_a_graph():
    @tf.function
    def f(x):
        return x + 1

    assert isinstance(f, tf.types.experimental.GenericFunction)
    assert isinstance(f, tf.types.experimental.PolymorphicFunction)
    assert isinstance(f.get_concrete_function(1), tf.types.experimental.ConcreteFunction)
    assert isinstance(f.get_concrete_function(1).graph, tf.Graph)


def test_python_values_retrace_and_tensors_do_not():
    @tf.function
    def f(x):
        return tf.abs(x)

    f1 = f.get_concrete_function(1)
    f2 = f.get_concrete_function(2)  # Slow - compiles new graph
    assert (f1 is f2) is False
    f1 = f.get_concrete_function(tf.constant(1))
    f2 = f.get_concrete_function(tf.constant(2))  # Fast - reuses f1
    assert (f1 is f2) is True


def test_each_shape_is_a_concrete_function():
    @tf.function
    def f(x):
        return x + 1

    vector = tf.constant([1.0, 1.0])
    matrix = tf.constant([[3.0]])
    assert (f.get_concrete_function(vector) is f.get_concrete_function(matrix)) is False


def test_an_input_signature_makes_one():
    @tf.function(
        input_signature=[tf.TensorSpec(shape=None, dtype=tf.float32)])
    def f(x):
        return x + 1

    vector = tf.constant([1.0, 1.0])
    matrix = tf.constant([[3.0]])
    assert (f.get_concrete_function(vector) is f.get_concrete_function(matrix)) is True
    assert equals(f(vector), [2.0, 2.0], np.float32)
    assert equals(f(matrix), [[4.0]], np.float32)


def test_variables_are_created_once():
    class MyModule(tf.Module):
        def __init__(self):
            self.v = None

        @tf.function
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(tf.ones_like(x))
            return self.v * x

    module, other = MyModule(), MyModule()
    assert equals(module(tf.constant([1.0, 2.0])), [1.0, 2.0], np.float32)
    v = module.v
    assert equals(module(tf.constant([3.0, 4.0])), [3.0, 4.0], np.float32)
    assert module.v is v
    other(tf.constant([1.0]))
    assert other.v is not v
    with pytest.raises(ValueError):
        module(tf.constant([1.0, 2.0, 3.0]))


def test_state_in_a_variable():
    state = tf.Variable(1)

    @tf.function
    def f(x):
        state.assign_add(x)

    assert f(tf.constant(2)) is None  # Non-pure functional style
    assert equals(state.read_value(), 3, np.int32)


def test_state_in_arguments_and_results():
    state = tf.constant(1)

    @tf.function
    def f(state, x):
        state += x
        return state

    state = f(state, tf.constant(2))  # Pure functional style
    assert equals(state, 3, np.int32)


def test_python_operations_run_once_a_trace(capsys):
    @tf.function
    def f(a, b):
        print('this runs at trace time; a is', a, 'and b is', b)
        return b

    assert equals(f(1, tf.constant(1)), 1, np.int32)
    said = 'this runs at trace time; a is {} and b is Tensor("b:0", shape=(), dtype=int32)\n'
    assert capsys.readouterr().out == said.format(1)
    assert equals(f(1, tf.constant(2)), 2, np.int32)
    assert capsys.readouterr().out == ""
    assert equals(f(2, tf.constant(1)), 1, np.int32)
    assert capsys.readouterr().out == said.format(2)
    assert equals(f(2, tf.constant(2)), 2, np.int32)
    assert capsys.readouterr().out == ""
    assert f.experimental_get_tracing_count() == 2


def test_type_hints_save_traces():
    @tf.function(experimental_follow_type_hints=True)
    def f_with_hints(x: tf.Tensor):
        print('Tracing')
        return x

    @tf.function(experimental_follow_type_hints=False)
    def f_no_hints(x: tf.Tensor):
        print('Tracing')
        return x

    for f, traces in ((f_no_hints, 2), (f_with_hints, 1)):
        assert f(1) == 1
        assert f(2) == 2
        assert f.experimental_get_tracing_count() == traces
    assert equals(f_with_hints(1), 1, np.int32)
