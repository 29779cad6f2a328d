"""A report from a file: a saved notebook's output, `%jitlab export x.json`, `report.to_json()`. It comes from anywhere, so
everything that the rest of jitlab relies on is checked first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jitlab.errors import OptionError

from .report import MIME, Report

VERSION = 1
MOST_BYTES = 100_000_000
#: The lists a report has at least, with the keys of their entries that every view reads, and the types of these.
NEEDED: dict[str, dict[str, Any]] = {
    "plans": {"name": str, "function": str, "trace": int, "like": str},
    "ops": {"name": str, "op": str, "plan": str, "lines": list, "shape": list, "dtype": str, "inputs": list},
    "clusters": {"name": str, "plan": str, "ops": list, "kernels": list, "reason": dict, "calls": int, "lines": list},
    "kernels": {"name": str, "cluster": str, "ops": list, "kind": str, "lines": list, "calls": int},
    "boundaries": {"producer": str, "consumer": str, "reason": dict, "bytes": int},
    "retraces": {"function": str, "trace": int, "cause": str, "lines": list, "seconds": (int, float), "text": str},
    "fallbacks": {"op": str, "name": str, "lines": list},
}


def read_report(source: str | Path | dict[str, Any]) -> Report:
    """The report of a file, of its text, or of its data. Raises OptionError for what is no report of jitlab, for one that is
    damaged, too large (100 MB) or of a newer version."""
    data, name = _loaded(source)
    if isinstance(data, dict) and isinstance(data.get(MIME), dict):
        data = data[MIME]
    if not isinstance(data, dict) or "version" not in data:
        raise _refused(name, "it has no version, as every report of jitlab has", "%jitlab export report.json writes one")
    version = data["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _refused(name, "its version is no number from 1 on")
    if version > VERSION:
        raise _refused(name, f"it is of version {version}, and this jitlab reads up to {VERSION}", "a newer jitlab")
    for key in ("cell", "verdict", "timeline"):
        if not isinstance(data.get(key), dict):
            raise _refused(name, f"its {key} is missing or no object")
    if not isinstance(data["verdict"].get("lead"), str) or not isinstance(data["cell"].get("source"), list):
        raise _refused(name, "its verdict has no lead, or its cell no source")
    for key, fields in NEEDED.items():
        _check(name, key, data.get(key), fields)
    lanes = data["timeline"].get("lanes")
    _check(name, "timeline.lanes", lanes, {"name": str, "spans": list})
    for lane in lanes:
        fields = {"name": str, "label": str, "kind": str, "start": (int, float), "duration": (int, float)}
        _check(name, f"lane {lane['name'][:40]!r}", lane["spans"], fields)
    return Report(data)


def _loaded(source: str | Path | dict[str, Any]) -> tuple[Any, str]:
    if isinstance(source, dict):
        return source, "this data"
    name = str(source) if isinstance(source, Path) else "this text"
    try:
        if isinstance(source, Path):
            if source.stat().st_size > MOST_BYTES:
                raise _refused(name, f"it is larger than {MOST_BYTES // 1_000_000} MB")
            source = source.read_text(encoding="utf-8")
        return json.loads(source), name
    except OSError as error:
        raise _refused(name, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _refused(name, f"it is no JSON: {str(error)[:200]}") from None


def _check(name: str, key: str, entries: Any, fields: dict[str, Any]) -> None:
    if not isinstance(entries, list):
        raise _refused(name, f"its {key} are missing or no list")
    for n, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise _refused(name, f"entry {n} of its {key} is no object")
        for field, kind in fields.items():
            if not isinstance(entry.get(field), kind) or isinstance(entry.get(field), bool):
                raise _refused(name, f"entry {n} of its {key} has no {field} of its type")


def _refused(name: str, why: str, hint: str = "") -> OptionError:
    return OptionError("That is no report that can be read.", where=name, why=why, hint=hint)
