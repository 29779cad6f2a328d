"""Functions of floats within 3 ULP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .emitter import Val, VectorEmitter


def _libm(name: str) -> Callable[..., Any]:
    def function(e: VectorEmitter, *xs: Val) -> Val:
        dtype = xs[0].dtype
        wide = [e.cast(x, np.float64) for x in xs]
        return e.cast(e.call(name, *wide), dtype)

    return function


exp, exp2, expm1, log, log2, log10, log1p = (_libm(n) for n in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"))
sin, cos, tan, tanh, sinh, cosh = (_libm(n) for n in ("sin", "cos", "tan", "tanh", "sinh", "cosh"))
arctan, pow, hypot, fmod = (_libm(n) for n in ("atan", "pow", "hypot", "fmod"))


def floor_divide(e: VectorEmitter, x: Val, y: Val) -> Val:
    return e.floor(e.div(x, y))


def remainder(e: VectorEmitter, x: Val, y: Val) -> Val:
    return fmod(e, x, y)
