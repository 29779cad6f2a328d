"""The short way of a warm call of `jl.function` with arrays in a GPU's memory: its kernels are launched, and nothing else is.

It is there for a form of call whose trace is one cluster of kernels that reads the arguments alone and gives new arrays, while
nobody listens. What its results are is asked of the trace once, with marks in the place of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab import events
from jitlab.capture.guards.signature import key_of
from jitlab.errors import JitlabError
from jitlab.ir import Cluster
from jitlab.runtime.executable import NONE, Executable, is_watched
from jitlab.runtime.other_sizes import Late
from jitlab.targets.devices import device_arrays
from jitlab.targets.target import Launcher

#: Forms of calls that a function has at most.
MOST_FORMS = 64


class Direct:
    """Launches what a form of call runs, and gives its results their form."""

    def __init__(
        self, launcher: Launcher, order: Sequence[int], kind: Any, given: Sequence[int], called: Callable[[], None]
    ) -> None:
        self.launcher, self.order, self.called = launcher, order, called
        self.kind, self.given = kind, given  # tuple, list, or None for one array; of each part the number of the output

    def __call__(self, memory: Any, args: tuple[Any, ...]) -> Any:
        outputs = [memory.empty(shape, dtype) for shape, dtype in self.launcher.results]
        if self.launcher.run([args[n] for n in self.order], outputs, None) is not None:
            return None
        self.called()
        if self.kind is None:
            return outputs[self.given[0]]
        return self.kind(outputs[n] for n in self.given)


def form_of(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What a call's form is told by: arrays of ours that lie row by row, and nothing else."""
    of = device_arrays.DeviceArray
    form: list[Any] = []
    for x in args:
        if type(x) is not of or x._apart is not None or not x.shape or x.address % x.dtype.itemsize:
            return None
        form += x.shape, x.dtype
    if len(set(map(id, args))) != len(args):  # the same array at several places is captured as one
        form += [args.index(x) for x in args]
    return tuple(form)


def is_free() -> bool:
    """Does nobody listen?"""
    return not events.active() and not is_watched()


def made_for(function: Any, values: tuple[Any, ...]) -> Direct | None:
    """The short way for calls like this one, which has been answered; None: there is none. `values`: with stand-ins."""
    try:
        key, leaves = key_of(function._signature.bind(values, {}))
        trace = function._find(key, leaves)
    except JitlabError:
        return None
    if trace is None or trace.guards or trace.same or trace.layouts or trace.effects or trace.slots or trace.draws:
        return None
    if trace.changes is not None or len(trace.inputs) != len(trace.leaves):
        return None
    found = _only_launch(trace.executable)
    if found is None:
        return None
    cluster, launcher, parameters, results = found
    if list(results) != list(launcher.lowered.outputs) or any(not shape for shape, _ in launcher.results):
        return None
    marks = [np.broadcast_to(np.zeros((), dtype), shape) for shape, dtype in launcher.results]
    made = trace.build([*marks], [None] * len(trace.inputs))
    kind = type(made) if type(made) in (tuple, list) else None
    given = [next((n for n, mark in enumerate(marks) if part is mark), -1) for part in (made if kind else (made,))]
    if not given or -1 in given or len(set(given)) != len(given):
        return None
    order = [trace.leaves[list(parameters).index(node)] for node in cluster.inputs]
    return Direct(launcher, order, kind, given, trace.costs.called)


def _only_launch(executable: Any) -> tuple[Cluster, Launcher, Sequence[Any], Sequence[Any]] | None:
    """The one cluster of an executable with what launches it, its parameters, and its outputs."""
    if isinstance(executable, Late) and not executable.is_made:
        served = executable._served
        if len(served._steps) != 1:
            return None
        cluster, launcher = served._steps[0]
        return cluster, launcher, served._parameters, served._outputs
    if not isinstance(executable, Executable) or len(executable.clustering.steps) != 1:
        return None
    (step,) = executable.clustering.steps
    if not isinstance(step, Cluster):
        return None
    cluster = step
    variant = executable._variants.get((cluster.name, tuple("C" for _ in cluster.inputs), NONE))
    if variant is None or variant.launcher.lowered.copies or variant.launcher.lowered.in_place:
        return None
    return cluster, variant.launcher, executable.graph.parameters, executable.graph.outputs
