"""`function`: a trace for each type of arguments, exact recordings of it, compiled."""

from __future__ import annotations

import ctypes
import functools
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jitlab import errors, events
from jitlab.capture import (
    Capture,
    Foreign,
    NotReplayable,
    Trace,
    current_capture,
    key_of,
    leaves_of,
    random_state,
    set_random_state,
    spans,
    user_traceback,
)
from jitlab.capture.memory import Frozen, Memory, Quiet
from jitlab.capture.state import Creation
from jitlab.capture.tracetypes import FunctionType, VariableType, function_type, generalised, most_specific
from jitlab.config import config
from jitlab.costs import Costs
from jitlab.ir import Source, outside
from jitlab.targets.cpu_llvm.entry import layout_is_known, make_entry

from . import recorder
from .binding import Binder
from .compiler_ir import CompilerIR
from .concrete import ConcreteFunction, Recording
from .definitions import calling_line
from .eagerly import functions_run_eagerly
from .explaining import Explained, Found, Ways
from .frequency import frequency_of, told
from .ledger import Ledger
from .methods import WeakMethod, look_like
from .stages import Options, compile_trace

#: A signature that was called so often gets a C function of its own; a function has at most so many of them.
WARM_CALLS, MAX_ENTRIES = 5, 4

_SINGLETON = (
    "tf.function only supports singleton tf.Variables created on the first call: the first call is recorded twice, and the"
    " second recording makes one again. Make it once (`if self.v is None: self.v = jl.Variable(...)`), or outside"
)
_NOT_FIRST = (
    "Creating variables on a non-first call to a function decorated with jl.function: every call would make another. Make it"
    " in the first call, or outside"
)


class Function(Explained):
    """A Python function that is traced once for each type of its arguments and runs compiled.

    `print(f.ledger)`: why it was traced, and what that cost. `f.check(*args)`: how far it is from NumPy. `f.whatif(*args,
    cut=...)`: what a decision of the compiler is worth. `f.would_hit(*args)`, `f.explain_key(*args)`: what a call would meet.

    A *trace* is what the contract counts: a ConcreteFunction with a type, for which the body runs once. Below it stand exact
    *recordings*, one for each size, layout and aliasing of real arguments; later ones leave no effects on Python.
    """

    #: What makes arrays of Python values, where an input_signature or a hint asks for them.
    to_array: Callable[..., Any] = staticmethod(np.asarray)
    #: How the warning of repeated retraces begins.
    retrace_words = "{tracings} out of the last {calls} calls to {name} triggered retracing."

    def __init__(
        self, python_function: Callable[..., Any], *, jit_compile: bool | None = None, autograph: bool = True, name: str = "",
        input_signature: Any = None, reduce_retracing: bool = False, follow_type_hints: bool = False, pure: bool = False,
        attributes: dict[str, Any] | None = None, autograph_options: Any = None,
    ) -> None:  # fmt: skip
        if not callable(python_function):
            raise TypeError(f"{python_function!r} is not a callable object")
        self._settings = {
            "jit_compile": jit_compile, "autograph": autograph, "input_signature": input_signature,
            "reduce_retracing": reduce_retracing, "follow_type_hints": follow_type_hints, "pure": pure,
            "attributes": attributes, "autograph_options": autograph_options,
        }  # fmt: skip
        self.python_function = python_function
        self.autograph = autograph
        self.autograph_options = autograph_options
        self.options = Options(jit_compile)
        self.reduce_retracing = reduce_retracing
        self.attributes = dict(attributes or {})
        if jit_compile is not None:
            self.attributes.setdefault("_XlaMustCompile", bool(jit_compile))
        if jit_compile:
            self.attributes.setdefault("_noinline", True)
        self.name = name or getattr(python_function, "__name__", type(python_function).__name__)
        self._signature = Binder(
            python_function, input_signature, hinted=follow_type_hints, pure=pure, to_array=type(self).to_array
        )
        self._concretes: dict[int, ConcreteFunction] = {}  # by id, in the order they were traced
        self._by_type: dict[FunctionType, ConcreteFunction] = {}
        self._wide: dict[int, ConcreteFunction] = {}  # those that stand for other types than their own
        self._traces: dict[Any, list[Trace]] = {}  # by the key of a call
        self._recent: OrderedDict[int, Recording] = OrderedDict()  # by the id of the trace, the one called last at the end
        self._count = self._numbers = 0
        self._lock = threading.RLock()  # held while something is recorded
        self._table = threading.Lock()  # held while tables change, and nothing else is waited for
        self._bound: dict[int, tuple[weakref.ref[Any], Function]] = {}
        self._warned: set[str] = set()
        self._foreign: dict[Any, str] = {}  # signatures whose calls run as Python, and why
        self._warm: list[Any] = []  # what the C functions in front of this one need to live
        self._counters: list[ctypes.c_int64] = []  # calls that they answered
        self._native_calls = 0  # of those, how many the warning of §3.9 knows of
        is_method = isinstance(python_function, WeakMethod)
        plain = python_function.function if isinstance(python_function, WeakMethod) else python_function
        self._frequency = frequency_of(plain)
        self.ledger = Ledger(plain, self.name, str(self.options), is_method=is_method)
        self.name = self.ledger.name
        look_like(self, python_function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        capture = current_capture()
        if capture is not None:
            return capture.perform(_inlined, self, args, kwargs)
        if functions_run_eagerly() or outside.is_python:
            return self._function()(*args, **kwargs)
        started = time.perf_counter_ns() if events.active() else 0
        try:
            result, trace = self._run(args, kwargs)
        except Exception as error:
            error.__traceback__ = user_traceback(error)
            raise
        if not started:
            return result
        if trace is not None:
            self._tell_call(trace, started)
        return result

    def _tell_call(self, trace: Trace, started: int) -> None:
        ended = time.perf_counter_ns()
        if events.in_bulk():
            events.note(trace.costs.call_of(self.name, trace.number), started, ended)
            return
        duration = ended - started
        trace.costs.ran(duration)
        events.send(
            events.FunctionCalled(
                cell=events.current_cell(), function=self.name, trace=trace.number, start_ns=started, duration_ns=duration
            )
        )

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method: each instance has its own Function, and the Function holds the instance weakly."""
        if instance is None:
            return self
        known = self._bound.get(id(instance))
        if known is not None and known[0]() is instance:
            return known[1]
        hash(instance)  # the contract: instances are hashable and can be referred to weakly
        key = id(instance)
        with self._table:
            known = self._bound.get(key)
            if known is not None and known[0]() is instance:
                return known[1]
            reference = weakref.ref(instance, lambda _: self._bound.pop(key, None))
            bound = Function(WeakMethod(self.python_function, reference), name=self.name, **self._settings)
            self._bound[key] = (reference, bound)
        return bound

    # ---- the contract's small print
    @property
    def input_signature(self) -> tuple[Any, ...] | None:
        """The specs it was made with, or None."""
        return self._signature.input_signature

    def experimental_get_tracing_count(self) -> int:
        """How often it was traced; traces that made room for others count, too."""
        return self._count

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments, traced now where there is none. Arrays, TensorSpecs and Python values; without
        arguments that of the input_signature."""
        try:
            if self.input_signature is not None and not args and not kwargs:
                values = self._signature.bind_spec()
            else:
                values = self._signature.bind(args, kwargs)
            with self._lock:
                return self._dispatch(function_type(values)) or self._trace_for(values)
        except Exception as error:
            error.__traceback__ = user_traceback(error)
            raise

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The types of all traces, in the order they were traced."""
        found = [concrete.pretty_printed_signature(verbose) for concrete in list(self._concretes.values())]
        return ("\n\n" if verbose else "\n").join(found)

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """A function of `stage` that gives what the compiler made for these arguments, as text."""
        if not self.options.jit_compile:
            raise ValueError("Compiler IR can only be returned for functions marked with 'jit_compile=True'")
        return CompilerIR(self.get_concrete_function(*args, **kwargs), (*args, *kwargs.values()))

    # ---- running
    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Trace | None]:
        values = self._signature.bind(args, kwargs)
        leaves: list[Any] = []
        try:
            key = key_of(values, leaves)
        except Foreign as foreign:
            return self._run_as_python(args, kwargs, "foreign_type", foreign.what), None
        trace = self._find(key, leaves)
        if trace is None:
            if key in self._foreign:
                return self._run_as_python(args, kwargs, "foreign_type", self._foreign[key]), None
            try:
                with self._lock:
                    before = self._count
                    trace = self._find(key, leaves) or self._trace(key, values, leaves)
                    is_traced = self._count > before
            except NotReplayable as refusal:  # a foreign array met the arguments: there is nothing to record
                self._foreign[key] = str(refusal)
                while len(self._foreign) > config.max_traces:
                    del self._foreign[next(iter(self._foreign))]
                return self._run_as_python(args, kwargs, refusal.code, str(refusal)), None
            self._note_frequency(is_traced)
        else:
            self._note_frequency(False)
        if trace.costs.calls + 1 == WARM_CALLS:
            self._add_entry(trace, kwargs)
        try:
            return self._perform(trace, leaves), trace
        except NotReplayable as refusal:
            return self._run_as_python(args, kwargs, refusal.code, str(refusal), refusal.met), None

    def _perform(self, trace: Trace, leaves: Sequence[Any]) -> Any:
        self._check_bindings(trace)
        trace.costs.called()
        states = [(generator, random_state(generator)) for generator in trace.generators]
        try:
            return trace(trace.collect(leaves))
        except NotReplayable:
            for generator, state in states:
                set_random_state(generator, state)
            raise

    def _note_frequency(self, is_traced: bool) -> None:
        if self._counters:
            native = sum(counter.value for counter in self._counters)
            if native > self._native_calls:
                self._frequency.called(native - self._native_calls)
                self._native_calls = native
        if is_traced:
            self._frequency.traced(self._retrace_warning)
        else:
            self._frequency.called()

    def _retrace_warning(self, tracings: int, calls: int) -> str:
        function = told(self.python_function)
        head = self.retrace_words.format(tracings=tracings, calls=calls, name=self.name, function=function)
        return f"{head} {self.ledger.warning(tracings)}".rstrip()

    def _add_entry(self, trace: Trace, kwargs: dict[str, Any]) -> None:
        """From now on calls with this signature are answered by a C function, where that can be (design D17)."""
        form = trace.plain_results()
        arrays = all(x.is_array and not x.captured for x in trace.inputs)
        if trace.executable is None or form is None or kwargs or not arrays or trace.layouts or not layout_is_known():
            return
        if len(self._warm) >= MAX_ENTRIES:
            return
        if [x.path for x in trace.inputs] != list(self._signature.names) or isinstance(self.python_function, WeakMethod):
            return  # an array in a list is another signature than the array itself
        recording = self._recent.get(id(trace))
        if recording is None or any(isinstance(t, VariableType) for t in recording.concrete.function_type.tensors()):
            return
        made = trace.executable.warm(*form)
        if made is None:
            return
        warm, codes = made
        otherwise = self._warm[-1][0] if self._warm else functools.partial(Function.__call__, self)
        counter = ctypes.c_int64(0)
        entry, keep = make_entry(warm, events.busy.word, counter, otherwise, self.name)
        trace.costs.count_natively(counter)
        self._warm.append((entry, keep, codes))
        self._counters.append(counter)
        kind = type(self)
        if len(self._warm) == 1:
            kind = type(kind.__name__, (kind,), {"__module__": kind.__module__, "__doc__": kind.__doc__})
        kind.__call__ = entry  # type: ignore[method-assign]
        self.__class__ = kind

    def _find(self, key: Any, leaves: Sequence[Any]) -> Trace | None:
        for trace in self._traces.get(key, ()):
            if trace.fits(leaves):
                try:
                    self._recent.move_to_end(id(trace))
                except KeyError:  # another thread has just forgotten it
                    pass
                return trace
        return None

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, why: bool) -> Found:
        values = self._signature.bind(args, kwargs)
        leaves: list[Any] = []
        try:
            key = key_of(values, leaves)
        except Foreign as foreign:
            return Found(refusal=foreign.what)
        described = leaves_of(self._signature.names, values)
        if key in self._foreign:
            return Found(described, refusal=self._foreign[key])
        with self._lock:
            concrete = self._dispatch(function_type(values))
            known = [recording.trace for recording in concrete._recordings.get(key, ())] if concrete is not None else []
            known += [trace for trace in self._traces.get(key, ()) if all(trace is not other for other in known)]
            fitting = next((trace for trace in known if trace.fits(leaves)), None)
            if fitting is not None:
                return Found(described, fitting.costs)
            if concrete is not None and not known and not concrete.function_type.is_exact:
                assert concrete._first is not None
                return Found(described, concrete._first.trace.costs)  # one more size of a trace that stands for many
        return Found(described, misfit=known[-1].misfit(leaves) if known else None)

    def _replayable(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Trace, list[Any]] | str:
        values = self._signature.bind(args, kwargs)
        leaves: list[Any] = []
        try:
            key = key_of(values, leaves)
            with self._lock:
                trace = self._find(key, leaves) or self._trace(key, values, leaves)
        except (Foreign, NotReplayable) as refusal:
            what = refusal.what if isinstance(refusal, Foreign) else str(refusal)
            return f"This call runs as Python: {what}."
        return trace, trace.collect(leaves)

    def _both_ways(self, args: tuple[Any, ...], kwargs: dict[str, Any], trace: Trace) -> Ways:
        values = self._signature.bind(args, kwargs)
        plain_args, plain_kwargs = self._signature.call_form(values)
        recording = self._recent.get(id(trace))
        frozen = recording.concrete._frozen if recording is not None else Frozen()
        roots = {self.name: self._function(), **dict(zip(self._signature.names, values, strict=True))}
        return Ways(lambda: self._function()(*plain_args, **plain_kwargs), trace.formed, roots, frozen.as_traced)

    def _function(self) -> Any:
        function = self.python_function
        return function.bound() if isinstance(function, WeakMethod) else function

    def _run_as_python(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str, what: str, met: tuple[str, ...] = ()
    ) -> Any:  # fmt: skip
        if self.options.jit_compile:
            raise errors.InvalidArgumentError(
                f"{self.name} cannot be compiled for these arguments: {what}.",
                why="jit_compile=True leaves nothing to NumPy, and only plain arrays of numbers are compiled",
                hint="np.asarray(x), or jit_compile=None",
            )
        started = time.perf_counter_ns()
        result = self._function()(*args, **kwargs)
        if events.active():
            events.send(
                events.StatementRan(
                    cell=events.current_cell(), reason=reason, text=f"{self.name}, because {what}",
                    lines=spans(calling_line() or self._definition()), start_ns=started,
                    duration_ns=time.perf_counter_ns() - started, met=met,
                )
            )  # fmt: skip
        return result

    def _check_bindings(self, trace: Trace) -> None:
        """What is reached through a name is fixed at trace: say so, once, when the name means another object by now."""
        recording = self._recent.get(id(trace))
        for callee in recording.concrete._frozen.callees if recording is not None else ():
            name = callee.name
            if name in self._warned or not callee.is_another():
                continue
            self._warned.add(name)
            line = f" (line {callee.source.line})" if callee.source else ""
            warnings.warn(
                f"{self.name} still calls the function that {name}{line} was when it was traced; {name} has been defined again"
                f" since. Define {self.name} again, too (in a notebook: run its cell)",
                stacklevel=5,
            )
            self._tell_frozen(f"function {name}", callee.source)
        for input in trace.inputs[len(trace.leaves) :]:
            binding = input.binding
            if binding is None or binding.read() is input.value or binding.text in self._warned:
                continue
            self._warned.add(binding.text)
            line = f" (line {input.source.line})" if input.source else ""
            warnings.warn(
                f"{self.name} still uses the array that {binding.text}{line} was when it was traced; {binding.text} has been"
                f" bound to another object since. Pass {binding.text} as an argument, or write into it:"
                f" {binding.text}[...] = new",
                stacklevel=5,
            )
            self._tell_frozen(f"{binding.kind} {binding.text}", input.source)

    def _tell_frozen(self, what: str, source: Source | None) -> None:
        if events.active():
            events.send(
                events.ValueFrozen(cell=events.current_cell(), function=self.name, what=what, lines=spans(source))
            )

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
        attrs: dict[str, Any] = {}
        if self.options.jit_compile:
            capture.strict, attrs = True, {"_XlaMustCompile": True}
            if not capture.graph.scopes:  # §1.10: a scope of its own, unless one is around it
                attrs |= {
                    "_XlaCompile": True, "_XlaSeparateCompiledGradients": False, "_XlaScope": f"function_{self.name}"
                }  # fmt: skip
            capture.must_compile = capture.must_compile or self.name
        try:
            with capture.graph.with_attrs(attrs):
                return recorder.call(capture, self._function(), args, kwargs, self.autograph)
        finally:
            capture.strict, capture.must_compile = before

    # ---- traces
    def _dispatch(self, wanted: FunctionType) -> ConcreteFunction | None:
        """The trace of exactly this type, else the most specific one of a type that contains it."""
        exact = self._by_type.get(wanted)
        if exact is not None or not self._wide:
            return exact
        wide = list(self._wide.values())
        best = most_specific([concrete.function_type for concrete in wide], wanted)
        return None if best is None else wide[best]

    def _type_for(self, values: Sequence[Any]) -> FunctionType:
        """The type of a new trace."""
        fixed = self._signature.function_type()
        if fixed is not None:
            return fixed
        found = function_type(values)
        if self.reduce_retracing:
            return generalised([concrete.function_type for concrete in list(self._concretes.values())], found)
        return found

    def _add(self, concrete: ConcreteFunction) -> None:
        type = concrete.function_type
        with self._table:
            if type in self._by_type:  # another thread was quicker
                return
            self._count += 1
            self._concretes[id(concrete)] = concrete
            self._by_type[type] = concrete
            if not type.is_exact or any(getattr(t, "name", None) for t in type.tensors()):
                self._wide[id(concrete)] = concrete
                if type.is_exact:  # a name makes it more specific than traces that calls have found before
                    self._traces.clear()

    def _trace(self, key: Any, values: tuple[Any, ...], leaves: list[Any]) -> Trace:
        """The recording that a call needs: a new trace, or one more size, layout or aliasing of a known one."""
        concrete = self._dispatch(function_type(values))
        for known in [] if concrete is None else concrete._recordings.get(key, ()):
            if known.trace.fits(leaves):
                return self._index(known)
        return self._recorded(concrete, key, values, leaves).trace

    def _trace_for(self, values: tuple[Any, ...]) -> ConcreteFunction:
        """A new trace for values with TensorSpecs among them."""
        if not recorder.has_specs(values):
            leaves: list[Any] = []
            key = key_of(values, leaves)
            return self._recorded(None, key, values, leaves).concrete
        type = self._type_for(values)
        make = self._fitting_sample(type, values)
        real = tuple(recorder.with_arrays(value, make) for value in values)
        leaves = []
        key = key_of(real, leaves)
        return self._recorded(None, key, real, leaves, type, is_sample=True, told=values).concrete

    def _sample_recording(self, concrete: ConcreteFunction) -> Recording:
        """A recording of a known trace for made-up arrays: what a person looks at when no call was recorded."""
        type = concrete.function_type
        make = self._fitting_sample(type, None, concrete)
        values = recorder.values_of(type, make)
        leaves: list[Any] = []
        key = key_of(values, leaves)
        with self._lock:
            return self._recorded(concrete, key, values, leaves, is_sample=True)

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
            leaves: list[Any] = []
            key_of(real, leaves)
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
        started = time.perf_counter_ns()
        is_new = concrete is None
        concrete = concrete or ConcreteFunction(self, type or self._type_for(values))
        known = concrete._recordings.get(key, ())
        misfit = known[-1].trace.misfit(leaves) if known else None
        described = leaves_of(self._signature.names, told or values)
        is_size = not is_new and (is_sample or not concrete.function_type.is_exact)  # of a trace that stands for many
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
            trace.run = compile_trace(trace, self.options)
        self._numbers = trace.number
        if is_new:
            self._add(concrete)
        recording = Recording(concrete, key, trace, recorded.outputs, recorded.is_telling, recorded.variables)
        if concrete._first is None:
            concrete._first = recording
        if is_new or misfit is not None or (concrete.function_type.is_exact and not is_sample):
            self.ledger.traced(trace, described, costs, misfit, started)
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
        """The run of the body that has effects; a run that makes Variables is repeated, and the second one counts (§3.5)."""
        creation = Creation(self._count == 0, _NOT_FIRST)
        type = concrete.function_type
        memory = Memory(concrete._frozen, self._function())
        recorded = self._record(type, values, leaves, memory, creation, is_sample=is_sample)
        if creation.made:
            concrete._frozen = Frozen()
            memory = Memory(concrete._frozen, self._function())
            self._numbers += 1
            try:
                recorded = self._record(type, values, leaves, memory, Creation(False, _SINGLETON), is_sample=is_sample)
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

    def _call_concrete(self, concrete: ConcreteFunction, values: tuple[Any, ...]) -> Any:
        """A call of one trace, whatever else would fit better."""
        leaves: list[Any] = []
        try:
            key = key_of(values, leaves)
        except Foreign as foreign:
            raise errors.BindingError(f"Binding inputs to tf.function failed due to `{foreign.what}, not an array`") from None
        started = time.perf_counter_ns() if events.active() else 0
        with self._lock:
            known = [r.trace for r in concrete._recordings.get(key, ()) if r.trace.fits(leaves)]
            trace = known[0] if known else self._recorded(concrete, key, values, leaves).trace
        try:
            result = self._perform(trace, leaves)
        except NotReplayable as refusal:
            args, kwargs = self._signature.call_form(values)
            return self._run_as_python(args, kwargs, refusal.code, str(refusal), refusal.met)
        if started:
            self._tell_call(trace, started)
        return result

    # ---- what is kept
    def _index(self, recording: Recording) -> Trace:
        """Calls of its key find it from now on, where its trace is the one they are for."""
        self._recent[id(recording.trace)] = recording
        if id(recording.concrete) in self._concretes:
            known = self._traces.setdefault(recording.key, [])
            if all(trace is not recording.trace for trace in known):
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
        _remove(self._traces, recording.key, trace)
        _remove(concrete._recordings, recording.key, recording)
        if not concrete._recordings:
            self._concretes.pop(id(concrete), None)
            self._wide.pop(id(concrete), None)
            if self._by_type.get(concrete.function_type) is concrete:
                del self._by_type[concrete.function_type]

    def _definition(self) -> Source | None:
        return self.ledger.definition.source


def _inlined(capture: Capture, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function.__jitlab_inline__(capture, args, kwargs)


def _remove(table: dict[Any, list[Any]], key: Any, item: Any) -> None:
    found = [known for known in table.get(key, ()) if known is not item]
    if found:
        table[key] = found
    else:
        table.pop(key, None)


def _objects(values: Iterable[Any]) -> list[Any]:
    """The arguments that are neither tensors nor containers: the body may store into them."""
    return [value for value in values if not isinstance(value, (np.ndarray, np.generic, list, tuple, dict))]
