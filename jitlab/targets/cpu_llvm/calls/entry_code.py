"""The LLVM code of the C function in front of calls of one form: it compares, makes the results, runs the machine code, and
gives what the call gives. Whatever differs from the form goes on to `slow`: the Python way.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from jitlab.ir.plans.call_forms import Argument, CallForm, GivingOut, Output, Packed
from jitlab.support import native_call_log
from jitlab.support.lazy_dataclass import dataclass

from . import shelves
from .argument_code import ALIGNED, DATA, ROWS, WRITEABLE, Arguments
from .buffers import ALIGNMENT, POOLED_BYTES
from .code_lines import OTHERWISE, Code
from .context import DONE, PAUSED, STOPPED, ContextLayout
from .note_code import Note

NEW_FROM_DESCR, RETURN, SET_BASE = 94, 76, 282  # slots of NumPy's C API, fixed by its ABI

#: Flags of an array in a block: in rows, aligned, writeable.
OWN = ROWS | ALIGNED | WRITEABLE

#: Scratch that a call may have on the stack.
SCRATCH_BYTES = 1 << 14


@dataclass(frozen=True)
class Result:
    """A new array for an output of the graph."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Seen:
    """A view of a new array: how far behind its start, in bytes, with strides in bytes."""

    position: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    behind: int


@dataclass(frozen=True)
class Launch:
    """One native function: the context to start from, where its address stands (it may change), and which memory goes to
    which slot: ("leaf", number), ("output", position) or ("scratch", offset). `is_long`: other threads run meanwhile."""

    template: np.ndarray
    run: ctypes.c_void_p
    pointers: tuple[tuple[int, str, int], ...]
    is_long: bool


@dataclass(frozen=True)
class Warm:
    """What a call of this form does. `results`: by the output of the graph, those that are stored into arguments left out.
    `site`: where calls are noted, None when they can't be."""

    form: CallForm
    results: Mapping[int, Result]
    launches: tuple[Launch, ...]
    scratch_bytes: int
    site: native_call_log.Site | None = None


class EntryCode:
    """The code of one entry. `busy`: address of the word that sends every call the Python way when it is not 0; `calls`:
    address of the count of answered calls; `api`: NumPy's table of functions, by slot."""

    stack_bytes: ClassVar[int] = SCRATCH_BYTES  # of scratch, from which on it has a block

    def __init__(self, warm: Warm, busy: int, calls: int, api: Any) -> None:
        self.warm, self.api, self.code = warm, api, Code()
        code = self.code
        self.contexts = [code.room(f"[{len(launch.template)} x i64]", 64) for launch in warm.launches]
        self.scratch = ""
        if 0 < warm.scratch_bytes <= self.stack_bytes:
            self.scratch = code.room(f"[{warm.scratch_bytes} x i8]", ALIGNMENT)
        code.check_same("i64", code.new(f"load i64, ptr {code.pointer(busy)}"), "0")
        self.arguments = self._arguments()
        self.arguments.check()
        self.note = Note(warm.site, code)
        self.note.start()
        self.owned = self.arguments.hold()  # references that go where the call ends before it gives anything
        self.made: dict[int, str] = {}
        self.endings: list[str] = []
        for position, result in warm.results.items():
            self.made[position] = self._new_array(result)
        if warm.scratch_bytes > self.stack_bytes:
            self.scratch = self._scratch(warm.scratch_bytes)
        for number, launch in enumerate(warm.launches):
            self._run(number, launch)
        self._store_results()
        self.note.write()
        self.endings += [*self._ending("raised"), *self._ending("failed", "br label %slow")]
        count = code.pointer(calls)  # the GIL is held: nobody else counts meanwhile
        so_far = code.new(f"load i64, ptr {count}")
        code.lines.append(f"  store i64 {code.new(f'add i64 {so_far}, 1')}, ptr {count}")
        self._answer()
        code.lines += self.endings
        if warm.form.reads:
            code.lines.append("absent:")
            code.call("PyErr_Clear")
            code.lines.append("  br label %slow")
        code.lines.append("slow:")
        otherwise = code.at("%self", OTHERWISE, "ptr")
        slowly = code.call("PyObject_Vectorcall", f"ptr {otherwise}", "ptr %args", "i64 %given", "ptr %names")
        code.lines.append(f"  ret ptr {slowly}")

    def _arguments(self) -> Arguments:
        """What compares a call."""
        return Arguments(self.code, self.warm.form)

    def _ending(self, label: str, then: str = "ret ptr null") -> list[str]:
        """What was made and held so far goes."""
        self.code.declare("Py_DecRef")
        return [f"{label}:", *(f"  call void @Py_DecRef(ptr {value})" for value in self.owned), f"  {then}"]

    def _owns(self, value: str, otherwise: str = "ret ptr null") -> str:
        """A new reference; without memory for it, the call ends with the error."""
        label = self.code.label("lost")
        self.endings += self._ending(label, otherwise)
        self.code.check(self.code.new(f"icmp ne ptr {value}, null"), label)
        self.owned.append(value)
        return value

    def _block(self, nbytes: int) -> tuple[str, str]:
        """A capsule of a block of memory, and where that is; without memory, the Python way."""
        code, place = self.code, self.code.room("ptr")
        capsule = self._owns(
            code.function(shelves.take(), "ptr", f"ptr {code.pointer(shelves.shelf(nbytes))}", f"ptr {place}"), "br label %slow"
        )  # fmt: skip
        return capsule, code.new(f"load ptr, ptr {place}")

    def _scratch(self, nbytes: int) -> str:
        """Where a block of scratch is, which goes when the call ends."""
        return self._block(nbytes)[1]

    def _new_array(self, result: Result) -> str:
        code, nbytes = self.code, _bytes(result)
        capsule, block = self._block(nbytes) if nbytes >= POOLED_BYTES else ("", "null")
        descr = code.object(result.dtype)
        code.call("Py_IncRef", f"ptr {descr}")
        array = self._owns(code.function(
            self.api[NEW_FROM_DESCR], "ptr", f"ptr {code.object(np.ndarray)}", f"ptr {descr}", f"i32 {len(result.shape)}",
            f"ptr {code.words_at(result.shape)}", "ptr null", f"ptr {block}", f"i32 {OWN if capsule else 0}", "ptr null",
        ))  # fmt: skip
        if capsule:
            self.owned.remove(capsule)
            status = code.function(self.api[SET_BASE], "i32", f"ptr {array}", f"ptr {capsule}")
            self._check_status(status)
        return array

    def _check_status(self, status: str) -> None:
        label = self.code.label("lost")
        self.endings += self._ending(label)
        self.code.check(self.code.new(f"icmp eq i32 {status}, 0"), label)

    def _run(self, number: int, launch: Launch) -> None:
        code, new, lines, context = self.code, self.code.new, self.code.lines, self.contexts[number]
        template = code.pointer(launch.template.ctypes.data)
        code.call("llvm.memcpy.p0.p0.i64", f"ptr {context}", f"ptr {template}", f"i64 {8 * len(launch.template)}", "i1 0")
        for slot, kind, which in launch.pointers:
            place = new(f"getelementptr i64, ptr {context}, i64 {slot}")
            lines.append(f"  store ptr {self._memory(kind, which)}, ptr {place}")
        self.note.launch(number, context)
        at = code.pointer(ctypes.addressof(launch.run))
        first = self._call(at, context, launch.is_long)
        cases = f"i64 {DONE}, label %ran{number} i64 {PAUSED}, label %pause{number} i64 {STOPPED}, label %stop{number}"
        lines.append(f"  switch i64 {first}, label %failed [ {cases} ]")
        # A long run: signals are looked after, and from here on other threads run meanwhile.
        lines.append(f"pause{number}:")
        raised = code.call("PyErr_CheckSignals")
        lines.append(f"  br i1 {new(f'icmp eq i32 {raised}, 0')}, label %goes{number}, label %raised")
        lines.append(f"goes{number}:")
        status = self._call(at, context, True)
        lines.append(f"  switch i64 {status}, label %failed [ {cases} ]")
        lines.append(f"stop{number}:")
        code.call("PyErr_Restore", *(f"ptr {code.at(context, 8 * (ContextLayout.ERROR + k), 'ptr')}" for k in range(3)))
        lines += ["  br label %raised", f"ran{number}:"]
        self.note.launched(number)

    def _call(self, at: str, context: str, is_long: bool) -> str:
        """What the function gives whose address stands there."""
        code = self.code
        state = code.call("PyEval_SaveThread") if is_long else ""
        run = code.new(f"load ptr, ptr {at}")
        status = code.new(f"call i64 {run}(ptr {context})")
        if is_long:
            code.call("PyEval_RestoreThread", f"ptr {state}")
        return status

    def _memory(self, kind: str, which: int) -> str:
        if kind == "leaf":
            return self.arguments.data[which]
        if kind == "output":
            return self.code.at(self.made[which], DATA, "ptr")
        return self.code.behind(self.scratch, which)

    def _store_results(self) -> None:
        """What is written into arguments, and was not made in their place, is copied there."""
        for leaf, position in self.warm.form.writes if self.warm.form.is_whole else ():
            if position in self.made:
                source, size = self._memory("output", position), _bytes(self.warm.results[position])
                self.code.call(
                    "llvm.memcpy.p0.p0.i64", f"ptr {self.arguments.data[leaf]}", f"ptr {source}", f"i64 {size}", "i1 0"
                )  # fmt: skip

    # ---- what the call gives
    def _answer(self) -> None:
        """Whatever fails from here on is an error of the call: nothing runs twice."""
        value = self._value(self.warm.form.gives)
        self.owned.remove(value)
        self.code.lines += self._ending(self.code.begun("given"), f"ret ptr {value}")

    def _value(self, gives: Any) -> str:
        """A new reference."""
        code = self.code
        if isinstance(gives, GivingOut):
            return self._giving_out(gives)
        if isinstance(gives, Packed):
            return self._packed(gives)
        if isinstance(gives, Seen):
            return self._view(gives)
        if isinstance(gives, Output):
            return self._scalar(self.made[gives.position], gives.number) if gives.scalar else self.made[gives.position]
        value = self.arguments.objects[gives.leaf] if isinstance(gives, Argument) else code.object(gives.value)
        code.call("Py_IncRef", f"ptr {value}")
        self.owned.append(value)
        return value

    def _view(self, seen: Seen) -> str:
        """A new array that keeps the one that it is a view of."""
        code, whole = self.code, self.made[seen.position]
        descr, start = code.object(seen.dtype), code.behind(code.at(whole, DATA, "ptr"), seen.behind)
        code.call("Py_IncRef", f"ptr {descr}")
        array = self._owns(code.function(
            self.api[NEW_FROM_DESCR], "ptr", f"ptr {code.object(np.ndarray)}", f"ptr {descr}", f"i32 {len(seen.shape)}",
            f"ptr {code.words_at(seen.shape)}", f"ptr {code.words_at(seen.strides)}", f"ptr {start}",
            f"i32 {ALIGNED | WRITEABLE}", "ptr null",
        ))  # fmt: skip
        code.call("Py_IncRef", f"ptr {whole}")
        self._check_status(code.function(self.api[SET_BASE], "i32", f"ptr {array}", f"ptr {whole}"))
        return array

    def _scalar(self, array: str, number: type | None) -> str:
        """NumPy's scalar of an array without axes, which goes; or Python's number of it."""
        code = self.code
        self.owned.remove(array)
        return self._number(self._owns(code.function(self.api[RETURN], "ptr", f"ptr {array}")), number)

    def _number(self, scalar: str, number: type | None) -> str:
        """A scalar of NumPy's, or Python's number of it."""
        code = self.code
        if number is None:
            return scalar
        if number is bool:
            is_true = code.new(f"icmp ne i32 {code.call('PyObject_IsTrue', f'ptr {scalar}')}, 0")
            made = code.new(f"select i1 {is_true}, ptr {code.object(True)}, ptr {code.object(False)}")
            code.call("Py_IncRef", f"ptr {made}")
        else:
            made = code.call("PyNumber_Float" if number is float else "PyNumber_Long", f"ptr {scalar}")
        return self._owns(made)

    def _giving_out(self, gives: GivingOut) -> str:
        result, code = self._value(gives.items[0]), self.code
        for number, (function, values) in enumerate(zip(gives.names, gives.items[1:], strict=True)):
            given = self._value(values)
            self.note.statement(number)
            done = self._owns(code.call("PyObject_Call", f"ptr {code.object(function)}", f"ptr {given}", "ptr null"))
            for value in (given, done):
                self.owned.remove(value)
                code.call("Py_DecRef", f"ptr {value}")
            label = code.label("lost")
            self.endings += self._ending(label)
            self.note.statement_ran(number, label)
        return result

    def _packed(self, gives: Packed) -> str:
        code, is_named = self.code, gives.kind not in (tuple, list, dict)
        kind = "Tuple" if is_named else gives.kind.__name__.capitalize()
        pack = self._owns(code.call(f"Py{kind}_New", *(() if gives.kind is dict else (f"i64 {len(gives.items)}",))))
        for number, item in enumerate(gives.items):
            value = self._value(item)
            if gives.kind is dict:  # which takes a reference of its own
                status = code.call("PyDict_SetItem", f"ptr {pack}", f"ptr {code.object(gives.names[number])}", f"ptr {value}")
                self._check_status(status)
            else:
                self.owned.remove(value)
                code.call(f"Py{kind}_SetItem", f"ptr {pack}", f"i64 {number}", f"ptr {value}")
        if not is_named:
            return pack
        given = code.room("[2 x ptr]")
        for number, value in enumerate((code.object(gives.kind), pack)):
            code.lines.append(f"  store ptr {value}, ptr {code.new(f'getelementptr ptr, ptr {given}, i64 {number}')}")
        made = self._owns(
            code.call("PyObject_Vectorcall", f"ptr {code.object(tuple.__new__)}", f"ptr {given}", "i64 2", "ptr null")
        )
        self.owned.remove(pack)
        code.call("Py_DecRef", f"ptr {pack}")
        return made


def _bytes(result: Result) -> int:
    size = result.dtype.itemsize
    for n in result.shape:
        size *= n
    return size
