"""What native code and NumPy both know of a simulated launch: records of its threads, its memory, and its first fault."""

from __future__ import annotations

import numpy as np

#: A thread: its special registers, where it waits (0: it has ended; else the number of a barrier or shuffle in its module),
#: what it hands to a shuffle and gets from it, and which bits its partner's lane differs in. `epoch`: barriers it has passed.
THREAD = np.dtype(
    [(name, "i4") for name in "tid.x tid.y ntid.x ntid.y ctaid.x ctaid.y nctaid.x nctaid.y".split()]
    + [("site", "i4"), ("value", "i4"), ("mask", "i4"), ("block", "i4"), ("number", "i4"), ("epoch", "i4")]
    + [("shared", "u8"), ("shadow", "u8"), ("launch", "u8")],
    align=True,
)

#: Memory that a launch may touch. `shadow`: who touched each byte, two words a byte; 0 where nobody looks.
RANGE = np.dtype([("start", "u8"), ("end", "u8"), ("shadow", "u8")], align=True)

#: What is the same for all threads, and the first access that was wrong: `kind` is one of FAULTS, 0 if none was.
LAUNCH = np.dtype(
    [("ranges", "u8"), ("count", "i8"), ("sink", "u8"), ("shared_bytes", "i8")]
    + [("kind", "i8"), ("access", "i8"), ("address", "i8"), ("thread", "u8"), ("other", "u8")],
    align=True,
)

#: Kinds of wrong accesses, from 1 on.
FAULTS = ("", "misaligned", "outside", "race")

#: Bits of a word of shadow: the number of the thread in its block, its epoch, and above them its block plus 1.
EPOCH_BIT, BLOCK_BIT = 16, 40

#: In the place of a thread's number: several threads.
SEVERAL = (1 << EPOCH_BIT) - 1


def llvm_type(record: np.dtype) -> str:
    """The same record as a type of LLVM's."""
    assert record.fields is not None
    return "{ " + ", ".join(f"i{8 * record.fields[name][0].itemsize}" for name in record.names or ()) + " }"


def field(record: np.dtype, name: str) -> int:
    """How many bytes behind the start of a record a field lies."""
    assert record.fields is not None
    return int(record.fields[name][1])
