"""Checks of values that only a run knows: `assert`, and loops that have to iterate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.errors import AssertionFailedError, InvalidArgumentError
from jitlab.ir import ArrayType, Node
from jitlab.ops.build import apply
from jitlab.ops.host import HostCall
from jitlab.ops.host import Input as Slot

from .host import rehearsing
from .positions import describe, here

if TYPE_CHECKING:
    from .state import Capture

_BOOL = ArrayType((), np.dtype(bool))


def add_check(capture: Capture, holds: Node, message: Callable[[], Any] | None) -> None:
    """`assert holds, message`, asked at each run, in program order."""
    text = "" if message is None else str(message())
    where = describe(here())

    def failed() -> Exception:
        return AssertionFailedError(text or "assertion failed", where=where)

    apply(_call(_Check("assert", failed), "an assert is checked by Python"), holds)


def add_run_check(capture: Capture, runs: Node, name: str) -> None:
    """A loop that gives a name has to iterate."""
    where = describe(here())

    def failed() -> Exception:
        return InvalidArgumentError(
            f"loop must iterate at least once to initialize {name}", where=where,
            why=f"{name} has no value before the loop, and is used after it", hint=f"give {name} a value before the loop",
        )  # fmt: skip

    apply(_call(_Check("loop_runs", failed), "whether the loop iterates is checked by Python"), runs)


def _call(function: Callable[..., Any], reason: str) -> HostCall:
    return HostCall(function, (Slot(0),), {}, (_BOOL,), "check", reason, effects=True)


class _Check:
    def __init__(self, name: str, failed: Callable[[], Exception]) -> None:
        self.__name__ = name
        self.failed = failed

    def __call__(self, holds: Any) -> Any:
        if not holds and rehearsing.get() is None:
            raise self.failed()
        return np.True_


__all__ = ["add_check", "add_run_check"]
