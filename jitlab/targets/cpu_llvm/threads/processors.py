"""How many threads this process may use: what is set, what its environment says, and what the system grants it."""

from __future__ import annotations

import os
from contextlib import suppress

from jitlab.config import config

#: The variable that says it, and the one that speaks to all libraries.
OWN, OF_ALL = "JITLAB_NUM_THREADS", "OMP_NUM_THREADS"

_GROUPS, _OWN_GROUP = "/sys/fs/cgroup", "/proc/self/cgroup"


def chosen() -> int:
    """What is said for jitlab alone: `jl.config.threads`, or its variable; 0: nothing is."""
    return config.threads or _said(OWN)


def allowed() -> int:
    """What holds where nothing is: what is said to all libraries, or the processors."""
    return _said(OF_ALL) or granted()


def _said(variable: str) -> int:
    first = os.environ.get(variable, "").partition(",")[0].strip()  # OpenMP's has a number for each level
    return int(first) if first.isdecimal() else 0


def granted() -> int:
    """The processors that the process may run on, or fewer where its control group has less of their time."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(count, _quota(_GROUPS, _OWN_GROUP) or count))


def _quota(groups: str, own_group: str) -> int:
    """The processors' worth of time that the control groups around this process have, rounded up; 0: no limit."""
    least = 0.0
    with suppress(OSError, ValueError):
        with open(own_group) as file:
            lines = [line.strip().split(":", 2) for line in file]
        for _, kinds, path in lines:
            if kinds and "cpu" not in kinds.split(","):
                continue
            while True:
                limit = _limit(f"{groups}/cpu{path}" if kinds else groups + path, is_first=bool(kinds))
                least = min(least or limit, limit or least)
                if path in ("", "/"):
                    break
                path = path.rpartition("/")[0]
    return -int(-least // 1)


def _limit(folder: str, is_first: bool) -> float:
    """Of one group; 0: none. `is_first`: of the first version of control groups."""
    try:
        if is_first:
            with open(f"{folder}/cpu.cfs_quota_us") as quota, open(f"{folder}/cpu.cfs_period_us") as period:
                words = [quota.read(), period.read()]
        else:
            with open(f"{folder}/cpu.max") as limit:
                words = limit.read().split()
        return max(int(words[0]), 0) / int(words[1])
    except (OSError, ValueError, ZeroDivisionError, IndexError):
        return 0.0
