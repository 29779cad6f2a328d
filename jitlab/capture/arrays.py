"""What Tensors ask of their capture: operators, functions, methods, subscripts and assignments become nodes of its graph."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from jitlab import errors
from jitlab.ir import (
    TRACED_DTYPES,
    ArrayType,
    Extent,
    Graph,
    Node,
    Source,
    Symbolic,
    is_one,
    plain,
    same_shape,
)
from jitlab.ops.base import Unsupported, broadcast_shapes
from jitlab.ops.build import apply, as_node, fitting
from jitlab.ops.einsum import einsum_view
from jitlab.ops.elementwise import Cast
from jitlab.ops.indexing import basic_index, is_basic, read_index, write_index
from jitlab.ops.sources import Parameter
from jitlab.ops.table import (
    ATTRIBUTES,
    METHODS,
    OPERATORS,
    UPDATES,
    VIEW_ATTRIBUTES,
    VIEW_METHODS,
    VIEWS,
    function_rule,
)
from jitlab.ops.views import Reshape, View, broadcast_to, reshape

from .blocks import Block, Effects, enter
from .explanations import explained
from .facts import (
    ADDS_IN_OUT,
    DTYPE_FUNCTIONS,
    KEEPS_ZERO_D,
    ORDERED,
    TYPE_FUNCTIONS,
    UNSUPPORTED_ATTRIBUTES,
    UPDATES_BY_METHOD,
    WRITES_FIRST,
    WRITING_METHODS,
    OnCopy,
    dtype_function,
    is_at,
    is_foreign,
    keeps_order,
    operator_function,
    read_item,
)
from .host import NotReplayable, evaluate, host_operation
from .masked import REDUCTIONS, Selection, reduced, select, with_whole, write_selection
from .positions import describe, here, source_text
from .symbolic import Loops
from .tensor import Cell, Tensor, c_strides, kept_strides, no_value, out_of_scope

_ATLEAST = frozenset({np.atleast_1d, np.atleast_2d, np.atleast_3d})
#: Functions that read elements in an order, and which argument it is (0: by name alone).
_ORDER_AT: dict[Any, int] = {
    np.ravel: 1, np.reshape: 2, np.ndarray.ravel: 1, np.ndarray.flatten: 1, np.ndarray.reshape: 0,
}  # fmt: skip

#: Python's functions of numbers that give one of its own.
PYTHON_FUNCTIONS = frozenset({abs, max, min, round, divmod})


@dataclass(frozen=True)
class Binding:
    """Where a captured object was found, so that it can be looked up again: `read()`, and `text` for people."""

    text: str
    read: Callable[[], Any]
    kind: str = "global"  # or "closure", "attribute", "item"


@dataclass(eq=False)
class Input:
    """A parameter of the graph and the real object it stood for at capture."""

    node: Node
    value: Any
    path: str  # "x", "params[0]", or the name it was reached by
    binding: Binding | None = None
    captured: bool = False  # reached through a name, not an argument
    source: Source | None = None  # where it was first reached
    is_array: bool = True  # else a NumPy scalar
    tensor: Tensor = field(init=False)


@dataclass(frozen=True)
class ValueGuard:
    """The trace holds only while this scalar input has this value: it was used as a Python integer."""

    input: Input
    value: int


#: The capture that this thread (or task) is in.
current: ContextVar[Arrays | None] = ContextVar("jitlab_capture", default=None)


class Arrays(Loops):
    """The arrays of a capture: the graph's inputs, and everything that is done with Tensors.

    `strict`: what has no operation is an error, not a host operation.
    """

    strict_name = "jit_compile=True"  # what a person calls it
    wants_bools = True  # a number is no condition where a traced value decides (semantics §4.3)
    rolls = True  # loops become Loops where they can
    why_unrolled = ""  # the reason of the last loop that was not rolled
    tracers: tuple[Any, ...] = ()  # the loops that are being traced, innermost last
    loose_shapes: frozenset[str] = frozenset()  # names whose shapes `set_loop_options` lets change
    half_defined: dict[str, Any] | None = None  # names that one side of an `if` in a loop alone gives: their forms and types
    only_rolled = False  # loops of the program itself that cannot be rolled are not captured

    def __init__(self, name: str, *, strict: bool = False, keep_scalars: bool = False) -> None:
        self.name = name
        self.strict = strict
        self.keep_scalars = keep_scalars  # captured NumPy scalars are inputs (cells); else they are constants
        self.graph = self.root = Graph(name)  # the first changes while a body is traced
        self.blocks: list[Block] = []  # the bodies that are being traced, innermost last
        self.effects = Effects()
        self.inputs: list[Input] = []
        self.captured: dict[int, Input] = {}  # id of a real array -> its input
        self.met_again: list[Input] = []  # arguments that a name gave, too
        self.values: dict[Node, Any] = {}  # what host operations needed to be known at capture
        self.guards: list[ValueGuard] = []
        self.journal: list[tuple[Cell, Node, dict[Any, Node], bool]] = []  # writes, for rollback
        self.reshaped: list[tuple[Tensor, Any, tuple[int, ...]]] = []  # assignments to .shape, for rollback
        self.read_log: list[tuple[Cell, Any]] = []  # views that were made, for rollback
        self.used: dict[int, Source] = {}  # id of an input -> where it was used first
        self.layout_read = False  # whether a reshape is a view was decided by how arrays lie in memory
        Loops.__init__(self)
        self.is_open = True
        self.refused: NotReplayable | None = None  # a foreign array met the program's (design D7)
        self._symbols = 0

    def check_open(self) -> None:
        if not self.is_open or current.get() is not self:
            raise out_of_scope("of an earlier recording" if not self.is_open else f"of the recording of {self.name}")

    # ---- foreign arrays
    def foreign(self, x: Any) -> Exception:
        """What ends a recording in which a masked array, a matrix or the like would have to be a plain array."""
        kind = type(x)
        self.refused = NotReplayable("foreign_type", f"it works on a {kind.__module__}.{kind.__qualname__}")
        return self.refused

    def check_plain(self, *operands: Any) -> None:
        """None of these, nor what containers among them hold, is a foreign array."""
        for x in operands:
            if type(x) in (list, tuple):
                self.check_plain(*x)
            elif type(x) is dict:
                self.check_plain(*x.values())
            elif not isinstance(x, Tensor) and is_foreign(x):
                raise self.foreign(x)

    # ---- inputs
    def add_input(self, value: Any, path: str, *, binding: Binding | None = None, captured: bool = False) -> Tensor:
        """A new parameter for a real array or NumPy scalar."""
        is_scalar = isinstance(value, np.generic)
        shape = tuple(self._extent(n) for n in value.shape)
        type = ArrayType(shape, value.dtype)
        node = self.root.append(Node(Parameter(type), (), type, name=_identifier(path)))
        input = Input(node, value, path, binding, captured, here() if captured else None, not is_scalar)
        cell = Cell(self, node, input)
        if not is_scalar:
            cell.readonly = not value.flags.writeable
            if not value.flags.c_contiguous:
                cell.strides = tuple(stride // value.dtype.itemsize for stride in value.strides)
        input.tensor = Tensor(cell, is_scalar=is_scalar)
        self.inputs.append(input)
        self.values[node] = value
        if not is_scalar:
            self.captured.setdefault(id(value), input)
        return input.tensor

    def _extent(self, n: int) -> int:
        if n < 2:
            return n  # empty and length-one axes are another program (broadcasting)
        self._symbols += 1
        self.bounds.sizes[f"n{self._symbols - 1}"] = int(n)
        return Extent.symbol(f"n{self._symbols - 1}", n)

    def value(self, x: Any, text: str = "", binding: Binding | None = None) -> Any:
        """What a loaded Python object is inside the capture: a Tensor for a plain array of a traced dtype, else itself."""
        if type(x) is np.ndarray:
            if x.dtype not in TRACED_DTYPES:
                return x
            known = self.captured.get(id(x))
            if known is None:
                return self.add_input(x, text or f"array_{len(self.inputs)}", binding=binding, captured=True)
            if not known.captured and binding is not None and known not in self.met_again:
                self.met_again.append(known)
            return known.tensor
        if self.keep_scalars and isinstance(x, np.generic) and x.dtype in TRACED_DTYPES and type(x) is x.dtype.type:
            return self.scalar_input(x, text, binding)
        return x

    def scalar_input(self, x: Any, text: str, binding: Binding | None) -> Any:
        for input in self.inputs:
            if input.value is x and input.captured:
                return input.tensor
        return self.add_input(x, text or "scalar", binding=binding, captured=True)

    def operand(self, x: Any) -> Any:
        """An argument of a NumPy function: `deep_value`, and the tensor of what stands for one (`Variable`)."""
        if isinstance(x, Tensor):
            return x
        tensor_of = getattr(type(x), "__jitlab_tensor__", None)
        if tensor_of is not None:
            return tensor_of(x)
        if type(x) in (list, tuple):
            items = [self.operand(item) for item in x]
            return type(x)(items) if any(a is not b for a, b in zip(items, x, strict=True)) else x
        return self.deep_value(x)

    def deep_value(self, x: Any) -> Any:
        """`value` of everything in tuples, lists and dicts; a container that holds no array stays the same object."""
        if type(x) in (list, tuple):
            items = [self.deep_value(item) for item in x]
            return type(x)(items) if any(a is not b for a, b in zip(items, x, strict=True)) else x
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            items = [self.deep_value(item) for item in x]
            return type(x)(*items) if any(a is not b for a, b in zip(items, x, strict=True)) else x
        if type(x) is dict:
            values = {key: self.deep_value(item) for key, item in x.items()}
            return values if any(values[key] is not x[key] for key in x) else x
        return self.value(x)

    # ---- results
    def fresh(self, node: Node, *, is_scalar: bool = False) -> Tensor:
        """A new array (or scalar) whose value is `node`."""
        return Tensor(Cell(self, node), is_scalar=is_scalar and not node.shape)

    def wrap(self, result: Any, *, zero_d_is_array: bool = False) -> Any:
        """Tensors for the nodes in a rule's result."""
        if isinstance(result, Node):
            if result.weak is not None:  # NumPy's functions make NumPy scalars of Python numbers
                result = apply(Cast(result.dtype), result)
            return self.fresh(result, is_scalar=not zero_d_is_array)
        if isinstance(result, (list, tuple)):
            items = [self.wrap(item, zero_d_is_array=zero_d_is_array) for item in result]
            return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
        return result

    def lower(self, x: Any) -> Any:
        """Nodes for the Tensors in an argument of a rule."""
        if isinstance(x, Tensor):
            return x.node()
        if isinstance(x, np.ndarray):
            value = self.value(x) if type(x) is np.ndarray else x
            if not isinstance(value, Tensor):
                kind = "foreign_type" if type(x) is not np.ndarray else "dtype"
                raise Unsupported(f"an array of {type(x).__name__} {x.dtype}", kind)
            return value.node()
        if type(x) in (list, tuple):
            return type(x)(self.lower(item) for item in x)
        if type(x) is dict:
            return {key: self.lower(item) for key, item in x.items()}
        if isinstance(x, slice):
            return slice(*(self._slice_bound(bound) for bound in (x.start, x.stop, x.step)))
        return self.lower_other(x)

    def _slice_bound(self, bound: Any) -> Any:
        if isinstance(bound, Tensor) and self._may_define(bound):
            return bound.node()
        return bound.__index__() if isinstance(bound, Tensor) else self.lower_other(bound)

    # ---- what a cell does otherwise
    def lower_other(self, x: Any) -> Any:
        """An argument that is no array, for a rule or for NumPy."""
        return x

    def resolved(self, function: Any, args: Sequence[Any]) -> Sequence[Any]:
        """The operands of a function, before they are lowered."""
        return args

    def is_operand(self, x: Any) -> bool:
        return isinstance(x, (Tensor, bool, int, float, complex, Symbolic, np.generic, np.ndarray, list))

    def moving_view(self, x: Tensor, index: Any) -> Tensor | None:
        """A view whose index is computed at each run (cells)."""
        return None

    def is_moving(self, input: Input) -> bool:
        return False

    # ---- operators
    def operator(self, name: str, *operands: Any) -> Any:
        """`+`, `-x`, `==`, ... of Tensors; NotImplemented for operands that are no arrays."""
        self.check_open()
        self.check_plain(*operands)
        if not all(map(self.is_operand, operands)):
            return NotImplemented
        if any(isinstance(x, Selection) for x in operands) and (whole := with_whole(operands)) is not None:
            return self._selected(self.operator(name, *whole[0]), whole[1])
        rule = OPERATORS.get(name)
        if rule is None:
            return self._host(operator_function(name), operands, {})
        lists = [np.asarray(x) if isinstance(x, list) and not _has_tensor(x) else x for x in operands]
        return self._as_python(self._apply(rule, operator_function(name), lists, {}), operands)

    def inplace(self, name: str, target: Tensor, other: Any) -> Any:
        """`target op= other`: writes into the array; a scalar is bound anew."""
        result = self.operator(name, target, other)
        if result is NotImplemented or target.is_scalar:
            return result
        if isinstance(target, Selection) and target.is_lazy and isinstance(result, Selection):
            self._check_output_cast(name, target.whole, other, result.whole)
            target.take_over(result if result.dtype == target.dtype else result.astype(target.dtype))
            return target
        self._check_output_cast(name, target, other, result)
        if not same_shape(broadcast_shapes(result.type.shape, target.type.shape), target.type.shape):
            shapes = (str(plain(t.type.shape)).replace(" ", "") for t in (target, result))
            text = "non-broadcastable output operand with shape {} doesn't match the broadcast shape {}".format(*shapes)
            raise self.shape_error(ValueError(text), operator_function(name), (target, other))
        self.assign(target, result, "unsafe")
        return target

    def _selected(self, result: Any, mask: Tensor) -> Any:
        return Selection(self, result, mask) if isinstance(result, Tensor) else result

    def _check_output_cast(self, name: str, target: Tensor, other: Any, result: Tensor) -> None:
        if result.dtype == target.dtype or np.can_cast(result.dtype, target.dtype, "same_kind"):
            return
        ufunc = operator_function(name)
        empty = [np.empty((0,) * min(x.ndim, 1), x.dtype) if isinstance(x, Tensor) else x for x in (target, other)]
        with self.explaining(ufunc, (target, other)):
            ufunc(*empty, out=np.empty(0, target.dtype))  # NumPy's own exception
            raise TypeError(f"Cannot cast {ufunc.__name__!r} output from {result.dtype!r} to {target.dtype!r}")

    # ---- functions and methods
    def call_function(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A NumPy function (or ufunc, or method of a ufunc) of Tensors."""
        self.check_open()
        self.check_plain(getattr(function, "__self__", None), *args, *kwargs.values())
        args = [self.operand(x) for x in args]
        kwargs = {key: self.operand(x) for key, x in kwargs.items()}
        out = kwargs.get("out")
        if out is None and isinstance(function, np.ufunc) and len(args) > function.nin:
            args, outs = args[: function.nin], args[function.nin :]
            out = outs[0] if len(outs) == 1 else tuple(outs)
        if out is not None and not (isinstance(out, tuple) and all(o is None for o in out)):
            return self._into(function, args, {k: v for k, v in kwargs.items() if k != "out"}, out)
        kwargs.pop("out", None)
        if any(isinstance(x, Selection) for x in args):
            selected = self._call_on_selection(function, args, kwargs)
            if selected is not None:
                return selected
        if function in TYPE_FUNCTIONS and args and isinstance(args[0], Tensor):
            return TYPE_FUNCTIONS[function](*args, **kwargs)
        if function in DTYPE_FUNCTIONS:
            return dtype_function(function, args, kwargs)
        if function in _ATLEAST and len(args) > 1:
            return tuple(self.call_function(function, (x,), {}) for x in args)
        args, kwargs = self._in_known_order(function, args, kwargs)
        if function in (np.real, np.imag) and len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
            return self._apply_attribute(args[0], function.__name__)
        if function in WRITES_FIRST or is_at(function):
            return self._write_first(function, args, kwargs)
        if function in VIEWS and args and isinstance(args[0], Tensor):
            view = self._view(VIEWS[function], function, args[0], args[1:], kwargs)
            if view is not None:
                return view
        if function is np.einsum and len(args) == 2 and isinstance(args[1], Tensor):
            view = self._view(einsum_view, function, args[1], args[:1], kwargs)
            if view is not None:
                view._locked = args[1]._locked  # einsum's diagonals may be written into, np.diagonal's may not
                return view
        rule = function_rule(function)
        if rule is None:
            with self.explaining(function, args):
                return self._host(function, args, kwargs)
        result = self._apply(rule, function, args, kwargs)
        return self._as_python(result, args) if function in PYTHON_FUNCTIONS else result

    def _call_on_selection(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A function that needs no more of `x[mask]` than x and the mask; None for others."""
        if isinstance(function, np.ufunc) and function.nout == 1 and function.signature is None and not kwargs:
            whole = with_whole(args)
            return None if whole is None else self._selected(self.call_function(function, whole[0], {}), whole[1])
        name = REDUCTIONS.get(function) if isinstance(args[0], Selection) else None
        return None if name is None else reduced(self, args[0], name, args[1:], kwargs)

    def _view(self, rule: Any, function: Any, x: Tensor, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """What shares memory with x, in NumPy as here; None: this function gives a copy of such an x."""
        with self.explaining(function, (x, *args)):
            try:
                steps = rule(x.type, *self.lower(list(args)), **self.lower(kwargs))
            except Unsupported as refusal:
                counted = self._counted(list(args)), self._counted(kwargs)
                if refusal.code == "data_dependent" and not _same_items((args, kwargs), counted):
                    return self._view(rule, function, x, *counted)
                return self._host(function, (x, *args), kwargs, refusal)
            if steps is None:
                return None
            if function is np.unstack or (steps and isinstance(steps[0], list)):  # several views: split and the like
                several = [self._along(x, way, function) for way in steps]
                if function is not np.unstack:
                    return several
                if x.ndim > 1:
                    return tuple(several)
                return tuple(self.fresh(element.node(), is_scalar=True) for element in several)  # it iterates
            return self._along(x, steps, function)

    def _along(self, x: Tensor, steps: Sequence[View | Reshape], function: Any) -> Tensor:
        if not steps:
            return Tensor(x._cell, x._path) if x.is_scalar and function in KEEPS_ZERO_D else x
        result = x.along(steps)
        result.is_scalar = x.is_scalar and not result.shape and function not in KEEPS_ZERO_D
        return result

    def _apply(self, rule: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        with self.explaining(function, args):
            try:
                args = self.resolved(function, args)
                lowered, named = self.lower(list(args)), self.lower(kwargs)
                result = rule(*lowered, **named)
            except Unsupported as refusal:
                counted = self._counted(list(args)), self._counted(kwargs)
                if refusal.code == "data_dependent" and not _same_items((args, kwargs), counted):
                    return self._apply(rule, function, *counted)
                return self._host(function, args, kwargs, refusal)
            if result is NotImplemented:
                return result
            wrapped = self.wrap(result, zero_d_is_array=function in KEEPS_ZERO_D)
            if function is np.asfortranarray or (function in ORDERED and "F" in (*args[1:], kwargs.get("order"))):
                wrapped._cell.strides = c_strides(plain(wrapped.type.shape)[::-1])[::-1]
            elif isinstance(wrapped, Tensor) and wrapped.ndim > 1 and keeps_order(function):
                operands = [x for x in args if isinstance(x, Tensor) and x.ndim]
                wrapped._cell.strides = kept_strides(operands, wrapped.type.shape)
            return wrapped

    def _in_known_order(
        self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """Arguments in which `order="A"` or "K" of an array is "C" or "F", as it lies."""
        wanted = _ORDER_AT.get(function)
        if wanted is None or not args or not isinstance(args[0], Tensor):
            return args, kwargs
        order = kwargs.get("order", args[wanted] if 0 < wanted < len(args) else None)
        if order not in ("A", "K") or args[0].ndim < 2:
            return args, kwargs
        self.layout_read = True
        shape, strides = plain(args[0].type.shape), args[0].element_strides()
        if strides == c_strides(shape):
            order = "C"
        elif strides == c_strides(shape[::-1])[::-1]:
            order = "F"
        elif order == "A":
            order = "C"
        else:
            return args, kwargs
        if "order" in kwargs:
            return args, {**kwargs, "order": order}
        return (*args[:wanted], order, *args[wanted + 1 :]), kwargs

    def _counted(self, x: Any) -> Any:
        """An argument in which integer inputs became Python integers (and the trace holds for their values only)."""
        if isinstance(x, Tensor):
            return self.index(x) if self._is_count(x) else x
        if isinstance(x, dict):
            return {key: self._counted(item) for key, item in x.items()}
        return type(x)(self._counted(item) for item in x) if type(x) in (list, tuple) else x

    def _is_count(self, x: Tensor) -> bool:
        cell = x._cell
        return not x.shape and x.dtype.kind in "iu" and cell.input is not None and not cell.written

    def _host(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], refusal: Unsupported | None = None) -> Any:
        return host_operation(self, function, args, kwargs, refusal)

    def _into(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> Any:
        """`function(..., out=out)`: the result is written into `out`, under NumPy's rule for casting."""
        casting = kwargs.pop("casting", "same_kind")
        where = kwargs.pop("where", True) if isinstance(function, np.ufunc) else True
        if function in ADDS_IN_OUT and isinstance(out, Tensor) and len(args) < 3 and kwargs.get("dtype") is None:
            kwargs["dtype"] = out.dtype
        return self._write_out(function, args, self.call_function(function, args, kwargs), out, casting, where)

    def _write_out(
        self, function: Any, args: Sequence[Any], result: Any, out: Any, casting: str, where: Any = True
    ) -> Any:
        if isinstance(out, tuple) and len(out) == 1:
            (out,) = out
        for target, value in zip(out, result, strict=True) if isinstance(out, tuple) else [(out, result)]:
            if target is None:
                continue
            if not isinstance(target, Tensor):
                raise errors.CaptureError(
                    f"out= is a {type(target).__name__} that is not traced", where=describe(here()),
                    why="only plain arrays of numbers can be written into", hint="leave out= away",
                )  # fmt: skip
            if where is not True:
                value = self.call_function(np.where, (where, value, target), {})
            if not same_shape(broadcast_shapes(value.type.shape, target.type.shape), target.type.shape):
                shapes = (str(plain(t.type.shape)).replace(" ", "") for t in (target, value))
                text = "non-broadcastable output operand with shape {} doesn't match the broadcast shape {}".format(*shapes)
                raise self.shape_error(ValueError(text), function, args)
            self.assign(target, value, casting)
        return out

    def _write_first(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """A function that writes into its first argument."""
        target = args[0]
        if not isinstance(target, Tensor) or target.is_scalar:
            raise TypeError(f"argument 1 of {function.__name__} must be numpy.ndarray, not {type(target).__name__}")
        self._check_writable(target)
        with self.explaining(function, args):
            rule = UPDATES.get(function) or UPDATES_BY_METHOD.get(function)
            try:
                if rule is None:
                    raise Unsupported(f"{function.__name__} has no loop body", "no_loop_body")
                new = rule(*self.lower(list(args)), **self.lower(kwargs))
            except Unsupported as refusal:
                new = self._host(OnCopy(function), args, kwargs, refusal).node()
        target._cell.write(target._path, new)

    def attribute(self, x: Tensor, name: str) -> Any:
        """`x.name` that Tensor itself does not have."""
        if name in ATTRIBUTES or name in VIEW_ATTRIBUTES:
            return self._apply_attribute(x, name)
        if name in UNSUPPORTED_ATTRIBUTES or not hasattr(np.ndarray, name):
            if hasattr(np.ndarray, name):
                raise errors.CaptureError(
                    f"`.{name}` of an array cannot be captured", where=describe(here()),
                    why="it is about the memory of one array, and a recording has no memory yet",
                    hint="do this outside the recorded function",
                )  # fmt: skip
            raise AttributeError(f"'numpy.{'generic' if x.is_scalar else 'ndarray'}' object has no attribute '{name}'")
        if name == "device":
            return "cpu"
        if name == "strides":
            return tuple(by * x.itemsize for by in x.element_strides())
        return partial(self._method, x, name)

    def _apply_attribute(self, x: Tensor, name: str) -> Any:
        if name in VIEW_ATTRIBUTES:
            view = self._view(VIEW_ATTRIBUTES[name], name, x, (), {})
            if view is not None:
                return view
        tensor = self.wrap(ATTRIBUTES[name](x.node()), zero_d_is_array=not x.is_scalar)
        tensor._cell.detached = True  # NumPy's is a view of the parts
        if not x.is_scalar and x.dtype.kind == "c":
            tensor._cell.parts_of = weakref.ref(x._cell)
            x._cell.parts.append(weakref.ref(tensor._cell))
        return tensor

    def _method(self, x: Tensor, name: str, /, *args: Any, **kwargs: Any) -> Any:
        return self.call_method(x, name, args, kwargs)

    def call_method(self, x: Tensor, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A method of ndarray."""
        self.check_open()
        self.check_plain(*args, *kwargs.values())
        function = getattr(np.ndarray, name)
        if isinstance(x, Selection) and x.is_lazy:
            if name in ("astype", "copy") and len(args) <= 1 and not kwargs:
                return self._selected(self.call_method(x.whole, name, args, kwargs), x.mask)
            answer = reduced(self, x, name, args, kwargs)
            if answer is not None:
                return answer
        args = [self.deep_value(a) for a in args]
        kwargs = {key: self.deep_value(a) for key, a in kwargs.items()}
        if kwargs.get("out") is not None:
            out, casting = kwargs.pop("out"), kwargs.pop("casting", "same_kind")
            if function in ADDS_IN_OUT and isinstance(out, Tensor) and len(args) < 2 and kwargs.get("dtype") is None:
                kwargs["dtype"] = out.dtype
            return self._write_out(function, (x, *args), self.call_method(x, name, args, kwargs), out, casting)
        kwargs.pop("out", None)
        if name == "view":
            kinds = [a for a in (*args, *kwargs.values()) if isinstance(a, type) and issubclass(a, np.ndarray)]
            if any(kind is not np.ndarray for kind in kinds):
                raise self.foreign(np.empty(0).view(kinds[0]))
        (_, *args), kwargs = self._in_known_order(function, (x, *args), kwargs)
        if name in VIEW_METHODS:
            view = self._view(VIEW_METHODS[name], function, x, args, kwargs)
            if view is not None:
                return view
        if name == "view" and not args and not kwargs:
            return x if x.is_scalar else Tensor(x._cell, x._path)
        if name in WRITING_METHODS:
            return self._write_first(function, (x, *args), kwargs)
        if name == "astype" and kwargs.get("copy", True) is False:
            dtype = kwargs.get("dtype", args[0] if args else None)
            if np.dtype(dtype) == x.dtype:
                return x
        if name in METHODS:
            result = self._apply(METHODS[name], function, (x, *args), kwargs)
            if isinstance(result, Tensor) and not result.shape and name in ("astype", "conj", "conjugate"):
                result.is_scalar = x.is_scalar
            return result
        return self._host(function, (x, *args), kwargs)

    # ---- subscripts and assignments
    def get_item(self, x: Tensor, index: Any) -> Any:
        """`x[index]`: an alias for a basic subscript, a copy for arrays of positions."""
        self.check_open()
        self.check_plain(index)
        moving = self.moving_view(x, index)
        if moving is not None:
            return moving
        index = self._index_value(index)
        selection = select(self, x, index)
        if selection is not None:
            return selection
        with self.explaining("a subscript", (x, index)):
            if x.is_scalar and not (index == () if isinstance(index, tuple) else index is Ellipsis):
                raise IndexError("invalid index to scalar variable.")
            if is_basic(index):
                view = basic_index(x.type, index)
                if not view.shape and not _has_ellipsis(index):
                    return self.fresh(x.along([view]).node(), is_scalar=True)
                return x.along([view])
            try:
                return self.wrap(read_index(x.node(), self.lower(index)))
            except Unsupported as refusal:
                return self._host(read_item, (x, index), {}, refusal)

    def set_item(self, x: Tensor, index: Any, value: Any) -> None:
        """`x[index] = value`."""
        self.check_open()
        self.check_plain(index, value)
        if x.is_scalar:
            raise TypeError(f"'numpy.{x.dtype.name}' object does not support item assignment")
        moving = self.moving_view(x, index)
        if moving is not None:
            self._check_writable(x)
            return self.assign(moving, value, "unsafe")
        index, value = self._index_value(index), self.deep_value(value)
        with self.explaining("an assignment to a subscript", (x, value)):
            if is_basic(index):
                return self.assign(x.along([basic_index(x.type, index)]), value, "unsafe")
            self._check_writable(x)
            if isinstance(value, Selection) and write_selection(self, x, index, value):
                return None
            try:
                new = write_index(x.node(), self.lower(index), self._assigned(value, x.dtype))
            except Unsupported as refusal:
                new = self._host(OnCopy(np.ndarray.__setitem__), (x, index, value), {}, refusal).node()
            x._cell.write(x._path, new)

    def _index_value(self, index: Any) -> Any:
        """A subscript in which arrays are Tensors, and 0-d integer arguments used as a position in a slice are numbers."""
        if isinstance(index, tuple):
            return tuple(self._index_value(part) for part in index)
        if isinstance(index, slice):
            return slice(*(self._slice_bound(b) for b in (index.start, index.stop, index.step)))
        if isinstance(index, Tensor) and self._may_define(index):
            return index.node()
        return self.lower_other(self.deep_value(index))

    def assign(self, x: Tensor, value: Any, casting: str) -> None:
        """Write `value` into everything that `x` sees."""
        self._check_writable(x)
        self.check_plain(value)
        value = self.deep_value(value)
        if isinstance(value, Tensor):
            if value._cell is x._cell and value._path == x._path:
                return
        with self.explaining("an assignment", (x, value)):
            if isinstance(value, Tensor) and not np.can_cast(value.dtype, x.dtype, casting):  # type: ignore[arg-type]
                raise TypeError(f"Cannot cast array data from {value.dtype!r} to {x.dtype!r} according to the rule '{casting}'")
            node = as_node(self._assigned(value, x.dtype), x.dtype)
            x._cell.write(x._path, _broadcast_value(node, x.type.shape))

    def _assigned(self, value: Any, dtype: np.dtype[Any] | None = None) -> Any:
        if isinstance(value, Tensor):
            return value.node()
        if isinstance(value, (list, tuple)):
            result = self.call_function(np.array, (value,), {})
            return result.node() if isinstance(result, Tensor) else result
        return self.lower_other(value if dtype is None else fitting(value, dtype))

    def _check_writable(self, x: Tensor) -> None:
        if x.readonly and not (x._cell.input is not None and self.is_moving(x._cell.input)):
            raise ValueError("assignment destination is read-only")
        if x._cell.detached:
            raise errors.CaptureError(
                "writing through this array cannot be captured", where=describe(here()),
                why="NumPy's function that made it returned a view of another array, and jitlab recorded a copy",
                hint="write into the array itself, or take a .copy() first",
            )  # fmt: skip

    def set_attribute(self, x: Tensor, name: str, value: Any) -> None:
        if name == "real" and x.dtype.kind != "c":
            return self.assign(x, value, "unsafe")
        raise errors.CaptureError(
            f"assigning to `.{name}` of an array cannot be captured", where=describe(here()), hint="make a new array instead"
        )

    # ---- values
    def truth(self, x: Tensor) -> bool:
        if not self.is_open:
            raise out_of_scope(x.type.describe())
        if int(x.type.size) > 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
        source = here()
        text = source_text(source) if source else "the array"
        raise errors.BranchOnTracedArrayError(
            f"Using a symbolic `tf.Tensor` as a Python `bool` is not allowed: `{text}` has no value while jitlab records this"
            " function.",
            where=describe(source),
            why="one recording serves every input, so it cannot follow one branch of an `if`.",
            hint="np.where(condition, a, b), or decide outside and pass a Python bool: each value is recorded apart.",
        )

    def index(self, x: Tensor) -> int:
        """A 0-d integer input may be used as a Python integer: the trace then holds for its value only."""
        if self.is_open and self._is_count(x):
            assert x._cell.input is not None
            guard = ValueGuard(x._cell.input, int(x._cell.input.value))
            if guard not in self.guards:
                self.guards.append(guard)
            return guard.value
        raise no_value(x, "a use as an index or a count")

    def real(self, x: Tensor, what: str) -> Any:
        """The array or scalar that `what` wants to look into: there is none while a program is recorded for every input."""
        raise no_value(x, what)

    def shown(self, x: Tensor) -> str:
        """A Tensor as text."""
        return f"<traced {'scalar' if x.is_scalar else 'array'} {x.type.describe()}>"

    def text(self, x: Tensor) -> str:
        """A Tensor as `print` shows it."""
        return self.shown(x)

    def evaluate(self, node: Node) -> Any:
        """The real value of a node for the inputs of this capture."""
        return evaluate(self, node)

    def before_read(self, cell: Cell) -> None:
        """Called before a cell's value is read."""
        if cell.home is not self.graph:
            enter(self, cell)
        if cell.input is not None and not self.used.get(id(cell.input)):
            source = here()
            if source is not None:
                self.used[id(cell.input)] = source

    def before_write(self, cell: Cell) -> None:
        """Called before a cell moves on."""
        if cell.home is not self.graph:
            enter(self, cell)

    @contextmanager
    def unrolling(self) -> Iterator[None]:
        """Inside, loops are recorded iteration by iteration."""
        before, self.rolls = self.rolls, False
        try:
            yield
        finally:
            self.rolls = before

    # ---- errors
    @contextmanager
    def explaining(self, function: Any, operands: Sequence[Any]) -> Iterator[None]:
        """An error of NumPy's says what, where and why; its type stays."""
        try:
            yield
        except Exception as error:
            new = explained(error, function, operands)
            if new is None:
                raise
            raise new from None

    def shape_error(self, error: ValueError, function: Any, operands: Sequence[Any]) -> Exception:
        return explained(error, function, operands) or error


def _same_items(before: Any, after: Any) -> bool:
    """Nothing was replaced in the arguments (Tensors have no truth to compare by)."""
    if isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
        return len(before) == len(after) and all(map(_same_items, before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        return all(_same_items(before[key], after[key]) for key in before)
    return before is after








def _has_tensor(x: Any) -> bool:
    return isinstance(x, Tensor) or (isinstance(x, (list, tuple)) and any(_has_tensor(item) for item in x))


def _has_ellipsis(index: Any) -> bool:
    return index is Ellipsis or (isinstance(index, tuple) and any(part is Ellipsis for part in index))


def _broadcast_value(node: Node, shape: tuple[int, ...]) -> Node:
    """The value of an assignment: leading axes of length 1 may be too many."""
    if plain(node.shape) == plain(shape) and same_shape(node.shape, shape):
        return node
    given = node.shape
    while node.ndim > len(shape) and is_one(node.shape[0]):
        node = reshape(node, node.shape[1:])
    try:
        return broadcast_to(node, shape)
    except ValueError:
        before, after = (str(plain(s)).replace(" ", "") for s in (given, shape))
        raise ValueError(f"could not broadcast input array from shape {before} into shape {after}") from None


def _identifier(path: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in path).strip("_") or "array"






