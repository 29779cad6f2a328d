"""Variable: the one holder of state. It reads and writes the same array inside traced functions and outside."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.capture import HOOKS, Capture, Tensor, current_capture
from jitlab.capture.numpy_calls.host_fallback import evaluate
from jitlab.errors import CaptureError, ShapeError
from jitlab.ir import outside, plain
from jitlab.messages import by_contract


class Variable:
    """An array of fixed shape and dtype that is assigned to: state that outlives a call.

    A traced function reads its value at each call and writes what it assigns when the call ends. Arithmetic works on the
    value; a value that was read does not change when the variable does.

    Args:
        initial_value: an array or numbers, or a function without parameters that gives them.
        trainable: True: `trainable_variables` lists it.
        dtype: of the elements; None: that of the initial value.
        name: what reports and errors call it.
        shape: a tuple that the initial value's shape has to be; None asks nothing.

    Raises:
        ShapeError: `shape` is not that of the initial value; or, later, a value of another shape is assigned.
        ValueError: a traced function makes one at each call.

    Example:
        >>> steps = jl.Variable(0, name="steps")
        >>> @jl.function
        ... def count():
        ...     steps.assign_add(1)
        >>> count()
        >>> count()
        >>> int(steps)
        2
    """

    __array_priority__ = 900.0
    __jitlab_variable__ = True
    _graph: Any = None  # of a Variable whose value each Session has for itself

    def __init__(
        self, initial_value: Any = None, trainable: bool = True, *, dtype: Any = None, name: str = "Variable", shape: Any = None
    ) -> None:
        capture = current_capture()
        self.name, self.trainable = name, trainable
        owner = capture if capture is not None or outside.graph is None else outside.graph.capture
        if owner is not None and owner.make_variable(self, initial_value, dtype):
            return
        creation = None if capture is None else capture.creation
        if creation is not None and not creation.allowed:
            raise ValueError(creation.refusal)
        if callable(initial_value) and not isinstance(initial_value, (np.ndarray, Tensor, Variable)):
            initial_value = initial_value() if capture is None else HOOKS.call(initial_value)
        if capture is not None:
            initial_value = _real_value(capture, initial_value, name)
        elif isinstance(initial_value, Variable):
            initial_value = initial_value.numpy()
        self._array = np.array(initial_value, dtype)
        if shape is not None and tuple(shape) != self._array.shape:
            raise ShapeError(
                f"{name} is made with shape={tuple(shape)} and an initial value of shape {self._array.shape}.",
                hint="leave shape= away, or give an initial value of that shape",
            )
        if creation is not None:
            creation.made.append(self)

    def __jitlab_array__(self) -> np.ndarray:
        """The array that holds the value."""
        return self._array

    def __jitlab_stand_in__(self, array: np.ndarray) -> Variable:
        """A Variable like this one on `array`: what a recording knows an argument by, whatever else refers to this one."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._array = array
        return new

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def size(self) -> int:
        return self._array.size

    def numpy(self) -> np.ndarray:
        """A copy of the value. Outside traced functions only."""
        if self._graph is not None:
            raise CaptureError(
                f"{self.name} is a Variable of a graph, and has a value in a Session only.", hint="sess.run(variable)"
            )
        return self._array.copy()

    def read_value(self) -> Any:
        """The value now: an array (a scalar of a 0-d variable), or a tensor inside a traced function."""
        return self._read()

    def _read(self, *others: Any) -> Any:
        """The value beside `others` in an expression."""
        capture = self._recording(*others)
        return self._array.copy()[()] if capture is None else capture.read_variable(self)

    def _recording(self, *others: Any) -> Any:
        """The recording that an expression is part of: a graph's tensors are put together wherever they stand."""
        capture = current_capture()
        if capture is None and self._graph is not None:
            return self._graph.capture
        if capture is None:
            return next((x.capture for x in others if isinstance(x, Tensor) and x.capture.is_open), None)
        return capture

    value = read_value

    def assign(self, value: Any) -> Any:
        """Replace the value.

        Args:
            value: an array of the variable's shape; it is cast to the variable's dtype.

        Returns:
            The new value.

        Raises:
            ShapeError: it has another shape.
        """
        value = value._read() if isinstance(value, Variable) else value
        shape = plain(value.type.shape) if isinstance(value, Tensor) else np.shape(value)
        capture = self._recording(value)
        if shape != self.shape and (capture is None or capture.is_known_shape(value)):
            raise ShapeError(
                f"{self.name} has shape {self.shape} and is assigned a value of shape {shape}.",
                why="a variable keeps its shape for life",
                hint="reshape the value, or make another Variable",
            )
        if capture is not None:
            return capture.assign_variable(self, value)
        self._array[...] = value
        return self.read_value()

    def assign_add(self, delta: Any) -> Any:
        """Add to the value.

        Args:
            delta: an array that is added.

        Returns:
            The new value.

        Raises:
            ShapeError: the sum has another shape.
        """
        return self.assign(self._read(delta) + delta)

    def assign_sub(self, delta: Any) -> Any:
        """Subtract from the value.

        Args:
            delta: an array that is subtracted.

        Returns:
            The new value.

        Raises:
            ShapeError: the difference has another shape.
        """
        return self.assign(self._read(delta) - delta)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype)

    def __jitlab_tensor__(self) -> Any:
        return self.read_value()

    def __getitem__(self, index: Any) -> Any:
        return self.read_value()[index]

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        return bool(self.read_value())

    def __float__(self) -> float:
        return float(self.read_value())

    def __int__(self) -> int:
        return int(self.read_value())

    def __repr__(self) -> str:
        if self._graph is not None:
            return by_contract("<tf.Variable ") + f"{self.name!r} shape={self.shape} dtype={self.dtype.name}>"
        return f"Variable({self.name!r}, shape={self.shape}, dtype={self.dtype}, value={self._array!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a Variable has no attribute {name!r}")
        return getattr(self.read_value(), name)

    __hash__ = object.__hash__


def _real_value(capture: Capture, value: Any, name: str) -> Any:
    """The initial value of a Variable that is made while a function is recorded: computed now, outside the recording."""
    if isinstance(value, Variable):
        value = value.read_value()
    if isinstance(value, (list, tuple)):
        value = HOOKS.call(np.array, value)
    if not isinstance(value, Tensor):
        return value
    node = value.node()
    if capture.creation is not None and _depends_on(node, capture.creation.samples):
        raise ValueError(
            f"the initial value of {name} depends on an argument that has no value yet: call the function once with arrays"
            " before get_concrete_function(TensorSpec(...)), or make the Variable outside"
        )
    return evaluate(capture, node)


def _depends_on(node: Any, others: list[Any]) -> bool:
    seen, waiting = set(), [node]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        if node in others:
            return True
        seen.add(node)
        waiting.extend(node.inputs)
    return False


def _binary(method: Callable[[Any, Any], Any]) -> Callable[[Variable, Any], Any]:
    def apply(self: Variable, other: Any) -> Any:
        left = self._read(other)
        return method(left, other._read(left) if isinstance(other, Variable) else other)

    return apply


def _reflected(method: Callable[[Any, Any], Any]) -> Callable[[Variable, Any], Any]:
    return lambda self, other: method(other, self._read(other))


def _unary(method: Callable[[Any], Any]) -> Callable[[Variable], Any]:
    return lambda self: method(self.read_value())


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift"):
    _bare = _name.rstrip("_")
    setattr(Variable, f"__{_bare}__", _binary(getattr(operator, _name)))
    setattr(Variable, f"__r{_bare}__", _reflected(getattr(operator, _name)))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Variable, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Variable, f"__{_name}__", _unary(getattr(operator, _name)))
