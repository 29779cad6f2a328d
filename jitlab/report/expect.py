"""`jl.expect`: a test's assertion about what is compiled."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jitlab.errors import OptionError

from . import wording
from .recording import record
from .report import Report

RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
COUNTS: dict[str, Callable[[Report], int]] = {
    "retraces": lambda report: len(report.retraces),
    "traces": lambda report: len(report.traces),
    "clusters": lambda report: len(report.clusters),
    "kernels": lambda report: len(report.kernels),
    "fallbacks": lambda report: len(report.fallbacks),
    "bytes": lambda report: sum(c.bytes_read + c.bytes_written for c in report.clusters),
}


@contextmanager
def expect(*, fused: list[tuple[str, str]] | None = None, **limits: int | str) -> Iterator[None]:
    """Check what happens inside: `retraces=0, clusters=1, kernels="<=2", fallbacks=0, bytes="<64 MB"`; also `traces`, and
    `fused=[("exp", "sum")]`. A number means exactly that many. AssertionError says what was found instead."""
    tests = {name: _test(name, limit) for name, limit in limits.items()}
    with record() as recording:
        yield
    report = recording.report()
    wrong = []
    for name, (holds, wanted) in tests.items():
        found = COUNTS[name](report)
        if not holds(found):
            shown = wording.size(found) if name == "bytes" else str(found)
            wrong.append(f"{name}: {shown}, expected {wanted}")
    for a, b in fused or ():
        answer = report.why_not(a, b)
        if not answer.fused:
            wrong.append(f"fused: {answer}")
    if wrong:
        raise AssertionError("\n".join(["this is not what was expected", *(f"  {line}" for line in wrong), "", str(report)]))


def _test(name: str, limit: int | str) -> tuple[Callable[[int], bool], str]:
    if name not in COUNTS:
        raise OptionError(f"jl.expect does not know {name!r}", hint=f"one of {', '.join(COUNTS)}, fused")
    text = f"=={limit}" if isinstance(limit, int) else limit
    match = re.fullmatch(r"\s*(<=|>=|==|!=|<|>)?\s*(\d+)\s*(|B|kB|MB|GB)\s*", text)
    if match is None or (match[3] and name != "bytes"):
        raise OptionError(f"jl.expect({name}={limit!r})", hint=f'{name}=2, or {name}="<=2"')
    relation, number = RELATIONS[match[1] or "=="], int(match[2]) * UNITS[match[3]]
    return lambda found: relation(found, number), f"{limit}" if isinstance(limit, int) else limit.strip()
