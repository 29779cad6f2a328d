"""Which operations may be in a cluster; the order of the questions is the contract's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from jitlab.ir import NO_OVERRIDES, ClusteringOptions, Graph, Node, Overrides, Reason, Stays, because, in_words, told_node
from jitlab.ops.host_operations import HostCall, Item
from jitlab.ops.leaf_operations import Constant, Length
from jitlab.ops.library_operations import Library
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass

FLOAT64 = np.dtype("f8")

#: What a host call says of itself; anything else (an argument that no loop takes) is NO_LOOP_BODY with its own text.
CODES = {
    "dtype": Stays.DTYPE,
    "foreign_type": Stays.FOREIGN_TYPE,
    "data_dependent": Stays.DATA_DEPENDENT_SHAPE,
    "stateful_random": Stays.STATEFUL_RANDOM,
    "check": Stays.CHECK,
}

#: What the contract compiles only where it has to: its own compilers are slow at them.
SLOW = {
    "Svd", "Qr", "MatrixInverse", "SelfAdjointEigV2",
    "ResizeBilinear", "ResizeBilinearGrad", "ResizeNearestNeighbor", "ResizeNearestNeighborGrad",
}  # fmt: skip

CPU = ("CPU", 0)  # where nothing is said
COMPILING = {"CPU", "GPU", "XLA_CPU", "XLA_GPU"}
#: An operation placed on one of these is compiled whatever the level says.
ALWAYS = {"XLA_CPU", "XLA_GPU"}

#: A body with one of these is refused for what it is, not for what it holds.
BODIES = {"While": Stays.UNSUPPORTED_WHILE, "If": Stays.UNSUPPORTED_IF}


@dataclass(frozen=True)
class Trial:
    """Changes that are only supposed, to see what they would do: the graph itself stays as it is."""

    attrs: Mapping[Node, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    compiled: frozenset[Node] = frozenset()  # these would have a compiled form
    no_variable: frozenset[Node] = frozenset()  # these would neither read nor assign
    copied: tuple[Node, Node] | None = None  # (producer, consumer): the consumer would read a second copy


AS_IT_IS = Trial()


class Study:
    """The operations of a graph with what the rules ask of each, numbered in program order."""

    def __init__(
        self, graph: Graph, options: ClusteringOptions, jit_compile: bool | None, trial: Trial = AS_IT_IS,
        overrides: Overrides = NO_OVERRIDES,
    ) -> None:  # fmt: skip
        self.graph, self.options, self.jit_compile, self.trial = graph, options, jit_compile, trial
        self.overrides = overrides
        self.copy: Node | None = None
        if trial.copied is not None:
            producer, _ = trial.copied
            self.copy = Node(producer.op, producer.inputs, producer.type, name=producer.name, attrs=producer.attrs)

    @lazy
    def operations(self) -> list[Node]:
        operations = [node for node in self.graph.nodes if self.is_operation(node)]
        if self.copy is not None and self.trial.copied is not None:
            operations.insert(operations.index(self.trial.copied[0]), self.copy)
        return operations

    def is_operation(self, node: Node) -> bool:
        return not is_constant(node) or (self.options.constants_count and isinstance(node.op, Constant))

    def attrs(self, node: Node) -> Mapping[str, Any]:
        return self.trial.attrs.get(node, node.attrs)

    def inputs(self, node: Node) -> Sequence[Node]:
        if self.copy is not None and self.trial.copied is not None and node is self.trial.copied[1]:
            assert self.copy is not None
            return [self.copy if source is self.trial.copied[0] else source for source in node.inputs]
        return node.inputs

    def marked(self, node: Node) -> bool:
        return bool(self.attrs(node).get("_XlaCompile"))

    def placed(self, node: Node) -> bool:
        """Is it on a device that compiles whatever the level says?"""
        return self.device(node)[0] in ALWAYS

    def device(self, node: Node) -> tuple[str, int]:
        return device_of(self.attrs(node).get("device", "")) if self.has_devices else CPU

    @lazy
    def has_devices(self) -> bool:
        """Is an operation placed anywhere?"""
        return any("device" in node.attrs for node in self.graph.nodes) or bool(self.trial.attrs)

    @lazy
    def level(self) -> str:
        options = self.options
        if options.level_on_one_gpu is not None:
            gpus = {device for node in self.operations if (device := self.device(node))[0] == "GPU"}
            if len(gpus) == 1:
                return options.level_on_one_gpu
        return options.level

    @lazy
    def marked_only(self) -> Reason | None:
        """Why only marked operations compile; None when all may."""
        if self.jit_compile is False:
            return because(Stays.LEVEL)
        if self.level == "OFF":
            return because(Stays.JIT_OFF)
        if self.graph.marked_only:
            return because(Stays.JIT_OFF, "not_marked")
        return None

    def stays(self) -> dict[Node, Reason]:
        """The operations that can't be in any cluster, each with the first reason found."""
        found: dict[Node, Reason] = {}
        accepted, fuel = 0, self.options.fuel
        for node in self.operations:
            reason = self.why_not(node)
            if reason is None and is_one_of_several(node):
                reason = found.get(node.inputs[0])  # a result is where its call is
            elif reason is None and accepted >= fuel:
                reason = because(Stays.FUEL, evidence=(accepted, fuel), fuel=fuel)
            elif reason is None:
                accepted += 1
            if reason is not None:
                found[node] = reason
        return found

    def why_not(self, node: Node) -> Reason | None:
        """Why an operation can't be in any cluster, its place among the others aside."""
        if node.name in self.overrides.keep_out:
            return because(Stays.DISALLOWED, "kept_out")
        if node.name in self.overrides.compiled:
            return self.unsupported(node)
        if not self.attrs(node).get("_XlaCompile", True):
            return because(Stays.DISALLOWED)
        if self.has_devices and (kind := self.device(node)[0]) not in COMPILING:
            return because(Stays.NO_COMPILER, evidence=(self.attrs(node).get("device", ""),), kind=kind)
        if self.marked_only is not None and not self.marked(node) and not self.placed(node):
            return self.marked_only
        if node in self.trial.compiled:
            return None
        return self.unsupported(node) or self.unwanted(node) or self.unlisted(node)

    def unsupported(self, node: Node) -> Reason | None:
        """Why it has no compiled form. A loop's or branch's reason is that of the first operation inside."""
        if self.options.constants_count and is_silent(node):
            return None
        call = called(node)
        if call not in self._unsupported:
            self._unsupported[call] = unsupported(call, self.options.deepest)
        return self._unsupported[call]

    @lazy
    def _unsupported(self) -> dict[Node, Reason | None]:
        return {}

    def unwanted(self, node: Node) -> Reason | None:
        """Why it is not compiled unless it has to be."""
        if self.options.slow:
            return None
        name = called(node).op.name
        return because(Stays.SLOW, evidence=(name,), name=name) if name in SLOW else None

    def unlisted(self, node: Node) -> Reason | None:
        """Why a flag keeps it out."""
        listed = self.options.listed
        if listed is None and not self.options.excluded:
            return None
        name = called(node).op.name
        if listed is not None and name not in listed:
            code = Stays.NOT_FUSIBLE if self.options.fusible else Stays.NOT_LISTED
            return because(code, evidence=(name,), name=name)
        if name in self.options.excluded:
            return because(Stays.EXCLUDED, evidence=(name,), name=name)
        return None


def is_constant(node: Node) -> bool:
    return isinstance(node.op, (Constant, Length))


def is_control(node: Node) -> bool:
    return hasattr(node.op, "graphs")


def is_silent(node: Node) -> bool:
    """It computes nothing: others run before it, that is all."""
    return bool(node.op.name == "NoOp")


def is_one_of_several(node: Node) -> bool:
    """A result of a loop, a branch or a library call, which stays with it."""
    return isinstance(node.op, Item) and (is_control(node.inputs[0]) or isinstance(node.inputs[0].op, Library))


def called(node: Node) -> Node:
    """The loop, branch or library call of a result; another operation itself."""
    return node.inputs[0] if is_one_of_several(node) else node


def device_of(text: str) -> tuple[str, int]:
    """ "/job:localhost/device:GPU:1", "/gpu:1" -> ("GPU", 1). Where nothing is said, the CPU."""
    if not text:
        return CPU
    found = re.search(r"(?:/device:|/)([A-Za-z_]+):(\d+|\*)$", text)
    if not found:
        return CPU
    return found[1].upper(), 0 if found[2] == "*" else int(found[2])


def unsupported(node: Node, deepest: int | None = None, depth: int = 0) -> Reason | None:
    """Why an operation has no compiled form; for one with bodies, what inside them has none."""
    if is_one_of_several(node):  # not once more for each result: in nested bodies that would multiply
        return unsupported(node.inputs[0], deepest, depth)
    if is_control(node):
        return _unsupported_body(node, deepest, depth)
    types = tuple(source.type for source in node.inputs)
    said = node.op.why_not_compiled(*types)
    if said is None:
        if isinstance(node.op, Constant) and node.dtype.kind not in "biufc":
            return because(Stays.DTYPE, "constant", (node.op.name,), dtype=str(node.dtype))
        return _effect(node)
    call = node.inputs[0].op if isinstance(node.op, Item) else node.op
    if isinstance(call, HostCall):
        code = CODES.get(call.code, Stays.NO_LOOP_BODY)
    else:
        others = node.op.why_not_compiled(*(type.with_dtype(FLOAT64) for type in types))
        code = Stays.DTYPE if others is None else Stays.NO_LOOP_BODY
    return in_words(code, said, (node.op.name,))


def draws_or_checks(node: Node) -> bool:
    """Does nothing but random numbers and checks keep it, or what is in its bodies, from being compiled?"""
    node = called(node)
    reason = unsupported(node)
    if reason is None or not is_control(node):
        return reason is not None and reason.code in (Stays.STATEFUL_RANDOM, Stays.CHECK)
    inner = (inner for graph in node.op.graphs for inner in graph.nodes)
    return all(unsupported(each) is None or draws_or_checks(each) for each in inner)


def _unsupported_body(node: Node, deepest: int | None, depth: int) -> Reason | None:
    if deepest is not None and depth >= deepest:
        return because(Stays.DEPTH, evidence=(depth + 1, deepest), deepest=deepest)
    inside = (inner for graph in node.op.graphs for inner in graph.nodes if not is_one_of_several(inner))
    found = next(((inner, why) for inner in inside if (why := unsupported(inner, deepest, depth + 1)) is not None), None)
    if found is None:
        return None
    inner, reason = found
    if reason.code is Stays.DEPTH:
        return reason
    code = BODIES.get(node.op.name, Stays.UNSUPPORTED_FUNCTION)
    if is_control(inner):
        return replace(reason, code=code, evidence=(node.op.name, *reason.evidence[1:]))
    evidence = (node.op.name, inner.op.name, reason.code.name.lower())
    return because(code, "in_body", evidence, inner=told_node(inner, lines=True), why=reason.text)


def _effect(node: Node) -> Reason | None:
    if not node.op.has_effects or isinstance(node.op, Library):  # a library's is in its results: what draws next takes them
        return None
    return because(Stays.EFFECT)


__all__ = [
    "AS_IT_IS", "Study", "Trial", "device_of", "draws_or_checks", "is_constant", "is_control", "is_one_of_several", "is_silent",
    "unsupported",
]  # fmt: skip
