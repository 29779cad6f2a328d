"""`tf.gradients`, `tf.GradientTape` and the optimizer of the tutorial: gradients are `jitlab.gradients`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitlab import graph as _graph
from jitlab.capture import current_capture
from jitlab.differentiation import gradients as _gradients
from jitlab.differentiation import tape_gradients
from jitlab.errors import CaptureError
from jitlab.support.containers import leaves, mapped

from .tensors import array


def gradients(
    ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients", colocate_gradients_with_ops: bool = False,
    gate_gradients: Any = None, aggregation_method: Any = None, stop_gradients: Any = None, unconnected_gradients: Any = "none",
) -> Any:  # fmt: skip
    """`jitlab.gradients`."""
    if stop_gradients is not None:
        raise NotImplementedError("gradients(stop_gradients=...) is not there: tf.stop_gradient(x) is")
    return _gradients(ys, xs, grad_ys, name)


class GradientTape:
    """The derivative of what a traced function (or a graph) computes inside the block, and of all it has computed before."""

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent, self._used = persistent, False

    def __enter__(self) -> GradientTape:
        if current_capture() is None:
            raise CaptureError(
                "tf.GradientTape works inside a traced function or a graph.",
                why="outside, values are NumPy's arrays, and what is done with those leaves no trace to go back on",
                hint="put the step under @tf.function, or use jl.value_and_grad(loss)(x)",
            )
        return self

    def __exit__(self, *error: Any) -> None:
        """What is computed after the block counts for nothing."""

    def watch(self, tensor: Any) -> None:
        """Everything is watched here."""

    def stop_recording(self) -> Any:
        """What is computed inside is computed, no more."""
        from contextlib import nullcontext

        return nullcontext()

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: Any = "none") -> Any:
        """The derivative of the sum of `target`, in the form of `sources`. In no scope of its own."""
        if self._used and not self._persistent:
            raise RuntimeError("A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)")
        self._used = True
        found = iter(tape_gradients(target, leaves(sources), output_gradients))
        return mapped(lambda source: next(found), sources)


class GradientDescentOptimizer:
    """variable -= learning_rate * gradient."""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        self._rate, self._name = learning_rate, name

    def compute_gradients(self, loss: Any, var_list: Sequence[Any] | None = None) -> list[tuple[Any, Any]]:
        """(gradient, variable) for each variable; all trainable ones of the graph unless said otherwise."""
        variables = list(_graph.trainable_variables() if var_list is None else var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        return list(zip(gradients(loss, variables), variables, strict=True))

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The operation that takes the step."""
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ValueError(f"No gradients provided for any variable: {[v.name for _, v in grads_and_vars]}.")
        assigned = [v.assign_sub(array(self._rate, v.dtype) * g) for g, v in pairs]
        if global_step is not None:
            assigned.append(global_step.assign_add(1))
        if _graph.current_graph() is None and not isinstance(assigned[0], _graph.GraphTensor):
            return None
        return _graph.group(*(tensor.op for tensor in assigned), name=name or self._name)

    def minimize(
        self, loss: Any, global_step: Any = None, var_list: Sequence[Any] | None = None, name: str | None = None
    ) -> Any:
        """The operation that takes a step down the loss's gradient."""
        return self.apply_gradients(self.compute_gradients(loss, var_list), global_step, name)


__all__ = ["GradientDescentOptimizer", "GradientTape", "gradients"]
