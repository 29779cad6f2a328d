"""Attributes and methods of arrays, on Tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab import errors
from jitlab.capture.numpy_calls.functions import (
    apply_rule,
    convert,
    in_known_order,
    into,
    raveled,
    real_or_imag,
    view_of,
    write_first,
)
from jitlab.capture.numpy_calls.numpy_traits import UNSUPPORTED_ATTRIBUTES, WRITING_METHODS
from jitlab.capture.positions import describe, here
from jitlab.ops.numpy_api.call_binding import bound
from jitlab.ops.table import ATTRIBUTES, METHODS, VIEW_ATTRIBUTES, VIEW_METHODS

from .masked import Selection, reduced, selected
from .tensor import Tensor

if TYPE_CHECKING:
    from .arrays import Arrays


def attribute(capture: Arrays, x: Tensor, name: str) -> Any:
    """`x.name` that Tensor itself does not have."""
    if name in ATTRIBUTES or name in VIEW_ATTRIBUTES:
        return real_or_imag(capture, x, name)
    if name in UNSUPPORTED_ATTRIBUTES or not hasattr(np.ndarray, name):
        if hasattr(np.ndarray, name):
            raise errors.CaptureError(
                f"`.{name}` of an array cannot be captured", where=describe(here()),
                why="it is about the memory of one array, and a recording has no memory yet",
                hint="do this outside the recorded function",
            )  # fmt: skip
        raise AttributeError(f"'numpy.{'generic' if x.is_scalar else 'ndarray'}' object has no attribute '{name}'")
    if name == "device":
        return "cpu"
    if name == "strides":
        capture.read_layout(x)
        capture.order_decides = True
        return tuple(by * x.itemsize for by in x.element_strides())
    return partial(capture.method, x, name)


def call_method(capture: Arrays, x: Tensor, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A method of ndarray."""
    capture.check_open()
    capture.check_plain(*args, *kwargs.values())
    function = getattr(np.ndarray, name)
    if isinstance(x, Selection) and x.is_lazy:
        if name in ("astype", "copy") and len(args) <= 1 and not kwargs:
            return selected(capture, capture.call_method(x.whole, name, args, kwargs), x.mask)
        answer = reduced(capture, x, name, args, kwargs)
        if answer is not None:
            return answer
    args = [capture.deep_value(a) for a in args]
    kwargs = {key: capture.deep_value(a) for key, a in kwargs.items()}
    args, kwargs = bound(function, args, kwargs)
    out = kwargs.pop("out", None)
    if out is not None:
        return into(capture, function, (x, *args), kwargs, out, lambda: capture.call_method(x, name, args, kwargs))
    if name == "view":
        kinds = [a for a in (*args, *kwargs.values()) if isinstance(a, type) and issubclass(a, np.ndarray)]
        if any(kind is not np.ndarray for kind in kinds):
            raise capture.foreign(np.empty(0).view(kinds[0]))
    (x, *args), kwargs = in_known_order(capture, function, (x, *args), kwargs)
    if name == "ravel" and not args and kwargs.get("order", "C") in ("C", "F"):
        return raveled(capture, x, kwargs.get("order", "C"))
    if name in VIEW_METHODS:
        view = view_of(capture, VIEW_METHODS[name], function, x, args, kwargs)
        if view is not None:
            return view
    if name == "view" and not args and not kwargs:
        return x if x.is_scalar else Tensor(x._cell, x._path)
    if name in WRITING_METHODS:
        return write_first(capture, function, (x, *args), kwargs)
    if name == "astype":
        same = convert(capture, function, (x, *args), kwargs)
        if same is not None:
            return same
    if name in METHODS:
        result = apply_rule(capture, METHODS[name], function, (x, *args), kwargs)
        if isinstance(result, Tensor) and not result.shape and name in ("astype", "conj", "conjugate", "copy"):
            result.is_scalar = x.is_scalar
        return result
    return capture.on_host(function, (x, *args), kwargs)
