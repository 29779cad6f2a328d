"""Graphs as DOT text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jitlab.messages.escape import clean

from .graph import Node

NODE_STYLE = 'node [shape=box, fontname="Helvetica", fontsize=10];'


def quoted(text: object) -> str:
    """A DOT string: quotes and backslashes of user text stay what they are, and it never becomes HTML or a port."""
    plain = clean(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def nodes_dot(title: str, nodes: Sequence[Node]) -> str:
    """The DOT text of graph nodes: one box an operation, with its type and lines."""
    names = {node: f"n{i}" for i, node in enumerate(nodes)}
    lines = ["digraph G {", f"  label={quoted(title)};", "  labelloc=t;", f"  {NODE_STYLE}"]
    for node in nodes:
        for source in node.inputs:
            if source not in names:
                names[source] = f"i{len(names)}"
                lines.append(f"  {names[source]} [shape=ellipse, label={quoted(source.name)}];")
    for node in nodes:
        at = line_text({source.line for source in node.sources})
        label = "\\n".join(quoted(part)[1:-1] for part in (f"{node.op.name} {node.name}", node.type.describe(), at) if part)
        lines.append(f'  {names[node]} [label="{label}"];')
    for node in nodes:
        lines += [f"  {names[source]} -> {names[node]};" for source in node.inputs]
    return "\n".join([*lines, "}", ""])


def text_dot(title: str, text: str) -> str:
    """The DOT text of one box that holds a text, line by line."""
    label = "".join(quoted(line)[1:-1] + "\\l" for line in text.split("\n"))
    box = f'  program [shape=box, fontname="Courier", fontsize=10, label="{label}"];'
    return "\n".join(["digraph G {", f"  label={quoted(title)};", "  labelloc=t;", box, "}", ""])


def line_text(numbers: Iterable[int]) -> str:
    """[3, 4, 5, 9] -> "lines 3-5 and 9" with an en dash; "" for none."""
    runs: list[list[int]] = []
    for n in sorted(set(numbers)):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    if not runs:
        return ""
    *most, last = [str(first) if first == last else f"{first}–{last}" for first, last in runs]
    text = f"{', '.join(most)} and {last}" if most else last
    return f"line {text}" if text.isdigit() else f"lines {text}"
