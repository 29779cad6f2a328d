"""What is asked of a plan: which edge to cut or to fuse, which operations to keep out. Names become those of one plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from jitlab.errors import OptionError
from jitlab.ir import (
    Cluster,
    Clustering,
    KernelInfo,
    Node,
    Overrides,
    Plan,
    inner_nodes,
    is_operation,
    is_written,
    line_of,
    told_node,
    written,
)
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.layout.views import Reshape, View
from jitlab.support.lazy_dataclass import dataclass

Pair = tuple[str, str]

#: Names that are listed in an error.
MOST_NAMES = 12


@dataclass(frozen=True)
class Question:
    """`cut`, `fuse`: (producer, consumer) pairs; `keep_out`: operations; `target`: another processor. Operations as the program
    writes them, with ", line 7" where that stands in several lines; or their names in the graph, or their kinds."""

    cut: tuple[Pair, ...] = ()
    fuse: tuple[Pair, ...] = ()
    keep_out: tuple[str, ...] = ()
    target: str | None = None

    @classmethod
    def of(cls, cut: Any = (), fuse: Any = (), keep_out: Any = (), target: Any = None) -> Question:
        """As `whatif` is called: `cut=("Exp", "Sum")` is short for `cut=[("Exp", "Sum")]`, `keep_out="Exp"` likewise."""
        question = cls(_pairs("cut", cut), _pairs("fuse", fuse), _names("keep_out", keep_out), target)
        if target is not None and not isinstance(target, str):
            raise OptionError(f"target={target!r} is no name of a target")
        if not (question.cut or question.fuse or question.keep_out or target is not None):
            raise OptionError(
                "whatif was asked nothing", hint='cut=("Exp", "Sum"), fuse=…, keep_out="Exp", or sweep=True for all cuts'
            )
        return question

    @property
    def kind(self) -> str:
        """ "cut", "fuse", "keep_out" or "target"; "several" when more than one of them is asked together."""
        kinds = [name for name in ("cut", "fuse", "keep_out", "target") if getattr(self, name)]
        return kinds[0] if len(kinds) == 1 else "several"

    def to_json(self) -> dict[str, Any]:
        edges = [list(pair) for pair in (*self.cut, *self.fuse)]
        return {"kind": self.kind, "edges": edges, "ops": list(self.keep_out), "target": self.target}

    def overrides(self) -> Overrides:
        return Overrides(cut=self.cut, fuse=self.fuse, keep_out=self.keep_out)


class Place:
    """Where each operation of a plan runs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        clustering = plan.clustering
        self.operations = [node for node in clustering.graph.nodes if is_operation(node)]
        self.named = {node.name: node for node in self.operations}
        self.cluster = {node.name: c for c in clustering.clusters for node in c.members}
        self.loop: dict[str, str] = {}  # an operation inside a loop or branch -> the one that it is inside of
        for outer in self.operations:
            for inner, name, _ in inner_nodes(outer):
                if is_operation(inner):
                    self.named[name], self.loop[name] = inner, outer.name
        self.name = {node: name for name, node in self.named.items()}
        self.written = written(self.name)
        self.kernel: dict[str, KernelInfo] = {}
        for kernel in plan.kernels:
            for node in kernel.nodes:
                self.kernel.setdefault(node.name, kernel)

    @property
    def clustering(self) -> Clustering:
        return self.plan.clustering

    def together(self, a: str, b: str) -> bool:
        """Do two operations share a kernel? An operation may be computed in several."""
        return any({a, b} <= {node.name for node in kernel.nodes} for kernel in self.plan.kernels)

    def kernels_of(self, name: str) -> list[str]:
        """The kernels that compute an operation."""
        return [kernel.name for kernel in self.plan.kernels if any(node.name == name for node in kernel.nodes)]

    def text(self, name: str) -> str:
        """ "`e` (line 6)"."""
        return told_node(self.named[name], lines=True)

    def parent(self, name: str) -> str:
        """The loop or branch (and the side of it) that an operation is directly inside of; "" for none."""
        return name.rpartition("/")[0] if name in self.loop else ""

    def share_nest(self, a: str, b: str) -> bool:
        """Do two operations in the body of one loop or branch share a nest of it?"""
        origins = self.named[a].origins | self.named[b].origins
        return any(origins <= nest.origins for kernel in self.plan.kernels for nest in kernel.nests)

    def step(self, name: str) -> dict[str, Any]:
        """An operation of a path, for a user and for the panel."""
        node = self.named[name]
        cluster, kernel = (where.get(self.loop.get(name, name)) for where in (self.cluster, self.kernel))
        return {
            "name": name, "op": node.op.name, "written": self.written[node], "called": node.called, "lines": lines_of([node]),
            "cluster": cluster.name if cluster else None, "kernel": kernel.name if kernel else None,
        }  # fmt: skip

    def home(self, name: str) -> Cluster | None:
        return self.cluster.get(self.loop.get(name, name))

    def fused_edges(self) -> list[Pair]:
        """The edges between operations that share a kernel, in program order."""
        return [
            (source.name, node.name)
            for node in self.operations
            for source in dict.fromkeys(node.inputs)
            if source.name in self.named and self.together(source.name, node.name)
        ]

    # ---- names
    def resolved(self, question: Question) -> Question:
        """The question with the names of this plan's operations. OptionError where one is unknown or could be several."""
        return replace(
            question, cut=tuple(self.pair(*pair, cut=True) for pair in question.cut),
            fuse=tuple(self.pair(*pair) for pair in question.fuse),
            keep_out=tuple(self.one(name) for name in question.keep_out),
        )  # fmt: skip

    def one(self, name: str) -> str:
        """The one operation of that name or kind."""
        found = self._found(name)
        if len(found) > 1:
            raise OptionError(
                f"{len(found)} operations are {name}", hint=f"say which: {_listed(map(self._shown, found))}"
            )
        return self.name[found[0]]

    def pair(self, a: str, b: str, *, cut: bool = False) -> Pair:
        """The one edge from a to b; what only moves or casts a value may stand between. A pair without an edge stays as it is
        where each name says one operation. Of an edge that is cut, the first step from the producer counts."""
        firsts, seconds = self._found(a), self._found(b)
        edges = [(x, y, way) for y in seconds for x in firsts if (way := self._way(x, y)) is not None]
        if len(edges) > 1:
            shown = _listed(f"{self._shown(x)} to {self._shown(y)}" for x, y, _ in edges)
            raise OptionError(f"{len(edges)} edges go from {a} to {b}", hint=f"say which: {shown}")
        if edges:
            x, y, way = edges[0]
            return self.name[x], self.name[way[0] if cut else y]
        return self.one(a), self.one(b)

    def _way(self, x: Node, y: Node) -> list[Node] | None:
        """The operations after x up to y, when all between only move or cast a value."""
        ways: list[list[Node]] = [[y]]
        while ways:
            way = ways.pop(0)
            read = [call_of(n) for n in way[0].inputs]
            if x in read:
                return way
            ways += [[n, *way] for n in read if is_move(n) and n in self.name]
        return None

    def _found(self, name: str) -> list[Node]:
        if name in self.named:
            return [self.named[name]]
        text, line = line_of(name)
        nodes = [node for node in self.name if line is None or line in lines_of([node])]
        found = [node for node in nodes if text.lower() in (node.op.name.lower(), node.op.word)]
        found = found or [node for node in nodes if is_written(text, node.called, self.written[node])]
        if not found:
            raise OptionError(
                f"this plan has no operation {name!r}", hint=f"it has {_listed(dict.fromkeys(self.written.values()))}"
            )
        return found

    def _shown(self, node: Node) -> str:
        """What says this operation and no other: how it is written, with its line, else its name in the graph."""
        text, lines = self.written[node], lines_of([node])
        alike = [other for other in self.name if self.written[other] == text and lines_of([other])[:1] == lines[:1]]
        if len(alike) == 1 and lines:
            return f'"{text}, line {lines[0]}"'
        return f'"{self.name[node]}" ({", ".join(filter(None, (text, at(lines).strip(" ()"))))})'


def call_of(node: Node) -> Node:
    """What makes a value: of one of several results the call, the loop or the branch."""
    return node.inputs[0] if node.op.name == "Item" else node


def is_move(node: Node) -> bool:
    """It only moves or casts a value."""
    return isinstance(node.op, (View, Reshape, Cast))


def lines_of(nodes: Iterable[Node]) -> list[int]:
    """The lines that operations came from."""
    return sorted({source.line for node in nodes for source in node.sources})


def at(lines: Sequence[int]) -> str:
    """[6, 7] -> " (lines 6 and 7)"; "" where there are none."""
    if not lines:
        return ""
    if len(lines) == 1:
        return f" (line {lines[0]})"
    return f" (lines {', '.join(map(str, lines[:-1]))} and {lines[-1]})"


def _listed(words: Iterable[str]) -> str:
    shown = list(words)
    more = f" and {len(shown) - MOST_NAMES} more" if len(shown) > MOST_NAMES else ""
    return ", ".join(shown[:MOST_NAMES]) + more


def _pairs(option: str, value: Any) -> tuple[Pair, ...]:
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(name, str) for name in value):
        value = [value]
    try:
        pairs = tuple((a, b) for a, b in value)
    except (TypeError, ValueError):
        pairs = ((None, None),)
    if not all(isinstance(name, str) for pair in pairs for name in pair):
        raise OptionError(f"{option}={value!r} is no list of pairs", hint=f'{option}=[("Exp", "Sum")]')
    return pairs


def _names(option: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise OptionError(f'{option}={value!r} is no list of names, as in {option}=["Exp"]')
    return names
