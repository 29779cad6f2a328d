"""The contract's view of a graph's operations: name, type, inputs, attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.ir.plans.decisions import CALLED, OWN
from jitlab.messages import by_contract
from jitlab.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from .graph import Graph, Node

#: Attributes of a node that are fields of their own in the contract's view: where it is placed, what has to run before it.
DEVICE, CONTROL = "device", "^"


class AttrValue:
    """The value of an attribute, read as `.b`, `.i`, `.f`, `.s` or `.type`; it compares as the value itself does."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def b(self) -> bool:
        return self.value if isinstance(self.value, bool) else False

    @property
    def i(self) -> int:
        return self.value if isinstance(self.value, int) else 0

    @property
    def f(self) -> float:
        return self.value if isinstance(self.value, float) else 0.0

    @property
    def s(self) -> bytes:
        return self.value.encode() if isinstance(self.value, str) else self.value if isinstance(self.value, bytes) else b""

    @property
    def type(self) -> Any:
        return self.value if isinstance(self.value, np.dtype) else None

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, AttrValue) else other))

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"AttrValue({self.value!r})"


@dataclass(frozen=True)
class NodeDef:
    """What a callable `compile_ops` is offered: the operation before its scope's own attributes. `word` is NumPy's name."""

    op: str
    name: str
    input: tuple[str, ...]
    device: str
    attr: Mapping[str, Any]
    word: str


def node_def(node: Node) -> NodeDef:
    """The contract's view of a node."""
    inputs = [output_name(source, short=True) for source in node.inputs]
    inputs += [f"^{name}" for name in node.attrs.get(CONTROL, ())]
    attrs = {name: AttrValue(value) for name, value in attributes(node).items()}
    return NodeDef(node.op.name, node.name, tuple(inputs), node.attrs.get(DEVICE, ""), attrs, str(node.op.word))


def attributes(node: Node) -> dict[str, Any]:
    """The attributes of an operation: what it works on, what scopes have put there."""
    dtypes = [source.dtype for source in node.inputs if source.dtype.kind != "V"]
    attr: dict[str, Any] = {"T": dtypes[0] if dtypes else node.dtype, "dtype": node.dtype}
    attr.update(getattr(node.op, "node_attrs", dict)())
    known = {key: value for key, value in node.attrs.items() if key not in (DEVICE, CONTROL, *OWN)}
    attr.update((key, value) for key, value in known.items() if CALLED not in node.attrs or not key.startswith("_Xla"))
    if isinstance(attr.get("_XlaScope"), str):
        attr["_XlaScope"] = attr["_XlaScope"].encode()
    return attr


def producer(node: Node) -> tuple[Node, int]:
    """The operation that gives a value, and the number of the value among its results."""
    index = getattr(node.op, "index", None)
    if index is not None and node.op.name == "Item":
        return node.inputs[0], index
    return node, 0


def output_name(node: Node, *, short: bool = False) -> str:
    """`name:k`; with `short`, `name` alone for the first result."""
    made, index = producer(node)
    return made.name if short and not index else f"{made.name}:{index}"


class Output:
    """A value of a graph that is looked at from outside: its name, type and operation."""

    __slots__ = ("_graph", "_node")

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph, self._node = graph, node

    @property
    def name(self) -> str:
        return output_name(self._node)

    @property
    def op(self) -> OperationView:
        return OperationView(self._graph, producer(self._node)[0])

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(int, self._node.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._node.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Output) and other._node is self._node

    def __hash__(self) -> int:
        return hash(self._node)

    def __repr__(self) -> str:
        return by_contract("<tf.Tensor ") + f"'{self.name}' shape={self.shape} dtype={self.dtype.name}>"


class OperationView:
    """One operation of a graph, as the contract names its parts."""

    __slots__ = ("_node", "graph")

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self._node = graph, node

    @property
    def name(self) -> str:
        return self._node.name

    @property
    def type(self) -> str:
        return str(self._node.op.name)

    @property
    def device(self) -> str:
        return str(self._node.attrs.get(DEVICE, ""))

    @property
    def inputs(self) -> tuple[Any, ...]:
        return tuple(self.graph.output(source) for source in self._node.inputs)

    @property
    def outputs(self) -> list[Any]:
        """Its results; none of an operation that is run for what it does."""
        if self._node.dtype.kind != "V":
            return [self.graph.output(self._node)]
        items = [node for node in self.graph.nodes if node.op.name == "Item" and node.inputs[0] is self._node]
        return [self.graph.output(node) for node in sorted(items, key=lambda node: int(node.op.index))]

    @property
    def control_inputs(self) -> list[OperationView]:
        return [self.graph.get_operation_by_name(name) for name in self._node.attrs.get(CONTROL, ())]

    @property
    def node_def(self) -> NodeDef:
        return node_def(self._node)

    def get_attr(self, name: str) -> Any:
        """The value of an attribute: `_XlaScope` is bytes, as the contract has it. ValueError when it has none of the name."""
        found = attributes(self._node)
        if name not in found:
            raise ValueError(f"Operation {self.name!r} has no attr named {name!r}.")
        return found[name]

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run it in a Session: the one given, else the one whose block this stands in."""
        self.graph.session(session).run(self, feed_dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OperationView) and other._node is self._node

    def __hash__(self) -> int:
        return hash(self._node)

    def __repr__(self) -> str:
        return by_contract("<tf.Operation ") + f"{self.name!r} type={self.type}>"


def operations(nodes: Iterator[Node]) -> Iterator[Node]:
    """Those that are operations to a user: not the single results of one that has several."""
    return (node for node in nodes if node.op.name != "Item")
