"""The stages after capture, in order: the only file that names every one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from jitlab import events
from jitlab.capture import Trace
from jitlab.cluster import ClusteringOptions, cluster, warn_of_unmet
from jitlab.errors import InternalError
from jitlab.flags import read_flags
from jitlab.ir import DECISIONS, Clustering, Graph
from jitlab.passes import order_operations, run_passes
from jitlab.runtime import Executable
from jitlab.runtime.clustering_dumps import dump_clustering
from jitlab.runtime.dumps import dump_cluster

from .alternatives import Alternatives
from .questions import Place
from .refusals import repeated


@dataclass(frozen=True)
class Options:
    """What decides how a trace is compiled."""

    jit_compile: bool | None = None
    level: str = "O1"
    exec_order: str = ""  # "bfs" or "dfs"; "": program order
    replays: bool = False  # a call that fails is begun anew as Python: until then nothing may have happened that can be seen
    clustering: ClusteringOptions | None = None  # None: as jl.config and the flags have it now
    scopes: bool = True  # False: as if the program had no jit_scope

    def __str__(self) -> str:
        return f"jit_compile={self.jit_compile}"


def compile_trace(
    trace: Trace, options: Options, prepared: Callable[[Graph], Graph] | None = None
) -> Callable[[Sequence[Any]], list[Any]]:
    """The stages after capture, in order: passes, clusters, machine code. Gives what runs the trace. `prepared`: what is
    done to the graph before it is cut into clusters. A trace that must not run raises its InternalError at each call."""
    try:
        return _compiled(trace, options, prepared)
    except InternalError as error:
        return partial(_raise, error)


def _raise(error: InternalError, inputs: Sequence[Any]) -> list[Any]:
    raise InternalError(error.what, where=error.where, why=error.why, hint=error.hint)


def _compiled(
    trace: Trace, options: Options, prepared: Callable[[Graph], Graph] | None
) -> Callable[[Sequence[Any]], list[Any]]:
    def tell(name: str, before: Graph, after: Graph, start_ns: int, duration_ns: int) -> None:
        if events.active():
            events.send(
                events.PassRan(
                    cell=events.current_cell(), function=function, trace=number, name=name,
                    nodes_before=len(before.nodes), nodes_after=len(after.nodes), start_ns=start_ns, duration_ns=duration_ns,
                )
            )  # fmt: skip

    wanted = options.clustering or ClusteringOptions.for_functions(read_flags(), errors_in_order=not options.replays)

    def clustered(graph: Graph, names: Mapping[str, str] | None = None) -> Clustering:
        graph = run_passes(graph, tell)
        if options.exec_order:
            graph = order_operations(graph, options.exec_order)
        if prepared is not None:
            graph = prepared(graph)
        if not options.scopes:
            graph = without_scopes(graph)
        made = cluster(graph, wanted, jit_compile=options.jit_compile, function=function, names=names)
        again = repeated_in(made, options.level) if made.overrides.fuse else ()
        if not again:
            return made
        known = {node.name: c.name for c in made.clusters for node in c.members} if names is None else names
        return cluster(graph, wanted, jit_compile=options.jit_compile, function=function, names=known, again=again)

    function, number, writes = trace.name, trace.number, trace.writes
    clustering = clustered(trace.graph)
    if options.scopes:
        warn_of_unmet(trace.graph, clustering.graph)
    dump_clustering(clustering, trace.name)
    executable = Executable(
        clustering, function=trace.name, trace=trace.number, level=options.level, writes=trace.writes,
        lasting=trace.lasting,
    )  # fmt: skip
    for made in clustering.clusters:
        dump_cluster(
            made,
            [
                ("pipeline start, before inline", trace.graph.nodes),
                ("after inline, before fuse", made.nodes),
                ("after fuse, pipeline end", partial(executable.program_text, made)),
            ],
        )
    trace.executable = executable
    executable.captured, executable.plan.alternative = trace.graph, Alternatives(executable.graph)
    executable.again = lambda graph: Executable(
        clustered(graph, {}), function=function, trace=number, level=options.level, writes=writes, is_trial=True
    )
    return _all_or_nothing(executable) if trace.writes else executable.run


def _all_or_nothing(executable: Executable) -> Callable[[Sequence[Any]], list[Any]]:
    """Arguments are changed in place where nothing can fail, else when everything has been computed: a call that raises
    changes none of them."""
    return lambda inputs: executable.run(inputs) if executable.may_fail(inputs) else executable.run_in_place(inputs)


def repeated_in(clustering: Clustering, level: str) -> tuple[tuple[str, str], ...]:
    """What fusions of scopes compute a second time: producers that are apart from their readers otherwise."""
    trial = Executable(clustering, level=level, is_trial=True)
    with events.muted():
        trial.prepare([np.empty(tuple(int(n) for n in p.shape), p.dtype) for p in clustering.graph.parameters])
    return repeated(Place(trial.plan), clustering.overrides.fuse)


def without_scopes(graph: Graph) -> Graph:
    """The same graph with nothing marked: the clusterer decides alone."""
    plain = graph.rewrite(lambda node: None)
    plain.marked_only = False
    for node in plain.nodes:
        node.attrs = {name: value for name, value in node.attrs.items() if not name.startswith("_Xla") and name != DECISIONS}
    return plain


__all__ = ["ClusteringOptions", "Options", "compile_trace"]
