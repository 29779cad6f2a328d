"""What native code and NumPy both know of a simulated launch: records of its threads, its memory, and its first fault."""

from __future__ import annotations

import numpy as np

#: A thread: its special registers, where it waits (0: it has ended; else the number of a barrier or shuffle in its module),
#: what it hands to a shuffle and gets from it, and which bits its partner differs in. Epochs count the barriers it has passed.
THREAD = np.dtype(
    [(name, "i4") for name in "tid.x tid.y ntid.x ntid.y ctaid.x ctaid.y nctaid.x nctaid.y".split()]
    + [
        ("site", "i4"),
        ("value", "i4"),
        ("mask", "i4"),
        ("block", "i4"),
        ("number", "i4"),
        ("epoch", "i4"),
        ("warp_epoch", "i8"),
    ]
    + [("shared", "u8"), ("shadow", "u8"), ("launch", "u8")],
    align=True,
)

#: Memory that a launch may touch. `shadow`: who touched each byte, two words a byte; 0 where nobody looks. `read`, `written`:
#: how many bytes were, each as often as it was, but by atomic accesses.
RANGE = np.dtype([("start", "u8"), ("end", "u8"), ("shadow", "u8"), ("read", "i8"), ("written", "i8")], align=True)

#: What is the same for all threads, and the first access that was wrong: `kind` is one of FAULTS, 0 if none was.
LAUNCH = np.dtype(
    [("ranges", "u8"), ("count", "i8"), ("sink", "u8"), ("shared_bytes", "i8")]
    + [("kind", "i8"), ("access", "i8"), ("address", "i8"), ("thread", "u8"), ("other", "u8")],
    align=True,
)

#: Kinds of wrong accesses, from 1 on.
FAULTS = ("", "misaligned", "outside", "race")

#: A word of shadow says who used a byte, and when: from the lowest bit on the number of a thread in its block, how many
#: barriers its warp had passed and how many its block, and its block plus 1.
WARP_EPOCH_BIT, EPOCH_BIT, BLOCK_BIT = 12, 26, 44
NUMBER = (1 << WARP_EPOCH_BIT) - 1

#: Added to the number of a thread: others of its warp did so, too; others of its block did.
OF_WARP, OF_BLOCK = 1 << 10, 1 << 11

#: The bits of a number that are the same for a warp.
WARP_BITS = OF_BLOCK | (OF_WARP - 32)


def field(record: np.dtype, name: str) -> int:
    """How many bytes behind the start of a record a field lies."""
    assert record.fields is not None
    return int(record.fields[name][1])
