"""Which kind of number a name holds, where a traced value decides it: one of Python's own, a NumPy scalar, or a 0-d array.

`t = 0` before a loop that does `t = t + x[i]` is an int where the loop never runs, else a NumPy scalar; `max(n, 1)` is either
of its operands. The value is one number of one dtype. What it is in the program is one more result beside it, the number of
its kind (leaves.py), by which it becomes an object when it leaves the program. What is computed of it is computed once, where
its type is the same for each kind, or differs in the kind alone; else Python takes the way. `jl.function` gives tensors: there
kinds are not followed (`Policy.wants_bools`).
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.guards.leaves import (
    BOOL,
    INT,
    NUMPY,
    PYTHON_KINDS,
    LeafType,
    Mismatch,
    fitted,
    fresh,
    is_leaf,
    joined,
    leaf_node,
    leaf_type,
    python_type,
    taken_apart,
)
from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.tracers.number import Number, derived
from jitlab.capture.tracers.tensor import Tensor, no_value
from jitlab.errors import Signal
from jitlab.ir import Extent, Node, Symbolic
from jitlab.ops.build_nodes import apply, cast, constant
from jitlab.ops.elementwise.casts import Select
from jitlab.ops.elementwise.comparison import Equal, LogicalAnd, NotEqual
from jitlab.ops.layout.views import Reshape
from jitlab.ops.leaf_operations import Parameter
from jitlab.support.containers import CONTAINERS, changed
from jitlab.support.lazy_dataclass import dataclass

from .blocks import block, refuse
from .conditions import condition
from .exactness import watch_function

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

_NUMBERS = frozenset(PYTHON_KINDS.values())
#: Of how many kinds the numbers of one operation may be, together.
MOST_TOGETHER = 12


@dataclass(frozen=True, eq=False)
class Kinds:
    """What a value may be in the program, and the number that says which of them it is."""

    which: Node
    among: frozenset[int]


def kind_node(leaf: Any) -> Node:
    """The number of a leaf's kind, in the graph that is being built."""
    kinds = leaf._cell.kinds if isinstance(leaf, Tensor) else None
    return constant(np.int64(leaf_type(leaf).kind)) if kinds is None else kinds.which


def give_kinds(x: Tensor, which: Node, among: frozenset[int]) -> None:
    """From here on `x` is what `which` says."""
    x._cell.kinds = Kinds(which, among)
    x.capture.has_kinds = True


def is_mixed(x: Any) -> bool:
    """A number of which only a run knows the kind."""
    return type(x) is Tensor and x._cell.kinds is not None


def may_be_python(x: Any) -> bool:
    """May it be one of Python's own numbers?"""
    return is_leaf(x) and not leaf_type(x).kinds.isdisjoint(PYTHON_KINDS)


def mixed_in(x: Any) -> Iterator[Tensor]:
    """Those in containers, too."""
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from mixed_in(item)
    elif isinstance(x, dict):
        yield from mixed_in(list(x.values()))
    elif isinstance(x, slice):
        yield from mixed_in((x.start, x.stop, x.step))
    elif is_mixed(x):
        yield x


def has_mixed(x: Any) -> bool:
    return next(mixed_in(x), None) is not None


def as_one(x: Any) -> Any:
    """The number as its value alone."""
    return fresh(x.capture, x.node(), replace(leaf_type(x), among=frozenset())) if is_mixed(x) else x


def refusal(capture: Arrays, row: str, **args: Any) -> NotReplayable:
    """Python has to take the way."""
    refuse(capture, "type", row, **args)
    return NotReplayable("type", row, **args)


def _may_be(x: Tensor) -> str:
    kinds = leaf_type(x).among
    names = [PYTHON_KINDS[kind].__name__ if kind in PYTHON_KINDS else str(x.dtype) for kind in sorted(kinds, reverse=True)]
    return " or ".join(dict.fromkeys(names))


# ---- values of one dtype


def check_exact(capture: Arrays, leaf: Any, kind: LeafType) -> None:
    """A Python number that becomes a value of another dtype has to stay that number: it may leave the program as it was."""
    mine = leaf_type(leaf)
    if not kind.among or mine.dtype == kind.dtype or not mine.weak or mine.kinds == {BOOL}:
        return
    if isinstance(leaf, Number):
        leaf.capture.guard_number(derived(leaf.capture, Fits(kind.dtype), leaf))
        leaf = leaf.value
    if isinstance(leaf, Symbolic):
        if kind.dtype in _HOLD_COUNTS:
            return
    elif isinstance(leaf, Tensor) and mine.weak in (int, float):
        node = leaf.node()
        there_and_back = cast(cast(node, kind.dtype), node.dtype)
        is_another = apply(LogicalAnd(), apply(NotEqual(), there_and_back, node), apply(Equal(), node, node))
        watch_function(capture, "kind_of_number", is_another)
        return
    elif not isinstance(leaf, Tensor) and Fits(kind.dtype)(int(leaf) if isinstance(leaf, Extent) else leaf):
        return
    raise refusal(capture, "other_number", kind=mine.weak.__name__, dtype=kind.dtype)


#: What numbers of iterations and elements are the same as.
_HOLD_COUNTS = frozenset(map(np.dtype, ("i8", "f8", "c16")))


@dataclass(frozen=True)
class Fits:
    """Is a Python number the same as a value of this dtype?"""

    dtype: np.dtype[Any]

    @property
    def __name__(self) -> str:
        return f"fits_{self.dtype}"

    def __call__(self, value: Any) -> bool:
        try:
            with np.errstate(all="ignore"):
                found = self.dtype.type(value).item()
        except OverflowError:
            return False
        return bool(found == value or value != value)


def selected(capture: Arrays, test: Node, x: Any, y: Any) -> Tensor:
    """`x if test else y` of numbers."""
    try:
        kind = joined(leaf_type(x), leaf_type(y), kinds=True)
    except Mismatch as mismatch:
        raise refusal(capture, "chosen_dtype", one=mismatch.mine.dtype, other=mismatch.other.dtype) from None
    for leaf in (x, y):
        check_exact(capture, leaf, kind)
    one, other = (fitted(leaf_node(leaf), kind) for leaf in (x, y))
    result = fresh(capture, apply(Select(), test, one, other), kind)
    if kind.among:
        give_kinds(result, apply(Select(), test, kind_node(x), kind_node(y)), kind.among)
    return result


def extreme(capture: Arrays, function: Any, args: Sequence[Any]) -> Any:
    """Python's max and min of numbers of several kinds, which give one of them; NotImplemented where all are of one."""
    if len(args) < 2 or any(isinstance(x, Tensor) and x.ndim for x in args):
        return NotImplemented
    types = [leaf_type(x) for x in args]
    if len(frozenset().union(*(t.kinds for t in types))) == 1 and len({t.dtype for t in types}) == 1:
        return NotImplemented
    beats = operator.gt if function is max else operator.lt
    best = args[0]
    for other in args[1:]:
        test = condition(beats(other, best))
        if isinstance(test, bool):
            best = other if test else best
        else:
            best = selected(capture, test, other, best)
    return best


# ---- what is computed of such numbers


def of_each_kind(capture: Arrays, compute: Callable[[Any], Any], operands: Any) -> Any:
    """`compute(operands)`: where what it gives is of another kind for each of the operands' kinds, that goes on with it."""
    mixed = list({id(x._cell): x for x in mixed_in(operands)}.values())
    ways = list(itertools.product(*(sorted(leaf_type(x).among) for x in mixed)))
    if len(ways) > MOST_TOGETHER:
        raise refusal(capture, "chosen_types")
    types = [_found_of(capture, compute, operands, list(zip(mixed, way, strict=True))) for way in ways]
    try:
        result = compute(_replaced(operands, as_one))
    except Signal:
        raise
    except Exception:
        raise _depends(capture, mixed) from None
    form, leaves = taken_apart(result)
    if any(key != form.key for key, _ in types):
        raise _depends(capture, mixed)
    found = [_with_kinds(capture, leaf, [given[n] for _, given in types], ways, mixed) for n, leaf in enumerate(leaves)]
    return result if all(x is y for x, y in zip(found, leaves, strict=True)) else form.make(iter(found))


def _found_of(
    capture: Arrays, compute: Callable[[Any], Any], operands: Any, kinds: list[tuple[Tensor, int]]
) -> tuple[Any, list[Any]]:
    """Form and leaves of the result where the numbers are of these kinds."""
    with block(capture, "kind") as made:
        stand_ins: dict[int, Tensor] = {}
        for x, kind in kinds:
            mine = leaf_type(x)
            one = python_type(kind) if kind in PYTHON_KINDS else LeafType(mine.type, None, kind == NUMPY)
            node = made.graph.append(Node(Parameter(one.type), (), one.type))
            stand_ins[id(x._cell)] = fresh(capture, node, one)
        try:
            result = compute(_replaced(operands, partial(_stand_in, stand_ins)))
        except Signal:
            raise
        except Exception:
            raise _depends(capture, [x for x, _ in kinds]) from None
        form, leaves = taken_apart(result)
        return form.key, leaves


def _stand_in(stand_ins: dict[int, Tensor], x: Any) -> Any:
    return stand_ins[id(x._cell)] if is_mixed(x) else x


def _replaced(x: Any, change: Callable[[Any], Any]) -> Any:
    return changed(partial(_replaced, change=change), x) if isinstance(x, CONTAINERS) else change(x)


def _with_kinds(
    capture: Arrays, leaf: Any, given: list[Any], ways: list[tuple[int, ...]], mixed: list[Tensor]
) -> Any:
    """A result whose type is the same for all kinds, or that gets kinds of its own."""
    mine, types = leaf_type(leaf), list(map(leaf_type, given))
    if not isinstance(leaf, Tensor) and any(isinstance(x, Tensor) or repr(x) != repr(leaf) for x in given):
        raise _depends(capture, mixed)
    same = {(t.dtype, t.type.shape, t.kinds) for t in types}
    if same == {(mine.dtype, mine.type.shape, mine.kinds)}:
        return leaf
    try:
        kind = reduce(partial(joined, kinds=True), types)
    except Mismatch:
        raise _depends(capture, mixed) from None
    if any(t.among for t in types) or (kind.dtype, kind.type.shape) != (mine.dtype, mine.type.shape):
        raise _depends(capture, mixed)
    result = fresh(capture, apply(Reshape(kind.type.shape), leaf_node(leaf)), kind)
    if kind.among:
        give_kinds(result, _which(types, ways, mixed), kind.among)
    return result


def _which(types: list[LeafType], ways: list[tuple[int, ...]], mixed: list[Tensor]) -> Node:
    """The kind of a result, by those of the operands."""
    nodes = [kind_node(x) for x in mixed]
    if len(mixed) == 1 and all(t.kind == way[0] for t, way in zip(types, ways, strict=True)):
        return nodes[0]
    which = constant(np.int64(types[-1].kind))
    for t, way in zip(types[:-1], ways[:-1], strict=True):
        tests = [apply(Equal(), node, constant(np.int64(kind))) for node, kind in zip(nodes, way, strict=True)]
        which = apply(Select(), reduce(partial(apply, LogicalAnd()), tests), constant(np.int64(t.kind)), which)
    return which


def _depends(capture: Arrays, mixed: list[Tensor]) -> NotReplayable:
    """The types of what comes next are others for each kind."""
    return refusal(capture, "chosen_kind", kinds=_may_be(mixed[0]))


# ---- uses of the value alone


def check_position(capture: Arrays, index: Any) -> None:
    """A number that is used as a position or a count is an int of either kind, and no bool."""
    for x in mixed_in(index):
        if not leaf_type(x).among <= {INT, NUMPY} or x.dtype.kind not in "iu":
            raise _depends(capture, [x])


def check_known(capture: Arrays, x: Any) -> None:
    """What is asked for hangs on the kind of a number."""
    if is_mixed(x):
        raise _depends(capture, [x])


def check_owner(x: Any, name: str) -> None:
    """An attribute of a number is asked for: those of Python's own are not NumPy's."""
    if type(x) is Tensor:
        check_known(x.capture, x)
        if x.weak is not None and x.capture.policy.keeps_kinds:
            raise no_value(x, f".{name}")


def check_identity(x: Any, y: Any) -> None:
    """`flag is True`: which object one of Python's own numbers is, only a run knows."""
    for number, other in ((x, y), (y, x)):
        if type(number) is Tensor and type(other) in _NUMBERS and number.weak is type(other):
            raise no_value(number, "`is`")


__all__ = [
    "Fits", "Kinds", "as_one", "check_exact", "check_identity", "check_known", "check_owner", "check_position", "extreme",
    "give_kinds", "has_mixed", "is_mixed", "kind_node", "may_be_python", "of_each_kind", "selected",
]  # fmt: skip
