"""What a GPU can do: bytes a second in its memory and over the bus, operations a second, seconds of a launch."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from jitlab.targets.target import DevicePeaks

from .device_blocks import Block
from .gpu_driver import Driver

#: Copied on the device, larger than its caches; over the bus; and so little that the time is that of a launch.
DEVICE_BYTES, BUS_BYTES, FEW_BYTES = 256 << 20, 32 << 20, 256
LAUNCHES, TIMES = 100, 3

#: Operations a second of a multiprocessor: 128 lanes, each a multiplication and an addition, at 1.5 GHz.
PROCESSOR_FLOPS = 128 * 2 * 1.5e9

#: Of predictions where there is no GPU to measure: bytes a second as benchmarks/gpu/run.py measured them on an H100; copies and
#: launches are those of its bus and driver as their maker has them.
ASSUMED = DevicePeaks(2.9e12, 132 * PROCESSOR_FLOPS, 20e9, 20e9, 4e-6, "an H100", False)


def measured(driver: Driver) -> DevicePeaks:
    """The peaks of a driver's GPU; takes some tenths of a second. Raises MemoryError where it has no room."""
    source, target = (Block(driver, driver.shelf(DEVICE_BYTES)) for _ in range(2))

    def on_device(nbytes: int, times: int) -> float:
        before = driver.mark()
        for _ in range(times):
            driver.copy_within(target.address, source.address, nbytes)
        after = driver.mark()
        driver.wait()
        return max(driver.elapsed_ns(before, after), 1) / 1e9 / times

    array = np.zeros(BUS_BYTES, np.uint8)
    moving = _best(lambda: on_device(DEVICE_BYTES, 2))
    launch = _best(lambda: on_device(FEW_BYTES, LAUNCHES))
    to_device = _best(lambda: _taken(driver, lambda: driver.copy_in(source.address, array)))
    to_host = _best(lambda: _taken(driver, lambda: driver.copy_out(array, source.address)))
    flops = driver.processors * PROCESSOR_FLOPS
    return DevicePeaks(
        2 * DEVICE_BYTES / moving, flops, BUS_BYTES / to_device, BUS_BYTES / to_host, launch, driver.name, True
    )  # fmt: skip


def _taken(driver: Driver, copy: Callable[[], object]) -> float:
    driver.wait()
    started = time.perf_counter_ns()
    copy()
    driver.wait()
    return max(time.perf_counter_ns() - started, 1) / 1e9


def _best(seconds: Callable[[], float]) -> float:
    return min(seconds() for _ in range(TIMES))
