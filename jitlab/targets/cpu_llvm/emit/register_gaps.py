"""Instructions to which LLVM left no place: what prepares a register belongs to those that read it.

LLVM drops a location where it moves an instruction out of a loop, loads a constant again, or copies a register for the next
turn of a loop. The assembly itself says what such an instruction is for: it is followed to the instructions that read what it
writes, along the jumps; a comparison to the jump that it decides; a jump to the work that it leads to. In LLVM's own text it is
followed along the names.

Where a place has lost all its instructions in this way, LLVM's text still has it: an instruction without a place that does the
same (adds, takes a root, ...) and whose value goes where the lost one's goes is the lost one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass

#: Instructions that are looked at for one gap: a register may live through a whole kernel.
REACH = 4000

#: Steps back in LLVM's text from where a value goes to the instruction that was lost.
NEAR = 8

#: The registers that a return hands back, and those that a call takes.
RESULTS = frozenset(("a", "x0"))
ARGUMENTS = frozenset(
    ("di", "si", "d", "c", "r8", "r9", "r10", "r11", "a", *(f"v{n}" for n in range(8)), *(f"x{n}" for n in range(9)))
)

UNPLACED: frozenset[int] = frozenset()

_MADE = re.compile(r"\s+(%[\w.$-]+) = ")
_NAME = re.compile(r"%[\w.$-]+")
_TOKEN = re.compile(r"%(\w+)|\b([wxvqdsbhz]\d{1,2})\b")
_VECTOR = re.compile(r"[xyz]mm(\d+)")
_NUMBERED = re.compile(r"r(\d+)[dwb]?")
_TARGET = re.compile(r"(\.?[A-Za-z_]\w*)$")

#: Mnemonics (their beginnings) that only write their last operand; others of two operands read it, too.
_PLAIN = ("mov", "lea", "set", "pop", "cvt", "sqrt", "tzcnt", "lzcnt", "popcnt", "bsf", "bsr", "rorx", "shlx", "shrx", "sarx")
_WRITES_FLAGS = ("cmp", "test", "ucomi", "comi", "vucomi", "vcomi", "kortest", "ktest", "vtest", "ptest", "fcmp", "tst")
_READS_FLAGS = ("j", "cmov", "set", "sbb", "adc", "b.", "csel", "cset", "csinc", "csinv", "csneg", "fcsel")


@dataclass
class Step:
    """An instruction of a function, with the numbers of its places (none: a gap) and the labels in front of it."""

    text: str
    places: frozenset[int]
    labels: tuple[str, ...] = ()

    @lazy
    def mnemonic(self) -> str:
        return self.text.split(None, 1)[0]

    @lazy
    def operands(self) -> list[str]:
        rest = self.text.split(None, 1)[1:]
        parts, depth, part = [], 0, ""
        for c in rest[0] if rest else "":
            depth += (c in "([{") - (c in ")]}")
            if c == "," and not depth:
                parts.append(part.strip())
                part = ""
            else:
                part += c
        return [*parts, part.strip()] if part else parts

    @lazy
    def is_att(self) -> bool:
        return "%" in self.text or "$" in self.text

    @lazy
    def is_jump(self) -> bool:
        return self.mnemonic.startswith(("j", "b.", "cbz", "cbnz", "tbz", "tbnz")) or self.mnemonic == "b"

    @lazy
    def always_jumps(self) -> bool:
        return self.mnemonic in ("jmp", "jmpq", "b")

    @lazy
    def ends(self) -> bool:
        return self.mnemonic.startswith("ret") or self.mnemonic in ("ud2", "brk")

    @lazy
    def target(self) -> str:
        found = _TARGET.search(self.operands[-1]) if self.is_jump and self.operands else None
        return found[1] if found else ""

    @lazy
    def flags(self) -> str:
        if self.mnemonic.startswith(_READS_FLAGS) and self.mnemonic not in ("jmp", "jmpq"):
            return "reads"
        return "writes" if self.mnemonic.startswith(_WRITES_FLAGS) else ""

    @lazy
    def written(self) -> str:
        """The register it writes, "" where it writes none."""
        if self.is_jump or self.flags == "writes" or not self.operands:
            return ""
        if self.mnemonic.startswith(("push", "call", "st", "bl")):
            return ""
        place = self.operands[-1] if self.is_att else self.operands[0]
        if "(" in place or "[" in place:
            return ""
        found = registers(place)
        return found[0] if found else ""

    @lazy
    def read(self) -> frozenset[str]:
        if self.ends:
            return RESULTS
        if self.mnemonic.startswith(("call", "bl")):
            return ARGUMENTS
        if not self.operands:
            return frozenset()
        sources = self.operands[:-1] if self.is_att else self.operands[1:]
        place = self.operands[-1] if self.is_att else self.operands[0]
        found = {register for part in sources for register in registers(part)}
        if _is_zeroing(self):
            return frozenset()
        if self.written:
            found.update(registers(place)[1:])  # a mask
            if self._keeps(place):
                found.add(self.written)
        else:
            found.update(registers(place))
        return frozenset(found)

    def _keeps(self, place: str) -> bool:
        """Does what is written depend on what was there?"""
        name = self.mnemonic
        if "{" in place and "{z}" not in place:
            return True
        if name.startswith(("vfm", "vfnm", "fml", "movk", "ins", "bsl", "vpternlog", "vpermi2", "vpermt2")):
            return True
        if not self.is_att or name.startswith(("v", "k", *_PLAIN)):
            return False
        return len(self.operands) == 2 or len(self.operands) == 1


Line = tuple[str, frozenset[int]]  # of LLVM's text, with the numbers of its places

#: What an instruction does, by the beginning of its mnemonic; and by LLVM's operation.
_DOES = re.compile(
    r"v?p?(?:(?P<fma>fn?m(?:add|sub)|fml)|(?P<sqrt>f?sqrt)|(?P<add>f?add|inc|lea)|(?P<sub>f?sub|dec|neg)|(?P<mul>i?f?mul)"
    r"|(?P<div>i?[usf]?div)|(?P<least>f?min|f?max)|(?P<convert>cvt|scvtf|ucvtf|fcvt|movzx|movsx)|(?P<compare>f?cmp|ucomi|comi)"
    r"|(?P<shift>sh[lr]|sa[lr]|sll|srl|sra|lsl|lsr|asr)|(?P<bits>and|or|xor|not|eor|ternlog)"
    r"|(?P<lanes>shuf|perm|extract|insert|broadcast|unpck|dup|ext|zip))"
)
_OPERATIONS = {
    "fadd": "add", "add": "add", "fsub": "sub", "sub": "sub", "fneg": "sub", "fmul": "mul", "mul": "mul", "fdiv": "div",
    "sdiv": "div", "udiv": "div", "icmp": "compare", "fcmp": "compare", "shl": "shift", "lshr": "shift", "ashr": "shift",
    "and": "bits", "or": "bits", "xor": "bits", "shufflevector": "lanes", "insertelement": "lanes", "extractelement": "lanes",
    **dict.fromkeys(("sitofp", "uitofp", "fptosi", "fptoui", "fpext", "fptrunc", "zext", "sext", "trunc"), "convert"),
}  # fmt: skip
_CALLED = {"sqrt": "sqrt", "fma": "fma", "maxnum": "least", "minnum": "least", "maximum": "least", "minimum": "least"}
_OPERATION = re.compile(r" = (?:tail )?(?:(\w+)|)(?:.*?@llvm\.(\w+))?")


def filled(steps: Sequence[Step], lines: Sequence[Line] = ()) -> list[frozenset[int]]:
    """The places of each instruction of one function, gaps among them where what they are for is found. `lines`: the same
    function in LLVM's text, after its passes."""
    return _Gaps(steps, _Lost(steps, lines)).places


class _Lost:
    """Places that LLVM's text has and no instruction."""

    def __init__(self, steps: Sequence[Step], lines: Sequence[Line]) -> None:
        alive = UNPLACED.union(*(step.places for step in steps))
        self.numbers = UNPLACED.union(*(own for _, own in lines)) - alive
        self.lines = lines if self.numbers else ()
        self.does = [_does_in_text(text) for text, _ in self.lines]
        _, self.sources = _joined(self.lines)
        self.at: dict[int, list[int]] = {}
        for i, (_, own) in enumerate(self.lines):
            for number in own:
                self.at.setdefault(number, []).append(i)

    def found(self, step: Step, places: frozenset[int]) -> frozenset[int]:
        """The nearest lost places that do what the instruction does, on the way to the places that its value goes to."""
        does = _does(step.mnemonic) if self.numbers else ""
        if not does:
            return UNPLACED
        now = {i for number in places for i in self.at.get(number, ())}
        seen: set[int] = set()
        for _ in range(NEAR):
            now = {j for i in now for j in self.sources[i]} - seen
            seen |= now
            hits = [i for i in now if self.does[i] == does and self.lines[i][1] & self.numbers]
            if hits:
                return UNPLACED.union(*(self.lines[i][1] & self.numbers for i in hits))
        return UNPLACED


def _does(mnemonic: str) -> str:
    found = _DOES.match(mnemonic)
    return found.lastgroup or "" if found else ""


def _does_in_text(text: str) -> str:
    found = _OPERATION.search(text)
    if not found:
        return ""
    return _CALLED.get(found[2], "") if found[1] == "call" else _OPERATIONS.get(found[1] or "", "")


def _joined(lines: Sequence[Line]) -> tuple[list[list[int]], list[list[int]]]:
    """Of each line those that read what it makes, and those that make what it reads."""
    made: dict[str, int] = {}
    for i, (text, _) in enumerate(lines):
        name = _MADE.match(text)
        if name:
            made[name[1]] = i
    readers: list[list[int]] = [[] for _ in lines]
    sources: list[list[int]] = [[] for _ in lines]
    for i, (text, _) in enumerate(lines):
        own = _MADE.match(text)
        for found in _NAME.findall(text[own.end() :] if own else text):
            if found in made:
                readers[made[found]].append(i)
                sources[i].append(made[found])
    return readers, sources


def filled_names(lines: Sequence[Line]) -> list[frozenset[int]]:
    """The same for the instructions of one function in LLVM's text: what reads a name says what made it is for."""
    places = [places for _, places in lines]
    readers, sources = _joined(lines)
    gaps = [i for i, own in enumerate(places) if not own]
    for ways in (readers, sources):  # what nothing reads, a branch or a store, belongs to what it reads
        for _ in range(8):
            found = {i: UNPLACED.union(*(places[j] for j in ways[i])) for i in reversed(gaps) if ways[i]}
            if all(places[i] == new for i, new in found.items()):
                break
            for i, new in found.items():
                places[i] = places[i] | new
        gaps = [i for i in gaps if not places[i]]
    return places


class _Gaps:
    def __init__(self, steps: Sequence[Step], lost: _Lost) -> None:
        self.steps = steps
        self.labels = {label: i for i, step in enumerate(steps) for label in step.labels}
        self.places = [step.places for step in steps]
        for _ in range(4):  # a gap may wait for one that comes later
            before = list(self.places)
            for i in reversed(range(len(steps))):
                if not steps[i].places:
                    found = self._found(i)
                    self.places[i] = lost.found(steps[i], found) or found or self.places[i]
            if before == self.places:
                break

    def _found(self, i: int) -> frozenset[int]:
        step = self.steps[i]
        if step.flags == "writes":
            return self._of_reader(i, "")
        if step.written:
            return self._of_reader(i, step.written)
        if step.is_jump:
            at = [self.labels.get(step.target, -1)] + ([] if step.always_jumps else [i + 1])
            return frozenset().union(*(self._next(j) for j in at))
        return self._of_writer(i)

    def _after(self, i: int) -> list[int]:
        step = self.steps[i]
        if step.ends:
            return []
        ways = [] if step.always_jumps else [i + 1]
        if step.is_jump and step.target in self.labels:
            ways.append(self.labels[step.target])
        return [j for j in ways if j < len(self.steps)]

    def _of_reader(self, i: int, register: str) -> frozenset[int]:
        """Of all that read the register (or the flags: "") before it is written again."""
        found: set[int] = set()
        seen: set[int] = set()
        todo = self._after(i)
        while todo and len(seen) < REACH:
            j = todo.pop()
            if j in seen:
                continue
            seen.add(j)
            step = self.steps[j]
            reads = register in step.read if register else step.flags == "reads"
            if reads:
                found |= self.places[j]
            over = step.written == register and not reads if register else step.flags == "writes" or reads
            if not over:
                todo += self._after(j)
        return frozenset(found)

    def _of_writer(self, i: int) -> frozenset[int]:
        """Of what made the values that a store moves."""
        wanted = set(self.steps[i].read)
        found: set[int] = set()
        for j in range(i - 1, max(i - 60, -1), -1):
            if self.steps[j].written in wanted:
                wanted.discard(self.steps[j].written)
                found |= self.places[j]
            if not wanted:
                break
        return frozenset(found)

    def _next(self, j: int) -> frozenset[int]:
        """Of the first instruction from here on that has a place."""
        seen: set[int] = set()
        while 0 <= j < len(self.steps) and j not in seen:
            seen.add(j)
            if self.places[j]:
                return self.places[j]
            ways = self._after(j)
            if not ways:
                break
            j = ways[-1] if self.steps[j].always_jumps else ways[0]
        return frozenset()


def registers(operand: str) -> list[str]:
    """The registers in an operand, each by one name for all its widths."""
    return [_family(x86 or arm) for x86, arm in _TOKEN.findall(operand)]


def _family(name: str) -> str:
    vector = _VECTOR.fullmatch(name)
    if vector:
        return f"v{vector[1]}"
    numbered = _NUMBERED.fullmatch(name)
    if numbered:
        return f"r{numbered[1]}"
    if name[:1] in "vqdsbhz" and name[1:].isdigit():
        return f"v{name[1:]}"
    if name[:1] in "wx" and name[1:].isdigit():
        return f"x{name[1:]}"
    stem = name.lstrip("re") if len(name) == 3 else name
    stem = stem.removesuffix("l") if stem in ("sil", "dil", "bpl", "spl") else stem
    return stem[0] if stem in ("ax", "bx", "cx", "dx", "al", "bl", "cl", "dl", "ah", "bh", "ch", "dh") else stem


def _is_zeroing(step: Step) -> bool:
    """xor of a register with itself reads nothing."""
    return "xor" in step.mnemonic and len(step.operands) > 1 and len(set(step.operands[:2])) == 1
