"""What a panel may ask: a closed list, each field checked. Nothing that comes over the wire is ever evaluated.

    @request("code", cell=Text(), cluster=Text(), stage=STAGES)
    def code(session, cell, cluster, stage):
        return {"code": ...}

A field's check is `str` (a short text), `int` (not negative), a tuple of allowed strings, or one of the classes below. Who
answers raises a JitlabError when it can't: its sentence is the reply. `answer` never raises.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jitlab.errors import JitlabError
from jitlab.support.later import load
from jitlab.support.lazy_dataclass import dataclass

from .jobs import Refused, sentence_of

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import CellRun, Session
    from jitlab.report import Report

Json = dict[str, Any]
Answer = Callable[..., Json]

#: The files that put functions on the list, loaded when a panel first asks.
ANSWERS = ("answers", "run_answers", "code_answer", "page_answer", "check_answer", "measuring_requests")

MOST_TEXT = 500  # characters of a name or an id
MOST_ITEMS = 1000

logger = logging.getLogger(__name__)


class Unfit(Exception):
    """A field that does not fit: the message says what would."""


class Check:
    """What a field may be: `take` returns the checked value or raises Unfit."""

    is_optional = False

    def take(self, value: Any) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Text(Check):
    """A text of at most so many characters."""

    most: int = MOST_TEXT
    least: int = 0

    def take(self, value: Any) -> str:
        if not isinstance(value, str):
            raise Unfit("a text")
        if not self.least <= len(value) <= self.most:
            raise Unfit(f"a text of {self.least} to {self.most} characters")
        return value


@dataclass(frozen=True)
class Whole(Check):
    """A whole number between two others, both allowed."""

    least: int = 0
    most: int = 2**53

    def take(self, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Unfit("a whole number")
        if not self.least <= value <= self.most:
            raise Unfit(f"a whole number from {self.least} to {self.most}")
        return value


@dataclass(frozen=True)
class OneOf(Check):
    """One of these texts."""

    values: tuple[str, ...]

    def take(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self.values:
            raise Unfit(f"one of {', '.join(self.values)}")
        return value


@dataclass(frozen=True)
class Many(Check):
    """A list, each item checked."""

    each: Any
    most: int = MOST_ITEMS

    def take(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Unfit("a list")
        if len(value) > self.most:
            raise Unfit(f"a list of at most {self.most}")
        check = as_check(self.each)
        return [check.take(item) for item in value]


@dataclass(frozen=True)
class Pair(Check):
    """A list of exactly two."""

    first: Any
    second: Any

    def take(self, value: Any) -> tuple[Any, Any]:
        if not isinstance(value, list) or len(value) != 2:
            raise Unfit("a list of two")
        return as_check(self.first).take(value[0]), as_check(self.second).take(value[1])


@dataclass(frozen=True)
class Only(Check):
    """An object with exactly one of these keys."""

    keys: Mapping[str, Any]

    def take(self, value: Any) -> Json:
        if not isinstance(value, dict) or len(value) != 1 or not set(value) <= set(self.keys):
            raise Unfit(f"an object with {' or '.join(self.keys)}")
        ((key, item),) = value.items()
        return {key: as_check(self.keys[key]).take(item)}


@dataclass(frozen=True)
class Maybe(Check):
    """May be absent or null: the answer gets None."""

    check: Any
    is_optional = True

    def take(self, value: Any) -> Any:
        return None if value is None else as_check(self.check).take(value)


def as_check(field: Any) -> Check:
    """`str`, `int` and tuples of texts are short for their checks."""
    if field is str:
        return Text()
    if field is int:
        return Whole()
    if isinstance(field, tuple):
        return OneOf(field)
    assert isinstance(field, Check), field
    return field


@dataclass(frozen=True)
class Request:
    """One entry of the list."""

    want: str
    fields: Mapping[str, Check]
    run: Answer

    def checked(self, body: Mapping[str, Any]) -> Json:
        values = {}
        for name, check in self.fields.items():
            if name not in body and not check.is_optional:
                raise Unfit(f"{name} is missing")
            try:
                values[name] = check.take(body.get(name))
            except Unfit as unfit:
                raise Unfit(f"{name} has to be {unfit}") from None
        return values


def request(want: str, /, **fields: Any) -> Callable[[Answer], Answer]:
    """Puts a function on the list: it gets the session and the checked fields, and returns the reply."""

    def put(run: Answer) -> Answer:
        assert want not in REQUESTS or REQUESTS[want].run.__module__ == run.__module__, want
        REQUESTS[want] = Request(want, {name: as_check(field) for name, field in fields.items()}, run)
        return run

    return put


def listed() -> dict[str, Request]:
    """The list, with all answers."""
    for name in ANSWERS:
        load(f"{__package__}.{name}")
    return REQUESTS


def answer(session: Session, body: Any) -> Json:
    """The reply to what a panel asks; `{"error": sentence}` for everything that is not on the list. Never raises."""
    try:
        known = listed()
        want = body.get("want") if isinstance(body, dict) else None
        found = known.get(want) if isinstance(want, str) else None
        if found is None:
            return {"error": f"jitlab answers {', '.join(sorted(known))}. It does not know what this panel asks."}
        return found.run(session, **found.checked(body))
    except Unfit as unfit:
        return {"error": f"jitlab can't answer {body['want']}: {unfit}."}
    except JitlabError as error:
        return {"error": sentence_of(error)}
    except Exception as error:
        logger.warning("jitlab could not answer its panel", exc_info=True)
        return {"error": f"jitlab could not answer: {type(error).__name__}. The kernel's log has the details."}


def run_of(session: Session, cell: str) -> CellRun:
    """The newest recorded run of a cell; for who answers."""
    run = session.cells.get(cell)
    if run is None:
        raise Refused("jitlab has no report of this cell.", hint="run the cell again")
    return run


def report_of(session: Session, cell: str) -> Report:
    """The newest report of a cell; for who answers."""
    report = session.report_of(run_of(session, cell))
    if report is None:
        raise Refused("jitlab has no report of this cell.", hint="run the cell again")
    return report


REQUESTS: dict[str, Request] = {}
