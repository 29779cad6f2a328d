"""Program -> LLVM text: loops, vectors with masked tails, reductions in a fixed order, calls of a BLAS.

One module a Program. Each phase of each kernel is a function over a range of its outer loop (phase.py); `run` calls them in
order, a chunk at a time, and returns PAUSED after about 50 ms so that Python can look after its signals; the
user's loops have Python look after them where they are (`look`). Everything a call needs stands in its context (context.py).
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from jitlab.ops.base import Operation
from jitlab.support.later import Later
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.calls.context import ALONE, DONE, FAILED, PAUSED, STOPPED, ContextLayout
from jitlab.targets.cpu_llvm.cpu_schedule import Scheduled

if TYPE_CHECKING:
    from pathlib import Path

    from jitlab.targets.llvm import expressions, function_text
    from jitlab.targets.llvm.function_text import FunctionText
    from jitlab.targets.llvm.program_phases import Phase

    from . import phase as phases
    from . import quick
    from .phase import Slots
else:  # what is on disk is not written
    expressions, function_text = Later("jitlab.targets.llvm.expressions"), Later("jitlab.targets.llvm.function_text")
    phases, quick = Later(f"{__package__}.phase"), Later(f"{__package__}.quick")

__all__ = ["DONE", "FAILED", "PAUSED", "STOPPED", "ContextLayout", "identity", "module_for"]

hashlib, pathlib = Later("hashlib"), Later("pathlib")

#: When this was imported: what was edited since then is not what runs.
_imported_ns = time.time_ns()

COUNTER = "llvm.readcyclecounter" if platform.machine().lower() in ("x86_64", "amd64") else "llvm.readsteadycounter"


def module_for(program: Scheduled) -> str:
    """The LLVM module of a Program; its entry is `i64 @run(ptr context)`."""
    return function_text.module_text(functions_of(ContextLayout(program), phases.phase_function))


def quick_module_for(program: Scheduled) -> str:
    """One of the same bits, of which the quick tier's compiler makes code sooner."""
    return function_text.module_text(functions_of(ContextLayout(program), quick.quick_function, shares=False))


def identity(program: Scheduled) -> str:
    """What the module of a Program depends on, beside the processor and LLVM: equal for equal modules alone."""
    known = sources()
    return f"{known}\n{program.text}" if known else module_for(program)


def sources() -> str:
    """A hash of what makes plans and modules; "" where there is more than that: operations of others, or files that were
    edited."""
    return "" if Operation.has_others else _sources()


@cache
def _sources() -> str:
    """A hash of the files of the stages; "" where they are not what was imported. Files that are as they were, by the times
    and numbers that the system gives them, are not read again."""
    try:
        files = sorted(_files(str(pathlib.Path(__file__).parents[3])))
        if not files or max(changed for _, _, changed, *_ in files) > _imported_ns:
            return ""
        stamp = hashlib.sha256(f"{sys.version_info[:2]} {np.__version__} {files}".encode()).hexdigest()
        store = machine.object_cache()
        known = store.read(f"sources-{stamp}")
        if known is None:
            known = _contents([pathlib.Path(file) for file, *_ in files])
            store.write(f"sources-{stamp}", known)
    except OSError:
        return ""
    return known.decode()


def _files(package: str) -> Iterator[tuple[str, int, int, int, int, int]]:
    """Each file: its path, its size, when it was written, and what else differs where it is another one."""
    folders = [os.path.join(package, part) for part in ("ops", "ir", "passes", "cluster", "lower", "runtime", "targets")]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    info = entry.stat()
                    yield entry.path, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_dev, info.st_ino
                elif "." not in entry.name and entry.name != "__pycache__":
                    folders.append(entry.path)


def _contents(files: Sequence[Path]) -> bytes:
    digest = hashlib.sha256(f"{sys.version_info[:2]} {np.__version__}".encode())
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)} ".encode() + content)
    return str(digest.hexdigest()).encode()


def functions_of(
    layout: ContextLayout, write: Callable[[ContextLayout, Phase, str], FunctionText], *, shares: bool = True
) -> list[FunctionText]:
    """The functions of the module in order; `write` writes the one of a phase. `shares`: threads may do one together."""
    functions = [write(layout, phase, f"phase{number}") for number, phase in enumerate(layout.phases)]
    looking = [_look(layout)] if any("look" in f.called for f in functions) else []
    parts = [_part(layout, number) for number in layout.cut] if shares else []
    return [*looking, *functions, *parts, _entry(layout, shares)]


def _part(layout: ContextLayout, number: int) -> FunctionText:
    """part(ctx, lo, hi, rows): some iterations of a phase that is cut. `rows`: scratch of the thread's own; null: the
    context's."""
    fn = function_text.FunctionText(f"part{number}", [("ptr", "ctx"), ("i64", "lo"), ("i64", "hi"), ("ptr", "rows")], "i64")
    fn.linkage, fn.attributes = "internal", "nounwind"
    slot, rows = phases.Slots(fn), layout.program.rows
    values = []
    for buffer in layout.phases[number].buffers:
        value = slot(layout.buffers[buffer.name], "ptr")
        if buffer.kind == "row":
            first = fn.instr(f"ptrtoint ptr {slot(layout.buffers[rows[0].name], 'ptr')} to i64")
            offset = fn.instr(f"sub i64 {fn.instr(f'ptrtoint ptr {value} to i64')}, {first}")
            own = fn.instr(f"getelementptr i8, ptr %rows, i64 {offset}")
            value = fn.instr(f"select i1 {fn.instr('icmp eq ptr %rows, null')}, ptr {value}, ptr {own}")
        values.append(f", ptr {value}")
    fn.ret(fn.instr(f"call i64 @phase{number}(ptr %ctx, i64 %lo, i64 %hi{''.join(values)})"))
    return fn


def _look(layout: ContextLayout) -> FunctionText:
    """look(ctx): when the budget of cycles is spent, let other threads and Python's signal handlers run; 1 if one raised.

    The exception is taken out of the thread's state into the context: between here and Python lies code that knows of none.
    """
    fn = function_text.FunctionText("look", [("ptr", "ctx")], returns="i64")
    fn.linkage, fn.attributes = "internal", "noinline nounwind cold"
    slot = phases.Slots(fn)
    fn.declare(f"declare i64 @{COUNTER}()")
    now = fn.instr(f"call i64 @{COUNTER}()")
    spent = fn.instr(f"sub i64 {now}, {slot(layout.STARTED)}")
    over, ask, caught, given, fine = (fn.label(hint) for hint in ("over", "ask", "caught", "given", "fine"))
    fn.branch_if(fn.instr(f"icmp ugt i64 {spent}, {slot(layout.BUDGET)}"), over, fine)
    fn.block(over)
    fn.emit(f"store i64 {now}, ptr {slot.pointer(layout.STARTED)}")
    table = slot(layout.LOOK, "ptr")
    fn.branch_if(fn.instr(f"icmp eq ptr {table}, null"), fine, ask)
    fn.block(ask)
    hold, leave, enter, check, take, free = (
        fn.instr(f"load ptr, ptr {fn.instr(f'getelementptr ptr, ptr {table}, i64 {k}')}") for k in range(6)
    )
    state = fn.instr(f"call i32 {hold}()")
    fn.emit(f"call void {enter}(ptr {fn.instr(f'call ptr {leave}()')})")
    raised = fn.instr(f"icmp ne i32 {fn.instr(f'call i32 {check}()')}, 0")
    fn.branch_if(raised, caught, given)
    fn.block(caught)
    fn.emit(f"call void {take}({', '.join(f'ptr {slot.pointer(layout.ERROR + k)}' for k in range(3))})")
    fn.branch(given)
    fn.block(given)
    fn.emit(f"call void {free}(i32 {state})")
    fn.ret(fn.instr(f"zext i1 {raised} to i64"))
    fn.block(fine)
    fn.ret(0)
    return fn


def _entry(layout: ContextLayout, shares: bool) -> FunctionText:
    """run(ctx): each phase in chunks; DONE, PAUSED (call again), STOPPED, or FAILED + code."""
    fn = function_text.FunctionText("run", [("ptr", "ctx")], returns="i64")
    slot = phases.Slots(fn)
    fn.declare(f"declare i64 @{COUNTER}()")
    started = fn.instr(f"call i64 @{COUNTER}()")
    fn.emit(f"store i64 {started}, ptr {slot.pointer(layout.STARTED)}")
    budget = slot(layout.BUDGET)
    resume = slot(layout.RESUME_PHASE)
    times = fn.instr(f"load ptr, ptr {slot.pointer(layout.TIMES)}")
    timed = fn.instr(f"icmp ne ptr {times}, null")
    begun = fn.instr(f"or i64 {resume}, {slot(layout.RESUME_AT)}")
    first = fn.instr(f"and i1 {timed}, {fn.instr(f'icmp eq i64 {begun}, 0')}")
    note, dispatch = fn.label("note"), fn.label("dispatch")
    fn.branch_if(first, note, dispatch)
    fn.block(note)
    fn.emit(f"store i64 {started}, ptr {times}")
    fn.branch(dispatch)
    fn.block(dispatch)
    labels = [fn.label("phase") for _ in layout.phases]
    finished = fn.label("finished")
    cases = " ".join(f"i64 {i}, label %{label}" for i, label in enumerate(labels))
    fn.emit(f"switch i64 {resume}, label %{finished} [ {cases} ]")
    for number, phase in enumerate(layout.phases):
        after = labels[number + 1] if number + 1 < len(labels) else finished
        fn.block(labels[number])
        loop, body, paused, end, failed, on = (
            fn.label(hint) for hint in ("chunks", "chunk", "paused", "phase.end", "failed", "chunk.done")
        )
        at = slot(layout.RESUME_AT)
        extent = _extent(fn, slot, layout, phase)
        buffers = "".join(f", ptr {slot(layout.buffers[b.name], 'ptr')}" for b in phase.buffers)
        size = slot(layout.chunks + number)
        rests = fn.label("rests") if shares and number in layout.cut else ""
        if rests:
            _share(fn, layout, number, extent, (started, "-1" if phase.is_whole else budget), end, rests)
        before = fn.current
        fn.branch(loop)
        fn.block(loop)
        lo = fn.phi("i64", [(at, before)])
        fn.branch_if(fn.instr(f"icmp slt i64 {lo}, {extent}"), body, end)
        fn.block(body)
        left = fn.instr(f"sub i64 {extent}, {lo}")
        smaller = fn.instr(f"icmp slt i64 {size}, {left}")
        hi = fn.instr(f"add i64 {lo}, {fn.instr(f'select i1 {smaller}, i64 {size}, i64 {left}')}")
        status = fn.instr(f"call i64 @phase{number}(ptr %ctx, i64 {lo}, i64 {hi}{buffers})")
        fn.branch_if(fn.instr(f"icmp eq i64 {status}, {DONE}"), on, failed, likely=True)
        fn.block(failed)
        fn.ret(status)
        fn.block(on)
        now = fn.instr(f"call i64 @{COUNTER}()")
        spent = fn.instr(f"sub i64 {now}, {started}")
        over = fn.instr(f"icmp ugt i64 {spent}, {budget}")
        lo.add_incoming(hi, fn.current)
        fn.branch_if(over, paused, loop, likely=False)
        fn.block(paused)
        fn.emit(f"store i64 {hi}, ptr {slot.pointer(layout.RESUME_AT)}")
        if rests:
            fn.branch(rests)
            fn.block(rests)
        fn.emit(f"store i64 {number}, ptr {slot.pointer(layout.RESUME_PHASE)}")
        fn.ret(PAUSED)
        fn.block(end)
        fn.emit(f"store i64 0, ptr {slot.pointer(layout.RESUME_AT)}")
        stamp, go = fn.label("stamp"), fn.label("go")
        fn.branch_if(timed, stamp, go)
        fn.block(stamp)
        ticks = fn.instr(f"call i64 @{COUNTER}()")
        place = fn.instr(f"getelementptr i64, ptr {times}, i64 {number + 1}")
        fn.emit(f"store i64 {ticks}, ptr {place}")
        fn.branch(go)
        fn.block(go)
        fn.branch(after)
    fn.block(finished)
    fn.emit(f"store i64 0, ptr {slot.pointer(layout.RESUME_PHASE)}")
    fn.emit(f"store i64 0, ptr {slot.pointer(layout.RESUME_AT)}")
    fn.ret(DONE)
    return fn


def _share(
    fn: FunctionText, layout: ContextLayout, number: int, extent: str, times: tuple[str, str], end: str, rests: str
) -> None:
    """Let threads do a phase together, where they may and it is worth it: else it goes on. `times`: the counter where this
    began, and the cycles until a pause."""
    slot, shares, alone, done = phases.Slots(fn), fn.label("shares"), fn.label("alone"), fn.label("shared")
    pool = slot(layout.POOL, "ptr")
    fn.branch_if(fn.instr(f"icmp eq ptr {pool}, null"), alone, shares)
    fn.block(shares)
    cut, words = slot.pointer(layout.cut[number]), ", ".join(f"i64 {word}" for word in (extent, *times))
    region = fn.instr(f"load ptr, ptr {pool}")
    status = fn.instr(f"call i64 {region}(ptr {pool}, ptr @part{number}, ptr %ctx, ptr {cut}, {words})")
    cases = f"i64 {DONE}, label %{end} i64 {ALONE}, label %{alone} i64 {PAUSED}, label %{rests}"
    fn.emit(f"switch i64 {status}, label %{done} [ {cases} ]")
    fn.block(done)
    fn.ret(status)
    fn.block(alone)


def _extent(fn: FunctionText, slot: Slots, layout: ContextLayout, phase: Phase) -> str:
    """The trip count of a phase's outer loop."""
    if phase.outer is None:
        return "1"
    first, *others = (
        expressions.poly_text(fn.instr, lambda name: slot(layout.symbols[name]), index.const) for index in phase.outer.extent
    )
    for other in others:
        first = fn.instr(f"select i1 {fn.instr(f'icmp slt i64 {other}, {first}')}, i64 {other}, i64 {first}")
    return first
