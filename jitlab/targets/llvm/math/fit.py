"""Writes coefficients.py: polynomials fitted to the functions of math.py. For developers; needs mpmath.

    python -m jitlab.targets.llvm.math.fit
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]

# name: what it approximates; the function; its interval; terms for float64 and float32
Fit = tuple[str, Callable[[Any], Any], float, float, int, int]


def series(term: Callable[[int], Any], terms: int = 40) -> Callable[[Any], Any]:
    """sum of term(k) * z**k: exact enough near 0, where the closed forms cancel."""
    factors = [term(k) for k in range(terms)]
    return lambda z: mp.polyval(factors[::-1], z)


def erf_ratio(z: Any) -> Any:
    """erf(x) / x - 1 for z = x*x."""
    x = mp.sqrt(z)
    return (mp.erf(x) / x if z else 2 / mp.sqrt(mp.pi)) - 1


HALF_LN2 = float(mp.log(2) / 2 * 1.01)
QUARTER_PI_SQUARED = float((mp.pi / 4 * 1.01) ** 2)
LOG_SQUARED = 0.17158**2  # of f / (2 + f) for 1 + f from sqrt(1/2) to sqrt(2)
ATAN_SQUARED = 0.41422**2  # tan(pi/8) squared


def asin_rest(z: Any) -> Any:
    """(arcsin(s) - s) / s**3 for z = s*s, by its series near 0."""
    if z < 0.01:
        return sum(mp.binomial(2 * k, k) / mp.mpf(4) ** k / (2 * k + 1) * z ** (k - 1) for k in range(1, 40))
    s = mp.sqrt(z)
    return (mp.asin(s) - s) / s**3


def tan_rest(z: Any) -> Any:
    """(tan(r) - r) / r**3 for z = r*r."""
    r = mp.sqrt(z)
    return (mp.tan(r) - r) / r**3 if r > mp.mpf(2) ** -40 else mp.mpf(1) / 3 + z * 2 / 15


def erfc_rest(t: Any) -> Any:
    """exp(x*x) erfc(x) for t = 1 / (x + 3)."""
    x = 1 / t - 3
    return mp.exp(x * x) * mp.erfc(x)


def erfcx_rest(t: Any) -> Any:
    """exp(x*x) erfc(x) / t for t = 1 / (x + 3); far out by its asymptotic series."""
    if t < mp.mpf(1) / 63:
        x = 1 / t - 3 if t else mp.inf
        terms = [(-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(25)]
        return sum(terms) / mp.sqrt(mp.pi) * (x + 3) / x if t else 1 / mp.sqrt(mp.pi)
    return erfc_rest(t) / t


FITS: tuple[Fit, ...] = (
    ("EXP", series(lambda k: 1 / mp.factorial(k + 2)), -HALF_LN2, HALF_LN2, 10, 5),
    ("EXP2", lambda r: mp.log(2) * series(lambda k: mp.log(2) ** k / mp.factorial(k + 1))(r), -0.503, 0.503, 11, 6),
    ("LOG", series(lambda k: mp.mpf(2) / (2 * k + 3)), 0, LOG_SQUARED, 7, 4),
    ("EXP_SHORT", series(lambda k: 1 / mp.factorial(k + 2)), -HALF_LN2, HALF_LN2, 6, 0),
    ("LOG_SHORT", series(lambda k: mp.mpf(2) / (2 * k + 3)), 0, LOG_SQUARED, 4, 0),
    ("LOG_TAIL", series(lambda k: mp.mpf(2) / (2 * k + 5)), 0, LOG_SQUARED, 8, 4),
    ("SIN", series(lambda k: (-1) ** (k + 1) / mp.factorial(2 * k + 3)), 0, QUARTER_PI_SQUARED, 6, 3),
    ("COS", series(lambda k: (-1) ** k / mp.factorial(2 * k + 4)), 0, QUARTER_PI_SQUARED, 6, 3),
    ("SINH", series(lambda k: 1 / mp.factorial(2 * k + 3)), 0, 1.001, 7, 4),
    ("TAN", tan_rest, 0, QUARTER_PI_SQUARED, 15, 7),
    ("ATAN", series(lambda k: mp.mpf((-1) ** (k + 1)) / (2 * k + 3), 90), 0, ATAN_SQUARED, 12, 5),
    ("ASIN", asin_rest, 0, 0.2501, 13, 6),
    ("CBRT", lambda z: z ** (-mp.mpf(1) / 3), 0.7071, 1.4143, 6, 5),
    ("ERF", erf_ratio, 0, 1.001, 12, 7),
    ("ERFC", erfc_rest, 0.111, 0.2501, 15, 8),
    ("ERFCX", lambda u: erfcx_rest(u + mp.mpf(1) / 8), -0.125, 0.1385, 23, 0),
)

NOTES = {
    "EXP": "(exp(r) - 1 - r) / r**2",
    "EXP2": "(2**r - 1) / r",
    "LOG": "(log((1 + s) / (1 - s)) - 2 s) / s**3 in s**2",
    "EXP_SHORT": "EXP for float32 in float64",
    "LOG_SHORT": "LOG for float32 in float64",
    "LOG_TAIL": "(log((1 + s) / (1 - s)) - 2 s - 2/3 s**3) / s**5 in s**2",
    "SIN": "(sin(r) - r) / r**3 in r**2",
    "COS": "(cos(r) - 1 + r**2 / 2) / r**4 in r**2",
    "SINH": "(sinh(x) - x) / x**3 in x**2",
    "TAN": "(tan(r) - r) / r**3 in r**2",
    "ATAN": "(arctan(t) - t) / t**3 in t**2",
    "ASIN": "(arcsin(s) - s) / s**3 in s**2",
    "CBRT": "z ** (-1/3)",
    "ERF": "erf(x) / x - 1 in x**2",
    "ERFC": "exp(x**2) erfc(x) in 1 / (x + 3)",
    "ERFCX": "exp(x**2) erfc(x) (x + 3) in 1 / (x + 3) - 1/8",
}


def single(value: Any) -> float:
    return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def parts(value: Any, count: int, round_to: Callable[[Any], float]) -> list[float]:
    """A number as the sum of `count` floats, each the rounded rest."""
    result = []
    for _ in range(count):
        result.append(round_to(value))
        value -= mp.mpf(result[-1])
    return result


def head_and_tail(value: Any, head: str, round_to: Callable[[Any], float]) -> list[float]:
    """A given head with spare low bits, and the rest."""
    high = float.fromhex(head)
    return [high, round_to(value - mp.mpf(high))]


def main() -> None:
    mp.mp.prec = 300
    lines = ['"""Written by fit.py: polynomials, lowest power first, and split constants, by itemsize."""', ""]
    lines += ["from __future__ import annotations", "", "Table = dict[int, tuple[float, ...]]", ""]
    for name, function, low, high, terms64, terms32 in FITS:
        lines += [f"# {NOTES[name]}", f"{name}: Table = {{"]
        for itemsize, terms, round_to in ((8, terms64, float), (4, terms32, single)):
            if terms:
                fitted = mp.chebyfit(function, [low, high], terms)[::-1]
                lines.append(f"    {itemsize}: (")
                lines += [f"        {round_to(c)!r}," for c in fitted]
                lines.append("    ),")
        lines += ["}", ""]
    constants = {
        "LN2": (
            head_and_tail(mp.log(2), "0x1.62e42fee00000p-1", float),
            head_and_tail(mp.log(2), "0x1.62e40p-1", single),
        ),
        "PIO2": (parts(mp.pi / 2, 3, float), parts(mp.pi / 2, 3, single)),
        "PIO4": (parts(mp.pi / 4, 2, float), parts(mp.pi / 4, 2, single)),
        "INV_LN2": (parts(1 / mp.log(2), 2, float), parts(1 / mp.log(2), 2, single)),
        "INV_LN10": (parts(1 / mp.log(10), 2, float), parts(1 / mp.log(10), 2, single)),
        "LOG10_2": (
            head_and_tail(mp.log10(2), "0x1.34413509f0000p-2", float),
            head_and_tail(mp.log10(2), "0x1.3440p-2", single),
        ),
        "TWO_THIRDS": (parts(mp.mpf(2) / 3, 2, float), parts(mp.mpf(2) / 3, 2, single)),
        "TWO_OVER_PI": ([float(2 / mp.pi)], [single(2 / mp.pi)]),
    }
    lines.append("# sums of floats, the greatest first; LN2 and LOG10_2 leave room for a factor of 11 (8) bits")
    for name, (double, float32) in constants.items():
        lines += [f"{name}: Table = {{", f"    8: {tuple(double)!r},", f"    4: {tuple(float32)!r},", "}"]
    Path(__file__).with_name("coefficients.py").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
