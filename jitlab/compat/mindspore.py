"""mindspore's names for what jitlab does, so that its programs run with the import changed. Names only: no engine.

Values are NumPy's: `Tensor(...)` and what a function under `jit` gives are arrays that have `asnumpy()`, and they print as
NumPy prints them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from jitlab.api import jit as _jit
from jitlab.api.functions.jit import Jit
from jitlab.capture import Tensor as _Traced
from jitlab.capture import current_capture
from jitlab.support.containers import changed as _changed

from .aliases import Name

bool_, int8, int16, int32, int64 = np.bool_, np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64, complex64, complex128 = np.float16, np.float32, np.float64, np.complex64, np.complex128


class _Array(np.ndarray):
    """A NumPy array with the one method that mindspore's have and NumPy's do not."""

    __jitlab_plain__ = True  # it computes as an array does

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """The same memory as a plain array."""
        return self.view(np.ndarray)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return super().__array_wrap__(array, context, False)  # one number is a Tensor, too

    def __getitem__(self, index: Any) -> Any:
        return _as_tensors(super().__getitem__(index))


class _TensorType(type):
    """An array is an instance of `Tensor`, whoever made it."""

    def __call__(cls, input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None) -> Any:
        if input_data is None:
            return np.zeros(() if shape is None else shape, dtype or np.float32).view(_Array)
        return np.array(input_data, dtype or _default(input_data)).view(_Array)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (np.ndarray, np.generic, _Traced))


class Tensor(metaclass=_TensorType):
    """A NumPy array made with a copy of data. Python's floats become float32, its ints int64. Every array is an instance of it.

    Args:
        input_data: an array, numbers or lists of them; None: zeros of `shape`.
        dtype: of the elements; None: NumPy's for arrays, float32 for Python's floats.
        shape: of the zeros; None: a 0-d array.
        init: accepted, and of no effect.

    Raises:
        ValueError: the data are no array of that dtype.

    Example:
        >>> from jitlab.compat import mindspore as ms
        >>> ms.Tensor([1.0, 2.0]).asnumpy()
        array([1., 2.], dtype=float32)
    """


def _default(data: Any) -> Any:
    """The dtype of Python's own numbers; NumPy's arrays keep theirs."""
    if isinstance(data, (np.ndarray, np.generic)):
        return data.dtype
    dtype = np.asarray(data).dtype
    return np.float32 if dtype == np.float64 else dtype


class _Jit(Jit):
    """What `jit` gives: its results are Tensors."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = super().__call__(*args, **kwargs)
        return result if current_capture() is not None else _as_tensors(result)


    def _compiled(self, trace: Any) -> Callable[[Any], list[Any]]:
        """A statement that Python runs between pieces finds Tensors, too."""
        run = super()._compiled(trace)
        return lambda inputs: [_as_tensors(output) for output in run(inputs)]


class _AstJit(_Jit):
    """In mode "ast" both sides of a branch are of one type, too."""

    joins_types = True


def _as_tensors(x: Any) -> Any:
    if type(x) is np.ndarray or isinstance(x, np.generic):
        return np.asarray(x).view(_Array)
    if type(x) in (tuple, list):
        return _changed(_as_tensors, x)
    return x


def jit(
    function: Callable[..., Any] | None = None, *, capture_mode: str = "ast", jit_level: str = "O0", dynamic: bool = False,
    fullgraph: bool = False, backend: str = "", **options: Any,
) -> Any:  # fmt: skip
    """mindspore's decorator: `jitlab.jit` with the default level "O0". What its functions give are Tensors.

    Args:
        function: as in `jitlab.jit`.
        capture_mode: as in `jitlab.jit`; in "ast" both sides of a branch have to be of one type.
        jit_level: as in `jitlab.jit`; "O0" where nothing is said.
        dynamic: as in `jitlab.jit`.
        fullgraph: as in `jitlab.jit`.
        backend: as in `jitlab.jit`.
        **options: as in `jitlab.jit`.

    Returns:
        As of `jitlab.jit`.

    Raises:
        ValueError: an option has a value that it does not take.
        TypeError: an option has a value of another type, or the sides of a branch give other types.
        UnsupportedError: a call under `fullgraph=True` meets what only Python can do.

    Example:
        >>> from jitlab.compat import mindspore as ms
        >>> ms.jit(lambda x: x * 2)(ms.Tensor([1.0])).asnumpy()
        array([2.], dtype=float32)
    """
    kind = _AstJit if capture_mode == "ast" else _Jit
    return _jit(
        function, _kind=kind, capture_mode=capture_mode, jit_level=jit_level, dynamic=dynamic, fullgraph=fullgraph,
        backend=backend, **options,
    )  # fmt: skip


def _reduction(input: Any, axis: Any = None, keep_dims: bool = False, **rest: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (input,), {"axis": axis, "keepdims": keep_dims, **rest}


def _with_zero(input: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (input, 0), {}


def _cast(input: Any, dtype: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (input, dtype), {}


ops = SimpleNamespace(
    abs=np.abs, add=np.add, arange=np.arange, arctan2=np.arctan2, ceil=np.ceil, concat=np.concatenate, cos=np.cos, cosh=np.cosh,
    div=np.true_divide, equal=np.equal, exp=np.exp, expand_dims=np.expand_dims, eye=np.eye, floor=np.floor,
    floor_div=np.floor_divide, full=np.full, greater=np.greater, greater_equal=np.greater_equal, less=np.less,
    less_equal=np.less_equal, log=np.log, log1p=np.log1p, logical_and=np.logical_and, logical_not=np.logical_not,
    logical_or=np.logical_or, matmul=np.matmul, maximum=np.maximum, minimum=np.minimum, mul=np.multiply, neg=np.negative,
    not_equal=np.not_equal, ones=np.ones, ones_like=np.ones_like, pow=np.power, reshape=np.reshape, select=np.where,
    sin=np.sin, sinh=np.sinh, sqrt=np.sqrt, square=np.square, squeeze=np.squeeze, stack=np.stack, sub=np.subtract, tan=np.tan,
    tanh=np.tanh, tile=np.tile, transpose=np.transpose, where=np.where, zeros=np.zeros, zeros_like=np.zeros_like,
    cast=Name("cast", np.astype, _cast), relu=Name("relu", np.maximum, _with_zero),
    reduce_max=Name("reduce_max", np.max, _reduction), reduce_mean=Name("reduce_mean", np.mean, _reduction),
    reduce_min=Name("reduce_min", np.min, _reduction), reduce_prod=Name("reduce_prod", np.prod, _reduction),
    reduce_sum=Name("reduce_sum", np.sum, _reduction), max=np.max, mean=np.mean, min=np.min, prod=np.prod, sum=np.sum,
)  # fmt: skip
