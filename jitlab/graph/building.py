"""What puts operations into a graph: placeholders, constants, Variables' initializers, and the blocks around them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from jitlab.capture import Tensor, current_capture
from jitlab.ir import outside
from jitlab.ops.build_nodes import apply
from jitlab.ops.graph_state import Identity
from jitlab.specs import as_shape

from .graph_operations import NoOp
from .session_graph import Graph, current_graph, default_graph, graph_for_operations


def placeholder(dtype: Any = np.float32, shape: Any = None, name: str | None = None) -> Any:
    """An input of a Graph: a value that a Session is fed with.

    Args:
        dtype: of its elements.
        shape: a list of sizes in which None stands for one that is not known yet; None: any shape.
        name: of the operation in the graph; None: "Placeholder".

    Returns:
        A tensor of the graph.

    Raises:
        TypeError: `shape` is no shape, or `dtype` no dtype.
        ValueError: a size is negative.

    Example:
        >>> with jl.Graph().as_default():
        ...     x = jl.placeholder(np.float32, [None, 3], name="x")
        >>> x.name, x.dtype
        ('x:0', dtype('float32'))
    """
    dims = as_shape(shape)
    return graph_for_operations().capture.placeholder(np.dtype(dtype), dims, name, None)


def placeholder_with_default(input: Any, shape: Any = None, name: str | None = None) -> Any:
    """A placeholder that has a value where it is not fed: that of an array."""
    value = np.asarray(input)
    dims = value.shape if shape is None else as_shape(shape)
    return graph_for_operations().capture.placeholder(value.dtype, dims, name, value)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """An array; in a Graph the operation that gives it.

    Args:
        value: an array, numbers or lists of numbers.
        dtype: of the elements; None: NumPy's for the value.
        shape: one number is repeated to that shape, an array of as many elements is reshaped; None: the value's own.
        name: of the operation in a graph; None: "Const".

    Returns:
        An array (a NumPy scalar for one number); in a Graph a tensor.

    Raises:
        ValueError: the value does not fit the shape or the dtype.

    Example:
        >>> jl.constant(1.5, shape=(2, 2))
        array([[1.5, 1.5],
               [1.5, 1.5]])
    """
    if isinstance(value, Tensor):
        return value if dtype is None or value.dtype == np.dtype(dtype) else value.astype(dtype)
    array = np.array(value, dtype)
    if shape is not None:
        shape = tuple(as_shape(shape) or ())
        array = array.reshape(shape) if array.size == np.prod(shape, dtype=int) else np.broadcast_to(array, shape).copy()
    graph = current_graph()
    if graph is None:
        return array[()]
    with graph.named(name, constant=True):
        return graph.capture.constant_tensor(array)


def identity(input: Any, name: str | None = None) -> Any:
    """The same value; in a graph, an operation of its own."""
    capture: Any = current_capture() or (input.capture if isinstance(input, Tensor) else None)
    if capture is None:
        return np.array(input)[()]
    with capture.naming(name):
        return capture.perform(_identity, input)


def _identity(capture: Any, x: Any) -> Any:
    x = capture.operand(x)
    if not isinstance(x, Tensor):
        return np.array(x)[()]
    return capture.fresh(apply(Identity(), x.node()), is_scalar=x.is_scalar)


def no_op(name: str | None = None) -> Any:
    """An operation that does nothing; what it has to wait for (`control_dependencies`) runs."""
    capture = graph_for_operations().capture
    with capture.entered(), capture.naming(name):
        capture.perform(_add_nothing)
        return capture.last_operation()


def _add_nothing(capture: Any) -> None:
    apply(NoOp())


def group(*inputs: Any, name: str | None = None) -> Any:
    """An operation that runs all of `inputs`."""
    flat: list[Any] = []
    for x in inputs:
        flat.extend(x) if isinstance(x, (list, tuple)) else flat.append(x)
    with control_dependencies([x for x in flat if x is not None]):
        return no_op(name or "group_deps")


def global_variables() -> list[Any]:
    """The Variables of the graph this stands in."""
    return list(default_graph().capture.graph_variables)


def trainable_variables() -> list[Any]:
    """Those that are to be trained."""
    return [variable for variable in global_variables() if variable.trainable]


def variables_initializer(variables: Sequence[Any], name: str = "init") -> Any:
    """An operation that gives Variables their initial values."""
    capture = default_graph().capture
    return group(*(capture.initializer_of(v) for v in variables), name=name)


def global_variables_initializer() -> Any:
    """The operation of the default Graph that gives each of its Variables its initial value.

    Returns:
        An operation, to be run by a Session before what reads the Variables.

    Example:
        >>> graph = jl.Graph()
        >>> with graph.as_default():
        ...     steps = jl.Variable(2.0)
        ...     ready = jl.global_variables_initializer()
        >>> session = jl.Session(graph)
        >>> session.run(ready)
        >>> session.run(steps)
        np.float64(2.0)
    """
    return variables_initializer(global_variables())


# ---- blocks


@contextmanager
def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> Any:
    """A block in which the names of a Graph's operations begin with `name/`. Without a graph, nothing is named.

    Args:
        name: what they begin with.
        default_name: what they begin with where `name` is None.
        values: accepted, and of no effect.

    Returns:
        A context manager whose value is the scope's name, with the stroke behind it.

    Example:
        >>> with jl.Graph().as_default(), jl.name_scope("layer"):
        ...     x = jl.placeholder(np.float32, name="x")
        >>> x.name
        'layer/x:0'
    """
    graph = _graph()
    chosen = name if name is not None else default_name
    if graph is None:
        yield f"{chosen}/" if chosen else ""
        return
    with graph.name_scope(chosen) as scope:
        yield scope


def device(name: Any) -> AbstractContextManager[Any]:
    """A block whose operations are placed on a device: "XLA_CPU:0", "/job:localhost/replica:0/task:0/device:XLA_CPU:0".

    Args:
        name: of the device; None: wherever it may be; or a function of an operation that gives one of these.

    Returns:
        A context manager.

    Raises:
        ValueError: `name` is not how a device is called.
        TypeError: `name` is neither a text nor a function nor None.

    Example:
        >>> graph = jl.Graph()
        >>> with graph.as_default(), jl.device("XLA_CPU:0"):
        ...     y = np.exp(jl.placeholder(np.float32, [2]))
        >>> y.op.device
        '/device:XLA_CPU:0'
    """
    graph = _graph()
    if graph is None:
        from .device_scopes import merged

        if not callable(name):
            merged("", name)
        return nullcontext()
    return graph.device(name)


def control_dependencies(inputs: Sequence[Any] | None) -> AbstractContextManager[Any]:
    """A block whose operations run after others. In a traced function everything with an effect keeps its order anyway.

    Args:
        inputs: operations or tensors of the graph; None: those of the blocks around are forgotten inside.

    Returns:
        A context manager.

    Raises:
        TypeError: one of `inputs` is no operation and no tensor of a graph.

    Example:
        >>> graph = jl.Graph()
        >>> with graph.as_default():
        ...     total = jl.Variable(0.0)
        ...     with jl.control_dependencies([total.assign_add(1.0)]):
        ...         told = total.read_value()
        ...     ready = jl.global_variables_initializer()
        >>> session = jl.Session(graph)
        >>> session.run(ready)
        >>> session.run(told)
        np.float64(1.0)
    """
    graph = _graph()
    if graph is None and inputs:
        found = [x.graph for x in inputs if hasattr(x, "graph")]
        graph = next((x for x in found if isinstance(x, Graph) and hasattr(x, "order")), None)
    return nullcontext() if graph is None else graph.control_dependencies(inputs)


def _graph() -> Graph | None:
    """The graph that blocks are of: the one this stands in, else the default one when something is in it."""
    found = current_graph()
    return found if found is not None or current_capture() is not None else outside.graph
