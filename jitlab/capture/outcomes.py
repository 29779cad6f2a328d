"""Outcomes: how a block of converted code was left. None: at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
    """How a block was left is known at run time: `broke` and `returned` are True, False or traced bools.

    `value` is what was returned, where that happened; anything where not. Neither: the block ran to its end, or `continue`.
    `lacking` names the branch that has no return, for people.
    """

    broke: Any
    returned: Any
    value: Any = None
    lacking: str = "else"


Outcome = Jump | Returned | Mixed | None

__all__ = ["BREAK", "CONTINUE", "Jump", "Mixed", "Outcome", "Returned"]
