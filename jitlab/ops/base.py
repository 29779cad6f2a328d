"""Operation: one class holds all that jitlab knows of it. Families say how its loops look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from jitlab.errors import Unfit
from jitlab.ir import ArrayType, Moving, Node, at_least, is_one, plain, same_extent
from jitlab.messages import Message
from jitlab.support.lazy_dataclass import dataclass

from . import registry
from .emitter import Emitter

#: Arrays for an operation, again and again.
Operands = Sequence[tuple[Any, ...]]


#: Ufuncs that a program writes as operators, and one that it writes in short.
SYMBOLS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%", "power": "**",
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>", "invert": "~",
    "absolute": "abs", "conjugate": "conj",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cost:
    """Work of one operation on whole arrays: floating-point operations and bytes, each distinct element counted once."""

    flops: int
    read_bytes: int
    written_bytes: int


@dataclass_transform(frozen_default=True)
class Operation:
    """A function of arrays. Each subclass is a frozen dataclass, whose fields are the operation's attributes.

    In the class statement `eq=False` says that it is known by identity, `family=True` that it is what operations share.

    Arrays reach `numpy`, types reach `result`, nodes reach `gradient`, in the order of the inputs.
    """

    tf_name: ClassVar[str | None] = None  # TensorFlow's name where it has one (`AddV2`); else the class name
    numpy_word: ClassVar[str] = ""  # what `word` is, where that is not the class's name in small letters
    is_parameter: ClassVar[bool] = False
    has_effects: ClassVar[bool] = False
    may_raise: ClassVar[bool] = False  # what its operands hold may make it raise: it runs although nobody reads its result
    flops_per_element: ClassVar[float] = 1
    differentiable: ClassVar[bool] = False  # a class with a `gradient` of its own is, unless it says otherwise
    has_others: ClassVar[bool] = False  # is there an operation that is not jitlab's own?
    is_family: ClassVar[bool] = True
    operands: ClassVar[Operands] = ()  # what the generic tests try an operation without fields on
    exact: ClassVar[bool] = True  # compiled code gives NumPy's bits; False: within the bounds of docs/reference/numerics.md

    def __init_subclass__(cls, eq: bool = True, family: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True, eq=eq)(cls)
        cls.is_family = family
        if "gradient" in vars(cls) and "differentiable" not in vars(cls):
            cls.differentiable = True
        Operation.has_others |= not cls.__module__.startswith("jitlab.")

    @property
    def name(self) -> str:
        return self.tf_name or type(self).__name__

    @property
    def stem(self) -> str:
        """What nodes of this operation are called: `add`, `add_1`, ..."""
        return type(self).__name__.lower() if self.tf_name else self.name.lower()

    @property
    def word(self) -> str:
        """What a program that uses NumPy writes for it: `+`, `sqrt`, `where`, `[...]`."""
        return self.numpy_word or type(self).__name__.lower()

    def numpy(self, *arrays: Any) -> Any:
        """The meaning, in NumPy; every test compares with this."""
        raise NotImplementedError

    def result(self, *types: ArrayType) -> ArrayType:
        """Shape and dtype of the result. Raises what NumPy raises (ValueError, TypeError) for types it refuses."""
        raise NotImplementedError

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """Cotangents of the inputs, given `g`, that of the output. A cotangent may still have the broadcast shape:
        the gradient pass sums it down to the input's. None: no gradient flows to that input."""
        raise NotImplementedError(f"{self.word} has no gradient")

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        """None when the operation has a loop body for these types, else the reason, of the message table's group `stays`."""
        return None

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(int(self.flops_per_element * out.count), sum(t.nbytes for t in types), out.nbytes)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        """Pairs of (operation, *arrays) for the generic tests and the gallery."""
        return ((cls(), *arrays) for arrays in cls.operands)

    def __str__(self) -> str:
        from dataclasses import fields

        own: Any = self
        values = [f"{f.name}={_short(getattr(self, f.name))}" for f in fields(own)]
        return f"{self.name}({', '.join(values)})" if values else self.name


class Unsupported(Unfit):
    """What a call asks for is left to NumPy, raised before any node is added: a row of the message table's group `stays`.

    `code` is one of "argument" (an argument of the call), "data_dependent" (a shape or an error that the data decide),
    "dtype" and "foreign_type".
    """

    def __init__(self, row: str, code: str = "argument", **args: Any) -> None:
        super().__init__(code, row, group="stays", **args)


class Elementwise(Operation, family=True):
    """One result element from one element of each input. Inputs have the dtypes of one loop of `ufunc`:
    `build_nodes.elementwise` casts them; shapes broadcast."""

    ufunc: ClassVar[np.ufunc]
    instruction: ClassVar[str] = ""  # of the emitter, where the body is one and has another name than the ufunc

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "ufunc" in vars(cls):
            registry.operation(cls.ufunc, cls)

    @property
    def word(self) -> str:
        ufunc = getattr(type(self), "ufunc", None)
        return super().word if self.numpy_word or ufunc is None else SYMBOLS.get(ufunc.__name__, ufunc.__name__)

    def numpy(self, *arrays: Any) -> Any:
        return type(self).ufunc(*arrays)

    def result(self, *types: ArrayType) -> ArrayType:
        dtype = type(self).ufunc.resolve_dtypes((*[t.dtype for t in types], None))[-1]
        return ArrayType(broadcast_shapes(*[t.shape for t in types]), dtype)

    def with_known(self, node: Node) -> tuple[Elementwise, tuple[Node, ...]]:
        """What a loop computes for a node of this operation, and of which values; some of them the program may say."""
        return self, node.inputs

    def body(self, e: Emitter, *xs: Any) -> Any:
        """The result's scalar from the inputs' scalars."""
        return getattr(e, self.instruction or type(self).ufunc.__name__)(*xs)


class Generated(Operation, family=True):
    """An array made from its own indices alone: zeros, arange, eye. `shape` is a field; no or only 0-d inputs."""

    shape: tuple[int, ...]

    def body(self, e: Emitter, index: Sequence[Any], *scalars: Any) -> Any:
        """The element at `index` (int64 scalars, one an axis)."""
        raise NotImplementedError


class Reduction(Operation, family=True):
    """Fewer axes than its one input: `axes` are gone from the result. An accumulator is one scalar or a tuple of them.

    For an element x at position `index` along the flattened reduced axes:
    start -> step for each element -> combine in a fixed tree -> finish(count).
    """

    axes: tuple[int, ...]  # sorted, non-negative

    function: ClassVar[str]  # NumPy's, which is the meaning
    instruction: ClassVar[str]  # of the emitter, where it joins two elements, and two partial results
    neutral: ClassVar[Any]  # what an instruction leaves any element as it is with
    compensated: ClassVar[bool] = False  # True: summed in a tree of blocks, for the error bound of docs/reference/numerics.md
    has_identity: ClassVar[bool] = True  # False: max, min, argmax of nothing is an error
    numpy_name: ClassVar[str] = ""  # the ufunc that NumPy's message names
    keeps_position: ClassVar[bool] = False  # True: an element's position is part of the accumulator

    def numpy(self, x: Any) -> Any:
        return getattr(np, self.function)(x, axis=self.axes)

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        return dtype

    def result(self, *types: ArrayType) -> ArrayType:
        (x,) = types
        if not self.has_identity and not all(at_least(x.shape[axis], 1) for axis in self.axes):
            raise ValueError(f"zero-size array to reduction operation {self.numpy_name} which has no identity")
        shape = tuple(n for axis, n in enumerate(x.shape) if axis not in self.axes)
        return ArrayType(shape, np.dtype(self.result_dtype(x.dtype)))

    def prepare(self, e: Emitter, x: Any) -> Any:
        """What is accumulated of one element."""
        return e.cast(x, self.result_dtype(x.dtype))

    def start(self, e: Emitter, dtype: np.dtype) -> Any:
        """The accumulator before the first element; `dtype` is the input's."""
        return e.constant(self.neutral, self.result_dtype(dtype))

    def step(self, e: Emitter, total: Any, x: Any, index: Any) -> Any:
        """The accumulator after one more (prepared) element."""
        return self.combine(e, total, x)

    def combine(self, e: Emitter, left: Any, right: Any) -> Any:
        """Joins two partial results; `left` holds the earlier elements when the loop is not vectorised along them."""
        return getattr(e, self.instruction)(left, right)

    def finish(self, e: Emitter, total: Any, count: Any) -> Any:
        """The result from the accumulator; `count` (int64) elements were reduced."""
        return total

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        (x,) = types
        return Cost(int(self.flops_per_element * x.count), x.nbytes, out.nbytes)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        """In front of the operands stand the axes."""
        return ((cls(axes), *arrays) for axes, *arrays in cls.operands)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast that keeps the polynomials of extents. Raises ValueError as NumPy does."""
    ndim = max(map(len, shapes), default=0)
    result: list[int] = []
    for axis in range(-ndim, 0):
        extent: int = 1
        for shape in shapes:
            n = shape[axis] if len(shape) >= -axis else 1
            if isinstance(n, Moving) or isinstance(extent, Moving):
                if is_one(extent):
                    extent = n
                elif not is_one(n):
                    same_extent(extent, n)  # or the loop is not rolled: one that may be 1 would broadcast
                continue
            if extent == 1:
                extent = n
            elif n != 1 and n != extent:
                raise ValueError(f"operands could not be broadcast together with shapes {' '.join(map(shape_text, shapes))}")
            elif n != 1 and not hasattr(extent, "expr"):
                extent = n  # a literal met a symbol: the symbol is the more general
        result.append(extent)
    return tuple(result)


def shape_text(shape: Sequence[int]) -> str:
    """A shape as NumPy's errors write it: (2,3)."""
    return str(plain(shape)).replace(" ", "")


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_short(v) for v in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.dtype):
        return str(value)
    from jitlab.ir import poly

    return str(poly(value)) if isinstance(value, int) and hasattr(value, "expr") else repr(value)
