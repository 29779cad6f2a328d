"""Functions of complex numbers: within a few ULP of the true value in each part, and Annex G's special values as NumPy's."""

import sys
import warnings
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "targets"))
from one_kernel import run  # noqa: E402

from jitlab.ops.elementwise import complex_bodies  # noqa: E402

TRUE = {
    "log2": lambda z: mp.log(z) / mp.log(2),
    "log10": lambda z: mp.log(z) / mp.log(10),
    "log1p": lambda z: mp.log(1 + z),
    **{f"arc{name}": getattr(mp, f"a{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
#: ULP, where not 3: their quotients of products (NumPy's own are as far off).
BOUND = {"tan": 4, "tanh": 4}
ENTIRE = ("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh")
NAMES = [*ENTIRE, "sqrt", "log", "log2", "log10", "log1p"]
NAMES += [f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")]


def compiled(name, z):
    return run(lambda e, v: complex_bodies.body(e, name, v), z)


def points(name):
    """Where the function is used, near its branch points, near the unit circle, over all magnitudes."""
    rng = np.random.default_rng(11)
    n = 40

    def magnitudes(low, high):
        return rng.choice([-1, 1], n) * 2.0 ** rng.uniform(low, high, n)

    angle = rng.uniform(0, 2 * np.pi, n)
    yield rng.uniform(-3, 3, n) + 1j * rng.uniform(-3, 3, n)
    yield rng.choice([-1, 1], n) * (1 + magnitudes(-52, -1)) + 1j * magnitudes(-60, 0)
    yield magnitudes(-60, 0) + 1j * rng.choice([-1, 1], n) * (1 + magnitudes(-52, -1))
    yield (1 + magnitudes(-50, -2)) * np.exp(1j * angle)
    if name not in ENTIRE:
        yield magnitudes(-1070, 1022) + 1j * magnitudes(-1070, 1022)


def ulps(got, true):
    if abs(true) > mp.mpf(2) ** 1024:
        return 0 if np.isinf(got) else np.inf
    exponent = max(mp.frexp(abs(true))[1] - 1, -1022) if true else -1022
    return float(abs(mp.mpf(float(got)) - true) / mp.mpf(2) ** (exponent - 52))


@pytest.mark.parametrize("name", NAMES)
def test_each_part_is_near_the_true_value(name):
    z = np.concatenate(list(points(name)))
    true = TRUE.get(name) or getattr(mp, name)
    for argument, value in zip(z.tolist(), compiled(name, z).tolist(), strict=True):
        with mp.workprec(250 if min(abs(argument.real), abs(argument.imag)) > 1e-30 and abs(argument) < 1e30 else 2500):
            wanted = mp.mpc(true(mp.mpc(argument)))
            worst = max(ulps(value.real, wanted.real), ulps(value.imag, wanted.imag))
        assert worst <= BOUND.get(name, 3), (argument, value, complex(wanted))


PARTS = np.array([s * x for x in (0.0, 1.0, 0.5, 2.0, np.inf, np.nan, 1e308, 800.0, np.pi) for s in (1, -1)])
SPECIALS = np.array([complex(x, y) for x in PARTS for y in PARTS])


def same(got, want, ulps=4):
    """Equal, or a few last places apart; NaN with NaN, and signs of zeros kept."""
    near = np.abs(got - want) <= ulps * np.spacing(np.maximum(np.abs(got), np.abs(want)))
    return (np.isnan(got) & np.isnan(want)) | ((np.signbit(got) == np.signbit(want)) & ((got == want) | near))


@pytest.mark.parametrize("name", [*NAMES, "expm1", "exp2"])
def test_special_values_are_numpys(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = getattr(np, name)(SPECIALS)
        got = compiled(name, SPECIALS)
        right = same(got.real, want.real) & same(got.imag, want.imag)
    if name == "log1p":  # NumPy's loses what is small beside 1
        right |= np.abs(SPECIALS) < 1e-300
    assert right.all(), list(zip(SPECIALS[~right], got[~right], want[~right], strict=True))[:5]


@pytest.mark.parametrize("name", ["exp", "sqrt", "arcsin", "tanh", "log"])
def test_single_precision_is_the_rounded_double(name):
    rng = np.random.default_rng(5)
    z = (rng.normal(size=50) + 1j * rng.normal(size=50)).astype("c8")
    with np.errstate(all="ignore"):
        wide = compiled(name, z.astype("c16")).astype("c8")
    np.testing.assert_array_equal(compiled(name, z), wide)


def test_powers_are_numpys():
    rng = np.random.default_rng(6)
    z = rng.normal(size=200) + 1j * rng.normal(size=200)
    for exponent in (rng.normal(size=200) + 1j * rng.normal(size=200), np.round(rng.normal(size=200) * 8) + 0j):
        with np.errstate(all="ignore"):
            want = np.power(z, exponent)
        got = run(complex_bodies.power, z, exponent)
        bound = (4 + 2 * np.abs(exponent * np.log(z))) * 2 * np.finfo("f8").eps
        assert np.all(np.abs(got - want) <= bound * np.abs(want))
    base, exponent = (a.ravel() for a in np.meshgrid([0j, 1 + 0j, np.inf + 0j, -2 + 0j], [0j, 2 + 0j, -1 + 0j, 0.5 + 1j]))
    with np.errstate(all="ignore"):
        want, got = np.power(base, exponent), run(complex_bodies.power, base, exponent)
    np.testing.assert_allclose(got, want, rtol=1e-14)


def test_the_order_of_complex_numbers_is_numpys():
    x, y = (a.ravel() for a in np.meshgrid(SPECIALS[::3], SPECIALS[::5]))
    for order, ufunc in (("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal)):
        got = run(lambda e, a, b, order=order: complex_bodies.compare(e, order, a, b), x, y, result=bool)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, ufunc(x, y))
    with np.errstate(all="ignore"):
        for body, ufunc in ((complex_bodies.sign, np.sign), (complex_bodies.reciprocal, np.reciprocal)):
            got, want = run(body, SPECIALS), ufunc(SPECIALS)
            assert (same(got.real, want.real) & same(got.imag, want.imag)).all()
