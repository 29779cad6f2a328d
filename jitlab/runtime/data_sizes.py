"""Sizes that the data decide: NumPy runs an operation, its result says how long it is, and what comes behind runs for that.

before: y = x[x > 0]; z = np.exp(y) + 1       `s0`, the length of y, has one value in the recording
after:  at a run with another length the machine code behind it is given that number

A trace is recorded with the lengths of its first run. What was asked of them on the way is noted (`ir/size_facts.py`); for
others of which the same holds the recording would be the same. That nothing else was asked is shown by a second recording with
other lengths that comes out the same. Until then, and for lengths of which something else holds, the run is given up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from jitlab.ir import ArrayType, Cluster, Clustering, Graph, Lowered, Node, bind_extents, evaluate_extent, symbol_of
from jitlab.ir.size_facts import SizeFacts
from jitlab.ops.host_operations import HostCall, Item
from jitlab.support import locks

from .executable import Executable, Variant
from .other_sizes import form_of_graph, shape_of
from .size_checks import Sizes

#: Combinations of sizes for which launches are remembered.
MOST_SIZES = 64


def sized_by_data(graph: Graph) -> bool:
    """Do data decide on sizes of this graph?"""
    return any(getattr(node.op, "by_data", ()) for node in graph.nodes)


class SizedByData(Executable):
    """An executable of a graph in which the data decide on sizes."""

    def __init__(
        self, *args: Any, asked: SizeFacts | None = None, near: Iterable[Any] = (), **settings: Any
    ) -> None:  # fmt: skip
        super().__init__(*args, **settings)
        self.asked = asked  # of sizes while the graph was recorded
        self.near = [ref(other) for other in near if isinstance(other, SizedByData)]
        self._open = frozenset(name for node in self.graph.nodes for name in getattr(node.op, "by_data", ()))
        self._is_general: bool | None = None  # a recording with other sizes came out the same
        self._resized: OrderedDict[Any, Resized] = OrderedDict()
        self._held_until = len(self.clustering.steps) - 1  # each may refuse
        self.compared: frozenset[Any] | None = frozenset()  # the code that came out the same; None: that of a trial is known
        self.known_facts: tuple[SizeFacts | None, ...] = ()  # of what a trial is one of

    def _bound(self, step: Node, values: Mapping[Node, Any]) -> Executable:
        if not getattr(step.op, "by_data", ()):
            return self
        found = self._sizes.found(step, values[step])
        known = step.op.lengths(found)
        return self if all(self._values[name] == n for name, n in known.items()) else self.resized(step, found, known)

    def run_cluster(self, cluster: Cluster, values: Mapping[Node, Any]) -> dict[Node, Any]:
        steps = [node for node in values if getattr(node.op, "by_data", ())]
        known = {name: n for node in steps for name, n in node.op.lengths(node.op.found(values[node])).items()}
        for node in cluster.inputs:
            for extent, n in zip(node.shape, np.shape(values[node]) if node in values else (), strict=False):
                if (name := symbol_of(extent)) in self._open and name is not None:
                    known[name] = n
        if all(self._values[name] == n for name, n in known.items()):
            return super().run_cluster(cluster, values)
        op = next(node.op for node in self.graph.nodes if getattr(node.op, "by_data", ()))
        refusal = partial(op.another, op.types)
        if not self.serves(known):
            raise refusal()
        return Resized(self, known, refusal).run_cluster(cluster, values)

    def trial(self, clustering: Clustering, level: str | None = None) -> Executable:
        made = SizedByData(
            clustering, self.lower, self.target_for, function=self.function, trace=self.trace, level=level or self.level,
            writes=self._writes, is_trial=True, asked=self.asked,
        )  # fmt: skip
        made.facts, made.known_facts = SizeFacts(), (*self.known_facts, self.facts)
        made._is_general, made.compared = self._comes_out_the_same(), None
        return made

    def resized(self, step: Node, found: Sequence[ArrayType], known: Mapping[str, int]) -> Executable:
        """What goes on behind a step, which has given this, for the values of the symbols that are known there."""
        key = tuple(sorted(known.items()))
        made = self._resized.get(key)
        if made is None:
            if not self.serves(known):
                raise step.op.another(found)
            made = self._resized[key] = Resized(self, known, partial(step.op.another, found))
            while len(self._resized) > MOST_SIZES:
                self._resized.popitem(last=False)
        return made

    def serves(self, known: Mapping[str, int]) -> bool:
        """Would a recording with these sizes be the same?"""
        if any(n < 2 for n in known.values()) or not self._comes_out_the_same():
            return False
        return self.holds({**{name: n for name, n in self._values.items() if name not in self._open}, **known})

    def holds(self, values: Mapping[str, int]) -> bool:
        """What was asked has the same answers."""
        every = self.asked, self.facts, *self.known_facts
        return all(facts is not None and facts.hold_of(self._open, values) for facts in every)

    def _comes_out_the_same(self) -> bool:
        if self._is_general is None:
            for near in self.near:
                other = near()
                if other is not None and self._differs_from(other) and _form(other) == _form(self):
                    mine, theirs = _codes(self), _codes(other)
                    common = frozenset(key for key in mine.keys() & theirs.keys() if mine[key] == theirs[key])
                    for one in (self, other):
                        one._is_general, one.compared = True, common.union(one.compared or ())
        return bool(self._is_general)

    def _differs_from(self, other: SizedByData) -> bool:
        """Has each size that the data decide another value in it, and no other size?"""
        if other._values.keys() != self._values.keys() or other._open != self._open:
            return False
        return all((other._values[name] != n) == (name in self._open) for name, n in self._values.items())


class Resized(Executable):
    """An executable for other sizes than it was made for: the same machine code, given other numbers."""

    def __init__(self, whole: SizedByData, known: Mapping[str, int], refusal: Callable[[], Exception]) -> None:
        vars(self).update(vars(whole))
        locks.own(self)
        self.whole, self.known, self.refusal = whole, known, refusal
        self._values = {**whole._values, **known}
        self._sizes = _SizesOfData(whole._sizes, self._values, known)
        self._variants = {}

    def _bound(self, step: Node, values: Mapping[Node, Any]) -> Executable:
        if not getattr(step.op, "by_data", ()):
            return self
        found = self._sizes.found(step, values[step])
        return self.whole.resized(step, found, {**self.known, **step.op.lengths(found)})

    def _variant(self, cluster: Cluster, layouts: tuple[str, ...], ends: frozenset[Node]) -> Variant:
        key = (cluster.name, layouts, ends)
        made = self._variants.get(key)
        if made is None:
            made = self._variants[key] = self._resized_variant(cluster, layouts, ends)
        return made

    def _resized_variant(self, cluster: Cluster, layouts: tuple[str, ...], ends: frozenset[Node]) -> Variant:
        whole = self.whole
        known = whole._variant(cluster, layouts, ends).launcher
        way = _way([each.name for each in self.clustering.clusters].index(cluster.name), layouts, ends)
        is_same = whole.compared is None or way in whole.compared
        lowered = resized_lowering(known.lowered, self._values) if is_same else None
        values = {name: n for name, n in self._values.items() if name not in whole._open or name in self.known}
        if lowered is None or not whole.holds(values):  # it may have asked for more
            raise self.refusal()
        self._sizes.check_buffers(lowered)
        launcher = self._targets[cluster.name].launcher(lowered, known.code)
        launcher.results = [(shape_of(node, self._values), node.dtype) for node in lowered.outputs]
        return Variant(launcher)

    def _value(self, node: Node, values: Mapping[Node, Any]) -> Any:
        arrays = tuple(self._on_host(values[source]) for source in node.inputs)
        if hasattr(node.op, "graphs"):
            value = node.op.run(self._values, arrays)
        else:
            is_known = isinstance(node.op, (HostCall, Item)) or not self.graph.is_sized(node)
            value = (node.op if is_known else bind_extents(node.op, self._values)).numpy(*arrays)
        self._sizes.check_value(node, value)
        return value


def resized_lowering(known: Lowered, values: Mapping[str, int]) -> Lowered | None:
    """A lowered cluster with other numbers; None where it has some that are no sizes of the graph."""
    if set(known.program.symbols) - set(known.origins) - set(known.strides):
        return None
    symbols = {name: origin.evaluate(values) for name, origin in known.origins.items()}
    return replace(known, symbol_values={**known.symbol_values, **symbols})


class _SizesOfData(Sizes):
    """The sizes of a graph for other values than it was made with, of which some are `known` so far."""

    def __init__(self, whole: Sizes, values: Mapping[str, int], known: Mapping[str, int]) -> None:
        self.graph, self.values, self.at_a_run = whole.graph, values, whole.at_a_run - known.keys()
        self._types = {}

    def check_value(self, node: Node, value: Any) -> None:
        self._types = {node: self._type(node)}
        super().check_value(node, value)

    def _type(self, node: Node) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
        if node.dtype.kind == "V" or not all(map(self._is_fixed, node.shape)):
            return None
        return tuple(evaluate_extent(n, self.values) for n in node.shape), node.dtype


def _form(executable: SizedByData) -> Any:
    """Its graphs, but for the values of sizes: equal for two that are the same but for these."""
    captured = executable.captured
    return captured and form_of_graph(captured), form_of_graph(executable.graph)


def _codes(executable: SizedByData) -> dict[Any, str]:
    """The code of each cluster, for inputs that lie as they did."""
    places = {cluster.name: place for place, cluster in enumerate(executable.clustering.clusters)}
    return {
        _way(places[name], layouts, ends): variant.launcher.code.digest
        for (name, layouts, ends), variant in list(executable._variants.items())
    }


def _way(place: int, layouts: tuple[str, ...], ends: frozenset[Node]) -> Any:
    """Which cluster it is, how its inputs lie, and what lies in arguments' places, in all recordings that are the same."""
    return place, layouts, frozenset(node.name for node in ends)
