"""The lists, dicts and objects that a function of `jl.function` is passed and changes.

While it is recorded it changes copies, and each run does the same to the caller's.
"""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitlab.capture.control.purity import is_plain_key
from jitlab.capture.control.traced_checks import has_effects
from jitlab.capture.guards.signature import Copy, fields_of_object, held_by, is_variable
from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.state import Capture
from jitlab.capture.tracers.tensor import Tensor
from jitlab.errors import InternalError, Signal
from jitlab.ir import TRACED_DTYPES
from jitlab.support.lazy_dataclass import dataclass

from .trace import Stored

Bind = Callable[..., tuple[Any, ...]]


class Held(NamedTuple):
    """What stood in one of the containers of a call before it; the container itself where there is no `key`."""

    number: int
    key: tuple[Any, ...] = ()

    def of(self, containers: Sequence[Any], before: Sequence[dict[Any, Any]]) -> Any:
        return before[self.number][self.key[0]] if self.key else containers[self.number]


@dataclass
class Changes:
    """What a run changes of a call's containers, in the order of `containers_in`: each that is changed with all that it holds
    from then on, things that were held before and places among the values that the run gives."""

    bind: Bind
    changed: list[tuple[int, dict[Any, Held | int]]]

    def containers(self, call: Any) -> list[Any]:
        """Those of a call, of which none may be two."""
        found = [x for value in self.bind(*call) for x in containers_in(value)]
        if len(set(map(id, found))) < len(found):
            raise NotReplayable("aliasing", "one_container")
        return found

    def make(self, containers: Sequence[Any], values: Sequence[Any]) -> None:
        before = [held_by(x) for x in containers]
        for number, parts in self.changed:
            new = {key: part.of(containers, before) if isinstance(part, Held) else values[part] for key, part in parts.items()}
            fill(containers[number], new)

    def run(self, run: Callable[[Sequence[Any]], list[Any]], inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a run. One that raises has changed nothing: Python does the call, and leaves what comes before."""
        try:
            return run(inputs)
        except (Signal, InternalError):
            raise
        except Exception:
            raise NotReplayable("effect", "raises_between") from None


def containers_in(value: Any) -> Iterator[Any]:
    """The lists, dicts and objects with fields in a value, in the order in which `substitute` copies them."""
    if isinstance(value, (np.ndarray, np.generic)) or is_variable(value):
        return
    if isinstance(value, dict):
        items = [value[name] for name in sorted(value, key=repr)]
    elif isinstance(value, (list, tuple)):
        items = list(value)
    else:
        names = fields_of_object(value)
        if names is None:
            return
        items = [getattr(value, name) for name in names]
    for item in items:
        yield from containers_in(item)
    if not isinstance(value, tuple):
        yield value


def fill(container: Any, new: dict[Any, Any]) -> None:
    if isinstance(container, list):
        container[:] = new.values()
    elif isinstance(container, dict):
        left = [name for name in container if name in new]
        if left != list(new)[: len(left)]:  # in another order
            left = []
        for name in [name for name in container if name not in new or not left]:
            del container[name]
        for name, value in new.items():
            container[name] = value
    else:
        for name, value in new.items():
            object.__setattr__(container, name, value)


def changes_of(capture: Capture, copies: Sequence[Copy], bind: Bind | None) -> tuple[Changes, list[Stored]] | None:
    """What a function has done to the copies of a call's containers, and the values that it has put into them; None: nothing.
    Raises Unchangeable for what a run could not do."""
    value_of = capture.value
    found = [(n, held_by(known.copy)) for n, known in enumerate(copies)]
    touched = [(n, now) for n, now in found if not _is_as(now, copies[n].held, value_of)]
    if not touched:
        return None
    if bind is None or capture.meets_passed or has_effects(capture):
        raise Unchangeable
    places = {id(item): Held(n, (key,)) for n, known in enumerate(copies) for key, item in known.held.items()}
    places.update((id(known.copy), Held(n)) for n, known in enumerate(copies))
    values: list[Stored] = []
    changed: list[tuple[int, dict[Any, Held | int]]] = []
    for n, now in touched:
        before = copies[n].held
        _check_kind(copies[n].copy, now, before)
        parts: dict[Any, Held | int] = {}
        for key, item in now.items():
            item = value_of(item)
            if key in before and before[key] is item:
                parts[key] = Held(n, (key,))
            elif id(item) in places:
                parts[key] = places[id(item)]
            else:
                _check_value(item, places)
                parts[key] = len(values)
                values.append(Stored(item))
        changed.append((n, parts))
    return Changes(bind, changed), values


class Unchangeable(Exception):
    """What a function does to its arguments is not what a run could do."""


def _is_as(now: dict[Any, Any], before: dict[Any, Any], value_of: Callable[[Any], Any]) -> bool:
    same = len(now) == len(before) and all(key in before and value_of(item) is before[key] for key, item in now.items())
    return same and list(now) == list(before)


def _check_kind(copy: Any, now: dict[Any, Any], before: dict[Any, Any]) -> None:
    kind = type(copy)
    sets_plainly = getattr(kind, "__setattr__", None) is object.__setattr__
    is_container = kind in (list, dict, OrderedDict, defaultdict)
    is_object = not isinstance(copy, (list, dict)) and sets_plainly and before.keys() <= now.keys()
    if not (is_container or is_object) or not all(map(is_plain_key, now.keys() - before.keys())):
        raise Unchangeable
    if is_object and any(_is_made_up(getattr(kind, name, None)) for name in now):
        raise Unchangeable


def _is_made_up(found: Any) -> bool:
    """Is what a class has under a name a property, or the like?"""
    return hasattr(type(found), "__get__") and not isinstance(found, types.MemberDescriptorType)


def _check_value(x: Any, places: dict[int, Held]) -> None:
    """Arrays, numbers and texts, and new containers of them."""
    if type(x) in (list, tuple, dict):
        if id(x) in places or isinstance(x, dict) and not all(map(is_plain_key, x)):
            raise Unchangeable
        for item in x.values() if isinstance(x, dict) else x:
            _check_value(item, places)
    elif not isinstance(x, (Tensor, np.generic)) and not is_plain_key(x):
        raise Unchangeable
    elif isinstance(x, np.generic) and x.dtype not in TRACED_DTYPES:
        raise Unchangeable


__all__ = ["Changes", "Unchangeable", "changes_of", "containers_in"]
