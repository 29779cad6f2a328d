"""What a value is: dtype and shape, and where in the user's program it came from."""

from __future__ import annotations

import math
import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from jitlab.support.lazy_dataclass import dataclass

from .extents import bare, plain, poly

SHORT_NAMES = {"float": "f", "int": "i", "uint": "u", "complex": "c", "bool": "bool"}

#: Dtypes that are traced: exact ndarrays of these, in native byte order.
TRACED_DTYPES = frozenset(
    np.dtype(name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
    )
)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Shape (a tuple of ints, `Extent`s where they come from an argument's shape) and dtype of a value."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements; an Extent where the shape has symbols."""
        return math.prod(self.shape)

    @property
    def count(self) -> int:
        """Number of elements today, a plain int: quick."""
        return math.prod(map(int, self.shape))

    @property
    def nbytes(self) -> int:
        return self.count * self.dtype.itemsize

    @property
    def told_bytes(self) -> int:
        """Bytes today, for people: they decide nothing."""
        return math.prod(map(bare, self.shape)) * self.dtype.itemsize

    def with_shape(self, shape: tuple[int, ...]) -> ArrayType:
        return ArrayType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: np.dtype) -> ArrayType:
        return ArrayType(self.shape, np.dtype(dtype))

    def __str__(self) -> str:
        """`f32[n0, 3]`: dtype and the polynomial of each extent."""
        name = short_dtype(self.dtype)
        return f"{name}[{', '.join(str(poly(n)) for n in self.shape)}]" if self.shape else name

    def describe(self) -> str:
        """`float32[4096, 3]`: the same with NumPy's dtype name and today's sizes, for messages."""
        return f"{self.dtype}[{', '.join(map(str, plain(self.shape)))}]"


@lru_cache(64)
def short_dtype(dtype: np.dtype) -> str:
    """float64 -> f64, bool -> bool."""
    name = dtype.name
    stem = name.rstrip("0123456789")
    return SHORT_NAMES.get(stem, stem) + name[len(stem) :]


#: File names of notebook cells -> what a user calls them; the notebook layer fills it.
cell_names: dict[str, str] = {}


def display_name(filename: str) -> str:
    """`In [3]` for a cell of a notebook, else the file's name."""
    name = cell_names.get(filename)
    return name if name is not None else os.path.basename(filename) if os.sep in filename else filename


class Source(NamedTuple):
    """A span of the user's program: file (or cell), first and last line (from 1), columns (from 0; -1: unknown)."""

    file: str
    line: int
    column: int = -1
    end_line: int = -1
    end_column: int = -1

    @property
    def place(self) -> str:
        """`In [3], line 4`: for messages."""
        return f"{display_name(self.file)}, line {self.line}"


Sources = frozenset[Source]
NOWHERE: Sources = frozenset()


class Origin(NamedTuple):
    """An operation of a graph as what was made of it remembers it: its name and spans. No graph is kept alive by it."""

    name: str
    sources: Sources


Origins = frozenset[Origin]
UNKNOWN: Origins = frozenset()


def sources_of(origins: Origins) -> Sources:
    """All spans of the user's program that the operations stand for."""
    return frozenset(source for origin in origins for source in origin.sources)
