"""What a function's body does to Python happens once a trace, though exact sizes are recorded one by one.

A trace of `function` may stand for many sizes, and each is recorded apart when it first comes. The first recording does what
the body does: it prints, appends, sets attributes, and the Python values it reads from names and attributes are `Frozen`.
Further recordings of the same trace are `Quiet`: they read the frozen values again, print nothing, and what they store into
Python objects that were there before is put back when they end. What neither can see (files, the network, code that is not
converted) happens again; docs say so.
"""

from __future__ import annotations

import dis
import types
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitlab.ir import Source
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import contextmanager

from .positions import here, is_user_file
from .tracers.tensor import Tensor

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_STORE_GLOBAL, _DELETE_GLOBAL = dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]


@dataclass(frozen=True)
class Callee:
    """A function of the user's that a body found under a name: its code is part of the trace."""

    owner: Any  # the namespace or cell, or a weak reference to the object
    name: str
    function: Any
    code: Any
    source: Source | None

    def is_another(self) -> bool:
        """Does the name mean another function by now, or the function other code?"""
        owner = self.owner() if isinstance(self.owner, weakref.ref) else self.owner
        if owner is None:
            return False
        if isinstance(owner, types.CellType):
            try:
                now = owner.cell_contents
            except ValueError:
                return True
        else:
            now = owner.get(self.name) if type(owner) is dict else getattr(owner, self.name, None)
        return now is not self.function or getattr(now, "__code__", None) is not self.code


class Frozen:
    """The Python numbers, strings and None, the functions and the arrays that a body read from names and attributes when its
    trace was made."""

    def __init__(self) -> None:
        self.values: dict[tuple[int, str], Any] = {}
        self.callees: list[Callee] = []
        self._owners: dict[int, Any] = {}  # whose ids are in the keys: strong for namespaces and cells, weak for objects

    def get(self, owner: Any, name: str, value: Any) -> Any:
        """What was read there, `value` where nothing was."""
        key = id(owner), name
        if key not in self.values:
            return value
        known = self._owners[id(owner)]
        return self.values[key] if known is owner or (isinstance(known, weakref.ref) and known() is owner) else value

    def has(self, owner: Any, name: str) -> bool:
        """Was a plain value read there?"""
        return (id(owner), name) in self.values

    def keep(self, owner: Any, name: str, value: Any) -> None:
        """The first thing that was read there counts."""
        is_callee = _is_callee(value)
        if not is_callee and type(value) not in _PLAIN and not isinstance(value, (np.ndarray, np.generic)):
            return
        known = self._owners.get(id(owner))
        if known is None or (isinstance(known, weakref.ref) and known() is None):
            try:
                self._owners[id(owner)] = owner if isinstance(owner, (dict, types.CellType)) else weakref.ref(owner)
            except TypeError:  # it can be named again by its id alone: not safely
                return
        if is_callee and (id(owner), name) not in self.values:
            code = getattr(value, "__code__", None)
            self.callees.append(Callee(self._owners[id(owner)], name, value, code, here()))
        self.values.setdefault((id(owner), name), value)

    @contextmanager
    def as_traced(self) -> Iterator[list[str]]:
        """Inside, the names have the values again that were read; gives the names that have others by now."""
        changed: list[str] = []
        back: list[tuple[Any, str, Any]] = []
        for (key, name), value in self.values.items():
            owner = self._owners[key]
            owner = owner() if isinstance(owner, weakref.ref) else owner
            is_cell = isinstance(owner, types.CellType)
            namespace = owner if is_cell or type(owner) is dict else getattr(owner, "__dict__", {})
            known = "cell_contents" if is_cell else name
            held = vars_of(namespace)
            if known not in held or held[known] is value or (type(value) in _PLAIN and _equal(held[known], value)):
                continue
            changed.append(name)
            back.append((namespace, known, held[known]))
            put(namespace, known, value)
        try:
            yield changed
        finally:
            for namespace, known, value in back:
                put(namespace, known, value)

    def trim(self) -> None:
        """Forget objects that lived no longer than the recording."""
        gone = {key for key, owner in self._owners.items() if isinstance(owner, weakref.ref) and owner() is None}
        self._owners = {key: owner for key, owner in self._owners.items() if key not in gone}
        self.values = {key: value for key, value in self.values.items() if key[0] not in gone}


class Memory:
    """The first recording of a trace: reads are kept. `outer`: of the recording that this one is part of."""

    silent = False

    def __init__(self, frozen: Frozen, function: Any, outer: Memory | None = None) -> None:
        self.frozen = frozen
        self.outer = outer
        function = getattr(function, "__func__", function)
        self.cells = list(getattr(function, "__closure__", None) or ())  # of the traced function itself: they outlive the body

    def name(self, function: Any, name: str, value: Any) -> Any:
        """A global or closure name was read."""
        owner = self.namespace(function, name)
        return value if owner is None else self._read(owner, name, value)

    def attribute(self, owner: Any, name: str, value: Any) -> Any:
        return self._read(owner, name, value)

    def called(self, function: types.FunctionType) -> types.FunctionType:
        """A function of the user's is called, which a module may hold under its name."""
        namespace, name = function.__globals__, function.__name__
        return self._read(namespace, name, function) if namespace.get(name) is function else function

    def has_stored(self, owner: Any) -> bool:
        """Did this further recording store into the object? What its properties give then hangs on that."""
        return False

    def item(self, owner: Any, value: Any) -> None:
        """An item of a container was read."""

    def before_store(self, owner: Any, name: str | None) -> None:
        """An attribute (or, None, an item) of a Python object is stored into."""

    @contextmanager
    def entering(self, function: Any) -> Iterator[None]:
        """A converted function's body runs inside."""
        yield

    def _read(self, owner: Any, name: str, value: Any) -> Any:
        self.frozen.keep(owner, name, value)
        return value if self.outer is None else self.outer._read(owner, name, value)

    def namespace(self, function: Any, name: str) -> Any:
        """Where a name of a function lives beyond the recording; None: in a cell of another function, mostly its own."""
        code = function.__code__
        if name not in code.co_freevars:
            return function.__globals__
        cell = function.__closure__[code.co_freevars.index(name)]
        memory: Memory | None = self
        while memory is not None:
            if any(cell is known for known in memory.cells):
                return cell
            memory = memory.outer
        return None


class Quiet(Memory):
    """A further recording of a known trace."""

    silent = True

    def __init__(self, frozen: Frozen, function: Any, arguments: Sequence[Any], outer: Memory | None = None) -> None:
        super().__init__(frozen, function, outer)
        self._own: set[tuple[int, str]] = set()  # where this recording has stored itself: what is there counts
        self._outside: dict[int, Any] = {}  # objects that were there before this recording
        self._undo: list[Any] = []
        self._saved: set[Any] = set()
        for value in (getattr(function, "__self__", None), *arguments):
            self._from_outside(value)

    def name(self, function: Any, name: str, value: Any) -> Any:
        self._from_outside(value)
        return super().name(function, name, value)

    def attribute(self, owner: Any, name: str, value: Any) -> Any:
        if id(owner) in self._outside or isinstance(owner, (types.ModuleType, type)):
            self._from_outside(value)
        return super().attribute(owner, name, value)

    def has_stored(self, owner: Any) -> bool:
        return any(id(owner) == known for known, _ in self._own)

    def item(self, owner: Any, value: Any) -> None:
        if id(owner) in self._outside:
            self._from_outside(value)

    def before_store(self, owner: Any, name: str | None) -> None:
        if name is not None:
            self._own.add((id(owner), name))
        if name is None or id(owner) not in self._outside or (id(owner), name) in self._saved:
            return  # containers from outside were saved when they were read
        self._saved.add((id(owner), name))
        namespace = getattr(owner, "__dict__", {})
        if name in namespace or hasattr(owner, name):
            value = namespace[name] if name in namespace else getattr(owner, name)
            self._undo.append(lambda: setattr(owner, name, value))
        else:
            self._undo.append(lambda: delattr(owner, name))

    @contextmanager
    def entering(self, function: Any) -> Iterator[None]:
        # names that may be stored: what the first recording found there is there again, and is put back later
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if (id(cell), name) not in self._own and any(cell is known for known in self.cells):
                self._own.add((id(cell), name))
                self._undo.append(_restored_at(cell, "cell_contents"))
                if self.frozen.has(cell, name):
                    cell.cell_contents = self.frozen.get(cell, name, None)
        namespace = function.__globals__
        for name in code.co_names if _stores_globals(code) else ():
            if (id(namespace), name) not in self._own:
                self._own.add((id(namespace), name))
                self._undo.append(_restored_at(namespace, name))
                if self.frozen.has(namespace, name):
                    namespace[name] = self.frozen.get(namespace, name, None)
        yield

    def undo(self) -> None:
        """Put back what was there before."""
        for step in reversed(self._undo):
            step()
        self._undo.clear()
        self._outside.clear()

    def _read(self, owner: Any, name: str, value: Any) -> Any:
        if (id(owner), name) not in self._own:
            value = self.frozen.get(owner, name, value)
        return value if self.outer is None else self.outer._read(owner, name, value)

    def _from_outside(self, value: Any) -> None:
        if isinstance(value, (Tensor, *_PLAIN)) or id(value) in self._outside:
            return
        self._outside[id(value)] = value
        if isinstance(value, (list, dict, set, deque, bytearray)):
            self._undo.append(restored(value))


def vars_of(owner: Any) -> dict[str, Any]:
    """What stands in a namespace, or in a cell of a closure."""
    if not isinstance(owner, types.CellType):
        return owner  # type: ignore[no-any-return]
    try:
        return {"cell_contents": owner.cell_contents}
    except ValueError:
        return {}


def closure_values(function: Any) -> dict[str, Any]:
    """What the names of a function's closure hold, but for those that are not assigned yet."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: value for name, cell in cells for value in vars_of(cell).values()}


def put(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, types.CellType):
        owner.cell_contents = value
    else:
        owner[name] = value


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or a != a)


def _is_callee(value: Any) -> bool:
    if type(value) is types.FunctionType:
        return is_user_file(value.__code__.co_filename)
    return hasattr(type(value), "__jitlab_inline__")


def restored(container: Any) -> Any:
    """Puts back what a list, dict, set or the like holds now."""
    saved = container.copy()

    def restore() -> None:
        if isinstance(container, (list, bytearray)):
            container[:] = saved
        elif isinstance(container, deque):
            container.clear()
            container.extend(saved)
        else:
            container.clear()
            container.update(saved)

    return restore


def _restored_at(owner: Any, name: str) -> Any:
    """Puts back what stands under a name of a namespace, or in a cell."""
    held = vars_of(owner)
    if name in held:
        return partial(put, owner, name, held[name])
    return lambda: None if isinstance(owner, types.CellType) else owner.pop(name, None)


def _stores_globals(code: types.CodeType) -> bool:
    operations = code.co_code[::2]
    return _STORE_GLOBAL in operations or _DELETE_GLOBAL in operations
