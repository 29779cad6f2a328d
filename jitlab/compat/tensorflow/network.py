"""`tf.nn` and `tf.losses`: made of NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitlab import nn

from .operations import NAMES as NAMES_OF_OPERATIONS
from .operations import call, made_names
from .tensors import array, operands


def _relu(features: Any) -> Any:
    """The positive part."""
    return call(np.maximum, array(features), 0)


def _relu6(features: Any) -> Any:
    """The positive part, at most 6."""
    return call(np.minimum, _relu(features), 6)


def _leaky_relu(features: Any, alpha: float = 0.2) -> Any:
    """x, or alpha x where x is negative."""
    x = array(features)
    return call(np.where, x > 0, x, x * alpha)


def _elu(features: Any) -> Any:
    """x, or exp(x) - 1 where x is negative."""
    x = array(features)
    return call(np.where, x > 0, x, call(np.expm1, call(np.minimum, x, 0)))


def _softplus(features: Any) -> Any:
    """log(1 + exp(x)), which does not overflow."""
    x = array(features)
    return call(np.maximum, x, 0) + call(np.log1p, call(np.exp, -call(np.abs, x)))


def _softmax(logits: Any, axis: Any = None, dim: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along an axis, the last one unless said otherwise."""
    x, axis = array(logits), _axis(axis, dim)
    e = call(np.exp, x - _largest(x, axis))
    return e / call(np.sum, e, axis=axis, keepdims=True)


def _log_softmax(logits: Any, axis: Any = None, dim: Any = None) -> Any:
    """log(softmax(x)), without the rounding of the way round."""
    x, axis = array(logits), _axis(axis, dim)
    shifted = x - _largest(x, axis)
    return shifted - call(np.log, call(np.sum, call(np.exp, shifted), axis=axis, keepdims=True))


def _largest(x: Any, axis: int) -> Any:
    """What is taken off so that exp does not overflow. It falls out of the result, and so out of the gradient."""
    return NAMES_OF_OPERATIONS["stop_gradient"](call(np.max, x, axis=axis, keepdims=True))


def _axis(axis: Any, dim: Any) -> int:
    chosen = dim if axis is None else axis
    return -1 if chosen is None else int(chosen)


def _softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, axis: Any = None, dim: Any = None, _sentinel: Any = None
) -> Any:
    """-sum(labels * log(softmax(logits))) along an axis."""
    if _sentinel is not None or labels is None or logits is None:
        raise ValueError("softmax_cross_entropy_with_logits(labels=..., logits=...): both, by their names")
    labels, logits = operands((labels, logits))
    return -call(np.sum, labels * _log_softmax(logits, axis, dim), axis=_axis(axis, dim))


def _sparse_softmax_cross_entropy_with_logits(labels: Any = None, logits: Any = None) -> Any:
    """The same for labels that are numbers of classes."""
    if labels is None or logits is None:
        raise ValueError("sparse_softmax_cross_entropy_with_logits(labels=..., logits=...): both, by their names")
    logs, at = _log_softmax(array(logits)), array(labels)
    return -call(np.squeeze, call(np.take_along_axis, logs, call(np.expand_dims, at, -1), -1), axis=-1)


def _sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None) -> Any:
    """-labels log(sigmoid(x)) - (1 - labels) log(1 - sigmoid(x)), which does not overflow."""
    labels, x = operands((labels, logits))
    return call(np.maximum, x, 0) - x * labels + call(np.log1p, call(np.exp, -call(np.abs, x)))


def _bias_add(value: Any, bias: Any, data_format: Any = None) -> Any:
    """A bias for each entry of the last axis."""
    value, bias = operands((value, bias))
    return value + bias


def _l2_loss(t: Any) -> Any:
    """sum(x squared) / 2."""
    return call(np.sum, call(np.square, array(t))) / 2


def _l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12) -> Any:
    """x / sqrt(max(sum(x squared), epsilon))."""
    x = array(x)
    total = call(np.sum, call(np.square, x), axis=axis, keepdims=True)
    return x / call(np.sqrt, call(np.maximum, total, epsilon))


def _moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False) -> tuple[Any, Any]:
    """Mean and variance along axes."""
    x, axes = array(x), axes if isinstance(axes, int) else tuple(axes)
    mean = call(np.mean, x, axis=axes, keepdims=True)
    variance = call(np.mean, call(np.square, x - mean), axis=axes, keepdims=keepdims)
    return (mean if keepdims else call(np.squeeze, mean, axis=axes)), variance


def _dropout(x: Any, keep_prob: Any = None, noise_shape: Any = None, seed: Any = None, rate: Any = None) -> Any:
    """Elements left out at random, the others scaled so that the mean stays."""
    from .random import NAMES

    x = array(x)
    left_out = 1 - keep_prob if rate is None else rate
    drawn = NAMES["uniform"](np.shape(x) if noise_shape is None else noise_shape, dtype=x.dtype)
    return call(np.where, drawn >= left_out, x / (1 - left_out), np.zeros((), x.dtype)[()])


def _spatial(sizes: Any, data_format: str | None) -> Any:
    """The two sizes in the middle of [1, height, width, 1], or of [1, 1, height, width]."""
    if sizes is None or isinstance(sizes, int):
        return sizes
    sizes = [int(n) for n in sizes]
    if len(sizes) == 4:
        outer, inner = (sizes[:2], sizes[2:]) if data_format == "NCHW" else ([sizes[0], sizes[3]], sizes[1:3])
        if outer != [1, 1]:
            raise ValueError(f"strides and windows are 1 along the batch and the channels, not {sizes}")
        return tuple(inner)
    return tuple(sizes) if len(sizes) == 2 else sizes[0]


def _padding(padding: Any, data_format: str | None) -> Any:
    if isinstance(padding, str):
        return padding.upper()
    return tuple(map(tuple, padding[2:] if data_format == "NCHW" else padding[1:3]))


def _conv2d(
    input: Any, filters: Any = None, strides: Any = 1, padding: Any = "VALID", use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC", dilations: Any = 1, filter: Any = None,
) -> Any:  # fmt: skip
    """Sums of products of windows [batch, height, width, channels] with filters [height, width, in, out]."""
    x, w = operands((input, filter if filters is None else filters))
    if data_format == "NCHW":
        w = call(np.transpose, w, (3, 2, 0, 1))
    return call(
        nn.conv, x, w, strides=_spatial(strides, data_format), padding=_padding(padding, data_format),
        rhs_dilation=_spatial(dilations, data_format), data_format=data_format,
    )  # fmt: skip


def _max_pool(
    value: Any = None, ksize: Any = None, strides: Any = None, padding: Any = "VALID", data_format: str | None = "NHWC",
    input: Any = None,
) -> Any:  # fmt: skip
    """The greatest element of each window."""
    return _pooled(nn.max_pool, input if value is None else value, ksize, strides, padding, data_format)


def _avg_pool(
    value: Any = None, ksize: Any = None, strides: Any = None, padding: Any = "VALID", data_format: str | None = "NHWC",
    input: Any = None,
) -> Any:  # fmt: skip
    """The mean of each window."""
    return _pooled(nn.avg_pool, input if value is None else value, ksize, strides, padding, data_format)


def _pooled(pool: Any, x: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None) -> Any:
    return call(
        pool, array(x), _spatial(ksize, data_format), strides=_spatial(strides, data_format),
        padding=_padding(padding, data_format), data_format=data_format,
    )  # fmt: skip


NAMES = made_names(
    _relu, _relu6, _leaky_relu, _elu, _softplus, _softmax, _log_softmax, _softmax_cross_entropy_with_logits,
    _sparse_softmax_cross_entropy_with_logits, _sigmoid_cross_entropy_with_logits, _bias_add, _l2_loss, _l2_normalize, _moments,
    _dropout, _conv2d, _max_pool, _avg_pool,
)  # fmt: skip
NAMES |= {"max_pool2d": NAMES["max_pool"], "avg_pool2d": NAMES["avg_pool"]}
NAMES["softmax_cross_entropy_with_logits_v2"] = NAMES["softmax_cross_entropy_with_logits"]

__all__ = ["NAMES"]
