"""Calls that C hands on to a Python function at once: how many are under way, and whether this thread is in one.

C only counts those of each function. Who has to know more, seldom enough, looks at the frames.
"""

from __future__ import annotations

import ctypes
import sys
from types import CodeType, FrameType
from weakref import WeakSet


class Counts(ctypes.Structure):
    """`value`: calls under way; `ended`: those that were. C code counts."""

    _fields_ = [("value", ctypes.c_int64), ("ended", ctypes.c_int64)]  # noqa: RUF012 - ctypes reads a list


class DirectCalls:
    """Those of one function, which runs `code`; C code counts in `under_way`."""

    def __init__(self, code: CodeType | None) -> None:
        self.code = code
        self.under_way = Counts(0, 0)
        _all.add(self)


def in_direct_call() -> bool:
    """Is this thread inside of such a call?"""
    codes = {id(calls.code) for calls in list(_all) if calls.under_way.value}
    frame: FrameType | None = sys._getframe() if codes else None
    while frame is not None:
        if id(frame.f_code) in codes:
            return True
        frame = frame.f_back
    return False


_all: WeakSet[DirectCalls] = WeakSet()
