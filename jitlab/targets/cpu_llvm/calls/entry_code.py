"""The LLVM code of the C function behind a warm call.

`entry_text` writes what entry.py compiles. Whatever it meets that differs from its one signature goes on to `slow`: the Python
way.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab import events
from jitlab.support import native_call_log
from jitlab.support.lazy_dataclass import dataclass

from .context import DONE, PAUSED, STOPPED, ContextLayout

HEAD = object.__basicsize__
DATA, NDIM, DIMS, DESCR, FLAGS = (HEAD + k for k in (0, 8, 16, 40, 48))
WANTED_FLAGS, WRITEABLE = 0x0101, 0x0400  # contiguous and aligned
NEW_FROM_DESCR, RETURN = 94, 76  # slots of NumPy's C API, fixed by its ABI

_DECLARATIONS = (
    "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
    "declare void @Py_IncRef(ptr)",
    "declare void @Py_DecRef(ptr)",
    "declare i32 @PyErr_CheckSignals()",
    "declare void @PyErr_Restore(ptr, ptr, ptr)",
    "declare i32 @PyContextVar_Get(ptr, ptr, ptr)",
    "declare ptr @PyObject_CallNoArgs(ptr)",
    "declare ptr @PyEval_SaveThread()",
    "declare void @PyEval_RestoreThread(ptr)",
    "declare ptr @PyTuple_New(i64)",
    "declare i32 @PyTuple_SetItem(ptr, i64, ptr)",
    "declare ptr @PyList_New(i64)",
    "declare i32 @PyList_SetItem(ptr, i64, ptr)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
)


@dataclass(frozen=True)
class Argument:
    """An ndarray of exactly this dtype and shape; `written`: it is changed where it lies."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    written: bool = False


@dataclass(frozen=True)
class Result:
    """A new array; `scalar`: given back as a NumPy scalar."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    scalar: bool


@dataclass(frozen=True)
class Launch:
    """One native function: the context to start from, where its address stands (it may change), and which memory goes to
    which slot: ("argument" or "result", number) or ("scratch", offset)."""

    template: np.ndarray
    run: ctypes.c_void_p
    pointers: tuple[tuple[int, str, int], ...]


@dataclass(frozen=True)
class Warm:
    """One signature's way through: what a warm call checks and does. `form`: None for one bare result, tuple or list. `site`:
    where calls are noted, None when they can't be."""

    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]
    form: type | None
    launches: tuple[Launch, ...]
    scratch_bytes: int
    site: native_call_log.Site | None = None


def entry_text(warm: Warm, busy: int, calls: int, api: Any) -> str:
    """The module of one entry. `busy`: address of the word that sends every call the Python way when it is not 0; `calls`:
    address of the count of answered calls; `api`: NumPy's table of functions, by slot."""
    code = _Code()
    code.lines.append("entry:")
    for number, launch in enumerate(warm.launches):
        code.lines.append(f"  %ctx{number} = alloca [{len(launch.template)} x i64], align 64")
    code.lines.append(f"  %scratch = alloca [{max(warm.scratch_bytes, 1)} x i8], align 128")
    _check_call(code, busy, len(warm.arguments))
    data = [_check_argument(code, number, argument) for number, argument in enumerate(warm.arguments)]
    note = _Note(warm, code)
    note.start()

    made: list[str] = []
    failures: list[str] = []
    for number, result in enumerate(warm.results):
        failures.append(_release(number, made))
        made.append(_make_result(code, number, result, api))
    memory = {("argument", i): pointer for i, pointer in enumerate(data)}
    memory |= {("result", i): code.at(array, DATA, "ptr") for i, array in enumerate(made)}
    for number, launch in enumerate(warm.launches):
        _run_launch(code, number, launch, memory, note)
    note.write()
    counter = _pointer(calls)  # the GIL is held: nobody else counts meanwhile
    so_far = code.new(f"load i64, {counter}")
    code.lines.append(f"  store i64 {code.new(f'add i64 {so_far}, 1')}, {counter}")
    _answer(code, warm, made, api)
    drop = [f"  call void @Py_DecRef(ptr {array})" for array in made]
    code.lines += [
        "failed:", *drop, "  br label %slow",
        "raised:", *drop, "  ret ptr null",
        *failures,
        "slow:",
        "  %slowly = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %names)",
        "  ret ptr %slowly",
    ]  # fmt: skip
    sizes = [_result_sizes(number, result) for number, result in enumerate(warm.results)]
    begin = "define ptr @warm(ptr %self, ptr %args, i64 %nargs, ptr %names) {"
    return "\n".join([*sizes, *_DECLARATIONS, begin, *code.lines, "}"])


class _Code:
    """Lines of a function, with numbered values."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def new(self, text: str) -> str:
        """A new value that is `text`."""
        self._count += 1
        self.lines.append(f"  %t{self._count} = {text}")
        return f"%t{self._count}"

    def at(self, pointer: str, offset: int, type: str) -> str:
        """What stands `offset` bytes behind `pointer`."""
        place = self.new(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return self.new(f"load {type}, ptr {place}")

    def check(self, condition: str, label: str) -> None:
        """On with `label` where the condition holds, the Python way where not."""
        self.lines += [f"  br i1 {condition}, label %{label}, label %slow", f"{label}:"]


def _check_call(code: _Code, busy: int, arguments: int) -> None:
    new = code.new
    idle = new(f"icmp eq i64 {new(f'load i64, {_pointer(busy)}')}, 0")
    plain = new("icmp eq ptr %names, null")
    count = new(f"icmp eq i64 %nargs, {arguments}")
    code.check(new(f"and i1 {new(f'and i1 {idle}, {plain}')}, {count}"), "begin")


def _check_argument(code: _Code, number: int, argument: Argument) -> str:
    """The argument's data, once it is an array as wanted."""
    new, at = code.new, code.at
    object_ = at("%args", 8 * number, "ptr")
    code.check(new(f"icmp eq ptr {at(object_, HEAD - 8, 'ptr')}, {_address(id(np.ndarray))}"), f"array{number}")
    same = new(f"icmp eq ptr {at(object_, DESCR, 'ptr')}, {_address(id(argument.dtype))}")
    rank = new(f"icmp eq i32 {at(object_, NDIM, 'i32')}, {len(argument.shape)}")
    wanted = WANTED_FLAGS | WRITEABLE if argument.written else WANTED_FLAGS
    flags = new(f"and i32 {at(object_, FLAGS, 'i32')}, {wanted}")
    whole = new(f"icmp eq i32 {flags}, {wanted}")
    code.check(new(f"and i1 {new(f'and i1 {same}, {rank}')}, {whole}"), f"shape{number}")
    if argument.shape:
        dims = at(object_, DIMS, "ptr")
        fits = "true"
        for axis, extent in enumerate(argument.shape):
            equal = new(f"icmp eq i64 {at(dims, 8 * axis, 'i64')}, {extent}")
            fits = equal if fits == "true" else new(f"and i1 {fits}, {equal}")
        code.check(fits, f"data{number}")
    return at(object_, DATA, "ptr")


def _result_sizes(number: int, result: Result) -> str:
    values = ", ".join(f"i64 {extent}" for extent in result.shape) or "i64 0"
    return f"@dims{number} = internal constant [{max(len(result.shape), 1)} x i64] [{values}]"


def _make_result(code: _Code, number: int, result: Result, api: Any) -> str:
    """A new array for a result; without memory, on with `lost`."""
    descr = _pointer(id(result.dtype))
    code.lines.append(f"  call void @Py_IncRef({descr})")
    array = code.new(
        f"call ptr {_address(api[NEW_FROM_DESCR])}({_pointer(id(np.ndarray))}, {descr}, "
        f"i32 {len(result.shape)}, ptr @dims{number}, ptr null, ptr null, i32 0, ptr null)"
    )
    lost = code.new(f"icmp eq ptr {array}, null")
    code.lines += [f"  br i1 {lost}, label %lost{number}, label %made{number}", f"made{number}:"]
    return array


def _run_launch(code: _Code, number: int, launch: Launch, memory: dict[tuple[str, int], str], note: _Note) -> None:
    new, lines = code.new, code.lines
    context, size = f"%ctx{number}", 8 * len(launch.template)
    start = _pointer(launch.template.ctypes.data)
    lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {context}, {start}, i64 {size}, i1 0)")
    for slot, kind, which in launch.pointers:
        pointer = memory.get((kind, which)) or new(f"getelementptr i8, ptr %scratch, i64 {which}")
        place = new(f"getelementptr i64, ptr {context}, i64 {slot}")
        lines.append(f"  store ptr {pointer}, ptr {place}")
    note.launch(number, context)
    run = new(f"load ptr, {_pointer(ctypes.addressof(launch.run))}")
    first = new(f"call i64 {run}(ptr {context})")
    cases = f"i64 {DONE}, label %ran{number} i64 {PAUSED}, label %pause{number} i64 {STOPPED}, label %stop{number}"
    lines.append(f"  switch i64 {first}, label %failed [ {cases} ]")
    # A long run: signals are looked after, and from here on other threads may run meanwhile.
    lines.append(f"pause{number}:")
    raised = new("call i32 @PyErr_CheckSignals()")
    lines.append(f"  br i1 {new(f'icmp eq i32 {raised}, 0')}, label %on{number}, label %raised")
    lines.append(f"on{number}:")
    state = new("call ptr @PyEval_SaveThread()")
    again = new(f"load ptr, {_pointer(ctypes.addressof(launch.run))}")
    status = new(f"call i64 {again}(ptr {context})")
    lines.append(f"  call void @PyEval_RestoreThread(ptr {state})")
    lines.append(f"  switch i64 {status}, label %failed [ {cases} ]")
    lines.append(f"stop{number}:")
    error = [new(f"load ptr, ptr {new(f'getelementptr i64, ptr {context}, i64 {ContextLayout.ERROR + k}')}") for k in range(3)]
    lines.append(f"  call void @PyErr_Restore({', '.join(f'ptr {x}' for x in error)})")
    lines.append("  br label %raised")
    lines.append(f"ran{number}:")
    note.launched(number)


def _answer(code: _Code, warm: Warm, made: Sequence[str], api: Any) -> None:
    """The results in the form that the function gives them."""
    values = [
        code.new(f"call ptr {_address(api[RETURN])}(ptr {array})") if result.scalar else array
        for result, array in zip(warm.results, made, strict=True)
    ]
    if warm.form is None:
        code.lines.append(f"  ret ptr {values[0]}")
        return
    kind = "Tuple" if warm.form is tuple else "List"
    pack = code.new(f"call ptr @Py{kind}_New(i64 {len(values)})")
    lost = "raised" if any(argument.written for argument in warm.arguments) else "failed"  # nothing is written twice
    code.lines.append(f"  br i1 {code.new(f'icmp eq ptr {pack}, null')}, label %{lost}, label %pack")
    code.lines.append("pack:")
    for number, value in enumerate(values):
        code.new(f"call i32 @Py{kind}_SetItem(ptr {pack}, i64 {number}, ptr {value})")
    code.lines.append(f"  ret ptr {pack}")


class _Note:
    """The code that notes a call, where somebody takes notes; `jitlab.support.native_call_log` says what a note is."""

    def __init__(self, warm: Warm, code: _Code) -> None:
        self.site, self.lines, self.new = warm.site, code.lines, code.new
        self.is_taken = "false"
        self.at = native_call_log.FIRST  # of the next launch

    def start(self) -> None:
        """Is this call noted? The Python way when it has to be seen there."""
        new, site = self.new, self.site
        watched = new(f"load i64, {_pointer(ctypes.addressof(native_call_log.watched))}")
        self.is_taken = new(f"icmp ne i64 {watched}, 0")
        if site is None:
            self.lines += [f"  br i1 {self.is_taken}, label %slow, label %unseen", "unseen:"]
            return
        words = ctypes.addressof(site.words)
        size = site.about.lines * native_call_log.LINE
        self.lines[1:1] = [f"  %note = alloca [{size} x i64], align 64", "  %cell = alloca ptr", "  %clock = alloca i64"]
        self.lines += [f"  br i1 {self.is_taken}, label %seen, label %go", "seen:"]
        same = new(f"icmp eq i64 {watched}, {new(f'load i64, {_pointer(words)}')}")
        self.lines += [f"  br i1 {same}, label %timed, label %slow", "timed:"]
        start = self._now()
        early = new(f"icmp slt i64 {start}, {new(f'load i64, {_pointer(words + 8)}')}")
        self.lines += [f"  br i1 {early}, label %noted, label %slow", "noted:"]
        self._store(native_call_log.START, start)
        self.lines += ["  br label %go", "go:"]

    def launch(self, number: int, context: str) -> None:
        """Before a launch: when, and where its code notes the processor's counter."""
        if self.site is None:
            return
        self.lines += [f"  br i1 {self.is_taken}, label %watch{number}, label %launch{number}", f"watch{number}:"]
        self._store(self.at, self._now())
        slot = self.new(f"getelementptr i64, ptr {context}, i64 {ContextLayout.TIMES}")
        self.lines += [f"  store ptr {self._place(self.at + 2)}, ptr {slot}", f"  br label %launch{number}", f"launch{number}:"]

    def launched(self, number: int) -> None:
        if self.site is None:
            return
        self.lines += [f"  br i1 {self.is_taken}, label %watched{number}, label %launched{number}", f"watched{number}:"]
        self._store(self.at + 1, self._now())
        self.at += 3 + len(self.site.about.launches[number].kernels)
        self.lines += [f"  br label %launched{number}", f"launched{number}:"]

    def write(self) -> None:
        """Into the block, which is handed over first when it is full."""
        if self.site is None:
            return
        new, lines, size = self.new, self.lines, self.site.about.lines
        lines += [f"  br i1 {self.is_taken}, label %write, label %written", "write:"]
        new(f"call i32 @PyContextVar_Get({_pointer(id(events.cell_variable()))}, ptr null, ptr %cell)")
        cell = new("load ptr, ptr %cell")
        lines.append(f"  call void @Py_DecRef(ptr {cell})")  # the name of a cell is kept for good
        self._store(native_call_log.SITE, str(self.site.number))
        self._store(native_call_log.CELL, new(f"ptrtoint ptr {cell} to i64"))
        self._store(native_call_log.END, self._now())
        lines += ["  br label %room", "room:"]
        block = new(f"load ptr, {_pointer(ctypes.addressof(native_call_log.head))}")
        used = new(f"load i64, ptr {block}")
        fits = new(f"icmp sle i64 {used}, {native_call_log.LINES - size}")
        lines += [f"  br i1 {fits}, label %copy, label %full", "full:"]
        handed = new(f"call ptr @PyObject_CallNoArgs({_pointer(id(native_call_log.full[0]))})")
        lines += [f"  br i1 {new(f'icmp eq ptr {handed}, null')}, label %raised, label %handed", "handed:"]
        lines += [f"  call void @Py_DecRef(ptr {handed})", "  br label %room", "copy:"]
        line = new(f"add i64 {used}, 1")
        place = new(f"getelementptr [{native_call_log.LINE} x i64], ptr {block}, i64 {line}")
        lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {place}, ptr %note, i64 {8 * native_call_log.LINE * size}, i1 0)")
        lines += [f"  store i64 {new(f'add i64 {used}, {size}')}, ptr {block}", "  br label %written", "written:"]

    def _now(self) -> str:
        found = native_call_log.clock()
        assert found is not None
        address, by_pointer = found
        if not by_pointer:
            return self.new(f"call i64 inttoptr (i64 {address} to ptr)()")
        self.new(f"call i32 inttoptr (i64 {address} to ptr)(ptr %clock)")
        return self.new("load i64, ptr %clock")

    def _place(self, word: int) -> str:
        return self.new(f"getelementptr i64, ptr %note, i64 {word}")

    def _store(self, word: int, value: str) -> None:
        self.lines.append(f"  store i64 {value}, ptr {self._place(word)}")


def _address(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"


def _pointer(address: int) -> str:
    return f"ptr {_address(address)}"


def _release(number: int, made: Sequence[str]) -> str:
    """No memory for a result: give back those that were made, and let the error pass."""
    lines = [f"lost{number}:", *(f"  call void @Py_DecRef(ptr {array})" for array in made), "  ret ptr null"]
    return "\n".join(lines)
