"""Attributes and methods of arrays, on Tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab import errors
from jitlab.capture.control.number_kinds import check_known, has_mixed, of_each_kind
from jitlab.capture.numpy_calls.functions import (
    apply_operator,
    apply_rule,
    call_function,
    convert,
    in_known_order,
    inplace,
    into,
    raveled,
    real_or_imag,
    view_of,
    write_first,
)
from jitlab.capture.numpy_calls.host_fallback import host_operation
from jitlab.capture.numpy_calls.numpy_traits import UNSUPPORTED_ATTRIBUTES, WRITING_METHODS
from jitlab.capture.positions import describe, here
from jitlab.ir.size_facts import sizes_are_shown
from jitlab.ops.numpy_api.call_binding import bound
from jitlab.ops.table import ATTRIBUTES, METHODS, VIEW_ATTRIBUTES, VIEW_METHODS

from .flat import Flat
from .masked import Selection, reduced, selected
from .subscripts import get_item, set_attribute, set_item
from .tensor import Tensor

if TYPE_CHECKING:
    from .arrays import Arrays


def attribute(capture: Arrays, x: Tensor, name: str) -> Any:
    """`x.name` that Tensor itself does not have."""
    if name == "flat":
        return Flat(x)
    if name in ATTRIBUTES or name in VIEW_ATTRIBUTES:
        return real_or_imag(capture, x, name)
    if name in UNSUPPORTED_ATTRIBUTES or not hasattr(np.ndarray, name):
        if hasattr(np.ndarray, name):
            raise errors.CaptureError(
                f"`.{name}` of an array cannot be traced", where=describe(here()),
                why="it is about the memory of one array, and a recording has no memory yet",
                hint="do this outside the recorded function",
            )  # fmt: skip
        raise AttributeError(f"'numpy.{'generic' if x.is_scalar else 'ndarray'}' object has no attribute '{name}'")
    if name == "device":
        return "cpu"
    if name == "strides":
        capture.layout.read(x)
        capture.layout.values = True
        sizes_are_shown()
        return tuple(by * x.itemsize for by in x.element_strides())
    return partial(method, x, name)


def method(x: Tensor, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """What `x.name` of a method holds, a partial of this: calls know it as ours."""
    return x.capture.perform(call_method, x, name, args, kwargs)


def call_method(capture: Arrays, x: Tensor, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A method of ndarray."""
    if capture.has_kinds:
        check_known(capture, x)
        if has_mixed([args, kwargs]):
            return of_each_kind(capture, lambda found: call_method(capture, x, name, *found), (args, kwargs))
    capture.check_open()
    capture.check_plain(*args, *kwargs.values())
    function = getattr(np.ndarray, name)
    if isinstance(x, Selection) and x.is_lazy:
        if name in ("astype", "copy") and len(args) <= 1 and not kwargs:
            return selected(capture, call_method(capture, x.whole, name, args, kwargs), x)
        answer = reduced(capture, x, name, args, kwargs)
        if answer is not None:
            return answer
    args = [capture.deep_value(a) for a in args]
    kwargs = {key: capture.deep_value(a) for key, a in kwargs.items()}
    args, kwargs = bound(function, args, kwargs)
    out = kwargs.pop("out", None)
    if out is not None:
        return into(capture, function, (x, *args), kwargs, out, lambda: call_method(capture, x, name, args, kwargs))
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
        if isinstance(result, Tensor) and not result.ndim and name in ("astype", "conj", "conjugate", "copy"):
            result.is_scalar = x.is_scalar
        return result
    return host_operation(capture, function, (x, *args), kwargs)


# ---- what a Tensor has of an array: each is an action that its capture performs


def _getattr(self: Tensor, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return self.capture.perform(attribute, self, name)


def _setattr(self: Tensor, name: str, value: Any) -> None:
    if name in Tensor.__slots__ or name == "shape":
        object.__setattr__(self, name, value)
    elif name == "flat":
        Flat(self)[:] = value
    else:
        set_attribute(self.capture, self, name, value)


def _array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    function = ufunc if method == "__call__" else getattr(ufunc, method)
    out = kwargs.get("out")
    if isinstance(out, tuple) and len(out) == 1:
        kwargs["out"] = out[0]
    return self.capture.perform(call_function, function, inputs, kwargs)


def _array_function(self: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return self.capture.perform(call_function, function, args, kwargs)


def _subscript(self: Tensor, index: Any) -> Any:
    return self.capture.perform(get_item, self, index)


def _assigned_subscript(self: Tensor, index: Any, value: Any) -> None:
    self.capture.perform(set_item, self, index, value)


def _of_name(action: Callable[..., Any], name: str, *, is_unary: bool = False) -> Any:
    """The method of an operator; NumPy's own have its name."""

    def binary(self: Tensor, other: Any) -> Any:
        return self.capture.perform(action, name, self, other)

    def unary(self: Tensor) -> Any:
        return self.capture.perform(action, name, self)

    return unary if is_unary else binary


BINARY = "add sub mul matmul truediv floordiv mod pow lshift rshift and or xor".split()
_METHODS = {
    "__getattr__": _getattr, "__setattr__": _setattr, "__getitem__": _subscript, "__setitem__": _assigned_subscript,
    "__array_ufunc__": _array_ufunc, "__array_function__": _array_function,  # the second net: code that is not converted
    **{f"__i{name}__": _of_name(inplace, f"__{name}__") for name in BINARY},
    **{name: _of_name(apply_operator, name, is_unary=True) for name in ("__neg__", "__pos__", "__abs__", "__invert__")},
    **{
        f"__{name}__": _of_name(apply_operator, f"__{name}__")
        for name in (*BINARY, *(f"r{name}" for name in BINARY), *"lt le gt ge eq ne divmod rdivmod".split())
    },
}  # fmt: skip
for _name, _method in _METHODS.items():
    setattr(Tensor, _name, _method)
