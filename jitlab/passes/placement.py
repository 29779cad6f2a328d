"""Devices of a graph: their names, and the copies at the border of one that has a compiler of its own."""

from __future__ import annotations

import re
from collections.abc import Collection

from jitlab.ir import DEVICE, Graph, Node
from jitlab.ops.graph_state import CopyToDevice
from jitlab.ops.leaf_operations import Constant, Length

HOST = "/job:localhost/replica:0/task:0"
_PARTS = r"(?i)/?(job:[A-Za-z]\w*|replica:\d+|task:\d+|(?:device:)?(?:XLA_)?(?:CPU|GPU|TPU):(?:\d+|\*))"
LEVELS = ("job", "replica", "task", "device")


def parsed(name: str) -> dict[str, str]:
    """The parts of a device's name: {"job": "localhost", "device": "XLA_CPU:0"}. ValueError for what is none."""
    parts: dict[str, str] = {}
    at = 0
    while at < len(name):
        found = re.compile(_PARTS).match(name, at)
        if found is None or (found.end() < len(name) and name[found.end()] != "/"):
            raise ValueError(
                f"Unknown device {name!r}: a device is called /device:CPU:0, XLA_CPU:0, or in full {HOST}/device:XLA_CPU:0"
            )
        level, _, value = found[1].partition(":")
        if level.lower() == "device" or level.lower() not in LEVELS:
            text = value if level.lower() == "device" else found[1]
            parts["device"] = text.upper()
        else:
            parts[level.lower()] = value
        at = found.end()
    return parts


def full_name(device: str) -> str:
    """The device that a name stands for: all its parts."""
    parts = parsed(device)
    kind = parts.get("device", "CPU:0").replace("*", "0")
    host = f"/job:{parts.get('job', 'localhost')}/replica:{parts.get('replica', '0')}/task:{parts.get('task', '0')}"
    return f"{host}/device:{kind}"


def place(graph: Graph, device: str) -> Graph:
    """The operations of a graph that name no device are on this one."""
    for node in graph.nodes if device else ():
        node.attrs.setdefault(DEVICE, device)
    return graph


def copy_at_devices(graph: Graph, devices: Collection[str]) -> Graph:
    """a -> f on XLA_CPU:0 -> b gets copies: a -> copy -> f -> copy -> b; f is a cluster by itself, at every level."""

    def device_of(node: Node) -> str:
        """Which of the devices a node is placed on; "" for none."""
        name = node.attrs.get(DEVICE, "")
        found = full_name(name) if name and not isinstance(node.op, (Constant, Length)) else ""
        return found if found in devices else ""

    if not devices or not any(map(device_of, graph.nodes)):
        return graph
    new = Graph(graph.name)
    new.gradient_names, new.marked_only, new.sizes = dict(graph.gradient_names), graph.marked_only, graph.sizes
    made: dict[Node, Node] = {}
    copies: dict[tuple[Node, str], Node] = {}

    def moved(node: Node, device: str) -> Node:
        own = made[node]
        if device_of(node) == device or isinstance(node.op, (Constant, Length)):
            return own
        known = copies.get((own, device))
        if known is None:
            target = device or f"{HOST}/device:CPU:0"
            copy = Node(CopyToDevice(target), [own], own.type, name=f"{node.name}/copy", sources=node.sources)
            copy.attrs["_XlaCompile"] = True  # what keeps it out of clusters is that it is a copy
            known = copies[own, device] = new.append(copy)
        return known

    for node in (*graph.parameters, *graph.nodes):
        device = device_of(node)
        inputs = [made[source] if node.op.name == "Item" else moved(source, device) for source in node.inputs]
        copy = Node(node.op, inputs, node.type, name=node.name, sources=node.sources, attrs=node.attrs)
        if device:
            scope = f"{device.rpartition(':')[0].rpartition(':')[2]}/{node.name}"  # its own: nothing joins it
            copy.attrs |= {"_XlaCompile": True, "_XlaScope": scope, "_XlaSeparateCompiledGradients": False}
        made[node] = new.append(copy)
    new.outputs = [moved(node, "") for node in graph.outputs]
    return new
