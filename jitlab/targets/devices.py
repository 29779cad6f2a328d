"""The devices of this process, each with its target: the only module outside a target's folder that names targets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .cpu_llvm.cpu_target import CPU
from .target import Target

if TYPE_CHECKING:
    from .gpu_cuda.simulated_driver import SimulatedDriver

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


@contextmanager
def simulated_gpu(processors: int = 2, order: str | int = "forwards") -> Iterator[SimulatedDriver]:
    """A GPU on the processor: inside, what is placed on a GPU runs on it, with the very code that a real one gets.

    It is for tests of programs where there is no GPU, and slow. What a real GPU does without a word is an error: memory that is
    not an array's, threads that use one place of memory with nothing between them that orders them, a barrier that not all
    threads meet.

    Args:
        processors: How many multiprocessors it has: grids grow with it, results don't change.
        order: In which its threads run between two barriers: "forwards" or "backwards", or a number that random orders are
            drawn from.

    Returns:
        A context manager; its value counts what runs: `launched` has the launches of each kernel.

    Raises:
        InternalError: In programs on it, when a kernel does what a GPU forbids.

    Example:
        >>> graph = jl.Graph()
        >>> with jl.simulated_gpu() as gpu, graph.as_default():
        ...     x = jl.placeholder(np.float64, [None])
        ...     with jl.device("XLA_GPU:0"):
        ...         y = np.sqrt(x) + 1
        ...     with jl.Session(graph=graph) as session:
        ...         print(session.run(y, {x: np.array([4.0, 9.0])}), gpu.launched.total() > 0)
        [3. 4.] True
    """
    from .gpu_cuda.gpu_target import GpuTarget  # few want one
    from .gpu_cuda.simulated_driver import SimulatedDriver

    driver, before = SimulatedDriver(processors, order), DEVICES.get("GPU")
    DEVICES["GPU"] = GpuTarget(driver)
    try:
        yield driver
    finally:
        if before is None:
            del DEVICES["GPU"]
        else:
            DEVICES["GPU"] = before
