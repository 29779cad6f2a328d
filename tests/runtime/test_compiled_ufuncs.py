"""The rarer ufuncs as machine code, many in one kernel for each dtype."""

import numpy as np
import pytest

from jitlab.ir import Graph
from jitlab.ir.graphs.verify import verify
from jitlab.ops import table
from tests.ops.programs import same, sample

from .compiling import parameter, run_compiled

F = table.FUNCTIONS
pytestmark = pytest.mark.filterwarnings("ignore")


def compare(functions, *arrays, exact=True):
    """Each function of the arrays, all in one cluster, with NumPy."""
    graph, want = Graph("several"), []
    with graph.building():
        nodes = [parameter(graph, a, f"x{k}") for k, a in enumerate(arrays)]
        for function in functions:
            made, real = F[function](*nodes), function(*arrays)
            graph.outputs += [*(made if isinstance(made, tuple) else (made,))]
            want += [*(real if isinstance(real, tuple) else (real,))]
    for mine, theirs in zip(run_compiled(verify(graph), arrays), want, strict=True):
        same(mine, theirs, exact)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_floats(dtype):
    x = np.concatenate([sample((37,), dtype), np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-7], dtype)])
    y = np.roll(x, 5)
    compare((np.frexp, np.modf, np.spacing, np.signbit, np.isposinf, np.isneginf, np.nan_to_num), x)
    compare((np.nextafter, np.heaviside, np.copysign, np.divmod, np.isclose), x, y)
    compare((np.ldexp,), x, np.arange(43, dtype="i4") * 50 - 1000)
    compare((np.logaddexp, np.logaddexp2, np.hypot), x[:37], x[:37][::-1].copy(), exact=False)
    compare((np.degrees, np.cbrt, np.exp2, np.angle), x[:37], exact=False)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "i8"])
def test_integers(dtype):
    info = np.iinfo(dtype)
    x = np.concatenate([sample((30,), dtype), np.array([info.min, info.max, 0, 1, 12, 96], dtype)])
    y = np.roll(x, 7)
    compare((np.gcd, np.lcm, np.bitwise_xor, np.left_shift, np.fmin, np.floor_divide, np.remainder), x, y)
    compare((np.bitwise_count, np.sign, np.absolute, np.invert, np.isfinite, round_to_tens), x)


def round_to_tens(x):
    return np.round(x, -1)


F[round_to_tens] = lambda x: F[np.round](x, -1)


@pytest.mark.parametrize("dtype", ["c16"])
def test_complex_numbers(dtype):
    x, y = sample((23,), dtype), sample((23,), dtype, seed=4)
    one = (np.exp, np.log, np.sqrt, np.sin, np.tanh, np.arcsin, np.arctanh, np.sign, np.reciprocal, np.rint, np.angle)
    compare(one, x, exact=False)
    compare((np.maximum, np.fmin, np.less, np.greater_equal, np.equal, np.isclose, np.array_equal), x, y)
    compare((np.power, np.multiply, np.divide), x, y, exact=False)


def test_truths_of_python():
    x = sample((9,), "f4")
    compare((np.allclose, np.array_equal, np.array_equiv), x, x.copy())
    compare((np.allclose, np.array_equal), x, x + np.float32(1))
