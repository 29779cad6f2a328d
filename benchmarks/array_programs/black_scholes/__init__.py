"""Prices of European calls: a long chain of elementwise arithmetic with logarithms, exponentials and a branch."""

import numpy as np

TITLE = "Black-Scholes call"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (4_000_000,)}
SMALL = (1000,)
RATE, SIGMA = 0.03, 0.2


def normal_cdf(x):
    """Abramowitz and Stegun, 26.2.17: within 7.5e-8."""
    t = 1 / (1 + 0.2316419 * np.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    upper = 0.3989422804 * np.exp(-x * x / 2) * series
    return np.where(x > 0, 1 - upper, upper)


def program(price, strike, years):
    spread = SIGMA * np.sqrt(years)
    d1 = (np.log(price / strike) + (RATE + SIGMA * SIGMA / 2) * years) / spread
    return price * normal_cdf(d1) - strike * np.exp(-RATE * years) * normal_cdf(d1 - spread)


def inputs(shape, dtype, rng):
    return tuple(rng.uniform(low, high, shape).astype(dtype) for low, high in ((10, 50), (10, 50), (0.5, 2)))


def for_jax(jax, compiled):
    """The helper has to be read with jax.numpy, too."""
    np = jax.numpy

    def cdf(x):
        t = 1 / (1 + 0.2316419 * np.abs(x))
        series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
        upper = 0.3989422804 * np.exp(-x * x / 2) * series
        return np.where(x > 0, 1 - upper, upper)

    def run(price, strike, years):
        spread = SIGMA * np.sqrt(years)
        d1 = (np.log(price / strike) + (RATE + SIGMA * SIGMA / 2) * years) / spread
        return price * cdf(d1) - strike * np.exp(-RATE * years) * cdf(d1 - spread)

    return compiled(run)


def for_numexpr(numexpr):
    """The distribution function is written out twice; constants have the arrays' dtype, or all would be float64."""

    def run(price, strike, years):
        one = price.dtype.type
        names = {"S": price, "K": strike, "T": years, "sigma": one(SIGMA), "rate": one(RATE), "half": one(0.5), "one": one(1)}
        series = (0.2316419, 0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429, 0.3989422804)
        names |= {f"c{at}": one(value) for at, value in enumerate(series)}
        names["spread"] = numexpr.evaluate("sigma * sqrt(T)", names)
        names["d1"] = numexpr.evaluate("(log(S / K) + (rate + sigma * sigma * half) * T) / spread", names)
        names["d2"] = numexpr.evaluate("d1 - spread", names)
        for d in ("d1", "d2"):
            names["t"] = numexpr.evaluate(f"one / (one + c0 * abs({d}))", names)
            upper = f"c6 * exp(-{d} * {d} * half) * t * (c1 + t * (c2 + t * (c3 + t * (c4 + t * c5))))"
            names["upper"] = numexpr.evaluate(upper, names)
            names[f"N{d}"] = numexpr.evaluate(f"where({d} > 0, one - upper, upper)", names)
        return numexpr.evaluate("S * Nd1 - K * exp(-rate * T) * Nd2", names)

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def cdf(x):
        c = type(x)
        t = c(1) / (c(1) + c(0.2316419) * abs(x))
        s = c(0.319381530) + t * (c(-0.356563782) + t * (c(1.781477937) + t * (c(-1.821255978) + t * c(1.330274429))))
        upper = c(0.3989422804) * np.exp(-x * x * c(0.5)) * t * s
        return c(1) - upper if x > 0 else upper

    @numba.njit
    def run(price, strike, years):
        out = np.empty_like(price)
        sigma, rate = price.dtype.type(SIGMA), price.dtype.type(RATE)
        half = price.dtype.type(0.5)
        for i in prange(price.size):
            spread = sigma * np.sqrt(years[i])
            d1 = (np.log(price[i] / strike[i]) + (rate + sigma * sigma * half) * years[i]) / spread
            out[i] = price[i] * cdf(d1) - strike[i] * np.exp(-rate * years[i]) * cdf(d1 - spread)
        return out

    return run
