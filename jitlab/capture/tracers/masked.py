"""Selection: `x[mask]` while it is captured. How many elements it has depends on the data, what is done with them often not.

before: x[m] = f(x[m])     after: x = where(m, f(x), x)
before: x[m].mean()        after: sum(where(m, x, 0)) / sum(m)

Arithmetic keeps the whole array and the mask; sums, means and writes through the same mask need no more. Everything else
asks for the elements themselves, and then NumPy selects them (a host operation, reason `data_dependent_shape`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.numpy_calls.host_fallback import host_operation
from jitlab.capture.numpy_calls.numpy_traits import read_item
from jitlab.capture.positions import here
from jitlab.ir import Node, Source, plain, positions
from jitlab.ops.base import Unsupported
from jitlab.ops.leaf_operations import Constant

from .tensor import Lock, Path, Tensor

if TYPE_CHECKING:
    from .arrays import Arrays
    from .tensor import Cell


class Selection(Tensor):
    """The elements of `whole` where `mask` is true, in C order: a 1-d array."""

    __slots__ = ("_arrays", "_made", "_source", "mask", "whole")
    mask: Tensor
    whole: Tensor
    _arrays: Arrays
    _made: Tensor | None
    _source: Source | None

    def __init__(self, capture: Arrays, whole: Tensor, mask: Tensor, source: Source | None) -> None:
        for name, value in {"_arrays": capture, "_made": None, "_source": source, "whole": whole, "mask": mask}.items():
            object.__setattr__(self, name, value)
        self.is_scalar = False

    # ---- what a Tensor has of its cell; asking for it takes the elements out
    @property
    def _cell(self) -> Cell:  # type: ignore[override]
        return self.elements()._cell

    @property
    def _path(self) -> Path:  # type: ignore[override]
        return self.elements()._path

    @property
    def _shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.elements()._shape

    @property
    def _locked(self) -> Lock:  # type: ignore[override]
        return Lock.NONE

    @property
    def capture(self) -> Arrays:
        return self._arrays

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.whole.dtype if self._made is None else self._made.dtype

    @property
    def ndim(self) -> int:
        return 1

    def elements(self) -> Tensor:
        """The elements themselves, taken out by NumPy."""
        if self._made is None:
            source = self._source
            with positions(here if source is None else lambda: source):
                reason = Unsupported("reading_mask", "data_dependent")
                made = host_operation(self._arrays, read_item, (self.whole, self.mask), {}, reason)
            object.__setattr__(self, "_made", made)
        assert self._made is not None
        return self._made

    def take_over(self, other: Tensor) -> bool:
        """`self op= ...` of an array of its own: it holds the result from now on, where that is no more than a selection."""
        if not isinstance(other, Selection) or not other.is_lazy:
            return False
        object.__setattr__(self, "whole", other.whole)
        return True

    @property
    def is_lazy(self) -> bool:
        return self._made is None


def select(capture: Arrays, x: Tensor, index: Any) -> Selection | None:
    """`x[index]` for one mask of x's shape; None for every other subscript."""
    if not isinstance(index, Tensor) or index.dtype != np.dtype(bool) or not index.ndim or x.is_scalar:
        return None
    if isinstance(index, Selection) or isinstance(x, Selection) or plain(index.type.shape) != plain(x.type.shape):
        return None
    mask = index.node()
    if isinstance(mask.op, Constant):
        return None  # the program wrote it down: it is positions
    return Selection(capture, capture.fresh(x.node()), capture.fresh(mask), here())


def selected(capture: Arrays, result: Any, like: Selection) -> Any:
    """What a function of whole arrays gives, of the elements that this selects, in its place; what is no array stays as it
    is."""
    return Selection(capture, result, like.mask, like._source) if isinstance(result, Tensor) else result


def with_whole(operands: Sequence[Any]) -> tuple[list[Any], Selection] | None:
    """Operands of an elementwise function with whole arrays for selections, and the first of these; None when they do not go
    together: other masks, or arrays that are not selected."""
    selections = [x for x in operands if isinstance(x, Selection)]
    for x in operands:
        if isinstance(x, Selection):
            if not x.is_lazy or not same(x.mask.node(), selections[0].mask.node()):
                return None
        elif isinstance(x, Tensor) and x.ndim:
            return None
        elif isinstance(x, (np.ndarray, list, tuple)):
            return None
    return [x.whole if isinstance(x, Selection) else x for x in operands], selections[0]


def reduced(capture: Arrays, x: Selection, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A reduction of all elements, from the whole array and the mask; None where that does not answer it."""
    axis = args[0] if args else kwargs.get("axis")
    if not x.is_lazy or len(args) > 1 or set(kwargs) - {"axis"} or axis not in (None, 0, -1) or isinstance(axis, bool):
        return None
    whole, mask = x.whole, x.mask
    if name == "sum":
        return np.sum(np.where(mask, whole, whole.dtype.type(0)))
    if name == "prod":
        return np.prod(np.where(mask, whole, whole.dtype.type(1)))
    if name in ("any", "all"):
        passed = np.not_equal(whole, whole.dtype.type(0))
        return np.any(np.logical_and(mask, passed)) if name == "any" else np.all(np.logical_or(np.logical_not(mask), passed))
    if name == "mean" and whole.dtype.kind in "iufb" and whole.dtype != np.dtype(np.float16):
        dtype = whole.dtype if whole.dtype.kind == "f" else np.dtype(np.float64)
        return np.divide(np.sum(np.where(mask, whole.astype(dtype), dtype.type(0))), np.sum(mask).astype(dtype))
    return None


#: Functions that are such reductions.
REDUCTIONS: dict[Any, str] = {np.sum: "sum", np.prod: "prod", np.any: "any", np.all: "all", np.mean: "mean"}


def written_whole(x: Tensor, index: Any, value: Selection) -> Any:
    """What x is after `x[mask] = selection` through the mask it was selected by; None: through another."""
    if not value.is_lazy or not isinstance(index, Tensor) or plain(index.type.shape) != plain(x.type.shape):
        return None
    if isinstance(index, Selection) or not same(index.node(), value.mask.node()):
        return None
    whole = value.whole if value.whole.dtype == x.dtype else value.whole.astype(x.dtype)
    return np.where(value.mask, whole, x)


def same(a: Node, b: Node, depth: int = 12) -> bool:
    """Do two nodes certainly have the same value: the same operation of the same values?"""
    if a is b:
        return True
    if depth == 0 or type(a.op) is not type(b.op) or a.op != b.op or len(a.inputs) != len(b.inputs) or not a.inputs:
        return bool(a.op == b.op and not a.inputs and not b.inputs and not a.op.is_parameter)
    return all(same(x, y, depth - 1) for x, y in zip(a.inputs, b.inputs, strict=True))
