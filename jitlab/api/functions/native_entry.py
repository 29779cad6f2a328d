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
from jitlab.api.settling import Kind
from jitlab.capture import Trace
from jitlab.capture.guards.tracetypes import VariableType
from jitlab.config import settle_is_off
from jitlab.runtime import Executable
from jitlab.support import locks, native_call_log
from jitlab.support.direct_calls import DirectCalls
from jitlab.targets.devices import default_target
from jitlab.targets.target import PlainCall

from .weak_methods import WeakMethod

if TYPE_CHECKING:
    from .jit import Jit
    from .tracing import Function

#: A signature that was called so often gets a C function of its own; a `function` has at most so many of them.
WARM_CALLS, MAX_ENTRIES = 5, 4

#: In the class of one such function: the class that it was made of.
_BEHIND = "_class_behind"


def add_entry(function: Function, call: Callable[..., Any], trace: Trace, kwargs: dict[str, Any]) -> None:
    """From now on a C function answers such calls, where that can be; `call(function, ...)` answers the others."""
    form = trace.plain_results()
    arrays = all(x.is_array and not x.captured for x in trace.inputs)
    if not isinstance(trace.executable, Executable) or form is None or kwargs or not arrays:
        return
    if not all(layout.is_rows for layout in trace.layouts):  # the C function takes arrays that lie row by row
        return
    if len(function._warm) >= MAX_ENTRIES:
        return
    if [x.path for x in trace.inputs] != list(function._signature.names) or isinstance(function.python_function, WeakMethod):
        return  # an array in a list is another signature than the array itself
    recording = function._recent.get(id(trace))
    if recording is None or any(isinstance(t, VariableType) for t in recording.concrete.function_type.tensors()):
        return
    warm = trace.executable.warm(*form)
    if warm is None:
        return
    counter = ctypes.c_int64(0)
    otherwise = function._warm[-1][0] if function._warm else _Otherwise(call, function)
    entry, keep = warm.make(events.busy.word, counter, otherwise, function.name)
    trace.costs.count_natively(counter)
    function._counters.append(counter)
    kept = [*function._warm, (entry, keep)]
    if function._warm:
        function._warm, type(function).__call__ = kept, entry  # type: ignore[method-assign]
        return
    function._warm = kept
    _set_in_front(function, entry, {}, kept)


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
    """The kinds of calls of a `jit` function that run as Python and that C hands on to it at once."""

    MOST = 32  # kinds, which C compares a call with one after the other
    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock}
    _lock: Any

    def __init__(self, call: Callable[..., Any], function: Jit) -> None:
        locks.own(self)
        self._otherwise = _Otherwise(call, function)
        self._calls: dict[Kind, PlainCall] = {}
        self._direct = DirectCalls(getattr(function._code_function(), "__code__", None))

    def add(self, function: Jit, kind: Kind, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """From now on C looks after calls of this kind, as this one is."""
        if class_of(function).__call__ is not self._otherwise.call:
            return
        values = (*args, *kwargs.values())
        keys = [(value.dtype, value.ndim) if type(value) is np.ndarray else (type(value), -1) for value in values]
        call = PlainCall(tuple(keys), tuple(sys.intern(str(name)) for name in kwargs), kind[-1])
        with locks.Released(self._lock), self._lock:
            if len(self._calls) < self.MOST:
                self._calls[kind] = call
                with suppress(MemoryError):  # the call itself needs none of it
                    self._set(function)

    def drop(self, function: Jit, kind: Kind) -> None:
        """Nothing is decided of such calls any more."""
        with locks.Released(self._lock), self._lock:
            if self._calls.pop(kind, None) is not None:
                self._set(function)

    def renew(self, function: Jit) -> None:
        """The function has another Python function."""
        with locks.Released(self._lock), self._lock:
            self._direct.code = getattr(function._code_function(), "__code__", None)
            self._set(function)

    def _set(self, function: Jit) -> None:
        stops = (events.busy.word, native_call_log.watched, settle_is_off)
        entry = default_target().python_entry(
            function.python_function, self._otherwise, list(self._calls.values()), stops, self._direct.under_way, function.name
        )
        if entry is None:
            return
        if class_of(function) is type(function):
            _set_in_front(function, entry, {"python_function": _read_again}, [])
        else:
            type(function).__call__ = entry  # type: ignore[method-assign]


def _set_python_function(function: Jit, value: Any) -> None:
    vars(function)["python_function"] = value
    function.in_front.renew(function)


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


def warm_up(trace: Trace) -> None:
    """From now on a C function runs the trace's machine code, where that can be; the guards stay Python's, and so does the
    look at arguments that are changed: that they can be, and overlap no other."""
    executable, run = trace.executable, trace.run
    if not isinstance(executable, Executable) or run is None or (trace.writes and getattr(trace, "moving", None)):
        return
    scalar_outputs = [not node.shape for node in executable.graph.outputs]
    warm = executable.warm(list, scalar_outputs, tells_call=False, in_place=bool(trace.writes))
    if warm is None:
        return
    entry, keep = warm.make(events.busy.word, ctypes.c_int64(0), lambda *inputs: run(inputs), trace.name)
    scalars = [n for n, input in enumerate(trace.inputs) if not input.is_array]
    stored, total = warm.stored, len(scalar_outputs)

    def run_warm(inputs: Sequence[Any], keep: Any = keep) -> list[Any]:
        arrays = inputs
        if scalars:
            arrays = list(inputs)
            for n in scalars:
                arrays[n] = np.asarray(arrays[n])
        outputs: list[Any] = entry(*arrays)
        if stored and len(outputs) < total:  # else Python ran it
            for output, number in stored:
                outputs.insert(output, inputs[number])
        return outputs

    trace.run = run_warm
