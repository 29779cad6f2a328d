"""`jl.expect`: a test's assertion about what is compiled. The pytest plugin uses the same words."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from fractions import Fraction
from typing import Any, SupportsIndex

from jitlab.api.settling import compiled_calls
from jitlab.capture import says_where
from jitlab.errors import OptionError
from jitlab.messages import units
from jitlab.messages.escape import clean

from .recording import Recording, record
from .render import wording
from .report import Report

RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
COUNTS: dict[str, Callable[[Report], int]] = {
    "retraces": lambda report: len(report.retraces),
    "traces": lambda report: len(report.traces),
    "variants": lambda report: len(report.variants),
    "clusters": lambda report: len(report.clusters),
    "kernels": lambda report: len(report.kernels),
    "fallbacks": lambda report: len(report.fallbacks),
    "statements": lambda report: len(report.statements),
    "bytes": lambda report: sum(c.bytes_read + c.bytes_written for c in report.clusters),
}
#: Of what was found, so many are told one by one.
MOST_TOLD = 10


@says_where
def expect(*, fused: list[tuple[str, str]] | None = None, **limits: SupportsIndex | str) -> Expecting:
    """A block that has to be compiled as the test says: an assertion about retraces, kernels, host operations and bytes.

    The limits are `retraces`, `traces`, `variants`, `clusters`, `kernels`, `fallbacks` (operations that NumPy ran),
    `statements` (that Python ran) and `bytes` (read and written by kernels). A number means exactly that many; a text holds a
    relation and a number, bytes with their unit: `kernels="<=2"`, `bytes="<64 MB"`.

    Args:
        fused: pairs of operations that have to share a kernel: `[("exp", "sum")]`.
        **limits: see above.

    Returns:
        A context manager.

    Raises:
        AssertionError: something is otherwise. It says what was found instead: of retraces the cause, the line and what would
            avoid them.
        OptionError: a limit that it does not know, or no number and no relation.

    Example:
        >>> total = jl.function(lambda x: np.exp(x).sum())
        >>> with jl.expect(traces=1, kernels=1, fallbacks=0, bytes="<1 kB", fused=[("exp", "sum")]):
        ...     y = total(np.ones(8))
    """
    return Expecting(Expectations(limits, () if fused is None else fused))


class Expecting(ContextDecorator):
    """The block, or the decorator of a function whose calls are such blocks. What is wrong is told at its line alone."""

    def __init__(self, expectations: Expectations) -> None:
        self.expectations = expectations
        self._entered: list[tuple[AbstractContextManager[Recording], Recording]] = []

    def _recreate_cm(self) -> Expecting:  # of a call of what it decorates
        return Expecting(self.expectations)

    def __enter__(self) -> None:
        block = planned()
        self._entered.append((block, block.__enter__()))

    def __exit__(self, *error: Any) -> None:
        __tracebackhide__ = True
        block, recording = self._entered.pop()
        block.__exit__(*error)
        if error[0] is None:
            self.expectations.check(recording.report())


@contextmanager
def planned() -> Iterator[Recording]:
    """What is expected is said of what the compiler makes, whichever way calls would go: inside, all run compiled, and are
    recorded."""
    with compiled_calls(of_all_threads=True), record() as recording:
        yield recording


class Expectations:
    """Limits on what a report counts."""

    def __init__(self, limits: dict[str, Any], fused: Iterable[tuple[str, str]] = ()) -> None:
        self.limits = {name: _test(name, limit) for name, limit in limits.items()}
        self.fused = [_pair(pair) for pair in (fused if isinstance(fused, Iterable) else [fused])]

    def check(self, report: Report) -> None:
        """AssertionError when something is not as expected."""
        __tracebackhide__ = True  # pytest shows the test, not this
        wrong = self.wrong(report)
        if wrong:
            raise AssertionError("\n".join(["this is not what was expected", *(f"  {line}" for line in wrong)]))

    def wrong(self, report: Report) -> list[str]:
        """A line for each thing that is not as expected, then what was found, indented."""
        lines: list[str] = []
        shapes = False
        for name, (holds, wanted) in self.limits.items():
            found = COUNTS[name](report)
            if holds(found):
                continue
            shown = units.size(found) if name == "bytes" else str(found)
            if shown != str(found) and shown in wanted:  # rounded, they look alike
                shown = f"{found} B"
            lines.append(f"{name}: {shown}, expected {wanted}")
            told = TOLD.get(name)
            if told is None:
                shapes = True
            else:
                lines += [f"  {line}" for line in told(report)]
        for a, b in self.fused:
            answer = report.why_not(a, b)
            if not answer.fused:
                lines.append(f"fused: {answer}")
                shapes = True
        return [*lines, "", *str(report).splitlines()] if shapes else lines


def _retraces(report: Report) -> list[str]:
    """Each with its cause, line and caller; after the last of a kind what would avoid them."""
    lines = []
    last = {(trace.function, trace.fix): trace for trace in report.retraces if trace.fix}
    for trace in report.retraces[:MOST_TOLD]:
        files = sorted({wording.short_file(span[0]) for span in trace.spans})
        where = ", ".join(filter(None, (*files, wording.line_text(trace.lines))))
        file, line = trace.site or ("", 0)
        site = f", called from {wording.short_file(file)}, line {line}" if line else ""
        lines.append(f"{trace.function}, {where}: {trace.text}{site}")
        lines += [f"  and {wording.retrace_text(*change)}" for change in trace.changes[1:]]
    lines += _more(len(report.retraces))
    for trace in last.values():
        lines.append(f"try: {trace.proof or trace.fix}")
        if trace.proof and trace.fix and trace.fix_form != "words":
            lines.append(f"     {trace.fix}")
    return [clean(line) for line in lines]


def _fallbacks(report: Report) -> list[str]:
    found = [
        f"{f.written or f.op}, {wording.line_text(f.lines)}: {f.reason or 'run by NumPy'}" for f in report.fallbacks[:MOST_TOLD]
    ]
    return [clean(line) for line in [*found, *_more(len(report.fallbacks))]]


def _listed(things: Callable[[Report], list[Any]]) -> Callable[[Report], list[str]]:
    def told(report: Report) -> list[str]:
        found = things(report)
        return [*str(type(found)(found[:MOST_TOLD])).splitlines(), *_more(len(found))]

    return told


def _more(count: int) -> list[str]:
    return [f"… and {count - MOST_TOLD} more"] if count > MOST_TOLD else []


#: What is told of a count that is wrong; of the others the whole report is shown.
TOLD: dict[str, Callable[[Report], list[str]]] = {
    "retraces": _retraces,
    "traces": _listed(lambda report: report.traces),
    "variants": _listed(lambda report: report.variants),
    "fallbacks": _fallbacks,
    "statements": _listed(lambda report: report.statements),
}


def _test(name: str, limit: SupportsIndex | str) -> tuple[Callable[[int], bool], str]:
    if name not in COUNTS:
        raise OptionError(f"jl.expect does not know {name!r}", hint=f"one of {', '.join(COUNTS)}, fused")
    text = ""
    if isinstance(limit, str):
        text = limit.strip()
    elif isinstance(limit, SupportsIndex) and not isinstance(limit, bool):  # NumPy's integers too
        text = str(operator.index(limit))
    match = re.fullmatch(r"(<=|>=|==|!=|<|>)?\s*(\d+(?:\.\d+)?)\s*(|B|kB|MB|GB)", text)
    if match is None or (name != "bytes" and (match[3] or "." in match[2])):
        more = f', or {name}="<=1.5 MB"' if name == "bytes" else ""
        hint = f'{name}=2, or {name}="<=2"{more}'
        raise OptionError(f"jl.expect({name}={limit!r})", why="that is no number of them and no limit", hint=hint)
    relation, number = RELATIONS[match[1] or "=="], Fraction(match[2]) * UNITS[match[3]]
    return lambda found: relation(found, number), text


def _pair(pair: Any) -> tuple[str, str]:
    """Two names of operations. Anything else would be found out only after the code in the block has run."""
    if isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(name, str) for name in pair):
        return pair[0], pair[1]
    raise OptionError(
        f"jl.expect(fused=…) got {pair!r}, which is no pair of operations", hint='fused=[("exp", "sum"), ("sum", "sqrt")]'
    )
