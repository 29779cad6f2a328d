"""Devices: which there are, and where operations are placed."""

from __future__ import annotations

from collections.abc import Sequence

from jitlab.errors import InvalidArgumentError
from jitlab.ir import DEVICE
from jitlab.passes.placement import HOST, LEVELS, full_name, parsed
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.devices import DEVICES, target_for

from .graph_capture import Step


@dataclass(frozen=True)
class DeviceAttributes:
    """A device operations can be placed on."""

    name: str
    device_type: str


def device_attributes() -> list[DeviceAttributes]:
    """The devices of this process."""
    return [DeviceAttributes(f"{HOST}/device:{kind}:0", kind) for device in DEVICES for kind in (device, f"XLA_{device}")]


def compiling_devices() -> frozenset[str]:
    """Those with a compiler of their own."""
    return frozenset(device.name for device in device_attributes() if device.device_type.startswith("XLA_"))


def merged(outer: str, name: str | None) -> str:
    """The device of a block inside another: what it names wins, the rest is the outer's. None: anywhere."""
    if name is None:
        return ""
    if not isinstance(name, str):
        raise TypeError(f"device({name!r}): a device's name, a function of an operation, or None")
    parts = {**parsed(outer), **parsed(name)}
    return "".join(f"/{level}:{parts[level]}" for level in LEVELS if level in parts)


def check_devices(steps: Sequence[Step], *, soft: bool = False) -> None:
    """Operations are placed on devices that are there; with soft placement the others run on the CPU."""
    for device in {node.attrs.get(DEVICE, "") for step in steps for node in step.nodes}:
        target_for(device)  # what is opened at its first use
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
