"""KernelWriter: one phase of a Program as a function that each thread of a grid runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from jitlab.ir.programs.program import (
    ASCENDING,
    ONE,
    PARALLEL,
    Assign,
    Buffer,
    CheckedIndex,
    Finish,
    For,
    If,
    Index,
    Let,
    Load,
    Partial,
    Repeat,
    Statement,
    Step,
    Store,
    all_expressions,
    walk,
    written,
)
from jitlab.targets.gpu_cuda.gpu_driver import KernelFunction, Parameter
from jitlab.targets.llvm.expressions import I64
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.program_phases import Phase, changes
from jitlab.targets.llvm.values import Val, element_type, part_dtype

from .held_rows import HeldRow
from .schedules import TILE, Schedule, Unscheduled, has_rows, nest_of, side_by_side, turned_loads
from .slots import ContextSlots
from .team_reductions import TeamReductions
from .teams import Team, TeamOfBlocks, special_register, started


class KernelWriter(TeamReductions):
    """Writes the kernel of one phase.

    `team`: the threads that run a statement together; None where each runs it for itself. Together, they all evaluate what is
    the same for all of them, spread over loops whose iterations may run at once, and one of them stores. They wait for each
    other where a statement reads or overwrites what others have stored.
    """

    text: ClassVar[type[FunctionText]] = FunctionText

    def __init__(self, slots: ContextSlots, phase: Phase, schedule: Schedule, name: str) -> None:
        self.slots, self.phase, self.schedule = slots, phase, schedule
        self.parameters: list[Parameter] = []
        super().__init__(self.text(name, self._params()), schedule)
        self.dirty: set[str] = set()  # buffers that the team has stored into since it last waited,
        self.seen: set[str] = set()  # and those it has read
        self.turned: dict[tuple[str, Index], str] = {}  # of a tile: where in shared memory what lies the other way is
        self.fn.linkage, self.fn.attributes = "ptx_kernel", f'nounwind "nvvm.maxntid"="{schedule.threads}"'
        if schedule.held:  # enough warps that some load while others compute
            self.fn.attributes += f' "nvvm.minctasm"="{schedule.held_blocks}"'

    # -- parameters

    def _params(self) -> list[tuple[str, str]]:
        slots, phase = self.slots, self.phase
        params: list[tuple[str, str]] = []

        def add(type: str, name: str, offset: int, bytes: int = 8) -> None:
            params.append((type, name))
            self.parameters.append(Parameter(offset, bytes))

        for b in phase.buffers:
            facts = "noalias" + ("" if b.name in slots.stored else " readonly")
            add(f"ptr addrspace(1) {facts}", f"g.{b.name}", 8 * slots.buffers[b.name])
        for name in slots.symbols:
            add("i64", f"n.{name}", 8 * slots.symbols[name])
        for name, dtype in slots.program.scalars:
            if name in phase.scalars:
                part = part_dtype(dtype)
                for k in range(2 if dtype.kind == "c" else 1):
                    type = "i8" if dtype.kind == "b" else element_type(dtype)
                    add(type, f"c.{name}.{k}", slots.scalar_offset(name, k), part.itemsize)
        add("ptr addrspace(1)", "g.status", 8 * slots.STATUS)
        add("ptr addrspace(1)", "g.kept", 8 * slots.KEPT)
        if self.schedule.meeting is not None:
            add("ptr addrspace(1)", "g.meeting", 8 * slots.buffers[self.schedule.meeting.name])
        return params

    def _take_parameters(self) -> None:
        fn, phase = self.fn, self.phase
        for b in phase.buffers:
            fn.ahead_emit(f"%b.{b.name} = addrspacecast ptr addrspace(1) %g.{b.name} to ptr")
        for name in ("status", "kept"):
            fn.ahead_emit(f"%{name} = addrspacecast ptr addrspace(1) %g.{name} to ptr")
        for name, dtype in self.slots.program.scalars:
            if name not in phase.scalars:
                continue
            if dtype.kind == "b":
                value = Val(dtype, fn.ahead(f"trunc i8 %c.{name}.0 to i1"))
            else:
                value = Val(dtype, f"%c.{name}.0", 0, f"%c.{name}.1" if dtype.kind == "c" else "")
            self.scopes[0]["scalar", name] = value
        kept = self.slots.kept
        for name, variable in phase.variables.items():
            if name in kept:
                self._assign(variable, self._kept_value(name, variable.dtype))
        for name, dtype in phase.wanted.items():
            if name in kept and name not in phase.bound:
                self.locals[name] = self._kept_value(name, dtype)

    def _kept_place(self, name: str) -> str:
        return self.fn.instr(f"getelementptr i8, ptr %kept, i64 {16 * self.slots.kept[name]}")

    def _kept_value(self, name: str, dtype: np.dtype) -> Val:
        return self.scalar.load(self._kept_place(name), dtype, lanes=0, align=8)

    def _passed(self, symbol: str) -> str:
        return f"%n.{symbol}"

    # -- the function

    def function(self) -> tuple[FunctionText, KernelFunction]:
        """Its text, and how it is launched. Raises Unscheduled."""
        fn, phase, schedule = self.fn, self.phase, self.schedule
        self._take_parameters()
        thread, block = special_register(fn, "tid.x"), special_register(fn, "ctaid.x")
        blocks = special_register(fn, "nctaid.x")
        threads = schedule.threads
        if schedule.kind == "block":
            self.team = Team(fn, threads, thread)
            self._statements(phase.statements)
            self._leave(thread)
        elif schedule.kind == "flat":
            first = fn.ahead(f"add i64 {fn.ahead(f'mul i64 {block}, {threads}')}, {thread}")
            step = fn.ahead(f"mul i64 {blocks}, {threads}")
            if schedule.in_tiles:
                self._tiles_of(thread, block, blocks)
            elif schedule.in_planes:
                self._planes(first, step)
            else:
                self._spread(schedule.nest, first, step, schedule.lanes)
        else:
            self._rows(thread, block, blocks)
        fn.ret()
        foreign = [d for d in fn.declarations if d.startswith("declare ") and "@llvm." not in d]
        if foreign:
            raise Unscheduled("gpu.library", operation=foreign[0].split("@")[1].split("(")[0])
        return fn, KernelFunction(fn.name, tuple(self.parameters))

    def _planes(self, first: str, step: str) -> None:
        """Rows along the grid's second axis, neighbours in them along the first: no number of an iteration is divided."""
        nest, fn = self.schedule.nest, self.fn

        def row(i: str) -> None:
            with self._placed(nest[:-1], i):
                self._spread(nest[-1:], first, step, self.schedule.lanes)

        self._count(special_register(fn, "ctaid.y"), self._total(nest[:-1]), special_register(fn, "nctaid.y"), row)

    def _tiles_of(self, thread: str, block: str, blocks: str) -> None:
        """A tile of the two innermost loops a block: what lies the other way is put into shared memory by threads that are
        neighbours there, and taken out by those that are neighbours here. Its rows are padded, for the banks."""
        fn, nest = self.fn, self.schedule.nest
        extents = [self._extent(loop.extent) for loop in nest[-2:]]
        down, across = (fn.instr(f"udiv i64 {fn.instr(f'add i64 {n}, {TILE - 1}')}, {TILE}") for n in extents)
        total = fn.instr(f"mul i64 {fn.instr(f'mul i64 {down}, {across}')}, {self._total(nest[:-2]) if nest[:-2] else 1}")
        x, y = fn.ahead(f"and i64 {thread}, {TILE - 1}"), fn.ahead(f"udiv i64 {thread}, {TILE}")
        ys = [fn.ahead(f"add i64 {y}, {k}") for k in range(0, TILE, self.schedule.threads // TILE)]
        loads = turned_loads(nest)
        for k, e in enumerate(loads):
            size = f"[{TILE * (TILE + 1)} x {element_type(e.buffer.dtype)}]"
            fn.declare(f"@{fn.name}.tile{k} = internal addrspace(3) global {size} undef, align 16")
        team = Team(fn, self.schedule.threads, thread)

        def place(k: int, row: str, column: str) -> str:
            at = fn.instr(f"add i64 {fn.instr(f'mul i64 {row}, {TILE + 1}')}, {column}")
            type = element_type(loads[k].buffer.dtype)
            return fn.instr(f"getelementptr {type}, ptr addrspace(3) @{fn.name}.tile{k}, i64 {at}")

        def inside(corner: Sequence[str], offsets: Sequence[str], body: Callable[[], None]) -> None:
            fits = "true"
            for loop, start, offset, end in zip(nest[-2:], corner, offsets, extents, strict=True):
                self.vars[loop.var] = i = fn.instr(f"add nsw i64 {start}, {offset}")
                fits = fn.instr(f"and i1 {fits}, {fn.instr(f'icmp slt i64 {i}, {end}')}")
            self._if(fits, body)

        def put(k: int, row: str) -> None:
            value = self._eval(loads[k])
            align = loads[k].buffer.dtype.itemsize
            fn.emit(f"store {element_type(value.dtype)} {value.text}, ptr addrspace(3) {place(k, row, x)}, align {align}")

        def take(row: str) -> None:
            self.turned = {(e.buffer.name, e.offset): place(k, x, row) for k, e in enumerate(loads)}
            self._statements(nest[-1].body)
            self.turned = {}

        def tile(i: str) -> None:
            rest = fn.instr(f"udiv i64 {i}, {across}")
            corner = [fn.instr(f"mul i64 {fn.instr(f'urem i64 {n}, {m}')}, {TILE}") for n, m in ((rest, down), (i, across))]
            with self._placed(nest[:-2], fn.instr(f"udiv i64 {rest}, {down}")):
                for k in range(len(loads)):
                    for row in ys:
                        inside(corner, (x, row), lambda k=k, row=row: put(k, row))  # type: ignore[misc]
                team.wait()
                for row in ys:
                    inside(corner, (row, x), lambda row=row: take(row))  # type: ignore[misc]
                team.wait()  # before the next tile is put there

        self._count(block, total, blocks, tile)

    def _rows(self, thread: str, block: str, blocks: str) -> None:
        """Each team takes iterations of the nest, one after the other."""
        fn, schedule = self.fn, self.schedule
        teams = schedule.threads // schedule.team
        rank = thread if teams == 1 else fn.ahead(f"and i64 {thread}, {schedule.team - 1}")
        number = block
        if teams > 1:
            own = fn.ahead(f"udiv i64 {thread}, {schedule.team}")
            number = fn.ahead(f"add i64 {fn.ahead(f'mul i64 {block}, {teams}')}, {own}")
        self.team = Team(fn, schedule.team, rank)
        step = fn.ahead(f"mul i64 {blocks}, {teams}")
        total, body = self._total(schedule.nest), schedule.nest[-1].body
        together = self._in_parts(thread) if schedule.parts > 1 else None
        self.holding = HeldRow(self, body, together or self.team) if schedule.held else None
        if together is not None:
            number, step = self._shared_rows(together, blocks, total)
        for b in self.phase.buffers:
            if b.kind == "row":  # each team has its own
                size = poly_product(self, b)
                offset = fn.instr(f"mul i64 {fn.instr(f'mul i64 {size}, {b.dtype.itemsize}')}, {number}")
                fn.emit(f"%r.{b.name} = getelementptr i8, ptr %b.{b.name}, i64 {offset}")

        def rows(body: Callable[[], None]) -> None:
            def row(i: str) -> None:
                with self._placed(schedule.nest, i):
                    if together is not None:
                        together.begin(i)
                    body()

            self._count(number, total, step, row)

        def whole() -> None:
            self._turn(body, lambda: self._block(body))

        holding = self.holding
        if holding is None:
            rows(whole)
        else:
            holding.either(lambda: rows(holding.row), lambda: rows(whole))

    def _in_parts(self, thread: str) -> TeamOfBlocks:
        """The blocks that have a row together."""
        fn, parts, threads, meeting = self.fn, self.schedule.parts, self.schedule.threads, self.schedule.meeting
        assert meeting is not None and meeting.shape[-1].value is not None
        fn.ahead_emit("%meeting = addrspacecast ptr addrspace(1) %g.meeting to ptr")
        block, first = started(fn, thread, threads, parts)
        part, rank = fn.instr(f"and i64 {block}, {parts - 1}"), fn.instr(f"add i64 {first}, {thread}")
        words = meeting.shape[-1].value // parts
        return TeamOfBlocks(fn, parts * threads, rank, threads=threads, parts=parts, block=block, part=part, words=words)

    def _shared_rows(self, team: TeamOfBlocks, blocks: str, total: str) -> tuple[str, str]:
        """The block's first row, and how far the next one is from it. Where rows are not held, or the GPU does not run so many
        blocks at once, which the grid says, each block has rows of its own: as many blocks as there is scratch for."""
        fn, holding, parts = self.fn, self.holding, team.parts
        assert holding is not None
        has_parts = fn.instr(f"icmp uge i64 {blocks}, {parts}")
        holding.condition = fn.instr(f"and i1 {holding.condition}, {has_parts}")
        shift = parts.bit_length() - 1
        together = fn.instr(f"lshr i64 {team.block}, {shift}"), fn.instr(f"lshr i64 {blocks}, {shift}")
        number, step = team.block, blocks
        if any(b.kind == "row" for b in self.phase.buffers):
            step = fn.instr(f"select i1 {has_parts}, i64 {together[1]}, i64 {blocks}")
            number = fn.instr(f"select i1 {fn.instr(f'icmp ult i64 {number}, {step}')}, i64 {number}, i64 {total}")
        first, apart = (
            fn.instr(f"select i1 {holding.condition}, i64 {a}, i64 {b}") for a, b in zip(together, (number, step), strict=True)
        )
        return first, apart

    def _load(self, e: Load) -> Val:
        held = self.holding
        place = self.turned.get((e.buffer.name, e.offset))
        if place is not None:
            type = element_type(e.buffer.dtype)
            return Val(e.buffer.dtype, self.fn.instr(f"load {type}, ptr addrspace(3) {place}, align {e.buffer.dtype.itemsize}"))
        return held.load(e) if held is not None and held.is_in_loop else super()._load(e)

    def _store(self, s: Store) -> None:
        held = self.holding
        if held is not None and held.is_in_loop:
            held.store(s)
        else:
            super()._store(s)

    def _pointer(self, buffer: Buffer) -> str:
        own = buffer.kind == "row" and self.schedule.kind == "rows"
        return f"%r.{buffer.name}" if own else f"%b.{buffer.name}"

    def _leave(self, thread: str) -> None:
        """What later phases want is put where they find it."""
        fn, phase, kept = self.fn, self.phase, self.slots.kept
        values = [(name, self.locals[name]) for name in phase.bound if name in kept]
        values += [(n, self._read_variable(v)) for n, v in phase.variables.items() if n in kept and f"={n}" in phase.changes]
        if values:
            def store() -> None:
                for name, value in values:
                    self.scalar.store(self._kept_place(name), value, align=8)

            self._if(fn.instr(f"icmp eq i64 {thread}, 0"), store)

    # -- statements

    def _statements(self, statements: Sequence[Statement]) -> None:
        for s in statements:
            self._statement(s)

    def _block(self, statements: Sequence[Statement]) -> None:
        with self.scope():
            self._statements(statements)

    def _statement(self, s: Statement) -> None:
        if self.team is not None and not isinstance(s, (If, Repeat)):
            self._wait_for(s)
        if isinstance(s, For):
            self._for(s)
        elif isinstance(s, Store):
            self._once(lambda: self._store(s))
        elif isinstance(s, Partial):
            self._once(lambda: self._store_partial(s))
        elif isinstance(s, Finish):
            self._finish_partials(s)
        elif isinstance(s, Step):
            self._step(s)
        elif isinstance(s, Let):
            self.locals[s.name] = self._eval(s.value)
        elif isinstance(s, Assign):
            self._assign(s.variable, self._eval(s.value))
        elif isinstance(s, If):
            self._branch(s)
        elif isinstance(s, Repeat):
            self._repeat(s)
        else:
            raise Unscheduled("gpu.statement", statement=type(s).__name__)
        if not isinstance(s, (For, If, Repeat)):
            self._forget(changes([s]))

    def _once(self, store: Callable[[], None]) -> None:
        """By one thread, where several have come here together."""
        if self.team is None:
            store()
        else:
            self._if(self.fn.instr(f"icmp eq i64 {self.team.rank}, 0"), store)

    def _store_partial(self, s: Partial) -> None:
        for buffer, value in zip(s.partials, self.partial[s.accumulator.name], strict=True):
            self.e.store(self._address(buffer, s.index), value)

    def _branch(self, s: If) -> None:
        fn = self.fn
        if self.team is not None:
            self._touch(_reads([Let("", s.condition)]), set())
        condition = self._eval(s.condition)
        then, orelse, after = fn.label("if"), fn.label("else"), fn.label("fi")
        fn.branch_if(condition.text, then, orelse if s.orelse else after)
        before, marks = (set(self.dirty), set(self.seen)), []
        for label, block in ((then, s.then), (orelse, s.orelse)):
            self.dirty, self.seen = set(before[0]), set(before[1])
            if block or label == then:
                fn.block(label)
                self._block(block)
                fn.branch(after)
            marks.append((self.dirty, self.seen))
        self.dirty, self.seen = (marks[0][k] | marks[1][k] for k in (0, 1))
        fn.block(after)
        self._forget(changes([s]))

    def _repeat(self, s: Repeat) -> None:
        fn = self.fn
        self._forget(changes([s]))
        count = None if s.count is None else self._poly(s.count)
        head, after = fn.label("turn"), fn.label("turns.done")
        self._meet([*s.before, *s.body])
        before = fn.current
        fn.branch(head)
        fn.block(head)
        i = fn.phi("i64", [("0", before)])
        with self.scope():
            self.symbols[s.symbol] = str(i)
            if count is not None:
                body = fn.label("turn.body")
                fn.branch_if(fn.instr(f"icmp slt i64 {i}, {count}"), body, after)
                fn.block(body)
            self._statements(s.before)
            if s.test is not None:
                if self.team is not None:
                    self._touch(_reads([Let("", s.test)]), set())
                test, body = self._eval(s.test), fn.label("turn.go")
                fn.branch_if(test.text, body, after)
                fn.block(body)
            self._statements(s.body)
            self._meet([*s.before, *s.body])
            i.add_incoming(fn.instr(f"add i64 {i}, 1"), fn.current)
            fn.branch(head)
        fn.block(after)

    # -- waiting

    def _touch(self, reads: set[str], writes: set[str]) -> None:
        """A statement comes that reads and stores so: the team waits where that is too early."""
        assert self.team is not None
        if reads & self.dirty or writes & (self.dirty | self.seen):
            self.team.wait()
            self.dirty, self.seen = set(), set()
        self.seen |= reads

    def _wait_for(self, s: Statement) -> None:
        writes = {b.name for inner in walk([s]) for b in written(inner)}
        self._touch(_reads([s]), writes)
        self.dirty |= writes

    def _meet(self, statements: Sequence[Statement]) -> None:
        """At the start of a turn: nobody is still in the one before."""
        if self.team is not None and any(written(s) for s in walk(statements)):
            self.team.wait()
            self.dirty, self.seen = set(), set()

    def _turn(self, statements: Sequence[Statement], body: Callable[[], None]) -> None:
        """An iteration of a loop that a team runs together."""
        inner = {b.name for s in walk(statements) for b in written(s)} & _reads(statements)
        self.dirty, self.seen = set(), set()
        body()
        if inner and self.team is not None:
            self.team.wait()
        self.dirty, self.seen = set(), set()

    # -- loops

    def _for(self, s: For) -> None:
        self._forget(changes([s]))
        for accumulator in s.accumulators:
            self._begin(accumulator, s)
        steps = [inner for inner in s.body if isinstance(inner, Step)]
        team = self.team
        if self.holding is not None and self.holding.is_on:
            self.together.update(step.accumulator.name for step in steps)
            self.holding.loop(s)
        elif team is None:
            self._count("0", self._extent(s.extent), "1", lambda i: self._body(s, i))
        elif any(step.bound for step in steps):
            raise Unscheduled("gpu.scan")
        elif steps:
            self._divide(s, team)
        elif s.kind == PARALLEL and not has_rows(s.body):
            with self._alone():
                nest = nest_of(s)
                self._spread(nest, team.rank, str(team.size), self._lanes_of(nest[-1]))
        elif s.kind == ASCENDING:
            self._ascend(s, team)
        else:
            self._meet(s.body)
            self._count("0", self._extent(s.extent), "1", lambda i: self._turn_of(s, i))
        if s.accumulators:
            self._end(s)

    def _turn_of(self, s: For, i: str) -> None:
        self.vars[s.var] = i
        self._block(s.body)
        self._meet(s.body)
        del self.vars[s.var]

    def _spread(self, nest: Sequence[For], first: str, step: str, lanes: int) -> None:
        """The iterations of a nest over threads; those of its innermost loop in vectors, where they lie so."""
        total = self._total(nest)

        def one(i: str) -> None:
            with self._placed(nest, i):
                self._statements(nest[-1].body)

        if lanes == 1:
            self._count(first, total, step, one)
            return
        fn, loop = self.fn, nest[-1]
        accesses = [(a.buffer, a.offset) for a in side_by_side(loop.body, loop.var)]
        fits = self._fits(accesses, loop.var, lanes)
        if len(nest) > 1:  # no vector lies in two rows
            low = fn.instr(f"and i64 {self._extent(loop.extent)}, {lanes - 1}")
            fits = fn.instr(f"and i1 {fits}, {fn.instr(f'icmp eq i64 {low}, 0')}")
        whole = fn.instr(f"and i64 {total}, {-lanes}")
        whole = fn.instr(f"select i1 {fits}, i64 {whole}, i64 0")
        self._count(
            fn.instr(f"mul nsw i64 {first}, {lanes}"), whole, fn.instr(f"mul nsw i64 {step}, {lanes}"),
            lambda i: self._one_vector(nest, i, lanes),
        )  # fmt: skip
        self._count(fn.instr(f"add nsw i64 {whole}, {first}"), total, step, one)

    def _one_vector(self, nest: Sequence[For], i: str, lanes: int) -> None:
        with self._placed(nest, i):
            with self._in_vector(nest[-1].var, self.vars[nest[-1].var], lanes):
                self._statements(nest[-1].body)

    def _ascend(self, s: For, team: Team) -> None:
        """So many iterations at once as there are threads, each statement for all of them before the next one."""
        fn = self.fn
        if not all(isinstance(inner, Store) for inner in s.body):
            self._meet(s.body)
            with self._alone():
                self._if(
                    fn.instr(f"icmp eq i64 {team.rank}, 0"),
                    lambda: self._count("0", self._extent(s.extent), "1", lambda i: self._body(s, i)),
                )
            return
        end = self._extent(s.extent)

        def turn(start: str) -> None:
            i = fn.instr(f"add nsw i64 {start}, {team.rank}")
            inside = fn.instr(f"icmp slt i64 {i}, {end}")
            self.vars[s.var] = fn.instr(f"select i1 {inside}, i64 {i}, i64 0")
            for store in s.body:
                assert isinstance(store, Store)
                with self.scope():
                    self._eval(store.value)
                    for e, _ in store.gathered:
                        self._eval(e)
                    team.wait()
                    self._if(inside, lambda store=store: self._store(store))  # type: ignore[misc]
                    team.wait()
                self._forget(changes([store]))
            del self.vars[s.var]

        self._count("0", end, str(team.size), turn)

    # -- checks

    def _checked(self, expr: CheckedIndex) -> Val:
        """The wrapped index; where it is out of range, 0, and the status says which check has failed: the host looks at it."""
        e = self.e
        wrapped, bad = self._wrapped(expr)
        note, fine = self.fn.label("out.of.range"), self.fn.label("in.range")
        condition = bad.text if bad.lanes <= 1 else self._any(bad)
        self.fn.branch_if(condition, note, fine, likely=False)
        self.fn.block(note)
        self.fn.emit(f"store atomic i32 {expr.code + 1}, ptr %status monotonic, align 4")
        self.fn.branch(fine)
        self.fn.block(fine)
        return e.select(bad, e.constant(0, I64), wrapped)

    def _any(self, x: Val) -> str:
        found = "false"
        for k in range(x.lanes):
            found = self.fn.instr(f"or i1 {found}, {self.e.extract(x, k).text}")
        return found


def poly_product(writer: KernelWriter, buffer: Buffer) -> str:
    """How many elements a buffer has, rounded up so that the next one starts at a multiple of 256 bytes."""
    size = ONE
    for n in buffer.shape:
        size = size * n
    text = writer._poly(size)
    up = writer.fn.ahead(f"add i64 {text}, 255")
    return writer.fn.ahead(f"and i64 {up}, -256")


def _reads(statements: Sequence[Statement]) -> set[str]:
    names = {e.buffer.name for e in all_expressions(statements) if isinstance(e, Load)}
    return names | {b.name for s in walk(statements) if isinstance(s, Finish) for b in s.partials}

