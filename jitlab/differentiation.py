"""Gradients of functions and, inside a traced function, of values: `grad`, `value_and_grad`, `gradients`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from types import FunctionType
from typing import Any

import numpy as np

from jitlab.api import Function
from jitlab.api.functions.weak_methods import look_like
from jitlab.capture import HOOKS, Capture, Tensor, current_capture, describe, only_users
from jitlab.capture.positions import here
from jitlab.capture.tracers.tensor import Cell
from jitlab.errors import CaptureError
from jitlab.ops.build_nodes import apply
from jitlab.ops.graph_state import StopGradient
from jitlab.passes import gradients as append_gradients
from jitlab.support.containers import CONTAINERS, mapped, of_items


class Gradient:
    """The derivative of `function` with respect to some of its positional arguments, itself traced and compiled."""

    def __init__(self, function: Callable[..., Any], argnums: int | tuple[int, ...], *, with_value: bool) -> None:
        if not callable(function):
            raise TypeError(f"{function!r} is not a callable object")
        numbers = argnums if isinstance(argnums, tuple) else (argnums,)
        if not numbers or any(not isinstance(n, int) or isinstance(n, bool) for n in numbers):
            raise TypeError(f"argnums is {argnums!r}; it is the position of an argument, or a tuple of positions")
        self.function = function
        self.argnums = argnums
        self.with_value = with_value
        look_like(self, function)
        self._compiled = Function(self._record, autograph=False, name=f"grad of {getattr(function, '__name__', 'a function')}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        capture = current_capture()
        if capture is not None:
            return self.__jitlab_inline__(capture, args, kwargs)
        try:
            return self._compiled(*args, **kwargs)
        except Exception as error:
            only_users(error)
            raise

    def _record(self, *args: Any, **kwargs: Any) -> Any:
        capture = current_capture()
        if capture is None:  # the call runs as Python: only plain arrays are recorded
            raise CaptureError(
                f"the derivative of {self.__name__} is asked for, and it works on arrays that are not recorded.",  # type: ignore[attr-defined]
                why="only plain arrays of numbers have one, no masked arrays, matrices or containers of other libraries; and of"
                " results of several forms (None, and a number) the one that is recorded",
                hint="np.asarray(x) (of a masked array: x.filled(0), and the mask apart)",
            )
        return self.__jitlab_inline__(capture, args, kwargs)

    def __jitlab_inline__(self, capture: Capture, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Recorded where it is called: the function, then the derivative of its value."""
        args = tuple(capture.value(x) for x in args)
        numbers = self.argnums if isinstance(self.argnums, tuple) else (self.argnums,)
        xs: list[Tensor] = []
        own = list(args)
        for n in numbers:
            if not -len(args) <= n < len(args):
                raise TypeError(f"argnums names argument {n}, the call has {len(args)} positional arguments")
            own[n] = _map(capture, args[n], xs)
        since = len(capture.graph.nodes)  # what the function finds computed already is constant to it
        with capture.putting_nothing_off():  # what it does to Python it does once a trace
            value = HOOKS.call(self.function, *own, **kwargs)
        y = value[0] if isinstance(value, tuple) and value and isinstance(value[0], Tensor) and value[0].ndim == 0 else value
        if not isinstance(y, Tensor) or y.ndim != 0 or y.dtype.kind != "f":
            what = f"an array of shape {tuple(map(int, y.shape))}, {y.dtype}" if isinstance(y, Tensor) else type(y).__name__
            raise CaptureError(
                f"the derivative of {self.__name__} is asked for, and it gives {what}.",  # type: ignore[attr-defined]
                where=describe(here()),
                why="reverse mode starts from one real number: a 0-d float (the first of a tuple counts as the value)",
                hint="sum or average it to one number, e.g. loss.mean()",
            )
        for x in xs:
            if x.dtype.kind not in "fc":
                raise CaptureError(
                    f"the derivative with respect to an argument of dtype {x.dtype} is asked for.",
                    where=describe(here()),
                    why="only float and complex arguments have one",
                    hint="leave the argument out of argnums, or pass it as float64",
                )
        nodes = append_gradients(capture.graph, [y.node()], [x.node() for x in xs], unconnected="zero", since=since)
        found = iter([_fresh(capture, node, x.is_scalar) for x, node in zip(xs, nodes, strict=True)])
        parts = tuple(_fill(args[n], found) for n in numbers)
        result = parts if isinstance(self.argnums, tuple) else parts[0]
        return (value, result) if self.with_value else result


def grad(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Gradient:
    """A function that gives the gradient of another one, by reverse mode. It is compiled like a `jl.function`.

    Asked for again, it is the same object with the same traces: `jl.grad(f)(x)` may stand in a loop.

    Args:
        function: gives a 0-d float, or a tuple that begins with one. An argument may be a list, tuple or dict of arrays.
        argnums: the position of the argument to differentiate by, or a tuple of positions.

    Returns:
        A function of the same arguments. It gives an array of the argument's shape (a list, tuple or dict of them for an
        argument that is one), and for a tuple of `argnums` a tuple of these.

    Raises:
        TypeError: `function` cannot be called, or `argnums` is no position of an argument.
        CaptureError: a call gives something else than one real number, or the argument is neither float nor complex.
        NoGradientError: the gradient leads through an operation that has none.

    Example:
        >>> jl.grad(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
        array([ 3., 12.])
    """
    return _gradient(function, argnums, with_value=False)


def value_and_grad(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Gradient:
    """A function that gives the value of another one and its gradient, from one run.

    Args:
        function: as for `grad`.
        argnums: as for `grad`.

    Returns:
        A function of the same arguments that gives (value, gradient), the gradient as that of `grad`.

    Raises:
        TypeError: `function` cannot be called, or `argnums` is no position of an argument.
        CaptureError: a call gives something else than one real number, or the argument is neither float nor complex.
        NoGradientError: the gradient leads through an operation that has none.

    Example:
        >>> value, gradient = jl.value_and_grad(lambda w, x: ((x @ w) ** 2).mean())(np.ones(2), np.eye(2))
        >>> float(value), gradient
        (1.0, array([1., 1.]))
    """
    return _gradient(function, argnums, with_value=True)


def _gradient(function: Callable[..., Any], argnums: int | tuple[int, ...], *, with_value: bool) -> Gradient:
    """The one that the function itself keeps: it goes when the function goes. (What `functools.wraps` has copied along is
    another function's.)"""
    if not isinstance(function, FunctionType) or not isinstance(argnums, (int, tuple)):
        return Gradient(function, argnums, with_value=with_value)
    kept: dict[Any, Gradient] = function.__dict__.setdefault("__jitlab_gradients__", {})
    key = (id(function), argnums, type(argnums), with_value)
    if key not in kept or kept[key].function is not function:
        kept[key] = Gradient(function, argnums, with_value=with_value)
    return kept[key]


def hessian(function: Callable[..., Any], argnum: int = 0) -> Function:
    """A function that gives all second derivatives of another one.

    Each row is the gradient of an element of the gradient, so that it takes as many runs as the argument has elements.

    Args:
        function: gives a 0-d float.
        argnum: the position of the argument to differentiate by: one array.

    Returns:
        A function of the same arguments that gives an array of the argument's shape twice: `(2, 3, 2, 3)` for `(2, 3)`.

    Raises:
        TypeError: `function` cannot be called, or `argnum` is no position of an argument.
        CaptureError: a call gives something else than one real number, or the argument is neither float nor complex.
        NoGradientError: the gradient leads through an operation that has none.

    Example:
        >>> jl.hessian(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
        array([[ 6.,  0.],
               [ 0., 12.]])
    """
    gradient = grad(function, argnum)

    def rows(*args: Any, **kwargs: Any) -> Any:
        x = args[argnum]
        n = x.size
        result = np.zeros((n, n), x.dtype)
        for i in range(n):
            element = grad(lambda *moved: np.ravel(gradient(*moved, **kwargs))[i], argnum)  # noqa: B023 (it is called at once)
            result[i] = element(*args).ravel()
        return result.reshape(x.shape + x.shape)

    update_wrapper(rows, function)
    return Function(rows, name=f"hessian of {getattr(function, '__name__', 'a function')}")


def stop_gradient(value: Any) -> Any:
    """The value itself, through which no gradient flows.

    Args:
        value: an array, or a list, tuple or dict of them.

    Returns:
        The same value.

    Example:
        >>> jl.grad(lambda x: (x * jl.stop_gradient(x)).sum())(np.array([3.0]))
        array([3.])
    """
    return mapped(_stop, value)


def _stop(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    capture: Any = current_capture() or x.capture
    return capture.perform(_stopped, x)


def _stopped(capture: Capture, x: Tensor) -> Tensor:
    return capture.fresh(apply(StopGradient(), x.node()), is_scalar=x.is_scalar)


def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients") -> list[Any]:
    """The derivatives of the sum of `ys` with respect to each of `xs`, inside a traced function or a Graph.

    Operations of a `jit_scope` give theirs the same scope, or one of their own with `separate_compiled_gradients`.

    Args:
        ys: a tensor, or a list of them.
        xs: a tensor or Variable, or a list of them, from which `ys` were computed.
        grad_ys: weights of the `ys`, arrays of their shapes, one for each (None: ones); None: ones for all.
        name: what the names of the gradient's operations begin with.

    Returns:
        A list with an array of its shape for each of `xs`, and None where no gradient flows.

    Raises:
        CaptureError: nothing is recorded here, so that nothing tells how `ys` were computed.
        ValueError: there are not as many `grad_ys` as `ys`.
        NoGradientError: the gradient leads through an operation that has none.

    Example:
        >>> @jl.function
        ... def gradient(x):
        ...     return jl.gradients(np.sin(x) * 2, x)
        >>> gradient(np.zeros(2))
        [array([2., 2.])]
    """
    ys, xs = _listed(ys), _listed(xs)
    capture: Any = current_capture() or next((x.capture for x in (*ys, *xs) if isinstance(x, Tensor)), None)
    if capture is None:
        raise CaptureError(
            "jl.gradients works on values that are being traced.",
            why="outside a traced function there are only numbers, not how they were computed",
            hint="call it inside a function under @jl.function, or use jl.grad(f)",
        )
    weights = None if grad_ys is None else _listed(grad_ys)
    if weights is not None and len(weights) != len(ys):
        raise ValueError(f"gradients got {len(weights)} grad_ys for {len(ys)} ys: one for each, or None in its place")
    with capture.gradient_scope(name) as scope:
        return capture.perform(_gradients, ys, [capture.differentiable(x) for x in xs], weights, scope)  # type: ignore[no-any-return]


def tape_gradients(target: Any, sources: list[Any], weights: Any = None) -> list[Any]:
    """The same, as GradientTape asks: the scopes of what is differentiated count for nothing."""
    ys = _listed(target)
    capture: Any = current_capture() or next(x.capture for x in ys if isinstance(x, Tensor))
    weights = None if weights is None else _listed(weights)
    xs = [capture.differentiable(x) for x in sources]
    return capture.perform(_without_scopes, ys, xs, weights, "gradient_tape")  # type: ignore[no-any-return]


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


_SEPARATE = "_XlaSeparateCompiledGradients"


def _without_scopes(capture: Capture, *args: Any) -> list[Any]:
    hidden = {node: node.attrs.pop(_SEPARATE) for node in capture.graph.nodes if _SEPARATE in node.attrs}
    try:
        return _gradients(capture, *args)
    finally:
        for node, value in hidden.items():
            node.attrs[_SEPARATE] = value


def _gradients(capture: Capture, ys: list[Any], xs: list[Any], weights: list[Any] | None, name: str) -> list[Any]:
    many = [[_tensor(capture, v) for v in values] for values in (ys, xs)]
    nodes = append_gradients(
        capture.graph,
        [t.node() for t in many[0]],
        [t.node() for t in many[1]],
        None if weights is None else [None if w is None else _tensor(capture, w).node() for w in weights],
        name,
    )
    return [None if node is None else _fresh(capture, node, x.is_scalar) for node, x in zip(nodes, many[1], strict=True)]


_gradients.looks_back = _without_scopes.looks_back = True  # type: ignore[attr-defined]


def _tensor(capture: Capture, value: Any) -> Tensor:
    found = capture.operand(value)
    if not isinstance(found, Tensor):
        raise CaptureError(
            f"jl.gradients got a {type(value).__name__}, not a traced array.", where=describe(here()), hint="np.asarray(x)"
        )
    return found


def _fresh(capture: Capture, node: Any, is_scalar: bool) -> Tensor:
    return Tensor(Cell(capture, node), is_scalar=is_scalar and node.ndim == 0)


def _map(capture: Capture, value: Any, xs: list[Tensor]) -> Any:
    """The argument with each array standing alone, so that the function's writes into it do not hide it; `xs` collects them."""
    value = capture.value(value)
    if isinstance(value, (float, np.floating)):
        value = capture.value(np.asarray(value))
        value.is_scalar = True  # a Python number becomes a NumPy scalar, as elsewhere
    if isinstance(value, Tensor):
        alone = _fresh(capture, value.node(), value.is_scalar)
        xs.append(alone)
        return Tensor(Cell(capture, alone.node()), is_scalar=alone.is_scalar)
    if isinstance(value, CONTAINERS):
        return of_items(lambda item: _map(capture, item, xs), value)
    raise CaptureError(
        f"the derivative with respect to a {type(value).__name__} is asked for.",
        where=describe(here()),
        why="only arrays (and lists, tuples and dicts of them) have one",
        hint="choose other argnums, or pass an array",
    )


def _fill(value: Any, found: Any) -> Any:
    """The gradients in the form of the argument."""
    return of_items(partial(_fill, found=found), value) if isinstance(value, CONTAINERS) else next(found)
