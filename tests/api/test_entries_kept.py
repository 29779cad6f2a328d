"""The C function in front of a compiled function, held by itself: what it runs is there as long as it is."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import jitlab as jl
from jitlab.api.functions import native_entry

PROGRAM = """
    import gc
    import numpy as np
    import jitlab as jl

    function = jl.function(lambda x: np.tanh(x) * 2 + 1)
    given = [np.linspace(0, 1, n) for n in {shapes}]
    expected = [function(x) for x in given]
    for x in given:
        for _ in range(50):
            function(x)
    entry = function.__call__
    assert type(entry) is type(len), "C does not answer such calls"
    del function
    gc.collect()
    others = [jl.function(lambda x, n=n: np.tanh(x) * n) for n in range(10)]  # what is free is used again
    for other in others:
        for _ in range(20):
            other(given[0])
    for x, value in zip(given, expected):
        assert np.array_equal(entry(x), value)
    try:
        entry(np.ones(3))
    except ReferenceError as error:
        print(error)
"""


@pytest.mark.parametrize("shapes", [(10,), (10, 20)])
def test_it_outlives_its_function(shapes):
    """In a process of its own: one whose code was gone ended with a segmentation fault."""
    program = textwrap.dedent(PROGRAM).replace("{shapes}", str(shapes))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "Keep it in a name" in ended.stdout


def plus_one(x):
    return x + 1


def twice(x):
    return x * 2


def test_threads_that_make_c_functions_together_leave_other_functions_alone(compiled, monkeypatch):
    f, other = jl.function(plus_one), jl.function(twice)
    plain, real, threads = type(other).__call__, native_entry._set_in_front, []

    def more():
        for _ in range(8):
            f(np.ones(4, np.float32))

    def meanwhile(function, *given):
        if not threads:  # between the decision of the first thread and its end
            threads.append(threading.Thread(target=more))
            threads[0].start()
            threads[0].join(0.2)
        real(function, *given)

    for _ in range(3):
        f(np.ones(4, np.float32))
    monkeypatch.setattr(native_entry, "_set_in_front", meanwhile)
    for _ in range(8):
        f(np.ones(4))
    threads[0].join()
    assert type(other).__call__ is plain
    np.testing.assert_array_equal(other(np.ones(4)), np.full(4, 2.0))
    np.testing.assert_array_equal(f(np.ones(4, np.float32)), np.full(4, 2.0))


TOGETHER = """
    import gc, importlib, sys, threading, weakref
    import numpy as np

    module = importlib.import_module("jitlab.targets.cpu_llvm.calls.{module}")
    machine = importlib.import_module("jitlab.targets.cpu_llvm.machine")
    machine.prepare()
    barrier, found = threading.Barrier(2), []

    def together(make):
        def waited(*args, **kwargs):
            made = make(*args, **kwargs)
            barrier.wait()
            return made

        return waited

    machine.load, module.np = together(machine.load), type("NumPy", (), dict(array=together(np.array), int64=np.int64))
    threads = [threading.Thread(target=lambda: found.append(id(module.{function}()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert set(found) == {id(module.{function}())}, "one of two threads was given what nobody keeps"
"""


@pytest.mark.parametrize(
    ("module", "function"), [("python_way", "_loaded"), ("shelves", "_loaded"), ("signals", "look_table")]
)
def test_what_two_threads_load_together_stays(module, function):
    """In a process of its own, in which it is made for the first time: an address was used of code that had gone."""
    program = textwrap.dedent(TOGETHER).replace("{module}", module).replace("{function}", function)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
