"""Programs as machine code: kept by their text, compiled by the quick tier at once and by the good one behind it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from jitlab import events, locks
from jitlab.config import config
from jitlab.ir.program import Program
from jitlab.targets.cpu_llvm import codegen, machine

#: Programs kept without anybody who runs them.
MOST_UNUSED = 256

#: Kernels of a Program (a long loop that was unrolled) from which on the good tier would take minutes of a processor.
MOST_IMPROVED = 300

_Entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)  # ctypes releases the GIL around the call


@dataclass
class Compiled:
    """Machine code of one Program. `run(context)` may be replaced by a faster one at any time; both give the same bits."""

    program: Program
    layout: codegen.ContextLayout
    digest: str
    tier: str = ""
    run: Callable[[int], int] = lambda context: 0
    better: Future[None] | None = None
    address: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)  # of `run`; C code reads it here
    _keep: list[Any] = field(default_factory=list)

    def install(self, loaded: machine.Loaded, tier: str) -> None:
        function = _Entry(loaded.address("run"))
        self._keep.append((loaded, function))
        self.address.value = loaded.address("run")
        self.run, self.tier = function, tier

    def wait(self) -> None:
        """Until the good tier is in place."""
        if self.better is not None:
            self.better.result()


@dataclass(frozen=True)
class Origin:
    """For whom a Program is compiled: what events say."""

    function: str = ""
    trace: int = 0
    cluster: str = ""


def compiled(program: Program, origin: Origin) -> Compiled:
    """The machine code of a Program: of this process, of the disk, or compiled now. Sends ProgramCompiled."""
    started = time.perf_counter_ns()
    with _lock:
        known = _by_text.get(program.text)
        if known is None:
            known, how, tier = _make(program, origin)
            _by_text[program.text] = known
        else:
            how, tier = "memory", known.tier
        _recent[program.text] = known
        _recent.move_to_end(program.text)
        while len(_recent) > MOST_UNUSED:
            _recent.popitem(last=False)
    _tell(origin, known.digest, tier, how, started)
    return known


def final_tier(program: Program) -> machine.Tier:
    """The tier whose code runs in the end."""
    return "quick" if len(program.kernels) > MOST_IMPROVED else "good"


def forget_compiled() -> None:
    """Forget the Programs of this process (for tests and measurements); the disk cache stays."""
    with _lock:
        _by_text.clear()
        _recent.clear()


def _make(program: Program, origin: Origin) -> tuple[Compiled, str, str]:
    digest = hashlib.sha256(program.text.encode()).hexdigest()[:16]
    result = Compiled(program, codegen.ContextLayout(program), digest)
    store = machine.object_cache()
    good_key = store.key(codegen.identity(program), "good") if config.cache else ""
    found = store.read(good_key) if config.cache else None
    if found is not None:
        result.install(machine.load(found, ["run"]), "good")
        return result, "disk", "good"
    text = codegen.module_for(program)
    result.install(machine.load(machine.compile_object(text, "quick"), ["run"]), "quick")

    if final_tier(program) == "quick":
        return result, "compiled", "quick"

    cell = events.current_cell()

    def improve() -> None:
        started = time.perf_counter_ns()
        try:
            made = machine.compile_object(text, "good")
            result.install(machine.load(made, ["run"]), "good")
        except MemoryError:  # what there is runs
            return
        if good_key:
            store.write(good_key, made)
        with events.in_cell(cell):  # not whichever runs when this is done
            _tell(origin, digest, "good", "compiled", started)

    try:
        result.better = background().submit(improve)
    except (RuntimeError, MemoryError):  # no room for a thread, or Python is about to end
        pass
    return result, "compiled", "quick"


def _tell(origin: Origin, digest: str, tier: str, how: str, started: int) -> None:
    if events.active():
        events.send(
            events.ProgramCompiled(
                cell=events.current_cell(), function=origin.function, trace=origin.trace, cluster=origin.cluster,
                program=digest, tier=tier, origin=how, start_ns=started, duration_ns=time.perf_counter_ns() - started,
            )
        )  # fmt: skip


@cache
def background() -> ThreadPoolExecutor:
    """The one thread for work that nobody waits for."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="jitlab-compile")


def _after_fork() -> None:
    """A child process has none of the threads of its parent: it makes its own."""
    background.cache_clear()
    for known in list(_by_text.values()):
        known.better = None


#: What some trace runs, and the Programs asked for last, though no trace may run them now: a definition that is executed
#: again finds its code. What falls out of both is taken out of memory.
_by_text: WeakValueDictionary[str, Compiled] = WeakValueDictionary()
_recent: OrderedDict[str, Compiled] = OrderedDict()
_lock = locks.shared("programs")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
