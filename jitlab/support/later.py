"""Modules that are loaded when they are first used, so that `import jitlab` loads what a first call needs.

A fork waits for what is being loaded: a module that another thread has begun would stay half made in the child for ever.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from .address_space import ask_for
from .locks import Released, shared

#: What a module takes, with those that it loads itself, generously.
MODULE_BYTES = 2 << 20

_lock = shared("imports")


def load(name: str) -> ModuleType:
    """The module of this name."""
    loaded = sys.modules.get(name)
    if loaded is not None and not getattr(loaded.__spec__, "_initializing", False):
        return loaded
    ask_for(MODULE_BYTES, f"loading {name}")
    with Released(_lock), _lock:
        return import_module(name)


class Later:
    """Stands for a module in a file that uses it: `ledger = Later("jitlab.api.retraces.ledger")`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(load(self._name), name)


def names_of(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: the names that modules of it have (module -> names), and those modules themselves."""
    found = {name: module for module, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name in found:
            value = getattr(load(f"{package}.{found[name]}"), name)
            vars(sys.modules[package])[name] = value
            return value
        if name in homes:
            return load(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__


@contextmanager
def collected_once() -> Iterator[None]:
    """Inside nothing is looked through for garbage; at the end what is new is, once, and counts as old from then on. Many
    collections inside would find nothing, and make one of everything there is due, which then falls into a first call."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect(1)
