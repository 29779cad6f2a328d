"""What a first call takes beside its own work is loaded while nobody waits for it: LLVM, and what writes its modules."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from jitlab.config import config
from jitlab.support.address_space import have_thread_blocks
from jitlab.support.later import load

from . import machine
from .emit import codegen

#: With all that they stand on; and what decides how many threads a launch may have.
_WRITERS = f"{__package__}.emit.phase", f"{__package__}.emit.quick", f"{__package__}.threads.cut_phases"


def _sources() -> None:
    """What finds anything on disk, where there is something."""
    if config.cache and not machine.object_cache().is_empty:
        codegen.sources()


#: One after the other; the process may fork or end between two.
STEPS: tuple[Callable[[], object], ...] = (
    have_thread_blocks, _sources, machine.prepare,
    *(partial(load, name) for name in (*_WRITERS, "hashlib", "pathlib", "tempfile")),
)  # fmt: skip


class Preparation:
    """Done once in a process, in a thread that then ends. What it fails in the first call meets, and says."""

    def __init__(self) -> None:
        self._has_begun = self._has_ended = False
        self._thread: threading.Thread | None = None

    def begin(self, practice: str = "") -> None:
        """From a place where a call is likely to come, but not yet. `practice`: a module whose `steps` come last."""
        if self._has_begun or sys.is_finalizing():
            return
        self._has_begun = True
        thread = threading.Thread(target=self._work, args=(practice,), name="jitlab-compile-prepares", daemon=True)
        with suppress(RuntimeError, MemoryError):  # no room for a thread, or Python ends
            thread.start()
            self._thread = thread
            atexit.register(self.end)

    def end(self) -> None:
        """The process ends after the step that is under way: not while LLVM is half loaded."""
        self._has_ended = True
        if self._thread is not None:
            self._thread.join()

    def _work(self, practice: str) -> None:
        with suppress(Exception):
            for step in STEPS:
                if self._has_ended:
                    return
                step()
            for step in load(practice).steps() if practice else ():
                if self._has_ended:
                    return
                step()


preparation = Preparation()
