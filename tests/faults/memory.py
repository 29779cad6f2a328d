"""First calls with little memory to have: each gives Python's result or raises MemoryError, and works with more again.

A case is (kind of program, KiB that the process may have more, seed), in a forked process.
"""

import os
import resource
import signal
import sys
import traceback

from .programs import BY_NAME, KINDS, Case

PATIENCE, SHORT = 60, 40


def draw(rng):
    return rng.choice(KINDS).name, int(2 ** rng.uniform(2, 17)), rng.randrange(1 << 20)


def tried(kind, kib, seed):
    Case(BY_NAME["warm"], 2, 1).run()  # what is loaded once is there
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        told = _child(kind, kib, seed)
        os.write(writing, told.encode()[:60_000])
        os._exit(0)
    os.close(writing)
    with open(reading) as file:
        told = file.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        told = f"{told}the process was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return told or (f"the process ended with {status}" if status else "")


def _child(kind, kib, seed):
    case = Case(BY_NAME[kind], seed % 40 + 3, seed)
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * 4096
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + kib * 1024, before[1]))
    ended, told = "", ""
    try:
        told = case.run()
    except MemoryError as error:
        ended = error
    except BaseException as error:
        ended = error
        told = "another exception came out: "
    resource.setrlimit(resource.RLIMIT_AS, before)
    sys.unraisablehook = hook
    ended = "".join(traceback.format_exception(ended)) if ended else ""
    try:
        told = told or case.run()
    except BaseException:
        told = f"broken afterwards:\n{traceback.format_exc()}"
    return f"{told}\nafter\n{ended}" if told else ""
