"""Operations under TensorFlow's names: NumPy's functions with that library's arguments and dtypes."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab.capture import HOOKS, current_capture
from jitlab.compat.aliases import Name
from jitlab.differentiation import stop_gradient
from jitlab.ir import Symbolic
from jitlab.ops.build_nodes import as_node
from jitlab.ops.build_nodes import cast as cast_node
from jitlab.specs import TensorShape

from .tensors import Traced, array, operands, same_dtype


class Made(Name):
    """A name for a function that is made of several of NumPy's."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function.__name__.strip("_"), function, lambda *args, **kwargs: (args, kwargs))
        self.__doc__ = function.__doc__

    def called(self, capture: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._target(*args, **kwargs)


def made_names(*functions: Callable[..., Any]) -> dict[str, Any]:
    """Names for functions of ours: `_relu` is called relu."""
    return {function.__name__.strip("_"): Made(function) for function in functions}


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of NumPy, recorded where something is recorded."""
    return HOOKS.call(function, *args, **kwargs)


def elementwise(name: str, target: Callable[..., Any]) -> Name:
    return Name(name, target, lambda *args, **named: (operands((*args, *named.values())), {}))


def reduction(name: str, target: Callable[..., Any], *, keeps_dtype: bool = False) -> Name:
    def adapt(
        input_tensor: Any, axis: Any = None, keepdims: Any = None, reduction_indices: Any = None, keep_dims: Any = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        x = array(input_tensor)
        axis = _axes(reduction_indices if axis is None else axis)
        kept = builtins.bool(keepdims or keep_dims)
        return (x,), {"axis": axis, "keepdims": kept, **({"dtype": x.dtype} if keeps_dtype else {})}

    return Name(name, target, adapt)


def _axes(axis: Any) -> Any:
    """One axis, or several as a tuple."""
    if axis is None or isinstance(axis, (int, np.integer)):
        return axis
    if isinstance(axis, Traced) and not axis.type.shape:
        return int(axis)
    return tuple(dims(axis))


def dims(shape: Any) -> list[int]:
    """A shape as integers: lists with tensors among them, and whole tensors, where they are made of sizes and constants."""
    if isinstance(shape, TensorShape):
        shape = shape.as_list()
    if isinstance(shape, Traced):
        known = current_capture().known(shape)  # type: ignore[union-attr]
        if known is None:
            known = current_capture().held(shape)  # type: ignore[union-attr]
        if known is None:
            parts = [shape[i] for i in builtins.range(int(shape.type.shape[0]))] if shape.type.shape else [shape]
            return list(map(_size_of, parts))
        return [int(n) for n in np.atleast_1d(known)]
    if isinstance(shape, (int, np.integer)):
        return [int(shape)]
    return [-1 if n is None else _size_of(n) for n in shape]


def _size_of(n: Any) -> int:
    """One size as an integer."""
    known = current_capture().known(n) if isinstance(n, Traced) else n  # type: ignore[union-attr]
    return operator.index(n if known is None else known)


# ---- shapes


def _shape(input: Any, out_type: Any = np.int32) -> Any:
    """The sizes of a tensor, as a tensor."""
    x = array(input)
    if not isinstance(x, Traced):
        return np.array(x.shape, out_type)
    capture: Any = current_capture()
    sizes = [capture.fresh(cast_node(as_node(_size(n)), out_type), is_scalar=True) for n in x.type.shape]
    return call(np.stack, sizes) if sizes else capture.constant_tensor(np.zeros(0, out_type))


def _size(n: int) -> Any:
    return n if hasattr(n, "expr") else np.int64(n)


def _number(input: Any, out_type: Any = np.int32) -> Any:
    """How many elements a tensor has."""
    x = array(input)
    if not isinstance(x, Traced):
        return np.dtype(out_type).type(x.size)
    capture: Any = current_capture()
    return capture.fresh(cast_node(as_node(_size(x.type.size)), out_type), is_scalar=True)


def _rank(input: Any) -> Any:
    """The number of axes."""
    x = array(input)
    if not isinstance(x, Traced):
        return np.int32(x.ndim)
    capture: Any = current_capture()
    return capture.constant_tensor(np.array(len(x.type.shape), np.int32))


def _reshape(tensor: Any, shape: Any) -> Any:
    """The elements in another shape."""
    return call(np.reshape, array(tensor), tuple(dims(shape)))


def _transpose(a: Any, perm: Any = None, conjugate: bool = False) -> Any:
    """Axes in another order, reversed without `perm`."""
    x = call(np.transpose, array(a), None if perm is None else tuple(dims(perm)))
    return call(np.conjugate, x) if conjugate else x


def _concat(values: Any, axis: Any) -> Any:
    """Tensors one after another along an axis."""
    return call(np.concatenate, same_dtype(list(map(array, values))), axis=int(axis))


def _stack(values: Any, axis: int = 0) -> Any:
    """Tensors along a new axis."""
    return call(np.stack, same_dtype(list(map(array, values))), axis=axis)


def _unstack(value: Any, num: int | None = None, axis: int = 0) -> list[Any]:
    """The tensors along an axis."""
    x = array(value)
    count = x.shape[axis] if num is None else num
    if count is None:
        raise ValueError(f"Cannot infer argument `num` from shape {x.shape}")
    return [call(np.take, x, i, axis=axis) for i in builtins.range(int(count))]


def _split(value: Any, num_or_size_splits: Any, axis: int = 0) -> list[Any]:
    """Parts along an axis: so many equal ones, or of these sizes."""
    if isinstance(num_or_size_splits, (int, np.integer)):
        return list(call(np.split, array(value), int(num_or_size_splits), axis=axis))
    sizes = dims(num_or_size_splits)
    return list(call(np.split, array(value), [int(n) for n in np.cumsum(sizes)[:-1]], axis=axis))


def _tile(input: Any, multiples: Any) -> Any:
    """Copies one after another along each axis."""
    return call(np.tile, array(input), tuple(dims(multiples)))


def _squeeze(input: Any, axis: Any = None, squeeze_dims: Any = None) -> Any:
    """Without the axes of length 1, or without those named."""
    return call(np.squeeze, array(input), axis=_axes(squeeze_dims if axis is None else axis))


def _expand_dims(input: Any, axis: Any = None, dim: Any = None) -> Any:
    """With a new axis of length 1."""
    return call(np.expand_dims, array(input), int(dim if axis is None else axis))


def _broadcast_to(input: Any, shape: Any) -> Any:
    """Repeated to a shape."""
    return call(np.broadcast_to, array(input), tuple(dims(shape)))


def _reverse(tensor: Any, axis: Any) -> Any:
    """The other way round along these axes."""
    return call(np.flip, array(tensor), _axes(axis))


def _roll(input: Any, shift: Any, axis: Any) -> Any:
    """Shifted round along axes."""
    return call(np.roll, array(input), _axes(shift), _axes(axis))


def _pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0) -> Any:
    """With elements before and after along each axis."""
    width = [tuple(dims(pair)) for pair in paddings]
    options = {"constant_values": constant_values} if mode.upper() == "CONSTANT" else {}
    return call(np.pad, array(tensor), width, mode=mode.lower(), **options)


def _slice(input_: Any, begin: Any, size: Any) -> Any:
    """The part of `size` that starts at `begin`; -1: to the end."""
    x = array(input_)
    index = tuple(slice(b, None if n == -1 else b + n) for b, n in zip(dims(begin), dims(size), strict=True))
    return x[index]


def _gather(params: Any, indices: Any, axis: Any = 0, validate_indices: Any = None, batch_dims: int = 0) -> Any:
    """Entries along an axis, by their numbers."""
    if batch_dims:
        raise NotImplementedError("gather(batch_dims=...) is not there: np.take_along_axis is")
    return call(np.take, array(params), array(indices), axis=0 if axis is None else int(axis))


def _gather_nd(params: Any, indices: Any, batch_dims: int = 0) -> Any:
    """Entries by rows of positions."""
    x, at = array(params), array(indices)
    depth = int(np.shape(at)[-1])
    return x[tuple(at[..., i] for i in builtins.range(depth))]


def _one_hot(indices: Any, depth: Any, on_value: Any = 1, off_value: Any = 0, axis: int = -1, dtype: Any = np.float32) -> Any:
    """Rows that have `on_value` where the index says, else `off_value`."""
    at = call(np.expand_dims, array(indices), axis)
    numbers = np.arange(int(depth), dtype=np.int32)
    ndim = at.ndim if isinstance(at, Traced) else np.ndim(at)
    shape = [1] * ndim
    shape[axis] = int(depth)
    dtype = np.dtype(dtype)
    return call(np.where, call(np.equal, at, numbers.reshape(shape)), dtype.type(on_value), dtype.type(off_value))


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """x where the condition holds, else y; without them, the positions where it holds, a row each."""
    if x is None and y is None:
        return call(np.argwhere, array(condition))
    x, y = operands((x, y))
    return call(np.where, array(condition), x, y)


def _cast(x: Any, dtype: Any) -> Any:
    """Of another dtype."""
    return array(x).astype(dtype)


def _fill(dims_: Any, value: Any) -> Any:
    """One value everywhere."""
    value = array(value)
    return call(np.full, tuple(dims(dims_)), value, value.dtype)


def filled(name: str, target: Callable[..., Any]) -> Name:
    def adapt(shape: Any, dtype: Any = np.float32) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (tuple(dims(shape)), dtype), {}

    return Name(name, target, adapt)


def like(name: str, target: Callable[..., Any]) -> Name:
    def adapt(input: Any, dtype: Any = None, optimize: bool = True) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (array(input),), {} if dtype is None else {"dtype": dtype}

    return Name(name, target, adapt)


def _eye(num_rows: Any, num_columns: Any = None, dtype: Any = np.float32) -> Any:
    """Ones on the diagonal."""
    return call(np.eye, int(num_rows), None if num_columns is None else int(num_columns), dtype=dtype)


def _linspace(start: Any, stop: Any, num: Any) -> Any:
    """Evenly spaced numbers, both ends included."""
    return call(np.linspace, array(start), array(stop), int(num), dtype=array(start).dtype)


def _range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Any:
    """Numbers from start to limit."""
    bounds = [array(bound) for bound in ((0, start, delta) if limit is None else (start, limit, delta))]
    return call(np.arange, *bounds, dtype=dtype or np.result_type(*(bound.dtype for bound in bounds)))


class Range(Made):
    """`range`, which a loop of a traced function counts by, as by Python's, where its bounds are traced integers."""

    def __jitlab_range__(self, capture: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        bounds = tuple(array(bound) if hasattr(bound, "read_value") else bound for bound in args)
        traced = [bound for bound in bounds if isinstance(bound, (Traced, Symbolic))]
        if not traced or not all(isinstance(bound, (int, Symbolic)) or _is_count(bound) for bound in bounds):
            return self, args
        return (self, args) if getattr(capture, "steps", None) is not None else (builtins.range, bounds)


def _is_count(x: Any) -> bool:
    return isinstance(x, (Traced, np.generic)) and not x.ndim and x.dtype.kind in "iu"


# ---- numbers


def _matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False, adjoint_b: bool = False,
    a_is_sparse: bool = False, b_is_sparse: bool = False,
) -> Any:  # fmt: skip
    """The product of matrices, or of stacks of them."""
    a, b = operands((a, b))
    a, b = _turned(a, transpose_a, adjoint_a), _turned(b, transpose_b, adjoint_b)
    return call(np.matmul, a, b)


def _turned(x: Any, transposed: bool, adjoint: bool) -> Any:
    if transposed or adjoint:
        x = call(np.swapaxes, x, -1, -2)
    return call(np.conjugate, x) if adjoint else x


def _add_n(inputs: Sequence[Any]) -> Any:
    """The sum of tensors of one shape."""
    total = array(inputs[0])
    for x in inputs[1:]:
        total = total + array(x)
    return total


def _rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    x = array(x)
    return 1 / call(np.sqrt, x)


def _squared_difference(x: Any, y: Any) -> Any:
    """(x - y) squared."""
    x, y = operands((x, y))
    return call(np.square, x - y)


def _sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + call(np.exp, -array(x)))


def _clip(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    """At least the one and at most the other."""
    return call(np.clip, array(t), clip_value_min, clip_value_max)


def _reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x)))."""
    x, axis = array(input_tensor), _axes(axis)
    largest = call(np.max, x, axis=axis, keepdims=True)
    total = call(np.log, call(np.sum, call(np.exp, x - largest), axis=axis, keepdims=True)) + largest
    if keepdims:
        return total
    return call(np.squeeze, total) if axis is None else call(np.squeeze, total, axis=axis)


def _norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool = False) -> Any:
    """The square root of the sum of squares."""
    if ord != "euclidean" and ord != 2:
        return call(np.linalg.norm, array(tensor), ord, axis=_axes(axis), keepdims=keepdims)
    x = array(tensor)
    return call(np.sqrt, call(np.sum, call(np.square, call(np.abs, x)), axis=_axes(axis), keepdims=keepdims))


def arg(name: str, target: Callable[..., Any]) -> Name:
    def adapt(
        input: Any, axis: Any = None, output_type: Any = np.int64, dimension: Any = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        axis = dimension if axis is None else axis
        return (array(input), 0 if axis is None else int(axis)), {}

    return Name(name, target, adapt)


def _cumulative(name: str, target: Callable[..., Any]) -> Name:
    def adapt(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if exclusive or reverse:
            raise NotImplementedError(f"{name}(exclusive=, reverse=) is not there")
        x = array(x)
        return (x,), {"axis": axis, "dtype": x.dtype}

    return Name(name, target, adapt)


def _check_numerics(tensor: Any, message: str) -> Any:
    """The tensor; InvalidArgumentError at the run where an element is infinite or no number."""
    from .conditionals import checked

    return checked(array(tensor), message)


def _stop_gradient(input: Any) -> Any:
    """The value, through which no gradient flows."""
    return stop_gradient(array(input))


def _tensordot(a: Any, b: Any, axes: Any) -> Any:
    """Sums of products over axes."""
    a, b = operands((a, b))
    return call(np.tensordot, a, b, axes)


def _einsum(equation: str, *inputs: Any) -> Any:
    """Sums of products in Einstein's notation."""
    return call(np.einsum, equation, *operands(inputs))


def _sort(values: Any, axis: int = -1, direction: str = "ASCENDING") -> Any:
    """In order along an axis."""
    x = call(np.sort, array(values), axis=axis)
    return x if direction == "ASCENDING" else call(np.flip, x, axis)


UNARY: dict[str, Any] = {
    "abs": np.abs, "sign": np.sign, "square": np.square, "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log": np.log,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "rint": np.rint, "reciprocal": np.reciprocal,
    "negative": np.negative, "logical_not": np.logical_not, "is_nan": np.isnan, "is_inf": np.isinf, "is_finite": np.isfinite,
    "conj": np.conjugate, "real": np.real, "imag": np.imag, "angle": np.angle,
}  # fmt: skip
BINARY: dict[str, Any] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "floormod": np.remainder, "pow": np.power, "maximum": np.maximum,
    "minimum": np.minimum, "greater": np.greater, "less": np.less, "equal": np.equal, "not_equal": np.not_equal,
    "greater_equal": np.greater_equal, "less_equal": np.less_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor, "atan2": np.arctan2,
}  # fmt: skip
NAMES: dict[str, Any] = {name: elementwise(name, target) for name, target in {**UNARY, **BINARY}.items()}
NAMES |= made_names(
    _shape, _rank, _reshape, _transpose, _concat, _stack, _unstack, _split, _tile, _squeeze, _expand_dims,
    _broadcast_to, _reverse, _roll, _pad, _slice, _gather, _gather_nd, _one_hot, _where, _cast, _fill, _eye, _linspace,
    _matmul, _add_n, _rsqrt, _squared_difference, _sigmoid, _reduce_logsumexp, _norm, _check_numerics,
    _stop_gradient, _tensordot, _einsum, _sort,
)  # fmt: skip
NAMES |= {
    "size": Made(_number), "range": Range(_range), "clip_by_value": Made(_clip), "div": NAMES["divide"],
    "ones": filled("ones", np.ones), "zeros": filled("zeros", np.zeros),
    "ones_like": like("ones_like", np.ones_like), "zeros_like": like("zeros_like", np.zeros_like),
    "argmax": arg("argmax", np.argmax), "argmin": arg("argmin", np.argmin),
    "cumsum": _cumulative("cumsum", np.cumsum), "cumprod": _cumulative("cumprod", np.cumprod),
    "reduce_sum": reduction("reduce_sum", np.sum, keeps_dtype=True),
    "reduce_prod": reduction("reduce_prod", np.prod, keeps_dtype=True),
    "reduce_mean": reduction("reduce_mean", np.mean, keeps_dtype=True),
    "reduce_max": reduction("reduce_max", np.max), "reduce_min": reduction("reduce_min", np.min),
    "reduce_any": reduction("reduce_any", np.any), "reduce_all": reduction("reduce_all", np.all),
    "reduce_std": reduction("reduce_std", np.std), "reduce_variance": reduction("reduce_variance", np.var),
}  # fmt: skip

__all__ = ["NAMES", "Made", "call", "dims", "elementwise", "made_names", "reduction"]
