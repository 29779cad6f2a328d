"""The code that notes a call, where somebody takes notes; `jitlab.support.native_call_log` says what a note is."""

from __future__ import annotations

import ctypes

from jitlab import events
from jitlab.support import native_call_log

from .code_lines import Code
from .context import ContextLayout


class Note:
    """The code of the notes of one C function; `site` None: calls that somebody watches take the Python way."""

    def __init__(self, site: native_call_log.Site | None, code: Code) -> None:
        self.site, self.code = site, code
        self.lines, self.new = code.lines, code.new
        self.is_taken = "false"
        self.at = native_call_log.FIRST  # of the next launch
        self.last = 0 if site is None else len(site.about.launches) - 1

    def start(self) -> None:
        """Is this call noted? The Python way when it has to be seen there."""
        code, new, site = self.code, self.new, self.site
        watched = new(f"load i64, ptr {code.pointer(ctypes.addressof(native_call_log.watched))}")
        self.is_taken = new(f"icmp ne i64 {watched}, 0")
        if site is None:
            code.check(new(f"icmp eq i64 {watched}, 0"))
            return
        size = site.about.lines * native_call_log.LINE
        self.note, self.cell, self.clock = code.room(f"[{size} x i64]", 64), code.room("ptr"), code.room("i64")
        self.lines += [f"  br i1 {self.is_taken}, label %seen, label %go", "seen:"]
        code.check_same("i64", watched, code.at(code.pointer(ctypes.addressof(site.words)), 0, "i64"))
        self.lines += ["  br label %go", "go:"]

    def launch(self, number: int, context: str) -> None:
        """Before a launch: when, and where its code notes the processor's counter. With the first the call begins."""
        if self.site is None:
            return
        self.lines += [f"  br i1 {self.is_taken}, label %watch{number}, label %launch{number}", f"watch{number}:"]
        now = self._now()
        self._store(self.at, now)
        if number == 0:
            self._store(native_call_log.START, now)
            until = self.code.at(self.code.pointer(ctypes.addressof(self.site.words)), 8, "i64")
            self.code.check(self.new(f"icmp slt i64 {now}, {until}"), "failed")
        slot = self.new(f"getelementptr i64, ptr {context}, i64 {ContextLayout.TIMES}")
        self.lines += [f"  store ptr {self._place(self.at + 2)}, ptr {slot}", f"  br label %launch{number}", f"launch{number}:"]

    def launched(self, number: int) -> None:
        """With the last the call ends."""
        if self.site is None:
            return
        self.lines += [f"  br i1 {self.is_taken}, label %watched{number}, label %launched{number}", f"watched{number}:"]
        now = self._now()
        self._store(self.at + 1, now)
        if number == self.last:
            self._store(native_call_log.END, now)
        self.at += 3 + len(self.site.about.launches[number].kernels)
        self.lines += [f"  br label %launched{number}", f"launched{number}:"]

    def write(self) -> None:
        """Into the block, which is handed over first when it is full."""
        if self.site is not None:
            self.lines += [f"  br i1 {self.is_taken}, label %write, label %written", "write:"]
            self._write(self.site, "", "raised")
            self.lines += ["  br label %written", "written:"]

    def statement(self, number: int) -> None:
        """The call has ended, and was noted; a statement begins that is given out."""
        if self.site is not None:
            self.lines += [f"  br i1 {self.is_taken}, label %begins{number}, label %begun{number}", f"begins{number}:"]
            self._store(native_call_log.START, self._now())
            self.lines += [f"  br label %begun{number}", f"begun{number}:"]

    def statement_ran(self, number: int, raised: str) -> None:
        """It has run, and is noted. `raised`: where it goes on when that fails."""
        if self.site is not None:
            self.lines += [f"  br i1 {self.is_taken}, label %note{number}, label %noted{number}", f"note{number}:"]
            self._store(native_call_log.END, self._now())
            self._write(self.site.statements[number], str(number), raised)
            self.lines += [f"  br label %noted{number}", f"noted{number}:"]

    def _write(self, site: native_call_log.Site, which: str, raised: str) -> None:
        code, new, lines, size = self.code, self.new, self.lines, site.about.lines
        code.call("PyContextVar_Get", f"ptr {code.object(events.cell_variable())}", "ptr null", f"ptr {self.cell}")
        cell = new(f"load ptr, ptr {self.cell}")
        code.call("Py_DecRef", f"ptr {cell}")  # the name of a cell is kept for good
        self._store(native_call_log.SITE, code.word(site.number))
        self._store(native_call_log.CELL, new(f"ptrtoint ptr {cell} to i64"))
        lines += [f"  br label %fit{which}", f"fit{which}:"]
        block = new(f"load ptr, ptr {code.pointer(ctypes.addressof(native_call_log.head))}")
        used = new(f"load i64, ptr {block}")
        fits = new(f"icmp sle i64 {used}, {native_call_log.LINES - size}")
        lines += [f"  br i1 {fits}, label %copy{which}, label %full{which}", f"full{which}:"]
        handed = code.call("PyObject_CallNoArgs", f"ptr {code.object(native_call_log.full[0])}")
        lines += [f"  br i1 {new(f'icmp eq ptr {handed}, null')}, label %{raised}, label %handed{which}", f"handed{which}:"]
        code.call("Py_DecRef", f"ptr {handed}")
        lines += [f"  br label %fit{which}", f"copy{which}:"]
        line = new(f"add i64 {used}, 1")
        place = new(f"getelementptr [{native_call_log.LINE} x i64], ptr {block}, i64 {line}")
        bytes_ = 8 * native_call_log.LINE * size
        code.call("llvm.memcpy.p0.p0.i64", f"ptr {place}", f"ptr {self.note}", f"i64 {bytes_}", "i1 0")
        lines.append(f"  store i64 {new(f'add i64 {used}, {size}')}, ptr {block}")

    def _now(self) -> str:
        found = native_call_log.clock()
        assert found is not None
        address, by_pointer = found
        if not by_pointer:
            return self.code.function(address, "i64")
        self.code.function(address, "i32", f"ptr {self.clock}")
        return self.new(f"load i64, ptr {self.clock}")

    def _place(self, word: int) -> str:
        return self.new(f"getelementptr i64, ptr {self.note}, i64 {word}")

    def _store(self, word: int, value: str) -> None:
        self.lines.append(f"  store i64 {value}, ptr {self._place(word)}")
