"""Host operations: what has no class of its own runs as plain NumPy on real arrays, with the reason kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, symbol_of
from jitlab.messages import Message
from jitlab.support.containers import CONTAINERS, of_items
from jitlab.support.lazy_dataclass import dataclass

from .base import Cost, Operation

#: The type of a host operation with several results; only `Item`s read it.
SEVERAL = np.dtype("V")


@dataclass(frozen=True)
class Input:
    """The place of array number `index` in a call's arguments."""

    index: int


class HostCall(Operation, eq=False):
    """A call that Python makes on real arrays. Its result types were found at capture, by NumPy."""

    function: Callable[..., Any]
    args: tuple[Any, ...]  # the arguments, an `Input` for each array among them, also inside lists, tuples and dicts
    options: Mapping[str, Any]
    types: tuple[ArrayType, ...]
    code: str  # of the closed enum of reasons: "no_loop_body", "dtype", "data_dependent", ...
    reason: Message
    label: str = ""
    effects: bool = False  # it has to run even when nobody reads its result
    may_raise: ClassVar[bool] = True  # also when its result is not of the trace's type
    flops_per_element: ClassVar[float] = 0
    _name: str = field(init=False, repr=False, default="")
    by_data: tuple[str, ...] = ()  # symbols of the lengths in `types` that the data decide

    def __post_init__(self) -> None:
        object.__setattr__(self, "_name", "".join(w[:1].upper() + w[1:] for w in (self.label or self.word).split("_")))

    @property
    def name(self) -> str:
        """The contract's, or the function's name in CamelCase: argpartition -> Argpartition."""
        return self._name

    @property
    def word(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def has_effects(self) -> bool:  # type: ignore[override]
        return self.effects

    def numpy(self, *arrays: Any) -> Any:
        args = filled(self.args, arrays)
        result = self.function(*args, **filled(dict(self.options), arrays))
        if len(self.types) == 1:
            return result
        return tuple(result)

    def found(self, value: Any) -> list[ArrayType]:
        """What a result of it is."""
        return [ArrayType(x.shape, x.dtype) for x in (value if len(self.types) != 1 else (value,))]

    def lengths(self, found: Sequence[ArrayType]) -> dict[str, int]:
        """What the data have decided."""
        pairs = [pair for type, own in zip(self.types, found, strict=True) for pair in zip(type.shape, own.shape, strict=True)]
        return {name: n for extent, n in pairs if (name := symbol_of(extent)) in self.by_data and name is not None}

    def another(self, found: Sequence[ArrayType]) -> Exception:
        """What says that the data have decided on lengths that the recording is not for."""
        pairs = list(zip(self.types, found, strict=True))
        type, own = next((pair for pair in pairs if tuple(map(int, pair[0].shape)) != pair[1].shape), pairs[0])
        return self.function.another(type, own)  # type: ignore[attr-defined, no-any-return]

    def result(self, *types: ArrayType) -> ArrayType:
        return self.types[0] if len(self.types) == 1 else ArrayType((), SEVERAL)

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        return self.reason

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, sum(t.nbytes for t in types), sum(t.nbytes for t in self.types))

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        x = np.array([3.0, 1.0, 2.0])
        types = (ArrayType((3,), np.dtype("f8")),)
        yield cls(np.sort, (Input(0),), {}, types, "no_loop_body", Message("stays.no_body", {"name": "sort"})), x

    def __str__(self) -> str:
        return self.name


class Item(Operation):
    """One of the results of a host operation that has several."""

    index: int
    type: ArrayType
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        return arrays[0][self.index]

    def result(self, *types: ArrayType) -> ArrayType:
        assert types[0].dtype == SEVERAL, f"an item of {types[0]}"
        return self.type

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        return Message("stays.item")

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, 0, 0)

    def __str__(self) -> str:
        return f"Item({self.index})"


def filled(template: Any, arrays: Sequence[Any]) -> Any:
    """The template with arrays for its `Input`s."""
    if isinstance(template, Input):
        return arrays[template.index]
    if isinstance(template, CONTAINERS):
        return of_items(partial(filled, arrays=arrays), template)
    if isinstance(template, slice):
        return slice(*(filled(part, arrays) for part in (template.start, template.stop, template.step)))
    return template
