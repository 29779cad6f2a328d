"""Conditions: what a traced value says to `if`, `while`, `and`, `not`, and how added functions are called."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.guards.leaves import LeafType, fresh, leaf_type
from jitlab.capture.positions import describe, entries, here, is_added
from jitlab.capture.tracers.tensor import Tensor, current_capture
from jitlab.errors import ControlFlowValueError
from jitlab.ir import ArrayType, Node, Symbolic
from jitlab.messages import by_contract
from jitlab.ops.build_nodes import apply, cast, constant
from jitlab.ops.elementwise.comparison import LogicalAnd, LogicalOr
from jitlab.ops.layout.views import Reshape

from .exactness import watch_int
from .jumps import Outcome

if TYPE_CHECKING:
    from jitlab.capture.state import Capture

Body = Callable[[], Outcome]
#: Loops of so many iterations at most are unrolled without a try to roll them, unless there are loops in them.
FEW = 16
BOOL = LeafType(ArrayType((), np.dtype(bool)), bool, True)


def run(body: Callable[..., Any], *args: Any) -> Any:
    """Call an added function. A name of the user's that has no value is Python's UnboundLocalError, as without us."""
    try:
        return body(*args)
    except NameError as error:
        text = str(error)
        if type(error) is not NameError or not text.startswith("cannot access free variable"):
            raise
        if not is_added(entries(error.__traceback__)[-1].tb_frame.f_code):
            raise
        name = error.name
        found = UnboundLocalError(f"cannot access local variable {name!r} where it is not associated with a value")
        found.name = name
        raise found.with_traceback(error.__traceback__) from None


def left(body: Callable[..., Any], *args: Any) -> Outcome:
    """How an added function was left."""
    outcome: Outcome = run(body, *args)
    return outcome


def is_traced(value: Any) -> bool:
    """Has a value no truth while the program is recorded?"""
    return isinstance(value, (Tensor, Symbolic)) or hasattr(type(value), "__jitlab_tensor__")


def tensor_of(value: Any) -> Any:
    """The Tensor (or index) that a traced value is."""
    convert = getattr(type(value), "__jitlab_tensor__", None)
    return value if convert is None else convert(value)


def capture_of(*values: Any) -> Capture:
    capture = current_capture()
    if capture is None:
        for value in values:
            if isinstance(value, Tensor):
                value.capture.check_open()
    assert capture is not None, "a traced value outside a recording"
    return capture


# ---- conditions


def condition(test: Any, statement: str = "if statement") -> Node | bool:
    """The 0-d bool of a test, True or False where that is known. The contract wants a bool where a tensor decides."""
    test = tensor_of(test)
    capture = capture_of(test)
    if isinstance(test, Symbolic):
        answer: Any = operator.ne(test, 0)
        return answer if isinstance(answer, bool) else condition(answer, statement)
    if not isinstance(test, Tensor):
        return bool(test)
    node = test.node()
    if node.weak not in (None, bool):  # a Python number has a truth
        node = _different(test)
    elif test.dtype != np.dtype(bool) and capture.policy.wants_bools:
        raise ControlFlowValueError(
            by_contract(f"condition of {statement} expected to be `tf.bool` scalar") + f", got {test.type.describe()}",
            where=describe(here()), why="a traced value decides here, and only a bool says yes or no",
            hint="write the comparison: x != 0",
        )  # fmt: skip
    if int(test.size) != 1 or test.ndim > 1:
        raise ControlFlowValueError(
            by_contract(f"condition of {statement} expected to be `tf.bool` scalar")
            + f", got {test.type.describe()}: the truth value of an array"
            " with more than one element is ambiguous. Use a.any() or a.all()",
            where=describe(here()), why="a traced value decides here, and an array says yes and no at once",
            hint="x.any(), x.all(), or np.where(condition, a, b) for each element",
        )  # fmt: skip
    if node.shape:
        node = test.reshape(()).node()
    if node.dtype != np.dtype(bool):
        node = cast(node, bool) if node.dtype.kind in "iub" else _different(fresh(capture, node, leaf_type(test)))
    return node


def condition_node(test: Any, statement: str = "if statement") -> Node:
    """The same as a node, also where it is known."""
    answer = condition(test, statement)
    return constant(np.bool_(answer)) if isinstance(answer, bool) else answer


def _different(x: Any) -> Node:
    """`x != 0`."""
    node: Node = (x != 0).node()
    return node


def truth(value: Any) -> Any:
    """`bool(value)` as a 0-d traced bool, or a Python bool."""
    node = condition(value, "expression")
    return node if isinstance(node, bool) else capture_of(value).fresh(node, is_scalar=True)


def python_number(kind: type, x: Tensor) -> Any:
    """int(x), float(x), bool(x): a number of Python's own that only a run knows."""
    if int(x.size) != 1 or x.dtype.kind not in "biuf":
        return NotImplemented
    if x.ndim:
        kind(np.ones((1,) * x.ndim))  # from NumPy 2.4 on, int() and float() want an array without axes
        x = x.reshape(())
    if kind is bool:
        node = condition(operator.ne(x, 0) if x.dtype.kind != "b" else x, "bool()")
        return node if isinstance(node, bool) else x.capture.python_number(_own(node))
    if kind is int:
        watch_int(x.capture, x)
    return x.capture.python_number(_own(cast(x.node(), np.dtype("i8" if kind is int else "f8"))))


def any_or_all(function: Any, values: Sequence[Any]) -> Any:
    """`any` or `all` of values that are there, some of them traced."""
    decided, nodes = function is any, []
    for value in values:
        test = condition(value) if is_traced(value) else bool(value)
        if not isinstance(test, bool):
            nodes.append(test)
        elif test is decided:
            return decided
    op = LogicalOr() if decided else LogicalAnd()
    return capture_of().python_number(_own(reduce(partial(apply, op), nodes))) if nodes else not decided


def _own(node: Node) -> Node:
    """A node that nobody else looks at, to be marked as a Python number."""
    return apply(Reshape(()), node)


__all__ = [
    "BOOL", "Body", "any_or_all", "capture_of", "condition", "condition_node", "is_traced", "left", "python_number", "run",
    "tensor_of", "truth",
]  # fmt: skip
