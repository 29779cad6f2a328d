"""Report: what a person and a test ask of a recording. Made of the JSON of docs/report-format.md and nothing else."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jitlab.capture import says_where
from jitlab.errors import OptionError
from jitlab.ir import told

from . import wording
from .recording import known_code, known_text

if TYPE_CHECKING:
    from graphviz import Digraph

    from jitlab.ir import ClusterCode

    from .chrome import Timeline
    from .code import Code
    from .comparing import RunComparison
    from .lines import Line
    from .samples import Samples

T = TypeVar("T")

#: Readers of an input that an error names.
MOST_READERS = 4
MIME = "application/vnd.jitlab.report+json"
STAGES = ("graph", "program", "llvm", "asm", "ptx")


@dataclass(frozen=True)
class Reason:
    """Why: `code` is of a closed list, `text` its sentence."""

    code: str
    text: str
    evidence: tuple[str, ...] = ()  # what shows it: the way of a cycle, the two scopes, the sizes, ...

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Op:
    """One operation; `cluster` None: not compiled, `reason` says why. `lines` are numbers, `spans` have file and columns."""

    name: str
    op: str
    plan: str
    cluster: str | None
    kernel: str | None
    reason: Reason | None
    lines: tuple[int, ...]
    spans: tuple[tuple[Any, ...], ...]
    shape: tuple[int, ...]
    dtype: str
    inputs: tuple[str, ...]
    scope: str | None
    seconds: float | None
    would_compile_if: str | None = None  # the smallest change found that would put it into a cluster
    parent: str | None = None  # the loop or branch in whose body it is
    called: str = ""  # what the program calls it: `inv6`, or its expression; "" where nobody knows
    within: str = ""  # the helper function in which it is made

    def __str__(self) -> str:
        return told(self.name, self.called, self.within, lines=wording.line_text(self.lines))


@dataclass(frozen=True)
class Cluster:
    """Operations compiled together into one native function. Times are totals of `calls`, bytes and flops those of one call."""

    name: str
    plan: str
    ops: tuple[str, ...]
    kernels: tuple[str, ...]
    reason: Reason
    lines: tuple[int, ...]
    calls: int
    seconds: float | None
    flops: int
    bytes_read: int
    bytes_written: int
    bytes_saved: int | None = None  # by fusion, against op by op; None: unknown
    temporary_bytes: int = 0
    allocated_bytes: int | None = None  # scratch that a call asked the allocator for; None: nobody saw it run


@dataclass(frozen=True)
class Kernel:
    """One fused nest or one library call of a cluster."""

    name: str
    plan: str
    cluster: str
    ops: tuple[str, ...]
    kind: str
    lines: tuple[int, ...]
    calls: int
    seconds: float | None
    bytes_read: int
    bytes_written: int
    flops: int
    bound: str | None
    of_peak: float | None
    nests: tuple[Any, ...] = ()  # what is fused in the loops and branches of it, as JSON has it
    bytes_saved: int | None = None


@dataclass(frozen=True)
class Trace:
    """One capture of a function. `seconds`: what the call waited for it."""

    function: str
    trace: int
    cause: str
    causes: tuple[str, ...]
    argument: str
    before: str
    after: str
    lines: tuple[int, ...]
    spans: tuple[tuple[Any, ...], ...]
    seconds: float
    calls: int
    text: str
    fix: str | None
    first: bool
    proof: str = ""  # the fix in words, with what its replay on the recorded calls gave
    changes: tuple[tuple[str, str, str, str], ...] = ()  # every cause with its argument, before, after
    site: tuple[str, int] = ("", 0)  # the line that called


@dataclass(frozen=True)
class Variant:
    """Another form of the kernels of a known trace: no retrace. `cause` is of the closed list VariantCause."""

    function: str
    trace: int
    cluster: str  # "" where the trace was captured again
    cause: str
    argument: str
    before: str
    after: str
    lines: tuple[int, ...]
    spans: tuple[tuple[Any, ...], ...]
    seconds: float


@dataclass(frozen=True)
class Fallback:
    """An operation that NumPy runs between clusters."""

    op: str
    name: str
    plan: str
    lines: tuple[int, ...]
    spans: tuple[tuple[Any, ...], ...]
    reason: Reason | None
    seconds: float | None
    calls: int


@dataclass(frozen=True)
class Boundary:
    """An edge that was not fused: within a cluster, or between clusters. `said`: both ends as the program calls them."""

    producer: str
    consumer: str
    plan: str
    reason: Reason
    bytes: int
    would_fuse_if: str | None
    said: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Temporary:
    """A value that still reaches memory between kernels, `bytes` each call. `place` "scratch": inside its cluster; "result":
    it leaves the cluster for `consumers`."""

    name: str
    plan: str
    cluster: str | None
    producer: str
    consumers: tuple[str, ...]
    bytes: int
    place: str
    lines: tuple[int, ...]
    spans: tuple[tuple[Any, ...], ...]
    consumer_lines: tuple[int, ...]
    reason: Reason
    said: tuple[str, ...] = ()  # the value, then who reads it, as the program calls them


@dataclass(frozen=True)
class Statement:
    """A statement of a cell that was not captured and that Python ran."""

    text: str
    reason: Reason
    lines: tuple[int, ...]
    spans: tuple[tuple[Any, ...], ...]
    seconds: float
    calls: int


@dataclass(frozen=True)
class Loop:
    """A loop that did not become one loop of the graph: its iterations were recorded one by one, or Python ran them."""

    function: str
    text: str
    reason: Reason
    lines: tuple[int, ...]
    spans: tuple[tuple[Any, ...], ...]
    iterations: int
    times: int  # that it was recorded


@dataclass(frozen=True)
class Answer:
    """The answer to `why` or `why_not`: one sentence, the reason's code, and what would change it."""

    text: str
    code: str
    fused: bool
    would_fuse_if: str | None = None
    checked: bool | None = None  # the changed version was compiled: does the flip hold? None: not asked, or not to be expressed
    about: tuple[str, str, str | None] | None = None  # plan, and an operation that is not compiled or an edge that is not fused

    def __str__(self) -> str:
        return self.text


class Listing(list[T]):
    """A list that shows a line for each of its things."""

    def __str__(self) -> str:
        return "\n".join(_line(item) for item in self) or "none"

    def __repr__(self) -> str:
        return f"[{', '.join(f'<{_line(item)}>' for item in self)}]" if len(self) < 2 else f"[\n{self._indented()}\n]"

    def _indented(self) -> str:
        return "\n".join(f"  <{_line(item)}>" for item in self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


def _line(item: Any) -> str:
    """The thing in a line: what, where, why, how long."""
    match item:
        case Cluster() | Kernel():
            what = wording.counted(len(item.ops), "operation")
            what += f", {wording.counted(len(item.kernels), 'kernel')}" if isinstance(item, Cluster) else ""
            text = f"{item.name}{_at(item.lines)}: {what}{_took(item.seconds)}"
        case Trace():
            text = f"{item.function} #{item.trace}{_at(item.lines)}: {item.text}{_took(item.seconds)}"
        case Variant():
            change = f"{item.argument} was {item.before}, then {item.after}"
            text = f"{item.cluster or item.function} again{_at(item.lines)}: {change} ({item.cause}){_took(item.seconds)}"
        case Op():
            text = f"{item.op} {item}: {item.cluster or item.reason or 'not compiled'}"
        case Fallback():
            text = f"{item.op}{_at(item.lines)}: {item.reason}{_took(item.seconds)}"
        case Boundary():
            size = "" if wording.names_size(str(item.reason)) else f", {wording.size(item.bytes)}"
            text = f"{' → '.join(item.said)}: {item.reason}{size}"
        case Temporary():
            name, *readers = item.said
            text = f"{name} → {', '.join(readers)}: {wording.size(item.bytes)}, {item.reason}"
        case Statement():
            text = f"{item.text}{_at(item.lines)}: {item.reason}{_took(item.seconds)}"
        case Loop():
            text = f"{item.text}{_at(item.lines)}, {wording.counted(item.iterations, 'iteration')}: {item.reason}"
        case _:
            text = str(item)
    return wording.clean(text)


def _at(lines: Iterable[int]) -> str:
    where = wording.line_text(lines)
    return f", {where}" if where else ""


def _took(seconds: float | None) -> str:
    return "" if seconds is None else f", {wording.duration(seconds)}"


class Report:
    """What happened: lists of plain objects, text, pictures, files. It doesn't change after it was made."""

    def __init__(
        self, data: Mapping[str, Any], texts: Mapping[str, Mapping[tuple[str, str], str]] | None = None,
        codes: Mapping[str, ClusterCode] | None = None, file_name: Callable[[str], str] | None = None,
        samples: Mapping[tuple[str, int, str], Samples] | None = None, others: float | None = None,
    ) -> None:  # fmt: skip
        self.data = data  # shared, never changed; `to_json()` is a copy
        self.saved: Mapping[str, Any] | None = None  # what is shown in its stead, where that is settled (settled.py)
        self._stages = texts or {}  # of each cluster, where the recording heard of its plan
        self._codes, self._file_name = codes or {}, file_name
        self._others = others  # the share of the processors that other programs took
        self._samples = samples  # of each (function, trace, cluster or host operation); they are not in `data`

    @cached_property
    def ops(self) -> list[Op]:
        return Listing(_made(Op, entry) for entry in self.data["ops"])

    @cached_property
    def clusters(self) -> list[Cluster]:
        return Listing(_made(Cluster, entry) for entry in self.data["clusters"])

    @cached_property
    def kernels(self) -> list[Kernel]:
        return Listing(_made(Kernel, entry) for entry in self.data["kernels"])

    @cached_property
    def traces(self) -> list[Trace]:
        """Every capture, the first of each function too."""
        return Listing(_made(Trace, entry) for entry in self.data["retraces"])

    @cached_property
    def retraces(self) -> list[Trace]:
        """Captures after the first, each with its cause."""
        return Listing(trace for trace in self.traces if not trace.first)

    @cached_property
    def variants(self) -> list[Variant]:
        """Other forms of kernels of known traces, each with its cause: layout, alignment, ... These are no retraces."""
        return Listing(_made(Variant, entry) for entry in self.data.get("variants", ()))

    @cached_property
    def fallbacks(self) -> list[Fallback]:
        return Listing(_made(Fallback, entry) for entry in self.data["fallbacks"])

    @cached_property
    def boundaries(self) -> list[Boundary]:
        return Listing(
            replace(made, said=(self._said(made.plan, made.producer), self._said(made.plan, made.consumer)))
            for made in (_made(Boundary, entry) for entry in self.data["boundaries"])
        )

    def _said(self, plan: str, name: str) -> str:
        """An operation as the program calls it: "`inv6` (realdiv_1, line 7)"."""
        op = self._named.get((plan, name))
        return str(op) if op is not None else name

    @cached_property
    def _named(self) -> dict[tuple[str, str], Op]:
        return {(op.plan, op.name): op for op in self.ops}

    @cached_property
    def temporaries(self) -> list[Temporary]:
        """Values that reach memory although they are no results, each with its readers, bytes and reason, the largest first."""
        entries = sorted(self.data.get("temporaries", ()), key=lambda entry: -int(entry["bytes"]))
        return Listing(
            replace(made, said=(self._value_said(made), *(self._said(made.plan, name) for name in made.consumers)))
            for made in (_made(Temporary, entry) for entry in entries)
        )

    def _value_said(self, value: Temporary) -> str:
        """What lies in memory: an operation's result, or another array that it needs ("`s` (exp, line 3) in blocks")."""
        return self._said(value.plan, value.producer) + value.name.removeprefix(value.producer)

    @cached_property
    def activity(self) -> list[dict[str, Any]]:
        """For each plan how many operations of which kinds are in which cluster and in none, and what compiling took."""
        return copy.deepcopy(list(self.data.get("activity", ())))

    @cached_property
    def statements(self) -> list[Statement]:
        """Statements of a `%%jit` cell that Python ran."""
        return Listing(_made(Statement, entry) for entry in self.data.get("statements", ()))

    @cached_property
    def loops(self) -> list[Loop]:
        """Loops that were not rolled, each with its reason."""
        return Listing(_made(Loop, entry) for entry in self.data.get("loops", ()))

    @cached_property
    def lines(self) -> list[Line]:
        """The program line by line with its costs. The time of a kernel over several lines stands once, for all of them."""
        from .lines import line_costs

        return Listing(line_costs(self.data))

    @property
    def verdict(self) -> dict[str, Any]:
        """The lead sentence, the counts, the times, what to do next. Plans that differ in sizes and values only count once."""
        return dict(self.data["verdict"])

    @cached_property
    def timeline(self) -> Timeline:
        from .chrome import Timeline

        return Timeline(self.data)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What a later run is compared with: counts, fingerprints, durations of single calls. Plain data, small."""
        from .runs import run_facts

        if self._samples is None:
            return run_facts(self.data)
        title = {(plan["function"], plan["trace"]): plan["name"] for plan in self.data["plans"]}
        named = {(title.get(key[:2], ""), key[2]): samples.seconds for key, samples in self._samples.items()}
        return run_facts(self.data, named, self._others)

    def compare(self, other: Report) -> RunComparison:
        """This report before, `other` after: time with an interval and a word for the whole and for each cluster and host
        operation, aligned by what the compiler decided; what it decided otherwise; retraces. It prints as a table."""
        from .comparing import compared

        return compared(self.facts, other.facts)

    @says_where
    def why(self, a: str, b: str) -> Answer:
        """Why `a` and `b` are together, or what keeps them apart. They are names of operations ("exp"), their kinds ("Exp"), or
        what the program calls their values ("inv6", "r2 ** 3")."""
        first, second = self._pair(a, b)
        names = f"{first} and {second}"
        if first.cluster is None or second.cluster is None or first.cluster != second.cluster:
            return self.why_not(a, b)
        if first.kernel is not None and first.kernel == second.kernel and self._share_nest(first, second):
            return Answer(f"{names} are one kernel, {first.kernel} of {first.cluster}.", "fused", True)
        answer = self._why_not(first, second)
        if answer.fused:  # one of them is computed again in the other's kernel
            return answer
        joined = "".join(f": {c.reason.text}" for c in self.clusters if (c.plan, c.name) == (first.plan, first.cluster))
        text = f"{names} are both in {first.cluster}{joined}. {answer.text}"
        return Answer(text, answer.code, False, answer.would_fuse_if)

    @says_where
    def why_not(self, a: str, b: str, *, check: bool = False) -> Answer:
        """Why `a` and `b` are not one kernel: the reason, and what would change it. `check`: the changed version is compiled,
        while the function is there, and `checked` says whether it holds."""
        answer = self._why_not(*self._pair(a, b))
        if not check or answer.would_fuse_if is None or answer.about is None:
            return answer
        from .flips import flip_holds

        holds = flip_holds(self.data, answer.about)
        if holds is None:
            return answer
        text = f"{answer.text} {'Checked: compiled so, it does.' if holds else 'Checked: compiled so, it does not.'}"
        return replace(answer, text=text, checked=holds)

    def _why_not(self, first: Op, second: Op) -> Answer:
        one = first.kernel is not None and (first.cluster, first.kernel) == (second.cluster, second.kernel)
        if one and self._share_nest(first, second):
            return Answer(f"{first} and {second} are one kernel, {first.kernel} of {first.cluster}.", "fused", True)
        joint = next((k for k in self.kernels if k.cluster == first.cluster and {first.name, second.name} <= set(k.ops)), None)
        if joint is not None and not one:  # one of them is computed in several kernels
            names = f"{first} and {second}"
            text = f"{names} are one kernel, {joint.name} of {joint.cluster}: one is computed again there."
            return Answer(text, "fused", True)
        for op in (first, second):
            if op.cluster is None:
                reason = op.reason or Reason("unknown", "the plan gives no reason")
                flip = f"Would compile if {op.would_compile_if}." if op.would_compile_if else None
                text = f"{op} is not compiled: {reason.text}."
                return Answer(f"{text} {flip}" if flip else text, reason.code, False, flip, about=(op.plan, op.name, None))
        for edge in self._edges(first, second):
            flip = wording.no_flip(edge.reason.code, (first.op, second.op))
            if edge.would_fuse_if:
                flip = wording.flip_text(edge.would_fuse_if)
            text = f"{edge.said[0]} and {edge.said[1]} are not fused: {edge.reason.text}. {flip}"
            about = (edge.plan, edge.producer, edge.consumer)
            return Answer(text, edge.reason.code, False, edge.would_fuse_if, about=about)
        return Answer(f"{first} and {second} share no edge: nothing goes from one to the other.", "no_edge", False)

    def ir(self, name: str, stage: str = "graph") -> str:
        """The text of a cluster at a stage: "graph", "program", "llvm", "asm" or "ptx"."""
        if stage not in STAGES:
            raise OptionError(f"there is no stage {stage!r}", hint=f"one of {', '.join(STAGES)}")
        cluster = self._cluster(name)
        plan = self._plan(cluster)
        text = self._text(plan, name, stage)
        if text is None and stage in ("llvm", "asm") and self._code_of(plan, name) is not None:
            text = "\n".join(line.text for line in self.code(name, stage).lines)
        if text is None:
            raise OptionError(
                f"the {stage} text of {name} is not kept",
                why="it was not made for this target, or the trace it belongs to was dropped",
                hint="run the function again and take a new report",
            )
        return text

    def code(self, cluster: str, stage: str = "asm", *, plan: str | None = None) -> Code:
        """The code of a cluster line by line, each line with the program's lines and operations it came from.

        `stage`: "graph", "program", "llvm" (before its passes), "llvm-optimized" (after), "asm" or "ptx". `plan` names one of
        `plans`, where two have a cluster of that name. Nothing runs: the code is compiled once more with locations, which
        change no instruction. Raises OptionError for a cluster whose code is no longer kept.
        """
        from .code import STAGES, cluster_code

        if stage not in STAGES:
            raise OptionError(f"there is no stage {stage!r}", hint=f"one of {', '.join(STAGES)}")
        entry = self._cluster(cluster, plan)
        told = self._plan(entry)
        code = self._code_of(told, cluster)
        if code is None:
            raise OptionError(
                f"the code of {cluster} is not kept",
                why="this report was loaded, or the trace that the cluster belongs to was dropped",
                hint="run the function again and take a new report",
            )
        reads = {op.name: op.inputs for op in self.ops if op.plan == entry.plan}
        return cluster_code(code, cluster, stage, told["function"], reads=reads, file_name=self._file_name)

    def _code_of(self, plan: Mapping[str, Any], cluster: str) -> ClusterCode | None:
        own, kept = self._codes.get(cluster), known_code(plan["function"], plan["trace"], cluster)
        several = sum(known.name == cluster for known in self.clusters) > 1
        return kept if several else own or kept  # `_codes` knows names alone

    def _plan(self, cluster: Cluster) -> Mapping[str, Any]:
        """The plan of a cluster; of a report that was cut it may be gone."""
        return next((p for p in self.data["plans"] if p["name"] == cluster.plan), {"function": "", "trace": 0})

    def _cluster(self, name: str, plan: str | None = None) -> Cluster:
        cluster = next((c for c in self.clusters if c.name == name and plan in (None, c.plan)), None)
        if cluster is None:
            where = "this report" if plan is None else f"the plan {plan!r}"
            known = (c.name for c in self.clusters if plan in (None, c.plan))
            raise OptionError(f"{where} has no cluster {name!r}", hint=_close(name, known))
        return cluster

    def graph(self) -> Digraph:
        """A graphviz.Digraph of operations in their clusters; where `dot` is absent it displays as jitlab's own SVG."""
        from .dot import report_graph

        return report_graph(self.data)

    def plot(self) -> Any:
        """A plotly Figure: time, bytes and roofline of each kernel."""
        from .plot import report_figure

        return report_figure(self.data)

    def to_json(self) -> dict[str, Any]:
        """A copy of the whole report as docs/report-format.md describes it."""
        return copy.deepcopy(dict(self.data))

    def to_html(self, path: str | Path | None = None, *, notebook: str = "") -> str:
        """One file that needs nothing else: interactive, offline, and still a page where scripts are blocked. Returned, and
        written when a path is given. Its title begins with `notebook`, the name of the notebook's file, where one is given."""
        from .html import report_html

        text = report_html(self.data, self._texts(), notebook)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_svg(self) -> str:
        """The saved picture."""
        from .svg import report_svg

        return report_svg(self.data)

    def __str__(self) -> str:
        from .text import report_text

        return report_text(self.data)

    def __repr__(self) -> str:
        return f"<Report: {wording.clean(self.data['verdict']['lead'])}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from .bundle import bundle

        return dict(self.saved) if self.saved is not None else bundle(self)

    def _pair(self, a: str, b: str) -> tuple[Op, Op]:
        """The two operations meant; of several of a kind, the pair that is connected, the first in the program."""
        firsts, seconds = self._found(a), self._found(b)
        pairs = [(x, y) for x in firsts for y in seconds if x.plan == y.plan and x is not y]
        if not pairs:
            raise OptionError(f"{a!r} and {b!r} are in no plan together")
        for x, y in pairs:
            if x.name in y.inputs or y.name in x.inputs:
                return x, y
        return pairs[0]

    def _found(self, name: str) -> list[Op]:
        found = [op for op in self.ops if op.name == name]
        found = found or [op for op in self.ops if op.op.lower() == name.lower()]
        found = found or [op for op in self.ops if op.called == name]
        if not found:
            readers = [op for op in self.ops if name in op.inputs]
            if readers and "summary" not in self.data:  # of a report that was cut down, an operation may be missing
                shown = ", ".join(dict.fromkeys(repr(op.called or op.name) for op in readers[:MOST_READERS]))
                raise OptionError(f"{name!r} is an input: no operation makes it", hint=f"say one that reads it: {shown}")
            names = dict.fromkeys(n for op in self.ops for n in (op.name, op.op, op.called) if n)
            raise OptionError(f"this report has no operation {name!r}", hint=_close(name, names))
        return found

    def _share_nest(self, first: Op, second: Op) -> bool:
        """Of one kernel: are they in one nest, where the kernel is a loop or branch with nests inside?"""
        kernels = [k for k in self.data["kernels"] if (k["plan"], k["name"]) == (first.plan, first.kernel)]
        nests = [nest["ops"] for kernel in kernels[:1] for nest in kernel.get("nests", ())]  # a cut report may lack it
        apart = [op for op in (first, second) if any(op.name in nest for nest in nests)]
        return len(apart) < 2 or any(first.name in nest and second.name in nest for nest in nests)

    def _edges(self, first: Op, second: Op) -> Iterable[Boundary]:
        """The cut edges on a way from one to the other, nearest first."""
        ops = {op.name: op for op in self.ops if op.plan == first.plan}
        cut = {(edge.producer, edge.consumer): edge for edge in self.boundaries if edge.plan == first.plan}
        for producer, consumer in ((first, second), (second, first)):
            ways: list[list[str]] = [[consumer.name]]
            seen = {consumer.name}
            while ways:
                way = ways.pop(0)
                if way[0] == producer.name:
                    steps = list(zip(way, way[1:], strict=False))
                    outside = [(_outermost(a, ops), _outermost(b, ops)) for a, b in steps]
                    found = [cut[pair] for pair in (*steps, *outside) if pair in cut]
                    if found:
                        return found
                for source in ops[way[0]].inputs:
                    if source in ops and source not in seen:
                        seen.add(source)
                        ways.append([source, *way])
        return [edge for pair, edge in cut.items() if set(pair) == {first.name, second.name}]

    def _text(self, plan: Mapping[str, Any], cluster: str, stage: str) -> str | None:
        """The text of a cluster (of the whole graph, when the plan has no other) at a stage, when it is still kept."""
        kept = self._stages.get(cluster)
        found = (kept.get((cluster, stage)) or kept.get(("", stage))) if kept else None
        return found or known_text(plan["function"], plan["trace"], cluster, stage)

    def _texts(self) -> dict[tuple[str, str], str]:
        texts = {}
        for plan in self.data["plans"]:
            for cluster in self.data["clusters"]:
                if cluster["plan"] == plan["name"]:
                    for stage in STAGES:
                        text = self._text(plan, cluster["name"], stage)
                        if text is not None:
                            texts[cluster["name"], stage] = text
        return texts


def _outermost(name: str, ops: Mapping[str, Op]) -> str:
    """The loop or branch around an operation, and around that; itself where there is none."""
    while name in ops and ops[name].parent is not None:
        name = ops[name].parent or name
    return name


def _made(cls: Any, entry: Mapping[str, Any]) -> Any:
    """The frozen object of a JSON entry: lists become tuples, reasons objects, spans are split from line numbers."""
    values: dict[str, Any] = {}
    for name in cls.__dataclass_fields__:
        key = "lines" if name == "spans" else name
        if key not in entry and name in _LATER:
            continue
        value = entry[key]
        if name == "lines":
            value = tuple(value) if all(isinstance(n, int) for n in value) else tuple(wording.numbers_of(value))
        elif name == "reason" and isinstance(value, Mapping):
            value = Reason(value["code"], value["text"], tuple(value.get("evidence", ())))
        elif isinstance(value, list):
            value = tuple(tuple(item) if isinstance(item, list) else item for item in value)
        values[name] = value
    return cls(**values)


#: Reports that were saved before have none.
_LATER = (
    "proof", "changes", "site", "would_compile_if", "bytes_saved", "temporary_bytes", "allocated_bytes", "parent", "nests",
    "called", "within", "said",
)  # fmt: skip


def _close(name: str, names: Iterable[str]) -> str:
    known = list(names)
    near = difflib.get_close_matches(name, known, 3, 0.5) or known[:8]
    return f"one of {', '.join(near)}" if near else ""
