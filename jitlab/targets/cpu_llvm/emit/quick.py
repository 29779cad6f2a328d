"""Phases as the quick tier gets them: the same bits from fewer instructions, which cost its compiler less.

Each loop has one body, in which every vector is under a mask, in place of one for whole vectors and one for what is left; the
chains of a sum take turns in it. Vectors are as wide as one register where no sum depends on it, and functions of mathematics
are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from jitlab.ir import Poly
from jitlab.ir.programs.program import ONE, Finish, For, Load, Partial, Step, Store, all_expressions, walk
from jitlab.targets.cpu_llvm.calls.context import ContextLayout
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.program_phases import Phase
from jitlab.targets.llvm.values import Val, part_dtype
from jitlab.targets.llvm.vector_emitter import VectorEmitter

from .phase import PhaseWriter
from .reductions import Chains, Running


def quick_function(layout: ContextLayout, phase: Phase, name: str) -> FunctionText:
    """The function of one phase for the quick tier."""
    return QuickWriter(layout, phase, name).function()


class QuickWriter(PhaseWriter):
    """Writes what PhaseWriter writes, shorter."""

    def __init__(self, layout: ContextLayout, phase: Phase, name: str) -> None:
        super().__init__(layout, phase, name)
        self.fn.shares = True

    def _vectors(self, s: For) -> tuple[int, int]:
        return super()._vectors(s) if any(isinstance(inner, Step) for inner in s.body) else (1, 1)

    def _scan_in_rows(self, s: For) -> For | None:
        return None

    def _each_vector(
        self, s: For, lo: str, hi: str, emitter: VectorEmitter, one: Callable[[str, Val | None], None]
    ) -> None:
        if self._is_masked(s):
            self._rest(lo, hi, emitter, one)
        else:
            super()._each_vector(s, lo, hi, emitter, one)

    def _is_masked(self, s: For) -> bool:
        """Is its memory read and written under a mask by one instruction each?"""
        least = self.features.masked_bytes
        together = all(part_dtype(dtype).itemsize >= least for dtype, is_spread in _accesses(s) if not is_spread)
        spread = all(part_dtype(dtype).itemsize >= 4 and least == 1 for dtype, is_spread in _accesses(s) if is_spread)
        return least > 0 and together and spread

    def _stepping(self, steps: list[Step], s: For, lo: str, hi: str, width: int, emitter: VectorEmitter | None = None) -> None:
        """One loop, over blocks where there are some, and one in it. What is less than a round goes to the first chain."""
        if emitter is not None and not self._is_masked(s):
            super()._stepping(steps, s, lo, hi, width, emitter)
            return
        fn, c = self.fn, self._chains(steps, s, width, emitter)
        memory = [self._turning(r, c) for r in c.running]
        c.slots = [
            [[self._of_chain(*part, str(chain)) for part in parts] for parts in memory] for chain in range(c.count)
        ]  # fmt: skip

        def block(start: str) -> None:
            self._reset(c)
            end = hi
            if c.block:
                last = fn.instr(f"add i64 {start}, {c.block}")
                end = fn.instr(f"select i1 {fn.instr(f'icmp slt i64 {last}, {hi}')}, i64 {last}, i64 {hi}")
            rounds = fn.instr(f"and i64 {fn.instr(f'sub i64 {end}, {start}')}, {-c.round}")

            def one(i: str) -> None:
                slots = c.slots[0] if c.count == 1 else self._turn(memory, c, fn.instr(f"sub i64 {i}, {start}"), rounds)
                mask = None if emitter is None else emitter.mask_first(fn.instr(f"sub i64 {end}, {i}"))
                self._one(c, i, mask, slots)

            self._while_below(start, end, str(width), one)
            self._join(c)

        if c.block:
            self._while_below(lo, hi, str(c.block), block)
        else:
            self._if(fn.instr(f"icmp slt i64 {lo}, {hi}"), lambda: block(lo))

    def _turning(self, r: Running, c: Chains) -> list[tuple[str, str]]:
        """Memory for the running values of all chains: of each part its type and where the first one is."""
        types = [c.inner.type(part.dtype, c.lanes) for part in self._initial(r, c.inner, c.lanes) for _ in c.inner.parts(part)]
        return [(type, self.fn.alloca(f"[{c.count} x {type}]")) for type in types]

    def _of_chain(self, type: str, first: str, chain: str) -> str:
        return first if chain == "0" else self.fn.instr(f"getelementptr {type}, ptr {first}, i64 {chain}")

    def _turn(self, memory: list[list[tuple[str, str]]], c: Chains, done: str, rounds: str) -> list[list[str]]:
        """The slots of the chain that comes after so many elements of a block."""
        fn, width = self.fn, c.round // c.count
        turn = fn.instr(f"and i64 {fn.instr(f'udiv i64 {done}, {width}')}, {c.count - 1}")
        chain = fn.instr(f"select i1 {fn.instr(f'icmp slt i64 {done}, {rounds}')}, i64 {turn}, i64 0")
        return [[self._of_chain(*part, chain) for part in parts] for parts in memory]

    def _while_below(self, lo: str, hi: str, step: str, body: Callable[[str], object]) -> None:
        """for i in lo..hi step `step`, the last of which may go beyond."""
        fn = self.fn
        head, inside, after = fn.label("loop"), fn.label("body"), fn.label("after")
        before = fn.current
        fn.branch(head)
        fn.block(head)
        i = fn.phi("i64", [(lo, before)])
        fn.branch_if(fn.instr(f"icmp slt i64 {i}, {hi}"), inside, after)
        fn.block(inside)
        with self.scope():
            body(str(i))
        i.add_incoming(fn.instr(f"add i64 {i}, {step}"), fn.current)
        fn.branch(head)
        fn.block(after)


def _accesses(s: For) -> Iterator[tuple[np.dtype, bool]]:
    """What a loop over vectors reads and writes: elements' dtypes, and whether those of a vector are apart."""
    for access in (*walk([s]), *all_expressions([s])):
        if isinstance(access, (Store, Load)):
            yield access.buffer.dtype, bool(access.gathered) or access.offset.coefficient(s.var) not in (Poly(), ONE)
        elif isinstance(access, (Partial, Finish)):
            yield from ((buffer.dtype, False) for buffer in access.partials)
