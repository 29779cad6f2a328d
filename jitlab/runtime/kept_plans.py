"""Plans kept on disk by their graphs: what launches the clusters of a graph that some process has compiled. No stage runs."""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from functools import cache, lru_cache
from typing import Any

import numpy as np

from jitlab.config import config
from jitlab.ir import ArrayType, Cluster, Extent, Graph, Lowered, Moving, Node, Options, plain
from jitlab.ir.plans.call_forms import CallForm
from jitlab.ir.plans.decisions import CALLS, COTANGENT
from jitlab.ops.leaf_operations import Constant
from jitlab.targets.target import Entry, Launcher, Target

from .executable import Executable
from .other_sizes import Late, Served, field_names, variant_key

#: The most bytes of arrays that are written in a program whose plan is kept.
MOST_BYTES = 1 << 16

#: Attributes of operations that no stage asks for.
UNASKED = frozenset((CALLS, COTANGENT))

_PLAIN = frozenset((int, str, bytes, float, complex, bool, type(None)))


class _Unkept(Exception):  # noqa: N818 - it ends a search
    """Something in a graph is not known by what it looks like."""


class FromDisk(Late):
    """An executable whose plan another process has kept: its stages run when somebody looks at it, listens, or has arrays that
    do not lie row by row."""

    serves_sizes = True

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        if self.is_made or self._served.takes(arguments):
            return super().run(arguments)
        self._given = arguments
        try:
            return Executable.run(self, arguments)
        finally:
            self._given = None

    def warm(
        self, form: CallForm, arguments: Sequence[Any] | None, tells_call: bool = True, is_there: bool = False
    ) -> Entry | None:
        if not self._variants:  # its calls were served otherwise
            self._compile_in_rows()
        return super().warm(form, arguments, tells_call, is_there)


def found(graph: Graph, options: Options, target: Target) -> tuple[Served, tuple[str, ...]] | None:
    """What runs a graph as captured, compiled with these options, and the names of its code; None: nobody has kept it."""
    form = _form(graph, options) if config.cache and target.has_plans else None
    plan = None if form is None else target.find_plan(form)
    return None if plan is None else _served(marshal.loads(plan), graph, target)


def keep_later(executable: Executable) -> None:
    """When an executable's clusters are compiled, its plan is kept, behind."""
    target = executable.only_target
    if config.cache and target is not None and target.keeps_plans:
        executable.when_compiled = _keep


def _keep(executable: Executable) -> None:
    if len(executable._variants) < len(executable.clustering.clusters):
        return
    executable.when_compiled = None
    graph, captured, options, steps = executable.graph, executable.captured, executable.options, _steps(executable)
    target = executable.only_target
    if target is None or captured is None or options is None or steps is None:
        return

    def job() -> None:  # the executable may go
        form, plan = _form(captured, options), _plan(graph, steps, target)
        if form is not None and plan is not None:
            target.keep_plan(form, marshal.dumps(plan))

    with suppress(RuntimeError, MemoryError):  # no room for a thread, or Python ends
        target.behind(job)


# ---- what a graph is known by


def _form(graph: Graph, options: Options) -> bytes | None:
    """All that its plan depends on, beside the sources and the machine; None where that cannot be told. Equal for equal
    graphs alone."""
    if graph.deciding or graph.marked_only or graph.scopes or graph.overrides:
        return None
    numbers: dict[Node, int] = {}
    parts: list[Any] = []
    try:
        for node in (*graph.parameters, *(node for node in graph.nodes if not node.op.is_parameter)):
            if node.attrs.keys() - UNASKED:
                return None
            sources = tuple([numbers[source] for source in node.inputs])
            numbers[node] = len(numbers)
            type = node.type
            parts.append((node.name, _told(node.op), _told(type.shape), type.dtype.str, sources))
        sizes = tuple(plain(node.shape) for node in graph.parameters)
        whole = tuple(parts), sizes, tuple(numbers[node] for node in graph.outputs), _told_options(options)
    except (_Unkept, KeyError):
        return None
    return marshal.dumps(whole, 2)  # the last version that writes equal values alike


def _told(x: Any) -> Any:
    """A part of an operation or an option as plain data."""
    kind: Any = type(x)
    if kind in _PLAIN:
        return x
    if kind is tuple or kind is list:
        return kind.__name__, *map(_told, x)
    if isinstance(x, Extent) and not isinstance(x, Moving):
        return "Extent", int(x), x.expr.terms
    if isinstance(x, np.dtype) and x.kind in "biufc":
        return "dtype", x.str
    if isinstance(x, np.generic):
        return "generic", x.dtype.str, x.tobytes()
    if isinstance(x, Enum):
        return _name(kind), x.name
    if kind is frozenset and all(type(item) is str for item in x):
        return "frozenset", *sorted(x)
    name, fields = _known_by(kind)
    return name, *[_told(getattr(x, field)) for field in fields]


@lru_cache(16)
def _told_options(options: Options) -> Any:
    return _told(options)


def _name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


@cache
def _known_by(kind: Any) -> tuple[str, tuple[str, ...]]:
    """The name of a class, and what its objects are equal by."""
    names = field_names(kind)
    if names is None or kind.__eq__ is object.__eq__:
        raise _Unkept
    return _name(kind), names


# ---- what is kept


_Steps = Sequence[tuple[Cluster, Launcher]]


def _steps(executable: Executable) -> _Steps | None:
    """The launches of which a run consists; None where there is more to it: an operation of NumPy's, a check, a copy, a call, a
    store into an argument."""
    steps: list[tuple[Cluster, Launcher]] = []
    for cluster in executable.clustering.steps:
        variant = executable._variants.get(variant_key(cluster)) if isinstance(cluster, Cluster) else None
        if variant is None or not isinstance(cluster, Cluster):
            return None
        lowered = variant.launcher.lowered
        program = lowered.program
        if lowered.copies or lowered.strides or lowered.in_place or program.errors or program.calls:
            return None
        steps.append((cluster, variant.launcher))
    return steps


def _plan(graph: Graph, steps: _Steps, target: Target) -> tuple[Any, ...] | None:
    """Plain data of which `_served` makes what runs it; None where that cannot be."""
    numbers: dict[Node, int] = {}
    values: list[tuple[str, tuple[int, ...], bytes | None]] = []

    def number(node: Node) -> int:
        if node not in numbers:
            value = getattr(node.op, "value", None)
            numbers[node] = len(values)
            values.append((node.dtype.str, plain(node.shape), None if value is None else np.ascontiguousarray(value).tobytes()))
        return numbers[node]

    there, clusters = {number(node) for node in graph.parameters}, []
    for cluster, launcher in steps:
        lowered = launcher.lowered
        inputs, kept = [number(node) for node in cluster.inputs], target.kept(launcher)
        if kept is None or not there.issuperset(inputs):
            return None
        outputs = [number(node) for node in lowered.outputs]
        there.update(outputs)
        clusters.append((inputs, [number(node) for node in lowered.inputs], outputs, launcher.code.digest, kept))
    results = [number(node) for node in graph.outputs]
    is_small = sum(len(data or b"") for *_, data in values) <= MOST_BYTES
    return (values, clusters, results) if there.issuperset(results) and is_small else None


def _served(plan: tuple[Any, ...], graph: Graph, target: Target) -> tuple[Served, tuple[str, ...]] | None:
    values, clusters, results = plan
    nodes = [*graph.parameters, *(_node(*value) for value in values[len(graph.parameters) :])]
    steps = []
    for inputs, read, outputs, _, kept in clusters:
        there = [nodes[n] for n in inputs], [nodes[n] for n in outputs]
        cluster = Cluster("", [], *there, reason=None)  # type: ignore[arg-type]  # its Program, and why, are made when asked for
        lowered = Lowered(cluster, None, [nodes[n] for n in read], there[1], [], {}, {})  # type: ignore[arg-type]
        launcher = target.restored(kept, lowered)
        if launcher is None:
            return None
        steps.append((cluster, launcher))
    names = tuple({digest for *_, digest, _ in clusters})
    return Served(graph.parameters, [nodes[n] for n in results], target.device, steps), names


def _node(dtype: str, shape: tuple[int, ...], data: bytes | None) -> Node:
    kind = np.dtype(dtype)
    return Node(None if data is None else Constant(kind, shape, data), (), ArrayType(shape, kind))
