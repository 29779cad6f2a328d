"""What TensorFlow's own programs rely on beyond names: dtypes of Python numbers, shapes as arguments, names, checks, draws."""

import numpy as np
import pytest

import jitlab as jl
import jitlab.compat.tensorflow as tf
from jitlab.errors import InvalidArgumentError


def dtypes(value):
    return [dtypes(item) for item in value] if isinstance(value, (list, tuple)) else np.dtype(value.dtype).name


# ---- Python's numbers are int32 and float32


@tf.function
def given_back(n, x):
    return n, 2.5, n * 3, x + n, [n, True]


@tf.function(experimental_follow_type_hints=True)
def hinted(n: tf.Tensor):
    return n * 2


@tf.function
def around(x):
    return hinted(1), hinted(2.5), hinted([1, 2])


@tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
def signed(n):
    return n + 1


@tf.function(experimental_implements="something")
def pure(n):
    return n + 1


@tf.function
def counted(n):
    i = 0
    while i < n:
        i += 1
    return i


@tf.function
def chosen(x, n):
    if x > 0:
        y = n
    else:
        y = 2
    return y


@pytest.mark.parametrize(("call", "expected"), [
    (lambda: given_back(2, tf.constant(1.0)), ["int32", "float32", "int32", "float32", ["int32", "bool"]]),
    (lambda: hinted(1), "int32"), (lambda: hinted([1, 2]), "int32"), (lambda: hinted(1.5), "float32"),
    (lambda: around(tf.constant(1)), ["int32", "float32", "int32"]), (lambda: signed(2), "int32"), (lambda: pure(2), "int32"),
    (lambda: counted(tf.constant(3)), "int32"), (lambda: counted(3), "int32"), (lambda: chosen(tf.constant(1.0), 1), "int32"),
    (lambda: given_back.get_concrete_function(2, tf.constant(1.0))(tf.constant(1.0))[0], "int32"),
    (lambda: jl.function(lambda n, x: (n, x + n))(1, np.int32(2)), ["int64", "int32"]),
])  # fmt: skip
def test_a_python_number_that_becomes_a_tensor_has_tensorflows_dtype(call, expected):
    assert dtypes(call()) == expected


# ---- a shape that is an argument


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}, {"reduce_retracing": True}])
def test_a_shape_may_be_an_argument_and_another_one_is_recorded_anew(options):
    f = tf.function(lambda x, shape: tf.reshape(x, shape) * 2, **options)
    x = tf.constant([1, 2, 3, 4, 5, 6])
    for shape in ([2, 3], [3, 2], [6, 1], [2, 3], [-1, 2]):
        np.testing.assert_array_equal(f(x, tf.constant(shape)), np.reshape(x, shape) * 2)
    np.testing.assert_array_equal(f(x, np.array([3, 2])), np.reshape(x, (3, 2)) * 2)
    np.testing.assert_array_equal(f(x, (1, 6)), [x * 2])


def test_other_functions_take_a_shape_that_is_an_argument():
    f = tf.function(lambda x, shape: (tf.zeros(shape) + x, tf.broadcast_to(x, shape), tf.fill(shape, 2)))
    for shape in ([2, 2], [1, 3], [2, 2]):
        zeros, wide, full = f(tf.constant(3.0), tf.constant(shape))
        np.testing.assert_array_equal(zeros, np.full(shape, 3.0))
        np.testing.assert_array_equal(wide, np.full(shape, 3.0))
        np.testing.assert_array_equal(full, np.full(shape, 2))


def test_a_shape_that_is_computed_has_no_value_while_it_is_recorded():
    with pytest.raises(jl.errors.CaptureError, match="needs a Python value"):
        tf.function(lambda x, s: tf.reshape(x, s + 1))(tf.constant([1, 2]), tf.constant([1, 0]))


# ---- jit_compile=True


def asserting(x):
    tf.debugging.Assert(tf.reduce_sum(x) > 0, ["bad sum"])
    return x + 1


def comparing(x):
    tf.debugging.assert_greater(tf.reduce_sum(x), 0.0, message="bad sum")
    return tf.exp(x) + 1


def python_assert(x):
    assert tf.reduce_sum(x) > 0, "bad sum"
    return x * 2


def in_a_loop(x):
    for _ in tf.range(3):
        tf.debugging.Assert(tf.reduce_sum(x) > 0, ["bad sum"])
        x = x + 1
    return x


@pytest.mark.parametrize("check", [asserting, comparing, python_assert, in_a_loop])
def test_checks_compile_under_jit_compile(check):
    must, may = (tf.function(check, jit_compile=value) for value in (True, None))
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(must(x), may(x))
    for f in (must, may):
        with pytest.raises(InvalidArgumentError, match="bad sum"):
            f(-x)
    np.testing.assert_array_equal(must(x * 2), may(x * 2))


@pytest.mark.parametrize("draw", [
    lambda: tf.random.normal([3]), lambda: tf.random.uniform([3]) * 2, lambda: tf.random.uniform([3], 0, 9, tf.int32),
    lambda: tf.cast(tf.random.shuffle(tf.constant([1, 2, 3])), tf.float32),
])  # fmt: skip
def test_random_numbers_compile_under_jit_compile_and_are_drawn_at_each_run(draw):
    def drawn(x):
        return tf.cast(draw(), tf.float32) + tf.sqrt(x)

    found = []
    for value in (True, None):
        tf.random.set_seed(5)
        f = tf.function(drawn, jit_compile=value)
        f(np.ones(3, np.float32))
        tf.random.set_seed(5)
        found.append([f(np.ones(3, np.float32)) for _ in range(3)])
    np.testing.assert_array_equal(found[0], found[1])
    assert f.experimental_get_tracing_count() == 1


def test_numpys_own_random_numbers_compile_too_but_what_has_no_compiled_form_does_not():
    f = jl.function(lambda x: np.random.normal(size=3) + np.exp(x), jit_compile=True)
    np.random.seed(3)
    f(np.ones(3))
    np.random.seed(3)
    got = f(np.ones(3))
    np.random.seed(3)
    np.testing.assert_allclose(got, np.random.normal(size=3) + np.exp(1), rtol=1e-14)
    with pytest.raises(InvalidArgumentError, match="Detected unsupported operations"):
        jl.function(lambda x: np.random.normal(size=3) + np.unique(x), jit_compile=True)(np.ones(3))


def test_what_draws_is_called_stateful_random():
    with jl.record() as recording:
        jl.function(lambda x: np.random.normal(size=3) + x)(np.ones(3))
    (drawn,) = (op for op in recording.report().ops if op.cluster is None)
    assert drawn.reason.text == "NumPy draws the random numbers, in its generator's order"
    assert drawn.reason.code == "stateful_random"


# ---- names of gradient operations


def test_gradient_operations_are_named_after_what_they_derive():
    with tf.Graph().as_default() as graph:
        x = tf.constant([[3.0]])
        y = tf.matmul(x, x, name="plain")
        with tf.xla.experimental.jit_scope():
            z = tf.matmul(y, y, name="marked")
        tf.gradients([z], [x])
        tf.gradients([z], [x], name="again")
        names = {op.name: op for op in graph.get_operations()}
    marked = [op for name, op in names.items() if name.startswith("gradients/marked_grad/")]
    plain = [op for name, op in names.items() if name.startswith("gradients/plain_grad/")]
    assert marked and plain and {name.split("/")[0] for name in names if "_grad/" in name} == {"gradients", "again"}
    assert all(op.get_attr("_XlaCompile") for op in marked)
    for op in plain:
        with pytest.raises(ValueError, match="[Nn]o attr named"):
            op.get_attr("_XlaCompile")


def test_gradients_through_a_loop_and_a_branch_have_names_too():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [])
        y = tf.cond(x > 0, lambda: x * x, lambda: x * 3.0)
        _, z = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * y), [tf.constant(0), y])
        (g,) = tf.gradients([z], [x])
        with tf.Session() as session:
            assert session.run(g, {x: 2.0}) == 8 * 2.0**7
        assert any(op.name.startswith("gradients/") and "_grad/" in op.name for op in graph.get_operations())


# ---- a loop that never runs


def over_an_array(x, n):
    for row in x:
        y = row * 2
    return y


def over_a_range(x, n):
    for i in tf.range(n):
        y = i * 2
    return y


def over_a_count(x, n):
    for i in range(n):
        y = i + x.sum()
    return y


def while_it_holds(x, n):
    while n > 0:
        y = x * 2
        n = n - 1
    return y


@pytest.mark.parametrize("loop", [over_an_array, over_a_range, over_a_count, while_it_holds])
def test_a_name_that_only_a_loop_gives_wants_an_iteration(loop):
    x, none = np.ones((0 if loop is over_an_array else 2, 3)), tf.constant(0)
    with pytest.raises(InvalidArgumentError, match="loop must iterate at least once to initialize y"):
        jl.function(loop)(x, none)
    with pytest.raises(UnboundLocalError):
        jl.jit(loop)(x, none)
    jl.function(loop)(np.ones((2, 3)), tf.constant(2))


def test_a_name_that_a_loop_gives_and_nobody_reads_wants_none():
    @jl.function
    def f(x):
        for row in x:
            y = row * 2  # noqa: F841
        return x.sum()

    assert f(np.ones((0, 3))) == 0


# ---- tf.range counts loops


def summed(n):
    total = 0
    for i in tf.range(n):
        total = total + i
    return total


def cast_in_the_body(n):
    total = tf.constant(0.0)
    for i in tf.range(n):
        total += tf.cast(i, tf.float32) * 2.0
    return total


def gathered_at(n):
    x = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])
    for i in tf.range(n):
        x = x + tf.gather(x, i)
    return x


def left_early(n):
    for i in tf.range(1, n, 2):
        if i > 2:
            break
    return i


def going_down(n):
    total = 0
    for i in tf.range(n, 0, -2):
        if i % 3 == 0:
            continue
        total = total + i
    return total


def of_a_fixed_number(n):
    total = tf.zeros([3])
    for i in tf.range(20):
        total += tf.cast(i + n, tf.float32)
    return total


@pytest.mark.parametrize("program", [summed, cast_in_the_body, gathered_at, left_early, going_down, of_a_fixed_number])
def test_a_loop_over_tf_range_is_one_loop_of_the_graph(program):
    compiled, must = tf.function(program), tf.function(program, jit_compile=True)
    for n in (5, 2, 5):
        want = program(tf.constant(n))
        for found in (compiled(tf.constant(n)), must(tf.constant(n))):
            assert found.dtype == want.dtype
            np.testing.assert_array_equal(found, want)
    assert compiled.experimental_get_tracing_count() == 1
    graph = compiled.get_concrete_function(tf.constant(5)).graph
    assert [o.type for o in graph.get_operations()].count("While") == 1


def test_the_target_of_an_empty_tf_range_reads_as_its_start():
    for program, start in ((left_early, 1), (last_index, 0)):
        assert tf.function(program)(tf.constant(0)) == start


def last_index(n):
    for i in tf.range(n):  # noqa: B007
        pass
    return i


def test_loops_over_tf_range_in_one_another_and_over_a_variable():
    @tf.function
    def triangle(n):
        total = tf.constant(0)
        for i in tf.range(n):
            for j in tf.range(i):
                total += i * j
        return total

    assert triangle(tf.constant(5)) == sum(i * j for i in range(5) for j in range(i))
    assert tf.function(summed)(tf.Variable(5)) == 10


def test_tf_range_is_an_array_where_it_is_not_counted_by():
    @tf.function
    def f(n):
        return tf.range(n) * 2, tf.range(1, n, dtype=tf.float32), tf.range(n)[1]

    doubled, floats, one = f(tf.constant(3))
    assert doubled.tolist() == [0, 2, 4] and doubled.dtype == np.int32
    assert floats.tolist() == [1, 2] and floats.dtype == np.float32 and one == 1
