"""What is said of a cell beside NumPy: a planted factor lies in the interval that is shown, whatever disturbs the rounds."""

import sys
from pathlib import Path

import numpy as np
import pytest

from jitlab import events
from jitlab.notebook.magics.rounds import ENOUGH_NS, LEAST_ROUNDS, MOST_REPEATS, MOST_ROUNDS
from jitlab.report.speed import speed

sys.path.insert(0, str(Path(__file__).parents[1] / "statistics"))
from noise_models import bursts, drift, jitter, quiet, walk  # noqa: E402

TRIALS = 500
FACTORS = (1.3, 2.0, 5.0, 50.0, 0.5)


def compared(numpy_ns, compiled_ns, others=None):
    return events.Compared(numpy_ns=numpy_ns, compiled_ns=compiled_ns, largest_error=0.0, others=others)


def planned(model, rng, factor, seconds):
    """A comparison of a cell that takes so many seconds: as many rounds and repeats as its budget has."""
    round_ns = 1e9 * seconds * (1 + factor)
    repeats = int(np.clip(ENOUGH_NS / MOST_ROUNDS / round_ns, 1, MOST_REPEATS))
    rounds = int(np.clip(ENOUGH_NS / round_ns / repeats, LEAST_ROUNDS, MOST_ROUNDS))
    noise = model(rng, 2 * rounds * repeats).reshape(rounds, 2, repeats).min(axis=2)
    turn = np.arange(rounds)
    sides = (factor, noise[turn, 1 - turn % 2]), (1, noise[turn, turn % 2])
    return speed(compared(*(tuple((1e9 * seconds * times * np.exp(side)).astype(int).tolist()) for times, side in sides)))


@pytest.mark.parametrize("seconds", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("model, width", [(quiet, 0.15), (jitter, 0.15), (drift, 0.15), (walk, 0.15), (bursts, 0.4)])
def test_a_planted_factor_lies_in_the_interval(model, width, seconds):
    rng = np.random.default_rng(5)
    found = [(factor, planned(model, rng, factor, seconds)) for factor in FACTORS for _ in range(TRIALS // len(FACTORS))]
    assert np.mean([said["low"] <= factor <= said["high"] for factor, said in found]) >= 0.95
    assert np.median([(said["high"] - said["low"]) / said["ratio"] for _, said in found]) <= width


@pytest.mark.parametrize("seconds", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("model", [quiet, jitter, drift, walk, bursts])
def test_no_difference_is_said_where_there_is_none_and_seldom_where_there_is_one(model, seconds):
    rng = np.random.default_rng(6)

    def share(factor):
        return np.mean([planned(model, rng, factor, seconds)["code"] == "same" for _ in range(TRIALS)])

    assert share(1.0) >= 0.9
    assert share(1.3) <= 0.05 and share(3.0) <= 0.05


@pytest.mark.parametrize(
    "numpy, ours, text",
    [
        ([50, 50, 50, 50], [10, 10, 10, 10], "about 5.0 × faster"),
        ([10, 10, 10, 10], [13, 13, 13, 13], "about 1.3 × slower"),
        ([521, 519, 520, 520], [10, 10, 10, 10], "about 52 × faster"),
        ([42, 50, 58, 50, 44, 56], [10, 10, 10, 10, 10, 10], "3.7 to 6.7 × faster"),
        ([10, 10, 10, 10, 10, 10], [42, 50, 58, 50, 44, 56], "3.7 to 6.7 × slower"),
        ([100, 101, 99, 100, 102], [101, 99, 100, 101, 100], "no measurable difference from NumPy"),
        ([1000, 1011, 1010], [1000, 1001, 1000], "no measurable difference from NumPy"),
        ([100, 300, 90, 800], [100, 100, 100, 100], "the times vary too much to tell"),
        ([50], [10], "5.0 × faster, one run each"),
        ([10, 12], [30, 30], "3.0 × slower, one run each"),
    ],
    ids=str,
)
def test_in_words(numpy, ours, text):
    assert speed(compared(tuple(10**6 * n for n in numpy), tuple(10**6 * n for n in ours)))["text"] == text


def test_other_programs_are_told_of_where_they_took_much():
    sides = (5 * 10**6,) * 6, (10**6,) * 6
    assert "note" not in speed(compared(*sides)) and "note" not in speed(compared(*sides, others=0.2))
    assert speed(compared(*sides, others=0.6))["note"] == "other programs took 60 % of the processors meanwhile"
