"""NumPy's functions that are made of others in Python (`np.diff`): NumPy's own source runs, and what it calls is recorded.

A function stands in FROM_SOURCE or FFT_FROM_SOURCE if its source asks for shapes, dtypes and arguments alone, never for what
arrays hold; if it compares no lengths, which may move with a loop (`np.stack` does); and if the graph is the one that a rule
would build. It is called with Tensors; in its globals, what makes an array of an argument records that instead
(`asanyarray(x)` of a Tensor is the Tensor).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, wraps
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.tensor import Tensor, current
from jitlab.errors import BranchOnTracedArrayError, ValueOfTracedArrayError
from jitlab.ir import Extent, Symbolic
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import constant
from jitlab.support.containers import leaves

from .conversions import CONVERSIONS
from .numpy_traits import CREATION, is_of_fft

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

FROM_SOURCE: frozenset[Any] = frozenset({
    np.diff, np.trapezoid, getattr(np, "trapz", None), np.sinc, np.ptp, np.sort_complex,
    np.isreal, np.iscomplex, np.cumulative_sum, np.cumulative_prod,
    np.vstack, np.hstack, np.dstack, np.column_stack, np.append,
    np.moveaxis, np.rollaxis, np.flip, np.flipud, np.fliplr, np.split, np.hsplit, np.vsplit, np.dsplit, np.unstack,
    np.linalg.matrix_power, np.linalg.multi_dot, np.linalg.tensorinv, np.linalg.outer, np.linalg.trace, np.linalg.cross,
    np.linalg.vecdot, np.linalg.tensordot, np.linalg.matmul, np.linalg.vector_norm, np.linalg.matrix_norm,
} - {None})  # fmt: skip
#: Those of np.fft.
FFT_FROM_SOURCE = frozenset("hfft ihfft fftn ifftn rfftn irfftn fft2 ifft2 rfft2 irfft2 fftshift ifftshift".split())


def is_from_source(function: Any) -> bool:
    return function in FROM_SOURCE or is_of_fft(function, FFT_FROM_SOURCE)


def from_source(capture: Arrays, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What NumPy's source of such a function gives for Tensors."""
    before, capture.in_numpy = capture.in_numpy, True
    try:
        result = _recording(function)(*args, **kwargs)
        return _made_in_each_call(capture, result, (args, kwargs))
    except (BranchOnTracedArrayError, ValueOfTracedArrayError) as error:
        raise Unsupported("looks_at", "data_dependent") from error
    finally:
        capture.in_numpy = before


def _made_in_each_call(capture: Arrays, result: Any, given: Any) -> Any:
    """An array that NumPy has made of numbers alone is one of the recording: each call gives a new one."""
    if type(result) is np.ndarray and not any(isinstance(x, np.ndarray) for x in leaves(given)):
        return capture.fresh(constant(result))
    return result


@cache
def _recording(function: Any) -> FunctionType:
    """The function that NumPy wrote behind one that looks for `__array_function__`."""
    plain: FunctionType = getattr(function, "__wrapped__", function)  # `np.trapz` looks for nothing
    return _with_globals(plain, _globals(plain.__globals__["__name__"]))


def _with_globals(plain: FunctionType, names: dict[str, Any]) -> FunctionType:
    made = FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__)
    made.__kwdefaults__ = plain.__kwdefaults__
    return made


@cache
def _globals(module: str) -> dict[str, Any]:
    """The names of one of NumPy's modules, for functions that run on Tensors."""
    own = vars(sys.modules[module])
    names = _with_recorded(own)
    for name, value in names.items():
        if type(value) is FunctionType and value.__globals__ is own:
            names[name] = _with_globals(value, names)
        elif type(value) is ModuleType and value.__name__.startswith("numpy"):
            names[name] = SimpleNamespace(**_with_recorded(vars(value)))
    return names


def _with_recorded(names: dict[str, Any]) -> dict[str, Any]:
    makers = {f.__name__: f for f in (*CONVERSIONS, *CREATION) if not isinstance(f, type)}
    return {**names, **{name: _recorded(f) for name, f in makers.items() if names.get(name) is f}}


def _recorded(function: Any) -> Callable[..., Any]:
    """A function that makes arrays: recorded for arrays and sizes of the recording, else called."""
    from .functions import call_function

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        capture = current.get()
        assert capture is not None, "NumPy's source runs outside of a recording"
        parts = args[0] if args and type(args[0]) in (list, tuple) else args
        is_traced = any(isinstance(x, (Tensor, Extent, Symbolic)) for x in parts)
        return call_function(capture, function, args, kwargs) if is_traced else function(*args, **kwargs)

    return call
