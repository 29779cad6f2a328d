"""Settings of the process, read when they are used; `jl.config.name = value` checks type and range."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, fields
from typing import Any

from jitlab.errors import OptionError
from jitlab.support.lazy_dataclass import dataclass

OFF, ON = "OFF", "ON"
#: What `device` can be.
PLACES = ("cpu", "gpu", "auto")
#: What `gpu_compiler` can be.
COMPILERS = ("nvptx", "numba")
#: What `settle` can be.
MEASURE, MODEL, NEVER = "measure", "model", "off"
#: The variable that says it.
SETTLE = "JITLAB_SETTLE"

#: Is `settle` "off"? C code reads the word.
settle_is_off = ctypes.c_int64(0)
#: Who is told that a setting was made.
told: list[Callable[[], None]] = []


@dataclass
class Config:
    """The settings of the process: `jl.config.name = value`. They are read when they are used.

    Attributes:
        global_jit_level: "ON" or "OFF": whether operations of functions and cells are compiled that no scope marks.
        min_cluster_size: the least number of operations that a cluster has, which no scope marks.
        max_cluster_size: the greatest number of operations that a cluster has.
        max_traces: the traces that are kept for each function; those that were not used for longest make room.
        history_runs: the runs that are kept for each cell, to compare with.
        copy_limit_bytes: the most that a comparison may copy, in bytes.
        saved_bytes: the most that the report below a cell adds to the notebook file, in bytes.
        stable_outputs: True: that report stays as it is when the cell runs again, is captured alike and takes as long, so that
            the notebook file does not change.
        threads: on how many threads a kernel may run that is worth it. 0: as many as the variable JITLAB_NUM_THREADS says;
            without it, as many as OMP_NUM_THREADS says or the system grants this process, and no more than NumPy's BLAS has at
            the time, so that what threadpoolctl limits is limited here, too. Results are the same to the bit.
        settle: how the calls of a `jl.jit` function, and runs of a cell, go for which Python takes less time. "measure": as
            Python, once calls both ways have shown it. "model": as Python where nothing in them can be compiled, or where
            entering their pieces takes longer by counts: the same in every process. "off": compiled, however long that takes.
            The variable JITLAB_SETTLE says another one than "measure"; without it, tests under pytest and `jitlab check` have
            "model".
        device: where functions and cells run that do not say so themselves, if they are made from now on: "cpu", "gpu", or
            "auto": on the GPU what a model of copies, kernels and launches says is 1.5 times as fast there, copies included.
        gpu_compiler: "nvptx", LLVM's, or "numba": kernels are compiled and launched as the numba.cuda functions that the stage
            "numba" of a report's code shows, where they can be written so. It takes the package numba-cuda, and is slower.
        cache: True: machine code, plans and which calls run as Python are kept on disk; the variable JITLAB_CACHE=0 says False.

    Raises:
        OptionError: a setting that it does not have, or a value of another type or outside its range.

    Example:
        >>> jl.config.history_runs
        20
        >>> jl.config.history_runs = "many"
        Traceback (most recent call last):
            ...
        jitlab.errors.OptionError: jl.config.history_runs = 'many'
          why: the setting is of type int, this is str
    """

    global_jit_level: str = ON
    min_cluster_size: int = 1
    max_cluster_size: int = 2**31 - 1
    max_traces: int = 1000
    history_runs: int = 20
    copy_limit_bytes: int = 2**31
    saved_bytes: int = 150_000
    stable_outputs: bool = True
    threads: int = 0
    settle: str = field(default_factory=lambda: os.environ.get(SETTLE, MEASURE))
    device: str = "cpu"
    gpu_compiler: str = COMPILERS[0]
    cache: bool = field(default_factory=lambda: os.environ.get("JITLAB_CACHE", "1") != "0")

    def __setattr__(self, name: str, value: Any) -> None:
        kinds = {f.name: f.type for f in fields(self)}
        if name not in kinds:
            raise OptionError(f"jl.config has no setting {name!r}", hint=f"one of {', '.join(sorted(kinds))}")
        if type(value).__name__ != kinds[name]:
            raise OptionError(
                f"jl.config.{name} = {value!r}", why=f"the setting is of type {kinds[name]}, this is {type(value).__name__}"
            )
        if name == "global_jit_level" and value not in (ON, OFF):
            raise OptionError(f"jl.config.global_jit_level = {value!r}", hint='"ON" or "OFF"')
        if name == "settle" and value not in (MEASURE, MODEL, NEVER):
            raise OptionError(f"jl.config.settle = {value!r}", hint='"measure", "model" or "off"')
        if name == "device" and value not in PLACES:
            raise OptionError(f"jl.config.device = {value!r}", hint='"cpu", "gpu" or "auto"')
        if name == "gpu_compiler" and value not in COMPILERS:
            raise OptionError(f"jl.config.gpu_compiler = {value!r}", hint='"nvptx" or "numba"')
        if name == "threads" and value < 0:
            raise OptionError(f"jl.config.threads = {value!r}", why="the least value is 0: as many as the process may use")
        if name.endswith(("_size", "_traces", "_runs", "_bytes")) and value < 1:
            raise OptionError(f"jl.config.{name} = {value!r}", why="the least value is 1")
        object.__setattr__(self, name, value)
        if name == "settle":
            settle_is_off.value = value == NEVER
        for tell in told:
            tell()


config = Config()


@contextmanager
def by_counts() -> Iterator[None]:
    """Inside, and in processes that are started there, `settle` is "model" where nobody has said another one: what is found
    then depends on no clock."""
    if config.settle != MEASURE or SETTLE in os.environ:
        yield
        return
    os.environ[SETTLE] = config.settle = MODEL
    try:
        yield
    finally:
        os.environ.pop(SETTLE, None)
        if config.settle == MODEL:
            config.settle = MEASURE


def cache_folder() -> str | None:
    """`JITLAB_CACHE_DIR`, or the user's cache folder; None if the variable is set to nothing, which turns it off."""
    chosen = os.environ.get("JITLAB_CACHE_DIR")
    if chosen is not None:
        return os.path.expanduser(chosen) if chosen else None
    home = os.path.expanduser("~")
    if home == "~":  # there is none
        return None
    if sys.platform == "win32":
        return os.path.join(os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local"), "jitlab", "cache")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", "jitlab")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "jitlab")
