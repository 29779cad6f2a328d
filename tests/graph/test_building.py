"""What a Graph is to a person: names, blocks, devices, and the view of its operations."""

import subprocess
import sys

import numpy as np
import pytest

import jitlab as jl
from jitlab.compat import tensorflow as tf
from jitlab.errors import InvalidArgumentError

FULL = "/job:localhost/replica:0/task:0/device:XLA_CPU:0"


@pytest.fixture
def graph():
    with jl.Graph().as_default() as graph:
        yield graph


# ---- names


def test_names_are_unique_and_begin_with_their_scopes(graph):
    x = jl.placeholder(np.float64, [2])
    with jl.name_scope("root"):
        a = x + x
        with jl.name_scope("inner"):
            b = x + x
        c = x + x
    with jl.name_scope("root") as again:
        d = x + x
    with jl.name_scope(again):
        e = x + x
    with jl.name_scope("root"), jl.name_scope(None):
        f = x + x
    names = [t.op.name for t in (a, b, c, d, e, f)]
    assert names == ["root/add", "root/inner/add", "root/add_1", "root_1/add", "root_1/add_1", "add"]
    assert [op.name for op in graph.get_operations()] == ["Placeholder", *names]


def test_operations_are_named_as_upstream_names_them(graph):
    x = jl.placeholder(np.float64, [2, 2])
    made = [x + x, x * x, x - x, x / x, x @ x, np.exp(x), x.sum(), jl.constant(1.0), jl.constant([1.0], name="one")]
    assert [t.op.name for t in made] == ["add", "mul", "sub", "truediv", "MatMul", "Exp", "Sum", "Const", "one"]


def test_the_parts_of_an_operation(graph):
    x = jl.placeholder(np.float32, [None, 2], name="x")
    y = np.matmul(x, np.ones((2, 3), np.float32))
    op = y.op
    assert (op.name, op.type, op.device, op.graph) == ("MatMul", "MatMul", "", graph)
    assert op.inputs[0] is x and op.outputs == [y] and op.control_inputs == []
    assert op.get_attr("T") == np.float32 and op.get_attr("transpose_a") is False
    assert (op.node_def.op, op.node_def.name, op.node_def.input) == ("MatMul", "MatMul", ("x", "Const"))
    assert graph.get_operation_by_name("x") == x.op and graph.get_tensor_by_name("x:0") is x
    assert repr(y) == "<tf.Tensor 'MatMul:0' shape=(None, 3) dtype=float32>"
    assert str(x) == 'Tensor("x:0", shape=(None, 2), dtype=float32)'


@pytest.mark.parametrize(("name", "error"), [("x", ValueError), ("x:1", KeyError), ("y:0", KeyError), ("x:a", ValueError)])
def test_names_of_no_tensor(graph, name, error):
    jl.placeholder(np.float32, [], name="x")
    with pytest.raises(error):
        graph.get_tensor_by_name(name)


def test_a_graph_is_a_graph_also_when_it_is_a_functions():
    f = jl.function(lambda x: x + 1).get_concrete_function(np.ones(2))
    assert isinstance(f.graph, jl.Graph) and isinstance(jl.Graph(), jl.Graph)
    (x,) = [op for op in f.graph.get_operations() if op.type == "Placeholder"]
    assert f.graph.get_tensor_by_name("x:0") == x.outputs[0]
    with pytest.raises(TypeError):
        jl.Session(f.graph)


def test_a_finalized_graph_takes_nothing_more(graph):
    x = jl.placeholder(np.float32, [])
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        x + 1


# ---- the default graph


def test_a_scope_at_the_top_of_a_script_is_the_default_graphs_once_there_is_one():
    assert tf.get_default_graph() is tf.get_default_graph()
    with pytest.raises(RuntimeError), jl.jit_scope():
        pass
    x = jl.placeholder(np.float64, [2])
    with jl.jit_scope():
        y = x + x
    assert y.op.get_attr("_XlaScope") == b"jit_scope_0" and y.graph is tf.get_default_graph()
    tf.reset_default_graph()
    with pytest.raises(RuntimeError), jl.jit_scope():
        pass


def test_functions_are_not_touched_by_the_default_graph():
    jl.placeholder(np.float64, [2])
    np.testing.assert_array_equal(jl.function(lambda x: x + 1)(np.ones(2)), [2, 2])
    assert isinstance(jl.constant([1.0]), np.ndarray)


def test_graphs_of_other_threads_are_their_own():
    program = (
        "import threading, numpy as np, jitlab as jl\n"
        "x = jl.placeholder(np.float64, [2]); found = []\n"
        "def other():\n"
        "    y = jl.placeholder(np.float64, [2]) + 1\n"
        "    found.append((y.graph is not x.graph, jl.Session(y.graph).run(y, {y.op.inputs[0]: [1, 2]}).tolist()))\n"
        "t = threading.Thread(target=other); t.start(); t.join(); print(found)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[(True, [2.0, 3.0])]"


# ---- devices


def test_short_and_long_names_of_devices(graph):
    x = jl.placeholder(np.float64, [2])

    def device(name):
        with jl.device(name):
            return (x + 1).op.device

    assert device(FULL) == FULL
    assert device("XLA_CPU:0") == device("/device:XLA_CPU:0") == "/device:XLA_CPU:0"
    assert device("/cpu:0") == "/device:CPU:0" and device(None) == ""
    with jl.device("/job:localhost"), jl.device("XLA_CPU:0"):
        assert (x + 1).op.device == "/job:localhost/device:XLA_CPU:0"
        with jl.device(None):
            assert (x + 1).op.device == ""
    assert device(lambda op: "/cpu:0" if op.type == "AddV2" else "") == "/device:CPU:0"
    with pytest.raises(ValueError, match="Unknown device"):
        device("the cellar")
    with pytest.raises(TypeError):
        device(3)


def test_what_stands_on_an_xla_device_is_a_unit_of_its_own_between_copies(graph):
    x = jl.placeholder(np.float64, [2])
    with jl.device("XLA_CPU:0"):
        y = np.exp(x)
        z = np.sin(y) + y
    w = z * 2
    with jl.Session(graph) as sess, jl.record() as recording:
        np.testing.assert_allclose(sess.run(w, {x: [0.0, 1.0]}), 2 * (np.sin(np.exp([0, 1])) + np.exp([0, 1])))
    report = recording.report()
    assert [c.ops for c in report.clusters] == [(t.op.name,) for t in (y, z.op.inputs[0], z)]
    copies = [op for op in report.ops if op.op == "CopyToDevice"]
    assert [c.name for c in copies] == [f"{x.op.name}/copy", f"{z.op.name}/copy"]
    assert all("a copy to" in op.reason.text for op in copies)


def test_a_copy_is_a_copy():
    held = []
    with jl.Graph().as_default() as graph:
        x = jl.placeholder(np.float64, [2])
        with jl.device("XLA_CPU:0"):
            y = tf.identity(x)
        kept = tf.numpy_function(lambda a: (held.append(a), a)[1], [y], tf.float64)
    given = np.ones(2)
    found = jl.Session(graph).run(kept, {x: given})
    assert not np.shares_memory(held[0], given) and not np.shares_memory(found, given)


def test_soft_placement_runs_on_the_cpu_what_has_no_device(graph):
    x = jl.placeholder(np.float64, [2])
    with jl.device("/gpu:0"):
        y = x + 1
    with pytest.raises(InvalidArgumentError, match="Cannot assign a device for operation"):
        jl.Session(graph).run(y, {x: [1, 2]})
    config = tf.ConfigProto(allow_soft_placement=True)
    np.testing.assert_array_equal(jl.Session(graph, config).run(y, {x: [1, 2]}), [2, 3])


# ---- control flow outside of graphs


def test_cond_and_while_loop_at_once_and_in_functions():
    def halves(x):
        return jl.while_loop(lambda i, y: y > 1, lambda i, y: (i + 1, y / 2), [0, x])

    assert halves(8.0) == [3, 1.0]
    found = jl.function(halves)(np.float64(8))
    assert [int(found[0]), float(found[1])] == [3, 1.0]
    assert jl.cond(True, lambda: 1, lambda: 2) == 1
    f = jl.function(lambda x: jl.cond(x.sum() > 0, lambda: x * 2, lambda: -x))
    np.testing.assert_array_equal(f(np.array([1.0, 2.0])), [2, 4])
    np.testing.assert_array_equal(f(np.array([-1.0, -2.0])), [1, 2])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: jl.cond(True, 1, lambda: 2), TypeError),
        (lambda: jl.while_loop(1, lambda i: i, [0]), TypeError),
        (lambda: jl.while_loop(lambda i: False, lambda i: i, 0), TypeError),
        (lambda: jl.while_loop(lambda i: False, lambda i: i, []), ValueError),
        (lambda: jl.while_loop(lambda i, j: True, lambda i, j: i, [0, 1]), ValueError),
    ],
)
def test_wrong_arguments_of_control_flow(call, error):
    with pytest.raises(error):
        call()


def test_sides_that_do_not_fit_are_refused(graph):
    p = jl.placeholder(np.bool_, [])
    with pytest.raises(TypeError, match="dtype"):
        jl.cond(p, lambda: jl.constant(1.0), lambda: jl.constant(1))


def test_values_of_two_graphs_do_not_meet(graph):
    with jl.Graph().as_default():
        other = jl.constant(3.0, name="other")
    for build in (lambda: tf.exp(other), lambda: jl.constant(1.0) + other, lambda: other + jl.constant(1.0)):
        with pytest.raises(ValueError, match="must be from the same graph"):
            build()


def test_each_y_of_gradients_has_one_grad_y(graph):
    x = jl.placeholder(np.float64, [2])
    with pytest.raises(ValueError, match="got 2 grad_ys for 1 ys"):
        jl.gradients(x * x, x, grad_ys=[None, None])
