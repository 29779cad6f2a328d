"""The schema of what the kernel answers a panel beside reports: code, comparisons, what-ifs and sweeps.

As in `schema.py`, a class for each object and a field for each key; from here come the panel's reader and the tables of
docs/reference/report-format.md, and the tests hold real answers against it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .schema import Bytes, Count, Lines, Names, Record, Seconds, Share, Ulps, Words


class CodeLine(Record):
    """A line of a cluster's generated code."""

    text: str  #: the line
    at: Annotated[tuple[tuple[str, int], ...], "places"]  #: files or cells, and lines of the program that it came from
    ops: Names  #: operations that it came from
    kernel: str | None  #: whose it is
    noise: bool  #: no work of the program's: labels, guards and the like


class AbsorbedOp(Record):
    """An operation without a line of its own."""

    op: str  #: its name
    into: Names  #: operations whose code does its work
    text: str  #: in words


class ClusterListing(Record):
    """A cluster's code at one stage."""

    cluster: str  #: whose it is
    stage: str  #: `graph`, `program`, `llvm`, `llvm-optimized`, `asm`; of a GPU `numba`, `ptx`, `sass`
    lines: tuple[CodeLine, ...]  #: in order
    share: float | None  #: of the lines that are no noise, those with a line of the program
    absorbed: tuple[AbsorbedOp, ...]  #: operations that left no line
    note: str | None = None  #: why there is none, or what it leaves out


class TimeChange(Record):
    """A difference of two times with its 95 % interval."""

    ratio: float  #: after over before
    low: float  #: of the interval
    high: float  #: of the interval
    significant: bool  #: the interval leaves no room for none
    word: str  #: "slower by 54 % ± 3", "no measurable change"


class ComparedPart(Record):
    """A part of two runs that are compared: the whole cell first."""

    name: str  #: of a cluster or operation
    fingerprint: str  #: as in a plan
    color: int | None  #: of a cluster
    kind: Literal["cell", "cluster", "host"]  #: what it is
    state: Literal["same", "changed", "added", "removed"]  #: what became of it
    before: Seconds | None  #: of a call
    after: Seconds | None  #: of a call
    lines: Lines  #: their numbers
    change: TimeChange | None  #: null: too few calls to tell


class PlanChange(Record):
    """Something that was decided otherwise."""

    cluster: str  #: where
    code: str = ""  #: of the table's group `compared`
    args: dict[str, Any] | None = None  #: in its text
    text: Words  #: in words
    lines: Lines  #: their numbers


class Counts(Record):
    """How many there were of something."""

    before: int  #: in the older run
    after: int  #: in the newer


class ComparedWith(Record):
    """What a run is compared with: one of the two."""

    baseline: str | None = None  #: its name
    run: int | None = None  #: its number


class Missing(Record):
    """What is missing until two runs can be told apart."""

    runs: int | None  #: how many more
    code: str = ""  #: of the table's group `compared`
    args: dict[str, Any] | None = None  #: in its text
    text: str  #: in words


class RunsCompared(Record):
    """A run of a cell beside an earlier one. `samples` and `runs` are of the earlier, then of the newer."""

    run: int | None  #: the newer
    against: ComparedWith | None  #: the earlier
    rows: tuple[ComparedPart, ...]  #: in the order of the newer run; what is gone stands last
    plan_changes: tuple[PlanChange, ...]  #: also where they take the same time
    retraces: Counts  #: in each
    samples: tuple[int, ...]  #: timed calls
    runs: tuple[tuple[int, ...], ...]  #: those that a side is made of
    needs: Missing | None  #: null: nothing
    note: str | None = None  #: what makes the times less sure


class AskedChange(Record):
    """A change of a plan that was asked for."""

    kind: Literal["cut", "fuse", "keep_out", "target", "several"]  #: which change
    edges: tuple[tuple[str, str], ...]  #: producers and consumers
    ops: Names  #: that are kept out
    target: str | None  #: another processor
    plan: str  #: that is changed
    function: str  #: that it was traced from


class PathStep(Record):
    """An operation of a path that forbids a change."""

    name: str  #: of the graph
    op: str  #: its kind
    written: str = ""  #: how the program writes it
    called: str  #: what the program calls it, or ""
    lines: Lines  #: their numbers
    cluster: str | None  #: null: on the host
    kernel: str | None  #: null: on the host


class RefusedChange(Record):
    """Why there is no such plan."""

    code: str  #: of a closed list
    detail: str = ""  #: a row of the table's group `blocker` that says what it is
    args: dict[str, Any] | None = None  #: in its text
    text: str  #: in words
    path: tuple[PathStep, ...]  #: what shows it


class MeasuredPlan(Record):
    """One of two plans, as it was measured."""

    seconds: Seconds  #: of a call
    low: Seconds  #: of the 95 % interval
    high: Seconds  #: of the interval
    kernels: Count  #: in it
    clusters: Count  #: in it
    bytes: Bytes  #: that it moves, by the cost model
    temporaries: Count  #: that reach memory
    temporary_bytes: Bytes  #: of these
    largest_error_ulp: Ulps | None  #: beside NumPy; null: NaN or infinite on one side alone
    fingerprint: str  #: of what was decided


class KeptLines(Record):
    """Lines of a program that keep a change."""

    file: str  #: or cell
    first: int  #: line that they stand for
    last: int  #: line that they stand for
    lines: Names  #: their text


class CellCalls(Record):
    """How long the calls of a plan took in the cell itself."""

    calls: Count  #: of it
    seconds: Seconds  #: of all


class WhatIfAnswer(Record):
    """What a what-if found. Of a refusal nothing was measured: `change`, `before` and `after` are null."""

    question: AskedChange  #: as it was asked
    title: Words  #: in words
    lines: Lines  #: that it is about
    refusal: RefusedChange | None  #: why it cannot be
    change: TimeChange | None  #: of the time
    before: MeasuredPlan | None  #: as built
    after: MeasuredPlan | None  #: changed
    moved: Names  #: sentences: where operations run then
    advice: str  #: what to do
    keep: KeptLines | None  #: null: no lines keep it
    keep_text: str  #: why no lines keep it, or ""
    rounds: Count  #: of both plans in turn
    others: Share | None = None  #: of the processors, that other programs took meanwhile, where that is known
    note: str | None = None  #: what makes the times less sure: inputs that have changed since, other programs
    in_cell: CellCalls | None = None  #: null: nobody timed them
    kept_seconds: Seconds | None = None  #: of a run on a device whose memory keeps the arrays


class CutEdge(Record):
    """A fused edge that was cut."""

    producer: str  #: operation
    consumer: str  #: operation
    title: str  #: in words
    lines: Lines  #: their numbers
    change: TimeChange  #: of the time
    before_seconds: Seconds  #: as built
    after_seconds: Seconds  #: cut
    bytes_more: int  #: that are moved then


class SweepAnswer(Record):
    """Each fused edge of a plan cut once, the most time lost first."""

    plan: str  #: that was cut
    function: str  #: that it was traced from
    edges: tuple[CutEdge, ...]  #: those that were tried
    tried: Count  #: how many
    total: Count  #: edges there are
    measurable: Count  #: that make a difference
    seconds: Seconds  #: that it took
    stopped: str | None  #: why not all were tried
    note: str | None = None  #: inputs that have changed since


#: What the panel reads, each by itself.
ANSWERS: tuple[Any, ...] = (ClusterListing, RunsCompared, WhatIfAnswer, SweepAnswer)
