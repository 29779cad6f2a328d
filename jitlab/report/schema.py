"""The report's schema: a class for each object of its JSON, a field for each key, with its unit and what it says.

From here come the check of files (`shape.py`), the panel's reader and types (`extension/src/core/report/records.ts`), and the
tables of docs/reference/report-format.md; `scripts/report_schema.py` writes both. A type that takes None may be null, and a
key with a default need not be there. What a user asks of a Report (`report.ops`) are objects of these classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

from jitlab.ir import told
from jitlab.messages.escape import clean
from jitlab.support.lazy_dataclass import dataclass

from .render import wording

#: Of what is written now; `older.py` reads those before.
VERSION = 4

T = TypeVar("T")
MEASURED, ADDED, MARKED = "measured", "added", "words"
#: What another run of the same program may say otherwise: times, counts, what a session hands out.
Measured = Annotated[T, MEASURED]
#: Of the object alone: the JSON does not have it.
Added = Annotated[T, ADDED]
#: A text that marks the program's words with backticks.
Words = Annotated[str, MARKED]
Count = Annotated[int, "count"]  # from 0 on
Seconds = Annotated[float, "seconds", MEASURED]
Microseconds = Annotated[float, "µs", MEASURED]
#: From a file they need not be whole.
Bytes = Annotated[int, "bytes"]
Flops = Annotated[int, "flops"]
Share = Annotated[float, "share", MEASURED]
Ulps = Annotated[float, "ulps", MEASURED]
Names = tuple[str, ...]
Lines = tuple[int, ...]
#: Files or cells, lines, columns, end lines, end columns; sorted, none twice. On the wire the key is `lines`.
Spans = Annotated[tuple[tuple[str, int, int, int, int], ...], "spans"]
#: Marks of types whose key is not called as the field is.
KEYS = {"spans": "lines", "fix": "fix"}
UNIONS = (Union, UnionType)


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Record:
    """An object of the JSON. Of those that are `shown`, a Report has frozen objects, made by their fields' names."""

    def __init_subclass__(cls, shown: bool = False) -> None:
        if shown:
            dataclass(frozen=True, kw_only=True)(cls)


class Reason(Record, shown=True):
    """Why: `code` is of a closed list, `text` its sentence."""

    code: str  #: what decisions hang on
    text: Words  #: a clause: who shows it says "Not fused" itself
    evidence: Names = ()  #: what shows it: the way of a cycle, the two scopes, the sizes, ...
    clause: Words = ""  #: the first clause of a text that goes on; without, the text is one
    rest: Words = ""  #: what follows the clause
    size_in: str = ""  #: what says how many bytes the value has: `clause`, `rest`
    args: dict[str, Any] | None = None  #: names and numbers in the text of its code, or of its detail
    #: A row of the table, where its code has several texts: of its group; for what Python ran and a loop, of `refused`.
    detail: str | None = None

    def __str__(self) -> str:
        return self.text


class Message(Record, shown=True):
    """A text of `jitlab/messages/table.json`, filled."""

    code: str  #: of a group of the table
    args: dict[str, Any]  #: in its text
    text: Words  #: as it is shown


class FixArgs(Record, shown=True):
    """The arguments of a fix: those of its text, and its form."""

    #: Where its code goes: `line` (before the call), `call` (in its place), `option`, `decorator` or `maker` (of what makes the
    #: function), `setting`, `several` of these; `words`, or none: it is a sentence.
    form: str | None = None


class Fix(Record, shown=True):
    """A change of the program that ends retraces."""

    code: str  #: of the table's group `fix`
    args: FixArgs  #: in its text, and where it goes
    text: Words  #: code, or a sentence


class Placed(Record, shown=True):
    """What stands in the program."""

    spans: Spans  #: where it stands

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(sorted({span[1] for span in self.spans}))


class Traffic(Record, shown=True):
    """What a cluster or kernel did. Times are totals of `calls`, bytes and flops those of one call."""

    calls: Measured[Count]  #: how often it ran
    seconds: Seconds | None  #: of all calls; null: it did not run
    bytes_read: Bytes  #: by the cost model
    bytes_written: Bytes  #: by the cost model
    flops: Flops  #: by the cost model, recomputation included
    bytes_saved: Bytes | None = None  #: by fusion, against op by op; null: nobody knows
    #: A loop whose iterations only a run counts goes over arrays in it: bytes are those of one, and it has no `bound`.
    per_turn: bool | None = None


class Cell(Record):
    """What was recorded."""

    id: Measured[str]  #: of the notebook's cell
    execution_count: Measured[int | None]  #: null in a saved report, whose title is `In [ ]`
    title: Measured[str]  #: `In [7]`
    source: Names  #: its lines
    running: bool | None = None  #: it has not ended
    error: str | None  #: the exception that ended it


class Run(Record):
    """Of which run it is."""

    at: str | None = None  #: when it began, with the offset of the clock
    versions: dict[str, Any] | None = None  #: `jitlab`, `python`, `numpy`
    machine: dict[str, Any] | None = None  #: `cpu`, `cores` that the process may use, `system`
    text: str | None = None  #: all of it in words


class Peaks(Record):
    """What the machine reaches at most, as measured once a process: the two lines of a roofline."""

    bytes_per_second: Measured[float]  #: from and to memory
    flops_per_second: Measured[float]  #: of arithmetic


class Advice(Record):
    """What to do next."""

    text: Words  #: in words
    advice: str | None = None  #: its code in the group `next` of the messages
    args: dict[str, Any] | None = None  #: of that message: names, seconds, a share
    code: str | None  #: of the program, to copy
    why: Words | None  #: what it gains
    section: str  #: of the panel that says more: `retraces` or `clusters`


class Waited(Record):
    """What the user waited for: a run by the clock. The parts are no sum where several threads ran at once."""

    text: str  #: in words
    seconds: Seconds  #: of the whole run
    work: Seconds  #: of the launches and the host's operations
    compiling: Seconds  #: of tracing (also of what could not be traced), optimising, planning and code that the run waited for
    python: Seconds  #: of statements and calls that Python ran; where jitlab does not run the statements, of the rest
    overhead: Seconds  #: of what jitlab did around the statements of a cell, besides the next two
    copying: Seconds | None = None  #: of copies of arguments that lay in memory as no code is for
    waiting: Seconds | None = None  #: while others had the processor: threads or programs between launches, programs within
    measuring: Seconds | None = None  #: besides, after the run, for a comparison, a check or a timing
    next: Seconds | None = None  #: of a later run's compiled part, where that was measured
    pays: Message | None = None  #: after how many runs the compiling has paid for itself; null: nobody knows


class FirstRun(Record):
    """A run that captured something for the first time."""

    seconds: Seconds  #: that it waited for that
    calls: Count  #: launches
    quick_calls: int  #: launches in the quick tier's code
    quick_share: Share | None  #: their share of the launches' time
    text: str  #: in words: that its times are not those of later runs; "" where they are


class Repeated(Record):
    """What `%%jit -n N -r R` measured."""

    text: str  #: in words
    mean: Seconds | None = None  #: of one loop
    deviation: Seconds | None = None  #: of the runs from that
    loops: Count = 0  #: of each run
    runs: Count = 0  #: how many
    seconds: tuple[Seconds, ...] = ()  #: of one loop in each run
    left_out: Names = ()  #: what acts on the world outside and did not run again


class Speed(Record):
    """How many times as fast as NumPy: its time divided by ours, both measured in turns."""

    text: str  #: in words
    code: str = ""  #: of the table's group `speed`
    args: Any = None  #: what the text is filled with
    ratio: Measured[float] = 0.0  #: the middle
    low: Measured[float | None] = None  #: of its interval, of fewer than three rounds null
    high: Measured[float | None] = None  #: end of the interval
    rounds: Measured[Count] = 0  #: on each side
    note: str = ""  #: what disturbed it
    others: Measured[Share | None] = None  #: of the processors, that other programs took meanwhile, where that is known


class Slowest(Record):
    """The lines that took longest. A kernel is one loop over all its lines: no line of it has a time of its own."""

    text: str  #: "lines 4–9 (one kernel)"
    file: str  #: or cell
    lines: Lines  #: their numbers
    seconds: Seconds  #: of the run
    share: Share  #: of what was timed
    kernels: Names  #: that are these lines


class Settled(Record):
    """Calls, or the run of the cell, that Python ran because that takes less time."""

    text: str  #: of the entry of `as_python` that took most: which calls, the times that were measured, and why
    short: str  #: `Python 97 µs, compiled 240 µs`


class Stored(Record):
    """Intermediate arrays of a call that are stored, those of 64 kB and more: a value of several traces counts once."""

    text: str  #: in words
    count: int  #: how many
    bytes: Bytes  #: of them all


class Verdict(Record):
    """The short answer. Plans that differ in sizes and values only count once."""

    lead: str  #: the first thing to read
    operations: int  #: that were captured
    compiled: int  #: of these
    clusters: int  #: compiled together
    kernels: int  #: of all clusters
    host: int  #: operations that NumPy runs
    retraces: int  #: traces after the first
    seconds: Seconds | None  #: of the launches and the host's operations
    numpy_seconds: Seconds | None  #: of NumPy, after `--compare`
    next: Advice | None  #: what to do
    then: Advice | None = None  #: what to do after that
    traces: int = 0  #: captures in all
    statements: int = 0  #: that Python ran
    statement_seconds: Seconds | None = None  #: of these, where they are a share that is felt
    loops: int = 0  #: that were not rolled
    largest_error: Ulps | None = None  #: beside NumPy, after a comparison
    bytes_moved: Bytes | None = None  #: of all calls, by the cost model
    bytes_saved: Bytes | None = None  #: what op by op would move more
    stored: Stored | None = None  #: intermediate arrays; null: there are none
    speed: Speed | None = None  #: beside NumPy, after `--compare`
    waited: Waited | None = None  #: what the user waited for; null while it runs
    settled: Settled | None = None  #: what ran as Python because that takes less time
    first_run: FirstRun | None = None  #: of a run that captured something for the first time
    repeated: Repeated | None = None  #: what loops took
    slowest: Slowest | None = None  #: where the time went
    bound: Message | None = None  #: with nothing to do: `done`, `library` (NumPy's code): no change helps; `left`: none found


class Quantiles(Record):
    """Of the calls of a trace that had nothing to wait for; null: there were none."""

    least: Seconds | None = None  #: the shortest
    median: Seconds | None = None  #: the middle
    p90: Seconds | None = None  #: nine of ten took no longer


class Plan(Record):
    """A trace, as it was compiled."""

    name: str  #: `step #1`, `In [7] #1`
    function: str  #: that was traced
    trace: Measured[int]  #: its number
    like: Measured[str]  #: the plan that stands for it: it differs in sizes and values only
    fingerprint: str = ""  #: twelve hexadecimal digits of what was decided, without names, sizes and values
    calls: Measured[Count | None] = None  #: of the trace
    seconds: Seconds | None = None  #: of these
    last_used: Seconds | None = None  #: from the start of the recording
    quantiles: Measured[Quantiles | None] = None  #: of single calls
    given_up: Measured[bool] = False  #: its code did not fit any more: Python ran the statements


class Op(Placed, shown=True):
    """One operation; `cluster` None: not compiled, `reason` says why."""

    name: str  #: of the graph; within a loop or branch it begins with that one's: `loop/test/less`
    plan: str  #: whose it is
    op: str  #: its kind: `Exp`
    cluster: str | None  #: null: not compiled
    kernel: str | None  #: null: not compiled
    reason: Reason | None  #: why it stays out
    shape: tuple[int, ...]  #: of its value
    dtype: str  #: of its value
    inputs: Names  #: operations that it reads
    scope: str | None  #: that asked for compilation
    seconds: Seconds | None  #: on the host
    flip: Message | None = None  #: the smallest change found that would put it into a cluster, a clause
    parent: str | None = None  #: the loop or branch in whose body it is
    side: str | None = None  #: there: `test` or `body` of a loop, `then` or `else` of a branch
    written: str | None = None  #: how the program writes it: its expression of at most 40 characters, else NumPy's name
    word: str | None = None  #: NumPy's name for its kind: `+`, `sqrt`, `where`
    called: str | None = None  #: what the program calls its value: `inv6`, or its expression
    within: str | None = None  #: the helper function in which it is made
    loop: str | None = None  #: of a rolled loop its first line: `for i in range(1, n)`
    iterations: int | None = None  #: of a rolled loop; null: found at run time, or another number each time
    ends_early: bool | None = None  #: its test may end the loop before
    device: str | None = None  #: where one was asked for

    @property
    def would_compile_if(self) -> str | None:
        """What would put it into a cluster, in words."""
        return self.flip.text if self.flip else None

    def __str__(self) -> str:
        return clean(told(self.word or self.name, self.called or "", self.within or "", lines=wording.line_text(self.lines)))


class Cluster(Traffic, shown=True):
    """Operations compiled together into one native function. Times are totals of `calls`, bytes and flops those of one call."""

    name: str  #: `cluster_0`
    plan: str  #: whose it is
    ops: Names  #: its operations; of a summary the first 20
    kernels: Names  #: its kernels, of a summary those that were sent
    reason: Reason  #: why they are together
    lines: Lines  #: their numbers
    color: Measured[int]  #: 0 to 5, in order of first appearance
    pattern: Measured[str | None] = None  #: `solid`, `diagonal`, ...: for those who don't see colours
    fingerprint: str = ""  #: as that of a plan
    temporary_bytes: Bytes | None = None  #: of values that reach memory within it
    scratch_bytes: Bytes | None = None  #: memory for temporaries and rows, gaps included
    allocated_bytes: Measured[Bytes | None] = None  #: what a call asked the allocator for; null: nobody saw it run
    device: str | None = None  #: where one was asked for
    placed: Message | None = None  #: why it is there, where that was left to jitlab: "auto"
    op_count: Measured[Count | None] = None  #: of a summary: how many operations there are
    kernel_count: Measured[Count | None] = None  #: of a summary: how many kernels there are


class Nest(Record, shown=True):
    """What is fused in the loops and branches of a kernel."""

    kind: str  #: `nest`, `library` or `scalars`
    ops: Names  #: its operations
    lines: Lines  #: their numbers


class GpuLaunch(Record, shown=True):
    """A part of a kernel as a GPU ran it; null where the driver did not say."""

    grid: tuple[Count, Count]  #: blocks along two axes
    threads: Count  #: of a block
    registers: Count | None  #: of a thread
    shared_bytes: Bytes | None  #: of a block
    spilled_bytes: Bytes | None  #: of a thread, that found no register
    occupancy: Share | None  #: of the threads that a multiprocessor can have at once
    limited_by: str | None  #: what keeps it from more: `registers`, `shared memory`, `threads`, `blocks`
    simulated: bool = False  #: the processor played the GPU: times are its own


class Kernel(Traffic, shown=True):
    """One fused nest or one library call of a cluster."""

    name: str  #: `k0`
    plan: str  #: whose it is
    cluster: str  #: whose it is
    ops: Names  #: its operations; of a summary the first 20
    kind: str  #: `nest` or `library`
    lines: Lines  #: their numbers
    bound: Measured[str | None]  #: `memory`, `compute`, or `cache`: its bytes came faster than memory gives them
    of_peak: Share | None  #: of what the bound allows
    predicted: Seconds | None = None  #: of one call, by the cost model; null: it does not say
    libraries: Names = ()  #: of each call of a library in it, whose code that is: `BLAS`, `LAPACK`, `FFT`, `NumPy`, `SciPy`
    nests: tuple[Nest, ...] = ()  #: in the order in which they stand there
    threads: Message | None = None  #: on how many it may run, or why on one; null: it is too short, or nobody knows
    launches: Measured[tuple[GpuLaunch, ...]] = ()  #: of one on a GPU, its parts in order


class Rejection(Record, shown=True):
    """One thing that kept an operation out of the kernel that makes what it reads: with all of an edge undone, the two fuse."""

    code: str  #: as of a reason
    operands: Names  #: the operations that it is about
    evidence: Names = ()  #: extents, a limit and its value
    bytes: Bytes  #: that go through memory for it
    flip: Message | None  #: the change that undoes it, a clause


class Boundary(Record, shown=True):
    """An edge that was not fused: within a cluster, or between clusters."""

    producer: str  #: of the value
    consumer: str  #: that reads it
    plan: str  #: whose they are
    reason: Reason  #: what keeps them apart
    bytes: Bytes  #: of the value
    flip: Message | None  #: the change that would join them, a clause
    rejections: tuple[Rejection, ...] = ()  #: all that keeps the consumer out of the kernel; the reason is made of the first
    told: Words | None = None  #: what is said of it and all others of its cluster for the same reason: once
    pair: Words | None = None  #: both ends as the program calls them: "`s` → `s.max()`"
    small: bool | None = None  #: a value of less than a hundredth of its cluster's traffic, beside larger ones: only counted
    said: Added[tuple[str, str]] = ("", "")  #: both ends as the program calls them

    @property
    def would_fuse_if(self) -> str | None:
        """The change that would join them, in words."""
        return self.flip.text if self.flip else None


class Temporary(Placed, shown=True):
    """A value that still reaches memory between kernels, `bytes` each call."""

    name: str  #: of the value
    plan: str  #: whose it is
    cluster: str | None  #: null: a host operation made it
    producer: str  #: the operation whose lines these are
    consumers: Names  #: who reads it
    bytes: Bytes  #: of a call
    place: str  #: `scratch`: inside its cluster; `result`: it leaves the cluster
    consumer_lines: Lines  #: the numbers of its readers' lines
    counted: bool = False  #: it is one of those that the verdict's `stored` counts
    #: That of an edge or copy, or `partial_results`, `library_operand`, `loop_value`, `kept`, `unread`, `leaves_cluster`.
    reason: Reason
    said: Added[Names] = ()  #: the value, then who reads it, as the program calls them


class Trace(Placed, shown=True):
    """One capture of a function."""

    function: str  #: that was called
    trace: Measured[int]  #: its number
    cause: str  #: the first one; warm-up has `first_call`
    causes: Names  #: all
    argument: str  #: that was another
    before: str  #: its old value, as text
    after: str  #: its new value, as text
    seconds: Seconds  #: what the call waited for it
    calls: Measured[Count]  #: of this trace
    text: str  #: in words
    advised: Annotated[Fix | None, "fix"]  #: what ends it
    first: Measured[bool]  #: warm-up: no retrace
    done: Measured[Message | None]  #: the program has the fix already
    proof: Measured[Words | None] = None  #: the fix in words, with what its replay on the recorded calls left, and saves
    changes: tuple[tuple[str, str, str, str], ...] = ()  #: every cause with its argument, before, after
    site: Measured[tuple[str, int] | None] = None  #: the file and line that called
    place: Measured[Words | None] = None  #: where the fix is written, in words
    spent: Measured[tuple[tuple[str, float], ...]] = ()  #: seconds of `capture`, `passes`, `planning`, `codegen`
    same: Measured[tuple[tuple[str, str], ...]] = ()  #: arguments that did not change, up to 12, and what they are
    same_count: Measured[int] = 0  #: all of them
    operations: Measured[int] = 0  #: of the trace
    compiled: Measured[int] = 0  #: clusters that needed new machine code

    @property
    def fix(self) -> str | None:
        """Code of the program, or a sentence."""
        return self.advised.text if self.advised else None

    @property
    def fix_code(self) -> str:
        """Of the message table's fixes."""
        return self.advised.code if self.advised else ""

    @property
    def fix_form(self) -> str:
        """Where the code goes: "line", "call", "option", ...; "words": it is a sentence."""
        return (self.advised.args.form if self.advised else None) or "words"


class Variant(Placed, shown=True):
    """Another form of the kernels of a known trace: no retrace."""

    function: str  #: that was called
    trace: Measured[int]  #: its number
    cluster: str  #: "" where the trace was captured again
    cause: str  #: `layout`, `alignment`, `overlap`, `small_extent` or `target`
    argument: str  #: that was another
    before: str  #: its old value, as text
    after: str  #: its new value, as text
    seconds: Seconds  #: what the call waited for it
    message: Message | None = None  #: all of it in words, by the cause


class Fallback(Placed, shown=True):
    """An operation that NumPy runs between clusters."""

    op: str  #: its kind
    name: str  #: of the operation
    plan: str  #: whose it is
    reason: Reason | None  #: why it is not compiled
    seconds: Seconds | None  #: of all calls
    calls: Measured[Count]  #: how often it ran
    written: str | None = None  #: as of an operation


class Statement(Placed, shown=True):
    """A statement of a cell that was not captured and that Python ran."""

    text: str  #: its first line
    reason: Reason  #: why it was not captured
    seconds: Seconds  #: of all calls
    calls: Measured[Count]  #: how often it ran
    fell_back: Measured[bool] = False  #: it had begun to run compiled, and the code did not fit


class AsPython(Placed, shown=True):
    """Calls of a function, or a run of the cell, that ran as Python because that takes less time. What the report counts is the
    plan: what they would run compiled."""

    function: str  #: that was called, or the cell's title
    text: Measured[Words]  #: `it runs as Python up to …`: how it was decided, why, and what would change it
    said: Measured[tuple[Message, ...]] = ()  #: the clauses of the text
    plans: Names = ()  #: that they would run, by name
    seconds: Seconds  #: of all calls
    calls: Measured[Count]  #: how often


class Loop(Placed, shown=True):
    """A loop that did not become one loop of the graph: its iterations were recorded one by one, or Python ran them."""

    function: str  #: in which it stands
    text: str  #: its head
    reason: Reason  #: why it was not rolled
    iterations: int  #: of the last time
    times: Measured[int]  #: that it was recorded


class Copy(Placed):
    """A copy that NumPy's program, which changes in place, does not make."""

    plan: str  #: whose it is
    cluster: str | None  #: in which it is made
    node: str  #: the operation
    bytes: Bytes  #: each time
    reason: Reason  #: why it is needed


class Frozen(Placed):
    """A value that became part of a trace: NumPy work on no tensor ran once, while the function was captured."""

    spans: Spans = ()  #: where it stands
    function: str = ""  #: that was captured
    what: str = ""  #: ran
    times: Measured[Count] = 1  #: how often


class Nearest(Record):
    """The element that comes nearest to its bound."""

    index: tuple[int, ...] = ()  #: in the output
    abs: Measured[float | None] = None  #: its error
    rel: Measured[float | None] = None  #: its error, of its value
    ulp: Ulps | None = None  #: its error
    bound_abs: Measured[float | None] = None  #: what is allowed
    bound_ulp: Ulps | None = None  #: what is allowed


class Culprit(Record):
    """Which fusion or operation made an output differ."""

    text: str  #: in words
    edge: tuple[str | None, ...] = ()  #: two operations; the second null: one operation alone
    rewrite: str | None = None  #: of a pass
    runs: Count | None = None  #: that it took to find


class Checked(Record):
    """An output [computed beside NumPy](numerics.md). `max_*` are each the largest of all elements; null: not finite."""

    cluster: str | None  #: null: the passes changed an output of the graph
    plan: str  #: whose it is
    output: str  #: the operation
    lines: Lines  #: its numbers
    ok: bool  #: within its bound
    op: Measured[str | None] = None  #: its kind
    word: Measured[str | None] = None  #: as of an operation
    called: Measured[str | None] = None  #: as of an operation
    within: Measured[str | None] = None  #: as of an operation
    dtype: Measured[str | None] = None  #: of the output
    shape: Measured[tuple[int, ...]] = ()  #: of the output
    max_abs: Measured[float | None] = None  #: error
    max_rel: Measured[float | None] = None  #: error, of the value
    max_ulp: Ulps | None = None  #: error
    bound_ulp: Ulps | None = None  #: what is allowed; null: no bound is stated
    note: Measured[str | None] = None  #: what else to know
    differing: Measured[Count]  #: elements that are not the same bits
    nan: Measured[Count | None] = None  #: elements that are NaN on one side alone
    inf: Measured[Count | None] = None  #: elements that are infinite on one side alone
    rewrites: Measured[Names] = ()  #: of passes on the way to it
    nearest: Measured[Nearest | None] = None  #: null: no bound is stated
    guilty: Culprit | None = None  #: of an output that is out of its bound
    cancels: Measured[bool | None] = None  #: where `max_ulp` is, terms nearly cancel, and the bound goes with them
    reference: Measured[Any] = None  #: what it was compared with
    numpy_ulp: Ulps | None = None  #: NumPy's own error
    worst: Measured[dict[str, Any] | None] = None  #: `index`, `numpy` and `compiled` of the largest error


class Activity(Record):
    """What of a plan is in clusters, by kind, and each cluster's compilations."""

    plan: str  #: of which it is
    unclustered_node_count: Count = 0  #: operations in none
    clustered_node_count: Count = 0  #: operations in clusters
    clusters: tuple[dict[str, Any], ...] = ()  #: `name`, `size`, `op_histogram` of each
    unclustered_op_histogram: tuple[dict[str, Any], ...] = ()  #: `op` and `count` of each kind
    #: `cluster_name`, `compile_count`, `compile_time_us`, `cumulative_compile_time_us` of each cluster.
    compiles: tuple[dict[str, Any], ...] = ()


class Source(Record):
    """The text of what `lines` speak of, as it was compiled: a whole cell, of a file the definitions that are spoken of."""

    file: Measured[str]  #: as in `lines`
    cell: Measured[str | None] = None  #: the notebook's id of it
    path: Measured[str | None] = None  #: of the file
    first: int  #: the number of the first line
    lines: Names  #: their text


class Span(Record):
    """Something that took time. Its lines are those of the operation, kernel or cluster that it names."""

    name: str  #: of that
    label: str  #: what is written on it
    #: `op` (NumPy, one operation), `launch` (a cluster ran), `kernel` (measured within its launch, one after another from its
    #: start), `host`, `copy` (an argument before a launch, or to a device), `to_gpu` and `to_host` (to the memory of a GPU and
    #: back), `statement` (that Python ran); `trace`, or `retrace`, and within it `capture`, within that `passes` (one of them),
    #: `planning`, and `codegen`, `load` (object code from the disk) of a cluster.
    kind: str
    start: Microseconds  #: from the start of the lane's group
    duration: Microseconds  #: of it
    cluster: str | None  #: that ran
    plan: str | None  #: whose it is
    lines: Lines = ()  #: of a statement
    bytes: Bytes | None = None  #: of a copy
    enqueued: Microseconds | None = None  #: of a launch on a GPU: in which the host handed it over, before it waited
    tier: str | None = None  #: of machine code: `quick`, `good`


class Lane(Record):
    """Spans of one kind, or of a thread that compiles. Lanes of a group have one axis, which starts at the group's first span;
    empty lanes are left out."""

    #: `op by op`, `compiled`, `kernels`, `GPU` (its kernels; `simulated GPU`: the processor
    #: played it), `to GPU`, `to host`, `host`, `copies`, `compiling` (another
    #: thread's: `compiling 2`), `codegen quick` and `codegen good` (of threads that trace nothing)
    name: str
    group: str = ""  #: `op by op`, `compiled` or `compiling`
    offset: Microseconds = 0.0  #: of the group from the start of the recording
    dropped: Count = 0  #: spans that were not kept
    busy: Microseconds | None = None  #: in which something of it ran, with what was not kept or not sent
    total: Count | None = None  #: of a summary: how many spans there are
    spans: tuple[Span, ...]  #: in order


class Timeline(Record):
    """What ran when."""

    lanes: tuple[Lane, ...]  #: those that have spans


class ClusterCount(Record):
    """How much there is of a cluster."""

    ops: Count = 0  #: operations


class Reaching(Record):
    """Values of a cluster that reach memory."""

    plan: str = ""  #: whose it is
    cluster: str | None = None  #: of which they are
    count: Count = 0  #: of values
    bytes: Bytes = 0  #: of a call
    inside: Count = 0  #: of those that the verdict counts
    inside_bytes: Bytes = 0  #: of those, a call


class Passing(Record):
    """What goes from box to box: a cluster, or an operation of none."""

    plan: str = ""  #: whose they are
    producer: str = ""  #: a box
    consumer: str = ""  #: a box
    count: Count = 0  #: of values
    bytes: Bytes = 0  #: of them, once each


class Summary(Record):
    """How much there is, of a report that was too big to be sent or saved as a whole."""

    ops: Count = 0  #: in all
    boundaries: Count = 0  #: in all
    spans: Count = 0  #: in all
    kernels: Count = 0  #: in all
    kernel_seconds: Seconds | None = None  #: of all kernels
    clusters: Mapping[str, ClusterCount] | None = None  #: by their names
    temporaries: tuple[Reaching, ...] = ()  #: of each cluster
    edges: tuple[Passing, ...] = ()  #: between boxes


class EarlierRun(Record):
    """A run of the cell."""

    run: int = 0  #: its number
    seconds: Seconds | None = None  #: as in the verdict
    calls: Count = 0  #: of its clusters
    fingerprint: str = ""  #: of its plans
    retraces: int = 0  #: in it
    error: str | None  #: that ended it


class History(Record):
    """The runs of the cell; only in live reports."""

    run: int = 0  #: that the report is of
    runs: tuple[EarlierRun, ...] = ()  #: that are kept
    baselines: Names = ()  #: their names


class Report(Record):
    """The whole. Keys that are not named here may hold anything, and nothing of jitlab's reads them."""

    version: int  #: of this format; a reader refuses one above its own
    cell: Cell  #: what was recorded
    show: Names = ()  #: the parts that `%%jit --show` chose
    run: Run | None = None  #: of which run it is
    peaks: Peaks | None = None  #: null: not measured
    verdict: Verdict  #: the short answer
    plans: tuple[Plan, ...]  #: one a trace
    ops: tuple[Op, ...]  #: in program order; those in a loop or branch after it
    kernels: tuple[Kernel, ...]  #: of all clusters
    clusters: tuple[Cluster, ...]  #: compiled together
    boundaries: tuple[Boundary, ...]  #: edges that were not fused
    temporaries: tuple[Temporary, ...] = ()  #: values that still reach memory
    copies: tuple[Copy, ...] = ()  #: that were added
    activity: Measured[tuple[Activity, ...]] = ()  #: one a plan
    numerics: tuple[Checked, ...] = ()  #: only after a check
    fallbacks: Measured[tuple[Fallback, ...]]  #: what NumPy runs between clusters
    retraces: tuple[Trace, ...]  #: every capture
    variants: tuple[Variant, ...] = ()  #: other kernels of known traces
    statements: tuple[Statement, ...] = ()  #: what Python ran of a cell
    as_python: Measured[tuple[AsPython, ...]] = ()  #: calls of this run that went as Python
    frozen: tuple[Frozen, ...] = ()  #: values that became part of a trace
    loops: tuple[Loop, ...] = ()  #: that were not rolled
    sources: tuple[Source, ...] = ()  #: the text that is spoken of
    timeline: Timeline  #: what ran when
    omitted: dict[str, Any] | None = None  #: how many of each list were cut, and `lines` of source
    summary: Summary | None = None  #: of a report that was cut
    history: History | None = None  #: of a live report


@dataclass(frozen=True)
class Key:
    """A key of a record."""

    name: str
    field: str  # of the object
    type: Any
    is_optional: bool  # it need not be there
    marks: tuple[str, ...]  # its unit, and what else its type says


@cache
def keys_of(record: type) -> tuple[Key, ...]:
    """The keys of a record, in order."""
    made = ((name, hint, marks_of(hint)) for name, hint in get_type_hints(record, include_extras=True).items())
    return tuple(
        Key(KEYS.get((*marks, "")[0], name), name, hint, hasattr(record, name), marks)
        for name, hint, marks in made
        if ADDED not in marks
    )


def is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Record)


def marks_of(hint: Any) -> tuple[str, ...]:
    """What the annotations of a type say, those within a union included."""
    inner = [part for part in get_args(hint) if part is not NoneType] if get_origin(hint) in UNIONS else []
    own = (*hint.__metadata__, *marks_of(hint.__origin__)) if get_origin(hint) is Annotated else ()
    return (*own, *(mark for part in inner for mark in marks_of(part)))


def bare(hint: Any) -> tuple[Any, bool]:
    """A type without annotations and None, and whether it takes None."""
    if get_origin(hint) is Annotated:
        return bare(hint.__origin__)
    if get_origin(hint) in UNIONS:
        return bare(next(part for part in get_args(hint) if part is not NoneType))[0], True
    return hint, False


@cache
def lists() -> dict[str, type]:
    """The lists of a report's own: key -> the record of an entry."""
    kinds = {key.name: get_args(bare(key.type)[0])[:1] for key in keys_of(Report)}
    return {name: kind for name, kinds in kinds.items() for kind in kinds if is_record(kind)}


def has(record: type, *names: str) -> bool:
    """A record has keys of these names, or of these marks."""
    return all(any(name in (key.name, *key.marks) for key in keys_of(record)) for name in names)
