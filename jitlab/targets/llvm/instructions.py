"""Instructions: what every loop body is written with, types, literals, plain instructions and lanes as LLVM text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab.support.lazy import Kept

from .features import Features
from .function_text import FinishedText, FunctionText
from .values import (
    BOOL,
    F16,
    F32,
    F64,
    I64,
    SIGNED,
    Val,
    element_type,
    is_literal,
    literal,
    part_dtype,
    part_texts,
    vector_type,
)  # fmt: skip


class Instructions:
    """Instructions on `width` lanes (1: scalar code), or on scalars where every operand is uniform.

    `width` may exceed the native vector: LLVM splits. It is a power of two.
    """

    def __init__(self, fn: FunctionText, width: int, features: Features) -> None:
        self.fn, self.width, self.features = fn, width, features

    # types and literals

    def type(self, dtype: np.dtype[Any], lanes: int | None = None) -> str:
        """LLVM's type of such a value (of each part, if complex)."""
        key = dtype, self.width if lanes is None else lanes
        return _types.get(key) or _types.setdefault(key, vector_type(element_type(dtype), key[1]))

    def parts(self, x: Val) -> tuple[str, ...]:
        """Operand texts of the value: one, or two if it is complex; `from_parts` undoes it (phis, allocas)."""
        real = self.operand(x)
        return (real, self.operand(Val(x.dtype, x.imag, x.lanes))) if x.dtype.kind == "c" else (real,)

    def from_parts(self, dtype: np.dtype[Any], parts: Sequence[object], lanes: int | None = None) -> Val:
        re, *im = map(str, parts)
        return Val(dtype, re, self.width if lanes is None else lanes, im[0] if im else "")

    def constant(self, value: Any, dtype: Any) -> Val:
        dtype = np.dtype(dtype)
        if dtype.kind == "c":
            part = part_dtype(dtype)
            value = complex(value)
            return Val(dtype, literal(value.real, part), 0, literal(value.imag, part))
        return Val(dtype, literal(value, dtype))

    def value(self, text: object, dtype: Any, lanes: int = 0) -> Val:
        """An SSA value somebody else wrote (a parameter, a loop counter)."""
        return Val(np.dtype(dtype), str(text), lanes)

    def operand(self, x: Val) -> str:
        """The text of x where an instruction wants its type: a literal among vectors becomes a splat constant."""
        if x.lanes > 1 and x.text[0] not in "%@<":
            return f"splat ({element_type(x.dtype)} {x.text})"
        return x.text

    def splat(self, x: Val, lanes: int | None = None) -> Val:
        """The uniform x on all lanes; a vector is returned as it is."""
        lanes = self.width if lanes is None else lanes
        if x.lanes:
            return x
        parts = [self._splat_text(text, element_type(x.dtype), lanes) for text in part_texts(x)]
        return self.from_parts(x.dtype, parts, lanes)

    def _splat_text(self, text: str, element: str, lanes: int) -> str:
        if lanes <= 1 or is_literal(text):
            return text
        vector = vector_type(element, lanes)
        first = self.fn.instr(f"insertelement {vector} poison, {element} {text}, i64 0")
        return self.fn.instr(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def _together(self, *xs: Val) -> tuple[int, list[Val]]:
        """The operands on equally many lanes."""
        first, *others = xs
        lanes, differ = first.lanes, False
        for x in others:
            if x.lanes != lanes:
                lanes, differ = max(lanes, x.lanes), True
        return lanes, [x if x.lanes else self.splat(x, lanes) for x in xs] if differ else list(xs)

    # plain instructions

    def plain(self, opcode: str, x: Val, y: Val) -> Val:
        """One LLVM instruction; its operands must be in its range."""
        lanes, (x, y) = self._together(x, y)
        text = self.fn.instr(f"{opcode} {self.type(x.dtype, lanes)} {self.operand(x)}, {self.operand(y)}")
        return Val(x.dtype, text, lanes)

    def _compare(self, opcode: str, x: Val, y: Val) -> Val:
        lanes, (x, y) = self._together(x, y)
        text = self.fn.instr(f"{opcode} {self.type(x.dtype, lanes)} {self.operand(x)}, {self.operand(y)}")
        return Val(BOOL, text, lanes)

    def _convert(self, opcode: str, x: Val, dtype: np.dtype[Any]) -> Val:
        source, target = self.type(x.dtype, x.lanes), self.type(dtype, x.lanes)
        return Val(dtype, self.fn.instr(f"{opcode} {source} {self.operand(x)} to {target}"), x.lanes)

    def intrinsic(self, name: str, *xs: Val, tail: str = "") -> Val:
        """`llvm.name` overloaded on the operands' type; `tail` is a literal last argument, as in `i1 false`."""
        lanes, vals = self._together(*xs)
        type, suffix = self.type(vals[0].dtype, lanes), self._suffix(vals[0].dtype, lanes)
        params = [type] * len(vals) + ([tail.split()[0]] if tail else [])
        self.fn.declare(f"declare {type} @llvm.{name}.{suffix}({', '.join(params)})")
        args = [f"{type} {self.operand(x)}" for x in vals] + ([tail] if tail else [])
        return Val(vals[0].dtype, self.fn.instr(f"call {type} @llvm.{name}.{suffix}({', '.join(args)})"), lanes)

    def _suffix(self, dtype: np.dtype[Any], lanes: int) -> str:
        element = {"half": "f16", "float": "f32", "double": "f64"}.get(element_type(dtype), element_type(dtype))
        return f"v{lanes}{element}" if lanes > 1 else element

    def call(self, name: str, *xs: Val) -> Val:
        """A C function of scalars, applied to each lane."""
        lanes, vals = self._together(*xs)
        dtype = vals[0].dtype
        element = element_type(dtype)
        self.fn.declare(f"declare {element} @{name}({', '.join([element] * len(vals))})")

        def one(texts: Sequence[str]) -> str:
            return self.fn.instr(f"call {element} @{name}({', '.join(f'{element} {text}' for text in texts)})")

        if lanes <= 1:
            return Val(dtype, one([x.text for x in vals]), lanes)
        # through memory, in a loop: the call is rare and its code should stay small
        vector = self.type(dtype, lanes)
        memory = [self.fn.alloca(vector) for _ in vals]
        for x, place in zip(vals, memory, strict=True):
            self.fn.emit(f"store {vector} {self.operand(x)}, ptr {place}")
        before, body, after = self.fn.current, self.fn.label("each"), self.fn.label("each.done")
        self.fn.branch(body)
        self.fn.block(body)
        lane = self.fn.phi("i64", [("0", before)])
        places = [self.fn.instr(f"getelementptr {element}, ptr {place}, i64 {lane}") for place in memory]
        result = one([self.fn.instr(f"load {element}, ptr {place}") for place in places])
        self.fn.emit(f"store {element} {result}, ptr {places[0]}")
        following = self.fn.instr(f"add i64 {lane}, 1")
        lane.add_incoming(following, body)
        self.fn.branch_if(self.fn.instr(f"icmp ult i64 {following}, {lanes}"), body, after)
        self.fn.block(after)
        return Val(dtype, self.fn.instr(f"load {vector}, ptr {memory[0]}"), lanes)

    def called(self, name: str, body: Callable[..., Val], *xs: Val) -> Val:
        """What `body(emitter, *xs)` gives, written once in a module as a function of its own."""
        kinds = [(x.dtype, x.lanes) for x in xs]
        key = (name, self.features, *kinds)
        function, dtype, lanes = _functions.of(key, _function, type(self), self.features, name, body, kinds)
        self.fn.shared |= {**function.shared, function.name: function}
        arguments = ", ".join(f"{self.type(x.dtype, x.lanes)} {self.operand(x)}" for x in xs)
        return Val(dtype, self.fn.instr(f"call {self.type(dtype, lanes)} @{function.name}({arguments})"), lanes)

    def bits(self, x: Val) -> Val:
        """A float's bits as a signed integer."""
        return self._convert("bitcast", x, SIGNED[x.dtype.itemsize])

    def unbits(self, x: Val) -> Val:
        """The float with these bits."""
        return self._convert("bitcast", x, {2: F16, 4: F32, 8: F64}[x.dtype.itemsize])

    # lanes

    def lane_index(self) -> Val:
        """0, 1, ... width-1 as int64."""
        if self.width == 1:
            return Val(I64, "0", 1)
        return Val(I64, f"<{', '.join(f'i64 {lane}' for lane in range(self.width))}>", self.width)

    def mask_first(self, count: object) -> Val:
        """The bool mask of lanes before the i64 `count` (not negative)."""
        return self._compare("icmp ult", self.lane_index(), Val(I64, str(count)))

    def extract(self, x: Val, lane: object) -> Val:
        """One lane as a uniform scalar."""
        if x.lanes <= 1:
            return Val(x.dtype, x.text, 0, x.imag)
        type = self.type(x.dtype, x.lanes)
        parts = [self.fn.instr(f"extractelement {type} {part}, i64 {lane}") for part in self.parts(x)]
        return self.from_parts(x.dtype, parts, 0)

    def shuffle(self, x: Val, lanes: Sequence[int]) -> Val:
        """The lanes named, in that order; a single one is a scalar."""
        if len(lanes) == 1:
            scalar = self.extract(x, lanes[0])
            return Val(x.dtype, scalar.text, 1, scalar.imag)
        type = self.type(x.dtype, x.lanes)
        order = f"<{len(lanes)} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"
        parts = [self.fn.instr(f"shufflevector {type} {part}, {type} poison, {order}") for part in self.parts(x)]
        return self.from_parts(x.dtype, parts, len(lanes))

    def reverse(self, x: Val) -> Val:
        return x if x.lanes <= 1 else self.shuffle(x, range(x.lanes - 1, -1, -1))

    def reduce(self, x: Any, combine: Callable[[Any, Any], Any]) -> Any:
        """All lanes joined into a uniform scalar by a fixed tree: lane i with lane i + half, until one is left.

        x may be a tuple of values, which `combine` then takes and returns.
        """
        several = isinstance(x, tuple)
        vals: tuple[Val, ...] = tuple(self.splat(v) for v in x) if several else (self.splat(x),)
        lanes = vals[0].lanes
        while lanes > 1:
            lanes //= 2
            left = tuple(self.shuffle(v, range(lanes)) for v in vals)
            right = tuple(self.shuffle(v, range(lanes, 2 * lanes)) for v in vals)
            vals = combine(left, right) if several else (combine(left[0], right[0]),)
        vals = tuple(Val(v.dtype, v.text, 0, v.imag) for v in vals)
        return vals if several else vals[0]

    def any(self, condition: Val) -> str:
        """An i1 for `branch_if`: does it hold on some lane?"""
        return self._reduce_bool("or", condition)

    def all(self, condition: Val) -> str:
        return self._reduce_bool("and", condition)

    def _reduce_bool(self, name: str, condition: Val) -> str:
        if condition.lanes <= 1:
            return condition.text
        lanes = condition.lanes
        self.fn.declare(f"declare i1 @llvm.vector.reduce.{name}.v{lanes}i1(<{lanes} x i1>)")
        return self.fn.instr(f"call i1 @llvm.vector.reduce.{name}.v{lanes}i1(<{lanes} x i1> {self.operand(condition)})")


_types: dict[tuple[np.dtype[Any], int], str] = {}  # by dtype and lanes

#: By name, features and the operands' dtypes and lanes: the function, the dtype and lanes of what it returns.
_functions: Kept[Any, tuple[FinishedText, np.dtype[Any], int]] = Kept(512)


def _function(
    emitter: type[Instructions], features: Features, name: str, body: Callable[..., Val], kinds: list[tuple[np.dtype[Any], int]]
) -> tuple[FinishedText, np.dtype[Any], int]:
    """A function of its own, for such operands."""
    width = max(lanes for _, lanes in kinds)
    types = [vector_type(element_type(dtype), lanes) for dtype, lanes in kinds]
    suffix = ".".join(f"{f'v{lanes}' if lanes else ''}{dtype.kind}{8 * dtype.itemsize}" for dtype, lanes in kinds)
    fn = FunctionText(f"jl.{name}.{suffix}", [(type, f"x{k}") for k, type in enumerate(types)])
    fn.attributes, fn.linkage = "noinline nounwind", "internal"
    e = emitter(fn, max(width, 1), features)
    result = body(e, *(Val(dtype, f"%x{k}", lanes) for k, (dtype, lanes) in enumerate(kinds)))
    fn.returns = e.type(result.dtype, result.lanes)
    fn.ret(e.operand(result))
    return fn.finished(), result.dtype, result.lanes
