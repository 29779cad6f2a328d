"""`f.check(*args)`: each cluster beside NumPy on the user's own data, the bound of each output, and who broke it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from jitlab import events
from jitlab.config import config
from jitlab.errors import OptionError, Unfit
from jitlab.ir import NO_OVERRIDES, Cluster, Graph, Node, Overrides, bind_extents, is_operation
from jitlab.ir.graphs.graph import decided_by
from jitlab.messages import units
from jitlab.ops.base import Elementwise
from jitlab.ops.library_operations import Library
from jitlab.ops.linear_algebra.matrix_products import Product
from jitlab.ops.random_draws import States, set_random_states, states_now
from jitlab.ops.reducing.axis_reductions import Mean, Prod, Sum
from jitlab.runtime import Executable
from jitlab.support.containers import as_json
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import quietly

from .against import Against, against_python
from .reference import Value, distance, is_inexact, reference
from .replaying import every, first_effect, is_draw, keeping_random_state

#: Terms have cancelled where the bound is so many times the smallest one, in ULP.
CANCELLED = 64

#: A checked cluster keeps each value in NumPy's form, in a wider one, and how far it may be off.
COPIES_OF_EACH = 3


@dataclass(frozen=True)
class Culprit:
    """What made an output wrong: an edge (both names) that was fused, or one operation; `runs` tries found it."""

    edge: tuple[str, str | None] | None
    rewrite: str
    runs: int
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Nearest:
    """The element that comes nearest to its bound, or is farthest beyond it: how far it is from the reference and how far it
    may be, as numbers and in ULP; `rel`: its error by its size, None where that is 0."""

    index: tuple[int, ...]
    abs: float
    rel: float | None
    ulp: float
    bound_abs: float
    bound_ulp: float


@dataclass(frozen=True)
class OutputCheck:
    """One output of a cluster beside NumPy's. `max_abs`, `max_rel` and `max_ulp` are the largest of all elements, each by
    itself; ULP count the numbers of the type that lie between. `nearest` has error and bound of one element, `bound_ulp` the
    same bound; both are None where no bound is stated, and `note` says why. `cancels`: where `max_ulp` is, the bound
    is far more ULP than elsewhere, because it goes with the terms, which nearly cancel, and not with what is left of them.
    `numpy_ulp`: how far NumPy itself is from the reference."""

    cluster: str | None  # None: the passes changed an output of the graph
    plan: str
    output: str
    op: str
    lines: tuple[int, ...]
    dtype: str
    shape: tuple[int, ...]
    max_abs: float
    max_rel: float
    max_ulp: float
    bound_ulp: float | None
    ok: bool
    differing: int  # elements whose bits differ
    nan: int  # elements that are NaN on one side alone
    inf: int  # elements that are infinite on one side alone, or with the other sign
    reference: str  # what the bound was checked against: "NumPy", or "NumPy in float64"
    numpy_ulp: float | None
    rewrites: tuple[str, ...]  # what jitlab does otherwise than NumPy on the way to this output
    note: str = ""
    worst: tuple[tuple[int, ...], str, str] | None = None  # where it is farthest off: index, NumPy's value, the compiled one
    guilty: Culprit | None = None
    nearest: Nearest | None = None
    cancels: bool = False
    word: str = ""  # NumPy's for it
    called: str = ""  # what the program calls it, and the helper that it is in
    within: str = ""

    def to_json(self) -> dict[str, Any]:
        """An entry of `numerics` in docs/reference/report-format.md."""
        entry: dict[str, Any] = as_json(self)  # which has no infinity; `nan` and `inf` say what there is
        if self.worst is not None:
            entry["worst"] = dict(zip(("index", "numpy", "compiled"), entry["worst"], strict=True))
        return entry

    def __str__(self) -> str:
        from .check_text import output_text

        return output_text(self)


@dataclass(frozen=True)
class Check:
    """What `f.check` found. `ok`: every output is within its bound, and the captured graph gives what Python gives. `refusal`:
    why nothing could be checked."""

    function: str
    outputs: tuple[OutputCheck, ...] = ()
    refusal: str = ""
    seconds: float = 0.0
    python: Against | None = None  # beside the function's own Python; None: of a cell, which runs once

    @property
    def ok(self) -> bool:
        beside = self.python is None or self.python.ok
        return not self.refusal and beside and all(output.ok for output in self.outputs)

    def to_json(self) -> dict[str, Any]:
        """The whole answer; `numerics` is the report's list of that name."""
        return {
            "function": self.function, "ok": self.ok, "refusal": self.refusal or None, "seconds": self.seconds,
            "numerics": [output.to_json() for output in self.outputs],
            "python": as_json(self.python),
        }  # fmt: skip

    def __str__(self) -> str:
        from .check_text import check_text

        return check_text(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class Refused(Exception):
    """Why a run can't be checked, as a sentence."""


Pause = Callable[[], object]  # called between two runs; may raise to stop


def check_calls(function: str, calls: Iterable[tuple[Any, Sequence[Any]]], pause: Pause = lambda: None) -> Check:
    """Check runs of compiled code, each an executable with its arguments, which are only read. Nothing is told to anybody."""
    started = time.perf_counter()
    outputs: list[OutputCheck] = []
    try:
        with events.muted():
            for executable, arguments in calls:
                outputs += check_executable(executable, arguments, pause)
    except Refused as refused:
        return Check(function, (), str(refused), time.perf_counter() - started)
    return Check(function, tuple(outputs), "", time.perf_counter() - started)


@contextmanager
def lengths_served() -> Iterator[None]:
    """Inside, it is no check where the data decide on lengths that compiled code is not for."""
    try:
        yield
    except Unfit as refusal:
        raise Refused(f"{refusal.said}: call it some times with such data first.") from None


def check_executable(executable: Any, arguments: Sequence[Any], pause: Pause = lambda: None) -> list[OutputCheck]:
    """Every output of every cluster, on these arguments. Raises Refused."""
    graph: Graph = executable.graph
    effect = first_effect(graph)
    if effect is not None:
        raise Refused(f"{effect.op.word} ({lines_text(effect)}) acts on the world outside: a check would do it again.")
    needed = COPIES_OF_EACH * sum(node.type.nbytes for node in graph.nodes if node.dtype.kind != "V")
    if needed > config.copy_limit_bytes:
        raise Refused(
            f"The check would keep {units.size(needed)} of values, more than jl.config.copy_limit_bytes, which is"
            f" {units.size(config.copy_limit_bytes)}."
        )
    with keeping_random_state(graph, arguments=arguments), lengths_served():
        return _studied(executable, list(arguments), pause)


@quietly
def _relative(away: Any, size: Any) -> Any:
    return np.where(away > 0, away / size, 0.0)


@quietly
def _studied(executable: Executable, arguments: list[Any], pause: Pause) -> list[OutputCheck]:
    study = Study(executable, arguments, pause)
    rows = study.passes()
    for cluster in executable.clustering.clusters:
        pause()
        rows += study.cluster(cluster)
    return rows


class Study:
    """One executable on one set of arguments: NumPy's values of all its nodes, and what its clusters make of them."""

    def __init__(self, executable: Executable, arguments: list[Any], pause: Pause) -> None:
        self.executable, self.arguments, self.pause = executable, arguments, pause
        self.graph: Graph = executable.graph
        self.symbols = self.graph.symbol_values()
        self.plan = executable.plan.title
        self.drawn: dict[Node, States] = {}  # before each node that draws
        self.values = op_by_op(self.graph, arguments, self.drawn)
        for node in self.graph.nodes:
            self.symbols |= decided_by(node.op, self.values[node])

    def cluster(self, cluster: Cluster) -> list[OutputCheck]:
        """The outputs of a cluster for NumPy's inputs."""
        inputs = self.inputs_of(cluster)
        self.draw_as_before(cluster.nodes)
        found = self.fresh().run_cluster(cluster, inputs)
        rows: list[OutputCheck] = []
        right = self.reference_of(cluster)
        wrong: list[int] = []
        for node in cluster.outputs:
            row = self.row(cluster, node, found[node], right[node])
            if not row.ok:
                wrong.append(len(rows))
            rows.append(row)
        for n in wrong:
            from .bisect import find_culprit

            node = cluster.outputs[n]
            rows[n] = replace(rows[n], guilty=find_culprit(self, cluster, node, right))
        return rows

    def fresh(self, level: str | None = None, overrides: Overrides = NO_OVERRIDES) -> Executable:
        """The same clusters compiled apart from the trace's own, so that its ledger and plan stay as they are."""
        return self.executable.trial(replace(self.executable.clustering, overrides=overrides), level)

    def draw_as_before(self, nodes: Iterable[Node]) -> None:
        """These nodes are about to run once more: they draw what they drew."""
        set_random_states(next((self.drawn[node] for node in nodes if node in self.drawn), ()))

    def inputs_of(self, cluster: Cluster) -> dict[Node, Any]:
        """NumPy's values of a cluster's inputs; what another cluster makes lies row by row, as it does there."""
        made = {node for c in self.executable.clustering.clusters for node in c.outputs}
        return {
            node: np.ascontiguousarray(self.values[node]) if node in made and node.ndim else self.values[node]
            for node in cluster.inputs
        }

    def reference_of(self, cluster: Cluster) -> dict[Node, Value]:
        """The value and the bound of each node of a cluster whose inputs are NumPy's."""
        values = {node: Value(self.values[node]) for node in cluster.inputs}
        self.draw_as_before(cluster.nodes)
        reference(cluster.nodes, values, self.symbols)
        return values

    def row(self, cluster: Cluster, node: Node, found: Any, right: Value) -> OutputCheck:
        inside = _before(node, set(cluster.nodes))
        note = f"Compared with NumPy alone: {right.unknown}." if right.unknown else ""
        return self._row(
            node, node, self.values[node], found, right, cluster=cluster.name, rewrites=rewrites(inside), note=note
        )

    def _row(self, old: Node, node: Node, was: Any, found: Any, right: Value, **more: Any) -> OutputCheck:
        """An output, which the program's `old` became, beside NumPy's value of that."""
        return OutputCheck(
            plan=self.plan, output=node.name, op=node.op.name, word=node.op.word, lines=_lines(old), dtype=str(node.dtype),
            shape=tuple(map(int, np.shape(found))), called=old.called, within=old.within, **more, **compare(was, found, right),
        )  # fmt: skip

    def passes(self) -> list[OutputCheck]:
        """The outputs that the passes changed: none, or they are wrong. They keep every bit."""
        captured = self.executable.captured
        if captured is None or len(captured.outputs) != len(self.graph.outputs):
            return []
        before = op_by_op(captured, self.arguments)
        rows = []
        for old, new in zip(captured.outputs, self.graph.outputs, strict=True):
            was, now = before[old], self.values[new]
            if same_values(was, now):
                continue
            from .bisect import find_pass

            guilty = find_pass(captured, self.arguments, before, self.pause)
            rows.append(self._row(old, new, was, now, Value(was), cluster=None, rewrites=(), guilty=guilty))
        return rows


def op_by_op(graph: Graph, arguments: Sequence[Any], before: dict[Node, States] | None = None) -> dict[Node, Any]:
    """NumPy's value of every node of a graph. What it draws is drawn again by the next such run. `before`: gets the states of
    the generators before each node that draws."""
    values: dict[Node, Any] = dict(zip(graph.parameters, arguments, strict=True))
    known = dict(graph.symbol_values())
    with keeping_random_state(graph, arguments=arguments):
        for node in graph.nodes:
            if before is not None and any(map(is_draw, every(node))):
                before[node] = states_now()
            inputs = tuple(values[source] for source in node.inputs)
            if hasattr(node.op, "graphs"):
                values[node] = node.op.run(known, inputs)
                continue
            values[node] = bind_extents(node.op, known).numpy(*inputs)
            known |= decided_by(node.op, values[node])
    return values


def compare(numpy: Any, found: Any, right: Value) -> dict[str, Any]:
    """The figures of an OutputCheck: errors against NumPy, the bound against the reference."""
    theirs, ours, wanted = np.asarray(numpy), np.asarray(found), np.asarray(right.value)
    if theirs.shape != ours.shape or theirs.dtype != ours.dtype:
        return _misshapen(theirs, ours)
    away = np.asarray(distance(theirs, ours))
    differs = ~_same_bits(theirs, ours)
    nan, inf = _one_sided(theirs, ours)
    measured = np.where(np.isfinite(away), away, 0.0)
    size = np.abs(theirs).astype(np.float64) if theirs.dtype.kind != "b" else np.ones(theirs.shape)
    relative = _relative(measured, size)
    ulp = _units(theirs)
    result: dict[str, Any] = {
        "max_abs": _most(measured), "max_rel": _most(np.where(np.isfinite(relative), relative, 0.0)),
        "max_ulp": _most(measured / ulp), "differing": int(differs.sum()), "nan": int(nan.sum()), "inf": int(inf.sum()),
        "reference": f"NumPy in {_wide_name(theirs)}" if right.is_wide else "NumPy", "numpy_ulp": None, "worst": None,
    }  # fmt: skip
    if differs.any():
        at = np.unravel_index(int(np.argmax(np.where(nan | inf, np.inf, measured / ulp) + differs)), theirs.shape)
        result["worst"] = tuple(map(int, at)), repr(theirs[at].item()), repr(ours[at].item())
    if right.unknown:
        return {**result, "bound_ulp": None, "ok": not (nan.any() or inf.any())}
    if right.off is None:
        return {**result, "bound_ulp": 0.0, "ok": not differs.any()}
    from_right = np.asarray(distance(wanted, ours))
    if right.is_wide:
        apart = np.asarray(distance(wanted, theirs))
        result["numpy_ulp"] = _most(np.where(np.isfinite(apart), apart, 0.0) / ulp)
    within = from_right <= right.off
    exact = right.off == 0
    within &= ~exact | _same_bits(wanted, ours)
    nearest = _nearest_to_its_bound(from_right, right.off)
    if not ours.size:
        return {**result, "bound_ulp": 0.0, "ok": True}
    allowed = np.ravel(right.off / ulp)
    error, value = float(np.ravel(from_right)[nearest]), float(np.ravel(size)[nearest])
    one = Nearest(
        tuple(map(int, np.unravel_index(nearest, ours.shape))), error, error / value if value else None,
        error / float(np.ravel(ulp)[nearest]), float(np.ravel(right.off)[nearest]), float(allowed[nearest]),
    )  # fmt: skip
    return {
        **result, "bound_ulp": one.bound_ulp, "ok": bool(within.all()), "nearest": one,
        "cancels": _cancels(int(np.argmax(measured / ulp)), allowed, np.ravel(right.off), np.ravel(size)),
    }  # fmt: skip


def _cancels(at: int, allowed: Any, off: Any, size: Any) -> bool:
    """Is this element's bound far above the usual one of the output, or as large as half of what is left of it?"""
    some = allowed[np.isfinite(allowed) & (allowed > 0)]
    return bool(some.size and off[at] > 0 and (allowed[at] > CANCELLED * some.min() or off[at] > size[at] / 2))


def _nearest_to_its_bound(error: Any, off: Any) -> int:
    """The element whose error is the largest part of what it may be; of none that errs, one with the usual bound."""
    if not error.size:
        return 0
    share = np.ravel(np.where(error > 0, np.where(off > 0, error / np.where(off > 0, off, 1.0), np.inf), 0.0))
    if share.any():
        return int(np.argmax(share))
    order = np.argsort(np.ravel(off), kind="stable")
    return int(order[len(order) // 2])


def _misshapen(theirs: Any, ours: Any) -> dict[str, Any]:
    return {
        "max_abs": np.inf, "max_rel": np.inf, "max_ulp": np.inf, "bound_ulp": 0.0, "ok": False, "differing": int(ours.size),
        "nan": 0, "inf": 0, "reference": "NumPy", "numpy_ulp": None,
        "worst": ((), f"{theirs.dtype}{list(theirs.shape)}", f"{ours.dtype}{list(ours.shape)}"),
    }  # fmt: skip


def same_values(a: Any, b: Any) -> bool:
    """The same bits, NaN = NaN."""
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and bool(_same_bits(a, b).all())


def _same_bits(a: Any, b: Any) -> Any:
    if a.dtype.kind not in "fc":
        return a == b
    if a.dtype.kind == "c":
        return _same_bits(a.real, b.real) & _same_bits(a.imag, b.imag)
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


def _one_sided(a: Any, b: Any) -> tuple[Any, Any]:
    if a.dtype.kind not in "fc":
        none = np.zeros(a.shape, bool)
        return none, none
    nan = np.isnan(a) != np.isnan(b)
    infinite = (np.isinf(a) | np.isinf(b)) & ~nan
    return nan, infinite & (a != b)


def _units(x: Any) -> Any:
    """The distance between neighbouring numbers at each element; 1 for integers."""
    if x.dtype.kind not in "fc":
        return np.ones(x.shape)
    size = np.abs(x).astype(x.real.dtype)
    return np.where(np.isfinite(size), np.spacing(np.where(np.isfinite(size), size, 1)), 1.0).astype(np.float64)


def _wide_name(x: Any) -> str:
    return {"f": "float64", "c": "complex128"}.get(x.dtype.kind, "float64") if x.real.dtype.itemsize < 8 else "long double"


def _most(x: Any) -> float:
    return float(np.max(x)) if np.size(x) else 0.0


# -- in words


def rewrites(nodes: Sequence[Node]) -> tuple[str, ...]:
    """What jitlab does otherwise than NumPy in these operations, each once."""
    return tuple(dict.fromkeys(text for node in nodes if (text := rewrite_of(node))))


def rewrite_of(node: Node) -> str:
    """How an inexact operation is computed; "" where the bits are NumPy's."""
    op = node.op
    if not is_inexact(op, [source.dtype for source in node.inputs]) or node.dtype.kind not in "fc":
        return ""
    if isinstance(op, (Sum, Mean)):
        return f"{op.word} adds in lanes and blocks, in another order than NumPy"
    if isinstance(op, Prod):
        return f"{op.word} multiplies in lanes and blocks, in another order than NumPy"
    if isinstance(op, Product):
        return f"{op.word} adds products in another order, each with one rounding (FMA)"
    if isinstance(op, Library):
        return f"{op.word} is a call of {op.library}"
    if isinstance(op, Elementwise):
        return f"{op.word} is jitlab's own, within 3 ULP of the true value"
    return f"{op.word} in another order than NumPy"


def _before(node: Node, inside: set[Node]) -> list[Node]:
    """The nodes of a cluster that a value is made of, itself included, in order of discovery."""
    todo, seen = [node], {node: None}
    while todo:
        for source in todo.pop().inputs:
            if source in inside and source not in seen:
                seen[source] = None
                todo.append(source)
    return [n for n in seen if is_operation(n)]


def _lines(*nodes: Node) -> tuple[int, ...]:
    return tuple(sorted({source.line for node in nodes for source in node.sources}))


def lines_text(*nodes: Node) -> str:
    """ "line 3", "lines 3, 4", "no line"."""
    lines = _lines(*nodes)
    return f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines))}" if lines else "no line"


def checked_function(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Check:
    """The check of one call of a function: it is captured where it was not, and the captured graph is run, never the call."""
    found = function._replayable(args, dict(kwargs))
    if isinstance(found, str):
        return Check(function.name, (), found)
    trace, inputs = found
    if trace.executable is None:
        raise OptionError(f"{function.name} has no compiled trace", hint="call it once, then check it")
    checked = check_calls(function.name, [(trace.executable, inputs)])
    if checked.refusal:
        return checked
    started = time.perf_counter()
    names = [input.path or f"input {n}" for n, input in enumerate(trace.inputs)]
    python = against_python(trace.executable, inputs, names, function._both_ways(args, dict(kwargs), trace))
    return replace(checked, python=python, seconds=checked.seconds + time.perf_counter() - started)


__all__ = ["Check", "Culprit", "OutputCheck", "check_calls", "check_executable", "checked_function"]
