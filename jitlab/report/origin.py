"""Of which run a report is: when it began, what it ran with, and on which machine. Times of another machine are no measure."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.targets.devices import default_target

Json = dict[str, Any]

CPUINFO = Path("/proc/cpuinfo")  # Linux
#: What the same processor is called beside its name, by who sells it.
DECORATION = ("(R)", "(TM)", "(r)", "(tm)", " CPU", " Processor")
MONTHS = "January February March April May June July August September October November December".split()


def origin(began: float) -> Json:
    """The `run` of docs/reference/report-format.md. `began`: seconds since 1970."""
    at = datetime.fromtimestamp(began, UTC).astimezone().replace(microsecond=0)
    versions, here = _versions(), _machine()
    return {"at": at.isoformat(), "versions": versions, "machine": here, "text": _text(at, versions, here)}


def run_text(data: Mapping[str, Any]) -> str:
    """The line that stands below a report; "" for one that does not say of which run it is."""
    run = data.get("run")
    text = run.get("text") if isinstance(run, Mapping) else None
    return clean(text) if isinstance(text, str) else ""


def _text(at: datetime, versions: Json, here: Json) -> str:
    """The line below a report."""
    names = {"jitlab": "jitlab", "python": "Python", "numpy": "NumPy"}
    used = ", ".join(f"{name} {versions[key]}" for key, name in names.items())
    where = ", ".join(part for part in (here["cpu"], units.counted(here["cores"], "core")) if part)
    when = f"{at.day} {MONTHS[at.month - 1]} {at.year} at {at:%H:%M} {at:%Z}"
    return f"Ran on {when} · {used} · {where}"


@cache
def _versions() -> Json:
    import numpy

    return {
        "jitlab": sys.modules["jitlab"].__version__,  # the package, which is above every part of it
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": numpy.__version__,
    }


@cache
def _machine() -> Json:
    """`cores`: those that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"cpu": _processor(), "cores": cores, "system": f"{platform.system()} {platform.machine()}"}


def _processor() -> str:
    """Its name as it is sold, else as compilers know it."""
    name = ""
    try:
        rows = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
        name = next((row.partition(":")[2] for row in rows if row.startswith("model name")), "")
    except OSError:
        pass
    for mark in DECORATION:
        name = name.replace(mark, "")
    if not name.strip():
        name = default_target().machine
    return clean(" ".join(name.split()))
