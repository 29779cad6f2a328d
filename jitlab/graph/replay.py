"""The steps of a Graph taken once more, for the arrays of one run: what a Session compiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture import Trace, finish
from jitlab.capture.effect_log import Frozen, Quiet
from jitlab.capture.positions import describe, here
from jitlab.capture.state import Capture
from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.ir import Graph, Node, OperationView, positions
from jitlab.ops.build_nodes import apply
from jitlab.ops.graph_state import Fed

from .graph_tensor import GraphTensor

if TYPE_CHECKING:
    from .graph_capture import GraphCapture, Step, Steps


class RunGraph(Graph):
    """Operations get the names, attributes and lines of those that the same step made when the graph was put together."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.expected: list[Node] = []

    def append(self, node: Node) -> Node:
        for n, known in enumerate(self.expected):
            if known.op.name == node.op.name:
                del self.expected[: n + 1]
                node.name, node.attrs, node.sources = known.name, dict(known.attrs), known.sources
                break
        return super().append(node)


class RunCapture(Capture):
    """The recording of one run. `array_of` gives the array in which a Variable is kept."""

    def __init__(self, name: str, array_of: Callable[[Any], np.ndarray[Any, Any]]) -> None:
        super().__init__(name)
        self.graph = self.root = RunGraph(name)
        self.array_of = array_of
        self.here: dict[int, Any] = {}  # by the id of a graph's tensor: what it is here

    def handle_tensor(self, variable: Any) -> Any:
        array = self.array_of(variable)
        self.variables.setdefault(id(array), variable)
        return self.value(array, variable.name.partition(":")[0])

    def after_assign(self, variable: Any, node: Node) -> None:
        self.handle_tensor(variable)._cell.write((), node)

    def read_variable(self, variable: Any) -> Any:
        tensor = self.handle_tensor(variable)
        return Tensor(Cell(self, tensor.node()), is_scalar=tensor.ndim == 0)

    def assign_variable(self, variable: Any, value: Any) -> Any:
        self.handle_tensor(variable)[...] = value
        return self.read_variable(variable)

    def index(self, x: Tensor) -> int:
        value = self.known(x) if x.dtype.kind in "iu" else None
        return super().index(x) if value is None else int(value)

    # ---- a graph's tensors that a function's body finds by name
    def load_name(self, value: Any, name: str) -> Any:
        return super().load_name(self.here.get(id(value), value) if isinstance(value, GraphTensor) else value, name)

    # ---- steps
    def take(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if step.feed is not None:
                continue
            for tensor, mine in zip(step.tensors, self._tensors(self._taken(step)), strict=True):
                fed = self.here.get(id(tensor)) if self.graph is self.root else None
                self.here[id(tensor)] = mine if fed is None else self._instead(mine, fed)

    def _instead(self, mine: Tensor, fed: Tensor) -> Tensor:
        """A fed value in the place of a computed one; where a gradient goes back, it goes on through the computed one."""
        return self.fresh(apply(Fed(), mine.node(), fed.node()), is_scalar=mine.is_scalar)

    def _taken(self, step: Step) -> Any:
        graph: RunGraph = self.root  # type: ignore[assignment]
        args = [self.own(x) for x in step.args]
        bodies = [partial(self._body, steps) for steps in step.bodies]
        outer = self.graph is not graph
        if outer:  # in a body: its operations have no marks
            return step.action(self, *args, *bodies)
        graph.expected, graph.scopes = list(step.nodes), list(step.scopes)
        graph.gradient_names = dict(step.gradient_names)
        source = step.source
        try:
            with positions(lambda: source if source is not None else here()):
                return self._settled(step.action(self, *args, *bodies))
        except Exception as error:
            if source is not None and step.nodes:
                error.add_note(f"in operation {step.nodes[-1].name!r}, which was made here: {describe(source)}")
            raise
        finally:
            graph.expected, graph.scopes = [], []

    def _settled(self, result: Any) -> Any:
        """The operations of views are made now: they belong to this step."""
        for tensor in self._tensors(result):
            tensor.node()
        return result

    def _body(self, steps: Steps, *args: Any) -> Any:
        """A function of the user's: what it did is done again."""
        before = dict(self.here)
        for x, own in zip(steps.parameters, args, strict=True):
            self._bind(x, own)
        self.take(steps.steps)
        result = self.own(steps.result)
        self.here = before
        return result

    def _bind(self, x: Any, own: Any) -> None:
        if isinstance(x, Tensor):
            self.here[id(x)] = own
        elif isinstance(x, (list, tuple)):
            for item, other in zip(x, own, strict=True):
                self._bind(item, other)
        elif isinstance(x, dict):
            for key in x:
                self._bind(x[key], own[key])

    def own(self, x: Any) -> Any:
        """An argument with what stands here for the graph's tensors."""
        if isinstance(x, Tensor):
            return self.here.get(id(x), x)
        if isinstance(x, (list, tuple)):
            items = [self.own(item) for item in x]
            return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
        return {key: self.own(item) for key, item in x.items()} if type(x) is dict else x

    def _tensors(self, result: Any) -> list[Any]:
        if isinstance(result, Tensor):
            return [result]
        if isinstance(result, dict):
            result = list(result.values())
        return [t for item in result for t in self._tensors(item)] if isinstance(result, (list, tuple)) else []


def needed(
    capture: GraphCapture, wanted: Sequence[Any], fed: Iterable[GraphTensor], *, whole: bool = False
) -> list[Step]:
    """The steps that `wanted` (tensors and operations) need, in the order they were taken; nothing before what is fed unless
    the `whole` way is asked for."""
    given = set() if whole else {tensor._cell.node for tensor in fed}
    nodes: list[Node] = []
    for element in wanted:
        node = element._node if isinstance(element, OperationView) else element._cell.node
        if node not in capture.step_of:  # it was made for other samples
            node = capture.root.get_operation_by_name(node.name)._node
        nodes.append(node)
    steps: set[Step] = set()
    seen: set[Node] = set()
    by_name: dict[str, Node] | None = None
    while nodes:
        node = nodes.pop()
        if node in seen or node in given:
            continue
        seen.add(node)
        step = capture.step_of[node]
        if by_name is None and any("^" in made.attrs for made in step.nodes):
            by_name = {node.name: node for node in capture.root.order}
        for made in step.nodes:
            nodes.extend(source for source in made.inputs if capture.step_of.get(source) is not step)
            nodes.extend((by_name or {})[name] for name in made.attrs.get("^", ()))
        if step not in steps:
            steps.add(step)
            nodes.extend(tensor._cell.node for tensor in _arguments(step))
    return [step for step in capture.all_steps if step in steps]


def _arguments(step: Step) -> list[GraphTensor]:
    """The tensors of the graph that a step is given, or its bodies read."""
    found: list[GraphTensor] = []

    def collect(x: Any) -> None:
        if isinstance(x, GraphTensor):
            found.append(x)
        elif isinstance(x, (list, tuple)):
            for item in x:
                collect(item)
        elif isinstance(x, dict):
            collect(list(x.values()))

    def bodies(steps: Iterable[Steps]) -> None:
        for one in steps:
            collect(one.result)
            for inner in one.steps:
                collect(inner.args)
                bodies(inner.bodies)

    collect(step.args)
    bodies(step.bodies)
    return found


def record(
    name: str, number: int, steps: Sequence[Step], feeds: Mapping[GraphTensor, np.ndarray[Any, Any]], results: Sequence[Any],
    array_of: Callable[[Any], np.ndarray[Any, Any]],
) -> Trace:  # fmt: skip
    """The trace of these steps for these arrays; it gives the values of `results`, a list of tensors."""
    capture = RunCapture(name, array_of)
    capture.memory = quiet = Quiet(Frozen(), record, ())  # functions of the user's have done to Python what they do
    with capture.recording():
        try:
            for tensor, array in feeds.items():
                mine = capture.add_input(array, tensor.op.name)
                mine._cell.input.node.sources = tensor._cell.node.sources  # type: ignore[union-attr]
                capture.here[id(tensor)] = Tensor(mine._cell, is_scalar=not array.ndim)
            capture.take(steps)
            found = [capture.here[id(tensor)] for tensor in results]
            own = [Tensor(Cell(capture, x.node()), is_scalar=not x.type.shape) for x in found]
            trace = finish(capture, own, number)
        finally:
            capture.close()
            quiet.undo()
    trace.leaves = list(range(len(feeds)))
    for input in trace.inputs[: len(feeds)]:
        input.value = None
    return trace


__all__ = ["needed", "record"]
