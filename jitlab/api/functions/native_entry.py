"""Calls that C answers: a signature that is called often gets a C function in front of its machine code."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab import events
from jitlab.capture import Trace
from jitlab.capture.guards.tracetypes import VariableType
from jitlab.runtime import Executable

from .weak_methods import WeakMethod

if TYPE_CHECKING:
    from .tracing import Function

#: A signature that was called so often gets a C function of its own; a `function` has at most so many of them.
WARM_CALLS, MAX_ENTRIES = 5, 4


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
    kind = type(function)
    own: Any = type(kind.__name__, (kind,), {"__module__": kind.__module__, "__doc__": kind.__doc__, "__call__": entry})
    weakref.finalize(function, _let_go, own, kept).atexit = False
    function._warm, function.__class__ = kept, own


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


def _let_go(own: type, kept: list[Any]) -> None:
    """The function is gone, and its class, which the collector finds later, keeps no machine code."""
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
