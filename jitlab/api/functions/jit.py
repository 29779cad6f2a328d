"""`jit`: NumPy programs with Python's own meaning, captured whole where that can be, else in pieces."""

from __future__ import annotations

import functools
import inspect
import sys
import time
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from jitlab import errors, events
from jitlab.api import settling
from jitlab.api.explaining import Found, Ways
from jitlab.api.retraces.definitions import calling_line
from jitlab.api.retraces.frequency import frequency_of
from jitlab.api.retraces.in_pieces import PiecesTold
from jitlab.api.retraces.ledger import NEAREST, misfits
from jitlab.api.retraces.misses import BESIDE, Failed
from jitlab.api.settling import COMPILED, DIRECT, DIRECT_FIRST, MOST_KINDS, PYTHON, Deciding, Trial, kind_of_call
from jitlab.api.settling import is_measurable as _is_measurable
from jitlab.api.size_families import SizeFamilies
from jitlab.capture import (
    MOST_TRACES,
    CallCapture,
    CallTrace,
    Capture,
    Change,
    EndPiece,
    Foreign,
    Leaf,
    Refusal,
    Signature,
    Trace,
    call_user,
    current_capture,
    failed_of,
    form_of,
    key_of,
    leaves_of,
    only_users,
    reason_of,
    record_call,
    refusal_error,
    refuse_syntax,
    says_where,
    signature_key,
    spans,
)
from jitlab.capture.drivers.calls import received
from jitlab.capture.drivers.piece_traces import OTHERS, RECEIVING, USELESS, useless
from jitlab.capture.drivers.trace import BY_DATA, outgrow, recorded_anew, usable
from jitlab.capture.effort import TOO_MUCH, at_most
from jitlab.capture.positions import PACKAGE
from jitlab.capture.refusals import CHANGES, reason_of_run
from jitlab.compile import compile_trace
from jitlab.config import MEASURE, MODEL, config
from jitlab.costs import Costs
from jitlab.events import VariantCause
from jitlab.ir import Options, outside
from jitlab.ir.size_facts import SizeFacts, noting
from jitlab.messages import Message
from jitlab.runtime.other_sizes import servers
from jitlab.support import locks
from jitlab.support.later import Later
from jitlab.support.native_call_log import About
from jitlab.support.transactions import Whole
from jitlab.targets.devices import default_target

from .dispatch import inlined, remove
from .jit_options import JitOptions, check_backend, checked, warn
from .native_entry import MAX_ENTRIES, InFront, class_of, warm_up

if TYPE_CHECKING:
    from jitlab.api import kept_decisions, stitched
    from jitlab.capture.drivers import function_body, paths
    from jitlab.capture.rewrite import bytecode
else:  # for calls that are not captured whole
    function_body, paths = Later("jitlab.capture.drivers.function_body"), Later("jitlab.capture.drivers.paths")
    bytecode = Later("jitlab.capture.rewrite.bytecode")
    kept_decisions = Later("jitlab.api.kept_decisions")
    stitched = Later("jitlab.api.stitched")

#: So many calls in pieces in which nothing is captured, and it is written again as one function.
STITCHED_AFTER = 2
#: How often that is done at the most: what its pieces do not serve may be another one each time.
WRITTEN_AGAIN = 16
#: Places that call a function as Python of which notes tell.
MOST_CALLERS = 100
#: After so many refusals at one place calls are not captured that differ in ints and in what containers hold alone.
MOST_ALIKE = 4


class Jit(SizeFamilies, Deciding):
    """A Python function whose calls are recorded once for each kind of arguments and run compiled, as Python would run them.

    `print(f.ledger)`: why it was recorded, and what that cost. `f.check(*args)`: how far it is from NumPy. `f.whatif(*args,
    cut=...)`: what a decision of the compiler is worth. `f.would_hit(*args)`, `f.explain_key(*args)`: what a call would meet.
    """

    TABLES = ("_traces", "_refused", "_failed", "_recent", "_count", "_last", "_last_number", "_families", "_sizes")

    #: What ends a recording, and a run, so that Python takes the call.
    refused_by: ClassVar[tuple[type[Exception], ...]] = (Exception,)
    given_up_by: ClassVar[tuple[type[Exception], ...]] = (Exception,)
    runs_otherwise = "in pieces, with Python between"
    options: JitOptions
    _may_settle: bool  # a call may run as Python because that takes less time
    joins_types = False  # a name has one dtype on all ways, or that is a TypeError; else Python takes the way

    def __init__(self, python_function: Callable[..., Any], options: JitOptions) -> None:
        self.python_function = python_function
        self.options = options
        self.name = getattr(python_function, "__name__", type(python_function).__name__)
        self._signature = Signature(python_function)
        is_function = isinstance(python_function, types.FunctionType)
        # a call's values are bound to the parameters of the code that runs, not of what it wraps
        self._binds_own = is_function and not {"__wrapped__", "__signature__"} & vars(python_function).keys()
        self._stages = Options(
            True if options.fullgraph else None, options.jit_level, options.exec_order, replays=True, device=options.device
        )
        self._last: CallTrace | None = None
        self._traces: dict[Any, list[Any]] = {}
        self._refused: dict[Any, Refusal] = {}  # signatures that cannot be recorded whole, and why
        self._families, self._sizes = {}, OrderedDict()
        self._failed: set[Any] = set()  # signatures whose recording ended with an error of the program's
        self._recent: OrderedDict[int, tuple[Any, Any]] = OrderedDict()  # traces and their keys, the one called last at the end
        self._count = self._last_number = 0
        locks.own(self)
        self._is_checked = False
        self._received: dict[int, Any] | None = None  # the places of parameters that only get something
        # "trace" does what the first call did; what is asked to run on a device does
        self._may_settle = not options.fullgraph and options.capture_mode != "trace" and not options.device
        self._trials: dict[settling.Kind, Trial] = {}
        self._decided_for = self._what_runs()
        self.in_front = InFront(Jit.__call__, self)
        self._body: function_body.Body | None | Literal[False] = None  # for calls in pieces; False: only Python can run it
        self._stitched: stitched.Stitched | None = None  # the function with its pieces in line
        self._in_pieces, self._left = 0, WRITTEN_AGAIN  # calls in pieces in which nothing was captured; how often it is written
        self._entered(self._code_function(), str(options), kind="jit")
        self.ledger.trials, self.ledger.handed_on = self._trials, self.in_front.handed_on
        self._follow(class_of(self))
        helper = functools.partial(class_of(self), options=options)
        self._frequency, self._answered = frequency_of(python_function), 0
        self._observer = PiecesTold(self.ledger, self._frequency, helper)
        Deciding.__init__(self)
        default_target().prepare("jitlab.api.practice")
        if options.capture_mode == "bytecode":
            bytecode.read_bytecode(self._code_function())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        capture = current_capture()
        if capture is not None:
            return capture.perform(inlined, self, args, kwargs)
        if outside.is_python:
            return self.python_function(*args, **kwargs)
        if self._decided_for is not self._what_runs():
            self.reopen()
        try:
            if self._is_of_gpu(args, kwargs):
                return self._called_on_gpu(args, kwargs)
            if not kwargs and len(args) == self._signature.count and self._signature.is_simple:
                trace = self._last
                if trace is not None and trace.stays_compiled and (gathered := trace.gather(args)) is not None:
                    if trace.costs.calls >= trace.next_entry:
                        self._served_by_c(args, kwargs)
                    return self._perform(trace, args, *gathered)
            if self._may_settle and settling.may_settle():
                return self._settling_call(args, kwargs)
            result = self._compiled_call(args, kwargs)
            if not self._may_settle:
                self._served_by_c(args, kwargs)
            return result
        except Exception as error:
            only_users(error)
            raise

    def _compiled_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], trial: Trial | None = None) -> Any:
        if not kwargs and len(args) == self._signature.count and self._signature.is_simple:
            trace = self._last
            gathered = None if trace is None else trace.gather(args)
            return self._run(args, trial) if gathered is None else self._perform(trace, args, *gathered)
        return self._run(self._bound_values(args, kwargs), trial)

    def _settling_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that goes the way that is decided for its kind, or is one of those that decide."""
        kind = kind_of_call(args, kwargs)
        trial = self._trials.get(kind) or self._new_trial(kind)
        if trial.way == PYTHON:
            self.ledger.settled += 1
            if not trial.is_in_front:
                self._called_as_python(kind, trial, args, kwargs)
            return self._python_call(trial, args, kwargs)
        if trial.way == COMPILED and trial.pieces and self._runs_stitched:
            self._called_stitched(kind, trial, args, kwargs)
            return self._stitched_call(args, kwargs)
        trial.begin()
        here = settling.here
        outer = here.is_in_pieces, here.counts, here.ran, here.given_up, here.is_stitched, here.needs_counts
        here.is_in_pieces, here.counts, here.ran, here.given_up = trial.pieces, None, None if trial.way else {}, None
        here.is_stitched, here.needs_counts = False, trial.entered is None and not trial.way
        try:
            if trial.way == COMPILED or config.settle != MEASURE:
                result = self._compiled_call(args, kwargs, trial)
                self._note_traces(trial)
                trace = self._last  # the one that has just run
                is_used = trial.way and trial.calls >= settling.FIRST_CALLS and self._trials.get(kind) is trial
                if is_used and not trial.pieces and trace is not None:
                    if not trace.stays_compiled and here.given_up is None:
                        trace.stays_compiled, trace.next_entry = True, trace.costs.calls
                    self._served_by_c(args, kwargs)
            else:
                ways = {
                    COMPILED: lambda: self._tried_compiled(args, kwargs, trial),
                    PYTHON: lambda: self._tried_python(args, kwargs, trial),
                }
                here.tried_ns = 0
                result = settling.tried(trial, ways, _is_measurable)
                tried_ns, here.tried_ns = here.tried_ns, 0
                if tried_ns and events.active():
                    self._tell_of_trial(trial, tried_ns)
                if not trial.pieces:
                    self._served_by_c(args, kwargs)
            if here.counts is not None:
                trial.entered = here.counts
            counts = trial.entered if here.is_stitched else here.counts
            trial.ran(here.is_in_pieces, counts, by_model=config.settle == MODEL)
            if trial.way and trial.kept is None and trial.form:
                self._keep_decision(kind, trial)
        finally:
            if here.given_up is not None:
                trial.gave_up(*here.given_up)
            here.is_in_pieces, here.counts, here.ran, here.given_up, here.is_stitched, here.needs_counts = outer
        if self._body is False:
            trial.way = PYTHON
        return result

    def _keep_decision(self, kind: settling.Kind, trial: Trial) -> None:
        """Later processes begin with it."""
        kept_decisions.keep(trial, self.python_function, self.options, kind)
        trial.form = b""
        settling.disturbed()

    @property
    def is_python(self) -> bool:
        """Is every call, as far as it is decided, Python's?"""
        trials = list(self._trials.values())
        return bool(trials) and all(trial.way == PYTHON for trial in trials)

    @property
    def spent_ns(self) -> int:
        """What capturing its calls has taken of what they may take, and those of functions that run in pieces for it."""
        own = sum(trial.effort.spent + trial.effort_in_pieces.spent for trial in list(self._trials.values()))
        return own + (self._body.helpers.spent_ns if self._body else 0)

    def _note_traces(self, trial: Trial) -> None:
        """A call ran compiled that may decide: its traces are those of such calls."""
        here = settling.here
        if here.ran is not None and not here.is_stitched:
            whole = [] if self._last is None else [settling.identity(self.name, self._last)]
            trial.traces = tuple(here.ran if here.is_in_pieces else whole)

    def reopen(self) -> None:
        if self._decided_for is not (runs := self._what_runs()):
            self._decided_for, self._last, self._body, self._received = runs, None, None, None
            self._stitched, self._in_pieces, self._left = None, 0, WRITTEN_AGAIN
            for known in (self._traces, self._recent, self._families, self._sizes, self._refused, self._failed):
                known.clear()
        self._trials.clear()
        self._earlier.trials.clear()
        if self._may_settle:
            for trace in (*(trace for trace, _ in list(self._recent.copy().values())), *list(self._sizes.values())):
                trace.stays_compiled = False
        self.in_front.renew(self)

    def _what_runs(self) -> Any:
        """What has other code when it is another."""
        return getattr(self.python_function, "__code__", self.python_function)

    def _tried_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any], trial: Trial) -> Any:
        """A call runs as it would if it were decided that such calls run compiled."""
        if trial.pieces and self._runs_stitched:
            return self._stitched_call(args, kwargs)
        trace, entry = self.in_front.tried
        if trace is None or trace is not self._last:
            result = self._compiled_call(args, kwargs, trial)
            self._note_traces(trial)
            return result
        settling.here.compiled += 1  # what C does not answer comes back here
        try:
            return entry(*args, **kwargs)
        finally:
            settling.here.compiled -= 1

    def _served_by_c(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call has run by the trace that stays: C answers the next ones where it came often."""
        trace = self._last
        if trace is not None and trace.costs.calls >= trace.next_entry:
            if not self.in_front.add_trace(self, trace, args, kwargs) and not trace.is_warm:
                warm_up(trace)

    def _tried_python(self, args: tuple[Any, ...], kwargs: dict[str, Any], trial: Trial) -> Any:
        self.ledger.tried += 1
        started = time.perf_counter_ns()
        result = self._python_call(trial, args, kwargs)
        settling.here.tried_ns = started  # of another function in it no more
        return result

    def _tell_of_trial(self, trial: Trial, started: int) -> None:
        """A call has run as Python so that it is known what that takes. Told when it was measured: to tell takes time, too."""
        name = str(self.name) if trial.pieces else self.name
        at = calling_line() or self._definition()
        about = events.AsPython(name, (Message("settled.trial"),), tuple(spans(at)), trial.traces)
        events.send(events.CalledAsPython(about=about, start_ns=started, duration_ns=time.perf_counter_ns() - started))

    def _new_trial(self, kind: settling.Kind) -> Trial:
        if len(self._trials) >= MOST_KINDS:
            oldest = next(iter(self._trials))
            self._trials.pop(oldest, None)
            self.in_front.drop(self, oldest)
        earlier = self._earlier.trials.pop(kind, None)
        trial = Trial(kind[-1]) if earlier is None else earlier.of_equal_code()
        if earlier is None and config.settle == MEASURE and config.cache:
            kept_decisions.recall(trial, self.python_function, self.options, kind)
        return self._trials.setdefault(kind, trial)

    def _python_call(self, trial: Trial, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        about = None
        if trial.way and events.active():
            if self._body is False and trial.refusal is not None and trial.refusal.made:
                return self._python(args, kwargs, trial.refusal)
            about = self._noted(trial)
        before, outside.unmarked = outside.unmarked, True
        started = time.perf_counter_ns()
        try:
            return self.python_function(*args, **kwargs)
        finally:
            outside.unmarked = before
            if about is not None:
                events.tell_of_python(about, started)

    def _noted(self, trial: Trial) -> About:
        """What a note of a call as Python is about: of each place that calls, the same."""
        caller: types.FrameType | None = sys._getframe(1)
        while caller is not None and caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        key = caller and (caller.f_code, caller.f_lasti)
        about = trial.noted.get(key)
        if about is None:
            if len(trial.noted) >= MOST_CALLERS:
                trial.noted.clear()
                trial.places.clear()
            about = trial.noted[key] = About(self.name, 0, (), False, None, as_python=self._said_of(trial))
            if caller is not None:
                trial.places.add(about, caller.f_code, caller.f_lasti)
        return about

    def _said_of(self, trial: Trial) -> events.AsPython | events.PythonStatement:
        """What is said of a call as Python, at the line that makes it."""
        at, refusal = calling_line() or self._definition(), trial.refusal
        if self._body is False and refusal is not None:  # no plan is beside it
            return self._said_of_refused(refusal, at)
        name = str(self.name) if trial.pieces else self.name  # as the traces have it
        return events.AsPython(name, trial.said, tuple(spans(at)), trial.traces)

    def _called_as_python(self, kind: settling.Kind, trial: Trial, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        trial.as_python += 1
        if trial.as_python >= (DIRECT if default_target().is_loaded else DIRECT_FIRST):
            trial.is_in_front = True
            self.in_front.add(self, kind, args, kwargs, PYTHON)

    def _called_stitched(self, kind: settling.Kind, trial: Trial, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        trial.stitched += 1
        if trial.stitched >= DIRECT and not trial.is_in_front and self._trials.get(kind) is trial:
            trial.is_in_front = True
            self.in_front.add(self, kind, args, kwargs, COMPILED)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __jitlab_inline__(self, capture: Capture, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called while another function is recorded: its body is recorded there, its own options count for nothing."""
        capture.before_inline(self)
        if isinstance(capture, paths.PathCapture):
            return self.python_function(*args, **kwargs)
        inline = getattr(type(self.python_function), "__jitlab_inline__", None)
        if inline is not None:
            return inline(self.python_function, capture, args, kwargs)
        return call_user(capture, self.python_function, args, kwargs)

    @property
    def _must_compile(self) -> bool:
        return self.options.fullgraph

    def _made_with(self) -> dict[str, Any]:
        return {"options": self.options}

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, why: bool) -> Found:
        values = self._bound_values(args, kwargs)
        try:
            key, at = self._keyed(values)
        except _Refused as refused:
            return Found(refusal=str(refused.refusal.said))
        for trace in (*self._traces.get(key, ()), *filter(None, [self._renewed(key, at)])):
            if trace.gather(at) is not None:
                return Found(self._leaves(trace, values), trace.costs)
        if (refusal := self._refused.get(key)) is not None:
            return Found(self._leaves(None, values), refusal=str(refusal.said))
        if (served := self._other_size(key, at, serves=False)) is not None:
            return Found(self._leaves(served, values), served.costs)
        return self._missed(key, at, values) if why else Found()

    def _missed(self, key: Any, at: Sequence[Any], values: tuple[Any, ...]) -> Found:
        """What a call that has no trace would meet."""
        failed = self._failed_guards(key, at)
        try:
            trace = self._captured(values, at, 0, strict=False)  # what a call depends on is seen when it is recorded
        except Exception as error:
            return Found(refusal=str(reason_of(error).said))
        return Found(self._leaves(trace, values), failed=failed)

    def _replayable(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Trace, list[Any]] | str:
        found = self._served(self._bound_values(args, kwargs))
        return f"This call runs {self.runs_otherwise}: {found.said}." if isinstance(found, Refusal) else found[:2]

    def _both_ways(self, args: tuple[Any, ...], kwargs: dict[str, Any], trace: Any) -> Ways:
        ways = super()._both_ways(args, kwargs, trace)
        if not isinstance(trace, CallTrace):
            return ways
        values = self._bound_values(args, kwargs)
        gathered = trace.gather(values)
        numbers = gathered[1] if gathered is not None else ()
        return replace(ways, formed=lambda outputs, inputs: trace.answered(outputs, values, inputs, numbers))

    def _bound_values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            return self._signature.bind(args, kwargs)  # type: ignore[no-any-return]
        except TypeError:
            self._refuse_count(len(args), bool(kwargs))
            raise

    def _refuse_count(self, given: int, has_keywords: bool) -> None:
        """The contract's words for too few and too many arguments."""
        parameters = self._signature.signature.parameters.values()
        if has_keywords or not self._signature.is_simple:
            return
        needed = sum(p.default is p.empty for p in parameters)
        total = len(parameters)
        if given < needed:
            raise TypeError(f"Function {self.name} needs {needed} positional argument, but got {given}.") from None
        if given > total:
            raise TypeError(
                f"Function {self.name} needs {needed} positional argument and {total - needed} default argument,"
                f" total {total}, but got {given}."
            ) from None

    def _run(self, values: tuple[Any, ...], trial: Trial | None) -> Any:
        if not self._is_checked:
            check_backend(self.options.backend)
            self._is_checked = True
        found = self._served(values, trial, of_any_size=True)
        if isinstance(found, Refusal):  # below `except`: the program finds no error of ours behind what it does
            if trial is not None:
                trial.refusal = found
            with at_most(None if trial is None else trial.effort_in_pieces):
                return self._run_otherwise(values, found)
        trace, inputs, numbers = found
        if isinstance(trace, CallTrace):
            self._last = None if trace.of_other_size else trace
        try:
            self._recent.move_to_end(id(trace))
        except KeyError:  # another thread has just forgotten it
            pass
        return self._perform(trace, values, inputs, numbers)

    # ---- what finds a trace
    #: What the traces of such calls are kept by, and what their lookups are given.
    def _keyed(self, values: tuple[Any, ...]) -> tuple[Any, Sequence[Any]]:
        places = {}
        if any(type(value) in RECEIVING for value in values):
            if self._received is None:
                names = received(self._code_function())
                self._received = {n: names[name] for n, name in enumerate(self._signature.names) if name in names}
            places = self._received
        try:
            return signature_key(values, places)
        except Foreign as foreign:
            refusal = reason_of_run(foreign)
        raise _Refused(refusal)

    def _leaves(self, trace: Any, values: tuple[Any, ...]) -> tuple[Leaf, ...]:
        """What a call depends on."""
        return () if trace is None else trace.read_leaves

    def _failed_guards(self, key: Any, at: Sequence[Any]) -> Failed:
        """Of each trace of such calls, else of those called last, the guard that keeps this one from it."""
        recent = [trace for trace, _ in list(self._recent.copy().values())[-NEAREST:]]
        found = failed_of(self._traces.get(key) or recent, at) or self._earlier.failed(at, self.python_function)[-NEAREST:]
        return {trace.number: _with_origin(trace, change) for trace, change in found}

    def _served(
        self, values: tuple[Any, ...], trial: Trial | None = None, *, of_any_size: bool = False
    ) -> _Gathered | Refusal:
        """The trace of a call, recorded where it was not, or why that cannot be."""
        try:
            key, at = self._keyed(values)
            for trace in usable(self._traces.get(key, ())):
                gathered = trace.gather(at)
                if gathered is not None:
                    return trace, *gathered
            if (refusal := self._refused.get(key)) is not None:
                return refusal
            with locks.Released(self._lock), self._lock:
                known = next((known for known in usable(self._traces.get(key, ())) if known.gather(at) is not None), None)
                known = known or self._renewed(key, at, serves=True) or (self._other_size(key, at) if of_any_size else None)
                if known is None and (refusal := self._refused.get(key)) is not None:  # another thread may have been quicker
                    return refusal
                if known is None and (refusal := self._refused_alike(key)) is not None:
                    return refusal
                if known is None and trial is not None:
                    if trial.effort.is_spent:
                        return Refusal(*TOO_MUCH)
                    if useless(failed_of(self._traces.get(key, [])[:USELESS], at)):
                        trial.has_others = True
                        self._refuse(key, Refusal(*OTHERS))
                        return self._refused[key]
                with at_most(None if trial is None else trial.effort):
                    trace = known or self._record(key, at, values)
            if known is None:
                self._note_frequency(trace)
        except _Refused as refused:
            return refused.refusal
        gathered = trace.gather(at)
        return Refusal("value", CHANGES) if gathered is None else (trace, *gathered)

    def _note_frequency(self, trace: Trace) -> None:
        """A call was recorded; those since the last such call needed no recording."""
        if (since := self.ledger.calls - self._answered) > 0:
            self._frequency.called(since)
        self._answered = self.ledger.calls + 1  # this one has yet to run
        miss = self.ledger.miss_of(trace)
        if miss is not None and (miss.misfit is None or miss.misfit.cause != VariantCause.LAYOUT):
            self._frequency.traced(self._retrace_warning)

    # ---- running
    def _gave_up(self, trace: Any, reason: Refusal) -> None:
        """Whoever decides on such calls is told."""
        if reason.code == BY_DATA:
            with locks.Released(self._lock), self._lock:
                if (found := self._recent.get(id(trace))) is not None:
                    outgrow(self._traces.get(found[1], []), trace, reason)
            self._last = None
        if isinstance(trace, CallTrace):
            trace.stays_compiled = False
            settling.here.given_up = reason, trace.costs.all_calls

    def _warm_up(self, trace: Any) -> None:
        if isinstance(trace, CallTrace) and (not self._may_settle or config.settle == MEASURE):
            return  # `_served_by_c` does, outside of what is measured
        settling.disturbed()
        if not trace.is_warm:
            warm_up(trace)

    def _run_otherwise(self, values: tuple[Any, ...], refusal: Refusal) -> Any:
        """What cannot be recorded whole is recorded statement by statement, with Python between."""
        if self._runs_stitched and not settling.here.needs_counts:
            return self._stitched_call(*self._signature.call_form(values))
        settling.here.is_in_pieces = True
        function = self.python_function
        args, kwargs = ((), {}) if self._binds_own else self._signature.call_form(values)
        while not isinstance(function, types.FunctionType):
            if isinstance(function, functools.partial):
                args, kwargs, function = (*function.args, *args), {**function.keywords, **kwargs}, function.func
            elif isinstance(function, types.MethodType):
                args, function = (function.__self__, *args), function.__func__
            elif isinstance(vars(class_of(function)).get("__call__"), types.FunctionType):
                args, function = (function, *args), class_of(function).__call__
            else:
                return self._run_as_python(values, refusal)
        if self._body is None:
            try:
                self._body = function_body.body_of(function) or False
            except MemoryError:  # Python needs none of it
                return self._run_as_python(values, refusal)
        if not self._body:
            return self._run_as_python(values, refusal)
        if self._binds_own:
            arguments = dict(zip(self._signature.names, values, strict=True))
        else:
            bound = inspect.signature(function, follow_wrapped=False).bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = bound.arguments
        before, outside.unmarked = outside.unmarked, True
        try:
            captured = self._body.trace_count
            result = function_body.run_body(self._body, arguments, self._compiled, self._observer)
        finally:
            outside.unmarked = before
        if self._binds_own and self._body.trace_count == captured:
            self._in_pieces += 1
            if self._in_pieces == STITCHED_AFTER and self._left:
                self._stitch(self._body)
        return result

    # ---- with its pieces in line
    def _stitch(self, body: function_body.Body) -> None:
        """From now on calls in pieces are those of one function, where that can be."""
        again, self._left = weakref.WeakMethod(self._ask_again), self._left - 1
        settling.disturbed()
        try:
            self._stitched = stitched.Stitched(body, again)
        except (stitched.Unwritten, SyntaxError):
            self._stitched = None

    def _ask_again(self) -> None:
        """Pieces do not serve any more: there may be others to capture."""
        settling.disturbed()
        self._stitched, self._in_pieces = None, 0
        self.in_front.drop_stitched(self)

    @property
    def _runs_stitched(self) -> bool:
        written = self._stitched
        return written is not None and (not events.active() or (events.in_bulk() and written.told is not None))

    def _stitched_call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        assert self._stitched is not None
        settling.here.is_in_pieces = settling.here.is_stitched = True
        before, outside.unmarked = outside.unmarked, True
        try:
            written = self._stitched
            return ((written.told if events.active() else None) or written.function)(*args, **kwargs)
        finally:
            outside.unmarked = before

    def _compiled(self, trace: Trace) -> Callable[[Sequence[Any]], list[Any]]:
        return compile_trace(trace, self._stages)

    def _run_as_python(self, call: tuple[Any, ...], refusal: Refusal) -> Any:
        args, kwargs = self._signature.call_form(call)
        return self._python(args, kwargs, refusal)

    # ---- recording
    def _captured(self, values: tuple[Any, ...], at: Sequence[Any], number: int, *, strict: bool) -> Trace:
        refuse_syntax(self._code_function())
        capture = CallCapture(self.name, strict=strict)
        return record_call(
            capture, self.python_function, self._signature.names, values, self._signature.call_form, number
        )

    def _record(self, key: Any, at: Sequence[Any], values: tuple[Any, ...]) -> Any:
        started = time.perf_counter_ns()
        settling.disturbed()
        settling.here.captures += 1
        failed = self._failed_guards(key, at)
        costs = Costs()
        asked = SizeFacts()
        try:
            with Whole(), costs.spending(), noting(asked):
                trace = self._captured(values, at, self._last_number + 1, strict=self.options.fullgraph)
        except errors.InvalidArgumentError:
            raise
        except self.refused_by as error:
            if self.joins_types and isinstance(error, errors.ControlFlowTypeError):
                raise TypeError(f"Type Join Failed: {error}") from None
            if self.options.fullgraph:
                raise refusal_error(self.name, self.options.capture_mode, error, self._definition()) from None
            raise self._refuse_or_fail(key, reason_of(error)) from None
        with Whole(self, self.ledger):
            if isinstance(trace, CallTrace):
                trace.asked = asked
            trace.near = servers((other.executable for other, _ in reversed(list(self._recent.copy().values()))), NEAREST)
            with costs.spending(), noting(SizeFacts()):
                trace.run = self._compiled(trace)
            self.ledger.traced(trace, self._leaves(trace, values), costs, failed, started)
            self._count += 1
            self._last_number = trace.number
            self._keep(key, trace)
            return trace

    def _keep(self, key: Any, trace: Trace) -> None:
        known = self._traces.setdefault(key, [])
        recorded_anew(known, trace)
        self._in_family(key, trace)
        self._recent[id(trace)] = trace, key
        while len(self._recent) > config.max_traces:
            self._forget_oldest()
        if len(known) > MOST_TRACES:
            self._refuse(key, Refusal("retraced", Message("refused.never_fits", {"times": MOST_TRACES})))
            known.clear()

    def _refuse_or_fail(self, key: Any, refusal: Refusal) -> _Refused:
        """An error may be of these values alone; the second one is believed."""
        if refusal.code != "error" or key in self._failed:
            self._refuse(key, refusal)
        self._failed.add(key)
        if len(self._failed) > config.max_traces:
            self._failed.clear()
        return _Refused(refusal)

    def _refused_alike(self, key: Any) -> Refusal | None:
        """Why calls that differ from this one in ints, and in what containers hold, were refused: several, at one place."""
        form = form_of(key)
        found = [refusal for known, refusal in list(self._refused.items()) if form_of(known) == form]
        if len(found) < MOST_ALIKE or any((x.code, x.source) != ("effect", found[0].source) for x in found):
            return None
        return None if any(form_of(known) == form for known in list(self._traces)) else found[0]

    def _forget_oldest(self) -> None:
        """The trace that was called longest ago makes room."""
        spared = 0
        number, (oldest, key) = self._recent.popitem(last=False)
        while spared < MAX_ENTRIES and oldest.costs.was_called_natively():
            self._recent[number] = oldest, key
            number, (oldest, key) = self._recent.popitem(last=False)
            spared += 1
        remove(self._traces, key, oldest)
        self._out_of_family(key, oldest)
        self.ledger.evicted(oldest)
        if self._last is oldest:
            self._last = None

    def _code_function(self) -> Any:
        function = self.python_function
        while isinstance(function, functools.partial):
            function = function.func
        if not hasattr(function, "__code__") and not hasattr(function, "__func__"):
            function = class_of(function).__call__
        return getattr(function, "__func__", function)


class PathJit(Jit):
    """Capture mode "trace": the path that the first call takes is what every call with such arguments takes."""

    refused_by = (errors.Signal, errors.JitlabError)
    given_up_by = (errors.Unfit, errors.InternalError)
    runs_otherwise = "as Python"

    def _keyed(self, values: tuple[Any, ...]) -> tuple[Any, Sequence[Any]]:
        try:
            return key_of(values)
        except Foreign as foreign:
            refusal = reason_of_run(foreign)
        raise _Refused(refusal)

    def _leaves(self, trace: Any, values: tuple[Any, ...]) -> tuple[Leaf, ...]:
        return leaves_of(self._signature.names, values)

    def _failed_guards(self, key: Any, at: Sequence[Any]) -> Failed:
        return misfits(self._traces.get(key, ()), at)

    def _missed(self, key: Any, at: Sequence[Any], values: tuple[Any, ...]) -> Found:
        return Found(self._leaves(None, values), failed=self._failed_guards(key, at))

    def _captured(self, values: tuple[Any, ...], at: Sequence[Any], number: int, *, strict: bool) -> Trace:
        capture = paths.PathCapture(self.name, strict=strict)
        return paths.record_path(
            capture, self.python_function, self._signature.names, values, at, self._signature.call_form, number
        )

    def _run_otherwise(self, values: tuple[Any, ...], refusal: Refusal) -> Any:
        return self._run_as_python(values, refusal)

    def _run_as_python(self, call: tuple[Any, ...], refusal: Refusal) -> Any:
        if self.options.fullgraph:  # the call was to be captured whole
            error = EndPiece(refusal.code, refusal.said)
            raise refusal_error(self.name, self.options.capture_mode, error, self._definition())
        return super()._run_as_python(call, refusal)


#: A trace, the arrays that a call of it reads, and the numbers.
_Gathered = tuple[Any, list[Any], tuple[Any, ...]]


class _Refused(errors.Signal):
    """A call that cannot be recorded whole."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.said)
        self.refusal = refusal


def _with_origin(trace: CallTrace, change: Change) -> Change:
    """The cause of what a name outside the arguments gave is the kind of that name."""
    origin = next((leaf.origin for leaf in trace.read_leaves if leaf.path == change.path), "")
    return replace(change, cause=origin) if origin and change.cause not in BESIDE else change


@says_where
def jit(
    function: Callable[..., Any] | None = None, *, capture_mode: str = "ast", jit_level: str = "O1", dynamic: bool = False,
    fullgraph: bool = False, backend: str = "", device: str | None = None, _kind: type[Jit] = Jit, **options: Any,
) -> Any:  # fmt: skip
    """A function that runs compiled with exactly Python's meaning. A decorator, with or without arguments.

    Args:
        function: the Python function; without it the result is a decorator that has the options.
        capture_mode: "ast": the source is captured, and what cannot be runs as Python between compiled pieces. "bytecode": so
            too, and functions without source are read from their bytecode. "trace": the path that the first call takes is
            recorded.
        jit_level: "O1": operations are fused into kernels. "O0": each operation is a kernel of its own.
        dynamic: accepted, and of no effect: sizes are parameters of the machine code anyway.
        fullgraph: True: everything is captured, or the call raises and says what is not.
        backend: "" or "ms_backend"; both are this compiler.
        device: "gpu": all that is captured runs on the GPU, whose kernels it is compiled to; arguments and results are NumPy's
            and are copied, or DeviceArrays and stay there. "cpu": on the processor. "auto": where a model of copies, kernels
            and launches says that it is 1.5 times as fast, on the GPU. None: as `jl.config.device` says.
        **options: `exec_order` "bfs" or "dfs": the order of operations. `infer_boost`, `disable_format_transform` and
            `ge_options` are checked and have no effect; an unknown option is warned of.

    Returns:
        A Jit, called like the function; a decorator where `function` is left away; what is no Python function, unchanged, with
        a warning.

    Raises:
        ValueError: an option has a value that it does not take.
        DeviceError: `device="gpu"`, and there is no GPU that can be used.
        TypeError: an option has a value of another type, or a call's arguments do not fit the parameters.
        UnsupportedError: a call under `fullgraph=True` meets what only Python can do.

    Example:
        >>> @jl.jit
        ... def step(x, losses):
        ...     y = np.tanh(x)
        ...     losses.append(float(y.sum()))
        ...     return y * 2
        >>> losses = []
        >>> step(np.zeros(3), losses), losses
        (array([0., 0., 0.]), [0.0])
    """
    checks = checked(capture_mode, jit_level, dynamic, fullgraph, backend, device, options)
    if function is None:
        return lambda decorated: _jitted(decorated, checks, _kind)
    return _jitted(function, checks, _kind)


def _jitted(function: Any, options: JitOptions, kind: type[Jit]) -> Any:
    if isinstance(function, Jit):
        warn(f"For 'jit', the function {function.name!r} is jitted already: the outer options hold.")
        function = function.python_function
    if not _is_python(function):
        warn(f"For 'jit', {function!r} is not a Python function: it is returned unchanged.")
        return function
    return (PathJit if options.capture_mode == "trace" else kind)(function, options)


def _is_python(function: Any) -> bool:
    """Code that Python runs: a function, a method, a partial of one, an object with a `__call__`."""
    if isinstance(function, functools.partial):
        return _is_python(function.func)
    if isinstance(function, types.MethodType):
        return _is_python(function.__func__)
    if isinstance(function, types.FunctionType):
        return True
    return not isinstance(function, (type, np.ufunc)) and isinstance(
        vars(class_of(function)).get("__call__"), types.FunctionType
    )
