"""What text of LLVM has to know of the machine that it is for, as numbers. Each target makes its own."""

from __future__ import annotations

from jitlab.support.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Features:
    """Of its instructions."""

    vector_bytes: int  # of one vector register
    fuses_multiply_add: bool  # else a call for each element
    converts_half: bool  # between float16 and float32; else LLVM would call what need not be there
    masked_bytes: int  # of the narrowest elements that are loaded and stored under a mask in one instruction; 0: none are
    saturates_casts: bool  # C's conversion of what does not fit gives the nearest integer, as on ARM; on x86 the lowest one
    has_libm: bool = True  # the C library's functions can be called
    widens_float32: bool = True  # float32 is computed by way of float64 where that is shorter
