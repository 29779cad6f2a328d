"""Every ufunc on every dtype, and what NumPy's elementwise functions take besides: where, casting, dtype, weak numbers."""

import numpy as np
import pytest

from jitlab.ops import table
from tests.ops.programs import DTYPES, Program, sample
from tests.ops.test_table import outcome

UFUNCS = [f for f in vars(np).values() if isinstance(f, np.ufunc)]
UFUNCS = sorted({f.__name__: f for f in UFUNCS}.values(), key=lambda f: f.__name__)
#: Generalised ones are in tests of linear algebra; dates are not traced.
ELEMENTWISE = [f for f in UFUNCS if f.signature is None and f is not np.isnat]

pytestmark = pytest.mark.filterwarnings("ignore")




def agree(*args, function, exact=True, kind="function", **options):
    text = outcome(Program(function, args, options, kind=kind, exact=exact))
    assert text == "", text or "left to NumPy"


@pytest.mark.parametrize("ufunc", ELEMENTWISE, ids=lambda f: f.__name__)
def test_a_ufunc_of_each_dtype_gives_what_numpy_gives_or_raises_what_it_raises(ufunc):
    for dtype in DTYPES:
        x, y = sample((3, 4), dtype), sample((4,), dtype, seed=1)
        if ufunc in (np.power, np.float_power) and np.dtype(dtype).kind in "iu":
            y = np.abs(y)
            if np.dtype(dtype).kind == "i":
                continue  # a negative exponent of integers is known when the data are
        if ufunc is np.ldexp:
            y = sample((4,), "i4")
        agree(*(x, y)[: ufunc.nin], function=ufunc, exact=False)


@pytest.mark.parametrize("name", ["add", "logaddexp", "gcd", "ldexp", "heaviside", "less", "left_shift", "maximum"])
def test_a_ufunc_of_mixed_dtypes(name):
    ufunc = getattr(np, name)
    for first in ("bool", "i1", "u8", "f2", "f4", "c8"):
        for second in ("u1", "i8", "f8", "c16"):
            agree(sample((3,), first), sample((2, 3), second, seed=2), function=ufunc, exact=False)
    for number in (True, 2, -1, 300, 1.5, 2j):
        agree(sample((3,), "i1"), number, function=ufunc, exact=False)
        agree(number, sample((3,), "f2"), function=ufunc, exact=False)


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((sample((3,), "i4"), sample((3,), "i4")), {"dtype": "f8"}),
        ((sample((3,), "i4"), sample((3,), "i4")), {"dtype": "i2"}),
        ((sample((3,), "i4"), sample((3,), "i4")), {"dtype": "i2", "casting": "unsafe"}),
        ((sample((3,), "f8"), sample((3,), "f8")), {"dtype": "f4"}),
        ((sample((3,), "f8"), sample((3,), "f8")), {"dtype": "f4", "casting": "safe"}),
        ((sample((3,), "i4"), sample((3,), "f4")), {"casting": "no"}),
        ((sample((3,), "i4"), sample((3,), "i4")), {"signature": "dd->d"}),
        ((sample((3,), "i4"), sample((3,), "i4")), {"sig": (np.float64, np.float64, np.float64)}),
        ((sample((3,), "i4"), sample((3,), "i4")), {"signature": "d"}),
        ((sample((3,), "i4"), sample((3,), "i4")), {"signature": "dd->d", "dtype": "f8"}),
        ((sample((3,), "i4"), sample((3,), "i4")), {"dtype": "bool"}),
    ],
)
def test_dtype_casting_and_signature_choose_the_loop(args, options):
    for ufunc in (np.add, np.multiply, np.maximum):
        agree(*args, function=ufunc, **options)


def test_where_without_out_gives_zeros_where_numpy_gives_anything():
    x, mask = sample((2, 3), "f8"), np.array([True, False, True])
    program = Program(np.negative, (x,), {"where": mask})
    graph, arrays = program.graph()
    from jitlab.ir import interpret

    (got,) = interpret(graph, arrays)
    np.testing.assert_array_equal(got, np.where(mask, -x, 0))
    agree(x, function=np.exp, where=np.array([1, 0, 1]))  # an integer is no mask


def test_float_parts_have_two_results():
    for dtype in ("bool", "i1", "i4", "f2", "f4", "f8", "c8"):
        x = sample((5,), dtype)
        agree(x, function=np.frexp)
        agree(x, function=np.modf)
        agree(x, sample((5,), dtype, seed=3) + np.ones(1, dtype), function=np.divmod)


@pytest.mark.parametrize("dtype", DTYPES)
def test_questions_about_values(dtype):
    x, y = sample((4,), dtype), sample((3, 4), dtype, seed=5)
    for function in (np.isreal, np.iscomplex, np.isposinf, np.isneginf, np.sinc, np.nan_to_num, np.angle, np.real, np.imag):
        agree(x, function=function, exact=False)
    for function in (np.isclose, np.allclose, np.array_equal, np.array_equiv):
        agree(x, x, function=function)
        agree(x, y, function=function)
    if np.dtype(dtype).kind != "c":
        agree(x, function=np.real_if_close)


def test_equality_with_nan():
    x = np.array([1.0, np.nan, np.inf, -np.inf, 0.0])
    y = np.array([1.0 + 1e-9, np.nan, np.inf, np.inf, 1e-9])
    for equal_nan in (False, True):
        for function in (np.isclose, np.allclose, np.array_equal):
            agree(x, y, function=function, equal_nan=equal_nan)
            agree(x, x.copy(), function=function, equal_nan=equal_nan)
    agree(x, np.float64(1.0), function=np.isclose, rtol=0.5, atol=sample((5,), "f8") ** 2)
    agree(x, 1, function=np.isclose)
    agree(np.array([127, -128], "i1"), np.array([-128, 127], "i1"), function=np.isclose)
    agree(x, x + 1j * x, function=np.isclose, equal_nan=True)


def test_nan_to_num_of_each_part():
    z = np.array([complex(np.nan, 1), complex(np.inf, np.nan), complex(2, -np.inf)])
    agree(z, function=np.nan_to_num)
    agree(z, function=np.nan_to_num, nan=1.5, posinf=7, neginf=-7)
    agree(z.real, function=np.nan_to_num, nan=np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("dtype", [*DTYPES])
def test_clip_takes_every_form_of_bounds(dtype):
    x = sample((3, 4), dtype)
    low, high = sample((4,), dtype, seed=2), sample((3, 1), dtype, seed=3)
    agree(x, low, high, function=np.clip)
    agree(x, None, high, function=np.clip)
    agree(x, low, None, function=np.clip)
    agree(x, 0, 1, function=np.clip)
    agree(x, -1, 300, function=np.clip)
    agree(x, function=np.clip, min=-10**30, max=10**30)
    agree(x, np.int16(-3), np.float32(2.5), function=np.clip)
    agree(x, function=np.clip)
    agree(x, None, None, function=np.clip)
    agree(x, -2, None, function="clip", kind="method")


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_takes_any_number_of_decimals(dtype):
    x = (sample((6,), "f8") * 7).astype(dtype)
    for decimals in (0, 1, 2, -1, -2):
        agree(x, decimals, function=np.round)
    agree(x, 1, function="round", kind="method")


def test_every_elementwise_ufunc_is_in_the_table():
    assert [f.__name__ for f in ELEMENTWISE if f not in table.FUNCTIONS] == []
