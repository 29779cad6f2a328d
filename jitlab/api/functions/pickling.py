"""Copies and pickles of what `jit` and `function` give: here the object itself; in another process one of the same function.

Where the other process can import the function, the pickle names it. Elsewhere (a cell, `__main__` on a cluster, a function in
a function) the plain function goes as the pickler sends functions, with its options and its source. Traces stay at home: what
arrives traces anew, and shares the machine code of equal Programs, which `runtime.compiled` keeps by their text.
"""

from __future__ import annotations

import dis
import functools
import linecache
import pickle
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from jitlab.capture.effect_log import closure_values
from jitlab.capture.positions import codes, is_user_file
from jitlab.capture.rewrite.staleness import arrived_text, meaning
from jitlab.ir import Source, cell_names, display_name
from jitlab.support.later import Later

from .weak_methods import WeakMethod

if TYPE_CHECKING:
    from jitlab.capture.drivers import driver
else:
    driver = Later("jitlab.capture.drivers.driver")
zlib = Later("zlib")

_NAME_READS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTE_READS = ("LOAD_ATTR", "LOAD_METHOD")


class _StandIn:
    """A function with the name of an attribute of the pickled object. It asks the pickler what it does with functions: `pickle`
    writes its name, and so does cloudpickle, but of `__main__` and of modules registered by value what is in it."""

    def __init__(self, content: Callable[[Any], dict[str, Any]]) -> None:
        self.content = content

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        made = FunctionType(_nothing.__code__, {}, self.name)
        made.__module__, made.__qualname__ = instance.__module__, f"{_name(instance)}.{self.name}"
        made.__dict__.update(self.content(instance))
        return instance.__dict__.setdefault(self.name, made)


def _nothing() -> None: ...


class Picklable:
    """Copied as itself; pickled by name where an import finds it, else with its plain function, its options and its source."""

    python_function: Callable[..., Any]
    #: Is it known there by its name? Nothing in it can lead back to the object while that is being written.
    _by_name = _StandIn(lambda function: {})
    #: What is written where it is not.
    _by_value = _StandIn(lambda function: {"written": _Written(function)})

    def _made_with(self) -> dict[str, Any]:
        """The further arguments that make another one of the same function."""
        raise NotImplementedError

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        method = self.python_function.bound() if isinstance(self.python_function, WeakMethod) else self.python_function
        if isinstance(method, MethodType) and isinstance(getattr(type(method.__self__), method.__name__, None), Picklable):
            return _method, (method.__self__, method.__name__)
        if not _is_found(self):
            return _arrive, (kind_of(self), None), _Written(self)
        return (_arrive, (kind_of(self), self._by_name), self._by_value) if protocol >= 4 else _name(self)

    def __setstate__(self, state: Any) -> None:
        written = vars(state)["written"] if isinstance(state, FunctionType) else state
        if isinstance(written, _Written):  # found by its name
            return
        assert isinstance(written, _Contents)
        for file, (title, text) in written.texts.items():
            arrived_text(file, title, zlib.decompress(text).decode())
        function = written.function
        if isinstance(function, FunctionType):  # a pickler may fill it in later, where functions call one another
            function.__defaults__, function.__kwdefaults__ = written.defaults
        for reached in _sent_along(function):  # cloudpickle leaves files out since 3.1.3
            home = written.files.get(_place(reached))
            if home is not None:
                reached.__code__ = _of_file(reached.__code__, home)
        self.__init__(function, **written.made_with)  # type: ignore[misc]

    def __dask_tokenize__(self) -> Any:
        return _token((kind_of(self).__qualname__, self._made_with(), _content(self.python_function)))


class _Contents(NamedTuple):
    """A function under way to a process that cannot import it."""

    function: Any
    defaults: tuple[Any, Any]
    made_with: dict[str, Any]
    texts: dict[str, tuple[str, bytes]]  # by file: what a user calls it, and its source
    files: dict[tuple[str, int], str] = {}  # of the functions that go with it, by their places


class _Written:
    """Writes the _Contents of a function: only a pickler that does not write its name asks for them."""

    def __init__(self, function: Picklable) -> None:
        self.function = weakref.ref(function)  # which holds this one

    def __reduce__(self) -> Any:
        sent = self.function()
        assert sent is not None
        function = sent.python_function
        defaults = (getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None))
        texts: dict[str, tuple[str, bytes]] = {}
        files: dict[tuple[str, int], str] = {}
        for reached in _sent_along(function):
            _refuse_assignments(reached)
            file = files[_place(reached)] = reached.__code__.co_filename
            text = "" if file in texts else "".join(linecache.getlines(file, reached.__globals__))
            if text:
                texts[file] = display_name(file) if file in cell_names else "", zlib.compress(text.encode())
        return _Contents, (function, defaults, sent._made_with(), texts, files)


def _place(function: FunctionType) -> tuple[str, int]:
    return function.__qualname__, function.__code__.co_firstlineno


def _of_file(code: types.CodeType, file: str) -> types.CodeType:
    """The code, and that of the functions and classes inside it, as code of this file."""
    if code.co_filename == file:
        return code
    inside = (_of_file(part, file) if isinstance(part, types.CodeType) else part for part in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(inside))


def _arrive(kind: type[Picklable], by_name: FunctionType | None) -> Picklable:
    """The object of a pickle before its state is read: the one that is imported here, or a new one."""
    if by_name is not None:
        known = _found(by_name.__module__, by_name.__qualname__.rpartition(".")[0])
        if isinstance(known, Picklable) and known._by_name is by_name:
            return known
    return kind.__new__(kind)


def _method(instance: Any, name: str) -> Any:
    """A method of an instance that came with it, and that nothing else here may hold."""
    descriptor: Any = getattr(type(instance), name)
    return kind_of(descriptor)(MethodType(descriptor.python_function, instance), **descriptor._made_with())


def _found(module: str | None, name: str) -> Any:
    """What an import finds under a name; None if nothing."""
    value: Any = sys.modules.get(module or "")
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _name(value: Any) -> str:
    return str(getattr(value, "__qualname__", ""))


def _is_found(value: Any) -> bool:
    return _found(getattr(value, "__module__", None), _name(value)) is value


def kind_of(function: Any) -> Any:
    """The class of what `jit` or `function` gave: that of one that C answers is its own, derived of that and named alike."""
    return _found(type(function).__module__, type(function).__qualname__)


# ---- what a function reaches
def _outside(function: FunctionType) -> dict[str, Any]:
    """What the names mean that a function's code reads outside: its closure's and its globals'."""
    found = closure_values(function)
    names = {step.argval for code in codes(function.__code__) for step in dis.get_instructions(code)
             if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}  # fmt: skip
    found.update((name, function.__globals__[name]) for name in sorted(names - found.keys()) if name in function.__globals__)
    return found


def _sent_along(function: Any) -> Iterator[FunctionType]:
    """The user's functions that go with a function by value: itself, and what it reaches. Those that are found by an import are
    not looked into, nor others that were decorated: they say themselves what goes with them."""
    waiting, seen = [function], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            if is_user_file(value.__code__.co_filename) and (value.__module__ == "__main__" or not _is_found(value)):
                yield value
                waiting.extend((*_outside(value).values(), *(value.__defaults__ or ())))
        elif isinstance(value, MethodType):
            waiting += [value.__func__, value.__self__]
        elif isinstance(value, functools.partial):
            waiting += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, (list, tuple, dict)):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, (staticmethod, classmethod, property)):
            waiting.append(value.fget if isinstance(value, property) else value.__func__)
        elif isinstance(value, type):
            if driver.is_user_class(value) and (value.__module__ == "__main__" or not _is_found(value)):
                waiting.extend((*value.__bases__, *vars(value).values()))
        elif not isinstance(value, (Picklable, ModuleType)) and driver.is_user_class(type(value)):
            waiting += [type(value), getattr(value, "__dict__", {})]


def _refuse_assignments(function: FunctionType) -> None:
    """A Variable that is reached by a name goes as a copy: what is assigned to it elsewhere would be lost."""
    outside = _outside(function)
    for code in codes(function.__code__):
        steps = iter(dis.get_instructions(code))
        step = next(steps, None)
        while step is not None:
            name, value = step.argval, None
            if step.opname in _NAME_READS:
                value = outside.get(name)
            step = next(steps, None)
            while value is not None and step is not None and step.opname in _ATTRIBUTE_READS:
                if getattr(type(value), "__jitlab_variable__", False) is True and step.argval.startswith("assign"):
                    line = step.positions.lineno if step.positions is not None else None
                    at = Source(code.co_filename, line or code.co_firstlineno)
                    raise pickle.PicklingError(
                        f"{function.__name__} cannot be sent to another process: it assigns to the Variable {name}"
                        f" ({at.place}), and there it would have a copy, whose new value is lost. Return the value and assign"
                        f" it here, or make the Variable where the function runs."
                    )
                name, value = f"{name}.{step.argval}", getattr(value, "__dict__", {}).get(step.argval)
                step = next(steps, None)


# ---- tokens
_inside: ContextVar[tuple[int, ...]] = ContextVar("_inside", default=())


def _token(value: Any) -> Any:
    """Dask's token of a value, with functions by what they do: not by where they stand, nor by what was traced of them."""
    from dask.base import normalize_token

    return normalize_token(value)


def _content(function: Any) -> Any:
    """What a callable does: code, defaults and all that it reads outside."""
    if isinstance(function, WeakMethod):
        function = function.bound()
    if isinstance(function, MethodType):
        return "method", _content(function.__func__), _token(function.__self__)
    if not isinstance(function, FunctionType) or not is_user_file(function.__code__.co_filename):
        return _token(function)
    if id(function) in _inside.get():
        return "itself", len(_inside.get()) - _inside.get().index(id(function))
    mark = _inside.set((*_inside.get(), id(function)))
    try:
        defaults = [_value(value) for value in function.__defaults__ or ()]
        named = sorted((function.__kwdefaults__ or {}).items())
        outside = [(name, _value(value)) for name, value in _outside(function).items()]
        return function.__name__, meaning(function.__code__), defaults, [(name, _value(v)) for name, v in named], outside
    finally:
        _inside.reset(mark)


def _value(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return "module", value.__name__
    return _content(value) if isinstance(value, types.FunctionType | MethodType) else _token(value)


__all__ = ["Picklable", "kind_of"]
