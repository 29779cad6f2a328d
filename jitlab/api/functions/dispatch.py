"""What `function` and `jit` have in common: a trace runs, what it cannot run Python runs, and both are told of."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from jitlab import errors, events
from jitlab.api.explaining import Explained, Ways
from jitlab.api.retraces.definitions import calling_line
from jitlab.api.retraces.frequency import told
from jitlab.api.retraces.ledger import Ledger
from jitlab.capture import Capture, Refusal, reason_of_run, spans
from jitlab.capture.drivers.run_events import emit_statement, emit_timed_call, give_out, told_of
from jitlab.config import config
from jitlab.ir import Source, outside
from jitlab.messages import Message
from jitlab.ops.random_draws import States, set_random_states
from jitlab.support.callbacks import Made, not_repeating, noting
from jitlab.support.later import Later
from jitlab.support.transactions import contextmanager
from jitlab.targets.devices import may_be_there

from .native_entry import WARM_CALLS
from .weak_methods import look_like

gpu_calls = Later("jitlab.api.gpu_calls")


class Dispatched(Explained):
    """A function whose calls each find a trace, make one, or run as Python."""

    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock}
    #: How the warning of repeated retraces begins.
    retrace_words = "{retraces} out of the last {calls} calls to {name} triggered retracing."
    _lock: Any  # held while something is recorded
    #: What ends a run so that Python takes the call.
    given_up_by: ClassVar[tuple[type[Exception], ...]] = (errors.Unfit, errors.InternalError)
    python_function: Callable[..., Any]
    _signature: Any
    options: Any
    _refused: dict[Any, Refusal]  # kinds of calls that have no trace, and why
    _count: int

    def _entered(self, function: Any, options: str, **what: Any) -> None:
        """The ledger of a new function, and its name and looks."""
        self.ledger = Ledger(function, self.name, options, **what)
        self.name = self.ledger.name
        look_like(self, self.python_function)

    def experimental_get_tracing_count(self) -> int:
        """How often it was traced; traces that made room for others count, too."""
        return self._count

    @property
    def _device(self) -> str:
        """Where it is asked to run, as `jl.device` calls it; "" for anywhere."""
        return str(getattr(self.options, "device", ""))

    @property
    def _must_compile(self) -> bool:
        """Is it an error that something cannot be compiled?"""
        raise NotImplementedError

    def _function(self) -> Any:
        """What Python runs."""
        return self.python_function

    def _definition(self) -> Source | None:
        return self.ledger.definition.source

    def _retrace_warning(self, tracings: int, calls: int) -> str:
        function, found = told(self.python_function), self.ledger.retraces(tracings)
        words = {"tracings": tracings, "retraces": len(found) or tracings}  # of functions made anew each trace is a first one
        head = self.retrace_words.format(**words, calls=calls, name=self.name, function=function)
        return f"{head} {self.ledger.warning(found)}".rstrip()

    def _both_ways(self, args: tuple[Any, ...], kwargs: dict[str, Any], trace: Any) -> Ways:
        values = self._bound_values(args, kwargs)
        plain_args, plain_kwargs = self._signature.call_form(values)
        roots = {self.name: self._function(), **dict(zip(self._signature.names, values, strict=True))}
        return Ways(lambda: self._function()(*plain_args, **plain_kwargs), trace.formed, roots)

    # ---- running
    def _is_of_gpu(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Is an array in a GPU's memory among a call's arguments?"""
        return may_be_there() and gpu_calls.among((args, kwargs))

    def _called_on_gpu(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What such a call gives."""
        return gpu_calls.called(self, args, kwargs)

    def _bound_values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """A call's arguments, one for each parameter."""
        raise NotImplementedError

    def _perform(
        self, trace: Any, call: Any, inputs: Sequence[Any], numbers: tuple[Any, ...] = (), started: int | None = None
    ) -> Any:  # fmt: skip
        """What a call gives, by its trace. Where that gives up, Python runs, and random generators are as they were."""
        states = _states(trace, inputs) if trace.draws else ()
        if started is None:
            started = time.perf_counter_ns() if events.active() else 0
        trace.costs.called()
        if trace.costs.calls == WARM_CALLS:
            self._warm_up(trace)
        refusal: Exception | None = None
        made: list[Made] = []
        try:
            if trace.calls_back:
                result = noting(made, trace.answer, call, inputs, numbers)
            else:
                result = trace.answer(call, inputs, numbers)
        except self.given_up_by as error:
            if isinstance(error, errors.DeviceError) or (self._must_compile and isinstance(error, errors.InternalError)):
                raise
            if self._device and isinstance(error, MemoryError):  # of the device, which was asked for
                raise
            refusal = error
        if refusal is not None:  # Python itself raises what there is to raise, and leaves what it would have left
            set_random_states(states)
            reason = reason_of_run(refusal)
            self._gave_up(trace, reason)
            reason = reason._replace(made=tuple(made), fell_back=True, again=trace.is_outgrown)
            return self._run_as_python(call, reason)
        if started:
            emit_timed_call(self.name, trace, started)
        if trace.effects:
            result, given = result
            give_out(given, {})
        return result

    def _warm_up(self, trace: Any) -> None:
        """A trace is called often."""

    def _gave_up(self, trace: Any, reason: Refusal) -> None:
        """A run of a trace has ended, and Python takes the call."""

    def _run_as_python(self, call: Any, refusal: Refusal) -> Any:
        """What Python gives; `call` is what `_perform` was given."""
        raise NotImplementedError

    def _python(self, args: tuple[Any, ...], kwargs: dict[str, Any], refusal: Refusal) -> Any:
        began = events.moment()
        before, outside.unmarked = outside.unmarked, True
        try:
            if refusal.made:
                with not_repeating(refusal.made):
                    return self._function()(*args, **kwargs)
            return self._function()(*args, **kwargs)
        finally:
            outside.unmarked = before
            if events.active():
                said = self._said_of_refused(refusal, calling_line() or self._definition())
                emit_statement(said.reason, said.said, said.lines, began, **told_of(refusal))

    def _said_of_refused(self, refusal: Refusal, at: Source | None) -> events.PythonStatement:
        """What is said of a call that is not captured, which is made there."""
        said = Message("refused.call", {"name": self.name, "why": refusal.said})
        lines = tuple(spans((refusal.source if not refusal.met else None) or at))
        return events.PythonStatement(refusal.code, said, lines, refusal.met)

    def _refuse(self, key: Any, refusal: Refusal) -> None:
        """Calls of this kind have no trace."""
        self._refused[key] = refusal._replace(made=())
        while len(self._refused) > config.max_traces:
            del self._refused[next(iter(self._refused))]


def _states(trace: Any, inputs: Sequence[Any]) -> States:
    """What generators have to get back where a run is given up; nothing where that cannot be: the states of some take 50 µs."""
    executable = trace.executable
    return trace.states(inputs) if executable is None or executable.may_end_early(inputs) else ()


def inlined(capture: Capture, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call inside the recording of another function."""
    return function.__jitlab_inline__(capture, args, kwargs)


def remove(table: dict[Any, list[Any]], key: Any, item: Any) -> None:
    found = [known for known in table.get(key, ()) if known is not item]
    if found:
        table[key] = found
    else:
        table.pop(key, None)


# ---- calls as Python, to look into them with a debugger

_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """The switch that makes every `jl.function` run as the Python it is, to step through one in a debugger.

    Args:
        run_eagerly: True: from now on call the Python bodies with the arguments as they are. False: trace again.

    Returns:
        None.

    Example:
        >>> jl.run_functions_eagerly(True)
        >>> jl.function(lambda x: type(x).__name__)(np.ones(2))
        'ndarray'
        >>> jl.run_functions_eagerly(False)
    """
    global _eagerly
    if bool(run_eagerly) == _eagerly:
        return
    _eagerly = bool(run_eagerly)
    events.busy.everywhere(1 if _eagerly else -1)  # warm calls ask, too


@contextmanager
def as_python() -> Iterator[None]:
    """Inside, in this thread, each `function` and `jit` runs as the Python it is."""
    before = outside.is_python
    try:
        outside.is_python = True
        with events.busy:  # warm calls ask, too
            yield
    finally:
        outside.is_python = before


def functions_run_eagerly() -> bool:
    """Whether functions run as Python, as `run_functions_eagerly` has said.

    Returns:
        True or False.

    Example:
        >>> jl.functions_run_eagerly()
        False
    """
    return _eagerly
