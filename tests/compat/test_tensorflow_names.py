"""Every name of `jitlab.compat.tensorflow` that computes: the same value and dtype at once, in a function and in a graph."""

import numpy as np
import pytest

from jitlab.compat import tensorflow as tf

A = np.arange(1, 7, dtype=np.float32).reshape(2, 3) / 7
S = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)

IMAGE = np.arange(50, dtype=np.float32).reshape(1, 5, 5, 2) / 50
CHANNELS = IMAGE.transpose(0, 3, 1, 2).copy()
FILTERS = np.linspace(-1, 1, 36, dtype=np.float32).reshape(3, 3, 2, 2)

ONE = """
    abs sign square sqrt exp expm1 log log1p sin cos tan sinh cosh tanh asin acos atan asinh atanh floor ceil round rint
    reciprocal negative is_nan is_inf is_finite sigmoid rsqrt reduce_sum reduce_mean reduce_max reduce_min reduce_prod
    reduce_logsumexp norm size rank shape transpose identity stop_gradient zeros_like ones_like argmax argmin cumsum cumprod
    reduce_std reduce_variance sort
""".split()
TWO = """
    add subtract multiply divide truediv floordiv mod pow maximum minimum greater less equal not_equal greater_equal less_equal
    atan2 squared_difference
""".split()
NN = "relu relu6 leaky_relu elu softplus softmax log_softmax l2_loss l2_normalize".split()
LINALG = "inv det cholesky eigh qr trace diag_part".split()

CASES = {
    **{name: (getattr(tf, name), A) for name in ONE},
    **{name: (getattr(tf, name), A, A[:1]) for name in TWO},
    **{f"{name} of a number": (lambda x, name=name: getattr(tf, name)(x, 2), A) for name in ("add", "pow", "maximum", "less")},
    **{f"nn.{name}": (getattr(tf.nn, name), A) for name in NN},
    **{f"linalg.{name}": (getattr(tf.linalg, name), S) for name in LINALG},
    "linalg.solve": (lambda s: tf.linalg.solve(s, s), S),
    "matmul": (lambda x: tf.matmul(x, x, transpose_b=True), A),
    "concat": (lambda x: tf.concat([x, x], 1), A),
    "stack": (lambda x: tf.stack([x, x], axis=1), A),
    "unstack": (lambda x: tf.unstack(x, 3, axis=1), A),
    "split": (lambda x: tf.split(x, 3, axis=1), A),
    "split by sizes": (lambda x: tf.split(x, [1, 2], axis=1), A),
    "tile": (lambda x: tf.tile(x, [2, 1]), A),
    "squeeze, expand_dims": (lambda x: tf.squeeze(tf.expand_dims(x, 0), [0]), A),
    "broadcast_to": (lambda x: tf.broadcast_to(x, [4, 2, 3]), A),
    "reverse": (lambda x: tf.reverse(x, [1]), A),
    "roll": (lambda x: tf.roll(x, 1, 1), A),
    "pad": (lambda x: tf.pad(x, [[1, 0], [0, 2]]), A),
    "slice": (lambda x: tf.slice(x, [0, 1], [-1, 2]), A),
    "gather": (lambda x: tf.gather(x, [1, 0, 1], axis=1), A),
    "gather_nd": (lambda x: tf.gather_nd(x, [[0, 1], [1, 2]]), A),
    "one_hot": (lambda x: tf.one_hot(tf.argmax(x, 1), 3), A),
    "where": (lambda x: tf.where(x > 0.3, x, tf.zeros_like(x)), A),
    "where without values": (lambda x: tf.where(x > 0.3), A),
    "cast": (lambda x: tf.cast(x * 9, tf.int32), A),
    "fill": (lambda x: tf.fill([2, 3], 1.5) + x, A),
    "eye": (lambda x: tf.matmul(tf.eye(2), x), A),
    "linspace": (lambda x: tf.linspace(0.0, 1.0, 3) + x, A),
    "range": (lambda x: tf.cast(tf.range(3), tf.float32) + x, A),
    "add_n": (lambda x: tf.add_n([x, x, x]), A),
    "clip_by_value": (lambda x: tf.clip_by_value(x, 0.2, 0.5), A),
    "check_numerics": (lambda x: tf.debugging.check_numerics(x, "it"), A),
    "tensordot": (lambda x: tf.tensordot(x, x, [[1], [1]]), A),
    "einsum": (lambda x: tf.einsum("ij,kj->ik", x, x), A),
    "reshape": (lambda x: tf.reshape(x, [-1]), A),
    "reshape by a size": (lambda x: tf.reshape(x, (tf.size(x),)), A),
    "softmax_cross_entropy": (
        lambda x: tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax(x), logits=x), A
    ),
    "sparse_softmax_cross_entropy": (
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=x), A
    ),
    "sigmoid_cross_entropy": (lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=x), A),
    "moments": (lambda x: tf.nn.moments(x, [0]), A),
    "bias_add": (lambda x: tf.nn.bias_add(x, [1.0, 2.0, 3.0]), A),
    "nn.conv2d": (lambda x: tf.nn.conv2d(x, FILTERS, [1, 2, 1, 1], "SAME"), IMAGE),
    "nn.conv2d by channels": (lambda x: tf.nn.conv2d(x, FILTERS, 1, "VALID", data_format="NCHW"), CHANNELS),
    "nn.max_pool": (lambda x: tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), IMAGE),
    "nn.avg_pool": (lambda x: tf.nn.avg_pool(x, 2, 1, "VALID"), IMAGE),
    "cond": (lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1, lambda: x - 1), A),
    "case": (
        lambda x: tf.case(
            [(tf.reduce_sum(x) > 100, lambda: x), (tf.reduce_sum(x) > 1, lambda: x * 2)], default=lambda: x * 3
        ),
        A,
    ),
    "switch_case": (
        lambda x: tf.switch_case(tf.cast(tf.reduce_sum(x), tf.int32), [lambda: x, lambda: x * 2, lambda: x * 3]), A
    ),
    "while_loop": (lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0), (0, x)), A),
    "numpy_function": (lambda x: tf.numpy_function(np.sin, [x], tf.float32), A),
    "assert_less": (lambda x: (tf.debugging.assert_less(x, 100.0), x + 1)[1], A),
}  # fmt: skip


def flat(result):
    return [np.asarray(x) for x in (result if isinstance(result, (list, tuple)) else [result])]


def same(found, wanted):
    for x, y in zip(flat(found), flat(wanted), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x.astype(float), y.astype(float), rtol=1e-5, atol=1e-6)
    return True


@pytest.mark.parametrize("name", CASES)
def test_a_name_means_the_same_at_once_in_a_function_and_in_a_graph(name):
    function, *arrays = CASES[name]
    wanted = function(*arrays)
    with tf.Graph().as_default():
        inputs = [tf.placeholder(x.dtype, [None] * x.ndim) for x in arrays]
        result = function(*inputs)
        with tf.Session() as sess:
            assert same(sess.run(result, dict(zip(inputs, arrays, strict=True))), wanted)
    assert same(tf.function(lambda *xs: function(*xs), jit_compile=False)(*arrays), wanted)
