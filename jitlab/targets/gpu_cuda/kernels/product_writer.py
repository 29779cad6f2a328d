"""ProductWriter: the kernel of a product of matrices, a tile of the result a block, in full precision of its dtype."""

from __future__ import annotations

from collections.abc import Sequence

from jitlab.ir.programs.program import Buffer, Gemm, Index, walk
from jitlab.targets.gpu_cuda.gpu_driver import KernelFunction
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.values import element_type

from .kernel_writer import KernelWriter
from .schedules import tile_of
from .teams import Team, special_register


class ProductWriter(KernelWriter):
    """Writes the kernel of a phase that is one product, or one in parallel loops over batches."""

    def function(self) -> tuple[FunctionText, KernelFunction]:
        fn, nest = self.fn, self.schedule.nest
        self._take_parameters()
        (s,) = [inner for inner in walk(self.phase.statements) if isinstance(inner, Gemm)]
        thread, block = special_register(fn, "tid.x"), special_register(fn, "ctaid.x")
        blocks = special_register(fn, "nctaid.x")
        self.tile = tile = tile_of(s.out.dtype)
        self.team = Team(fn, tile.threads, thread)
        self.thread = thread
        self.m, self.n, self.k = (self._poly(p) for p in (s.m, s.n, s.k))
        rows, columns = (self._tiles(extent) for extent in (self.m, self.n))
        total = fn.instr(f"mul nsw i64 {rows}, {columns}")
        batches = self._total(nest) if nest else "1"
        total = fn.instr(f"mul nsw i64 {total}, {batches}")

        def one(i: str) -> None:
            column, rest = fn.instr(f"urem i64 {i}, {columns}"), fn.instr(f"udiv i64 {i}, {columns}")
            row, batch = fn.instr(f"urem i64 {rest}, {rows}"), fn.instr(f"udiv i64 {rest}, {rows}")
            if nest:
                with self._placed(nest, batch):
                    self._tile_of(s, row, column)
            else:
                self._tile_of(s, row, column)

        self._count(block, total, blocks, one)
        fn.ret()
        return fn, KernelFunction(fn.name, tuple(self.parameters))

    def _tiles(self, extent: str) -> str:
        more = self.fn.instr(f"add nsw i64 {extent}, {self.tile.side - 1}")
        return self.fn.instr(f"udiv i64 {more}, {self.tile.side}")

    def _tile_of(self, s: Gemm, row: str, column: str) -> None:
        """One tile: sums over `deep` at a time, whose operands come through shared memory; the next ones are under way."""
        fn, tile, dtype = self.fn, self.tile, s.out.dtype
        element = element_type(dtype)
        top, left = (fn.instr(f"mul nsw i64 {place}, {tile.side}") for place in (row, column))
        sides = [
            _Operand(self, "a", s.a, s.a_offset, self._poly(s.lda), s.transpose_a, top, self.m),
            _Operand(self, "b", s.b, s.b_offset, self._poly(s.ldb), not s.transpose_b, left, self.n),
        ]
        sums = [[fn.alloca(element, dtype.itemsize) for _ in range(tile.own)] for _ in range(tile.own)]
        for place in (place for line in sums for place in line):
            fn.emit(f"store {element} 0.0, ptr {place}")
        for side in sides:
            side.fetch("0", self.k)

        def step(at: str) -> None:
            for side in sides:
                side.put()
            assert self.team is not None
            self.team.wait()
            following = fn.instr(f"add nsw i64 {at}, {tile.deep}")
            for side in sides:
                side.fetch(following, self.k)
            for depth in range(tile.deep):
                self._add(sides, sums, depth, element)
            self.team.wait()

        self._count("0", self.k, str(tile.deep), step)
        self._give(s, sums, top, left, element)

    def _add(self, sides: Sequence[_Operand], sums: list[list[str]], depth: int, element: str) -> None:
        fn = self.fn
        a, b = (side.own(depth) for side in sides)
        suffix = {"float": "f32", "double": "f64"}[element]
        fn.declare(f"declare {element} @llvm.fma.{suffix}({element}, {element}, {element})")
        for line, x in zip(sums, a, strict=True):
            for place, y in zip(line, b, strict=True):
                old = fn.instr(f"load {element}, ptr {place}")
                new = fn.instr(f"call {element} @llvm.fma.{suffix}({element} {x}, {element} {y}, {element} {old})")
                fn.emit(f"store {element} {new}, ptr {place}")

    def _give(self, s: Gemm, sums: list[list[str]], top: str, left: str, element: str) -> None:
        """The sums to memory, where the result is so large."""
        fn, tile = self.fn, self.tile
        start = self._address(s.out, s.out_offset)
        rows = [fn.instr(f"add nsw i64 {top}, {place}") for place in self.places("a")]
        columns = [fn.instr(f"add nsw i64 {left}, {place}") for place in self.places("b")]
        inside = [fn.instr(f"icmp slt i64 {column}, {self.n}") for column in columns]
        for i, row in enumerate(rows):
            here, after = fn.label("row"), fn.label("row.done")
            fn.branch_if(fn.instr(f"icmp slt i64 {row}, {self.m}"), here, after)
            fn.block(here)
            line = fn.instr(f"mul nsw i64 {row}, {self.n}")
            for j in range(tile.own):
                store, done = fn.label("element"), fn.label("element.done")
                fn.branch_if(inside[j], store, done)
                fn.block(store)
                at = fn.instr(f"add nsw i64 {line}, {columns[j]}")
                place = fn.instr(f"getelementptr {element}, ptr {start}, i64 {at}")
                value = fn.instr(f"load {element}, ptr {sums[i][j]}")
                fn.emit(f"store {element} {value}, ptr {place}, align {s.out.dtype.itemsize}")
                fn.branch(done)
                fn.block(done)
            fn.branch(after)
            fn.block(after)

    def places(self, name: str) -> list[str]:
        """Of the thread's elements along a side of the tile: groups of neighbours, so far apart that a warp's lie in different
        banks."""
        fn, tile = self.fn, self.tile
        key = ("places", name)
        if key not in self.scopes[0]:
            own = fn.ahead(f"{'udiv' if name == 'a' else 'urem'} i64 {self.thread}, {tile.across}")
            first = fn.ahead(f"mul nsw i64 {own}, {tile.group}")
            self.scopes[0][key] = [
                fn.ahead(f"add nsw i64 {first}, {part * tile.across * tile.group + k}")
                for part in range(tile.own // tile.group) for k in range(tile.group)
            ]  # fmt: skip
        return self.scopes[0][key]  # type: ignore[no-any-return]


class _Operand:
    """One side of a product: its tile in shared memory, [depth][place], and what the thread loads of the next one.

    `along`: do neighbours in memory differ in their place along the tile's side, not in depth?
    """

    def __init__(
        self, writer: ProductWriter, name: str, buffer: Buffer, offset: Index, leading: str, along: bool, first: str,
        extent: str,
    ) -> None:  # fmt: skip
        self.writer, self.name, self.leading, self.along = writer, name, leading, along
        self.extent, self.first = extent, first
        self.dtype = buffer.dtype
        self.element = element_type(self.dtype)
        fn, tile = writer.fn, writer.tile
        self.start = writer._address(buffer, offset)
        self.row = tile.side + tile.group  # padded: stores of one depth's neighbours go to different banks
        self.shared = f"@{fn.name}.{name}"
        fn.declare(f"{self.shared} = internal addrspace(3) global [{tile.deep * self.row} x {self.element}] undef, align 16")
        self.fetched = [fn.alloca(self.element, self.dtype.itemsize) for _ in range(tile.each)]
        self.where = [self._where(number) for number in range(tile.each)]

    def _where(self, number: int) -> tuple[str, str]:
        """(place, depth) of an element that the thread loads."""
        fn, tile = self.writer.fn, self.writer.tile
        e = fn.instr(f"add nsw i64 {self.writer.thread}, {number * tile.threads}")
        if self.along:
            return fn.instr(f"urem i64 {e}, {tile.side}"), fn.instr(f"udiv i64 {e}, {tile.side}")
        return fn.instr(f"udiv i64 {e}, {tile.deep}"), fn.instr(f"urem i64 {e}, {tile.deep}")

    def fetch(self, at: str, end: str) -> None:
        """Load the thread's elements of the tile from depth `at` on; 0 beyond the matrix."""
        fn = self.writer.fn
        for memory, (place, depth) in zip(self.fetched, self.where, strict=True):
            i, k = fn.instr(f"add nsw i64 {self.first}, {place}"), fn.instr(f"add nsw i64 {at}, {depth}")
            inside = fn.instr(f"and i1 {fn.instr(f'icmp slt i64 {i}, {self.extent}')}, {fn.instr(f'icmp slt i64 {k}, {end}')}")
            load, after, before = fn.label("load"), fn.label("loaded"), fn.current
            fn.branch_if(inside, load, after)
            fn.block(load)
            slow, fast = (k, i) if self.along else (i, k)
            position = fn.instr(f"add nsw i64 {fn.instr(f'mul nsw i64 {slow}, {self.leading}')}, {fast}")
            address = fn.instr(f"getelementptr {self.element}, ptr {self.start}, i64 {position}")
            value = fn.instr(f"load {self.element}, ptr {address}, align {self.dtype.itemsize}")
            fn.branch(after)
            fn.block(after)
            found = fn.phi(self.element, [(value, load), ("0.0", before)])
            fn.emit(f"store {self.element} {found}, ptr {memory}")

    def put(self) -> None:
        """What was loaded into shared memory."""
        fn = self.writer.fn
        for memory, (place, depth) in zip(self.fetched, self.where, strict=True):
            at = fn.instr(f"add nsw i64 {fn.instr(f'mul nsw i64 {depth}, {self.row}')}, {place}")
            pointer = fn.instr(f"getelementptr {self.element}, ptr addrspace(3) {self.shared}, i64 {at}")
            value = fn.instr(f"load {self.element}, ptr {memory}")
            fn.emit(f"store {self.element} {value}, ptr addrspace(3) {pointer}, align {self.dtype.itemsize}")

    def own(self, depth: int) -> list[str]:
        """The thread's elements of one depth."""
        fn, tile = self.writer.fn, self.writer.tile
        values: list[str] = []
        for place in self.writer.places(self.name)[:: tile.group]:
            at = fn.instr(f"add nsw i64 {place}, {depth * self.row}")
            pointer = fn.instr(f"getelementptr {self.element}, ptr addrspace(3) {self.shared}, i64 {at}")
            type = f"<{tile.group} x {self.element}>"
            vector = fn.instr(f"load {type}, ptr addrspace(3) {pointer}, align {tile.group * self.dtype.itemsize}")
            values += [fn.instr(f"extractelement {type} {vector}, i64 {k}") for k in range(tile.group)]
        return values

