"""What each line of the program cost. A kernel is one loop over all its lines: its time stands once, for all of them together,
and no line is given a part of it that nobody measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jitlab.messages import text, units
from jitlab.messages.escape import clean
from jitlab.ops.layout.views import VIEW_WORDS
from jitlab.report.render import wording
from jitlab.support.lazy_dataclass import dataclass

Json = dict[str, Any]
Place = tuple[str, int]  # file and line

#: Operations that are views in NumPy.
VIEWS = frozenset({*VIEW_WORDS, "Reshape"})
#: An operation that is a loop of the program.
LOOP = "While"
#: So many things in a line are named, more are counted.
MOST_NAMES = 2


@dataclass(frozen=True)
class Line:
    """A line of the program. `seconds`: of what begins in it, all runs together; None where nothing does, or nothing was timed.
    `span`: the numbers of all lines that this is the time of. `head`: where the time of this line's kernel stands else."""

    file: str
    line: int
    text: str
    what: str  # "k0", "k0 + k1", "host", "Python", "" for none
    seconds: float | None = None
    span: tuple[int, ...] = ()
    head: Place | None = None

    @property
    def cost(self) -> str:
        """ "k0 5.3 ms, lines 4–9", "k0 with line 4", "" for a line without operations."""
        if self.seconds is not None:
            of = f", {wording.line_text(self.span)}" if len(self.span) > 1 else ""
            return f"{self.what} {units.duration(self.seconds)}{of}"
        if self.head is None:
            return f"in {self.what}" if self.what else ""
        file, line = self.head
        return f"{self.what} with {'' if file == self.file else f'{wording.short_file(file)}, '}line {line}"

    def __str__(self) -> str:
        return f"{self.line:>4}  {self.text:<60}  {self.cost}".rstrip()


class Part(NamedTuple):
    """Something that took time: a kernel, an operation on the host, a statement."""

    kind: str  # "kernel", "host" or "Python"
    name: str
    places: tuple[Place, ...]  # all lines, in order
    head: Place  # the topmost line in the file of its first operation
    seconds: float | None
    is_given_up: bool = False  # of a plan that did not fit any more: Python ran its statements
    is_loop: bool = False  # a kernel that is a loop of the program: of its lines none has a time of its own

    def lines(self, file: str) -> tuple[int, ...]:
        return tuple(line for f, line in self.places if f == file)


def parts(data: Mapping[str, Any]) -> list[Part]:
    """What took time, in program order; plans that are alike are one."""
    ops = {(op["plan"], op["name"]): op for op in data["ops"]}
    like = {plan["name"]: plan.get("like", plan["name"]) for plan in data["plans"]}
    gone = {plan["name"] for plan in data["plans"] if plan.get("given_up")}
    found: dict[Any, list[Any]] = {}
    number: dict[Any, int] = {}

    def add(
        kind: str, plan: str, name: str, spans: Iterable[Sequence[Any]], seconds: float | None, is_loop: bool = False
    ) -> None:  # fmt: skip
        """The n-th kernel (or call of NumPy) of a plan is the n-th of those that are alike."""
        at = number[kind, plan] = number.get((kind, plan), -1) + 1
        entry = found.setdefault((kind, like.get(plan, plan), at), [kind, name, list(spans), None, plan in gone, is_loop])
        if seconds is not None:
            entry[3] = (entry[3] or 0.0) + seconds

    for kernel in data["kernels"]:
        inside = [ops[kernel["plan"], name] for name in kernel["ops"] if (kernel["plan"], name) in ops]
        if kernel.get("kind") == "library":  # it takes the time, and what it sees its operand through takes none
            inside = [op for op in inside if op["op"] not in VIEWS] or inside
        is_loop = any(op["op"] == LOOP for op in inside)
        spans = (span for op in inside for span in op["lines"])
        add("kernel", kernel["plan"], kernel["name"], spans, kernel["seconds"], is_loop)
    for fallback in data["fallbacks"]:
        add("host", fallback["plan"], fallback.get("written") or fallback["op"], fallback["lines"], fallback["seconds"])
    for at, statement in enumerate(data.get("statements", ())):
        add("Python", f"statement {at}", "", statement["lines"], statement["seconds"])
    return sorted((_part(*entry) for entry in found.values() if entry[2]), key=lambda part: part.head)


def _part(
    kind: str, name: str, spans: Sequence[Sequence[Any]], seconds: float | None, is_given_up: bool, is_loop: bool
) -> Part:
    file = str(spans[0][0])
    head = min(int(span[1]) for span in spans if span[0] == file)
    places = tuple(sorted({(str(span[0]), int(span[1])) for span in spans}))
    return Part(kind, name, places, (file, head), seconds, is_given_up, is_loop)


def slowest(data: Mapping[str, Any]) -> Json | None:
    """`verdict.slowest` of docs/reference/report-format.md: the lines that took longest; None where nothing was timed. What ran
    of a plan that was given up is part of the time, and never what is named: Python did all of it again."""
    timed = [part for part in parts(data) if part.seconds]
    groups: dict[Any, list[Part]] = {}
    for part in [part for part in timed if not part.is_given_up]:
        groups.setdefault((part.places, part.head), []).append(part)
    if not groups:
        return None
    most = max(groups.values(), key=_seconds)
    places, (file, _) = most[0].places, most[0].head
    own = most[0].lines(file)
    kind = _kind(most, len(places) > 1)
    text = where_text(places, home_file(data)) + (f" ({kind})" if kind else "")
    seconds, whole = _seconds(most), _seconds(timed)
    return {
        "text": text, "file": file, "lines": list(own), "seconds": seconds, "share": seconds / whole,
        "kernels": [part.name for part in most if part.kind == "kernel"],
    }  # fmt: skip


def home_file(data: Mapping[str, Any]) -> str:
    """The file whose lines need no name of it: the cell's own, else the one of most operations."""
    cell = data.get("cell", {}).get("id")
    cells = {str(piece["file"]): piece.get("cell") for piece in data.get("sources", ())}
    own = next((file for file, of in cells.items() if cell and of == cell), None)
    files = Counter(str(span[0]) for op in data["ops"] for span in op["lines"])
    eligible = [file for file in files if cells.get(file) in (None, cell)]  # no other cell's
    return own if own is not None else max(eligible, key=lambda file: files[file], default="")


def where_text(places: Iterable[Place], home: str) -> str:
    """ "lines 4–9", "line 7 and lines 2–3 of In [5]": numbers of two files never stand in one row."""
    by_file: dict[str, list[int]] = {}
    for file, line in sorted(places, key=lambda place: (place[0] != home, place)):
        by_file.setdefault(file, []).append(line)
    of = {file: "" if file == home else f" of {wording.short_file(file)}" for file in by_file}
    return " and ".join(f"{wording.line_text(lines)}{of[file]}" for file, lines in by_file.items())


def in_words(found: Mapping[str, Any]) -> str:
    """ "lines 4–9 (one kernel), 5.3 ms, 54 % of the work"."""
    share = f", {units.percent(found['share'])} of the work" if found["share"] < 0.995 else ""
    return f"{found['text']}, {units.duration(found['seconds'])}{share}"


def _seconds(group: Iterable[Part]) -> float:
    return sum(part.seconds or 0.0 for part in group)


def _kind(group: Sequence[Part], is_long: bool) -> str:
    """What runs in these lines: "one kernel", "2 kernels and np.sort(x) in NumPy"; "" for one kernel in one line."""
    kernels = sum(part.kind == "kernel" for part in group)
    if len(group) == 1 and group[0].is_loop and is_long:
        return text("loop.whole")
    words = [] if not kernels else ["one kernel"] if kernels == 1 else [f"{kernels} kernels"]
    words += [f"{part.name} in NumPy" for part in group if part.kind == "host"][:MOST_NAMES]
    words += ["run by Python"] if any(part.kind == "Python" for part in group) else []
    return "" if words == ["one kernel"] and not is_long else " and ".join(words)


def line_costs(data: Mapping[str, Any]) -> list[Line]:
    """Every line of the sources that the report has, with what it cost."""
    at: dict[Place, list[Part]] = {}
    for part in parts(data):
        for place in () if part.is_given_up else part.places:  # the time of these lines is Python's
            at.setdefault(place, []).append(part)
    return [_line(file, number, text, at.get((file, number), ())) for file, number, text in _text(data)]


def _text(data: Mapping[str, Any]) -> Iterator[tuple[str, int, str]]:
    for piece in data.get("sources", ()):
        for number, line in enumerate(piece["lines"], piece["first"]):
            yield piece["file"], number, line


def _line(file: str, number: int, text: str, here: Sequence[Part]) -> Line:
    text = clean(text.expandtabs(4))
    timed = [part for part in here if part.head == (file, number) and part.seconds is not None]
    if timed:
        span = sorted({line for part in timed for line in part.lines(file)})
        return Line(file, number, text, _names(timed), _seconds(timed), tuple(span))
    kernels = [part for part in here if part.kind == "kernel"] or list(here)
    heads = {part.head for part in kernels if part.seconds is not None}
    head = heads.pop() if len(heads) == 1 else None
    return Line(file, number, text, _names(kernels), None, (), head if head != (file, number) else None)


def _names(here: Sequence[Part]) -> str:
    names = list(dict.fromkeys(part.name if part.kind == "kernel" else part.kind for part in here))
    return " + ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} parts"
