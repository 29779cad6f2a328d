"""Ten Runge-Kutta steps of many Lorenz systems at once: long chains of arithmetic on three arrays."""

import numpy as np

TITLE = "Lorenz systems, 10 Runge-Kutta steps"
SIZES = {"small": (300,), "medium": (30_000,), "large": (1_000_000,)}
SMALL = (300,)
STEP = 0.01
UNSUPPORTED = {"numexpr": "it has no loops"}


def program(x, y, z):
    for _ in range(10):
        ax, ay, az = 10.0 * (y - x), x * (28.0 - z) - y, x * y - 2.5 * z
        u, v, w = x + STEP / 2 * ax, y + STEP / 2 * ay, z + STEP / 2 * az
        bx, by, bz = 10.0 * (v - u), u * (28.0 - w) - v, u * v - 2.5 * w
        u, v, w = x + STEP / 2 * bx, y + STEP / 2 * by, z + STEP / 2 * bz
        cx, cy, cz = 10.0 * (v - u), u * (28.0 - w) - v, u * v - 2.5 * w
        u, v, w = x + STEP * cx, y + STEP * cy, z + STEP * cz
        dx, dy, dz = 10.0 * (v - u), u * (28.0 - w) - v, u * v - 2.5 * w
        x = x + STEP / 6 * (ax + 2 * bx + 2 * cx + dx)
        y = y + STEP / 6 * (ay + 2 * by + 2 * cy + dy)
        z = z + STEP / 6 * (az + 2 * bz + 2 * cz + dz)
    return x, y, z


def inputs(shape, dtype, rng):
    return tuple(rng.uniform(-5, 5, shape).astype(dtype) for _ in range(3))


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def slope(x, y, z):
        t = type(x)
        return t(10) * (y - x), x * (t(28) - z) - y, x * y - t(2.5) * z

    @numba.njit
    def run(x, y, z):
        ox, oy, oz = np.empty_like(x), np.empty_like(y), np.empty_like(z)
        t = x.dtype.type
        half, step, sixth, two = t(STEP / 2), t(STEP), t(STEP / 6), t(2)
        for i in prange(x.size):
            p, q, r = x[i], y[i], z[i]
            for _ in range(10):
                ax, ay, az = slope(p, q, r)
                bx, by, bz = slope(p + half * ax, q + half * ay, r + half * az)
                cx, cy, cz = slope(p + half * bx, q + half * by, r + half * bz)
                dx, dy, dz = slope(p + step * cx, q + step * cy, r + step * cz)
                p += sixth * (ax + two * bx + two * cx + dx)
                q += sixth * (ay + two * by + two * cy + dy)
                r += sixth * (az + two * bz + two * cz + dz)
            ox[i], oy[i], oz[i] = p, q, r
        return ox, oy, oz

    return run
