"""RunCapture: the steps of a Graph recorded for the arrays of one run: what a Session compiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from jitlab.support.containers import leaves, mapped

from .graph_tensor import GraphTensor

if TYPE_CHECKING:
    from .graph_capture import Body, GraphCapture, Step
    from .session import Session


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
    """The recording of one run in a Session, which keeps the arrays of Variables."""

    root: RunGraph

    def __init__(self, session: Session) -> None:
        super().__init__(session.name)
        self.graph = self.root = RunGraph(session.name)
        self.session = session
        self.here: dict[GraphTensor, Any] = {}  # what a graph's tensor is here

    # ---- Variables
    def handle_tensor(self, variable: Any) -> Any:
        array = self.session.array_of(variable)
        self.variables.setdefault(id(array), variable)
        return self.value(array, variable.name.partition(":")[0])

    def assigned(self, variable: Any, node: Node) -> None:
        self.handle_tensor(variable)._cell.write((), node)

    def check_assigned(self, variable: Any) -> None:
        if not self.handle_tensor(variable)._cell.written:
            self.session.check_initialized(variable)

    def read_variable(self, variable: Any) -> Any:
        self.check_assigned(variable)
        return super().read_variable(variable)

    def index(self, x: Tensor) -> int:
        value = self.known(x) if x.dtype.kind in "iu" else None
        return super().index(x) if value is None else int(value)

    # ---- steps
    def own(self, x: Any) -> Any:
        """Arguments with what stands here for the graph's tensors."""
        return mapped(lambda leaf: self.here.get(leaf, leaf) if isinstance(leaf, GraphTensor) else leaf, x)

    def load_name(self, value: Any, name: str) -> Any:
        """A function's body may find a graph's tensor by name."""
        return super().load_name(self.own(value) if isinstance(value, GraphTensor) else value, name)

    def take(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if step.feed is None:
                self._bind(step.result, self._taken(step), is_fed=self.graph is self.root)

    def _taken(self, step: Step) -> Any:
        graph = self.root
        args = self.own(step.args)
        bodies = [partial(self._body, body) for body in step.bodies]
        if self.graph is not graph:  # in a body: its operations have no marks
            return step.action(self, *args, *bodies)
        graph.expected, graph.scopes = list(step.nodes), list(step.scopes)
        graph.gradient_names = dict(step.gradient_names)
        source = step.source
        try:
            with positions(lambda: source if source is not None else here()):
                result = step.action(self, *args, *bodies)
                for x in leaves(result):
                    if isinstance(x, Tensor):
                        x.node()  # the operations of views are made now: they belong to this step
                return result
        except Exception as error:
            if source is not None and step.nodes:
                error.add_note(f"in operation {step.nodes[-1].name!r}, which was made here: {describe(source)}")
            raise
        finally:
            graph.expected, graph.scopes = [], []

    def _body(self, body: Body, *args: Any) -> Any:
        """A function of the user's: what it did is done again."""
        before = dict(self.here)
        self._bind(body.parameters, args)
        self.take(body.steps)
        result = self.own(body.result)
        self.here = before
        return result

    def _bind(self, x: Any, mine: Any, *, is_fed: bool = False) -> None:
        """What was given when the graph was put together, and what stands for it here. A fed value takes the place of a
        computed one; where a gradient goes back, it goes on through the computed one."""
        known, found = leaves(x), leaves(mine)
        if len(known) != len(found):
            raise ValueError(f"{len(found)} results for these sizes, and {len(known)} when the graph was put together")
        for tensor, value in zip(known, found, strict=True):
            if isinstance(tensor, GraphTensor):
                fed = self.here.get(tensor) if is_fed else None
                self.here[tensor] = value if fed is None else self.fresh(
                    apply(Fed(), self.array(value).node(), fed.node()), is_scalar=fed.is_scalar
                )  # fmt: skip

    def array(self, x: Any) -> Tensor:
        """A value of a step: a size that the program asked for is a number here."""
        return x if isinstance(x, Tensor) else self.constant_tensor(np.asarray(x))


def needed(capture: GraphCapture, wanted: Sequence[Any], fed: Iterable[GraphTensor], *, whole: bool = False) -> list[Step]:
    """The steps that `wanted` (tensors and operations) need, in the order they were taken; nothing before what is fed unless
    the `whole` way is asked for."""
    given = set() if whole else {tensor._cell.node for tensor in fed}
    waiting: list[Any] = [*wanted]
    steps: set[Step] = set()
    while waiting:
        element = waiting.pop()
        node = element._node if isinstance(element, OperationView) else element._cell.node
        step = capture.step_of.get(node)
        if node not in given and step is not None and step not in steps:
            steps.add(step)
            waiting += step.needs
    return [step for step in capture.all_steps if step in steps]


def record(
    session: Session,
    number: int,
    steps: Sequence[Step],
    feeds: Mapping[GraphTensor, np.ndarray[Any, Any]],
    results: Sequence[Any],
) -> Trace:
    """The trace of these steps for these arrays; it gives the values of `results`, a list of tensors."""
    capture = RunCapture(session)
    capture.memory = quiet = Quiet(Frozen(), record, ())  # functions of the user's have done to Python what they do
    with capture.recording():
        try:
            for tensor, array in feeds.items():
                mine = capture.add_input(array, tensor.op.name)
                mine._cell.input.node.sources = tensor._cell.node.sources  # type: ignore[union-attr]
                capture.here[tensor] = Tensor(mine._cell, is_scalar=not array.ndim)
            capture.take(steps)
            nodes = [capture.array(capture.here[tensor]).node() for tensor in results]
            trace = finish(capture, [Tensor(Cell(capture, node), is_scalar=not node.shape) for node in nodes], number)
        finally:
            capture.close()
            quiet.undo()
    trace.leaves = list(range(len(feeds)))
    for input in trace.inputs[: len(feeds)]:
        input.value = None
    return trace


__all__ = ["needed", "record"]
