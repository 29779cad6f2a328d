"""What neural networks need beside NumPy: convolutions, pooling, activations. Plain functions of NumPy arrays.

Called as they are, they compute with NumPy. In `jl.function`, `jl.jit` and cells, a convolution or a pooling is one operation,
with gradients; the others are NumPy's own functions and are captured as such.

Arrays are `[batch, *spatial, channels]` with filters `[*window, channels in, channels out]`; with `data_format="NCHW"` ("NCW",
"NCDHW") they are `[batch, channels, *spatial]` with filters `[channels out, channels in, *window]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from jitlab.ops.neural import rules_nn
from jitlab.ops.neural.convolution import Conv, ConvInput
from jitlab.ops.neural.pooling import AvgPool, MaxPool

__all__ = [
    "avg_pool",
    "conv",
    "conv_transpose",
    "gelu",
    "max_pool",
    "one_hot",
    "relu",
    "sigmoid",
    "softmax_cross_entropy",
]

Array = Any
Numbers = int | tuple[int, ...]
Padding = str | tuple[tuple[int, int], ...]


def _dispatched(function: Callable[..., Array]) -> Callable[..., Array]:
    """Hands a call to what implements NumPy's `__array_function__`, as NumPy's own functions do: an array in the making is
    one, and knows the operation."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Array:
        for x in (*args, *options.values()):
            if not isinstance(x, np.ndarray) and hasattr(type(x), "__array_function__"):
                return x.__array_function__(call, (type(x),), args, options)
        return function(*args, **options)

    return call


@_dispatched
def conv(
    x: Array,
    w: Array,
    strides: Numbers = 1,
    padding: Padding = "SAME",
    lhs_dilation: Numbers = 1,
    rhs_dilation: Numbers = 1,
    groups: int = 1,
    data_format: str | None = None,
) -> Array:
    """A convolution: the sums of products of each window of x with each filter of w. Filters are not turned round.

    Args:
        x: an array of shape `[batch, *spatial, channels in]`, with one to three spatial axes.
        w: the filters, an array of shape `[*window, channels in, channels out]`.
        strides: steps from window to window, in elements: a number, or one for each spatial axis.
        padding: "SAME" (as many results as strides fit), "VALID" (none) or a pair of numbers for each spatial axis.
        lhs_dilation: spreads x: that many minus one zeros stand between its elements.
        rhs_dilation: spreads the windows alike.
        groups: channels of different groups do not mix; a divisor of both numbers of channels.
        data_format: "NCHW" ("NCW", "NCDHW"): x is `[batch, channels, *spatial]`, w `[channels out, channels in, *window]`.

    Returns:
        An array of shape `[batch, *spatial, channels out]`, of the common dtype of x and w.

    Raises:
        ValueError: shapes or options that do not fit.

    Example:
        >>> from jitlab import nn
        >>> nn.conv(np.ones((1, 4, 4, 1)), np.ones((3, 3, 1, 1)), padding="VALID")[0, :, :, 0]
        array([[9., 9.],
               [9., 9.]])
    """
    x, w = np.asarray(x), np.asarray(w)
    n, last = rules_nn.layout("conv", x.shape, data_format)
    of_x, of_w, back = rules_nn.orders(n, last)
    dtype = np.result_type(x, w)
    x, w = x.astype(dtype).transpose(of_x), w.astype(dtype).transpose(of_w) if w.ndim == x.ndim else w
    geometry = rules_nn.conv_geometry("conv", x.shape, w.shape, strides, padding, lhs_dilation, rhs_dilation, groups)
    return Conv(geometry).numpy(x, w).transpose(back)


@_dispatched
def conv_transpose(
    x: Array,
    w: Array,
    strides: Numbers = 1,
    padding: Padding = "SAME",
    rhs_dilation: Numbers = 1,
    data_format: str | None = None,
) -> Array:
    """The transpose of `conv` with these filters: what its gradient does to x, of extents strides times those of x for "SAME".

    Args:
        x: an array of shape `[batch, *spatial, channels in]`.
        w: the filters of the `conv` that it transposes: `[*window, channels out, channels in]`.
        strides: those of the `conv`, in elements: a number, or one for each spatial axis.
        padding: as in `conv`.
        rhs_dilation: as in `conv`.
        data_format: as in `conv`.

    Returns:
        An array of shape `[batch, *spatial, channels out]`, of the common dtype of x and w.

    Raises:
        ValueError: shapes or options that do not fit.

    Example:
        >>> from jitlab import nn
        >>> nn.conv_transpose(np.ones((1, 2, 1)), np.ones((2, 1, 1)), strides=2)[0, :, 0]
        array([1., 1., 1., 1.])
    """
    x, w = np.asarray(x), np.asarray(w)
    n, last = rules_nn.layout("conv_transpose", x.shape, data_format)
    of_x, of_w, back = rules_nn.orders(n, last)
    dtype = np.result_type(x, w)
    x, w = x.astype(dtype).transpose(of_x), w.astype(dtype).transpose(of_w) if w.ndim == x.ndim else w
    geometry, size = rules_nn.transpose_geometry(x.shape, w.shape, strides, padding, rhs_dilation)
    return ConvInput(geometry, size).numpy(x, w).transpose(back)


@_dispatched
def max_pool(
    x: Array, window: Numbers, strides: Numbers | None = None, padding: Padding = "VALID", data_format: str | None = None
) -> Array:
    """The greatest element of each window.

    Args:
        x: an array of shape `[batch, *spatial, channels]`.
        window: extents of the window, in elements: a number, or one for each spatial axis.
        strides: steps from window to window, in elements; None: windows lie side by side.
        padding: as in `conv`.
        data_format: "NCHW" ("NCW", "NCDHW"): x is `[batch, channels, *spatial]`.

    Returns:
        An array of shape `[batch, *spatial, channels]`, of the dtype of x.

    Raises:
        ValueError: shapes or options that do not fit.

    Example:
        >>> from jitlab import nn
        >>> nn.max_pool(np.arange(6.0).reshape(1, 6, 1), 2)[0, :, 0]
        array([1., 3., 5.])
    """
    return _pool("max_pool", x, window, strides, padding, data_format)


@_dispatched
def avg_pool(
    x: Array, window: Numbers, strides: Numbers | None = None, padding: Padding = "VALID", data_format: str | None = None
) -> Array:
    """The mean of each window, of those of its elements that lie inside x.

    Args:
        x: an array of shape `[batch, *spatial, channels]`.
        window: extents of the window, in elements: a number, or one for each spatial axis.
        strides: steps from window to window, in elements; None: windows lie side by side.
        padding: as in `conv`.
        data_format: "NCHW" ("NCW", "NCDHW"): x is `[batch, channels, *spatial]`.

    Returns:
        An array of shape `[batch, *spatial, channels]`, of the dtype of x.

    Raises:
        ValueError: shapes or options that do not fit.

    Example:
        >>> from jitlab import nn
        >>> nn.avg_pool(np.arange(6.0).reshape(1, 6, 1), 2)[0, :, 0]
        array([0.5, 2.5, 4.5])
    """
    return _pool("avg_pool", x, window, strides, padding, data_format)


def _pool(name: str, x: Array, window: Any, strides: Any, padding: Any, data_format: str | None) -> Array:
    x = np.asarray(x)
    n, last = rules_nn.layout(name, x.shape, data_format)
    rules_nn.check_pooled(name, x.dtype)
    of_x, _, back = rules_nn.orders(n, last)
    x = x.transpose(of_x)
    op = MaxPool if name == "max_pool" else AvgPool
    return op(*rules_nn.pool_geometry(name, x.shape, window, strides, padding)).numpy(x).transpose(back)


def relu(x: Array) -> Array:
    """x where it is positive, else 0.

    Args:
        x: an array of any shape.

    Returns:
        An array of the shape and dtype of x.

    Example:
        >>> from jitlab import nn
        >>> nn.relu(np.array([-1.0, 2.0]))
        array([0., 2.])
    """
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow on either side.

    Args:
        x: an array of any shape.

    Returns:
        An array of the shape of x, of a float dtype.

    Example:
        >>> from jitlab import nn
        >>> nn.sigmoid(np.array([0.0, 1000.0]))
        array([0.5, 1. ])
    """
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1) / (power + 1)


def gelu(x: Array) -> Array:
    """The Gaussian error linear unit, by tanh (D. Hendrycks and K. Gimpel, 2016).

    Args:
        x: an array of any shape.

    Returns:
        An array of the shape of x, of a float dtype.

    Example:
        >>> from jitlab import nn
        >>> nn.gelu(np.array([-10.0, 0.0, 10.0]))
        array([-0.,  0., 10.])
    """
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def one_hot(labels: Array, classes: int, dtype: Any = np.float32) -> Array:
    """Rows with 1 at the place of each label, on a new last axis, else 0.

    Args:
        labels: whole numbers from 0 to `classes` - 1, an array of any shape; others give rows of zeros.
        classes: the length of the new axis.
        dtype: of the result.

    Returns:
        An array of shape `[*labels, classes]`.

    Example:
        >>> from jitlab import nn
        >>> nn.one_hot(np.array([2, 0]), 3)
        array([[0., 0., 1.],
               [1., 0., 0.]], dtype=float32)
    """
    return (np.expand_dims(labels, -1) == np.arange(classes)).astype(dtype)


def softmax_cross_entropy(logits: Array, labels: Array) -> Array:
    """-log of the probability that softmax gives each label.

    Args:
        logits: an array of shape `[..., classes]`.
        labels: whole numbers of shape `[...]`, or probabilities of the shape of the logits.

    Returns:
        An array of shape `[...]`.

    Example:
        >>> from jitlab import nn
        >>> nn.softmax_cross_entropy(np.zeros((2, 4)), np.array([0, 3])) / np.log(4)
        array([1., 1.])
    """
    below = logits - np.max(logits, axis=-1, keepdims=True)
    logs = below - np.log(np.sum(np.exp(below), axis=-1, keepdims=True))
    if np.ndim(labels) == np.ndim(logits):
        return -np.sum(labels * logs, axis=-1)
    return -np.squeeze(np.take_along_axis(logs, np.expand_dims(labels, -1), axis=-1), -1)
