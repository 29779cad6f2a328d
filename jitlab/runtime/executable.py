"""Executable: a clustered graph that runs. Clusters run as a target's code, everything else op by op on NumPy."""

from __future__ import annotations

import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, ClassVar
from weakref import WeakValueDictionary, ref

import numpy as np

from jitlab import costs, events, messages
from jitlab.capture import effort
from jitlab.cluster import clustered_anew
from jitlab.errors import InternalError, Signal
from jitlab.ir import (
    Cluster,
    Clustering,
    Graph,
    Lowered,
    Node,
    Options,
    Overrides,
    Plan,
    Sources,
    every_node,
    whole_plan,
)  # fmt: skip
from jitlab.ir.plans.call_forms import CallForm, GivingOut
from jitlab.ir.size_facts import SizeFacts, noting
from jitlab.messages import Message
from jitlab.ops.random_draws import Draw, States, addresses_in, drawing_from, set_random_states, states_now
from jitlab.support import locks, native_call_log
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import Whole, quietly
from jitlab.targets.target import (
    END_NS,
    LAYOUTS,
    PROCESS_NS,
    START_NS,
    THREAD_NS,
    TICKS,
    Device,
    Entry,
    Launcher,
    Origin,
    Target,
)

from .compiled import compiled
from .donation import endings, leave, wanted_later
from .held import REFUSALS, Held, held_until, is_told
from .size_checks import Sizes

Lower = Callable[..., Lowered]
#: A cluster's name, its inputs' layouts, and the outputs that lie in arguments' places.
Key = tuple[str, tuple[str, ...], frozenset[Node]]
NONE: frozenset[Node] = frozenset()

#: From so many bytes on that a call copies to the host for what no kernel does, its first one says so.
LEAST_WARNED_BYTES = 1 << 20


class _OnDevice(threading.local):
    """Does this thread's next run leave arrays where they are, also where NumPy cannot read them?"""

    keeps = False


on_device = _OnDevice()
NOTHING: Mapping[str, Sequence[tuple[int, int]]] = MappingProxyType({})


@dataclass
class Variant:
    """A cluster for one combination of layouts."""

    launcher: Launcher
    about: native_call_log.About | None = None  # what notes of its launches are about

    @lazy
    def kernels(self) -> tuple[int, ...]:
        """Of each phase that is timed the number of its kernel."""
        return native_call_log.kernels_of(self.launcher.phases)


class Values(dict[Node, Any]):
    """What a run knows so far. `there`: of what lies in NumPy's memory, copies on the device of the clusters that read it."""

    def __init__(self, known: Any) -> None:
        super().__init__(known)
        self.there: dict[Node, Any] = {}


class Executable:
    """Runs one trace. `run` takes arrays (or NumPy scalars) for the graph's parameters and gives its outputs.

    `lower` is the stage that makes the Program of a cluster for inputs that lie as they do in a call; `target_for` gives the
    target of the device that the cluster is placed on, which compiles it.
    `writes`: (parameter, output) where an output is a parameter's new version; only `run_in_place` may store it there.
    `lasting`: for operations that may raise, the parameters that have these outputs when one has; the others stay.
    `captured`: the graph before any pass, and `options`: what decided how it was compiled, where these are known.
    Thread-safe: a call owns its context and its scratch memory.
    """

    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock}
    _lock: Any
    serves_sizes = True  # may it be launched with other numbers, for other sizes?

    _unfinished: Sequence[tuple[Cluster, tuple[str, ...], frozenset[Node]]] = ()  # what `_compile_waited` has to compile

    def __init__(
        self, clustering: Clustering, lower: Lower, target_for: Callable[[str], Target], *, function: str = "",
        trace: int = 1, level: str = "O1", writes: Sequence[tuple[int, int]] = (),
        lasting: Mapping[str, Sequence[tuple[int, int]]] = NOTHING, is_trial: bool = False,
        captured: Graph | None = None, options: Options | None = None,
    ) -> None:  # fmt: skip
        self.is_trial = is_trial  # of a what-if: no run of it is the program's
        self._targets = {cluster.name: target_for(cluster.device) for cluster in clustering.clusters}
        self._others = _others(self._targets.values())
        self.clustering, self.lower, self.target_for = clustering, lower, target_for
        self.function, self.trace, self.level = function, trace, level
        self.graph = clustering.graph
        self.captured, self.options = captured, options
        targets = {name: target.key for name, target in self._targets.items()}
        self.plan = Plan(function, trace, clustering, targets=targets)
        self._values = self.graph.symbol_values()
        self._sizes = Sizes(self.graph, self._values)
        self._writes, self._endings = writes, endings(clustering, writes)
        self._lasting = lasting
        self._later = wanted_later(clustering) if self._endings else {}
        self._variants: dict[Key, Variant] = {}
        self._lowerings: dict[Key, Lowered] = {}
        self._may_fail: bool | None = None
        self.form: Any = None  # of it all but the values of sizes (other_sizes.py)
        self.varied: frozenset[str] = frozenset()  # symbols in which recordings of the same form differed
        self.facts: SizeFacts | None = None  # what was asked of sizes, where somebody notes that
        self.when_compiled: Callable[[Executable], None] | None = None  # told of each variant
        locks.own(self)
        self._last_use = _last_uses(clustering)
        self._held_until = held_until(clustering.steps)
        self.costs = costs.Costs()
        self._warned: set[str] = set()  # clusters that run on the host, of which somebody knows
        self._sites: tuple[native_call_log.Site, ...] = ()  # of the C functions in front of it
        self.number = next(_numbers) if is_trial else next_number(self)

    def changed(self, overrides: Overrides, level: str | None = None) -> Executable:
        """The same graph compiled by other decisions, for a what-if."""
        return self.trial(clustered_anew(self.clustering, overrides=overrides), level)

    def trial(self, clustering: Clustering, level: str | None = None) -> Executable:
        """A second executable, of another clustering or level: this one, its costs and its plan stay as they are."""
        return Executable(
            clustering, self.lower, self.target_for, function=self.function, trace=self.trace, level=level or self.level,
            writes=self._writes, is_trial=True,
        )  # fmt: skip

    @property
    def has_others(self) -> bool:
        """Has it arrays in memory that NumPy cannot read?"""
        return bool(self._others)

    @property
    def only_target(self) -> Target | None:
        """The target of all its clusters; None for several, and for no cluster."""
        targets = set(self._targets.values())
        return targets.pop() if len(targets) == 1 else None

    @property
    def writes(self) -> Sequence[tuple[int, int]]:
        """(parameter, output) for each argument that the program changes."""
        return self._writes

    def settle(self) -> None:
        """Wait until the code that later runs will use is there."""
        for variant in list(self._variants.values()):
            variant.launcher.code.wait()

    def prepare(self, arguments: Sequence[Any] | None = None, in_place: bool = False) -> None:
        """Lower every cluster (for these arguments' layouts; None: row by row), so that the plan is whole before the first
        run."""
        with Whole(), self.costs.spending(), locks.Released(self._lock), self._lock:
            if not self.plan.is_whole:
                self._plan(arguments, in_place)
        costs.tell_charge(self.function, self.trace, self.costs)
        if self._unfinished:
            self._compile_waited()

    def _compile_waited(self) -> None:
        """Where somebody waits, all is compiled before any of it runs: until then it may be stopped."""
        keys = self._unfinished
        kernels = [len(self._lowered(*key).program.kernels) for key in keys]
        for number, key in enumerate(keys):
            if effort.here.wait is not None:
                effort.here.wait.came_to("kernels", sum(kernels[:number]), sum(kernels), self)
            self._variant(*key)
            self._unfinished = keys[number + 1 :]

    def _plan(self, arguments: Sequence[Any] | None, in_place: bool) -> None:
        """Fill the plan, at the end and by one step: whatever stops this before leaves it as it was."""
        started = time.perf_counter_ns()
        values = {} if arguments is None else dict(zip(self.graph.parameters, arguments, strict=True))
        lowerings, keys, wait = [], [], effort.here.wait
        for number, cluster in enumerate(self.clustering.clusters):
            if wait is not None:
                wait.came_to("clusters", number, len(self.clustering.clusters), self)
            device = self._targets[cluster.name].device
            layouts = tuple(_layout(device, values[node]) if node in values else "C" for node in cluster.inputs)
            ends = self._storable(cluster, values) if in_place else NONE
            lowerings.append(self._lowered(cluster, layouts, ends))
            keys.append((cluster, layouts, ends))
        if wait is not None and len(self.clustering.steps) == len(keys):  # what NumPy gives may lie in another way
            self._unfinished = keys
        whole = whole_plan(self.plan, lowerings)
        if events.active():
            whole.threads = _threads_of(self._targets, lowerings)
        vars(self.plan).update(vars(whole))
        if events.active():
            events.send(
                events.PlanMade(
                    function=self.function, trace=self.trace, targets=self.plan.targets, plan=self.plan.to_json(),
                    executable=self.number,
                    start_ns=started, duration_ns=time.perf_counter_ns() - started,
                )
            )  # fmt: skip

    @property
    def lowerings(self) -> Sequence[Lowered]:
        """What its clusters have been lowered to so far."""
        return list(self._lowerings.values())

    def program_text(self, cluster: Cluster) -> str:
        """The Program of a cluster whose inputs lie row by row."""
        with Whole(), self.costs.spending(), locks.Released(self._lock), self._lock:
            return self._lowered(cluster, tuple("C" for _ in cluster.inputs), NONE).program.text

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """The graph's outputs; 0-d results are NumPy scalars. Raises what NumPy raises for data it refuses."""
        return self._run(arguments, False)

    def run_in_place(self, arguments: Sequence[Any]) -> list[Any]:
        """The same, but an output that is an argument's new version may be stored into the argument, and is then that array.

        The written arguments can be written and share no memory with other arguments: the caller has seen to that.
        """
        return self._run(arguments, True)

    def may_fail(self, arguments: Sequence[Any]) -> bool:
        """Can data make it fail? Where NumPy runs an operation, or a kernel checks indices, it can."""
        if not self.plan.is_whole:
            self.prepare(arguments, True)
        if self._may_fail is None:
            checks = any(lowered.program.errors for lowered in self.lowerings)
            self._may_fail = checks or any(not isinstance(step, Cluster) for step in self.clustering.steps)
        return self._may_fail

    def may_end_early(self, arguments: Sequence[Any]) -> bool:
        """Can something end a run after it has begun to draw, so that Python does it all?"""
        return len(self.clustering.steps) != 1 or self.may_fail(arguments)

    def run_cluster(self, cluster: Cluster, values: Mapping[Node, Any]) -> dict[Node, Any]:
        """A cluster's outputs for values of its inputs, which stay as they are."""
        own = Values({node: values[node] for node in cluster.inputs if node in values})
        self._run_cluster(cluster, own, False)
        return {node: self._on_host(own[node]) for node in cluster.outputs}

    def _run(self, arguments: Sequence[Any], in_place: bool) -> list[Any]:
        addresses = addresses_in(arguments)
        if not addresses:
            return self._run_steps(arguments, in_place)
        with drawing_from(addresses):
            return self._run_steps(arguments, in_place)

    def _run_steps(self, arguments: Sequence[Any], in_place: bool) -> list[Any]:
        keeps, on_device.keeps = on_device.keeps, False  # what runs inside has results of its own
        self._sizes.check_arguments(arguments)
        if not self.plan.is_whole or self._unfinished:
            self.prepare(arguments, in_place)
        started = time.perf_counter_ns() if self._sites else 0
        for watcher in () if self.is_trial else tuple(_watchers):
            watcher(self, arguments)
        values = Values(zip(self.graph.parameters, arguments, strict=True))
        held = Held(self._run_host)
        here = self  # what goes on: for sizes that the data decide another one
        try:
            for number, step in enumerate(self.clustering.steps):
                if isinstance(step, Cluster):
                    here._run_cluster(step, values, in_place)
                elif number < self._held_until and is_told(step):
                    held.add(step, values)
                    values[step] = ()
                else:
                    here._run_step(step, values, held)
                    here = here._bound(step, values)
                if number == self._held_until:
                    held.run()
                for node in self._last_use.get(id(step), ()):
                    del values[node]
                    values.there.pop(node, None)
        except Exception as error:
            if not isinstance(error, REFUSALS):
                held.run()
            raise
        if started and events.active():
            for site in self._sites:
                site.open(started, bool(_watchers))
        if keeps:
            return [self._kept(node, values) for node in self.graph.outputs]
        return [self._on_host(values[node]) for node in self.graph.outputs]

    def _bound(self, step: Node, values: Mapping[Node, Any]) -> Executable:
        """What goes on behind an operation that NumPy has run."""
        return self

    def _kept(self, node: Node, values: Values) -> Any:
        """A result that stays on the device; numbers are NumPy's."""
        value = values[node]
        if type(value) is not np.ndarray:
            return value if value.ndim else self._on_host(value)
        if not value.ndim or not self._others:
            return value
        return self._there(self._others[0], value, node, values)

    def _there(self, device: Device, value: Any, node: Node, values: Values, cluster: str = "") -> Any:
        """A value on the device; what lies in NumPy's memory is copied once."""
        if type(value) is device.array_type:
            return value
        if node not in values.there:
            values.there[node] = self._on_device(device, value, node, cluster)
        return values.there[node]

    def _on_host(self, value: Any, node: Node | None = None, cluster: str = "") -> Any:
        """A value in NumPy's memory; 0-d ones are NumPy scalars. `node`: what it is for what the host does between kernels, in
        a cluster or beside them."""
        for device in self._others:
            if type(value) is device.array_type:
                started = time.perf_counter_ns()
                array = device.on_host(value)
                self._tell_moved("out", array.nbytes, started, node, cluster)
                return array if array.ndim else array[()]
        return value

    def _on_device(self, device: Device, value: Any, node: Node, cluster: str = "") -> Any:
        """A value in a device's memory, for a cluster."""
        if type(value) is device.array_type:
            return value
        value = self._on_host(value, node, cluster)
        if device.array_type is np.ndarray:
            return device.array(value)
        started = time.perf_counter_ns()
        array = device.array(value)
        self._tell_moved("in", array.nbytes, started, None if node.op.is_parameter else node, cluster)
        return array

    def _tell_moved(self, direction: str, nbytes: int, started: int, node: Node | None, cluster: str = "") -> None:
        """`node`: of a value that is copied for what the host does between kernels."""
        duration = time.perf_counter_ns() - started
        if node is not None and not self.is_trial:
            self.costs.copied(nbytes, duration)
        if events.active():
            events.send(
                events.DeviceCopied(
                    function=self.function, trace=self.trace, direction=direction, bytes=nbytes,
                    reason="" if node is None else events.HOST_COPY, node="" if node is None else node.name, cluster=cluster,
                    start_ns=started, duration_ns=duration,
                )
            )  # fmt: skip

    # -- clusters

    def _run_cluster(self, cluster: Cluster, values: Values, in_place: bool) -> None:
        device = self._targets[cluster.name].device
        arrays = []
        layouts = []
        for node in cluster.inputs:
            array = values[node]
            if type(array) is not device.array_type and device.array_type is np.ndarray:
                array = self._on_device(device, array, node)
            layout = device.layout_of(array) if type(array) is device.array_type else "C"  # of what is copied there
            if layout == "":
                array, layout = self._contiguous(cluster, node, array).reshape(array.shape), "C"
            arrays.append(array)
            layouts.append(layout)
        ends = self._storable(cluster, values) if in_place and self._endings else NONE
        variant = self._variant(cluster, tuple(layouts), ends)
        if variant.launcher.on_host is not None:
            self._run_on_host(cluster, self._variant(cluster, tuple(layouts), NONE), arrays, values)
            return
        if device in self._others:
            pairs = zip(cluster.inputs, arrays, strict=True)
            arrays = [self._there(device, array, node, values, cluster.name) for node, array in pairs]
        launcher = variant.launcher
        lowered = launcher.lowered
        for node in lowered.copies:
            position = cluster.inputs.index(node)
            arrays[position] = self._contiguous(cluster, node, arrays[position])
        outputs = []
        for shape, dtype in launcher.results:
            outputs.append(device.empty(shape, dtype))
        states = states_now() if lowered.program.errors else ()
        failed = self._launch(cluster, variant, arrays, outputs)
        if failed is not None:
            self._fail(cluster, lowered.program.errors[failed], values, states)
        for node, out in zip(lowered.outputs, outputs, strict=True):
            values[node] = out if out.ndim or self._others and type(out) is not np.ndarray else out[()]
        for node, argument in lowered.in_place.items():
            values[node] = values[argument]

    def _run_on_host(
        self, cluster: Cluster, variant: Variant, arrays: Sequence[Any], values: dict[Node, Any]
    ) -> None:
        """A cluster that no kernel of its device takes: the host runs it, and what it gives stays there until a kernel reads
        it."""
        launcher, lowered = variant.launcher, variant.launcher.lowered
        pairs = zip(cluster.inputs, arrays, strict=True)
        self._warn_of_host(cluster, launcher.on_host, sum(a.nbytes for a in arrays if type(a) is not np.ndarray))
        read = [np.asarray(self._on_host(array, node, cluster.name), node.dtype, order="C") for node, array in pairs]
        outputs = [np.empty(shape, dtype) for shape, dtype in launcher.results]
        states = states_now() if lowered.program.errors else ()
        failed = self._launch(cluster, variant, read, outputs)
        if failed is not None:
            self._fail(cluster, lowered.program.errors[failed], values, states)
        for node, out in zip(lowered.outputs, outputs, strict=True):
            values[node] = out if out.ndim else out[()]

    def _warn_of_host(self, cluster: Cluster, why: Any, nbytes: int) -> None:
        """Once, where that costs something."""
        if nbytes < LEAST_WARNED_BYTES or cluster.name in self._warned or self.is_trial:
            return
        self._warned.add(cluster.name)
        at = min((source for node in cluster.nodes for source in node.sources), default=None)
        said = messages.text("gpu.host_copy", function=str(self.function), why=str(why), bytes=nbytes)
        warnings.warn_explicit(said, UserWarning, at.file if at else "jitlab", at.line if at else 1)

    def _storable(self, cluster: Cluster, values: Mapping[Node, Any]) -> frozenset[Node]:
        """The outputs that this run of a cluster may store into arguments."""
        wanted = self._endings.get(cluster.name)
        if not wanted:
            return NONE
        device = self._targets[cluster.name].device
        kind = device.array_type
        arrays = {node: values[node] for node in cluster.inputs if type(values.get(node)) is kind}
        later = [values[node] for node in self._later[cluster.name] if type(values[node]) is kind]
        return frozenset(
            new
            for new, old in wanted.items()
            if old in arrays
            and device.layout_of(arrays[old])
            and device.may_store_into(arrays[old], [*(array for node, array in arrays.items() if node is not old), *later])
        )

    def _launch(self, cluster: Cluster, variant: Variant, inputs: Sequence[Any], outputs: Sequence[Any]) -> int | None:
        """Run it to the end; the number of the check that failed, if one did."""
        launcher = variant.launcher
        if not events.active():
            return launcher.run(inputs, outputs, None)
        times = np.zeros(TICKS + 1 + len(launcher.phases), np.int64)
        failed = launcher.run(inputs, outputs, times)
        if failed is not None:
            return failed
        started, ended = int(times[START_NS]), int(times[END_NS])
        launched = launcher.launched()
        if events.in_bulk() and not launched:
            events.note(variant.about or self._about(cluster, variant), started, ended, times)
            return None
        ticks = times[TICKS:].tolist()
        spent = ticks[-1] - ticks[0] if launched else ended - started
        kernels = native_call_log.divided(spent, ticks, variant.kernels)
        events.send(
            events.ClusterRan(
                function=self.function, trace=self.trace, cluster=cluster.name, start_ns=started,
                duration_ns=ended - started, kernels_ns=kernels, scratch_bytes=launcher.scratch_bytes,
                process_ns=int(times[PROCESS_NS]), thread_ns=int(times[THREAD_NS]), enqueued_ns=ticks[0] if launched else 0,
                launched=tuple({**facts, "kernel": kernel} for facts, kernel in zip(launched, variant.kernels, strict=False)),
            )
        )  # fmt: skip
        return None

    def _about(self, cluster: Cluster, variant: Variant) -> native_call_log.About:
        variant.about = native_call_log.About(self.function, self.trace, (_launched(cluster, variant),), False, self.costs)
        return variant.about

    def _contiguous(self, cluster: Cluster, node: Node, array: Any) -> Any:
        started = time.perf_counter_ns()
        made = self._targets[cluster.name].device.contiguous(array)
        if made is not array and events.active():
            duration = time.perf_counter_ns() - started
            events.send(
                events.ArrayCopied(
                    function=self.function, trace=self.trace, cluster=cluster.name, argument=node.name, bytes=made.nbytes,
                    start_ns=started, duration_ns=duration,
                )
            )  # fmt: skip
        return made

    def _fail(self, cluster: Cluster, sources: Sources, values: Mapping[Node, Any], states: States) -> None:
        """Raise what NumPy raises for the data: the cluster's operations run on it once more, one by one, and draw again
        what they drew: `states` are those before it."""
        interrupt = self._targets[cluster.name].device.raised()
        if interrupt is not None and not isinstance(interrupt, Exception):
            raise interrupt
        set_random_states(states)
        where = "".join(f" ({source.place})" for source in sorted(sources)[:1])
        own = {node: self._on_host(values[node]) for node in cluster.inputs}
        value = quietly(self._value)
        for node in cluster.nodes:
            try:
                own[node] = value(node, own)
            except Exception as error:
                if not isinstance(error, REFUSALS):
                    leave(self.graph, self._lasting, {**values, **own}, node, value)
                if hasattr(error, "_jitlab_said") or isinstance(error, Signal):
                    raise
                raise type(error)(f"{error}{where}") from None
        if any(variant.launcher.lowered.program.calls for variant in list(self._variants.values())):
            raise KeyboardInterrupt  # it came before the first step of what a kernel calls, where Python can only drop it
        raise AssertionError(f"a check failed that NumPy passes{where}")

    def _variant(self, cluster: Cluster, layouts: tuple[str, ...], ends: frozenset[Node]) -> Variant:
        key = (cluster.name, layouts, ends)
        variant = self._variants.get(key)
        if variant is None:
            known = [known for name, known, same in list(self._variants) if name == cluster.name and same == ends]
            others = [each for each in known if each != layouts]  # another thread may have made this one meanwhile
            started, before = time.perf_counter_ns(), self.costs.spent_ns
            with Whole(), self.costs.spending():
                lowered = self._lowered(cluster, layouts, ends)
                target = self._targets[cluster.name]
                with noting(self.facts):
                    code = compiled(target, lowered.program, Origin(self.function, self.trace, cluster.name))
                self.costs.kernels = tuple({*self.costs.kernels, code.digest})
                variant = self._variants[key] = Variant(target.launcher(lowered, code))
                if variant.launcher.on_host is not None:
                    self.costs.on_host[cluster.name] = variant.launcher.on_host
            costs.tell_charge(self.function, self.trace, self.costs)
            if others:
                self._tell_variant(cluster, others, layouts, started, self.costs.spent_ns - before)
            if self.when_compiled is not None:
                self.when_compiled(self)
        return variant

    def _compile_in_rows(self) -> None:
        """Each cluster, for inputs that lie row by row."""
        for cluster in self.clustering.clusters:
            self._variant(cluster, tuple("C" for _ in cluster.inputs), NONE)

    def _tell_variant(
        self, cluster: Cluster, others: Sequence[tuple[str, ...]], layouts: tuple[str, ...], started: int, spent_ns: int
    ) -> None:
        """The kernels of a cluster depend on how its inputs lie in memory: say which input lies in another way than before."""
        before = min(others, key=lambda known: sum(a != b for a, b in zip(known, layouts, strict=True)))
        at = next(n for n, (a, b) in enumerate(zip(before, layouts, strict=True)) if a != b)
        input = cluster.inputs[at]
        texts = LAYOUTS[before[at]], LAYOUTS[layouts[at]]
        self.costs.variants.append(
            costs.Variant(cluster.name, events.VariantCause.LAYOUT, input.name, *texts, seconds=spent_ns / 1e9)
        )
        if events.active():
            sources = next((node.sources for node in cluster.nodes if input in node.inputs), frozenset())
            events.send(
                events.VariantMade(
                    function=self.function, trace=self.trace, cluster=cluster.name, cause=events.VariantCause.LAYOUT,
                    argument=input.name, before=texts[0], after=texts[1],
                    lines=tuple((s.file, s.line, s.column, s.end_line, s.end_column) for s in sorted(sources)),
                    start_ns=started, duration_ns=time.perf_counter_ns() - started,
                )
            )  # fmt: skip

    def _lowered(self, cluster: Cluster, layouts: tuple[str, ...], ends: frozenset[Node]) -> Lowered:
        key = (cluster.name, layouts, ends)
        if key not in self._lowerings:
            self._lowerings[key] = self._lower(cluster, layouts, ends)
        return self._lowerings[key]

    def _lower(self, cluster: Cluster, layouts: tuple[str, ...], ends: frozenset[Node]) -> Lowered:
        """With outputs in arguments' places, unless a check could then leave an argument half changed."""
        wanted = self._endings.get(cluster.name, {})
        try:
            with noting(self.facts):
                lowered = self.lower(
                    cluster, self._values, layouts, self._targets[cluster.name].shape, level=self.level,
                    ends={node: wanted[node] for node in ends}, overrides=self.clustering.overrides,
                )  # fmt: skip
        except (AssertionError, Signal) as mistake:  # seen before anything of this cluster runs: the call is Python's
            sources = sorted(source for node in cluster.nodes for source in node.sources)
            raise InternalError(
                f"jitlab made a mistake: {cluster.name} has no loops", where=sources[0].place if sources else "",
                why="its operations could not be put into loops; nothing was changed",
                hint="please report it with the program",
            ) from mistake  # fmt: skip
        self._sizes.check_buffers(lowered)
        if ends and (lowered.program.errors or self._may_fail_after(cluster)):
            return self._lowered(cluster, layouts, NONE)
        return lowered

    def _may_fail_after(self, cluster: Cluster) -> bool:
        clusters = self.clustering.clusters
        later = clusters[clusters.index(cluster) + 1 :]
        return any(self._lowered(c, tuple("C" for _ in c.inputs), NONE).program.errors for c in later)

    def warm(
        self, form: CallForm, arguments: Sequence[Any] | None, tells_call: bool = True, is_there: bool = False
    ) -> Entry | None:
        """A way to run this trace without Python, or None when it has to go through Python.

        For plans of clusters alone, of calls of this form; `arguments`: of one, None: all of them lie row by row. What the form
        writes is stored where it lies, as in `run_in_place`, where nothing can fail. `tells_call`: the entry answers for the
        whole function when somebody records its calls; `is_there`: its arrays lie in the device's memory, as results will.
        """
        graph, clusters = self.graph, self.clustering.clusters
        if len(clusters) != len(self.clustering.steps) or len(set(graph.outputs)) != len(graph.outputs):
            return None
        if any(isinstance(node.op, Draw) for node in every_node(graph)):  # a run holds the generators' locks
            return None
        if any(n.op.is_parameter for n in graph.outputs):
            return None
        target = self.only_target
        if target is None or bool(self._others) is not is_there:
            return None
        if is_there and not self._variants:  # its calls were served otherwise
            self._compile_in_rows()
        device, in_place = target.device, bool(form.writes) and self._may_fail is False
        values = {} if arguments is None else dict(zip(graph.parameters, map(device.array, arguments), strict=True))
        variants = []
        for cluster in clusters:
            ends = frozenset(self._endings.get(cluster.name, ())) if in_place else NONE
            layouts = tuple(device.layout_of(values[n]) if n in values else "C" for n in cluster.inputs)
            variant = self._variants.get((cluster.name, layouts, ends))
            if variant is None or variant.launcher.lowered.copies:
                return None
            variants.append(variant)
        entry = target.entry(graph, [variant.launcher for variant in variants], form)
        if entry is None:
            return None
        launched = tuple(map(_launched, clusters, variants))
        about = native_call_log.About(self.function, self.trace, launched, tells_call, self.costs, ref(self))
        if native_call_log.clock() is not None and about.lines <= native_call_log.MOST_LINES:
            said = form.gives.said if isinstance(form.gives, GivingOut) else ()
            entry.site = native_call_log.Site(about, [native_call_log.Site(native_call_log.statement(each)) for each in said])
            self._sites += (entry.site,)
        return entry

    # -- host operations

    def _run_step(self, step: Node, values: dict[Node, Any], held: Held) -> None:
        """An operation that runs on NumPy."""
        if getattr(step.op, "has_effects", False):
            held.run()  # it may tell something, too
        try:
            self._run_host(step, values)
        except Exception as error:
            if not isinstance(error, REFUSALS):  # else Python runs the call from its first line
                leave(self.graph, self._lasting, values, step, self._value)
            raise

    def _run_host(self, node: Node, values: dict[Node, Any]) -> None:
        if not events.active():
            values[node] = self._value(node, values)
            return
        began, (process, thread) = events.moment(), events.had_ns()
        values[node] = self._value(node, values)
        ended, (process_ended, thread_ended) = events.moment(), events.had_ns()
        events.send(
            events.HostOperationRan(
                function=self.function, trace=self.trace, operation=node.name, op=node.op.name,
                **events.between(began, ended), process_ns=process_ended - process, thread_ns=thread_ended - thread,
            )
        )  # fmt: skip

    def _value(self, node: Node, values: Mapping[Node, Any]) -> Any:
        """An operation's value as NumPy makes it; a loop or branch runs op by op."""
        arrays = tuple(self._on_host(values[source], source) for source in node.inputs)
        value = node.op.run(self._values, arrays) if hasattr(node.op, "graphs") else node.op.numpy(*arrays)
        self._sizes.check_value(node, value)
        return value


@contextmanager
def watching(watcher: Callable[[Executable, Sequence[Any]], None], now_and_then: bool = False) -> Iterator[None]:
    """Inside, `watcher` is told of each run, in any thread, before it starts. `now_and_then`: where runs follow each other
    closely and somebody takes notes of them, of one in some milliseconds is enough."""
    with nullcontext() if now_and_then else events.busy:  # warm calls take the way on which they are seen
        _watchers.append(watcher)
        try:
            yield
        finally:
            _watchers.remove(watcher)


def plan_of(function: str, trace: int, cluster: str | None = None) -> Plan | None:
    """The plan of a trace whose code can still run; the one with that cluster when a cluster is given."""
    found = executable_of(function, trace, cluster)
    return found.plan if found is not None else None


def plan_numbered(number: int) -> Plan | None:
    """The plan that an event tells of, while its code can still run; names do not say which, as functions may share one."""
    found = _live.get(number)
    return found.plan if found is not None else None


def executable_of(function: str, trace: int, cluster: str | None = None) -> Executable | None:
    """What runs a trace, while it can still run."""
    for executable in list(_live.values())[::-1]:  # of several of a name the newest
        if (executable.function, executable.trace) == (function, trace):
            if cluster is None or any(c.name == cluster for c in executable.clustering.clusters):
                return executable
    return None


def next_number(executable: Executable) -> int:
    """The number of one that events may tell of."""
    number = next(_numbers)
    _live[number] = executable
    return number


def is_watched() -> bool:
    """Is somebody told of each run?"""
    return bool(_watchers)


_watchers: list[Callable[[Executable, Sequence[Any]], None]] = []
_live: WeakValueDictionary[int, Executable] = WeakValueDictionary()
_numbers = itertools.count()


def _layout(device: Device, value: Any) -> str:
    """How an argument of a call will lie on a device: what is copied there lies row by row, as what has to be copied first."""
    if device.array_type is np.ndarray or type(value) is device.array_type:
        return device.layout_of(device.array(value) if device.array_type is np.ndarray else value) or "C"
    return "C"


def _others(targets: Iterable[Target]) -> tuple[Device, ...]:
    """Of the devices of these targets those whose arrays are not NumPy's."""
    devices = dict.fromkeys(target.device for target in targets)
    return tuple(device for device in devices if device.array_type is not np.ndarray)


def _launched(cluster: Cluster, variant: Variant) -> native_call_log.Launched:
    return native_call_log.Launched(cluster.name, variant.kernels, variant.launcher.scratch_bytes)


def _last_uses(clustering: Clustering) -> dict[int, list[Node]]:
    """For each step (by id) the values that nobody reads after it: their memory goes back at once."""
    kept = set(clustering.graph.outputs) | set(clustering.graph.parameters)
    last: dict[Node, Any] = {}
    for step in clustering.steps:
        made = step.outputs if isinstance(step, Cluster) else [step]
        read = step.inputs if isinstance(step, Cluster) else step.inputs
        for node in (*made, *read):
            last[node] = step
    result: dict[int, list[Node]] = {}
    for node, step in last.items():
        if node not in kept:
            result.setdefault(id(step), []).append(node)
    return result


def _threads_of(targets: Mapping[str, Target], lowerings: Sequence[Lowered]) -> list[Message | None]:
    """Of the kernels of all clusters, in order."""
    said = (targets[lowered.cluster.name].threads(lowered) for lowered in lowerings)
    return [told.get(k.name) for told, lowered in zip(said, lowerings, strict=True) for k in lowered.kernels]
