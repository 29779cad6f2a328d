"""The smallest change that would flip a decision: each is tried on the graph before it is told.

A change is only supposed (`Trial`), the clusterer's own rules then say what would come of it. Nothing is tried until somebody
asks, and in large graphs only what is certain without a trial is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jitlab import messages
from jitlab.ir import LARGEST, Apart, Change, Clustering, ClusteringOptions, Edge, Flip, Node, Stays, told_node
from jitlab.messages import Message
from jitlab.support.lazy import lazy

from .candidates import FLOAT64, Study, Trial, is_control, is_one_of_several, unsupported
from .partition import Partition, contracted, device_text

if TYPE_CHECKING:
    Proposal = tuple[Flip, Trial, ClusteringOptions]

#: Operations that all trials of one graph may look at together.
MOST_WORK = 3_000


class Advisor:
    """What would change a decision of one clustering: asked for an operation that stayed out, or an edge that was left."""

    def __init__(self, clustering: Clustering) -> None:
        self.clustering = clustering
        self._known: dict[Any, Flip | None] = {}
        self._work = 0
        self._outcomes: dict[Any, dict[Node, int]] = {}

    @lazy
    def study(self) -> Study:
        """What was clustered, as the clusterer saw it."""
        given = self.clustering.made_of
        assert given is not None
        return Study(self.clustering.graph, given.options, given.jit_compile, overrides=self.clustering.overrides)

    @lazy
    def partition(self) -> Partition:
        """Its groups, when nothing could be joined any more."""
        return contracted(self.study)

    @property
    def options(self) -> ClusteringOptions:
        return self.partition.options

    @property
    def _scopes_count(self) -> bool:
        return self.study.marked_only is not None

    def __call__(self, what: Node | Edge) -> Flip | None:
        if self.clustering.made_of is None:
            return None
        key = (what.producer, what.consumer) if isinstance(what, Edge) else what
        if key not in self._known:
            self._known[key] = self._edge(what) if isinstance(what, Edge) else self._node(what)
        return self._known[key]

    # ---- operations

    def _node(self, node: Node) -> Flip | None:
        if node not in self.clustering.stays or node not in self.partition.number:
            return None
        for flip, trial, options in self._for_node(node):
            if self._is_certain(node, flip, trial, options) or self._holds(trial, options, lambda found: node in found):
                return flip
        return None

    def _for_end(self, node: Node, other: Node | None) -> Iterator[Proposal]:
        """The same, for an end of an edge or what is on a way between them: in the other's scope, and called by its name."""
        scope = self.study.attrs(other).get("_XlaScope") if self._scopes_count and other is not None else None
        for flip, trial, options in self._for_node(node, scope):
            said = flip.said
            if f"{said.name}_of" in messages.codes("flip"):
                said = Message(f"{said.code}_of", {**said.args, "name": told_node(node)})
            yield replace(flip, said=said), trial, options

    def _for_node(self, node: Node, scope: str | None = None) -> Iterator[Proposal]:
        """Changes that might bring an operation into a cluster; `scope`: one that it would share."""
        reason = self.clustering.stays[node]
        options = self.options
        code = reason.code
        marked = {**self.study.attrs(node), "_XlaCompile": True}
        if code is Stays.DISALLOWED:
            yield _flip(Change.ALLOW, (node.name,)), _attrs(node, marked), options
        elif code in (Stays.JIT_OFF, Stays.LEVEL):
            flip = _flip(Change.MARK, (node.name,), scope, "mark_in" if scope else "mark", scope=scope)
            marked |= {} if scope is None else {"_XlaScope": scope}
            yield flip, _attrs(node, marked), options
        elif code is Stays.SIZE and reason.evidence[0]:
            size = reason.evidence[0]
            yield _flip(Change.MIN_SIZE, value=size), Trial(), replace(options, min_size=size)
        elif code is Stays.FUEL:
            need = self._place(node)
            yield _flip(Change.FUEL, value=need), Trial(), replace(options, fuel=need)
        elif code in (Stays.NOT_LISTED, Stays.NOT_FUSIBLE):
            call = reason.evidence[0]
            flip = _flip(Change.LIST, value=call)
            yield flip, Trial(), replace(options, listed=(options.listed or frozenset()) | {call})
        elif code is Stays.EXCLUDED:
            call = reason.evidence[0]
            flip = _flip(Change.DO_NOT_EXCLUDE, value=call)
            yield flip, Trial(), replace(options, excluded=options.excluded - {call})
        elif code is Stays.SLOW and self._all_compile():
            yield _flip(Change.MUST), Trial(), replace(options, slow=True)
        elif code is Stays.DTYPE and _has_a_loop_for_floats(node):
            yield _flip(Change.CAST, (node.name,), "float64", kind=told_node(node)), Trial(compiled=frozenset([node])), options
        elif code is Stays.DEPTH and unsupported(node) is None:
            yield _flip(Change.NEST_LESS, value=options.deepest), Trial(), replace(options, deepest=None)
        elif code is Stays.NO_COMPILER:
            placed = {**self.study.attrs(node), "device": "/device:CPU:0"}
            yield _flip(Change.PLACE, (node.name,), "/device:CPU:0", "on_cpu"), _attrs(node, placed), options

    def _is_certain(self, node: Node, flip: Flip, trial: Trial, options: ClusteringOptions) -> bool:
        """True without a trial: a marked candidate is always in a cluster, the least size changes nothing else."""
        if flip.change is Change.MIN_SIZE:
            return True
        if flip.change not in (Change.ALLOW, Change.MARK) or options.fuel < len(self.partition.operations):
            return False
        return Study(self.study.graph, options, self.study.jit_compile, trial).why_not(node) is None

    def _place(self, node: Node) -> int:
        """How many operations are taken up to this one, when fuel is no matter."""
        study = Study(self.study.graph, replace(self.options, fuel=LARGEST), self.study.jit_compile)
        count = 0
        for other in study.operations:
            count += study.why_not(other) is None and not is_one_of_several(other)
            if other is node:
                break
        return count

    def _all_compile(self) -> bool:
        return all(unsupported(node) is None for node in self.partition.operations)

    # ---- edges

    def _edge(self, edge: Edge) -> Flip | None:
        for flip, trial, options in self._for_edge(edge):
            producer = _copy if flip.change is Change.COMPUTE_TWICE else edge.producer
            if self._holds(trial, options, lambda found, p=producer: _together(found, p, edge.consumer)):  # type: ignore[misc]
                return flip
        return None

    def _for_edge(self, edge: Edge) -> Iterator[Proposal]:
        part, options = self.partition, self.options
        a, b = edge.producer, edge.consumer
        code = edge.reason.code
        if code is Apart.NOT_COMPILED:
            yield from self._for_ends(edge)
            return
        assert part.contraction is not None
        group_a, group_b = (part.groups[part.contraction.group(part.number[node])] for node in (a, b))
        if code is Apart.SCOPES:
            yield self._one_scope(group_b, edge.reason.evidence[0])
            yield self._one_scope(group_a, edge.reason.evidence[1])
            yield from self._on()
        elif code is Apart.SIZE:
            for size in dict.fromkeys((edge.reason.evidence[0], 2 * edge.reason.evidence[0], len(part.operations) * 2)):
                yield _flip(Change.MAX_SIZE, value=size), Trial(), replace(options, max_size=size)
        elif code is Apart.DEVICES:
            yield self._on_device(group_b, a)
            yield self._on_device(group_a, b)
        elif code is Apart.CROSS_DEVICE:
            _, others, _ = part.why_apart(*(part.contraction.group(part.number[node]) for node in (a, b)))
            yield self._on_device(part.groups[part.contraction.group(part.number[others[0]])], b)
        elif code is Apart.RESOURCES:
            names = edge.reason.evidence
            read = next(node for node in part.operations if node.name == names[1])
            if read.op.name == "ReadVariableOp":
                flip = _flip(Change.USE_VALUE, names, read=names[1], assign=names[0])
                yield flip, Trial(no_variable=frozenset([read])), options
        elif code is Apart.CYCLE:
            yield from self._for_cycle(edge, group_a)

    def _for_ends(self, edge: Edge) -> Iterator[Proposal]:
        """One end (or both) is not compiled: what would compile it, in the other's scope."""
        stays = self.clustering.stays
        out = [node for node in (edge.producer, edge.consumer) if node in stays and node in self.partition.number]
        for node in out:
            other = edge.consumer if node is edge.producer else edge.producer
            yield from self._for_end(node, other)
        if len(out) == 2 and all(stays[node].code is Stays.JIT_OFF for node in out):
            yield from self._on()

    def _for_cycle(self, edge: Edge, group_a: list[Node]) -> Iterator[Proposal]:
        part, options = self.partition, self.options
        assert part.contraction is not None
        ends = [part.contraction.group(part.number[node]) for node in (edge.producer, edge.consumer)]
        _, path, _ = part.why_apart(*ends)
        scoped = next((node for node in group_a if self.study.attrs(node).get("_XlaScope")), None)
        for node in path:
            if node in self.clustering.stays:
                yield from self._for_end(node, scoped)
        if self._scopes_count and scoped is not None:
            members = [n for node in path for n in part.groups.get(part.contraction.group(part.number[node]), ())]
            yield self._one_scope(members, self.study.attrs(scoped)["_XlaScope"])
        if options.max_size < LARGEST:
            size = len(part.operations) * 2
            yield _flip(Change.MAX_SIZE, value=size), Trial(), replace(options, max_size=size)
        producer, consumer = edge.producer, edge.consumer
        several = is_control(producer) or producer.op.name == "Item"
        if producer in consumer.inputs and not producer.op.has_effects and not several:
            said = {"producer": told_node(producer), "reader": told_node(consumer)}
            flip = _flip(Change.COMPUTE_TWICE, (producer.name, consumer.name), None, "twice", **said)
            yield flip, Trial(copied=(producer, consumer)), options

    def _on(self) -> Iterator[Proposal]:
        if self.study.jit_compile is None and self.study.level == "OFF" and not self.study.graph.marked_only:
            options = replace(self.options, level="ON", level_on_one_gpu=None)
            yield _flip(Change.LEVEL, value="ON"), Trial(), options

    def _one_scope(self, nodes: Iterable[Node], scope: Any) -> Proposal:
        before = {node: self.study.attrs(node) for node in nodes}
        attrs = {node: {**mine, "_XlaScope": scope} for node, mine in before.items() if mine.get("_XlaScope")}
        said = scope.decode() if isinstance(scope, bytes) else scope
        flip = _flip(Change.ONE_SCOPE, tuple(node.name for node in attrs), scope, scope=said)
        return flip, Trial(attrs), self.options

    def _on_device(self, nodes: Iterable[Node], like: Node) -> Proposal:
        device = device_text(self.study.device(like))
        attrs = {node: {**self.study.attrs(node), "device": device} for node in nodes if node.name}
        kinds = " and ".join(map(told_node, attrs))
        flip = _flip(Change.PLACE, tuple(node.name for node in attrs), device, kinds=kinds)
        return flip, Trial(attrs), self.options

    # ---- trying

    def _holds(self, trial: Trial, options: ClusteringOptions, wanted: Callable[[Mapping[Node, int]], bool]) -> bool:
        outcome = self._outcome(trial, options)
        return outcome is not None and wanted(outcome)

    def _outcome(self, trial: Trial, options: ClusteringOptions) -> dict[Node, int] | None:
        """The cluster (a number) of each operation that would be in one; None when too much has been tried."""
        attrs = frozenset((node, *sorted(attrs.items())) for node, attrs in trial.attrs.items())
        key = options, attrs, trial.compiled, trial.no_variable, trial.copied
        if key not in self._outcomes:
            count = len(self.partition.operations)
            if self._work + count > MOST_WORK:
                return None
            self._work += count
            self._outcomes[key] = self._tried(trial, options)
        return self._outcomes[key]

    def _tried(self, trial: Trial, options: ClusteringOptions) -> dict[Node, int]:
        study = Study(self.study.graph, options, self.study.jit_compile, trial)
        partition = Partition(study, study.stays())
        partition.contract()
        found: dict[Node, int] = {}
        for number, group in partition.groups.items():
            if partition.kept(group):
                found.update(dict.fromkeys(group, number))
        if study.copy is not None and study.copy in found:
            found[_copy] = found[study.copy]
        return found


#: Stands for the second copy of an operation in what a trial found.
_copy = Node(None, (), None)  # type: ignore[arg-type]


def _flip(change: Change, names: tuple[str, ...] = (), value: Any = None, row: str = "", **args: Any) -> Flip:
    """A change, told in the message of its name, which may speak of its value."""
    args |= {} if isinstance(value, bytes) else {"value": value}
    return Flip(change, Message(f"flip.{row or change.name.lower()}", args), names, value)


def _attrs(node: Node, attrs: Mapping[str, Any]) -> Trial:
    return Trial(attrs={node: attrs})


def _has_a_loop_for_floats(node: Node) -> bool:
    if is_control(node) or not node.inputs:
        return False
    return node.op.why_not_compiled(*(source.type.with_dtype(FLOAT64) for source in node.inputs)) is None


def _together(found: Mapping[Node, int], a: Node, b: Node) -> bool:
    return a in found and b in found and found[a] == found[b]
