"""Report: what a user and a test ask of a recording. Made of the JSON of docs/reference/report-format.md and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitlab.capture import says_where
from jitlab.errors import OptionError
from jitlab.messages.escape import clean, clean_lines
from jitlab.support.lazy import lazy
from jitlab.targets.devices import target_of

from .build.entries import Listing, entry_of
from .recording import known_code, known_text
from .render import wording
from .render.why import Answer, why, why_not
from .schema import AsPython, Boundary, Cluster, Fallback, Kernel, Loop, Op, Statement, Temporary, Trace, Variant

if TYPE_CHECKING:
    from graphviz import Digraph

    from jitlab.ir import ClusterCode

    from .build.code import Code
    from .build.lines import Line
    from .duration_samples import Samples
    from .render.chrome import Timeline
    from .store.comparing import RunComparison

MIME = "application/vnd.jitlab.report+json"


class Report:
    """What happened while something was recorded, as lists of plain objects, text, pictures and files. It never changes.

    `ops`, `clusters`, `kernels`, `boundaries`, `fallbacks`, `statements`, `traces`, `retraces`, `variants`, `loops` and
    `temporaries` are lists; seconds and bytes are their units. `print` shows all as text.

    Args:
        data: the JSON of the report format.
        texts: the code of each cluster at each stage, as text.
        codes: what the code of each cluster is shown from.
        file_name: what a file is called.
        samples: single durations of each cluster and host operation.
        others: the share of the processors that other programs took.

    Raises:
        OptionError: a method is asked for a cluster, an operation or a stage that it does not have.

    Example:
        >>> def softmax(x):
        ...     e = np.exp(x)
        ...     return e / e.sum()
        >>> report = jl.explain(jl.jit(softmax), np.ones(8))
        >>> report.verdict["lead"], report.clusters[0].ops
        ('3 of 3 operations compiled', ('exp', 'sum', 'realdiv'))
    """

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
        self.explains: Callable[..., Any] | None = None  # what `explain` called: `why_not(check=True)` asks its code again

    @lazy
    def ops(self) -> list[Op]:
        return Listing(entry_of(Op, entry) for entry in self.data["ops"])

    @lazy
    def clusters(self) -> list[Cluster]:
        return Listing(entry_of(Cluster, entry) for entry in self.data["clusters"])

    @lazy
    def kernels(self) -> list[Kernel]:
        return Listing(entry_of(Kernel, entry) for entry in self.data["kernels"])

    @lazy
    def traces(self) -> list[Trace]:
        """Every capture, the first of each function too."""
        return Listing(entry_of(Trace, entry) for entry in self.data["retraces"])

    @lazy
    def retraces(self) -> list[Trace]:
        """Captures after the first, each with its cause."""
        return Listing(trace for trace in self.traces if not trace.first)

    @lazy
    def variants(self) -> list[Variant]:
        """Other forms of kernels of known traces, each with its cause: layout, alignment, ... These are no retraces."""
        return Listing(entry_of(Variant, entry) for entry in self.data.get("variants", ()))

    @lazy
    def fallbacks(self) -> list[Fallback]:
        return Listing(entry_of(Fallback, entry) for entry in self.data["fallbacks"])

    @lazy
    def boundaries(self) -> list[Boundary]:
        return Listing(
            replace(made, said=(self._said(made.plan, made.producer), self._said(made.plan, made.consumer)))
            for made in (entry_of(Boundary, entry) for entry in self.data["boundaries"])
        )

    def _said(self, plan: str, name: str) -> str:
        """An operation as the program calls it: "`inv6` (realdiv_1, line 7)"."""
        op = self._named.get((plan, name))
        return str(op) if op is not None else name

    @lazy
    def _named(self) -> dict[tuple[str, str], Op]:
        return {(op.plan, op.name): op for op in self.ops}

    @lazy
    def temporaries(self) -> list[Temporary]:
        """Values that reach memory although they are no results, each with its readers, bytes and reason, the largest first."""
        entries = sorted(self.data.get("temporaries", ()), key=lambda entry: -int(entry["bytes"]))
        return Listing(
            replace(made, said=(self._value_said(made), *(self._said(made.plan, name) for name in made.consumers)))
            for made in (entry_of(Temporary, entry) for entry in entries)
        )

    def _value_said(self, value: Temporary) -> str:
        """What lies in memory: an operation's result, or another array that it needs ("`s` (exp, line 3) in blocks")."""
        return self._said(value.plan, value.producer) + value.name.removeprefix(value.producer)

    @lazy
    def activity(self) -> list[dict[str, Any]]:
        """For each plan how many operations of which kinds are in which cluster and in none, and what compiling took."""
        return copy.deepcopy(list(self.data.get("activity", ())))

    @lazy
    def statements(self) -> list[Statement]:
        """Statements of a `%%jit` cell that Python ran."""
        return Listing(entry_of(Statement, entry) for entry in self.data.get("statements", ()))

    @lazy
    def as_python(self) -> list[AsPython]:
        """Calls that ran as Python because that takes less time, with both times, the reason, and what would change it."""
        return Listing(entry_of(AsPython, entry) for entry in self.data.get("as_python", ()))

    @lazy
    def loops(self) -> list[Loop]:
        """Loops that were not rolled, each with its reason."""
        return Listing(entry_of(Loop, entry) for entry in self.data.get("loops", ()))

    @lazy
    def lines(self) -> list[Line]:
        """The program line by line with its costs. The time of a kernel over several lines stands once, for all of them."""
        from .build.lines import line_costs

        return Listing(line_costs(self.data))

    @property
    def verdict(self) -> dict[str, Any]:
        """The lead sentence, the counts, the times, what to do next. Plans that differ in sizes and values only count once."""
        return dict(self.data["verdict"])

    @lazy
    def timeline(self) -> Timeline:
        from .render.chrome import Timeline

        return Timeline(self.data)

    @lazy
    def facts(self) -> dict[str, Any]:
        """What a later run is compared with: counts, fingerprints, durations of single calls. Plain data, small."""
        from .store.runs import run_facts

        if self._samples is None:
            return run_facts(self.data)
        title = {(plan["function"], plan["trace"]): plan["name"] for plan in self.data["plans"]}
        named = {(title.get(key[:2], ""), key[2]): samples.seconds for key, samples in self._samples.items()}
        return run_facts(self.data, named, self._others)

    def compare(self, other: Report) -> RunComparison:
        """This report before, another after: what became faster, slower or otherwise.

        Args:
            other: a Report of the same program.

        Returns:
            A RunComparison, which prints as a table: times in seconds with an interval and a word for the whole and for each
            cluster and host operation, aligned by what the compiler decided; what it decided otherwise; retraces.
        """
        from .store.comparing import compared

        return compared(self.facts, other.facts)

    @says_where
    def why(self, a: str, b: str) -> Answer:
        """Why two operations are together, or what keeps them apart.

        Args:
            a: an operation's name ("exp"), its kind ("Exp"), or what the program calls its value ("inv6", "r2 ** 3").
            b: another one alike.

        Returns:
            An Answer, which prints as text.

        Raises:
            OptionError: there is no such operation, or there are several.
        """
        return why(self, a, b)

    @says_where
    def why_not(self, a: str, b: str, *, check: bool = False) -> Answer:
        """Why two operations are not one kernel: the reason, and what would change it.

        Args:
            a: an operation, as for `why`.
            b: another one alike.
            check: True: the changed version is compiled, while the function is there, and `checked` of the answer says whether
                it fuses.

        Returns:
            An Answer, which prints as text.

        Raises:
            OptionError: there is no such operation, or there are several.
        """
        return why_not(self, a, b, check=check)

    def ir(self, name: str, stage: str = "graph") -> str:
        """The text of a cluster at a stage.

        Args:
            name: the cluster's, "cluster_0".
            stage: "graph", "program", "llvm" (before its passes), "llvm-optimized" (after), "asm"; of a GPU "numba", "llvm",
                "ptx" or "sass".

        Returns:
            A str.

        Raises:
            OptionError: there is no such cluster or stage, or its text is no longer kept.
        """
        from .build.code import known_stages

        if stage not in known_stages():
            raise OptionError(f"there is no stage {stage!r}", hint=f"one of {', '.join(known_stages())}")
        cluster = self._cluster(name)
        plan = self._plan(cluster)
        text = self._text(plan, name, stage)
        code = self._code_of(plan, name) if text is None else None
        if code is not None and stage in target_of(code.target).stages:
            text = "\n".join(line.text for line in self.code(name, stage).lines)
        if text is None:
            raise OptionError(
                f"the {stage} text of {name} is not kept",
                why="it was not made for this target, or the trace it belongs to was dropped",
                hint="run the function again and take a new report",
            )
        return clean_lines(text)

    def code(self, cluster: str, stage: str = "asm", *, plan: str | None = None) -> Code:
        """The code of a cluster line by line, each line with the program's lines and operations it came from.

        Nothing runs: the code is compiled once more with locations, which change no instruction.

        Args:
            cluster: its name, "cluster_0".
            stage: "graph", "program", "llvm" (before its passes), "llvm-optimized" (after), "asm"; of a GPU "numba", "llvm",
                "ptx" or "sass".
            plan: one of the report's plans, where two have a cluster of that name.

        Returns:
            A Code, which prints as text.

        Raises:
            OptionError: there is no such cluster or stage, or its code is no longer kept.
        """
        from .build.code import cluster_code, known_stages

        if stage not in known_stages():
            raise OptionError(f"there is no stage {stage!r}", hint=f"one of {', '.join(known_stages())}")
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
            raise OptionError(f"{where} has no cluster {name!r}", hint=wording.one_of(name, known))
        return cluster

    def graph(self) -> Digraph:
        """A graphviz.Digraph of operations in their clusters; where the program `dot` is absent it displays as its text."""
        from .render.graphviz_dot import report_graph

        return report_graph(self.data)

    def plot(self) -> Any:
        """A plotly Figure: time, bytes and roofline of each kernel."""
        from .render.plot import report_figure

        return report_figure(self.data)

    def to_json(self) -> dict[str, Any]:
        """A copy of the whole report as docs/reference/report-format.md describes it."""
        return copy.deepcopy(dict(self.data))

    def to_html(self, path: str | Path | None = None, *, notebook: str = "") -> str:
        """The report as one file that needs nothing else: interactive, offline, and still a page where scripts are blocked.

        Args:
            path: of a file to write; None: none is written.
            notebook: the file of the notebook, which the page's title begins with.

        Returns:
            The page, a str.

        Raises:
            OptionError: the file cannot be written.
        """
        from .render.html import report_html

        text = report_html(self.data, self._texts(), notebook)
        if path is not None:
            try:
                Path(path).write_text(text, encoding="utf-8")
            except OSError as error:
                raise OptionError(f"{path} can't be written", why=error.strerror or str(error)) from None
        return text

    def to_svg(self) -> str:
        """The saved picture."""
        from .render.svg import report_svg

        return report_svg(self.data)

    def __str__(self) -> str:
        from .render.text import report_text

        return report_text(self.data)

    @property
    def in_short(self) -> str:
        """What the user waited for, what ran as Python, and what was compiled: one line."""
        verdict = self.data["verdict"]
        said = [(verdict.get(key) or {}).get("text", "") for key in ("waited", "settled")]
        return clean(" · ".join(filter(None, (*said, verdict["lead"]))))

    def __repr__(self) -> str:
        return f"<Report: {clean(self.data['verdict']['lead'])}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from .render.bundle import bundle

        return dict(self.saved) if self.saved is not None else bundle(self)

    def _text(self, plan: Mapping[str, Any], cluster: str, stage: str) -> str | None:
        """The text of a cluster (of the whole graph, when the plan has no other) at a stage, when it is still kept."""
        kept = self._stages.get(cluster)
        found = (kept.get((cluster, stage)) or kept.get(("", stage))) if kept else None
        found = found or known_text(plan["function"], plan["trace"], cluster, stage)
        if found is None and (code := self._code_of(plan, cluster)) is not None:
            target = target_of(code.target)
            if stage in target.stages[:1]:  # what is written without a compiler
                return target.listing(code.program).text(stage)
        return found

    def _texts(self) -> dict[tuple[str, str], str]:
        from .build.code import known_stages

        texts = {}
        for plan in self.data["plans"]:
            for cluster in self.data["clusters"]:
                if cluster["plan"] == plan["name"]:
                    for stage in known_stages():
                        text = self._text(plan, cluster["name"], stage)
                        if text is not None:
                            texts[cluster["name"], stage] = text
        return texts
