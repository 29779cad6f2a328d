"""A program of the table: a function as somebody wrote it, and what it is called with at three sizes."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SIZES = ("small", "medium", "large")


@dataclass(frozen=True)
class Given:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def given(*args: Any, **kwargs: Any) -> Given:
    return Given(args, kwargs)


@dataclass(frozen=True)
class Program:
    """`function` is plain Python; `made(n, draw)` makes its arguments with a generator, n being what it has at a size."""

    function: Callable[..., Any]
    numbers: tuple[int, int, int]  # n at each of SIZES
    made: Callable[[int, np.random.Generator], Given]

    @property
    def name(self) -> str:
        return self.function.__name__

    def arguments(self, size: str) -> Given:
        """The same at each call, and shared with no other."""
        draw = np.random.default_rng(zlib.crc32(self.name.encode()))
        return self.made(self.numbers[SIZES.index(size)], draw)
