"""The sum of several arrays as one operation: what flows back to a value from each of its uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.ops.base import Cost, Elementwise
from jitlab.ops.emitter import Emitter


class AddN(Elementwise):
    """a + b + c + ..., from left to right; all of one shape and dtype."""

    numpy_word: ClassVar[str] = "+"

    def numpy(self, *arrays: Any) -> Any:
        return reduce(np.add, arrays)

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0]

    def body(self, e: Emitter, *xs: Any) -> Any:
        return reduce(e.add, xs)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [g] * len(inputs)

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(out.count * (len(types) - 1), sum(t.nbytes for t in types), out.nbytes)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        x = np.linspace(-2.0, 2.0, 6)
        yield cls(), x, x[::-1].copy()
        yield cls(), x, x * x, 1 / (x + 5)
        yield cls(), np.arange(4), np.arange(4), np.arange(4)
