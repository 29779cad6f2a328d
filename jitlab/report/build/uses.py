"""Which of a function's traces are used: their calls and times, and those that were captured and never used again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from jitlab.messages import units
from jitlab.messages.escape import clean

MOST_FUNCTIONS = 5
MOST_NAMED = 6


def uses_in_words(data: Mapping[str, Any]) -> list[str]:
    """A line for each function of several traces, the one with most calls first."""
    functions: dict[str, list[Mapping[str, Any]]] = {}
    for plan in data["plans"]:
        if plan.get("calls"):
            functions.setdefault(plan["function"], []).append(plan)
    again = {retrace["function"] for retrace in data["retraces"] if not retrace["first"]}
    several = [
        (name, plans)
        for name, plans in functions.items()
        if len(plans) > 1 and (name in again or any(plan["calls"] > 1 for plan in plans))  # pieces that ran once are no news
    ]
    several.sort(key=lambda entry: -sum(plan["calls"] for plan in entry[1]))
    return [_line(name, plans, retraced=name in again) for name, plans in several[:MOST_FUNCTIONS]]


def _line(name: str, plans: Sequence[Mapping[str, Any]], *, retraced: bool) -> str:
    numbers = Counter(plan["trace"] for plan in plans)
    if len(numbers) < len(plans):  # one definition that several functions were made of
        calls = sum(plan["calls"] for plan in plans)
        functions = max(numbers.values())
        return f"{clean(name)}: {units.counted(calls, 'call')} of {len(plans)} traces of {functions} functions."
    calls = sum(plan["calls"] for plan in plans)
    text = f"{clean(name)}: {units.counted(calls, 'call')} of {units.counted(len(plans), 'trace')}"
    busy = max(plans, key=lambda plan: int(plan["calls"]))
    if busy["calls"] > 1:
        median = (busy.get("quantiles") or {}).get("median")
        typical = f", median {units.duration(median)}" if median else ""
        text += f"; #{busy['trace']} had {busy['calls']}{typical}"
    once = [f"#{plan['trace']}" for plan in plans if plan["calls"] == 1 and retraced]
    if once:
        more = f" and {len(once) - MOST_NAMED} more" if len(once) > MOST_NAMED else ""
        text += f"; used only once: {', '.join(once[:MOST_NAMED])}{more}"
    return text + "."
