"""What jitlab tells of a program, with the program's own lines: comparable between the places a program can run in."""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

from jitlab import events

FILES: dict[str, int] = {}
FACTS: list[Any] = []


def part(number: int) -> None:
    """The caller's file (or cell) is a part of the program."""
    FILES[sys._getframe(1).f_code.co_filename] = number


def spans(lines: Any) -> list[Any]:
    """Spans in the program, its files by number."""
    return sorted([FILES.get(file, file), *rest] for file, *rest in lines)


def told(event: events.Event) -> list[Any] | None:
    """The part of an event that does not change from run to run."""
    match event:
        case events.Traced():
            fix = str(event.fix or "")
            fix = re.sub(r"at the call in .*, line", "at the call in this file, line", fix)  # its name hangs on the place
            causes = [event.causes, event.argument, event.before, event.after, fix]
            if event.causes[0] == "redefined_function":  # where it was defined before depends on the place
                causes = [("first_call",), "", "", "", ""]
            site = [FILES.get(event.site[0], event.site[0]), event.site[1]]
            return ["traced", event.function, *causes, site, spans(event.lines)]
        case events.PlanMade():
            ops = [[op["op"], spans(op["lines"]), (op["reason"] or {}).get("code")] for op in event.plan["ops"]]
            return ["plan", event.function, ops]
        case events.StatementRan():
            return ["statement", event.reason, event.text, spans(event.lines)]
        case events.ValueFrozen():
            return ["frozen", event.what, spans(event.lines)]
    return None


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Call, and keep what is told of it, how it ended, and where."""
    heard: list[Any] = []
    ended: Any = "fine"
    with events.listen(heard.append):
        try:
            function(*args, **kwargs)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines = [[FILES[f.filename], f.lineno, f.name] for f in frames if f.filename in FILES]
            ended = [type(error).__name__, str(error).split("\n")[0], lines, where(error)]
    FACTS.append([[fact for fact in map(told, heard) if fact is not None], ended])


def where(error: Exception) -> list[str]:
    """What a designed error says of its place, and the notes below a user's own error: the lines, not the file's name."""
    text = [line for line in str(error).split("\n")[1:] if line.startswith("  where:")]
    notes = [line for note in getattr(error, "__notes__", ()) for line in note.split("\n")]
    return [line.split(", line ", 1)[-1] for line in (*text, *notes)]


def taken() -> str:
    """All facts as JSON, once."""
    text = json.dumps(FACTS)
    FACTS.clear()
    FILES.clear()
    return text
