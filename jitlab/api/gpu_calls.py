"""Calls with arrays in a GPU's memory: captured as calls with arrays of NumPy's that lie alike, and run with the real ones.

What stands for such an array while a call is captured, and while its results get their form, holds nothing. So what would read
it is refused: such a call is captured whole, or is an error; Python takes none of it.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from jitlab import errors, events
from jitlab.api.functions.native_entry import class_of, form_of_call, form_of_traced, known_by, put_in_front
from jitlab.runtime.executable import Executable, on_device
from jitlab.support.containers import CONTAINERS, changed, leaves, mapped
from jitlab.targets.devices import device_arrays, gpu, is_there, is_usable, placement

as_kind, standing_for = device_arrays.as_kind, device_arrays.standing_for
stood_for = device_arrays.stood_for


def among(values: Any) -> bool:
    """Is one of them in these containers?"""
    of = device_arrays.DeviceArray
    for x in values[0]:  # of the arguments by place, where they most often are
        if type(x) is of or (is_there(x) and is_usable()):
            return True
    try:
        return any(map(is_there, leaves(values))) and is_usable()
    except RecursionError:  # a list that holds itself: there is another word for it
        return False


def called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a call with such arguments gives: arrays where they were computed, of the class of the arguments."""
    companion = _companion(function)
    if companion.answers is not None and not kwargs:
        found = _answered(companion.answers, args)
        if found is not _MISSED:
            return found
    call = _Call()
    values, options = call.standing((args, kwargs))
    recorded = companion.experimental_get_tracing_count()
    outer, _here.call = _here.call, call
    try:
        result = companion(*values, **options)
    finally:
        _here.call = outer
        call.ended()
    given = call.given(result)
    del result, values, options
    call.copies, call.known = {}, {}
    if companion.experimental_get_tracing_count() != recorded:
        call.check_kept(function.name)
    return given


#: What a C function gives where a call is none of its own.
_MISSED = object()


def _answered(answers: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What a C function gives for arrays of another library, all of one class: of that class; _MISSED: nothing."""
    memory, kind, streams = gpu().device, type(args[0]) if args else None, dict[int | None, None]()
    arrays: dict[int, Any] = {}
    for x in args:
        if type(x) is not kind or type(x) is memory.array_type or not is_there(x):
            return _MISSED
        if id(x) not in arrays:
            arrays[id(x)] = memory.taken(x, streams)  # type: ignore[attr-defined]
    try:
        result = answers(*[arrays[id(x)] for x in args])
    finally:
        _after(memory, streams)
    given = {id(arrays[id(x)]): x for x in args}

    def of_kind(x: Any) -> Any:
        if isinstance(x, CONTAINERS):
            return changed(of_kind, x)
        if type(x) is not memory.array_type:
            return x
        return given[id(x)] if id(x) in given else as_kind(x, kind)

    return result if result is _MISSED else of_kind(result)


def _after(memory: Any, streams: Mapping[int | None, None]) -> None:
    """Other libraries may use their arrays again behind what was enqueued."""
    for stream in streams:
        if stream is None:
            memory.driver.wait()
        else:
            memory.driver.after(stream)


class _Call:
    """The arrays of one call."""

    def __init__(self) -> None:
        self.memory: Any = gpu().device
        self.arrays: dict[int, Any] = {}  # by the id of the argument
        self.arguments: list[Any] = []  # as long as the call lasts
        self.streams: dict[int | None, None] = {}  # of other libraries, whose arrays are read; None: one that tells none
        self.kinds: dict[Any, None] = {}
        #: Of each list and dict that a copy stands for, by the id of that: itself, the copy, and what was put into that.
        self.copies: dict[int, tuple[Any, Any, Any]] = {}
        self.known: dict[int, Any] = {}  # by the id of such a list or dict: what stands for it

    def standing(self, values: Any) -> Any:
        """The same containers, with what stands for each array."""
        found = self._of_containers(values)
        if len(self.kinds) > 1:
            names = " and ".join(sorted(f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in self.kinds))
            raise TypeError(f"a call has the arrays of one library, not of {names}: jl.to_device(x) makes one of both")
        return found

    def _of_containers(self, x: Any) -> Any:
        if not isinstance(x, CONTAINERS):
            return self._stands(x)
        if id(x) in self.known:
            return self.known[id(x)]
        made = changed(self._of_containers, x)
        if made is x or isinstance(x, tuple):
            return made
        copied: Any = copy(x)
        if isinstance(copied, dict):
            copied.update(made)
        else:
            copied[:] = made
        self.copies[id(copied)] = x, copied, copy(copied)
        self.known[id(x)] = copied
        return copied

    def _stands(self, x: Any) -> Any:
        if not is_there(x):
            return x
        self.kinds[type(x)] = None
        array = self.arrays.get(id(x))
        if array is None:
            array = self.memory.taken(x, self.streams) if type(x) is not self.memory.array_type else x
            self.arrays[id(x)] = array
            self.arguments.append(x)
        return array.stand_in if array.ndim else array.to_numpy()[()]

    def ended(self) -> None:
        """Other libraries may use their arrays again behind what was enqueued; lists and dicts hold what the call put there."""
        _after(self.memory, self.streams)
        for original, copied, before in self.copies.values():
            if isinstance(original, dict):
                if [*map(id, copied), *map(id, copied.values())] != [*map(id, before), *map(id, before.values())]:
                    now = {key: self.given(x) for key, x in copied.items()}
                    original.clear()
                    original.update(now)
            elif [*map(id, copied)] != [*map(id, before)]:
                original[:] = [self.given(x) for x in copied]

    def given(self, x: Any) -> Any:
        """A part of the result: the array that it stands for, of the class of the arguments; their own lists and dicts."""
        if id(x) in self.copies:
            return self.copies[id(x)][0]
        if isinstance(x, CONTAINERS):
            return changed(self.given, x)
        if not isinstance(x, np.ndarray) or not x.ndim:
            return x
        array = stood_for(x)
        if array is None:
            raise TypeError(f"a result of {x.dtype}{list(x.shape)} is not in the GPU's memory")
        for argument in self.arguments:
            if self.arrays[id(argument)] is array:
                return argument
        return as_kind(array, next(iter(self.kinds)))

    def check_kept(self, name: str) -> None:
        """A function that was recorded now has kept nothing that stands for an argument: it would be read as an array."""
        for array in self.arrays.values():
            if array.ndim and sys.getrefcount(array.stand_in) > ALONE:
                gc.collect()
                if sys.getrefcount(array.stand_in) > ALONE:
                    raise TypeError(
                        f"{name} keeps an argument that lies in the GPU's memory (in a list, an attribute or a global name): "
                        "return it instead"
                    )


#: References to a stand-in that nobody has kept: its array's, and the one that asks.
ALONE = 2


def _real(x: Any) -> Any:
    """The array that something stands for; others as they are."""
    found = stood_for(x) if type(x) is np.ndarray else None
    return x if found is None else found


def _readable(x: Any) -> Any:
    """The same in NumPy's memory."""
    found = _real(x)
    return x if found is x else found.to_numpy()


def _run(run: Callable[[Sequence[Any]], list[Any]], inputs: Sequence[Any]) -> list[Any]:
    """The run of a trace with the real arrays; its arrays have memory of their own, and something stands for each."""
    memory: Any = gpu().device
    arrays = [_real(x) for x in inputs]
    on_device.keeps = True
    try:
        outputs = run(arrays)
    finally:
        on_device.keeps = False
    made: list[Any] = []
    others = [x for x in arrays if type(x) is memory.array_type]
    for x in outputs:
        if type(x) is np.ndarray and x.ndim:
            x = memory.array(x)
        if type(x) is memory.array_type:
            if memory.is_shared(x, others):
                x = x.copy()
            others.append(x)
            x = standing_for(x)
        made.append(x)
    return made


def _given(given: Callable[..., Any], room: Any, inputs: Any) -> Any:
    """What a run has put off, with the real arrays."""
    call: Any = _here.call
    return [
        ([(name, call.given(x)) for name, x in names], effect, [call.given(x) for x in values])
        for names, effect, values in given(room, inputs)
    ]


class _Here(threading.local):
    """The call that this thread is in."""

    call: _Call | None = None


_here = _Here()


class _ForGpu:
    """A function of which calls have stand-ins for arguments: everything is captured, or the call raises."""

    given_up_by = (errors.Unfit, errors.InternalError)
    name: str
    python_function: Callable[..., Any]
    _signature: Any
    outer: Callable[[], Any]  # gives the function that is called
    answered: set[Any]  # their forms
    answers: Callable[..., Any] | None  # C functions for arrays of other libraries, once they are DeviceArrays

    def _compiled(self, trace: Any) -> Callable[[Sequence[Any]], list[Any]]:
        what = (
            "changes an argument in place" if trace.writes
            else "uses the values of an array as sizes" if any(type(guard.value) is tuple for guard in trace.guards)
            else "draws random numbers" if trace.draws
            else ""
        )  # fmt: skip
        if what:
            raise TypeError(f"{self.name} {what}, which is not done for arrays in the GPU's memory: pass what to_numpy() gives")
        run = super()._compiled(trace)  # type: ignore[misc]
        trace.shared, trace.rows = [], []  # `_run` sees to it that each result has memory of its own
        if trace.effects:
            trace.given = partial(_given, trace.given)
        return partial(_run, run)

    def _is_of_gpu(self, args: Any, kwargs: Any) -> bool:
        return False  # what stands for them is NumPy's

    def _add_entry(self, trace: Any, args: Any, kwargs: Any, leaves: Sequence[Any]) -> None:
        """A C function in front of the function that is called, for such calls of `jl.function`."""
        trace.next_entry *= 2
        function: Any = self.outer()
        warm, form = _warm(trace, form_of_traced(self, trace, args, kwargs, leaves), leaves)  # type: ignore[arg-type]
        if warm is not None and self._is_of_others:
            self._put_behind(trace, form, warm)
        elif function is not None and warm is not None:
            counter = put_in_front(function, class_of(function).__call__, trace, form, warm, MOST_FORMS)
            if counter is not None:
                self._counters.append(counter)  # type: ignore[attr-defined]

    @property
    def _is_of_others(self) -> bool:
        """Has the call that this thread is in arrays of another library?"""
        return _here.call is not None and gpu().device.array_type not in _here.call.kinds

    def _put_behind(self, trace: Any, form: Any, warm: Any) -> None:
        """A C function for such calls, when their arrays have become DeviceArrays."""
        seen = known_by(trace, form)
        if seen in self.answered or len(self.answered) >= MOST_FORMS:
            return
        counter = ctypes.c_int64(0)
        otherwise = self.answers or (lambda *_: _MISSED)
        self.answers, _ = warm.make(events.busy.word, counter, otherwise, self.name)
        trace.costs.count_natively(counter)
        self.answered.add(seen)

    def _served_by_c(self, args: Any, kwargs: Any) -> None:
        """The same for `jl.jit`."""
        trace, function = self._last, self.outer()  # type: ignore[attr-defined]
        if trace is None or function is None or trace.costs.calls < trace.next_entry:
            return
        trace.next_entry *= 2
        form, inputs = form_of_call(self, trace, args, kwargs, float_values=True)  # type: ignore[arg-type]
        warm, form = _warm(trace, form, inputs)
        if warm is not None and self._is_of_others:
            self._put_behind(trace, form, warm)
        elif warm is not None:
            function.in_front.put(function, trace, form, warm, MOST_FORMS, is_there=True)

    def _refuse_python(self, call: Any, refusal: Any) -> None:
        if (
            refusal.code == "error" or refusal.said.code == "refused.raised"
        ):  # of the program's own: it comes again where everything can be read
            args, kwargs = mapped(_readable, call)
            self.python_function(*args, **kwargs)
        raise TypeError(
            f"{self.name} is called with arrays in the GPU's memory and is not captured whole: {refusal.said}; Python can't "
            "read them: pass what to_numpy() gives"
        )

    def _run_otherwise(self, values: Any, refusal: Any) -> Any:
        self._refuse_python(self._signature.call_form(values), refusal)

    def _run_as_python(self, call: Any, refusal: Any) -> Any:
        self._refuse_python(call if len(call) == 2 and type(call[1]) is dict else self._signature.call_form(call), refusal)


#: C functions in front of a function, at most.
MOST_FORMS = 16


def _warm(trace: Any, form: Any, inputs: Sequence[Any]) -> tuple[Any, Any]:
    """What answers calls of a form, all of whose arrays stand for some that lie there; (None, None): nothing."""
    arrays = [x for x in inputs if type(x) is np.ndarray]
    if form is None or trace.effects or not isinstance(trace.executable, Executable):
        return None, None
    if not arrays or any(stood_for(x) is None for x in arrays):
        return None, None
    return trace.executable.warm(form, None, is_there=True), form


@cache
def _kind(of: Any) -> Any:
    return type(of.__name__, (_ForGpu, of), {})


def _companion(function: Any) -> Any:
    """The function for calls with arrays in the GPU's memory: its traces are its own."""
    known = vars(function).get("_for_gpu")
    if known is None or known.python_function is not function.python_function:
        made_with: Mapping[str, Any] = function._made_with()
        options = made_with.get("options")
        if options is not None:
            kind: Any = class_of(function)
            made = _kind(kind)(function.python_function, replace(options, device=placement("gpu")))
        else:
            kind = type(function)
            made = _kind(kind)(function.python_function, name=function.name, **{**made_with, "device": "gpu"})
        made.outer, made.answers, made.answered = weakref.ref(function), None, set()
        made.ledger.made = function.ledger.made  # it is no function of its own
        function.ledger.there = made.ledger
        known = vars(function)["_for_gpu"] = made
    return known
