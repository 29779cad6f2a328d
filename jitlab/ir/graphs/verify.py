"""The checks that hold for every Graph; tests run them after every pass."""

from __future__ import annotations

from .graph import Graph, Node


def verify(graph: Graph) -> Graph:
    """Return the graph, or raise AssertionError with the node that breaks a rule of the representation."""
    seen: set[Node] = set(graph.parameters)
    names: set[str] = {node.name for node in graph.parameters}
    assert len(names) == len(graph.parameters), "two parameters share a name"
    for node in graph.nodes:
        for source in node.inputs:
            assert source in seen, f"{node!r} reads {source!r}, which does not come before it"
        assert node.name not in names, f"two nodes are called {node.name}"
        expected = node.op.result(*(source.type for source in node.inputs))
        assert expected == node.type, f"{node!r} says {node.type}, its operation gives {expected}"
        for body in getattr(node.op, "graphs", ()):
            given = node.inputs[1:] if node.op.name == "If" else node.inputs
            assert [x.dtype for x in body.parameters] == [x.dtype for x in given], f"{node!r} gives its body other types"
            assert [x.shape for x in body.parameters] == [x.shape for x in given], f"{node!r} gives its body other shapes"
            verify(body)
        seen.add(node)
        names.add(node.name)
    for node in graph.outputs:
        assert node in seen, f"output {node!r} is not in the graph"
    return graph
