"""Every example of the seed on `jit_scope`, with only the import changed, and its exact result."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.compat import tensorflow as tf

A = np.arange(1, 5, dtype=np.float32).reshape(2, 2)
B = A[::-1].copy()
ONES = np.ones((2, 2), np.float32)


@pytest.fixture
def inputs():
    """The seed's a, b, c and d: matrices of a graph."""
    with tf.Graph().as_default():
        yield tuple(tf.placeholder(tf.float32, [2, 2], name=name) for name in "abcd")


def attrs(tensor):
    """XlaCompile and XlaScope of a tensor's operation."""
    return tensor.op.get_attr("_XlaCompile"), tensor.op.get_attr("_XlaScope")


def has_no_attrs(tensor):
    for name in ("_XlaCompile", "_XlaScope", "_XlaSeparateCompiledGradients"):
        with pytest.raises(ValueError, match="has no attr named"):
            tensor.op.get_attr(name)
    return True


def run(fetches, feeds, level=tf.OptimizerOptions.OFF):
    """The values, and what each cluster of the run holds: names of operations."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    first = fetches[0]
    with tf.Session(graph=first.graph, config=config) as sess, jl.record() as recording:
        values = sess.run(fetches, feeds)
    clusters = [[op for op in c.ops if op not in ("Const",)] for c in recording.report().clusters]
    return values, sorted(clusters)


def example(a, b):
    with tf.xla.experimental.jit_scope():
      c = tf.matmul(a, b)  # compiled
    with tf.xla.experimental.jit_scope(compile_ops=False):
      d = tf.matmul(a, c)  # not compiled
    with tf.xla.experimental.jit_scope(
        compile_ops=lambda node_def: 'matmul' in node_def.op.lower()):
      e = tf.matmul(a, b) + d  # matmul is compiled, the addition is not.
    return c, d, e


def test_what_is_compiled_and_what_is_not(inputs):
    a, b, _, _ = inputs
    c, d, e = example(a, b)
    assert attrs(c) == (True, b"jit_scope_0")
    assert attrs(d) == (False, b"jit_scope_1")
    assert e.op.type == "AddV2" and attrs(e) == (False, b"jit_scope_2")
    product = e.op.inputs[0]
    assert product.op.type == "MatMul" and attrs(product) == (True, b"jit_scope_2")
    (cv, dv, ev), clusters = run([c, d, e], {a: A, b: B})
    assert clusters == [[c.op.name], [product.op.name]]
    np.testing.assert_allclose(cv, A @ B)
    np.testing.assert_allclose(dv, A @ (A @ B))
    np.testing.assert_allclose(ev, A @ B + A @ (A @ B))


def test_the_callable_is_asked_once_for_each_operation(inputs):
    a, b, c, _ = inputs
    asked = []

    def compile_ops(node_def):
        asked.append(node_def.op)
        return 'matmul' in node_def.op.lower()

    with tf.xla.experimental.jit_scope(compile_ops=compile_ops):
        tf.matmul(a, b) + c
    assert asked == ["MatMul", "AddV2"]


def test_separate_compiled_gradients(inputs):
    a, b, _, _ = inputs
    # In the example below, the computations for f, g and h will all be compiled
    # in separate scopes.
    with tf.xla.experimental.jit_scope(
        separate_compiled_gradients=True):
      f = tf.matmul(a, b)
    g = tf.gradients([f], [a, b], name='mygrads1')
    h = tf.gradients([f], [a, b], name='mygrads2')

    assert attrs(f) == (True, b"jit_scope_0")
    assert f.op.get_attr("_XlaSeparateCompiledGradients") is True
    assert [attrs(x) for x in g] == [(True, b"jit_scope_0_grad_mygrads1")] * 2
    assert [attrs(x) for x in h] == [(True, b"jit_scope_0_grad_mygrads2")] * 2
    (_, gv, hv), clusters = run([f, g, h], {a: A, b: B})
    for found in (gv, hv):
        np.testing.assert_allclose(found[0], ONES @ B.T)
        np.testing.assert_allclose(found[1], A.T @ ONES)
    assert len(clusters) == 5  # the two matmuls of one gradient share no edge


def open_example(a, b, c, d):
    # In the example below, x and loss may be clustered and compiled together,
    # while y will not be compiled.
    with tf.xla.experimental.jit_scope():
      x = tf.matmul(a, b)
    with tf.xla.experimental.jit_scope(compile_ops=False):
      y = tf.matmul(c, d)
    loss = x + y
    return x, y, loss


def test_an_operation_outside_the_scope_runs_normally_while_the_level_is_off(inputs):
    a, b, c, d = inputs
    x, y, loss = open_example(*inputs)
    assert attrs(x) == (True, b"jit_scope_0") and attrs(y) == (False, b"jit_scope_1") and has_no_attrs(loss)
    (found,), clusters = run([loss], {a: A, b: B, c: A, d: A})
    assert clusters == [[x.op.name]]
    np.testing.assert_allclose(found, A @ B + A @ A)


def test_an_operation_outside_the_scope_joins_it_when_the_level_is_on(inputs):
    a, b, c, d = inputs
    x, _, loss = open_example(*inputs)
    (found,), clusters = run([loss], {a: A, b: B, c: A, d: A}, tf.OptimizerOptions.ON_1)
    assert clusters == [[x.op.name, loss.op.name]]
    np.testing.assert_allclose(found, A @ B + A @ A)


@pytest.mark.parametrize("level", [tf.OptimizerOptions.OFF, tf.OptimizerOptions.ON_1])
def test_an_outer_scope_compiles_only_what_an_inner_one_asks_for(inputs, level):
    a, b, c, d = inputs
    # In the example below, only x will be compiled.
    with tf.xla.experimental.jit_scope(compile_ops=False):
      with tf.xla.experimental.jit_scope():
        x = tf.matmul(a, b)
      y = tf.matmul(c, d)
      loss = x + y

    assert [attrs(t) for t in (x, y, loss)] == [(True, b"jit_scope_0"), (False, b"jit_scope_0"), (False, b"jit_scope_0")]
    (found,), clusters = run([loss], {a: A, b: B, c: A, d: A}, level)
    assert clusters == [[x.op.name]]
    np.testing.assert_allclose(found, A @ B + A @ A)


def test_the_examples_run_inside_a_function_too():
    """Attributes land on the operations of the trace, and what they say is what is compiled."""

    @tf.function
    def f(a, b):
        c, d, e = example(a, b)
        assert attrs(c) == (True, b"jit_scope_0") and attrs(e) == (False, b"jit_scope_2")
        return c, d, e

    found = f(A, B)
    np.testing.assert_allclose(found[2], A @ B + A @ (A @ B))
    graph = f.get_concrete_function(A, B).graph
    marks = {op.name: op.get_attr("_XlaCompile") for op in graph.get_operations() if op.type in ("MatMul", "AddV2")}
    assert list(marks.values()) == [True, False, True, False]


def test_the_compat_names_are_one():
    assert tf.compat.v1.xla.experimental.jit_scope is tf.xla.experimental.jit_scope


def test_entering_it_outside_a_graph_is_an_error():
    with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"), tf.xla.experimental.jit_scope():
        pass
