"""Teams: threads that run the same statements together; how they wait for each other and join their values."""

from __future__ import annotations

from collections.abc import Callable

from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.values import BOOL, Val, element_type

from .gpu_emitter import GpuEmitter
from .schedules import WARP

#: Joins two partial results, each a tuple of values.
Combine = Callable[[tuple[Val, ...], tuple[Val, ...]], tuple[Val, ...]]


def special_register(fn: FunctionText, name: str) -> str:
    """A number of the thread, its block or the grid, as an i64, read where the function starts."""
    fn.declare(f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}()")
    return fn.ahead(f"zext i32 {fn.ahead(f'call i32 @llvm.nvvm.read.ptx.sreg.{name}()')} to i64")


@dataclass
class Team:
    """`size` threads, a warp or a whole block; `rank`: which of them this thread is, as an i64."""

    fn: FunctionText
    size: int
    rank: str
    sites: int = 0  # places that have shared memory of their own

    def wait(self) -> None:
        """Until all have come here, and see what the others have stored."""
        if self.size > WARP:
            self.fn.declare("declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)")
            self.fn.emit("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")
        else:
            self.fn.declare("declare void @llvm.nvvm.bar.warp.sync(i32)")
            self.fn.emit("call void @llvm.nvvm.bar.warp.sync(i32 -1)")

    def joined(self, values: tuple[Val, ...], e: GpuEmitter, combine: Combine, is_ordered: bool) -> tuple[Val, ...]:
        """The values of all threads, joined by a fixed tree: the same on each of them. `is_ordered`: a pair's left and right
        count, beyond their bits."""
        values = self._in_warp(values, e, combine, WARP, is_ordered)
        return values if self.size <= WARP else self._through_shared(values, e, combine, is_ordered)

    def _in_warp(
        self, values: tuple[Val, ...], e: GpuEmitter, combine: Combine, lanes: int, is_ordered: bool
    ) -> tuple[Val, ...]:
        """Over groups of so many neighbours. Where the order counts the lower one of a pair is on the left, on both."""
        step = 1
        while step < lanes:
            others = tuple(self._exchanged(v, e, step) for v in values)
            if not is_ordered:
                values = combine(values, others)
                step *= 2
                continue
            bit = self.fn.instr(f"and i64 {self.rank}, {step}")
            is_low = Val(BOOL, self.fn.instr(f"icmp eq i64 {bit}, 0"))
            left = tuple(e.select(is_low, v, o) for v, o in zip(values, others, strict=True))
            right = tuple(e.select(is_low, o, v) for v, o in zip(values, others, strict=True))
            values = combine(left, right)
            step *= 2
        return values

    def _exchanged(self, x: Val, e: GpuEmitter, step: int) -> Val:
        """What the thread whose number differs in this bit has."""
        return e.from_parts(x.dtype, [self._exchanged_part(x, text, step) for text in e.parts(x)], 0)

    def _exchanged_part(self, x: Val, text: str, step: int) -> str:
        fn, element = self.fn, element_type(x.dtype)
        bits = {"i1": 1, "half": 16, "float": 32, "double": 64}.get(element) or int(element[1:])
        whole = text if element.startswith("i") else fn.instr(f"bitcast {element} {text} to i{bits}")
        if bits == 64:
            pair = fn.instr(f"bitcast i64 {whole} to <2 x i32>")
            other = "poison"
            for k in (0, 1):
                word = self._word(fn.instr(f"extractelement <2 x i32> {pair}, i64 {k}"), step)
                other = fn.instr(f"insertelement <2 x i32> {other}, i32 {word}, i64 {k}")
            back = fn.instr(f"bitcast <2 x i32> {other} to i64")
        elif bits == 32:
            back = self._word(whole, step)
        else:
            back = fn.instr(f"trunc i32 {self._word(fn.instr(f'zext i{bits} {whole} to i32'), step)} to i{bits}")
        return back if element.startswith("i") else fn.instr(f"bitcast i{bits} {back} to {element}")

    def _word(self, text: str, step: int) -> str:
        self.fn.declare("declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)")
        return self.fn.instr(f"call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 {text}, i32 {step}, i32 31)")

    def _through_shared(
        self, values: tuple[Val, ...], e: GpuEmitter, combine: Combine, is_ordered: bool
    ) -> tuple[Val, ...]:
        """A value a warp, joined over the warps of the block by each of them."""
        fn, warps = self.fn, self.size // WARP
        number, lane = fn.instr(f"lshr i64 {self.rank}, 5"), fn.instr(f"and i64 {self.rank}, 31")
        first, there, after = fn.instr(f"icmp eq i64 {lane}, 0"), fn.label("warp"), fn.label("warps")
        places = [(v.dtype, [self._shared(v, warps) for _ in e.parts(v)]) for v in values]
        fn.branch_if(first, there, after)
        fn.block(there)
        for v, (_, names) in zip(values, places, strict=True):
            for name, text in zip(names, e.parts(v), strict=True):
                fn.emit(f"store {_shared_type(v)} {self._stored(v, text)}, ptr addrspace(3) {self._at(name, v, number)}")
        fn.branch(after)
        fn.block(after)
        self.wait()
        mine = fn.instr(f"and i64 {lane}, {warps - 1}")
        found = []
        for v, (dtype, names) in zip(values, places, strict=True):
            texts = [fn.instr(f"load {_shared_type(v)}, ptr addrspace(3) {self._at(name, v, mine)}") for name in names]
            if dtype == BOOL:
                texts = [fn.instr(f"trunc i8 {text} to i1") for text in texts]
            found.append(e.from_parts(dtype, texts, 0))
        joined = self._in_warp(tuple(found), e, combine, warps, is_ordered)
        self.wait()  # before the next one writes
        return joined

    def _stored(self, v: Val, text: str) -> str:
        return self.fn.instr(f"zext i1 {text} to i8") if v.dtype == BOOL else text

    def _shared(self, v: Val, count: int) -> str:
        """Memory of the block for so many of such a value's parts."""
        name = f"@{self.fn.name}.shared{self.sites}"
        self.sites += 1
        self.fn.declare(f"{name} = internal addrspace(3) global [{count} x {_shared_type(v)}] undef, align 16")
        return name

    def _at(self, name: str, v: Val, number: str) -> str:
        return self.fn.instr(f"getelementptr {_shared_type(v)}, ptr addrspace(3) {name}, i64 {number}")


def _shared_type(v: Val) -> str:
    return "i8" if v.dtype == BOOL else element_type(v.dtype)

