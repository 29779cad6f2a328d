"""An exception in the place of any call that takes a lock or gives it back leaves no lock taken: other threads go on."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jitlab.support import locks
from jitlab.targets.cpu_llvm import machine

EACH_LOCK = """
import gc, os, sys, threading, warnings
from jitlab.support import locks
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.compiling import background
from tests.faults.programs import BY_NAME, Case

LOCKS = (type(threading.RLock()), type(threading.Lock()))
CALLS = ("__enter__", "__exit__", "acquire", "release")
OURS = ("jitlab", "llvmlite")
sys.unraisablehook = lambda _: None
warnings.simplefilter("ignore")

def planted(number, action):
    '''Runs the action with an exception in the place of the number-th such call; the places of all, in their order.'''
    seen = []
    def profile(frame, what, called):
        if what == "c_call":
            is_one = called.__name__ in CALLS and type(getattr(called, "__self__", None)) in LOCKS
        else:
            is_one = what == "call" and frame.f_code.co_name in CALLS
            frame = frame.f_back or frame if is_one else frame
        if is_one and any(f"{os.sep}{name}{os.sep}" in frame.f_code.co_filename for name in OURS):
            seen.append((frame.f_code.co_filename, frame.f_lineno, what))
            if len(seen) == number:
                raise MemoryError
    sys.setprofile(profile)
    try:
        action()
    except (MemoryError, KeyboardInterrupt):  # where Python has to drop an exception, a kernel raises an interrupt
        pass
    finally:
        sys.setprofile(None)
    return seen

def taken():
    '''Names of locks that this thread holds.'''
    known = {name: lock for name, lock in locks._shared.items() if name != "compiler"}
    known |= {"compiler": machine._lock, "llvmlite": machine._llvmlite_lock()._lock}
    for owner in list(locks._owners):
        known |= {f"{type(owner).__name__}.{name}": getattr(owner, name) for name in owner.LOCKS}
    return [name for name, lock in known.items() if lock._is_owned()]

tried = set()

def checked(made):
    '''`made(k)` gives the k-th action, which is new each time. Each place is tried once.'''
    planted(0, made(2))
    for number, place in enumerate(planted(0, made(3)), 1):
        if place not in tried:
            tried.add(place)
            planted(number, made(number + 3))
            assert not taken(), (place, taken())

def compiled(number):
    text, name = f"define i32 @f{number}() {{\\n ret i32 {number}\\n}}", f"f{number}"
    return lambda: machine.load(machine.compile_object(text, "quick"), [name])

def forked(number):
    def fork():
        child = os.fork()
        if child == 0:
            sys.setprofile(None)
            os._exit(bool(taken()))
        assert os.waitpid(child, 0)[1] == 0, number
    return fork

checked(compiled)
for kind in ("large", "jit pieces", "cells", "variable"):
    checked(lambda number: Case(BY_NAME[kind], number, number).run)
if hasattr(os, "fork"):
    tried.clear()
    checked(forked)
background().submit(int).result(timeout=60)
print("right")
"""


def test_an_exception_at_no_call_of_a_lock_leaves_one_taken():
    environment = {**os.environ, "JITLAB_CACHE": "0"}
    folder = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", EACH_LOCK], capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "right\n"


def test_a_block_inside_another_of_the_same_lock_leaves_it_to_that_one():
    lock = threading.RLock()
    with locks.Released(lock), lock:
        with locks.Released(lock), lock:
            pass
        assert lock._is_owned()
    assert not lock._is_owned()


@pytest.mark.parametrize("half", ["llvmlite's callback", "llvmlite's release"])
def test_both_locks_of_the_compiler_are_given_back_whatever_llvmlites_does(half, monkeypatch):
    both, inner = locks._shared["compiler"], machine._llvmlite_lock()
    if inner is None:
        machine.cpu_name()
        inner = machine._llvmlite_lock()

    def wrong():
        raise ZeroDivisionError

    callbacks = (wrong, int) if half == "llvmlite's callback" else (int, wrong)
    inner.register(*callbacks)
    try:
        with pytest.raises(ZeroDivisionError):
            both.acquire()
            both.release()
        if half == "llvmlite's callback":
            both.release()
    finally:
        inner.unregister(*callbacks)
    assert not machine._lock._is_owned()
    assert not inner._lock._is_owned()
