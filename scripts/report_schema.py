"""Writes what is made of the report's schema (jitlab/report/schema.py): the panel's table (extension/src/core/schema.ts), the
tables of docs/reference/report-format.md: `python scripts/report_schema.py`. A test compares both with what is there now."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from jitlab.report import schema
from jitlab.report.schema import Key, Report, bare, keys_of, marks_of

ROOT = Path(__file__).parent.parent
TABLE, PAGE = ROOT / "extension/src/core/schema.ts", ROOT / "docs/reference/report-format.md"
BEGIN, END = "<!-- made by scripts/report_schema.py -->\n", "<!-- to here -->\n"
HEAD = """\
/**
 * The keys of a report's objects and their types, made of jitlab/report/schema.py by scripts/report_schema.py.
 * `*` is a list, `?` may be null, `(…)` a list of just these, `{…}` an object of such; a number is called by its unit.
 */
export const SCHEMA = {
"""
BARE = {str: "text", bool: "flag", int: "number", float: "number", Any: "any", dict: "any"}
DOC = re.compile(r"((?:^    #: .*\n)*)^    (\w+): [^#\n]*(?:#: (.*))?$", re.MULTILINE)


def kind(hint: Any) -> str:
    """A type as the table and the page write it."""
    plain, is_nullable = bare(hint)
    units = [mark for mark in marks_of(hint) if mark not in (schema.MEASURED, "fix")]
    if get_origin(plain) is Mapping:
        return f"{{{kind(get_args(plain)[1])}}}" + "?" * is_nullable
    inner = get_args(plain) if get_origin(plain) is tuple and not units else ()
    if inner:
        name = f"{kind(inner[0])}*" if inner[1:] == (...,) else f"({','.join(map(kind, inner))})"
    else:
        name = units[0] if units else plain.__name__ if is_dataclass(plain) else BARE[get_origin(plain) or plain]
    return name + "?" * is_nullable


def panel_kind(key: Key) -> str:
    """In the panel a text that need not be there is "", and what is not true is false."""
    return re.sub(rf"^(flag{'|text|words' * key.is_optional})\?$", r"\1", kind(key.type)).replace("?*", "*")


def records(record: type = Report) -> list[type]:
    """All records, the whole first, each one where it is first spoken of."""
    found: dict[type, None] = {record: None}
    for each in found_of(record):
        found |= dict.fromkeys(records(each))
    return list(found)


def found_of(record: type) -> Iterator[type]:
    for key in keys_of(record):
        todo = [key.type]
        while todo:
            part, _ = bare(todo.pop())
            if is_dataclass(part):
                yield part
            todo += get_args(part)


def table() -> str:
    """The panel's: a record begins a line, and a line ends between two keys."""
    lines = [HEAD]
    for record in records():
        parts = [f"{key.name}:~'{panel_kind(key)}'" for key in keys_of(record)]
        filled = textwrap.wrap(f"{record.__name__}:~{{~{', '.join(parts)}~}},", 116, break_on_hyphens=False)
        lines += [f"  {'  ' * (n > 0)}{line.replace('~', ' ')}\n" for n, line in enumerate(filled)]
    return "".join(lines).removesuffix(",\n") + "\n} as const;\n"


def docs_of(record: type) -> dict[str, str]:
    """What stands behind each field, or before it."""
    found = {}
    for cls in reversed(record.__mro__[:-1]):
        for before, name, behind in DOC.findall(inspect.getsource(cls)):
            found[name] = " ".join(line.strip(" #:") for line in before.splitlines()) or behind
    return found


def tables() -> str:
    """The page's: a table for each record."""
    parts = []
    for record in records():
        docs = docs_of(record)
        rows = [
            f"| {'*' * key.is_optional}`{key.name}`{'*' * key.is_optional} | `{kind(key.type)}` | {docs[key.field]} |\n"
            for key in keys_of(record)
        ]
        about = " ".join((inspect.getdoc(record) or "").split())
        parts.append(f"#### {record.__name__}\n\n{about}\n\n| key | type | |\n|---|---|---|\n{''.join(rows)}\n")
    return "\n" + "".join(parts)


def page(text: str) -> str:
    """The page with the tables as they are now."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + tables() + END + rest.partition(END)[2]


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
