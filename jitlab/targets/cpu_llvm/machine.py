"""The processor: its vectors; LLVM text -> object code -> addresses; objects kept on disk. Loads llvmlite when used."""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import signal
import stat
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Literal, TypeVar

from jitlab.config import cache_folder
from jitlab.errors import InternalError
from jitlab.support import locks
from jitlab.support.address_space import ask_for
from jitlab.support.later import Later
from jitlab.targets.llvm.features import Features

hashlib, tempfile = Later("hashlib"), Later("tempfile")

Tier = Literal["quick", "split", "good"]

#: The target's name in caches, plans and events.
KEY = "cpu_llvm"

#: What LLVM takes, generously: to be loaded, then for a module, and for each character of its text.
LIBRARY_BYTES, COMPILER_BYTES, BYTES_PER_CHARACTER = 256 << 20, 24 << 20, 64

_lock = threading.RLock()  # target machines and the JIT are shared by all threads
T = TypeVar("T")


class _Held:
    """In the place of a signal's handler: notes the signal. Where it could not be taken away again, it calls the handler."""

    def __init__(self, handler: Callable[..., Any]) -> None:
        self.handler, self.holds = handler, True
        self.came: tuple[Any, ...] | None = None

    def __call__(self, *call: Any) -> None:
        if self.holds:
            self.came = call
        else:
            self.handler(*call)


def _uninterrupted(action: Callable[[], T]) -> T:
    """What an action gives; an interrupt comes after it. Between what LLVM made or freed and a note of it in Python, one would
    lose it, or let it be freed twice."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        return action()
    held = _Held(handler)
    try:
        signal.signal(signal.SIGINT, held)
        return action()
    finally:
        try:
            signal.signal(signal.SIGINT, handler)
        finally:
            held.holds = False
        if held.came is not None:
            handler(*held.came)


def alone(action: Callable[[], T]) -> T:
    """What an action with LLVM gives; no other thread has one meanwhile."""
    with locks.Released(_lock), _lock:
        try:
            return _uninterrupted(action)
        finally:
            locks.give_back(_llvmlites())


def _llvmlite_lock() -> Any:
    """llvmlite's own lock (it also frees objects under it, whenever they go), once llvmlite is loaded."""
    ffi = sys.modules.get("llvmlite.binding.ffi")
    return getattr(getattr(ffi, "lib", None), "_lock", None)


def _llvmlites() -> Any:
    """The lock in it, which llvmlite takes in Python code: an exception may leave it taken. Before llvmlite is loaded: a lock
    that nobody takes."""
    return getattr(_llvmlite_lock(), "_lock", None) or threading.RLock()


class _Both:
    """Ours and llvmlite's."""

    def acquire(self) -> None:
        _lock.acquire()
        inner = _llvmlite_lock()
        if inner is not None:
            inner.__enter__()

    def release(self) -> None:
        try:
            if _llvmlites()._is_owned():  # else an exception came before it was taken
                _llvmlite_lock().__exit__(None, None, None)
        finally:
            try:
                locks.give_back(_llvmlites())
            finally:
                _lock.release()

    def _is_owned(self) -> bool:
        return _lock._is_owned()  # type: ignore[attr-defined, no-any-return]


_beside = locks.shared("improving")
locks.shared("compiler", _Both())


@cache
def llvm() -> Any:
    ask_for(LIBRARY_BYTES, "the compiler itself")
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def llvm_version() -> int:
    """The first number of LLVM's version."""
    return int(llvm().llvm_version_info[0])


def prepare() -> None:
    """Makes what every module needs: LLVM itself, the machine of the quick tier, the linker."""

    def make() -> None:
        ask_for(LIBRARY_BYTES + COMPILER_BYTES, "the compiler itself")
        features(), _triple(), _data_layout(), _target_machine(0), _linker()

    alone(make)


def is_loaded() -> bool:
    """Has it been used in this process?"""
    return llvm.cache_info().currsize > 0


def _text(function: str, *about: Any) -> str:
    """What one of LLVM's functions writes. (llvmlite's own object for it frees it again if an exception comes after the first
    time.)"""
    written = ctypes.c_char_p()
    getattr(llvm().ffi.lib, function)(*about, ctypes.byref(written))
    text = (written.value or b"").decode()
    llvm().ffi.lib.LLVMPY_DisposeString(written)
    return text


@cache
def cpu_name() -> str:
    return _text("LLVMPY_GetHostCPUName")


@cache
def cpu_features() -> str:
    """Sorted `+a,-b,...`, as LLVM takes them."""
    return ",".join(sorted(_text("LLVMPY_GetHostCPUFeatures").split(",")))


@cache
def _triple() -> str:
    return _text("LLVMPY_GetProcessTriple")


@cache
def _target() -> Any:
    return llvm().Target.from_triple(_text("LLVMPY_GetDefaultTargetTriple"))


@cache
def features() -> Features:
    """What code for this processor is written for."""
    found = set(cpu_features().split(","))
    widest = 64 if {"+avx512f", "+avx512dq", "+avx512vl", "+avx512bw"} <= found else 32 if "+avx2" in found else 16
    is_arm = platform.machine().lower() in ("aarch64", "arm64")
    masked = {64: 1, 32: 4, 16: 0}[widest]
    return Features(widest, "+fma" in found or is_arm, "+f16c" in found or is_arm, masked, is_arm)


# text -> object code


@cache
def _target_machine(codegen: int, beside: bool = False) -> Any:
    return _target().create_target_machine(cpu=cpu_name(), features=cpu_features(), opt=codegen, reloc="pic", codemodel="small")


@cache
def _data_layout() -> str:
    return _text("LLVMPY_CopyStringRepOfTargetData", _target_machine(2).target_data)


def _module(text: str, tier: Tier, context: Any = None) -> tuple[Any, Any]:
    """The module after the tier's passes, and the machine that emits it. `context`: its own, beside other threads."""
    ask_for(COMPILER_BYTES + BYTES_PER_CHARACTER * len(text), "compiling a kernel")
    machine = _target_machine(2 if tier == "good" else 0, context is not None)
    module = llvm().parse_assembly(text, context)
    module.triple, module.data_layout = _triple(), _data_layout()
    if tier != "quick":
        options = llvm().create_pipeline_tuning_options(speed_level=int(tier == "good"))
        options.loop_vectorization = options.slp_vectorization = False
        options.loop_unrolling = options.loop_interleaving = False
        builder = llvm().create_pass_builder(machine, options)
        run_passes(module, builder, context)
    return module, machine


def run_passes(module: Any, builder: Any, context: Any = None) -> None:
    """A builder's passes over a module."""
    passes = builder.getModulePassManager()
    passes._owned = True  # this frees it: in llvmlite a method of the base class that does nothing comes first
    try:
        _long(context, "LLVMPY_RunNewModulePassManager")(passes, module, builder)
    finally:
        llvm().ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)


def _long(context: Any, function: str) -> Any:
    """One of LLVM's functions that take long: without llvmlite's lock where the module has a context of its own."""
    found = getattr(llvm().ffi.lib, function)
    return found if context is None else getattr(found, "_cfn", found)


def compile_beside(text: str) -> bytes:
    """As `compile_object(text, "good")`, which other threads do not wait for, but forks do. One at a time."""
    with locks.Released(_beside), _beside:
        lib, context, error = llvm().ffi.lib, llvm().create_context(), ctypes.c_char_p()
        context._owned = True  # this frees it, behind its module; after an exception nobody does
        module, machine = _module(text, "good", context)
        buffer = _long(context, "LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, ctypes.byref(error))
        module.close()
        lib.LLVMPY_ContextDispose(context)
        if not buffer:
            raise InternalError(f"LLVM emits no code: {(error.value or b'').decode()}")
        try:
            return ctypes.string_at(lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer))
        finally:
            lib.LLVMPY_DisposeMemoryBuffer(buffer)


def compile_object(text: str, tier: Tier = "good") -> bytes:
    """Position-independent object code of an LLVM module.

    quick: no passes, least code generation. split: the same, but coroutines become functions. good: passes without unrolling
    and vectorising, which the text has done.
    """

    def compile() -> bytes:
        module, machine = _module(text, tier)
        return bytes(machine.emit_object(module))

    return alone(compile)


def optimized(text: str, tier: Tier = "good") -> str:
    """The module's text after the tier's passes."""
    return alone(lambda: _text("LLVMPY_PrintModuleToString", _module(text, tier)[0]))


def asm(text: str, tier: Tier = "good") -> str:
    """Its assembly."""

    def emit() -> str:
        module, machine = _module(text, tier)
        return str(machine.emit_assembly(module))

    return alone(emit)


# object code -> addresses


class Loaded:
    """Code in memory, for as long as this lives: an owner of an address holds this too."""

    def __init__(self, linker: _Linker) -> None:
        self._tracker: Any = None
        self._pointer: Any = None
        self._linker = linker
        linker.loaded += 1
        linker.linked += 1

    def link(self, builder: Any) -> None:
        tracker = self._tracker = builder.link(self._linker.jit, f"jitlab.{next(_libraries)}")
        tracker._owned = True  # llvmlite does not free it: an exception in the midst of that would do it twice
        self._pointer = tracker._ptr  # the collector of cycles may end the tracker before this

    def address(self, name: str) -> int:
        return int(self._tracker[name])

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "_linker") and not is_finalizing():  # else the process ends, and llvmlite's parts may be gone
            with locks.Released(_llvmlites()):
                _uninterrupted(self._free)

    def _free(self) -> None:
        pointer, self._pointer = self._pointer, None
        try:
            if pointer is not None:
                llvm().ffi.lib.LLVMPY_LLJIT_Dylib_Tracker_Dispose(pointer, ctypes.byref(ctypes.c_char_p()))
        finally:
            self._linker.loaded -= 1
            self._linker.may_go()


class _Linker:
    """One of LLVM's, for so many libraries. It keeps 9 kB of each, also of those that are gone, as long as it lives."""

    MOST = 16

    def __init__(self) -> None:
        machine = _target().create_target_machine(cpu=cpu_name(), features=cpu_features(), opt=2, jit=True)
        self.jit: Any = llvm().create_lljit_compiler(machine)
        self.jit._owned, self._pointer = True, self.jit._ptr  # this frees it
        self.loaded = self.linked = 0

    def may_go(self) -> None:
        """Nothing is left of what was linked, and nothing more will be."""
        if not self.loaded and self.linked >= self.MOST:
            pointer, self._pointer = self._pointer, None  # by one thread alone
            if pointer is not None:
                llvm().ffi.lib.LLVMPY_LLJITDispose(pointer)


_linkers: list[_Linker] = []  # the one in use


def _linker() -> _Linker:
    if not _linkers or _linkers[0].linked >= _Linker.MOST:
        _linkers[:] = [_Linker()]
    return _linkers[0]


_libraries = itertools.count(1)


def load(object_bytes: bytes, symbols: Sequence[str], imports: Mapping[str, int] | None = None) -> Loaded:
    """Links object code into the process. `imports` are addresses of names the code calls, beside the process's own."""

    def link() -> Loaded:
        ask_for(COMPILER_BYTES + 4 * len(object_bytes), "a kernel's machine code")
        builder = llvm().JITLibraryBuilder().add_object_img(object_bytes).add_current_process()
        for name, address in (imports or {}).items():
            builder = builder.import_symbol(name, address)
        for name in symbols:
            builder = builder.export_symbol(name)
        loaded = Loaded(_linker())
        loaded.link(builder)
        return loaded

    return alone(link)


# object code on disk


class ObjectCache:
    """Objects in files named by what they were made of. Never raises and never trusts: a miss costs a compilation.

    Files of another owner, damaged or cut short, are not used. Writing is atomic; the least recently used go first
    when the folder outgrows `limit_bytes`. It may hold very many files, so it is looked through only when half of the room
    that was left may be taken (others write, too).
    """

    MAGIC = b"jitlab object 1\n"

    def __init__(self, folder: str | os.PathLike[str] | None, limit_bytes: int = 256 << 20) -> None:
        self.limit_bytes = limit_bytes
        self.folder: str | None = None
        if folder is not None:
            with suppress(OSError):
                objects = os.path.join(folder, "objects")
                os.makedirs(objects, mode=0o700, exist_ok=True)
                if self._is_private(objects):
                    self.folder = objects
        self._room = self._written = 0  # bytes: left when the folder was looked through, and written since

    @staticmethod
    def _is_private(folder: str) -> bool:
        """A real folder of ours that nobody else may write."""
        info = os.lstat(folder)
        if not stat.S_ISDIR(info.st_mode):
            return False
        return sys.platform == "win32" or (info.st_uid == os.getuid() and not info.st_mode & 0o022)

    @property
    def is_empty(self) -> bool:
        """Is there nothing to be found?"""
        if self.folder is not None:
            with suppress(OSError), os.scandir(self.folder) as entries:
                return next(entries, None) is None
        return True

    def key(self, text: str, kind: str) -> str:
        """The name of what was made of a text on a machine like this one; `kind`: a tier, or "plan"."""
        import llvmlite

        versions = f"{llvmlite.__version__} {llvm().llvm_version_info}"
        parts = (KEY, text, kind, cpu_name(), cpu_features(), versions, _triple())
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode()
            digest.update(len(data).to_bytes(8, "little") + data)
        return str(digest.hexdigest())

    def read(self, key: str) -> bytes | None:
        if self.folder is None:
            return None
        path = os.path.join(self.folder, f"{key}.o")
        try:
            flags = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))  # a pipe lets nobody wait
            descriptor = os.open(path, sum(flags, os.O_RDONLY))
            try:
                info = os.fstat(descriptor)
                if not stat.S_ISREG(info.st_mode) or (sys.platform != "win32" and info.st_uid != os.getuid()):
                    return None
                with open(descriptor, "rb", closefd=False) as file:
                    content = file.read()
            finally:
                os.close(descriptor)
        except OSError:
            return None
        start = len(self.MAGIC)
        body = content[start + 32 :]
        if content[:start] != self.MAGIC or hashlib.sha256(key.encode() + body).digest() != content[start : start + 32]:
            with suppress(OSError):
                os.unlink(path)
            return None
        with suppress(OSError):
            os.utime(path)  # used last: removed last
        return body

    def write(self, key: str, body: bytes) -> None:
        if self.folder is None:
            return
        content = self.MAGIC + hashlib.sha256(key.encode() + body).digest() + body
        temporary: str | None = None
        try:
            descriptor, temporary = tempfile.mkstemp(dir=self.folder, suffix=".new")  # mode 0600
            with open(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, os.path.join(self.folder, f"{key}.o"))
        except OSError:
            if temporary is not None:
                with suppress(OSError):
                    os.unlink(temporary)
            return
        self._written += len(content)
        if self._written > self._room / 2:
            self.trim()

    def trim(self) -> None:
        """Removes the least recently used files above the limit, and what broken-off writes left an hour ago."""
        minutes: Counter[int] = Counter()  # bytes that were used last in each: a list of all files would be large
        newest, unfinished = 0.0, []
        for time, size, path in self._files():
            minutes[int(time // 60)] += size
            newest = max(newest, time)
            if path.endswith(".new"):
                unfinished.append((time, path))
        for time, path in unfinished:
            if time < newest - 3600:
                _remove(path)
        total, going = sum(minutes.values()), -1
        if total > self.limit_bytes:
            most = self.limit_bytes * 7 // 8  # so that this is rare
            for going in sorted(minutes):
                if total - minutes[going] <= most:
                    break
                total -= minutes[going]
            for time, size, path in self._files():
                minute = int(time // 60)
                if minute < going or (minute == going and total > most):
                    _remove(path)
                    total -= size * (minute == going)
        self._room, self._written = max(self.limit_bytes - total, 0), 0

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Of each file when it was used last, its size and its path."""
        if self.folder is None:
            return
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    info = entry.stat(follow_symlinks=False)
                    yield info.st_mtime, info.st_size, entry.path

    def compile(self, text: str, tier: Tier = "good") -> tuple[bytes, bool]:
        """The object, and whether it was on disk."""
        key = self.key(text, tier)
        body = self.read(key)
        if body is not None:
            return body, True
        body = compile_object(text, tier)
        self.write(key, body)
        return body, False


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


@cache
def object_cache() -> ObjectCache:
    """The process's own."""
    return ObjectCache(cache_folder())
