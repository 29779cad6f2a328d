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


PRACTICE = """
from jitlab.api import practice
done = []
for name in ("_captured", "_simplified", "_compiled"):
    def step(self, do=getattr(practice.Practice, name), name=name):
        do(self)
        done.append((name, self._trace is not None, self._graph is not None))
    setattr(practice.Practice, name, step)
"""


def test_a_practice_goes_through_the_stages_and_leaves_nothing(tmp_path):
    program = PRACTICE + """
from jitlab.runtime.compiled import _recent
with jl.record():  # it does not begin while somebody listens
    jl.jit(lambda x: x)
    ended()
preparing.preparation = preparing.Preparation()
preparing.preparation.begin("jitlab.api.practice")
ended()
print(*(x for step in done for x in step), len(_recent), len(machine._linkers))
print(sorted(os.listdir(os.environ["JITLAB_CACHE_DIR"] + "/objects")))
"""
    steps = ["_captured", "_simplified", "_compiled"]
    heard = [word for step in steps for word in (step, "False", "False")]
    done = [word for step, made in zip(steps, ("False", "True", "True"), strict=True) for word in (step, "True", made)]
    assert run(program, JITLAB_CACHE_DIR=str(tmp_path)) == [*heard, *done, "0", "1", "[]"]


def test_a_first_call_after_a_practice_makes_fewer_calls(tmp_path):
    counted = """
calls = [0]
def count(frame, event, argument): calls[0] += event == "call"
sys.setprofile(count)
f(np.ones(3))
sys.setprofile(None)
print(calls[0])
"""
    without = "preparing.Preparation.begin = lambda self, practice: None"
    plain = run(without + FIRST + "machine.prepare()" + counted, JITLAB_CACHE_DIR=str(tmp_path / "a"))
    practised = run(FIRST + "ended()" + counted, JITLAB_CACHE_DIR=str(tmp_path / "b"))
    assert int(practised[0]) < 0.8 * int(plain[0])


def test_nothing_is_practised_where_somebody_has_recorded(tmp_path):
    program = PRACTICE + FIRST + """
ended()
preparing.preparation = preparing.Preparation()
done.clear()
f(np.ones(3))
preparing.preparation.begin("jitlab.api.practice")
ended()
print(done)
"""
    shown = "[('_captured', False, False), ('_simplified', False, False), ('_compiled', False, False)]"
    assert " ".join(run(program, JITLAB_CACHE_DIR=str(tmp_path))) == shown


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
