"""Code of a Program for a GPU: kernels that are loaded, or the host's code where no kernel takes it."""

from __future__ import annotations

from dataclasses import field

from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.target import Compiled

from .device_array import GpuMemory
from .gpu_driver import Driver, Module
from .kernels.kernel_module import Kernels
from .kernels.schedules import Unscheduled


@dataclass(eq=False)
class GpuCode(Compiled):
    """Kernels on a device."""

    kernels: Kernels = field(default=None, repr=False)  # type: ignore[assignment]
    module: Module = field(default=None, repr=False)  # type: ignore[assignment]
    driver: Driver = field(default=None, repr=False)  # type: ignore[assignment]
    device: GpuMemory = field(default=None, repr=False)  # type: ignore[assignment]


@dataclass(eq=False)
class HostCode(Compiled):
    """What the host runs, and why no kernel does."""

    host: Compiled = field(default=None, repr=False)  # type: ignore[assignment]
    reason: Unscheduled = field(default=None, repr=False)  # type: ignore[assignment]
    driver: Driver = field(default=None, repr=False)  # type: ignore[assignment]

    def wait(self) -> None:
        self.host.wait()
