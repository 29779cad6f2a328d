"""Devices: where operations are placed, and the copies at the border of an XLA device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jitlab.errors import InvalidArgumentError
from jitlab.ir import DEVICE, Graph, Node
from jitlab.ops.sources import Constant, Length
from jitlab.ops.state import CopyToDevice
from jitlab.targets.devices import DEVICES

from .recording import Step

HOST = "/job:localhost/replica:0/task:0"
_PARTS = re.compile(r"/?(job:[A-Za-z]\w*|replica:\d+|task:\d+|(?:device:)?(?:XLA_)?(?:CPU|GPU|TPU):(?:\d+|\*))", re.IGNORECASE)
_LEVELS = ("job", "replica", "task", "device")


@dataclass(frozen=True)
class DeviceAttributes:
    """A device operations can be placed on."""

    name: str
    device_type: str


def device_attributes() -> list[DeviceAttributes]:
    """The devices of this process."""
    return [DeviceAttributes(f"{HOST}/device:{kind}:0", kind) for device in DEVICES for kind in (device, f"XLA_{device}")]


def parsed(name: str) -> dict[str, str]:
    """The parts of a device's name: {"job": "localhost", "device": "XLA_CPU:0"}. ValueError for what is none."""
    parts: dict[str, str] = {}
    at = 0
    while at < len(name):
        found = _PARTS.match(name, at)
        if found is None or (found.end() < len(name) and name[found.end()] != "/"):
            raise ValueError(
                f"Unknown device {name!r}: a device is called /device:CPU:0, XLA_CPU:0, or in full {HOST}/device:XLA_CPU:0"
            )
        level, _, value = found[1].partition(":")
        if level.lower() == "device" or level.lower() not in _LEVELS:
            text = value if level.lower() == "device" else found[1]
            parts["device"] = text.upper()
        else:
            parts[level.lower()] = value
        at = found.end()
    return parts


def merged(outer: str, name: str | None) -> str:
    """The device of a block inside another: what it names wins, the rest is the outer's. None: anywhere."""
    if name is None:
        return ""
    if not isinstance(name, str):
        raise TypeError(f"device({name!r}): a device's name, a function of an operation, or None")
    parts = {**parsed(outer), **parsed(name)}
    return "".join(f"/{level}:{parts[level]}" for level in _LEVELS if level in parts)


def full_name(device: str) -> str:
    """The device that a name stands for: all its parts."""
    parts = parsed(device)
    kind = parts.get("device", "CPU:0").replace("*", "0")
    host = f"/job:{parts.get('job', 'localhost')}/replica:{parts.get('replica', '0')}/task:{parts.get('task', '0')}"
    return f"{host}/device:{kind}"


def check_devices(steps: Sequence[Step], *, soft: bool = False) -> None:
    """Operations are placed on devices that are there; with soft placement the others run on the CPU."""
    there = {device.name for device in device_attributes()}
    for step in steps:
        for node in step.nodes:
            device = node.attrs.get(DEVICE)
            if device and full_name(device) not in there and not soft:
                raise InvalidArgumentError(
                    f"Cannot assign a device for operation {node.name}: Operation was explicitly assigned to {device} but"
                    f" available devices are [ {', '.join(sorted(there))} ]."
                    " Make sure the device specification refers to a valid device.",
                    where=step.source.place if step.source else "",
                    hint="jl.device('XLA_CPU:0'), or ConfigProto(allow_soft_placement=True)",
                )  # fmt: skip


def xla_device(node: Node) -> str:
    """The XLA device of a node; "" for the host and what is placed nowhere."""
    device = node.attrs.get(DEVICE, "")
    if not device or isinstance(node.op, (Constant, Length)):
        return ""
    found = full_name(device)
    there = {known.name for known in device_attributes()}
    return found if "/device:XLA_" in found and found in there else ""


def placed(graph: Graph) -> Graph:
    """a -> f on XLA_CPU:0 -> b gets copies: a -> copy -> f -> copy -> b; f is a cluster by itself, at every level."""
    if not any(xla_device(node) for node in graph.nodes):
        return graph
    new = Graph(graph.name)
    new.gradient_names, new.marked_only, new.sizes = dict(graph.gradient_names), graph.marked_only, graph.sizes
    made: dict[Node, Node] = {}
    copies: dict[tuple[Node, str], Node] = {}

    def moved(node: Node, device: str) -> Node:
        own = made[node]
        if xla_device(node) == device or isinstance(node.op, (Constant, Length)):
            return own
        known = copies.get((own, device))
        if known is None:
            target = device or f"{HOST}/device:CPU:0"
            copy = Node(CopyToDevice(target), [own], own.type, name=f"{node.name}/copy", sources=node.sources)
            copy.attrs["_XlaCompile"] = True  # what keeps it out of clusters is that it is a copy
            known = copies[own, device] = new.append(copy)
        return known

    for node in (*graph.parameters, *graph.nodes):
        device = xla_device(node)
        inputs = [made[source] if node.op.name == "Item" else moved(source, device) for source in node.inputs]
        copy = Node(node.op, inputs, node.type, name=node.name, sources=node.sources, attrs=node.attrs)
        if device:
            scope = f"{device.rpartition(':')[0].rpartition(':')[2]}/{node.name}"  # its own: nothing joins it
            copy.attrs |= {"_XlaCompile": True, "_XlaScope": scope, "_XlaSeparateCompiledGradients": False}
        made[node] = new.append(copy)
    new.outputs = [moved(node, "") for node in graph.outputs]
    return new
