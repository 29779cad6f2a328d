"""Operations that a library computes whole: NumPy's own code, called as one kernel inside a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node, Poly, current_graph
from jitlab.support.lazy_dataclass import dataclass

from .base import Operation
from .build_nodes import apply
from .host_operations import SEVERAL, Item

#: An array of a call: its number among the "in", "out" or "temp"; the number that a Fourier transform is multiplied by is the
#: "factor".
Place = tuple[str, int]

#: The dtype and the extents of an array of a call.
Lying = tuple[np.dtype, tuple[Poly, ...]]


@dataclass(frozen=True)
class UfuncLoop:
    """The inner loop of a ufunc of a C module, run over stacks of its operands. `axis`: where the axis of vectors lies, which
    stands last otherwise. `says_invalid`: it tells by the flag of invalid operations that NumPy raises; `may_raise`: it may
    leave an exception in Python."""

    module: str
    name: str
    signature: str
    operands: tuple[Place, ...]
    says_invalid: bool = False
    axis: int | None = None
    norm: str = ""  # the factor is one part of the length, or of its root: "forward", "ortho"
    may_raise: bool = False
    odd_name: str = ""  # of the ufunc for an odd length of the first operand's last axis, where that is another one


@dataclass(frozen=True)
class SortLoop:
    """The function by which NumPy sorts elements of a dtype, or finds their order, run on each row along an axis."""

    to: Place
    source: Place
    axis: int
    kind: str
    finds_order: bool = False


@dataclass(frozen=True)
class Copying:
    """An array's elements, as those of another dtype. `upper`: those below the diagonal of a matrix are 0, and what it has
    more rows than there is room for is left out."""

    to: Place
    source: Place
    upper: bool = False


@dataclass(frozen=True)
class InC:
    """A call as steps that machine code takes by C pointers: what NumPy's Python code does around them, to the bit. `temps`:
    arrays that they need, row after row. `along`: the steps go along this axis alone, so that they may take one part of the
    arrays after the other along another one, and the temporaries hold a part. Where a step finds something unusual, NumPy
    itself is called."""

    steps: tuple[UfuncLoop | SortLoop | Copying, ...]
    temps: tuple[Lying, ...] = ()
    along: int | None = None


def in_double(dtype: np.dtype) -> np.dtype:
    """The dtype of double precision of the same kind."""
    return np.dtype("c16" if dtype.kind == "c" else "f8")


class Library(Operation, family=True):
    """One call of a library in a cluster. Its operands lie row after row in memory, its results are stored there.

    `numpy` is the meaning and the machine: it gets arrays of the types of the trace and gives one array or a tuple of them,
    exactly as `results` says. What it raises (`LinAlgError`) reaches the user at the line of the call.
    """

    exact: ClassVar[bool] = False
    library: ClassVar[str] = "NumPy"  # whose code it is, as the report names it
    may_fail: ClassVar[bool] = True  # a run may find it raising, or interrupted in Python
    is_silent: ClassVar[bool] = False  # `numpy` gives no warning of floating-point numbers

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC | None:
        """The same by C pointers, for arrays with elements; None: by `numpy` alone."""
        return None

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """The types of the results. Raises what NumPy raises for operands it refuses."""
        raise NotImplementedError

    def result(self, *types: ArrayType) -> ArrayType:
        results = self.results(*types)
        return results[0] if len(results) == 1 else ArrayType((), SEVERAL)


def call(op: Library, *inputs: Node) -> Node | tuple[Node, ...]:
    """Append the call: its result, or a node for each of its results. `gradient` of an operation with several results gets
    the node of the call as `out`, and for `g` a tuple with the cotangent of each result, None where none flows."""
    node = apply(op, *inputs)
    return results_of(node) if node.dtype == SEVERAL else node


def results_of(call: Node) -> tuple[Node, ...]:
    """A node for each result of a call that has several: those that the graph has, so that each result is stored once."""
    graph = current_graph()
    assert graph is not None, "no graph is being built"
    known = {node.op.index: node for node in graph.nodes if isinstance(node.op, Item) and node.inputs[0] is call}
    types = call.op.results(*(source.type for source in call.inputs))
    return tuple(known.get(k) or apply(Item(k, type), call) for k, type in enumerate(types))
