"""Host operations: what no rule builds runs as plain NumPy: at capture, for the type of its result, and at each call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.errors import CaptureError, InvalidArgumentError
from jitlab.ir import TRACED_DTYPES, ArrayType, Node, NotRolled, plain
from jitlab.ops.base import Unsupported
from jitlab.ops.build import apply
from jitlab.ops.host import HostCall, Item, _filled
from jitlab.ops.host import Input as Slot

from .positions import describe, here
from .tensor import Tensor

if TYPE_CHECKING:
    from .arrays import Arrays


class NotReplayable(Exception):
    """The trace does not fit these inputs after all: the call runs as plain Python. `code` says why."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


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
    name = getattr(function, "__name__", type(function).__name__)
    reason = refusal.reason if refusal is not None else f"{name} has no loop body"
    if capture.bounds.depth:
        raise NotRolled("host_operation", f"{name} runs on NumPy: {reason}")
    code = refusal.code if refusal is not None else "no_loop_body"
    if capture.strict:
        raise must_compile(capture, name, reason) from None
    template = Template(capture)
    made_args = tuple(template.of(x) for x in args)
    made_kwargs = {key: template.of(x) for key, x in kwargs.items()}
    real = [capture.evaluate(node) for node in template.nodes]
    result = function(*filled(made_args, real), **filled(made_kwargs, real))
    return add_host_call(capture, function, made_args, made_kwargs, template.nodes, result, code, reason, real)


def add_host_call(
    capture: Arrays, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], nodes: list[Node], result: Any, code: str,
    reason: str, real: Sequence[Any] = (), effects: bool = False,
) -> Any:  # fmt: skip
    """The node of a call whose real result is known, and Tensors for it."""
    name = getattr(function, "__name__", type(function).__name__)
    several = isinstance(result, (tuple, list))
    results = list(result) if several else [result]
    for item in results:
        capture.check_plain(item)
        if not isinstance(item, (np.ndarray, np.generic)) or item.dtype not in TRACED_DTYPES:
            raise no_array(name, item)
    types = tuple(ArrayType(item.shape, item.dtype) for item in results)
    label = getattr(function, "label", "")
    node = apply(HostCall(_Exact(function, types), args, kwargs, types, code, reason, label, effects), *nodes)
    capture.values[node] = tuple(results) if len(results) != 1 else results[0]
    parts = [node] if len(results) == 1 else [apply(Item(i, t), node) for i, t in enumerate(types)]
    tensors = []
    for part, item in zip(parts, results, strict=True):
        capture.values[part] = item
        tensor = capture.fresh(part, is_scalar=isinstance(item, np.generic))
        if isinstance(item, np.ndarray) and any(isinstance(x, np.ndarray) and np.may_share_memory(item, x) for x in real):
            tensor._cell.detached = True
        tensors.append(tensor)
    if not several:
        return tensors[0]
    return type(result)(*tensors) if hasattr(result, "_fields") else type(result)(tensors)


class _Exact:
    """A call whose results have the types of the trace; compiled code that reads them relies on it."""

    def __init__(self, function: Any, types: tuple[ArrayType, ...]) -> None:
        self.function = function
        self.types = types
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.function(*args, **kwargs)
        results = result if isinstance(result, (tuple, list)) else (result,)
        for item, type in zip(results, self.types, strict=True):
            if item.shape != plain(type.shape) or item.dtype != type.dtype:
                found = f"{item.dtype}[{', '.join(map(str, item.shape))}]"
                raise NotReplayable("data_dependent_shape", f"{self.__name__} gave {type.describe()}, and now {found}")
        return results[0] if len(results) == 1 else result  # `np.nonzero` gives a tuple of one


def evaluate(capture: Arrays, wanted: Node) -> Any:
    """The value of a node for the real inputs of this capture; each node is computed once."""
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
    with np.errstate(all="ignore"):
        for node in capture.graph.nodes:
            if node in needed:
                values[node] = node.op.numpy(*(values[source] for source in node.inputs))
    return values[wanted]


def must_compile(capture: Arrays, name: str, reason: str) -> InvalidArgumentError:
    """What jit_compile=True answers to an operation that cannot be compiled."""
    source = here()
    line = f" (line {source.line})" if source else ""
    mode = capture.strict_name
    function = getattr(capture, "must_compile", "") or capture.name
    return InvalidArgumentError(
        f"Detected unsupported operations when trying to compile graph {function}[_XlaMustCompile=true]: {name}{line}",
        where=describe(source),
        why=f"{mode} leaves nothing to NumPy, and {reason}",
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

    def of(self, x: Any) -> Any:
        if isinstance(x, np.ndarray) and type(x) is np.ndarray:
            x = self.capture.value(x)
        if isinstance(x, Tensor):
            node = x.node()
            if node not in self.nodes:
                self.nodes.append(node)
            return Slot(self.nodes.index(node))
        if isinstance(x, (list, tuple)):
            items = [self.of(item) for item in x]
            return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
        if isinstance(x, dict):
            return {key: self.of(item) for key, item in x.items()}
        return self.capture.lower_other(x)


def filled(template: Any, real: Sequence[Any]) -> Any:
    """The template with real arrays in their places."""
    return _filled(template, tuple(real))
