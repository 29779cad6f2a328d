"""Values of loop bodies as LLVM text: an SSA name or a literal, with its dtype and lanes."""

from __future__ import annotations

import struct
from dataclasses import field
from typing import Any

import numpy as np

from jitlab.support.lazy_dataclass import dataclass

BOOL = np.dtype(np.bool_)
I8, I16, I32, I64 = (np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64))
U8, U16, U32, U64 = (np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64))
F16, F32, F64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
C64, C128 = (np.dtype(t) for t in (np.complex64, np.complex128))

FLOATS = {F16: "half", F32: "float", F64: "double"}
SIGNED = {1: I8, 2: I16, 4: I32, 8: I64}
UNSIGNED = {1: U8, 2: U16, 4: U32, 8: U64}


@dataclass(frozen=True, slots=True)
class Val:
    """A value of the loop. `lanes` 0: one scalar for all lanes; else so many lanes (1: a scalar, differing by element).

    `text` is an SSA name or a literal (of the element type, also for vectors: it is splatted where it is used).
    Complex values hold the imaginary part in `imag`. Bools are i1 in registers and i8 in memory.
    """

    dtype: np.dtype[Any]
    text: str
    lanes: int = 0
    imag: str = field(default="", repr=False)


def element_type(dtype: np.dtype[Any]) -> str:
    """LLVM's name of one element in a register; of complex numbers, that of a part."""
    return _elements.get(dtype) or _elements.setdefault(dtype, _element_type(dtype))


_elements: dict[np.dtype[Any], str] = {}


def _element_type(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "b":
        return "i1"
    if dtype.kind in "iu":
        return f"i{8 * dtype.itemsize}"
    return FLOATS[part_dtype(dtype)]


def part_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a complex dtype's parts; others are their own."""
    return {C64: F32, C128: F64}.get(dtype, dtype)


def vector_type(element: str, lanes: int) -> str:
    return f"<{lanes} x {element}>" if lanes > 1 else element


def part_texts(x: Val) -> tuple[str, ...]:
    return (x.text, x.imag) if x.dtype.kind == "c" else (x.text,)


def is_literal(text: str) -> bool:
    return text[0] not in "%@<"  # `<...>` is a vector constant


def memory_type(dtype: np.dtype[Any]) -> str:
    return "i8" if dtype.kind == "b" else element_type(dtype)


def mangle(element: str, lanes: int) -> str:
    return f"v{lanes}" + {"half": "f16", "float": "f32", "double": "f64"}.get(element, element)


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """The exact constant: floats by their bits, integers wrapped to the type and signed."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        whole = int(value) & ((1 << bits) - 1)
        return str(whole - (1 << bits) if whole >> (bits - 1) else whole)
    if dtype == F16:
        return f"0xH{struct.unpack('<H', np.float16(value).tobytes())[0]:04X}"
    with np.errstate(over="ignore"):
        number = float(np.float32(value)) if dtype == F32 else float(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
