"""A layered drawing of the graph of a report, for where `dot` is absent: ranks by longest path, order by mean of neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jitlab.legible import clean

from .svg import CLUSTERS, HOST, LINE, MUTED, Drawing, cut, width

MOST = 150  # operations drawn; the rest is counted
STEP = 52  # from rank to rank
GAP = 14

Key = tuple[str, str]

MOST_WIDE = 130  # of a text in a box


def graph_svg(data: Mapping[str, Any]) -> str:
    """Operations as boxes with the band of their cluster, host operations with the host's; edges go down."""
    ops = {(op["plan"], op["name"]): op for op in data["ops"][:MOST]}
    reads = {key: [(key[0], name) for name in op["inputs"] if (key[0], name) in ops] for key, op in ops.items()}
    ranks, ways = layers(reads)
    colors = {(cluster["plan"], cluster["name"]): cluster["color"] for cluster in data["clusters"]}
    labels = {key: cut(_label(op), 11, MOST_WIDE) for key, op in ops.items()}
    notes = {key: cut(_note(op), 11, MOST_WIDE) for key, op in ops.items()}
    wide = {key: 4.0 for rank in ranks for key in rank}  # of the bends of long edges
    wide |= {key: max(width(labels[key], 11, bold=True) + 24, width(notes[key], 11) + 24, 60) for key in ops}
    total = max((sum(wide[key] + GAP for key in rank) for rank in ranks), default=200) + 2 * GAP
    total = max(int(total), 320)
    at: dict[Key, float] = {}
    for rank in ranks:
        x = (total - sum(wide[key] + GAP for key in rank) + GAP) / 2
        for key in rank:
            at[key] = x + wide[key] / 2
            x += wide[key] + GAP
    top = {key: 40 + i * STEP for i, rank in enumerate(ranks) for key in rank}
    draw = Drawing()
    draw.text(GAP, 22, clean(data["verdict"]["lead"]), bold=True, room=total - 2 * GAP)
    for way in ways:
        d = ""
        for above, below in zip(way, way[1:], strict=False):
            x0, y0, x1, y1 = at[above], top[above] + 34, at[below], top[below]
            middle = (y0 + y1) / 2
            d += f"M{x0:.1f} {y0}C{x0:.1f} {middle} {x1:.1f} {middle} {x1:.1f} {y1}"
            if below not in ops:
                d += f"v{34}"
        draw.path(d, LINE)
    for key, op in ops.items():
        color = colors.get((key[0], op["cluster"] or ""), -1)
        ink = HOST if color < 0 else CLUSTERS[color % 6]
        left = at[key] - wide[key] / 2
        draw.rect(left, top[key], wide[key], 34, stroke=ink, ground=True)
        draw.selvage(left, top[key], 6, 34, color, ink)
        draw.text(left + 13, top[key] + 14, labels[key], size=11, bold=True)
        draw.text(left + 13, top[key] + 28, notes[key], size=11, fill=MUTED)
    bottom = 40 + len(ranks) * STEP
    if len(data["ops"]) > MOST:
        draw.text(GAP, bottom + 4, f"and {len(data['ops']) - MOST} more operations", size=11, fill=MUTED)
        bottom += 20
    return draw.done(bottom, f"Graph: {clean(data['verdict']['lead'])}", total)


def _label(op: Mapping[str, Any]) -> str:
    """`inv6 (RealDiv)`, or the operation alone where its value has no name or a long one."""
    kind = clean(op["op"])
    called = f"{clean(op['called'])} ({kind})" if op.get("called") else kind
    return called if width(called, 11, bold=True) <= MOST_WIDE else kind


def layers(reads: Mapping[Key, list[Key]]) -> tuple[list[list[Key]], list[list[Key]]]:
    """Ranks, each node below all that it reads, and the way of each edge: a long edge bends at a place of its own in each rank
    it crosses. Inside a rank the order is by the mean place of the neighbours, swept down, up and down."""
    depth: dict[Key, int] = {}
    for key, sources in reads.items():  # program order: sources come first
        depth[key] = max((depth.get(source, -1) + 1 for source in sources), default=0)
    ways: list[list[Key]] = []
    for key, sources in reads.items():
        for source in dict.fromkeys(sources):
            bends = [("", f"{len(ways)} {level}") for level in range(depth[source] + 1, depth[key])]
            depth |= {bend: depth[source] + 1 + i for i, bend in enumerate(bends)}
            ways.append([source, *bends, key])
    ranks: list[list[Key]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    above: dict[Key, list[Key]] = {key: [] for key in depth}
    below: dict[Key, list[Key]] = {key: [] for key in depth}
    for key, level in depth.items():
        ranks[level].append(key)
    for way in ways:
        for first, second in zip(way, way[1:], strict=False):
            below[first].append(second)
            above[second].append(first)
    for neighbours, sweep in ((above, ranks), (below, ranks[::-1]), (above, ranks)):
        place = {key: i / max(1, len(rank)) for rank in ranks for i, key in enumerate(rank)}
        for rank in sweep:
            means = {key: _mean([place[n] for n in neighbours[key]], place[key]) for key in rank}
            rank.sort(key=lambda key: means[key])
            place.update({key: i / max(1, len(rank)) for i, key in enumerate(rank)})
    return ranks, ways


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _note(op: Mapping[str, Any]) -> str:
    return f"{clean(op['dtype'])}[{','.join(map(str, op['shape']))}]"
