"""Session: fetches, feeds, errors, Variables, control edges, shapes that are known only when it runs."""

from collections import namedtuple

import numpy as np
import pytest

import jitlab as jl
from jitlab.compat import tensorflow as tf
from jitlab.errors import FailedPreconditionError, InvalidArgumentError, NoGradientError


@pytest.fixture
def graph():
    with jl.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def sess(graph):
    with jl.Session(graph) as session:
        yield session


# ---- fetches


def test_fetches_keep_their_form(sess):
    x = jl.placeholder(np.float64, [2], name="x")
    y, z = x + 1, x.sum()
    Pair = namedtuple("Pair", "first second")
    feeds = {x: [1.0, 2.0]}
    found = sess.run({"a": [y, (z, y)], "b": Pair(z, {"c": y.op})}, feeds)
    assert isinstance(found["a"], list) and isinstance(found["a"][1], tuple) and isinstance(found["b"], Pair)
    np.testing.assert_array_equal(found["a"][0], [2, 3])
    assert found["b"].first == 3.0 and type(found["b"].first) is np.float64
    assert found["b"].second == {"c": None}
    assert sess.run([], feeds) == []


def test_names_stand_for_tensors_and_operations(sess):
    x = jl.placeholder(np.float64, [], name="x")
    with jl.name_scope("root"):
        x + 1
    assert sess.run("root/add:0", {"x:0": 2.0}) == 3.0
    assert sess.run("root/add", {"x:0": 2.0}) is None
    with pytest.raises(ValueError, match="refers to an Operation not in the graph"):
        sess.run("root/mul:0", {x: 2.0})


@pytest.mark.parametrize("fetch", [None, 3, np.ones(2)])
def test_other_things_are_no_fetches(sess, fetch):
    with pytest.raises(TypeError, match="has invalid type"):
        sess.run(fetch)


def test_a_tensor_of_another_graph_is_no_fetch(sess):
    with jl.Graph().as_default():
        other = jl.placeholder(np.float64, [])
    with pytest.raises(ValueError, match="is not an element of this graph"):
        sess.run(other)


def test_the_same_tensor_twice(sess):
    x = jl.placeholder(np.float64, [2])
    y = x * 2
    first, second = sess.run([y, y], {x: [1, 2]})
    np.testing.assert_array_equal(first, second)


def test_a_fetched_placeholder_is_what_was_fed(sess):
    x = jl.placeholder(np.float32, [None])
    given = np.ones(3, np.float32)
    found = sess.run(x, {x: given})
    np.testing.assert_array_equal(found, given)
    assert not np.shares_memory(found, given)


# ---- feeds


def test_what_is_not_fed_is_named(sess):
    x = jl.placeholder(np.float32, [None, 3], name="images")
    with pytest.raises(InvalidArgumentError, match="You must feed a value for placeholder tensor 'images'"):
        sess.run(x + 1)


def test_a_feed_of_another_shape_is_refused(sess):
    x = jl.placeholder(np.float32, [None, 3])
    with pytest.raises(ValueError, match=r"Cannot feed value of shape \(2, 2\) .* which has shape '\(None, 3\)'"):
        sess.run(x, {x: np.ones((2, 2))})


@pytest.mark.parametrize(("dtype", "value", "error"), [(np.int32, "three", ValueError), (np.int8, 300, TypeError)])
def test_a_feed_of_another_dtype_is_cast_or_refused(sess, dtype, value, error):
    x = jl.placeholder(dtype, [])
    assert sess.run(x, {x: 3}).dtype == dtype
    with pytest.raises(error):
        sess.run(x, {x: value})


def test_a_tensor_is_no_feed(sess):
    x = jl.placeholder(np.float32, [])
    with pytest.raises(TypeError, match="The value of a feed cannot be a tf.Tensor object"):
        sess.run(x, {x: x + 1})


def test_a_key_that_is_no_tensor_is_refused(sess):
    x = jl.placeholder(np.float32, [])
    with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
        sess.run(x, {3: 1})


def test_any_tensor_can_be_fed_and_what_it_needs_is_not_run(sess):
    x = jl.placeholder(np.float32, [None])
    y = x * 2
    z = y + 1
    np.testing.assert_array_equal(sess.run(z, {y: [1, 2]}), [2, 3])
    np.testing.assert_array_equal(sess.run([y, z], {y: [5]})[0], [5])


def test_a_tensor_fed_between_the_ends_of_a_gradient_is_where_it_is_taken(sess):
    x = jl.placeholder(np.float64, [])
    y = x * x
    (g,) = jl.gradients(y * y, x)
    assert sess.run(g, {x: 2.0}) == 32.0  # 4 x**3
    assert sess.run(g, {x: 2.0, y: 3.0}) == 24.0  # 2 y * 2 x


def test_no_gradient_flows_through_what_is_stopped(sess):
    x = jl.placeholder(np.float64, [])
    (g,) = jl.gradients(x * jl.stop_gradient(x * x), x)
    assert sess.run(g, {x: 3.0}) == 9.0


def test_a_placeholder_with_a_default(sess):
    x = tf.placeholder_with_default([1.0, 2.0], [None])
    np.testing.assert_array_equal(sess.run(x + 1), [2, 3])
    np.testing.assert_array_equal(sess.run(x + 1, {x: [5]}), [6])


# ---- shapes


def test_one_plan_for_each_shape_and_none_twice(sess):
    x = jl.placeholder(np.float32, [None, 2])
    y = np.exp(x).sum(axis=0)
    assert str(x.shape) == "(None, 2)" and x.shape.as_list() == [None, 2]
    for rows in (1, 3, 3, 1, 7):
        value = np.ones((rows, 2), np.float32)
        np.testing.assert_allclose(sess.run(y, {x: value}), np.exp(value).sum(axis=0), rtol=1e-6)
    assert sess._count == 3


def test_sizes_that_no_sample_has(sess):
    a, b = jl.placeholder(np.float32, [None, None]), jl.placeholder(np.float32, [784, 10])
    x = jl.placeholder(np.float32)  # nothing is known of it
    y = np.matmul(a, b)
    z = np.matmul(x, np.ones((4, 3), np.float32))
    w = np.matmul(x, np.ones(4, np.float32))
    assert sess.run(y, {a: np.ones((2, 784)), b: np.ones((784, 10))}).shape == (2, 10)
    assert sess.run(z, {x: np.ones((2, 4))}).shape == (2, 3)
    assert sess.run(w, {x: np.ones((5, 2, 4))}).shape == (5, 2)
    with pytest.raises(ValueError, match="matmul") as error:
        sess.run(z, {x: np.ones((2, 5))})
    (note,) = error.value.__notes__
    assert note.startswith("in operation 'MatMul_1', which was made here: test_session.py, line") and "z = np.matmul" in note


def test_a_script_that_says_nothing_of_its_sizes(sess):
    x, wanted = jl.placeholder(np.float64), jl.placeholder(np.float64)
    w = jl.Variable(np.ones((4, 3)))
    loss = ((np.matmul(x, w) - wanted) ** 2).mean()
    (g,) = jl.gradients(loss, w)
    sess.run(w.initializer)
    for rows in (2, 6):
        a, b = np.ones((rows, 4)), np.zeros((rows, 3))
        value, slope = sess.run([loss, g], {x: a, wanted: b})
        assert value == 16 and slope.shape == (4, 3)
        np.testing.assert_allclose(slope, 2 * a.T @ (a @ np.ones((4, 3))) / (3 * rows))


def test_shapes_that_no_run_can_have_are_refused_where_they_are_made(graph):
    x = jl.placeholder(np.float32, [2, 3])
    with pytest.raises(ValueError):
        np.matmul(x, np.ones((4, 3), np.float32))


def test_a_size_in_the_program_is_the_runs(sess):
    x = tf.placeholder(tf.float32, [None, 4])
    flat = tf.reshape(x, [tf.shape(x)[0] * 2, -1])
    zeros = tf.zeros(tf.shape(x)) + 1
    mean = tf.reduce_sum(x) / tf.cast(tf.shape(x)[0], tf.float32)
    for rows in (1, 3):
        found = sess.run([flat, zeros, mean, tf.size(x)], {x: np.ones((rows, 4))})
        assert found[0].shape == (2 * rows, 2) and found[1].shape == (rows, 4) and found[2] == 4 and found[3] == 4 * rows
    with pytest.raises(TypeError):
        range(x.shape[0])


# ---- Variables


def test_each_session_has_a_value_of_its_own(graph):
    v = jl.Variable(np.ones(2), name="v")
    init, up = jl.global_variables_initializer(), v.assign_add([1.0, 2.0])
    with jl.Session(graph) as one, jl.Session(graph) as two:
        for session in (one, two):
            with pytest.raises(FailedPreconditionError, match="Attempting to use uninitialized value v"):
                session.run(v)
            session.run(init)
        np.testing.assert_array_equal(one.run(up), [2, 3])
        np.testing.assert_array_equal(one.run(up), [3, 5])
        np.testing.assert_array_equal(two.run(v), [1, 1])
        np.testing.assert_array_equal(one.run(v.read_value()), [3, 5])
        one.run(v.initializer)
        np.testing.assert_array_equal(one.run(v), [1, 1])
    with pytest.raises(TypeError, match="Session only"):
        v.numpy()


def test_reads_and_writes_happen_in_the_order_they_were_made(sess):
    v = jl.Variable(1.0)
    first = v.read_value() * 1
    written = v.assign(10.0)
    second = v.read_value() * 1
    sub = v.assign_sub(4.0)
    sess.run(v.initializer)
    assert sess.run([second, sub, written, first]) == [10.0, 6.0, 10.0, 1.0]
    assert sess.run(v) == 6.0


def test_what_is_fetched_of_a_variable_does_not_change_with_it(sess):
    v = jl.Variable(np.zeros(3))
    up = v.assign_add(np.ones(3))
    sess.run(v.initializer)
    first, read = sess.run(up), sess.run(v)
    sess.run(up)
    np.testing.assert_array_equal(first, [1, 1, 1])
    np.testing.assert_array_equal(read, [1, 1, 1])


def test_a_variable_made_outside_is_one_array_everywhere():
    v = jl.Variable(np.array([1.0, 2.0]))
    with jl.Graph().as_default() as graph:
        up = v.assign_add([1.0, 1.0])
        twice = v * 2.0
        init = jl.global_variables_initializer()
    with jl.Session(graph) as one, jl.Session(graph) as two:
        one.run(up)
        np.testing.assert_array_equal(two.run(twice), [4, 6])
        np.testing.assert_array_equal(v.numpy(), [2, 3])
        two.run(init)
        np.testing.assert_array_equal(v.numpy(), [1, 2])


def test_variables_beside_placeholders_of_a_script_are_the_graphs():
    x = jl.placeholder(np.float64, [])
    v = jl.Variable(3.0, name="v")
    y = v * x
    norm = v * v  # no tensor among its operands, and yet of the graph
    assert isinstance(norm, jl.Tensor) and norm.graph is y.graph
    sess = jl.Session()
    sess.run(jl.global_variables_initializer())
    assert sess.run([y, norm], {x: 2.0}) == [6.0, 9.0]
    with pytest.raises(TypeError, match="in a Session only"):
        jl.function(lambda: v + 1)()


def test_arrays_are_constants_with_what_they_held(sess):
    table = np.arange(3.0)
    y = jl.placeholder(np.float64, [3]) + table
    table[:] = 0
    np.testing.assert_array_equal(sess.run(y, {y.op.inputs[0]: [0, 0, 0]}), [0, 1, 2])


# ---- what runs, and in which order


def test_only_what_is_needed_runs(sess, capfd):
    x = jl.placeholder(np.float32, [])
    jl.print_("not asked for", x)
    asked = jl.print_("asked for", x)
    sess.run(x + 1, {x: 1})
    assert capfd.readouterr().err == ""
    sess.run(asked, {x: 1})
    assert capfd.readouterr().err == "asked for 1\n"


def test_control_dependencies_run_first(sess, capfd):
    x = jl.placeholder(np.float32, [])
    v = jl.Variable(np.float32(0))
    said = jl.print_("before", x)
    with jl.control_dependencies([said, v.assign(x)]):
        y = x * 2
        with jl.control_dependencies(None):
            z = x * 3
    w = v.read_value()
    assert [op.name for op in y.op.control_inputs] == ["Print", "Assign"] and z.op.control_inputs == []
    assert sess.run(z, {x: 2}) == 6 and capfd.readouterr().err == ""
    assert sess.run(y, {x: 2}) == 4 and capfd.readouterr().err == "before 2\n"
    assert sess.run(w) == 2


def test_group_and_no_op(sess):
    v, w = jl.Variable(1.0), jl.Variable(2.0)
    both = tf.group(v.assign_add(1.0), w.assign_add(1.0))
    sess.run(jl.global_variables_initializer())
    assert sess.run(both) is None
    assert sess.run([v, w]) == [2.0, 3.0]


def test_python_functions_are_called_once_a_run_and_never_before(sess):
    called = []

    def double(x):
        called.append(x.copy())
        return x * 2

    x = jl.placeholder(np.float32, [None])
    y = tf.numpy_function(double, [x], tf.float32) + 1
    assert not called and str(y.shape) == "<unknown>"
    for value in ([1, 2], [3, 4], [5]):
        np.testing.assert_array_equal(sess.run(y, {x: value}), 2 * np.array(value) + 1)
    assert len(called) == 3


def test_cond_takes_one_side(sess, capfd):
    x, p = jl.placeholder(np.float32, [None]), jl.placeholder(np.bool_, [])
    y = jl.cond(p, lambda: x * 2, lambda: (jl.print_("else"), x - 1)[1])
    np.testing.assert_array_equal(sess.run(y, {x: [1, 2], p: True}), [2, 4])
    assert capfd.readouterr().err == ""
    np.testing.assert_array_equal(sess.run(y, {x: [1, 2, 3], p: False}), [0, 1, 2])
    assert capfd.readouterr().err == "else\n"


def test_a_side_of_cond_may_assign(sess):
    v, p = jl.Variable(1.0), jl.placeholder(np.bool_, [])
    y = jl.cond(p, lambda: v.assign_add(1.0), lambda: v.read_value())
    sess.run(v.initializer)
    assert [sess.run(y, {p: p_}) for p_ in (True, False, True)] == [2.0, 2.0, 3.0]


def test_the_users_functions_are_called_when_the_graph_is_put_together_only(sess):
    calls = []

    def body(i, s):
        calls.append("body")
        return i + 1, s + x

    x, n = jl.placeholder(np.float64, [None]), jl.placeholder(np.int64, [])
    _, total = jl.while_loop(lambda i, s: i < n, body, [0, np.zeros_like(x)])
    before = len(calls)
    for size in (2, 3):
        np.testing.assert_array_equal(sess.run(total, {x: np.arange(size), n: 4}), 4 * np.arange(size))
    assert len(calls) == before


def test_while_loop_stops_after_its_most_iterations(sess):
    x = jl.placeholder(np.int64, [])
    y = jl.while_loop(lambda i: i > 0, lambda i: i * 2, [x], maximum_iterations=3)
    assert sess.run(y, {x: 1}) == 8


def test_a_gradient_through_a_loop_and_a_branch(sess):
    x, p = jl.placeholder(np.float64, []), jl.placeholder(np.bool_, [])
    _, y = jl.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])
    z = jl.cond(p, lambda: y, lambda: x * 5.0)
    (g,) = jl.gradients(z, x)
    assert sess.run(g, {x: 2.0, p: True}) == 32.0
    assert sess.run(g, {x: 2.0, p: False}) == 5.0


def test_a_function_of_tensors_is_part_of_the_graph(sess):
    seen = []

    @jl.function
    def f(x):
        seen.append("traced")
        if x.sum() > 0:
            return x * 2
        return -x

    x = jl.placeholder(np.float64, [None])
    y = f(x) + 1
    np.testing.assert_array_equal(sess.run(y, {x: [1.0]}), [3])
    np.testing.assert_array_equal(sess.run(y, {x: [-1.0, -2.0]}), [2, 3])
    assert len(seen) == 1


def test_random_numbers_are_drawn_at_each_run(sess):
    tf.random.set_seed(1)
    x = tf.random.uniform([3])
    first, second = sess.run(x), sess.run(x)
    assert first.dtype == np.float32 and not np.array_equal(first, second)


def test_a_tensor_does_not_change(sess):
    x = jl.placeholder(np.float64, [2])
    y = x
    y += 1  # another tensor
    np.testing.assert_array_equal(sess.run([x, y], {x: [1, 2]}), [[1, 2], [2, 3]])
    with pytest.raises(TypeError, match="does not support item assignment"):
        x[0] = 1.0
    with pytest.raises(TypeError):
        bool(x.sum())


def test_operations_outside_of_the_block_go_to_their_tensors_graph(graph):
    x = jl.placeholder(np.float64, [2])
    with jl.Graph().as_default():
        pass
    y = x + 1
    assert y.graph is graph
    np.testing.assert_array_equal(jl.Session(graph).run(y, {x: [1, 2]}), [2, 3])


# ---- the Session itself


def test_a_closed_session_runs_nothing(graph):
    x = jl.constant(1.0)
    with jl.Session(graph) as sess:
        assert x.eval() == 1.0
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
        sess.run(x)
    with pytest.raises(ValueError, match="No default session is registered"):
        x.eval()


@pytest.mark.parametrize("wrong", [{"graph": 3}, {"config": {}}, {"graph": "g"}])
def test_what_a_session_is_made_with(wrong):
    with pytest.raises(TypeError):
        jl.Session(**wrong)


def test_options_are_checked():
    config = tf.ConfigProto()
    with pytest.raises(AttributeError, match="no field"):
        config.graph_options.optimizer_options.global_jit = 1
    with pytest.raises(ValueError):
        config.graph_options.optimizer_options.global_jit_level = 7
    with pytest.raises(TypeError):
        config.graph_options.optimizer_options.global_jit_level = "ON"


def test_flags_are_read_for_each_session(graph, monkeypatch):
    y = np.exp(np.sin(jl.placeholder(np.float64, [2], name="x")))

    def clusters(config=None):
        with jl.Session(graph, config) as sess, jl.record() as recording:
            sess.run(y, {"x:0": [1, 2]})
        return len(recording.report().clusters)

    assert clusters() == 0
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2")
    assert clusters() == 1
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2 --tf_xla_min_cluster_size=3")
    assert clusters() == 0
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=-1")
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    assert clusters(config) == 0
    monkeypatch.setenv("TF_XLA_FLAGS", "--no_such_flag")
    with pytest.raises(ValueError, match="unknown flag"):
        jl.Session(graph)


def test_variables_split_clusters_as_the_contract_says(graph):
    """Read, compute, assign is one cluster; assign, then read, then compute are two."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    v = jl.Variable(np.ones(4))
    up = v.assign(np.sin(v.read_value()) + 1)
    x = jl.placeholder(np.float64, [4])
    with jl.control_dependencies([v.assign(np.exp(x) + 1)]):
        later = np.cos(np.sin(v.read_value()))
    with jl.Session(graph, config) as sess:
        sess.run(v.initializer)
        for fetch, count in ((up, 1), (later, 2)):
            with jl.record() as recording:
                sess.run(fetch, {x: np.ones(4)})
            assert len(recording.report().clusters) == count


def test_what_has_no_gradient_says_so(graph):
    x = jl.placeholder(np.float64, [3])
    with pytest.raises(NoGradientError):
        jl.gradients(tf.numpy_function(np.sort, [x], tf.float64), x)
