"""`cond` and `while_loop`: control flow as calls, for graphs and for functions; one node each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitlab.capture import HOOKS, Tensor, current_capture
from jitlab.capture.tracers.tensor_array import TensorArray
from jitlab.support.containers import mapped


def cond(
    pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None, name: str | None = None
) -> Any:
    """The value of one of two functions, chosen by a bool that may be an array's.

    Args:
        pred: a 0-d bool; inside a traced function it may be traced, and then both functions are recorded.
        true_fn: a function without parameters, called where `pred` holds.
        false_fn: a function without parameters, called where it does not; its result has the form and dtypes of the other's.
        name: of the operation in a graph.

    Returns:
        What the chosen function gives.

    Raises:
        TypeError: `true_fn` or `false_fn` cannot be called.
        ControlFlowTypeError: in a trace the two give other dtypes or another structure.
        ControlFlowValueError: in a trace the two give other shapes, or one gives None.

    Example:
        >>> @jl.function
        ... def absolute(x):
        ...     return jl.cond(x.sum() < 0, lambda: -x, lambda: x)
        >>> absolute(np.array([-1.0, -2.0]))
        array([1., 2.])
    """
    for given, what in ((true_fn, "true_fn"), (false_fn, "false_fn")):
        if not callable(given):
            raise TypeError(f"{what} must be callable.")
    assert true_fn is not None and false_fn is not None
    capture = _capture(pred)
    if capture is None:
        return true_fn() if pred else false_fn()
    with capture.naming(name):
        return capture.perform(_cond, pred, bodies=(true_fn, false_fn))


def _cond(capture: Any, pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    return HOOKS.choose(capture.operand(pred), lambda: HOOKS.call(true_fn), lambda: HOOKS.call(false_fn))


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Sequence[Any], shape_invariants: Any = None,
    parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False, maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The values that a loop ends with: `while cond(*loop_vars): loop_vars = body(*loop_vars)`.

    Args:
        cond: a function of the values that gives a 0-d bool.
        body: a function of the values that gives the next ones: as many, of the same shapes and dtypes.
        loop_vars: a list or tuple of the first values, arrays or numbers.
        shape_invariants: accepted, and of no effect: shapes stay what they are.
        parallel_iterations: accepted, and of no effect: iterations run one after the other.
        back_prop: accepted, and of no effect: a gradient is there wherever it is asked for.
        swap_memory: accepted, and of no effect.
        maximum_iterations: an int after which the loop ends in any case; None: no such number.
        name: of the operation in a graph.

    Returns:
        The last values, as a list or tuple like `loop_vars`; of one value that value alone.

    Raises:
        TypeError: `cond` or `body` cannot be called, or `loop_vars` is no list or tuple.
        ValueError: `loop_vars` is empty.
        ControlFlowTypeError: in a trace an iteration changes a dtype or the structure.
        ControlFlowValueError: in a trace an iteration changes a shape.

    Example:
        >>> jl.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, np.ones(2)))
        (3, array([8., 8.]))
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError(f"'loop_vars' must be a list or tuple. Received: {type(loop_vars).__name__}.")
    if not loop_vars:
        raise ValueError("'loop_vars' must be provided.")
    capture = _capture(*loop_vars)
    if capture is None:
        found = _eagerly(cond, body, loop_vars, maximum_iterations)
    else:
        with capture.naming(name):
            found = capture.perform(_while, list(loop_vars), maximum_iterations, bodies=(cond, body))
    return found[0] if len(loop_vars) == 1 else type(loop_vars)(found)


def _eagerly(cond: Callable[..., Any], body: Callable[..., Any], values: Sequence[Any], most: Any) -> Sequence[Any]:
    turns = 0
    while cond(*values) and (most is None or turns < int(most)):
        values = _several(body(*values), len(values))
        turns += 1
    return values


def _while(capture: Any, given: Sequence[Any], most: Any, test: Callable[..., Any], body: Callable[..., Any]) -> list[Any]:
    values = tuple(_tensors(capture, x) for x in given)
    turn = _tensors(capture, np.int64(0)) if most is not None else None

    def goes_on() -> Any:
        wanted = HOOKS.call(test, *values)
        return wanted if turn is None else HOOKS.and_(turn < most, lambda: wanted)

    def once() -> None:
        nonlocal values, turn
        values = tuple(_tensors(capture, x) for x in _several(HOOKS.call(body, *values), len(given)))
        turn = None if turn is None else turn + 1

    names = ("values", "turn")
    HOOKS.while_(goes_on, once, None, names, names, names, names)
    return list(values)


def _several(found: Any, count: int) -> Sequence[Any]:
    """What a body gives: one value may come without a list around it."""
    if count == 1 and not (isinstance(found, (list, tuple)) and len(found) == 1):
        return (found,)
    if not isinstance(found, (list, tuple)) or len(found) != count:
        raise ValueError(f"The two structures don't have the same nested structure: body gives {found!r} for {count} loop_vars")
    return found


def _tensors(capture: Any, x: Any) -> Any:
    """A loop variable as the loop carries it: numbers become arrays, of one dtype from then on."""
    return mapped(partial(_carried, capture), x)


def _carried(capture: Any, x: Any) -> Any:
    if isinstance(x, (Tensor, TensorArray)) or x is None:
        return x
    x = capture.operand(x)
    return x if isinstance(x, Tensor) else capture.constant_tensor(np.asarray(x))


def _capture(*values: Any) -> Any:
    """The recording this is part of: the one under way, else that of a graph's tensor among the values."""
    found = current_capture()
    if found is not None:
        return found
    return next((x.capture for x in values if isinstance(x, Tensor) and x.capture.is_open), None)


__all__ = ["cond", "while_loop"]
