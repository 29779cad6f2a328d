"""Graph: operations that are put together first and run later, by a Session."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from jitlab import ir
from jitlab.capture.state import current_capture
from jitlab.ir import CONTROL, DEVICE, Node, OperationView
from jitlab.messages import by_contract

from .device_scopes import merged
from .graph_capture import GraphCapture
from .graph_operations import OtherSample
from .graph_tensor import GraphTensor

#: Operators are named after the operator, everything else after the operation.
STEMS = {
    "AddV2": "add", "Sub": "sub", "Mul": "mul", "RealDiv": "truediv", "FloorDiv": "floordiv", "FloorMod": "mod", "Pow": "pow",
    "ReadVariableOp": "Read/ReadVariableOp", "AssignVariableOp": "Assign",
}  # fmt: skip


class _GraphType(type(ir.Graph)):  # type: ignore[misc]
    """The graph of a traced function is a Graph too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, ir.Graph)


class Graph(ir.Graph, metaclass=_GraphType):
    """Operations in the order they were made. `with graph.as_default():` makes operations its own; a Session runs them.

    Args:
        name: what reports call it.

    Raises:
        RuntimeError: an operation is added after `finalize()`.

    Example:
        >>> graph = jl.Graph()
        >>> with graph.as_default():
        ...     x = jl.placeholder(np.float64, [None], name="x")
        ...     y = np.exp(x)
        >>> [operation.name for operation in graph.get_operations()]
        ['x', 'Exp']
    """

    def __init__(self, name: str = "graph") -> None:
        super().__init__(name)
        self.order: list[Node] = []
        self.scope_name = ""  # "root/": what the names of operations begin with
        self.devices: list[Any] = []  # of the `device` blocks around
        self.controls: list[list[OperationView]] = []  # what has to run first, of the blocks around
        self.wanted_name: str | None = None  # of the operation of the next step: its caller chose it
        self.names_constant = False  # that operation is a constant
        self.is_named = False  # it has been made; what else the step makes is named after it
        self.capture = GraphCapture(self)
        self.is_finalized = False

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Operations made inside belong to this graph."""
        with self.capture.recording():
            yield self

    @contextmanager
    def named(self, name: str | None, *, constant: bool = False) -> Iterator[None]:
        """The next operation gets a name that its caller chose."""
        before = self.wanted_name, self.names_constant, self.is_named
        if name is not None:
            self.wanted_name, self.names_constant, self.is_named = name, constant, False
        try:
            yield
        finally:
            self.wanted_name, self.names_constant, self.is_named = before

    # ---- making operations
    def append(self, node: Node) -> Node:
        if self.is_finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        if isinstance(node.op, OtherSample):  # the same operation to a user
            node.name = node.inputs[0].name
            self.nodes.append(node)
            return node
        self.capture.open_parts(node)
        if node.name == node.op.stem:
            node.name = STEMS.get(node.op.name, node.op.name)
        if self.wanted_name is not None:
            is_main = not self.is_named and (node.op.name not in ("Const", "Cast") or self.names_constant)
            node.name = self.wanted_name if is_main else f"{self.wanted_name}/{node.name}"
            self.is_named |= is_main
        if self.devices and DEVICE not in node.attrs:
            device = self.devices[-1]
            if callable(device):
                device = merged("", device(OperationView(self, node)))
            if device:
                node.attrs[DEVICE] = device
        names = tuple(dict.fromkeys(other.name for block in self.controls for other in block))
        if names:
            node.attrs[CONTROL] = names
        node = super().append(node)
        self.order.append(node)
        return node

    def unique_name(self, stem: str) -> str:
        return super().unique_name(self.scope_name + stem)

    def unique_scope(self, name: str) -> str:
        """A name scope that no other has: name/, name_1/, ..."""
        return self.unique_name(name) + "/"

    def gradient_names_of(self, node: Node) -> AbstractContextManager[Any]:
        """`gradients/matmul_grad/...`; where no gradients are asked for by name, as everywhere else."""
        return self.name_scope(f"{node.name}_grad") if self.scope_name else nullcontext()

    def finalize(self) -> None:
        """From now on nothing can be added."""
        self.is_finalized = True

    # ---- the contract's view
    def in_order(self) -> list[Node]:
        """Everything in it, arguments and variables too, as it was made."""
        return self.order

    def as_graph_element(self, value: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The tensor or operation that `value`, or a name, stands for: one that `allow_tensor` and `allow_operation` let be."""
        if isinstance(value, str):
            if ":" in value and allow_tensor:
                return self.get_tensor_by_name(value)
            if ":" not in value and allow_operation:
                return self.get_operation_by_name(value)
            raise ValueError(f"{value!r} is not the name of a {'Tensor' if allow_tensor else 'Operation'}")
        value = getattr(value, "_as_graph_element", lambda: value)()
        if isinstance(value, GraphTensor) and allow_tensor:
            if value.graph is not self:
                raise ValueError(f"Tensor {value} is not an element of this graph.")
            return value
        if isinstance(value, OperationView) and allow_operation:
            if value.graph is not self:
                raise ValueError(f"Operation {value.name!r} is not an element of this graph.")
            return value
        raise TypeError(f"Can not convert a {type(value).__name__} into a Tensor or Operation.")

    def output(self, node: Node) -> Any:
        return self.capture.tensor_of(node)

    def session(self, given: Any) -> Any:
        from .session import default_session

        found = given if given is not None else default_session()
        if found is None:
            raise ValueError(
                "Cannot execute operation: No default session is registered. Use `with sess.as_default()` or pass an explicit"
                " session to `run(session=sess)`"
            )
        return found

    # ---- blocks
    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Names of operations made inside begin with it: "root/add"."""
        before = self.scope_name
        if not name:
            self.scope_name = ""
        elif name.endswith("/"):
            self.scope_name = name  # a scope that is entered again
        else:
            self.scope_name = self.unique_scope(name)
        try:
            yield self.scope_name
        finally:
            self.scope_name = before

    @contextmanager
    def device(self, name: Any) -> Iterator[None]:
        """Operations made inside are placed there; None: anywhere. A function of an operation may choose."""
        before = next((d for d in reversed(self.devices) if not callable(d)), "")
        self.devices.append(name if callable(name) else merged(before, name))
        try:
            yield
        finally:
            self.devices.pop()

    @contextmanager
    def control_dependencies(self, inputs: Sequence[Any] | None) -> Iterator[None]:
        """Operations made inside run after `inputs`; None: those of the blocks around are forgotten inside."""
        before = self.controls
        if inputs is None:
            self.controls = []
        else:
            elements = [self.as_graph_element(x) for x in inputs]
            self.controls = [*before, [x if isinstance(x, OperationView) else x.op for x in elements]]
        try:
            yield
        finally:
            self.controls = before

    def __str__(self) -> str:
        count = len(self.get_operations())
        return f"<{type(self).__name__} {self.name}: {count} operation{'' if count == 1 else 's'}>"

    __repr__ = __str__

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class _Default(threading.local):
    graph: Graph | None = None  # what is put together outside of blocks
    entered: Any = None


_default = _Default()


def default_graph() -> Graph:
    """The graph of the block this stands in, else the one that a thread has for everything outside of blocks."""
    found = current_graph()
    if found is not None:
        return found
    if _default.graph is None:
        _default.graph = Graph("default")
    return _default.graph


def graph_for_operations() -> Graph:
    """The same, for what can only be part of a graph: from then on what stands outside of blocks may be part of it, too."""
    graph = default_graph()
    if graph is _default.graph:
        ir.outside.graph = graph
    return graph


def current_graph() -> Graph | None:
    """The graph of the block this stands in, if it stands in one."""
    capture = current_capture()
    return capture.root if isinstance(capture, GraphCapture) else None


def reset_default_graph() -> None:
    """A new graph for what stands outside of blocks."""
    if current_graph() is not None and _default.entered is None:
        raise AssertionError(by_contract("Do not use tf.reset_default_graph() to clear nested graphs."))
    was_entered = _default.entered is not None
    enable_eager_execution()
    _default.graph = ir.outside.graph = None
    if was_entered:
        disable_eager_execution()


def disable_eager_execution() -> None:
    """From now on operations of this thread are put into its default graph (they run in a Session)."""
    if _default.entered is None:
        graph = graph_for_operations()
        _default.entered = graph.as_default()
        _default.entered.__enter__()


def enable_eager_execution() -> None:
    """From now on operations of this thread run at once again."""
    if _default.entered is not None:
        entered, _default.entered = _default.entered, None
        entered.__exit__(None, None, None)


def executing_eagerly() -> bool:
    """Do operations run at once here?"""
    return current_capture() is None


__all__ = [
    "Graph", "current_graph", "default_graph", "disable_eager_execution", "enable_eager_execution", "executing_eagerly",
    "reset_default_graph",
]  # fmt: skip
