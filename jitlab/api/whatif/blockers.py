"""Why a plan cannot be as it was asked for: the one blocker, in the program's own names, with the operations that show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jitlab.config import PLACES
from jitlab.ir import Apart, Node, NotFused, Reason, Stays
from jitlab.messages import Message
from jitlab.runtime.predicted import predicted
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.devices import default_target, device_peaks, is_on_gpu, why_no_gpu

from .plan_questions import Pair, Place, Question, call_of, is_move


@dataclass(frozen=True)
class Refusal:
    """`path`: the operations that show it, as `Place.step` tells them."""

    code: str
    said: Message
    path: tuple[dict[str, Any], ...] = ()

    @property
    def text(self) -> str:
        return str(self.said)

    def to_json(self) -> dict[str, Any]:
        said = self.said.to_json()
        return {"code": self.code, "detail": said["code"], "args": said["args"], "text": said["text"], "path": list(self.path)}


def _refusal(code: str, row: str, path: tuple[dict[str, Any], ...] = (), **args: Any) -> Refusal:
    return Refusal(code, Message(f"blocker.{row}", args), path)


#: Kinds of reasons for the two catalogues: why an operation is not compiled, and why two are not fused.
CODES = {
    NotFused.LIBRARY_CALL: "library", NotFused.WHOLE_REDUCTION: "space", NotFused.REDUCED_OUTER_AXIS: "space",
    NotFused.DIFFERENT_SPACE: "space", NotFused.RESHAPED: "space", NotFused.READ_AGAIN: "memory", NotFused.GATHERED: "memory",
    NotFused.OVERLAP: "memory", NotFused.UPDATED: "memory", NotFused.RECOMPUTE_IS_EXPENSIVE: "memory", NotFused.LEVEL: "level",
    NotFused.TOO_LONG: "size", NotFused.TOO_MANY_VALUES: "size", NotFused.LOOP: "loop", NotFused.NUMBER: "register",
    NotFused.WAITS: "memory", NotFused.AFTER_LOOPS: "memory", NotFused.OTHER_AXES: "space", NotFused.SCAN: "space",
    NotFused.CLOSED: "memory", NotFused.ORDER: "order", NotFused.LATER_NEST: "order",
    Apart.CYCLE: "cycle", Apart.DEVICES: "device", Apart.CROSS_DEVICE: "device", Apart.RESOURCES: "variable",
    Apart.SCOPES: "scope", Apart.SIZE: "size", Stays.DTYPE: "type", Stays.FOREIGN_TYPE: "type",
    Stays.STATEFUL_RANDOM: "random", Stays.EFFECT: "effect", Stays.DATA_DEPENDENT_SHAPE: "shape", Stays.CHECK: "effect",
}  # fmt: skip


def refused_at_once(place: Place, question: Question) -> Refusal | None:
    """What the plan as it is rules out."""
    if question.target is not None:
        refusal = _other_target(place, question.target)
        if refusal is not None:
            return refusal
    for pair in (*question.cut, *question.fuse):
        refusal = _in_different_bodies(place, pair) or _not_adjacent(place, pair)
        if refusal is not None:
            return refusal
    for pair in question.cut:
        if pair[0] not in place.loop and not place.together(*pair):
            return _refusal("apart", "in_kernels", _steps(place, pair), **_ends(place, pair))
    for pair in question.fuse:
        if pair[0] in place.loop:
            return _inside(place, pair)
        if place.together(*pair):
            kernel = place.kernel[pair[1]].name
            return _refusal("fused", "share_kernel", _steps(place, pair), kernel=kernel, **_ends(place, pair))
    for name in question.keep_out:
        if name in place.loop:
            loop = place.loop[name]
            steps = _steps(place, (name, loop))
            return _refusal("loop", "inside_whole", steps, name=place.text(name), loop=place.text(loop))
        if place.home(name) is None:
            return _refusal("host", "on_numpy", (place.step(name),), name=place.text(name))
    return None


def _steps(place: Place, names: Iterable[str]) -> tuple[dict[str, Any], ...]:
    return tuple(place.step(name) for name in names)


def _ends(place: Place, pair: Pair) -> dict[str, str]:
    return {"one": place.text(pair[0]), "other": place.text(pair[1])}


def _in_different_bodies(place: Place, pair: Pair) -> Refusal | None:
    """One is inside a loop or branch that the other is outside of: the one runs each turn, or not at all."""
    a, b = pair
    if place.parent(a) == place.parent(b):
        return None
    inner, other = (b, a) if len(place.parent(b)) >= len(place.parent(a)) else (a, b)
    loop = place.loop[inner]
    steps, around = _steps(place, dict.fromkeys((a, loop, b))), place.text(loop)
    if place.loop.get(other) == loop:
        return _refusal("loop", "in_bodies", steps, loop=around, **_ends(place, pair))
    row = "inside_branch" if hasattr(place.named[loop].op, "orelse") else "inside_loop"
    return _refusal("loop", row, steps, name=place.text(inner), loop=around, other=place.text(other))


def _not_adjacent(place: Place, pair: Pair) -> Refusal | None:
    a, b = (place.named[name] for name in pair)
    if place._way(a, b) is not None:
        return None
    steps, args = _steps(place, pair), {"reader": place.text(pair[1]), "maker": place.text(pair[0])}
    if place._way(b, a) is not None:
        return _refusal("not_adjacent", "reversed", steps, **args)
    between = _between(place, a, b)
    if between:
        shown = [name for name in between if not is_move(place.named[name])] or between
        path, args = _steps(place, (pair[0], *between, pair[1])), args | {"between": place.text(shown[0])}
        if len(shown) == 1:
            return _refusal("not_adjacent", "between", path, **args)
        return _refusal("not_adjacent", "between_more", path, more=len(shown) - 1, **args)
    return _refusal("not_adjacent", "before" if _between(place, b, a) else "unrelated", steps, **args)


def _between(place: Place, start: Node, end: Node) -> list[str]:
    """The operations on a shortest way between two; [] where there is none, or nothing is on it."""
    return [place.name[node] for node in next(_ways(place, start, end), [])]


def _ways(place: Place, start: Node, end: Node) -> Iterator[list[Node]]:
    """What stands between two operations, way by way, the shortest first; each operation is on one way at most."""
    ways: list[list[Node]] = [[end]]
    seen = {end}
    while ways:
        way = ways.pop(0)
        for source in map(call_of, way[0].inputs):
            if source is start:
                yield way[:-1]
            elif source not in seen and source in place.name:
                seen.add(source)
                ways.append([source, *way])


def _inside(place: Place, pair: Pair) -> Refusal:
    """Two operations in one body of a loop or branch, which nothing but the compiler's own rules fuses."""
    steps, ends = _steps(place, pair), _ends(place, pair)
    if place.share_nest(*pair):
        return _refusal("fused", "share_nest", steps, loop=place.text(place.loop[pair[0]]), **ends)
    found, _ = _edge_reason(place, pair)
    if found is None:
        return _refusal("register", "register", steps, **ends)
    return _refusal(CODES.get(found.code, "kind"), "apart", steps, why=found.text, **ends)


def _other_target(place: Place, target: str) -> Refusal | None:
    """What keeps a plan from another device: it is there, or there is none. Then the model says what it would take."""
    kind = target.lower()
    on_gpu = any(is_on_gpu(cluster.device) for cluster in place.clustering.clusters)
    if kind == PLACES[0]:
        return None if on_gpu else _refusal("target", "on_cpu")
    if kind != PLACES[1]:
        return _refusal("target", "no_target", target=repr(target))
    if on_gpu:
        return _refusal("target", "on_gpu")
    why = why_no_gpu()
    if not why:
        return None
    found = predicted(place.plan, default_target().known_peaks(), device_peaks()).said("absent")
    return Refusal("target", Message(found.code, {**found.args, "why": why}))


def missed(before: Place, after: Place, question: Question) -> Refusal | None:
    """Why the changed plan is not what was asked for: the one blocker, with the operations that show it."""
    for pair in question.cut:
        if after.together(*pair) or (pair[0] in before.loop and programs(before) == programs(after)):
            if before.named[pair[0]].ndim:
                return _refusal("apart", "in_nests", _steps(before, pair), **_ends(before, pair))
            return _refusal("register", "in_register", _steps(before, pair), name=before.text(pair[0]))
    for pair in question.fuse:
        if not after.together(*pair) or after.kernel[pair[1]].kind == "library":
            return _blocker(before, after, pair)
    for name in question.keep_out:
        if after.home(name) is not None:
            return _refusal("must_compile", "must_compile", (before.step(name),))
    return None


def _blocker(before: Place, after: Place, pair: Pair) -> Refusal:
    """What keeps two operations apart although they were to be fused."""
    ends, names = _steps(before, pair), _ends(before, pair)
    for name in pair:
        if after.home(name) is None:
            reason = after.clustering.stays[after.named[name]]
            code = CODES.get(reason.code, "library" if reason.code is Stays.NO_LOOP_BODY else "kind")
            return _refusal(code, "not_compiled", ends, name=before.text(name), why=reason.text, **names)
    whole = next((name for name in pair if getattr(before.named[name].op, "graphs", ())), None)
    if whole is not None:
        other = pair[1] if whole == pair[0] else pair[0]
        kind = "branch" if hasattr(before.named[whole].op, "orelse") else "loop"
        row = "ends_before" if whole == pair[0] else "begins_after"
        return _refusal("loop", row, ends, name=before.text(whole), kind=kind, end=before.text(other), **names)
    libraries = [name for name in pair if name in before.kernel and before.kernel[name].kind == "library"]
    if libraries:
        return _refusal("library", "library", ends, name=before.text(libraries[-1]), **names)
    found, way = _edge_reason(after, pair)
    through = _around(after, pair)
    if through and (found is None or isinstance(found.code, NotFused) or found.code is Apart.CYCLE):
        path = (ends[0], *(before.step(name) if name in before.named else after.step(name) for name in through), ends[1])
        if found is None or found.code is Apart.CYCLE or not _is_kernel_matter(found):
            return _refusal("cycle", "cycle", path, through=_via(after, through, pair), **names)
    assert found is not None, f"{pair} are apart without a reason"
    why = (found.rest if isinstance(found.code, Apart) else "") or found.text
    path = _steps(before, (name for name in way if name in before.named))
    return _refusal(CODES.get(found.code, "kind"), "apart", path or ends, why=why, **names)


def programs(place: Place) -> list[str]:
    """The Programs of a plan's clusters, as text."""
    return [text for (_, stage), text in sorted(place.plan.texts.items()) if stage == "program"]


def _is_kernel_matter(reason: Reason) -> bool:
    """Would the two be apart even if nothing stood between them?"""
    return reason.code in (NotFused.LIBRARY_CALL, NotFused.WHOLE_REDUCTION, NotFused.REDUCED_OUTER_AXIS, NotFused.LEVEL)


def _via(place: Place, through: Sequence[str], pair: Pair) -> str | Message:
    """What stands on the way: what NumPy runs, else what is in another cluster, else in other kernels."""
    host = [name for name in through if place.home(name) is None]
    if host:
        return Message("blocker.via_numpy", {"names": " and ".join(map(place.text, host[:3]))})
    work = [name for name in through if not is_move(place.named[name])] or list(through)
    homes = {home.name for name in work if (home := place.home(name)) is not None and home is not place.home(pair[1])}
    if homes:
        names = " and ".join(map(place.text, work[:3]))
        return Message("blocker.via_clusters", {"names": names, "clusters": " and ".join(sorted(homes))})
    return " and ".join(map(place.text, work[:3]))


def _edge_reason(place: Place, pair: Pair) -> tuple[Reason | None, tuple[str, ...]]:
    """The reason of the edge that keeps a pair apart, and the pair or the steps between."""
    way = place._way(place.named[pair[0]], place.named[pair[1]])
    names = [pair[0], *(place.name[node] for node in way or ())]
    edges = {
        (place.name.get(call_of(e.producer)), place.name.get(call_of(e.consumer))): e.reason
        for e in (*place.clustering.apart, *place.plan.boundaries)
    }
    for step in zip(names, names[1:], strict=False):
        if step in edges:
            return edges[step], step
    return None, ()


def _around(place: Place, pair: Pair) -> list[str]:
    """Operations on a way from one to the other that run in neither's kernel: fused, the two would wait for themselves."""
    start, end = (place.named[name] for name in pair)
    homes = [{k.name for k in place.plan.kernels if node in k.nodes} for node in (start, end)]
    for way in _ways(place, start, end):
        between = [node for node in way if not {k.name for k in place.plan.kernels if node in k.nodes} & homes[0]]
        outside = [n for n in between if not {k.name for k in place.plan.kernels if n in k.nodes} & homes[1]]
        if any(not is_move(node) for node in outside):
            return [place.name[node] for node in outside]
    return []
