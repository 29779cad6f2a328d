"""The decorator `function`: its options, their old names, and what is said about unknown ones."""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Callable
from typing import Any

from jitlab.errors import UnexpectedOptionError

from .tracing import Function

_logger = logging.getLogger("jitlab")

#: What `experimental_attributes` may name: attributes of a function's definition that other tools read. None selects anything.
ATTRIBUTES = frozenset({
    "api_implements", "api_preferred_device", "backward_function_name", "disable_summaries_at_runtime",
    "experimental_ints_on_device", "forward_function_name", "go_backwards", "_disable_acd", "_disable_call_shape_inference",
    "_implements", "_input_shapes", "_noinline", "_original_func_name", "_OutputsOnOpDevice", "runtime_constant_optimization",
    "shared_rendezvous", "time_major", "_XlaCompile", "_XlaMustCompile", "_XlaScope", "_XlaSeparateCompiledGradients",
})  # fmt: skip


def function(
    func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: bool = True,
    jit_compile: bool | None = None, reduce_retracing: bool = False, experimental_implements: str | None = None,
    experimental_autograph_options: Any = None, experimental_attributes: dict[str, Any] | None = None,
    experimental_relax_shapes: bool | None = None, experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None, **unknown: Any,
) -> Any:  # fmt: skip
    """Trace a function once for each type of its arguments and run it compiled. A decorator, with or without arguments.

    `input_signature`: TensorSpecs of the arguments; there is one trace, for them. `autograph` False: Python's control flow
    stays Python's. `jit_compile` True: everything is compiled, or InvalidArgumentError. None: what can be, the rest runs on
    NumPy. False: op by op on NumPy, except what a jit_scope or an inner function asks for. `reduce_retracing`: further
    shapes widen the trace's type instead of making one each. `experimental_follow_type_hints`: arguments annotated as
    jl.Tensor become arrays. `experimental_relax_shapes` and `experimental_compile` are old names of `reduce_retracing` and
    `jit_compile`.

    What a call gives shares memory with its arguments where NumPy's result does (`x[1:]`, `z.real`); where a recording cannot
    give that view, Python runs the call, and with jit_compile=True that is an error.

    A call that raises changes no array that it was given; Variables are assigned, and prints have happened, as far as it came.
    A `raise` in a side of an `if` that arrays decide is asked for at each run, and does not happen where the other is taken.
    """
    kind: type[Function] = unknown.pop("_kind", Function)  # a compat module's own
    if unknown:
        raise _unexpected(next(iter(unknown)))
    for name, value, new in (
        ("experimental_relax_shapes", experimental_relax_shapes, "reduce_retracing"),
        ("experimental_compile", experimental_compile, "jit_compile"),
    ):
        if value is not None:
            _logger.warning("jl.function: %s is deprecated, use %s instead", name, new)
    if jit_compile is not None and experimental_compile is not None:
        raise ValueError("Cannot specify both 'experimental_compile' and 'jit_compile'.")
    attributes = dict(experimental_attributes or {})
    for name in attributes:
        if name not in ATTRIBUTES:
            known = ", ".join(sorted(ATTRIBUTES))
            raise ValueError(f"{name} is not supported by tf.function as an attribute; it knows {known}")
    if experimental_implements is not None:
        attributes["_implements"] = experimental_implements
    options = {
        "input_signature": input_signature,
        "autograph": autograph,
        "jit_compile": experimental_compile if jit_compile is None else jit_compile,
        "reduce_retracing": bool(reduce_retracing or experimental_relax_shapes),
        "follow_type_hints": bool(experimental_follow_type_hints),
        "pure": experimental_implements is not None,
        "attributes": attributes,
        "autograph_options": experimental_autograph_options,
    }
    if func is None:
        return lambda decorated: kind(decorated, **options)
    return kind(func, **options)


#: Options of `jl.jit`, and what `jl.function` has instead.
ELSEWHERE = {
    "fullgraph": "jit_compile=True: all of it is compiled, or the call raises",
}


def _unexpected(name: str) -> UnexpectedOptionError:
    if name in ELSEWHERE:
        return UnexpectedOptionError(
            f"jl.function() got an unexpected keyword argument {name!r}: it belongs to jl.jit.", hint=ELSEWHERE[name]
        )
    known = [p for p in inspect.signature(function).parameters if p not in ("func", "unknown")]
    close = difflib.get_close_matches(name, known, 1)
    return UnexpectedOptionError(
        f"jl.function() got an unexpected keyword argument {name!r}",
        why=f"it knows {', '.join(known)}",
        hint=f"did you mean {close[0]}?" if close else "leave it away",
    )
