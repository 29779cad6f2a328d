"""Operations that make axes go away: sums, extremes, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node, at_least
from jitlab.messages import Message
from jitlab.ops.base import Operands, Reduction
from jitlab.ops.build_nodes import apply, as_node, cast, constant
from jitlab.ops.elementwise.arithmetic import Maximum, Minimum, conj, divide, equal, multiply, subtract, zero_like
from jitlab.ops.elementwise.arithmetic import select as choose
from jitlab.ops.elementwise.comparison import Comparison, Greater, Less
from jitlab.ops.emitter import Emitter
from jitlab.ops.layout.views import broadcast_to, expand_dims

BOOL, INT64 = np.dtype(bool), np.dtype("i8")
MATRIX = np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 1.0]])
WITH_NAN = np.array([[1.0, np.nan, 0.0, -0.0], [2.0, 5.0, 5.0, -np.inf]])
SMALL_INTS = np.array([[100, 100, -3], [7, -128, 127]], np.int8)


class Sum(Reduction):
    """Sum of the elements along `axes`; small integers are widened as NumPy does."""

    compensated: ClassVar[bool] = True
    exact: ClassVar[bool] = False
    function: ClassVar[str] = "sum"
    instruction: ClassVar[str] = "add"
    neutral: ClassVar[Any] = 0
    operands: ClassVar[Operands] = (
        ((0,), MATRIX), ((0, 1), MATRIX), ((1,), SMALL_INTS), ((0,), MATRIX > 0), ((1,), MATRIX + 2j),
    )

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        return _widened(dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        return [spread(g, self.axes, x)]


class SignedSum(Sum):
    """A sum that starts with -0.0, which changes no element's sign, to be added to `initial`."""

    operands = (
        ((0,), -0.0 * MATRIX), ((0, 1), -0.0 * np.abs(MATRIX)), ((1,), SMALL_INTS), ((0,), MATRIX + 2j),
        ((0,), np.empty((0, 3))),
    )
    numpy_word: ClassVar[str] = "sum"

    def numpy(self, x: Any) -> Any:
        return np.sum(x, axis=self.axes, initial=negative_zero(x.dtype))

    def start(self, e: Emitter, dtype: np.dtype) -> Any:
        dtype = self.result_dtype(dtype)
        return e.constant(negative_zero(dtype), dtype)


class Mean(Reduction):
    """Mean of the elements along `axes`: float64 of integers and bools; `reduce` casts float16 to float32 and back."""

    compensated: ClassVar[bool] = True
    exact: ClassVar[bool] = False
    function: ClassVar[str] = "mean"
    instruction: ClassVar[str] = "add"
    neutral: ClassVar[Any] = 0
    operands = (*Sum.operands, ((0,), np.empty((0, 3))))

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        return np.dtype("f8") if dtype.kind in "biu" else dtype

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        return Message("stays.float16_sum") if types[0].dtype == np.dtype("f2") else None

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        return [spread(divide(g, as_node(count_of(x.type, self.axes), g.dtype)), self.axes, x)]

    def finish(self, e: Emitter, total: Any, count: Any) -> Any:
        return e.div(total, e.cast(count, total.dtype))


class Prod(Reduction):
    """Product of the elements along `axes`; small integers are widened as NumPy does."""

    exact: ClassVar[bool] = False
    function: ClassVar[str] = "prod"
    instruction: ClassVar[str] = "mul"
    neutral: ClassVar[Any] = 1
    operands = (
        ((0,), MATRIX), ((1,), np.array([[2.0, 0.0, 3.0], [0.0, 4.0, 0.0]])), ((1,), SMALL_INTS), ((0,), MATRIX + 2j),
    )

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        return _widened(dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """The product of the others, also where x is 0: one zero leaves its own derivative, two leave none.

        Zeros stand in the derivatives as factors, so that the second derivative is right there, too: of one zero and another
        element it is the product of the rest, of two zeros likewise.
        """
        (x,) = inputs
        is_zero = equal(x, 0)
        filled = choose(is_zero, constant(1, x.dtype), x)
        zeros = spread(apply(CountNonzero(self.axes), is_zero), self.axes, x)
        sum_of_zeros = spread(apply(Sum(self.axes), choose(is_zero, x, zero_like(x))), self.axes, x)
        product = spread(apply(Prod(self.axes), filled), self.axes, x)
        others = divide(product, filled)
        with_one = choose(is_zero, product, multiply(others, sum_of_zeros))
        with_two = choose(is_zero, multiply(product, subtract(sum_of_zeros, x)), zero_like(x))
        with_zeros = choose(equal(zeros, 1), with_one, choose(equal(zeros, 2), with_two, zero_like(x)))
        derivative = choose(equal(zeros, 0), others, with_zeros)
        return [multiply(spread(g, self.axes, x), conj(derivative))]


class ExtremeOf(Reduction, family=True):
    """The largest or smallest element. Equal ones share the cotangent."""

    has_identity: ClassVar[bool] = False
    operands = (
        ((0,), MATRIX), ((0, 1), MATRIX), ((1,), SMALL_INTS), ((0,), MATRIX > 0), ((1,), WITH_NAN),
        ((1,), MATRIX[:, ::-1] + 2j * MATRIX),
    )

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [among_equals(g, out, inputs[0], self.axes)]


class Max(ExtremeOf):
    """The largest element along `axes`; NaN if one is NaN."""

    numpy_name: ClassVar[str] = "maximum"
    function: ClassVar[str] = "max"

    def start(self, e: Emitter, dtype: np.dtype) -> Any:
        return e.constant(lowest(dtype), dtype)

    def combine(self, e: Emitter, left: Any, right: Any) -> Any:
        return Maximum().body(e, left, right)


class Min(ExtremeOf):
    """The smallest element along `axes`; NaN if one is NaN."""

    numpy_name: ClassVar[str] = "minimum"
    function: ClassVar[str] = "min"

    def start(self, e: Emitter, dtype: np.dtype) -> Any:
        return e.constant(highest(dtype), dtype)

    def combine(self, e: Emitter, left: Any, right: Any) -> Any:
        return Minimum().body(e, left, right)


class Truth(Reduction, family=True):
    """A bool from the truth of the elements."""

    operands = (
        ((0,), MATRIX > 0), ((0, 1), np.array([[0.0, np.nan], [-0.0, 0.0]])), ((1,), np.arange(6).reshape(3, 2)),
        ((1,), np.array([[0j, 1j], [0j, 0j]])),
    )

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        return BOOL


class Any_(Truth):
    """Is any element true?"""

    numpy_word: ClassVar[str] = "any"
    tf_name: ClassVar[str | None] = "Any"
    function: ClassVar[str] = "any"
    instruction: ClassVar[str] = "or_"
    neutral: ClassVar[Any] = False


class All(Truth):
    """Are all elements true?"""

    function: ClassVar[str] = "all"
    instruction: ClassVar[str] = "and_"
    neutral: ClassVar[Any] = True


class CountNonzero(Reduction):
    """How many elements are not zero."""

    numpy_word: ClassVar[str] = "count_nonzero"
    instruction: ClassVar[str] = "add"
    neutral: ClassVar[Any] = 0
    operands = Truth.operands

    def numpy(self, x: Any) -> Any:
        return np.asarray(np.count_nonzero(x, axis=self.axes)).astype(INT64)[()]

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        return INT64

    def prepare(self, e: Emitter, x: Any) -> Any:
        return e.cast(e.cast(x, BOOL), INT64)


class ArgExtreme(Reduction, family=True):
    """The position of the largest or smallest element, the first of equal ones; of the first NaN if there is one.

    The accumulator is (best element, its position). It starts as the element that every other one beats, with position -1,
    which stands for position 0 in the end: no element was better. Each running value meets its elements from first to last,
    so an equal one never wins. Positions decide between partial results, which may be joined in any arrangement.
    """

    has_identity: ClassVar[bool] = False
    keeps_position: ClassVar[bool] = True
    no_better: ClassVar[str]  # the emitter's comparison of floats: false where the left one is better, or one is NaN
    first: ClassVar[Comparison]  # of the better one with the other
    operands = (
        ((0,), MATRIX), ((0, 1), MATRIX), ((1,), SMALL_INTS), ((1,), MATRIX > 0), ((1,), WITH_NAN), ((0,), WITH_NAN),
        ((1,), np.array([[1 + 2j, 1 + 3j, 1 + 1j], [0j, complex(0, np.nan), complex(np.nan, 1)]])),
    )

    def numpy(self, x: Any) -> Any:
        return getattr(np, self.numpy_name)(x, axis=None if len(self.axes) == np.ndim(x) else self.axes[0])

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        return INT64

    def result(self, *types: ArrayType) -> ArrayType:
        (x,) = types
        if not all(at_least(x.shape[axis], 1) for axis in self.axes):
            raise ValueError(f"attempt to get {self.numpy_name} of an empty sequence")
        return super().result(x)

    def prepare(self, e: Emitter, x: Any) -> Any:
        return e.cast(x, np.dtype("u1")) if x.dtype.kind == "b" else x

    @staticmethod
    def worst(dtype: np.dtype) -> Any:
        raise NotImplementedError

    def start(self, e: Emitter, dtype: np.dtype) -> Any:
        element = np.dtype("u1") if dtype.kind == "b" else dtype
        return e.constant(self.worst(element), element), e.constant(-1, INT64)

    def step(self, e: Emitter, total: Any, x: Any, index: Any) -> Any:
        best, position = total
        wins = self._wins(e, x, best)
        return e.select(wins, x, best), e.select(wins, index, position)

    def _wins(self, e: Emitter, y: Any, x: Any) -> Any:
        """Is y better than x, or the only NaN of the two?"""
        if x.dtype.kind == "f":
            return e.and_(e.invert(getattr(e, self.no_better)(y, x)), e.eq(x, x))
        wins = self.first.body(e, y, x)
        return e.or_(wins, e.and_(_is_nan(e, y), e.invert(_is_nan(e, x)))) if x.dtype.kind == "c" else wins

    def combine(self, e: Emitter, left: Any, right: Any) -> Any:
        (x, i), (y, j) = left, right
        is_first = e.and_(e.lt(j, i), e.invert(self._wins(e, x, y)))
        wins = e.or_(self._wins(e, y, x), is_first)
        return e.select(wins, y, x), e.select(wins, j, i)

    def finish(self, e: Emitter, total: Any, count: Any) -> Any:
        zero = e.constant(0, INT64)
        return e.select(e.lt(total[1], zero), zero, total[1])


class ArgMax(ArgExtreme):
    """The position of the largest element along one axis, or along all of them in C order."""

    numpy_name: ClassVar[str] = "argmax"
    first: ClassVar[Comparison] = Greater()
    no_better: ClassVar[str] = "le"

    @staticmethod
    def worst(dtype: np.dtype) -> Any:
        return lowest(dtype)


class ArgMin(ArgExtreme):
    """The position of the smallest element along one axis, or along all of them in C order."""

    numpy_name: ClassVar[str] = "argmin"
    first: ClassVar[Comparison] = Less()
    no_better: ClassVar[str] = "ge"

    @staticmethod
    def worst(dtype: np.dtype) -> Any:
        return highest(dtype)


def reduce(kind: type[Reduction], x: Node, axes: tuple[int, ...], keepdims: bool = False) -> Node:
    """`kind` of x along sorted `axes`; over no axes it is an operation on elements."""
    if axes:
        if kind is Mean and x.dtype == np.dtype("f2"):
            return cast(reduce(Mean, cast(x, np.dtype("f4")), axes, keepdims), x.dtype)
        result = apply(kind(axes), x)
        return expand_dims(result, axes) if keepdims else result
    if issubclass(kind, ArgExtreme):
        return constant(0, INT64) if x.ndim == 0 else cast(multiply(cast(x, BOOL), False), INT64)
    dtype = kind(()).result_dtype(x.dtype)
    return cast(cast(x, BOOL) if kind is CountNonzero else x, dtype)


def spread(g: Node, axes: tuple[int, ...], x: Node) -> Node:
    """The value of a reduction back over the axes it came from."""
    return broadcast_to(expand_dims(g, axes), x.shape)


def among_equals(g: Node, out: Node, x: Node, axes: tuple[int, ...]) -> Node:
    """The cotangent of an extreme shared by the elements that are equal to it."""
    hit = equal(x, expand_dims(out, axes))
    hits = cast(apply(CountNonzero(axes), hit), g.dtype)
    share = divide(g, choose(equal(hits, 0), constant(1, g.dtype), hits))  # no hit where the result is NaN
    return choose(hit, expand_dims(share, axes), zero_like(g))


def count_of(x: ArrayType, axes: Sequence[int]) -> int:
    """How many elements each result of a reduction comes from; an Extent where the shape has symbols."""
    return math.prod(x.shape[axis] for axis in axes)


@cache
def _widened(dtype: np.dtype) -> np.dtype:
    result: np.dtype = np.sum(np.empty(0, dtype)).dtype
    return result


def _is_nan(e: Emitter, x: Any) -> Any:
    return e.or_(e.isnan(e.real(x)), e.isnan(e.imag(x))) if x.dtype.kind == "c" else e.isnan(x)


def negative_zero(dtype: np.dtype) -> Any:
    """What changes no element that it is added to, also not -0.0."""
    return complex(-0.0, -0.0) if dtype.kind == "c" else -0.0 if dtype.kind == "f" else 0


def lowest(dtype: np.dtype) -> Any:
    if dtype.kind == "c":
        return complex(-np.inf, -np.inf)
    return False if dtype.kind == "b" else -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def highest(dtype: np.dtype) -> Any:
    if dtype.kind == "c":
        return complex(np.inf, np.inf)
    return True if dtype.kind == "b" else np.inf if dtype.kind == "f" else np.iinfo(dtype).max
