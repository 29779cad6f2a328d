"""What a call's arguments are, told so that machine code can compare the arguments of the next calls with them: of their exact
types alone, to the shape, the stride and the bit, so that whatever a trace depends on is as it was."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from jitlab.errors import Signal
from jitlab.ir import TRACED_DTYPES
from jitlab.ir.plans.call_forms import Again, ArrayOf, Equal, Holding, NumberOf, OfType, Standing

#: Values that are compared, of Python's own types.
VALUES = frozenset({int, bool, str, bytes, float, complex, type(None), type(...)})
#: Values that are compared, at the most.
MOST_VALUES = 200
#: Pairs of arrays and containers that are told apart, at the most.
MOST_PAIRS = 300

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Undescribed(Signal):
    """Machine code does not compare such values."""


class Mark:
    """Stands where a leaf does."""

    def __init__(self, leaf: int) -> None:
        self.leaf = leaf


class Described:
    """Values as what machine code compares. `any_float`: a float may have any value, and is a leaf; `exact`: the strides of all
    arrays are compared; `receivers`: containers that only get something, which are leaves."""

    def __init__(self, *, any_float: bool = False, exact: bool = False, receivers: Sequence[Any] = ()) -> None:
        self.any_float, self.exact, self.receivers = any_float, exact, receivers
        self.leaves: list[Any] = []
        self.float_values = False  # also of floats that are leaves
        self.standing: list[Standing] = []
        self.first: dict[int, int] = {}  # of a leaf that is an array once more, the leaf that it was first
        self._first: dict[int, int] = {}  # of arrays, by id
        self._alike: dict[Any, list[Any]] = defaultdict(list)  # arrays, and containers, that may be the same ones
        self._containers: list[Any] = []
        self._receiving: dict[int, int] = {}  # by their places among the containers, the leaves that receivers are
        self._values = 0

    def value(self, x: Any) -> tuple[Any, Any]:
        """What `x` is, and the same with a Mark for each leaf. Leaves are numbered as `key_of` finds them."""
        kind = type(x)
        self._values += 1
        if self._values > MOST_VALUES:
            raise Undescribed("there are too many values")
        if kind is np.ndarray:
            return self._array(x)
        if kind is float and self.any_float:
            return self._leaf(x, lambda leaf: NumberOf(leaf, float, np.dtype(float), x if self.float_values else None))
        if kind in VALUES:
            return Equal(x), x
        if isinstance(x, np.generic) and x.dtype in TRACED_DTYPES and kind is x.dtype.type:
            return self._leaf(x, lambda leaf: NumberOf(leaf, kind, x.dtype))
        if any(x is receiver for receiver in self.receivers):
            return self.receiver(x)
        if kind is list or kind is tuple:
            return self._holding(x, range(len(x)))
        if kind is dict and all(type(name) is str for name in x):
            return self._holding(x, sorted(x, key=repr))
        raise Undescribed(f"a {kind.__name__} is not compared")

    def arguments(
        self, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], list[Any]]:
        """What the arguments of a call are, as it gives them; and the values of the parameters, with Marks."""
        place = {name: len(args) + n for n, name in enumerate(kwargs)}
        found: dict[int, Any] = {}
        given = (*args, *kwargs.values())

        def one(at: int) -> Any:
            found[at], marked = self.value(given[at])
            return marked

        bound: list[Any] = []
        rest = dict(place)
        for n, (name, parameter) in enumerate(signature.parameters.items()):
            if parameter.kind is parameter.VAR_POSITIONAL:
                bound.append(tuple(one(at) for at in range(n, len(args))))
            elif parameter.kind is parameter.VAR_KEYWORD:
                bound.append({other: one(rest[other]) for other in sorted(rest, key=repr)})
            elif parameter.kind in _POSITIONAL and n < len(args):
                bound.append(one(n))
            elif parameter.kind is not parameter.POSITIONAL_ONLY and name in rest:
                bound.append(one(rest.pop(name)))
            elif type(parameter.default) in VALUES:
                what, marked = self.value(parameter.default)
                if isinstance(marked, Mark):
                    self.standing.append(Standing(parameter.default, what))
                bound.append(marked)
            else:
                raise Undescribed(f"{name} has another default than a value")
        return tuple(found[at] for at in range(len(given))), bound

    def distinct(self) -> tuple[tuple[Any, Any], ...]:
        """Pairs of leaves and containers that are different objects, and look alike."""
        groups = [*self._alike.values(), *([leaf, other] for leaf in self._receiving.values() for other in self._others(leaf))]
        pairs = tuple(pair for group in groups for pair in combinations(group, 2))
        if len(pairs) > MOST_PAIRS:
            raise Undescribed("there are too many arrays of one kind")
        return pairs

    def receiver(self, x: Any) -> tuple[Any, Any]:
        """A container that only gets something: whatever it holds."""
        if any(x is other for other in self._containers):
            raise Undescribed("a container stands at two places")
        self._receiving[len(self._containers)] = len(self.leaves)
        self._containers.append(x)
        return self._leaf(x, lambda leaf: OfType(leaf, type(x)))

    def has_receiver(self, leaf: int, kind: type) -> bool:
        return leaf in self._receiving.values() and type(self.leaves[leaf]) is kind

    def _others(self, leaf: int) -> Iterable[Any]:
        """Containers of the type of one that gets something, which another call may have in its place; a pair once."""
        kind = type(self.leaves[leaf])
        for number, container in enumerate(self._containers):
            other = self._receiving.get(number)
            if type(container) is kind and (other is None or other > leaf):
                yield ("container", number) if other is None else other

    def _leaf(self, x: Any, what: Callable[[int], Any]) -> tuple[Any, Any]:
        self.leaves.append(x)
        leaf = len(self.leaves) - 1
        return what(leaf), Mark(leaf)

    def _array(self, x: np.ndarray[Any, Any]) -> tuple[Any, Any]:
        if x.dtype not in TRACED_DTYPES or not x.flags.aligned:
            raise Undescribed(f"an array of {x.dtype}")
        leaf = len(self.leaves)
        first = self._first.setdefault(id(x), leaf)
        if first != leaf:
            self.first[leaf] = first
            return self._leaf(x, lambda leaf: Again(leaf, first))
        strides = x.strides if self.exact or not x.flags.c_contiguous else None
        self._alike[x.dtype, x.shape, strides].append(leaf)
        return self._leaf(x, lambda leaf: ArrayOf(leaf, x.dtype, x.shape, strides))

    def _holding(self, x: Any, keys: Iterable[Any]) -> tuple[Any, Any]:
        kind, number = type(x), len(self._containers)
        if kind is not tuple and any(x is other for other in self._containers):
            raise Undescribed("a container stands at two places")
        self._containers.append(x)
        if kind is not tuple:
            self._alike[kind, len(x)].append(("container", number))
        made = {key: self.value(x[key]) for key in keys}
        order = list(x) if kind is dict else list(made)
        items = tuple(made[key][0] for key in order)
        if kind is dict:
            return Holding(number, dict, items, tuple(order)), {key: made[key][1] for key in order}
        return Holding(number, kind, items), kind(made[key][1] for key in order)
