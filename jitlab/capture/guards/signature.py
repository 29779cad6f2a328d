"""Signatures: what of a call's arguments a trace depends on."""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
import weakref
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jitlab.capture.numpy_calls.numpy_traits import full_name
from jitlab.errors import Unfit
from jitlab.ir import TRACED_DTYPES
from jitlab.messages import by_contract
from jitlab.support.containers import CONTAINERS, of_items
from jitlab.support.lazy import lazy


class Foreign(Unfit):
    """An argument that is never traced: a subclass of ndarray, another dtype or byte order, another library's array."""

    def __init__(self, value: Any) -> None:
        dtype = getattr(value, "dtype", None)
        of = f" of {dtype}" if dtype is not None else ""
        super().__init__("foreign_type", "is_a", name="an argument", kind=full_name(type(value)) + of)


class TooDeep(Foreign):
    """An argument of lists, tuples or dicts so deep that nobody can look through them: one may hold itself."""

    def __init__(self) -> None:
        Unfit.__init__(self, "foreign_type", "too_deep")


class Signature:
    """The parameters of a function; binds a call's arguments to them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.is_simple = _has_positional_parameters_alone(function)
        if self.is_simple:
            self._function = function
            self.names = function.__code__.co_varnames[: function.__code__.co_argcount]
        else:
            self.signature = inspect.signature(function)
            parameters = self.signature.parameters.values()
            self.names = tuple(p.name for p in parameters)
            self.is_simple = {p.kind for p in parameters} <= _POSITIONAL
        self.count = len(self.names)

    @lazy
    def signature(self) -> inspect.Signature:
        """Made when it is asked for: it is rarely needed where all parameters are positional."""
        return inspect.signature(self._function)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """One value for each parameter, defaults filled in; `**kwargs` as a dict."""
        if not kwargs and self.is_simple and len(args) == self.count:
            return args
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def call_form(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Values for each parameter as arguments of a call."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter, value in zip(self.signature.parameters.values(), values, strict=True):
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return tuple(args), kwargs


_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


def _has_positional_parameters_alone(function: Any) -> bool:
    """It is a plain function that takes no others, as its code says."""
    if type(function) is not types.FunctionType or "__wrapped__" in vars(function) or "__signature__" in vars(function):
        return False
    code = function.__code__
    return not code.co_kwonlyargcount and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)


def key_of(values: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A hashable key of bound values, and the arrays and NumPy scalars among them, in order."""
    leaves = _Leaves()
    try:
        key = tuple(_key(value, leaves) for value in values)
    except RecursionError:
        raise TooDeep from None
    ids = [id(leaf) if type(leaf) is np.ndarray else -n for n, leaf in enumerate(leaves)]
    ids += map(id, leaves.objects)
    if len(set(ids)) < len(ids):
        first: dict[int, int] = {}
        key = key, tuple(first.setdefault(i, n) for n, i in enumerate(ids))
    return key, leaves


class _Leaves(list[Any]):
    """The arrays and NumPy scalars of a call; and the objects that are structures."""

    objects: Sequence[Any] = ()


def _key(value: Any, leaves: _Leaves) -> Any:
    kind = type(value)
    if kind is np.ndarray:
        if value.dtype not in TRACED_DTYPES:
            raise Foreign(value)
        leaves.append(value)
        return value.dtype, value.shape
    if kind in _EXACT:
        return kind, value
    if kind is float:
        return _float_key(value)
    if kind is complex or kind is frozenset:
        return exact(value)
    if isinstance(value, np.generic) and value.dtype in TRACED_DTYPES:
        leaves.append(value)
        return value.dtype, ()
    if isinstance(value, (list, tuple)):
        return kind, tuple(_key(item, leaves) for item in value)
    if isinstance(value, dict):
        names = sorted(value, key=repr)
        return kind, tuple((name if type(name) is str else exact(name), _key(value[name], leaves)) for name in names)
    if is_variable(value):
        array = value.__jitlab_array__()
        leaves.append(array)
        return kind, array.dtype, array.shape
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        if not isinstance(value, type) and not hasattr(value, "__jitlab_tensor__"):
            raise Foreign(value)
    attributes = fields_of_object(value)
    if attributes is not None:
        leaves.objects = (*leaves.objects, value)
        return kind, tuple((name, _key(getattr(value, name), leaves)) for name in attributes)
    return _object_key(stands_for(value))


_EXACT = frozenset({int, bool, str, bytes, type(None), range, type, type(Ellipsis)})


def exact(value: Any) -> Any:
    """What tells a value from others that are equal to it: 1 from 1.0 and True, 0.0 from -0.0. Equal for NaN and NaN."""
    kind = type(value)
    if isinstance(value, (float, complex, np.inexact)):
        return kind, repr(value)
    if kind in (tuple, frozenset):
        return kind, kind(map(exact, value))
    return kind, value


def _float_key(value: float) -> Any:
    if value != value:
        return float, "nan"
    return float, value, math.copysign(1.0, value) if value == 0 else 0.0


def _object_key(value: Any) -> Any:
    if not isinstance(value, (set, bytearray)):
        try:
            return ObjectKey(value)
        except TypeError:
            pass
    refuse(value)
    return type(value), value


def is_variable(value: Any) -> bool:
    """A `Variable`: its array is an argument of the trace, and of several the pattern of which are one is in the key."""
    return getattr(type(value), "__jitlab_variable__", False) is True


def stands_for(value: Any) -> Any:
    """What decorators wrapped, at the bottom: a decorated function as an argument is known by it."""
    seen = 0
    while "__wrapped__" in getattr(value, "__dict__", ()) and not isinstance(value, type) and seen < 100:
        value, seen = value.__wrapped__, seen + 1
    return value


def fields_of_object(value: Any) -> tuple[str, ...] | None:
    """The names of the fields of an object that is a structure: of an attrs class, or of a dataclass whose objects cannot be
    hashed, because they may change, where it has nothing but these; None for others."""
    kind = type(value)
    fields = getattr(kind, "__attrs_attrs__", None)
    if fields is not None and not isinstance(value, type):
        return tuple(field.name for field in fields)
    if kind.__hash__ is not None or not hasattr(kind, "__dataclass_fields__"):
        return None
    names = tuple(field.name for field in dataclasses.fields(value))
    held = getattr(value, "__dict__", None)
    return names if (all(hasattr(value, name) for name in names) if held is None else held.keys() == set(names)) else None


def literal_key(value: Any) -> Any:
    """The key of a value that is told apart by type and value (S10); None for others."""
    kind = type(value)
    if kind in _EXACT:
        return kind, value
    if kind is float:
        return _float_key(value)
    if kind is complex or kind is frozenset:
        return exact(value)
    return None


def refuse(value: Any) -> None:
    """A TypeError for what cannot be part of a key."""
    if isinstance(value, weakref.ref):
        raise TypeError(
            f"weakref input {value!r} is not supported for {by_contract('tf.function')}: what it refers to may be gone at the"
            " next call; pass the object itself"
        )
    try:
        hash(value)
        if not isinstance(value, slice):
            return
    except TypeError:
        pass
    raise TypeError(
        f"Could not generate a generic TraceType for {value!r}: it cannot be hashed, so no later call could be known to pass"
        " an equal one; pass it as a tuple, or take it from a global name"
    ) from None


class ObjectKey:
    """An object by weak reference: equal to the same object, or to one that is `==` with the same hash."""

    __slots__ = ("hash", "ref")

    def __init__(self, value: Any) -> None:
        self.ref = weakref.ref(value)
        try:
            self.hash = hash(value)
        except TypeError:
            self.hash = id(value)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ObjectKey) or self.hash != other.hash:
            return False
        mine, theirs = self.ref(), other.ref()
        if mine is None or theirs is None:
            return False
        return mine is theirs or bool(type(mine) is type(theirs) and mine == theirs)


def paths_of(names: Sequence[str], values: Sequence[Any]) -> list[str]:
    """Where each array, NumPy scalar and Variable stands, in the order of `key_of`: `x`, `params[0]`, `opts["lr"]`."""
    result: list[str] = []
    for name, value in zip(names, values, strict=True):
        _paths(name, value, result)
    return result


def _paths(path: str, value: Any, result: list[str]) -> None:
    if type(value) is np.ndarray or (isinstance(value, np.generic) and value.dtype in TRACED_DTYPES) or is_variable(value):
        result.append(path)
    elif isinstance(value, CONTAINERS):
        for place, item in items_at(path, value):
            _paths(place, item, result)
    else:
        for name in fields_of_object(value) or ():
            _paths(f"{path}.{name}", getattr(value, name), result)


def items_at(path: str, value: Any) -> list[tuple[str, Any]]:
    """What a list, tuple or dict holds, each with its path, in the order of keys."""
    if isinstance(value, dict):
        keys = sorted(value, key=repr)
        return [(f'{path}["{key}"]' if isinstance(key, str) else f"{path}[{key!r}]", value[key]) for key in keys]
    fields = getattr(value, "_fields", None)
    return [(f"{path}.{fields[n]}" if fields else f"{path}[{n}]", item) for n, item in enumerate(value)]


class Copy(NamedTuple):
    """A list, dict or object of the caller's, what stands for it, and what that held by index, key or name."""

    of: Any
    copy: Any
    held: dict[Any, Any]


def substitute(values: Sequence[Any], replace: Callable[[Any], Any], copies: list[Copy]) -> tuple[Any, ...]:
    """Bound values with `replace(leaf)` for each array, NumPy scalar and Variable, in the order of `key_of`; containers are
    copied.

    `copies` gets what was copied, to notice when the function changes it. An object is one wherever it stands.
    """
    return tuple(_substitute(value, replace, copies) for value in values)


def _substitute(value: Any, replace: Callable[[Any], Any], copies: list[Copy]) -> Any:
    if type(value) is np.ndarray or (isinstance(value, np.generic) and value.dtype in TRACED_DTYPES) or is_variable(value):
        return replace(value)
    if isinstance(value, tuple):
        return of_items(partial(_substitute, replace=replace, copies=copies), value)
    if isinstance(value, list):
        new = copy(value)
        new[:] = [_substitute(item, replace, copies) for item in value]
        copies.append(Copy(value, new, held_by(new)))
        return new
    if isinstance(value, dict):
        changed = {name: _substitute(value[name], replace, copies) for name in sorted(value, key=repr)}
        mapping = copy(value)
        for name in value:
            mapping[name] = changed[name]
        copies.append(Copy(value, mapping, held_by(mapping)))
        return mapping
    attributes = fields_of_object(value)
    if attributes is not None:
        new = copy(value)
        for name in attributes:
            object.__setattr__(new, name, _substitute(getattr(value, name), replace, copies))
        known = next((other.copy for other in copies if other.of is value), new)
        copies.append(Copy(value, known, held_by(known)))
        return known
    return value


def held_by(container: Any) -> dict[Any, Any]:
    """What a list, dict or object with fields holds, by index, key or name."""
    if isinstance(container, list):
        return dict(enumerate(container))
    if isinstance(container, dict):
        return dict(container)
    names = (*(fields_of_object(container) or ()), *getattr(container, "__dict__", ()))
    return {name: getattr(container, name) for name in names if hasattr(container, name)}
