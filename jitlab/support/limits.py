"""Python code that is ended where it takes too long."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LOOKS_EACH = 0.1  # seconds between two looks at the clock
_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc


class OutOfTimeError(BaseException):
    """It was ended. No program catches this by its own `except Exception`."""


class _Watch:
    """Raises OutOfTimeError in the thread that made it when due, and again now and then: a program may catch anything, and
    what is raised in a finalizer is lost. Nothing is raised before `is_begun`, and at most once after `is_over`."""

    def __init__(self, limit_ns: int, is_due: Callable[[], bool]) -> None:
        self.is_begun = self.is_over = self._has_raised = False
        self._thread = ctypes.c_ulong(threading.get_ident())
        self._end_ns, self._is_due = time.monotonic_ns() + limit_ns, is_due
        # Locks of C: in the midst of one of Python's the exception would leave it locked.
        self._raising, self._ended = threading.Lock(), threading.Lock()
        self._ended.acquire()
        threading.Thread(target=self._look, name="jitlab-limit", daemon=True).start()

    def _look(self) -> None:
        left = LOOKS_EACH
        while not self.is_over and not self._ended.acquire(timeout=max(0.0, min(left, LOOKS_EACH))):
            left = (self._end_ns - time.monotonic_ns()) / 1e9
            if self.is_begun and (self._is_due() or left <= 0):
                left = LOOKS_EACH
                with self._raising:
                    if not self.is_over:
                        self._has_raised = True
                        _raise_in(self._thread, ctypes.py_object(OutOfTimeError))

    def end(self) -> None:
        """What was raised before `is_over` and has not come yet comes in here. It is not called off, but replaced by one that
        is waited for: an exception that was called off leaves CPython looking for it for ever."""
        with self._raising:
            has_raised = self._has_raised
        while has_raised:
            try:
                _raise_in(self._thread, ctypes.py_object(OutOfTimeError))
                while True:
                    pass
            except OutOfTimeError:
                break
            except KeyboardInterrupt:  # there is nothing left to interrupt
                continue
        if self._ended.locked():
            self._ended.release()


def within(run: Callable[[], T], limit_ns: int, is_due: Callable[[], bool] = lambda: False) -> T:
    """`run()`, which ends with OutOfTimeError where it takes longer, or `is_due()`, which is asked now and then by another
    thread. A call of C is waited for."""
    watch = _Watch(limit_ns, is_due)
    try:
        try:
            watch.is_begun = True
            return run()
        finally:
            watch.is_over = True
            watch.end()
    except OutOfTimeError:
        watch.is_over = True
        watch.end()
        raise


__all__ = ["OutOfTimeError", "within"]
