"""The instructions of a GPU's thread: lanes are elements that one thread has in registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitlab.targets.llvm.features import Features
from jitlab.targets.llvm.values import Val
from jitlab.targets.llvm.vector_emitter import VectorEmitter

#: Of one thread. Casts out of range give what they give on x86, on every device.
THREAD = Features(
    vector_bytes=16, fuses_multiply_add=True, converts_half=True, masked_bytes=0, saturates_casts=False, has_libm=False,
    widens_float32=False,
)  # fmt: skip


class GpuEmitter(VectorEmitter):
    """VectorEmitter for one thread, where elements that are apart are read and written one by one."""

    def _truncated_quotient(self, x: Val, y: Val, constant: bool) -> Val:
        """Of each lane by itself: no float is faster."""
        return self.plain("sdiv" if x.dtype.kind == "i" else "udiv", x, y)

    def load_at(
        self, pointer: object, offsets: Val, dtype: np.dtype[Any], mask: Val | None = None, align: int | None = None
    ) -> Val:
        if offsets.lanes <= 1:
            return super().load_at(pointer, offsets, dtype, mask, align)
        assert mask is None, "a tail is taken element by element"
        dtype = np.dtype(dtype)
        values = [super(GpuEmitter, self).load_at(pointer, self.extract(offsets, k), dtype) for k in range(offsets.lanes)]
        return self._joined(values)

    def _joined(self, values: list[Val]) -> Val:
        """Scalars as the lanes of one value."""
        dtype, count = values[0].dtype, len(values)
        type, element = self.type(dtype, count), self.type(dtype, 0)
        parts = []
        for texts in zip(*(self.parts(v) for v in values), strict=True):
            vector = "poison"
            for k, text in enumerate(texts):
                vector = self.fn.instr(f"insertelement {type} {vector}, {element} {text}, i64 {k}")
            parts.append(vector)
        return self.from_parts(dtype, parts, count)

    def store_at(
        self, pointer: object, offsets: Val, x: Val, mask: Val | None = None, align: int | None = None
    ) -> None:
        if offsets.lanes <= 1:
            super().store_at(pointer, offsets, x, mask, align)
            return
        assert mask is None, "a tail is taken element by element"
        x = self.splat(x, offsets.lanes)
        for k in range(offsets.lanes):
            super().store_at(pointer, self.extract(offsets, k), self.extract(x, k))
