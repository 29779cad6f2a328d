"""Teams: threads that run the same statements together; how they wait for each other and join their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitlab.errors import InternalError
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.values import BOOL, Val, element_type

from .gpu_emitter import GpuEmitter
from .schedules import MEETING_HEAD, WARP

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
        return self._of_words(x, [self._word(word, step) for word in self._words(x, text)])

    def _words(self, x: Val, text: str) -> list[str]:
        """A part of a value as words of 32 bits."""
        fn, element, bits = self.fn, element_type(x.dtype), _bits(x)
        whole = text if element.startswith("i") else fn.instr(f"bitcast {element} {text} to i{bits}")
        if bits == 64:
            pair = fn.instr(f"bitcast i64 {whole} to <2 x i32>")
            return [fn.instr(f"extractelement <2 x i32> {pair}, i64 {k}") for k in (0, 1)]
        return [whole if bits == 32 else fn.instr(f"zext i{bits} {whole} to i32")]

    def _of_words(self, x: Val, words: Sequence[str]) -> str:
        """Words as a part of a value like `x`."""
        fn, element, bits = self.fn, element_type(x.dtype), _bits(x)
        if bits == 64:
            pair = "poison"
            for k, word in enumerate(words):
                pair = fn.instr(f"insertelement <2 x i32> {pair}, i32 {word}, i64 {k}")
            whole = fn.instr(f"bitcast <2 x i32> {pair} to i64")
        else:
            whole = words[0] if bits == 32 else fn.instr(f"trunc i32 {words[0]} to i{bits}")
        return whole if element.startswith("i") else fn.instr(f"bitcast i{bits} {whole} to {element}")

    def _word(self, text: str, step: int) -> str:
        self.fn.declare("declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)")
        return self.fn.instr(f"call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 {text}, i32 {step}, i32 31)")

    def _through_shared(
        self, values: tuple[Val, ...], e: GpuEmitter, combine: Combine, is_ordered: bool
    ) -> tuple[Val, ...]:
        """A value a warp, joined over the warps of the block by each of them."""
        fn, warps = self.fn, self.size // WARP
        number, lane = fn.instr(f"lshr i64 {self.rank}, 5"), fn.instr(f"and i64 {self.rank}, 31")
        places = self._by_first(values, e, lane, number, warps)
        self.wait()
        found = self._taken(values, e, places, fn.instr(f"and i64 {lane}, {warps - 1}"))
        joined = self._in_warp(found, e, combine, warps, is_ordered)
        self.wait()  # before the next one writes
        return joined

    def _by_first(self, values: tuple[Val, ...], e: GpuEmitter, lane: str, number: str, count: int) -> list[list[str]]:
        """Shared memory for so many such values, into which the threads with lane 0 store theirs at their number."""
        fn = self.fn
        places = [[self._shared(v, count) for _ in e.parts(v)] for v in values]

        def store() -> None:
            for v, names in zip(values, places, strict=True):
                for name, text in zip(names, e.parts(v), strict=True):
                    fn.emit(f"store {_shared_type(v)} {self._stored(v, text)}, ptr addrspace(3) {self._at(name, v, number)}")

        self._where(fn.instr(f"icmp eq i64 {lane}, 0"), store)
        return places

    def _where(self, condition: str, body: Callable[[], None]) -> None:
        """Only the threads for which a condition holds."""
        fn = self.fn
        there, after = fn.label("warp"), fn.label("warps")
        fn.branch_if(condition, there, after)
        fn.block(there)
        body()
        fn.branch(after)
        fn.block(after)

    def _taken(self, like: tuple[Val, ...], e: GpuEmitter, places: list[list[str]], number: str) -> tuple[Val, ...]:
        """The values that were stored at a number."""
        fn, found = self.fn, []
        for v, names in zip(like, places, strict=True):
            texts = [fn.instr(f"load {_shared_type(v)}, ptr addrspace(3) {self._at(name, v, number)}") for name in names]
            if v.dtype == BOOL:
                texts = [fn.instr(f"trunc i8 {text} to i1") for text in texts]
            found.append(e.from_parts(v.dtype, texts, 0))
        return tuple(found)

    def _stored(self, v: Val, text: str) -> str:
        return self.fn.instr(f"zext i1 {text} to i8") if v.dtype == BOOL else text

    def _shared(self, v: Val, count: int) -> str:
        """Memory of the block for so many of such a value's parts."""
        name = self._name(v, count)
        self.sites += 1
        self.fn.declare(f"{name} = internal addrspace(3) global [{count} x {_shared_type(v)}] undef, align 16")
        return name

    def _name(self, v: Val, count: int) -> str:
        return f"@{self.fn.name}.shared{self.sites}"

    def _at(self, name: str, v: Val, number: str) -> str:
        return self.fn.instr(f"getelementptr {_shared_type(v)}, ptr addrspace(3) {name}, i64 {number}")


@dataclass
class TeamOfBlocks(Team):
    """The threads of several blocks, which have a part of a row each. `size`, `rank`: of all of them; `part`: the block's
    number among them; `threads`: of a block.

    They meet in the device's memory, `%meeting`, which is zero before the launch: for each row there are `words` words of 64
    bits a block. A block puts 32 bits of its value in the upper half of one, with 1 in the lower half: who finds that has the
    value, too, and nothing else has to be in order.
    """

    threads: int = 0
    parts: int = 1
    block: str = ""  # how many had started before this one
    part: str = ""
    words: int = 0
    used: int = 0  # words of a row, so far
    at: str = ""  # where the row's are

    def begin(self, row: str) -> None:
        """The row with this number."""
        each = 8 * self.words * self.parts
        offset = self.fn.instr(f"add nsw i64 {self.fn.instr(f'mul nsw i64 {row}, {each}')}, {MEETING_HEAD}")
        self.at, self.used = self.fn.instr(f"getelementptr i8, ptr %meeting, i64 {offset}"), 0

    def joined(self, values: tuple[Val, ...], e: GpuEmitter, combine: Combine, is_ordered: bool) -> tuple[Val, ...]:
        """Over each warp, each block, and the blocks: the first warp meets those of the other blocks. All such places of a
        kernel use the same shared memory, as a block waits twice in each: registers are few, and each address wants one."""
        fn, warps, self.sites = self.fn, self.threads // WARP, 0
        values = self._in_warp(values, e, combine, WARP, is_ordered)
        own = fn.instr(f"and i64 {self.rank}, {self.threads - 1}")
        number, lane = fn.instr(f"lshr i64 {own}, 5"), fn.instr(f"and i64 {own}, 31")
        places = self._by_first(values, e, lane, number, warps)
        self.wait()
        whole: list[list[list[str]]] = []

        def meet() -> None:
            found = self._taken(values, e, places, fn.instr(f"and i64 {lane}, {warps - 1}"))
            found = self._met(self._in_warp(found, e, combine, warps, is_ordered), e, lane)
            whole.append(self._by_first(self._in_warp(found, e, combine, self.parts, is_ordered), e, lane, "0", 1))

        self._where(fn.instr(f"icmp eq i64 {number}, 0"), meet)
        self.wait()
        return self._taken(values, e, whole[0], "0")

    def _name(self, v: Val, count: int) -> str:
        return f"@{self.fn.name}.parts{self.sites}.{count}.{_shared_type(v)}"

    def _met(self, values: tuple[Val, ...], e: GpuEmitter, lane: str) -> tuple[Val, ...]:
        """The values of the blocks, one after the other over the lanes of a warp."""
        fn = self.fn
        words = [[self._words(v, text) for text in e.parts(v)] for v in values]
        flat = [word for of_value in words for of_part in of_value for word in of_part]
        first, self.used = self.used, self.used + len(flat)
        if self.used > self.words:
            raise InternalError(f"{fn.name}: blocks meet with more than {self.words} words a row")

        def tell() -> None:
            for k, word in enumerate(flat):
                high = fn.instr(f"shl i64 {fn.instr(f'zext i32 {word} to i64')}, 32")
                place, told = self._place(first + k, self.part), fn.instr(f"or i64 {high}, 1")
                fn.emit(f'store atomic i64 {told}, ptr {place} syncscope("device") monotonic, align 8')

        self._where(fn.instr(f"icmp eq i64 {lane}, 0"), tell)
        other = fn.instr(f"and i64 {lane}, {self.parts - 1}")
        got = iter([self._heard(self._place(first + k, other)) for k in range(len(flat))])
        return tuple(
            e.from_parts(v.dtype, [self._of_words(v, [next(got) for _ in of_part]) for of_part in of_value], 0)
            for v, of_value in zip(values, words, strict=True)
        )

    def _place(self, word: int, part: str) -> str:
        number = self.fn.instr(f"add nsw i64 {part}, {word * self.parts}")
        return self.fn.instr(f"getelementptr i64, ptr {self.at}, i64 {number}")

    def _heard(self, place: str) -> str:
        """The 32 bits that somebody puts there, as soon as they are there."""
        fn = self.fn
        look, sleep, there = fn.label("look"), fn.label("sleep"), fn.label("there")
        fn.declare("declare void @llvm.nvvm.nanosleep(i32)")
        fn.branch(look)
        fn.block(look)
        found = fn.instr(f'load atomic i64, ptr {place} syncscope("device") monotonic, align 8')
        fn.branch_if(fn.instr(f"icmp eq i64 {found}, 0"), sleep, there)
        fn.block(sleep)
        fn.emit("call void @llvm.nvvm.nanosleep(i32 20)")
        fn.branch(look)
        fn.block(there)
        return fn.instr(f"trunc i64 {fn.instr(f'lshr i64 {found}, 32')} to i32")


def started(fn: FunctionText, thread: str, threads: int, parts: int) -> tuple[str, str]:
    """How many blocks of the launch had started before this one, as an i64: whatever order the GPU starts them in, a block
    waits only for such as have a number close to its own. And the first of the block's ranks among `parts` blocks of `threads`,
    which comes through memory: if LLVM knew its bits, it would turn sums into `or`, which keep a register for each address."""
    name = f"@{fn.name}.started"
    fn.declare(f"{name} = internal addrspace(3) global [2 x i64] undef, align 16")
    places = name, fn.ahead(f"getelementptr i64, ptr addrspace(3) {name}, i64 1")
    first, block = fn.label("first"), fn.label("started")
    fn.branch_if(fn.instr(f"icmp eq i64 {thread}, 0"), first, block)
    fn.block(first)
    number = fn.instr('atomicrmw add ptr %meeting, i64 1 syncscope("device") monotonic, align 8')
    rank = fn.instr(f"mul i64 {fn.instr(f'and i64 {number}, {parts - 1}')}, {threads}")
    for place, value in zip(places, (number, rank), strict=True):
        fn.emit(f"store i64 {value}, ptr addrspace(3) {place}, align 8")
    fn.branch(block)
    fn.block(block)
    Team(fn, threads, thread).wait()
    block, rank = (fn.instr(f"load i64, ptr addrspace(3) {place}, align 8") for place in places)
    return block, rank


def _bits(v: Val) -> int:
    element = element_type(v.dtype)
    return {"i1": 1, "half": 16, "float": 32, "double": 64}.get(element) or int(element[1:])


def _shared_type(v: Val) -> str:
    return "i8" if v.dtype == BOOL else element_type(v.dtype)

