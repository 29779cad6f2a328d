"""The decorator `function`: its options, their old names, and what is said about unknown ones."""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Callable
from typing import Any

from jitlab.capture import says_where
from jitlab.errors import UnexpectedOptionError
from jitlab.messages import by_contract

from .tracing import Function

_logger = logging.getLogger("jitlab")

#: What `experimental_attributes` may name: attributes of a function's definition that other tools read. None selects anything.
ATTRIBUTES = frozenset({
    "api_implements", "api_preferred_device", "backward_function_name", "disable_summaries_at_runtime",
    "experimental_ints_on_device", "forward_function_name", "go_backwards", "_disable_acd", "_disable_call_shape_inference",
    "_implements", "_input_shapes", "_noinline", "_original_func_name", "_OutputsOnOpDevice", "runtime_constant_optimization",
    "shared_rendezvous", "time_major", "_XlaCompile", "_XlaMustCompile", "_XlaScope", "_XlaSeparateCompiledGradients",
})  # fmt: skip


@says_where
def function(
    func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: bool = True,
    jit_compile: bool | None = None, reduce_retracing: bool = False, experimental_implements: str | None = None,
    experimental_autograph_options: Any = None, experimental_attributes: dict[str, Any] | None = None,
    experimental_relax_shapes: bool | None = None, experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None, device: str | None = None, **unknown: Any,
) -> Any:  # fmt: skip
    """A function that is traced once for each type of its arguments and runs compiled. A decorator, with or without arguments.

    What a call gives shares memory with its arguments where NumPy's result does (`x[1:]`, `z.real`); where a recording cannot
    give that view, Python runs the call, and with `jit_compile=True` that is an error.

    A call that raises changes no array that it was given; Variables are assigned, and prints have happened, as far as it came.
    A `raise` in a side of an `if` that arrays decide is asked for at each run, and does not happen where the other is taken.

    Args:
        func: the Python function; without it the result is a decorator that has the options.
        input_signature: a list of TensorSpecs, one for each argument; there is one trace, for them. None: a trace for each
            type.
        autograph: False leaves `if`, `while` and `for` to Python, so that none may depend on an array's values.
        jit_compile: True: everything is compiled, or the call raises. None: what can be, and NumPy runs the rest. False: NumPy
            runs it operation by operation, except what a jit_scope or an inner function asks for.
        reduce_retracing: True: the second shape makes a trace for what the shapes have in common, instead of one for itself.
        experimental_implements: a name of what the function is; it then has to be free of effects, and is kept as an attribute.
        experimental_autograph_options: accepted, and of no effect: conversion does all it can.
        experimental_attributes: a dict of attributes of the function's definition, for tools that read them.
        experimental_relax_shapes: the old name of `reduce_retracing`.
        experimental_compile: the old name of `jit_compile`.
        experimental_follow_type_hints: True: arguments annotated as `jl.Tensor` become arrays, so that a new number is no
            retrace.
        device: "gpu": all of it that compiles runs on the GPU; arguments and results are NumPy's and are copied, or
            DeviceArrays and stay there. "cpu": on the processor. "auto": where a model of copies, kernels and launches says
            that it is 1.5 times as fast, on the GPU. None: as `jl.config.device` says.
        **unknown: no other keyword is taken; the error says which one is near.

    Returns:
        A Function, or a decorator that makes one where `func` is left away.

    Raises:
        UnexpectedOptionError: a keyword that it does not know.
        TypeError: `func` cannot be called, or `input_signature` does not fit its parameters.
        ValueError: an unknown attribute, or `jit_compile` under both of its names.
        DeviceError: `device="gpu"`, and there is no GPU that can be used.
        BindingError: a call's arguments do not fit the parameters or the `input_signature`.
        InvalidArgumentError: a call under `jit_compile=True` meets what cannot be compiled.

    Example:
        >>> @jl.function
        ... def scaled(x, k):
        ...     print("traced with", k)
        ...     return x * k
        >>> scaled(np.ones(2), 2), scaled(np.zeros(2), 2)
        traced with 2
        (array([2., 2.]), array([0., 0.]))
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
            raise ValueError(by_contract(f"{name} is not supported by tf.function as an attribute; it knows {known}"))
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
        "device": device,
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
