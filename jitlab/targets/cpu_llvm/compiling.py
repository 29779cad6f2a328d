"""Programs as machine code: compiled by the quick tier at once and by the good one behind it, and kept on disk."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import field
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from jitlab import events
from jitlab.config import config
from jitlab.ir.programs.program import Program
from jitlab.ir.size_facts import noting
from jitlab.support.address_space import ask_for
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.program_phases import UNKNOWN_TURNS, steps
from jitlab.targets.target import Compiled, Origin, tell_compiled

from . import machine
from .cpu_schedule import Scheduled
from .emit import codegen

#: Kernels of a Program (a long loop that was unrolled) from which on the good tier would take minutes of a processor.
MOST_IMPROVED = 300

#: The good tier begins when no Program was compiled for so many seconds, or somebody waits for it: first calls seldom come
#: alone.
QUIET = 0.03
#: Operations on elements in one run from which on it is a long one: some 10 ms.
LONG_STEPS = 1 << 26

_Entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)  # ctypes releases the GIL around the call


@dataclass(eq=False)
class MachineCode(Compiled):
    """Machine code of one Program. `run(context)` may be replaced by a faster one at any time; both give the same bits."""

    program: Scheduled
    run: Callable[[int], int] = lambda context: 0
    better: Future[None] | None = None
    kept_as: str = ""  # its name on disk, once it is there
    address: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)  # of `run`; C code reads it here
    _keep: list[Any] = field(default_factory=list)

    @lazy
    def layout(self) -> codegen.ContextLayout:
        return codegen.ContextLayout(self.program)

    def install(self, loaded: machine.Loaded, tier: str) -> None:
        function = _Entry(loaded.address("run"))
        self._keep.append((loaded, function))
        self.address.value = loaded.address("run")
        self.run, self.tier = function, tier

    def wait(self) -> None:
        """Until the good tier is in place."""
        if self.better is not None:
            background().hurry()
            self.better.result()


def final_tier(program: Program) -> machine.Tier:
    """The tier whose code runs in the end."""
    return "quick" if len(program.kernels) > MOST_IMPROVED else "good"


def _is_long(program: Scheduled) -> bool:
    """Does its first run take longer than what a shorter text saves, which makes slower code?"""
    sizes = defaultdict(lambda: UNKNOWN_TURNS, program.sizes)  # some are known when it runs
    with noting(None):  # it is no other code
        return sum(steps(kernel.body, sizes) for kernel in program.kernels) > LONG_STEPS


def machine_code(key: str, program: Scheduled, origin: Origin) -> MachineCode:
    """The machine code of a Program for the target with this key: of the disk, or compiled now."""
    if background.cache_info().currsize:
        background().tell_busy()
    result = MachineCode(key, program)
    store = machine.object_cache()
    is_kept = config.cache  # as it is now

    @cache
    def good_key() -> str:
        return store.key(codegen.identity(program), "good")

    found = store.read(good_key()) if is_kept and not store.is_empty else None
    if found is not None:
        return _from_disk(result, found, good_key())
    is_last = final_tier(program) == "quick"
    text = codegen.module_for(program) if is_last or _is_long(program) else codegen.quick_module_for(program)
    result.install(machine.load(machine.compile_object(text, "quick"), ["run"]), "quick")
    result.first_tier = "quick"
    if is_last:
        return result

    cell = events.current_cell()

    def improve() -> None:
        background().wait_for_quiet()
        started = time.perf_counter_ns()
        try:
            made = machine.compile_beside(codegen.module_for(program))
            result.install(machine.load(made, ["run"]), "good")
        except MemoryError:  # what there is runs
            return
        if is_kept:
            store.write(good_key(), made)
            result.kept_as = good_key()
        with events.in_cell(cell):  # not whichever runs when this is done
            tell_compiled(result, origin, "good", "compiled", started)

    try:
        background().tell_busy()
        result.better = background().submit(improve)
        _improved.add(result)
    except (RuntimeError, MemoryError):  # no room for a thread, or Python ends
        pass
    return result


def _from_disk(code: MachineCode, found: bytes, name: str) -> MachineCode:
    code.install(machine.load(found, ["run"]), "good")
    code.source, code.first_tier, code.kept_as = "disk", "good", name
    return code


def kept_code(key: str, name: str, digest: str) -> MachineCode | None:
    """The code that was kept by this name, of a Program with this digest, which is not there; None: it is gone."""
    known = _kept.get(name)
    if known is None:
        found = machine.object_cache().read(name)
        if found is None:
            return None
        known = MachineCode(key, Program([], [], [], [], [], [], []))  # type: ignore[arg-type]
        vars(known)["digest"] = digest
        known = _kept[name] = _from_disk(known, found, name)
    return known


#: What a thread takes to begin, beside its stack, generously.
START_BYTES = 1 << 20


class Background:
    """A thread for work that nobody waits for; the process ends when what it was given is done. Who gives it work takes no
    lock, which an exception could leave taken, as those of `concurrent.futures`: it would wait for ever."""

    def __init__(self) -> None:
        ask_for(START_BYTES, "a thread")  # `start` waits for ever for one that ends before it has begun
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._has_ended = self._works = self._hurries = False
        self._busy_until = 0.0
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="jitlab-compile", daemon=True)
        self._thread.start()
        atexit.register(self.shutdown)

    def submit(self, job: Callable[[], Any]) -> Future[Any]:
        if self._has_ended:
            raise RuntimeError("the thread has ended")
        future: Future[Any] = Future()
        self._jobs.put((future, job))
        return future

    def shutdown(self) -> None:
        self._has_ended = True
        self._wake.put(None)
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (given := self._jobs.get()) is not None:
            self._works = True
            self._do(*given)
            del given
            self._works = False
            self._hurries = self._hurries and not self._jobs.empty()

    def tell_busy(self) -> None:
        """A Program was compiled just now."""
        self._busy_until = time.monotonic() + QUIET

    def hurry(self) -> None:
        """Somebody waits for what there is to do."""
        self._hurries = True
        self._wake.put(None)

    def wait_for_quiet(self) -> None:
        while not (self._hurries or self._has_ended) and (left := self._busy_until - time.monotonic()) > 0:
            with suppress(Empty):
                self._wake.get(timeout=left)

    @property
    def is_busy(self) -> bool:
        """Does it work, or have work?"""
        return self._works or not self._jobs.empty()

    @staticmethod
    def _do(future: Future[Any], job: Callable[[], Any]) -> None:
        try:
            future.set_result(job())
        except BaseException as error:
            future.set_exception(error)


@cache
def background() -> Background:
    """The process's own."""
    return Background()


def _after_fork() -> None:
    """A child process has none of the threads of its parent: it makes its own."""
    background.cache_clear()
    for code in list(_improved):
        code.better = None


_kept: WeakValueDictionary[str, MachineCode] = WeakValueDictionary()  # without Programs, by their names on disk
_improved: WeakSet[MachineCode] = WeakSet()  # what the background thread was given
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
