"""Softmax regression on digits, with or without clusters, as a TensorFlow 1 program has it; the digits are drawn here.

    python mnist_softmax_xla.py --xla=false     timeline.ctf.json with a box for each operation
    python mnist_softmax_xla.py                 timeline.ctf.json with one _XlaLaunch
"""

import argparse

import numpy as np
from jitlab.compat.tensorflow.python.client import timeline

from jitlab.compat import tensorflow as tf
from jitlab.datasets import drawn_digits


def main(flags):
    data = drawn_digits()
    images, labels = data.train_images.astype(np.float32), np.eye(10, dtype=np.float32)[data.train_labels]
    chosen = np.random.default_rng(0)

    # The model
    x = tf.placeholder(tf.float32, [None, 784])
    w = tf.Variable(tf.zeros([784, 10]))
    b = tf.Variable(tf.zeros([10]))
    y = tf.matmul(x, w) + b

    # The loss, and the step that makes it smaller
    y_ = tf.placeholder(tf.float32, [None, 10])
    cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
    train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)

    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1 if flags.xla else 0
    run_metadata = tf.RunMetadata()
    sess = tf.Session(config=config)
    tf.global_variables_initializer().run(session=sess)

    for i in range(flags.steps):
        batch = chosen.integers(0, len(images), 100)
        feeds = {x: images[batch], y_: labels[batch]}
        if i < flags.steps - 1:
            sess.run(train_step, feed_dict=feeds)
            continue
        # The timeline of the last step alone, for chrome://tracing
        sess.run(
            train_step, feed_dict=feeds, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=run_metadata
        )
        trace = timeline.Timeline(step_stats=run_metadata.step_stats)
        with open("timeline.ctf.json", "w") as trace_file:
            trace_file.write(trace.generate_chrome_trace_format())

    correct_prediction = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
    accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
    test = {x: data.test_images.astype(np.float32), y_: np.eye(10, dtype=np.float32)[data.test_labels]}
    print(sess.run(accuracy, feed_dict=test))
    sess.close()


def flags(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--xla", type=lambda text: text.lower() != "false", nargs="?", const=True, default=True)
    parser.add_argument("--steps", type=int, default=1000)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(flags())
