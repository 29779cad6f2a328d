"""The devices of this process, each with its target: the only module outside a target's folder that names targets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab import messages
from jitlab.config import PLACES, config
from jitlab.errors import DeviceError, OptionError
from jitlab.support.later import Later

from .cpu_llvm.cpu_target import CPU
from .target import DevicePeaks, Target

if TYPE_CHECKING:
    from .gpu_cuda.device_array import DeviceArray as DeviceArray
    from .gpu_cuda.simulated_driver import SimulatedDriver

gpu_target, gpu_driver = Later("jitlab.targets.gpu_cuda.gpu_target"), Later("jitlab.targets.gpu_cuda.cuda_driver")
difflib = Later("difflib")
gpu_peaks = Later("jitlab.targets.gpu_cuda.gpu_peaks")
device_arrays = Later("jitlab.targets.gpu_cuda.device_array")

#: By kind of device, as `jl.device` and session configurations call it; a GPU is there from its first use on.
DEVICES: dict[str, Target] = {"CPU": CPU}

#: Where programs run that name no device.
default = "CPU"

#: The stages of code that only a GPU has, and what there is none of where there is no such stage.
OF_GPUS = {"numba": "no functions of numba.cuda", "ptx": "no PTX", "sass": "no SASS"}

GPU = "GPU"
ON_GPU = f"/device:{GPU}:0"
AUTO = PLACES[2]
#: Why no GPU could be opened where it is only preferred.
_unusable: list[DeviceError] = []


def default_target() -> Target:
    """The target of programs that name no device."""
    return DEVICES[default]


def target_for(device: str) -> Target:
    """The target of what is placed on a device, as "/device:GPU:0" or "XLA_CPU:0" call it: the default's where no target is of
    that kind, or the name is empty."""
    kind = _kind(device)
    return gpu() if kind == GPU and is_usable() else DEVICES.get(kind) or default_target()


def _kind(device: str) -> str:
    return device.rpartition("/")[2].removeprefix("device:").rpartition(":")[0].removeprefix("XLA_")


def is_on_gpu(device: str) -> bool:
    """Is what is placed on this device for a GPU?"""
    return _kind(device) == GPU


def is_usable() -> bool:
    """Is there a GPU for what only prefers one? That is found out once."""
    if GPU not in DEVICES and not _unusable:
        try:
            gpu()
        except DeviceError as error:
            _unusable.append(error)
    return GPU in DEVICES


def gpu() -> Target:
    """The target of the GPU, which is opened here. Raises DeviceError, whose one sentence says what is missing."""
    known = DEVICES.get(GPU)
    return known or DEVICES.setdefault(GPU, gpu_target.GpuTarget(gpu_driver.open_driver()))


def device_peaks() -> DevicePeaks:
    """What the GPU can do; where none can be used, what one is assumed to do."""
    found = gpu().device_peaks() if is_usable() else None
    return found or gpu_peaks.ASSUMED


def why_no_gpu() -> str:
    """The sentence that says why no GPU can be used; "" where one can be."""
    return "" if is_usable() else _unusable[0].what


def placement(device: str | None) -> str:
    """Where operations are placed under `device="gpu"`, as `jl.device` calls it; None: as `jl.config.device` says, and "" for
    the default device. A GPU that is asked for has to be usable. AUTO: each trace is placed when it is compiled."""
    asked = config.device if device is None else device
    if not isinstance(asked, str) or asked not in PLACES:
        near = difflib.get_close_matches(str(asked).lower(), PLACES, 1)
        hint = f'"{near[0]}"' if near else "leave it away: that is what jl.config.device says"
        raise OptionError(f"There is no device={asked!r}.", why='it is "cpu", "gpu" or "auto"', hint=hint)
    if asked == PLACES[1]:
        gpu()
        return ON_GPU
    return AUTO if asked == AUTO and is_usable() else ""


def __getattr__(name: str) -> Any:
    """The class of arrays in a GPU's memory is loaded when somebody names it."""
    if name == "DeviceArray":
        return device_arrays.DeviceArray
    raise AttributeError(name)


def to_device(x: Any, device: str | None = None) -> Any:
    """A copy of an array in the GPU's memory, which functions of `jl.function` and `jl.jit` compute with.

    Args:
        x: an array of NumPy's, or what NumPy makes one of. A DeviceArray is given back as it is; an array of numba.cuda, CuPy
            or torch in the GPU's memory is taken without a copy.
        device: None or "gpu"; "GPU:0" is the one that is used.

    Returns:
        A DeviceArray.

    Raises:
        DeviceError: no GPU can be used; the one sentence says why, and what to do.
        TypeError: its elements are no numbers.
        MemoryError: the GPU has no room for it.

    Example:
        >>> jl.to_device(np.ones(3))  # doctest: +SKIP
        DeviceArray(shape=(3,), dtype=float64, device='NVIDIA H100 80GB HBM3')
    """
    name = "" if device is None else str(device).rpartition("/")[2].removeprefix("device:").upper()
    if name not in ("", GPU, f"{GPU}:0"):
        raise DeviceError(messages.text("gpu.other_device", device=device))
    memory: Any = gpu().device
    return x if type(x) is memory.array_type else memory.taken(x)


def may_be_there() -> bool:
    """Can a value be an array in a GPU's memory? Only where something has been loaded that makes such."""
    if GPU in DEVICES:
        return True
    return not _unusable and ("torch" in sys.modules or "cupy" in sys.modules or "numba.cuda" in sys.modules)


def is_there(x: Any) -> bool:
    """Is it an array in the GPU's memory, of ours or of another library?"""
    kind = type(x)
    if kind in _PLAIN or not hasattr(kind, _INTERFACE):
        return False
    try:
        return hasattr(x, _INTERFACE)
    except Exception:  # torch's, of a tensor that has a gradient
        return False


def stood_for(array: Any) -> Any:
    """The array in the GPU's memory that an array of NumPy's stands for, or of its view; None for others."""
    return device_arrays.stood_for(array)


#: By which libraries tell of arrays in a GPU's memory.
_INTERFACE = "__cuda_array_interface__"
_PLAIN = frozenset({np.ndarray, int, float, bool, complex, str, bytes, type(None)})


def target_of(key: str) -> Target:
    """The target with this key, as caches, plans and events hold it."""
    return next(target for target in DEVICES.values() if target.key == key)


def code_stages() -> tuple[str, ...]:
    """The stages of code that some target has; those of a GPU can be asked for before one is used."""
    return tuple(dict.fromkeys((*(stage for target in DEVICES.values() for stage in target.stages), *OF_GPUS)))


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
