"""Every example of the seed 'Using JIT Compilation', only the import changed, and its exact result."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.compat import tensorflow as tf
from tests.seeds import mnist_softmax_xla

HERE = Path(__file__).parent


def test_a_session_that_compiles_whatever_it_can():
    # Config to turn on JIT compilation
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1

    x = tf.placeholder(np.float32, [None])
    y = tf.exp(tf.sin(x)) + 1
    for level, sizes in ((config, [3]), (None, [])):
        sess = tf.Session(config=level)
        with jl.record() as recording:
            np.testing.assert_allclose(sess.run(y, {x: [0.0, 1.0]}), np.exp(np.sin([0.0, 1.0])) + 1, rtol=1e-6)
        assert [len(c.ops) for c in recording.report().clusters] == sizes


def test_two_neighbours_become_one_computation_and_one_alone_does_not():
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    x = tf.placeholder(np.float32, [None])
    one, two = tf.sin(x), tf.cos(tf.sin(x))
    for fetch, clusters in ((one, 0), (two, 1)):
        with tf.Session(config=config) as sess, jl.record() as recording:
            sess.run(fetch, {x: [1.0]})
        assert len(recording.report().clusters) == clusters


def test_manual_compilation_of_one_operation():
    jit_scope = tf.contrib.compiler.jit.experimental_jit_scope

    x = tf.placeholder(np.float32)
    with jit_scope():
      y = tf.add(x, x)  # The "add" will be compiled with XLA.

    assert y.op.get_attr("_XlaCompile") is True
    sess = tf.Session()
    for value in (np.float32(3), np.ones(4, np.float32), np.ones((2, 3), np.float32)):
        with jl.record() as recording:
            np.testing.assert_array_equal(sess.run(y, feed_dict={x: value}), 2 * value)
        (cluster,) = recording.report().clusters
        assert cluster.ops == (y.op.name,)


def test_an_operation_on_an_xla_device_that_is_not_there():
    input1, input2 = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    with tf.device("/job:localhost/replica:0/task:0/device:XLA_GPU:0"):
      output = tf.add(input1, input2)

    assert output.op.device == "/job:localhost/replica:0/task:0/device:XLA_GPU:0"
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device for operation"):
        tf.Session().run(output, {input1: [1, 2], input2: [3, 4]})


@pytest.mark.parametrize("level", [tf.OptimizerOptions.OFF, tf.OptimizerOptions.ON_1])
def test_an_operation_on_the_xla_cpu_is_forced_there_and_copied_to_and_from(level):
    input1, input2 = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    with tf.device("/job:localhost/replica:0/task:0/device:XLA_CPU:0"):
      output = tf.add(input1, input2)

    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    with jl.record() as recording:
        np.testing.assert_array_equal(tf.Session(config=config).run(output, {input1: [1, 2], input2: [3, 4]}), [4, 6])
    report = recording.report()
    assert [c.ops for c in report.clusters] == [(output.op.name,)]
    assert [op.op for op in report.ops] == ["CopyToDevice", "CopyToDevice", "AddV2", "CopyToDevice"]
    lanes = {lane["name"]: lane["spans"] for lane in report.timeline.lanes}
    copies = [span["label"] for span in lanes["copies"]]  # the third is of the result, which the program writes so
    assert copies == ["copy", "copy", "tf.add(input1, input2)"] and "host" not in lanes
    spans = [span["label"] for span in sorted(lanes["copies"] + lanes["compiled"], key=lambda span: span["start"])]
    assert spans[:2] == ["copy", "copy"] and spans[3] == copies[2] and len(spans) == 4


def boxes(folder):
    """How often each operation type stands in the timeline."""
    events = json.loads((folder / "timeline.ctf.json").read_text())["traceEvents"]
    return Counter(event["name"] for event in events if event["ph"] == "X")


def test_the_tutorial_without_xla(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mnist_softmax_xla.main(mnist_softmax_xla.flags(["--xla=false", "--steps=200"]))
    assert float(capsys.readouterr().out) > 0.9
    found = boxes(tmp_path)
    assert found["MatMul"] == 2 and "_XlaLaunch" not in found


def test_the_tutorial_with_xla(tmp_path):
    flags = f"--xla_generate_hlo_graph=.* --xla_hlo_graph_path={tmp_path}"
    env = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "OPENBLAS_NUM_THREADS": "1", "TF_XLA_FLAGS": flags}
    script = [sys.executable, str(HERE / "mnist_softmax_xla.py"), "--steps=200"]
    done = subprocess.run(script, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert float(lines[-1]) > 0.9
    assert boxes(tmp_path) == {"_XlaLaunch": 1}
    name = r"computation cluster_0\[_XlaCompiledKernel=true,_XlaNumConstantArgs=\d+\]\.v\d+ "
    stage = r"\[CPU: pipeline start, before inline\]: "
    assert re.fullmatch(name + stage + re.escape(str(tmp_path)) + r"/hlo_graph_0\.dot", lines[0])
    assert (tmp_path / "hlo_graph_0.dot").read_text().find("digraph") >= 0
