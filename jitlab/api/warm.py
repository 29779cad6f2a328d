"""Calls that C answers: a signature that is called often gets a C function in front of its machine code (design D17)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab import events
from jitlab.capture import Trace
from jitlab.capture.tracetypes import VariableType
from jitlab.targets.cpu_llvm.entry import layout_is_known, make_entry

from .methods import WeakMethod

if TYPE_CHECKING:
    from .tracing import Function

#: A signature that was called so often gets a C function of its own; a `function` has at most so many of them.
WARM_CALLS, MAX_ENTRIES = 5, 4


def add_entry(function: Function, call: Callable[..., Any], trace: Trace, kwargs: dict[str, Any]) -> None:
    """From now on a C function answers such calls, where that can be; `call(function, ...)` answers the others."""
    form = trace.plain_results()
    arrays = all(x.is_array and not x.captured for x in trace.inputs)
    if trace.executable is None or form is None or kwargs or not arrays or trace.layouts or not layout_is_known():
        return
    if len(function._warm) >= MAX_ENTRIES:
        return
    if [x.path for x in trace.inputs] != list(function._signature.names) or isinstance(function.python_function, WeakMethod):
        return  # an array in a list is another signature than the array itself
    recording = function._recent.get(id(trace))
    if recording is None or any(isinstance(t, VariableType) for t in recording.concrete.function_type.tensors()):
        return
    made = trace.executable.warm(*form)
    if made is None:
        return
    warm, codes = made
    otherwise = function._warm[-1][0] if function._warm else partial(call, function)
    counter = ctypes.c_int64(0)
    entry, keep = make_entry(warm, events.busy.word, counter, otherwise, function.name)
    trace.costs.count_natively(counter)
    function._warm.append((entry, keep, codes))
    function._counters.append(counter)
    kind = type(function)
    if len(function._warm) == 1:
        kind = type(kind.__name__, (kind,), {"__module__": kind.__module__, "__doc__": kind.__doc__})
    kind.__call__ = entry  # type: ignore[method-assign]
    function.__class__ = kind


def warm_up(trace: Trace) -> None:
    """From now on a C function runs the trace's machine code, where that can be; the guards stay Python's."""
    executable, run = trace.executable, trace.run
    if trace.writes or executable is None or run is None or not layout_is_known():
        return
    made = executable.warm(list, [not node.shape for node in executable.graph.outputs], tells_call=False)
    if made is None:
        return
    warm, codes = made
    entry, keep = make_entry(warm, events.busy.word, ctypes.c_int64(0), lambda *inputs: run(inputs), trace.name)
    scalars = [n for n, input in enumerate(trace.inputs) if not input.is_array]

    def run_warm(inputs: Sequence[Any], keep: Any = (keep, codes)) -> list[Any]:
        if scalars:
            inputs = list(inputs)
            for n in scalars:
                inputs[n] = np.asarray(inputs[n])
        return entry(*inputs)  # type: ignore[no-any-return]

    trace.run = run_warm
