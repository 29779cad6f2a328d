"""Recording: what happened between two moments, kept in bounded memory. Counts are exact; of the spans the last ones stay."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jitlab import events
from jitlab.api.check.load import Load
from jitlab.api.settling import compiled_calls
from jitlab.api.whatif.flip_verification import with_flips
from jitlab.capture import says_where
from jitlab.errors import BindingError
from jitlab.ir import ClusterCode, Plan
from jitlab.messages import Message
from jitlab.support import locks
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.native_call_log import Calls

from .build.spans import Lane, Span
from .duration_samples import Samples

if TYPE_CHECKING:
    from .report import Report


SPANS = 2000  # kept of each lane
COMPARED_SPANS = 5000  # kept of what NumPy ran: each cluster is many of its operations
TRACES = 1000  # kept of each recording
PLANS = 100  # kept of what may not run any more when a report is made of it
TEXT_CHARACTERS = 4_000_000  # of stages, kept of each recording
DEVICE_COPIES = ("CopyToDevice",)
MOST_MET = 3  # values told of what is another each time
DISTINCT = 10_000  # statements, frozen values, loops, dumps: kept of each recording


@dataclass
class Tally:
    """Calls and nanoseconds of one thing that runs again and again."""

    calls: int = 0
    ns: int = 0
    kernels_ns: list[int] = field(default_factory=list)

    def add(self, ns: int, kernels_ns: Sequence[int] = (), calls: int = 1) -> None:
        self.calls += calls
        self.ns += ns
        if kernels_ns:
            if len(self.kernels_ns) < len(kernels_ns):
                self.kernels_ns += [0] * (len(kernels_ns) - len(self.kernels_ns))
            for i, value in enumerate(kernels_ns):
                self.kernels_ns[i] += value


@dataclass
class Replaced(Tally):
    """Python ran instead of what was captured; of what was another each time, the first values."""

    met: list[str] = field(default_factory=list)
    more: bool = False  # there were others
    fell_back: bool = False  # of code that had begun to run, and did not fit
    cut: tuple[events.Span, ...] = ()  # what that was, the last time
    again: bool = False  # the next run is recorded anew

    def add_met(self, met: Sequence[str]) -> None:
        for text in met:
            if text not in self.met:
                if len(self.met) < MOST_MET:
                    self.met.append(text)
                else:
                    self.more = True


@dataclass
class Sampled(Tally):
    """Single calls are kept too, and when the last one was. Of clusters the time is that in which the process worked."""

    samples: Samples = field(default_factory=Samples)
    stolen_ns: int = 0  # for which other programs had the processor meanwhile
    last_ns: int = 0
    first_ns: tuple[int, int] | None = None  # when the first one began and ended

    def add_call(self, event: Any, kernels_ns: tuple[int, ...] = ()) -> None:
        self.first_ns = self.first_ns or (event.start_ns, event.start_ns + event.duration_ns)
        is_timed = isinstance(event, events.WorkEvent) and not getattr(event, "launched", ())
        work = event.work_ns if is_timed else event.duration_ns
        if work < event.duration_ns:
            self.stolen_ns += event.duration_ns - work
            kernels_ns = tuple(ns * work // event.duration_ns for ns in kernels_ns)
        self.add(work, kernels_ns)
        self.samples.add(event.work_ns if isinstance(event, events.WorkEvent) else event.duration_ns)
        self.last_ns = event.start_ns

    def add_calls(self, starts: Any, durations: Any, kernels_ns: Any = None, work: Any = None) -> None:
        """Many calls at once: arrays of nanoseconds, a number a call; of kernels (calls, kernels). `work`: without the time for
        which other programs had the processor."""
        work = durations if work is None else work
        stolen = int(durations.sum() - work.sum())
        if stolen and kernels_ns is not None:
            kernels_ns = (kernels_ns * (work / np.maximum(durations, 1))[:, None]).astype(np.int64)
        self.stolen_ns += stolen
        of_kernels = kernels_ns.sum(axis=0).tolist() if kernels_ns is not None and kernels_ns.any() else ()
        self.first_ns = self.first_ns or (int(starts[0]), int(starts[0] + durations[0]))
        self.add(int(work.sum()), of_kernels, len(durations))
        self.samples.extend(work)
        self.last_ns = max(self.last_ns, int(starts[-1]))


@dataclass
class LoopTally:
    """How often a loop was recorded without being rolled, and its most iterations."""

    times: int = 0
    iterations: int = 0


class Recording:
    """Listens to events from any thread. Give `listen` and `take` to `events.add_listener`, or use `record()`."""

    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock}
    _lock: Any

    def __init__(
        self, cell: dict[str, Any] | None = None, file_name: Callable[[str], str] | None = None,
        cell_of: Callable[[str], tuple[str, list[str]] | None] | None = None,
    ) -> None:  # fmt: skip
        self.cell = cell
        self.file_name = file_name  # what the report calls a source file
        self.cell_of = cell_of  # the notebook's id of the cell that a file is, and its source
        self.start_ns = time.perf_counter_ns()
        self.began = time.time()  # the same moment by the calendar, seconds since 1970
        self.run_ns: int | None = None  # what the run took by the clock, when it has ended
        self.measuring_ns = 0  # that the user waited for a comparison, a check or a timing after the run
        self.idle_ns: int | None = None  # of that, when its thread had no processor, where that is known
        self.away_ns = 0  # of that, within launches and host operations
        self.delayed_ns = 0  # for which statements of Python's waited for a processor
        self.copied_ns = 0  # that copies of arguments took
        self.captures_ns = 0  # that the run waited for captures and compilers, also for those that came to nothing
        self.is_captured = False  # all of it is a cell that jitlab runs: what is neither work nor Python's is its own
        self.compiled_before = 0.0  # seconds that earlier runs of the same cell waited for compiling
        self.others: float | None = None  # the share of the processors that other programs took, when it has ended
        self.load = Load()
        self.plans: list[events.PlanMade] = []
        self.traces: deque[events.Traced] = deque(maxlen=TRACES)
        self.traced = 0  # all of them, kept or not
        self.captured: set[tuple[str, int]] = set()
        self.renewed: dict[tuple[str, int], bool] = {}  # first traces of functions made again: was the one before seen here?
        self.charged: dict[tuple[str, int], int] = {}  # nanoseconds that calls waited for each trace, as its ledger has them
        self.variants: deque[events.VariantMade] = deque(maxlen=TRACES)
        self.compiled: dict[tuple[str, int], list[events.ProgramCompiled]] = defaultdict(list)
        self.passes: dict[tuple[str, int], list[events.PassRan]] = defaultdict(list)
        self.functions: dict[tuple[str, int], Sampled] = defaultdict(Sampled)
        self.clusters: dict[tuple[str, int, str], Sampled] = defaultdict(Sampled)
        self.scratch: dict[tuple[str, int, str], int] = {}  # bytes that a call of a cluster asked the pool for
        #: Of clusters on a GPU, what each part was launched with.
        self.launched: dict[tuple[str, int, str], tuple[Mapping[str, Any], ...]] = {}
        self.host: dict[tuple[str, int, str], Sampled] = defaultdict(Sampled)
        self.numpy: dict[tuple[str, int, str], Tally] = defaultdict(Tally)
        #: Of copies for what the host does, by function, trace, cluster, value and direction: how many, and the bytes of one.
        self.host_copies: dict[tuple[str, int, str, str, str], tuple[Tally, int]] = {}
        self.statements: OrderedDict[tuple[str, Message, tuple[events.Span, ...]], Replaced] = OrderedDict()
        self.as_python: OrderedDict[events.AsPython, Tally] = OrderedDict()  # calls of functions
        self.frozen: OrderedDict[tuple[str, str, tuple[events.Span, ...]], int] = OrderedDict()
        self.loops: OrderedDict[tuple[str, str, Message, tuple[events.Span, ...]], LoopTally] = OrderedDict()
        self.dumps: deque[str] = deque(maxlen=TRACES)
        self.compared: events.Compared | None = None
        self.compared_before: events.ComparedBefore | None = None
        self.repeated: events.Repeated | None = None
        self.numerics: list[dict[str, Any]] | None = None  # of the last check
        self.lanes = {"op by op": Lane(COMPARED_SPANS), "compiled": Lane(SPANS), "compiling": Lane(SPANS)}
        self.plain: Any = None  # what `explain` called, where that is a function as Python or NumPy has it
        self.count = 0  # events that were taken in
        self.texts: OrderedDict[str, dict[tuple[str, str], str]] = OrderedDict()  # of each cluster's plan, all its stages
        self.codes: OrderedDict[str, ClusterCode] = OrderedDict()  # of each cluster, as long as its texts are kept
        self._text_sizes: dict[str, int] = {}  # of each plan, by its first cluster
        self._plan_keys: set[tuple[str, int, tuple[str, ...]]] = set()
        self._fingerprints: dict[tuple[str, ...], str] = {}
        self._definitions: set[str] = set()  # of the functions that were traced here
        locks.own(self)
        self._take: dict[type[events.Event], Callable[[Any], None]] = {
            events.Traced: self._traced,
            events.TraceCharged: self._trace_charged,
            events.VariantMade: self.variants.append,
            events.PassRan: self._pass_ran,
            events.PlanMade: self._plan_made,
            events.ProgramCompiled: self._program_compiled,
            events.FunctionCalled: self._function_called,
            events.ClusterRan: self._cluster_ran,
            events.HostOperationRan: self._host_operation_ran,
            events.ArrayCopied: self._array_copied,
            events.DeviceCopied: self._device_copied,
            events.OperationRan: self._operation_ran,
            events.StatementRan: self._statement_ran,
            events.CalledAsPython: self._called_as_python,
            events.ValueFrozen: self._value_frozen,
            events.LoopKept: self._loop_kept,
            events.DumpWritten: lambda event: self.dumps.append(event.path),
            events.Compared: lambda event: setattr(self, "compared", event),
            events.ComparedBefore: lambda event: setattr(self, "compared_before", event),
            events.Repeated: lambda event: setattr(self, "repeated", event),
            events.NumericsChecked: lambda event: setattr(self, "numerics", list(event.numerics)),
        }

    def listen(self, event: events.Event) -> None:
        """Take in one event."""
        take = self._take.get(type(event))
        if take is not None:
            with locks.Released(self._lock), self._lock:
                self.count += 1
                take(event)

    def take(self, batch: events.Batch) -> None:
        """Take in many events, and calls that C functions noted."""
        with locks.Released(self._lock), self._lock:
            for calls in batch.calls:
                self._calls_noted(calls)
            for event in batch.events:
                take = self._take.get(type(event))
                if take is not None:
                    self.count += 1
                    take(event)

    def compare(self, lane: Recording, compared: events.Compared) -> None:
        """A comparison has measured again, on copies, what ran: both sides, and NumPy op by op in a lane."""
        with locks.Released(self._lock), self._lock:
            self.numpy, self.lanes["op by op"] = lane.numpy, lane.lanes["op by op"]
        self.listen(compared)

    @property
    def work_ns(self) -> int:
        """Of launches and host operations."""
        return sum(tally.ns for tally in (*self.clusters.values(), *self.host.values()))

    @property
    def stolen_ns(self) -> int:
        """Within launches, operations of NumPy's and statements of Python's, for which others had the processor."""
        return self.delayed_ns + sum(tally.stolen_ns for tally in (*self.clusters.values(), *self.host.values()))

    def fingerprint(self, of: Callable[..., str], plan: dict[str, Any], *names: str) -> str:
        """Of a plan (or a cluster of it), made once: reports of a cell that runs are many. Clusters' names are unique."""
        key = (of.__name__, *names, *(cluster["name"] for cluster in plan["clusters"]))
        if not plan["clusters"]:
            return of(plan, *names)
        if key not in self._fingerprints:
            self._fingerprints[key] = of(plan, *names)
        return self._fingerprints[key]

    def ended(self) -> None:
        """What is measured from now on is something else."""
        events.collect()
        if self.run_ns is None:
            self.run_ns = time.perf_counter_ns() - self.start_ns
            self.others = self.load.others()

    def report(self) -> Report:
        """The report of what was recorded so far."""
        from .build.build_report import report_json
        from .report import Report

        events.collect()
        with locks.Released(self._lock), self._lock:
            data = report_json(self)
            texts, codes = dict(self.texts), dict(self.codes)
            ran = {**self.clusters, **self.host}
            samples = {key: tally.samples.copy() for key, tally in ran.items()}
        return Report(data, texts, codes, self.file_name, samples, self.others)

    def _traced(self, event: events.Traced) -> None:
        self.traced += 1
        self.captured.add((event.function, event.trace))
        self.traces.append(event)
        if event.definition:
            if event.renews:
                self.renewed[event.function, event.trace] = event.definition in self._definitions
            self._definitions.add(event.definition)
        self._compiling_span(event, "", "capture", "capture")

    def _trace_charged(self, event: events.TraceCharged) -> None:
        if event.spent_ns:
            self.charged[event.function, event.trace] = event.spent_ns

    def _pass_ran(self, event: events.PassRan) -> None:
        passes = self.passes[event.function, event.trace]
        if len(passes) < TRACES:
            passes.append(event)
        self._compiling_span(event, event.name, event.name, "passes")

    def _plan_made(self, event: events.PlanMade) -> None:
        if event.duration_ns:
            self._compiling_span(event, "", "planning", "planning")
        key = (event.function, event.trace, tuple(cluster["name"] for cluster in event.plan["clusters"]))
        if key not in self._plan_keys and len(self.plans) < TRACES:
            self._plan_keys.add(key)
            names = [cluster["name"] for cluster in event.plan["clusters"]]
            plan = _numbered(event.executable)
            told = with_flips(event.plan, plan) if plan is not None and plan.is_whole else event.plan
            self.plans.append(replace(event, plan=told))
            remember_plan(event.function, event.trace, told)
            self._keep_texts(names, plan)

    def _keep_texts(self, names: Sequence[str], plan: Plan | None) -> None:
        """A report can show the stages of its clusters when the function is gone; of too much text the newest stays."""
        if plan is not None and names:
            self.texts.update(dict.fromkeys(names, plan.texts))  # later stages are added to it
            self.codes.update(plan.codes)
            self._text_sizes[names[0]] = sum(map(len, plan.texts.values()))
        while sum(self._text_sizes.values()) > TEXT_CHARACTERS and len(self.texts) > len(names):
            dropped = self.texts.popitem(last=False)[0]
            self.codes.pop(dropped, None)
            self._text_sizes.pop(dropped, None)

    def _program_compiled(self, event: events.ProgramCompiled) -> None:
        compiled = self.compiled[event.function, event.trace]
        if len(compiled) < TRACES:
            compiled.append(event)
        ran = self.clusters.get((event.function, event.trace, event.cluster))
        if ran is not None:  # it runs better code from now on
            ran.samples.renew()
        if event.origin != "memory":
            kind = "load" if event.origin == "disk" else "codegen"
            label = f"{kind}, {event.tier}" if event.tier else kind
            self._compiling_span(event, event.cluster, label, kind, cluster=event.cluster, tier=event.tier)

    def _function_called(self, event: events.FunctionCalled) -> None:
        key = event.function, event.trace
        tally = self.functions[key]
        tally.add_call(event)
        if tally.calls == 1 and key in self.captured:  # the call that waited for its capture
            tally.samples = Samples()

    def _calls_noted(self, calls: Calls) -> None:
        about = calls.about
        if about.as_python is not None:
            self.count += len(calls)
            self._run_by_python(about.as_python).add(int(calls.durations.sum()), calls=len(calls))
        if about.tells_call:
            self.count += len(calls)
            self.functions[about.function, about.trace].add_calls(calls.starts, calls.durations)
        for launch, starts, durations, kernels_ns in calls.launches():
            self.count += len(calls)
            key = about.function, about.trace, launch.cluster
            self.away_ns += calls.idle(durations)
            self.clusters[key].add_calls(starts, durations, kernels_ns, calls.work(durations))
            self.scratch[key] = max(self.scratch.get(key, 0), launch.scratch_bytes)
        self.lanes["compiled"].note(calls)

    def _cluster_ran(self, event: events.ClusterRan) -> None:
        key = event.function, event.trace, event.cluster
        self.clusters[key].add_call(event, event.kernels_ns)
        self.away_ns += event.idle_ns
        self.scratch[key] = max(self.scratch.get(key, 0), event.scratch_bytes)
        if event.launched:
            self.launched[key] = event.launched
        times = event.kernels_ns
        more = {"kernels_ns": times, "enqueued_ns": event.enqueued_ns}
        self._span("compiled", event, event.cluster, "_XlaLaunch", "launch", event.cluster, **more)

    def _host_operation_ran(self, event: events.HostOperationRan) -> None:
        self.host[event.function, event.trace, event.operation].add_call(event)
        self.away_ns += event.idle_ns
        self._span("compiled", event, event.operation, event.op, "copy" if event.op in DEVICE_COPIES else "host")

    def _array_copied(self, event: events.ArrayCopied) -> None:
        self.copied_ns += event.duration_ns
        self._span("compiled", event, event.argument, f"copy of {event.argument}", "copy", event.cluster, bytes=event.bytes)

    def _device_copied(self, event: events.DeviceCopied) -> None:
        key = event.function, event.trace, event.cluster, event.node, event.direction
        if event.reason and (key in self.host_copies or len(self.host_copies) < DISTINCT):
            tally, nbytes = self.host_copies.get(key) or (Tally(), event.bytes)
            tally.add(event.duration_ns)
            self.host_copies[key] = tally, max(nbytes, event.bytes)
        kind, label = ("to_gpu", "to the GPU") if event.direction == "in" else ("to_host", "to the host")
        self._span("compiled", event, "", label, kind, bytes=event.bytes)

    def _operation_ran(self, event: events.OperationRan) -> None:
        self.numpy[event.function, event.trace, event.operation].add(event.duration_ns)
        self._span("op by op", event, event.operation, event.op, "op")

    def _statement_ran(self, event: events.StatementRan) -> None:
        tally = self._replaced((event.reason, event.said, event.lines))
        tally.add(event.duration_ns - event.delayed_ns)
        self.delayed_ns += event.delayed_ns
        tally.add_met(event.met)
        if event.fell_back:
            tally.fell_back, tally.cut, tally.again = True, event.cut, event.again
        self._span("compiled", event, str(event.said), event.reason, "statement", lines=event.lines)

    def _called_as_python(self, event: events.CalledAsPython) -> None:
        about = event.about
        self._settled(about).add(event.duration_ns)
        self._span("compiled", event, about.text, about.label, "statement", lines=about.lines)

    def _run_by_python(self, said: events.AsPython | events.PythonStatement) -> Tally:
        if isinstance(said, events.AsPython):
            return self._settled(said)
        tally = self._replaced((said.reason, said.said, said.lines))
        tally.add_met(said.met)
        return tally

    def _settled(self, about: events.AsPython) -> Tally:
        known = about in self.as_python or len(self.as_python) < DISTINCT
        return self.as_python.setdefault(about, Tally()) if known else Tally()

    def _replaced(self, key: tuple[str, Message, tuple[events.Span, ...]]) -> Replaced:
        """What is known of a statement; of too many nothing is kept."""
        known = key in self.statements or len(self.statements) < DISTINCT
        return self.statements.setdefault(key, Replaced()) if known else Replaced()

    def _value_frozen(self, event: events.ValueFrozen) -> None:
        key = (event.function, event.what, event.lines)
        if key in self.frozen or len(self.frozen) < DISTINCT:
            self.frozen[key] = self.frozen.get(key, 0) + 1

    def _loop_kept(self, event: events.LoopKept) -> None:
        key = (event.function, event.code, event.said, event.lines)
        if key in self.loops or len(self.loops) < DISTINCT:
            tally = self.loops.setdefault(key, LoopTally())
            tally.times += 1
            tally.iterations = max(tally.iterations, event.iterations)

    def _compiling_span(self, event: Any, name: str, label: str, kind: str, **more: Any) -> None:
        """It is told of by the thread that did it."""
        self._span("compiling", event, name, label, kind, thread=threading.get_ident(), **more)

    def _span(
        self, lane: str, event: Any, name: str, label: str, kind: str, cluster: str | None = None, **more: Any
    ) -> None:
        function, trace = getattr(event, "function", ""), getattr(event, "trace", 0)
        self.lanes[lane].append(Span(name, label, kind, event.start_ns, event.duration_ns, function, trace, cluster, **more))


@contextmanager
def record() -> Iterator[Recording]:
    """A block in which all that happens is recorded, in every thread. The report of it can be asked for inside, and afterwards.

    Returns:
        A context manager whose value has the method `report()`, which gives a Report of what happened so far.

    Example:
        >>> doubled = jl.function(lambda x: x * 2)
        >>> with jl.record() as recording:
        ...     y, z = doubled(np.ones(3)), doubled(np.ones(4))
        >>> [(trace.cause, trace.argument) for trace in recording.report().retraces]
        [('shape', 'x')]
    """
    recording = Recording()
    with events.listen(recording.listen, recording.take):
        yield recording
    recording.ended()


@says_where
def explain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
    """A function that is called once, recorded, and what happened then: its report.

    Args:
        function: one under `jl.jit` or `jl.function`, or one that calls such. Of a plain function the report says that nothing
            is compiled, and what to do.
        *args: the call's arguments.
        **kwargs: the call's keyword arguments.

    Returns:
        A Report; `print` shows it as text, a notebook as a picture.

    Raises:
        BindingError: it is no function, but what one has given.
        Exception: what the call raises.

    Example:
        >>> report = jl.explain(jl.jit(lambda x: np.exp(x).sum()), np.ones(3))
        >>> [kernel.name for kernel in report.kernels], report.fallbacks
        (['k0'], [])
    """
    if not callable(function):
        kind = "an array" if isinstance(function, np.ndarray) else f"of type {type(function).__name__}"
        why, hint = f"its first argument is {kind}, which cannot be called", "jl.explain(f, x), not jl.explain(f(x))"
        raise BindingError("jl.explain takes a function and its arguments.", why=why, hint=hint)
    with compiled_calls(), record() as recording:
        function(*args, **kwargs)
    if isinstance(getattr(function, "__func__", function), (FunctionType, BuiltinFunctionType, np.ufunc)):
        recording.plain = function
    report = recording.report()
    report.explains = function
    return report


def remember_plan(function: str, trace: int, plan: dict[str, Any]) -> None:
    """Keep the plan for recordings that begin after it was made: they see its clusters run, not its making."""
    with locks.Released(_plans_lock), _plans_lock:
        for cluster in plan["clusters"]:
            _plan_of_cluster[cluster["name"]] = plan
            _plan_of_cluster.move_to_end(cluster["name"])
        _plan_of_trace[function, trace] = plan
        _plan_of_trace.move_to_end((function, trace))
        while len(_plan_of_cluster) > 4 * PLANS:
            _plan_of_cluster.popitem(last=False)
        while len(_plan_of_trace) > PLANS:
            _plan_of_trace.popitem(last=False)


def known_plan(function: str, trace: int, cluster: str | None = None) -> dict[str, Any] | None:
    """The plan of a trace that ran, from what was heard before or from the listener that keeps plans."""
    with locks.Released(_plans_lock), _plans_lock:
        plan = _plan_of_cluster.get(cluster) if cluster is not None else _plan_of_trace.get((function, trace))
    if plan is None:
        kept = _kept_plan(function, trace, cluster)
        plan = with_flips(kept.to_json(), kept) if kept is not None else None
    return plan


def numbered_plan(executable: int) -> dict[str, Any] | None:
    """The plan of an executable that can still run."""
    kept = _numbered(executable)
    return with_flips(kept.to_json(), kept) if kept is not None else None


def known_code(function: str, trace: int, cluster: str) -> ClusterCode | None:
    """What a cluster's code is shown from, when its plan is still kept."""
    plan = _kept_plan(function, trace, cluster)
    return plan.codes.get(cluster) if plan is not None else None


def known_text(function: str, trace: int, cluster: str, stage: str) -> str | None:
    """The text of a cluster (of the whole graph, when the plan has no other) at a stage, when the plan is still kept."""
    plan = _kept_plan(function, trace, cluster)
    if plan is None:
        return None
    return plan.texts.get((cluster, stage)) or plan.texts.get(("", stage))


def _numbered(executable: int) -> Plan | None:
    from jitlab.runtime import plan_numbered

    return plan_numbered(executable)


def _kept_plan(function: str, trace: int, cluster: str | None) -> Plan | None:
    from jitlab.runtime import plan_of

    return plan_of(function, trace, cluster)


_plan_of_cluster: OrderedDict[str, dict[str, Any]] = OrderedDict()
_plan_of_trace: OrderedDict[tuple[str, int], dict[str, Any]] = OrderedDict()
_plans_lock = locks.shared("plans")
