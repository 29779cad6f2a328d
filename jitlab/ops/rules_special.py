"""Rules for scipy.special, known once the program has imported it: `import jitlab` does not load SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitlab.ir import Node

from . import arithmetic as ar
from . import functions as fu
from . import reductions as re
from .arguments import as_axes, node, refuse
from .base import Unsupported
from .build import apply, elementwise

Rule = Callable[..., Any]


def erf(x: Any, /, out: Any = None, **options: Any) -> Node:
    refuse(out=out, **options)
    value = _float(x)
    return apply(fu.Erf(), value)


def expit(x: Any, /, out: Any = None, **options: Any) -> Node:
    refuse(out=out, **options)
    return ar.divide(1, ar.add(elementwise(fu.Exp(), ar.negative(_float(x))), 1))


def softmax(x: Any, axis: Any = None) -> Node:
    value = _float(x)
    axes = as_axes(axis, value.ndim)
    powers = elementwise(fu.Exp(), ar.subtract(value, re.reduce(re.Max, value, axes, keepdims=True)))
    return ar.divide(powers, re.reduce(re.Sum, powers, axes, keepdims=True))


def log_softmax(x: Any, axis: Any = None) -> Node:
    value = _float(x)
    axes = as_axes(axis, value.ndim)
    below = ar.subtract(value, re.reduce(re.Max, value, axes, keepdims=True))
    total = re.reduce(re.Sum, elementwise(fu.Exp(), below), axes, keepdims=True)
    return ar.subtract(below, elementwise(fu.Log(), total))


def _float(x: Any) -> Node:
    value = node(x)
    if value.dtype.str[1:] not in ("f4", "f8"):
        raise Unsupported(f"scipy.special of {value.dtype}", "dtype")
    return value


#: By dotted name.
FUNCTIONS: dict[str, Rule] = {
    "scipy.special.erf": erf,
    "scipy.special.expit": expit,
    "scipy.special.softmax": softmax,
    "scipy.special.log_softmax": log_softmax,
}
