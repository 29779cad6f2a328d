"""A module of LLVM text for NVPTX → one for the processor in which each kernel is called once a thread.

Its instructions stay as they are, but for what a processor has not: special registers are read from the thread's record, a
barrier, shuffle or sleep notes where the thread waits and suspends it, and loads and stores ask `@sim.access` for their
memory. A kernel that waits becomes a coroutine of LLVM's, which splits it where it suspends; shared memory is where the record
says.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import NoReturn

from jitlab.errors import InternalError
from jitlab.support.lazy_dataclass import dataclass

from . import runtime_text, thread_records
from .runtime_text import ATOMIC, READ, WRITE
from .thread_records import THREAD

BARRIER, WARP_BARRIER, SHUFFLE, SLEEP = "barrier", "barrier of a warp", "shuffle", "sleep"


@dataclass
class ProcessorText:
    """The text, and what its numbers stand for. `sites`: of each place where threads wait, from 1 on, what it is and its
    instruction; `accesses`: the instructions that touch memory; `kernels`: the types of each one's parameters, and whether it
    waits; `shared_bytes`: of one block."""

    text: str = ""
    sites: list[tuple[str, str]] = field(default_factory=lambda: [("", "the end")])
    accesses: list[str] = field(default_factory=list)
    kernels: dict[str, tuple[list[str], bool]] = field(default_factory=dict)
    shared_bytes: int = 0


def processor_text(text: str, llvm_version: int) -> ProcessorText:
    """`text`: as LLVM itself prints a module."""
    made = ProcessorText()
    module = _Module(made, llvm_version)
    lines: list[str] = []
    body: list[str] | None = None
    for line in text.splitlines():
        if body is not None:
            if line == "}":
                lines += module.function(body)
                body = None
            else:
                body.append(line)
        elif line.startswith("define "):
            body = [line]
        elif line.startswith("@"):
            lines += module.variable(line)
        elif line.startswith("declare "):
            lines += module.declaration(line)
        elif not line.startswith(("target ", "!llvm.", "!nvvm", "source_filename", ";")):
            lines.append(_without_machine(line))
    starts = [runtime_text.start_text(name, types, waits) for name, (types, waits) in made.kernels.items()]
    made.text = "\n".join([*lines, runtime_text.runtime_text(llvm_version), *starts])
    return made


_VARIABLE = re.compile(r"@(\S+) = (?:\w+ )*?addrspace\(3\) global \[(\d+) x ([\w ]+)\] (?:undef|poison), align (\d+)")
_SPACE = re.compile(r" addrspace\(\d+\)")
_DEBUG = re.compile(r",? !dbg !\d+")
_MACHINE = re.compile(r'"(?:target-cpu|target-features|nvvm[^"]*)"(?:="[^"]*")?')
_HEADER = re.compile(r"define (?P<before>.*?)(?P<type>\S+) @(?P<name>[^\s(]+)\((?P<parameters>.*)\)(?P<after>[^)]*)\{$")
_REGISTER = re.compile(r"  (%\S+) = .*@llvm\.nvvm\.read\.ptx\.sreg\.(n?tid|n?ctaid)\.([xy])\(\)")
_BARRIER = re.compile(r"  (?:tail |notail )?call void @llvm\.nvvm\.barrier\.cta\.sync\.aligned\.all\(i32 0\)")
_WARP_BARRIER = re.compile(r"  (?:tail |notail )?call void @llvm\.nvvm\.bar\.warp\.sync\(i32 -1\)")
_SHUFFLE = re.compile(r"  (%\S+) = .*@llvm\.nvvm\.shfl\.sync\.bfly\.i32\(i32 -1, i32 (\S+), i32 (\S+), i32 31\)")
_SLEEP = re.compile(r"  (?:tail |notail )?call void @llvm\.nvvm\.nanosleep\(i32 \d+\)")
_POINTER = r"(?P<pointer>ptr [^\s,]+)"
_KIND = r"(?:volatile )?(?P<type><[^>]+>|\S+)"
_LOAD = re.compile(rf"  %\S+ = load (?P<atomic>atomic )?{_KIND}, {_POINTER}.*, align (?P<align>\d+)")
_STORE = re.compile(rf"  store (?P<atomic>atomic )?{_KIND} .*, {_POINTER}.*, align (?P<align>\d+)")
_CHANGE = re.compile(
    rf"  %\S+ = (?:atomicrmw|cmpxchg)(?: volatile| weak| [a-z_]+)* {_POINTER}, (?P<type>\S+) .*, align (?P<align>\d+)"
)
_CALL = re.compile(r"call .*?@(?P<name>[^\s(]+)\(")
_CONSTANT = re.compile(r"getelementptr[ \w]* \(([^()]*)\)")
_CAST = re.compile(r"addrspacecast \(ptr (@\S+) to ptr\)")
_LABEL = re.compile(r"(\S+):")
_COMMENT = re.compile(r"^(\S+:) *;.*")

#: Functions of LLVM's that no GPU has, or that touch memory without being looked at.
_NOT_THERE = re.compile(
    r"llvm\.(?:nvvm\.|masked\.|memcpy|memset|memmove|"
    r"(?:sin|cos|tan|sincos|asin|acos|atan|atan2|sinh|cosh|tanh|exp|exp2|exp10|log|log2|log10|pow|powi|ldexp|frexp)\.)"
)


def _without_machine(line: str) -> str:
    return _MACHINE.sub("", line) if line.startswith("attributes ") else line


def _bytes_of(type: str) -> int:
    """Of a value in memory."""
    vector = re.fullmatch(r"<(\d+) x (.+)>", type)
    if vector:
        return int(vector[1]) * _bytes_of(vector[2])
    if re.fullmatch(r"i\d+", type):
        return (int(type[1:]) + 7) // 8
    sizes = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}
    if type not in sizes:
        raise InternalError(f"the simulated GPU does not know how many bytes {type} has")
    return sizes[type]


class _Module:
    """What functions of one module share."""

    def __init__(self, made: ProcessorText, llvm_version: int) -> None:
        self.made = made
        self.end_type = runtime_text.end_type(llvm_version)
        self.shared: dict[str, int] = {}  # variables in shared memory -> where in it

    def variable(self, line: str) -> list[str]:
        if "addrspace(3)" not in line:
            return [_SPACE.sub("", line)]
        match = _VARIABLE.match(line)
        if match is None:
            raise InternalError(f"the simulated GPU does not know this variable: {line}")
        align = int(match[4])
        start = -(-self.made.shared_bytes // align) * align
        self.shared[match[1]] = start
        self.made.shared_bytes = start + int(match[2]) * _bytes_of(match[3])
        return []

    def declaration(self, line: str) -> list[str]:
        name = line.partition("@")[2].partition("(")[0]
        if name.startswith("llvm.nvvm."):
            return []  # a call that is not known is an error where it stands
        if not name.startswith("llvm.") or _NOT_THERE.match(name):
            raise InternalError(f"a kernel calls {name}, which no GPU has")
        return [_SPACE.sub("", line)]

    def function(self, lines: list[str]) -> list[str]:
        return _Function(self, lines).made()


class _Function:
    """One function on its way. Everything new is called `sim.`, so that names and numbers stay."""

    def __init__(self, module: _Module, lines: list[str]) -> None:
        self.module, self.records = module, module.made
        header = _HEADER.match(_SPACE.sub("", _DEBUG.sub("", lines[0])))
        if header is None:
            raise InternalError(f"the simulated GPU does not know this function: {lines[0]}")
        self.header, self.name = header, header["name"]
        self.is_kernel = "ptx_kernel" in header["before"]
        self.body = [self.plain(line) for line in lines[1:] if not line.strip().startswith("#dbg")]
        self.waits = any(kind.match(line) for line in self.body for kind in (_BARRIER, _WARP_BARRIER, _SHUFFLE, _SLEEP))
        self.count = 0  # of what is named here
        self.entry: list[str] = []  # instructions ahead of all others
        self.out: list[str] = []
        self.label = ""  # of the block that is written
        self.ends: dict[str, str] = {}  # the last part of each block that is in several
        self.own: dict[str, int] = {}  # pointers to stack memory and constants, with their alignment where it is known

    def plain(self, line: str) -> str:
        """Without what a processor has not in any instruction."""
        line = _CAST.sub(r"\1", _SPACE.sub("", _DEBUG.sub("", _COMMENT.sub(r"\1", line))))
        return line.replace("= addrspacecast ptr", "= bitcast ptr")

    def made(self) -> list[str]:
        if self.waits and not self.is_kernel:
            raise InternalError(f"{self.name} has a barrier or a shuffle, and is no kernel")
        types = [parameter.split()[0] for parameter in _parts(self.header["parameters"])]
        if self.is_kernel:
            self.records.kernels[self.name] = (types, self.waits)
        self.start(len([p for p in _parts(self.header["parameters"]) if not re.search(r"%[^\d]\S*$", p)]))
        for line in self.body:
            self.line(line)
        parameters = ", ".join([*_parts(self.header["parameters"]), "ptr %sim.thread"])
        before = self.header["before"].replace("ptx_kernel ", "")
        returns, marked = ("ptr", "presplitcoroutine ") if self.waits else (self.header["type"], "")
        first = f"define {before}{returns} @{self.name}({parameters}){self.header['after']}{marked}{{"
        return [first, "sim.entry:", *self.begun(), *self.entry, self.jump, *map(self.renamed, self.out), *self.ended(), "}"]

    def start(self, unnamed: int) -> None:
        """The first block gets a label, as one comes before it; and values that every block may use."""
        first = next(line for line in self.body if line)
        named = _LABEL.match(first)
        self.label = named[1] if named else str(unnamed)
        if not named:
            self.out.append(f"{self.label}:")
        self.jump = f"  br label %{self.label}"
        self.entry += [
            f"  %sim.{n}.at = getelementptr i8, ptr %sim.thread, i64 {self.at(n)}" for n in ("site", "value", "mask")
        ]
        text = "\n".join(self.body)
        used = {name: start for name, start in self.module.shared.items() if re.search(rf"@{re.escape(name)}(?![\w.$-])", text)}
        if used:
            self.entry.append(f"  %sim.shared.at = getelementptr i8, ptr %sim.thread, i64 {self.at('shared')}")
            self.entry.append("  %sim.shared = load ptr, ptr %sim.shared.at")
        for name, start in used.items():
            self.entry.append(f"  %sim.shared.{name} = getelementptr i8, ptr %sim.shared, i64 {start}")
            self.body = [re.sub(rf"@{re.escape(name)}(?![\w.$-])", f"%sim.shared.{name}", line) for line in self.body]

    def begun(self) -> list[str]:
        if not self.waits:
            return []
        return [
            "  %sim.id = call token @llvm.coro.id(i32 64, ptr null, ptr null, ptr null)",
            "  %sim.size = call i64 @llvm.coro.size.i64()",
            "  %sim.memory = call ptr @sim.allocate(i64 %sim.size)",
            "  %sim.handle = call ptr @llvm.coro.begin(token %sim.id, ptr %sim.memory)",
        ]

    def ended(self) -> list[str]:
        if not self.waits:
            return []
        result = "" if self.module.end_type == "void" else "%sim.end = "
        return [
            "sim.cleanup:",
            "  %sim.free = call ptr @llvm.coro.free(token %sim.id, ptr %sim.handle)",
            "  call void @sim.release(ptr %sim.free)",
            "  br label %sim.suspend",
            "sim.suspend:",
            f"  {result}call {self.module.end_type} @llvm.coro.end(ptr %sim.handle, i1 false, token none)",
            "  ret ptr %sim.handle",
        ]

    def renamed(self, line: str) -> str:
        """A phi knows a block by its last part."""
        if " = phi " not in line or not self.ends:
            return line
        return re.sub(r", %([^\s,\]]+) \]", lambda m: f", %{self.ends.get(m[1], m[1])} ]", line)

    # -- instructions

    def line(self, line: str) -> None:
        label = _LABEL.match(line)
        if label:
            self.label = label[1]
            self.out.append(line)
            return
        line = _CONSTANT.sub(self.ahead, line)
        if " = alloca " in line and "%" not in line.partition("=")[2]:
            self.own[line.split()[0]] = int(line.rpartition("align ")[2])
            if not line.split()[0][1].isdigit():
                self.entry.append(line)
                return
        if " = frem " in line:
            self.refuse(line, "frem, whose result on a GPU is another one")
        register, shuffle = _REGISTER.match(line), _SHUFFLE.match(line)
        if register:
            self.read(register[1], f"{register[2]}.{register[3]}")
        elif _BARRIER.match(line):
            self.wait(BARRIER, line)
        elif _WARP_BARRIER.match(line):
            self.wait(WARP_BARRIER, line)
        elif _SLEEP.match(line):
            self.wait(SLEEP, line)
        elif shuffle:
            self.out += [f"  store i32 {shuffle[2]}, ptr %sim.value.at", f"  store i32 {shuffle[3]}, ptr %sim.mask.at"]
            self.wait(SHUFFLE, line)
            self.out.append(f"  {shuffle[1]} = load i32, ptr %sim.value.at")
        elif self.waits and line.strip() == "ret void":
            self.out += ["  store i32 0, ptr %sim.site.at", "  br label %sim.cleanup"]
        else:
            self.other(line)

    def other(self, line: str) -> None:
        call = _CALL.search(line)
        if call and not call["name"].startswith("llvm."):
            line = re.sub(r"\)(?=[^)]*$)", ("" if line[call.end()] == ")" else ", ") + "ptr %sim.thread)", line)
        elif call and _NOT_THERE.match(call["name"]):
            self.refuse(line, call["name"])
        for kind, how in ((_LOAD, READ), (_STORE, WRITE), (_CHANGE, ATOMIC)):
            found = kind.match(line)
            if found:
                line = self.looked_at(line, found, ATOMIC if found.groupdict().get("atomic") else how)
                break
        else:
            if re.match(r"  (%\S+ = )?(load|store|atomicrmw|cmpxchg|fence|invoke|indirectbr|va_arg)\b", line):
                self.refuse(line, "an instruction that it does not know")
            if re.match(r"  %\S+ = (getelementptr|bitcast) ", line):
                pointer = re.search(r"ptr ([%@]\S+?)(?:,| to|$)", line)
                if pointer and (pointer[1] in self.own or pointer[1][0] == "@"):
                    self.own[line.split()[0]] = 0
        self.out.append(line)

    def refuse(self, line: str, what: str) -> NoReturn:
        raise InternalError(f"the kernel {self.name} has {what}, which the simulated GPU refuses: {line.strip()}")

    def ahead(self, constant: re.Match[str]) -> str:
        """A constant address as an instruction: of shared memory it is no constant here."""
        name = self.new()
        if "%" not in constant[1]:
            self.own[name] = 0
        self.entry.append(f"  {name} = getelementptr {constant[1]}")
        return name

    def looked_at(self, line: str, access: re.Match[str], how: int) -> str:
        pointer = access["pointer"].split()[1]
        if pointer in self.own or pointer.startswith("@"):
            if int(access["align"]) > (self.own.get(pointer) or int(access["align"])):
                self.refuse(line, "memory of its own that is aligned less")
            return line
        name = self.new()
        number = len(self.records.accesses)
        self.records.accesses.append(line.strip())
        given = f"ptr {pointer}, i64 {_bytes_of(access['type'])}, i64 {access['align']}, i32 {how}, i64 {number}"
        self.out.append(f"  {name} = call ptr @sim.access({given}, ptr %sim.thread)")
        start, end = access.span("pointer")
        return f"{line[:start]}ptr {name}{line[end:]}"

    def read(self, name: str, field: str) -> None:
        at = self.new()
        self.out.append(f"  {at} = getelementptr i8, ptr %sim.thread, i64 {self.at(field)}")
        self.out.append(f"  {name} = load i32, ptr {at}")

    def wait(self, what: str, line: str) -> None:
        site = len(self.records.sites)
        self.records.sites.append((what, f"{what} {site} of {self.name}: {line.strip()}"))
        after, suspended = f"sim.after.{site}", f"%sim.suspended.{site}"
        self.out += [
            f"  store i32 {site}, ptr %sim.site.at",
            f"  {suspended} = call i8 @llvm.coro.suspend(token none, i1 false)",
            f"  switch i8 {suspended}, label %sim.suspend [ i8 0, label %{after} i8 1, label %sim.cleanup ]",
            f"{after}:",
        ]
        self.ends[self.label] = after

    def new(self) -> str:
        self.count += 1
        return f"%sim.{self.count}"

    @staticmethod
    def at(name: str) -> int:
        return thread_records.field(THREAD, name)


def _parts(parameters: str) -> list[str]:
    """Of a list of parameters, whose attributes may have commas of their own."""
    found, depth, start = [], 0, 0
    for place, character in enumerate(parameters):
        depth += (character in "(<{[") - (character in ")>}]")
        if character == "," and depth == 0:
            found.append(parameters[start:place].strip())
            start = place + 1
    return found + ([parameters[start:].strip()] if parameters.strip() else [])
