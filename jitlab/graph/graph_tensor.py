"""GraphTensor: a value of a Graph. It has an array's operators, and a value only when a Session runs its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.ir import Node, OperationView, output_name, producer
from jitlab.messages import by_contract
from jitlab.ops.build_nodes import as_node
from jitlab.specs import TensorShape

if TYPE_CHECKING:
    from .session_graph import Graph


class GraphTensor(Tensor):
    """A value of a Graph. Sizes that are not known before it runs are None in its shape."""

    __slots__ = ()

    def __init__(self, cell: Cell) -> None:
        super().__init__(cell, is_scalar=not cell.node.shape)

    @property
    def graph(self) -> Graph:
        return self.capture.root  # type: ignore[return-value]

    def node(self) -> Node:
        """Its value does not change; in a body that is being recorded, what stands for it there."""
        return self._cell.node if self.capture.graph is self.capture.root else super().node()

    @property
    def op(self) -> OperationView:
        return OperationView(self.graph, producer(self._cell.node)[0])

    @property
    def name(self) -> str:
        return output_name(self._cell.node)

    @property
    def shape(self) -> Any:
        return super().shape if self.capture.in_numpy else TensorShape(self.static_shape)

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise AttributeError("the shape of a tensor of a graph cannot be assigned: x = x.reshape(shape)")

    @property
    def static_shape(self) -> tuple[int | None, ...] | None:
        """What is known of its shape: None for a size, or for all of it."""
        return self.capture.static_shape(self._cell.node)  # type: ignore[attr-defined,no-any-return]

    @property
    def size(self) -> Any:
        """How many elements it has: a tensor where only a run knows that."""
        if self.capture.in_numpy:
            return super().size
        known = self.shape.num_elements()
        return self.capture.perform(_size, self) if known is None else known

    def get_shape(self) -> Any:
        """The same, as a function."""
        return self.shape

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def value_index(self) -> int:
        return int(self.name.rpartition(":")[2])

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Its value, by the Session given or the one whose block this stands in."""
        return self.graph.session(session).run(self, feed_dict)

    def __len__(self) -> int:
        if self.capture.in_numpy:
            return super().__len__()
        first = self.shape[0] if self.shape.rank else None
        if first is None:
            raise TypeError(f"len is not well defined for {self!r}: its first size is not known before the graph runs")
        return int(first)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return by_contract("<tf.Tensor ") + f"'{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        return f'Tensor("{self.name}", shape={self.shape}, dtype={self.dtype.name})'

    __hash__ = object.__hash__


def _size(capture: Any, x: Tensor) -> Tensor:
    return capture.python_number(as_node(x.type.size))  # type: ignore[no-any-return]
