"""VectorEmitter: the instructions of loop bodies (`ops/emitter.py`) as LLVM text, for scalars and vectors of lanes.

Values are in values.py, plain instructions and lanes in instructions.py, arithmetic in llvm_arithmetic.py; memory is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .llvm_arithmetic import Arithmetic
from .values import BOOL, I64, U8, Val, mangle, memory_type, part_dtype, vector_type

#: How far apart elements may lie that are picked from whole vectors.
PICKED = 12


class VectorEmitter(Arithmetic):
    """Instructions on `width` lanes (1: scalar code), or on scalars where every operand is uniform.

    `width` may exceed the native vector: LLVM splits. It is a power of two.
    """

    # memory

    def load(
        self,
        pointer: object,
        dtype: np.dtype[Any],
        lanes: int | None = None,
        align: int | None = None,
        mask: Val | None = None,
    ) -> Val:
        """`lanes` consecutive elements (0: one, for all lanes); where `mask` is false, zero without touching memory."""
        dtype = np.dtype(dtype)
        lanes = self.width if lanes is None else lanes
        count = max(lanes, 1)
        element, align = memory_type(dtype), align or part_dtype(dtype).itemsize
        if dtype.kind == "c":
            both = self._load_text(pointer, element, 2 * count, align, self._twice(mask))
            if count == 1:
                parts = [self.fn.instr(f"extractelement <2 x {element}> {both}, i64 {k}") for k in (0, 1)]
            else:
                parts = [self._pick(both, element, 2 * count, range(k, 2 * count, 2)) for k in (0, 1)]
            return self.from_parts(dtype, parts, lanes)
        return self._from_memory(self._load_text(pointer, element, count, align, mask), dtype, lanes)

    def _load_text(self, pointer: object, element: str, count: int, align: int, mask: Val | None) -> str:
        type = vector_type(element, count)
        if mask is None:
            return self.fn.instr(f"load {type}, ptr {pointer}, align {align}")
        if count == 1:
            return self._guarded_scalar_load(pointer, element, align, mask)
        name = f"@llvm.masked.load.{mangle(element, count)}.p0"
        self.fn.declare(f"declare {type} {name}(ptr, i32, <{count} x i1>, {type})")
        where = f"<{count} x i1> {self.operand(self.splat(mask, count))}"
        return self.fn.instr(f"call {type} {name}(ptr {pointer}, i32 {align}, {where}, {type} zeroinitializer)")

    def _guarded_scalar_load(self, pointer: object, element: str, align: int, mask: Val) -> str:
        before, there, after = self.fn.current, self.fn.label("load"), self.fn.label("loaded")
        self.fn.branch_if(mask.text, there, after)
        self.fn.block(there)
        value = self.fn.instr(f"load {element}, ptr {pointer}, align {align}")
        self.fn.branch(after)
        self.fn.block(after)
        zero = "0" if element.startswith("i") else "0.0" if element != "half" else "0xH0000"
        return str(self.fn.phi(element, [(value, there), (zero, before)]))

    def _from_memory(self, text: str, dtype: np.dtype[Any], lanes: int) -> Val:
        if dtype.kind != "b":
            return Val(dtype, text, lanes)
        return self.ne(Val(U8, text, lanes), self.constant(0, U8))

    def _to_memory(self, x: Val) -> str:
        return self.operand(self._convert("zext", x, U8)) if x.dtype.kind == "b" else self.operand(x)

    def _twice(self, mask: Val | None) -> Val | None:
        """The mask of a complex vector's parts."""
        if mask is None or mask.lanes == 0:
            return mask
        if mask.lanes == 1:
            return Val(BOOL, mask.text, 0)
        return self.shuffle(mask, [lane // 2 for lane in range(2 * mask.lanes)])

    def _pick(self, text: str, element: str, count: int, lanes: Sequence[int]) -> str:
        type = vector_type(element, count)
        order = f"<{len(lanes)} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"
        return self.fn.instr(f"shufflevector {type} {text}, {type} poison, {order}")

    def store(
        self, pointer: object, x: Val, align: int | None = None, mask: Val | None = None, nontemporal: bool = False
    ) -> None:
        """x to consecutive elements, where `mask` holds. A non-temporal store needs the alignment of its vector."""
        element, align = memory_type(x.dtype), align or part_dtype(x.dtype).itemsize
        count = max(x.lanes, 1)
        if x.dtype.kind == "c":
            count *= 2
            text = self._interleave(x, element)
            mask = self._twice(mask)
        else:
            text = self._to_memory(x)
        type = vector_type(element, count)
        if mask is None:
            suffix = self.fn.nontemporal() if nontemporal else ""
            self.fn.emit(f"store {type} {text}, ptr {pointer}, align {align}{suffix}")
        elif count == 1:
            there, after = self.fn.label("store"), self.fn.label("stored")
            self.fn.branch_if(mask.text, there, after)
            self.fn.block(there)
            self.fn.emit(f"store {type} {text}, ptr {pointer}, align {align}")
            self.fn.branch(after)
            self.fn.block(after)
        else:
            name = f"@llvm.masked.store.{mangle(element, count)}.p0"
            self.fn.declare(f"declare void {name}({type}, ptr, i32, <{count} x i1>)")
            where = f"<{count} x i1> {self.operand(self.splat(mask, count))}"
            self.fn.emit(f"call void {name}({type} {text}, ptr {pointer}, i32 {align}, {where})")

    def _interleave(self, x: Val, element: str) -> str:
        real, imag = self.parts(x)
        if x.lanes <= 1:
            both = self.fn.instr(f"insertelement <2 x {element}> poison, {element} {real}, i64 0")
            return self.fn.instr(f"insertelement <2 x {element}> {both}, {element} {imag}, i64 1")
        n = x.lanes
        order = ", ".join(f"i32 {lane // 2 + (lane % 2) * n}" for lane in range(2 * n))
        type = vector_type(element, n)
        return self.fn.instr(f"shufflevector {type} {real}, {type} {imag}, <{2 * n} x i32> <{order}>")

    def load_at(
        self, pointer: object, offsets: Val, dtype: np.dtype[Any], mask: Val | None = None, align: int | None = None
    ) -> Val:
        """Gathers: for each lane the element at `pointer` + its int64 offset in bytes."""
        dtype = np.dtype(dtype)
        part, element = part_dtype(dtype), memory_type(dtype)
        lanes, align = offsets.lanes, align or part_dtype(dtype).itemsize
        if lanes <= 1:
            address = self.fn.instr(f"getelementptr i8, ptr {pointer}, i64 {offsets.text}")
            return self.load(address, dtype, lanes, align, mask)
        addresses = self._addresses(pointer, offsets)
        where = self.operand(self.splat(mask, lanes)) if mask is not None else "splat (i1 true)"
        type = vector_type(element, lanes)
        name = f"@llvm.masked.gather.{mangle(element, lanes)}.v{lanes}p0"
        self.fn.declare(f"declare {type} {name}(<{lanes} x ptr>, i32, <{lanes} x i1>, {type})")
        texts = []
        for k in range(2 if dtype.kind == "c" else 1):
            if k:
                addresses = self.fn.instr(f"getelementptr i8, <{lanes} x ptr> {addresses}, i64 {part.itemsize}")
            args = f"<{lanes} x ptr> {addresses}, i32 {align}, <{lanes} x i1> {where}, {type} zeroinitializer"
            texts.append(self.fn.instr(f"call {type} {name}({args})"))
        if dtype.kind == "c":
            return self.from_parts(dtype, texts, lanes)
        return self._from_memory(texts[0], dtype, lanes)

    def store_at(
        self, pointer: object, offsets: Val, x: Val, mask: Val | None = None, align: int | None = None
    ) -> None:
        """Scatters x, lane by lane in order: of equal offsets the last lane's value stays."""
        dtype = x.dtype
        part, element = part_dtype(dtype), memory_type(dtype)
        lanes, align = offsets.lanes, align or part_dtype(dtype).itemsize
        if lanes <= 1:
            address = self.fn.instr(f"getelementptr i8, ptr {pointer}, i64 {offsets.text}")
            self.store(address, x, align, mask)
            return
        x = self.splat(x, lanes)
        addresses = self._addresses(pointer, offsets)
        where = self.operand(self.splat(mask, lanes)) if mask is not None else "splat (i1 true)"
        type = vector_type(element, lanes)
        name = f"@llvm.masked.scatter.{mangle(element, lanes)}.v{lanes}p0"
        self.fn.declare(f"declare void {name}({type}, <{lanes} x ptr>, i32, <{lanes} x i1>)")
        texts = self.parts(x) if dtype.kind == "c" else (self._to_memory(x),)
        for k, text in enumerate(texts):
            if k:
                addresses = self.fn.instr(f"getelementptr i8, <{lanes} x ptr> {addresses}, i64 {part.itemsize}")
            args = f"{type} {text}, <{lanes} x ptr> {addresses}, i32 {align}, <{lanes} x i1> {where}"
            self.fn.emit(f"call void {name}({args})")

    def _addresses(self, pointer: object, offsets: Val) -> str:
        return self.fn.instr(f"getelementptr i8, ptr {pointer}, <{offsets.lanes} x i64> {self.operand(offsets)}")

    def load_strided(
        self,
        pointer: object,
        stride_bytes: object,
        dtype: np.dtype[Any],
        count: object = None,
        align: int | None = None,
    ) -> Val:
        """`width` elements `stride_bytes` (an i64's text) apart; only the first `count` (an i64's text) if given."""
        dtype = np.dtype(dtype)
        if count is None and self.width > 1 and dtype.kind != "c" and str(stride_bytes).isdigit():
            apart, rest = divmod(int(str(stride_bytes)), dtype.itemsize)
            if not rest and 1 < apart <= PICKED:
                return self._load_picked(pointer, apart, dtype, align or dtype.itemsize)
        mask = None if count is None else self.mask_first(count)
        return self.load_at(pointer, self._strides(stride_bytes), dtype, mask, align)

    def _load_picked(self, pointer: object, apart: int, dtype: np.dtype[Any], align: int) -> Val:
        """`width` elements `apart` from each other: of all that lies from the first to the last one, these are picked."""
        element, lanes = memory_type(dtype), min(self.width, max(self.features.vector_bytes // dtype.itemsize, 2))
        type, last = vector_type(element, lanes), (lanes - 1) * apart + 1 - lanes  # the last load ends with the last element
        where = [i * apart // lanes for i in range(lanes)]  # the load that has each element
        registers = []
        for first in range(0, self.width, lanes):
            picked = ""
            for k in dict.fromkeys(where):
                start = min(k * lanes, last)
                at = (first * apart + start) * dtype.itemsize
                address = self.fn.instr(f"getelementptr i8, ptr {pointer}, i64 {at}")
                loaded = self.fn.instr(f"load {type}, ptr {address}, align {align}")
                own, before = (0, 0) if k == 0 else (lanes, 0)
                order = [
                    own + i * apart - start if n == k else before + i if n < k else "poison" for i, n in enumerate(where)
                ]
                one, other = (picked, loaded) if k else (loaded, "poison")
                picked = self._shuffled(type, one, other, order)
            registers.append(picked)
        while len(registers) > 1:
            type = vector_type(element, lanes)
            lanes *= 2
            pairs = zip(registers[::2], registers[1::2], strict=True)
            registers = [self._shuffled(type, one, other, range(lanes)) for one, other in pairs]
        return self._from_memory(registers[0], dtype, self.width)

    def _shuffled(self, type: str, one: str, other: str, order: Sequence[object]) -> str:
        lanes = ", ".join(f"i32 {lane}" for lane in order)
        return self.fn.instr(f"shufflevector {type} {one}, {type} {other}, <{len(order)} x i32> <{lanes}>")

    def store_strided(
        self, pointer: object, stride_bytes: object, x: Val, count: object = None, align: int | None = None
    ) -> None:
        mask = None if count is None else self.mask_first(count)
        self.store_at(pointer, self._strides(stride_bytes), self.splat(x), mask, align)

    def _strides(self, stride_bytes: object) -> Val:
        return self.mul(self.lane_index(), Val(I64, str(stride_bytes)))
