"""`function`: calls of what is traced once for each type of arguments and runs compiled; the contract's small print."""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from jitlab import errors, events
from jitlab.api.explaining import Found, Ways
from jitlab.api.retraces.frequency import frequency_of
from jitlab.capture import (
    Foreign,
    NotReplayable,
    Refusal,
    Trace,
    current_capture,
    describe,
    key_of,
    leaves_of,
    only_users,
    reason_of_run,
    spans,
)
from jitlab.capture.effect_log import Frozen
from jitlab.capture.guards.tracetypes import function_type
from jitlab.config import config
from jitlab.ir import Options, Source, outside
from jitlab.messages import by_contract
from jitlab.support import locks
from jitlab.targets.devices import default_target, placement

from .binding import PREFIX, Binder
from .concrete import ConcreteFunction
from .dispatch import functions_run_eagerly, inlined
from .native_entry import add_entry
from .traces import Traces
from .weak_methods import BoundFunction, WeakMethod


class Function(Traces):
    """A Python function with the traces that its calls have made: what `jl.function` gives. It is called like the function.

    `f.ledger` lists why it was traced, what that cost and what would avoid it.

    Args:
        python_function: the function as it was written.
        jit_compile: as in `jl.function`.
        autograph: as in `jl.function`.
        name: what reports call it; "" is the function's own name.
        input_signature: as in `jl.function`.
        reduce_retracing: as in `jl.function`.
        follow_type_hints: `experimental_follow_type_hints` of `jl.function`.
        pure: True where `experimental_implements` named what it is.
        attributes: `experimental_attributes` of `jl.function`.
        autograph_options: `experimental_autograph_options` of `jl.function`.
        device: as in `jl.function`.

    Raises:
        TypeError: `python_function` cannot be called, or `input_signature` does not fit its parameters.

    Example:
        >>> doubled = jl.function(lambda x: x * 2)
        >>> isinstance(doubled, jl.Function), doubled(np.ones(2))
        (True, array([2., 2.]))
        >>> doubled.would_hit(np.ones(2)), doubled.would_hit(np.ones(3))
        (True, False)
    """


    def __init__(
        self, python_function: Callable[..., Any], *, jit_compile: bool | None = None, autograph: bool = True, name: str = "",
        input_signature: Any = None, reduce_retracing: bool = False, follow_type_hints: bool = False, pure: bool = False,
        attributes: dict[str, Any] | None = None, autograph_options: Any = None, device: str | None = None,
    ) -> None:  # fmt: skip
        if not callable(python_function):
            raise TypeError(f"{python_function!r} is not a callable object")
        device = config.device if device is None else device  # methods of instances are bound later
        self._settings = {
            "jit_compile": jit_compile, "autograph": autograph, "input_signature": input_signature,
            "reduce_retracing": reduce_retracing, "follow_type_hints": follow_type_hints, "pure": pure,
            "attributes": attributes, "autograph_options": autograph_options, "device": device,
        }  # fmt: skip
        self.python_function = python_function
        self.autograph = autograph
        self.autograph_options = autograph_options
        self.options = Options(jit_compile, device=placement(device))
        self.reduce_retracing = reduce_retracing
        self.attributes = dict(attributes or {})
        if jit_compile is not None:
            self.attributes.setdefault("_XlaMustCompile", bool(jit_compile))
        if jit_compile:
            self.attributes.setdefault("_noinline", True)
        self.name = name or getattr(python_function, "__name__", type(python_function).__name__)
        default_target().prepare("jitlab.api.practice")
        self._signature = Binder(
            python_function, input_signature, hinted=follow_type_hints, pure=pure, to_array=type(self).to_array
        )
        Traces.__init__(self)
        self._bound: dict[int, tuple[weakref.ref[Any], Function, weakref.ref[BoundFunction]]] = {}  # by the id of an instance
        self._warned: set[str] = set()
        self._warm: list[Any] = []  # what the C functions in front of this one need to live
        self._forms: set[Any] = set()  # of calls, which they answer
        self._native_calls = 0  # of those, how many the retrace warning knows of
        is_method = isinstance(python_function, WeakMethod)
        plain = python_function.function if isinstance(python_function, WeakMethod) else python_function
        self._frequency = frequency_of(plain)
        self._entered(plain, str(self.options), is_method=is_method)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        capture = current_capture()
        if capture is not None:
            return capture.perform(inlined, self, args, kwargs)
        if functions_run_eagerly() or outside.is_python:
            return self._function()(*args, **kwargs)
        started = time.perf_counter_ns() if events.active() else 0
        try:
            if self._is_of_gpu(args, kwargs):
                return self._called_on_gpu(args, kwargs)
            return self._run(args, kwargs, started)
        except Exception as error:
            only_users(error)
            raise

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method: each instance has its own Function, which holds the instance weakly; what is handed out holds it."""
        if instance is None:
            return self
        known = self._bound.get(id(instance))
        if known is not None and known[0]() is instance and (handed := known[2]()) is not None:
            return handed
        hash(instance)  # the contract: instances are hashable and can be referred to weakly
        key = id(instance)
        with locks.Released(self._table), self._table:
            known = self._bound.get(key)
            if known is None or known[0]() is not instance:
                reference = weakref.ref(instance, lambda _: self._bound.pop(key, None))
                bound = Function(WeakMethod(self.python_function, reference), name=self.name, **self._settings)
                bound.ledger.made = self.ledger.made
            else:
                reference, bound, handed_out = known
                if (handed := handed_out()) is not None:
                    return handed
            handed = BoundFunction(bound, instance)
            self._bound[key] = (reference, bound, weakref.ref(handed))
        return handed

    def _made_with(self) -> dict[str, Any]:
        return self._settings

    # ---- the contract's small print
    @property
    def input_signature(self) -> tuple[Any, ...] | None:
        """The specs it was made with, or None."""
        return self._signature.input_signature

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments, traced now where there is none.

        Args:
            *args: arrays, TensorSpecs and Python values; none of them: the trace of the `input_signature`.
            **kwargs: keyword arguments alike.

        Returns:
            A ConcreteFunction.

        Raises:
            BindingError: the arguments do not fit the parameters.

        Example:
            >>> doubled = jl.function(lambda x: x * 2).get_concrete_function(jl.TensorSpec([None], np.float64))
            >>> doubled(np.ones(2)), doubled.structured_outputs
            (array([2., 2.]), TensorSpec(shape=(None,), dtype=float64, name=None))
        """
        try:
            return self._concrete_for(args, kwargs).handed_out()
        except Exception as error:
            only_users(error)
            raise

    def _concrete_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ConcreteFunction:
        if self.input_signature is not None and not args and not kwargs:
            values = self._signature.bind_spec()
        else:
            values = self._signature.bind(args, kwargs)
        try:
            with locks.Released(self._lock), self._lock:
                return self._dispatch(function_type(values)) or self._trace_for(values)
        except (NotReplayable, Foreign) as refusal:
            raise self._untraceable(refusal) from None

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The types of all traces as text, in the order they were traced.

        Args:
            verbose: True: several lines for each trace. False: one.

        Returns:
            A str.
        """
        found = [concrete.pretty_printed_signature(verbose) for concrete in list(self._concretes.values())]
        return ("\n\n" if verbose else "\n").join(found)

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """What the compiler made for these arguments, as text of any stage.

        Args:
            *args: a call's arguments.
            **kwargs: a call's keyword arguments.

        Returns:
            A function of `stage` ("hlo", "optimized_hlo", ...) that gives the text.

        Raises:
            ValueError: the function is not under `jit_compile=True`.
        """
        if not self.options.jit_compile:
            raise ValueError("Compiler IR can only be returned for functions marked with 'jit_compile=True'")
        from .compiler_ir import CompilerIR

        return CompilerIR(self.get_concrete_function(*args, **kwargs), (*args, *kwargs.values()))

    # ---- running
    @property
    def _must_compile(self) -> bool:
        return bool(self.options.jit_compile)

    def _bound_values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        return self._signature.bind(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], started: int) -> Any:
        found = self._found_or_traced(self._signature.bind(args, kwargs))
        if isinstance(found, Refusal):  # below `except`: the program finds no error of ours behind what it does
            return self._run_as_python((args, kwargs), found)
        trace, leaves = found
        if trace.costs.calls + 1 >= trace.next_entry:
            self._add_entry(trace, args, kwargs, leaves)
        self._check_bindings(trace)
        return self._perform(trace, (args, kwargs), trace.collect(leaves), (), started)

    def _add_entry(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any]) -> None:
        """A trace is called often: C answers such calls from now on, where that can be."""
        add_entry(self, Function.__call__, trace, args, kwargs, leaves)

    def _found_or_traced(self, values: tuple[Any, ...]) -> tuple[Trace, list[Any]] | Refusal:
        """The trace of a call and its arrays; or why Python has to run it."""
        try:
            key, leaves = key_of(values)
        except Foreign as foreign:
            return reason_of_run(foreign)
        trace = self._find(key, leaves)
        if trace is not None:
            self._note_frequency(False)
            return trace, leaves
        if (known := self._refused.get(key)) is not None:
            return known
        try:
            with locks.Released(self._lock), self._lock:
                before = self._count
                trace = self._find(key, leaves) or self._trace(key, values, leaves)
                is_traced = self._count > before
        except errors.InternalError as mistake:
            if self._must_compile:
                raise
            return reason_of_run(mistake)
        except NotReplayable as refusal:  # a foreign array met the arguments: there is nothing to record
            with locks.Released(self._table), self._table:
                self._refuse(key, Refusal("foreign_type", refusal.said))
            return reason_of_run(refusal)
        self._note_frequency(is_traced)
        return trace, leaves

    def _call_concrete(self, concrete: ConcreteFunction, values: tuple[Any, ...]) -> Any:
        try:
            key, leaves = key_of(values)
        except Foreign as foreign:
            raise errors.BindingError(
                f"{by_contract(PREFIX)} `{foreign}, not an array`", hint="np.asarray of it, or call the function itself"
            ) from None
        started = time.perf_counter_ns() if events.active() else 0
        call = self._signature.call_form(values)
        try:
            with locks.Released(self._lock), self._lock:
                known = [r.trace for r in concrete._recordings.get(key, ()) if r.trace.fits(leaves)]
                trace = known[0] if known else self._recorded(concrete, key, values, leaves).trace
        except (NotReplayable, errors.InternalError) as refusal:
            if self._must_compile and isinstance(refusal, errors.InternalError):
                raise
            reason = reason_of_run(refusal)
        else:
            self._check_bindings(trace)
            return self._perform(trace, call, trace.collect(leaves), (), started)
        return self._run_as_python(call, reason)

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

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, why: bool) -> Found:
        values = self._signature.bind(args, kwargs)
        try:
            key, leaves = key_of(values)
        except Foreign as foreign:
            return Found(refusal=str(foreign))
        described = leaves_of(self._signature.names, values)
        if (refused := self._refused.get(key)) is not None:
            return Found(described, refusal=str(refused.said))
        with locks.Released(self._lock), self._lock:
            concrete = self._dispatch(function_type(values))
            known = [recording.trace for recording in concrete._recordings.get(key, ())] if concrete is not None else []
            known += [trace for trace in self._traces.get(key, ()) if all(trace is not other for other in known)]
            fitting = next((trace for trace in known if trace.fits(leaves)), None)
            if fitting is not None:
                return Found(described, fitting.costs)
            if concrete is not None and not known and not concrete.function_type.is_exact:
                assert concrete._first is not None
                return Found(described, concrete._first.trace.costs)  # one more size of a trace that stands for many
        return Found(described, failed=self._misfits(concrete, known, leaves))

    def _replayable(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Trace, list[Any]] | str:
        values = self._signature.bind(args, kwargs)
        try:
            key, leaves = key_of(values)
            with locks.Released(self._lock), self._lock:
                trace = self._find(key, leaves) or self._trace(key, values, leaves)
        except (Foreign, NotReplayable) as refusal:
            return f"This call runs as Python: {refusal}."
        return trace, trace.collect(leaves)

    def _both_ways(self, args: tuple[Any, ...], kwargs: dict[str, Any], trace: Trace) -> Ways:
        recording = self._recent.get(id(trace))
        frozen = recording.concrete._frozen if recording is not None else Frozen()
        return replace(super()._both_ways(args, kwargs, trace), as_traced=frozen.as_traced)

    def _run_as_python(self, call: tuple[tuple[Any, ...], dict[str, Any]], refusal: Refusal) -> Any:
        if self.options.jit_compile:
            foreign = refusal.code in ("foreign_type", "dtype")
            rule = ", and only plain arrays of numbers are compiled" if foreign else ""
            raise errors.InvalidArgumentError(
                f"{self.name} cannot be compiled for these arguments: {refusal.said}.",
                where=describe(refusal.source) if refusal.source is not None else "",
                why=f"jit_compile=True leaves nothing to NumPy{rule}",
                hint="np.asarray(x), or jit_compile=None" if foreign else "jit_compile=None runs this call as Python",
            )
        return self._python(*call, refusal)

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
                stacklevel=4,
            )
            self._tell_frozen(f"function {name}", callee.source)
        for input in trace.inputs[len(trace.leaves) :]:
            binding = input.binding
            if binding is None or binding() is input.value or input.path in self._warned:
                continue
            self._warned.add(input.path)
            line = f" (line {input.source.line})" if input.source else ""
            warnings.warn(
                f"{self.name} still uses the array that {input.path}{line} was when it was traced; {input.path} has been"
                f" bound to another object since. Pass {input.path} as an argument, or write into it:"
                f" {input.path}[...] = new",
                stacklevel=4,
            )
            self._tell_frozen(f"{binding.kind} {input.path}", input.source)

    def _tell_frozen(self, what: str, source: Source | None) -> None:
        if events.active():
            events.send(events.ValueFrozen(function=self.name, what=what, lines=spans(source)))
