"""Programs on a simulated GPU: what is compiled inside is compiled for it."""

from contextlib import contextmanager

import jitlab as jl
from jitlab.targets import devices

#: Every order of threads and size of grid that tests take; results are the same for all.
GPUS = [(2, "forwards"), (1, "backwards"), (3, 0)]


@contextmanager
def on_gpu(processors=2, order="forwards"):
    """Inside, programs that name no device run on a simulated GPU; when it ends nothing holds its memory."""
    before = devices.default
    with jl.simulated_gpu(processors, order) as driver:
        devices.default = "GPU"
        try:
            yield driver
        finally:
            devices.default = before
