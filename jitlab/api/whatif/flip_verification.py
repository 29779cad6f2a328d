"""What would flip the decisions of a plan, and whether it is true: the changed version is compiled beside the one there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from jitlab import events
from jitlab.api.check.replaying import first_effect
from jitlab.cluster import Advisor, flipped
from jitlab.ir import Apart, Change, Edge, Flip, NestChange, NotFused, Overrides, Plan
from jitlab.runtime import Executable
from jitlab.support.transactions import Undisturbed, quietly

from .alternatives import Alternative, Alternatives
from .plan_questions import Pair, Place

#: A fault in here costs what would be said, not the report.
_SEARCHING = Undisturbed("could not find what would change a decision")


def with_flips(data: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """The JSON of a plan with what would change its decisions: `flip` of operations and of edges."""
    edges = (*plan.boundaries, *plan.clustering.apart)
    if not (edges or plan.clustering.stays):
        return dict(data)
    advisor, alternatives = Advisor(plan.clustering), Alternatives(plan.clustering.graph)
    nodes = {node.name: node for node in plan.clustering.stays}

    def with_flip(op: dict[str, Any]) -> dict[str, Any]:
        with _SEARCHING:
            flip = advisor(nodes[op["name"]]) if op["reason"] and op["name"] in nodes else None
            return op if flip is None else {**op, "flip": flip.said.to_json()}
        return op

    def flip_of(edge: Edge) -> dict[str, Any] | None:
        if edge.would_fuse_if is not None:
            return edge.would_fuse_if.to_json()
        with _SEARCHING:
            found = advisor(edge) if isinstance(edge.reason.code, Apart) else alternatives.of(edge)
            return None if found is None else found.said.to_json()
        return None

    return {
        **data, "ops": [with_flip(op) for op in data["ops"]],
        "boundaries": [{**made, "flip": flip_of(e)} for made, e in zip(data["boundaries"], edges, strict=True)],
    }  # fmt: skip


def operation_flip_holds(executable: Executable, name: str) -> bool | None:
    """Does an operation compile once what "would compile if" says is changed? None: nothing is said, or no change of marks,
    options or order expresses it."""
    clustering = executable.clustering
    node = next((node for node in clustering.graph.nodes if node.name == name), None)
    flip = Advisor(clustering)(node) if node is not None and node in clustering.stays else None
    made = _clustered(executable, flip)
    return None if made is None else name in Place(made.plan).cluster


def edge_flip_holds(executable: Executable, pair: Pair) -> bool | None:
    """Do two operations share a cluster (apart by clusters) or a kernel (apart by kernels) once what "would fuse if" says is
    changed? None as above."""
    clustering = executable.clustering
    edge = next((e for e in clustering.apart if (e.producer.name, e.consumer.name) == pair), None)
    if edge is not None:
        flip = Advisor(clustering)(edge)
        made = _clustered(executable, flip)
        if made is None:
            return None
        place = Place(made.plan)
        first = f"{pair[0]}_again" if flip is not None and flip.change is Change.COMPUTE_TWICE else pair[0]
        home = place.cluster.get(first)
        return home is not None and home is place.cluster.get(pair[1])
    found = next((e for e in executable.plan.boundaries if (e.producer.name, e.consumer.name) == pair), None)
    if found is None:
        return None
    if found.would_fuse_if is not None:
        return _fuses(executable, found, pair)
    other = Alternatives(executable.graph).of(found)
    return None if other is None else _runs_together(other)


def _runs_together(other: Alternative) -> bool:
    made = _compiled(other.compiled())
    return other.holds() and made.plan.kernels != []


def _fuses(executable: Executable, edge: Edge, pair: Pair) -> bool | None:
    if edge.reason.code is NotFused.LEVEL:
        made = _compiled(executable.changed(Overrides(), level="O1"))
        return Place(made.plan).together(*pair)
    move = next((r.flip for r in edge.rejections if r.flip is not None and r.flip.change is NestChange.MOVE), None)
    if move is not None:
        made = _compiled(executable.changed(Overrides(earlier=((move.names[0], move.names[1]),))))
        return Place(made.plan).together(*pair)
    made = _compiled(executable.changed(Overrides(fuse=(pair,))))
    return Place(made.plan).together(*pair)


def _clustered(executable: Executable, flip: Flip | None) -> Executable | None:
    """The executable of the changed version."""
    clustering = flipped(executable.clustering, flip) if flip is not None else None
    if clustering is None:
        return None
    return _compiled(executable.trial(clustering))


def _compiled(executable: Executable) -> Executable:
    """Planned, and compiled by a run on ones where that has no effect."""
    with events.muted():
        arguments = _ones(executable)
        executable.prepare(arguments)
        if first_effect(executable.graph) is None:
            with suppress(Exception):  # data of its own may be refused; it is compiled by then
                quietly(executable.run)(arguments)
    return executable


def _ones(executable: Executable) -> Sequence[Any]:
    return [np.ones(tuple(int(n) for n in p.shape), p.dtype) for p in executable.graph.parameters]
