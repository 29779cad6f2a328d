"""Rules for `jitlab.nn`: how its arguments and layouts become windows on arrays with their channels first."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.ir import Node
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, cast
from jitlab.ops.layout.views import transpose
from jitlab.ops.numpy_api.arguments import node
from jitlab.ops.registry import rule

from .convolution import Conv, ConvInput, Geometry, Pairs
from .pooling import AvgPool, MaxPool

FIRST, LAST = ("NCW", "NCHW", "NCDHW"), ("NWC", "NHWC", "NDHWC")


def layout(name: str, shape: Sequence[int], data_format: str | None) -> tuple[int, bool]:
    """The number of spatial axes of x, and whether its channels come last. Raises ValueError."""
    n = len(shape) - 2
    if n not in (1, 2, 3):
        raise ValueError(f"{name}: x needs a batch, channels and one to three spatial axes; its shape is {_text(shape)}")
    if data_format is None or data_format == LAST[n - 1]:
        return n, True
    if data_format == FIRST[n - 1]:
        return n, False
    raise ValueError(f"{name}: data_format is {data_format!r}; for {n} spatial axes it is {LAST[n - 1]!r} or {FIRST[n - 1]!r}")


def orders(n: int, last: bool) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The axes of x, of w and of the result, turned to have the channels first, and the result's way back."""
    axes = tuple(range(n))
    if not last:
        same = tuple(range(n + 2))
        return same, same, same
    return (0, n + 1, *(a + 1 for a in axes)), (n + 1, n, *axes), (0, *(a + 2 for a in axes), 1)


def each_axis(name: str, argument: str, value: Any, n: int, default: int = 1) -> tuple[int, ...]:
    """One positive number for each spatial axis, from one number or a sequence."""
    if value is None:
        return (default,) * n
    if isinstance(value, Node):
        raise Unsupported("traced_argument", name=argument)
    numbers = tuple(operator.index(v) for v in value) if isinstance(value, (tuple, list)) else (operator.index(value),) * n
    if len(numbers) != n or min(numbers) < 1:
        raise ValueError(f"{name}: {argument} is {value!r}; it is one positive number or {n} of them")
    return numbers


def pairs(
    name: str, padding: Any, size: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> Pairs:
    """The padding before and after each spatial axis. "SAME": as many windows as strides fit, the odd one goes behind."""
    n = len(size)
    if padding == "VALID":
        return ((0, 0),) * n
    if padding == "SAME":
        result = []
        for length, k, stride, d in zip(map(int, size), kernel, strides, dilation, strict=True):
            missing = max((-(-length // stride) - 1) * stride + (k - 1) * d + 1 - length, 0)
            result.append((missing // 2, missing - missing // 2))
        return tuple(result)
    if isinstance(padding, (tuple, list)) and len(padding) == n:
        if all(isinstance(p, (tuple, list)) and len(p) == 2 for p in padding):
            return tuple((operator.index(low), operator.index(high)) for low, high in padding)
    raise ValueError(f'{name}: padding is {padding!r}; it is "SAME", "VALID" or {n} pairs of numbers')


def conv_geometry(
    name: str, x: Sequence[int], w: Sequence[int], strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any, groups: Any
) -> Geometry:
    """The windows of x[N, C, *S] for filters w[O, C / groups, *K]. Raises ValueError for shapes that do not fit."""
    n, groups = len(x) - 2, operator.index(groups)
    if len(w) != len(x):
        raise ValueError(f"{name}: x has {len(x)} axes and w has {len(w)}; both have {n} spatial ones and two more")
    if groups < 1 or int(w[1]) * groups != int(x[1]) or int(w[0]) % groups:
        raise ValueError(f"{name}: x has {int(x[1])} channels; w takes {int(w[1])} and gives {int(w[0])}, in {groups} groups")
    steps, spread, apart = (
        each_axis(name, argument, value, n)
        for argument, value in (("strides", strides), ("lhs_dilation", lhs_dilation), ("rhs_dilation", rhs_dilation))
    )
    size = [(int(length) - 1) * d + 1 for length, d in zip(x[2:], spread, strict=True)]
    return Geometry(steps, pairs(name, padding, size, [int(k) for k in w[2:]], steps, apart), spread, apart, groups)


@rule("jitlab.nn.conv")
def conv(
    x: Any,
    w: Any,
    strides: Any = 1,
    padding: Any = "SAME",
    lhs_dilation: Any = 1,
    rhs_dilation: Any = 1,
    groups: Any = 1,
    data_format: Any = None,
) -> Node:
    x, w = node(x), node(w)
    n, last = layout("conv", x.shape, data_format)
    if w.ndim != x.ndim:
        conv_geometry("conv", x.shape, w.shape, strides, padding, lhs_dilation, rhs_dilation, groups)
    of_x, of_w, back = orders(n, last)
    dtype = np.result_type(x.dtype, w.dtype)
    x, w = transpose(cast(x, dtype), of_x), transpose(cast(w, dtype), of_w)
    geometry = conv_geometry("conv", x.shape, w.shape, strides, padding, lhs_dilation, rhs_dilation, groups)
    return transpose(apply(Conv(geometry), x, w), back)


def transposed_size(
    y: Sequence[int], w: Sequence[int], strides: Sequence[int], padding: Any, dilation: Sequence[int]
) -> tuple[int, ...]:
    """The spatial extents that a transposed convolution gives: those whose convolution has y's."""
    sizes = []
    for axis, (length, k, stride, d) in enumerate(zip(y, w, strides, dilation, strict=True)):
        if padding == "SAME":
            sizes.append(int(length) * stride)
        else:
            low, high = (0, 0) if padding == "VALID" else padding[axis]
            sizes.append((int(length) - 1) * stride + (int(k) - 1) * d + 1 - low - high)
    return tuple(sizes)


def transpose_geometry(
    y: Sequence[int], w: Sequence[int], strides: Any, padding: Any, dilation: Any
) -> tuple[Geometry, tuple[int, ...]]:
    """For y[N, O, *P] and w[O, C, *K]: the geometry of the convolution that this transposes, and its x's spatial extents."""
    n = len(y) - 2
    name = "conv_transpose"
    if len(w) != len(y) or int(w[0]) != int(y[1]):
        raise ValueError(f"{name}: x of shape {_text(y)} and w of shape {_text(w)} (channels first) do not fit")
    steps, apart = each_axis(name, "strides", strides, n), each_axis(name, "rhs_dilation", dilation, n)
    kernel = [int(k) for k in w[2:]]
    pairs(name, padding, [1] * n, kernel, steps, apart)  # is it one that there is?
    size = transposed_size(y[2:], kernel, steps, padding, apart)
    return Geometry(steps, pairs(name, padding, size, kernel, steps, apart), (1,) * n, apart), size


@rule("jitlab.nn.conv_transpose")
def conv_transpose(
    x: Any, w: Any, strides: Any = 1, padding: Any = "SAME", rhs_dilation: Any = 1, data_format: Any = None
) -> Node:
    x, w = node(x), node(w)
    n, last = layout("conv_transpose", x.shape, data_format)
    of_x, of_w, back = orders(n, last)
    dtype = np.result_type(x.dtype, w.dtype)
    x = transpose(cast(x, dtype), of_x)
    w = transpose(cast(w, dtype), of_w) if w.ndim == x.ndim else w
    geometry, size = transpose_geometry(x.shape, w.shape, strides, padding, rhs_dilation)
    return transpose(apply(ConvInput(geometry, size), x, w), back)


def pool_geometry(name: str, x: Sequence[int], window: Any, strides: Any, padding: Any) -> tuple[Geometry, tuple[int, ...]]:
    """The windows of x[N, C, *S], one behind another unless strides say otherwise."""
    n = len(x) - 2
    kernel = each_axis(name, "window", window, n)
    steps = kernel if strides is None else each_axis(name, "strides", strides, n)
    one = (1,) * n
    return Geometry(steps, pairs(name, padding, [int(length) for length in x[2:]], kernel, steps, one), one, one), kernel


@rule("jitlab.nn.max_pool")
def max_pool(x: Any, window: Any, strides: Any = None, padding: Any = "VALID", data_format: Any = None) -> Node:
    return _pool("max_pool", node(x), window, strides, padding, data_format)


@rule("jitlab.nn.avg_pool")
def avg_pool(x: Any, window: Any, strides: Any = None, padding: Any = "VALID", data_format: Any = None) -> Node:
    return _pool("avg_pool", node(x), window, strides, padding, data_format)


def _pool(name: str, x: Node, window: Any, strides: Any, padding: Any, data_format: Any) -> Node:
    n, last = layout(name, x.shape, data_format)
    check_pooled(name, x.dtype)
    of_x, _, back = orders(n, last)
    x = transpose(x, of_x)
    op = MaxPool if name == "max_pool" else AvgPool
    return transpose(apply(op(*pool_geometry(name, x.shape, window, strides, padding)), x), back)


def check_pooled(name: str, dtype: np.dtype) -> None:
    kinds = "f" if name == "avg_pool" else "fiu"
    if dtype.kind not in kinds:
        raise TypeError(f"{name}: elements of dtype {dtype} have no {'mean' if name == 'avg_pool' else 'greatest one'} here")


def _text(shape: Sequence[int]) -> str:
    return str(tuple(int(n) for n in shape))
