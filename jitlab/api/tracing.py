"""`function`: a trace per exact signature, compiled."""

from __future__ import annotations

import ctypes
import functools
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from jitlab import errors, events
from jitlab.capture import (
    HOOKS,
    Capture,
    Foreign,
    Leaf,
    NotReplayable,
    Signature,
    Tensor,
    Trace,
    call_user,
    changed_container,
    current_capture,
    describe,
    finish,
    key_of,
    leaves_of,
    random_state,
    set_random_state,
    spans,
    substitute,
    user_traceback,
)
from jitlab.config import config
from jitlab.costs import Costs
from jitlab.ir import Source
from jitlab.targets.cpu_llvm.entry import layout_is_known, make_entry

from .ledger import Ledger
from .stages import Options, compile_trace

#: A signature that was called so often gets a C function of its own; a function has at most so many of them.
WARM_CALLS, MAX_ENTRIES = 5, 4


class Function:
    """A Python function that is traced once for each signature of its arguments and runs compiled."""

    def __init__(
        self, python_function: Callable[..., Any], *, jit_compile: bool | None = None, autograph: bool = True, name: str = ""
    ) -> None:
        if not callable(python_function):
            raise TypeError(f"{python_function!r} is not a callable object")
        self.python_function = python_function
        self.autograph = autograph
        self.options = Options(jit_compile)
        self.name = name or getattr(python_function, "__name__", type(python_function).__name__)
        self._signature = Signature(python_function)
        self._traces: OrderedDict[Any, list[Trace]] = OrderedDict()
        self._history: list[Trace] = []
        self._count = self._clock = 0
        self._lock = threading.RLock()
        self._bound: dict[int, tuple[weakref.ref[Any], Function]] = {}
        self._warned: set[str] = set()
        self._foreign: dict[Any, str] = {}  # signatures whose calls run as Python, and why
        self._warm: list[Any] = []  # what the C functions in front of this one need to live
        method = isinstance(python_function, _WeakMethod)
        plain = python_function.function if isinstance(python_function, _WeakMethod) else python_function
        self.ledger = Ledger(plain, self.name, str(self.options), is_method=method)
        functools.update_wrapper(self, python_function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        capture = current_capture()
        if capture is not None:
            return self.__jitlab_inline__(capture, args, kwargs)
        started = time.perf_counter_ns() if events.active() else 0
        try:
            result, trace = self._run(args, kwargs)
        except Exception as error:
            error.__traceback__ = user_traceback(error)
            raise
        if not started:
            return result
        if trace is not None:
            duration = time.perf_counter_ns() - started
            trace.costs.ran(duration)
            events.send(
                events.FunctionCalled(
                    cell=events.current_cell(), function=self.name, trace=trace.number, start_ns=started, duration_ns=duration
                )
            )
        return result

    def __jitlab_inline__(self, capture: Capture, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called while another function is recorded: its body is recorded there."""
        capture.before_inline(self)
        before, capture.strict = capture.strict, capture.strict or bool(self.options.jit_compile)
        attrs = {"_XlaMustCompile": True} if self.options.jit_compile else {}
        try:
            with capture.graph.with_attrs(attrs):
                return call_user(capture, self._function(), args, kwargs)
        finally:
            capture.strict = before

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method: each instance has its own Function, and the Function holds the instance weakly."""
        if instance is None:
            return self
        known = self._bound.get(id(instance))
        if known is not None and known[0]() is instance:
            return known[1]
        hash(instance)  # the contract: instances are hashable and can be referred to weakly
        key = id(instance)
        reference = weakref.ref(instance, lambda _: self._bound.pop(key, None))
        bound = Function(
            _WeakMethod(self.python_function, reference), jit_compile=self.options.jit_compile, autograph=self.autograph,
            name=self.name,
        )  # fmt: skip
        self._bound[key] = (reference, bound)
        return bound

    # ---- the contract's small print
    def experimental_get_tracing_count(self) -> int:
        """How often it was traced."""
        return self._count

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
                    trace = self._find(key, leaves) or self._trace(key, values, leaves)
            except NotReplayable as refusal:  # a foreign array met the arguments: there is nothing to record
                self._foreign[key] = str(refusal)
                while len(self._foreign) > config.max_traces:
                    del self._foreign[next(iter(self._foreign))]
                return self._run_as_python(args, kwargs, refusal.code, str(refusal)), None
        self._check_bindings(trace)
        trace.costs.called()
        if trace.costs.calls == WARM_CALLS:
            self._add_entry(trace, kwargs)
        states = [(generator, random_state(generator)) for generator in trace.generators]
        try:
            return trace(trace.collect(leaves)), trace
        except NotReplayable as refusal:
            for generator, state in states:
                set_random_state(generator, state)
            return self._run_as_python(args, kwargs, refusal.code, str(refusal)), None

    def _add_entry(self, trace: Trace, kwargs: dict[str, Any]) -> None:
        """From now on calls with this signature are answered by a C function, where that can be (design D17)."""
        form = trace.plain_results()
        arrays = all(x.is_array and not x.captured for x in trace.inputs)
        if trace.executable is None or form is None or kwargs or not arrays or trace.layouts or not layout_is_known():
            return
        if len(self._warm) >= MAX_ENTRIES:
            return
        if [x.path for x in trace.inputs] != list(self._signature.names) or isinstance(self.python_function, _WeakMethod):
            return  # an array in a list is another signature than the array itself
        made = trace.executable.warm(*form)
        if made is None:
            return
        warm, codes = made
        otherwise = self._warm[-1][0] if self._warm else functools.partial(Function.__call__, self)
        counter = ctypes.c_int64(0)
        entry, keep = make_entry(warm, events.busy.word, counter, otherwise, self.name)
        trace.costs.count_natively(counter)
        self._warm.append((entry, keep, codes))
        kind = type(self)
        if kind is Function:
            kind = type("Function", (Function,), {"__module__": Function.__module__, "__doc__": Function.__doc__})
        kind.__call__ = entry  # type: ignore[method-assign]
        self.__class__ = kind

    def _find(self, key: Any, leaves: Sequence[Any]) -> Trace | None:
        for trace in self._traces.get(key, ()):
            if trace.fits(leaves):
                trace.last_call = self._clock = self._clock + 1
                return trace
        return None

    def _function(self) -> Any:
        function = self.python_function
        return function.bound() if isinstance(function, _WeakMethod) else function

    def _run_as_python(self, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str, what: str) -> Any:
        if self.options.jit_compile:
            raise errors.InvalidArgumentError(
                f"{self.name} cannot be compiled for these arguments: {what}.",
                why="jit_compile=True leaves nothing to NumPy, and only plain arrays of numbers are compiled",
                hint="np.asarray(x), or jit_compile=None",
            )
        started = time.perf_counter_ns()
        result = self._function()(*args, **kwargs)
        if events.active():
            source = self._definition()
            events.send(
                events.StatementRan(
                    cell=events.current_cell(), reason=reason, text=f"{self.name}: {what}",
                    lines=spans(source), start_ns=started, duration_ns=time.perf_counter_ns() - started,
                )
            )  # fmt: skip
        return result

    def _check_bindings(self, trace: Trace) -> None:
        """An array reached through a name is fixed at trace: say so, once, when the name means another object by now."""
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
                stacklevel=4,
            )
            if events.active():
                events.send(
                    events.ValueFrozen(
                        cell=events.current_cell(), function=self.name, what=f"{binding.kind} {binding.text}",
                        lines=spans(input.source),
                    )
                )  # fmt: skip

    # ---- tracing
    def _trace(self, key: Any, values: tuple[Any, ...], leaves: list[Any]) -> Trace:
        started = time.perf_counter_ns()
        described = leaves_of(self._signature.names, values)
        known = self._traces.get(key, ())
        misfit = known[-1].misfit(leaves) if known else None
        costs = Costs()
        with costs.spending():
            trace = self._record(values, leaves, described)
            trace.run = compile_trace(trace, self.options)
        self._count += 1
        trace.last_call = self._clock = self._clock + 1
        self.ledger.traced(trace, described, costs, misfit, started)
        self._traces.setdefault(key, []).append(trace)
        self._history.append(trace)
        while len(self._history) > config.max_traces:
            self._forget_oldest()
        return trace

    def _record(self, values: tuple[Any, ...], leaves: list[Any], described: Sequence[Leaf]) -> Trace:
        capture = Capture(self.name, strict=bool(self.options.jit_compile))
        paths = [leaf.path for leaf in described if leaf.kind == "array"]
        paths = _in_leaf_order(self._signature.names, values, leaves) or paths
        tensors: list[Tensor] = []
        positions: list[int] = []
        copies: list[tuple[Any, Any]] = []
        with capture.recording():
            for n, (leaf, path) in enumerate(zip(leaves, paths, strict=True)):
                known = capture.captured.get(id(leaf)) if type(leaf) is np.ndarray else None
                if known is None:
                    positions.append(n)
                    tensors.append(capture.add_input(leaf, path))
                else:
                    tensors.append(known.tensor)
            order = iter(tensors)
            args, kwargs = self._signature.call_form(substitute(values, lambda _: next(order), copies))
            try:
                result = self._call_recorded(capture, args, kwargs)
                if capture.refused is not None:  # the function caught it
                    raise capture.refused
                if changed_container(copies) is not None:
                    raise ValueError(
                        f"{self.name} should not modify its Python input arguments: a list or dict that was passed has changed"
                    )
                trace = finish(capture, result, self._count + 1)
            except Exception as error:
                _note_user_frames(error)
                raise
            finally:
                capture.close()
        trace.leaves = positions
        arguments = capture.inputs[: len(positions)]
        trace.same = [(positions[n], input.value) for n, input in enumerate(arguments) if input in capture.met_again]
        for input in trace.inputs[: len(positions)]:
            input.value = None  # a trace does not keep its first arguments alive
        return trace

    def _call_recorded(self, capture: Capture, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = self._function()
        if self.autograph and isinstance(function, (FunctionType, MethodType)):
            return call_user(capture, function, args, kwargs)
        return HOOKS.call(function, *args, **kwargs) if self.autograph else function(*args, **kwargs)

    def _forget_oldest(self) -> None:
        """The trace that was called longest ago makes room."""
        for trace in self._history:
            if trace.costs.was_called_natively():
                trace.last_call = self._clock
        oldest = min(self._history, key=lambda trace: trace.last_call)
        self._history.remove(oldest)
        self.ledger.evicted(oldest)
        for key, traces in list(self._traces.items()):
            if oldest in traces:
                traces.remove(oldest)
                if not traces:
                    del self._traces[key]

    def _definition(self) -> Source | None:
        return self.ledger.definition.source


class _WeakMethod:
    """A method of an instance that it does not keep alive."""

    def __init__(self, function: Any, reference: weakref.ref[Any]) -> None:
        self.function = function
        self.reference = reference
        functools.update_wrapper(self, function)
        import inspect

        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[1:]
        self.__signature__ = signature.replace(parameters=parameters)

    def bound(self) -> Any:
        instance = self.reference()
        if instance is None:
            raise ReferenceError(f"the object whose method {self.__name__} is has gone")  # type: ignore[attr-defined]
        return MethodType(self.function, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.bound()(*args, **kwargs)


def _in_leaf_order(names: Sequence[str], values: Sequence[Any], leaves: Sequence[Any]) -> list[str]:
    """Paths of the array leaves in the order of `key_of`, which is that of `leaves_of` too."""
    return [leaf.path for leaf in leaves_of(names, values) if leaf.kind == "array"]


def _note_user_frames(error: Exception) -> None:
    """The user's frames of an error raised while its function was recorded, as a note below its message."""
    from jitlab.capture.positions import is_converted, span

    if isinstance(error, errors.JitlabError):
        return
    lines = []
    traceback = error.__traceback__
    while traceback is not None:
        if is_converted(traceback.tb_frame.f_code):
            code = traceback.tb_frame.f_code
            lines.append(f'    File "{code.co_filename}", line {traceback.tb_lineno}, in {code.co_name}  *')
            text = describe(span(traceback.tb_frame))
            if ": " in text:
                lines.append(f"        {text.split(': ', 1)[1]}")
        traceback = traceback.tb_next
    if lines:
        error.add_note("in user code, while jitlab recorded it:\n" + "\n".join(lines))


def function(
    func: Callable[..., Any] | None = None, *, autograph: bool = True, jit_compile: bool | None = None, **later: Any
) -> Any:
    """Trace a function once for each signature and run it compiled. A decorator, with or without arguments.

    `jit_compile` True: everything is compiled, or InvalidArgumentError. None: what can be, the rest runs on NumPy.
    False: op by op on NumPy, except what a jit_scope or an inner function asks for.
    """
    if func is None:
        return lambda decorated: function(decorated, autograph=autograph, jit_compile=jit_compile, **later)
    return Function(func, jit_compile=jit_compile, autograph=autograph)
