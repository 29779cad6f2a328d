"""The traces of a `function`: found by the type of a call, recorded where there is none, forgotten where there are too many."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.api.retraces.ledger import misfits
from jitlab.api.retraces.misses import Failed
from jitlab.capture import Capture, Change, Foreign, NotReplayable, Refusal, Trace, describe, key_of, leaves_of
from jitlab.capture.drivers.trace import BY_DATA, outgrow, recorded_anew, usable
from jitlab.capture.effect_log import Frozen, Memory, Quiet
from jitlab.capture.guards.tracetypes import FunctionType, function_type, generalised, most_specific
from jitlab.capture.state import Creation
from jitlab.compile import compile_trace
from jitlab.config import config
from jitlab.costs import Costs
from jitlab.errors import CaptureError
from jitlab.ir import CALLED, Options
from jitlab.ir.size_facts import SizeFacts, noting
from jitlab.messages import by_contract
from jitlab.runtime.other_sizes import servers
from jitlab.support import locks
from jitlab.support.transactions import Whole

from . import recorder
from .binding import Binder
from .concrete import ConcreteFunction, Recording
from .dispatch import Dispatched, remove
from .weak_methods import WeakMethod

#: Recordings that may serve one more size, the newest.
MOST_OF_FAMILY = 4
_SINGLETON = (
    "tf.function only supports singleton tf.Variables created on the first call: the first call is recorded twice, and the"
    " second recording makes one again. Make it once (`if self.v is None: self.v = jl.Variable(...)`), or outside"
)
_NOT_FIRST = (
    "Creating variables on a non-first call to a function decorated with jl.function: every call would make another. Make it"
    " in the first call, or outside"
)


class Traces(Dispatched):
    """What a function knows of its calls.

    A *trace* is what the contract counts: a ConcreteFunction with a type, for which the body runs once. Below it stand exact
    *recordings*, one for each size, layout and aliasing of real arguments; later ones leave no effects on Python.
    """

    #: What makes arrays of Python values, where an input_signature or a hint asks for them.
    to_array: Callable[..., Any] = staticmethod(np.asarray)
    python_function: Callable[..., Any]
    options: Options
    autograph: bool
    reduce_retracing: bool
    attributes: dict[str, Any]
    _signature: Binder

    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock, "_table": threading.RLock}
    _table: Any  # held while tables change, and nothing else is waited for
    TABLES = ("_concretes", "_by_type", "_wide", "_traces", "_recent", "_count", "_numbers")

    def __init__(self) -> None:
        self._concretes: dict[int, ConcreteFunction] = {}  # by id, in the order they were traced
        self._by_type: dict[FunctionType, ConcreteFunction] = {}
        self._wide: dict[int, ConcreteFunction] = {}  # those that stand for other types than their own
        self._traces: dict[Any, list[Trace]] = {}  # by the key of a call
        self._recent: OrderedDict[int, Recording] = OrderedDict()  # by the id of the trace, the one called last at the end
        self._refused = {}
        self._count = self._numbers = 0
        locks.own(self)
        self._counters: list[ctypes.c_int64] = []  # calls that C functions answered, which `_recent` does not see

    def __del__(self) -> None:
        """Traces and what is recorded for them refer to each other: they go at once, not when the collector comes."""
        for recording in getattr(self, "_recent", {}).values():
            recording.concrete._recordings.clear()
            recording.concrete._first = None

    def _call_concrete(self, concrete: ConcreteFunction, values: tuple[Any, ...]) -> Any:
        """A call of one trace, whatever else would fit better."""
        raise NotImplementedError

    def _function(self) -> Any:
        function = self.python_function
        return function.bound() if isinstance(function, WeakMethod) else function

    # ---- found
    def _dispatch(self, wanted: FunctionType) -> ConcreteFunction | None:
        """The trace of exactly this type, else the most specific one of a type that contains it."""
        exact = self._by_type.get(wanted)
        if exact is not None or not self._wide:
            return exact
        wide = list(self._wide.values())
        best = most_specific([concrete.function_type for concrete in wide], wanted)
        return None if best is None else wide[best]

    def _find(self, key: Any, leaves: Sequence[Any]) -> Trace | None:
        for trace in usable(self._traces.get(key, ())):
            if trace.fits(leaves):
                try:
                    self._recent.move_to_end(id(trace))
                except KeyError:  # another thread has just forgotten it
                    pass
                return trace
        return None

    def _gave_up(self, trace: Any, reason: Refusal) -> None:
        """Of sizes that the data decide another recording may serve."""
        if reason.code != BY_DATA:
            return
        with locks.Released(self._table), self._table:
            recording = self._recent.get(id(trace))
            if recording is not None:
                outgrow(self._traces.get(recording.key, []), trace, reason)

    def _compiled(self, trace: Trace) -> Callable[[Sequence[Any]], list[Any]]:
        return compile_trace(trace, self.options)

    def _misfits(self, concrete: ConcreteFunction | None, known: Sequence[Trace], leaves: Sequence[Any]) -> Failed:
        """What keeps a call of a trace's type from the recordings there are."""
        if not known and concrete is not None:  # what was recorded to be looked at serves no call where values decide
            made_up = concrete._recordings.get(None, ())
            return {r.trace.number: Change("first_call", after="called first with arrays") for r in made_up}
        return misfits(known, leaves)

    # ---- recorded
    def _type_for(self, values: Sequence[Any]) -> FunctionType:
        """The type of a new trace."""
        fixed = self._signature.function_type()
        if fixed is not None:
            return fixed
        found = function_type(values)
        if self.reduce_retracing:
            return generalised([concrete.function_type for concrete in list(self._concretes.values())], found)
        return found

    def _trace(self, key: Any, values: tuple[Any, ...], leaves: list[Any]) -> Trace:
        """The recording that a call needs: a new trace, or one more size, layout or aliasing of a known one."""
        concrete = self._dispatch(function_type(values))
        is_outgrown = any(trace.is_outgrown for trace in self._traces.get(key, ()))
        for known in [] if concrete is None or is_outgrown else concrete._recordings.get(key, ()):
            if known.trace.fits(leaves):
                return self._index(known)
        return self._recorded(concrete, key, values, leaves).trace

    def _trace_for(self, values: tuple[Any, ...]) -> ConcreteFunction:
        """A new trace for values with TensorSpecs among them."""
        if not recorder.has_specs(values):
            key, leaves = key_of(values)
            return self._recorded(None, key, values, leaves).concrete
        type = self._type_for(values)
        make = self._fitting_sample(type, values)
        real = tuple(recorder.with_arrays(value, make) for value in values)
        key, leaves = key_of(real)
        return self._recorded(None, key, real, leaves, type, is_sample=True, told=values).concrete

    def _sample_recording(self, concrete: ConcreteFunction) -> Recording:
        """A recording of a known trace for made-up arrays: what a user looks at when no call was recorded."""
        type = concrete.function_type
        make = self._fitting_sample(type, None, concrete)
        values = recorder.values_of(type, make)
        key, leaves = key_of(values)
        try:
            with locks.Released(self._lock), self._lock:
                return self._recorded(concrete, key, values, leaves, is_sample=True)
        except NotReplayable as refusal:
            raise self._untraceable(refusal) from None

    def _untraceable(self, refusal: NotReplayable | Foreign) -> CaptureError:
        """What somebody is told who wants a trace and not a call."""
        source = refusal.source if isinstance(refusal, NotReplayable) else None
        return CaptureError(
            f"{self.name} cannot be traced for these arguments: {refusal}.",
            where=describe(source) if source is not None else "", why="Python runs such a call, so that it has no graph",
            hint="call the function itself",
        )  # fmt: skip

    def _fitting_sample(
        self, type: FunctionType, values: tuple[Any, ...] | None, concrete: ConcreteFunction | None = None
    ) -> Callable[[Any], Any]:
        """Sizes for those that are open which the body accepts; it is tried without effects on Python."""
        first: Exception | None = None
        choices = list(recorder.samples(type))
        if len(choices) == 1:
            return choices[0]
        for make in choices:
            real = (
                recorder.values_of(type, make)
                if values is None
                else tuple(recorder.with_arrays(value, make) for value in values)
            )
            _, leaves = key_of(real)
            quiet = Quiet(Frozen() if concrete is None else concrete._frozen, self._function(), _objects(real))
            try:
                self._record(type, real, leaves, quiet, Creation(self._count == 0, _NOT_FIRST), is_sample=True)
                return make
            except (ValueError, IndexError) as error:
                first = first or error
        assert first is not None
        raise first

    def _recorded(
        self, concrete: ConcreteFunction | None, key: Any, values: tuple[Any, ...], leaves: list[Any],
        type: FunctionType | None = None, *, is_sample: bool = False, told: tuple[Any, ...] | None = None,
    ) -> Recording:  # fmt: skip
        """Record, compile and keep."""
        known = (self, self.ledger) if concrete is None else (self, self.ledger, concrete)
        with Whole(*known):
            return self._recorded_whole(concrete, key, values, leaves, type, is_sample=is_sample, told=told)

    def _recorded_whole(
        self, concrete: ConcreteFunction | None, key: Any, values: tuple[Any, ...], leaves: list[Any],
        type: FunctionType | None, *, is_sample: bool, told: tuple[Any, ...] | None,
    ) -> Recording:  # fmt: skip
        started = time.perf_counter_ns()
        is_new = concrete is None
        concrete = concrete or ConcreteFunction(self, type or self._type_for(values))
        known = concrete._recordings.get(key, ())
        failed = self._misfits(concrete, [recording.trace for recording in known], leaves)
        described = leaves_of(self._signature.names, told or values)
        is_size = not is_new and (is_sample or not concrete.function_type.is_exact)  # of a trace that stands for many
        by_data = any(recording.trace.is_outgrown for recording in known)  # other sizes than it had before
        is_size = is_size or by_data
        costs = Costs(concrete._first.trace.costs if is_size and concrete._first is not None else None)
        with costs.spending():
            if is_new:
                recorded = self._record_first(concrete, values, leaves, is_sample)
            else:
                quiet = Quiet(concrete._frozen, self._function(), _objects(values))
                recorded = self._record(
                    concrete.function_type, values, leaves, quiet, Creation(False, _NOT_FIRST), is_sample=is_sample
                )
            trace = recorded.trace
            trace.near = servers((r.trace.executable for r in reversed(list(self._recent.copy().values()))), MOST_OF_FAMILY)
            with noting(SizeFacts()):
                trace.run = self._compiled(trace)
        self._numbers = trace.number
        if is_new:
            self._add(concrete)
        recording = Recording(concrete, key, trace, recorded.outputs, recorded.has_symbolic_sizes, recorded.variables)
        if concrete._first is None:
            concrete._first = recording
        if not by_data and (is_new or failed or (concrete.function_type.is_exact and not is_sample)):
            self.ledger.traced(trace, described, costs, failed, started)
        else:  # a size of a trace that stands for many: no retrace
            trace.costs = costs
            if trace.executable is not None:
                trace.executable.costs = costs
        if not is_sample or recorded.is_for_any_values:
            concrete._recordings.setdefault(key, []).append(recording)
            self._index(recording)
        elif is_new:  # nothing else keeps its trace from being forgotten
            concrete._recordings.setdefault(None, []).append(recording)
            self._recent[id(trace)] = recording
            recording.key = None
        self._make_room()
        return recording

    def _record_first(
        self, concrete: ConcreteFunction, values: tuple[Any, ...], leaves: list[Any], is_sample: bool
    ) -> recorder.Recorded:
        """The run of the body that has effects; a run that makes Variables is repeated, and the second one counts."""
        creation = Creation(self._count == 0, _NOT_FIRST)
        type = concrete.function_type
        memory = Memory(concrete._frozen, self._function())
        recorded = self._record(type, values, leaves, memory, creation, is_sample=is_sample)
        if creation.made:
            concrete._frozen = Frozen()
            memory = Memory(concrete._frozen, self._function())
            self._numbers += 1
            try:
                creation = Creation(False, by_contract(_SINGLETON))
                recorded = self._record(type, values, leaves, memory, creation, is_sample=is_sample)
            except BaseException:
                self._numbers -= 1
                raise
            self._count += 1
        return recorded

    def _record(
        self, type: FunctionType, values: Sequence[Any], leaves: Sequence[Any], memory: Memory, creation: Creation, *,
        is_sample: bool = False,
    ) -> recorder.Recorded:  # fmt: skip
        return recorder.record(
            self._function(), self.name, self._signature, type, values, leaves, self._numbers + 1, memory, creation,
            strict=bool(self.options.jit_compile), autograph=self.autograph, is_sample=is_sample,
        )  # fmt: skip

    # ---- inside another recording
    def __jitlab_inline__(self, capture: Capture, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called while another function is recorded: its body is recorded there. It is traced as if it were called alone:
        once for each type, so that its effects on Python happen once."""
        capture.before_inline(self)
        values = self._signature.bind(args, kwargs)
        memory = capture.memory
        if memory is None or memory.silent:
            return self._inline(capture, values)
        concrete = self._dispatch(function_type(values))  # without the lock: another thread may record both ways round
        if concrete is not None:
            return self._inline_concrete(capture, concrete, values)
        concrete = ConcreteFunction(self, self._type_for(values))
        capture.memory = Memory(concrete._frozen, self._function(), memory)
        try:
            result = self._inline(capture, values)
        finally:
            capture.memory = memory
        self._add(concrete)
        return result

    def _inline_concrete(self, capture: Capture, concrete: ConcreteFunction, values: tuple[Any, ...]) -> Any:
        """The body of a known trace, recorded once more as part of another."""
        memory = capture.memory
        quiet = Quiet(concrete._frozen, self._function(), _objects(values), memory)
        capture.memory = quiet
        try:
            return self._inline(capture, values)
        finally:
            quiet.undo()
            capture.memory = memory

    def _inline(self, capture: Capture, values: tuple[Any, ...]) -> Any:
        args, kwargs = self._signature.call_form(values)
        before = capture.strict, capture.must_compile
        attrs: dict[str, Any] = {CALLED: True} if capture.graph.scopes and not self.options.jit_compile else {}
        if self.options.jit_compile:
            capture.strict, attrs = True, {"_XlaMustCompile": True}
            if not capture.graph.scopes:  # a scope of its own, unless one is around it
                attrs |= {
                    "_XlaCompile": True, "_XlaSeparateCompiledGradients": False, "_XlaScope": f"function_{self.name}"
                }  # fmt: skip
            capture.must_compile = capture.must_compile or self.name
        try:
            with capture.graph.with_attrs(attrs), capture.putting_nothing_off():
                return recorder.call(capture, self._function(), args, kwargs, self.autograph)
        finally:
            capture.strict, capture.must_compile = before

    # ---- kept
    def _add(self, concrete: ConcreteFunction) -> None:
        type = concrete.function_type
        with locks.Released(self._table), self._table:
            if type in self._by_type:  # another thread was quicker
                return
            self._count += 1
            self._concretes[id(concrete)] = concrete
            self._by_type[type] = concrete
            if not type.is_exact or any(getattr(t, "name", None) for t in type.tensors()):
                self._wide[id(concrete)] = concrete
                if type.is_exact:  # a name makes it more specific than traces that calls have found before
                    self._traces.clear()

    def _index(self, recording: Recording) -> Trace:
        """Calls of its key find it from now on, where its trace is the one they are for."""
        self._recent[id(recording.trace)] = recording
        if id(recording.concrete) in self._concretes:
            known = self._traces.setdefault(recording.key, [])
            if all(trace is not recording.trace for trace in known):
                if known and known[-1].is_outgrown:
                    recorded_anew(known, recording.trace)
                else:
                    known.append(recording.trace)
        return recording.trace

    def _make_room(self) -> None:
        """The recordings that were called longest ago make room; a trace without any is forgotten."""
        spared = 0
        while len(self._recent) > config.max_traces:
            at, oldest = self._recent.popitem(last=False)
            if spared < len(self._counters) and oldest.trace.costs.was_called_natively():
                self._recent[at] = oldest
                spared += 1
                continue
            self._forget(oldest)

    def _forget(self, recording: Recording) -> None:
        concrete, trace = recording.concrete, recording.trace
        self.ledger.evicted(trace)
        remove(self._traces, recording.key, trace)
        remove(concrete._recordings, recording.key, recording)
        if not concrete._recordings:
            self._concretes.pop(id(concrete), None)
            self._wide.pop(id(concrete), None)
            if self._by_type.get(concrete.function_type) is concrete:
                del self._by_type[concrete.function_type]


def _objects(values: Iterable[Any]) -> list[Any]:
    """The arguments that are neither tensors nor containers: the body may store into them."""
    return [value for value in values if not isinstance(value, (np.ndarray, np.generic, list, tuple, dict))]
