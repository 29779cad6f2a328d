"""`f.check` beside Python itself: the function's own code runs once more, and the captured graph has to give what it gives.

The rest of a check runs the captured graph on both sides, so a mistake of capture would be on both. Here nothing of capture is
on Python's side: the plain function runs on the caller's arguments, and all that it can change is put back (world.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitlab import events
from jitlab.api.explaining import Ways
from jitlab.api.functions.dispatch import as_python
from jitlab.config import config
from jitlab.ir import Graph, Node
from jitlab.ir.graphs.dot import line_text
from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import quietly

from .reference import NUMPYS, OURS, Value, distance, reference
from .replaying import TooMuch, first_effect, keeping_random_state, op_by_op
from .world import ActsOutsideError, World, holding_back

#: How many results are named where several differ, and how many changed values.
MOST_NAMED = 3
ALONE = " (changed by Python alone)"
GUILTY = "capture is guilty, not a rewrite"

Leaves = dict[str, Any]


@dataclass(frozen=True)
class Against:
    """What the function's own Python gave beside what is compiled. `ran`: it was run. `guilty`: "capture" where the captured
    graph, run on NumPy, does not give what Python gives, "pass" where only what the passes made of it does not. `results` were
    compared, `differing` of them have other bits."""

    ran: bool
    ok: bool
    text: str
    results: int = 0
    differing: int = 0
    guilty: str = ""
    output: str = ""  # the first that differs beyond its bound: "result[1]", "argument x"
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"against Python: {self.text}"


@quietly
def against_python(executable: Any, inputs: Sequence[Any], names: Sequence[str], ways: Ways) -> Against:
    """Run both. `inputs`: of the trace, with their `names`. Whatever Python changes is put back, also when it raises."""
    graph: Graph = executable.graph
    if (effect := first_effect(graph)) is not None:
        return _not_run(f"{effect.op.word} would act on the world outside once more")
    try:
        world = World({**ways.roots, **_named(names, inputs)}, config.copy_limit_bytes)
    except TooMuch as refusal:
        return _not_run(f"copies of what it may change take more than jl.config.copy_limit_bytes ({units.size(refusal.limit)})")
    except ActsOutsideError as refusal:
        return _not_run(str(refusal))
    try:
        with events.muted():
            with keeping_random_state(graph, arguments=inputs), holding_back(), as_python(), ways.as_traced() as changed:
                found = ways.python()
                theirs = {name: _kept(value) for name, value in _leaves(found, "result").items()}
                theirs |= _written(world, inputs, names)
    except ActsOutsideError as refusal:
        return _not_run(str(refusal))
    except Exception as error:
        said = clean(str(error).split("\n")[0])[:100]
        return _not_run(f"it raises {type(error).__name__}{f': {said}' if said else ''}")
    finally:
        world.put_back()
    with events.muted():
        mine = Results(graph, inputs, names, ways)
        ours = mine.compiled(executable)
        captured: Graph | None = executable.captured  # before the passes
        is_known = captured is not None and len(captured.outputs) == len(graph.outputs)
        answer = _compared(mine, theirs, ours, Results(captured, inputs, names, ways) if captured and is_known else mine)
    if not changed:
        return answer
    told = ", ".join(changed[:MOST_NAMED]) + (f" and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else "")
    return replace(answer, text=f"{answer.text} (with {told} as when it was traced)")


class Results:
    """What a call gives and changes, leaf by leaf, made of graph outputs on copies of the inputs."""

    def __init__(self, graph: Graph, inputs: Sequence[Any], names: Sequence[str], ways: Ways) -> None:
        self.graph, self.inputs, self.names, self.ways = graph, inputs, names, ways
        self.nodes: dict[str, Node] = {}  # which output a leaf is of
        self._numpy: Leaves | None = None

    def compiled(self, executable: Any) -> Leaves:
        fresh = executable.trial(executable.clustering)
        with keeping_random_state(self.graph, arguments=self.inputs):
            return self._formed(fresh.run(_copies(self.inputs)))

    def op_by_op(self) -> Leaves:
        """Of the captured graph, every operation on NumPy."""
        if self._numpy is None:
            with keeping_random_state(self.graph, arguments=self.inputs):
                self._numpy = self._formed(op_by_op(self.graph, _copies(self.inputs))[0])
        return self._numpy

    def bounds(self) -> tuple[Leaves, Leaves]:
        """The values that are taken for true, how far compiled code may be from them (NaN: no bound is stated)."""
        values = {node: Value(value) for node, value in zip(self.graph.parameters, self.inputs, strict=True)}
        with keeping_random_state(self.graph, arguments=self.inputs):
            reference(self.graph.nodes, values, self.graph.symbol_values())
        right = [values[node] for node in self.graph.outputs]
        true = self._formed([np.array(value.value)[()] for value in right])
        off = self._formed([_off(value) for value in right], is_value=False)
        return true, off

    def _formed(self, outputs: list[Any], is_value: bool = True) -> Leaves:
        inputs = _copies(self.inputs) if is_value else [np.zeros(np.shape(x)) if _is_array(x) else x for x in self.inputs]
        before = list(inputs)
        own = list(outputs)
        result = self.ways.formed(outputs, inputs)
        leaves = _leaves(result, "result")
        for name, value in leaves.items():
            at = next((n for n, x in enumerate(own) if x is value or _shares(x, value)), None)
            if at is not None:
                self.nodes.setdefault(name, self.graph.outputs[at])
        return leaves | {f"{name} afterwards": x for name, x in zip(self.names, before, strict=True) if _is_array(x)}


def _compared(mine: Results, theirs: Leaves, ours: Leaves, captured: Results) -> Against:
    if set(theirs) != set(ours):
        alone = next((name for name in theirs if name.endswith(ALONE)), "")
        gives = f"Python gives {_form(theirs)}, compiled code {_form(ours)}"
        text = f"Python changes {alone.removesuffix(ALONE)}, compiled code does not" if alone else gives
        return Against(True, False, f"{text}: {GUILTY}", len(theirs), len(theirs), "capture", alone or "result")
    differing = [name for name in ours if not _same(theirs[name], ours[name])]
    count = sum(not name.endswith(" afterwards") for name in ours)
    if not differing:
        said = "the same bits" if count else "nothing is returned, and all that it changes has the same bits"
        return Against(True, True, f"{said} in {units.counted(count, 'result')}" if count else said, count)
    graph = mine.op_by_op()
    suspects = [name for name in differing if not _same(theirs[name], graph[name])]
    wrong = _beyond(mine, theirs, graph, suspects) if suspects else []
    if not wrong:
        text = _within(theirs, ours, graph, differing, suspects)
        return Against(True, True, text, count, len(differing))
    first = wrong[0]
    node = mine.nodes.get(first)
    lines = tuple(sorted({source.line for source in node.sources})) if node is not None else ()
    where = f" ({line_text(lines)})" if lines else ""
    more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    text = f"{first}{where}{more} differs: {_example(theirs[first], ours[first])}."
    if captured is not mine and not _beyond(mine, theirs, captured.op_by_op(), wrong):
        text += " The graph as it was traced gives what Python gives: a pass changed it"
        return Against(True, False, text, count, len(differing), "pass", first, lines)
    text += f" The traced graph gives that on NumPy, too: {GUILTY}"
    return Against(True, False, text, count, len(differing), "capture", first, lines)


def _beyond(mine: Results, theirs: Leaves, graph: Leaves, suspects: Sequence[str]) -> list[str]:
    """Those in which Python and the captured graph on NumPy are farther apart than rounding explains: each may be off from the
    true value by the bound of compiled code (a function of NumPy may be several operations of the graph)."""
    try:
        true, off = mine.bounds()
    except Exception:  # the bound cannot be worked out on these values: only what no rounding makes is told
        true, off = graph, dict.fromkeys(graph, np.nan)
    found = []
    for name in suspects:
        a, b = np.asarray(theirs[name]), np.asarray(graph[name])
        if a.shape != b.shape or _kind(theirs[name]) != _kind(graph[name]) or a.dtype.kind not in "biufc":
            found.append(name)
            continue
        allowed = np.broadcast_to(np.asarray(off.get(name, np.nan), np.float64), a.shape)
        apart = np.asarray(distance(a, b), np.float64)
        given = np.asarray(distance(np.asarray(true[name]), b), np.float64)
        one_sided = np.isnan(a) != np.isnan(b) if a.dtype.kind in "fc" else np.zeros(a.shape, bool)
        is_bound = ~np.isnan(allowed)
        rounding = 2 * np.where(is_bound, allowed, 0) + given + _own_rounding(b)
        if bool(one_sided.any()) or bool((is_bound & (apart > rounding)).any()):
            found.append(name)
    return found


def _own_rounding(values: Any) -> float:
    """What a function of NumPy (`rad2deg`) may be off from the exact operations that the graph has for it: as many ULP as
    functions may be on both sides, of the largest element."""
    if values.dtype.kind not in "fc":
        return 0.0
    size = np.abs(values[np.isfinite(values)]).astype(np.float64)
    return float((OURS + NUMPYS) * np.finfo(values.dtype).eps * np.max(size, initial=0.0))


def _within(theirs: Leaves, ours: Leaves, graph: Leaves, differing: Sequence[str], suspects: Sequence[str]) -> str:
    """What is said where capture is right."""
    apart = max((_apart(theirs[name], ours[name]) for name in differing), default=0.0)
    far = max((_apart(theirs[name], graph[name]) for name in suspects), default=0.0)
    of = f"differs from Python by {far:.2g} at most, no more than rounding explains" if suspects else "gives Python's bits"
    return f"what was traced, run by NumPy, {of}. Compiled code differs from Python by {apart:.2g} at most"


def _not_run(why: str) -> Against:
    return Against(False, True, f"not run: {why.rstrip('.')}")


# ---- leaves
def _leaves(value: Any, name: str) -> Leaves:
    """Arrays and numbers by where they stand; other objects only by what they are."""
    if isinstance(value, Mapping):
        return {k: v for key, item in value.items() for k, v in _leaves(item, f"{name}[{key!r}]").items()}
    if isinstance(value, (list, tuple)):
        return {k: v for n, item in enumerate(value) for k, v in _leaves(item, f"{name}[{n}]").items()}
    if getattr(type(value), "__jitlab_variable__", False) is True:
        return {name: value.numpy()}
    if isinstance(value, (np.ndarray, np.generic)):
        return {name: value}
    if isinstance(value, (bool, int, float, complex)):
        return {name: np.asarray(value)[()]}
    return {} if value is None else {f"{name}: {type(value).__name__}": None}


def _written(world: World, inputs: Sequence[Any], names: Sequence[str]) -> Leaves:
    """The inputs as Python left them, and what else it changed."""
    found = {f"{name} afterwards": x.copy(order="K") for name, x in zip(names, inputs, strict=True) if _is_array(x)}
    arrays = [x for x in inputs if _is_array(x)]
    for name, array, saved in world.arrays:
        if any(array is x or np.may_share_memory(array, x) for x in arrays) or _same(array, saved):
            continue
        found[name + ALONE] = array.copy()
    return found


def _kept(value: Any) -> Any:
    """Results may be the caller's own arrays, which are put back."""
    return value.copy(order="K") if _is_array(value) else value


def _named(names: Sequence[str], inputs: Sequence[Any]) -> dict[str, Any]:
    return {f"{name}": x for name, x in zip(names, inputs, strict=True) if _is_array(x)}


def _copies(inputs: Sequence[Any]) -> list[Any]:
    return [_kept(x) for x in inputs]


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def _shares(a: Any, b: Any) -> bool:
    return _is_array(a) and _is_array(b) and bool(np.may_share_memory(a, b))


def _off(value: Value) -> Any:
    """How far each element may be off, NaN where nobody has stated it."""
    shape = np.shape(value.value)
    if value.unknown:
        return np.full(shape, np.nan)[()]
    return np.zeros(shape)[()] if value.off is None else np.array(np.broadcast_to(value.off, shape), np.float64)[()]


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape or (x.dtype != y.dtype and isinstance(a, np.ndarray)):
        return False
    if x.dtype.kind in "fc" and y.dtype.kind in "fc":
        same_sign = np.signbit(x.real) == np.signbit(y.real)
        return bool((((x == y) & same_sign) | (np.isnan(x) & np.isnan(y))).all())
    return bool(np.array_equal(x, y))


def _kind(x: Any) -> str:
    """Of an array its dtype; a number may be Python's or NumPy's."""
    return str(x.dtype) if _is_array(x) else np.asarray(x).dtype.kind


def _apart(a: Any, b: Any) -> float:
    away = np.asarray(distance(np.asarray(a), np.asarray(b)), np.float64)
    return float(np.max(away[np.isfinite(away)], initial=0.0))


def _example(theirs: Any, ours: Any) -> str:
    a, b = np.asarray(theirs), np.asarray(ours)
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"Python {a.dtype}{list(a.shape)}, compiled {b.dtype}{list(b.shape)}"
    away = np.asarray(distance(a, b), np.float64)
    if a.dtype.kind in "fc":
        away = np.where(np.isnan(a) != np.isnan(b), np.inf, away)
    at = np.unravel_index(int(np.argmax(np.nan_to_num(away, posinf=np.inf))), a.shape)
    place = f"[{', '.join(map(str, at))}]" if at else ""
    count = int((np.asarray(away) > 0).sum())
    where = f"at {place} " if place else ""
    return f"{units.counted(count, 'element')}; {where}Python {a[at].item()!r}, compiled {b[at].item()!r}"


def _form(leaves: Leaves) -> str:
    names = [name for name in leaves if not name.endswith(" afterwards")]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (", ".join(names[:MOST_NAMED]) or "nothing") + more
