"""What a scope decides of the edges made inside it, which calls led to a node, and whether it is of a gradient. They stay with
a node through every pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from jitlab.ir.types import Source
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import contextmanager, variable

#: Attributes of ours: no contract knows them, and no operation shows them.
DECISIONS, CALLS, COTANGENT = "_JlDecisions", "_JlCalls", "_JlCotangent"
CALLED = "_JlCalled"  # of a function that is called inside a scope: the scope's marks are the call's, not its operations'
OWN = frozenset({DECISIONS, CALLS, COTANGENT, CALLED})


@dataclass(frozen=True, eq=False)
class Decision:
    """One entry of `jit_scope(cut=..., fuse=...)`: pairs of kinds or names of operations, both made inside."""

    cut: tuple[tuple[str, str], ...] = ()
    fuse: tuple[tuple[str, str], ...] = ()
    at: Source | None = None  # the line that says so; None where no program does


@contextmanager
def deciding(decision: Decision) -> Iterator[None]:
    """What is made inside is decided of; the recording it is in keeps a list of such scopes."""
    if (entered := _entered.get()) is not None:
        entered.append(decision)
    token = _decisions.set((*_decisions.get(), decision))
    try:
        yield
    finally:
        _decisions.reset(token)


@contextmanager
def called_at(site: Source | None) -> Iterator[None]:
    """What is made inside was called for by this line; None: nobody's."""
    if site is None:
        yield
        return
    token = _calls.set((*_calls.get(), site))
    try:
        yield
    finally:
        _calls.reset(token)


@contextmanager
def pulling_back() -> Iterator[None]:
    """What is made inside is of a gradient: its position is that of what is differentiated."""
    token = _pulling_back.set(True)
    try:
        yield
    finally:
        _pulling_back.reset(token)


@contextmanager
def called_by_nobody(entered: list[Decision]) -> Iterator[None]:
    """A recording that begins inside another has calls and scopes of its own; `entered` takes the scopes that decide."""
    tokens = _decisions.set(()), _entered.set(entered), _calls.set(())
    try:
        yield
    finally:
        _decisions.reset(tokens[0])
        _entered.reset(tokens[1])
        _calls.reset(tokens[2])


def made_now() -> dict[str, Any]:
    """The attributes of what is made now."""
    found: dict[str, Any] = {}
    if decisions := _decisions.get():
        found[DECISIONS] = decisions
    if calls := _calls.get():
        found[CALLS] = calls
    if _pulling_back.get():
        found[COTANGENT] = True
    return found


@contextmanager
def made_as(attrs: Mapping[str, Any]) -> Iterator[None]:
    """What is made inside was made when `made_now` gave these attributes."""
    tokens = _decisions.set(attrs.get(DECISIONS, ())), _calls.set(attrs.get(CALLS, ()))
    try:
        yield
    finally:
        _decisions.reset(tokens[0])
        _calls.reset(tokens[1])


def absorbed(attrs: dict[str, Any], others: Iterable[Decision]) -> None:
    """A node takes another's place: what was decided of that one holds for it, too."""
    attrs[DECISIONS] = tuple(dict.fromkeys((*attrs.get(DECISIONS, ()), *others)))


_decisions: ContextVar[tuple[Decision, ...]] = variable("jitlab_decisions", ())
_entered: ContextVar[list[Decision] | None] = variable("jitlab_entered", None)
_pulling_back: ContextVar[bool] = variable("jitlab_pulling_back", False)
_calls: ContextVar[tuple[Source, ...]] = variable("jitlab_calls", ())
