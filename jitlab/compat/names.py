"""A name of another library that stands for a function of NumPy, with that library's argument names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitlab.capture import HOOKS

#: What a name's arguments are to NumPy: the arguments and keyword arguments of the call.
Adapt = Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]


class Name:
    """Calls a NumPy function with its arguments put into NumPy's form; inside a recording that call is recorded."""

    def __init__(self, name: str, target: Callable[..., Any], adapt: Adapt) -> None:
        self.__name__ = name
        self.__doc__ = f"`{getattr(target, '__name__', target)}` of NumPy, under the name {name}."
        self._target, self._adapt = target, adapt

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self._adapt(*args, **kwargs)
        return HOOKS.call(self._target, *args, **kwargs)

    def __jitlab_inline__(self, capture: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.__name__}, for {self._target!r}>"
