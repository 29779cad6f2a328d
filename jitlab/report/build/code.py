"""The code of a cluster at each stage, line by line, each line with the lines of the program it came from.

    code = report.code("cluster_0", "asm")
    print(code)                        # assembly beside line numbers of the cell
    [line.text for line in code.lines if ("In [8]", 5) in line.at]

Lines and instructions belong to one another many to many: a fused instruction may stand for several lines of the program, and
one line of the program becomes many instructions. Nothing is guessed: see the listing of each target for the sources.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jitlab import messages
from jitlab.ir import UNKNOWN, ClusterCode, Origin, Origins
from jitlab.ir.programs.program_lines import located_lines
from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.devices import OF_GPUS, code_stages, target_of
from jitlab.targets.target import Listed, Listing

Json = dict[str, Any]

#: Longer names of the program stand above its lines.
LONGEST_NAME = 24


def known_stages() -> tuple[str, ...]:
    """The stages that can be asked for; those behind "program" are the targets'."""
    return ("graph", "program", *code_stages())


@dataclass(frozen=True)
class CodeLine:
    """One line of a stage. `at`: (file, line) of the program, as in `lines` of the report; `ops`: names of operations.

    `noise`: no work of the program's, as `Code.share` has it.
    """

    text: str
    at: tuple[tuple[str, int], ...] = ()
    ops: tuple[str, ...] = ()
    kernel: str | None = None
    noise: bool = False

    def to_json(self) -> Json:
        return {
            "text": self.text, "at": [list(place) for place in self.at], "ops": list(self.ops), "kernel": self.kernel,
            "noise": self.noise,
        }  # fmt: skip


@dataclass(frozen=True)
class Absorbed:
    """An operation without a line of its own at this stage: `into` names those whose code does its work; `text` says why."""

    op: str
    into: tuple[str, ...]
    text: str

    def to_json(self) -> Json:
        return {"op": self.op, "into": list(self.into), "text": self.text}


@dataclass(frozen=True)
class Code:
    """A cluster's code at one stage."""

    cluster: str
    stage: str
    lines: tuple[CodeLine, ...]
    absorbed: tuple[Absorbed, ...] = ()
    note: str | None = None

    @property
    def share(self) -> float:
        """The share of lines that say which lines of the program they came from; noise counts on neither side.

        Noise is what the program's operations did not ask for: labels, directives, declarations and constant pools; the
        function that hands out chunks of the loops, the entry and exit of a kernel's function (saved registers, the stack
        frame, the returned status), moves between a register and its slot on the stack (spills), and the care for signals.
        """
        own = [line for line in self.lines if not line.noise]
        return sum(bool(line.at) for line in own) / len(own) if own else 1.0

    def to_json(self) -> Json:
        """What the panel gets."""
        return {
            "cluster": self.cluster, "stage": self.stage, "lines": [line.to_json() for line in self.lines],
            "absorbed": [entry.to_json() for entry in self.absorbed], "share": round(self.share, 4), "note": self.note,
        }  # fmt: skip

    def __str__(self) -> str:
        """The lines with the program's line numbers at the left; noise is folded."""
        files = {file for line in self.lines for file, _ in line.at}
        gutter = [_gutter(line.at, len(files) > 1) for line in self.lines]
        width = max([len(text) for text, line in zip(gutter, self.lines, strict=True) if not line.noise], default=0)
        width = min(max(width, 4), 24)
        out: list[str] = []
        folded = 0

        def fold() -> None:
            if folded:
                out.append(f"{'':>{width}} ┊ {units.counted(folded, 'line')} folded")

        for text, line in zip(gutter, self.lines, strict=True):
            if line.noise:
                folded += 1
                continue
            fold()
            folded = 0
            shown = text if len(text) <= width else text[: width - 1] + "…"
            out.append(f"{shown:>{width}} │ {clean(line.text.expandtabs(8)).rstrip()}")
        fold()
        out += [f"{'':>{width}} ┊ {clean(entry.text)}" for entry in self.absorbed]
        return "\n".join([*out, *([self.note] if self.note else [])])

    def __repr__(self) -> str:
        own = sum(not line.noise for line in self.lines)
        share = f"{units.percent(self.share)} with a line of the program" if own else "none here"
        return f"<Code of {self.cluster}, {self.stage}: {units.counted(own, 'line')}, {share}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def cluster_code(
    code: ClusterCode, cluster: str, stage: str, function: str, *, reads: Mapping[str, Sequence[str]],
    file_name: Callable[[str], str] | None = None,
) -> Code:  # fmt: skip
    """The code of a cluster. `reads`: what each operation reads, by names of the report; `file_name`: as reports call files."""
    made = _Maker(code, function, file_name)
    if stage == "graph":
        return Code(cluster, stage, tuple(made.graph()))
    if stage == "program":
        lines = made.program()
        return Code(cluster, stage, tuple(lines), made.absorbed(lines, reads))
    target = target_of(code.target)
    if stage not in target.stages:
        why = f"There is no {stage} of this cluster."
        if stage in OF_GPUS:
            why = messages.text("gpu.not_there", what=OF_GPUS[stage])
        return Code(cluster, stage, (), note=f"{why} What runs is the stage {target.stages[-1]}.")
    listing = target.listing(code.program)
    lines = made.machine(listing.lines(stage), listing)
    if not lines:  # the note says why
        return Code(cluster, stage, (), note=listing.note(stage))
    comment = listing.comment(stage)
    if comment is not None:
        means = ", ".join(f"{name} is {value}" for name, value in made.means().items())
        lines.insert(0, CodeLine(f"{comment} {means}", noise=True))
    absorbed = made.absorbed(lines, reads)
    return Code(cluster, stage, tuple(made.with_absorbed(lines, absorbed)), absorbed, listing.note(stage))


class _Maker:
    """Makes the lines of one cluster's stages."""

    def __init__(self, code: ClusterCode, function: str, file_name: Callable[[str], str] | None) -> None:
        self.code = code
        self.function = re.sub(r"[^\w.$]+", "_", function).strip("_") or "function"
        self.file_name = file_name or (lambda file: file)
        self.files: dict[str, str] = {}
        self.by_sources: dict[Any, list[str]] = {}
        for origin, names in code.names.items():
            self.by_sources.setdefault(origin.sources, []).extend(names)
        self.known: dict[tuple[Origins, str | None], tuple[Any, Any]] = {}

    def line(self, text: str, origins: Origins, kernel: str | None, noise: bool = False) -> CodeLine:
        if noise or not origins:
            return CodeLine(text, kernel=kernel, noise=noise)
        found = self.known.get((origins, kernel))
        if found is None:
            at = sorted({(self._file(s.file), s.line) for origin in origins for s in origin.sources})
            ops = dict.fromkeys(name for origin in self._sorted(origins) for name in self._names(origin))
            found = self.known[origins, kernel] = tuple(at), tuple(ops)
        return CodeLine(text, found[0], found[1], kernel)

    def _sorted(self, origins: Iterable[Origin]) -> list[Origin]:
        place = {origin: i for i, origin in enumerate(self.code.names)}
        return sorted(origins, key=lambda origin: (place.get(origin, len(place)), origin.name))

    def _names(self, origin: Origin) -> Sequence[str]:
        """The report's operations that an origin is: what lowering made itself, a move or a copy, is of those of its lines."""
        known: Sequence[str] = self.code.names.get(origin, ())
        return known or self.by_sources.get(origin.sources, ())

    def _file(self, file: str) -> str:
        if file not in self.files:
            self.files[file] = self.file_name(file)
        return self.files[file]

    # -- stages

    def graph(self) -> list[CodeLine]:
        result = []
        for text, origins in self.code.graph:
            mine = any(origin in self.code.names for origin in origins)  # else a constant, or of another cluster
            result.append(self.line(text, origins if mine else UNKNOWN, None, not mine))
        return result

    def program(self) -> list[CodeLine]:
        p = self.code.program
        lines = located_lines(p, written=True)
        means = self.means()
        names = _free_names(means, [text for text, _, _ in lines])
        what = [f"{name} is {value}" for name, value in means.items() if name not in names]
        result = [CodeLine(f"# {', '.join(what)}", noise=True)] if what else []
        for text, origins, kernel in lines:
            name = self.code.kernels.get(kernel)
            head = text == f"  kernel {kernel}:"
            text = text if head else _NAMES.sub(lambda found: names.get(found[0], found[0]), text)
            result.append(self.line(f"  kernel {self.function}.{name}:" if head else text, origins, name, head or not kernel))
        return result

    def means(self) -> dict[str, str]:
        """What the Program's inputs, outputs and numbers are in the program."""
        p = self.code.program
        held = [*zip(p.inputs, self.code.inputs, strict=True), *zip(p.outputs, self.code.outputs, strict=True)]
        means = {b.name: name for b, name in held}
        return means | {name: value for (name, _), value in zip(p.scalars, self.code.scalars, strict=True)}

    def machine(self, listed: Sequence[Listed], listing: Listing) -> list[CodeLine]:
        names = self._functions(listing)
        pattern = re.compile(rf"(?<![\w.$])({'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?![\w.$])")
        result = []
        for line in listed:
            text = pattern.sub(lambda found: names[found[0]], line.text) if names else line.text
            kernel = self.code.kernels.get(line.place.kernel)
            result.append(self.line(text, line.place.origins, kernel, line.noise))
        return result

    def _functions(self, listing: Listing) -> dict[str, str]:
        """What the functions of the code are called: by the user's function, then the kernel."""
        names = {name: shown.replace("{function}", self.function) for name, shown in listing.helpers.items()}
        count: dict[str, int] = {}
        for phase, kernel in listing.functions.items():
            name = self.code.kernels[kernel]
            count[name] = count.get(name, 0) + 1
            names[phase] = f"{self.function}.{name}" + (f".part{count[name]}" if count[name] > 1 else "")
        return names

    # -- what has no line

    def absorbed(self, lines: Sequence[CodeLine], reads: Mapping[str, Sequence[str]]) -> tuple[Absorbed, ...]:
        """The operations of the cluster that no line names, each with those that do its work."""
        alive = {name for line in lines for name in line.ops}
        readers: dict[str, list[str]] = {}
        for name, sources in reads.items():
            for source in sources:
                readers.setdefault(source, []).append(name)
        result = []
        for name in (name for names in self.code.names.values() for name in names):
            if name not in alive:
                into = _nearest(name, readers, alive) or _nearest(name, reads, alive)
                result.append(Absorbed(name, into, self._why(name, into)))
        return tuple(result)

    def _why(self, name: str, into: tuple[str, ...]) -> str:
        if not into:
            return f"{name} left nothing to compute: nobody reads what it would change."
        return f"{name} has no line of its own here: {' and '.join(into[:3])} {'does' if len(into) == 1 else 'do'} its work."

    def with_absorbed(self, lines: Sequence[CodeLine], absorbed: Sequence[Absorbed]) -> list[CodeLine]:
        """The lines of who does an operation's work say that operation's lines, too."""
        if not absorbed:
            return list(lines)
        taken: dict[str, list[str]] = {}
        for entry in absorbed:
            for name in entry.into:
                taken.setdefault(name, []).append(entry.op)
        at_of = {
            name: {(self._file(s.file), s.line) for s in origin.sources}
            for origin, names in self.code.names.items()
            for name in names
        }
        result = []
        for line in lines:
            more = [name for own in line.ops for name in taken.get(own, ())]
            if more:
                at = {*line.at, *(place for name in more for place in at_of[name])}
                line = CodeLine(line.text, tuple(sorted(at)), tuple(dict.fromkeys((*line.ops, *more))), line.kernel, False)
            result.append(line)
        return result


#: What may be a name in a line.
_NAMES = re.compile(r"(?<![\w.])[a-z]\d+(?!\w)")

#: What indices are called where the program's names leave that free.
_INDICES = {"a0": "i", "a1": "j", "a2": "k"}


def _free_names(means: Mapping[str, str], lines: Sequence[str]) -> dict[str, str]:
    """By what the lines call values and numbers: what the program does, where that says nothing else in them."""
    taken = set(re.findall(r"[^\W\d]\w*", "\n".join(lines))) - {"x"}  # between sizes
    often = Counter(means.values())
    names = {name: said for name, said in means.items() if _is_short(said) and (said not in taken and often[said] == 1)}
    names |= {name: said for name, said in means.items() if _is_number(said)}
    given = set(names.values())
    return names | {name: said for name, said in _INDICES.items() if said not in taken | given}


def _is_short(name: str) -> bool:
    return name.isidentifier() and len(name) <= LONGEST_NAME


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d[\d.e+-]{,7}", text) is not None


def _nearest(name: str, ways: Mapping[str, Sequence[str]], alive: set[str]) -> tuple[str, ...]:
    """The nearest operations along the ways that have lines."""
    found: dict[str, None] = {}
    seen, todo = {name}, list(ways.get(name, ()))
    while todo:
        other = todo.pop(0)
        if other in seen:
            continue
        seen.add(other)
        if other in alive:
            found[other] = None
        else:
            todo += ways.get(other, ())
    return tuple(found)


def _gutter(at: Sequence[tuple[str, int]], several: bool) -> str:
    if not several:
        return ",".join(str(line) for _, line in at)
    return ",".join(f"{clean(file).rsplit('/', 1)[-1]}:{line}" for file, line in at)

