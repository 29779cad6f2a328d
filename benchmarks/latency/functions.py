"""The functions that are called, as text, since a notebook runs a cell's text: NumPy for jitlab, the same for JAX, and loops
where Numba wants them."""

from __future__ import annotations

ONE_LINER = """
def f(x):
    return 2 * x + 1
"""

SOFTMAX = """
def f(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""

#: European options; the normal distribution is the polynomial of Abramowitz and Stegun, 26.2.17.
BLACK_SCHOLES = """
def normal(x):
    size = np.abs(x)
    k = 1 / (1 + 0.2316419 * size)
    series = 0.319381530 * k - 0.356563782 * k**2 + 1.781477937 * k**3 - 1.821255978 * k**4 + 1.330274429 * k**5
    tail = np.exp(-0.5 * size * size) / np.sqrt(2 * np.pi) * series
    return np.where(x < 0, tail, 1 - tail)


def f(price, strike, years):
    rate, volatility = 0.02, 0.3
    spread = volatility * np.sqrt(years)
    upper = (np.log(price / strike) + (rate + 0.5 * volatility**2) * years) / spread
    lower = upper - spread
    paid = strike * np.exp(-rate * years)
    call = price * normal(upper) - paid * normal(lower)
    return call, call - price + paid
"""

SOFTMAX_LOOPS = """
def f(x):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        row = x[i]
        e = np.exp(row - row.max())
        out[i] = e / e.sum()
    return out
"""

#: Name -> the text, the text for Numba, the shapes of the arguments.
FIRST = {
    "one-liner": (ONE_LINER, ONE_LINER, ((1000,),)),
    "softmax": (SOFTMAX, SOFTMAX_LOOPS, ((64, 100),)),
    "Black-Scholes": (BLACK_SCHOLES, BLACK_SCHOLES, ((1000,),) * 3),
}

#: What a warm call is measured with, by jitlab's decorator.
WARM = """
def plain(x, w):
    return x * w + 1

def keywords(x, *, w):
    return x * w + 1

def nested(p, x):
    return (x * p["a"]["w"] + p["a"]["b"]) * p["c"]["w"] + p["c"]["b"]

def number(x, s):
    return x * s + 1

def in_place(x):
    x += 1.0

def pieces(x, log):
    y = x * 2 + 1
    log.append(1)
    return y * 3 - 1

def python(x):
    return x.shape[0] + 1
"""
