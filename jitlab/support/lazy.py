"""Values that are made when they are first asked for, and kept: all of them, or those made last. For any number of threads."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - it is written as a decorator
    """As `functools.cached_property`, which up to Python 3.11 has one lock for all objects: a process that is forked while
    another thread holds it waits for ever. Here two threads may both make the value, and the last one's is kept."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self._name] = self._make(instance)
        return value


def made_once(make: Callable[..., T]) -> Callable[..., T]:
    """As `functools.cache`, for what has an address that is used: threads that make it together are all given the first that is
    there. (`cache` keeps the last, and what it gave the others goes while its address is in use.)"""
    made: dict[Any, T] = {}

    @wraps(make)
    def known(*args: Any) -> T:
        return made[args] if args in made else made.setdefault(args, make(*args))

    return known


class Kept(Generic[K, T]):
    """Of each key the value that `make(key, ...)` gave; of the `most` keys that came last."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: dict[K, T] = {}

    def of(self, key: K, make: Callable[..., T], *args: Any) -> T:
        """The value of a key, made by `make(*args)` where nobody has it."""
        try:
            return self._values[key]
        except KeyError:
            pass
        value = self._values[key] = make(*args)
        while len(self._values) > self.most:
            try:
                del self._values[next(iter(self._values))]
            except (KeyError, RuntimeError, StopIteration):  # another thread was quicker
                continue
        return value


class OfEach(Generic[T]):
    """Of each object the value that was made for it, as long as the object lives. (Equal code may stand in two files, and
    hashing it is slow: an object is known by its id.)"""

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[Any], T]] = {}

    def of(self, owner: Any, make: Callable[..., T], *args: Any) -> T:
        """The value of an object, made by `make(*args)` where nobody has it."""
        known = self._values.get(id(owner))
        return known[1] if known is not None and known[0]() is owner else self.put(owner, make(*args))

    def get(self, owner: Any) -> T | None:
        known = self._values.get(id(owner))
        return known[1] if known is not None and known[0]() is owner else None

    def put(self, owner: Any, value: T) -> T:
        key, values = id(owner), self._values
        values[key] = weakref.ref(owner, lambda _: values.pop(key, None)), value
        return value

    def forget(self, owner: Any) -> None:
        self._values.pop(id(owner), None)
