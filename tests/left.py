"""What a program left behind, walked whole: nothing of a recording (extents, numbers, indices, traced arrays) may be in it."""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from jitlab.capture.positions import is_user_file

#: The packages whose objects live for a recording only.
RECORDING = ("jitlab.capture", "jitlab.ir", "jitlab.ops", "jitlab.lower", "jitlab.passes", "jitlab.cluster")


def ours_in(*roots: Any) -> list[str]:
    """The paths at which something of a recording is found: "[2].stop: Extent"."""
    found: list[str] = []
    seen: dict[int, Any] = {}
    todo = [(f"#{n}", root) for n, root in enumerate(roots)]
    while todo:
        path, x = todo.pop()
        if id(x) in seen or x is None:
            continue
        seen[id(x)] = x
        if type(x).__module__.startswith(RECORDING) and not isinstance(x, type):
            found.append(f"{path}: {type(x).__name__}")
            continue
        todo.extend((path + name, part) for name, part in _parts(x))
    return found


def assert_plain(*roots: Any) -> None:
    """Fails with the paths of what is ours."""
    found = ours_in(*roots)
    assert not found, found


def described(names: dict[str, Any]) -> Any:
    """What names stand for, in a form that is equal where types, values and sharing are; fails where something is ours."""
    assert_plain(names)
    arrays: list[tuple[str, Any]] = []
    seen: dict[int, str] = {}
    form = {name: _form(value, name, arrays, seen) for name, value in names.items()}
    sharing = [
        (a, b, x is y, np.shares_memory(x, y))
        for n, (a, x) in enumerate(arrays)
        for b, y in arrays[n + 1 :]
        if np.may_share_memory(x, y)
    ]
    return form, sharing


def _form(x: Any, path: str, arrays: list[tuple[str, Any]], seen: dict[int, str]) -> Any:
    """Every array with its path, and a comparable form of the rest."""
    if isinstance(x, np.ndarray):
        arrays.append((path, x))
        return ("array", str(x.dtype), x.shape, repr(x.tolist()))
    if isinstance(x, np.generic):
        return (type(x).__name__, repr(x.tolist()))
    if id(x) in seen:
        return ("seen", seen[id(x)])
    is_object = not isinstance(x, (type, types.FunctionType, types.MethodType, types.ModuleType)) and hasattr(x, "__dict__")
    if isinstance(x, (list, tuple, set, dict)) or is_object:
        seen[id(x)] = path
    if isinstance(x, dict):
        return {k: _form(v, f"{path}[{k!r}]", arrays, seen) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [_form(v, f"{path}[{n}]", arrays, seen) for n, v in enumerate(x)])
    if isinstance(x, types.MethodType):
        return ("method", x.__name__, _form(x.__self__, path + ".__self__", arrays, seen))
    if isinstance(x, (int, float, str, bytes, complex, set, type(None), slice, range, np.dtype)):
        return (type(x).__name__, repr(x))
    if isinstance(x, (types.FunctionType, type)):
        return (type(x).__name__, x.__name__, getattr(x, "__doc__", None))
    if is_object and is_user_file(getattr(sys.modules.get(type(x).__module__), "__file__", None) or "<made>"):
        return (type(x).__name__, _form(vars(x), path, arrays, seen))
    return type(x).__name__


def _parts(x: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(x, dict):
        for key, value in list(x.items()):
            yield f" key {key!r}" if isinstance(key, (str, int)) else " key", key
            yield f"[{key!r}]" if isinstance(key, (str, int)) else "[...]", value
    elif isinstance(x, (list, tuple, set, frozenset, deque)):
        yield from ((f"[{n}]", item) for n, item in enumerate(x))
    elif isinstance(x, (slice, range)):
        yield from ((f".{name}", getattr(x, name)) for name in ("start", "stop", "step"))
    elif isinstance(x, np.ndarray):
        if x.base is not None:
            yield ".base", x.base
        if x.dtype.hasobject:
            yield from ((f"[{n}]", item) for n, item in enumerate(x.ravel()))
    elif isinstance(x, functools.partial):
        yield from ((".func", x.func), (".args", x.args), (".keywords", x.keywords))
    elif isinstance(x, (types.MethodType, types.BuiltinMethodType)):
        if not isinstance(x.__self__, types.ModuleType):
            yield ".__self__", x.__self__
    elif isinstance(x, types.FunctionType):
        if is_user_file(x.__code__.co_filename):
            yield from _parts_of_function(x)
    elif isinstance(x, BaseException):
        yield from ((".args", x.args), (".__cause__", x.__cause__), (".__context__", x.__context__), (".__dict__", vars(x)))
    elif not isinstance(x, (type, types.ModuleType)) and not type(x).__module__.startswith("jitlab"):
        yield from ((f".{name}", value) for name, value in getattr(x, "__dict__", {}).items())
        slots = [name for kind in type(x).__mro__ for name in getattr(kind, "__slots__", ()) if isinstance(name, str)]
        yield from ((f".{name}", getattr(x, name)) for name in slots if hasattr(x, name))


def _parts_of_function(x: types.FunctionType) -> Iterator[tuple[str, Any]]:
    yield from ((".__defaults__", x.__defaults__), (".__kwdefaults__", x.__kwdefaults__))
    for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
        if name != "__jl__":  # what converted code calls Python through
            try:
                yield f" closure {name}", cell.cell_contents
            except ValueError:
                continue
