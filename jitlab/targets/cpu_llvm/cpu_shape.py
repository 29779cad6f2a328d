"""The processor's shape: what its vectors, caches and libraries make fast. Bits are the same on every processor."""

from __future__ import annotations

from functools import cache

from jitlab.ir import NestLimits, Shape

#: Columns from which on rows are long.
WIDE_COLUMNS = 256

#: Where Linux says how large the caches near the first processor are; a machine of several parts may count all of theirs
#: together, so that more than this is not believed.
CACHES, LARGEST = "/sys/devices/system/cpu/cpu0/cache/index{}/size", 32 << 20


@cache
def cache_bytes(level: int, otherwise: int) -> int:
    """What the cache of a level holds; `otherwise`: where nobody says."""
    try:
        with open(CACHES.format(level)) as file:
            text = file.read().strip()
        found = int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1], 0)
    except (OSError, ValueError, IndexError):
        return otherwise
    return min(found, LARGEST) if found > 0 else otherwise


def stream_bytes() -> int:
    """Outputs of so many are written past the caches: half of the third one, where a loop that only copies begins to gain by
    it, and one that is read back at once loses least."""
    return cache_bytes(3, LARGEST) // 2


@cache
def shape(has_gemm: bool, slowness: tuple[tuple[str, float], ...] = ()) -> Shape:
    """What bits depend on is the same for all processors, so that a program gives the same ones on each. `slowness`: as in
    `Shape`."""
    return Shape(
        block_elements=1 << 16,  # it depends on nothing, so neither do the bits
        plain_sum_elements=256,  # what each lane adds up stays within the bound of docs/reference/numerics.md
        block_rows=32, few_block_rows=8, wide_row_bytes=1 << 13,
        tall_bytes=1 << 20,  # larger than the caches of a core
        wide_columns=WIDE_COLUMNS,
        has_gemm=has_gemm, gemm_multiplications=1 << 17,
        recompute_operations=16.0, scalar_operations=8.0, row_operations=8.0,
        nests=NestLimits(stages=64, operations=1000, deep=128, again=32),
        jam_rows=4,
        vector_elements=8, short_elements=12,
        stream_bytes=stream_bytes(), slowness=slowness,
    )  # fmt: skip
