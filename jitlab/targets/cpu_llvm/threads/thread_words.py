"""What reports say of threads: of each kernel that takes long enough, on how many it may run, or why on one."""

from __future__ import annotations

from jitlab.ir import Lowered
from jitlab.messages import Message
from jitlab.targets.cpu_llvm.cpu_schedule import scheduled
from jitlab.targets.llvm.program_phases import phases_of

from .cut_phases import LEAST_NS, Cut, cut_of
from .pool import why_none
from .processors import allowed, chosen


def threads_of(lowered: Lowered) -> dict[str, Message]:
    """By the kernels' names. A kernel's word is that of the longest of its phases."""
    vectors = scheduled(lowered.program).vectors
    longest: dict[str, Cut] = {}
    for phase in phases_of(lowered.program):
        cut = cut_of(phase, lowered.symbol_values, id(phase.outer) in vectors)
        before = longest.get(phase.kernel)
        if before is None or cut.nanoseconds > before.nanoseconds:
            longest[phase.kernel] = cut
    return {name: _said(cut) for name, cut in longest.items() if cut.nanoseconds >= LEAST_NS}


def _said(cut: Cut) -> Message:
    threads = chosen() or allowed()
    if cut.piece and why_none():
        return Message(why_none())
    if cut.piece and threads == 1:
        return Message("threads.one")
    if cut.piece:
        return Message("threads.cut", {"threads": threads, "pieces": cut.pieces})
    return Message(f"threads.{cut.why}", {"iterations": cut.extent} if cut.why == "few" else {})
