"""Host operations: what no rule builds runs as plain NumPy: at capture, for the type of its result, and at each call."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.control.purity import runs_the_users
from jitlab.capture.drivers.leaving import plain_value
from jitlab.capture.positions import describe, here, source_text
from jitlab.capture.tracers.number import as_known
from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.errors import CaptureError, InvalidArgumentError, Unfit
from jitlab.ir import TRACED_DTYPES, ArrayType, Node, NotRolled, Source, located, plain
from jitlab.ir.size_facts import noting
from jitlab.messages import Message
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply
from jitlab.ops.host_operations import HostCall, Item, filled
from jitlab.ops.host_operations import Input as Slot
from jitlab.ops.leaf_operations import Parameter
from jitlab.support.containers import CONTAINERS, like, of_items

from .layouts import found_strides
from .numpy_traits import OnCopy, read_item

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

#: Characters of an expression in a sentence.
LONGEST = 40
#: Calls, by the function's name and their place, whose results had another shape than when they were recorded: so many are
#: remembered. The data decide how long the results of these are, too.
MOST_VARYING = 1000
_varying: dict[tuple[str, Any], bool] = {}


class NotReplayable(Unfit):
    """The trace does not fit these inputs after all: the call runs as plain Python. `met`: what hangs on the data, as it was at
    capture and as it is now, where that is to be told; `source`: the expression that gave it."""

    def __init__(
        self, code: str, row: str | Message, met: tuple[str, ...] = (), source: Source | None = None, **args: Any
    ) -> None:
        super().__init__(code, row, **args)
        self.met, self.source = met, source


#: Methods of Python's containers that change them, and how the program writes those that are operators.
_CHANGING = frozenset(
    "append appendleft extend extendleft insert remove pop popleft popitem clear sort reverse rotate update setdefault add"
    " discard difference_update intersection_update symmetric_difference_update subtract".split()
)
_OPERATORS = {
    "__iadd__": "+=", "__imul__": "*=", "__ior__": "|=", "__iand__": "&=", "__isub__": "-=", "__ixor__": "^=",
    "__setitem__": "[...] =", "__delitem__": "del",
}  # fmt: skip


def effect_of(name: str) -> Message:
    """What a call of this qualified name does besides returning a value: "append changes a list", "print writes output"."""
    kind, _, method = name.rpartition(".")
    if name == "print":
        return Message("refused.prints")
    if kind and "." not in kind and (method in _CHANGING or method in _OPERATORS):
        return Message("refused.changes_a", {"name": _OPERATORS.get(method, method), "kind": kind})
    return Message("refused.does_more", {"name": name})


def is_numpy(function: Any) -> bool:
    """A function, ufunc, method of a ufunc, or scalar type of NumPy."""
    if isinstance(function, np.ufunc) or isinstance(getattr(function, "__self__", None), np.ufunc):
        return True
    if isinstance(function, type) and issubclass(function, (np.generic, np.ndarray)):
        return True
    module = getattr(function, "__module__", None) or type(function).__module__
    if module in ("builtins", None):
        module = getattr(type(getattr(function, "__self__", None)), "__module__", "") or ""
    return isinstance(module, str) and module.split(".")[0] == "numpy"


def host_operation(
    capture: Arrays, function: Any, args: Sequence[Any], kwargs: dict[str, Any], refusal: Unsupported | None = None
) -> Any:
    """`function(*args, **kwargs)` as a node that calls NumPy; its result types are those of the real result now."""
    capture.before_host(function, (*args, *kwargs.values()))
    name = getattr(function, "__name__", type(function).__name__)
    reason = refusal.said if refusal is not None else Message("stays.no_body", {"name": name})
    if capture.bounds.depth:
        raise NotRolled("host_operation", "on_numpy", name=name, why=reason)
    code = refusal.code if refusal is not None else "no_loop_body"
    if capture.strict:
        raise must_compile(capture, name, reason) from None
    if runs_the_users(getattr(function, "function", function), (*args, *kwargs.values())):  # before it has run
        raise NotReplayable("effect", "calls_back", name=name)
    template = Template(capture)
    made_args = tuple(template.of(x) for x in args)
    made_kwargs = {key: template.of(x) for key, x in kwargs.items()}
    real = [evaluate(capture, node) for node in template.nodes]
    result = function(*filled(made_args, real), **filled(made_kwargs, real))
    found = (function, made_args, made_kwargs, template.nodes, result, code, reason)
    return add_host_call(capture, *found, list(zip(template.cells, real, strict=True)))


def add_host_call(
    capture: Arrays, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], nodes: list[Node], result: Any, code: str,
    reason: Message, given: Sequence[tuple[Cell, Any]] = (), effects: bool = False,
) -> Any:  # fmt: skip
    """The node of a call whose real result is known, and Tensors for it. `given`: whose arrays it takes, and their values."""
    name = getattr(function, "__name__", type(function).__name__)
    several = isinstance(result, (tuple, list))
    results = list(result) if several else [result]
    for item in results:
        capture.check_plain(item)
        if not isinstance(item, (np.ndarray, np.generic)) or item.dtype not in TRACED_DTYPES:
            raise no_array(name, item)
    known = len(capture.root.sizes)
    by_data = code == "data_dependent" or any(capture.is_of_data(n) for node in nodes for n in node.shape)
    by_data = by_data or (name, here()) in _varying
    shapes = [_lengths(capture, item, function, args, nodes) if by_data else item.shape for item in results]
    types = tuple(ArrayType(shape, item.dtype) for shape, item in zip(shapes, results, strict=True))
    label = getattr(function, "label", "")
    fixed = [tuple(None if capture.is_of_data(n) else int(n) for n in shape) for shape in shapes]
    exact = _Exact(function, types, fixed)
    decided = tuple(capture.root.sizes)[known:]
    node = apply(HostCall(exact, args, kwargs, types, code, reason, label, effects, by_data=decided), *nodes)
    if len(node.sources) == 1:  # a selection is taken out where it is read, and stands where it was written
        (exact.source,) = node.sources
    capture.values[node] = tuple(results) if len(results) != 1 else results[0]
    parts = [node] if len(results) == 1 else [apply(Item(i, t), node) for i, t in enumerate(types)]
    tensors = []
    for part, item in zip(parts, results, strict=True):
        capture.values[part] = item
        tensor = capture.fresh(part, is_scalar=isinstance(item, np.generic))
        if isinstance(item, np.ndarray):
            capture.layout.orders |= item.ndim > 1
            tensor._cell.strides = found_strides(item, part.shape)
        for cell, array in given:
            if isinstance(item, np.ndarray) and isinstance(array, np.ndarray) and np.may_share_memory(item, array):
                tensor._cell.stands_for_part_of(cell)
        tensors.append(tensor)
    if not several:
        return tensors[0]
    return like(type(result), tensors)


def _lengths(capture: Arrays, item: Any, function: Any, args: Sequence[Any], nodes: Sequence[Node]) -> tuple[int, ...]:
    """The shape of a result whose lengths the data decide; what is written has the shape that it had, and a mask takes the
    axes behind its own as they are."""
    if isinstance(function, OnCopy):
        return nodes[0].shape
    kept: tuple[int, ...] = ()
    if function is read_item and isinstance(args[0], Slot):
        whole, index = nodes[args[0].index], args[1]
        mask = nodes[index.index] if isinstance(index, Slot) else None
        if mask is not None and mask.dtype == np.dtype(bool):
            kept = whole.shape[mask.ndim :]
        elif isinstance(index, slice):
            kept = whole.shape[1:]
    return (*(capture.length_of_data(n) for n in item.shape[: item.ndim - len(kept)]), *kept)


class _Exact:
    """A call whose results have the types of the trace; compiled code that reads them relies on it. Lengths that the data
    decide are looked at by who runs it."""

    def __init__(self, function: Any, types: tuple[ArrayType, ...], shapes: Sequence[tuple[int | None, ...]]) -> None:
        self.function = function
        self.types, self.shapes = types, shapes  # None: of a length that the data decide
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.source = self.site = here()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Exact) and (self.function, self.shapes) == (other.function, other.shapes)

    def __hash__(self) -> int:
        return hash(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.function(*args, **kwargs)
        results = result if isinstance(result, (tuple, list)) else (result,)
        for item, type, shape in zip(results, self.types, self.shapes, strict=True):
            if item.shape != shape and not _is_like(item.shape, shape) or item.dtype != type.dtype:
                raise self.another(type, item)
        return results[0] if len(results) == 1 else result  # `np.nonzero` gives a tuple of one

    def another(self, type: ArrayType, item: Any) -> NotReplayable:
        """ "the length of `rows[mask]` (line 7) changes from run to run", and the lengths."""
        was, now = plain(type.shape), item.shape
        met: tuple[str, ...]
        if item.dtype == type.dtype and self.site is not None:
            if len(_varying) >= MOST_VARYING:
                _varying.clear()
            _varying[self.__name__, self.site] = True
        axes = [axis for axis, sizes in enumerate(zip(was, now, strict=False)) if sizes[0] != sizes[1]]
        if item.dtype != type.dtype:
            what, met = "dtype", (str(type.dtype), str(item.dtype))
        elif len(was) == len(now) and len(axes) == 1:
            what = f"length in axis {axes[0]}" if axes[0] else "length"
            met = str(was[axes[0]]), str(now[axes[0]])
        else:
            what, met = "shape", tuple(" × ".join(map(str, shape)) or "a number" for shape in (was, now))
        if self.source is None:
            return NotReplayable("data_dependent_shape", "other_result", met, name=f"the result of {self.__name__}", what=what)
        text = source_text(self.source)
        text = f"`{text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}`" if text else f"the result of {self.__name__}"
        args = {"name": text, "line": self.source.line, "what": what}
        return NotReplayable("data_dependent_shape", Message("refused.other_result_in", args), met, self.source)


def _is_like(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(n is None or m == n for m, n in zip(shape, wanted, strict=True))


#: The capture that evaluates now: what draws random numbers takes its copies of the generators, what prints is silent.
rehearsing: ContextVar[Arrays | None] = ContextVar("jitlab_rehearsing", default=None)


def evaluate(capture: Arrays, wanted: Node) -> Any:
    """The value of a node for the real inputs of this capture; each node is computed once. No effect happens: that is for
    the run, and operations in the bodies of loops and branches have not been told apart from it."""
    capture.before_evaluate()
    values = capture.values
    if wanted in values:
        return values[wanted]
    needed = set()
    stack = [wanted]
    while stack:
        node = stack.pop()
        if node not in values and node not in needed:
            needed.add(node)
            stack.extend(node.inputs)
    if any(isinstance(node.op, Parameter) for node in needed):  # of a side of a branch, or of a loop's body
        raise CaptureError(
            "NumPy runs this, and it stands in a branch or a loop on traced values, where its operands have no value yet.",
            where=describe(here()),
            why="the shape and dtype of what NumPy gives are found by running it once, when the function is traced",
            hint="compute it before the `if` or the loop; or use jl.jit, under which Python takes the branch",
        )
    token = rehearsing.set(capture)
    try:
        with np.errstate(all="ignore"), noting(None):
            for node in capture.graph.nodes:
                if node in needed:
                    values[node] = node.op.numpy(*(values[source] for source in node.inputs))
    finally:
        rehearsing.reset(token)
    return values[wanted]


def must_compile(capture: Arrays, name: str, reason: Message | str) -> InvalidArgumentError:
    """What jit_compile=True answers to an operation that cannot be compiled."""
    source = located()  # what is deferred stands where the program says it, not where it is needed
    source = source if isinstance(source, Source) else here()
    line = f" (line {source.line})" if source else ""
    mode = capture.policy.strict_name
    within = getattr(capture, "must_compile", "")  # the function whose jit_compile=True it is
    contract = f"Detected unsupported operations when trying to compile graph {within or capture.name}[_XlaMustCompile=true]"
    return InvalidArgumentError(
        # the contract's sentence is that of a function; a cell is asked for in plain words
        f"{name}{line} can't be compiled, and this cell is --strict."
        if mode == "--strict" and not within
        else f"{contract}: {name}{line}",
        where=describe(source),
        why=f"{mode} leaves nothing to NumPy, and NumPy would run it: {str(reason).removeprefix(f'{name}: ')}",
        hint=(
            "leave --strict away: this operation then runs on NumPy between compiled parts; or take it out of this cell"
            if mode == "--strict"
            else "fullgraph=False runs this operation on NumPy between compiled parts, or take it out of the function"
            if mode == "fullgraph=True"
            else "jit_compile=None runs this operation on NumPy between compiled parts, or take it out of the function"
        ),
    )


def no_array(name: str, value: Any) -> CaptureError:
    kind = f"an array of {value.dtype}" if isinstance(value, (np.ndarray, np.generic)) else f"a Python {type(value).__name__}"
    return CaptureError(
        f"{name} gives {kind}, which has no value while jitlab records this program.",
        where=describe(here()),
        why="one recording serves every input: only arrays of numbers can be results of recorded operations",
        hint="do this outside the recorded function",
    )


class Template:
    """The arguments of a call with a place for each array among them."""

    def __init__(self, capture: Arrays) -> None:
        self.capture = capture
        self.nodes: list[Node] = []
        self.cells: list[Cell] = []  # whose values they are

    def of(self, x: Any) -> Any:
        if isinstance(x, np.ndarray) and type(x) is np.ndarray:
            x = self.capture.value(x)
        if isinstance(x, Tensor):
            node = x.node()
            if node not in self.nodes:
                self.nodes.append(node)
                self.cells.append(x._cell)
            return Slot(self.nodes.index(node))
        if isinstance(x, CONTAINERS):
            return of_items(self.of, x)
        if isinstance(x, slice):
            return slice(*map(self.of, (x.start, x.stop, x.step)))
        return plain_value(as_known(x))
