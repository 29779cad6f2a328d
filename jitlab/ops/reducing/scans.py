"""Scans: running sums, products, extremes along an axis, in NumPy's order, one element after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.messages import Message
from jitlab.ops.base import Elementwise, Operation, Unsupported
from jitlab.ops.build_nodes import apply, cast, constant
from jitlab.ops.elementwise.arithmetic import Maximum, Minimum, conj, divide, either, equal, is_nan, multiply
from jitlab.ops.elementwise.arithmetic import select as choose
from jitlab.ops.emitter import Emitter
from jitlab.ops.layout.creation import numbers_along, zeros
from jitlab.ops.layout.indexing import ScatterAdd, positions_along
from jitlab.ops.numpy_api.arguments import along, as_axis, as_dtype, node, refuse
from jitlab.ops.registry import rule

from .axis_reductions import highest, lowest

BOOL, INT64 = np.dtype(bool), np.dtype("i8")
MATRIX = np.array([[0.5, -1.5, 2.0, -0.25], [3.0, -0.75, 1.0, 1.25], [-0.0, 2.0, -2.0, 0.5]])
WITH_NAN = np.array([[-0.0, 1.0, np.nan, 2.0], [np.inf, -np.inf, 3.0, 0.0]])
INTS = np.array([[100, 100, -3], [7, -128, 127]], np.int8)


class Scan(Operation, family=True):
    """Each element is the running value after it: out[0] = x[0], out[i] = out[i-1] ∘ x[i] along `axis`, bit for bit.

    `reverse` starts from the last element. The result has the dtype of x: the rule casts it first.
    """

    axis: int
    reverse: bool = False
    ufunc: ClassVar[np.ufunc]

    def numpy(self, *arrays: Any) -> Any:
        (x,) = arrays
        if self.reverse:
            return np.flip(self._of(np.flip(x, self.axis)), self.axis)
        return self._of(x)

    def _of(self, x: Any) -> Any:
        return type(self).ufunc.accumulate(x, axis=self.axis, dtype=x.dtype)

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0]

    def neutral(self, dtype: np.dtype) -> Any:
        """What leaves the first element as it is, bit for bit; None when nothing does."""
        return None

    def combine(self, e: Emitter, total: Any, x: Any) -> Any:
        raise NotImplementedError

    # -- what accumulators ask: start and step are the loop

    compensated: ClassVar[bool] = False

    def prepare(self, e: Emitter, x: Any) -> Any:
        return x

    def start(self, e: Emitter, dtype: np.dtype) -> Any:
        value = self.neutral(dtype)
        return e.constant(0 if value is None else value, dtype)

    def step(self, e: Emitter, total: Any, x: Any, index: Any) -> Any:
        after = self.combine(e, total, x)
        if self.neutral(x.dtype) is not None:
            return after
        return e.select(e.eq(index, e.constant(0, INT64)), x, after)

    def finish(self, e: Emitter, total: Any, count: Any) -> Any:
        return total

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(0, False), MATRIX
        yield cls(1, True), MATRIX
        yield cls(1, False), WITH_NAN
        yield cls(1, False), INTS
        yield cls(0, False), MATRIX > 0
        yield cls(0, False), np.arange(5.0, dtype=np.float16)
        yield cls(1, False), np.zeros((3, 0))
        yield cls(0, True), np.ones((1, 3))


class CumSum(Scan):
    """Running sums along `axis`."""

    numpy_word: ClassVar[str] = "cumsum"
    tf_name: ClassVar[str | None] = "Cumsum"
    ufunc: ClassVar[np.ufunc] = np.add

    def neutral(self, dtype: np.dtype) -> Any:
        """-0.0: 0.0 would make the sum of -0.0 positive."""
        return complex(-0.0, -0.0) if dtype.kind == "c" else -0.0 if dtype.kind == "f" else 0

    def combine(self, e: Emitter, total: Any, x: Any) -> Any:
        return e.add(total, x)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """Each element is in all later sums: the sums from the other end."""
        return [apply(CumSum(self.axis, not self.reverse), g)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield from super().samples()
        yield cls(0), MATRIX + 2j * MATRIX[::-1]


class CumProd(Scan):
    """Running products along `axis`."""

    numpy_word: ClassVar[str] = "cumprod"
    tf_name: ClassVar[str | None] = "Cumprod"
    ufunc: ClassVar[np.ufunc] = np.multiply

    def neutral(self, dtype: np.dtype) -> Any:
        return None if dtype.kind == "c" else 1

    def combine(self, e: Emitter, total: Any, x: Any) -> Any:
        if x.dtype.kind != "c":
            return e.mul(total, x)
        a, b, c, d = e.real(total), e.imag(total), e.real(x), e.imag(x)  # four roundings, as NumPy's loop of single steps
        return e.make_complex(e.sub(e.mul(a, c), e.mul(b, d)), e.add(e.mul(a, d), e.mul(b, c)))

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """The derivative at x[k] is the sum of g[i] times the product of the others up to i, for all i from k on.

        Before the first zero that is (Σ g[i] out[i]) / x[k]; at the first zero the products have 1 in its place; after it
        every product has a zero that is not x[k].
        """
        (x,) = inputs
        later = CumSum(self.axis, not self.reverse)
        is_zero = equal(x, 0)
        zeros_so_far = apply(CumSum(self.axis, self.reverse), cast(is_zero, INT64))
        one = constant(1, x.dtype)
        before = equal(zeros_so_far, 0)
        here = choose(is_zero, equal(zeros_so_far, 1), constant(False, BOOL))
        others = apply(type(self)(self.axis, self.reverse), choose(here, one, x))
        plain = divide(apply(later, multiply(g, conj(out))), conj(choose(is_zero, one, x)))
        at_zero = apply(later, multiply(g, conj(others)))
        nothing = constant(0, x.dtype)
        return [choose(before, plain, choose(here, at_zero, nothing))]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield from super().samples()
        yield cls(1), np.array([[2.0, 0.0, 3.0, 0.0, 4.0], [1.5, -0.5, 0.0, 2.0, 1.0], [0.0, 1.0, 2.0, 3.0, 0.5]])
        yield cls(0), MATRIX + 2j + 1


class CumExtreme(Scan, family=True):
    """The largest or smallest element so far; NaN from the first NaN on. The cotangent goes to the latest that reached it."""

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        where = numbers_along(x.shape[self.axis], self.axis, x.ndim)
        reached = either(equal(x, out), is_nan(x))
        if self.reverse:
            nowhere = constant(np.iinfo(INT64).max, INT64)
            source = apply(CumMin(self.axis, True), choose(reached, where, nowhere))
        else:
            source = apply(CumMax(self.axis), choose(reached, where, constant(0, INT64)))
        return [scatter_along(x.shape, g, source, self.axis)]


class CumMax(CumExtreme):
    """The largest element so far along `axis`."""

    numpy_word: ClassVar[str] = "maximum.accumulate"
    ufunc: ClassVar[np.ufunc] = np.maximum

    def neutral(self, dtype: np.dtype) -> Any:
        return None if dtype.kind == "c" else lowest(dtype)

    def combine(self, e: Emitter, total: Any, x: Any) -> Any:
        return Maximum().body(e, total, x)


class CumMin(CumExtreme):
    """The smallest element so far along `axis`."""

    numpy_word: ClassVar[str] = "minimum.accumulate"
    ufunc: ClassVar[np.ufunc] = np.minimum

    def neutral(self, dtype: np.dtype) -> Any:
        return None if dtype.kind == "c" else highest(dtype)

    def combine(self, e: Emitter, total: Any, x: Any) -> Any:
        return Minimum().body(e, total, x)


class Accumulate(Scan):
    """`ufunc.accumulate` of any other function of two elements: `np.bitwise_or.accumulate`, `np.fmax.accumulate`, ..."""

    op: Elementwise = field(kw_only=True)

    @property
    def name(self) -> str:
        return f"Accumulate{self.op.name}"

    @property
    def word(self) -> str:
        return f"{type(self.op).ufunc.__name__}.accumulate"

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return type(self.op).exact

    def _of(self, x: Any) -> Any:
        return type(self.op).ufunc.accumulate(x, axis=self.axis, dtype=x.dtype)

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        return self.op.why_not_compiled(types[0], types[0])

    def combine(self, e: Emitter, total: Any, x: Any) -> Any:
        return self.op.body(e, total, x)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        from jitlab.ops.elementwise.arithmetic import Fmax, RealDiv
        from jitlab.ops.elementwise.comparison import BitwiseXor, LogicalAnd

        yield cls(1, op=BitwiseXor()), INTS
        yield cls(0, op=LogicalAnd()), MATRIX > 0
        yield cls(1, True, op=RealDiv()), MATRIX + 5
        yield cls(1, op=Fmax()), WITH_NAN


def scatter_along(shape: Sequence[int], g: Node, where: Node, axis: int) -> Node:
    """Zeros with each element of g added at its position along `axis`: the transpose of `take_along_axis`."""
    return apply(ScatterAdd(tuple(range(len(shape)))), zeros(tuple(shape), g.dtype), g, *positions_along(shape, where, axis))


# -- rules


def running(kind: type[CumSum] | type[CumProd], a: Any, axis: Any, dtype: Any) -> Node:
    """cumsum and cumprod: small integers are widened, no axis flattens."""
    x = node(a)
    wanted = _widened(kind.ufunc, x.dtype) if dtype is None else as_dtype(dtype)
    x, axis = along(x, axis)
    return apply(kind(axis), cast(x, wanted))


@rule(np.cumsum, method="cumsum")
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Node:
    refuse(out=out)
    return running(CumSum, a, axis, dtype)


@rule(np.cumprod, method="cumprod")
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Node:
    refuse(out=out)
    return running(CumProd, a, axis, dtype)


@rule(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Node:
    refuse(out=out)
    return running(CumSum, _without_nan(node(a), 0), axis, dtype)


@rule(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Node:
    refuse(out=out)
    return running(CumProd, _without_nan(node(a), 1), axis, dtype)


def _without_nan(x: Node, value: int) -> Node:
    return choose(is_nan(x), constant(value, x.dtype), x) if x.dtype.kind in "fc" else x


def accumulate_rule(ufunc: np.ufunc) -> Any:
    """The rule of `ufunc.accumulate`."""

    def accumulate(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Node:
        refuse(out=out)
        x = node(array)
        if x.ndim == 0:
            raise TypeError("cannot accumulate on a scalar")
        axis = 0 if axis is None and x.ndim == 1 else axis
        if axis is None or isinstance(axis, tuple):
            raise Unsupported("argument_of", name="axis")
        axis = as_axis(axis, x.ndim)
        wanted = _widened(ufunc, x.dtype) if dtype is None else as_dtype(dtype)
        for kind in (CumSum, CumProd, CumMax, CumMin):
            if kind.ufunc is ufunc:
                return apply(kind(axis), cast(x, wanted))
        if ufunc is np.subtract and wanted.kind != "b":  # x[0] - x[1] - ...: the sum of x[0], -x[1], ..., to the bit
            from jitlab.ops.elementwise.arithmetic import negative

            value = cast(x, wanted)
            return apply(CumSum(axis), choose(equal(numbers_along(x.shape[axis], axis, x.ndim), 0), value, negative(value)))
        from jitlab.ops.numpy_api.ufunc_methods import by_numpy, operation_of

        op = operation_of(ufunc)
        if op is None or not keeps(ufunc, wanted) or (ufunc is np.power and wanted.kind == "i"):  # which may raise
            return by_numpy(ufunc, "accumulate", x, axis=axis, dtype=wanted)
        return apply(Accumulate(axis, op=op), cast(x, wanted))

    return accumulate


def keeps(ufunc: np.ufunc, dtype: np.dtype) -> bool:
    """Has the function a loop of one dtype throughout?"""
    return ufunc.resolve_dtypes((dtype, dtype, None)) == (dtype, dtype, dtype)


def _widened(ufunc: np.ufunc, dtype: np.dtype) -> np.dtype:
    """What NumPy accumulates in; raises its TypeError for what it cannot."""
    result: np.dtype = ufunc.accumulate(np.zeros(0, dtype)).dtype
    return result
