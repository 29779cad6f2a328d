"""Functions of floats within 3 ULP of the true value, and the special cases of C99."""

import sys
import warnings
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from one_kernel import equal, run  # noqa: E402

ULPS = 3
UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sinh cosh arctan "
    "arcsin arccos arcsinh arccosh arctanh cbrt erf"
).split()
TRUE = {
    "exp2": lambda x: mp.power(2, x),
    "log": mp.ln,
    "log2": lambda x: mp.log(x, 2),
    "arctan": mp.atan,
    "arctan2": mp.atan2,
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "pow": mp.power,
}


def points(name, dtype, count):
    """Random arguments: where the function is used, where it is hard, and over all magnitudes."""
    rng = np.random.default_rng(7)
    info = np.finfo(dtype)
    low, high = int(np.log2(float(info.smallest_subnormal))), info.maxexp - 1

    def uniform(a, b):
        return rng.uniform(a, b, count)

    def magnitudes(a, b, signed=True):
        x = 2.0 ** rng.uniform(a, b, count)
        return x * rng.choice([-1, 1], count) if signed else x

    top = np.log(float(info.max))
    if name in ("exp", "expm1", "sinh", "cosh", "tanh"):
        bottom = {"exp": np.log(float(info.smallest_subnormal)), "expm1": -50}.get(name, -top)
        return [uniform(-1, 1), uniform(-20, 20), uniform(bottom, top), uniform(top - 1, top), magnitudes(low, 6)]
    if name == "exp2":
        return [uniform(-1, 1), uniform(low, high + 1), magnitudes(low, 6)]
    if name in ("log", "log2", "log10"):
        near_one = 1 + magnitudes(-info.nmant, -1)
        return [uniform(0.5, 2), near_one, magnitudes(low, high, False), magnitudes(low, info.minexp, False)]
    if name == "log1p":
        return [uniform(-0.99, 10), magnitudes(low, 0), magnitudes(-5, high, False), magnitudes(-40, -1, False) - 1]
    if name in ("sin", "cos", "tan"):
        near_zeros = [np.round(uniform(-n, n)) * (np.pi / 2) for n in (100, 6e4, 6e8)]
        return [uniform(-4, 4), uniform(-1e5, 1e5), magnitudes(low, 20), magnitudes(0, high), *near_zeros]
    if name in ("arcsin", "arccos", "arctanh"):
        return [uniform(-1, 1), uniform(-0.6, 0.6), magnitudes(low, 0), 1 - magnitudes(-info.nmant, 0, False)]
    if name == "arccosh":
        return [uniform(1, 5), 1 + magnitudes(-info.nmant, 0, False), magnitudes(0, high, False)]
    if name == "erf":
        return [uniform(-6, 6), uniform(0.9, 1.1), magnitudes(low, 3)]
    return [uniform(-5, 5), uniform(0.3, 0.5), magnitudes(low, high)]


def errors_in_ulps(name, got, *xs):
    """Against mpmath; where the true value overflows or is not real, infinity and NaN are awaited."""
    info = np.finfo(got.dtype)
    true_value = TRUE.get(name) or getattr(mp, name)
    worst, at = 0.0, None
    with mp.workprec(160):
        largest = mp.mpf(float(info.max)) * (1 + mp.mpf(2) ** -(info.nmant + 2))
        for y, *x in zip(got.tolist(), *(a.tolist() for a in xs), strict=True):
            true = true_value(*map(mp.mpf, x))
            if isinstance(true, mp.mpc):
                error = 0.0 if np.isnan(y) else np.inf
            elif abs(true) > largest:
                error = 0.0 if y == np.sign(float(true)) * np.inf else np.inf
            elif not np.isfinite(y):
                error = ULPS if abs(y) == np.inf and abs(true) > float(info.max) * (1 - 2 * info.epsneg) else np.inf
            else:
                exponent = max(mp.frexp(abs(true))[1] - 1, info.minexp) if true else info.minexp
                error = float(abs(mp.mpf(y) - true) / mp.mpf(2) ** (exponent - info.nmant))
            if not error <= worst:
                worst, at = error, (*x, y)
    return worst, at


@pytest.mark.parametrize("name", UNARY)
def test_float64_within_3_ulp(name):
    count = 300 if name in ("sin", "cos", "tan") else 450
    x = np.concatenate(points(name, np.float64, count))
    worst, at = errors_in_ulps(name, run(lambda e, v: getattr(e, name)(v), x), x)
    assert worst <= ULPS, at


@pytest.mark.parametrize("name", [n for n in UNARY if n != "erf"])
def test_float32_within_3_ulp(name):
    x = np.concatenate(points(name, np.float32, 40_000)).astype("f4")
    got = run(lambda e, v: getattr(e, name)(v), x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        true = getattr(np, name)(x.astype("f8"))
        bound = np.finfo("f4").max * (1 + 2.0**-25)
        step = np.spacing(np.abs(np.clip(true, -bound, bound)).astype("f4")).astype("f8")
        step = np.where(np.isfinite(step), step, 2.0**104)
        error = np.abs(got.astype("f8") - true) / step
    error[np.isnan(got) & np.isnan(true)] = 0
    error[np.isinf(got) & (np.abs(true) >= bound)] = 0
    assert np.nanmax(error) <= ULPS and not np.isnan(error).any(), (x[np.nanargmax(error)], got[np.nanargmax(error)])


def test_erf_of_float32_within_3_ulp():
    x = np.concatenate(points("erf", np.float32, 500)).astype("f4")
    assert errors_in_ulps("erf", run(lambda e, v: e.erf(v), x), x)[0] <= ULPS


@pytest.mark.parametrize("name", UNARY)
def test_float16_is_float32_rounded(name):
    x = np.arange(1 << 16, dtype="u2").view("f2")
    got = run(lambda e, v: getattr(e, name)(v), x)
    with np.errstate(all="ignore"):
        wide = run(lambda e, v: getattr(e, name)(v), x.astype("f4"))
        assert equal(got, wide.astype("f2")).all()


def pairs(name, dtype):
    rng = np.random.default_rng(9)
    info = np.finfo(dtype)
    low, high = int(np.log2(float(info.smallest_subnormal))), info.maxexp - 1
    n = 300

    def magnitudes(a, b):
        return 2.0 ** rng.uniform(a, b, n)

    if name == "pow":
        x = magnitudes(low, high)
        yield x, rng.uniform(-1.05, 1.05, n) * high / np.abs(np.log2(x))
        x = (1 + magnitudes(-info.nmant + 3, -2) * rng.choice([-1, 1], n)).astype(dtype)
        yield x, rng.choice([-1, 1], n) * magnitudes(-3, 0) * high / np.abs(np.log2(x.astype("f8")))
        yield rng.uniform(0.1, 10, n), rng.uniform(-5, 5, n)
        yield -np.round(rng.uniform(1, 1000, n)), np.round(rng.uniform(-20, 20, n))
        yield magnitudes(low, info.minexp), rng.uniform(-1, 1, n)
    else:
        signs = rng.choice([-1, 1], (2, n))
        yield rng.uniform(-5, 5, n), rng.uniform(-5, 5, n)
        for a, b in ((low, high), (high - 4, high), (low, info.minexp), (-high / 2 - 3, -high / 2 + 3)):
            yield signs[0] * magnitudes(a, b), signs[1] * magnitudes(a, b)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", ["pow", "hypot", "arctan2"])
def test_two_arguments_within_3_ulp(name, dtype):
    for x, y in pairs(name, dtype):
        x, y = x.astype(dtype), y.astype(dtype)
        worst, at = errors_in_ulps(name, run(lambda e, a, b: getattr(e, name)(a, b), x, y), x, y)
        assert worst <= ULPS, at


SPECIALS = [0.0, 0.5, 1, 1.5, 2, 3, np.inf, np.nan, 1e-30, 1e30, 2.0**52 + 1, 2.0**53, 2.0**53 + 2, 5e-324, 1e-310]
SPECIALS += [710, 745, 746, 89, 104, 105, 150, 1e5, 1e9, 2.0**30, 1e300, 22, 37, np.pi]
SPECIALS = [sign * x for x in SPECIALS for sign in (1, -1)]


def specials(dtype):
    info = np.finfo(dtype)
    own = [info.max, -info.max, info.tiny, -info.tiny, info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg]
    with np.errstate(over="ignore"):
        return np.unique(np.array([*SPECIALS, *own, -0.0]).astype(dtype).view(f"u{info.bits // 8}")).view(dtype)


def close(got, expected, at_edge=4):
    """Bit for bit, or finite numbers a few last places apart (the limits themselves are tested above)."""
    with np.errstate(all="ignore"):
        near = np.abs(got - expected) <= at_edge * np.spacing(np.maximum(np.abs(got), np.abs(expected)))
    return equal(got, expected) | (near & np.isfinite(got) & np.isfinite(expected) & (expected != 0))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", [n for n in UNARY if n != "erf"])
def test_special_values(name, dtype):
    x = specials(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x.astype("f8")).astype(dtype)
    for width in (1, 8, 16):
        got = run(lambda e, v: getattr(e, name)(v), x, width=width)
        assert close(got, expected).all(), (x, got, expected)


def test_special_values_of_erf():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 30, -30, 5e-324])
    expected = np.array([0.0, -0.0, 1, -1, np.nan, 1, -1, 5e-324])
    assert equal(run(lambda e, v: e.erf(v), x), expected).all()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
@pytest.mark.parametrize("name", ["pow", "hypot", "arctan2"])
def test_special_pairs(name, dtype):
    x, y = (a.ravel() for a in np.meshgrid(specials(dtype), specials(dtype)))
    with np.errstate(all="ignore"):
        expected = getattr(np, {"pow": "power"}.get(name, name))(x.astype("f8"), y.astype("f8")).astype(dtype)
    for width in (1, 16):
        got = run(lambda e, a, b: getattr(e, name)(a, b), x, y, width=width)
        underflow = np.maximum(np.abs(got), np.abs(expected)) <= np.finfo(dtype).smallest_subnormal
        wrong = ~(close(got, expected) | (underflow & (np.signbit(got) == np.signbit(expected))))
        assert not wrong.any(), (x[wrong][:5], y[wrong][:5], got[wrong][:5], expected[wrong][:5])


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_remainders_are_exact(dtype):
    rng = np.random.default_rng(2)
    special = np.meshgrid(specials(dtype), specials(dtype))
    tenths = [np.round(rng.uniform(-50, 50, 500)) * 0.1 for _ in range(2)]
    wide = [2.0 ** rng.uniform(-14, 15, 500) * rng.choice([-1, 1], 500) for _ in range(2)]
    for x, y in (special, tenths, wide):
        x, y = x.ravel().astype(dtype), y.ravel().astype(dtype)
        for name, function in (("remainder", np.remainder), ("floor_divide", np.floor_divide), ("fmod", np.fmod)):
            with np.errstate(all="ignore"):
                expected = function(x, y)
            for width in (1, 16):
                got = run(lambda e, a, b, name=name: getattr(e, name)(a, b), x, y, width=width)
                wrong = ~equal(got, expected)
                assert not wrong.any(), (name, x[wrong][:5], y[wrong][:5], got[wrong][:5], expected[wrong][:5])


def test_logarithms_of_powers_are_whole():
    tens = np.array([float(f"1e{k}") for k in range(-300, 309)])
    assert run(lambda e, v: e.log10(v), tens).tolist() == list(range(-300, 309))
    twos = 2.0 ** np.arange(-1074, 1024)
    assert run(lambda e, v: e.log2(v), twos).tolist() == list(range(-1074, 1024))
    assert run(lambda e, v: e.exp2(v), np.arange(-1074.0, 1024)).tolist() == twos.tolist()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
@pytest.mark.parametrize("power", [-1, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, 0, -2.5, np.inf])
def test_one_power_for_all_lanes(power, dtype):
    x = specials(dtype)
    with np.errstate(all="ignore"):  # NumPy takes the root for a single exponent of 0.5
        expected = np.power(x.astype("f8"), power).astype(dtype)
    literal = run(lambda e, v: e.pow(v, e.constant(power, v.dtype)), x)
    first = run(lambda e, v, w: e.pow(v, e.extract(w, 0)), x, np.full_like(x, power))
    for got in (literal, first):
        assert close(got, expected).all(), (x, got, expected)


def test_whole_powers_are_exact():
    x, y = (a.ravel().astype("f8") for a in np.meshgrid(np.arange(-12, 13), np.arange(0, 15)))
    got = run(lambda e, a, b: e.pow(a, b), x, y)
    assert got.tolist() == [float(int(a) ** int(b)) for a, b in zip(x, y, strict=True)]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_lanes_and_tiers_do_not_change_a_bit(name, dtype):
    x = np.concatenate([specials(dtype), *(p[:20] for p in points(name, dtype, 20))]).astype(dtype)
    first = run(lambda e, v: getattr(e, name)(v), x, width=1)
    for width, tier in ((8, "good"), (16, "quick"), (32, "good")):
        assert equal(run(lambda e, v: getattr(e, name)(v), x, width=width, tier=tier), first).all()
