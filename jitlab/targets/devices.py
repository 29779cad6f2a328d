"""The devices of this process, each with its target: the only module outside a target's folder that names targets."""

from __future__ import annotations

from .cpu_llvm.cpu_target import CPU
from .target import Target

#: By kind of device, as `jl.device` and session configurations call it.
DEVICES: dict[str, Target] = {"CPU": CPU}

#: Where programs run that name no device.
default = "CPU"


def default_target() -> Target:
    """The target of programs that name no device."""
    return DEVICES[default]


def target_for(device: str) -> Target:
    """The target of what is placed on a device, as "/device:GPU:0" or "XLA_CPU:0" call it: the default's where no target is of
    that kind, or the name is empty."""
    kind = device.rpartition("/")[2].removeprefix("device:").rpartition(":")[0].removeprefix("XLA_")
    return DEVICES.get(kind) or default_target()


def target_of(key: str) -> Target:
    """The target with this key, as caches, plans and events hold it."""
    return next(target for target in DEVICES.values() if target.key == key)


def code_stages() -> tuple[str, ...]:
    """The stages of code that some target has."""
    return tuple(dict.fromkeys(stage for target in DEVICES.values() for stage in target.stages))


def trim() -> None:
    """The memory that devices keep for later results is given back to the system.

    Returns:
        None.

    Example:
        >>> jl.trim()
    """
    for target in DEVICES.values():
        target.device.trim()
