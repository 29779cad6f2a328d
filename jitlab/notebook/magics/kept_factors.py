"""How many times as fast as NumPy a cell was, kept while the cell and what it finds stay the same: measuring takes longer than
the cell. Kept is the factor of both sides' rounds, never the time of one side, which says nothing beside another run's."""

from __future__ import annotations

import ast
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from jitlab import events
from jitlab.capture.rewrite.liveness import read_before_bound
from jitlab.notebook.rpc.inputs import forms
from jitlab.report import Recording
from jitlab.runtime import watching
from jitlab.support.lazy_dataclass import dataclass

MOST = 64  # cells

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Kept:
    """A comparison, the time of day it was made, and what ran compiled in that run of the cell."""

    compared: events.Compared
    at: str
    ran: tuple[int, ...]


class Ran:
    """The executables that run while `watching`, each once, by their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[int, None] = {}

    def watching(self) -> AbstractContextManager[None]:
        return watching(lambda executable, arguments: self._numbers.setdefault(executable.number))

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(self._numbers)


class KeptFactors:
    """Of the newest cells."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, Kept] = OrderedDict()

    def find(self, key: Key) -> Kept | None:
        return self._known.get(key)

    def keep(self, key: Key, compared: events.Compared, ran: Ran) -> None:
        self._known[key] = Kept(compared, time.strftime("%H:%M"), ran.numbers)
        self._known.move_to_end(key)
        if len(self._known) > MOST:
            self._known.popitem(last=False)

    def tell(self, key: Key, ran: Ran, recording: Recording | None) -> str:
        """Tell a run of the same cell its factor. Returns why it has none: other code ran this time, or Python took over."""
        kept = self._known[key]
        if recording is not None and any(tally.fell_back for tally in recording.statements.values()):
            return "this run fell back to Python; the factor is that of runs that do not"
        if recording is None or kept.ran != ran.numbers:
            del self._known[key]
            return "other code ran than in the run that was measured; run the cell again"
        recording.listen(events.ComparedBefore(compared=kept.compared, at=kept.at))
        return ""


def key_of(nodes: Sequence[ast.stmt], options: str, namespace: Mapping[str, Any]) -> Key:
    """What a cell and what it finds are known by: its code, and of each name that it reads the type and size."""
    return ast.dump(ast.Module(list(nodes), [])), options, *forms(read_before_bound(nodes), namespace).items()


__all__ = ["KeptFactors", "Ran", "key_of"]
