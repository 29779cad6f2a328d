"""Whether two sets of durations differ: a ratio with its interval, and a word. Imports nothing of ours.

Durations of one program are not normal: another process makes some of them much longer (bursts, tails), the clock of the
processor goes through modes and drifts, and neighbours in time resemble each other. So

1. logarithms are compared: noise of a machine multiplies, and a ratio is what is asked for;
2. the centre is a trimmed mean that leaves out more of the slow side (`FAST_TRIM`, `SLOW_TRIM`): what disturbs a program makes
   it slower (Chen and Revels 2016, "Robust benchmarking in noisy environments", HPEC, go as far as the minimum, which one lucky
   mode of the clock decides). Its error comes from the winsorised variance (Tukey and McLaughlin 1963; Yuen 1974, "The
   two-sample trimmed t for unequal population variances", Biometrika 61), with Welch's degrees of freedom;
3. neighbours that resemble each other count as fewer samples than they are: where the means of `BLOCKS` blocks in the order of
   time vary more than single samples explain, theirs is the variance ("batch means"; the levels of Kalibera and Jones 2013,
   "Rigorous benchmarking in reasonable time", ISMM), and more where blocks still resemble the one before (a drift);
4. a run that was over in one mode of the clock has not seen the others. Windows of T seconds of one program differed by
   `MODES` · sqrt(`DWELL` / (T + `DWELL`)) on the virtual machines of which tests/statistics has recordings (T = 0.01 to 0.3):
   each side's error is at least that. So it is with other programs: where they kept all processors busy, such windows differed
   by `DISTURBED`. A call after a pause runs on a processor that slept, slower or faster than one that another program kept
   awake: short runs apart from each other differed by `COLD` · sqrt(`COLD_DWELL` / (T + `COLD_DWELL`)), T the seconds of one;
5. pairs, taken in turn, are compared pair by pair, so drift and bursts cancel. Both sides go by the fastest of up to
   `ROUNDS` rounds that lie together, as in Python's timeit: a disturbance of one round is no property of the program. Where
   each call differs from the next, not some from all others, all pairs say more, and the surer of the two is taken;
6. a change is reported where it is certain to 99 % (a fifth of what the interval of 95 % leaves out), and not below
   `LEAST`: two runs of the same code differ for where their memory lies (Mytkowicz et al. 2009, "Producing wrong data
   without doing anything obviously wrong", ASPLOS). Pairs share their memory: `LEAST_OF_PAIRS`.

What it cannot tell: a machine that became slower between two runs, for longer than a run, from a program that did. Several
earlier runs tell how much such runs differ (`between`); pairs need none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jitlab.support.lazy_dataclass import dataclass

Floats = NDArray[np.float64]

#: Fewer samples than this on a side say nothing of a difference; of what was not taken in turns, fewer than `FEWEST_APART`.
FEWEST, FEWEST_APART = 3, 5
#: Shares of the samples that the centre leaves out: the fastest, the slowest; of pairs, on both sides.
FAST_TRIM, SLOW_TRIM, PAIR_TRIM = 0.1, 0.6, 0.2
#: A smaller change than this is none.
LEAST, LEAST_OF_PAIRS = 0.04, 0.01
#: Blocks of neighbours whose means are compared, at least and at most, and the fewest samples of one.
LEAST_BLOCKS, BLOCKS, OF_A_BLOCK = 5, 8, 4
#: The correlation of blocks that lie side by side is known badly from so few: more than this is not believed.
MOST_ALIKE = 0.8
#: How much the modes of a processor's clock differ (a standard deviation), and for how many seconds one lasts.
MODES, DWELL = 0.08, 0.01
#: How much windows of 0.3 s differ (a standard deviation) while other programs take all processors.
DISTURBED = 0.16
#: How much short runs with pauses before them differ (a standard deviation), and for how many seconds of work.
COLD, COLD_DWELL = 0.25, 0.001
#: Rounds of a pair that are taken together at most, and how many such groups there shall be at least.
ROUNDS, GROUPS = 4, 8

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


@dataclass(frozen=True)
class _Centre:
    """A middle in logarithms, its variance, and the degrees of freedom of that."""

    middle: float
    variance: float
    freedom: float


def difference(
    before: Sequence[float], after: Sequence[float], *, paired: bool = False, level: float = 0.95,
    spans: tuple[float, float] | None = None, runs: tuple[int, int] = (1, 1), disturbed: tuple[float, float] = (0.0, 0.0),
    between: float = 0.0,
) -> Change:  # fmt: skip
    """How durations changed: seconds of two sides, each in the order of time.

    `paired`: `before[i]` and `after[i]` were taken next to each other, in turns. `level`: of the interval. `spans`: the
    seconds that were measured on each side, where the samples are some of many (else they are added up). `runs`: in how many
    runs, with pauses between them. `disturbed`: the
    share of the processors that other programs took on each side. `between`: how much runs of the same program differed (a
    standard deviation of logarithms, `spread` of their middles), where there were several.
    ValueError: fewer than `FEWEST` samples on a side, a sample that is not positive and finite, pairs of unequal number.
    """
    x, y = _logarithms(before, "before"), _logarithms(after, "after")
    if paired:
        if x.size != y.size:
            raise ValueError(f"pairs have as many samples before as after, not {x.size} and {y.size}")
        ways = [_centre(pairs, PAIR_TRIM, PAIR_TRIM) for pairs in (_fastest(y) - _fastest(x), y - x)]
        found, least = min(ways, key=lambda way: way.variance), LEAST_OF_PAIRS
    else:
        seconds = spans or (float(np.exp(x).sum()), float(np.exp(y).sum()))
        sides = zip((x, y), seconds, disturbed, runs, strict=True)
        old, new = (_centre(side, FAST_TRIM, SLOW_TRIM, span, others, count) for side, span, others, count in sides)
        found, least = _subtracted(new, old), LEAST
        if 2 * between**2 > found.variance:
            found = replace(found, variance=2 * between**2)
    error = math.sqrt(found.variance)
    margin = error * _t_quantile((1 + level) / 2, found.freedom)
    certain = error * _t_quantile(1 - (1 - level) / 10, found.freedom)
    ratio, low, high = (math.exp(value) for value in (found.middle, found.middle - margin, found.middle + margin))
    significant = abs(found.middle) > certain and abs(ratio - 1) >= least
    return Change(ratio, low, high, significant, _word(ratio, low, high) if significant else NO_CHANGE)


def spread(middles: Sequence[float]) -> float:
    """How much runs differ: a robust standard deviation of the logarithms of their middles (1.48 times the median of the
    distances from the median), 0 of fewer than `FEWEST`."""
    if len(middles) < FEWEST:
        return 0.0
    values = _logarithms(middles, "middles")
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def interval(samples: Sequence[float], *, level: float = 0.95) -> tuple[float, float, float]:
    """(middle, low, high) of durations in the order of time; the middle is the centre that `difference` compares.

    One or two samples are their own interval. ValueError: no samples, or one that is not positive and finite.
    """
    values = _logarithms(samples, "samples", fewest=1)
    if values.size < FEWEST:
        return tuple(math.exp(value) for value in (values.mean(), values.min(), values.max()))  # type: ignore[return-value]
    found = _centre(values, FAST_TRIM, SLOW_TRIM, float(np.exp(values).sum()))
    margin = math.sqrt(found.variance) * _t_quantile((1 + level) / 2, found.freedom)
    return math.exp(found.middle), math.exp(found.middle - margin), math.exp(found.middle + margin)


def _logarithms(samples: Sequence[float], name: str, fewest: int = FEWEST) -> Floats:
    values = np.asarray(samples, np.float64)
    if values.ndim != 1 or values.size < fewest:
        raise ValueError(f"{name}: at least {fewest} samples in a row are needed, not {values.size}")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"{name}: a duration is a finite number above 0")
    return np.log(values)


def _fastest(values: Floats) -> Floats:
    """Of every few neighbours the fastest; both sides of a pair are cut alike."""
    size = max(1, min(ROUNDS, values.size // GROUPS))
    parts = values.size // size
    return np.minimum.reduceat(values, np.arange(parts) * values.size // parts)


def _centre(
    values: Floats, fast: float, slow: float, seconds: float = math.inf, others: float = 0.0, runs: int = 1
) -> _Centre:
    n = values.size
    ordered = np.sort(values)
    kept = ordered[int(fast * n) : n - int(slow * n)]
    winsorised = np.clip(values, kept[0], kept[-1])
    share = kept.size / n
    variance, freedom = float(winsorised.var(ddof=1)) / (share * share * n), max(1.0, kept.size - 1.0)
    blocks = min(BLOCKS, n // OF_A_BLOCK)
    if blocks >= LEAST_BLOCKS:
        size = n // blocks
        means = winsorised[: blocks * size].reshape(blocks, size).mean(axis=1)
        alike = min(max(_correlation(means), 0.0), MOST_ALIKE)
        of_blocks = float(means.var(ddof=1)) / (share * share * blocks) * (1 + alike) / (1 - alike)
        if of_blocks > variance:
            variance, freedom = of_blocks, blocks - 1.0
    of_machine = MODES**2 * DWELL / (seconds + DWELL) + (DISTURBED * others) ** 2
    of_machine += COLD**2 * COLD_DWELL / (seconds / runs + COLD_DWELL)
    if of_machine > variance:
        variance, freedom = of_machine, max(freedom, 30.0)
    return _Centre(float(kept.mean()), variance, freedom)


def _correlation(means: Floats) -> float:
    """Of each with the next, corrected for the bias of short rows (Kendall 1954)."""
    away = means - means.mean()
    spread = float(np.square(away).sum())
    return float((away[1:] * away[:-1]).sum()) / spread + 1 / means.size if spread else 0.0


def _subtracted(a: _Centre, b: _Centre) -> _Centre:
    """a - b, with the degrees of freedom of Welch and Satterthwaite."""
    variance = a.variance + b.variance
    spread = a.variance**2 / a.freedom + b.variance**2 / b.freedom
    return _Centre(a.middle - b.middle, variance, variance**2 / spread if spread else a.freedom + b.freedom)


def _word(ratio: float, low: float, high: float) -> str:
    """In per cent; what became more than twice as slow or fast is told in times."""
    around = (high - low) / 2
    if ratio > 2:
        return f"slower, {ratio:.1f} × the time ± {around:.1f}"
    digits = 0 if around >= 0.01 else 1
    return f"{'slower' if ratio > 1 else 'faster'} by {abs(ratio - 1) * 100:.{digits}f} % ± {around * 100:.{digits}f}"


def _t_quantile(p: float, freedom: float) -> float:
    """Student's t, p above 0.5: exact for 1 and 2 degrees of freedom, else by the expansion of Cornish and Fisher (Abramowitz
    and Stegun 26.7.5), to 0.2 % for 3 and better for more."""
    if freedom < 1.5:
        return math.tan(math.pi * (p - 0.5))
    if freedom < 2.5:
        return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    z = NormalDist().inv_cdf(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**n for n, term in enumerate(terms, 1))
