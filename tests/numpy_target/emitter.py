"""The emitter's instructions done by NumPy, on single numbers or on an array of them (one a lane)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from jitlab.ir import plain
from jitlab.ops import Elementwise, Generated, Operation, Reduction

_SAME = "floor_divide remainder copysign minimum maximum isnan isinf isfinite signbit invert hypot".split()
_SAME += "sqrt floor ceil trunc rint sign exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sinh cosh arctan".split()
_SAME += "arcsin arccos arctan2 arcsinh arccosh arctanh cbrt fmod nextafter gcd lcm".split()
_OTHER = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "neg": np.negative,
    "abs": np.absolute,
    "pow": np.power,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
    "bit_count": np.bitwise_count,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
}


class NumpyEmitter:
    """Operands have one dtype: what a body forgets to cast is an error here as in a target."""

    def constant(self, value: Any, dtype: Any) -> Any:
        return np.dtype(dtype).type(value)

    def cast(self, x: Any, dtype: Any) -> Any:
        dtype = np.dtype(dtype)
        return np.asarray(x.real if x.dtype.kind == "c" and dtype.kind not in "cb" else x).astype(dtype)[()]

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        assert condition.dtype == bool and x.dtype == y.dtype
        if np.ndim(condition) == 0:
            return x if condition else y
        return np.where(condition, x, y)

    def real(self, x: Any) -> Any:
        return x.real

    def imag(self, x: Any) -> Any:
        return x.imag

    def make_complex(self, real: Any, imag: Any) -> Any:
        result = np.zeros(np.broadcast_shapes(np.shape(real), np.shape(imag)), np.result_type(real, np.complex64))
        result.real, result.imag = real, imag
        return result[()]

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        return _by_lane(self._fma, x, y, z)

    def _fma(self, x: Any, y: Any, z: Any) -> Any:
        if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
            return x * y + z
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        try:
            return x.dtype.type(float(exact)) if exact else x * y + z
        except OverflowError:
            return x * y + z

    def erfc(self, x: Any) -> Any:
        return _by_lane(math.erfc, x)

    def erfcx(self, x: Any) -> Any:
        import scipy.special

        return scipy.special.erfcx(x)

    def mantissa(self, x: Any) -> Any:
        return np.frexp(x)[0]

    def exponent(self, x: Any) -> Any:
        return np.frexp(x)[1]

    def ldexp(self, x: Any, power: Any) -> Any:
        return np.ldexp(x, power)

    def fmin(self, x: Any, y: Any) -> Any:
        return _by_lane(np.fmin, x, y)  # of zeros NumPy takes either one, by where in a vector they lie

    def fmax(self, x: Any, y: Any) -> Any:
        return _by_lane(np.fmax, x, y)

    def erf(self, x: Any) -> Any:
        return _by_lane(math.erf, x)

    def __getattr__(self, name: str) -> Any:
        if name not in _SAME and name not in _OTHER:
            raise AttributeError(name)
        ufunc = _OTHER.get(name) or getattr(np, name)

        def instruction(*xs: Any) -> Any:
            assert len({x.dtype for x in xs}) == 1, f"{name} of {[x.dtype for x in xs]}"
            return ufunc(*xs)

        return instruction


def _by_lane(function: Any, *xs: Any) -> Any:
    """A function of single numbers, of each lane."""
    dtype = xs[0].dtype
    if all(np.ndim(x) == 0 for x in xs):
        return dtype.type(function(*xs))
    return np.array([function(*lane) for lane in np.broadcast(*xs)], dtype)


def run(op: Operation, *arrays: Any) -> Any:
    """An operation computed element by element from its body. Reductions run in two interleaved lanes that are combined."""
    e: Any = NumpyEmitter()
    with np.errstate(all="ignore"):
        if isinstance(op, Elementwise):
            spread = np.broadcast_arrays(*arrays)
            values = [op.body(e, *(a[i] for a in spread)) for i in np.ndindex(spread[0].shape)]
            return _array(values, spread[0].shape)
        if isinstance(op, Generated):
            shape = plain(op.shape)
            values = [op.body(e, [np.int64(k) for k in i], *arrays) for i in np.ndindex(shape)]
            return _array(values, shape)
        assert isinstance(op, Reduction)
        (x,) = arrays
        kept = [n for axis, n in enumerate(x.shape) if axis not in op.axes]
        count = math.prod(x.shape[axis] for axis in op.axes)
        moved = np.moveaxis(x, op.axes, range(-len(op.axes), 0)).reshape(*kept, count)
        return _array([_reduced(op, e, moved[i]) for i in np.ndindex(*kept)], tuple(kept))


def _reduced(op: Reduction, e: Any, row: np.ndarray) -> Any:
    lanes = [op.start(e, row.dtype), op.start(e, row.dtype)]
    for index, x in enumerate(row):
        lanes[index % 2] = op.step(e, lanes[index % 2], op.prepare(e, x), np.int64(index))
    return op.finish(e, op.combine(e, *lanes), np.int64(len(row)))


def _array(values: list[Any], shape: tuple[int, ...]) -> Any:
    if not values:
        return None  # a body that never runs tells no dtype
    assert len({v.dtype for v in values}) == 1
    result = np.empty(shape, values[0].dtype)
    for i, v in zip(itertools.product(*map(range, shape)), values, strict=True):
        result[i] = v
    return result
