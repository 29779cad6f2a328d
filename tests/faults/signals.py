"""First calls that are interrupted, or in which memory or the stack runs out: what is left of the function and the process.

A case is (kind of program, what happens, at which event, seed).
"""

import contextvars
import gc
import sys
import threading
import traceback
import warnings
from functools import cache

import numpy as np

from jitlab import costs, events
from jitlab.capture import current_capture

from .events import at_event
from .programs import BY_NAME, KINDS, Case

ERRORS = {"interrupt": None, "memory": MemoryError, "recursion": RecursionError}
#: Seconds after which a case hangs, and cases of one test.
PATIENCE, SHORT = 60, 60


def draw(rng):
    kind = rng.choice(KINDS).name
    what = rng.choice(["interrupt", "interrupt", "interrupt", "memory", "recursion"])
    return kind, what, rng.randrange(1, length_of(kind)[0]), rng.randrange(1 << 20)


@cache
def length_of(kind):
    """How many events all calls of a fresh function are, and how many traces it then has."""
    for constant in (1, 2):  # the second time nothing of jitlab itself is new
        case = Case(BY_NAME[kind], constant, 1)
        with at_event(0) as counter:
            wrong = case.run()
        assert not wrong, (kind, wrong)
    return counter.seen.value, case.traced


def state():
    """What a call must not leave behind."""
    own = {v.name: repr(value) for v, value in contextvars.copy_context().items() if v.name.startswith("jitlab_") and value}
    return {
        "busy": events.busy.word.value, "capture": current_capture(), "account": costs._open.top, "threads": _others(),
        "errors": np.geterr(), "limit": sys.getrecursionlimit(), "filters": len(warnings.filters),
        "collector": gc.isenabled(), **own,
    }  # fmt: skip


def _others():
    return sorted(t.name for t in threading.enumerate() if not t.name.startswith("jitlab-compile"))


def tried(kind, what, number, seed):
    """What went wrong in this case, "" where nothing did."""
    traces = length_of(kind)[1]
    case = Case(BY_NAME[kind], seed % 40 + 3, seed)
    before = state()
    ended = None
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None  # Python itself drops an interrupt in a `__del__`
    try:
        try:
            with warnings.catch_warnings(), at_event(number, ERRORS[what]):  # what the case's own could not put back
                case.run()
        except (KeyboardInterrupt, MemoryError, RecursionError):
            ended = _where()
        return _broken(case, traces if what == "interrupt" else None, before, ended)
    except BaseException:
        return f"raised\n{traceback.format_exc()}\nafter\n{_told(ended)}"
    finally:
        sys.unraisablehook = hook


def _where():
    """Where the exception came, without its lines: all of jitlab's text would come to stay in memory, case by case."""
    return traceback.TracebackException(*sys.exc_info(), lookup_lines=False)


def _told(ended):
    return "" if ended is None else "".join(ended.format())


def _broken(case, traces, before, ended):
    after = state()
    left = [f"{name} {before.get(name)} -> {now}" for name in before | after if (now := after.get(name)) != before.get(name)]
    if left:
        return f"left behind: {', '.join(left)}, after\n{_told(ended)}"
    wrong = case.run()
    if not wrong and traces is not None and case.traced != traces:
        wrong = f"traced {case.traced} times, not {traces}"
    return f"{wrong}, after\n{_told(ended)}" if wrong else ""
