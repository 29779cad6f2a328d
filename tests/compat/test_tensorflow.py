"""compat.tensorflow: forms, dtypes, namespaces, gradients and errors beyond the seeds' examples."""

import importlib

import numpy as np
import pytest

from jitlab.compat import tensorflow as tf


@pytest.fixture(autouse=True)
def own_default_graph():
    yield
    tf.reset_default_graph()


NAMES = """
    function constant convert_to_tensor Variable Tensor TensorSpec TensorShape TensorArray Module Graph Operation Session
    InteractiveSession placeholder placeholder_with_default ConfigProto GraphOptions OptimizerOptions GPUOptions RunOptions
    RunMetadata global_variables_initializer variables_initializer global_variables trainable_variables get_variable
    get_default_graph get_default_session reset_default_graph disable_eager_execution executing_eagerly name_scope device
    control_dependencies group no_op identity cond while_loop case switch_case gradients GradientTape stop_gradient Assert
    print numpy_function py_function py_func random.uniform random.normal random.set_seed strings.join debugging.Assert
    debugging.check_numerics CheckNumerics xla.experimental.jit_scope contrib.compiler.jit.experimental_jit_scope
    autograph.experimental.Feature autograph.experimental.do_not_convert autograph.experimental.set_loop_options
    config.run_functions_eagerly config.functions_run_eagerly types.experimental.GenericFunction
    types.experimental.PolymorphicFunction types.experimental.ConcreteFunction errors.InvalidArgumentError
    errors.FailedPreconditionError errors.OperatorNotAllowedInGraphError errors.InaccessibleTensorError
    train.GradientDescentOptimizer nn.relu nn.softmax nn.softmax_cross_entropy_with_logits nn.sigmoid reduce_sum reduce_mean
    concat reshape transpose cast size where squeeze tile split gather one_hot argmax int32 float32 bool string newaxis
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_there_in_both_forms(name):
    for found in (tf, tf.compat.v1):
        for part in name.split("."):
            found = getattr(found, part)


def test_modules_are_imported_by_their_own_names():
    v1 = importlib.import_module("jitlab.compat.tensorflow.compat.v1")
    assert v1.Session is tf.Session and tf.compat.v1 is v1
    assert importlib.import_module("jitlab.compat.tensorflow.python.client.timeline").Timeline is not None


def test_a_script_of_the_first_version_puts_everything_into_one_graph():
    tf.disable_eager_execution()
    a = tf.constant([1.0, 2.0], name="a")
    v = tf.Variable(3.0)
    y = a * v + 1
    assert not tf.executing_eagerly()
    assert isinstance(a, tf.Tensor) and a.graph is tf.get_default_graph() and a.name == "a:0"
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(y), [4, 7])
        np.testing.assert_array_equal(y.eval(), [4, 7])
    tf.compat.v1.enable_eager_execution()
    assert tf.executing_eagerly()


def test_numbers_take_the_dtype_of_the_tensor_beside_them():
    x = np.ones(2, np.float32)
    assert tf.add(x, 1).dtype == tf.multiply(2.5, x).dtype == tf.maximum(x, [1, 2]).dtype == np.float32
    assert tf.add(1, 2).dtype == np.int32 and tf.add(1.0, 2.0).dtype == np.float32


def test_names_are_given_to_operations():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.name_scope("layer"):
            y = tf.nn.softmax(x, name="out")
            z = tf.constant(1.0, name="one") + tf.reduce_sum(y, name="total")
        names = [op.name for op in graph.get_operations()]
    assert names[0] == "x" and {"layer/one", "layer/total", "layer/add"} <= set(names)
    assert all(name.startswith("layer/out") for name in names[1:names.index("layer/total")] if name != "layer/one")
    assert graph.get_tensor_by_name("layer/add:0") is z
    with pytest.raises(KeyError):
        graph.get_operation_by_name("layer/none")


def test_the_optimizer_walks_down_the_slope():
    w = tf.Variable([5.0, -3.0])
    x = tf.placeholder(tf.float32, [None])  # from here on the script has a graph
    v = tf.Variable(1.0)
    loss = tf.reduce_sum(tf.square(w * x - [1.0, 2.0])) + tf.square(v)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    assert step.type == "NoOp" and step.name == "GradientDescent"
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(100):
            assert sess.run(step, {x: [1.0, 1.0]}) is None
        np.testing.assert_allclose(sess.run(w), [1.0, 2.0], atol=1e-4)
        assert abs(sess.run(v)) < 1e-4


def test_a_tape_in_a_function():
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum(v * v * x)
        return tape.gradient(y, {"v": v, "x": x}), tape.gradient(y, v)

    (first, second) = f(np.array([3.0, 4.0], np.float32))
    np.testing.assert_allclose(first["v"], [6.0, 16.0])
    np.testing.assert_allclose(first["x"], [1.0, 4.0])
    np.testing.assert_allclose(second, [6.0, 16.0])


def test_a_tape_outside_of_functions_says_what_to_do():
    with pytest.raises(TypeError, match="inside a traced function or a graph"), tf.GradientTape():
        pass


def test_an_assertion_that_does_not_hold_is_told_when_it_runs():
    @tf.function
    def f(x):
        tf.debugging.Assert(tf.reduce_all(x > 0), ["not positive", x])
        return x + 1

    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not positive"):
        f(-np.ones(2))
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [])
        with tf.control_dependencies([tf.Assert(x > 0, ["no"])]):
            y = x + 1
        assert sess.run(y, {x: 1}) == 2
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(y, {x: -1})


@pytest.mark.parametrize("name", ["strings", "py_function", "print"])
def test_what_jit_compile_refuses(name):
    @tf.function(jit_compile=True)
    def f(x):
        if name == "strings":
            tf.strings.join(["a", "b"])
        elif name == "py_function":
            x = tf.py_function(lambda y: y, [x], tf.float32)
        else:
            tf.print(x)
        return x + 1

    with pytest.raises(tf.errors.InvalidArgumentError, match="Detected unsupported operations when trying to compile graph f"):
        f(np.ones(2, np.float32))


def test_strings_are_pythons():
    assert tf.strings.join(["a", "b"], separator="-") == "a-b"


def test_python_functions_run_in_their_place():
    seen = []

    @tf.function
    def f(x):
        y = tf.numpy_function(lambda a: (seen.append(float(a[0])), a * 2)[1], [x], tf.float32)
        return y + 1

    for value in (1.0, 2.0):
        np.testing.assert_array_equal(f(np.array([value], np.float32)), [2 * value + 1])
    assert seen == [1.0, 2.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Tout says float32"):
        tf.numpy_function(lambda a: np.float64(a), [1.0], tf.float32)


def test_a_variable_is_assigned_and_evaluated_as_in_the_first_version():
    with tf.Graph().as_default() as graph:
        v = tf.Variable(1.0)
        steps = [tf.assign(v, 5.0), tf.compat.v1.assign_add(v, tf.constant(2.0)), tf.compat.v1.assign_sub(v, 3.0)]
        graph.finalize()
        with tf.compat.v1.Session() as sess:
            sess.run(v.initializer)
            assert v.eval() == 1 and [float(sess.run(step)) for step in steps] == [5, 7, 4]
            assert v.eval(sess) == 4 and v.eval().dtype == np.float32
    with pytest.raises(NotImplementedError, match="numpy"):
        tf.Variable(1.0).eval()
