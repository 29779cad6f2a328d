"""The seed's second page on `jit_scope`: its table and promises, with only the import changed."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.compat import tensorflow as tf

A = np.ones((2, 2), np.float32)


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_compile_ops_is_a_bool_or_a_callable(graph):
    a = tf.placeholder(tf.float32, [2, 2])
    for form, compiled in ((True, True), (False, False), (lambda node_def: node_def.op == "MatMul", True)):
        with tf.xla.experimental.jit_scope(compile_ops=form):
            assert tf.matmul(a, a).op.get_attr("_XlaCompile") is compiled


def test_the_two_defaults(graph):
    with tf.xla.experimental.jit_scope():
        op = tf.matmul(A, A).op
    assert op.get_attr("_XlaCompile") is True and op.get_attr("_XlaSeparateCompiledGradients") is False


def test_separate_gradients_are_named_after_the_forward_scope_and_the_gradients(graph):
    a = tf.placeholder(tf.float32, [2, 2])
    with tf.xla.experimental.jit_scope(separate_compiled_gradients=True):
        f = tf.matmul(a, a)
    with tf.name_scope("training"):
        (g,) = tf.gradients(f, a, name="step")
    assert g.op.type == "AddN"  # the sum of both factors' parts belongs to no forward operation
    assert {x.op.get_attr("_XlaScope") for x in g.op.inputs} == {b"jit_scope_0_grad_training_step"}


def test_gradients_share_the_forward_scope_otherwise(graph):
    a, b = (tf.placeholder(tf.float32, [2, 2]) for _ in "ab")
    with tf.xla.experimental.jit_scope():
        f = tf.matmul(a, b)
    assert {g.op.get_attr("_XlaScope") for g in tf.gradients(f, [a, b])} == {b"jit_scope_0"}


def test_compiling_is_best_effort(graph):
    """What has no compiled form runs as it does without a scope."""
    x = tf.placeholder(tf.float32, [None])
    with tf.xla.experimental.jit_scope():
        y = tf.where(x > 1)  # its shape depends on data
    with tf.Session(graph=graph) as sess:
        np.testing.assert_array_equal(sess.run(y, {x: [0, 2, 3]}), [[1], [2]])
        np.testing.assert_array_equal(sess.run(y, {x: [0, 0, 3]}), [[2]])


def test_operations_with_compile_ops_false_are_never_compiled(graph):
    a = tf.placeholder(tf.float32, [2, 2])
    with tf.xla.experimental.jit_scope(compile_ops=False):
        y = tf.exp(tf.sin(a))
    config = tf.ConfigProto(
        graph_options=tf.GraphOptions(optimizer_options=tf.OptimizerOptions(global_jit_level=tf.OptimizerOptions.ON_2))
    )
    with tf.Session(graph=graph, config=config) as sess, jl.record() as recording:
        np.testing.assert_array_equal(sess.run(y, {a: A}), np.exp(np.sin(A)))
    report = recording.report()
    assert not report.clusters
    assert {op.reason.code for op in report.ops} == {"disallowed"}


def test_it_yields_the_scope_and_raises_where_execution_is_eager(graph):
    with tf.xla.experimental.jit_scope() as nothing:
        assert nothing is None
