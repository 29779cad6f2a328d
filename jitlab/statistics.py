"""Whether two sets of durations differ: a ratio with its interval, and a word. Imports nothing of ours.

Durations of one program are not normal: another process makes some of them much longer (bursts, tails), the clock of the
processor drifts, and neighbours in time resemble each other. So

1. the logarithms are compared: noise of a machine multiplies, and a ratio is what is asked for;
2. the centre is a trimmed mean that leaves out more of the slow side (`FAST_TRIM`, `SLOW_TRIM`): what disturbs a program makes
   it slower. Its error comes from the winsorised variance (Tukey and McLaughlin 1963; Yuen 1974, "The two-sample trimmed t for
   unequal population variances", Biometrika 61), with Welch's degrees of freedom;
3. neighbours that resemble each other count as fewer samples than they are: the variance is that of the means of blocks,
   where it is larger ("batch means": Kalibera and Jones 2013, "Rigorous benchmarking in reasonable time", ISMM). Of two runs
   one after the other the halves of each say how far the machine drifts within one;
4. pairs (taken in turn) are compared pair by pair: drift and bursts that last longer than a pair cancel;
5. less than `LEAST` is no change: two runs of the same code differ by this much for where their memory lies (Mytkowicz et al.
   2009, "Producing wrong data without doing anything obviously wrong", ASPLOS). Pairs share their memory: `LEAST_OF_PAIRS`.

tests/test_statistics.py shows it on simulated noise and on samples recorded on a machine that others used meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Fewer samples than this on a side say nothing of a difference.
FEWEST = 3
#: Shares of the samples that the centre leaves out: the fastest, the slowest.
FAST_TRIM, SLOW_TRIM = 0.1, 0.4
#: Of the differences of pairs, on both sides.
PAIR_TRIM = 0.25
#: A smaller change than this is none.
LEAST, LEAST_OF_PAIRS = 0.03, 0.01
#: Blocks of neighbours whose means are compared.
BLOCKS = 8

NO_CHANGE = "no measurable change"


@dataclass(frozen=True)
class Change:
    """`ratio` is after / before, `low` to `high` its interval, `word` what is said of it: "slower by 54 % ± 3"."""

    ratio: float
    low: float
    high: float
    significant: bool
    word: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def difference(before: Sequence[float], after: Sequence[float], *, paired: bool = False, level: float = 0.95) -> Change:
    """How durations changed: seconds (or any one unit) of two sides, each in the order of time.

    `paired`: `before[i]` and `after[i]` were taken next to each other, in turns. `level`: of the interval.
    ValueError: fewer than `FEWEST` samples on a side, a sample that is not positive and finite, pairs of unequal number.
    """
    x, y = _logarithms(before, "before"), _logarithms(after, "after")
    if paired and x.size != y.size:
        raise ValueError(f"pairs have as many samples before as after, not {x.size} and {y.size}")
    if paired:
        middle, error, freedom = _centre(y - x, PAIR_TRIM, PAIR_TRIM)
        least = LEAST_OF_PAIRS
    else:
        (old, old_error, old_freedom), (new, new_error, new_freedom) = (_centre(side, FAST_TRIM, SLOW_TRIM) for side in (x, y))
        middle = new - old
        error = math.hypot(old_error, new_error)
        freedom = error**4 / max(old_error**4 / old_freedom + new_error**4 / new_freedom, 1e-300) if error else old_freedom
        least = LEAST
    margin = error * _t_quantile((1 + level) / 2, freedom)
    ratio, low, high = (math.exp(value) for value in (middle, middle - margin, middle + margin))
    significant = not low <= 1 <= high and abs(ratio - 1) >= least
    return Change(ratio, low, high, significant, _word(ratio, low, high) if significant else NO_CHANGE)


def interval(samples: Sequence[float], *, level: float = 0.95) -> tuple[float, float, float]:
    """(middle, low, high) of durations in the order of time; middle is the centre that `difference` compares.

    ValueError as for `difference`, but one or two samples are their own interval.
    """
    values = np.asarray(samples, np.float64)
    if 0 < values.size < FEWEST:
        return float(np.exp(np.mean(np.log(values)))), float(values.min()), float(values.max())
    middle, error, freedom = _centre(_logarithms(samples, "samples"), FAST_TRIM, SLOW_TRIM)
    margin = error * _t_quantile((1 + level) / 2, freedom)
    return math.exp(middle), math.exp(middle - margin), math.exp(middle + margin)


def _logarithms(samples: Sequence[float], name: str) -> Floats:
    values = np.asarray(samples, np.float64)
    if values.ndim != 1 or values.size < FEWEST:
        raise ValueError(f"{name}: at least {FEWEST} samples in a row are needed, not {values.size}")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"{name}: a duration is a finite number above 0")
    return np.log(values)


def _centre(values: Floats, fast: float, slow: float) -> tuple[float, float, float]:
    """The trimmed mean, its standard error and the degrees of freedom."""
    n = values.size
    low, high = int(fast * n), n - int(slow * n)
    ordered = np.sort(values)
    kept = ordered[low:high]
    winsorised = np.clip(values, kept[0], kept[-1])
    share = kept.size / n
    freedom = float(max(1, kept.size - 1))
    variance = float(winsorised.var(ddof=1)) / (share * share * n)
    blocks = min(BLOCKS, n // 4)
    if blocks >= 3:  # neighbours alike
        means = np.array([part.mean() for part in np.array_split(winsorised, blocks)])
        of_means = float(means.var(ddof=1)) / (share * share * blocks)
        if of_means > variance:
            variance, freedom = of_means, float(blocks - 1)
    return float(kept.mean()), math.sqrt(variance), freedom


def _word(ratio: float, low: float, high: float) -> str:
    change, around = abs(ratio - 1) * 100, (high - low) / 2 * 100
    digits = 0 if around >= 1 else 1
    return f"{'slower' if ratio > 1 else 'faster'} by {change:.{digits}f} % ± {around:.{digits}f}"


def _t_quantile(p: float, freedom: float) -> float:
    """Student's t: Cornish and Fisher's expansion from the normal quantile; exact for 1 and 2 degrees of freedom."""
    freedom = max(1.0, freedom)
    if freedom < 1.5:
        return math.tan(math.pi * (p - 0.5))
    if freedom < 2.5:
        a = 4 * p * (1 - p)
        return 2 * (p - 0.5) * math.sqrt(2 / a)
    z = _normal_quantile(p)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    g4 = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + g1 / freedom + g2 / freedom**2 + g3 / freedom**3 + g4 / freedom**4


def _normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)
