"""Finance, sampling and filters of states."""

import math
from collections import namedtuple

import numpy as np

from .record import Program, given

Trade = namedtuple("Trade", "side price quantity")


def norm_cdf(x):
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


def black_scholes(S, K, T, r, sigma, kind="call"):
    if T <= 0 or sigma <= 0:
        raise ValueError("T and sigma must be positive")
    d1 = (math.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * math.sqrt(T))
    d2 = d1 - sigma * math.sqrt(T)
    if kind == "call":
        return S * norm_cdf(d1) - K * math.exp(-r * T) * norm_cdf(d2)
    elif kind == "put":
        return K * math.exp(-r * T) * norm_cdf(-d2) - S * norm_cdf(-d1)
    raise ValueError(f"Unknown option kind: {kind}")


def price_book(strikes, spot=100.0):
    return {k: black_scholes(spot, k, 0.5, 0.02, 0.3, kind="put" if k > spot else "call") for k in strikes}


def binomial_option(S, K, T, r, sigma, n):
    """An American put on a tree."""
    dt = T / n
    u = math.exp(sigma * math.sqrt(dt))
    d = 1 / u
    p = (math.exp(r * dt) - d) / (u - d)
    disc = math.exp(-r * dt)
    values = [max(K - S * u**j * d ** (n - j), 0.0) for j in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            hold = disc * (p * values[j + 1] + (1 - p) * values[j])
            values[j] = max(hold, K - S * u**j * d ** (i - j))
    return values[0]


def monte_carlo_call(s0, k, r, sigma, t, paths, steps=10, rng=None):
    rng = rng or np.random.default_rng(1)
    dt = t / steps
    s = np.full(paths, s0, dtype=float)
    for _ in range(steps):
        z = rng.standard_normal(paths)
        s *= np.exp((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z)
    payoff = np.maximum(s - k, 0)
    return np.exp(-r * t) * payoff.mean(), payoff.std() / np.sqrt(paths)


def rsi(prices, period=5):
    """The relative strength index; nan until there are enough prices."""
    deltas = np.diff(prices)
    out = np.full(len(prices), np.nan)
    gains = deltas[:period][deltas[:period] > 0].sum() / period
    losses = -deltas[:period][deltas[:period] < 0].sum() / period
    for i in range(period, len(prices)):
        delta = deltas[i - 1]
        gains = (gains * (period - 1) + max(delta, 0)) / period
        losses = (losses * (period - 1) + max(-delta, 0)) / period
        out[i] = 100.0 if losses == 0 else 100 - 100 / (1 + gains / losses)
    return out


def max_drawdown(equity):
    peak = equity[0]
    worst, start, end, candidate = 0.0, 0, 0, 0
    for i, value in enumerate(equity):
        if value > peak:
            peak, candidate = value, i
        drop = (peak - value) / peak
        if drop > worst:
            worst, start, end = drop, candidate, i
    return worst, start, end


def position_pnl(trades):
    """Profit by averaging costs; the log of what went wrong."""
    quantity, cost, realized = 0, 0.0, 0.0
    log = []
    for trade in trades:
        try:
            if trade.side == "buy":
                cost = (cost * quantity + trade.price * trade.quantity) / (quantity + trade.quantity)
                quantity += trade.quantity
            elif trade.side == "sell":
                if trade.quantity > quantity:
                    raise RuntimeError(f"short by {trade.quantity - quantity}")
                realized += (trade.price - cost) * trade.quantity
                quantity -= trade.quantity
            else:
                log.append(("?", trade.side))
        except (RuntimeError, ZeroDivisionError) as error:
            log.append((type(error).__name__, str(error)))
        finally:
            if quantity == 0:
                cost = 0.0
    return realized, quantity, cost, log


class KalmanFilter:
    def __init__(self, F, H, Q, R):
        self.F, self.H, self.Q, self.R = F, H, Q, R
        self.x = np.zeros(F.shape[0])
        self.P = np.eye(F.shape[0])

    def predict(self):
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def update(self, z):
        y = z - self.H @ self.x
        S = self.H @ self.P @ self.H.T + self.R
        K = self.P @ self.H.T @ np.linalg.inv(S)
        self.x = self.x + K @ y
        self.P = (np.eye(len(self.x)) - K @ self.H) @ self.P


def track(kf, measurements):
    estimates = []
    for z in measurements:
        kf.predict()
        if z is not None:
            kf.update(np.array([z]))
        estimates.append(kf.x[0])
    return np.array(estimates)


def kalman_1d(zs, q=1e-3, r=0.1):
    x, p = 0.0, 1.0
    out = []
    for z in zs:
        p += q
        k = p / (p + r)
        x += k * (z - x)
        p *= 1 - k
        out.append(x)
    return out, p


def metropolis(log_density, start, steps, scale=0.5, seed=0):
    rng = np.random.default_rng(seed)
    x, logp = start, log_density(start)
    accepted = 0
    chain = np.empty(steps)
    for i in range(steps):
        proposal = x + scale * rng.normal()
        logq = log_density(proposal)
        if np.log(rng.random()) < logq - logp:
            x, logp = proposal, logq
            accepted += 1
        chain[i] = x
    return chain, accepted / steps


def gibbs_bivariate(n, rho=0.6, generator=None):
    """Draws of two correlated normal variables."""
    sd = np.sqrt(1 - rho**2)
    x = y = 0.0
    draws = []
    for _ in range(n):
        x = generator.normal(rho * y, sd)
        y = generator.normal(rho * x, sd)
        draws.append((x, y))
    return np.array(draws)


def bimodal(x):
    return float(np.logaddexp(-0.5 * (x - 2) ** 2, -0.5 * (x + 2) ** 2))


def constant_velocity():
    return KalmanFilter(np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]]), 0.01 * np.eye(2), np.array([[0.5]]))


PROGRAMS = [
    Program(price_book, (6, 1000, 50_000), lambda n, draw: given((80 + 40 * draw.random(n)).tolist(), spot=99.0)),
    Program(binomial_option, (6, 60, 300), lambda n, draw: given(100.0, 105.0, 1.0, 0.03, 0.2, n)),
    Program(
        monte_carlo_call, (10, 1000, 100_000), lambda n, draw: given(100, 105, 0.01, 0.2, 1.0, n, rng=np.random.default_rng(9))
    ),
    Program(rsi, (12, 1000, 50_000), lambda n, draw: given(100 + draw.normal(size=n).cumsum())),
    Program(max_drawdown, (10, 2000, 100_000), lambda n, draw: given(1000 + draw.normal(size=n).cumsum())),
    Program(
        position_pnl,
        (10, 1000, 50_000),
        lambda n, draw: given(
            [
                Trade(("buy", "sell", "swap")[side], price, quantity)
                for side, price, quantity in zip(
                    draw.integers(0, 3, n), draw.random(n).tolist(), draw.integers(0, 5, n).tolist(), strict=True
                )
            ]
        ),
    ),
    Program(
        track, (6, 200, 5000), lambda n, draw: given(constant_velocity(), [None if z > 1.5 else z for z in draw.normal(size=n)])
    ),
    Program(kalman_1d, (10, 2000, 100_000), lambda n, draw: given(draw.normal(size=n).tolist(), r=0.2)),
    Program(metropolis, (8, 500, 10_000), lambda n, draw: given(bimodal, 0.0, n, seed=4)),
    Program(gibbs_bivariate, (8, 500, 20_000), lambda n, draw: given(n, generator=np.random.default_rng(6))),
]
