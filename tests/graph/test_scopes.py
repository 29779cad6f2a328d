"""jit_scope in graphs and in traced functions, paragraph by paragraph of the contract."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.compat import tensorflow as tf

jit_scope = tf.xla.experimental.jit_scope
NAMES = ("_XlaCompile", "_XlaSeparateCompiledGradients", "_XlaScope")


@pytest.fixture
def x():
    with tf.Graph().as_default():
        yield tf.placeholder(tf.float32, [2, 2], name="x")


def marks(tensor):
    """The three attributes, None where an operation has none."""
    found = []
    for name in NAMES:
        try:
            found.append(tensor.op.get_attr(name))
        except ValueError:
            found.append(None)
    return tuple(found)


def scopes(*tensors):
    return [marks(t)[2] for t in tensors]


# ---- 1.1 attributes


def test_every_operation_inside_has_all_three(x):
    with jit_scope():
        y = tf.exp(x)
    assert marks(y) == (True, False, b"jit_scope_0")
    with jit_scope(compile_ops=False, separate_compiled_gradients=1):
        y = tf.exp(x)
    assert marks(y) == (False, True, b"jit_scope_1")
    with pytest.raises(ValueError, match="has no attr named"):
        y.op.get_attr("_XlaInternalScope")


def test_operations_outside_have_none(x):
    before = tf.exp(x)
    with jit_scope():
        tf.exp(x)
    after = tf.exp(x)
    assert marks(before) == marks(after) == (None, None, None)


def test_constants_by_implicit_conversion_have_them_too(x):
    with jit_scope():
        y = x * 2.0
    constant = y.op.inputs[1].op
    assert constant.type == "Const" and constant.get_attr("_XlaScope") == b"jit_scope_0"


def test_an_attribute_that_an_operation_has_is_not_replaced(x):
    with jit_scope():
        y = tf.exp(x)
    with jit_scope():
        (g,) = tf.gradients(y, x)
    assert marks(g)[2] == b"jit_scope_0"  # the gradient's own, not that of the scope around the call


def test_a_view_belongs_to_the_scope_it_is_made_in(x):
    with jit_scope():
        y = tf.transpose(x)
    z = y + 1.0
    assert scopes(y, z) == [b"jit_scope_0", None]


# ---- 1.2 numbering


def test_only_outermost_entries_count(x):
    with jit_scope():
        a = tf.exp(x)
    with jit_scope():
        b = tf.exp(x)
        with jit_scope():
            c = tf.exp(x)
            with jit_scope():
                d = tf.exp(x)
        e = tf.exp(x)
    with jit_scope():
        f = tf.exp(x)
    assert scopes(a, b, c, d, e, f) == [b"jit_scope_0", *[b"jit_scope_1"] * 4, b"jit_scope_2"]


def test_scopes_that_compile_nothing_count_as_well(x):
    with jit_scope(False):
        pass
    with jit_scope(lambda node_def: False):
        pass
    with jit_scope():
        assert scopes(tf.exp(x)) == [b"jit_scope_2"]


def test_each_graph_and_each_trace_starts_again(x):
    with jit_scope():
        tf.exp(x)
    with tf.Graph().as_default():
        with jit_scope():
            assert scopes(tf.exp(tf.placeholder(tf.float32, [2]))) == [b"jit_scope_0"]
    found = []

    @tf.function
    def f(y):
        with jit_scope():
            y = tf.exp(y)
        found.extend(scopes(y))
        return y

    with jit_scope():
        assert scopes(tf.exp(x)) == [b"jit_scope_1"]


def test_each_trace_of_a_function_starts_again():
    found = []

    @tf.function
    def f(y):
        with jit_scope():
            y = tf.exp(y)
        found.extend(scopes(y))
        return y

    f(np.ones(2, np.float32)), f(np.ones(3, np.float32))
    assert found == [b"jit_scope_0", b"jit_scope_0"]


# ---- 1.3 nesting


def test_an_inner_scope_decides_and_is_undone(x):
    with jit_scope(False):
        a = tf.exp(x)
        with jit_scope(True, separate_compiled_gradients=True):
            b = tf.exp(x)
        c = tf.exp(x)
    assert [marks(t) for t in (a, b, c)] == [
        (False, False, b"jit_scope_0"), (True, True, b"jit_scope_0"), (False, False, b"jit_scope_0")
    ]  # fmt: skip


# ---- 1.4 argument forms


def test_integers_are_bools_and_other_things_type_errors_at_entry(x):
    for form, means in ((1, True), (0, False), (np.bool_(True), True)):
        with jit_scope(form):
            assert marks(tf.exp(x))[0] is means
    for form in ("yes", None, 1.5):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"), jit_scope(form):
            pass


def test_a_callable_answers_with_a_bool_or_an_int(x):
    with jit_scope(lambda node_def: 1):
        assert marks(tf.exp(x))[0] is True
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"), jit_scope(lambda node_def: "yes"):
        tf.exp(x)


def test_each_call_of_a_decorated_function_is_a_new_scope(x):
    @jit_scope()
    def twice():
        return tf.exp(x)

    assert scopes(twice(), twice()) == [b"jit_scope_0", b"jit_scope_1"]


def test_it_yields_nothing(x):
    with jit_scope() as scope:
        assert scope is None


# ---- 1.5 what the callable is offered


def test_the_node_def_before_the_scopes_own_attributes(x):
    asked = []

    def compile_ops(node_def):
        asked.append(node_def)
        return node_def.op == "MatMul"

    with tf.name_scope("root"), jit_scope(compile_ops):
        a = tf.matmul(x, x)
        b = a + x
        c = b + x
    assert [n.op for n in asked] == ["MatMul", "AddV2", "AddV2"]
    assert [n.name for n in asked] == ["root/MatMul", "root/add", "root/add_1"]
    assert [n.input for n in asked] == [("x", "x"), ("root/MatMul", "x"), ("root/add", "x")]
    assert {n.device for n in asked} == {""}
    assert asked[0].attr["T"].type == np.float32
    assert asked[0].attr["transpose_a"].b is False and asked[0].attr["transpose_b"].b is False
    assert not any(name in n.attr for n in asked for name in NAMES)
    assert [marks(t)[0] for t in (a, b, c)] == [True, False, False]


def test_control_inputs_devices_and_chosen_names(x):
    asked = []
    first = tf.no_op(name="first")
    with tf.device("XLA_CPU:0"), tf.control_dependencies([first]), jit_scope(lambda n: bool(asked.append(n)) or True):
        tf.add(x, x, name="sum")
    (n,) = asked
    assert (n.name, n.device, n.input) == ("sum", "/device:XLA_CPU:0", ("x", "x", "^first"))


def test_a_second_result_is_called_by_its_number(x):
    asked = []
    _, vectors = tf.linalg.eigh(x)
    with jit_scope(lambda n: bool(asked.append(n))):
        tf.exp(vectors)
    assert asked[0].input == (f"{vectors.op.name}:1",)
    assert vectors.name == f"{vectors.op.name}:1" and vectors.op.outputs[1] is vectors


def test_constants_and_random_numbers_have_their_names(x):
    asked = []
    with jit_scope(lambda n: bool(asked.append(n.op))):
        x + 1.0
        tf.random.uniform([2])
    assert asked[:2] == ["Const", "AddV2"] and "RandomUniform" in asked


def test_it_is_asked_once_also_when_runs_have_other_shapes():
    asked = []
    with tf.Graph().as_default():
        y = tf.placeholder(tf.float32, [None])
        with jit_scope(lambda n: bool(asked.append(n.op)) or True):
            z = tf.exp(y)
        with tf.Session() as sess:
            sess.run(z, {y: [1.0]}), sess.run(z, {y: [1.0, 2.0]})
    assert asked == ["Exp"]


# ---- 1.6 eager execution


def test_entering_it_where_execution_is_eager():
    scope = jit_scope()
    with pytest.raises(RuntimeError) as error, scope:
        pass
    text = "xla.experimental.jit_scope is not supported when eager execution is enabled. Try use it inside tf.function."
    assert str(error.value).splitlines()[0] == text


def test_also_in_a_function_that_runs_eagerly():
    @tf.function
    def f(y):
        with jit_scope():
            return tf.exp(y)

    tf.config.run_functions_eagerly(True)
    try:
        with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
            f(np.ones(2))
    finally:
        tf.config.run_functions_eagerly(False)


# ---- 1.7 inside functions, and at the border of graphs


def test_the_bodies_of_cond_and_while_have_no_attributes(x):
    with jit_scope():
        a = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: tf.sin(x))
        b = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0), [0, x])[1]
    for tensor, kind in ((a, "If"), (b, "While")):
        assert tensor.op.type == kind and marks(tensor) == (True, False, b"jit_scope_0")
        for body in tensor.op._node.op.graphs:
            assert body.nodes and all(not node.attrs for node in body.nodes)


def test_branches_and_loops_that_a_function_stages_have_no_attributes_either():
    @tf.function
    def f(y):
        with jit_scope():
            if tf.reduce_sum(y) > 0:
                y = y * 2.0
            else:
                y = y - 1.0
        return y

    graph = f.get_concrete_function(np.ones(3, np.float32)).graph
    (branch,) = [op for op in graph.get_operations() if op.type == "If"]
    assert branch.get_attr("_XlaScope") == b"jit_scope_0"
    assert all(not node.attrs for body in branch._node.op.graphs for node in body.nodes)


def test_the_operations_of_a_trace_tell_their_attributes():
    seen = []

    @jl.function
    def f(y):
        with jl.jit_scope():
            z = np.exp(y)
        seen.append((z.op.get_attr("_XlaScope"), z.op.type, z.name))
        return z + 1

    f(np.ones(2))
    assert seen == [(b"jit_scope_0", "Exp", "exp:0")]
    graph = f.get_concrete_function(np.ones(2)).graph
    assert graph.get_operation_by_name("exp").get_attr("_XlaCompile") is True
    assert [op.type for op in graph.get_operations()] == ["Placeholder", "Exp", "Const", "AddV2"]


# ---- 1.8 exceptions


def test_an_exception_inside_leaves_nothing_behind(x):
    with pytest.raises(KeyError), jit_scope(), jit_scope(False):
        raise KeyError
    assert marks(tf.exp(x)) == (None, None, None)
    with jit_scope():
        assert scopes(tf.exp(x)) == [b"jit_scope_1"]


# ---- 1.9 gradients


def test_names_of_separate_scopes(x):
    with jit_scope(separate_compiled_gradients=True):
        f = tf.exp(x)
    found = [*tf.gradients(f, x, name="mygrads1"), *tf.gradients(f, x), *tf.gradients(f, x)]
    with tf.name_scope("ns"):
        found += tf.gradients(f, x, name="GG")
    assert scopes(*found) == [
        b"jit_scope_0_grad_mygrads1", b"jit_scope_0_grad_gradients", b"jit_scope_0_grad_gradients_1", b"jit_scope_0_grad_ns_GG"
    ]  # fmt: skip
    assert [marks(g)[:2] for g in found] == [(True, None)] * 4


def test_the_forward_scope_unless_they_are_separate(x):
    with jit_scope():
        f = tf.exp(x)
    assert scopes(*tf.gradients(f, x)) == [b"jit_scope_0"]


def test_what_is_not_compiled_gives_its_gradient_nothing(x):
    with jit_scope(False):
        f = tf.exp(x)
    g = tf.exp(x)
    assert [marks(t) for t in (*tf.gradients(f, x), *tf.gradients(g, x))] == [(None, None, None)] * 2


def test_glue_gets_what_the_calling_scope_sets(x):
    with jit_scope(separate_compiled_gradients=True):
        a, b = tf.exp(x), tf.sin(x)
    with jit_scope():
        (g,) = tf.gradients([a, b], x, name="G")
    assert marks(g) == (True, False, b"jit_scope_1")  # the sum of both parts
    assert {t.op.get_attr("_XlaScope") for t in g.op.inputs} == {b"jit_scope_0_grad_G"}


def test_a_tape_takes_no_scope():
    found = []

    @tf.function
    def f(y):
        with tf.GradientTape() as tape:
            tape.watch(y)
            with jit_scope(separate_compiled_gradients=True):
                z = tf.exp(y)
        g = tape.gradient(z, y)
        found.append(marks(g))
        return g

    np.testing.assert_allclose(f(np.ones(2, np.float32)), np.e * np.ones(2), rtol=1e-6)
    assert found == [(None, None, None)]


# ---- 1.10 functions with an attribute of their own


def test_a_function_that_must_be_compiled_is_a_scope_of_its_own_name(x):
    @tf.function(jit_compile=True)
    def inner(y):
        return tf.exp(y)

    assert marks(inner(x)) == (True, False, b"function_inner")
    with jit_scope():
        assert marks(inner(x)) == (True, False, b"jit_scope_0")


def test_it_is_compiled_while_the_level_is_off(x):
    @tf.function(jit_compile=True)
    def inner(y):
        return tf.exp(y)

    y = inner(x) + 1.0
    with tf.Session(graph=x.graph) as sess, jl.record() as recording:
        sess.run(y, {x: np.ones((2, 2))})
    (cluster,) = recording.report().clusters
    assert [name.rpartition("/")[2] for name in cluster.ops] == ["Exp"]
