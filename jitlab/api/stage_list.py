"""The stages after capture, in order: the only file that names every one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from jitlab import events
from jitlab.capture import Trace
from jitlab.cluster import cluster, clustered_anew, for_functions, warn_of_unmet
from jitlab.errors import InternalError
from jitlab.flags import read_flags
from jitlab.ir import DECISIONS, Clustering, Graph, Options
from jitlab.passes import copy_at_devices, order_operations, run_passes
from jitlab.runtime import Executable
from jitlab.runtime.clustering_dumps import dump_clustering
from jitlab.runtime.dumps import dump_cluster

from .whatif.blockers import repeated
from .whatif.plan_questions import Place


def compile_trace(trace: Trace, options: Options) -> Callable[[Sequence[Any]], list[Any]]:
    """The stages after capture, in order: passes, clusters, machine code. Gives what runs the trace. A trace that must not run
    raises its InternalError at each call."""
    try:
        return _compiled(trace, options)
    except InternalError as error:
        return partial(_raise, error)


def _raise(error: InternalError, inputs: Sequence[Any]) -> list[Any]:
    raise InternalError(error.what, where=error.where, why=error.why, hint=error.hint)


def _compiled(trace: Trace, options: Options) -> Callable[[Sequence[Any]], list[Any]]:
    if options.clustering is None:
        options = replace(options, clustering=for_functions(read_flags(), errors_in_order=not options.replays))
    clustering = _clustered(trace.graph, options, trace.name, trace.number)
    if options.scopes:
        warn_of_unmet(trace.graph, clustering.graph)
    dump_clustering(clustering, trace.name)
    executable = Executable(
        clustering, function=trace.name, trace=trace.number, level=options.level, writes=trace.writes,
        lasting=trace.lasting, captured=trace.graph, options=options,
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
    return _all_or_nothing(executable) if trace.writes else executable.run


def compiled_anew(executable: Executable, captured: Graph) -> Executable:
    """The stages after capture once more, of another captured graph: a trial, beside the executable that there is."""
    assert executable.options is not None
    return Executable(
        _clustered(captured, executable.options, executable.function, executable.trace, {}), function=executable.function,
        level=executable.level, writes=executable.writes, is_trial=True,
    )  # fmt: skip


def _clustered(graph: Graph, options: Options, function: str, trace: int, names: Mapping[str, str] | None = None) -> Clustering:
    def tell(name: str, before: Graph, after: Graph, start_ns: int, duration_ns: int) -> None:
        if events.active():
            events.send(
                events.PassRan(
                    cell=events.current_cell(), function=function, trace=trace, name=name,
                    nodes_before=len(before.nodes), nodes_after=len(after.nodes), start_ns=start_ns, duration_ns=duration_ns,
                )
            )  # fmt: skip

    graph = run_passes(graph, tell)
    if options.exec_order:
        graph = order_operations(graph, options.exec_order)
    graph = copy_at_devices(graph, options.devices)
    if not options.scopes:
        graph = without_scopes(graph)
    made = cluster(graph, options.clustering, jit_compile=options.jit_compile, function=function, names=names)
    again = repeated_in(made, options.level) if made.overrides.fuse else ()
    return clustered_anew(made, again=again) if again else made


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
