"""The stages of machine code line by line, each line with the place it came from (located.py).

The assembly is that of the code that runs: it is compiled again with debug locations, which change no instruction, and what
they say is put beside it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import field

from jitlab.ir import UNKNOWN
from jitlab.ir.programs.program import Program
from jitlab.messages import units
from jitlab.support import locks
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.assembly_places import is_instruction, numbers_beside
from jitlab.targets.target import Listed, Listing, Place

from . import machine
from .cpu_schedule import Scheduled, scheduled
from .emit import codegen
from .emit.register_gaps import UNPLACED, Step, filled, filled_names
from .located import ENTRY, LocatedModule, located_module
from .machine import Tier

#: Listings kept: a user goes to and fro between a few clusters.
KEPT = 16

NOWHERE = Place(UNKNOWN, "", "")

#: Moves between a register and a fixed slot of the stack: LLVM ran out of registers, no operation asked for it.
_SPILL = re.compile(
    r"\t[vk]?mov\w*\t(?:%\w+, -?\d*\(%[re][sb]p\)|-?\d*\(%[re][sb]p\), %\w+)$"
    r"|\t(?:str|ldr|stp|ldp|stur|ldur)\t.*\[sp(?:, #\d+)?\]$"
)
#: What sets up and takes down a function's frame.
_FRAME = re.compile(
    r"\t(?:push\w*|pop\w*|ret\w*|vzeroupper)\b|\t(?:sub|add|and)q\t\$-?\d+, %rsp$|\tmovq\t%rsp, %rbp$|\tmovq\t%rbp, %rsp$"
    r"|\tleaq\t-?\d*\(%rbp\), %rsp$|\t(?:stp|ldp)\t.*\[sp|\t(?:sub|add)\tsp, |\tmov\tx29, sp$"
)
_DEBUG = re.compile(r",? !dbg !(\d+)")
_ATTRIBUTES = re.compile(r" #\d+(?=$| {$)")
_LOCATION = re.compile(r"!(\d+) = !DILocation\(line: (\d+)")


@dataclass
class ModuleListing(Listing):
    """The stages of one Program; each is made when it is asked for."""

    program: Program
    tier: Tier = "good"
    optimized: dict[str, list[tuple[str, frozenset[int]]]] = field(default_factory=dict, init=False)  # each function's lines
    strays: int = field(default=0, init=False)  # instructions that differed with debug locations: they have no place

    @property
    def functions(self) -> Mapping[str, str]:
        return self.module.kernels

    @property
    def helpers(self) -> Mapping[str, str]:
        parts = {name.replace("phase", "part"): f"{{function}}.pieces{name[5:]}" for name in self.functions}
        return {"run": "{function}.run", "look": "jitlab.signals", **parts}

    def lines(self, stage: str) -> list[Listed]:
        return {"llvm": lambda: self.llvm, "llvm-optimized": lambda: self.llvm_optimized, "asm": lambda: self.asm}[stage]()

    def text(self, stage: str) -> str:
        return codegen.module_for(self.scheduled) if stage == "llvm" else super().text(stage)

    def note(self, stage: str) -> str | None:
        if stage == "asm" and self.strays:
            return f"{units.counted(self.strays, 'instruction')} could not be located: LLVM made other code beside locations."
        if self.tier == "quick":
            return "This Program is too long for the good tier: this is the code of the quick one, which runs."
        return None

    @lazy
    def scheduled(self) -> Scheduled:
        return scheduled(self.program)

    @lazy
    def module(self) -> LocatedModule:
        return located_module(self.scheduled)

    @lazy
    def llvm(self) -> list[Listed]:
        """Before LLVM's passes."""
        result = []
        kernel = ""
        for text, number in self.module.lines:
            if text.startswith("define "):
                kernel = self.module.kernels.get(text.partition("@")[2].partition("(")[0], "")
            place = self._united(frozenset((number,)), kernel)
            noise = not text.startswith("  ") or not kernel or (bool(place.role) and not place.origins)
            result.append(Listed(text, Place(UNKNOWN, place.role, kernel) if noise else place, noise))
            kernel = "" if text == "}" else kernel
        return result

    @lazy
    def llvm_optimized(self) -> list[Listed]:
        """After LLVM's passes."""
        text = machine.optimized(self.module.debug, self.tier)
        line_of = {number: int(line) for number, line in _LOCATION.findall(text)}
        result: list[Listed] = []
        rows: list[int] = []
        function: list[tuple[str, frozenset[int]]] = []
        kernel = name = ""
        for line in text.splitlines():
            if line.startswith(("!", ";", "source_filename", "target ", "attributes #")):
                continue
            if line.startswith("define "):
                name = line.partition("@")[2].partition("(")[0]
                kernel = self.module.kernels.get(name, "")
            found = _DEBUG.search(line)
            line = _ATTRIBUTES.sub("", _DEBUG.sub("", line))
            if line.startswith("  ") and kernel:
                number = line_of.get(found[1], 0) if found else 0
                function.append((line, frozenset((number,) if number else ())))
                rows.append(len(result))
            result.append(Listed(line, NOWHERE, True))
            if line == "}":
                for row, numbers in zip(rows, filled_names(function), strict=True):
                    place = self._united(numbers, kernel)
                    result[row] = Listed(result[row].text, place, bool(place.role) and not place.origins)
                self.optimized[name] = function
                kernel, rows, function = "", [], []
        return _trimmed(result)

    @lazy
    def asm(self) -> list[Listed]:
        """What the processor gets."""
        plain = machine.asm("".join(f"{text}\n" for text, _ in self.module.lines), self.tier).splitlines()
        found, self.strays = numbers_beside(plain, machine.asm(self.module.debug, self.tier).splitlines())
        numbers = iter(found)
        result: list[Listed] = []
        function: list[Step] = []  # of the function so far
        rows: list[int] = []  # where its instructions stand in the result
        labels: list[str] = []
        kernel = name = ""
        _ = self.llvm_optimized
        for line in plain:
            if is_instruction(line):
                number = next(numbers)
                if _FRAME.match(line) and kernel:
                    number = self.module.places.number(Place(UNKNOWN, ENTRY, kernel))
                function.append(Step(line.strip(), frozenset((number,) if number else ()), tuple(labels)))
                labels = []
                rows.append(len(result))
            elif line.endswith(":") and not line.startswith("\t"):
                if not line.startswith("."):
                    self._fill(result, rows, function, name)
                    function, rows = [], []
                    name = line[:-1]
                    kernel = self.module.kernels.get(name, "")
                labels.append(line[:-1])
            result.append(Listed(line, NOWHERE, True))
        self._fill(result, rows, function, name)
        return result

    def _fill(self, result: list[Listed], rows: Sequence[int], function: Sequence[Step], name: str) -> None:
        """Put the places of a function's instructions into the lines."""
        kernel = self.module.kernels.get(name, "")
        places = filled(function, self.optimized.get(name, ())) if kernel else [UNPLACED] * len(rows)
        for row, numbers in zip(rows, places, strict=True):
            text = result[row].text
            place = self._united(numbers, kernel)
            noise = not kernel or bool(_FRAME.match(text) or _SPILL.match(text)) or (bool(place.role) and not place.origins)
            result[row] = Listed(text, Place(UNKNOWN, place.role, kernel) if noise else place, noise)

    def _united(self, numbers: frozenset[int], kernel: str) -> Place:
        places = [self.module.places[n] for n in numbers]
        origins = UNKNOWN.union(*(place.origins for place in places))
        return Place(origins, "" if origins else next((place.role for place in places), ""), kernel)


def listing(program: Program, tier: Tier = "good") -> ModuleListing:
    """The stages of a Program; the last ones asked for are kept."""
    with locks.Released(_lock), _lock:
        kept = _kept.get(id(program))
        if kept is None or kept.program is not program or kept.tier != tier:
            kept = _kept[id(program)] = ModuleListing(program, tier)
        _kept.move_to_end(id(program))
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return kept


def _trimmed(lines: list[Listed]) -> list[Listed]:
    """Without empty lines at both ends and more than one in a row."""
    result: list[Listed] = []
    for line in lines:
        if line.text.strip() or (result and result[-1].text.strip()):
            result.append(line)
    while result and not result[-1].text.strip():
        result.pop()
    return result


_kept: OrderedDict[int, ModuleListing] = OrderedDict()
_lock = locks.shared("listings")
