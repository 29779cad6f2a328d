"""Locks that a fork leaves usable: a child has one thread, and what another one held would stay locked in it for ever.

Locks of the whole process are taken before a fork, in the order in which they nest, so that the child finds tables whole.
Locks of one object are new in the child.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - it and logging take locks of their own before a fork. What was registered last
import logging  # noqa: F401 - is called first: ours are taken before theirs, as by a thread that comes to hold both
import os
import threading
from typing import Any, Protocol
from weakref import WeakSet

#: The locks of the process: who holds one may wait for those behind it. The collector may come at any time, and what it frees
#: may wait for a target's compiler, the last one.
ORDER = (
    "deciding", "collecting", "listeners", "conversions", "programs", "listings", "dumps", "plans", "places", "calls", "trees",
    "sources", "texts", "room", "library", "imports", "improving", "compiler",
)  # fmt: skip


class _Lock(Protocol):
    """A re-entrant one."""

    def acquire(self) -> Any: ...

    def release(self) -> Any: ...

    def _is_owned(self) -> bool: ...


class Released:
    """`with Released(lock), lock:` leaves the lock free, whatever comes where it is given back: an exception in the place of
    that call (a profiler's, or there is no memory for it) would leave it taken, and who waits for it would wait for ever."""

    __slots__ = ("_is_held", "_lock")

    def __init__(self, lock: Any) -> None:
        self._lock, self._is_held = lock, lock._is_owned()  # by a block around this one

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        while not self._is_held and self._lock._is_owned():
            self._lock.release()


def give_back(lock: _Lock) -> None:
    """A lock, however often this thread has taken it."""
    while lock._is_owned():
        lock.release()


def shared(name: str, lock: _Lock | None = None) -> Any:
    """The lock of the process that has this name in ORDER: `lock`, or a new one."""
    assert name in ORDER
    made: Any = lock or threading.RLock()
    _shared[name] = made
    return made


def own(owner: Any) -> None:
    """Makes the object's own locks: `LOCKS` of its class, name -> kind."""
    _renew(owner)
    _owners.add(owner)


def _renew(owner: Any) -> None:
    for name, kind in owner.LOCKS.items():
        setattr(owner, name, kind())


def _before() -> None:
    _taken.clear()
    for name in ORDER:
        if name in _shared:
            lock = _shared[name]
            _taken.append((lock, lock._is_owned()))
            lock.acquire()


def _after_in_parent() -> None:
    _release(_taken.copy())


def _release(taken: list[tuple[_Lock, bool]]) -> None:
    """Each of them, whatever comes at one."""
    if not taken:
        return
    lock, was_held = taken[0]
    try:
        if was_held:
            lock.release()
        else:
            give_back(lock)
    except BaseException:
        if not was_held:
            give_back(lock)
        raise
    finally:
        _release(taken[1:])


def _after_in_child() -> None:
    _after_in_parent()
    for owner in list(_owners):
        _renew(owner)


_shared: dict[str, _Lock] = {}
_taken: list[tuple[_Lock, bool]] = []  # before a fork, and whether this thread held it before
_owners: WeakSet[Any] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
