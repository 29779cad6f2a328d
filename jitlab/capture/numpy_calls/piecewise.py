"""`np.piecewise` with functions of the program: each is called with the elements that its condition picks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.tensor import Tensor

from .functions import call_function

if TYPE_CHECKING:
    from jitlab.capture.state import Capture


def piecewise(
    capture: Capture, call: Callable[..., Any], x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any
) -> Any:
    """As NumPy computes it, with `call(capture, function, arguments, options)` for the functions in the list: what they do to
    elements one by one is done to the whole array, and selected."""
    f = partial(capture.perform, call_function)
    whole = f(np.asanyarray, (x,), {})
    if not isinstance(condlist, (list, tuple)):
        condlist = list(condlist) if condlist.ndim > 1 or (condlist.ndim and not whole.ndim) else [condlist]
    elif whole.ndim and not isinstance(condlist[0], (list, np.ndarray, Tensor)):
        condlist = [condlist]
    shape = whole.shape
    bools = [f(np.asarray, (c,), {}).astype(bool) for c in condlist]
    conditions = [f(np.broadcast_to, (c, shape), {}) for c in bools]
    count = len(funclist)
    if len(conditions) == count - 1:
        some = conditions[0]
        for condition in conditions[1:]:
            some = f(np.logical_or, (some, condition), {})
        conditions.append(f(np.logical_not, (some,), {}))
    elif len(conditions) != count:
        n = len(conditions)
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    if not whole.ndim:  # a number has no elements to pick: it is an array of one
        whole, conditions = whole.reshape(1), [c.reshape(1) for c in conditions]
    result = f(np.zeros_like, (whole,), {})
    for condition, function in zip(conditions, funclist, strict=True):
        value = call(capture, function, (whole[condition], *args), kwargs) if callable(function) else function
        result[condition] = value
    return result.reshape(shape) if not shape else result
