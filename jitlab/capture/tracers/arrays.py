"""The arrays of a capture: what stands for them in its graph, and the state that what is done with Tensors shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from jitlab import errors
from jitlab.capture.control.blocks import Block, Effects, enter
from jitlab.capture.control.exactness import watch_cast
from jitlab.capture.control.iterables import Counting
from jitlab.capture.effort import effort_of
from jitlab.capture.numpy_calls.functions import call_function
from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.numpy_calls.layouts import is_writeable
from jitlab.capture.numpy_calls.numpy_traits import full_name, is_foreign
from jitlab.capture.positions import describe, here, source_text
from jitlab.ir import TRACED_DTYPES, ArrayType, Extent, Graph, Node, Source
from jitlab.ir.size_facts import SizeFacts, begun
from jitlab.messages import by_contract
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, constant, fitting
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.leaf_operations import Parameter
from jitlab.support.containers import CONTAINERS, changed, of_items
from jitlab.support.lazy_dataclass import dataclass

from .number import as_known
from .symbolic import Loops
from .tensor import Cell, Tensor, current, no_value, out_of_scope


class Place:
    """Where something is found at each run, as code over what the lookup is given, `a`; during the capture also what is there.

    `kind`: "argument", "global", "closure", "attribute", "local"; "" for what has no name.
    """

    __slots__ = ("_get", "code", "kind")

    def __init__(self, code: str, get: Callable[[], Any], kind: str = "") -> None:
        self.code, self._get, self.kind = code, get, kind

    def __call__(self) -> Any:
        return self._get()

    def item(self, name: Any, key: str) -> Place:
        """What it holds under `name`, which is `key` in code."""
        get = self._get
        return Place(f"{self.code}[{key}]", lambda: get()[name], self.kind)

    def forget(self) -> None:
        """The capture has ended: keep nothing alive."""
        self._get = _nothing


def _nothing() -> Any:
    return None


@dataclass(eq=False)
class Input:
    """A parameter of the graph and the real object it stood for at capture."""

    node: Node
    value: Any
    path: str  # "x", "params[0]", or the name it was reached by
    binding: Place | None = None
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


@dataclass(frozen=True)
class Policy:
    """What a kind of program allows."""

    strict_name: str = "jit_compile=True"  # what a user calls it that what has no operation is an error
    traced_word: str = "a symbolic `tf.Tensor`"  # the contract's words for a value that has none yet
    may_draw: bool = True  # though strict: jit_compile=True takes random numbers, and NumPy draws them
    wants_bools: bool = True  # a number is no condition where a traced value decides
    keeps_kinds: bool = False  # a name is the Python number or the NumPy scalar that Python gives it (number_kinds.py)
    keeps_scalars: bool = False  # captured NumPy scalars are inputs (cells); else they are constants
    sees_stores: bool = True  # the program is converted: what it leaves outside goes through the capture
    records_handlers: bool = True  # what a `try` catches while it is recorded is what each run catches
    begins_in_text: bool = False  # statements of a cell, not the call of a function


@dataclass
class LayoutReads:
    """What was decided by how arrays lie in memory."""

    views: bool = False  # whether something is an array itself, or a view of it, or a copy
    vectors: bool = False  # and that of an argument of one axis: by its steps
    orders: bool = False  # how results lie
    values: bool = False  # and values: `x.ravel("K")`

    def read(self, x: Tensor) -> None:
        """How x lies decided whether something is x itself, or a view of it, or a copy."""
        self.views = self.orders = True
        self.vectors = self.vectors or any(cell.input is not None and cell.node.ndim == 1 for cell in x._cell.reaches())


class Arrays(Loops):
    """The arrays of a capture: the graph's inputs, and what the program's values are in it.

    `strict`: what has no operation is an error, not a host operation.
    """

    policy = Policy()
    has_receivers = False  # of arguments that only get something, which may be passed on
    has_lists = False  # of its own, into which it looks
    has_kinds = False  # of a number only a run knows which kind it is (number_kinds.py)
    at_once = 0  # what puts nothing off and is being recorded: bodies of `try`, what does to Python once a trace what it does
    guarded = 0  # bodies of the program's `try` that are being recorded
    in_numpy = False  # NumPy's own source runs, for a call of the program's that explains its errors

    def __init__(self, name: str, *, strict: bool = False) -> None:
        self.name = name
        self.strict = strict
        self.graph = self.root = Graph(name)  # the first changes while a body is traced
        self.blocks: list[Block] = []  # the bodies that are being traced, innermost last
        self.effects = Effects()
        self.inputs: list[Input] = []
        self.captured: dict[int, Input] = {}  # id of a real array -> its input
        self.met_again: list[Input] = []  # arguments that a name gave, too
        self.values: dict[Node, Any] = {}  # what host operations needed to be known at capture
        self.guards: list[ValueGuard] = []
        self.journal: list[tuple[Any, ...]] = []  # writes, views and shapes, for rollback: what puts back, and its arguments
        self.used: dict[int, Source] = {}  # id of an input -> where it was used first
        self.numbered: list[Tensor] = []  # arrays that names may stand for where data decides (chosen_memory.py)
        self.layout = LayoutReads()
        Loops.__init__(self)
        self.is_open = True
        self.refused: NotReplayable | None = None  # a foreign array met the program's
        self.asked: SizeFacts | None = None  # of lengths that the data decide
        self._symbols = 0

    def check_open(self) -> None:
        if not self.is_open or current.get() is not self:
            raise out_of_scope("of an earlier recording" if not self.is_open else f"of the recording of {self.name}")

    # ---- foreign arrays
    def foreign(self, x: Any) -> Exception:
        """What ends a recording in which a masked array, a matrix or the like would have to be a plain array."""
        kind = type(x)
        self.refused = NotReplayable("foreign_type", "works_on", kind=full_name(kind))
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
    def add_input(self, value: Any, path: str, *, binding: Place | None = None, captured: bool = False) -> Tensor:
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
        if n < 2 or not self.policy.sees_stores:  # empty and length-one axes are another program (broadcasting)
            return n
        self._symbols += 1
        self.bounds.sizes[f"n{self._symbols - 1}"] = int(n)
        return Extent.symbol(f"n{self._symbols - 1}", n)

    def length_of_data(self, n: int) -> int:
        """A length that the data decide, with the value that it has at capture. An empty axis, or one of length 1, is another
        program; what stands in a branch or a loop has the length that it has."""
        if n < 2 or not self.policy.sees_stores or self.graph is not self.root:
            return n
        name = f"s{len(self.root.sizes)}"
        self.root.sizes[name] = self.bounds.sizes[name] = int(n)
        self.asked = begun()
        return Extent.symbol(name, n)

    def value(self, x: Any, text: str = "", binding: Place | None = None) -> Any:
        """What a loaded Python object is inside the capture: a Tensor for a plain array of a traced dtype, else itself."""
        if type(x) is np.ndarray:
            if x.dtype not in TRACED_DTYPES:
                return x
            if self.in_numpy:  # it made the array
                return self.fresh(constant(x))
            met = self.captured.get(id(x))
            if met is None:
                return self.add_input(x, text or f"array_{len(self.inputs)}", binding=binding, captured=True)
            if not met.captured and binding is not None and met not in self.met_again:
                self.met_again.append(met)
            return met.tensor
        if self.policy.keeps_scalars and isinstance(x, np.generic) and x.dtype in TRACED_DTYPES and type(x) is x.dtype.type:
            return self.scalar_input(x, text, binding)
        return x

    def scalar_input(self, x: Any, text: str, binding: Place | None) -> Any:
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
            return changed(self.operand, x)
        if isinstance(x, Counting) and x.iterator is None and hasattr(x, "values"):
            return x.values()
        return self.deep_value(x)

    def deep_value(self, x: Any) -> Any:
        """`value` of everything in tuples, lists and dicts; a container that holds no array stays the same object."""
        if type(x) in CONTAINERS or (isinstance(x, tuple) and hasattr(x, "_fields")):
            return changed(self.deep_value, x)
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
            return of_items(partial(self.wrap, zero_d_is_array=zero_d_is_array), result)
        return result

    def lower(self, x: Any) -> Any:
        """Nodes for the Tensors in an argument of a rule."""
        if isinstance(x, Tensor):
            return x.node()
        if isinstance(x, np.ndarray):
            value = self.value(x) if type(x) is np.ndarray else x
            if not isinstance(value, Tensor):
                kind = "foreign_type" if type(x) is not np.ndarray else "dtype"
                raise Unsupported("array_of", kind, kind=type(x).__name__, dtype=x.dtype)
            return value.node()
        if type(x) in CONTAINERS:
            return of_items(self.lower, x)
        if isinstance(x, slice):
            return slice(*(self.slice_bound(bound) for bound in (x.start, x.stop, x.step)))
        return as_known(x)

    def slice_bound(self, bound: Any) -> Any:
        """A bound of a slice: a number, or a node where it may become a symbol."""
        if isinstance(bound, Tensor) and self.may_define(bound):
            return bound.node()
        return bound.__index__() if isinstance(bound, Tensor) else as_known(bound)

    def value_to_write(self, value: Any, dtype: np.dtype[Any] | None = None) -> Any:
        """What is written into an array of `dtype`, for a rule."""
        if isinstance(value, Tensor):
            if dtype is not None:
                watch_cast(self, None, [value], dtype)
            return value.node()
        if isinstance(value, (list, tuple)):
            result = call_function(self, np.array, (value,), {})
            return result.node() if isinstance(result, Tensor) else result
        return as_known(value if dtype is None else fitting(value, dtype))

    def is_own(self, owner: Any) -> bool:
        """Did the program make this container or object itself?"""
        return False

    def number_of(self, x: Tensor) -> int:
        """The number, above 0, that says that a name stands for this array."""
        for number, other in enumerate(self.numbered, 1):
            if other is x:
                return number
        self.numbered.append(x)
        return len(self.numbered)

    # ---- what a cell does otherwise
    def resolved(self, function: Any, args: Sequence[Any]) -> Sequence[Any]:
        """The operands of a function, before they are lowered."""
        return args

    def moving_view(self, x: Tensor, index: Any) -> Tensor | None:
        """A view whose index is computed at each run (cells)."""
        return None

    def is_moving(self, input: Input) -> bool:
        return False

    # ---- what is done with Tensors
    def perform(self, action: Callable[..., Any], *args: Any, bodies: Sequence[Callable[..., Any]] = ()) -> Any:
        """An action of the program's: a function of this capture, `args` and the `bodies`, functions of the user's that it
        calls. A graph of the user's keeps it."""
        before = len(self.graph.nodes)
        result = action(self, *args, *bodies)
        self.spend(effort_of(self.graph.nodes[before:]))
        return result

    def spend(self, ns: int) -> None:
        """Something is captured that takes about so long until it is compiled."""

    def before_evaluate(self) -> None:
        """The real value of a node is asked for."""

    def before_host(self, function: Any, operands: Sequence[Any]) -> None:
        """NumPy is about to run what no rule builds."""

    def counted(self, x: Any) -> Any:
        """An argument in which integer inputs became Python integers (and the trace holds for their values only)."""
        if isinstance(x, Tensor):
            return self.index(x) if self._is_count(x) else x
        return of_items(self.counted, x) if type(x) in CONTAINERS else x

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
            f"Using {by_contract(self.policy.traced_word)} as a Python `bool` is not allowed: `{text}` has no value while"
            " jitlab records this function.",
            where=describe(source),
            why="one recording serves every input, so it cannot follow one branch of an `if`.",
            hint="np.where(condition, a, b), or decide outside and pass a Python bool: each value is traced separately.",
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

    def python_values(self, x: Tensor, method: str, *args: Any) -> Any:
        """What its method `item` or `tolist` gives."""
        return getattr(self.real(x, f".{method}()"), method)(*args)

    def shown(self, x: Tensor) -> str:
        """A Tensor as text."""
        return f"<traced {'scalar' if x.is_scalar else 'array'} {x.type.describe()}>"

    def text(self, x: Tensor) -> str:
        """A Tensor as `print` shows it."""
        return self.shown(x)

    def before_operator(self) -> None:
        """Called before an operator's operands are read."""

    def before_read(self, cell: Cell) -> None:
        """Called before a cell's value is read."""
        if cell.home is not self.graph:
            enter(self, cell)
        if cell.stale:
            raise errors.CaptureError(
                "reading through this array cannot be traced", where=describe(here()),
                why="it is a view of another array, written since, of which part only the data says" if cell.by_data
                else "NumPy's function that made it returned a view of another array, written since; jitlab recorded a copy",
                hint="make it again behind the write, or take a .copy() before it",
            )  # fmt: skip
        if cell.input is not None and not self.used.get(id(cell.input)):
            source = here()
            if source is not None:
                self.used[id(cell.input)] = source

    def before_leaving(self, x: Any) -> None:
        """A body or a side that is traced gives x, under a name or as its result."""

    def before_write(self, cell: Cell) -> None:
        """Called before a cell moves on."""
        if cell.home is not self.graph:
            enter(self, cell)


def _identifier(path: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in path).strip("_") or "array"
