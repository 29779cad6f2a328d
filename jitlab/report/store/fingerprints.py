"""Fingerprints: what the compiler decided, without names, sizes and values. Equal ones: the same plan, the same cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

Json = Mapping[str, Any]

DIGITS = 12  # of a fingerprint, hexadecimal: 48 bits


def short(decisions: Any) -> str:
    """The fingerprint of plain data."""
    return hashlib.sha256(repr(decisions).encode("utf-8", "backslashreplace")).hexdigest()[:DIGITS]


def plan_fingerprint(plan: Json) -> str:
    """Operations in program order, what each reads, which are compiled together, in which kernel, why not."""
    clusters = {cluster["name"]: i for i, cluster in enumerate(plan["clusters"])}
    places = {op["name"]: i for i, op in enumerate(plan["ops"])}
    return short(("plan", _rows(plan["ops"], clusters), _cuts(plan["boundaries"], places)))


def cluster_fingerprint(plan: Json, name: str) -> str:
    """The same of one cluster alone: a plan whose other parts changed, or lie in another order, leaves it as it is."""
    ops = [op for op in plan["ops"] if op["cluster"] == name]
    places = {op["name"]: i for i, op in enumerate(ops)}
    edges = [edge for edge in plan["boundaries"] if edge["producer"] in places and edge["consumer"] in places]
    return short(("cluster", _rows(ops, {name: 0}), _cuts(edges, places)))


def _rows(ops: Iterable[Json], clusters: Mapping[str, int]) -> list[Any]:
    """A row an operation. What comes from outside is numbered as it is first read; kernels as they first appear."""
    numbers: dict[str, int] = {}
    kernels: dict[Any, int] = {}
    rows = []
    for op in ops:
        inputs = tuple(numbers.setdefault(source, len(numbers)) for source in op["inputs"])
        numbers.setdefault(op["name"], len(numbers))
        kernel = op["kernel"] and kernels.setdefault((op["cluster"], op["kernel"]), len(kernels))
        reason = op["reason"] and op["reason"]["code"]
        rows.append((op["op"], inputs, clusters.get(op["cluster"], -1), kernel, reason))
    return rows


def _cuts(edges: Iterable[Json], places: Mapping[str, int]) -> list[Any]:
    """The edges that were not fused, each with its reason's code."""
    def place(name: str) -> int:
        return places.get(name, -1)

    return sorted((place(edge["producer"]), place(edge["consumer"]), edge["reason"]["code"]) for edge in edges)
