"""Control flow, checks, printing and Python functions under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab import api as _api
from jitlab.capture import HOOKS, current_capture
from jitlab.capture.control.traced_checks import add_check
from jitlab.capture.numpy_calls.host_fallback import must_compile
from jitlab.compat.aliases import graph_of
from jitlab.errors import InvalidArgumentError
from jitlab.support.containers import mapped

from .tensors import Traced, array


def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None, **old: Any) -> Any:
    """`jitlab.cond`; numbers that a side gives get TensorFlow's dtypes."""
    true_fn, false_fn = old.pop("fn1", true_fn), old.pop("fn2", false_fn)
    if old:
        raise TypeError(f"cond() got an unexpected keyword argument {min(old)!r}")
    return _api.cond(array(pred), _arrays_of(true_fn), _arrays_of(false_fn), name)


def while_loop(cond: Any, body: Any, loop_vars: Any, *args: Any, **options: Any) -> Any:
    """`jitlab.while_loop`; numbers among the loop variables get TensorFlow's dtypes."""
    return _api.while_loop(cond, body, _arrays(loop_vars), *args, **options)


def case(
    pred_fn_pairs: Any, default: Callable[[], Any] | None = None, exclusive: bool = False, name: str | None = None
) -> Any:
    """What the function of the first pair gives whose condition holds."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    (pred, chosen), rest = pairs[0], pairs[1:]
    if not rest and default is None:
        return chosen()
    return cond(pred, chosen, (lambda: case(rest, default)) if rest else default, name=name)


def switch_case(branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str | None = None) -> Any:
    """What the function with that number gives; the last one, or the default, for every other number."""
    numbered = list(branch_fns.items() if isinstance(branch_fns, dict) else enumerate(branch_fns))
    if isinstance(numbered[0][1], tuple):
        numbered = [pair for _, pair in numbered]
    at = array(branch_index)
    if default is None:
        *numbered, (_, default) = numbered
    if not numbered:
        return default()
    return case([(at == number, function) for number, function in numbered], default)


def _arrays_of(function: Any) -> Any:
    """What a side gives as tensors: TensorFlow's dtypes for Python's numbers."""
    if not callable(function):
        return function
    return lambda: _arrays(HOOKS.call(function))


def _arrays(value: Any) -> Any:
    return mapped(lambda x: array(x) if isinstance(x, (bool, int, float, complex)) or hasattr(x, "read_value") else x, value)


# ---- checks


def Assert(condition: Any, data: Any = (), summarize: Any = None, name: str | None = None) -> Any:  # noqa: N802
    """InvalidArgumentError at the run where the condition does not hold; in a graph, the operation that checks."""
    holds = array(condition)
    capture: Any = current_capture() or graph_of((holds,))
    text = f"assertion failed: {' '.join(str(x) for x in data if isinstance(x, str))}".rstrip()
    if capture is None or not isinstance(holds, Traced):
        if not np.all(holds):
            raise InvalidArgumentError(text)
        return None
    with capture.naming(name):
        capture.perform(_assert, holds, text)
    return capture.last_operation()


def _assert(capture: Any, holds: Any, text: str) -> None:
    holds = holds.all() if holds.type.shape else holds
    add_check(capture, holds.node(), lambda: text)


def checked(x: Any, message: str) -> Any:
    """x, after a check that every element is finite."""
    if isinstance(x, Traced):
        _assert(x.capture, np.isfinite(x).all(), f"{message} : Tensor had NaN or Inf values")
    elif not np.all(np.isfinite(x)):
        raise InvalidArgumentError(f"{message} : Tensor had NaN or Inf values")
    return x


def _compared(what: str, holds: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def check(x: Any, y: Any, message: str | None = None, data: Any = (), summarize: Any = None, name: Any = None) -> Any:
        return Assert(np.all(holds(array(x), array(y))), [message or f"{what} did not hold"], name=name)

    check.__name__ = check.__qualname__ = f"assert_{what}"
    check.__doc__ = f"InvalidArgumentError at the run where {what.replace('_', ' ')} does not hold for every element."
    return check


CHECKS: dict[str, Any] = {
    f"assert_{what}": _compared(what, holds)
    for what, holds in (
        ("equal", np.equal), ("less", np.less), ("less_equal", np.less_equal), ("greater", np.greater),
        ("greater_equal", np.greater_equal),
    )
}  # fmt: skip


# ---- strings: they are no arrays here


def join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Any:
    """Strings one after another."""
    capture = current_capture()
    if capture is not None and capture.strict:
        raise must_compile(capture, "StringJoin", "strings have no compiled form")
    parts = [x.item() if isinstance(x, np.generic) else x for x in inputs]
    return separator.join(x.decode() if isinstance(x, bytes) else x for x in parts)


__all__ = ["CHECKS", "Assert", "case", "checked", "cond", "join", "switch_case", "while_loop"]
