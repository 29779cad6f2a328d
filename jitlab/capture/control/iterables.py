"""What a `for` can count without running: ranges, arrays, and enumerate, zip and reversed of those."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.symbolic import SymbolicRange
from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import Moving, NotRolled, Symbolic, poly, same_extent
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
    """enumerate, zip or reversed of what can be counted: Python's own iterator, too."""

    def __init__(self, parts: Sequence[Any], again: Callable[[], Iterator[Any]], at: Callable[..., Any]) -> None:
        self.parts, self.again, self.element = parts, again, at
        self.iterator: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.iterator is None:
            self.iterator = self.again()
        return next(self.iterator)


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
    if isinstance(x, Counting) and x.iterator is None:
        parts = [iteration(capture, part) for part in x.parts]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts) or any(part.count is None for part in found):
            return None
        counts = [part.count for part in found if part.count is not None]
        if any(isinstance(n, Moving) for n in counts) and not all(same_extent(counts[0], n) for n in counts):
            return None
        count = counts[0] if all(isinstance(n, Moving) for n in counts) else min(counts, key=int)
        return Iteration(
            count, lambda number: x.element(capture.integer(number), count, *(part.at(number) for part in found)),
            is_array=any(part.is_array for part in found),
        )  # fmt: skip
    return None


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


def call_iterable(capture: Capture, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """enumerate, zip and reversed of what can be counted; NotImplemented for everything else."""
    if function is enumerate and 1 <= len(args) <= 2 and _is_countable(args[0]) and set(kwargs) <= {"start"}:
        start = kwargs.get("start", args[1] if len(args) == 2 else 0)
        return Counting(args[:1], lambda: enumerate(iter(args[0]), start), lambda number, count, item: (start + number, item))
    if function is zip and args and all(map(_is_countable, args)) and set(kwargs) <= {"strict"}:
        return Counting(args, lambda: zip(*args, **kwargs), lambda number, count, *items: items)  # noqa: B905
    if function is reversed and len(args) == 1 and isinstance(args[0], Tensor) and args[0].ndim:
        x = args[0]
        return Counting((x[::-1],), lambda: iter(x[::-1]), lambda number, count, item: item)
    return NotImplemented


__all__ = ["Counted", "Counting", "Iteration", "TracedRange", "call_iterable", "counted", "iteration"]
