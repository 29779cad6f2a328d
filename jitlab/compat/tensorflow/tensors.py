"""Tensors, constants, Variables and dtypes under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab import graph as _graph
from jitlab.api import Function
from jitlab.api import function as _function
from jitlab.capture import HOOKS, current_capture
from jitlab.capture import Tensor as Traced
from jitlab.capture.tracers.symbolic import LoopIndex
from jitlab.compat.aliases import Name, graph_of
from jitlab.specs import TensorShape
from jitlab.variable import Variable as _Variable

DTYPES: dict[str, Any] = {
    name: getattr(np, name)
    for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64",
        "complex128",
    )
}  # fmt: skip
DTYPES.update(bool=np.bool_, half=np.float16, double=np.float64, string=np.str_)

DEFAULTS = {np.dtype(np.int64): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.float32)}


class _TensorType(type):
    """Arrays and NumPy scalars are Tensors: outside functions they are what TensorFlow's eager values are."""

    __jitlab_hint__ = True  # an argument annotated with it is converted (experimental_follow_type_hints)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (np.ndarray, np.generic, Traced))


class Tensor(metaclass=_TensorType):
    """What functions work on; see `constant`."""


def array(value: Any, dtype: Any = None) -> Any:
    """The array (for one value the NumPy scalar) that TensorFlow would make of a value."""
    if isinstance(value, _Variable):
        value = value.read_value()
    if isinstance(value, LoopIndex):  # what a rolled loop counts, a Tensor of the default dtype there
        value, dtype = value.tensor(), dtype or np.int32
    if isinstance(value, Traced):
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.array(value, dtype)[()]
    if isinstance(value, TensorShape):
        value = value.as_list()
    if isinstance(value, (list, tuple)) and any(isinstance(part, (Traced, _Variable)) for part in value):
        return HOOKS.call(np.stack, same_dtype([array(part, dtype) for part in value]))
    made = np.asarray(value)
    return made.astype(DEFAULTS.get(made.dtype, made.dtype) if dtype is None else dtype)[()]


def same_dtype(parts: list[Any]) -> list[Any]:
    """Numbers among tensors take the tensors' dtype."""
    known = next((part.dtype for part in parts if isinstance(part, Traced)), None)
    return [part if isinstance(part, Traced) or known is None else np.asarray(part, known)[()] for part in parts]


def operands(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands of one operation: Python's numbers and lists take the dtype of the tensors beside them."""
    found = [x.read_value() if isinstance(x, _Variable) else x for x in values]
    dtypes = [x.dtype for x in found if isinstance(x, (Traced, np.ndarray, np.generic))]
    if not dtypes:
        return tuple(map(array, found))
    return tuple(x if isinstance(x, (Traced, np.ndarray, np.generic)) else _beside(x, dtypes[0]) for x in found)


def _beside(x: Any, dtype: np.dtype[Any]) -> Any:
    made = array(x)
    if isinstance(made, Traced) or not isinstance(made, (np.ndarray, np.generic)):
        return made
    return made.astype(dtype) if np.can_cast(made.dtype, dtype, "same_kind") or made.dtype.kind in "iu" else made


def _constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const", verify_shape: bool = False) -> Any:
    made = value if isinstance(value, str) else array(value, dtype)
    if isinstance(made, Traced):
        return made
    if current_capture() is None or _graph.current_graph() is not None:
        return _graph.constant(made, None, shape, name)
    if shape is not None:
        return HOOKS.call(np.broadcast_to, made, tuple(shape)).copy()
    return HOOKS.call(np.array, value, np.asarray(made).dtype) if isinstance(value, (list, tuple)) else made


def _convert(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str = "Const") -> Any:
    return _constant(value, dtype, None, name)


class Direct(Name):
    """A name that is a function of its own, not one call of NumPy's."""

    def __init__(self, name: str, function: Callable[..., Any], doc: str = "") -> None:
        super().__init__(name, function, lambda *args, **kwargs: (args, kwargs))
        self.__doc__ = doc or function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._target(*args, **kwargs)


constant = Direct("constant", _constant, "The array that TensorFlow would make of a value; in a graph, the operation.")
convert_to_tensor = Direct("convert_to_tensor", _convert, "The same.")


class Variable(_Variable):
    """jitlab's Variable; Python numbers get TensorFlow's dtypes."""

    def __init__(
        self, initial_value: Any = None, trainable: bool = True, validate_shape: bool = True, name: str | None = None,
        dtype: Any = None, shape: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        unknown = set(options) - {"caching_device", "collections", "constraint", "use_resource", "import_scope"}
        if unknown:
            raise TypeError(f"Variable() got an unexpected keyword argument {min(unknown)!r}")
        given = initial_value
        if callable(given) and not isinstance(given, (np.ndarray, Traced, _Variable)):
            initial_value = lambda: array(HOOKS.call(given), dtype)  # noqa: E731
        else:
            initial_value = array(given, dtype)
        super().__init__(initial_value, trainable, dtype=dtype, name=name or "Variable", shape=shape)

    def eval(self, session: Any = None) -> Any:
        """Its value in the Session given or the one whose block this stands in."""
        if self._graph is None:
            raise NotImplementedError("eval is of a graph's Variable; the value of this one is v.numpy()")
        return self._graph.session(session).run(self)


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


class GenericFunction(Function):
    """What `function` gives; Python numbers that become tensors get TensorFlow's dtypes."""

    to_array = staticmethod(array)
    retrace_words = "{tracings} out of the last {calls} calls to {function} triggered tf.function retracing."


def function(
    func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: bool = True,
    jit_compile: bool | None = None, reduce_retracing: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """`jitlab.function`."""
    return _function(func, input_signature, autograph, jit_compile, reduce_retracing, _kind=GenericFunction, **options)


__all__ = [
    "DTYPES", "Direct", "GenericFunction", "Module", "Tensor", "Traced", "Variable", "array", "constant", "convert_to_tensor",
    "function", "graph_of", "operands",
]  # fmt: skip
