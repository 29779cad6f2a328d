"""Why two operations are one kernel, or what keeps them apart: the answers of `report.why` and `report.why_not`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jitlab import messages
from jitlab.errors import OptionError
from jitlab.ir import is_written, line_of
from jitlab.ir.graphs.called import PART
from jitlab.messages.escape import clean
from jitlab.report.flip_trial import flip_holds
from jitlab.report.schema import Boundary, Op, Reason
from jitlab.support.lazy_dataclass import dataclass

from . import wording

if TYPE_CHECKING:
    from jitlab.report.report import Report

#: Readers of an input that an error names.
MOST_READERS = 4


@dataclass(frozen=True)
class Answer:
    """The answer to `why` or `why_not`: one sentence, the reason's code, and what would change it."""

    text: str
    code: str
    fused: bool
    would_fuse_if: str | None = None
    checked: bool | None = None  # the changed version was compiled: does the flip hold? None: not asked, or not to be expressed
    about: tuple[str, str, str | None] | None = None  # plan, and an operation that is not compiled or an edge that is not fused

    def __str__(self) -> str:
        return clean(self.text)


def why(report: Report, a: str, b: str) -> Answer:
    """Why `a` and `b` are together, or what keeps them apart. They are names of operations ("exp"), their kinds ("Exp"), or
    what the program calls their values ("inv6", "r2 ** 3")."""
    first, second = _pair(report, a, b)
    names = f"{first} and {second}"
    if first.cluster is None or second.cluster is None or first.cluster != second.cluster:
        return why_not(report, a, b)
    if first.kernel is not None and first.kernel == second.kernel and _share_nest(report, first, second):
        return Answer(f"{names} are one kernel, {first.kernel} of {first.cluster}.", "fused", True)
    answer = _unfused(report, first, second)
    if answer.fused:  # one of them is computed again in the other's kernel
        return answer
    text = f"{names} are compiled together, in {first.cluster}, but not in one kernel. {answer.text}"
    return Answer(text, answer.code, False, answer.would_fuse_if)


def why_not(report: Report, a: str, b: str, *, check: bool = False) -> Answer:
    """Why `a` and `b` are not one kernel: the reason, and what would change it. `check`: the changed version is compiled,
    while the function is there, and `checked` says whether it holds."""
    answer = _unfused(report, *_pair(report, a, b))
    if not check or answer.would_fuse_if is None or answer.about is None:
        return answer
    holds = flip_holds(report.data, answer.about)
    if holds is None:
        return answer
    text = f"{answer.text} {'Checked: compiled so, it does.' if holds else 'Checked: compiled so, it does not.'}"
    return replace(answer, text=text, checked=holds)


def _unfused(report: Report, first: Op, second: Op) -> Answer:
    """What is between two operations, unless they are one kernel after all."""
    one = first.kernel is not None and (first.cluster, first.kernel) == (second.cluster, second.kernel)
    if one and _share_nest(report, first, second):
        return Answer(f"{first} and {second} are one kernel, {first.kernel} of {first.cluster}.", "fused", True)
    joint = next((k for k in report.kernels if k.cluster == first.cluster and {first.name, second.name} <= set(k.ops)), None)
    if joint is not None and not one:  # one of them is computed in several kernels
        names = f"{first} and {second}"
        text = f"{names} are one kernel, {joint.name} of {joint.cluster}: one is computed again there."
        return Answer(text, "fused", True)
    for op in (first, second):
        if op.cluster is None:
            reason = op.reason or Reason(code="unknown", text="the plan gives no reason")
            flip = f"Would compile if {op.would_compile_if}." if op.would_compile_if else None
            text = f"{op} is not compiled: {reason.text}."
            return Answer(f"{text} {flip}" if flip else text, reason.code, False, flip, about=(op.plan, op.name, None))
    for edge in _edges(report, first, second):
        flip = wording.no_flip(edge.reason.code, (first.op, second.op))
        if edge.would_fuse_if and edge.flip:
            flip = wording.flip_text(edge.would_fuse_if)
            if edge.flip.code == wording.FOR_NOTHING:
                flip = messages.text("unfused.for_nothing", **edge.flip.args)
        text = f"{edge.said[0]} and {edge.said[1]} are not fused: {edge.reason.text}. {flip}"
        if {edge.producer, edge.consumer} != {first.name, second.name}:
            between = f"between them, {edge.said[0]} and {edge.said[1]} are not"
            text = f"{first} and {second} are not fused: {between}, since {edge.reason.text}. {flip}"
        about = (edge.plan, edge.producer, edge.consumer)
        return Answer(text, edge.reason.code, False, edge.would_fuse_if, about=about)
    return Answer(f"{first} and {second} cannot share loops: nothing goes from one to the other.", "no_edge", False)


def _pair(report: Report, a: str, b: str) -> tuple[Op, Op]:
    """The two operations meant; of several of a kind, the pair that is connected, the first in the program. OptionError where
    a text stands in several lines, so that nobody knows which one is meant."""
    firsts, seconds = _found(report, a), _found(report, b)
    pairs = [(x, y) for x in firsts for y in seconds if x.plan == y.plan and x is not y]
    if not pairs and firsts == seconds:
        raise OptionError(f"{a!r} and {b!r} are one operation, {firsts[0]}", hint="say two")
    if not pairs:
        raise OptionError(f"{a!r} and {b!r} are in no plan together")
    joined = [(x, y) for x, y in pairs if x.name in y.inputs or y.name in x.inputs] or pairs
    _ask_for_line(report, a, [x for x, _ in joined])
    _ask_for_line(report, b, [y for _, y in joined])
    return joined[0]


def _ask_for_line(report: Report, name: str, found: Sequence[Op]) -> None:
    """An expression that stands in several lines is no answer to which one; of a kind the first in the program is meant."""
    lines = dict.fromkeys(op.lines[0] for op in found if op.plan == found[0].plan and op.lines)
    if len(lines) > 1 and not any(name.lower() in (op.name, op.op.lower(), op.word) for op in found):
        shown = " or ".join(f'"{name}, line {line}"' for line in list(lines)[:MOST_READERS])
        raise OptionError(f"{name!r} stands in {len(lines)} lines", hint=f"say which: {shown}")


def _found(report: Report, name: str) -> list[Op]:
    """The operations of this name, else of this kind, else those that the program writes or whose values it calls so; with
    ", line 7" behind it those of a line."""
    if not isinstance(name, str):
        raise OptionError(f"{name!r} is no name of an operation", hint='two names, as in why("exp", "sum")')
    wanted, line = line_of(name)
    ops = [op for op in report.ops if line is None or line in op.lines]
    found = [op for op in ops if op.name == wanted]
    found = found or [op for op in ops if wanted.lower() in (op.op.lower(), op.word)]
    found = found or [op for op in ops if is_written(wanted, op.called, op.written)]
    if not found:
        readers = [op for op in report.ops if name in op.inputs]
        if readers and "summary" not in report.data:  # of a report that was cut down, an operation may be missing
            named = [op for op in readers if not (op.called or "").startswith(PART)] or readers
            shown = ", ".join(dict.fromkeys(repr(op.called or op.word or op.name) for op in named[:MOST_READERS]))
            raise OptionError(f"{name!r} is an input: no operation makes it", hint=f"say one that reads it: {shown}")
        keys = ("called", "written", "word", "name", "op")
        texts = [text for key in keys for op in report.ops if (text := getattr(op, key)) and not text.startswith(PART)]
        values = {op.called for op in report.ops if op.called and op.called.isidentifier()}
        names = dict.fromkeys(sorted(texts, key=lambda text: text not in values))
        raise OptionError(f"this report has no operation {name!r}", hint=wording.one_of(name, names))
    return found


def _share_nest(report: Report, first: Op, second: Op) -> bool:
    """Of one kernel: are they in one nest, where the kernel is a loop or branch with nests inside?"""
    kernels = [k for k in report.data["kernels"] if (k["plan"], k["name"]) == (first.plan, first.kernel)]
    nests = [nest["ops"] for kernel in kernels[:1] for nest in kernel.get("nests", ())]  # a cut report may lack it
    apart = [op for op in (first, second) if any(op.name in nest for nest in nests)]
    return len(apart) < 2 or any(first.name in nest and second.name in nest for nest in nests)


def _edges(report: Report, first: Op, second: Op) -> Iterable[Boundary]:
    """The cut edges on a way from one to the other, nearest first."""
    ops = {op.name: op for op in report.ops if op.plan == first.plan}
    around = {op.name: op.parent for op in ops.values()}
    cut = {(edge.producer, edge.consumer): edge for edge in report.boundaries if edge.plan == first.plan}
    for producer, consumer in ((first, second), (second, first)):
        ways: list[list[str]] = [[consumer.name]]
        seen = {consumer.name}
        while ways:
            way = ways.pop(0)
            if way[0] == producer.name:
                steps = list(zip(way, way[1:], strict=False))
                outside = [(wording.outermost(a, around.get), wording.outermost(b, around.get)) for a, b in steps]
                found = [cut[pair] for pair in (*steps, *outside) if pair in cut]
                if found:
                    return found
            for source in ops[way[0]].inputs:
                if source in ops and source not in seen:
                    seen.add(source)
                    ways.append([source, *way])
    return [edge for pair, edge in cut.items() if set(pair) == {first.name, second.name}]

