"""What a report lists: operations, clusters, kernels, retraces and the rest as plain objects, each with its line of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, TypeVar, get_args

from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.report.render import wording
from jitlab.report.schema import (
    Boundary,
    Cluster,
    Fallback,
    Kernel,
    Loop,
    Op,
    Statement,
    Temporary,
    Trace,
    Variant,
    bare,
    is_record,
    keys_of,
)

T = TypeVar("T")


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
            said = item.message.text if item.message else wording.change_text(item.argument, item.before, item.after)
            text = f"{item.cluster or item.function} again{_at(item.lines)}: {said}{_took(item.seconds)}"
        case Op():
            text = f"{item}: {item.cluster or item.reason or 'not compiled'}"
        case Fallback():
            text = f"{item.written or item.op}{_at(item.lines)}: {item.reason}{_took(item.seconds)}"
        case Boundary():
            size = "" if item.reason.size_in else f", {units.size(item.bytes)}"
            text = f"{' → '.join(item.said)}: {item.reason}{size}"
        case Temporary():
            name, *readers = item.said
            size = "" if item.reason.size_in else f", {units.size(item.bytes)}"
            text = f"{name} → {', '.join(readers)}{size}: {item.reason}"
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


def entry_of(record: Callable[..., T], entry: Mapping[str, Any]) -> T:
    """The frozen object of a JSON entry: its lists are tuples."""
    return record(**{field: make(entry[key]) for key, field, make in _makers(record) if key in entry})


@cache
def _makers(record: Any) -> tuple[tuple[str, str, Callable[[Any], Any]], ...]:
    return tuple((key.name, key.field, partial(_made, bare(key.type)[0])) for key in keys_of(record))


def _made(kind: Any, value: Any) -> Any:
    if isinstance(value, list):
        inner = get_args(kind)
        return tuple(_made(bare(inner[0])[0], item) if inner else item for item in value)
    return entry_of(kind, value) if isinstance(value, Mapping) and is_record(kind) else value
