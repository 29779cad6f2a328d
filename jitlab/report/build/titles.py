"""What a report calls functions and their traces: two functions of one name are told apart, in the order in which they came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitlab.events import FunctionName

if TYPE_CHECKING:
    from jitlab.report.recording import Recording


class Titles:
    """`function(name)`: "f", and "f (2)" for another one of that name. A function that was defined again in the place of the
    first keeps its name. `plan(function, trace, cluster)`: the title of the plan that a launch is of."""

    def __init__(self, recording: Recording) -> None:
        self._places: dict[str, list[Any]] = {}
        self._plans: dict[Any, str] = {}
        for event in recording.traces:
            self.function(event.function)

    def function(self, name: str) -> str:
        places = self._places.setdefault(str(name), [])
        place = name.place if isinstance(name, FunctionName) else None
        if place not in places:
            places.append(place)
        at = places.index(place) + 1
        return str(name) if at == 1 else f"{name} ({at})"

    def trace(self, function: str, trace: int) -> str:
        """Of a trace whose plan is not known."""
        return f"{self.function(function)} #{trace}"

    def has_plan(self, function: str, trace: int, clusters: list[str], title: str) -> None:
        """A plan has that title."""
        self._plans.setdefault((function, trace), title)
        self._plans.update(dict.fromkeys(clusters, title))

    def plan(self, function: str, trace: int, cluster: str | None = None) -> str:
        if cluster in self._plans:
            return self._plans[cluster]
        return self._plans.get((function, trace)) or self.trace(function, trace)
