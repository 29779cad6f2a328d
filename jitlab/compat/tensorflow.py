"""TensorFlow's names for what jitlab does, so that examples run with the import changed. Names only: no engine.

Values are NumPy's: `constant` gives an ndarray (a NumPy scalar for one value), and results print as NumPy prints them. Python
integers become int32 and floats float32, as they do there.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from jitlab import errors as _errors
from jitlab.api import ConcreteFunction, Function, functions_run_eagerly, print_, run_functions_eagerly
from jitlab.api import function as _function
from jitlab.autograph import Feature, TensorArray, do_not_convert, set_loop_options
from jitlab.capture import HOOKS
from jitlab.capture import Tensor as _Traced
from jitlab.cluster import jit_scope
from jitlab.ir import Graph
from jitlab.specs import TensorShape, TensorSpec
from jitlab.variable import Variable as _Variable

from .names import Name

bool, int8, int16, int32, int64 = np.bool_, np.int8, np.int16, np.int32, np.int64  # noqa: A001
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64, half, double = np.float16, np.float32, np.float64, np.float16, np.float64
complex64, complex128 = np.complex64, np.complex128
newaxis = np.newaxis


# ---- values


class _TensorType(type):
    """Arrays and NumPy scalars are Tensors: outside functions they are what TensorFlow's eager values are."""

    __jitlab_hint__ = True  # an argument annotated with it is converted (experimental_follow_type_hints)

    def __instancecheck__(cls, instance: Any) -> builtins.bool:
        return isinstance(instance, (np.ndarray, np.generic, _Traced))


class Tensor(metaclass=_TensorType):
    """What functions work on; see `constant`."""


def _array(value: Any, dtype: Any = None) -> Any:
    """The array (for one value the NumPy scalar) that TensorFlow would make of a value."""
    if isinstance(value, _Variable):
        value = value.read_value()
    if isinstance(value, _Traced):
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.array(value, dtype)[()]
    if isinstance(value, (list, tuple)) and any(isinstance(part, (_Traced, _Variable)) for part in value):
        return HOOKS.call(np.stack, [_array(part, dtype) for part in value])
    made = np.asarray(value)
    return made.astype(_DEFAULTS.get(made.dtype, made.dtype) if dtype is None else dtype)[()]


_DEFAULTS = {np.dtype(np.int64): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.float32)}


def _constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    made = _array(value, dtype)
    return made if shape is None else HOOKS.call(np.broadcast_to, made, tuple(shape)).copy()


def _given(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


constant = Name("constant", _constant, _given)
convert_to_tensor = Name("convert_to_tensor", _constant, _given)


class Variable(_Variable):
    """jitlab's Variable; Python numbers get TensorFlow's dtypes."""

    def __init__(self, initial_value: Any = None, trainable: builtins.bool = True, **options: Any) -> None:
        if callable(initial_value) and not isinstance(initial_value, (np.ndarray, _Traced, _Variable)):
            given = initial_value

            def made() -> Any:
                return _array(HOOKS.call(given), options.get("dtype"))

            super().__init__(made, trainable, **options)
        else:
            super().__init__(_array(initial_value, options.get("dtype")), trainable, **options)


class Module:
    """An object that holds Variables and other Modules."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name or type(self).__name__.lower()

    @property
    def name(self) -> str:
        return getattr(self, "_name", type(self).__name__.lower())

    @property
    def variables(self) -> tuple[Any, ...]:
        """Its Variables and those of the Modules in it."""
        found: list[Any] = []
        for value in vars(self).values():
            found.extend([value] if isinstance(value, _Variable) else value.variables if isinstance(value, Module) else [])
        return tuple(found)

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple(variable for variable in self.variables if variable.trainable)


# ---- functions


class GenericFunction(Function):
    """What `function` gives; Python numbers that become tensors get TensorFlow's dtypes."""

    to_array = staticmethod(_array)


def function(
    func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: builtins.bool = True,
    jit_compile: builtins.bool | None = None, reduce_retracing: builtins.bool = False, **options: Any,
) -> Any:  # fmt: skip
    """`jitlab.function`."""
    return _function(func, input_signature, autograph, jit_compile, reduce_retracing, _kind=GenericFunction, **options)


# ---- operations: NumPy's functions under TensorFlow's names


def _elementwise(name: str, target: Callable[..., Any]) -> Name:
    def adapt(*args: Any, name: str | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(map(_array, args)), {}

    return Name(name, target, adapt)


def _reduction(name: str, target: Callable[..., Any], keeps_dtype: builtins.bool = False) -> Name:
    def adapt(
        input_tensor: Any, axis: Any = None, keepdims: builtins.bool = False, name: str | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        x = _array(input_tensor)
        return (x,), {"axis": axis, "keepdims": keepdims, **({"dtype": x.dtype} if keeps_dtype else {})}

    return Name(name, target, adapt)


def _like(name: str, target: Callable[..., Any]) -> Name:
    def adapt(input: Any, dtype: Any = None, name: str | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (_array(input),), {} if dtype is None else {"dtype": dtype}

    return Name(name, target, adapt)


def _filled(name: str, target: Callable[..., Any]) -> Name:
    def adapt(shape: Any, dtype: Any = np.float32, name: str | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (shape, dtype), {}

    return Name(name, target, adapt)


def _counted(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = None) -> Any:
    bounds = (0, start, delta) if limit is None else (start, limit, delta)
    if any(isinstance(bound, (_Traced, _Variable)) for bound in bounds):
        return HOOKS.call(builtins.range, *(_array(b) if isinstance(b, _Variable) else b for b in bounds))
    return HOOKS.call(np.arange, *bounds, dtype=dtype or np.result_type(*map(_array, bounds)))


def _cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    return _array(x).astype(dtype)


range = Name("range", _counted, _given)  # noqa: A001
cast = Name("cast", _cast, _given)
reduce_sum, reduce_prod = _reduction("reduce_sum", np.sum, True), _reduction("reduce_prod", np.prod, True)
reduce_mean = _reduction("reduce_mean", np.mean, True)
reduce_max, reduce_min = _reduction("reduce_max", np.max), _reduction("reduce_min", np.min)
reduce_any, reduce_all = _reduction("reduce_any", np.any), _reduction("reduce_all", np.all)
ones_like, zeros_like = _like("ones_like", np.ones_like), _like("zeros_like", np.zeros_like)
ones, zeros = _filled("ones", np.ones), _filled("zeros", np.zeros)
abs, sign, square, sqrt = (  # noqa: A001
    _elementwise("abs", np.abs), _elementwise("sign", np.sign), _elementwise("square", np.square), _elementwise("sqrt", np.sqrt)
)  # fmt: skip
exp, sin, cos, tanh = (_elementwise(name, getattr(np, name)) for name in ("exp", "sin", "cos", "tanh"))
add, subtract, multiply, matmul = (_elementwise(name, getattr(np, name)) for name in ("add", "subtract", "multiply", "matmul"))
divide, pow, negative = (  # noqa: A001
    _elementwise("divide", np.true_divide), _elementwise("pow", np.power), _elementwise("negative", np.negative)
)  # fmt: skip
maximum, minimum, where = (_elementwise(name, getattr(np, name)) for name in ("maximum", "minimum", "where"))
greater, less, equal, not_equal = (_elementwise(name, getattr(np, name)) for name in ("greater", "less", "equal", "not_equal"))
greater_equal, less_equal = (_elementwise(name, getattr(np, name)) for name in ("greater_equal", "less_equal"))
logical_and, logical_or, logical_not = (
    _elementwise(name, getattr(np, name)) for name in ("logical_and", "logical_or", "logical_not")
)
print = print_  # noqa: A001

# ---- modules

math = SimpleNamespace(
    abs=abs, add=add, cos=cos, divide=divide, exp=exp, log=_elementwise("log", np.log), multiply=multiply,
    reduce_max=reduce_max, reduce_mean=reduce_mean, reduce_min=reduce_min, reduce_sum=reduce_sum, sin=sin, sqrt=sqrt,
    square=square, subtract=subtract, tanh=tanh,
)  # fmt: skip
autograph = SimpleNamespace(
    experimental=SimpleNamespace(Feature=Feature, do_not_convert=do_not_convert, set_loop_options=set_loop_options)
)
types = SimpleNamespace(
    experimental=SimpleNamespace(
        GenericFunction=GenericFunction, PolymorphicFunction=GenericFunction, ConcreteFunction=ConcreteFunction
    )
)
config = SimpleNamespace(run_functions_eagerly=run_functions_eagerly, functions_run_eagerly=functions_run_eagerly)
errors = SimpleNamespace(
    InvalidArgumentError=_errors.InvalidArgumentError,
    OperatorNotAllowedInGraphError=_errors.OperatorNotAllowedInGraphError,
    InaccessibleTensorError=_errors.InaccessibleTensorError,
)
xla = SimpleNamespace(experimental=SimpleNamespace(jit_scope=jit_scope))

__all__ = [
    "Graph", "Module", "Tensor", "TensorArray", "TensorShape", "TensorSpec", "Variable", "autograph", "config", "constant",
    "convert_to_tensor", "errors", "function", "math", "types", "xla",
]  # fmt: skip
