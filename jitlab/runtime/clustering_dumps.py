"""The graph before and after clustering, as `--tf_xla_clustering_debug` asks for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jitlab import events
from jitlab.flags import read_flags
from jitlab.ir import Clustering, Graph, Node
from jitlab.ir.graphs.dot import nodes_dot
from jitlab.support.later import Later

from .dumps import marked, write_dump

if TYPE_CHECKING:
    from pathlib import Path

pathlib, tempfile = Later("pathlib"), Later("tempfile")

STAGES = ("before_mark_for_compilation", "mark_for_compilation", "mark_for_compilation_annotated")


def dump_clustering(clustering: Clustering, function: str) -> list[Path]:
    """Write the graph as it was, with each operation's cluster, and with names that say it; tell each file.

    Files are `<stage>.dot`, then `<stage>_1.dot`, ... in the folder of `--xla_hlo_graph_path`. Nothing without the flag.
    """
    flags = read_flags()
    if not flags.tf_xla_clustering_debug:
        return []
    number = next(_numbers)
    folder = pathlib.Path(flags.xla_hlo_graph_path or tempfile.gettempdir())
    written = []
    for stage, naming in zip(STAGES, (_plain, _with_cluster, _annotated), strict=True):
        path = folder / f"{stage}{f'_{number}' if number else ''}.dot"
        title = f"graph {function} [{stage}]"
        write_dump(path, marked(nodes_dot(title, _renamed(clustering.graph, naming(clustering)))))
        print(f"{title}: {path}", flush=True)
        if events.active():
            events.send(events.DumpWritten(path=str(path)))
        written.append(path)
    return written


def _plain(clustering: Clustering) -> Callable[[Node], str]:
    return lambda node: node.name


def _with_cluster(clustering: Clustering) -> Callable[[Node], str]:
    home = _homes(clustering)
    return lambda node: f"{node.name} _XlaCluster={home[node]}" if node in home else node.name


def _annotated(clustering: Clustering) -> Callable[[Node], str]:
    home = _homes(clustering)

    def named(node: Node) -> str:
        return f"{'varhandle' if node.op.name == 'VarHandleOp' else home.get(node, 'unclustered')}/{node.name}"

    return named


def _homes(clustering: Clustering) -> dict[Node, str]:
    """The cluster of each operation; a constant that several clusters use is in the first."""
    home: dict[Node, str] = {}
    for cluster in clustering.clusters:
        for node in cluster.members:
            home.setdefault(node, cluster.name)
    return home


def _renamed(graph: Graph, name: Callable[[Node], str]) -> Sequence[Node]:
    """Arguments and operations under other names; the graph itself stays as it is."""
    new: dict[Node, Node] = {}
    for node in (*graph.parameters, *graph.nodes):
        new[node] = Node(node.op, [new[source] for source in node.inputs], node.type, name=name(node), sources=node.sources)
    return list(new.values())


_numbers = itertools.count()
