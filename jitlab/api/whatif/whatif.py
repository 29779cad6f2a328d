"""`f.whatif(...)`: a decision of the compiler changed, measured, and answered with one sentence of advice."""

from __future__ import annotations

import inspect
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from jitlab.api.check.load import BUSY, Load
from jitlab.api.check.replaying import draws
from jitlab.errors import ImpossiblePlanError, OptionError
from jitlab.ir import Node, display_name, told, told_node, written
from jitlab.messages import capital, text, units
from jitlab.messages.escape import clean
from jitlab.runtime import Executable
from jitlab.support.containers import as_json
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.statistics import NO_CHANGE, Change

from .experiments import ENOUGH_SECONDS, Experiment, Refusal, Side, copied_call
from .keeping import Keep, keep
from .plan_questions import Place, Question, at, is_move, lines_of

Between = Callable[[int, int], None]
Aside = Callable[[], AbstractContextManager[Any]]

#: What a sweep may take, and the rounds of one cut in it.
SWEEP_SECONDS, SWEPT_SECONDS = 20.0, 0.3

#: Operations whose move is told one by one.
MOST_MOVED = 8


@dataclass(frozen=True)
class WhatIf:
    """The answer. Times are measured, in seconds; bytes and temporaries are the cost model's; `change` compares the rounds of
    both plans in pairs. Of a refusal nothing was measured, and `before`, `after`, `change` are None."""

    question: Question
    plan: str
    function: str
    title: str
    lines: tuple[int, ...]
    refusal: Refusal | None = None
    change: Change | None = None
    before: Side | None = None
    after: Side | None = None
    moved: tuple[str, ...] = ()
    advice: str = ""
    keep: Keep | None = None
    keep_text: str = ""  # why no lines keep it, where none do
    rounds: int = 0
    kept_seconds: float | None = None  # on a device whose memory keeps the arrays: nothing is copied
    others: float | None = None  # of the processors, that other programs took meanwhile, where that is known

    @property
    def note(self) -> str:
        """What makes the times less sure, as a sentence; "" for nothing."""
        if self.change is None or (self.others or 0.0) < BUSY:
            return ""
        return capital(text(f"speed.{'busy' if self.change.significant else 'busy_again'}", share=self.others)) + "."

    def to_json(self) -> dict[str, Any]:
        """As docs/reference/report-format.md has the result of a what-if."""
        answer = as_json(self)
        asked = {"plan": answer.pop("plan"), "function": answer.pop("function")}
        refusal = self.refusal and self.refusal.to_json()
        return {**answer, "question": self.question.to_json() | asked, "refusal": refusal, "note": self.note or None}

    def __str__(self) -> str:
        head = f"{self.title}{at(self.lines)}"
        if self.refusal is not None:
            steps = [f"{step['written']}{at(step['lines'])}" for step in self.refusal.path]
            return _clean_lines([f"{head}: {self.refusal.text}", *([f"  {' → '.join(steps)}"] if len(steps) > 2 else [])])
        assert self.change is not None and self.before is not None and self.after is not None
        rows = [(f"{head}: {self.change.word}", "as built", "changed")]
        rows += [(name, shown(self.before), shown(self.after)) for name, shown in _ROWS]
        wide = [max(len(row[k]) for row in rows[1:]) for k in range(2)]
        shown = [rows[0][0], f"  {'':<{wide[0]}}  {'as built':>{max(wide[1], 8)}}  changed"]
        shown += [f"  {name:<{wide[0]}}  {old:>{max(wide[1], 8)}}  {new}" for name, old, new in rows[1:]]
        if self.kept_seconds is not None:
            shown.append(f"  {units.duration(self.kept_seconds)} with arrays that stay in the GPU's memory")
        shown += [f"  {line}" for line in self.moved]
        shown += [f"  {said}" for said in (self.advice, self.note) if said]
        if self.keep is not None:
            first, last = self.keep.first, self.keep.last
            lines = f"line {first}" if first == last else f"lines {first} to {last}"
            is_better = self.change.significant and self.change.ratio < 1
            wish = "To keep the change" if is_better else "To have it changed all the same"
            shown += [f"  {wish}, {lines} of {display_name(self.keep.file)} become{'s' * (first == last)}:"]
            shown += [f"    {line}" for line in self.keep.lines]
        elif self.keep_text:
            shown += textwrap.wrap(self.keep_text, 96, initial_indent="  ", subsequent_indent="  ")
        return _clean_lines(shown)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": str(self)}


def _clean_lines(lines: Iterable[str]) -> str:
    """Text that can't act, whatever the program's own lines hold; they keep their tabs."""
    return "\n".join("\t".join(map(clean, line.split("\t"))) for line in lines)


_ROWS: tuple[tuple[str, Callable[[Side], str]], ...] = (
    ("time", lambda side: f"{units.duration(side.seconds)} ({units.duration(side.low)} to {units.duration(side.high)})"),
    ("memory traffic", lambda side: units.size(side.bytes)),
    ("intermediate arrays", lambda side: f"{side.temporaries}, {units.size(side.temporary_bytes)}"),
    ("kernels, clusters", lambda side: f"{side.kernels}, {side.clusters}"),
    ("error beside NumPy", lambda side: _ulp(side.largest_error_ulp)),
)


def _ulp(error: float | None) -> str:
    return "NaN or infinite on one side" if error is None else units.ulps(error)


@dataclass(frozen=True)
class SweptEdge:
    """One cut of a sweep, measured. `seconds_lost`: of a run, by cutting; negative where cutting saves time."""

    producer: str
    consumer: str
    title: str
    lines: tuple[int, ...]
    change: Change
    before_seconds: float
    after_seconds: float
    bytes_more: int

    @property
    def seconds_lost(self) -> float:
        return self.after_seconds - self.before_seconds


@dataclass(frozen=True)
class Sweep:
    """All single-edge cuts of a plan that were tried, the most expensive first: what each fusion is worth."""

    plan: str
    function: str
    edges: tuple[SweptEdge, ...]
    tried: int
    seconds: float
    stopped: str | None = None
    total: int = 0  # cuts there are

    @property
    def measurable(self) -> int:
        return sum(edge.change.significant for edge in self.edges)

    def to_json(self) -> dict[str, Any]:
        return {**as_json(self), "measurable": self.measurable}

    def __str__(self) -> str:
        lines = [f"{self.plan}: {units.counted(self.tried, 'split')} tried, {self.measurable} with a measurable change"]
        wide = max((len(edge.title + at(edge.lines)) for edge in self.edges), default=0)
        for edge in self.edges:
            more = f", {units.size(edge.bytes_more)} more" if edge.bytes_more > 0 else ""
            lines.append(f"  {edge.title + at(edge.lines):<{wide}}  {edge.change.word}{more}")
        return _clean_lines([*lines, *([f"  {self.stopped}"] if self.stopped else [])])

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": str(self)}


def ask(
    executable: Executable, arguments: Sequence[Any], question: Question, *, names: Mapping[str, Any] | None = None,
    seconds: float = ENOUGH_SECONDS, between: Between | None = None, memory: dict[str, Any] | None = None,
    aside: Aside = nullcontext,
) -> WhatIf:  # fmt: skip
    """Put a question to a compiled trace with these arguments (copies are made). A refusal is part of the answer.

    `names`: of the program, for lines that keep the change. `between(done, total)` is called between rounds and may
    raise; with `memory`, what was built and measured until then is taken up again by the next `ask`. Inside `aside()`, plans
    are built, which touches nothing of the user's.
    """
    kept = {} if memory is None else memory
    experiment = kept.get("experiment")
    if experiment is None:
        call = copied_call(executable, arguments)
        with nullcontext() if draws(executable.graph) else aside():
            experiment = kept["experiment"] = Experiment(executable, call.arguments, question)
            experiment.build()
    place, question = experiment.before.place, experiment.question
    title, lines = titled(place, question)
    plan = executable.plan
    if experiment.refusal is not None:
        return WhatIf(question, plan.title, plan.function, title, lines, experiment.refusal)
    load = kept.setdefault("load", None) or Load()
    kept["load"] = load
    experiment.measure(seconds, between)
    others = load.others()
    change = experiment.change()
    before, after = experiment.sides()
    assert experiment.after is not None
    found, why = keep(executable, experiment.after.executable, question, names)
    kept_seconds = experiment.kept_seconds()
    advice = _advice(question, change, before, after)
    if kept_seconds is not None:
        there = after if experiment.after.executable.has_others else before
        advice += _of_copies(there.seconds, kept_seconds)
    return WhatIf(
        question, plan.title, plan.function, title, lines, None, change, before, after,
        tuple(_moved(place, experiment.after.place)), advice, found, why,
        len(experiment.before.samples), kept_seconds, others if others is None else round(others, 3),
    )  # fmt: skip


def sweep(
    executable: Executable, arguments: Sequence[Any], *, seconds: float = SWEEP_SECONDS, between: Between | None = None,
    memory: dict[str, Any] | None = None, aside: Aside = nullcontext,
) -> Sweep:  # fmt: skip
    """Cut each fused edge of a plan, one at a time, those of the largest values first, and rank them by the time that a run
    loses. Stops after `seconds`; with the same `memory` it goes on where it stopped."""
    kept = {} if memory is None else memory
    call = kept.setdefault("call", None) or copied_call(executable, arguments)
    kept["call"] = call
    place = Experiment(executable, call.arguments, Question()).before.place
    # What moves most comes first: where time ends early, little was left.
    pairs = sorted(place.fused_edges(), key=lambda pair: -place.named[pair[0]].type.nbytes)
    found: dict[tuple[str, str], SweptEdge] = kept.setdefault("found", {})
    tried: set[tuple[str, str]] = kept.setdefault("tried", set())
    kept["total"] = len(pairs)
    spent: float = kept.setdefault("spent", 0.0)
    stopped = None
    for number, pair in enumerate(pairs):
        if pair in tried:
            continue
        if spent >= seconds:
            left = len(pairs) - len(tried)
            was = "was" if left == 1 else "were"
            stopped = f"Stopped after {units.duration(seconds)}: {left} of {len(pairs)} splits {was} not tried"
            stopped += ", those of the smallest values." if tried else "."
            break
        if between is not None:
            between(number, len(pairs))
        started = time.perf_counter()
        with nullcontext() if draws(executable.graph) else aside():
            experiment = Experiment(executable, call.arguments, Question(cut=(pair,)))
            experiment.build()
        if experiment.refusal is None:
            share = min(SWEPT_SECONDS, (seconds - spent) / (2 * (len(pairs) - number)))
            experiment.measure(share)
            change = experiment.change()
            if change.significant and change.ratio < 1:
                change = _twice(experiment, change, share)
            found[pair] = _swept(experiment, pair, change)
        tried.add(pair)
        spent += time.perf_counter() - started
        kept["spent"] = spent
    if between is not None:
        between(len(pairs), len(pairs))
    return swept_so_far(executable, kept, stopped)


def swept_so_far(executable: Executable, memory: dict[str, Any], stopped: str | None) -> Sweep:
    """What a sweep with this memory has found; `stopped` says why that is not all."""
    ranked = sorted(memory.get("found", {}).values(), key=lambda edge: -edge.seconds_lost)
    plan, tried = executable.plan, len(memory.get("tried", ()))
    edges = _told_apart(Place(plan), ranked)
    return Sweep(plan.title, plan.function, edges, tried, memory.get("spent", 0.0), stopped, memory.get("total", 0))


def _told_apart(place: Place, edges: Sequence[SweptEdge]) -> tuple[SweptEdge, ...]:
    """Cuts that read the same say what the program calls both values; where that is the same, too, the operations' names."""
    for word in (partial(told_node, lines=True), _with_name):
        often = Counter((edge.title, edge.lines) for edge in edges)
        edges = [
            replace(edge, title=f"Split {word(place.named[edge.producer])} from {word(place.named[edge.consumer])}")
            if often[edge.title, edge.lines] > 1
            else edge
            for edge in edges
        ]
    return tuple(edges)


def _twice(experiment: Experiment, change: Change, seconds: float) -> Change:
    """What a sweep would recommend has to show a second time: of many splits some look faster by chance, and where other
    programs have the processors more of them do."""
    for trial in experiment.trials:
        trial.samples.clear()
    experiment.spent = 0.0
    experiment.measure(seconds)
    again = experiment.change()
    if again.significant and again.ratio < 1:
        return again if again.ratio > change.ratio else change
    return replace(again, significant=False, word=NO_CHANGE)


def _swept(experiment: Experiment, pair: tuple[str, str], change: Change) -> SweptEdge:
    from .experiments import plan_bytes

    assert experiment.after is not None
    title, lines = titled(experiment.before.place, experiment.question)
    before, after = experiment.before.side(None), experiment.after.side(None)
    more = plan_bytes(experiment.after) - plan_bytes(experiment.before)
    return SweptEdge(*pair, title, lines, change, before.seconds, after.seconds, more)


def raise_refusal(answer: WhatIf) -> WhatIf:
    """The answer, or ImpossiblePlanError for a refusal."""
    if answer.refusal is None:
        return answer
    refusal = answer.refusal
    way = " → ".join(f"{step['written']}{at(step['lines'])}" for step in refusal.path)
    error = ImpossiblePlanError(refusal.text.removesuffix("."), where=way)
    error.code, error.path = refusal.code, refusal.path
    raise error


def titled(place: Place, question: Question) -> tuple[str, tuple[int, ...]]:
    """ "Split `batch` from `batch @ W`", and the lines of both."""
    short = {name: _short(node) for name, node in place.named.items()}
    parts = [f"Split {_apart(place, a, b)}" for a, b in question.cut]
    parts += [f"Fuse {short[a]} with {short[b]}" for a, b in question.fuse]
    if question.keep_out:
        parts.append(f"Run {' and '.join(short[name] for name in question.keep_out)} in NumPy")
    if question.target is not None:
        parts.append(f"Run on {question.target}")
    names = {name for pair in (*question.cut, *question.fuse) for name in pair} | set(question.keep_out)
    text = " and ".join(part if n == 0 else part[0].lower() + part[1:] for n, part in enumerate(parts))
    return text, tuple(lines_of(place.named[name] for name in names))


def _apart(place: Place, producer: str, consumer: str) -> str:
    """ "`z` from `np.exp(z)`": by their expressions where both have the same name."""
    nodes = place.named[producer], place.named[consumer]
    short = [_short(node) for node in nodes]
    return " from ".join(short if short[0] != short[1] else [f"`{text}`" for text in written(nodes).values()])


def _with_name(node: Node) -> str:
    return f"{told_node(node)} ({node.name})"


def _short(node: Node) -> str:
    return told(node.op.word, node.called)


def _moved(before: Place, after: Place) -> list[str]:
    """The operations that run in another kernel than they did, kernels matched by what they share."""
    match: dict[str, str] = {}
    for kernel in after.plan.kernels:
        mine = {node.name for node in kernel.nodes}
        free = [k for k in before.plan.kernels if k.name not in match.values()]
        best = max(free, key=lambda k: len(mine & {node.name for node in k.nodes}), default=None)
        if best is not None and mine & {node.name for node in best.nodes}:
            match[kernel.name] = best.name
    told = []
    for node in after.operations:
        now, was = after.kernel.get(node.name), before.kernel.get(node.name)
        several = after.kernels_of(node.name)
        if len(several) > 1 and not is_move(node) and len(before.kernels_of(node.name)) == 1:
            told.append(f"{after.text(node.name)} is computed a second time, in {several[-1]}")
        elif now is None and was is not None:
            told.append(f"{before.text(node.name)} now runs in NumPy")
        elif now is not None and (was is None or match.get(now.name) != was.name):
            told.append(f"{before.text(node.name)} now runs in {now.name}")
    told = list(dict.fromkeys(told))
    if len(told) > MOST_MOVED:
        told[MOST_MOVED:] = [f"{len(told) - MOST_MOVED} more operations moved"]
    return told


def _advice(question: Question, change: Change, before: Side, after: Side) -> str:
    """One sentence, or two."""
    if not change.significant:
        return "No measurable change. Leave it."
    lost, more = after.seconds - before.seconds, after.bytes - before.bytes
    time_text = units.duration(abs(lost))
    if change.ratio > 1:
        saved = f"{time_text} and {units.size(more)}" if more > 0 else time_text
        keep_it = {
            "cut": "Keep the fusion. It saves", "fuse": "Leave them apart. That saves", "keep_out": "Keep it compiled. It saves"
        }.get(question.kind, "Leave it as it is. That saves")
        return f"{keep_it} {saved} in every run."
    change_it = {"cut": "Split them.", "fuse": "Fuse them.", "keep_out": "Run it in NumPy."}.get(question.kind, "Change it.")
    cost = f", and moves {units.size(more)} more" if more > 0 else f", and {units.size(-more)} of traffic" if more < 0 else ""
    return f"{change_it} That saves {time_text} in every run{cost}."


def _of_copies(seconds: float, kept: float) -> str:
    """What to do where half of a run on a device, or more, are copies."""
    copies = seconds - kept
    if copies < seconds / 2:
        return ""
    return f" Keep its arrays on the GPU (jl.to_device): {units.duration(copies)} of {units.duration(seconds)} are copies."


def asked_of_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, Any]) -> Any:
    """`f.whatif(...)`: what Explained.whatif documents."""
    found = function._replayable(args, kwargs)
    if isinstance(found, str):
        raise OptionError(found, hint="ask it of a call that is traced whole, or from the panel of a %%jit cell")
    trace, inputs = found
    executable = trace.executable
    if not isinstance(executable, Executable):
        raise OptionError(f"{function.name} compiles nothing for this call")
    seconds = options.pop("seconds", None)
    if options.pop("sweep", False):
        if any(options.values()):
            raise OptionError("sweep=True tries all splits: it takes no cut, fuse, keep_out or target")
        seconds = SWEEP_SECONDS if seconds is None else float(seconds)
        found = sweep(executable, inputs, seconds=seconds)
        if not found.stopped:
            return found
        more = max(10.0, 1.5 * found.seconds * found.total / max(found.tried, 1))
        return replace(found, stopped=f"{found.stopped} With seconds={more:.0f} there is time for about all.")
    question = Question.of(**options)
    names = getattr(inspect.unwrap(getattr(function, "python_function", function)), "__globals__", {})
    answer = ask(executable, inputs, question, names=names, seconds=ENOUGH_SECONDS if seconds is None else float(seconds))
    return raise_refusal(answer)
