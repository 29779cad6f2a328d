"""What the tests of gradients share: a gradient as the graph says it, without compiling it."""

from collections.abc import Callable
from typing import Any

import numpy as np

import jitlab as jl
from jitlab.ir import interpret


def slope_of(function: Callable[[Any], Any], x: Any) -> Any:
    """The gradient of the sum of what a function gives."""
    x = np.asarray(x)
    concrete = jl.function(jl.grad(lambda x: np.sum(function(x)))).get_concrete_function(x)
    return interpret(concrete.graph, [x, *map(np.asarray, concrete.captured_inputs)])[0]


def second_slope_of(function: Callable[[Any], Any], x: Any) -> Any:
    """The gradient of the sum of the gradient."""
    return slope_of(lambda x: jl.grad(lambda x: np.sum(function(x)))(x), x)
