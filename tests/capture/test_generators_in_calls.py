"""`any`, `all`, `sum`, `min` and `max` of generators and of arrays, and loops over products and combinations of what can be
counted: they are recorded as loops, and what Python would not evaluate, or evaluates otherwise, is Python's."""

import itertools
import math

import numpy as np
import pytest

import jitlab as jl
from tests.capture.same import assert_same, leaves


def decided(x):
    return any(v < -1 for v in x), all(v > -10 for v in x), any(v > 100 for v in x), any(x < 0), all(x < 100), sum(x > 0)


def of_a_test(x):
    if any(abs(v) > 6 for v in x) and not all(x[i] < x[i + 1] for i in range(len(x) - 1)):
        return x * 2
    return x


def filtered(x):
    pairs = zip(x, x[1:])  # noqa: B905, RUF007
    return any(v > 1 for v in x if v < 5), all(i < 100 for i, v in enumerate(x) if v > 0), any(a * b < 0 for a, b in pairs)


def summed(x):
    products = sum(x[i] * x[i + 1] for i in range(len(x) - 1))
    return sum(v * v for v in x), sum(v for v in x if v > 0), products, sum(1 for v in x if v > 0)


def of_python_numbers(x):
    return sum(int(v * 10) for v in x), sum(bool(v > 0) for v in x), any(math.sqrt(abs(v)) > 2 for v in x)


def extreme(x):
    return max(v * 2 for v in x), min(abs(v) for v in x), max(float(v) for v in x), min(int(x[i]) + i for i in range(len(x)))


def nested(x):
    total = 0
    for i in range(len(x)):
        if all(x[i] >= x[j] for j in range(len(x))):
            total += i
    return total, sum(sum(v * w for w in x) for v in x)


def by_index(x):
    scale = 2.0
    return sum(v * scale for v in x), any(x[i] < 0 for i in [0, 1]), sum(i for i in range(10)), sum(k * 2 for k in {1: 2})


def of_values(x):
    return any([x[0] > 0, x[1] < 0]), all((x[0] > -9, x[1] > -9)), any([False, x[0] > 9]), max([x[0], x[1], x[2]]), any([])


def product(x):
    total = 0.0
    for i, j in itertools.product(range(len(x)), range(len(x))):
        total += x[i] * x[j] - j
    for a, b in itertools.product(x, [1, 2]):
        total += a * b
    return total


def repeated(x):
    total = 0.0
    for i, j, k in itertools.product(range(len(x)), repeat=3):
        total += x[i] * x[j] - k
    return total


def numbered(x):
    y = np.zeros(len(x) ** 2)
    for k, (i, j) in enumerate(itertools.product(range(len(x)), range(len(x)))):
        y[k] = x[i] - x[j]
    return y


def combined(x):
    total = 0.0
    for i, j in itertools.combinations(range(len(x)), 2):
        total += x[i] * x[j] * (j - i)
    for a, b in itertools.combinations(x, 2):
        total += abs(a - b)
    for i, j in itertools.permutations(range(len(x)), 2):
        total += x[i] * j
    for i, j in itertools.combinations_with_replacement(range(len(x)), 2):
        total -= x[i] * j
    return total


def over_indices(x):
    y = np.zeros((4, 5))
    for i, j in np.ndindex(4, 5):
        y[i, j] = x[i % 2] * j
    for at in np.ndindex(y.shape):
        y[at] += 1
    total = 0.0
    for (i, j), v in np.ndenumerate(y):
        total += i * v - j
    return y, total


def chained(x):
    total = 0.0
    for i in itertools.chain(range(2), [0, 1]):
        total += x[i]
    for v in itertools.chain(x, x[::-1], [1, 2.0]):
        total += v
    return total, list(itertools.accumulate(x[:3])), [b - a for a, b in itertools.pairwise(x[:4])]


def comprehended(x):
    return np.array([x[i] * x[j] for i, j in itertools.product(range(2), range(len(x)))]), list(np.ndindex(2, 2))


def used_once(x):
    total, pairs, both = 0.0, itertools.product(range(5), range(5)), zip(x, x, strict=True)
    for i, j in pairs:
        total += x[0] * i * j
    for _ in pairs:
        total += 1000
    for a, b in both:
        total += a * b
    for _ in both:
        total += 1000
    return total


PROGRAMS = [
    decided, of_a_test, filtered, summed, of_python_numbers, extreme, nested, by_index, of_values, product, repeated, numbered,
    combined, over_indices, chained, comprehended, used_once,
]  # fmt: skip
DATA = [np.array([0.5, 2.25, -3.0, 7.0]), np.random.default_rng(0).normal(size=30) * 4]
DATA += [(DATA[1] * 3).astype(int), DATA[1][::2]]


def assert_alike(mine, theirs):
    """As `assert_same`; sums differ in the last digits."""
    mine, theirs = leaves(mine), leaves(theirs)
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        if isinstance(other, (float, np.floating, np.ndarray)) and np.asarray(other).dtype.kind == "f":
            assert type(one) is type(other), (one, other)
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
        else:
            assert_same(one, other)


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_recorded_whole(program):
    compiled = jl.jit(fullgraph=True)(program)
    for x in (*DATA, DATA[0]):
        assert_alike(compiled(x.copy()), program(x.copy()))


@pytest.mark.parametrize("program", [decided, of_a_test, product, combined, over_indices, numbered])
def test_it_is_recorded_by_jl_function(program):
    recorded = jl.function(program)
    for x in DATA[:2]:
        mine, theirs = leaves(recorded(x.copy())), leaves(program(x.copy()))
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11)


# ---- what Python does otherwise


def ends_early(x):
    return any(x[i] > 0 for i in [0, 1000]), any(v > 0 and 1 / int(v) >= 0 for v in x if v >= 1 or v < -100)


def raises(x):
    return sum(math.sqrt(v) for v in x)


def divides(x):
    return any(1 / int(v) > 5 for v in x)


def shadowed(x):
    any = list
    return any(v * 2 for v in x[:2])


def prints(x):
    return sum(print("v") or 1 for _ in range(2)), any(x > 0)


def left_over(x):
    total, pairs = 0.0, itertools.product(range(6), range(6))
    for i, j in pairs:
        total += x[0] + i - j
        if total > 3:
            break
    return total, len(list(pairs)) + j


def walrus(x):
    return any((last := v) > 1 for v in x), last


def empty(x):
    none = x[:0]
    return sum(none), sum(v for v in none), any(v for v in none), all(v for v in none), sum(x[i] for i in range(0))


@pytest.mark.parametrize("program", [ends_early, raises, divides, shadowed, prints, left_over, walrus, empty])
def test_it_is_what_python_gives(program, capsys):
    compiled = jl.jit(program)

    def outcome(function, x):
        try:
            return function(x.copy()), capsys.readouterr().out
        except Exception as error:
            return type(error), str(error)

    for x in (*DATA, np.abs(DATA[0]) + 0.5):
        for _ in range(2):
            assert_alike(outcome(compiled, x), outcome(program, x))


def test_a_class_finds_itself_in_a_generator():
    class Weighted:
        scale = 3.0

        def total(self, x):
            return sum(self.scale * v for v in x)

    weighted = Weighted()
    compiled = jl.jit(weighted.total)
    assert_alike(compiled(DATA[0]), weighted.total(DATA[0]))
    weighted.scale = 4.0
    assert_alike(compiled(DATA[0]), weighted.total(DATA[0]))
