"""Checks of values inside a cluster: what NumPy refuses when it sees the data is refused at run time, with its exception."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node

from .base import Cost, Operation
from .build_nodes import apply
from .library_operations import Library


class Checked(Library):
    """x where a 0-d bool holds; else the exception that NumPy raises, its message filled with the numbers that follow."""

    error: str  # a class of Python's: "ValueError"
    message: str
    numpy_word: ClassVar[str] = "check"
    may_raise: ClassVar[bool] = True
    flops_per_element: ClassVar[float] = 0

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return types[:1]

    def numpy(self, *arrays: Any) -> Any:
        x, holds, *numbers = arrays
        if not holds:
            raise {"ValueError": ValueError, "IndexError": IndexError}[self.error](self.message.format(*map(int, numbers)))
        return x

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [g, *(None for _ in inputs[1:])]

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, out.nbytes, out.nbytes)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls("ValueError", "no"), np.arange(3.0), np.True_
        yield cls("IndexError", "index {} of {}"), np.arange(4), np.True_, np.int64(3), np.int64(2)


class Check(Operation, eq=False):
    """0 where its 0-d int64 is 0; where it is 1, the program raises."""

    failed: Callable[[], Exception]
    may_raise: ClassVar[bool] = True
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        if arrays[0]:
            raise self.failed()
        return np.int64(0)

    def result(self, *types: ArrayType) -> ArrayType:
        (fails,) = types
        assert fails.shape == () and fails.dtype == np.dtype("i8"), f"a check of {fails}"
        return fails

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, 0, 0)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(ValueError), np.int64(0)

    def __str__(self) -> str:
        return self.name


def checked(x: Node, holds: Node, error: str, message: str, *numbers: Node) -> Node:
    """x, as long as `holds`."""
    return apply(Checked(error, message), x, holds, *numbers)
