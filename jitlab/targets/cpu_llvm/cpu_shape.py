"""The processor's shape: what its vectors, caches and libraries make fast. Bits are the same on every processor."""

from __future__ import annotations

from functools import cache

from jitlab.ir import NestLimits, Shape

#: Columns from which on rows are long.
WIDE_COLUMNS = 256

#: Outputs that are larger are written past the caches.
STREAM_BYTES = 16 << 20  # half of an L3 of 32 MB


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
        recompute_operations=16.0, row_operations=8.0,
        nests=NestLimits(stages=64, operations=1000, deep=128, again=32),
        jam_rows=4,
        vector_elements=8,
        stream_bytes=STREAM_BYTES, slowness=slowness,
    )  # fmt: skip
