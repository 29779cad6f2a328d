"""Nested lists, tuples, dicts and slices: of changed leaves or of changed items, the leaves, and all as JSON has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import fields, is_dataclass
from math import isfinite
from operator import is_
from typing import Any

CONTAINERS = (list, tuple, dict)


def mapped(change: Callable[[Any], Any], x: Any) -> Any:
    """The same containers with `change(leaf)` for each leaf; a container of which nothing changes stays the object it is."""
    if isinstance(x, (list, tuple)):
        items = [mapped(change, item) for item in x]
        return x if all(map(is_, items, x)) else like(type(x), items)
    if isinstance(x, dict):
        changed = copy(x)
        changed.update((key, mapped(change, item)) for key, item in x.items())
        return changed if any(changed[key] is not item for key, item in x.items()) else x
    if isinstance(x, slice):
        bounds = [mapped(change, bound) for bound in (x.start, x.stop, x.step)]
        return slice(*bounds) if any(a is not b for a, b in zip(bounds, (x.start, x.stop, x.step), strict=True)) else x
    return change(x)


def leaves(x: Any) -> list[Any]:
    """What stands in nested containers, in order; no method of a class of the user's is called."""
    found: list[Any] = []
    if isinstance(x, dict):
        for item in dict.values(x):
            found += leaves(item)
    elif isinstance(x, (list, tuple)):
        for item in list.__iter__(x) if isinstance(x, list) else tuple.__iter__(x):
            found += leaves(item)
    elif isinstance(x, slice):
        found += x.start, x.stop, x.step
    else:
        found.append(x)
    return found


def as_json(x: Any) -> Any:
    """The same in JSON's words: of a record its fields by name, lists for tuples, None for a number that is not finite."""
    if is_dataclass(x):
        return {one.name: as_json(getattr(x, one.name)) for one in fields(x)}
    if isinstance(x, dict):
        return {key: as_json(item) for key, item in x.items()}
    if isinstance(x, (list, tuple)):
        return [as_json(item) for item in x]
    return None if isinstance(x, float) and not isfinite(x) else x


def of_items(change: Callable[[Any], Any], x: Any) -> Any:
    """A new list, tuple or dict like `x` of what `change` gives for its items; of a dict, for its values."""
    if isinstance(x, dict):
        return {key: change(item) for key, item in x.items()}
    return like(type(x), map(change, x))


def changed(change: Callable[[Any], Any], x: Any) -> Any:
    """As `of_items`; `x` itself where each item stays the same object."""
    made = of_items(change, x)
    return x if all(map(is_, _items(made), _items(x))) else made


def like(kind: Any, items: Iterable[Any]) -> Any:
    """A list or tuple of a class, of these items: a named tuple's class may make them of others."""
    return tuple.__new__(kind, items) if hasattr(kind, "_fields") else kind(items)


def _items(x: Any) -> Iterable[Any]:
    return x.values() if isinstance(x, dict) else x


__all__ = ["CONTAINERS", "as_json", "changed", "leaves", "like", "mapped", "of_items"]
