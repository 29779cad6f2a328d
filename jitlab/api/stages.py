"""The stages after capture, in order: the only file that names every one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jitlab import events
from jitlab.capture import Trace
from jitlab.cluster import cluster
from jitlab.config import config
from jitlab.ir import Graph
from jitlab.passes import run_passes
from jitlab.runtime import Executable
from jitlab.runtime.dumps import dump_cluster


@dataclass(frozen=True)
class Options:
    """What decides how a trace is compiled."""

    jit_compile: bool | None = None
    level: str = "O1"


def compile_trace(trace: Trace, options: Options) -> Callable[[Sequence[Any]], list[Any]]:
    """The stages after capture, in order: passes, clusters, machine code. Gives what runs the trace."""

    def tell(name: str, before: Graph, after: Graph, start_ns: int, duration_ns: int) -> None:
        if events.active():
            events.send(
                events.PassRan(
                    cell=events.current_cell(), function=trace.name, trace=trace.number, name=name,
                    nodes_before=len(before.nodes), nodes_after=len(after.nodes), start_ns=start_ns, duration_ns=duration_ns,
                )
            )  # fmt: skip

    graph = run_passes(trace.graph, tell)
    clustering = cluster(
        graph, level=config.global_jit_level, min_size=config.min_cluster_size, max_size=config.max_cluster_size,
        jit_compile=options.jit_compile, function=trace.name,
    )  # fmt: skip
    for made in clustering.clusters:
        dump_cluster(
            made,
            [
                ("pipeline start, before inline", trace.graph.nodes),
                ("after inline, before fuse", made.nodes),
            ],
        )
    executable = Executable(
        clustering, function=trace.name, trace=trace.number, level=options.level, writes=trace.writes
    )  # fmt: skip
    trace.executable = executable
    return executable.run_in_place if trace.writes else executable.run
