"""A method of an instance that is not kept alive by what was traced of it."""

from __future__ import annotations

import functools
import inspect
import weakref
from types import FunctionType, MethodType
from typing import Any


class WeakMethod:
    """A method of an instance that it does not keep alive."""

    def __init__(self, function: Any, reference: weakref.ref[Any]) -> None:
        self.function = function
        self.reference = reference
        functools.update_wrapper(self, function)
        self.__signature__ = inspect.signature(MethodType(function, reference()))

    def bound(self) -> Any:
        instance = self.reference()
        if instance is None:
            name = self.__name__  # type: ignore[attr-defined]
            raise ReferenceError(
                f"The object of the method {name!r} no longer exists, and a method does not keep its object alive."
                f" Keep the object in a name: `a = ...; a.{name}(x)`."
            )
        return MethodType(self.function, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.bound()(*args, **kwargs)


class BoundFunction:
    """The Function of an instance in the hands of a caller. As Python's bound method it keeps the instance alive, which the
    Function does not; else it is that Function."""

    __slots__ = ("__weakref__", "_function", "_instance")

    def __init__(self, function: Any, instance: Any) -> None:
        object.__setattr__(self, "_function", function)
        object.__setattr__(self, "_instance", instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance
        return type(self._function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._function, name, value)

    def __jitlab_inline__(self, capture: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._function.__jitlab_inline__(capture, args, kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._function.__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __repr__(self) -> str:
        return repr(self._function)


def look_like(wrapper: Any, function: Any) -> None:
    """Give a callable object the name, documentation and attributes of the function it stands for. What is not a plain function
    keeps its fields to itself, and no attribute replaces a field of the wrapper."""
    functools.update_wrapper(wrapper, function, updated=())
    if isinstance(function, FunctionType):
        for name, value in vars(function).items():
            wrapper.__dict__.setdefault(name, value)
