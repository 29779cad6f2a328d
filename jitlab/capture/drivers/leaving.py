"""What leaves a recording is Python's own: whoever gets hold of it later finds no extent, index or number of ours in it.

Results and names are built by `trace.Structure`. What the program stores into objects from outside, hands to code that is not
captured, raises, or leaves in global and outer names goes through `Given`.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from jitlab.capture.positions import is_converted
from jitlab.capture.tracers.number import Number
from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import Extent, Moving, NotRolled, Symbolic
from jitlab.support.containers import like

_ATOMS = frozenset({int, float, bool, complex, str, bytes, type(None), np.ndarray, types.ModuleType, type, Tensor})


def plain_value(x: Any) -> Any:
    """`x` as Python has it, and what it holds where nobody can change that: the same object where nothing in it is ours.

    A Number is guarded by its value. Raises NotRolled for what has no fixed value.
    """
    kind = type(x)
    if kind in _ATOMS:
        return x
    if isinstance(x, (Symbolic, Moving)):
        extent = x.extent if isinstance(x, Symbolic) else x
        raise NotRolled("index_value", "no_value_kept", value=extent.expr)
    if isinstance(x, Extent):
        return int(x)
    if isinstance(x, Number):
        return x.known()
    if isinstance(x, tuple):
        items = _items(x)
        return x if items is None else like(kind, items)
    if kind is slice:
        items = _items((x.start, x.stop, x.step))
        return x if items is None else slice(*items)
    if kind is frozenset:
        items = _items(x)
        return x if items is None else frozenset(items)
    if kind is functools.partial:
        args, keywords = plain_value(x.args), plain_value(tuple(x.keywords.values()))
        if args is not x.args or any(a is not b for a, b in zip(keywords, x.keywords.values(), strict=True)):
            return functools.partial(x.func, *args, **dict(zip(x.keywords, keywords, strict=True)))
    return x


def _items(found: Iterable[Any]) -> list[Any] | None:
    """The items made plain, None where all of them are."""
    before = list(found)
    after = [plain_value(item) for item in before]
    return None if all(a is b for a, b in zip(after, before, strict=True)) else after


def keeps_a_recording(x: Any) -> str:
    """What would go on looking at what is recorded: a method or view of it, an error; "" for anything else."""
    if isinstance(x, functools.partial):
        if any(isinstance(part, (Tensor, Symbolic, list, dict)) for part in (*x.args, *x.keywords.values())):
            return "a partial function that holds an array or a container"
        return keeps_a_recording(x.func)
    owner = getattr(x, "__self__", None) if isinstance(x, (types.MethodType, types.BuiltinMethodType)) else None
    if isinstance(owner, (Tensor, Number, Symbolic)):
        return "a method of an array"
    if isinstance(owner, (list, dict, set)):
        return f"a method of a {type(owner).__name__}"
    if isinstance(x, BaseException):
        return "an error that it made"
    return "a view of a dict" if isinstance(x, _VIEWS) else ""


_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


class Given:
    """What a recording gave away and may still change: what is put into it by then is made plain when the recording ends."""

    def __init__(self) -> None:
        self._changeable: list[Any] = []
        self._entered: dict[types.CodeType, Any] = {}  # functions whose bodies ran, and may have assigned outer names

    def value(self, x: Any) -> Any:
        """What is given for `x`: itself, or its plain form."""
        found = plain_value(x)
        if type(found) not in _ATOMS:
            _settle(found)
            self._changeable.append(found)
        return found

    def call(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call of code that is not captured."""
        return tuple(map(self.value, args)), {key: self.value(x) for key, x in kwargs.items()}

    def entered(self, function: Any) -> None:
        """The body of a function runs."""
        code = getattr(function, "__code__", None)
        if code is not None:
            self._entered[code] = function

    def settle(self, outside: Iterable[Any]) -> None:
        """The recording ends. `outside`: containers that it found, into which the program may have put anything."""
        _settle(*self._changeable, *outside)
        for code, function in self._entered.items():
            _settle_names(function.__globals__, code.co_names)
            for cell in function.__closure__ or ():
                _settle_cell(cell)
        self._entered.clear()
        self._changeable.clear()

    def raised(self, error: BaseException) -> None:
        """An error leaves: what it says of arrays is text by then."""
        seen: set[int] = set()
        todo: list[BaseException | None] = [error]
        while todo:
            current = todo.pop()
            if current is None or id(current) in seen:
                continue
            seen.add(id(current))
            if any(map(_is_ours, current.args)):
                current.args = tuple(map(_told, current.args))
            for name, value in getattr(current, "__dict__", {}).items():
                if _is_ours(value):
                    current.__dict__[name] = _told(value)
            todo += current.__cause__, current.__context__


def _settle(*todo: Any) -> None:
    """Make plain what these containers and functions hold."""
    left, seen = list(todo), dict[int, Any]()
    while left:
        x = left.pop()
        if type(x) not in _ATOMS and id(x) not in seen:
            seen[id(x)] = x
            left.extend(_settled(x))


def _settled(x: Any) -> Iterator[Any]:
    """Make the items of something plain, in place; what may hold more of them."""
    if isinstance(x, (list, deque)):
        for n, item in enumerate(x):
            found = plain_value(item)
            if found is not item:
                x[n] = found
            yield found
    elif isinstance(x, dict):
        found = _items(x)
        if found is not None:
            values = list(x.values())
            x.clear()
            x.update(zip(found, values, strict=True))
        _settle_names(x, list(x))
        yield from x.values()
    elif isinstance(x, set):
        found = _items(x)
        if found is not None:
            x.clear()
            x.update(found)
    elif isinstance(x, tuple):
        yield from x
    elif isinstance(x, BaseException):
        x.args = plain_value(x.args)
        yield from (x.args, x.__cause__, x.__context__)
    elif isinstance(x, functools.partial):
        yield from (x.func, *x.args, *x.keywords.values())
    elif isinstance(x, types.FunctionType) and is_converted(x.__code__):
        x.__defaults__ = plain_value(x.__defaults__)
        yield from (x.__kwdefaults__, *(_settle_cell(cell) for cell in x.__closure__ or ()))


def _settle_names(table: dict[Any, Any], names: Iterable[Any]) -> None:
    for name in names:
        if name in table:
            found = plain_value(table[name])
            if found is not table[name]:
                table[name] = found


def _settle_cell(cell: types.CellType) -> Any:
    try:
        value = cell.cell_contents
    except ValueError:
        return None
    found = plain_value(value)
    if found is not value:
        cell.cell_contents = found
    return found


def _is_ours(x: Any) -> bool:
    if isinstance(x, (list, tuple, set, frozenset)):
        return any(map(_is_ours, x))
    if isinstance(x, dict):
        return any(map(_is_ours, (*x, *x.values())))
    if isinstance(x, slice):
        return any(map(_is_ours, (x.start, x.stop, x.step)))
    return isinstance(x, (Tensor, Extent, Symbolic, Number))


def _told(x: Any) -> Any:
    """What an error says in the place of `x`."""
    if not _is_ours(x):
        return x
    if isinstance(x, Tensor):
        return x.capture.text(x)
    if isinstance(x, (Symbolic, Moving)):
        return str(x.extent.expr if isinstance(x, Symbolic) else x.expr)
    if isinstance(x, dict):
        return {_told(key): _told(value) for key, value in x.items()}
    if isinstance(x, (list, set)):
        return type(x)(map(_told, x))
    if isinstance(x, tuple) and not hasattr(x, "_fields"):
        return tuple(map(_told, x))
    return plain_value(x)


__all__ = ["Given", "keeps_a_recording", "plain_value"]
