"""Code of Programs, kept by their text: a Program that was compiled before is not compiled again."""

from __future__ import annotations

import time
from collections import OrderedDict
from weakref import WeakValueDictionary

from jitlab.ir.programs.program import Program
from jitlab.support import locks
from jitlab.targets.target import Compiled, Origin, Target, tell_compiled

#: Programs kept without anybody who runs them.
MOST_UNUSED = 256


def compiled(target: Target, program: Program, origin: Origin) -> Compiled:
    """A target's code of a Program: of this process, of the disk, or compiled now. Sends ProgramCompiled."""
    started = time.perf_counter_ns()
    program = target.scheduled(program)
    key = target, program.text
    with locks.Released(_lock), _lock:
        known = _by_text.get(key)
        if known is None:
            known = _by_text[key] = target.compiled(program, origin)
            how, tier = known.source, known.first_tier
        else:
            how, tier = "memory", known.tier
        _recent[key] = known
        _recent.move_to_end(key)
        while len(_recent) > MOST_UNUSED:
            _recent.popitem(last=False)
    tell_compiled(known, origin, tier, how, started)
    return known


def forget_compiled() -> None:
    """Forget the Programs of this process (for tests and measurements); what a target keeps on disk stays."""
    with locks.Released(_lock), _lock:
        _by_text.clear()
        _recent.clear()


#: By the target, whose device the code is loaded on, and the Program's text: what some trace runs, and the Programs asked for
#: last, though no trace may run them now: a definition that is executed again finds its code. What falls out of both is taken
#: out of memory.
_by_text: WeakValueDictionary[tuple[Target, str], Compiled] = WeakValueDictionary()
_recent: OrderedDict[tuple[Target, str], Compiled] = OrderedDict()
_lock = locks.shared("programs")
