"""Graphs as DOT text, and a graphviz.Digraph that displays without `dot` too."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jitlab.ir import Node

from . import wording

if TYPE_CHECKING:
    from graphviz import Digraph

FILLS = ("#dbe9f4", "#d6ece5", "#f1e8d2", "#e3e1f4", "#e0e8ec", "#efe5dc")
LINES = ("#0067a5", "#007a5a", "#8a6500", "#5a50b0", "#4b6a7c", "#7a5230")
HOST = "#b04300"
NODE_STYLE = 'node [shape=box, fontname="Helvetica", fontsize=10];'


def quoted(text: object) -> str:
    """A DOT string: quotes and backslashes of user text stay what they are, and it never becomes HTML or a port."""
    plain = wording.clean(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def nodes_dot(title: str, nodes: Sequence[Node], marker: str = "") -> str:
    """The DOT text of graph nodes: one box an operation, with its type and lines."""
    names = {node: f"n{i}" for i, node in enumerate(nodes)}
    lines = [marker] if marker else []
    lines += ["digraph G {", f"  label={quoted(title)};", "  labelloc=t;", f"  {NODE_STYLE}"]
    for node in nodes:
        for source in node.inputs:
            if source not in names:
                names[source] = f"i{len(names)}"
                lines.append(f"  {names[source]} [shape=ellipse, label={quoted(source.name)}];")
    for node in nodes:
        at = wording.line_text({source.line for source in node.sources})
        label = "\\n".join(quoted(part)[1:-1] for part in (f"{node.op.name} {node.name}", node.type.describe(), at) if part)
        lines.append(f'  {names[node]} [label="{label}"];')
    for node in nodes:
        lines += [f"  {names[source]} -> {names[node]};" for source in node.inputs]
    return "\n".join([*lines, "}", ""])


def text_dot(title: str, text: str, marker: str = "") -> str:
    """The DOT text of one box that holds a text, line by line."""
    label = "".join(quoted(line)[1:-1] + "\\l" for line in text.split("\n"))
    head = [marker] if marker else []
    box = f'  program [shape=box, fontname="Courier", fontsize=10, label="{label}"];'
    return "\n".join([*head, "digraph G {", f"  label={quoted(title)};", "  labelloc=t;", box, "}", ""])


def report_dot(data: Mapping[str, Any]) -> str:
    """All plans of a report: clusters as frames, kernels as frames inside, host operations as diamonds, cut edges dashed."""
    return "\n".join(["digraph jitlab {", *("  " + line for line in report_lines(data)), "}", ""])


def report_lines(data: Mapping[str, Any]) -> list[str]:
    lines = [f"label={quoted(data['verdict']['lead'])};", "labelloc=t;", NODE_STYLE]
    names = {(op["plan"], op["name"]): f"n{i}" for i, op in enumerate(data["ops"])}
    cut = {(edge["plan"], edge["producer"], edge["consumer"]): edge for edge in data["boundaries"]}
    for c, cluster in enumerate(data["clusters"]):
        color = LINES[cluster["color"] % len(LINES)]
        lines += [f"subgraph cluster_{c} {{", f"  label={quoted(cluster['name'])};", f'  color="{color}"; fontcolor="{color}";']
        mine = [op for op in data["ops"] if op["plan"] == cluster["plan"] and op["cluster"] == cluster["name"]]
        for k, kernel in enumerate(cluster["kernels"]):
            lines += [f"  subgraph cluster_{c}_{k} {{", f"    label={quoted(kernel)}; style=dashed;"]
            lines += [f"    {_node(op, names, FILLS[cluster['color'] % len(FILLS)])}" for op in mine if op["kernel"] == kernel]
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
            style = f" [style=dashed, tooltip={quoted(edge['reason']['text'])}]" if edge else ""
            lines.append(f"{names[key]} -> {names[op['plan'], op['name']]}{style};")
    return lines


def _node(op: Mapping[str, Any], names: Mapping[tuple[str, str], str], fill: str, extra: str = "") -> str:
    shape = f"{op['dtype']}[{', '.join(map(str, op['shape']))}]"
    at = wording.line_text(wording.numbers_of(op["lines"]))
    label = "\\n".join(quoted(part)[1:-1] for part in (op["op"], shape, at) if part)
    return f'{names[op["plan"], op["name"]]} [{extra}style=filled, fillcolor="{fill}", label="{label}"];'


def report_graph(data: Mapping[str, Any]) -> Digraph:
    """The graph as graphviz's own object: `.source`, `.render()` and the rest are graphviz's, the display never fails."""
    import graphviz

    class GraphPicture(graphviz.Digraph):  # type: ignore[misc]
        """A Digraph that shows jitlab's own drawing where graphviz's program is not installed."""

        def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **options: Any) -> Any:
            if shutil.which("dot"):
                return super()._repr_mimebundle_(include, exclude, **options)
            from .layered import graph_svg

            return {"image/svg+xml": graph_svg(data), "text/plain": self.source}

    return GraphPicture("jitlab", body=[f"\t{line}\n" for line in report_lines(data)])
