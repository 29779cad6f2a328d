"""A report from a file: a saved notebook's output, `%jitlab export x.json`, `report.to_json()`. It comes from anywhere, so
everything that the rest of jitlab relies on is checked first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jitlab.errors import OptionError
from jitlab.report.report import MIME, Report
from jitlab.report.schema import VERSION
from jitlab.report.shape import misfit

from .bounded_files import text_of
from .older import upgraded

MOST_BYTES = 100_000_000


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
    data = upgraded(data)
    wrong = misfit(data)
    if wrong:
        raise _refused(name, f"its {wrong}")
    return Report(data)


def _loaded(source: str | Path | dict[str, Any]) -> tuple[Any, str]:
    if isinstance(source, dict):
        return source, "this data"
    name = str(source) if isinstance(source, Path) else "this text"
    try:
        if isinstance(source, Path):
            text = text_of(source, MOST_BYTES)
            if text is None:
                raise _refused(name, f"it is larger than {MOST_BYTES // 1_000_000} MB")
            source = text
        return json.loads(source), name
    except OSError as error:
        raise _refused(name, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _refused(name, f"it is no JSON: {str(error)[:200]}") from None


def _refused(name: str, why: str, hint: str = "") -> OptionError:
    return OptionError("That is no report that can be read.", where=name, why=why, hint=hint)
