"""What a `for` can count without running: ranges, arrays, and enumerate, zip, reversed, products and combinations of those."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.tracers.number import as_known
from jitlab.capture.tracers.symbolic import SymbolicRange
from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import Moving, NotRolled, Symbolic, poly, same_extent
from jitlab.ops.layout.moving_subscripts import define
from jitlab.support.lazy_dataclass import dataclass

from .conditions import python_number

if TYPE_CHECKING:
    from jitlab.capture.state import Capture


class Counted:
    """`range(start, stop, step)` in the head of a `for`: its numbers keep the extents they were computed from."""

    def __init__(self, start: int, stop: int, step: int) -> None:
        self.start, self.stop, self.step = start, stop, int(step)
        self.numbers = range(int(start), int(stop), self.step)

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def count(self) -> int:
        if not self.numbers:
            return 0
        if abs(self.step) == 1:
            return self.stop - self.start if self.step > 0 else self.start - self.stop
        return len(self.numbers)


class TracedRange:
    """`range(start, stop, step)` whose bounds only a run knows. `step` is a number."""

    def __init__(self, capture: Capture, start: Any, stop: Any, step: int) -> None:
        bound = np.iinfo(stop.dtype if isinstance(stop, Tensor) else np.int64)
        self.last = bound.max if step > 0 else bound.min  # no element is beyond it
        if isinstance(stop, Tensor) and stop.dtype.itemsize < 8:
            stop = stop.astype(np.int64)  # what it is compared with are Python's ints, which may be too large for its dtype
        if isinstance(start, Tensor):
            start = python_number(int, start)
        self.capture, self.start, self.stop, self.step = capture, start, stop, int(step)

    def at(self, number: int) -> Any:
        element = self.start + self.capture.integer(number * self.step)
        if isinstance(element, Symbolic):
            self.capture.bounds.assume((poly(self.last) - poly(element.extent)).scale(1 if self.step > 0 else -1))
        return element

    def goes_on(self, element: Any) -> Any:
        """Is this still an element?"""
        return element < self.stop if self.step > 0 else element > self.stop

    def __iter__(self) -> Iterator[Any]:
        raise NotRolled("index_value", "range_of_run")


class Counting:
    """enumerate, zip or reversed of what can be counted: Python's own iterator, too. Without `at` it is that alone."""

    def __init__(self, parts: Sequence[Any], again: Callable[[], Iterator[Any]], at: Callable[..., Any] | None = None) -> None:
        self.parts, self.again, self.element = parts, again, at
        self.iterator: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.iterator is None:
            self.iterator = self.again()
        return next(self.iterator)

    def used_up(self, capture: Capture, wholly: bool) -> None:
        """A rolled loop has gone through it, to its end or not: there are no elements left, or only a run knows which."""
        capture.journal.append((setattr, self, "iterator", self.iterator))
        self.iterator = iter(()) if wholly else _left_over()
        for part in self.parts:
            if isinstance(part, Counting):
                part.used_up(capture, False)


def _left_over() -> Iterator[Any]:
    raise NotReplayable("value", "iterator_left")
    yield


class Combined(Counting):
    """Elements that are made of those of the parts, of numbers which `numbers` says by the number of the iteration."""

    def __init__(
        self, parts: Sequence[Any], again: Callable[[], Iterator[Any]], count: Callable[[Sequence[int]], int],
        numbers: Callable[[Capture, int, Sequence[int]], Sequence[int]], made: Callable[..., Any] = lambda *items: items,
    ) -> None:  # fmt: skip
        super().__init__(parts, again, made)
        self.count, self.numbers = count, numbers


@dataclass(frozen=True)
class Iteration:
    """How often a loop runs (None: only a run knows), and its element by the number of the iteration."""

    count: int | None
    at: Callable[[int], Any]
    test: Callable[[Any], Any] | None = None  # of an element: does the loop go on?
    start: Any = None
    is_array: bool = False  # its elements are parts of a traced array


def iteration(capture: Capture, x: Any) -> Iteration | None:
    """How x can be counted; None for what Python has to iterate over."""
    if isinstance(x, Counted):
        return Iteration(x.count, lambda number: capture.integer(x.start + number * x.step), start=x.start)
    if isinstance(x, range):
        return Iteration(len(x), lambda number: capture.integer(x.start + number * x.step), start=x.start)
    if isinstance(x, SymbolicRange):
        return Iteration(x.count, x.at, start=capture.integer(x.start))
    if isinstance(x, TracedRange):
        return Iteration(None, x.at, x.goes_on, x.start)
    if isinstance(x, Tensor) and x.ndim:
        return Iteration(x.type.shape[0], lambda number: x[capture.integer(number)], is_array=True)
    if isinstance(x, Counting) and x.iterator is None and (at := x.element) is not None:
        parts = [iteration(capture, part) for part in x.parts]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts) or any(part.count is None for part in found):
            return None
        counts = [part.count for part in found if part.count is not None]
        if isinstance(x, Combined):
            return _of_combined(capture, x, at, found, counts)
        if any(isinstance(n, Moving) for n in counts) and not all(same_extent(counts[0], n) for n in counts):
            return None
        count = counts[0] if all(isinstance(n, Moving) for n in counts) else min(counts, key=int)
        return Iteration(
            count, lambda number: at(capture.integer(number), count, *(part.at(number) for part in found)),
            is_array=any(part.is_array for part in found),
        )  # fmt: skip
    return None


def _of_combined(
    capture: Capture, x: Combined, made: Callable[..., Any], parts: Sequence[Iteration], counts: Sequence[int]
) -> Iteration | None:
    """How often, and the element of a number; None where no number is known."""
    if any(isinstance(n, Moving) for n in counts):
        return None
    total = x.count(counts)
    if not total:
        return None

    def element(number: int) -> Any:
        return made(*(parts[min(k, len(parts) - 1)].at(n) for k, n in enumerate(x.numbers(capture, number, counts))))

    return Iteration(total, element, is_array=any(part.is_array for part in parts))


def _is_countable(x: Any) -> bool:
    return isinstance(x, (Counted, range, SymbolicRange, Counting)) or (isinstance(x, Tensor) and x.ndim > 0)


def counted(capture: Capture, args: Sequence[Any]) -> Counted | TracedRange | None:
    """The range in the head of a `for`: of ints, or of traced integers; None where that is somebody else's."""
    if not 1 <= len(args) <= 3:
        return None
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) == 3 else 1
    if not isinstance(step, int) or int(step) == 0:
        return None
    if all(isinstance(x, int) for x in (start, stop)):
        return Counted(start, stop, step)
    if any(isinstance(x, Tensor) for x in (start, stop)) and not capture.bounds.depth:
        for x in (start, stop):
            if not isinstance(x, (int, Symbolic)) and not (isinstance(x, Tensor) and not x.ndim and x.dtype.kind in "iu"):
                return None
        return TracedRange(capture, start, stop, step)
    return None


def _as_extent(x: Any) -> int:
    extent: int = x.extent if isinstance(x, Symbolic) else define(x.node()) if isinstance(x, Tensor) else x
    return extent


def of_product(capture: Capture, number: int, counts: Sequence[int]) -> Sequence[int]:
    """Of the last part the number counts up first."""
    rest, found = capture.integer(number), []
    for count in reversed(counts[1:]):
        rest, low = divmod(rest, int(count))
        found.append(_as_extent(low))
    return [_as_extent(rest), *reversed(found)] if counts else []


#: Elements of a table of numbers.
MOST_COMBINATIONS = 1 << 16


def _of_table(choose: Any, length: int, capture: Capture, number: int, counts: Sequence[int]) -> Sequence[int]:
    """Numbers that Python has counted before."""
    (count,) = counts
    chosen = choose(range(int(count)), length)
    table = np.fromiter(itertools.chain.from_iterable(chosen), np.int64).reshape(-1, length)
    return [
        define(capture.constant_tensor(table[:, k].copy())[capture.integer(number)].node(), 0, count - 1) for k in range(length)
    ]


def _size_of_table(choose: Any, length: int, counts: Sequence[int]) -> int:
    """How many there are; none for too many."""
    n = int(counts[0])
    among = n + length - 1 if choose is itertools.combinations_with_replacement else n
    size = math.perm(among, length) if choose is itertools.permutations else math.comb(among, length) if among >= 0 else 0
    return size if size * length <= MOST_COMBINATIONS else 0


def _call_product(capture: Capture, *parts: Any, repeat: Any = 1) -> Any:
    is_known = all(_is_countable(x) and not isinstance(x, Counting) for x in parts)
    if not is_known or type(repeat) is not int or repeat < 0:
        return NotImplemented
    parts *= repeat
    return Combined(parts, lambda: itertools.product(*parts), math.prod, of_product) if parts else NotImplemented


def _call_choice(choose: Any, capture: Capture, part: Any, length: Any) -> Any:
    if not _is_countable(part) or isinstance(part, Counting) or type(length) is not int or length < 1:
        return NotImplemented
    return Combined(
        [part], lambda: choose(part, length), partial(_size_of_table, choose, length), partial(_of_table, choose, length)
    )


def _call_ndindex(capture: Capture, *shape: Any) -> Any:
    shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    shape = tuple(map(as_known, shape))
    if not shape or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape):
        return NotImplemented
    parts = [Counted(0, n, 1) for n in shape]
    return Combined(parts, lambda: itertools.product(*parts), math.prod, of_product)


def _call_ndenumerate(capture: Capture, x: Any) -> Any:
    if not isinstance(x, Tensor) or not x.ndim:
        return NotImplemented
    parts = [Counted(0, n, 1) for n in x.type.shape]
    return Combined(
        parts, lambda: ((at, x[at]) for at in itertools.product(*parts)), math.prod, of_product, lambda *at: (at, x[at])
    )


def _call_chain(capture: Capture, *parts: Any) -> Any:
    if not all(_is_countable(x) or type(x) in (list, tuple) for x in parts):
        return NotImplemented
    return Counting(parts, lambda: itertools.chain.from_iterable(map(capture.iterate, parts)))


def _call_accumulate(capture: Capture, x: Any) -> Any:
    is_known = _is_countable(x) or type(x) in (list, tuple)
    return Counting((x,), lambda: itertools.accumulate(capture.iterate(x))) if is_known else NotImplemented


_COMBINING: dict[Any, Callable[..., Any]] = {
    itertools.product: _call_product, itertools.chain: _call_chain, itertools.accumulate: _call_accumulate,
    np.ndindex: _call_ndindex, np.ndenumerate: _call_ndenumerate,
    **{
        choose: partial(_call_choice, choose)
        for choose in (itertools.combinations, itertools.permutations, itertools.combinations_with_replacement)
    },
}  # fmt: skip


def call_iterable(capture: Capture, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Iterators over what can be counted; NotImplemented for everything else."""
    if function in _COMBINING:
        try:
            return _COMBINING[function](capture, *args, **kwargs)
        except TypeError:  # arguments that it does not know
            return NotImplemented
    if function is enumerate and 1 <= len(args) <= 2 and _is_countable(args[0]) and set(kwargs) <= {"start"}:
        start = kwargs.get("start", args[1] if len(args) == 2 else 0)
        return Counting(args[:1], lambda: enumerate(iter(args[0]), start), lambda number, count, item: (start + number, item))
    if function is zip and args and all(map(_is_countable, args)) and set(kwargs) <= {"strict"}:
        return Counting(args, lambda: zip(*args, **kwargs), lambda number, count, *items: items)  # noqa: B905
    if function is reversed and len(args) == 1 and isinstance(args[0], Tensor) and args[0].ndim:
        x = args[0]
        return Counting((x[::-1],), lambda: iter(x[::-1]), lambda number, count, item: item)
    return NotImplemented


#: What `call_iterable` knows.
ITERATORS = frozenset({enumerate, zip, reversed, *_COMBINING})

__all__ = [
    "ITERATORS", "Combined", "Counted", "Counting", "Iteration", "TracedRange", "call_iterable", "counted", "iteration",
    "of_product",
]  # fmt: skip
