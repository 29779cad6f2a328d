"""Forks while other threads trace and call functions: the child calls them, too, and traces its own.

A case is (kind of program, seed). Four threads trace all the while: fresh functions, and ones that the child calls.
"""

import faulthandler
import os
import random
import sys
import threading
import time
import traceback
import warnings
from collections import deque

import numpy as np

from .programs import BY_NAME, KINDS, Case

PATIENCE, SHORT = 100, 12
THREADS, CHILD_SECONDS = 4, 60
_known = deque(maxlen=8)  # functions that threads are in the midst of calling
_wrong = []
_started = []


def draw(rng):
    return rng.choice(KINDS).name, rng.randrange(1 << 20)


def _churn(seed):
    rng = random.Random(seed)
    while True:
        case = Case(rng.choice(KINDS), rng.randrange(3, 50), rng.randrange(1 << 20))
        _known.append(case)
        try:
            told = case.run()
        except Exception:
            told = traceback.format_exc()
        if told:
            _wrong.append(f"{case.kind.name}: {told}")
        time.sleep(rng.random() * 0.01)


def tried(kind, seed):
    """What went wrong in the child, or meanwhile in a thread of the parent."""
    if not _started:
        sys.setswitchinterval(1e-4)
        for number in range(THREADS):
            _started.append(threading.Thread(target=_churn, args=(seed + number,), daemon=True))
            _started[-1].start()
        while len(_known) < THREADS:
            time.sleep(0.01)
    time.sleep(random.Random(seed).random() * 0.05)
    reading, writing = os.pipe()
    faulthandler.cancel_dump_traceback_later()  # its thread holds a lock that the child would wait for
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os._exit(_child(kind, seed, reading, writing))
    os.close(writing)
    with open(reading) as file:
        told = file.read()
    status = os.waitpid(child, 0)[1]
    if status and not told:
        told = f"the child ended with {status}"
    return "\n".join([*filter(None, [told]), *(_wrong.pop() for _ in range(len(_wrong)))])


def _child(kind, seed, reading, writing):
    os.close(reading)
    faulthandler.dump_traceback_later(CHILD_SECONDS, exit=True, file=writing)
    told = ""
    try:
        for case in [*_known, Case(BY_NAME[kind], seed % 40 + 3, seed)]:
            if not told and (wrong := case.run()):
                told = f"{case.kind.name}, K = {case.constant}, seed {case.seed}: {wrong}"
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(3 + seed % 9)
        for case in list(_known):  # and with a size of the child's own
            if case.kind.body == BY_NAME["warm"].body:
                np.testing.assert_allclose(case.f(x), np.exp(x) * case.constant + x.sum())
    except BaseException:
        told = traceback.format_exc()
    os.write(writing, told.encode())
    return bool(told)
