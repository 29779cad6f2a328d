"""`run_functions_eagerly`: every `function` runs as the Python it is, to look into it with a debugger (§3.17)."""

from __future__ import annotations

from jitlab import events

_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """From now on, call the Python body of each `function` with the arguments as they are (True), or trace again (False)."""
    global _eagerly
    if bool(run_eagerly) == _eagerly:
        return
    _eagerly = bool(run_eagerly)
    if _eagerly:
        events.busy.__enter__()  # warm calls ask, too
    else:
        events.busy.__exit__()


def functions_run_eagerly() -> bool:
    """Do functions run as Python?"""
    return _eagerly
