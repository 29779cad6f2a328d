"""What a function may change when Python runs it: kept before such a run and put back after it, as if it had not been.

From the function and its arguments all that can be reached is looked at: arrays, containers, objects of the user's classes,
names of modules, random generators. What acts on the world outside (files, processes, the network) is refused where it begins.
"""

from __future__ import annotations

import dis
import functools
import io
import os
import random
import sys
import threading
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from jitlab.capture.drivers.driver import is_user_class
from jitlab.capture.numpy_calls.layouts import is_writeable
from jitlab.capture.positions import codes, is_user_file
from jitlab.ops.random_draws import random_state, set_random_state

from .replaying import TooMuch, same_bits

#: Objects that are looked at; a function that can reach more is not run.
MOST_OBJECTS = 200_000
#: What cannot change.
PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), range, slice, type(...)})
GENERATORS = (np.random.Generator, np.random.RandomState)
#: Audit events of Python (sys.audit) by which a program acts on the world outside, or waits for it.
ACTS = (
    "socket.", "subprocess.", "shutil.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile",
    "os.kill", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink", "os.chmod", "os.chown",
    "os.putenv", "os.unsetenv", "os.chdir", "builtins.input", "urllib.", "http.", "ftplib.", "smtplib.", "sqlite3.",
    "webbrowser.", "tempfile.", "pty.", "signal.", "syslog.",
)  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


class ActsOutsideError(RuntimeError):
    """Python is about to act on the world outside; the text says how, as a clause."""


class World:
    """All that can be reached from some objects, as it is now, and these `names` of a namespace. TooMuch: the arrays take more
    than `limit` bytes."""

    def __init__(
        self, roots: dict[str, Any], limit: int, namespace: dict[str, Any] | None = None, names: Sequence[str] = ()
    ) -> None:
        self.limit, self.bytes = limit, 0
        self.arrays: list[tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []  # name, array, what was in it
        self.others: list[tuple[str, Any]] = []  # name, and what was found there of which nothing is kept
        self.codes: list[types.CodeType] = []  # of the user's functions
        self._back: list[Callable[[], None]] = []
        self._seen: dict[int, Any] = {}
        self._waiting: deque[tuple[str, Any]] = deque()
        self._add(roots.items())
        if namespace is not None:
            self._names(namespace, names)
        self._generator(np.random.mtrand._rand)
        state = random.getstate()
        self._back.append(lambda: random.setstate(state))
        while self._waiting:
            name, value = self._waiting.popleft()
            if id(value) not in self._seen:
                self._seen[id(value)] = value
                self._look(name, value)
            if len(self._seen) > MOST_OBJECTS:
                raise ActsOutsideError(f"it can reach more than {MOST_OBJECTS:,} objects")

    def put_back(self) -> None:
        """Everything is as it was."""
        for _, array, saved in self.arrays:
            if is_writeable(array) and not same_bits(array, saved):
                np.copyto(array, saved)
        for step in self._back:
            step()

    def _add(self, found: Iterable[tuple[str, Any]]) -> None:
        """To be looked at; what cannot change is not."""
        self._waiting += ((name, value) for name, value in found if type(value) not in PLAIN)

    def _look(self, name: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, np.ndarray):
            self._array(name, value)
        elif kind in (list, dict, set, deque, bytearray) or isinstance(value, (list, dict, set, deque)):
            self._container(name, value)
        elif isinstance(value, (tuple, frozenset)):
            self._add((f"{name}[{n}]", item) for n, item in enumerate(value))
        elif isinstance(value, types.FunctionType):
            if is_user_file(value.__code__.co_filename):
                self._function(value)
            else:
                self.others.append((name, value))
        elif isinstance(value, types.MethodType):
            self._add([("self", value.__self__), (name, value.__func__)])
        elif isinstance(value, functools.partial):
            self._add([(name, value.func), (name, value.args), (name, value.keywords)])
        elif isinstance(value, GENERATORS):
            self._generator(value)
        elif hasattr(kind, "__jitlab_inline__"):
            self._add([(name, value.python_function)])
        elif getattr(kind, "__jitlab_variable__", False) is True:
            self._object(name, value)
        elif isinstance(value, types.ModuleType):
            self.others.append((name, value))  # it is looked at by the names that functions read of it
        elif isinstance(value, type):
            self._class(name, value)
        elif is_user_class(kind):
            self._object(name, value)
            self._class(name, kind)
        else:
            self.others.append((name, value))

    def _array(self, name: str, array: np.ndarray[Any, Any]) -> None:
        if array.dtype.hasobject:
            raise ActsOutsideError(f"{name} is an array of objects")
        if not is_writeable(array):
            return
        self.bytes += array.nbytes
        if self.bytes > self.limit:
            raise TooMuch(self.bytes, self.limit)
        self.arrays.append((name, array, array.copy(order="K")))

    def _container(self, name: str, value: Any) -> None:
        saved = value.copy()
        items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))

        def put_back() -> None:
            now = list(value.items()) if isinstance(value, dict) else list(value)
            before = list(saved.items()) if isinstance(saved, dict) else list(saved)
            if _same(now, before):
                return
            if isinstance(value, (list, bytearray)):
                value[:] = saved
            else:
                value.clear()
                (value.extend if isinstance(value, deque) else value.update)(saved)

        self._back.append(put_back)
        if not isinstance(value, bytearray):
            self._add((f"{name}[{key!r}]" if type(key) in PLAIN else name, item) for key, item in items)

    def _object(self, name: str, value: Any) -> None:
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict):
            self._names(own, list(own))
            self._add((f"{name}.{key}", item) for key, item in own.items())
        slots = (slot for base in type(value).__mro__ for slot in getattr(base, "__slots__", ()) if hasattr(value, slot))
        for slot in slots:
            item = getattr(value, slot)
            self._add([(f"{name}.{slot}", item)])
            self._back.append(functools.partial(object.__setattr__, value, slot, item))

    def _class(self, name: str, kind: type) -> None:
        """Its functions, and the values that its instances share."""
        self.others += ((name, base) for base in kind.__mro__)
        for base in kind.__mro__:
            if is_user_class(base):
                own = {key: item for key, item in vars(base).items() if not key.startswith("__") or callable(item)}
                self._add((f"{base.__name__}.{key}", _plain(item)) for key, item in own.items())

    def _function(self, function: types.FunctionType) -> None:
        self.codes.append(function.__code__)
        for cell_name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self._back.append(functools.partial(setattr, cell, "cell_contents", value))
            self._add([(cell_name, value)])
        names, stored = _names_of(function.__code__)
        namespace = function.__globals__
        self._names(namespace, stored)
        for name in names:
            if name in namespace:
                value = namespace[name]
                self._add([(name, value)])
                if isinstance(value, types.ModuleType) and is_user_file(getattr(value, "__file__", None) or ""):
                    self._names(vars(value), names)
                    self._add((f"{name}.{key}", vars(value)[key]) for key in names if key in vars(value))
        self._add((name, value) for name, value in (function.__kwdefaults__ or {}).items())
        self._add((function.__name__, value) for value in function.__defaults__ or ())

    def _names(self, namespace: dict[str, Any], names: Any) -> None:
        """Of an object's own namespace: also names that it gets are gone again."""
        saved = {name: namespace[name] for name in names if name in namespace}
        is_whole = len(saved) == len(namespace)

        def put_back() -> None:
            for name in [name for name in (list(namespace) if is_whole else names) if name not in saved]:
                namespace.pop(name, None)
            for name, value in saved.items():
                if namespace.get(name) is not value or name not in namespace:
                    namespace[name] = value

        self._back.append(put_back)

    def _generator(self, generator: Any) -> None:
        self._back.append(functools.partial(set_random_state, generator, random_state(generator)))


def _same(now: list[Any], before: list[Any]) -> bool:
    def same(a: Any, b: Any) -> bool:
        return a is b or (type(a) is type(b) is tuple and len(a) == len(b) and all(map(same, a, b)))

    return len(now) == len(before) and all(map(same, now, before))


def _plain(item: Any) -> Any:
    """The function of a method, of a property's getter."""
    item = getattr(item, "__func__", item)
    return item.fget if isinstance(item, property) else item


def _names_of(code: types.CodeType) -> tuple[set[str], set[str]]:
    """The names that code and the code in it speak of, and those of globals that it stores."""
    names, stored = set[str](), set[str]()
    for inner in codes(code):
        names.update(inner.co_names)
        if {dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]} & set(inner.co_code[::2]):
            steps = dis.get_instructions(inner)
            stored.update(step.argval for step in steps if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"))
    return names, stored


# ---- the world outside
class _Here(threading.local):
    acts = False


_here = _Here()
_hooked: list[bool] = []


def _audit(event: str, args: tuple[Any, ...], here: _Here = _here) -> None:
    if not here.acts:  # asked also while the interpreter ends, when this module's names are gone
        return
    if event == "open":
        path, mode, flags = args[:3]
        writes = any(c in mode for c in "wax+") if isinstance(mode, str) else bool((flags or 0) & WRITES)
        if writes:
            raise ActsOutsideError(f"it writes the file {os.path.basename(str(path))!r}")
    elif event.startswith(ACTS):
        raise ActsOutsideError(f"it acts on the world outside ({event})")


class _Held(io.TextIOBase):
    """A stream that swallows what one thread writes; others' goes on."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.thread = stream, threading.get_ident()

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self.thread else self.stream.write(text)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return False


@contextmanager
def holding_back(refuses: bool = True) -> Iterator[None]:
    """Inside, what this thread prints and warns of is not seen, and ActsOutsideError is raised where it would act on files,
    processes or the network (`refuses` False: not raised, since it is known that it does not)."""
    if not _hooked:
        sys.addaudithook(_audit)  # stays, and asks one thread's word
        _hooked.append(True)
    streams = sys.stdout, sys.stderr
    held = _Held(streams[0]), _Held(streams[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.stdout, sys.stderr = held
        _here.acts = refuses
        try:
            yield
        finally:
            _here.acts = False
            for name, stream, own in zip(("stdout", "stderr"), streams, held, strict=True):
                if getattr(sys, name) is own:
                    setattr(sys, name, stream)
