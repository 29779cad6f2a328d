"""The shape of a machine: what lowering asks of it, as numbers. Each target makes its own."""

from __future__ import annotations

from jitlab.support.lazy_dataclass import dataclass


@dataclass(frozen=True)
class NestLimits:
    """How much one nest of loops may hold. Machine code is made in time that grows faster than a nest does."""

    stages: int  # stored values and reductions: each keeps its running values on the stack
    operations: int
    deep: int  # operations that follow on each other: expressions are walked recursively
    again: float  # additions' time of what is computed again for an element: below, a store and loads cost more


@dataclass(frozen=True)
class Shape:
    """Sizes that loops are cut by. Those of the first part decide in which order elements are added, and so the bits of a
    result; a Program says what they led to."""

    block_elements: int  # of a whole reduction, that one partial result stands for
    plain_sum_elements: int  # that vectors may sum without compensation
    block_rows: int  # of a reduction over rows that is taken a block of rows at a time,
    few_block_rows: int  # and where a row has `wide_row_bytes`, so that a block stays in the cache
    wide_row_bytes: int
    tall_bytes: int  # from which on a reduction over rows is taken in blocks
    wide_columns: int  # from which on it is taken in blocks, or in tiles
    has_gemm: bool  # is there a library for products of matrices?
    gemm_multiplications: int  # from which on a product inside a loop is a call of it

    recompute_operations: float  # additions' time from which on a value is stored rather than computed by another nest again,
    scalar_operations: float  # or in a loop over rows one by one, as all lanes of a vector share it,
    row_operations: float  # and kept in a row of scratch rather than computed by a later loop over the row
    nests: NestLimits
    jam_rows: int  # of a recurrence that are taken side by side, so that one does not wait for its own last result
    vector_elements: int  # a loop of fewer is not worth lanes
    short_elements: int  # nor is an inner one of so many, where the one around it is
    stream_bytes: int  # an output of so many is written past the cache, so that nothing reads it back
    slowness: tuple[tuple[str, float], ...] = ()  # kinds of instructions that take so many times as long as shipped
