"""The path of the first call (capture mode "trace"): the body runs once as Python stands, on Tensors that know their values.

What the body decides by values (an `if` on data, a `float(x)`) is decided once and holds for every later call; what it does
to Python objects is done once. Each such value is told of by an event with its line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab.capture.guards.signature import is_variable, paths_of, substitute
from jitlab.capture.numpy_calls.host_fallback import evaluate
from jitlab.capture.state import Capture
from jitlab.capture.tracers.arrays import Arrays, Place, Policy
from jitlab.capture.tracers.tensor import Tensor

from .calls import refuse_syntax
from .trace import Trace, finish, for_calls


class PathCapture(Capture):
    """A recording that follows the values of its first call."""

    policy = Policy("fullgraph=True", "a traced array", may_draw=False, sees_stores=False)

    def value(self, x: Any, text: str = "", binding: Place | None = None) -> Any:
        met = self.captured.get(id(x)) if type(x) is np.ndarray else None
        if met is not None and not met.captured and id(x) not in self.variables and met not in self.met_again:
            self.met_again.append(met)  # the body has tensors for its arguments: something else gave it this array
        return super().value(x, text, binding)

    def truth(self, x: Tensor) -> bool:
        return super().truth(x) if self.in_numpy else bool(self.real(x, "bool()"))

    def index(self, x: Tensor) -> int:
        return super().index(x) if self._is_count(x) else self.real(x, "a use as an index").__index__()

    def real(self, x: Tensor, what: str) -> Any:
        """The value in the first call: from now on it is part of the trace."""
        if not self.is_open or self.in_numpy or what == "a conversion to a real array":
            return super().real(x, what)
        self.note_frozen(f"{what} of {x.type.describe()}")
        return self._value_now(x)

    def python_values(self, x: Tensor, method: str, *args: Any) -> Any:
        return Arrays.python_values(self, x, method, *args)

    def shown(self, x: Tensor) -> str:
        return repr(self._value_now(x)) if self.is_open else super().shown(x)

    def _value_now(self, x: Tensor) -> Any:
        value = evaluate(self, x.node())
        return np.asarray(value)[()] if x.is_scalar else np.array(value)


def record_path(
    capture: PathCapture, function: Callable[..., Any], names: Sequence[str], values: Sequence[Any], leaves: Sequence[Any],
    call_form: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]], number: int,
) -> Trace:  # fmt: skip
    """The trace of `function` called with these values, whose arrays and NumPy scalars are `leaves`."""
    refuse_generator(function)
    places = enumerate(zip(leaves, paths_of(names, values), strict=True))
    variables: dict[int, Any] = {}
    positions: list[int] = []

    def argument(value: Any) -> Any:
        n, (leaf, path) = next(places)
        is_held = is_variable(value)
        if is_held:
            value = variables.setdefault(id(leaf), value.__jitlab_stand_in__(leaf.view()))
            leaf = value.__jitlab_array__()
        known = capture.captured.get(id(leaf)) if type(leaf) is np.ndarray else None
        if known is None:
            positions.append(n)
        tensor = capture.add_input(leaf, path) if known is None else known.tensor
        return value if is_held else tensor

    with capture.recording():
        try:
            args, kwargs = call_form(substitute(values, argument, []))
            result = function(*args, **kwargs)
            if capture.refused is not None:
                raise capture.refused
            trace = finish(capture, result, number, numbers_become_scalars=False)
        finally:
            capture.close()
    return for_calls(trace, capture, positions)


def refuse_generator(function: Callable[..., Any]) -> None:
    """A body that does not run when it is called cannot be followed."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & 0x2A0:  # generators and coroutines
        refuse_syntax(function)


__all__ = ["PathCapture", "record_path"]
