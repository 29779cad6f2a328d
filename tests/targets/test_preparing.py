"""What a first call takes is loaded behind, from the place on where a call may come."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, threading, time
import numpy as np
import jitlab as jl
from jitlab.targets.cpu_llvm import machine, preparing

def threads():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("jitlab")]

def ended():
    preparing.preparation._thread.join()
"""


def run(program, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert not done.returncode, done.stderr
    assert not done.stderr
    return done.stdout.split()


def test_an_import_begins_nothing():
    assert run("print(threads(), 'llvmlite' in sys.modules)") == ["[]", "False"]


@pytest.mark.parametrize("begin", ["jl.jit(lambda x: x)", "jl.function(lambda x: x)", "jl.Session()"])
def test_it_is_begun_where_a_call_may_come_and_once(begin):
    program = f"{begin}; first = preparing.preparation._thread; {begin}; print(first is preparing.preparation._thread); ended()"
    assert run(f"{program}; print(threads(), machine.is_loaded(), len(machine._linkers))") == ["True", "[]", "True", "1"]


def test_an_extension_begins_it():
    pytest.importorskip("IPython")
    program = """
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance().run_line_magic("load_ext", "jitlab")
ended()
print(machine.is_loaded())
"""
    assert run(program) == ["True"]


FIRST = """
text = "def f(x): return np.exp(x) + 1"
import linecache
linecache.cache["<cell>"] = (len(text), None, [text], "<cell>")
names = {"np": np}
exec(compile(text, "<cell>", "exec"), names)
f = jl.jit(names["f"])
"""


def test_a_first_call_then_loads_little(tmp_path):
    program = FIRST + """
ended()
before = {*sys.modules}
f(np.ones(3))
print(*sorted(name for name in {*sys.modules} - before))
"""
    new = run(program, JITLAB_CACHE_DIR=str(tmp_path))
    assert [name for name in new if name.startswith(("llvmlite", "jitlab"))] == []
    assert len(new) <= 8, new


def test_a_call_that_comes_at_once_gives_what_it_gives(tmp_path):
    assert run(FIRST + "print(f(np.zeros(3)))", JITLAB_CACHE_DIR=str(tmp_path)) == ["[2.", "2.", "2.]"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_is_forked_meanwhile_compiles(tmp_path):
    """The fork waits for the step that is under way."""
    program = FIRST + """
child = os.fork()
if not child:
    os._exit(int(f(np.zeros(3))[0]))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), f(np.zeros(1)))
"""
    assert run(program, JITLAB_CACHE_DIR=str(tmp_path)) == ["2", "[2.]"]


def test_a_process_that_ends_meanwhile_ends():
    """After the step that is under way; the next one does not begin."""
    program = """
begun, steps = threading.Event(), []
preparing.STEPS = (begun.set, lambda: time.sleep(0.05), lambda: steps.append("late"))
import atexit
atexit.register(lambda: print("steps", steps))  # is called last
preparing.preparation = preparing.Preparation()
preparing.preparation.begin()
begun.wait()
"""
    assert run(program) == ["steps", "[]"]


def test_what_cannot_be_loaded_is_the_first_calls_to_say():
    program = FIRST.replace("f = jl.jit", "sys.modules['llvmlite'] = None\nf = jl.function") + """
ended()
try:
    f(np.ones(3))
except ImportError as error:
    print("llvmlite" in str(error))
"""
    assert run(program) == ["True"]


def test_no_room_for_a_thread_is_no_error():
    program = """
def refuse(*_): raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
jl.jit(lambda x: x)
print(threads(), preparing.preparation._thread)
"""
    assert run(program) == ["[]", "None"]
