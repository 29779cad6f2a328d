"""Messages: a code of the table and what its text is filled with. A caller that decides on one compares codes, never texts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any

from jitlab.support.later import Later
from jitlab.support.lazy_dataclass import dataclass

from . import units

json = Later("json")

Table = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Message:
    """What is said of something: `code` is "<group>.<name>" of the table, `args` are the names and numbers in its text."""

    code: str
    args: dict[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.code)

    @property
    def name(self) -> str:
        """The code without its group, as it stands in a report, whose key says the group."""
        return self.code.partition(".")[2]

    def __str__(self) -> str:
        return text(self.code, **self.args)

    def to_json(self) -> dict[str, Any]:
        return {"code": self.name, "args": plain(self.args), "text": str(self)}


def text(code: str, /, **args: Any) -> str:
    """The text of a code: "{x}" becomes the argument `x`, "{n:size}", "{n:duration}", "{n:percent}" a number with its unit, and
    "{n:counted kernel}" one with a noun. Raises KeyError for a code that the table has not."""
    group, _, name = code.partition(".")
    return re.sub(_PLACE, lambda found: _filled(args[found[1]], found[2], found[3]), _table()[group][name])


def plain(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as JSON has them: of a message within, its code and its arguments."""
    return {k: {"code": v.code, "args": plain(v.args)} if isinstance(v, Message) else v for k, v in args.items()}


def by_contract(said: str) -> str:
    """A text with the contract's names, `tf.function` and its like, as who uses `jitlab.compat.tensorflow` knows them; for all
    others with jitlab's: `jl.function`, and a dtype as NumPy calls it."""
    if _CONTRACT in sys.modules:
        return said
    return re.sub(rf"{_CONTRACTS}({_OWN})\b", r"jl.\1", re.sub(rf"{_CONTRACTS}(?!{_OWN}\b)", "", said))


def capital(said: str) -> str:
    """A text that begins with a capital letter, as a sentence does."""
    return said[:1].upper() + said[1:]


def codes(group: str) -> frozenset[str]:
    """The codes of a group."""
    return frozenset(_table()[group])


def _filled(value: Any, unit: str | None, noun: str | None) -> str:
    if unit is None:
        return str(value)
    return units.counted(value, noun) if noun else _UNITS[unit](value)


@cache
def _table() -> Table:
    """Read when a text is first asked for, never at import."""
    with open(os.path.join(os.path.dirname(__file__), "table.json"), encoding="utf-8") as file:
        read: Table = json.load(file)
    return read


_CONTRACT = "jitlab.compat.tensorflow"
_CONTRACTS = r"\b(?:xla\.experimental|tf)\."
_OWN = "(?:function|jit_scope|Operation|Tensor|Variables?)"

_PLACE = r"\{(\w+)(?::(\w+)(?: (\w+))?)?\}"
_UNITS: dict[str, Any] = {"size": units.size, "duration": units.duration, "percent": units.percent}
