"""Dynamic programming, sequences and numbers in text."""

import math
from functools import lru_cache

import numpy as np

from .record import Program, given


def levenshtein(a, b):
    if len(a) < len(b):
        return levenshtein(b, a)
    previous = list(range(len(b) + 1))
    for i, ca in enumerate(a):
        current = [i + 1]
        for j, cb in enumerate(b):
            current.append(min(previous[j + 1] + 1, current[j] + 1, previous[j] + (ca != cb)))
        previous = current
    return previous[-1]


def dtw(x, y, window=None):
    """The distance of two series after warping time."""
    n, m = len(x), len(y)
    w = max(window or max(n, m), abs(n - m))
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(max(1, i - w), min(m, i + w) + 1):
            cost = abs(x[i - 1] - y[j - 1])
            D[i, j] = cost + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D[n, m]


def viterbi(obs, start_p, trans_p, emit_p):
    """The likeliest states, in logarithms."""
    n_states = len(start_p)
    T = len(obs)
    score = np.zeros((T, n_states))
    back = np.zeros((T, n_states), dtype=int)
    score[0] = np.log(start_p) + np.log(emit_p[:, obs[0]])
    for t in range(1, T):
        for s in range(n_states):
            candidates = score[t - 1] + np.log(trans_p[:, s])
            back[t, s] = np.argmax(candidates)
            score[t, s] = candidates[back[t, s]] + np.log(emit_p[s, obs[t]])
    path = [int(np.argmax(score[-1]))]
    for t in range(T - 1, 0, -1):
        path.insert(0, int(back[t, path[0]]))
    return path, score[-1].max()


def smith_waterman(seq1, seq2, match=2, mismatch=-1, gap=-1):
    H = np.zeros((len(seq1) + 1, len(seq2) + 1), dtype=int)
    best, where = 0, (0, 0)
    for i in range(1, H.shape[0]):
        for j in range(1, H.shape[1]):
            s = match if seq1[i - 1] == seq2[j - 1] else mismatch
            H[i, j] = max(0, H[i - 1, j - 1] + s, H[i - 1, j] + gap, H[i, j - 1] + gap)
            if H[i, j] > best:
                best, where = H[i, j], (i, j)
    return best, where


def longest_increasing(seq):
    lengths = [1] * len(seq)
    parent = [-1] * len(seq)
    for i in range(len(seq)):
        for j in range(i):
            if seq[j] < seq[i] and lengths[j] + 1 > lengths[i]:
                lengths[i] = lengths[j] + 1
                parent[i] = j
    at = max(range(len(seq)), key=lengths.__getitem__)
    out = []
    while at != -1:
        out.append(seq[at])
        at = parent[at]
    return out[::-1]


def coin_change(coins, amount):
    @lru_cache(maxsize=100_000)
    def ways(left, k):
        if left == 0:
            return 1
        if left < 0 or k == len(coins):
            return 0
        return ways(left - coins[k], k) + ways(left, k + 1)

    return ways(amount, 0)


def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1)
    for w, v in zip(weights, values):  # noqa: B905
        for c in range(capacity, w - 1, -1):
            best[c] = max(best[c], best[c - w] + v)
    return best[capacity]


def parse_numbers(lines, sep=","):
    """The rows of a table in text; what is no number is nan, and counted."""
    rows, bad = [], 0
    for line in lines:
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        row = []
        for field in line.split(sep):
            try:
                row.append(float(field))
            except ValueError:
                row.append(float("nan"))
                bad += 1
        rows.append(row)
    width = max(map(len, rows), default=0)
    table = np.full((len(rows), width), np.nan)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    if bad:
        print(f"{bad} bad fields")
    return table


def evaluate_rpn(tokens):
    stack = []
    for token in tokens:
        if token in ("+", "-", "*", "/"):
            try:
                b, a = stack.pop(), stack.pop()
            except IndexError:
                raise ValueError(f"nothing to {token}") from None
            if token == "+":
                stack.append(a + b)
            elif token == "-":
                stack.append(a - b)
            elif token == "*":
                stack.append(a * b)
            else:
                stack.append(a / b if b else math.inf)
        else:
            stack.append(float(token))
    if len(stack) != 1:
        raise ValueError(f"{len(stack)} values are left")
    return stack[0]


def roman(number):
    symbols = {"M": 1000, "CM": 900, "D": 500, "CD": 400, "C": 100, "XC": 90, "L": 50, "XL": 40, "X": 10, "IX": 9, "V": 5}
    out = ""
    for symbol, value in {**symbols, "IV": 4, "I": 1}.items():
        count, number = divmod(number, value)
        out += symbol * count
    return out


def primes_below(n):
    sieve = [True] * n
    sieve[0:2] = [False, False]
    for i in range(2, int(n**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = [False] * len(range(i * i, n, i))
    return [i for i, is_prime in enumerate(sieve) if is_prime]


def text_of(draw, n):
    return "".join(draw.choice(list("ACGT"), n))


PROGRAMS = [
    Program(levenshtein, (8, 100, 500), lambda n, draw: given(text_of(draw, n), text_of(draw, n + 1))),
    Program(dtw, (6, 60, 150), lambda n, draw: given(draw.normal(size=n), draw.normal(size=n), window=max(n // 4, 2))),
    Program(
        viterbi,
        (6, 500, 5000),
        lambda n, draw: given(
            draw.integers(0, 3, n), np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.4, 0.6]]), draw.dirichlet(np.ones(3), 2)
        ),
    ),
    Program(smith_waterman, (5, 40, 150), lambda n, draw: given(text_of(draw, n), text_of(draw, n + 2), gap=-2)),
    Program(longest_increasing, (8, 200, 1000), lambda n, draw: given(draw.integers(0, 1000, n).tolist())),
    Program(coin_change, (12, 100, 400), lambda n, draw: given((1, 5, 10, 25), n)),
    Program(
        knapsack,
        (4, 30, 150),
        lambda n, draw: given(draw.integers(1, 9, n).tolist(), draw.random(n).tolist(), n * 3),
    ),
    Program(
        parse_numbers,
        (6, 1000, 30_000),
        lambda n, draw: given(["# a,b", "", *(f"{x:.3f},{i}, none" for i, x in enumerate(draw.normal(size=n)))]),
    ),
    Program(
        evaluate_rpn,
        (3, 1000, 50_000),
        lambda n, draw: given(["1.5"] + [t for x in range(n) for t in (str(x % 7), "+-*/"[x % 4])]),
    ),
    Program(roman, (14, 1987, 900_000), lambda n, draw: given(n)),
    Program(primes_below, (30, 10_000, 1_000_000), lambda n, draw: given(n)),
]
