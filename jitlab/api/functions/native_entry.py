"""Calls that C answers: signatures that are called often, and kinds of calls that run as Python, have a C function in front."""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jitlab import events
from jitlab.api.settling import COMPILED, PYTHON, Kind
from jitlab.capture import CallTrace, NotReplayable, Trace
from jitlab.capture.drivers.piece_traces import check_stream
from jitlab.capture.guards.described_calls import Described, Undescribed
from jitlab.capture.guards.described_lookups import DescribedLookup, receivers_of
from jitlab.capture.guards.tracetypes import VariableType
from jitlab.config import settle_is_off
from jitlab.ir import plain
from jitlab.ir.plans.call_forms import ArrayOf, CallForm, Is, Named, NumberOf, Output, Packed
from jitlab.runtime import Executable
from jitlab.support import locks
from jitlab.support.direct_calls import DirectCalls
from jitlab.targets.devices import default_target
from jitlab.targets.target import Entry, PlainCall

from .weak_methods import WeakMethod

if TYPE_CHECKING:
    from .jit import Jit
    from .tracing import Function

#: A trace that was called so often is run by C; a `function` has at most so many C functions in front.
WARM_CALLS, MAX_ENTRIES = 5, 4

#: In the class of one such function: the class that it was made of.
_BEHIND = "_class_behind"


def add_entry(
    function: Function, call: Callable[..., Any], trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any],
    leaves: Sequence[Any],
) -> None:  # fmt: skip
    """From now on a C function answers such calls, where that can be; `call(function, ...)` answers the others. `leaves`: the
    arrays and numbers of this call, as its key has them."""
    trace.next_entry *= 2
    executable = trace.executable
    if len(function._warm) >= MAX_ENTRIES or not isinstance(executable, Executable):
        return
    form = form_of_traced(function, trace, args, kwargs, leaves)
    if form is None or known_by(trace, form) in function._forms:
        return
    warm = executable.warm(form, [leaves[leaf] for leaf in trace.leaves])
    if warm is not None:
        put_in_front(function, call, trace, form, warm, MAX_ENTRIES)


def form_of_traced(
    function: Function, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any]
) -> CallForm | None:
    """The form of a call that a trace of a `function` serves; None where machine code cannot compare it."""
    if isinstance(function.python_function, WeakMethod):
        return None
    captured = len(trace.inputs) > len(trace.leaves)
    recording = function._recent.get(id(trace))
    if trace.guards or trace.same or trace.draws or captured or recording is None:
        return None
    if any(isinstance(t, VariableType) for t in recording.concrete.function_type.tensors()):
        return None
    described = Described(exact=bool(trace.layouts))
    try:
        values, _ = described.arguments(function._signature.signature, args, kwargs)
        if len(leaves) != len(described.leaves) or any(x is not y for x, y in zip(leaves, described.leaves, strict=True)):
            return None  # what comes is converted first
        inputs = tuple(described.first.get(leaf, leaf) for leaf in trace.leaves)
        return CallForm(
            len(args), tuple(map(_interned, kwargs)), values, inputs, trace.gives(inputs.__getitem__),
            distinct=described.distinct(), writes=tuple((inputs[n], output) for n, output in trace.writes),
        )  # fmt: skip
    except Undescribed:
        return None


def put_in_front(
    function: Function, call: Callable[..., Any], trace: Trace, form: CallForm, warm: Entry, most: int
) -> ctypes.c_int64 | None:
    """A C function for calls of this form, which are given the count of those that it answers; None where there is one."""
    seen, counter = known_by(trace, form), ctypes.c_int64(0)
    with locks.Released(function._lock), function._lock:  # a thread at a time: the class is this function's own by then
        if seen in function._forms or len(function._warm) >= most:
            return None
        otherwise = function._warm[-1][0] if function._warm else _Otherwise(call, function)
        entry, keep = warm.make(events.busy.word, counter, otherwise, function.name)
        trace.costs.count_natively(counter)
        function._counters.append(counter)
        function._forms.add(seen)
        kept = [*function._warm, (entry, keep)]
        if class_of(function) is type(function):
            _set_in_front(function, entry, {}, kept)
        else:
            type(function).__call__ = entry  # type: ignore[method-assign]
        function._warm = kept
    return counter


def known_by(trace: Trace, form: CallForm) -> Any:
    """What is equal for forms of calls that are one. (Values may be equal that are not the same.)"""
    return id(trace), form.given, form.names, repr(form.values), form.distinct


def _interned(name: str) -> str:
    """As a call has it that writes the name."""
    return sys.intern(str(name))


def _set_in_front(function: Any, entry: Any, fields: dict[str, Any], kept: list[Any]) -> None:
    """From now on `entry` is called in the place of the function, whose class becomes one of its own."""
    kind = type(function)
    looks = {"__module__": kind.__module__, "__doc__": kind.__doc__, _BEHIND: kind}
    own: Any = type(kind.__name__, (kind,), {**looks, **fields, "__call__": entry})
    weakref.finalize(function, _let_go, weakref.ref(own), kept).atexit = False
    function.__class__ = own


def class_of(function: Any) -> Any:
    """The class that a function was made of, where C may stand in front of it."""
    kind = type(function)
    return vars(kind).get(_BEHIND, kind)


class InFront:
    """The kinds of calls of a `jit` function that run as Python and that C hands on to it at once; and behind them the C
    functions that answer calls of its traces."""

    MOST = 32  # kinds, which C compares a call with one after the other
    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock}
    _lock: Any

    def __init__(self, call: Callable[..., Any], function: Jit) -> None:
        locks.own(self)
        self._otherwise = _Otherwise(call, function)
        self._calls: dict[str, dict[Kind, PlainCall]] = {PYTHON: {}, COMPILED: {}}  # COMPILED: with its pieces in line
        self._direct = DirectCalls(getattr(function._code_function(), "__code__", None))
        self._direct_stitched = DirectCalls(None)
        self.handed_on = self._direct.under_way  # by C to Python
        self._compiled: list[Any] = []
        self._forms: set[Any] = set()  # of calls, which they answer
        self.tried: tuple[Any, Any] = None, None  # a trace, and what answers calls of it in a trial

    def add_trace(self, function: Jit, trace: CallTrace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """From now on C answers such calls by this trace, where that can be; while it is not decided that they run compiled,
        only those that are tried so. Gives whether it does."""
        trace.next_entry *= 2
        executable = trace.executable
        if not self._is_own(function) or len(self._compiled) >= MAX_ENTRIES or not isinstance(executable, Executable):
            return False
        form, inputs = form_of_call(function, trace, args, kwargs)
        if form is None:
            return False
        if known_by(trace, form) in self._forms:
            return True
        warm = executable.warm(form, inputs)
        return warm is not None and self.put(function, trace, form, warm, MAX_ENTRIES)

    def put(self, function: Jit, trace: CallTrace, form: CallForm, warm: Entry, most: int, is_there: bool = False) -> bool:
        """C answers calls of this form from now on; `is_there`: those of arrays in a device's memory, of which nothing has to
        be decided."""
        seen, counter = known_by(trace, form), ctypes.c_int64(0)
        if not self._is_own(function) or len(self._compiled) >= most or seen in self._forms:
            return False
        trace.costs.count_natively(counter)
        decided = is_there or trace.stays_compiled or not function._may_settle
        with locks.Released(self._lock), self._lock:
            otherwise = self._compiled[-1] if self._compiled and decided else self._otherwise
            entry, _ = warm.make(events.busy.word, counter, otherwise, function.name)
            if not decided:
                self.tried = trace, entry
                return True
            self.tried = None, None
            self._compiled.append(entry)
            self._forms.add(seen)
            self._set(function)
        return True

    def _is_own(self, function: Jit) -> bool:
        """Nobody has given the function's class another `__call__`."""
        return bool(class_of(function).__call__ is self._otherwise.call)

    def add(self, function: Jit, kind: Kind, args: Sequence[Any], kwargs: Mapping[str, Any], way: str) -> None:
        """From now on C looks after calls of this kind, as this one is, which go this way."""
        if not self._is_own(function):
            return
        values = (*args, *kwargs.values())
        keys = [(value.dtype, value.ndim) if type(value) is np.ndarray else (type(value), -1) for value in values]
        names = tuple(sys.intern(str(name)) for name in kwargs)
        with locks.Released(self._lock), self._lock:
            known = function._trials.get(kind)
            if len(self._calls[way]) < self.MOST and known is not None and known.way == way:  # still
                places = known.places if way == PYTHON else None
                self._calls[way][kind] = PlainCall(tuple(keys), names, kind[-1], places)
                with suppress(MemoryError):  # the call itself needs none of it
                    self._set(function)

    def drop(self, function: Jit, kind: Kind) -> None:
        """Nothing is decided of such calls any more."""
        with locks.Released(self._lock), self._lock:
            if any([calls.pop(kind, None) is not None for calls in self._calls.values()]):
                self._set(function)

    def drop_stitched(self, function: Jit) -> None:
        """No call is one of the function with its pieces in line any more."""
        with locks.Released(self._lock), self._lock:
            for kind in self._calls[COMPILED]:
                if (known := function._trials.get(kind)) is not None:
                    known.is_in_front, known.stitched = False, 0
            if self._calls[COMPILED]:
                self._calls[COMPILED].clear()
                self._set(function)

    def renew(self, function: Jit) -> None:
        """The function has another Python function, or nothing is decided of its calls any more."""
        with locks.Released(self._lock), self._lock:
            self._direct.code = getattr(function._code_function(), "__code__", None)
            is_in_front = bool(any(self._calls.values()) or self._compiled)
            for calls in self._calls.values():
                calls.clear()
            self._compiled.clear()
            self._forms.clear()
            self.tried = None, None
            if is_in_front:
                self._set(function)

    def _set(self, function: Jit) -> None:
        stops = (events.busy.word, settle_is_off)
        entry = self._compiled[-1] if self._compiled else None
        written = function._stitched
        if self._calls[COMPILED] and written is not None:
            self._direct_stitched.code = written.function.__code__
            entry = default_target().python_entry(
                written.function, entry or self._otherwise, list(self._calls[COMPILED].values()), stops,
                self._direct_stitched.under_way, function.name,
            )  # fmt: skip
        if self._calls[PYTHON] or entry is None:
            entry = default_target().python_entry(
                function.python_function, entry or self._otherwise, list(self._calls[PYTHON].values()), stops,
                self._direct.under_way, function.name,
            )  # fmt: skip
        if entry is None:
            return
        if class_of(function) is type(function):
            _set_in_front(function, entry, {"python_function": _read_again}, [])
        else:
            type(function).__call__ = entry  # type: ignore[method-assign]


def _set_python_function(function: Jit, value: Any) -> None:
    vars(function)["python_function"] = value
    function.reopen()


#: In the class of a function with C in front, which has to know of another Python function.
_read_again = property(lambda function: vars(function)["python_function"], _set_python_function)


class _Otherwise:
    """`call(function, ...)` for a function that its own class leads to: the two are no cycle, so that it goes with its last
    name."""

    def __init__(self, call: Callable[..., Any], function: Any) -> None:
        self.call, self.function = call, weakref.ref(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.function()
        if function is None:
            raise ReferenceError("The function is gone. Keep it in a name while its `__call__` is used.")
        return self.call(function, *args, **kwargs)


def _let_go(reference: weakref.ref[type], kept: list[Any]) -> None:
    """The function is gone, and its class, which the collector finds later, keeps no machine code and no Python function."""
    own = reference()
    if own is not None:
        del own.__call__
    kept.clear()


def form_of_call(
    function: Jit, trace: CallTrace, args: tuple[Any, ...], kwargs: dict[str, Any], float_values: bool = False
) -> tuple[CallForm | None, Sequence[Any]]:
    """The form of a call that a trace of a `jit` serves, and its inputs; None where machine code cannot compare it.
    `float_values`: floats have these values."""
    given = function._bound_values(args, kwargs)
    gathered = trace.gather(given)
    if gathered is None or trace.draws:
        return None, ()
    found = gathered[0]
    described = Described(any_float=True, exact=bool(trace.layouts), receivers=receivers_of(trace.lookup, given))
    described.float_values = float_values or trace.lookup.looks_at_numbers
    try:
        values, marked = described.arguments(function._signature.signature, args, kwargs)
        lookup = DescribedLookup(trace.lookup, described, marked)
        inputs = lookup.inputs_of(found)
        reads = tuple(lookup.reads)
        if trace.prints:  # into the stream that there is now, which runs no code of the user's
            check_stream()
            reads += (Named(vars(sys), "stdout", Is(sys.stdout)),)
        form = CallForm(
            len(args), tuple(map(_interned, kwargs)), values, inputs, trace.gives(lookup.leaf_of), reads,
            described.distinct(), tuple((inputs[n], output) for n, output in trace.writes),
        )  # fmt: skip
    except (Undescribed, NotReplayable):
        return None, ()
    return form, found


def warm_up(trace: Trace) -> None:
    """From now on a C function runs the trace's machine code, where that can be; the guards stay Python's, and so does the
    look at arguments that are changed: that they can be, and overlap no other."""
    executable, run = trace.executable, trace.run
    if not isinstance(executable, Executable) or run is None or (trace.writes and getattr(trace, "moving", None)):
        return
    parameters, outputs = executable.graph.parameters, executable.graph.outputs
    values = tuple(
        ArrayOf(n, np.dtype(node.dtype), plain(node.shape)) if input.is_array
        else NumberOf(n, np.dtype(node.dtype).type, np.dtype(node.dtype))
        for n, (node, input) in enumerate(zip(parameters, trace.inputs, strict=True))
    )  # fmt: skip
    gives = Packed(list, tuple(Output(n, not node.shape) for n, node in enumerate(outputs)))
    form = CallForm(
        len(values), (), values, tuple(range(len(values))), gives, writes=tuple(trace.writes), is_whole=False
    )  # fmt: skip
    warm = executable.warm(form, None, tells_call=False)
    if warm is None:
        return
    entry, keep = warm.make(events.busy.word, ctypes.c_int64(0), lambda *inputs: run(inputs), trace.name)

    def run_warm(inputs: Sequence[Any], keep: Any = keep) -> list[Any]:
        return entry(*inputs)  # type: ignore[no-any-return]

    trace.run, trace.is_warm = run_warm, True
