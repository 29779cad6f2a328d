"""Is a value what the schema says? A report from a file may hold anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from .schema import Report, bare, is_record, keys_of, marks_of

#: No number of a report is larger: bytes, seconds, counts and places all are far below.
LARGEST = 2**63
CALLED = {str: "text", bool: "true or false", int: "whole number", float: "number"}


def misfit(value: Any, kind: Any = Report, where: str = "") -> str | None:
    """What of a value is not as it has to be: its place and what should stand there; None where all is well."""
    plain, may_be_null = bare(kind)
    if plain is Any or (value is None and may_be_null):
        return None
    inner = get_args(plain)
    match get_origin(plain) or plain:
        case wanted if wanted in (str, bool):
            return None if isinstance(value, wanted) else f"{where} is no {CALLED[wanted]}"
        case wanted if wanted is Literal:
            return None if value in inner else f"{where} is none of {', '.join(inner)}"
        case wanted if wanted in (int, float):
            return _number(value, wanted, marks_of(kind), where)
        case wanted if wanted is tuple:
            if not isinstance(value, (list, tuple)):
                return f"{where} is no list"
            kinds = [inner[0]] * len(value) if inner[1:] == (...,) else inner
            if len(kinds) != len(value):
                return f"{where} is no list of {len(kinds)}"
            return _first(misfit(item, of, f"{where}[{n}]") for n, (item, of) in enumerate(zip(value, kinds, strict=True)))
    if not isinstance(value, Mapping):
        return f"{where} is no object"
    if not is_record(plain):
        return _first(misfit(item, inner[1], f"{where}.{key}") for key, item in value.items())
    return _first(
        misfit(value[key.name], key.type, place) if key.name in value else None if key.is_optional else f"{place} is missing"
        for key in keys_of(plain)
        for place in [f"{where}.{key.name}" if where else key.name]
    )


def _first(found: Iterable[str | None]) -> str | None:
    return next(filter(None, found), None)


def _number(value: Any, kind: Any, marks: Sequence[str], where: str) -> str | None:
    kind = float if "bytes" in marks or "flops" in marks else kind
    if not isinstance(value, (int, kind)) or isinstance(value, bool):
        return f"{where} is no {CALLED[kind]}"
    if "count" in marks and value < 0:
        return f"{where} is less than 0"
    return None if abs(value) <= LARGEST else f"{where} is not finite, or too large"
