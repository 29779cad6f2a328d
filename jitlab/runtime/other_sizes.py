"""Launches without stages: for other sizes than a trace was recorded with, its machine code is given other numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import islice
from types import FunctionType
from typing import Any

import numpy as np

from jitlab import events
from jitlab.costs import Costs
from jitlab.ir import Cluster, Clustering, Extent, Graph, Node, poly
from jitlab.ir.size_facts import SizeFacts, noting
from jitlab.support import locks
from jitlab.targets.target import Device, Launcher, Target

from .executable import NONE, Executable, Lower, is_watched, next_number


class Served:
    """Launches of a graph's clusters, one after the other, with arrays that lie row by row. Nothing in them can fail."""

    def __init__(
        self, parameters: Sequence[Node], outputs: Sequence[Node], device: Device, steps: Sequence[tuple[Cluster, Launcher]]
    ) -> None:  # fmt: skip
        self._parameters, self._outputs, self._device, self._steps = parameters, outputs, device, steps

    def takes(self, arguments: Sequence[Any]) -> bool:
        """Do these lie as the launches want them, without a copy?"""
        device = self._device
        return all(type(a) is not device.array_type or device.layout_of(a) == "C" for a in arguments)

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """The graph's outputs."""
        device = self._device
        values: dict[Node, Any] = dict(zip(self._parameters, arguments, strict=True))
        for cluster, launcher in self._steps:
            arrays = [values[node] for node in cluster.inputs]
            arrays = [array if type(array) is device.array_type else device.array(array) for array in arrays]
            arrays = [array if device.layout_of(array) == "C" else device.contiguous(array) for array in arrays]
            outputs = [device.empty(shape, dtype) for shape, dtype in launcher.results]
            failed = launcher.run(arrays, outputs, None)
            assert failed is None, "a check failed where there is none"
            for node, out in zip(launcher.lowered.outputs, outputs, strict=True):
                values[node] = out if out.ndim else out[()]
        return [values[node] for node in self._outputs]


def other_sizes(executable: Executable, values: Mapping[str, int]) -> Served:
    """What runs an executable whose facts about sizes hold for these values of its symbols, too."""
    target, steps = executable.only_target, []
    assert target is not None, "clusters on several devices"
    for cluster in executable.clustering.clusters:
        known = executable._variants[variant_key(cluster)].launcher
        symbols = {name: origin.evaluate(values) for name, origin in known.lowered.origins.items()}
        launcher = target.launcher(replace(known.lowered, symbol_values=symbols), known.code)
        launcher.results = [(shape_of(node, values), node.dtype) for node in known.lowered.outputs]
        steps.append((cluster, launcher))
    return Served(executable.graph.parameters, executable.graph.outputs, target.device, steps)


class Late(Executable):
    """An executable whose stages run when somebody looks at it, or listens: until then another's machine code serves it.

    `settings`: of the Executable. `make`: gives its clustering."""

    is_made = False  # its stages have run
    _given: Sequence[Any] | None = None  # arguments that lie otherwise than row by row, which wait for that
    serves_sizes = False

    def __init__(
        self, served: Served, make: Callable[[], Clustering], lower: Lower, target_for: Callable[[str], Target],
        **settings: Any,
    ) -> None:  # fmt: skip
        self._served, self._late = served, (make, lower, target_for, settings)
        for name in ("function", "trace", "captured", "options"):
            setattr(self, name, settings[name])
        locks.own(self)
        self.costs = Costs()
        self.form, self.varied, self.is_trial = None, frozenset(), False
        if not self.serves_sizes:
            self.facts = None
        self.number = next_number(self)

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        if self.is_made or events.active() or is_watched():
            return super().run(arguments)
        return self._served.run(arguments)

    def __getattr__(self, name: str) -> Any:
        """What only the stages give."""
        if name.startswith("__") or "_late" not in vars(self):
            raise AttributeError(name)
        with locks.Released(self._lock), self._lock:
            if not self.is_made:
                make, lower, target_for, settings = self._late
                costs, number, facts = self.costs, self.number, SizeFacts() if self.serves_sizes else None
                with noting(facts), costs.spending():
                    clustering = make()
                    with noting(None):
                        whole = Executable(clustering, lower, target_for, **settings, is_trial=True)
                own = {"costs": costs, "number": number, "is_trial": False, "_lock": self._lock, "facts": facts}
                vars(self).update({**vars(whole), **own, "is_made": True})
                self.prepare(self._given)
        return vars(self)[name]


def servers(executables: Iterable[Any], most: int) -> list[Executable]:
    """The first of these that may serve other sizes: not what others serve."""
    return list(islice((x for x in executables if isinstance(x, Executable) and x.serves_sizes), most))


def varied(executable: Executable, others: Iterable[Any]) -> frozenset[str]:
    """The symbols in which it differs from recordings that came out the same: what nobody has noted would have shown."""
    known = [other for other in others if other is not executable and isinstance(other, Executable)]
    mine = form_of(executable) if known or executable.varied else None
    for other in known if mine is not None else ():
        if form_of(other) == mine:
            values = other._values
            executable.varied |= {name for name, n in executable._values.items() if values[name] != n}
    return executable.varied if mine is not None else frozenset()


def serve(executable: Executable, values: Mapping[str, int]) -> Served | None:
    """What runs it for these values of its symbols, where that would be what a recording for them gives; `varied` was asked."""
    if any(values[name] != n and name not in executable.varied for name, n in executable._values.items()):
        return None
    return other_sizes(executable, values) if executable.facts is not None and executable.facts.hold(values) else None


def variant_key(cluster: Cluster) -> Any:
    """The variant for inputs that lie row by row and outputs in memory of their own."""
    return cluster.name, tuple("C" for _ in cluster.inputs), NONE


def form_of(executable: Any) -> Any:
    """All of an executable but the values of sizes, to compare; None where it cannot be launched with other numbers:
    something in it can fail, is not made yet, or is asked of sizes in a way that nobody notes."""
    if not isinstance(executable, Executable) or not executable.serves_sizes or executable.has_others:
        return None
    if executable.facts is None or executable.facts.unknown:
        return None
    clusters = executable.clustering.clusters
    if len(clusters) != len(executable.clustering.steps) or executable.captured is None or executable.only_target is None:
        return None
    if executable.form is None:
        if isinstance(executable, Late):
            executable._compile_in_rows()
        lowered = [executable._variants.get(variant_key(cluster)) for cluster in clusters]
        parts = [None if variant is None else _form_of_lowered(variant.launcher) for variant in lowered]
        if None in parts:
            return None
        executable.form = form_of_graph(executable.captured), form_of_graph(executable.graph), tuple(parts)
    return executable.form


def _form_of_lowered(launcher: Launcher) -> Any:
    lowered = launcher.lowered
    program = lowered.program
    if lowered.copies or lowered.strides or lowered.in_place or program.errors or program.calls:
        return None
    if set(lowered.origins) != set(lowered.symbol_values):
        return None
    names = tuple(node.name for node in (*lowered.inputs, *lowered.outputs))
    origins = tuple(sorted((name, origin) for name, origin in lowered.origins.items()))
    return launcher.code.digest, names, origins, tuple(map(form, lowered.constants))


def form_of_graph(graph: Graph) -> Any:
    numbers: dict[Node, int] = {}
    parts = []
    for node in (*graph.parameters, *(node for node in graph.nodes if not node.op.is_parameter)):
        numbers[node] = len(numbers)
        type = node.type
        shape = tuple([n.expr.terms if isinstance(n, Extent) else poly(n).terms for n in type.shape])
        parts.append((node.name, form(node.op), shape, type.dtype, tuple([numbers[source] for source in node.inputs])))
    return tuple(parts), tuple(numbers[node] for node in graph.outputs)


def form(x: Any) -> Any:
    """A part of an operation, with the polynomials in the place of extents."""
    kind: Any = type(x)
    if isinstance(x, Extent):
        return Extent, x.expr.terms
    if isinstance(x, np.ndarray):
        return x.dtype, x.shape, x.tobytes()
    if isinstance(x, (tuple, list)):
        return tuple([form(item) for item in x])
    if kind is FunctionType:
        return x.__code__, form(x.__defaults__), tuple([form(cell.cell_contents) for cell in x.__closure__ or ()])
    names = field_names(kind)
    if names is not None:
        return kind, tuple([form(getattr(x, name)) for name in names])
    return kind, repr(x) if isinstance(x, (float, complex, np.generic)) else x


@cache
def field_names(kind: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass; None of any other class."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def shape_of(node: Node, values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(poly(n).evaluate(values) for n in node.shape)
