"""Outcomes: how a block of converted code was left. None: at its end."""

from __future__ import annotations

from typing import Any

from jitlab.support.lazy_dataclass import dataclass


class Jump:
    """`break` or `continue`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


BREAK, CONTINUE = Jump("break"), Jump("continue")


@dataclass(frozen=True, eq=False)
class Returned:
    """`return value`."""

    value: Any


@dataclass(frozen=True, eq=False)
class Mixed:
    """How a block was left is known at run time: each of three ways is True, False or a traced bool; none: it ran to its end.

    `value` is what was returned, where that happened; anything where not. `lacking` names the branch that has no return.
    """

    broke: Any
    returned: Any
    continued: Any = False
    value: Any = None
    lacking: str = "else"


Outcome = Jump | Returned | Mixed | None

__all__ = ["BREAK", "CONTINUE", "Jump", "Mixed", "Outcome", "Returned"]
