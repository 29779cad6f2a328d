"""The stages in order, each a function from one type of `ir` to the next: the only file that names every one.

    capture     Python → Graph       while a call or a cell runs: the Trace that `compile_trace` is given
    passes      Graph → Graph        `simplified`
    clustering  Graph → Clustering   `clustered`
    lowering    Cluster → Lowered    `lower`, for each way in which the inputs of a cluster lie in memory
    target      Program → Compiled   `Target.compiled`, of what nobody has compiled before (`runtime/compiled.py`)

The first three are done when something is traced. How arrays lie is known when a trace runs: its Executable is given the
lowering and the target, and asks them then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jitlab import events
from jitlab.capture import Trace
from jitlab.cluster import cluster, for_functions, warn_of_unmet, without_scopes
from jitlab.config import config
from jitlab.errors import InternalError
from jitlab.flags import read_flags
from jitlab.ir import Clustering, Graph, Options
from jitlab.ir.size_facts import SizeFacts, here, noting
from jitlab.lower import lower
from jitlab.messages import Message
from jitlab.passes import copy_at_devices, place, run_passes
from jitlab.runtime import Executable, is_watched, kept_plans
from jitlab.runtime.other_sizes import Late, Served, form_of_graph, serve, varied
from jitlab.support.later import Later
from jitlab.targets.devices import AUTO, ON_GPU, default_target, device_peaks, target_for

if TYPE_CHECKING:
    from jitlab.runtime import clustering_dumps, data_sizes, dumps, predicted
else:  # where a flag, or a program, asks for them
    data_sizes = Later("jitlab.runtime.data_sizes")
    predicted = Later("jitlab.runtime.predicted")
    clustering_dumps, dumps = Later("jitlab.runtime.clustering_dumps"), Later("jitlab.runtime.dumps")


def compile_trace(trace: Trace, options: Options) -> Callable[[Sequence[Any]], list[Any]]:
    """Compile what was captured. Gives what runs the trace; one that must not run raises its InternalError at each call."""
    near, trace.near = trace.near, ()
    placed = None
    try:
        if options.device == AUTO:
            options, placed = _where(trace, options)
        if trace.graph.sizes and data_sizes.sized_by_data(trace.graph):
            with noting(SizeFacts()):
                return _compiled(trace, options, near)
        if placed is not None:
            return _compiled(trace, options, placed=placed)
        late = None if _is_seen(trace) else (_late(trace, options, near) if near else None) or _from_disk(trace, options)
        if late is not None:
            trace.executable = late
            return late.run
        return _compiled(trace, options)
    except InternalError as error:
        return partial(_raise, error)


def _where(trace: Trace, options: Options) -> tuple[Options, Message | None]:
    """Where a trace runs for which "auto" is said, and why, as the model's numbers say it."""
    here = replace(options, device="")
    if trace.graph.sizes and data_sizes.sized_by_data(trace.graph):
        return here, None
    decided = settled(here)
    made = planned(clustered(simplified(trace.graph, decided, trace.name, trace.number), decided, trace.name, {}))
    found = predicted.predicted(made.plan, default_target().known_peaks(), device_peaks())
    if not made.plan.kernels or not found.is_worth_it:
        return here, found.said("on_cpu") if made.plan.kernels else None
    return replace(options, device=ON_GPU), found.said("on_gpu")


def _is_seen(trace: Trace) -> bool:
    """Must its stages run now? Somebody is told of them, or it does more than give results."""
    return bool(trace.writes or trace.lasting or events.active() or is_watched() or read_flags().given)


def _late(trace: Trace, options: Options, near: Sequence[Any]) -> Executable | None:
    """What another executable serves: of the same graph but for the values of sizes, of which it asked no other question."""
    options, form = settled(options), form_of_graph(trace.graph)
    for other in near:
        if isinstance(other, Executable) and other.options == options and varied(other, near) and other.form[0] == form:
            served = serve(other, trace.graph.symbol_values())
            if served is not None:
                return _served(Late, served, trace, options)
    return None


def _from_disk(trace: Trace, options: Options) -> Executable | None:
    """What a plan serves that was kept by some process."""
    options = settled(options)
    with noting(None):
        known = kept_plans.found(trace.graph, options, target_for(options.device))
    if known is None:
        return None
    served, codes = known
    made = _served(kept_plans.FromDisk, served, trace, options)
    made.costs.kernels = codes
    return made


def _served(kind: type[Late], served: Served, trace: Trace, options: Options) -> Late:
    """Runs a trace by `served`; its stages run when somebody looks."""
    graph, name, number = trace.graph, trace.name, trace.number
    return kind(
        served, lambda: clustered(simplified(graph, options, name, number), options, name), lower, target_for, function=name,
        trace=number, level=options.level, captured=graph, options=options,
    )  # fmt: skip


def _dump(clustering: Clustering, trace: Trace, executable: Executable) -> None:
    if not read_flags().given:
        return
    clustering_dumps.dump_clustering(clustering, trace.name)
    for made in clustering.clusters:
        dumps.dump_cluster(
            made,
            [
                ("pipeline start, before inline", trace.graph.nodes),
                ("after inline, before fuse", made.nodes),
                ("after fuse, pipeline end", partial(executable.program_text, made)),
            ],
        )


def _raise(error: InternalError, inputs: Sequence[Any]) -> list[Any]:
    raise InternalError(error.what, where=error.where, why=error.why, hint=error.hint)


def _compiled(
    trace: Trace, options: Options, near: Sequence[Any] = (), placed: Message | None = None
) -> Callable[[Sequence[Any]], list[Any]]:  # fmt: skip
    options = settled(options)
    graph = simplified(trace.graph, options, trace.name, trace.number)
    clustering = clustered(graph, options, trace.name)
    if options.scopes:
        warn_of_unmet(trace.graph, clustering.graph)
    with noting(None):
        make: Callable[..., Executable] = partial(runnable, clustering)
        if graph.sizes and data_sizes.sized_by_data(graph):
            make = partial(data_sizes.SizedByData, clustering, lower, target_for, asked=trace.asked, near=near)
        executable = make(
            function=trace.name, trace=trace.number, level=options.level, writes=trace.writes, lasting=trace.lasting,
            captured=trace.graph, options=options,
        )
    executable.facts, executable.plan.placed = here.facts, placed
    with noting(None):
        _dump(clustering, trace, executable)
    trace.executable = executable
    if not (trace.writes or trace.lasting or read_flags().given):
        kept_plans.keep_later(executable)
    return _all_or_nothing(executable) if trace.writes else executable.run


def settled(options: Options) -> Options:
    """With what flags and settings say now."""
    if options.clustering is not None:
        return options
    asked = options, read_flags(), (config.global_jit_level, config.min_cluster_size, config.max_cluster_size)
    known = _settled[0]
    if known[0] != asked:
        made = replace(options, clustering=for_functions(asked[1], errors_in_order=not options.replays))
        known = _settled[0] = asked, made
    settled: Options = known[1]
    return settled


#: What was asked last, and the answer: a definition that is executed again asks the same.
_settled: list[tuple[Any, Any]] = [(None, None)]


def runnable(clustering: Clustering, **settings: Any) -> Executable:
    """What runs a clustering: it lowers and compiles each cluster when arrays are there."""
    return Executable(clustering, lower, target_for, **settings)


def compiled_anew(executable: Executable, captured: Graph) -> Executable:
    """The stages once more, of another captured graph: a trial, beside the executable that there is."""
    options = executable.options
    assert options is not None
    graph = simplified(captured, options, executable.function, executable.trace)
    return executable.trial(clustered(graph, options, executable.function, {}))


def compiled_on(executable: Executable, device: str) -> Executable:
    """The same trace placed on another device ("" for the processor): a trial. What the program itself places stays there."""
    assert executable.options is not None and executable.captured is not None
    options = replace(executable.options, device=device)
    graph = simplified(executable.captured, options, executable.function, executable.trace)
    return executable.trial(clustered(graph, options, executable.function, {}))


def planned(clustering: Clustering) -> Executable:
    """A clustering lowered for inputs that lie row by row: a trial, whose plan says what became of it."""
    made = runnable(clustering, function=clustering.graph.name, is_trial=True)
    with events.muted():
        made.prepare()
    return made


def simplified(graph: Graph, options: Options, function: str, trace: int) -> Graph:
    """The passes: a graph of the same results, in the order that the options ask for."""

    def tell(name: str, before: Graph, after: Graph, start_ns: int, duration_ns: int) -> None:
        if events.active():
            events.send(
                events.PassRan(
                    function=function, trace=trace, name=name, nodes_before=len(before.nodes), nodes_after=len(after.nodes),
                    start_ns=start_ns, duration_ns=duration_ns,
                )
            )  # fmt: skip

    graph = run_passes(graph, tell)
    if options.exec_order:
        from jitlab.passes import order_operations

        graph = order_operations(graph, options.exec_order)
    graph = place(copy_at_devices(graph, options.devices), options.device)
    return graph if options.scopes else without_scopes(graph)


def clustered(graph: Graph, options: Options, function: str, names: Mapping[str, str] | None = None) -> Clustering:
    """The clusters of a graph, with what its scopes decide of them and of what is fused in each."""
    return cluster(graph, options.clustering, jit_compile=options.jit_compile, function=function, names=names)


def _all_or_nothing(executable: Executable) -> Callable[[Sequence[Any]], list[Any]]:
    """Arguments are changed in place where nothing can fail, else when everything has been computed: a call that raises
    changes none of them."""
    return lambda inputs: executable.run(inputs) if executable.may_fail(inputs) else executable.run_in_place(inputs)
