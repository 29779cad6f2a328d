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
    "collecting", "listeners", "conversions", "programs", "listings", "dumps", "plans", "places", "calls", "trees", "sources",
    "texts", "room", "library", "compiler",
)  # fmt: skip


class _Lock(Protocol):
    def acquire(self) -> Any: ...

    def release(self) -> Any: ...


def shared(name: str, lock: _Lock | None = None) -> Any:
    """The lock of the process that has this name in ORDER: `lock`, or a new one."""
    assert name in ORDER
    made = _shared[name] = lock or threading.RLock()
    return made


def own(owner: Any) -> None:
    """Makes the object's own locks: `LOCKS` of its class, name -> kind."""
    _renew(owner)
    _owners.add(owner)


def _renew(owner: Any) -> None:
    for name, kind in owner.LOCKS.items():
        setattr(owner, name, kind())


def _before() -> None:
    for name in ORDER:
        if name in _shared:
            _shared[name].acquire()


def _after_in_parent() -> None:
    for lock in _shared.values():
        try:
            lock.release()
        except RuntimeError:  # an interrupt came before it was taken
            continue


def _after_in_child() -> None:
    _after_in_parent()
    for owner in list(_owners):
        _renew(owner)


_shared: dict[str, _Lock] = {}
_owners: WeakSet[Any] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
