"""Discrete Fourier transforms: NumPy's own one-dimensional ones as kernels; all others are made of those.

Gradients: a transform is linear, and its adjoint is the transform of the other direction that is not scaled where it was, and
the other way round. `rfft` drops half of a Hermitian spectrum and `irfft` adds it again: every entry but the first, and the
middle one of an even length, stands for two, which is where the weights 1/2 and 2 come from.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from jitlab.ir import ArrayType, Extent, Node, at_least, same_extent
from jitlab.ops.base import Cost, Unsupported
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.elementwise.comparison import Greater
from jitlab.ops.layout import concatenation
from jitlab.ops.layout.creation import Range
from jitlab.ops.layout.views import expand_dims
from jitlab.ops.library_operations import Copying, InC, Library, Lying, UfuncLoop, in_double
from jitlab.ops.numpy_api.arguments import as_axis, as_count, node, operand, refuse
from jitlab.ops.registry import rule

from .linear_systems import numpys_error

INT64 = np.dtype("i8")
Norm = Literal["backward", "ortho", "forward"]
#: The scaling of the other direction.
ADJOINT: dict[Norm, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
ROWS = np.array([[1.0, -2.0, 0.5, 3.0, 0.25], [0.0, 1.5, -1.0, 2.0, 4.0]])


class Transform(Library, family=True):
    """Of each row along `axis` (not negative); `norm`, a field of each, says which direction is divided by the length."""

    library: ClassVar[str] = "FFT"
    axis: int

    def loop(
        self, name: str, signature: str, norm: Norm, outs: Sequence[Lying], ins: Sequence[Lying], odd_name: str = ""
    ) -> InC | None:
        """One loop of NumPy's; `norm` as of the forward direction. Where nothing is scaled, NumPy multiplies by an int, which
        takes the loop of double precision; half precision it casts first."""
        (source, extents), (to, made) = ins[0], outs[0]
        if any(dtype.char not in "dfDF" for dtype in (source, to)):
            return None
        places = ("in", 0), ("factor", 0), ("out", 0)
        is_cast = norm == "backward" and source.char in "fF"
        if is_cast:
            places = ("temp", 0), ("factor", 0), ("temp", 1)
        loop = UfuncLoop("numpy.fft._pocketfft_umath", name, signature, places, axis=self.axis, norm=norm, odd_name=odd_name)
        if not is_cast:
            return InC((loop,))
        temps = (in_double(source), extents), (in_double(to), made)
        return InC((Copying(("temp", 0), ("in", 0)), loop, Copying(("out", 0), ("temp", 1))), temps, along=self.axis)

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        longest = max(out.size, types[0].size, key=int)
        n = max(int(types[0].shape[self.axis]), int(out.shape[self.axis]), 2)
        return Cost(int(2.5 * int(longest) * math.log2(n)), types[0].nbytes, out.nbytes)


class Fft(Transform):
    """The transform of complex rows, or with `inverse` the inverse transform."""

    inverse: bool = False
    norm: Norm = "backward"
    tf_name: ClassVar[str | None] = "FFT"

    @property
    def name(self) -> str:
        return "IFFT" if self.inverse else "FFT"

    @property
    def word(self) -> str:
        return "ifft" if self.inverse else "fft"

    def numpy(self, x: Any) -> Any:
        return (np.fft.ifft if self.inverse else np.fft.fft)(x, axis=self.axis, norm=self.norm)

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC | None:
        if self.inverse:
            return self.loop("ifft", "(m),()->(n)", ADJOINT[self.norm], outs, ins)
        return self.loop("fft", "(n),()->(m)", self.norm, outs, ins)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (types[0].with_dtype(_dtype_of("fft", types[0].dtype)),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [apply(Fft(self.axis, not self.inverse, ADJOINT[self.norm]), g)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(1), ROWS + 0.5j
        yield cls(0, inverse=True), ROWS - 1j * ROWS[:, ::-1]
        yield cls(1, inverse=True, norm="ortho"), (ROWS + 0.5j).astype("c8")
        yield cls(1, norm="forward"), (ROWS + 2j)[:, :1]


class Rfft(Transform):
    """The first n // 2 + 1 entries of the transform of real rows of length n."""

    norm: Norm = "backward"
    tf_name: ClassVar[str | None] = "RFFT"

    def numpy(self, x: Any) -> Any:
        return np.fft.rfft(x, axis=self.axis, norm=self.norm)

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC | None:
        return self.loop("rfft_n_even", "(n),()->(m)", self.norm, outs, ins, "rfft_n_odd")

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        shape = (*x.shape[: self.axis], x.shape[self.axis] // 2 + 1, *x.shape[self.axis + 1 :])
        return (ArrayType(shape, _dtype_of("rfft", x.dtype)),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        n = inputs[0].shape[self.axis]
        return [apply(Irfft(self.axis, int(n) % 2 == 1, ADJOINT[self.norm]), _weighted(g, self.axis, n, 0.5))]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(1), ROWS
        yield cls(0, "ortho"), ROWS
        yield cls(1, "forward"), ROWS[:, :4].astype("f4")
        yield cls(1), ROWS[:, :1].copy()


class Irfft(Transform):
    """The real rows, of length 2 * (m - 1) or with `odd` 2 * m - 1, of which the m entries are the Hermitian spectrum."""

    odd: bool = False
    norm: Norm = "backward"
    tf_name: ClassVar[str | None] = "IRFFT"

    def _length(self, m: int) -> int:
        return m * 2 - 1 if self.odd else m * 2 - 2

    def numpy(self, x: Any) -> Any:
        return np.fft.irfft(x, self._length(x.shape[self.axis]), self.axis, self.norm)

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC | None:
        return self.loop("irfft", "(m),()->(n)", ADJOINT[self.norm], outs, ins)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        shape = (*x.shape[: self.axis], self._length(x.shape[self.axis]), *x.shape[self.axis + 1 :])
        return (ArrayType(shape, _dtype_of("irfft", x.dtype)),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [_weighted(apply(Rfft(self.axis, ADJOINT[self.norm]), g), self.axis, out.shape[self.axis], 2)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(1), ROWS + 0.5j
        yield cls(1, odd=True), ROWS - 1j * ROWS[:, ::-1]
        yield cls(0, norm="ortho"), ROWS + 1j
        yield cls(1, norm="forward"), (ROWS + 0.5j).astype("c8")


def _weighted(x: Node, axis: int, n: int, weight: float) -> Node:
    """Half a spectrum of rows of length n, each entry that stands for two times `weight`."""
    m = x.shape[axis]
    zero, one = as_node(0), as_node(1)
    k = apply(Range((m,)), zero, one)
    twice = elementwise(Greater(), as_node(n), ar.multiply(k, 2))
    first = ar.equal(k, 0)
    real = ar.real_dtype(x.dtype)
    simple, double = constant(1, real), constant(weight, real)
    weights = ar.select(first, simple, ar.select(twice, double, simple))
    return ar.multiply(x, expand_dims(weights, tuple(a for a in range(x.ndim) if a != axis)))


@cache
def _dtype_of(name: str, dtype: np.dtype) -> np.dtype:
    result: np.dtype = getattr(np.fft, name)(np.ones(2, dtype)).dtype
    return result


# rules


@rule(np.fft.fft)
def fft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Node:
    refuse(out=out)
    return _transformed(node(a), n, axis, norm, inverse=False)


@rule(np.fft.ifft)
def ifft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Node:
    refuse(out=out)
    return _transformed(node(a), n, axis, norm, inverse=True)


def _transformed(x: Node, n: Any, axis: Any, norm: Any, inverse: bool) -> Node:
    function = np.fft.ifft if inverse else np.fft.fft
    x, along = _cut(function, x, n, axis, norm)
    if x.dtype != np.dtype("f2"):  # NumPy scales those in half precision
        x = cast(x, np.result_type(x.dtype, np.complex64))
    return apply(Fft(along, inverse, norm or "backward"), x)


@rule(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Node:
    refuse(out=out)
    x = node(a)
    if x.dtype.kind == "c":
        numpys_error(np.fft.rfft, x.type, n=n, axis=axis, norm=norm)
    x, along = _cut(np.fft.rfft, x, n, axis, norm)
    return apply(Rfft(along, norm or "backward"), x)


@rule(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Node:
    refuse(out=out)
    x = node(a)
    odd, entries = False, None
    if n is not None:
        n = as_count(n)
        entries, odd = n // 2 + 1, int(n) % 2 == 1
    elif x.ndim and -x.ndim <= axis < x.ndim and not at_least(x.shape[axis], 2):
        numpys_error(np.fft.irfft, x.type, n=n, axis=axis, norm=norm)
    x, along = _cut(np.fft.irfft, x, entries, axis, norm, n)
    if x.dtype != np.dtype("f2"):
        x = cast(x, np.result_type(x.dtype, np.complex64))
    return apply(Irfft(along, odd, norm or "backward"), x)


def _cut(function: Any, x: Node, n: Any, axis: Any, norm: Any, asked: Any = None) -> tuple[Node, int]:
    """x cut, or filled up with zeros, to length n along the axis, in a dtype that is transformed; and the axis."""
    if isinstance(axis, Node) or isinstance(norm, Node):
        raise Unsupported("traced_axis", "data_dependent")
    n = None if n is None else as_count(n)
    known = norm is None or norm in ADJOINT
    if not known or not x.ndim or not -x.ndim <= operator.index(axis) < x.ndim or (n is not None and not at_least(n, 1)):
        numpys_error(function, x.type, n=asked if asked is not None else n, axis=axis, norm=norm)
    if asked is not None and not at_least(asked, 1):
        numpys_error(function, x.type, n=asked, axis=axis, norm=norm)
    axis = as_axis(axis, x.ndim)
    length = x.shape[axis]
    if n is None and not at_least(length, 1):
        numpys_error(function, x.type, n=n, axis=axis, norm=norm)
    if x.dtype.kind in "biu":
        x = cast(x, np.dtype("f8"))
    if n is not None and not same_extent(n, length):
        if at_least(length - n, 1):
            return apply(concatenation.part_view(x.type, axis, 0, n), x), axis
        x = concatenation.pad(x, [(0, n - length if a == axis else 0) for a in range(x.ndim)], [(0, 0)] * x.ndim)
    return x, axis


@rule(np.fft.fftfreq)
def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Node:
    n = _whole(n)
    upper, lower = (n - 1) // 2 + 1, n // 2
    parts = [_numbers(0, upper), _numbers(-lower, lower)]
    return ar.multiply(concatenation.concatenate(parts, 0), _step(n, d))


@rule(np.fft.rfftfreq)
def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Node:
    n = _whole(n)
    return ar.multiply(_numbers(0, n // 2 + 1), _step(n, d))


def _whole(n: Any) -> int:
    if isinstance(n, Node):
        raise Unsupported("traced_length", "data_dependent")
    if not isinstance(n, (int, np.integer, Extent)):
        raise ValueError("n should be an integer")
    return as_count(n)


def _numbers(start: int, count: int) -> Node:
    return apply(Range((count,)), as_node(start, INT64), as_node(start + 1, INT64))


def _step(n: int, d: Any) -> Any:
    return ar.divide(1.0, ar.multiply(as_node(n) if isinstance(n, Extent) else n, operand(d)))
