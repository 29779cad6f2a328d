"""Draws of random numbers in machine code: calls of a bit generator's C interface, and of NumPy's functions over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitlab.ir.programs.program import Call
from jitlab.ops.random_draws import Draw

if TYPE_CHECKING:
    from .phase import PhaseWriter

#: Where the C interface of a bit generator (NumPy's `bitgen_t`) has its state and the function that draws a double.
STATE, NEXT_DOUBLE = 0, 3
_TYPES = {np.dtype("f8"): "double", np.dtype("i8"): "i64"}


def write_draw(writer: PhaseWriter, s: Call, op: Draw) -> None:
    """A number, or an array of them, row after row. The operation's slot of the context has the address of the C function;
    what NumPy refuses ends the run."""
    fn, how = writer.fn, op.how
    numbers, following = s.outs
    address, *operands = (fn.instr(f"load {_TYPES[b.dtype]}, ptr {writer.start_of(b)}") for b in s.ins)
    bits = fn.instr(f"inttoptr i64 {address} to ptr")
    if how.refused in ("range", "ordered"):  # NumPy's functions take the lower end and the range
        operands[1] = fn.instr(f"fsub double {operands[1]}, {operands[0]}")
    if op.may_fail:
        for condition in _refused(writer, how.refused, operands):
            writer.fail_if(condition, s.code)
    assert numbers.contiguous, f"{numbers} is filled row after row"
    count, place = writer.count_of(s.extents[0]), writer.start_of(numbers)
    function = writer.slot(writer.layout.calls + s.number, "ptr") if op.function else ""
    if how.refused == "empty":
        _fill_bounded(writer, function, bits, operands, count, place, is_masked=op.kind == "RandomState")
    elif op.shape is not None and how.fill:
        fn.emit(f"call void {function}(ptr {bits}, i64 {count}, ptr {place})")
    else:
        if not function:
            bits, function = (
                fn.instr(f"load ptr, ptr {fn.instr(f'getelementptr ptr, ptr {bits}, i64 {k}')}") for k in (STATE, NEXT_DOUBLE)
            )
        given = ", ".join([f"ptr {bits}", *(f"double {x}" for x in operands)])

        def one(i: str) -> None:
            value = fn.instr(f"call double {function}({given})")
            fn.emit(f"store double {value}, ptr {fn.instr(f'getelementptr double, ptr {place}, i64 {i}')}")

        if op.shape is None:
            one("0")
        else:
            writer.repeat(count, one)
    fn.emit(f"store i64 {address}, ptr {writer.start_of(following)}")


def _fill_bounded(
    writer: PhaseWriter, function: str, bits: str, operands: list[str], count: str, place: str, *, is_masked: bool
) -> None:
    """Integers from low up to high, which is not among them: NumPy's function takes the least and how far the largest is from
    it, and is told whether to draw under a mask."""
    fn, (low, high) = writer.fn, operands
    last = fn.instr(f"sub i64 {fn.instr(f'sub i64 {high}, 1')}, {low}")
    masked = f"i1 zeroext {str(is_masked).lower()}"
    fn.emit(f"call void {function}(ptr {bits}, i64 {low}, i64 {last}, i64 {count}, {masked}, ptr {place})")


def _refused(writer: PhaseWriter, refused: str, operands: list[str]) -> list[str]:
    """The conditions under which NumPy raises."""
    fn = writer.fn
    if refused == "empty":
        return [fn.instr(f"icmp sge i64 {operands[0]}, {operands[1]}")]
    last = operands[-1]
    word = fn.instr(f"bitcast double {last} to i64")
    below = fn.instr(f"icmp slt i64 {word}, 0")  # -0.0 too, as NumPy has it
    negative = fn.instr(f"and i1 {below}, {fn.instr(f'fcmp ord double {last}, {last}')}")
    if refused == "scale":
        return [negative]
    size = fn.instr(f"and i64 {word}, {(1 << 63) - 1}")
    infinite = fn.instr(f"icmp uge i64 {size}, {0x7FF << 52}")
    return [infinite, negative] if refused == "ordered" else [infinite]
