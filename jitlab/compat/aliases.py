"""A name of another library that stands for a function of NumPy, with that library's argument names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitlab.capture import HOOKS, Tensor, current_capture

#: What a name's arguments are to NumPy: the arguments and keyword arguments of the call.
Adapt = Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]


class Name:
    """Calls a NumPy function with its arguments put into NumPy's form; inside a recording that call is recorded.

    `name=` is the operation's name in a graph. A graph keeps the call as one step: its arguments are put into form for the
    shapes of each run.
    """

    def __init__(self, name: str, target: Callable[..., Any], adapt: Adapt) -> None:
        self.__name__ = name
        self.__doc__ = f"`{getattr(target, '__name__', target)}` of NumPy, under the name {name}."
        self._target, self._adapt = target, adapt

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> Any:
        capture = current_capture() or graph_of((*args, *kwargs.values()))
        if capture is None:
            args, kwargs = self._adapt(*args, **kwargs)
            return self._target(*args, **kwargs)
        with capture.naming(name):
            return capture.perform(self.called, args, kwargs)

    def called(self, capture: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = self._adapt(*args, **kwargs)
        return HOOKS.call(self._target, *args, **kwargs)

    def __jitlab_inline__(self, capture: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.__name__}, for {self._target!r}>"


def graph_of(values: Any) -> Any:
    """The recording of the first graph's tensor among the values: it may be used outside of its graph's blocks."""
    for value in values:
        if isinstance(value, Tensor):
            return value.capture if value.capture.is_open else None
        if isinstance(value, (list, tuple)) and (found := graph_of(value)) is not None:
            return found
    return None
