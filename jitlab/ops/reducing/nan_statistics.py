"""Statistics: what leaves NaN out, covariances, histograms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.elementwise.comparison import LogicalAnd, LogicalNot
from jitlab.ops.layout.concatenation import concatenate
from jitlab.ops.layout.views import expand_dims, squeeze, transpose
from jitlab.ops.library_operations import Library, call
from jitlab.ops.linear_algebra.matrix_products import matmul
from jitlab.ops.numpy_api.arguments import NoValue, as_axes, as_axis, as_dtype, node, nodes, refuse
from jitlab.ops.numpy_api.rules_reductions import degrees_of_freedom, flag, mask_for, squared, sum_rule, var
from jitlab.ops.numpy_api.rules_reductions import mean as mean_rule
from jitlab.ops.registry import rule

from . import axis_reductions as re

FLOAT64, INT64 = np.dtype("f8"), np.dtype("i8")
X = np.array([[0.5, -1.5, 2.0, -0.25], [3.0, -0.75, 1.0, 1.25]])
WITH_NAN = np.array([[-0.0, 1.0, np.nan, 0.0], [np.inf, -np.inf, 3.0, 0.0]])


# -- without NaN


def without_nan(x: Node, value: float) -> tuple[Node, Node | None]:
    """x with a number in place of NaN, and where they were; None for dtypes that have none."""
    if x.dtype.kind not in "fc":
        return x, None
    mask = ar.is_nan(x)
    return ar.select(mask, constant(value, x.dtype), x), mask


def nan_sum_rule(ufunc: np.ufunc) -> Callable[..., Node]:
    """nansum and nanprod."""
    whole = sum_rule(ufunc)

    def reduced(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = NoValue,
        initial: Any = NoValue,
        where: Any = NoValue,
    ) -> Node:
        refuse(out=out)
        x, _ = without_nan(node(a), ufunc.identity)
        result: Node = whole(x, axis, dtype, None, keepdims, initial, where)
        return result

    return reduced


def nan_extreme_rule(ufunc: np.ufunc) -> Callable[..., Node]:
    """nanmax and nanmin: `fmax` and `fmin` leave NaN out; of nothing but NaN they are NaN."""

    def reduced(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue
    ) -> Node:
        from jitlab.ops.table import FUNCTIONS

        refuse(out=out)
        result: Node = FUNCTIONS[ufunc.reduce](
            node(a), axis, keepdims=flag(keepdims), initial=initial, where=True if where is NoValue else where
        )
        return result

    return reduced


rule(np.nansum)(nan_sum_rule(np.add))
rule(np.nanprod)(nan_sum_rule(np.multiply))
rule(np.nanmax)(nan_extreme_rule(np.fmax))
rule(np.nanmin)(nan_extreme_rule(np.fmin))


@rule(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NoValue, *, where: Any = NoValue
) -> Node:
    refuse(out=out)
    x, missing = without_nan(node(a), 0)
    if missing is None:
        return mean_rule(x, axis, dtype, None, keepdims, where=where)
    counted = _counted(missing, x, where)
    x = _in(x, dtype)
    axes = as_axes(axis, x.ndim, number=False)
    total = re.reduce(re.Sum, x if where is NoValue else ar.select(counted, x, ar.zero_like(x)), axes, flag(keepdims))
    return _by_count(total, re.reduce(re.CountNonzero, counted, axes, flag(keepdims)))


@rule(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = NoValue,
    *,
    where: Any = NoValue,
    mean: Any = NoValue,
    correction: Any = NoValue,
) -> Node:
    refuse(out=out)
    x, missing = without_nan(node(a), 0)
    if missing is None:
        return var(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    ddof = degrees_of_freedom(ddof, correction)
    counted = _counted(missing, x, where)
    x = _in(x, dtype)
    axes = as_axes(axis, x.ndim, number=False)
    none = ar.zero_like(x)
    if mean is NoValue:
        count = re.reduce(re.CountNonzero, counted, axes, keepdims=True)
        middle = _by_count(re.reduce(re.Sum, ar.select(counted, x, none), axes, keepdims=True), count)
    else:
        middle = node(mean)
    square = squared(ar.select(counted, cast(ar.subtract(x, middle), x.dtype), none))
    total = re.reduce(re.Sum, square, axes, flag(keepdims))
    freedom = ar.subtract(re.reduce(re.CountNonzero, counted, axes, flag(keepdims)), ddof)
    result = _by_count(total, freedom)
    return ar.select(ar.greater(freedom, 0), result, constant(np.nan, result.dtype))


@rule(np.nanstd)
def nanstd(*args: Any, **options: Any) -> Node:
    return elementwise(ar.Sqrt(), nanvar(*args, **options))


def _counted(missing: Node, x: Node, where: Any) -> Node:
    there = elementwise(LogicalNot(), missing)
    return there if where is NoValue or where is True else elementwise(LogicalAnd(), there, mask_for(where, x))


def _in(x: Node, dtype: Any) -> Node:
    if dtype is None:
        return x
    if as_dtype(dtype).kind not in "fc":
        raise TypeError("If a is inexact, then dtype must be inexact")
    return cast(x, as_dtype(dtype))


def _by_count(total: Node, count: Node) -> Node:
    """The quotient, rounded once to the dtype of the sum."""
    return cast(ar.divide(total, count), total.dtype)


class NanArg(Library):
    """The place of the largest or smallest element that is not NaN; nothing but NaN is NumPy's ValueError."""

    numpy_name: str
    axis: int | None
    keepdims: bool = False
    may_raise: ClassVar[bool] = True
    exact: ClassVar[bool] = True

    @property
    def word(self) -> str:
        return self.numpy_name

    def numpy(self, *arrays: Any) -> Any:
        return getattr(np, self.numpy_name)(arrays[0], axis=self.axis, keepdims=self.keepdims)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        gone = range(x.ndim) if self.axis is None else (self.axis,)
        shape = tuple(1 if a in gone else n for a, n in enumerate(x.shape) if self.keepdims or a not in gone)
        return (ArrayType(shape, np.dtype(np.intp)),)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls("nanargmax", 1), WITH_NAN
        yield cls("nanargmin", None), WITH_NAN


def nan_arg_rule(name: str) -> Callable[..., Node]:
    def reduced(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NoValue) -> Node:
        refuse(out=out)
        x = node(a)
        axis = None if axis is None else as_axis(axis, x.ndim)
        if x.dtype.kind not in "fc":
            kind = re.ArgMax if name == "nanargmax" else re.ArgMin
            return re.reduce(kind, x, as_axes(axis, x.ndim), flag(keepdims))
        return apply(NanArg(name, axis, flag(keepdims)), x)

    return reduced


rule(np.nanargmax)(nan_arg_rule("nanargmax"))
rule(np.nanargmin)(nan_arg_rule("nanargmin"))


# -- covariance


@rule(np.cov)
def cov(
    m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Node:  # fmt: skip
    result = _covariance(m, y, rowvar, bias, ddof, fweights, aweights, dtype)
    single = tuple(a for a, n in enumerate(result.shape) if int(n) == 1)
    return squeeze(result, single) if single else result


def _covariance(
    m: Any, y: Any, rowvar: Any, bias: Any, ddof: Any, fweights: Any, aweights: Any, dtype: Any
) -> Node:  # fmt: skip
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    given = node(m)
    if given.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    other = None if y is None else node(y)
    if other is not None and other.ndim > 2:
        raise ValueError("y has more than 2 dimensions")
    parts = [given] if other is None else [given, other]
    wanted = np.result_type(*(p.dtype for p in parts), FLOAT64) if dtype is None else as_dtype(dtype)
    x = cast(_two_dimensional(given), wanted)
    if not rowvar and given.ndim != 1:
        x = transpose(x)
    if int(x.shape[0]) == 0:
        raise Unsupported("no_variables")
    if other is not None:
        other = cast(_two_dimensional(other), wanted)
        if not rowvar and int(other.shape[0]) != 1:
            other = transpose(other)
        x = concatenate([x, other], 0)
    ddof = (0 if bias else 1) if ddof is None else int(ddof)
    w = _weights(fweights, "fweights", x)
    a = _weights(aweights, "aweights", x)
    if a is not None:
        w = a if w is None else ar.multiply(w, a)
    real = ar.real_dtype(wanted)
    count = as_node(x.shape[1], real)
    if w is None:
        middle = re.reduce(re.Mean, x, (1,), keepdims=True)
        freedom = ar.subtract(count, constant(ddof, real))
    else:
        total = re.reduce(re.Sum, w, (0,))
        middle = ar.divide(re.reduce(re.Sum, ar.multiply(x, w), (1,), keepdims=True), total)
        freedom = total
        if ddof != 0:
            share: Any = ddof
            if a is not None:
                share = ar.divide(ar.multiply(float(ddof), re.reduce(re.Sum, ar.multiply(w, a), (0,))), total)
            freedom = ar.subtract(total, share)
    freedom = ar.select(ar.greater(freedom, 0), freedom, ar.zero_like(freedom))
    away = ar.subtract(x, middle)
    weighted = away if w is None else ar.multiply(away, w)
    product = matmul(away, transpose(ar.conj(weighted)))
    return ar.multiply(product, cast(ar.divide(constant(1, freedom.dtype), freedom), product.dtype))


def _weights(given: Any, name: str, x: Node) -> Node | None:
    """Weights of the observations as floats; NumPy's checks of their values are left to it."""
    if given is None:
        return None
    if isinstance(given, Node) or name == "fweights" and any(isinstance(v, Node) for v in np.ravel(np.asarray(given, object))):
        raise Unsupported("traced_argument_values", "data_dependent", name=name)
    values = np.asarray(given, dtype=float)
    if name == "fweights" and not np.all(values == np.around(values)):
        raise TypeError("fweights must be integer")
    if values.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if values.shape[0] != int(x.shape[1]):
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if np.any(values < 0):
        raise ValueError(f"{name} cannot be negative")
    return constant(values)


def _two_dimensional(x: Node) -> Node:
    return x if x.ndim == 2 else expand_dims(x, tuple(range(2 - x.ndim)))


@rule(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Node:
    from jitlab.ops.table import FUNCTIONS

    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return ar.divide(c, c)
    if c.ndim != 2:
        raise ValueError("Input must be 1- or 2-d.")
    spread: Node = FUNCTIONS[np.sqrt](FUNCTIONS[np.real](FUNCTIONS[np.diag](c)))
    c = ar.divide(ar.divide(c, expand_dims(spread, (1,))), expand_dims(spread, (0,)))
    clip = FUNCTIONS[np.clip]
    if c.dtype.kind != "c":
        result: Node = clip(c, -1, 1)
        return result
    parts = clip(apply(ar.Real(), c), -1, 1), clip(apply(ar.Imag(), c), -1, 1)
    return ar.add(parts[0], ar.multiply(parts[1], constant(1j, c.dtype)))


# -- histograms


class Histogram(Library):
    """Counts in bins, and the edges of the bins. Inputs: the elements, the edges where they are given, the weights."""

    bins: int | None  # None: the edges are an input
    range: tuple[float, float] | None = None
    density: bool = False
    weighted: bool = False
    only_edges: bool = False
    may_raise: ClassVar[bool] = True
    exact: ClassVar[bool] = True

    def numpy(self, *arrays: Any) -> Any:
        x, *rest = arrays
        bins = rest.pop(0) if self.bins is None else self.bins
        weights = rest.pop(0) if self.weighted else None
        if self.only_edges:
            return np.histogram_bin_edges(x, bins, self.range, weights)
        return np.histogram(x, bins, self.range, self.density, weights)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        few = (np.zeros(2, types[0].dtype), *(np.arange(2).astype(t.dtype) for t in types[1:]))
        sample = self.numpy(*few)
        edges = types[1].shape[0] if self.bins is None else self.bins + 1
        if self.only_edges:
            return (ArrayType((edges,), sample.dtype),)
        return ArrayType((edges - 1,), sample[0].dtype), ArrayType((edges,), sample[1].dtype)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(4), X
        yield cls(3, (-1.0, 1.0), density=True), X
        yield cls(None, weighted=True), X, np.array([-1.0, 0.0, 3.0]), X
        yield cls(4, only_edges=True), X
        yield cls(None, only_edges=True), X, np.array([-1.0, 0.0, 3.0])


def _histogram(
    a: Any, bins: Any, range: Any, density: bool, weights: Any, only_edges: bool
) -> Node | tuple[Node, ...]:  # fmt: skip
    x = node(a)
    if isinstance(bins, str):
        raise Unsupported("bins_by_name", "data_dependent")
    inputs = [x]
    count = None
    if isinstance(bins, (int, np.integer)) and not isinstance(bins, bool):
        count = int(bins)
        if count < 1:
            raise ValueError("`bins` must be positive, when an integer")
    else:
        edges = node(bins)
        if edges.ndim == 0:
            raise Unsupported("traced_bins", "data_dependent")
        if edges.ndim > 1:
            raise ValueError("`bins` must be 1d, when an array")
        inputs.append(edges)
    limits = None
    if range is not None:
        if any(isinstance(v, Node) for v in range):
            raise Unsupported("traced_range")
        low, high = range
        limits = (float(low), float(high)) if isinstance(low, float) or isinstance(high, float) else (low, high)
        np.histogram_bin_edges(np.zeros(1), 1, limits)  # raises what NumPy raises
    if weights is not None:
        w = node(weights)
        if tuple(map(int, w.shape)) != tuple(map(int, x.shape)):
            raise ValueError("weights should have the same shape as a.")
        inputs.append(w)
    return call(Histogram(count, limits, density, weights is not None, only_edges), *inputs)


@rule(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    return _histogram(a, bins, range, bool(density), weights, only_edges=False)


@rule(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return _histogram(a, bins, range, False, weights, only_edges=True)


class HistogramDD(Library):
    """Counts in bins of several dimensions, and the edges of each. Inputs: points [n, d], edges that are given, the weights."""

    bins: tuple[int | None, ...]  # None: the edges of that dimension are an input
    range: tuple[tuple[float, float] | None, ...] | None = None
    density: bool = False
    weighted: bool = False
    numpy_word: ClassVar[str] = "histogramdd"
    may_raise: ClassVar[bool] = True
    exact: ClassVar[bool] = True

    def numpy(self, *arrays: Any) -> Any:
        points, *rest = arrays
        bins = [rest.pop(0) if n is None else n for n in self.bins]
        limits: Any = self.range
        counts, edges = np.histogramdd(points, bins, limits, self.density, rest[0] if self.weighted else None)
        return (counts, *edges)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        points, *rest = types
        few = [np.zeros((2, len(self.bins)), points.dtype)]
        shape: list[int] = []
        given = iter(rest)
        for n in self.bins:
            if n is None:
                type = next(given)
                few.append(np.arange(2).astype(type.dtype))
                n = type.shape[0] - 1
            shape.append(n)
        if self.weighted:
            few.append(np.ones(2, rest[-1].dtype))
        counts, *edges = self.numpy(*few)
        return ArrayType(tuple(shape), counts.dtype), *(ArrayType((n + 1,), e.dtype) for n, e in zip(shape, edges, strict=True))

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        points = np.array([[0.5, -1.5], [3.0, -0.75], [1.0, 0.25]])
        yield cls((2, 3)), points
        yield cls((2, None), ((0.0, 4.0), None), weighted=True), points, np.array([-2.0, -1.0, 1.0]), np.array([1.0, 2.0, 0.5])


@rule(np.histogramdd)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if isinstance(sample, Node):
        points = sample if sample.ndim == 2 else transpose(_two_dimensional(sample))
    else:
        points = transpose(_stacked(nodes(sample)))
    counts, *edges = _dimensions(points, bins, range, density, weights)
    return counts, edges


@rule(np.histogram2d)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    first, second = node(x), node(y)
    if int(first.shape[0]) != int(second.shape[0]):
        raise ValueError("x and y must have the same length.")
    if isinstance(bins, Node) or (isinstance(bins, (list, tuple)) and len(bins) not in (1, 2)):
        bins = [bins, bins]
    return _dimensions(transpose(_stacked([first, second])), bins, range, density, weights)


def _stacked(parts: list[Node]) -> Node:
    from jitlab.ops.layout.concatenation import stack

    return stack(parts, 0)


def _dimensions(points: Node, bins: Any, range: Any, density: Any, weights: Any) -> tuple[Node, ...]:
    d = int(points.shape[1])
    if isinstance(bins, Node):
        raise Unsupported("traced_bins", "data_dependent")
    each = [bins] * d if isinstance(bins, (int, np.integer)) else list(bins)
    if len(each) != d:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    counts = [int(n) if isinstance(n, (int, np.integer)) else None for n in each]
    if any(n is not None and n < 1 for n in counts):
        axis = next(k for k, n in enumerate(counts) if n is not None and n < 1)
        raise ValueError(f"`bins[{axis}]` must be positive, when an integer")
    edges = [node(given) for given, n in zip(each, counts, strict=True) if n is None]
    limits = None
    if range is not None:
        limits = tuple(None if r is None else (float(r[0]), float(r[1])) for r in np.asarray(range, object).tolist())
        if len(limits) != d:
            raise ValueError("range argument must have one entry per dimension")
    extra = [] if weights is None else [node(weights)]
    result = call(HistogramDD(tuple(counts), limits, bool(density), weights is not None), points, *edges, *extra)
    assert isinstance(result, tuple)
    return result


