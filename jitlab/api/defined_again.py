"""Definitions that are executed again with equal code: the newest `jit` function of one takes over what those before it have
recorded, where the guards hold. (A cell that runs again records nothing.)"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from jitlab.capture import CallTrace, Change
from jitlab.capture.guards.equal_code import Defined
from jitlab.compile import settled
from jitlab.config import config
from jitlab.costs import Costs
from jitlab.flags import read_flags
from jitlab.ir import Options
from jitlab.support.transactions import Whole

from .functions.dispatch import Dispatched
from .settling import MOST_KINDS, Kind, Trial

#: By where it stands the newest function of a definition, as long as it lives.
_newest: WeakValueDictionary[Hashable, Successor] = WeakValueDictionary()


class Earlier:
    """What functions of equal code, defined before, have recorded and nobody has taken over: by the key of a call each trace,
    with the function that its guards name. `number`: the greatest of the traces'."""

    def __init__(self) -> None:
        self.traces: dict[Any, list[tuple[CallTrace, Defined]]] = {}
        self.trials: dict[Kind, Trial] = {}  # what is known of which way calls go, of `jit` functions
        self.number = 0

    def add(self, before: Successor, defined: Defined) -> None:
        """What the function that was the newest leaves."""
        for trace, key in reversed(list(before._recent.values())):
            if isinstance(trace, CallTrace) and trace.lookup.is_of_functions:
                self.traces.setdefault(key, []).append((trace, defined))
        for key, older in list(before._earlier.traces.items()):
            self.traces[key] = [*self.traces.get(key, ()), *older]
        self.trials = {**before._earlier.trials, **{kind: t for kind, t in before._trials.items() if _is_of_no_class(kind)}}
        for kind in list(self.trials)[: max(0, len(self.trials) - MOST_KINDS)]:
            del self.trials[kind]
        self.number = max(before._last_number, before._earlier.number)
        count = sum(map(len, self.traces.values()))
        while count > config.max_traces:
            count -= len(self.traces.popitem()[1])

    def found(self, key: Any, at: Any, function: Any, options: Options, *, taken: bool) -> CallTrace | None:
        """A trace that serves a call of `function` with these options, as if made for it; `taken`: it is nobody else's then."""
        known = self.traces.get(key, [])
        for entry in known:
            trace, defined = entry
            exchange = defined.exchange(function) if getattr(trace.executable, "options", None) == options else None
            made = None if exchange is None else trace.renewed(at, exchange)
            if made is not None:
                if taken:
                    known.remove(entry)
                return made
        return None

    def failed(self, at: Any, function: Any) -> list[tuple[CallTrace, Change]]:
        """Of each trace the guard that keeps it from a call of `function`."""
        entries = [entry for known in list(self.traces.values()) for entry in list(known)]
        return [(trace, trace.why(at, defined.exchange(function) or {})) for trace, defined in entries]


def _is_of_no_class(kind: Kind) -> bool:
    """It names no class of the user's, which would stay alive."""
    return all(part.__module__ in ("builtins", "numpy") for part in kind if isinstance(part, type))


class Successor(Dispatched):
    """A function that takes over what was recorded for equal code."""

    _traces: dict[Any, list[Any]]
    _recent: Any
    _last_number: int  # of the traces: those of equal code that was defined before have numbers, too
    _earlier: Earlier
    _trials: dict[Kind, Trial]
    options: Any
    _stages: Options

    def __jitlab_definition__(self) -> tuple[Any, str]:
        return self.python_function, str(self.options)

    def _follow(self, kind: type) -> None:
        """Take the place of the newest function of equal code and options."""
        self._earlier = Earlier()
        known, python = Defined.of(self.python_function), self.python_function
        if known is None or known.function is not python or not known.is_users:
            return
        code = known.code
        stands = id(known.function.__globals__), code.co_filename, code.co_firstlineno, known.function.__qualname__
        place = kind, str(self.options), *stands
        before = _newest.get(place)
        _newest[place] = self
        defined = None if before is None else Defined.of(before.python_function)
        if before is not None and defined is not None and defined.exchange(python):
            self._earlier.add(before, defined)
            self._last_number = self._earlier.number
            self.ledger.follows = bool(self._earlier.traces)

    def _renewed(self, key: Any, at: Sequence[Any], *, serves: bool = False) -> CallTrace | None:
        """A trace that fits if functions of equal code are the same: of this one, or of one that was defined before. `serves`:
        from now on it is kept for such calls."""
        for trace in self._traces.get(key, ()):
            renewed: CallTrace | None = trace.renewed(at)
            if renewed is not None:
                if serves:
                    self._put(key, trace, renewed)
                return renewed
        if not self._earlier.traces.get(key) or read_flags().given:  # a flag may ask for more than code
            return None
        options = settled(self._stages)
        if not serves:
            return self._earlier.found(key, at, self.python_function, options, taken=False)
        with Whole(self, self.ledger):
            taken = self._earlier.found(key, at, self.python_function, options, taken=True)
            if taken is not None:
                first = taken.costs.whole or taken.costs  # of the function that recorded it: no chain of all those since
                taken.costs, taken.stays_compiled = Costs(first), False
                self.ledger.took_over(taken)
                self._keep(key, taken)
        return taken

    def _put(self, key: Any, trace: CallTrace, renewed: CallTrace) -> None:
        """A trace in the place of another."""
        with Whole(self):
            self._traces[key] = [renewed if other is trace else other for other in self._traces[key]]
            self._recent.pop(id(trace), None)
            self._recent[id(renewed)] = renewed, key
            self._in_family(key, renewed)

    def _in_family(self, key: Any, trace: Any) -> None:
        """Calls of other sizes may find it, too."""
        raise NotImplementedError

    def _keep(self, key: Any, trace: Any) -> None:
        """Calls of such a kind find the trace."""
        raise NotImplementedError
