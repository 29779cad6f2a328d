"""A plan as docs/reference/report-format.md has it: operations, clusters, kernels, cut edges, copies and temporaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jitlab import messages
from jitlab.ir.extents import Moving, plain
from jitlab.ir.graphs.bodies import body_sources, every_node, inner_nodes
from jitlab.ir.graphs.called import told_node, written
from jitlab.ir.graphs.graph import Node
from jitlab.messages import Message

from .reasons import Copied, Reason, Stored, in_words

if TYPE_CHECKING:
    from .plan import Cluster, Clustering, Edge, KernelInfo, Plan


def plan_json(plan: Plan) -> dict[str, Any]:
    """`plans`, `ops`, `clusters`, `kernels`, `boundaries` of docs/reference/report-format.md, without times, and `copies`."""
    sources = _sources(plan)
    kernels = [_kernel(k) for k in plan.kernels]
    for made, said in zip(kernels, plan.threads, strict=False):
        if said is not None:
            made["threads"] = said.to_json()
    return {
        "plans": [{"name": plan.title, "function": plan.function, "trace": plan.trace}], "ops": _ops(plan, sources),
        "clusters": [_cluster(plan, c) for c in plan.clustering.clusters], "kernels": kernels,
        "boundaries": _boundaries(plan, sources), "copies": _copies(plan), "temporaries": _temporaries(plan),
        "activity": activity(plan), "sources": plan.sources,
    }  # fmt: skip


# ---- operations
def _ops(plan: Plan, sources: dict[Node, str]) -> list[dict[str, Any]]:
    """The operations of the graph, each followed by those in its bodies."""
    clustering = plan.clustering
    cluster_of = {node: c for c in clustering.clusters for node in c.members}
    kernel_of: dict[Node, KernelInfo] = {}
    for info in plan.kernels:
        for node in info.nodes:
            kernel_of.setdefault(node, info)
    texts = written(every_node(clustering.graph))
    ops = []
    for node in clustering.graph.nodes:
        if not is_operation(node):
            continue
        cluster, kernel, reason = cluster_of.get(node), kernel_of.get(node), clustering.stays.get(node)
        ops.append(_op(plan, node, cluster, kernel, reason, sources, texts))
        for inner, name, parent in inner_nodes(node):
            if is_operation(inner):
                made = _op(plan, inner, cluster, kernel, reason, sources, texts)
                ops.append({**made, "name": name, "parent": parent, "side": _side(name, parent)})
    return ops


def _sources(plan: Plan) -> dict[Node, str]:
    """What is read where a node is read, as reports call it: a result of a loop is the loop's."""
    sources: dict[Node, str] = {}
    for node in plan.clustering.graph.nodes:
        sources[node] = node.name
        if node.op.name == "Item" and is_operation(node.inputs[0]):
            sources[node] = node.inputs[0].name
        body_sources(node, node.name, sources)
    return sources


def _op(
    plan: Plan, node: Node, cluster: Cluster | None, kernel: KernelInfo | None, reason: Reason | None, sources: dict[Node, str],
    texts: dict[Node, str],
) -> dict[str, Any]:
    read = [source for source in node.inputs if is_operation(source) or source.op.is_parameter or source.op.name == "Item"]
    made = {
        "name": node.name, "plan": plan.title, "op": node.op.name, "cluster": cluster.name if cluster else None,
        "kernel": kernel.name if kernel else None, "reason": reason.to_json() if reason else None,
        "lines": spans(node.sources), "shape": list(plain(node.shape)), "dtype": str(node.dtype),
        "inputs": list(dict.fromkeys(sources.get(source, source.name) for source in read)),
        "scope": _text(node.attrs.get("_XlaScope")), "seconds": None, "written": texts[node], "word": node.op.word,
    }  # fmt: skip
    if node.called:
        made["called"] = node.called
    if node.within:
        made["within"] = node.within
    if node.attrs.get("device"):
        made["device"] = str(node.attrs["device"])
    if hasattr(node.op, "count") and hasattr(node.op, "test"):
        count = node.op.count  # one that hangs on the loop around it is another each time
        made["iterations"] = None if count is None or isinstance(count, Moving) else max(0, int(count))
        made["ends_early"] = node.op.test is not None
    return made


def _side(name: str, parent: str) -> str:
    """Of what is in a branch "then" or "else", in a loop "test" or "body"."""
    kind, inside, _ = name.removeprefix(f"{parent}/").partition("/")
    return kind if inside else "body"


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


# ---- clusters and kernels
def _cluster(plan: Plan, cluster: Cluster) -> dict[str, Any]:
    mine = [k for k in plan.kernels if k.cluster == cluster.name]
    made = {
        "name": cluster.name, "plan": plan.title, "ops": _names(cluster.members),
        "kernels": [k.name for k in mine], "reason": cluster.reason.to_json(), "calls": 0, "seconds": None,
        "flops": sum(k.flops for k in mine), "bytes_read": sum(k.bytes_read for k in mine),
        "bytes_written": sum(k.bytes_written for k in mine), "lines": line_numbers(_inside(cluster.nodes)),
        "bytes_saved": _total(_saved(k) for k in mine),
        "temporary_bytes": sum(t.bytes for t in plan.temporaries if t.cluster == cluster.name),
        "scratch_bytes": plan.scratch.get(cluster.name, 0),
    }  # fmt: skip
    if cluster.device:
        made["device"] = cluster.device
    if plan.placed is not None:
        made["placed"] = plan.placed.to_json()
    if any(k.per_turn for k in mine):
        made["per_turn"] = True
    return made


def _kernel(kernel: KernelInfo) -> dict[str, Any]:
    made = {
        "name": kernel.name, "cluster": kernel.cluster, "ops": _names(kernel.nodes), "kind": kernel.kind,
        "lines": line_numbers(_inside(kernel.nodes)), "calls": 0, "seconds": None, "bytes_read": kernel.bytes_read,
        "bytes_written": kernel.bytes_written, "flops": kernel.flops, "bound": None, "of_peak": None,
        "bytes_saved": _saved(kernel),
    }  # fmt: skip
    if libraries := list(_libraries(kernel)):
        made["libraries"] = libraries
    if kernel.nests:
        made["nests"] = list(_nests(kernel))
    if kernel.per_turn:
        made["per_turn"] = True
    return made


def _libraries(kernel: KernelInfo) -> Iterator[str]:
    """Of each call of a library in a kernel, those in its loops and branches too, whose code that is."""
    if kernel.kind == "library":
        yield from [node.op.library for node in kernel.nodes if hasattr(node.op, "library")][:1]
    origins = [nest.origins for nest in kernel.nests if nest.kind == "library"]
    for node in kernel.nodes if origins else ():
        for inner, _, _ in inner_nodes(node):
            if hasattr(inner.op, "library") and any(inner.origins <= of for of in origins):
                yield inner.op.library


def _nests(kernel: KernelInfo) -> Iterator[dict[str, Any]]:
    """The nests inside the loops and branches of a kernel, each with its operations."""
    inside = [(inner, name) for node in kernel.nodes for inner, name, _ in inner_nodes(node) if is_operation(inner)]
    for nest in kernel.nests:
        mine = [(inner, name) for inner, name in inside if inner.origins <= nest.origins]
        if mine:
            yield {"kind": nest.kind, "ops": [name for _, name in mine], "lines": line_numbers([inner for inner, _ in mine])}


def _saved(kernel: KernelInfo) -> int | None:
    """Bytes that fusion keeps out of memory in a call of a kernel."""
    if kernel.bytes_op_by_op is None:
        return None
    return kernel.bytes_op_by_op - kernel.bytes_read - kernel.bytes_written


def _total(counts: Iterable[int | None]) -> int | None:
    """The sum; None where a part of it is unknown."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


# ---- what was not fused, and what lies in memory
def _boundaries(plan: Plan, sources: dict[Node, str]) -> list[dict[str, Any]]:
    return [
        {
            "producer": sources.get(edge.producer, edge.producer.name),
            "consumer": sources.get(edge.consumer, edge.consumer.name), "reason": edge.reason.to_json(),
            "bytes": edge.bytes, "flip": edge.would_fuse_if and edge.would_fuse_if.to_json(),
            **({"rejections": list(_rejections(edge, sources))} if edge.rejections else {}),
        }
        for edge in (*plan.boundaries, *plan.clustering.apart)
    ]  # fmt: skip


def _rejections(edge: Edge, sources: dict[Node, str]) -> Iterator[dict[str, Any]]:
    """All that kept the consumer out; what it is about is called as the edge's ends are, in whose graph it is."""
    around = sources.get(edge.consumer, edge.consumer.name).removesuffix(edge.consumer.name)
    for found in edge.rejections:
        yield {
            "code": found.code.name.lower(), "operands": [around + name for name in found.operands],
            "evidence": [str(part) for part in found.evidence], "bytes": found.bytes,
            "flip": found.flip and found.flip.said.to_json(),
        }  # fmt: skip


def _copies(plan: Plan) -> list[dict[str, Any]]:
    inside = {inner: name for node in plan.clustering.graph.nodes for inner, name, _ in inner_nodes(node)}
    return [
        {
            "node": inside.get(c.node, c.node.name), "cluster": _home(c.node, plan.clustering.clusters),
            "reason": {**c.reason.to_json(), "text": messages.text(_said_of_copy(c.reason.code), text=c.reason.text)},
            "bytes": c.bytes, "lines": spans(c.node.sources),
        }
        for c in plan.copies
    ]  # fmt: skip


def _said_of_copy(code: Any) -> str:
    return "copy.stored" if code in (Copied.SOURCE_CHANGES, Copied.SNAPSHOT, Copied.OVERLAP) else "copy.copied"


def _home(node: Node, clusters: Sequence[Cluster]) -> str | None:
    """The cluster that computes a node, itself or in the body of a loop or a branch."""
    sources = [source for n in node.inputs for source in (n, *n.inputs)]
    wanted = (node, *sources)  # lowering makes copies of its own: they are where what they copy is
    return next((c.name for n in wanted for c in clusters if _contains(c.nodes, n)), None)


def _contains(nodes: Sequence[Node], node: Node) -> bool:
    return node in nodes or any(_contains(graph.nodes, node) for n in nodes for graph in getattr(n.op, "graphs", ()))


def _temporaries(plan: Plan) -> list[dict[str, Any]]:
    """What reaches memory inside clusters, then what goes from one cluster to another or to NumPy."""
    clusters = plan.clustering.clusters
    inner = {node: name for c in clusters for n in c.nodes for node, name, _ in inner_nodes(n)}
    inside = [
        {
            "plan": plan.title, "cluster": t.cluster,
            "name": inner.get(t.producer, t.producer.name) + t.name.removeprefix(t.producer.name),
            "producer": inner.get(t.producer, t.producer.name),
            "consumers": [inner.get(node, node.name) for node in t.consumers], "bytes": t.bytes, "place": "scratch",
            "lines": spans(t.producer.sources), "consumer_lines": line_numbers(t.consumers), "reason": t.reason.to_json(),
        }
        for t in plan.temporaries
    ]  # fmt: skip
    return inside + [
        {
            "plan": plan.title, "cluster": c.name, "name": node.name, "producer": node.name,
            "consumers": [reader.name for reader in readers], "bytes": node.type.nbytes, "place": "result",
            "lines": spans(node.sources), "consumer_lines": line_numbers(readers),
            "reason": in_words(Stored.LEAVES_CLUSTER, _reader_said(readers[0], plan.clustering)).to_json(),
        }
        for c, node, readers in _between(plan.clustering)
    ]  # fmt: skip


def _between(clustering: Clustering) -> Iterable[tuple[Cluster, Node, list[Node]]]:
    """Values that leave their cluster and are no results of the graph, with the operations that read them."""
    results = set(clustering.graph.outputs)
    for c in clustering.clusters:
        inside = set(c.members)
        for node in c.outputs:
            readers = [n for n in clustering.graph.nodes if node in n.inputs and n not in inside and is_operation(n)]
            if readers and node not in results:
                yield c, node, readers


def _reader_said(reader: Node, clustering: Clustering) -> Message:
    home = next((c.name for c in clustering.clusters if reader in c.members), None)
    if home is None:
        return Message("stored.numpy_reads", {"reader": told_node(reader)})
    return Message("stored.read_in", {"reader": told_node(reader), "cluster": home})


# ---- what is counted
def activity(plan: Plan) -> dict[str, Any]:
    """The summary of one graph: how many nodes are in clusters, of which kinds. Constants are nodes."""
    clustering = plan.clustering
    clusters = clustering.clusters
    mine = {node for c in clusters for node in c.members}
    graph = clustering.graph
    outside = [node for node in (*graph.parameters, *graph.nodes) if _counts(node) and node not in mine]
    return {
        "unclustered_node_count": len(outside),
        "clustered_node_count": sum(_counts(node) for node in mine),
        "clusters": [
            {"name": c.name, "size": sum(map(_counts, c.members)), "op_histogram": _histogram(c.members)} for c in clusters
        ],
        "unclustered_op_histogram": _histogram(outside),
    }


def _counts(node: Node) -> bool:
    return node.op.name not in ("Item", "Size")


def _histogram(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    """The most frequent first, then by name."""
    counts = Counter(node.op.name for node in nodes if _counts(node))
    return [{"op": op, "count": count} for op, count in sorted(counts.items(), key=lambda kind: (-kind[1], kind[0]))]


# ---- operations and their lines
def is_operation(node: Node) -> bool:
    """Constants, parameters, axis lengths and the results of a loop are values, not operations, when operations are counted
    or listed."""
    return node.op.name not in ("Const", "Placeholder", "Size", "Item")


def _inside(nodes: Iterable[Node]) -> list[Node]:
    """The nodes and those in their bodies."""
    return [each for node in nodes for each in (node, *(inner for inner, _, _ in inner_nodes(node)))]


def _names(nodes: Iterable[Node]) -> list[str]:
    """The operations among the nodes and in their bodies, as reports call them."""
    names: list[str] = []
    for node in nodes:
        if is_operation(node):
            names.append(node.name)
            names += [name for inner, name, _ in inner_nodes(node) if is_operation(inner)]
    return names


def spans(sources: frozenset[Any]) -> list[list[Any]]:
    return [list(source) for source in sorted(sources)]


def line_numbers(nodes: Sequence[Node]) -> list[int]:
    return sorted({source.line for node in nodes if is_operation(node) for source in node.sources})
