"""`run_functions_eagerly`: every `function` runs as the Python it is, to look into it with a debugger."""

from __future__ import annotations

from collections.abc import Iterator

from jitlab import events
from jitlab.ir import outside
from jitlab.support.transactions import contextmanager

_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """The switch that makes every `jl.function` run as the Python it is, to step through one in a debugger.

    Args:
        run_eagerly: True: from now on call the Python bodies with the arguments as they are. False: trace again.

    Returns:
        None.

    Example:
        >>> jl.run_functions_eagerly(True)
        >>> jl.function(lambda x: type(x).__name__)(np.ones(2))
        'ndarray'
        >>> jl.run_functions_eagerly(False)
    """
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
    """Whether functions run as Python, as `run_functions_eagerly` has said.

    Returns:
        True or False.

    Example:
        >>> jl.functions_run_eagerly()
        False
    """
    return _eagerly
