"""Contraction: which candidates become one cluster, and why an edge was left.

Each candidate starts alone. Edges, of data and of control, are contracted consumers first, in three phases, until no more can
be. Two operations are only ever joined along an edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from jitlab.ir import LARGEST, Apart, Node, Reason
from jitlab.ir.graphs.graph import symbols_of
from jitlab.ops.host_operations import HostCall, Item
from jitlab.support.lazy import lazy

from .candidates import Study, is_constant, is_control, is_one_of_several, is_silent, unsupported
from .contraction import Contraction
from .variables import KINDS, READ, WRITE, unsafe_before

PATH_SHOWN = 16  # groups of a cycle that are kept as evidence

#: Consumers of a shape alone: their edges come first, so that an array need not leave a cluster for its size.
SHAPES = ("Shape", "ShapeN", "Rank", "Size")

#: They do not count for the least size.
WEIGHTLESS = ("Identity", "Const", "Item")

Device = tuple[str, int]


def contracted(study: Study) -> Partition:
    """The groups of a study's candidates. What must be compiled whatever the rules say is a candidate where it can be."""
    if study.jit_compile:
        operations = [node for node in study.operations if not is_constant(node)]
        stays = {node: reason for node in operations if (reason := unsupported(node)) is not None}
        study.options = replace(study.options, min_size=1)
    else:
        stays = study.stays()
    partition = Partition(study, stays)
    partition.contract()
    return partition


def _lengths_of(node: Node) -> set[str]:
    """The symbols in what an operation is and in the constants that it reads."""
    return symbols_of(node).union(*(symbols_of(source) for source in node.inputs if is_constant(source)))


class Partition:
    """The groups of candidates; a group is known by one of its operations' numbers."""

    def __init__(self, study: Study, stays: dict[Node, Reason]) -> None:
        self.study, self.options, self.stays = study, study.options, stays
        self.operations = study.operations
        self.number = {node: i for i, node in enumerate(self.operations)}
        self.candidate = [node not in stays for node in self.operations]
        self.control: dict[int, list[int]] = {}
        self.edges = list(dict.fromkeys(self._edges()))
        self.contraction: Contraction | None = None

    def _edges(self) -> Iterable[tuple[int, int]]:
        """Data, control, and one from each operation with an effect to the next where effects stay in program order, and so
        for what may raise between them."""
        effect, raising = -1, list[int]()
        refusing: list[int] = []  # before an error of what follows it is known whether the graph is for these data
        by_name = {node.name: i for i, node in enumerate(self.operations)} if self._has_control() else {}
        deciding = {name: i for i, node in enumerate(self.operations) for name in getattr(node.op, "by_data", ())}
        for i, node in enumerate(self.operations):
            for source in self.study.inputs(node):
                if source in self.number:
                    yield self.number[source], i
            for name in _lengths_of(node) if deciding else ():
                if deciding.get(name, i) != i:  # it runs where the data have decided
                    yield deciding[name], i
            if self.options.errors_in_order and node.op.may_raise:
                yield from ((before, i) for before in refusing)
                if isinstance(node.op, HostCall) and node.op.types:
                    refusing.append(i)
            for name in node.attrs.get("^", ()):
                if name in by_name:
                    self.control.setdefault(i, []).append(by_name[name])
                    yield by_name[name], i
            if self.options.effects_in_order and node.op.has_effects:
                if effect >= 0:
                    yield effect, i
                yield from ((before, i) for before in raising)
                effect, raising = i, []
            elif self.options.errors_in_order and node.op.may_raise:
                if effect >= 0:
                    yield effect, i
                raising.append(i)

    def control_before(self, b: int) -> list[int]:
        """The operations that have to run before this one although it reads nothing of theirs."""
        return self.control.get(b, [])

    @lazy
    def names(self) -> set[str]:
        return {node.op.name for node in self.operations}

    def _has_control(self) -> bool:
        return any("^" in node.attrs for node in self.operations)

    # ---- contracting

    def contract(self) -> None:
        """Contract edges between candidates, consumers first, until no more can be."""
        nodes, study, options = self.operations, self.study, self.options
        self.contraction = dag = Contraction(len(nodes), self.edges)
        self.scopes = study.marked_only is not None  # while everything may compile, scope numbers say nothing
        self.members = [int(not isinstance(node.op, Item)) for node in nodes]
        loose = not options.constants_count
        self.constants = [{s for s in node.inputs if is_constant(s)} if loose else set() for node in nodes]
        self.scope: list[Any] = [study.attrs(node).get("_XlaScope") for node in nodes]
        self._set_devices()
        self._set_variables()
        for node in nodes:  # the results of a loop stay with it
            if is_one_of_several(node) and self.candidate[self.number[node]]:
                self._join(dag.group(self.number[node.inputs[0]]), self.number[node])
        self._force()
        phases = (0, 1, 2) if self._has_phases() else (2,)
        for phase in phases:
            while self._pass(phase):
                pass

    def _force(self) -> None:
        """A what-if's edges first: what is larger than a cluster may be, or in another scope, is joined where nothing else
        forbids it."""
        self.bridged: set[frozenset[Any]] = set()
        places = {node.name: i for i, node in enumerate(self.operations)} if self.study.overrides.fuse else {}
        for names in self.study.overrides.fuse:
            if not all(name in places and self.candidate[places[name]] for name in names):
                continue
            assert self.contraction is not None
            a, b = (self.contraction.group(places[name]) for name in names)
            self.bridged.add(frozenset((self.scope[a], self.scope[b])))
            if a != b and b in self.contraction.consumers(a) and self._refusal(a, b) in (None, Apart.SIZE):
                self._join(a, b)

    def _pass(self, phase: int) -> bool:
        dag = self.contraction
        assert dag is not None
        changed = False
        for start in dag.from_last():
            group = dag.group(start)
            if not self.candidate[group]:
                continue
            for consumer in dag.consumers(group):
                consumer, group = dag.group(consumer), dag.group(group)
                if consumer == group or not self.candidate[consumer]:
                    continue
                if self._in_phase(group, consumer, phase) and self._refusal(group, consumer) is None:
                    changed |= self._join(group, consumer)
        return changed

    def _has_phases(self) -> bool:
        if not {*SHAPES, *KINDS, "NoOp"}.isdisjoint(self.names):
            return any(node.op.name in SHAPES or is_silent(node) or _is_counter(node) for node in self.operations)
        return False

    def _in_phase(self, a: int, b: int, phase: int) -> bool:
        """Shape consumers in phase 0; all but sinks and counters in phase 1; all in phase 2."""
        producer, consumer = self.operations[a], self.operations[b]
        if phase == 0:
            return consumer.op.name in SHAPES and self.members[b] == 1
        if phase == 1:
            sink = is_silent(consumer) and self.members[b] == 1 and not self._consumers(b)
            return not sink and not (_is_counter(producer) and self.members[a] == 1)
        return True

    def _consumers(self, group: int) -> tuple[int, ...]:
        assert self.contraction is not None
        return tuple(self.contraction.consumers(group))

    def _join(self, a: int, b: int) -> bool:
        assert self.contraction is not None
        if not self.contraction.contract(a, b):
            return False
        joint = self.contraction.group(a)
        few, many = sorted((self.constants[a], self.constants[b]), key=len)
        many |= few
        self.constants[joint], self.members[joint] = many, self.members[a] + self.members[b]
        self.scope[joint] = self.scope[a] or self.scope[b]
        if self.devices is not None:
            self.devices[joint] = self.devices[a] | self.devices[b]
            self.pinned[joint] = self.pinned[a] | self.pinned[b]
        if self.touched is not None:
            self.touched[joint] = self.touched[a] | self.touched[b]
            self.unsafe[joint] = self.unsafe[a] | self.unsafe[b]
        return True

    # ---- the rules

    def _refusal(self, a: int, b: int) -> Apart | None:
        """Why groups with an edge between them may not be joined, cycles aside; in the contract's order."""
        if self.devices is not None and not self._one_place(a, b):
            return Apart.DEVICES
        if self.scopes and self.scope[a] and self.scope[b] and self.scope[a] != self.scope[b]:
            if frozenset((self.scope[a], self.scope[b])) not in self.bridged:
                return Apart.SCOPES
        if self.options.max_size < LARGEST and self._joint_size(a, b) > self.options.max_size:
            return Apart.SIZE
        if self.devices is not None and self._elsewhere(b) is not None:
            return Apart.CROSS_DEVICE
        if self.touched is not None and (self.touched[a] & self.unsafe[b] or self.touched[b] & self.unsafe[a]):
            return Apart.RESOURCES
        return None

    def _joint_size(self, a: int, b: int) -> int:
        """Operations and different constants of both."""
        few, many = sorted((self.constants[a], self.constants[b]), key=len)
        return self.members[a] + self.members[b] + len(many) + sum(constant not in many for constant in few)

    def _set_devices(self) -> None:
        """Only where operations are placed on several does a device matter."""
        self.devices: list[frozenset[Device]] | None = None
        self.pinned: list[frozenset[Device]] = []
        if not self.study.has_devices:
            return
        mine = [self.study.device(node) for node in self.operations]
        if len(set(mine)) > 1:
            self.devices = [frozenset([device]) for device in mine]
            self.pinned = [
                frozenset([device]) if node.op.name in KINDS else frozenset()
                for node, device in zip(self.operations, mine, strict=True)
            ]

    def _elsewhere(self, b: int) -> int | None:
        """A group of candidates before b that may not share its device."""
        assert self.contraction is not None and self.devices is not None
        for source in self.contraction.producers(b):
            if self.candidate[source] and not self._one_place(source, b):
                return source
        return None

    def _one_place(self, a: int, b: int) -> bool:
        assert self.devices is not None
        return chosen_device(self.devices[a] | self.devices[b], self.pinned[a] | self.pinned[b]) is not None

    def _set_variables(self) -> None:
        self.touched: list[int] | None = None
        self.unsafe: list[int] = []
        if self.options.check_variables and not KINDS.keys().isdisjoint(self.names):
            self.touched, self.unsafe = self.own_bits

    def _kind(self, node: Node) -> int:
        if node in self.study.trial.no_variable:
            return 0
        return READ | WRITE if is_control(node) else KINDS.get(node.op.name, 0)

    # ---- what came out

    @lazy
    def groups(self) -> dict[int, list[Node]]:
        """The candidates by the group they ended up in, in program order of their first operation."""
        assert self.contraction is not None
        groups: dict[int, list[Node]] = {}
        for i, node in enumerate(self.operations):
            if self.candidate[i]:
                groups.setdefault(self.contraction.group(i), []).append(node)
        return groups

    def kept(self, group: list[Node]) -> bool:
        """Is it large enough to be a cluster, or wanted whatever its size?"""
        return effective_size(group) >= self.options.min_size or any(
            self.study.marked(node) or self.study.placed(node) or is_control(node) for node in group
        )

    def why_apart(self, a: int, b: int) -> tuple[Apart, list[Node], tuple[Any, ...]]:
        """Why groups a and b, with an edge between them, were not joined: (code, operations that show it, numbers or names).

        Asked when nothing can be joined any more. For a cycle the operations are those on the way.
        """
        assert self.contraction is not None
        ends = [self.operations[a], self.operations[b]]
        code = self._refusal(a, b)
        if code is Apart.DEVICES:
            assert self.devices is not None
            return code, ends, tuple(_device_text(self.devices[group]) for group in (a, b))
        if code is Apart.SCOPES:
            return code, ends, (scope_text(self.scope[a]), scope_text(self.scope[b]))
        if code is Apart.SIZE:
            return code, ends, (self._joint_size(a, b), self.options.max_size)
        if code is Apart.CROSS_DEVICE:
            other = self._elsewhere(b)
            assert other is not None and self.devices is not None
            return code, [self.operations[other]], (_device_text(self.devices[other]), _device_text(self.devices[b]))
        if code is Apart.RESOURCES:
            pair = self._unsafe_pair(a, b)
            return code, pair, tuple(node.name for node in pair)
        path = self.contraction.other_path(a, b, PATH_SHOWN)
        assert path is not None, f"{self.operations[a]!r} and {self.operations[b]!r} could still be joined"
        return Apart.CYCLE, [self.operations[group] for group in path], ()

    def _unsafe_pair(self, a: int, b: int) -> list[Node]:
        """What assigns in one of the groups, and what reads after it in the other."""
        assert self.contraction is not None and self.touched is not None
        for first, second in ((a, b), (b, a)):
            common = self.touched[first] & self.unsafe[second]
            if common:
                own, unsafe = self.own_bits
                earlier = next(i for i, bits in enumerate(own) if bits & common)
                later = next(i for i, bits in enumerate(unsafe) if bits & own[earlier] and self.contraction.group(i) == second)
                return [self.operations[earlier], self.operations[later]]
        raise AssertionError("both groups may share a cluster")

    @lazy
    def own_bits(self) -> tuple[list[int], list[int]]:
        before: dict[int, list[int]] = {}
        for a, b in self.edges:
            before.setdefault(b, []).append(a)
        return unsafe_before([self._kind(node) for node in self.operations], before)


def effective_size(group: Iterable[Node]) -> int:
    """Operations that do something."""
    return sum(node.op.name not in WEIGHTLESS for node in group)


def chosen_device(devices: frozenset[Device], pinned: frozenset[Device]) -> Device | None:
    """Where a cluster of operations on these devices would run; None when it can't.

    The CPU gives way to a GPU; two of a kind never mix, nor does another kind with any. A variable stays where it is.
    """
    gpus = [device for device in devices if device[0] == "GPU"]
    others = [device for device in devices if device[0] not in ("CPU", "GPU")]
    cpus = [device for device in devices if device[0] == "CPU"]
    if len(gpus) > 1 or len(cpus) > 1 or len(others) > 1 or (others and (gpus or cpus)):
        return None
    chosen = (others or gpus or cpus)[0]
    return chosen if pinned <= {chosen} else None


def device_text(device: Device) -> str:
    return f"/device:{device[0]}:{device[1]}"


def scope_text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _device_text(devices: frozenset[Device]) -> str:
    return ", ".join(device_text(device) for device in sorted(devices))


def _is_counter(node: Node) -> bool:
    return node.op.name == "AssignAddVariableOp" and node.ndim == 0 and node.dtype.kind in "iu"
