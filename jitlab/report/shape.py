"""The types of docs/reference/report-format.md: what the parts of a report are, against which one from a file is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: No number of a report is larger: bytes, seconds, counts and places all are far below.
LARGEST = 2**63


class Number:
    """A finite number, whole or not."""


class Count:
    """A whole number from 0 on."""


@dataclass(frozen=True)
class May:
    """A key that need not be there; what it holds may be null as well."""

    be: Any


@dataclass(frozen=True)
class Some:
    """A key that need not be there; what it holds is never null."""

    be: Any


@dataclass(frozen=True)
class Null:
    """A key that is always there and may be null."""

    be: Any


#: Of what is written now; `older.py` reads those before.
VERSION = 2

TEXTS, NUMBERS = [str], [Number]
SPANS = [(str, int, int, int, int)]  # file or cell, line, column, end line, end column
LINES = [int]
REASON = {"code": str, "text": str, "evidence": Some(TEXTS)}
COST = {"bytes_read": Number, "bytes_written": Number, "flops": Number, "bytes_saved": May(Number), "per_turn": May(bool)}
ADVICE = {"text": str, "code": Null(str), "why": Null(str), "section": str}

MESSAGE = {"code": str, "args": {}, "text": str}
FIX = {"code": str, "args": {"form": May(str)}, "text": str}

#: A report. Keys that are not named here may hold anything, and nothing of jitlab's reads them.
REPORT: dict[str, Any] = {
    "cell": {
        "id": str, "execution_count": Null(int), "title": str, "source": TEXTS, "running": May(bool), "error": Null(str)
    },
    "show": Some(TEXTS),
    "run": May({"at": May(str), "versions": May({}), "machine": May({}), "text": May(str)}),
    "verdict": {
        "lead": str, "operations": int, "compiled": int, "clusters": int, "kernels": int, "host": int, "retraces": int,
        "seconds": Null(Number), "numpy_seconds": Null(Number), "next": Null(ADVICE), "then": May(ADVICE), "traces": May(int),
        "statements": May(int), "statement_seconds": May(Number), "loops": May(int), "largest_error": May(Number),
        "bytes_moved": May(Number), "bytes_saved": May(Number), "compared_once": May(bool),
        "first_run": May({"seconds": Number, "calls": Count, "quick_calls": int, "quick_share": Null(Number), "text": str}),
        "repeated": May({"text": str}),
        "slowest": May({"text": str, "file": str, "lines": LINES, "seconds": Number, "share": Number, "kernels": TEXTS}),
    },
    "plans": [{
        "name": str, "function": str, "trace": int, "like": str, "fingerprint": Some(str), "calls": May(Count),
        "seconds": May(Number), "last_used": May(Number), "quantiles": May({}),
    }],
    "ops": [{
        "name": str, "plan": str, "op": str, "cluster": Null(str), "kernel": Null(str), "reason": Null(REASON), "lines": SPANS,
        "shape": [int], "dtype": str, "inputs": TEXTS, "scope": Null(str), "seconds": Null(Number), "parent": May(str),
        "would_compile_if": May(str), "called": May(str), "within": May(str), "loop": May(str),
    }],
    "clusters": [{
        "name": str, "plan": str, "ops": TEXTS, "kernels": TEXTS, "reason": REASON, "lines": LINES, "calls": Count,
        "seconds": Null(Number), "color": int, "pattern": May(str), "fingerprint": Some(str), "temporary_bytes": May(Number),
        "allocated_bytes": May(Number), "scratch_bytes": May(Number), **COST,
    }],
    "kernels": [{
        "name": str, "plan": str, "cluster": str, "ops": TEXTS, "kind": str, "lines": LINES, "calls": Count, "bound": Null(str),
        "seconds": Null(Number), "of_peak": Null(Number), "nests": Some([{"kind": str, "ops": TEXTS, "lines": LINES}]), **COST,
    }],
    "boundaries": [{
        "producer": str, "consumer": str, "plan": str, "reason": REASON, "bytes": int, "would_fuse_if": Null(str),
    }],
    "temporaries": Some([{
        "name": str, "plan": str, "cluster": Null(str), "producer": str, "consumers": TEXTS, "bytes": int, "place": str,
        "lines": SPANS, "consumer_lines": LINES, "reason": REASON,
    }]),
    "retraces": [{
        "function": str, "trace": int, "cause": str, "causes": TEXTS, "argument": str, "before": str, "after": str,
        "lines": SPANS, "seconds": Number, "calls": Count, "text": str, "fix": Null(FIX), "first": bool,
        "done": Null(MESSAGE), "proof": May(str),
        "changes": Some([(str, str, str, str)]), "site": May((str, int)), "place": May(str), "spent": Some([(str, Number)]),
        "same": Some([(str, str)]), "same_count": May(int), "operations": May(int), "compiled": May(int),
    }],
    "variants": Some([{
        "function": str, "trace": int, "cluster": str, "cause": str, "argument": str, "before": str, "after": str,
        "lines": SPANS, "seconds": Number,
    }]),
    "fallbacks": [{
        "op": str, "name": str, "plan": str, "lines": SPANS, "reason": Null(REASON), "seconds": Null(Number), "calls": Count,
    }],
    "statements": Some([{"text": str, "reason": REASON, "lines": SPANS, "seconds": Number, "calls": Count}]),
    "loops": Some([
        {"function": str, "text": str, "reason": REASON, "lines": SPANS, "iterations": int, "times": int}
    ]),
    "copies": Some([{"plan": str, "cluster": Null(str), "node": str, "lines": SPANS, "bytes": int, "reason": REASON}]),
    "frozen": Some([{}]),
    "numerics": Some([{
        "cluster": Null(str), "plan": str, "output": str, "lines": LINES, "ok": bool, "dtype": May(str), "shape": Some([int]),
        "max_abs": May(Number), "max_rel": May(Number), "max_ulp": May(Number), "bound_ulp": May(Number), "note": May(str),
        "differing": Number, "nan": May(Number), "inf": May(Number), "rewrites": Some(TEXTS),
        "nearest": May({"ulp": Null(Number), "abs": Null(Number), "bound_abs": Null(Number), "bound_ulp": Null(Number)}),
        "guilty": May({"text": str, "edge": Some([Null(str)])}), "called": May(str), "within": May(str),
    }]),
    "activity": Some([{}]),
    "omitted": May({}),
    "sources": Some([{"file": str, "cell": May(str), "path": May(str), "first": int, "lines": TEXTS}]),
    "timeline": {
        "lanes": [{
            "name": str, "group": Some(str), "offset": Some(Number), "dropped": May(int), "busy": May(Number),
            "total": May(int),
            "spans": [{
                "name": str, "label": str, "kind": str, "start": Number, "duration": Number, "cluster": Null(str),
                "plan": Null(str), "lines": Some(LINES), "bytes": May(Number),
            }],
        }],
    },
}  # fmt: skip


def misfit(value: Any, shape: Any = REPORT, where: str = "") -> str | None:
    """What of a value is not as it has to be: its place and what should stand there; None where all is well."""
    if isinstance(shape, (May, Null, Some)):
        return None if value is None and not isinstance(shape, Some) else misfit(value, shape.be, where)
    match shape:
        case dict():
            if not isinstance(value, Mapping):
                return f"{where} is no object"
            for key, inner in shape.items():
                place = f"{where}.{key}" if where else key
                if key not in value:
                    if isinstance(inner, (May, Some)):
                        continue
                    return f"{place} is missing"
                wrong = misfit(value[key], inner, place)
                if wrong:
                    return wrong
        case [each]:
            if not isinstance(value, list):
                return f"{where} is no list"
            return next(filter(None, (misfit(item, each, f"{where}[{n}]") for n, item in enumerate(value))), None)
        case tuple():
            if not isinstance(value, (list, tuple)) or len(value) != len(shape):
                return f"{where} is no list of {len(shape)}"
            pairs = zip(value, shape, strict=True)
            return next(filter(None, (misfit(item, each, f"{where}[{n}]") for n, (item, each) in enumerate(pairs))), None)
        case _:
            return _wrong(value, shape, where)
    return None


def _wrong(value: Any, shape: Any, where: str) -> str | None:
    if shape is str or shape is bool:
        return None if isinstance(value, shape) else f"{where} is no {'text' if shape is str else 'true or false'}"
    kind = int if shape in (int, Count) else (int, float)
    if not isinstance(value, kind) or isinstance(value, bool):
        return f"{where} is no {'whole number' if kind is int else 'number'}"
    if shape is Count and value < 0:
        return f"{where} is less than 0"
    if not abs(value) <= LARGEST:
        return f"{where} is not finite, or too large"
    return None
