"""Functions where no C library is and float32 stays as it is: huge angles, remainders of large quotients, powers."""

import sys
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from one_kernel import equal, run, text_of  # noqa: E402
from test_math import ULPS, close, errors_in_ulps, pairs, specials  # noqa: E402

from jitlab.targets.cpu_llvm import machine  # noqa: E402
from jitlab.targets.llvm.features import Features  # noqa: E402
from jitlab.targets.llvm.math import huge  # noqa: E402


def alone():
    """Of this machine, without a C library, and its float32 without float64."""
    has = machine.features()
    return Features(has.vector_bytes, True, has.converts_half, has.masked_bytes, has.saturates_casts, False, False)


def computed(name, *arrays, width=None):
    return run(lambda e, *xs: getattr(e, name)(*xs), *arrays, width=width, features=alone())


def patterns(dtype, count, seed):
    """Floats of random bits: all magnitudes, denormals, infinities, NaN."""
    bits = 8 * np.dtype(dtype).itemsize
    return np.random.default_rng(seed).integers(0, 2**bits, count, f"u{bits // 8}").view(dtype)


def nearest(dtype):
    """For exponents of all sizes the floats that come closest to multiples of pi/2: denominators of convergents of 2/pi's
    continued fraction, times the power of two."""
    info = np.finfo(dtype)
    digits, found = info.nmant + 1, []
    for exponent in range(-23 if dtype == "f8" else -6, info.maxexp - digits + 1, 5 if dtype == "f8" else 1):
        with mp.workprec(1400):
            left = Fraction(int(mp.floor(mp.mpf(2) ** (1300 + exponent) * 2 / mp.pi)), 2**1300) % 1
        one, two = 0, 1
        while left:
            whole, left = divmod(1 / left, 1)
            one, two = two, whole * two + one
            if two >= 2**digits:
                break
            if two >= 2 ** (digits - 6):  # and multiples of it, which are as close but for that factor
                found += [two * k * 2.0**exponent for k in (1, 2**digits // two) if two * k < 2**digits]
    return np.array(found)


def angles(dtype, count):
    rng = np.random.default_rng(3)
    multiples = np.round(2.0 ** rng.uniform(16, 63, count)) * (np.pi / 2)
    near = nearest(dtype)
    return np.concatenate([near, -near, multiples, -multiples]).astype(dtype)


def test_pi_is_right_to_its_last_bit():
    with mp.workprec(3000):
        for count in (2, 126, 1280, 2500):
            assert huge.pi_bits(count) == int(mp.floor(mp.pi * mp.mpf(2) ** count))


def test_the_nearest_known_angle_is_among_them():
    assert 6381956970095103 * 2.0**797 in nearest("f8") and min(abs(np.cos(nearest("f4").astype("f4").astype("f8")))) < 2.0**-28


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_huge_angles_within_3_ulp(name, dtype):
    x = np.concatenate([angles(dtype, 300), patterns(dtype, 1500, 4)])
    x = x[np.isfinite(x)]
    worst, at = errors_in_ulps(name, computed(name, x), x)
    assert worst <= ULPS, at


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_an_angle_is_the_same_on_every_lane(name, dtype):
    x = np.concatenate([specials(dtype), angles(dtype, 20), patterns(dtype, 500, 5)])
    first = computed(name, x, width=1)
    assert (np.isnan(first) == ~np.isfinite(x)).all()
    for width in (2, 4, 16):
        assert equal(computed(name, x, width=width), first).all()


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_remainders_are_exact(name, dtype):
    special = [a.ravel() for a in np.meshgrid(specials(dtype), specials(dtype))]
    x, y = (np.concatenate([special[k], patterns(dtype, 20_000, k)]) for k in (0, 1))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    for width in (1, 4, 16):
        got = computed(name, x, y, width=width)
        wrong = ~equal(got, expected)
        assert not wrong.any(), (x[wrong][:5], y[wrong][:5], got[wrong][:5], expected[wrong][:5])


def test_one_divisor_for_all_lanes():
    x = patterns("f4", 2000, 8)
    with np.errstate(all="ignore"):
        expected = np.fmod(x, np.float32(1e-30))
    got = run(lambda e, v: e.fmod(v, e.constant(1e-30, v.dtype)), x, features=alone())
    assert equal(got, expected).all()


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_where_the_c_library_is_called(name, dtype):
    dtype = np.dtype(dtype)
    count = 1 if name in ("sin", "cos", "tan") else 2
    for features, calls in ((machine.features(), True), (alone(), False)):
        text = text_of(lambda e, *xs: getattr(e, name)(*xs), [dtype] * count, dtype, 4, features)
        outside = [line for line in text.splitlines() if line.startswith("declare ") and "@llvm." not in line]
        assert bool(outside) == calls
        assert ("double" in text) == (dtype.itemsize == 8 or (calls and count == 1))


def test_powers_of_float32_within_3_ulp():
    for x, y in pairs("pow", "f4"):
        x, y = x.astype("f4"), y.astype("f4")
        worst, at = errors_in_ulps("pow", computed("pow", x, y), x, y)
        assert worst <= ULPS, at
    x, y = (a.ravel() for a in np.meshgrid(specials("f4"), specials("f4")))
    for width in (1, 16):
        assert close(computed("pow", x, y, width=width), run(lambda e, a, b: e.pow(a, b), x, y)).all()


@pytest.mark.parametrize("power", [3, 4, 5, 6, 7, 8])
def test_products_of_float32_are_rounded_as_by_way_of_float64(power):
    rng = np.random.default_rng(power)
    x = (2.0 ** rng.uniform(-100 / power, 127 / power, 20_000) * rng.choice([-1, 1], 20_000)).astype("f4")
    x = np.concatenate([x, x - x, [np.inf, -np.inf, np.nan, 3e38, -3e38]]).astype("f4")

    def computed_with(features):
        return run(lambda e, v: e.pow(v, e.constant(power, v.dtype)), x, features=features)

    assert equal(computed_with(alone()), computed_with(machine.features())).all()


@pytest.mark.parametrize("width", [1, 4])
def test_float32_has_no_float64(width):
    f4 = np.dtype("f4")
    for body in (lambda e, x, y: e.pow(x, y), lambda e, x, y: e.pow(x, e.constant(3, f4))):
        texts = [text_of(body, [f4, f4], f4, width, features) for features in (machine.features(), alone())]
        assert ["double" in text for text in texts] == [True, False]
