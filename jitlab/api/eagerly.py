"""`run_functions_eagerly`: every `function` runs as the Python it is, to look into it with a debugger."""

from __future__ import annotations

from collections.abc import Iterator

from jitlab import events
from jitlab.ir import outside
from jitlab.transactions import contextmanager

_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """From now on, call the Python body of each `function` with the arguments as they are (True), or trace again (False)."""
    global _eagerly
    if bool(run_eagerly) == _eagerly:
        return
    _eagerly = bool(run_eagerly)
    events.busy.everywhere(1 if _eagerly else -1)  # warm calls ask, too


@contextmanager
def as_python() -> Iterator[None]:
    """Inside, in this thread, each `function` and `jit` runs as the Python it is."""
    before = outside.is_python
    try:
        outside.is_python = True
        with events.busy:  # warm calls ask, too
            yield
    finally:
        outside.is_python = before


def functions_run_eagerly() -> bool:
    """Do functions run as Python?"""
    return _eagerly
