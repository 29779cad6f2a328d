"""Sample sizes: what stands for sizes that only a run knows, while a Graph is put together.

Where a step does not fit the samples, others are tried: the steps so far are taken again for them. Names, attributes and the
tensors that a person holds stay the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.ir import ArrayType, Extent, Node, NotRolled, plain
from jitlab.ops.leaf_operations import Parameter

from .replay import RunCapture, RunGraph

if TYPE_CHECKING:
    from .graph_capture import GraphCapture, Step

#: The size that stands for one not known yet; the numbers of axes for one not known, in the order they are tried.
SIZE, RANKS = 5, (2, 1, 3, 0, 4)
#: So many other samples are tried before an error counts as the program's own.
MOST = 100

Dims = tuple[int | None, ...] | None


def sample(type: ArrayType) -> np.ndarray[Any, Any]:
    """An array to try things on that have no rule."""
    array = np.ones(plain(type.shape), type.dtype)
    if array.ndim > 1 and array.dtype.kind in "fc":  # so that a solver finds it regular
        array[..., range(min(array.shape[-2:])), range(min(array.shape[-2:]))] = 3
    return array


class SampleCapture(RunCapture):
    """The steps of a graph for other samples."""

    def __init__(self, capture: GraphCapture) -> None:
        super().__init__(capture.name, lambda variable: variable.__jitlab_array__())
        self.of = capture
        self._symbols = capture._symbols
        self.bounds.sizes.update(capture.bounds.sizes)
        self.values.update(capture.values)
        self.opened: set[str] = set()
        self.ranks: set[str] = set()
        self.unranked: set[Node] = set()
        self.guesses = False
        self.taken: dict[Any, list[Node]] = {}  # by each step

    def after_assign(self, variable: Any, node: Node) -> None:
        """A variable that is read later may have been read before: its value is no matter here."""

    def guessed_results(self, dtypes: Sequence[np.dtype[Any]]) -> list[Any] | None:
        self.guesses = True
        return [np.zeros((), dtype) for dtype in dtypes]

    def known(self, x: Tensor) -> Any:
        self.guesses = True
        return super().known(x)

    def index(self, x: Tensor) -> int:
        self.guesses = True
        return int(self.evaluate(x.node())) if x.dtype.kind in "iu" and not x.type.shape else super().index(x)

    def placeholder(self, step: Step, dims: Dims, shape: Sequence[int]) -> None:
        assert step.feed is not None
        old = step.feed._cell.node
        sizes = [self._extent(n) for n in shape]
        wanted = (None,) * len(sizes) if dims is None else dims
        free = {s for n, k in zip(sizes, wanted, strict=True) if k is None and isinstance(n, Extent) for s in n.expr.symbols}
        (self.ranks if dims is None else self.opened).update(free)
        kind = ArrayType(tuple(sizes), old.dtype)
        node = Node(Parameter(kind), (), kind, name=old.name, sources=old.sources, attrs=old.attrs)
        if any(k is None and n < 2 for n, k in zip(sizes, wanted, strict=True)) or (dims is None and not sizes):
            self.unranked.add(node)  # no symbol says in its users' types that this is a sample
        self.graph.parameters.append(node)
        self.values[node] = sample(kind)
        step.nodes = [node]
        self.here[id(step.feed)] = Tensor(Cell(self, node), is_scalar=not sizes)

    def all_again(self, shapes: dict[Any, Sequence[int]]) -> dict[Any, list[Node]]:
        """Take every step; gives the nodes that each has made."""
        made: dict[Any, list[Node]] = {}
        graph: RunGraph = self.root  # type: ignore[assignment]
        for step in self.of.all_steps:
            if step.feed is not None:
                before = step.nodes
                self.placeholder(step, step.dims, shapes.get(step, plain(before[0].shape)))
                made[step], step.nodes = step.nodes, before
            elif step.handle:
                made[step] = step.nodes
                self.here[id(step.tensors[0])] = Tensor(Cell(self, step.nodes[0]))
            else:
                count, self.guesses = len(graph.nodes), False
                self.take([step])
                made[step] = graph.nodes[count:]
                for node in made[step]:
                    if self.guesses or not self.unranked.isdisjoint(node.inputs):
                        self.unranked.add(node)
        return made


def others(capture: GraphCapture, args: Any) -> Iterator[SampleCapture]:
    """Recordings for other samples of the placeholders that `args` depend on. Take one over with `adopt`."""
    behind = [step for step in _behind(capture, args) if step.feed is not None]
    placeholders = [step for step in behind if step.dims is None or None in step.dims]
    if not placeholders:
        return
    beside = [int(n) for node in _nodes(args) for n in node.shape]
    sizes = list(dict.fromkeys([*beside[:8], *(n for n in _sizes(args) if 1 < n < 1 << 20), SIZE, 1]))
    choices = [[plain(step.nodes[0].shape), *_shapes(step.dims, sizes)] for step in placeholders]
    for shapes in itertools.islice(_nearest_first(choices), MOST):
        tried = SampleCapture(capture)
        try:
            with tried.recording():
                tried.taken = tried.all_again(dict(zip(placeholders, shapes, strict=True)))
        except (ValueError, IndexError, TypeError, NotRolled):
            continue
        yield tried


def _nearest_first(choices: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """One of each, the first ones of all before any others."""
    for total in range(sum(map(len, choices))):
        yield from _of_total(choices, total)


def _of_total(choices: Sequence[Sequence[Any]], total: int) -> Iterator[tuple[Any, ...]]:
    if not choices:
        if total == 0:
            yield ()
        return
    for at, choice in enumerate(choices[0][: total + 1]):
        for rest in _of_total(choices[1:], total - at):
            yield choice, *rest


def _shapes(dims: Dims, sizes: list[int]) -> Iterator[tuple[int, ...]]:
    for shape in ((None,) * rank for rank in RANKS) if dims is None else (dims,):
        yield from itertools.product(*(sizes if n is None else (n,) for n in shape))


def _nodes(x: Any) -> Iterator[Node]:
    if isinstance(x, Tensor):
        yield x._cell.node
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from _nodes(item)
    elif isinstance(x, dict):
        yield from _nodes(list(x.values()))


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


def _behind(capture: GraphCapture, args: Any) -> list[Step]:
    """The steps of what the nodes are computed from."""
    seen: set[Node] = set()
    waiting = list(_nodes(args))
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(node.inputs)
    return [step for step in capture.all_steps if not seen.isdisjoint(step.nodes)]


def adopt(capture: GraphCapture, tried: SampleCapture) -> None:
    """The graph's operations are those of these samples from now on."""
    graph = capture.root
    for step, nodes in tried.taken.items():
        step.nodes = nodes
    order = [node for step in capture.all_steps for node in step.nodes]
    by_name = {node.name: node for node in order}
    known = list(capture._known.values())
    for tensor in known:
        cell = tensor._cell
        cell.node, cell.reads = by_name.get(cell.node.name, cell.node), {}
        tensor._shape = cell.node.shape
    with tried.recording():
        for tensor in (tensor for step in capture.all_steps for tensor in step.tensors):
            mine = tried.here[id(tensor)]
            tensor._cell.node, tensor._cell.reads, tensor._shape = mine.node(), {}, mine.type.shape
    capture._known = {tensor._cell.node: tensor for tensor in known}
    graph.order[:] = order
    graph.parameters[:] = [node for node in order if node.op.is_parameter]
    graph.nodes[:] = [node for node in order if not node.op.is_parameter]
    capture.step_of = {node: step for step in capture.all_steps for node in step.nodes}
    capture.values, capture._symbols = tried.values, tried._symbols
    capture.bounds.sizes.update(tried.bounds.sizes)
    capture.opened, capture.ranks, capture.unranked = frozenset(tried.opened), frozenset(tried.ranks), tried.unranked


__all__ = ["RANKS", "SIZE", "adopt", "others", "sample"]
