"""Writes what is made of jitlab/report/schema.py and answer_schema.py: the panel's readers
(extension/src/core/report/records.ts) and the tables of docs/reference/report-format.md: `python scripts/report_schema.py`.
A test compares both with what is there."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from jitlab.report import schema
from jitlab.report.answer_schema import ANSWERS
from jitlab.report.schema import Key, Report, bare, is_record, keys_of, marks_of

ROOT = Path(__file__).parent.parent
TABLE, PAGE = ROOT / "extension/src/core/report/records.ts", ROOT / "docs/reference/report-format.md"
BEGIN, END = "<!-- made by scripts/report_schema.py -->\n", "<!-- to here -->\n"
HEAD = """\
/**
 * The parts of reports and answers that the panel reads, made of schema.py and answer_schema.py of jitlab/report by
 * scripts/report_schema.py.
 */
import { amount, choice, flag, list, maybe, number, numbers } from '../base/read';
import { positions, record, records, text, texts, words } from '../base/read';
import type { Json } from '../base/read';

"""
BARE = {str: "text", bool: "flag", int: "number", float: "number", Any: "any", dict: "any"}
#: Words that the panel knows as keys of other records alone: its widget may have 60 kB.
UNREAD = {
    "Report": "version show", "Cell": "executionCount", "FirstRun": "calls", "Op": "within flip",
    "Repeated": "loops runs seconds",
    "Speed": "code args ratio low high rounds isPlain", "Plan": "calls seconds", "Kernel": "bytesSaved threads",
    "Nearest": "index abs boundUlp",
    "Cluster": "bytesSaved pattern temporaryBytes flops", "Checked": "within dtype shape worst", "Culprit": "runs",
    "Trace": "operations", "Reason": "args detail", "Message": "args", "Loop": "function times", "Summary": "kernels",
    "AskedChange": "edges ops target plan function", "SweepAnswer": "plan function", "ClusterListing": "cluster",
    "RefusedChange": "args detail", "ComparedPart": "lines", "PathStep": "kernel", "Missing": "code args",
    "PlanChange": "code args", "AsPython": "said plans",
}  # fmt: skip
#: What read-report.ts makes of the readers of other records.
BY_HAND = {
    "Report": "run verdict ops clusters retraces timeline history", "Lane": "spans", "Trace": "site", "Kernel": "launches",
    "Span": "enqueued",
}  # fmt: skip
DOC = re.compile(r"((?:^    #: .*\n)*)^    (\w+): [^#\n]*(?:#: (.*))?$", re.MULTILINE)


def kind(hint: Any) -> str:
    """A type as the table and the page write it."""
    plain, is_nullable = bare(hint)
    if get_origin(plain) is Literal:
        return " / ".join(f"“{value}”" for value in get_args(plain))
    units = [mark for mark in marks_of(hint) if mark not in (schema.MEASURED, "fix")]
    if get_origin(plain) is Mapping:
        return f"{{{kind(get_args(plain)[1])}}}" + "?" * is_nullable
    inner = get_args(plain) if get_origin(plain) is tuple and not units else ()
    if inner:
        name = f"{kind(inner[0])}*" if inner[1:] == (...,) else f"({','.join(map(kind, inner))})"
    else:
        name = units[0] if units else plain.__name__ if is_record(plain) else BARE[get_origin(plain) or plain]
    return name + "?" * is_nullable


def reading(hint: Any, value: str, is_optional: bool = False) -> str:
    """What reads a value in the panel. A text that need not be there is "" there, and what is not true is false."""
    plain, is_nullable = bare(hint)
    made, inner = get_origin(plain) or plain, get_args(plain)
    if is_record(made):
        return f"maybe({value}, read{made.__name__})" if is_nullable else f"read{made.__name__}(record({value}))"
    if made is Mapping:
        return f"maybe({value}, all => new Map(Object.entries(all).map(([key, of]) => [key, {reading(inner[1], 'of')}])))"
    if made is Literal:
        return f"choice({value}, [{', '.join(map(repr, inner))}] as const)"
    if {"spans", "places"} & {*marks_of(hint)}:
        return f"positions({value})"
    if made is tuple and inner[1:] != (...,):
        if is_nullable:
            return value
        if {BARE.get(bare(part)[0]) for part in inner} == {"number"}:
            return f"numbers({value})"
        parts = ", ".join(reading(part, f"{value}[{at}]") for at, part in enumerate(inner))
        return f"[{parts}] as const"
    if made is tuple:
        each, _ = bare(inner[0])
        if is_record(each):
            return f"records({value}).map(read{each.__name__})"
        if get_origin(each) is tuple:
            return f"list({value}).map(list).map(of => {reading(inner[0], 'of')})"
        return f"{BARE[each]}s({value})" if each in (str, int, float) else f"list({value})"
    name = "words" if schema.MARKED in marks_of(hint) else BARE[made]
    if name == "any":
        return value
    name = "amount" if name == "number" and not is_nullable else name
    other = {"text": " || null", "words": " || null"} if is_nullable and not is_optional else {}
    return f"{name}({value})" + other.get(name, "")


def records(keys: Callable[[type], Iterable[Key]] = keys_of, roots: Iterable[Any] = (Report, *ANSWERS)) -> list[type]:
    """All records that the keys lead to, from the whole ones on, each one where it is first spoken of."""
    found: dict[type, None] = {}
    for root in roots:
        plain, _ = bare(root)
        if not is_record(plain):
            found |= dict.fromkeys(records(keys, get_args(plain)))
        elif plain not in found:
            found |= dict.fromkeys((plain, *records(keys, [key.type for key in keys(plain)])))
    return list(found)


@cache
def taken() -> set[str]:
    """What the panel's sources take of an object."""
    sources = (path for path in TABLE.parent.parent.rglob("*.ts") if path != TABLE)
    texts = (re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in sources)
    return {word for text in texts for word in re.findall(r"(?:\.|[{,]\s*)(\w+)", text)}


def shown(record: type) -> list[Key]:
    """The keys that the panel reads."""
    known = taken() - set(UNREAD.get(record.__name__, "").split())
    return [key for key in keys_of(record) if camel(key.name) in known]


def table() -> str:
    """The panel's reader of each record, from whose result comes its type. Units stand before."""
    parts = [HEAD]
    for record in records(shown):
        if record is schema.Timeline:
            continue
        left = [key for key in shown(record) if key.name not in BY_HAND.get(record.__name__, "").split()]
        keys = [f"{unit(key)}{camel(key.name)}: {reading(key.type, f'v.{key.name}', key.is_optional)}" for key in left]
        text = f"export~const~read{record.__name__}~=~(v:~Json)~=>~({{ {', '.join(key.replace(' ', '~') for key in keys)} }});"
        parts += [
            f"{line}\n"
            for line in textwrap.wrap(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        ]
    return "".join(parts).replace("~", " ")


def unit(key: Key) -> str:
    units = [mark for mark in key.marks if mark not in (schema.MEASURED, schema.MARKED, "spans", "fix", "count")]
    return f"/** {units[0]} */ " if units else ""


def camel(name: str) -> str:
    return re.sub(r"_(.)", lambda found: found[1].upper(), name)


def docs_of(record: type) -> dict[str, str]:
    """What stands behind each field, or before it."""
    found = {}
    for cls in reversed(record.__mro__[:-2]):
        for before, name, behind in DOC.findall(inspect.getsource(cls)):
            found[name] = " ".join(line.strip(" #:") for line in before.splitlines()) or behind
    return found


def tables(roots: Iterable[type]) -> str:
    """The page's: a table for each record that they lead to."""
    parts = []
    for record in records(roots=roots):
        docs = docs_of(record)
        rows = [
            f"| {'*' * key.is_optional}`{key.name}`{'*' * key.is_optional} | `{kind(key.type)}` | {docs[key.field]} |\n"
            for key in keys_of(record)
        ]
        about = " ".join((inspect.getdoc(record) or "").split())
        parts.append(f"#### {record.__name__}\n\n{about}\n\n| key | type | |\n|---|---|---|\n{''.join(rows)}\n")
    return "\n" + "".join(parts)


def page(text: str) -> str:
    """The page with the tables as they are now: of the report, then of the answers."""
    parts = [part.split(END)[-1] for part in text.split(BEGIN)]
    made = [BEGIN + tables(roots) + END for roots in ((Report,), ANSWERS)]
    return "".join(piece for pair in zip(parts, [*made, ""], strict=True) for piece in pair)


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
