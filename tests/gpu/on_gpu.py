"""Programs on a simulated GPU: what is compiled inside is compiled for it, and what runs on the host instead is noted."""

from contextlib import contextmanager

import numpy as np

import jitlab as jl
from jitlab.targets import devices
from jitlab.targets.gpu_cuda.gpu_launcher import HostLauncher

#: Orders of threads and numbers of processors that tests take in turn: results are the same for all.
GPUS = [(2, "forwards"), (1, "backwards"), (3, 0)]


@contextmanager
def on_gpu(processors=2, order="forwards"):
    """Inside, programs that name no device run on a simulated GPU; kernels that do what a GPU forbids fail it."""
    before = devices.default
    with jl.simulated_gpu(processors, order) as driver:
        devices.default = "GPU"
        try:
            yield driver
        finally:
            devices.default = before
    assert driver.faults == []


@contextmanager
def host_copies(monkeypatch):
    """Why clusters run on the host inside, as they come: codes of reasons, and the operation where one is why."""
    found, real = [], HostLauncher.__init__

    def noted(launcher, lowered, code, host):
        operation = str(code.reason.operands.get("operation", ""))
        found.append(f"{code.reason.code} {operation.partition('(')[0]}".rstrip())
        real(launcher, lowered, code, host)

    with monkeypatch.context() as patch:
        patch.setattr(HostLauncher, "__init__", noted)
        yield found


def bits(results):
    """Of each array its dtype, shape and bytes."""
    return [(a.dtype, a.shape, a.tobytes()) for a in map(np.asarray, results)]
