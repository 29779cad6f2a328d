"""A list that the program makes and appends to in loops, while it looks into it: what a loop appended are rows of an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.control.conditions import python_number
from jitlab.capture.control.exactness import watch_function
from jitlab.capture.control.rolling import check_sum, reduced
from jitlab.capture.guards.leaves import LeafType, is_leaf, is_same_type, leaf_type
from jitlab.capture.numpy_calls.functions import call_function
from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.ir import Node
from jitlab.ops.build_nodes import apply, cast, constant, elementwise
from jitlab.ops.elementwise.arithmetic import Abs, Add
from jitlab.ops.elementwise.comparison import Equal, GreaterEqual
from jitlab.ops.layout.views import Reshape
from jitlab.support.lazy_dataclass import dataclass

from .tensor import Cell, Tensor

if TYPE_CHECKING:
    from jitlab.capture.state import Capture

#: Functions that take a list for the array of its items.
OF_ITEMS = frozenset({
    np.array, np.asarray, np.stack, np.vstack, np.hstack, np.column_stack, np.concatenate, np.mean, np.sum, np.std, np.var,
    np.median, np.max, np.min, np.argmax, np.argmin, np.prod, np.cumsum, np.cumprod, np.diff, np.average, np.percentile,
    np.quantile, np.abs, np.sqrt, np.log, np.exp, np.all, np.any, np.sort, np.argsort, np.corrcoef, np.interp, np.allclose,
})  # fmt: skip
#: The dtypes of which Python's `sum` is known.
_SUMMED = frozenset(map(np.dtype, ("?", "i8", "f8", "c16")))


@dataclass(eq=False)
class Rows:
    """What a loop has appended: of each of `values` the first `count`, all of them where it `is_full`."""

    values: list[Cell]  # one for each value that a turn appends
    kind: LeafType
    count: Cell
    is_full: bool

    def taken(self) -> Tensor:
        """The array of them."""
        found = Tensor(self.values[0])
        if len(self.values) > 1:
            capture, shape = found.capture, found.type.shape
            found = capture.perform(call_function, np.stack, ([*map(Tensor, self.values)],), {"axis": 1})
            found = found.reshape((shape[0] * len(self.values), *shape[1:]))
        return found if self.is_full else found[: self.number()]

    def number(self) -> Any:
        """How many they are."""
        return self.turns() * len(self.values)

    def turns(self) -> Any:
        """How often something was appended."""
        capture = self.count.capture
        if self.is_full:
            return capture.integer(self.values[0].node.shape[0])
        return capture.python_number(_own(self.count.read(())))

    def end(self, key: int) -> Tensor:
        """The first or the last one."""
        found: Tensor = Tensor(self.values[key])[0 if key == 0 else self.turns() - 1]
        return found


class FilledList:
    """Such a list where the program looks into it."""

    __slots__ = ("capture", "list")

    def __init__(self, capture: Capture, items: list[Any]) -> None:
        self.capture, self.list = capture, items

    def refusal(self) -> Exception:
        return NotReplayable("effect", "reads_given", owner="a list")

    def parts(self) -> list[Any]:
        """What it holds: values, and rows of which the values are of one type with them."""
        found = [*self.list, *self.capture.rows_of(self.list)]
        kinds = [part.kind if isinstance(part, Rows) else leaf_type(part) if is_leaf(part) else None for part in found]
        first = kinds[0]
        if self.capture.blocks or first is None or first.among:
            raise self.refusal()
        if not all(kind is not None and is_same_type(first, kind, kinds=True) and kind.type == first.type for kind in kinds):
            raise self.refusal()
        return found

    @property
    def is_plain(self) -> bool:
        """Is all that it holds in it?"""
        return not self.capture.rows_of(self.list)

    def kind(self) -> LeafType:
        part = self.parts()[0]
        return part.kind if isinstance(part, Rows) else leaf_type(part)

    def __len__(self) -> int:
        raise self.refusal()

    def length(self) -> Any:
        found = self.capture.rows_of(self.list)
        if None in found or self.capture.blocks:
            raise self.refusal()
        numbers = [part.number() if isinstance(part, Rows) else 1 for part in found]
        return sum(numbers[1:], numbers[0]) + len(self.list)

    def items(self) -> Tensor:
        """The array of its items."""
        parts, arrays = self.parts(), []
        for n, part in enumerate(parts):
            if isinstance(part, Rows):
                arrays.append(part.taken())
            elif n and not isinstance(parts[n - 1], Rows):
                continue
            else:
                run = [x for x in parts[n:]]
                end = next((k for k, x in enumerate(run) if isinstance(x, Rows)), len(run))
                arrays.append(self.capture.perform(call_function, np.array, (run[:end],), {}))
        if all(isinstance(part, Rows) and not part.is_full for part in parts):
            self._check_any([part.count.read(()) for part in parts])
        if len(arrays) == 1:
            return self.capture.fresh(arrays[0].node())
        made: Tensor = self.capture.perform(call_function, np.concatenate, (arrays,), {})
        return made

    def _check_any(self, counts: Sequence[Node]) -> None:
        """NumPy makes another array of an empty list: that is for Python."""
        total = counts[0]
        for count in counts[1:]:
            total = elementwise(Add(), total, count)
        watch_function(self.capture, "empty_list", elementwise(Equal(), total, constant(np.int64(0))))

    def __getitem__(self, key: Any) -> Any:
        if self.is_plain:
            return self.capture.load_item(self.list, key)
        parts, kind = self.parts(), self.kind()
        if isinstance(key, slice):
            if any(isinstance(part, Rows) and not part.is_full for part in parts):
                raise self.refusal()
            return self.items()[key]
        if kind.type.shape:  # it is the array itself that Python gives
            raise self.refusal()
        (part,) = parts if len(parts) == 1 else (None,)
        if isinstance(part, Rows) and not part.is_full:
            if key not in (0, -1):
                raise self.refusal()
            self._check_any([part.count.read(())])
            return self.number(part.end(key), kind)
        if any(isinstance(part, Rows) and not part.is_full for part in parts):
            raise self.refusal()
        items = self.items()
        if not -int(items.type.shape[0]) <= key < int(items.type.shape[0]):
            raise self.refusal()
        return self.number(items[key], kind)

    def number(self, x: Tensor, kind: LeafType) -> Any:
        """An item, as the program knows it."""
        if kind.weak is complex:
            return self.capture.python_number(_own(x.node()))
        return self.capture.fresh(_own(x.node()), is_scalar=True) if kind.weak is None else python_number(kind.weak, x)

    def sum(self) -> Any:
        """`sum` of numbers: one after the other, from the first one on."""
        kind, items = self.kind(), self.items()
        if kind.type.shape or kind.dtype not in _SUMMED:
            raise self.refusal()
        weak = int if kind.weak is bool else kind.weak
        if weak is int and kind.weak is not bool:
            sizes = self.capture.fresh(elementwise(Abs(), cast(items.node(), np.float64)))
            sizes = self.capture.perform(call_function, np.sum, (sizes,), {})
            watch_function(self.capture, "large_int", elementwise(GreaterEqual(), sizes.node(), 2.0**62))
        check_sum(self.number(items[0], kind))
        added = self.capture.perform(call_function, np.cumsum, (items,), {})[-1]
        zero = kind.dtype.type(0) if kind.dtype.kind in "fc" else np.int64(0)
        return self.number(added + zero, LeafType(added.type, weak, True))

    def extreme(self, function: Any) -> Any:
        kind = self.kind()
        if kind.type.shape or kind.dtype.kind not in "if":
            raise self.refusal()
        found = reduced(self.capture, function, self.items(), False, None, _itself)
        if not isinstance(found, Tensor):
            raise self.refusal()
        return self.number(found, kind)


def given_to(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The result of a call with lists of the program's own, or (NotImplemented) what else it is given for them."""
    (x, *more) = (arg for arg in args if isinstance(arg, FilledList))
    is_known = _is_hashable(function) and function in OF_ITEMS
    if all(arg.is_plain for arg in (x, *more)):
        for arg in (x, *more):
            if not (is_known or function in (len, sum, min, max)):
                x.capture.is_given(arg.list)
        return NotImplemented, tuple(arg.list if isinstance(arg, FilledList) else arg for arg in args)
    if function is len:
        return x.length(), ()
    if function is sum:
        return x.sum(), ()
    if function is min or function is max:
        return x.extreme(function), ()
    is_cast = function in (np.array, np.asarray) and (len(args) > 1 or not kwargs.keys() <= {"dtype"})
    if not is_known or is_cast or not _holds(kwargs.get("dtype"), x.kind().dtype):
        raise x.refusal()
    return NotImplemented, tuple(arg.items() if isinstance(arg, FilledList) else arg for arg in args)


def _holds(wanted: Any, dtype: np.dtype[Any]) -> bool:
    """Are numbers of a dtype converted to another one as an array of them is?"""
    try:
        kind = dtype.kind if wanted is None else np.dtype(wanted).kind
    except TypeError:
        return False
    return kind == dtype.kind == "f" or kind in "fc" and dtype.kind in "biuf" or kind == dtype.kind == "c" or wanted is None


def _is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _itself(x: Any) -> Any:
    return x


def _own(node: Node) -> Node:
    """A node that nobody else looks at."""
    return apply(Reshape(()), node)


__all__ = ["FilledList", "Rows", "given_to"]
