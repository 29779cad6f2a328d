"""The form of calls that machine code answers without Python: what the arguments have to be, and what such a call gives.

A *leaf* is an array, a number or a container that gets something, among the arguments or under a name that is read; leaves
are numbered as they are met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import CellType
from typing import Any

import numpy as np

from jitlab.support.lazy_dataclass import dataclass


@dataclass(frozen=True)
class ArrayOf:
    """An array of exactly this dtype and shape. `strides`: in bytes, None where it lies row by row."""

    leaf: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Again:
    """The array of another leaf."""

    leaf: int
    first: int


@dataclass(frozen=True)
class NumberOf:
    """A number of exactly this type, which holds it as an element of `dtype`: Python's float, of this value where one is given,
    or a scalar of NumPy's."""

    leaf: int
    kind: type
    dtype: np.dtype[Any]
    value: float | None = None


@dataclass(frozen=True)
class Equal:
    """This value of Python's, of its exact type and to the bit."""

    value: Any


@dataclass(frozen=True)
class Holding:
    """A list or tuple of exactly that type with these items, or a dict with these names in this order; `number` tells it from
    the other containers."""

    number: int
    kind: type
    items: tuple[Any, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class OfType:
    """A list, dict or set, exactly that, which is not looked into: a call gives it something."""

    leaf: int
    kind: type


@dataclass(frozen=True)
class Is:
    """This object; of a function with this code, where that is given."""

    value: Any
    code: Any = None


@dataclass(frozen=True)
class Absent:
    """Nothing: the name is not there, and means Python's own."""


@dataclass(frozen=True)
class Defaults:
    """A function whose defaults are these objects."""

    function: Any
    positional: Any
    named: dict[str, Any] | None


@dataclass(frozen=True)
class Standing:
    """An object that no call gives: a default, which is this leaf, or a function that has this code."""

    value: Any
    what: Any


@dataclass(frozen=True)
class Named:
    """What stands under a name of a dict of names that a function reads, or in a cell of a closure."""

    table: dict[str, Any] | CellType
    name: str
    what: Any


@dataclass(frozen=True)
class Output:
    """A result of the graph. `scalar`: as a scalar of NumPy's; `number`: as Python's float, int or bool."""

    position: int
    scalar: bool
    number: type | None = None


@dataclass(frozen=True)
class ViewOf:
    """A view of a result of the graph: `steps` are views, each of what the one before gives, whose sizes are known."""

    position: int
    steps: tuple[Any, ...]


@dataclass(frozen=True)
class Argument:
    """A leaf itself."""

    leaf: int


@dataclass(frozen=True)
class Fixed:
    """The same object each time."""

    value: Any


@dataclass(frozen=True)
class Packed:
    """A new tuple, list or dict of others, or a named tuple of a class."""

    kind: type
    items: tuple[Any, ...]
    names: tuple[Any, ...] = ()


@dataclass(frozen=True)
class GivingOut(Packed):
    """A result, and what is given out when it is made: `items` are the result and a tuple for each of the functions `names`,
    which are called with it in order; `said`: what is told of each where somebody listens."""

    said: tuple[Any, ...] = ()


@dataclass(frozen=True)
class CallForm:
    """`given` arguments by position, then those of these `names`, with their `values`; before them `reads`. `inputs`: of each
    parameter of the graph the leaf. `distinct`: pairs of leaves, and of containers, that are different objects. `writes`:
    (leaf, output of the graph). `gives`: what a call gives. `is_whole`: leaves that are written are found to lie apart from the
    other inputs, and get what is not stored there anyway; else the caller looks after both."""

    given: int
    names: tuple[str, ...]
    values: tuple[Any, ...]
    inputs: tuple[int, ...]
    gives: Any
    reads: tuple[Named | Standing | Defaults, ...] = ()
    distinct: tuple[tuple[Any, Any], ...] = ()
    writes: tuple[tuple[int, int], ...] = ()
    is_whole: bool = True


def leaves_of_form(form: CallForm) -> Iterator[ArrayOf | Again | NumberOf]:
    """Its leaves, in the order they are met."""
    read = (read.what for read in form.reads if not isinstance(read, Defaults))
    return (leaf for value in (*read, *form.values) for leaf in _leaves(value))


def with_stored(gives: Any, stored: Mapping[int, int]) -> Any:
    """What a call gives where these outputs lie in leaves."""
    if isinstance(gives, Packed):
        return replace(gives, items=tuple(with_stored(item, stored) for item in gives.items))
    return Argument(stored[gives.position]) if isinstance(gives, Output) and gives.position in stored else gives


def outputs_of(gives: Any) -> list[int]:
    """The graph's outputs among what a call gives."""
    if isinstance(gives, Packed):
        return [position for item in gives.items for position in outputs_of(item)]
    return [gives.position] if isinstance(gives, (Output, ViewOf)) else []


def with_views(gives: Any, seen: Callable[[ViewOf], Any]) -> Any:
    """What a call gives, with something else for each view."""
    if isinstance(gives, Packed):
        return replace(gives, items=tuple(with_views(item, seen) for item in gives.items))
    return seen(gives) if isinstance(gives, ViewOf) else gives


def _leaves(value: Any) -> Iterator[ArrayOf | Again | NumberOf]:
    if isinstance(value, Holding):
        for item in value.items:
            yield from _leaves(item)
    elif isinstance(value, (ArrayOf, Again, NumberOf)):
        yield value
