"""The arrays of a capture: what stands for them in its graph, and what Tensors ask of it.

How each of those things is done is in `functions`, `methods`, `subscripts` and `host`; what is here is the state they share
and what subclasses do otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from jitlab import errors
from jitlab.capture.control.blocks import Block, Effects, enter
from jitlab.capture.control.exactness import divisor_of, watch_cast
from jitlab.capture.control.number_kinds import (
    check_known,
    check_position,
    extreme,
    has_mixed,
    is_mixed,
    may_be_python,
    of_each_kind,
)
from jitlab.capture.numpy_calls.explanations import explained
from jitlab.capture.numpy_calls.functions import call_function, inplace, operator
from jitlab.capture.numpy_calls.host_fallback import NotReplayable, evaluate, host_operation
from jitlab.capture.numpy_calls.layouts import is_writeable
from jitlab.capture.numpy_calls.numpy_traits import is_foreign
from jitlab.capture.positions import describe, here, source_text
from jitlab.ir import TRACED_DTYPES, ArrayType, Extent, Graph, Node, Source, Symbolic
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, fitting
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.leaf_operations import Parameter
from jitlab.support.transactions import contextmanager, variable

from .array_methods import attribute, call_method
from .subscripts import assign, get_item, set_attribute, set_item
from .symbolic import Loops
from .tensor import Cell, Tensor, no_value, out_of_scope


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


V = TypeVar("V", int, tuple[int, ...])


@dataclass(frozen=True)
class ValueGuard:
    """The trace holds only while this input, an integer or a vector of them, has this value: it was used as a Python value."""

    input: Input
    value: int | tuple[int, ...]

    def now(self, value: Any) -> int | tuple[int, ...]:
        """What another value of the input is compared as."""
        return tuple(map(int, value)) if isinstance(self.value, tuple) else int(value)


#: The capture that this thread (or task) is in.
current: ContextVar[Arrays | None] = variable("jitlab_capture", None)


class Arrays(Loops):
    """The arrays of a capture: the graph's inputs, and everything that is done with Tensors.

    `strict`: what has no operation is an error, not a host operation.
    """

    strict_name = "jit_compile=True"  # what a person calls it
    traced_word = "a symbolic `tf.Tensor`"  # the contract's words for a value that has none yet
    may_draw = True  # though strict: jit_compile=True takes random numbers, and NumPy draws them
    wants_bools = True  # a number is no condition where a traced value decides
    keeps_kinds = False  # a name is the Python number or the NumPy scalar that Python gives it (number_kinds.py)
    has_kinds = False  # and of one of them only a run knows that
    rolls = True  # loops become Loops where they can
    why_unrolled = ""  # the reason of the last loop that was not rolled
    tracers: tuple[Any, ...] = ()  # the loops that are being traced, innermost last
    loose_shapes: frozenset[str] = frozenset()  # names whose shapes `set_loop_options` lets change
    half_defined: dict[str, Any] | None = None  # names that one side of an `if` in a loop alone gives: their forms and types
    guarded = 0  # bodies of the program's `try` that are being recorded
    sees_stores = True  # the program is converted: what it leaves outside goes through the capture
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
        self.numbered: list[Tensor] = []  # arrays that names may stand for where data decides (chosen_memory.py)
        self.layout_read = False  # whether a reshape is a view was decided by how arrays lie in memory
        self.vector_read = False  # by how an argument of one axis does, too: by its steps
        self.order_read = False  # how results lie in memory was decided by how arrays do
        self.order_decides = False  # and so were values: `x.ravel("K")`
        Loops.__init__(self)
        self.is_open = True
        self.refused: NotReplayable | None = None  # a foreign array met the program's
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
            cell.readonly = not is_writeable(value)
            if not value.flags.c_contiguous:
                cell.strides = tuple(stride // value.dtype.itemsize for stride in value.strides)
        input.tensor = Tensor(cell, is_scalar=is_scalar)
        self.inputs.append(input)
        self.values[node] = value
        if not is_scalar:
            self.captured.setdefault(id(value), input)
        return input.tensor

    def _extent(self, n: int) -> int:
        if n < 2 or not self.sees_stores:  # empty and length-one axes are another program (broadcasting)
            return n
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
            return slice(*(self.slice_bound(bound) for bound in (x.start, x.stop, x.step)))
        return self.lower_other(x)

    def slice_bound(self, bound: Any) -> Any:
        """A bound of a slice: a number, or a node where it may become a symbol."""
        if isinstance(bound, Tensor) and self.may_define(bound):
            return bound.node()
        return bound.__index__() if isinstance(bound, Tensor) else self.lower_other(bound)

    def value_to_write(self, value: Any, dtype: np.dtype[Any] | None = None) -> Any:
        """What is written into an array of `dtype`, for a rule."""
        if isinstance(value, Tensor):
            if dtype is not None:
                watch_cast(self, None, [value], dtype)
            return value.node()
        if isinstance(value, (list, tuple)):
            result = self.call_function(np.array, (value,), {})
            return result.node() if isinstance(result, Tensor) else result
        return self.lower_other(value if dtype is None else fitting(value, dtype))

    def is_own(self, owner: Any) -> bool:
        """Did the program make this container or object itself?"""
        return False

    def number_of(self, x: Tensor) -> int:
        """The number, above 0, that says that a name stands for this array."""
        for number, known in enumerate(self.numbered, 1):
            if known is x:
                return number
        self.numbered.append(x)
        return len(self.numbered)

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

    # ---- what is done with Tensors
    def operator(self, name: str, *operands: Any) -> Any:
        """`+`, `-x`, `==`, ... of Tensors; NotImplemented for operands that are no arrays."""
        if self.has_kinds and any(map(is_mixed, operands)):
            if is_mixed(divisor := divisor_of(name, operands)) and all(map(may_be_python, operands)):
                check_known(self, divisor)  # which raises where it is zero, or gives inf
            return of_each_kind(self, lambda found: operator(self, name, *found), operands)
        return operator(self, name, *operands)

    def inplace(self, name: str, target: Tensor, other: Any) -> Any:
        """`target op= other`: writes into the array; a scalar is bound anew."""
        if self.has_kinds and is_mixed(target) and not target.is_scalar:
            check_known(self, target)
        return inplace(self, name, target, other)

    def call_function(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A NumPy function (or ufunc, or method of a ufunc) of Tensors."""
        if self.keeps_kinds and (function is max or function is min) and not kwargs:
            found = extreme(self, function, args)
            if found is not NotImplemented:
                return found
        if self.has_kinds and has_mixed([args, kwargs]):
            return of_each_kind(self, lambda found: call_function(self, function, *found), (args, kwargs))
        return call_function(self, function, args, kwargs)

    def call_method(self, x: Tensor, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A method of ndarray."""
        if self.has_kinds:
            check_known(self, x)
            if has_mixed([args, kwargs]):
                return of_each_kind(self, lambda found: call_method(self, x, name, *found), (args, kwargs))
        return call_method(self, x, name, args, kwargs)

    def method(self, x: Tensor, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """What `x.name` of a method holds: calls know it as ours by the capture that it is bound to."""
        return self.call_method(x, name, args, kwargs)

    def attribute(self, x: Tensor, name: str) -> Any:
        """`x.name` that Tensor itself does not have."""
        return attribute(self, x, name)

    def set_attribute(self, x: Tensor, name: str, value: Any) -> None:
        """`x.name = value`."""
        set_attribute(self, x, name, value)

    def get_item(self, x: Tensor, index: Any) -> Any:
        """`x[index]`: an alias for a basic subscript, a copy for arrays of positions."""
        if self.has_kinds:
            check_known(self, x)
            check_position(self, index)
        return get_item(self, x, index)

    def set_item(self, x: Tensor, index: Any, value: Any) -> None:
        """`x[index] = value`."""
        if self.has_kinds:
            check_known(self, x)
            check_position(self, index)
        set_item(self, x, index, value)

    def assign(self, x: Tensor, value: Any, casting: str) -> None:
        """Write `value` into everything that `x` sees."""
        assign(self, x, value, casting)

    def read_layout(self, x: Tensor) -> None:
        """How x lies in memory decided whether something is x itself, or a view of it, or a copy."""
        self.layout_read = self.order_read = True
        self.vector_read = self.vector_read or (x._cell.input is not None and x._cell.node.ndim == 1)

    def on_host(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], refusal: Unsupported | None = None) -> Any:
        """What no rule builds: NumPy runs it."""
        return host_operation(self, function, args, kwargs, refusal)

    def counted(self, x: Any) -> Any:
        """An argument in which integer inputs became Python integers (and the trace holds for their values only)."""
        if isinstance(x, Tensor):
            return self.index(x) if self._is_count(x) else x
        if isinstance(x, dict):
            return {key: self.counted(item) for key, item in x.items()}
        return type(x)(self.counted(item) for item in x) if type(x) in (list, tuple) else x

    def _is_count(self, x: Tensor, ndim: int = 0) -> bool:
        cell = x._cell
        return x.ndim == ndim and x.dtype.kind in "iu" and cell.input is not None and not cell.written

    # ---- values
    def truth(self, x: Tensor) -> bool:
        if not self.is_open:
            raise out_of_scope(x.type.describe())
        if int(x.type.size) > 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
        source = here()
        text = source_text(source) if source else "the array"
        raise errors.BranchOnTracedArrayError(
            f"Using {self.traced_word} as a Python `bool` is not allowed: `{text}` has no value while jitlab records this"
            " function.",
            where=describe(source),
            why="one recording serves every input, so it cannot follow one branch of an `if`.",
            hint="np.where(condition, a, b), or decide outside and pass a Python bool: each value is recorded apart.",
        )

    def index(self, x: Tensor) -> int:
        """A 0-d integer input may be used as a Python integer: the trace then holds for its value only."""
        if self.is_open and self._is_count(x):
            assert x._cell.input is not None
            return self._held(x._cell.input, int(x._cell.input.value))
        raise no_value(x, "a use as an index or a count")

    def held(self, x: Tensor) -> tuple[int, ...] | None:
        """The integers of a vector that is an input, for a use as a shape: the trace then holds for them only."""
        if not self.is_open or not self._is_count(x, 1):
            return None
        assert x._cell.input is not None
        return self._held(x._cell.input, tuple(map(int, x._cell.input.value)))

    def _held(self, input: Input, value: V) -> V:
        guard = ValueGuard(input, value)
        if guard not in self.guards:
            self.guards.append(guard)
        return value

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
        if cell.stale:
            raise errors.CaptureError(
                "reading through this array cannot be captured", where=describe(here()),
                why="it is a view of another array, written since, of which part only the data says" if cell.by_data
                else "NumPy's function that made it returned a view of another array, written since; jitlab recorded a copy",
                hint="make it again behind the write, or take a .copy() before it",
            )  # fmt: skip
        if cell.input is not None and not self.used.get(id(cell.input)):
            source = here()
            if source is not None:
                self.used[id(cell.input)] = source

    def before_write(self, cell: Cell) -> None:
        """Called before a cell moves on."""
        if cell.home is not self.graph:
            enter(self, cell)

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


def _identifier(path: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in path).strip("_") or "array"
