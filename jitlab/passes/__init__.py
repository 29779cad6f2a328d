"""Graph to graph: the passes that every captured graph goes through, in order, and the gradient.

Parts, in the order of the data: pipeline, placement, order, simplify, hoisting, rewriting, each_body, replays, gradient,
control_gradient, residuals.
"""

from typing import TYPE_CHECKING

from jitlab.support.later import names_of

from .pipeline import PASSES, run_passes
from .placement import copy_at_devices, place

if TYPE_CHECKING:
    from .gradient import gradients, sum_to_shape
    from .order import order_operations
else:
    __getattr__ = names_of(__name__, {"gradient": "gradients sum_to_shape", "order": "order_operations"})

__all__ = ["PASSES", "copy_at_devices", "gradients", "order_operations", "place", "run_passes", "sum_to_shape"]
