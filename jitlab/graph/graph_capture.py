"""GraphCapture: a recording that stays open, and keeps what was done as steps.

A Graph is put together before a Session knows the sizes of what it is fed with. They are symbols here, with sample values: so
operations get names, attributes and types, and a wrong program is found at its line. A size of 1, two sizes that turn out the
same, or another number of axes make another program of the same steps, so a Session records those that it needs for the
arrays it is fed with (run_capture.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.numpy_calls.functions import apply_operator, inplace
from jitlab.capture.numpy_calls.host_fallback import evaluate
from jitlab.capture.positions import here
from jitlab.capture.state import Capture
from jitlab.capture.tracers.array_methods import attribute
from jitlab.capture.tracers.subscripts import set_item
from jitlab.capture.tracers.tensor import Cell, Tensor, current
from jitlab.ir import TRACED_DTYPES, ArrayType, Extent, Node, OperationView, Scope, Source, plain, producer
from jitlab.ops.build_nodes import apply, as_node, constant
from jitlab.ops.graph_state import AssignVariable, ReadVariable
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.views import Reshape, View, broadcast_to, identity_map
from jitlab.ops.leaf_operations import Constant, Parameter
from jitlab.ops.library_operations import Library
from jitlab.specs import TensorShape
from jitlab.support.containers import leaves, mapped
from jitlab.support.lazy_dataclass import dataclass

from .graph_operations import OtherSample, VarHandle, sample
from .graph_tensor import GraphTensor

if TYPE_CHECKING:
    from .session_graph import Graph

#: The size that stands for one not known yet; the numbers of axes for one not known, in the order they are tried.
SIZE, RANKS = 5, (2, 1, 3, 0, 4)
#: So many other samples are tried before an error counts as the program's own.
MOST = 100


@dataclass(eq=False)
class Body:
    """The steps of a function of the user's: a side of `cond`, the test or body of `while_loop`."""

    steps: list[Step] = field(default_factory=list)
    parameters: tuple[Any, ...] = ()
    result: Any = None


@dataclass(eq=False)
class Step:
    """One thing that a program did: what is done again in each recording, with which arguments, and what it gave."""

    action: Callable[..., Any]  # (capture, *args, *bodies) -> its result
    args: tuple[Any, ...] = ()
    bodies: list[Body] = field(default_factory=list)
    result: Any = None
    nodes: list[Node] = field(default_factory=list)
    needs: list[Any] = field(default_factory=list)  # the tensors that it and its bodies read, and what has to run before it
    scopes: list[Scope] = field(default_factory=list)
    gradient_names: dict[str, int] = field(default_factory=dict)
    source: Source | None = None
    feed: GraphTensor | None = None  # a placeholder: its value comes from outside
    default: Any = None  # of a placeholder that has one

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
        self.opened: set[str] = set()  # symbols of sizes that a feed decides
        self.ranks: set[str] = set()  # of those the ones of placeholders of unknown rank
        self.unranked: set[Node] = set()  # of whose shapes nothing is known, whatever they are here
        self.graph_variables: list[Any] = []
        self.fetched: dict[int, Any] = {}  # the tensors that read Variables where those are fetched, by the Variables' ids
        self.initializers: dict[int, Any] = {}  # of Variables that were made outside of the graph, by their id
        self.initial: dict[int, Any] = {}  # and the values they had when the graph first used them
        self._known: dict[Node, GraphTensor] = {}
        self.guesses = False  # the step that is being taken asks for values: the form of its results is a guess
        self._args: tuple[Any, ...] = ()  # its arguments
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
    def perform(self, action: Callable[..., Any], *args: Any, bodies: Sequence[Callable[..., Any]] = ()) -> Any:
        """Do it, and remember it. What is done as part of it is not remembered apart."""
        if action is set_item:
            raise TypeError("'Tensor' object does not support item assignment: a value of a graph does not change")
        if action is inplace:
            action = apply_operator  # the name is bound anew
        if action is attribute and not isinstance(found := attribute(self, *args), Tensor):
            return found
        if self._inside:
            return action(self, *args, *bodies)
        with self.entered():
            graph = self.root
            args = mapped(self._own, args)
            made = Step(action, args, [Body() for _ in bodies], source=here())
            made.scopes, made.gradient_names = list(graph.scopes), dict(graph.gradient_names)
            given = tensors_in(args)
            made.needs = [*given, *itertools.chain(*graph.controls)]
            before = len(graph.order)
            inner = [partial(self._body, mine, body) for mine, body in zip(made.bodies, bodies, strict=True)]
            found = self._taken(action, args, inner)
            made.result = mapped(partial(self._own_result, {*given}), found)
            for body in made.bodies:
                made.needs += [*tensors_in(body.result), *itertools.chain(*(step.needs for step in body.steps))]
            self._keep(made, graph.order[before:])
            return made.result

    def _keep(self, made: Step, nodes: list[Node]) -> None:
        made.nodes = nodes
        for node in nodes:
            self.step_of[node] = made
            if self.guesses or not self.unranked.isdisjoint(node.inputs):
                self.unranked.add(node)
        self.steps.append(made)

    def _taken(self, action: Callable[..., Any], args: tuple[Any, ...], bodies: Sequence[Any]) -> Any:
        """Do it, for other samples of open sizes where it does not fit those that are there."""
        mark = self.mark() if self.opened and self.graph is self.root and not bodies else None
        try:
            return self._done(action, args, bodies)
        except (ValueError, IndexError) as error:
            if mark is None:
                raise
            self.rollback(mark)
            for others in self._other_samples(args):
                try:
                    return self._done(action, others, ())
                except (ValueError, IndexError):
                    self.rollback(mark)
            raise error

    def _done(self, action: Callable[..., Any], args: tuple[Any, ...], bodies: Sequence[Any]) -> Any:
        self._inside += 1
        self.guesses, self._args = self.guesses and self.steps is not self.all_steps, args
        try:
            return action(self, *args, *bodies)
        finally:
            self._inside -= 1

    def _body(self, mine: Body, body: Callable[..., Any], *args: Any) -> Any:
        """A function of the user's is called as part of a step: its own steps are kept there."""
        before, self.steps = self.steps, []
        inside, self._inside = self._inside, 0
        try:
            mine.parameters = mapped(self._settled, args)
            mine.result = body(*mine.parameters)
            mine.steps = self.steps
            return mine.result
        finally:
            self.steps, self._inside = before, inside

    def _own(self, x: Any) -> Any:
        """An argument as it is kept: the value a Variable has here, an array as it is now."""
        if isinstance(x, GraphTensor) and x.graph is not self.root:
            raise ValueError(f"{x} is of another graph than the operation: all operands must be from the same graph")
        return self.read_variable(x) if getattr(type(x), "__jitlab_variable__", False) is True else self.value(x)

    def _own_result(self, given: set[GraphTensor], x: Any) -> Any:
        """A leaf of a step's result. What is an argument for sample sizes is none for others: `x[:9]`."""
        found = self._settled(x)
        if isinstance(found, GraphTensor) and found in given and not found.shape.is_fully_defined():
            shape = x.node().shape
            found = self.tensor_of(apply(View(identity_map(len(shape)), shape), x.node()))
        return found

    def _settled(self, x: Any) -> Any:
        """A leaf of a result: a GraphTensor for an array, or for a size that only a run knows. The operations of views are made
        now, not when they are read."""
        if isinstance(x, Extent) and self.is_unknown(x):
            x = self.python_number(as_node(x))
        if not isinstance(x, Tensor):
            return x
        self.open_parts(x.node())
        return self.tensor_of(x.node())

    def tensor_of(self, node: Node) -> GraphTensor:
        """The tensor that a program holds for a node."""
        if isinstance(node.op, OtherSample):
            return self.tensor_of(node.inputs[0])
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = GraphTensor(Cell(self, node))
        return known

    def rollback(self, mark: Any) -> None:
        super().rollback(mark)
        there = {*self.root.nodes, *self.root.parameters}
        self.root.order[:] = [node for node in self.root.order if node in there]

    # ---- sizes that only a run knows
    def is_unknown(self, n: int) -> bool:
        return isinstance(n, Extent) and not self.opened.isdisjoint(n.expr.symbols)

    def opening(self, n: int, *, has_rank: bool = True) -> Extent:
        """A new symbol for such a size; here it is `n`."""
        name = f"n{self._symbols}"
        self._symbols += 1
        self.bounds.sizes[name] = n
        self.opened.add(name)
        if not has_rank:
            self.ranks.add(name)
        return Extent.symbol(name, n)

    def open_parts(self, node: Node) -> None:
        """What is left of an axis of such a size has one, too."""
        op = producer(node)[0].op if isinstance(node.op, Item) else node.op
        if not isinstance(op, (View, Reshape, Library)) or not self.opened:
            return
        shape, whole = node.shape, [n for x in producer(node)[0].inputs for n in x.shape]
        if isinstance(op, View):
            axes = {axis for (_, _, axis), n in zip(op.map, whole, strict=True) if axis is not None and self.is_unknown(n)}
        elif not any(map(self.is_unknown, whole)) or (isinstance(op, Reshape) and any(map(self.is_unknown, shape))):
            return
        else:
            said = {*_sizes(self._args)} if isinstance(op, Reshape) else ()
            axes = {axis for axis, n in enumerate(shape) if int(n) not in said}
        sizes = [self.opening(int(n)) if i in axes and not self.is_unknown(n) else n for i, n in enumerate(shape)]
        node.type = ArrayType(tuple(sizes), node.dtype)

    def static_shape(self, node: Node) -> tuple[int | None, ...] | None:
        """A node's shape with None where a Session's feed decides, None for all of it where even the number of axes is open."""
        symbols = {s for n in node.shape if isinstance(n, Extent) for s in n.expr.symbols}
        if node in self.unranked or not symbols.isdisjoint(self.ranks):
            return None
        return tuple(None if self.is_unknown(n) else int(n) for n in node.shape)

    def _other_samples(self, args: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """The arguments with other samples for the tensors whose sizes only a run knows, nearest first."""
        given = dict.fromkeys(tensors_in(args))
        beside = [int(n) for x in given for n in x.type.shape]
        sizes = [*dict.fromkeys([*beside[:8], *(n for n in _sizes(args) if 1 < n < 1 << 20), SIZE, 1])]
        opened = [x for x in given if not x.shape.is_fully_defined()]
        most = int(10_000 ** (1 / max(len(opened), 1)))
        choices = [list(itertools.islice(_shapes(x, sizes), most)) for x in opened]
        for places in sorted(itertools.product(*map(range, map(len, choices))), key=sum)[1 : MOST + 1]:
            others = {x: self._other(x, shapes[n]) for x, shapes, n in zip(opened, choices, places, strict=True) if n}
            yield mapped(partial(_replaced, others), args)

    def _other(self, x: GraphTensor, shape: tuple[int, ...]) -> Tensor:
        """A tensor of that shape in the place of x."""
        dims = x.static_shape
        if dims is None:
            known: list[int] = [self.opening(n, has_rank=False) for n in shape]
        else:
            known = [self.opening(n) if k is None else m for n, k, m in zip(shape, dims, x.type.shape, strict=True)]
        node = apply(OtherSample(tuple(known)), x._cell.node)
        if not shape:
            self.unranked.add(node)
        return Tensor(Cell(self, node), is_scalar=not shape)

    # ---- what a user does
    def value(self, x: Any, text: str = "", binding: Any = None) -> Any:
        """An array that the program uses is a constant of the graph, with what it holds now."""
        if type(x) is np.ndarray and x.dtype in TRACED_DTYPES:
            return self.constant_tensor(x)
        return x

    def constant_tensor(self, array: np.ndarray[Any, Any]) -> Any:
        return self.perform(partial(_constant, array.copy()))

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

    def before_evaluate(self) -> None:
        """Values are samples here, so what becomes of them is of a form that only a run knows."""
        self.guesses = True

    def known(self, x: Tensor) -> Any:
        """And so are sizes."""
        value = super().known(x)
        self.guesses = self.guesses or (value is not None and not isinstance(x.node().op, Constant))
        return value

    def index(self, x: Tensor) -> int:
        """A number that a step asks for; the program itself gets none of a sample."""
        if not self._inside or x.dtype.kind not in "iu":
            return super().index(x)
        value = self.known(x)
        if value is None and not x.type.shape:
            value = evaluate(self, x.node())
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
            unknown = partial(self.opening, SIZE, has_rank=dims is not None)
            wanted = (None,) * RANKS[0] if dims is None else dims
            kind = ArrayType(tuple(unknown() if n is None else self._extent(n) for n in wanted), dtype)
            stem = name or ("PlaceholderWithDefault" if default is not None else "Placeholder")
            node = self.root.append(Node(Parameter(kind), (), kind, name=stem))
            self.values[node] = sample(kind)
            made = self._from_outside(node, _nothing)
            made.feed, made.default = made.result, default
            return made.result

    def _from_outside(self, node: Node, action: Callable[..., Any]) -> Step:
        """The step of an operation that computes nothing."""
        made = self.step_of[node] = Step(action, result=self.tensor_of(node), nodes=[node], source=here())
        self.all_steps.append(made)
        return made

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
                initial_value = self.constant_tensor(np.array(initial_value, dtype))
            elif dtype is not None and initial_value.dtype != np.dtype(dtype):
                initial_value = initial_value.astype(dtype)
            if not self.is_known_shape(initial_value):
                raise ValueError(f"initial_value must have a shape: that of {variable.name} is {initial_value.shape}")
            shape = tuple(int(n) for n in initial_value.type.shape)
            kind = ArrayType(tuple(self._extent(n) for n in shape), initial_value.dtype)
            handle = graph.append(Node(VarHandle(kind), (), kind, name=variable.name))
            variable.name = handle.name + ":0"
            variable._array = np.zeros(shape, kind.dtype)
            variable._handle, variable._graph = handle, graph
            self.values[handle] = variable._array
            self._from_outside(handle, partial(_handle, variable))
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
            self._from_outside(tensor._cell.node, partial(_handle, variable))
            self.graph_variables.append(variable)
            self.initial[id(variable)] = variable.numpy()
            known = self.captured[id(array)]
        return known.node

    def is_known_shape(self, value: Any) -> bool:
        return not isinstance(value, Tensor) or TensorShape(self.static_shape(value._cell.node)).is_fully_defined()

    def read_variable(self, variable: Any) -> Any:
        handle = self.handle_of(variable)
        with self.root.name_scope(handle.name + "/"):
            return self.perform(partial(_read, variable), self.tensor_of(handle))

    def assign_variable(self, variable: Any, value: Any) -> Any:
        handle = self.handle_of(variable)
        if not isinstance(value, Tensor):
            value = np.asarray(value, variable.dtype)
        return self.perform(partial(_assign, variable), self.tensor_of(handle), value)

    def check_assigned(self, variable: Any) -> None:
        """A Variable is read: whether it has a value, a Session knows."""

    def assigned(self, variable: Any, node: Node) -> None:
        """A Variable that is read later may have been read before: its value is no matter here."""


def _replaced(others: dict[GraphTensor, Tensor], x: Any) -> Any:
    return others.get(x, x) if isinstance(x, GraphTensor) else x


def tensors_in(x: Any) -> list[GraphTensor]:
    """A graph's tensors in nested containers."""
    return [leaf for leaf in leaves(x) if isinstance(leaf, GraphTensor)]


def _sizes(x: Any) -> Iterator[int]:
    """The integers and the lengths of lists among arguments: sizes that something may have to have."""
    if isinstance(x, (list, tuple)):
        yield len(x)
        for item in x:
            yield from _sizes(item)
    elif isinstance(x, dict):
        yield from _sizes(list(x.values()))
    elif isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        yield int(x)


def _shapes(x: GraphTensor, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The shape that x has here, and others that it may have."""
    dims = x.static_shape
    yield plain(x.type.shape)
    for shape in ((None,) * rank for rank in RANKS) if dims is None else (dims,):
        yield from itertools.product(*(sizes if n is None else (n,) for n in shape))


# ---- actions: what is done for sample sizes, and again for those of a run


def _nothing(capture: Capture) -> None:
    raise AssertionError("a placeholder is fed, not computed")


def _constant(array: np.ndarray[Any, Any], capture: Capture) -> Any:
    return capture.fresh(constant(array), is_scalar=not array.ndim)


def _handle(variable: Any, capture: Any) -> Any:
    return capture.handle_tensor(variable)


def _read(variable: Any, capture: Any, handle: Tensor) -> Any:
    capture.check_assigned(variable)
    return capture.fresh(apply(ReadVariable(), handle.node()), is_scalar=not handle.type.shape)


def _assign(variable: Any, capture: Any, handle: Tensor, value: Any) -> Any:
    node = as_node(value.node() if isinstance(value, Tensor) else value, handle.dtype)
    if capture.is_known_shape(value):
        node = broadcast_to(node, handle.type.shape)
    node = apply(AssignVariable(), node)
    capture.assigned(variable, node)
    return capture.fresh(node, is_scalar=not handle.type.shape)


__all__ = ["GraphCapture", "Step", "tensors_in"]
