"""Work that happens whole or not at all.

An interrupt may come between any two steps of Python's: after a state was entered and before the `try` that would leave it,
between two tables that belong together. So what this thread is in the midst of is noted where such work begins, with the tables
that it changes, and put back where it ends by an exception of any kind.

    with Whole(function, ledger):   # `TABLES` of each: the fields that hold what it knows
        ...
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from typing import Any, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

import numpy as np

from .address_space import have_thread_blocks

P = ParamSpec("P")
T = TypeVar("T")

_kept: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = []


def keep(read: Callable[[], Any], put_back: Callable[[Any], Any]) -> None:
    """`read()` says what this thread is in the midst of, and `put_back` takes that."""
    _kept.append((read, put_back))


keep(np.geterr, lambda state: np.seterr(**state))  # where `np.errstate` was entered and not left


def variable(name: str, default: T) -> ContextVar[T]:
    """A variable of what a thread (or task) is in the midst of."""
    made = ContextVar(name, default=default)
    keep(made.get, made.set)
    return made


class _Manager(contextlib._GeneratorContextManager):  # type: ignore[type-arg]
    """One of `contextlib.contextmanager`, which is known to be open. The end of one that an interrupt left open would come when
    the collector finds it, in the midst of other work: `Whole` ends it in its way, and keeps it from ending again."""

    def __enter__(self) -> Any:
        _open.managers.append(self)
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        try:
            return super().__exit__(*error)
        finally:
            if inspect.getgeneratorstate(self.gen) == inspect.GEN_CLOSED:  # else it has not ended: `Whole` looks after it
                _open.managers[:] = [other for other in _open.managers if other is not self]

    def end(self) -> None:
        """End one that was left open. What cannot be now (no memory for it) never is, also not with the process: the collector
        would end it in the midst of other work."""
        with contextlib.suppress(BaseException):
            self.gen.close()
        if inspect.getgeneratorstate(self.gen) != inspect.GEN_CLOSED:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))


class _Open(threading.local):
    """What this thread is inside of, innermost last."""

    def __init__(self) -> None:
        self.managers: list[_Manager] = []


_open = _Open()


def contextmanager(function: Callable[P, Iterator[T]]) -> Callable[P, contextlib.AbstractContextManager[T]]:
    """As `contextlib.contextmanager`, for what a thread is in the midst of."""

    @functools.wraps(function)
    def made(*args: P.args, **kwargs: P.kwargs) -> Any:
        return _Manager(function, args, kwargs)  # type: ignore[arg-type]

    return made


def quietly(function: Callable[P, T]) -> Callable[P, T]:
    """The function without NumPy's warnings and errors of floating-point numbers. It runs in a copy of its caller's context:
    wherever an interrupt comes, `np.errstate` is the caller's afterwards (an interrupt in the midst of `errstate.__enter__`
    would leave it ignored for ever)."""

    @functools.wraps(function)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> T:
        return copy_context().run(_quiet, function, args, kwargs)

    return quiet


def _quiet(function: Callable[..., T], args: Any, kwargs: Any) -> T:
    _ignore()
    return function(*args, **kwargs)


def _ignorer() -> Callable[[], object]:
    """What has NumPy ignore errors of floating-point numbers in this context: what `np.seterr` sets, made once for each state
    that it changes, which takes a fifth of the time; `np.seterr` itself where NumPy keeps its state otherwise."""
    umath = np._core.umath  # type: ignore[attr-defined]
    try:
        variable, make = umath._extobj_contextvar, umath._make_extobj
        known = [(variable.get(), make(all="ignore"))]
    except (AttributeError, LookupError, TypeError):
        return functools.partial(np.seterr, all="ignore")

    def ignore() -> None:
        now = variable.get()
        before, ignoring = known[0]
        if now is not before:
            ignoring = make(all="ignore")
            known[0] = now, ignoring
        variable.set(ignoring)

    return ignore


_ignore = _ignorer()


class Begun(Protocol):
    """Work of a thread. A fork makes children in which that thread is not: there `put_back` leaves what was before."""

    thread: int

    def put_back(self) -> None: ...


class Whole:
    """Inside, what is done happens whole, or the thread's state and the owners' tables are what they were before. Whoever else
    changes such tables holds the same lock."""

    __slots__ = ("__weakref__", "_depth", "_owners", "_states", "_tables", "thread")

    def __init__(self, *owners: Any) -> None:
        self._owners = owners

    def __enter__(self) -> None:
        have_thread_blocks()
        self._states = [read() for read, _ in _kept]
        self._depth = len(_open.managers)
        self._tables = [{name: _copied(getattr(owner, name)) for name in owner.TABLES} for owner in self._owners]
        self.thread = threading.get_ident()
        under_way.add(self)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        under_way.discard(self)
        if kind is None:
            return
        self.put_back()
        for manager in reversed(_open.managers[self._depth :]):
            manager.end()
        del _open.managers[self._depth :]
        for (_, put_back), state in zip(_kept, self._states, strict=True):
            put_back(state)

    def put_back(self) -> None:
        for owner, tables in zip(self._owners, self._tables, strict=True):
            vars(owner).update(tables)


def _after_fork() -> None:
    """What other threads had begun nobody ends in the child."""
    for begun in list(under_way):
        if begun.thread != threading.get_ident():
            begun.put_back()


under_way: WeakSet[Begun] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _copied(table: Any) -> Any:
    """A table, and the lists in it, as they are now."""
    if isinstance(table, dict):
        made = table.copy()
        if not made:
            return made
        for key, value in list(made.items()):  # not of `table`, in which calls of other threads move what they run to the end
            if type(value) is list:
                made[key] = value.copy()
        return made
    return table.copy() if isinstance(table, (list, set)) else table


class Undisturbed:
    """Mistakes of our own inside never disturb the user's program: they are logged once a place."""

    _logged: set[str] = set()

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool:
        if isinstance(error, Exception):
            if self.what not in self._logged:
                self._logged.add(self.what)
                logging.getLogger("jitlab").warning("jitlab %s", self.what, exc_info=error)
            return True
        return False
