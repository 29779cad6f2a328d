"""Graphs as DOT text, and a graphviz.Digraph that displays as its text where `dot` is absent."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jitlab.ir.graphs.dot import NODE_STYLE, quoted

from . import wording
from .marks import kernel_colors

if TYPE_CHECKING:
    from graphviz import Digraph

FILLS = ("#dbe9f4", "#d6ece5", "#f1e8d2", "#e3e1f4", "#e0e8ec", "#efe5dc")
LINES = ("#0067a5", "#007a5a", "#8a6500", "#5a50b0", "#4b6a7c", "#7a5230")
HOST = "#b04300"


def report_lines(data: Mapping[str, Any]) -> list[str]:
    """All plans of a report: clusters as frames, kernels as frames inside, host operations as diamonds, cut edges dashed."""
    lines = [f"label={quoted(data['verdict']['lead'])};", "labelloc=t;", NODE_STYLE]
    names = {(op["plan"], op["name"]): f"n{i}" for i, op in enumerate(data["ops"])}
    cut = {(edge["plan"], edge["producer"], edge["consumer"]): edge for edge in data["boundaries"]}
    colors = kernel_colors(data["clusters"])
    for c, cluster in enumerate(data["clusters"]):
        color = LINES[cluster["color"] % len(LINES)]
        lines += [f"subgraph cluster_{c} {{", f"  label={quoted(cluster['name'])};", f'  color="{color}"; fontcolor="{color}";']
        mine = [op for op in data["ops"] if op["plan"] == cluster["plan"] and op["cluster"] == cluster["name"]]
        for k, kernel in enumerate(cluster["kernels"]):
            lines += [f"  subgraph cluster_{c}_{k} {{", f"    label={quoted(kernel)}; style=dashed;"]
            fill = FILLS[colors[cluster["name"], kernel]]
            lines += [f"    {_node(op, names, fill)}" for op in mine if op["kernel"] == kernel]
            lines.append("  }")
        rest = [op for op in mine if op["kernel"] not in cluster["kernels"]]
        lines += [f"  {_node(op, names, FILLS[cluster['color'] % len(FILLS)])}" for op in rest]
        lines.append("}")
    for op in data["ops"]:
        if op["cluster"] is None:
            lines.append(_node(op, names, "white", f'shape=diamond, color="{HOST}", fontcolor="{HOST}", '))
    for op in data["ops"]:
        for source in op["inputs"]:
            key = op["plan"], source
            if key not in names:
                names[key] = f"n{len(names)}"
                lines.append(f"{names[key]} [shape=ellipse, label={quoted(source)}];")
            edge = cut.get((op["plan"], source, op["name"]))
            style = f" [style=dashed, tooltip={quoted(wording.unmarked(edge['reason']['text']))}]" if edge else ""
            lines.append(f"{names[key]} -> {names[op['plan'], op['name']]}{style};")
    return lines


def _node(op: Mapping[str, Any], names: Mapping[tuple[str, str], str], fill: str, extra: str = "") -> str:
    shape = f"{op['dtype']}[{', '.join(map(str, op['shape']))}]"
    at = wording.line_text(wording.numbers_of(op["lines"]))
    label = "\\n".join(quoted(part)[1:-1] for part in (wording.written(op), shape, at) if part)
    return f'{names[op["plan"], op["name"]]} [{extra}style=filled, fillcolor="{fill}", label="{label}"];'


def report_graph(data: Mapping[str, Any]) -> Digraph:
    """The graph as graphviz's own object: `.source`, `.render()` and the rest are graphviz's, the display never fails."""
    import graphviz

    class GraphPicture(graphviz.Digraph):  # type: ignore[misc]
        """A Digraph that shows its text where graphviz's program is not installed."""

        def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **options: Any) -> Any:
            if shutil.which("dot"):
                return super()._repr_mimebundle_(include, exclude, **options)
            return {"text/plain": self.source}

    return GraphPicture("jitlab", body=[f"\t{line}\n" for line in report_lines(data)])
