"""Which edge, operation or pass made an output wrong: found by halving, each try a real compilation on the same data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jitlab.ir import Cluster, Graph, Node, Overrides, is_operation, told_node
from jitlab.passes import pipeline
from jitlab.passes.each_body import with_bodies

from .reference import Value

if TYPE_CHECKING:
    from .check import Culprit, Pause, Study


def find_culprit(study: Study, cluster: Cluster, node: Node, right: dict[Node, Value]) -> Culprit:
    """The fused edge, or else the operation, without which the output of a cluster is within its bound."""
    from .check import Culprit, lines_text, rewrite_of

    search = _Search(study, cluster, node, right)
    edge = search.culprit_edge()
    if edge is not None:
        producer, consumer = edge
        rewrite = f"{producer.op.word} is computed inside the loop of {consumer.op.word}"
        text = (
            f"Fusing {told_node(producer)} into {told_node(consumer)} ({lines_text(producer, consumer)}) makes it wrong:"
            f" kept apart, the output is within its bound. Found in {search.runs} runs."
        )
        return Culprit((producer.name, consumer.name), rewrite, search.runs, text)
    found = search.culprit_operation()
    if found is None:
        text = f"No single operation is guilty: apart from one another each is within its bound. {search.runs} runs."
        return Culprit(None, "several operations together", search.runs, text)
    rewrite = rewrite_of(found) or f"the loop of {found.op.word}"
    text = (
        f"{told_node(found, lines=True)} is wrong by itself: with NumPy's values of it the output is within"
        f" its bound. Found in {search.runs} runs."
    )
    return Culprit((found.name, None), rewrite, search.runs, text)


class _Search:
    def __init__(self, study: Study, cluster: Cluster, node: Node, right: dict[Node, Value]) -> None:
        self.study, self.cluster, self.node, self.right = study, cluster, node, right
        self.runs = 0

    def culprit_edge(self) -> tuple[Node, Node] | None:
        """None where the output is wrong without any fusion."""
        edges = self._edges()
        if not edges or not self._right_at(level="O0"):
            return None
        first = _first(len(edges), lambda n: self._right_cut(edges[:n]))
        return edges[first] if first is not None else None

    def culprit_operation(self) -> Node | None:
        """The operation that has to be NumPy's for the output to be right, found among the operations in program order."""
        nodes = [n for n in self._needed() if is_operation(n)]
        first = _first(len(nodes), lambda count: count == len(nodes) or self._right_after(nodes[:count]))
        return nodes[first] if first is not None else None

    def _needed(self) -> list[Node]:
        """What the output is made of in its cluster, in program order."""
        wanted = {self.node}
        for n in reversed(self.cluster.nodes):
            if n in wanted:
                wanted.update(n.inputs)
        return [n for n in self.cluster.nodes if n in wanted]

    def _edges(self) -> list[tuple[Node, Node]]:
        """The edges on the way to the output over which nothing is stored, in program order."""
        needed = self._needed()
        inside = {n for n in needed if is_operation(n)}
        apart = {(edge.producer, edge.consumer) for edge in self.study.executable.plan.boundaries}
        return [
            (source, n) for n in needed for source in dict.fromkeys(n.inputs) if source in inside and (source, n) not in apart
        ]  # fmt: skip

    def _right_at(self, **settings: Any) -> bool:
        self.study.draw_as_before(self.cluster.nodes)
        return self._holds(self.study.fresh(**settings).run_cluster(self.cluster, self.study.inputs_of(self.cluster)))

    def _right_cut(self, edges: Sequence[tuple[Node, Node]]) -> bool:
        return self._right_at(overrides=Overrides(cut=tuple((a.name, b.name) for a, b in edges)))

    def _right_after(self, done: Sequence[Node]) -> bool:
        """Is the output right where NumPy did these operations?"""
        known = {n for n in self.cluster.nodes if n in done or (n.op.name == "Item" and n.inputs[0] in done)}
        nodes = [n for n in self._needed() if n not in known]
        inside = set(nodes)
        read = dict.fromkeys(source for n in nodes for source in n.inputs if source not in inside)
        rest = replace(self.cluster, nodes=nodes, inputs=list(read), outputs=[self.node], silent=[])
        values = {**{n: self.study.values[n] for n in read}, **self.study.inputs_of(self.cluster)}
        self.study.draw_as_before(nodes)
        return self._holds(self.study.fresh().run_cluster(rest, values))

    def _holds(self, found: dict[Node, Any]) -> bool:
        from .check import compare

        self.runs += 1
        self.study.pause()
        return bool(compare(self.study.values[self.node], found[self.node], self.right[self.node])["ok"])


def find_pass(captured: Graph, arguments: list[Any], before: dict[Node, Any], pause: Pause) -> Culprit:
    """The first pass after which the graph's outputs are others, and the operation in which it shows first."""
    from .check import Culprit, op_by_op, same_values

    wanted = [before[node] for node in captured.outputs]
    runs = 0

    def after(count: int) -> Graph:
        graph = captured
        for one in pipeline.PASSES[:count]:
            graph = with_bodies(one)(graph)
        return graph

    def is_changed(count: int) -> bool:
        nonlocal runs
        runs += 1
        pause()
        graph = after(count)
        values = op_by_op(graph, arguments)
        return not all(same_values(values[node], value) for node, value in zip(graph.outputs, wanted, strict=True))

    guilty = _first(len(pipeline.PASSES), is_changed)
    if guilty is None:
        return Culprit(None, "the order of the passes", runs, f"No single pass changes the output. {runs} runs.")
    name = pipeline.PASSES[guilty].__name__
    old, new = after(guilty), after(guilty + 1)
    was, now = op_by_op(old, arguments), op_by_op(new, arguments)
    known = {node.name: value for node, value in was.items()}
    shown = next(
        (n for n in new.nodes if is_operation(n) and n.name in known and not same_values(known[n.name], now[n])),
        new.outputs[0],
    )
    text = (
        f"The pass {name} changes {told_node(shown, lines=True)}: before it the graph gives NumPy's bits. Found in {runs} runs."
    )
    return Culprit((shown.name, None), f"the pass {name}", runs, text)


def _first(count: int, holds: Callable[[int], bool]) -> int | None:
    """The least n below `count` for which holds(n + 1), where holds(0) is known to be false; about log2(count) questions."""
    low, high = 0, count  # holds(low) is false; holds(high) is true, or nothing does
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    if high == count and not holds(count):
        return None
    return high - 1
