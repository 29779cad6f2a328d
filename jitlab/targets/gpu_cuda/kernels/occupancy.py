"""What kernels are launched with, and how many of their threads a multiprocessor has at once."""

from __future__ import annotations

from typing import Any

from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.gpu_cuda.gpu_driver import Resources, Shape2

from .schedules import WARP

#: Of a multiprocessor, by architecture: threads, blocks, kilobytes of shared memory.
LIMITS = {
    70: (2048, 32, 96), 72: (2048, 32, 96), 75: (1024, 16, 64), 80: (2048, 32, 164), 86: (1536, 16, 100), 87: (1536, 16, 164),
    89: (1536, 24, 100), 90: (2048, 32, 228), 100: (2048, 32, 228), 101: (1536, 24, 228), 103: (2048, 32, 228),
    110: (1536, 24, 228), 120: (1536, 24, 100), 121: (1536, 24, 100),
}  # fmt: skip

#: Registers of a multiprocessor; a warp gets them in pieces of so many. Of shared memory a block takes so many bytes more.
REGISTERS, REGISTER_PIECE, BLOCK_SHARED = 65536, 256, 1024


@dataclass(frozen=True)
class Occupancy:
    """The share of a multiprocessor's threads that a kernel's blocks fill, and what keeps it from more: "registers", "shared
    memory", "threads" or "blocks"."""

    share: float
    limited_by: str


def occupancy(threads: int, resources: Resources, arch: int) -> Occupancy | None:
    """Of blocks of so many threads; None of an architecture that is not known."""
    if arch not in LIMITS:
        return None
    most_threads, most_blocks, shared = LIMITS[arch]
    warps = -(-threads // WARP)
    of_warp = -(-resources.registers * WARP // REGISTER_PIECE) * REGISTER_PIECE
    fitting = {  # of equal ones the first is told
        "threads": most_threads // (warps * WARP),
        "blocks": most_blocks,
        "registers": REGISTERS // (warps * of_warp) if of_warp else most_blocks,
        "shared memory": (shared << 10) // (resources.shared_bytes + BLOCK_SHARED),
    }
    limited_by = min(fitting, key=lambda name: fitting[name])
    return Occupancy(fitting[limited_by] * warps * WARP / most_threads, limited_by)


def launch_facts(grid: Shape2, threads: int, resources: Resources | None, arch: int) -> dict[str, Any]:
    """A launch as a report has it: plain data."""
    found = None if resources is None else occupancy(threads, resources, arch)
    return {
        "grid": (grid.x, grid.y), "threads": threads,
        "registers": None if resources is None else resources.registers,
        "shared_bytes": None if resources is None else resources.shared_bytes,
        "spilled_bytes": None if resources is None else resources.local_bytes,
        "occupancy": None if found is None else round(found.share, 4),
        "limited_by": None if found is None else found.limited_by,
    }  # fmt: skip
