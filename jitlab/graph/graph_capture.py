"""GraphCapture: a recording that stays open. It keeps the steps a person took, so that a Session can take them again.

A Graph is made before the sizes of its placeholders are known. What is recorded here is for sample sizes: it gives names,
attributes and types, and finds wrong programs at their line. A Session takes the steps it needs once more, for the arrays it
is fed with (replay.py), and that is what is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.positions import here
from jitlab.capture.state import Capture
from jitlab.capture.tracers.arrays import current
from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.ir import TRACED_DTYPES, ArrayType, Extent, Node, OperationView, Scope, Source
from jitlab.ops.build_nodes import apply, constant
from jitlab.ops.graph_state import AssignVariable, ReadVariable
from jitlab.ops.leaf_operations import Constant, Parameter

from .graph_operations import VarHandle
from .graph_tensor import GraphTensor, static_shape
from .sample_sizes import RANKS, SIZE, adopt, others, sample

if TYPE_CHECKING:
    from .session_graph import Graph

@dataclass(eq=False)
class Steps:
    """The steps of a body: a side of `cond`, the test or body of `while_loop`."""

    steps: list[Step]
    parameters: tuple[Any, ...] = ()
    result: Any = None


@dataclass(eq=False)
class Step:
    """One thing a person did: what is done again, with which arguments, and what it gave."""

    action: Callable[..., Any]  # (capture, *args, *bodies) -> its result
    args: tuple[Any, ...]
    bodies: tuple[Steps, ...] = ()
    result: Any = None
    nodes: list[Node] = field(default_factory=list)
    tensors: list[GraphTensor] = field(default_factory=list)  # in its result
    reads: tuple[Any, ...] = ()  # Variables whose value it needs
    writes: tuple[Any, ...] = ()
    scopes: list[Scope] = field(default_factory=list)
    gradient_names: dict[str, int] = field(default_factory=dict)
    source: Source | None = None
    feed: GraphTensor | None = None  # a placeholder: its value comes from outside
    default: Any = None  # of a placeholder that has one
    dims: tuple[int | None, ...] | None = None  # of a placeholder: None for what is not known
    handle: bool = False  # it only says where a Variable is kept

    @property
    def looks_back(self) -> bool:
        """It asks how values were computed, as a gradient does."""
        return getattr(self.action, "looks_back", False)


class GraphCapture(Capture):
    """The recording of a Graph."""

    root: Graph

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.name)
        self.graph = self.root = graph
        self.steps: list[Step] = []  # of the body that is being recorded; else all of them:
        self.all_steps = self.steps
        self.step_of: dict[Node, Step] = {}
        self.opened: frozenset[str] = frozenset()  # symbols of sizes that a feed decides
        self.ranks: frozenset[str] = frozenset()  # those of placeholders of unknown rank
        self.unranked: set[Node] = set()
        self.graph_variables: list[Any] = []
        self.initializers: dict[int, Any] = {}  # of Variables that were made outside of the graph, by their id
        self.initial: dict[int, Any] = {}  # and the values they had when the graph first used them
        self.collections: dict[str, list[Any]] = {}
        self._known: dict[Node, GraphTensor] = {}
        self.guesses = False  # the step that is being taken calls Python: the form of its results is a guess
        self._inside = 0  # steps that are being taken

    # ---- who may record
    def check_open(self) -> None:
        if current.get() is not self:
            super().check_open()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Operations on a graph's tensors are put into their graph, wherever they stand."""
        if current.get() is self:
            yield
        else:
            with self.recording():
                yield

    # ---- steps
    def step(
        self, action: Callable[..., Any], *args: Any, bodies: Sequence[Callable[..., Any]] = (), reads: tuple[Any, ...] = (),
        writes: tuple[Any, ...] = (),
    ) -> Any:  # fmt: skip
        """Do it, and remember it. What is done as part of it is not remembered apart."""
        if self._inside:
            return action(self, *args, *bodies)
        with self.entered():
            args = tuple(self._own(x) for x in args)
            made = Step(action, args, reads=reads, writes=writes, source=here())
            graph = self.root
            made.scopes, made.gradient_names = list(graph.scopes), dict(graph.gradient_names)
            before = len(graph.order)
            kept = [Steps([]) for _ in bodies]
            inner = [partial(self._body, steps, body) for steps, body in zip(kept, bodies, strict=True)]
            made.result = self._settled(self._taken(action, args, inner), made)
            made.bodies = tuple(kept)
            for inner_step in (x for steps in kept for x in steps.steps):
                made.reads, made.writes = (*made.reads, *inner_step.reads), (*made.writes, *inner_step.writes)
            made.nodes = graph.order[before:]
            for node in made.nodes:
                self.step_of[node] = made
                if self.guesses or not self.unranked.isdisjoint(node.inputs):
                    self.unranked.add(node)
            if made.nodes or made.tensors or self.steps is not self.all_steps:
                self.steps.append(made)
            return made.result

    def _taken(self, action: Callable[..., Any], args: Sequence[Any], bodies: Sequence[Any]) -> Any:
        """Do it, for other samples where it does not fit those that are there."""
        outermost = self.graph is self.root
        mark = self.mark() if outermost and (self.opened or self.ranks) else None
        try:
            return self._done(action, args, bodies)
        except (ValueError, IndexError) as error:
            if mark is None:
                raise
            self.rollback(mark)
            for tried in others(self, args):
                if self._fits(tried, action, args, bodies):
                    adopt(self, tried)
                    return self._done(action, args, bodies)
            raise error

    def _done(self, action: Callable[..., Any], args: Sequence[Any], bodies: Sequence[Any]) -> Any:
        self._inside += 1
        self.guesses = False
        try:
            return action(self, *args, *bodies)
        finally:
            self._inside -= 1

    def _fits(self, tried: Any, action: Callable[..., Any], args: Sequence[Any], bodies: Sequence[Any]) -> bool:
        """Can it be done for these samples?"""
        if bodies:
            return False  # the user's functions would be called once more
        try:
            with tried.recording():
                action(tried, *tried.own(tuple(args)))
        except (ValueError, IndexError):
            return False
        return True

    def _body(self, steps: Steps, body: Callable[..., Any], *args: Any) -> Any:
        """A function of the user's is called as part of a step: its own steps are kept there."""
        before, self.steps = self.steps, []
        inside, self._inside = self._inside, 0
        try:
            steps.parameters = args
            steps.result = body(*args)
            steps.steps = self.steps
            return steps.result
        finally:
            self.steps, self._inside = before, inside

    def _own(self, x: Any) -> Any:
        """An argument as it is kept: the value a Variable has here, an array as it is now."""
        if isinstance(x, Tensor):
            if isinstance(x, GraphTensor) and x.graph is not self.root:
                raise ValueError(f"{x} is of another graph than the operation: all operands must be from the same graph")
            return x
        if getattr(type(x), "__jitlab_variable__", False) is True:
            return self.read_variable(x)
        if type(x) is np.ndarray and x.dtype in TRACED_DTYPES:
            return self.constant(x)
        if type(x) in (list, tuple):
            items = [self._own(item) for item in x]
            return type(x)(items) if any(a is not b for a, b in zip(items, x, strict=True)) else x
        return {key: self._own(item) for key, item in x.items()} if type(x) is dict else x

    def _settled(self, result: Any, step: Step) -> Any:
        """A result with a GraphTensor for each array in it; the operations of views are made now, not when they are read."""
        if isinstance(result, Tensor):
            tensor = self.tensor_of(result.node()) if self.graph is self.root else _inner(self, result)
            step.tensors.append(tensor)
            return tensor
        if isinstance(result, (list, tuple)):
            items = [self._settled(item, step) for item in result]
            return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
        if isinstance(result, dict):
            return {key: self._settled(item, step) for key, item in result.items()}
        return result

    def tensor_of(self, node: Node) -> GraphTensor:
        """The tensor that a person holds for a node."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = GraphTensor(Cell(self, node))
        return known

    def rollback(self, mark: Any) -> None:
        super().rollback(mark)
        there = {*self.root.nodes, *self.root.parameters}
        self.root.order[:] = [node for node in self.root.order if node in there]

    # ---- what a person does
    def operator(self, name: str, *operands: Any) -> Any:
        return self.step(Capture.operator, name, *operands)

    def inplace(self, name: str, target: Tensor, other: Any) -> Any:
        return self.operator(name, target, other)  # a value of a graph does not change: the name is bound anew

    def call_function(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return self.step(_call_function, function, tuple(args), dict(kwargs))

    def call_method(self, x: Tensor, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return self.step(_call_method, x, name, tuple(args), dict(kwargs))

    def attribute(self, x: Tensor, name: str) -> Any:
        found = Capture.attribute(self, x, name)
        return self.step(Capture.attribute, x, name) if isinstance(found, Tensor) else found

    def get_item(self, x: Tensor, index: Any) -> Any:
        return self.step(Capture.get_item, x, index)

    def set_item(self, x: Tensor, index: Any, value: Any) -> None:
        raise TypeError("'Tensor' object does not support item assignment: a value of a graph does not change")

    def perform(self, action: Callable[..., Any], *args: Any, bodies: Sequence[Callable[..., Any]] = ()) -> Any:
        return self.step(action, *args, bodies=bodies)

    def value(self, x: Any, text: str = "", binding: Any = None) -> Any:
        """An array that the program uses is a constant of the graph, with what it holds now."""
        if type(x) is np.ndarray and x.dtype in TRACED_DTYPES:
            return self.constant(x)
        return x

    def constant(self, value: Any, dtype: Any = None) -> Any:
        """An operation that gives an array."""
        array = np.array(value, dtype)
        if self._inside:
            return Tensor(Cell(self, constant(array)), is_scalar=not array.ndim)
        return self.step(_constant, _Kept(array))

    def constant_tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        return self.constant(array)  # type: ignore[no-any-return]

    def naming(self, name: str | None) -> AbstractContextManager[Any]:
        return nullcontext() if self._inside else self.root.named(name)

    @contextmanager
    def gradient_scope(self, name: str) -> Iterator[str]:
        if self._inside:
            yield name
            return
        with self.root.name_scope(name or "gradients") as scope:
            yield scope.rstrip("/")

    def differentiable(self, x: Any) -> Any:
        is_variable = getattr(type(x), "__jitlab_variable__", False) is True
        return self.tensor_of(self.handle_of(x)) if is_variable else self.value(x)

    def guessed_results(self, dtypes: Sequence[np.dtype[Any]]) -> list[Any] | None:
        self.guesses = True
        return [np.zeros((), dtype) for dtype in dtypes]

    def last_operation(self) -> Any:
        return OperationView(self.root, self.root.order[-1]) if self.graph is self.root else None

    def known(self, x: Tensor) -> Any:
        """Sizes are samples here, so what becomes of them is of a form that only a run knows."""
        value = super().known(x)
        if value is not None and not isinstance(x.node().op, Constant):
            self.guesses = True
        return value

    def index(self, x: Tensor) -> int:
        value = self.known(x) if x.dtype.kind in "iu" else None
        if value is None and x.dtype.kind in "iu" and not x.type.shape:
            self.guesses = True  # a feed decides
            value = self.evaluate(x.node())
        return super().index(x) if value is None else int(value)

    def real(self, x: Tensor, what: str) -> Any:
        node = x._cell.node
        if isinstance(node.op, Constant) and not x._path:
            return node.op.value[()]
        return super().real(x, what)

    # ---- placeholders
    def placeholder(self, dtype: np.dtype[Any], dims: tuple[int | None, ...] | None, name: str | None, default: Any) -> Any:
        """An operation whose value is fed."""
        with self.entered():
            opened: set[str] = set()
            shape: list[int] = []
            for n in (None,) * RANKS[0] if dims is None else dims:
                extent = self._extent(SIZE) if n is None else n if n < 2 else self._extent(n)
                if n is None and isinstance(extent, Extent):
                    opened.update(extent.expr.symbols)
                shape.append(extent)
            kind = ArrayType(tuple(shape), dtype)
            stem = name or ("PlaceholderWithDefault" if default is not None else "Placeholder")
            node = self.root.append(Node(Parameter(kind), (), kind, name=stem))
            self.values[node] = sample(kind)
            if dims is None:
                self.ranks |= opened
            else:
                self.opened |= opened
            tensor = self.tensor_of(node)
            made = Step(_nothing, (), result=tensor, nodes=[node], tensors=[tensor], source=here(), feed=tensor)
            made.default, made.dims = default, dims
            self.steps.append(made)
            self.step_of[node] = made
            return tensor

    # ---- Variables
    def make_variable(self, variable: Any, initial_value: Any, dtype: Any) -> bool:
        """A Variable of the graph: each Session has a value of its own for it."""
        graph = self.root
        with self.entered():
            if callable(initial_value) and not isinstance(initial_value, (Tensor, np.ndarray)):
                initial_value = initial_value()
            if getattr(type(initial_value), "__jitlab_variable__", False) is True:
                initial_value = initial_value.read_value()
            if not isinstance(initial_value, Tensor):
                initial_value = self.constant(initial_value, dtype)
            elif dtype is not None and initial_value.dtype != np.dtype(dtype):
                initial_value = initial_value.astype(dtype)
            shape = tuple(int(n) for n in initial_value.type.shape)
            kind = ArrayType(tuple(self._extent(n) for n in shape), initial_value.dtype)
            handle = graph.append(Node(VarHandle(kind), (), kind, name=variable.name))
            variable.name = handle.name + ":0"
            variable._array = np.zeros(shape, kind.dtype)
            variable._handle, variable._graph = handle, graph
            self.values[handle] = variable._array
            made = Step(_read_handle, (_Kept(variable),), handle=True, nodes=[handle], source=here())
            made.tensors = [self.tensor_of(handle)]
            made.result = made.tensors[0]
            self.all_steps.append(made)
            self.step_of[handle] = made
            self.graph_variables.append(variable)
            variable.initial_value = initial_value
            with graph.name_scope(handle.name + "/"):
                variable.initializer = self.assign_variable(variable, initial_value).op
        return True

    def initializer_of(self, variable: Any) -> Any:
        """The operation that gives a Variable its initial value."""
        if variable._graph is not None:
            return variable.initializer
        known = self.initializers.get(id(variable))  # one that was made outside, and had its value at once
        if known is None:
            known = self.initializers[id(variable)] = self.assign_variable(variable, self.initial[id(variable)]).op
        return known

    def handle_of(self, variable: Any) -> Node:
        """The operation that stands for a Variable in this graph; one that was made outside is known here from now on."""
        handle = getattr(variable, "_handle", None)
        if handle is not None and variable._graph is self.root:
            return handle  # type: ignore[no-any-return]
        if handle is not None:
            raise ValueError(f"{variable.name} belongs to another graph")
        array = variable.__jitlab_array__()
        known = self.captured.get(id(array))
        if known is None:
            tensor = super().value(array, variable.name.rpartition(":")[0] or variable.name)
            made = Step(_read_handle, (_Kept(variable),), handle=True, nodes=[tensor._cell.node], source=here())
            made.result = self.tensor_of(tensor._cell.node)
            made.tensors = [made.result]
            self.all_steps.append(made)
            self.step_of[tensor._cell.node] = made
            self.graph_variables.append(variable)
            self.initial[id(variable)] = variable.numpy()
            known = self.captured[id(array)]
        return known.node

    def is_known_shape(self, value: Any) -> bool:
        return not isinstance(value, Tensor) or None not in (static_shape(self, value._cell.node) or (None,))

    def read_variable(self, variable: Any) -> Any:
        handle = self.handle_of(variable)
        if self._inside:
            return _read(self, self.tensor_of(handle), variable)
        with _named(self.root, handle):
            return self.step(_read, self.tensor_of(handle), _Kept(variable), reads=(variable,))

    def assign_variable(self, variable: Any, value: Any) -> Any:
        handle = self.handle_of(variable)
        if not isinstance(value, Tensor):
            value = np.asarray(value, variable.dtype)
        return self.step(_assign, self.tensor_of(handle), value, _Kept(variable), writes=(variable,))


@dataclass(frozen=True)
class _Kept:
    """An argument of a step that is nobody's operand."""

    value: Any


@contextmanager
def _named(graph: Any, handle: Node) -> Iterator[None]:
    before = graph.scope_name
    graph.scope_name = handle.name + "/"
    try:
        yield
    finally:
        graph.scope_name = before


# ---- actions: what is done for the sample sizes, and again for real ones


def _call_function(capture: Capture, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return Capture.call_function(capture, function, args, kwargs)


def _call_method(capture: Capture, x: Tensor, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return Capture.call_method(capture, x, name, args, kwargs)


def _constant(capture: Capture, kept: _Kept) -> Any:
    return capture.fresh(constant(kept.value), is_scalar=not kept.value.ndim)


def _nothing(capture: Capture) -> None:
    raise AssertionError("a placeholder is fed, not computed")


def _read_handle(capture: Any, kept: _Kept) -> Any:
    return capture.handle_tensor(kept.value)


def _read(capture: Capture, handle: Tensor, kept: Any) -> Any:
    return capture.fresh(apply(ReadVariable(), handle.node()), is_scalar=not handle.type.shape)


def _assign(capture: Any, handle: Tensor, value: Any, kept: _Kept) -> Any:
    from jitlab.ops.build_nodes import as_node
    from jitlab.ops.layout.views import broadcast_to

    node = value.node() if isinstance(value, Tensor) else value
    node = as_node(node, handle.dtype)
    known = getattr(capture, "is_known_shape", None)
    if known is None or known(value):
        node = broadcast_to(node, handle.type.shape)
    node = apply(AssignVariable(), node)
    after = getattr(capture, "after_assign", None)
    if after is not None:
        after(kept.value, node)
    return capture.fresh(node, is_scalar=not handle.type.shape)


def _inner(capture: GraphCapture, result: Tensor) -> Any:
    """A value of a body that is being recorded: it belongs there."""
    if result._path:
        result = Tensor(Cell(capture, result.node()), is_scalar=result.is_scalar)
    return result


__all__ = ["GraphCapture", "Step", "Steps"]
