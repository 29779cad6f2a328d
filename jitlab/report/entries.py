"""What a report lists: operations, clusters, kernels, retraces and the rest as plain objects, each with its line of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from jitlab.ir import told
from jitlab.legible import clean
from jitlab.messages import units

from . import wording
from .advice import form_of

T = TypeVar("T")

#: Fields that reports which were saved earlier do not have.
LATER = (
    "proof", "changes", "site", "would_compile_if", "bytes_saved", "temporary_bytes", "allocated_bytes", "parent", "nests",
    "called", "within", "said",
)
#: Fields that are parts of a fix.
OF_FIX = {"fix": "text", "fix_code": "code", "fix_form": "form"}  # fmt: skip


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
        return clean(told(self.name, self.called, self.within, lines=wording.line_text(self.lines)))


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
    fix_code: str = ""  # of the message table's fixes
    fix_form: str = "words"  # "line", "call", "option", ...: code of the program, and where it goes


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
            what = units.counted(len(item.ops), "operation")
            what += f", {units.counted(len(item.kernels), 'kernel')}" if isinstance(item, Cluster) else ""
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
            size = "" if wording.names_size(str(item.reason)) else f", {units.size(item.bytes)}"
            text = f"{' → '.join(item.said)}: {item.reason}{size}"
        case Temporary():
            name, *readers = item.said
            text = f"{name} → {', '.join(readers)}: {units.size(item.bytes)}, {item.reason}"
        case Statement():
            text = f"{item.text}{_at(item.lines)}: {item.reason}{_took(item.seconds)}"
        case Loop():
            text = f"{item.text}{_at(item.lines)}, {units.counted(item.iterations, 'iteration')}: {item.reason}"
        case _:
            text = str(item)
    return clean(text)


def _at(lines: Iterable[int]) -> str:
    where = wording.line_text(lines)
    return f", {where}" if where else ""


def _took(seconds: float | None) -> str:
    return "" if seconds is None else f", {units.duration(seconds)}"


def entry_of(cls: Any, entry: Mapping[str, Any]) -> Any:
    """The frozen object of a JSON entry: lists become tuples, reasons objects, spans are split from line numbers."""
    values: dict[str, Any] = {}
    for name in cls.__dataclass_fields__:
        key = "lines" if name == "spans" else "fix" if name in OF_FIX else name
        if key not in entry and name in LATER:
            continue
        value = entry[key]
        if name in OF_FIX:
            if value is not None:
                values[name] = form_of(value) if name == "fix_form" else value[OF_FIX[name]]
            elif name == "fix":
                values[name] = None
            continue
        if name == "lines":
            value = tuple(value) if all(isinstance(n, int) for n in value) else tuple(wording.numbers_of(value))
        elif name == "reason" and isinstance(value, Mapping):
            value = Reason(value["code"], value["text"], tuple(value.get("evidence", ())))
        elif isinstance(value, list):
            value = tuple(tuple(item) if isinstance(item, list) else item for item in value)
        values[name] = value
    return cls(**values)
