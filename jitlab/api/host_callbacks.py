"""Python functions as operations: `numpy_function` and `py_function` are called at every run, in their place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.capture import Tensor, current_capture
from jitlab.capture.numpy_calls.host_fallback import Template, add_host_call, evaluate, must_compile
from jitlab.capture.state import not_recording
from jitlab.errors import InvalidArgumentError
from jitlab.ir import NotRolled
from jitlab.messages import Message
from jitlab.support import locks
from jitlab.support.callbacks import called_once, noting


def numpy_function(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None  # noqa: N803
) -> Any:
    """`func(*arrays)` as an operation. `Tout`: the dtype of its result, or a list of dtypes.

    It is called once each time it runs, in program order, and never when a graph is put together. A recording is exact, so
    where the shape of its result changes a call runs as Python.
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    capture: Any = current_capture() or next((x.capture for x in inp if isinstance(x, Tensor) and x.capture.is_open), None)
    several = isinstance(Tout, (list, tuple))
    dtypes = [np.dtype(t) for t in Tout] if several else [np.dtype(Tout)]
    if capture is None:
        results = _once(func, [np.asarray(x) for x in inp], dtypes)
        return [x[()] for x in results] if several else results[0][()]
    with capture.naming(name):
        return capture.perform(_record, func, list(inp), _Dtypes(tuple(dtypes), several), stateful)


py_function = py_func = numpy_function


class _Dtypes:
    """The dtypes of the results."""

    def __init__(self, dtypes: tuple[np.dtype[Any], ...], several: bool) -> None:
        self.dtypes, self.several = dtypes, several


def _record(capture: Any, func: Callable[..., Any], inp: Sequence[Any], out: _Dtypes, stateful: bool) -> Any:
    name = getattr(func, "__name__", type(func).__name__)
    if capture.strict:
        raise must_compile(capture, "PyFunc", f"{name} is a Python function")
    if capture.bounds.depth:
        raise NotRolled("host_operation", "python_function", name=name)
    template = Template(capture)
    made = tuple(template.of(x if isinstance(x, Tensor) else capture.operand(x)) for x in inp)
    guess = capture.guessed_results(out.dtypes)
    call = _Call(func, name, out.dtypes)
    capture.calls_back = True
    if guess is None:
        real = [np.asarray(evaluate(capture, node)) for node in template.nodes]
        guess = noting(capture.made_calls, call.first, [real[slot.index] if hasattr(slot, "index") else slot for slot in made])
    results: Any = tuple(guess) if len(guess) != 1 else guess[0]
    found = add_host_call(
        capture, call, made, {}, template.nodes, results, "effect", Message("stays.calls_python"), effects=stateful
    )
    return list(found) if out.several and isinstance(found, tuple) else [found] if out.several else found


class _Call:
    """A Python function that is called at every run. What it gave while the first run was recorded is not computed again."""

    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock}
    _lock: Any

    def __init__(self, func: Callable[..., Any], name: str, dtypes: Sequence[np.dtype[Any]]) -> None:
        self.func, self.dtypes = func, tuple(dtypes)
        self.__name__ = "py_func"
        self.python_name = name
        self._first: list[Any] = []
        locks.own(self)

    def first(self, arrays: Sequence[Any]) -> list[Any]:
        self._first = [_once(self.func, arrays, self.dtypes)]
        return self._first[0]  # type: ignore[no-any-return]

    def __call__(self, *arrays: Any) -> Any:
        with locks.Released(self._lock), self._lock:
            known = self._first.pop() if self._first else None
        results = _once(self.func, [np.asarray(x) for x in arrays], self.dtypes, known)
        return results[0] if len(results) == 1 else tuple(results)


def _once(func: Callable[..., Any], arrays: Sequence[Any], dtypes: Sequence[np.dtype[Any]], known: Any = None) -> list[Any]:
    return called_once(func, arrays, lambda: _called(func, arrays, dtypes), known)


def _called(func: Callable[..., Any], arrays: Sequence[Any], dtypes: Sequence[np.dtype[Any]]) -> list[Any]:
    with not_recording():
        result = func(*arrays)
    results = list(result) if isinstance(result, (list, tuple)) and len(dtypes) != 1 else [result]
    if len(results) != len(dtypes):
        raise InvalidArgumentError(f"{_name(func)} gave {len(results)} results, and Tout names {len(dtypes)} dtypes")
    found = []
    for item, dtype in zip(results, dtypes, strict=True):
        array = np.asarray(item)
        if not isinstance(item, (np.ndarray, np.generic)) and np.can_cast(array.dtype, dtype, "same_kind"):
            array = array.astype(dtype)
        if array.dtype != dtype:
            raise InvalidArgumentError(
                f"{_name(func)} gave {array.dtype}, and Tout says {dtype}: 0-th value returned by pyfunc has another dtype",
                hint=f"return np.asarray(result, np.{dtype})",
            )
        found.append(array)
    return found


def _name(func: Any) -> str:
    return str(getattr(func, "__name__", type(func).__name__))


__all__ = ["numpy_function", "py_func", "py_function"]
