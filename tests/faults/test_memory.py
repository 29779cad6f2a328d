"""Little memory: MemoryError that names the bytes, or the result, never the end of the process. What is gone leaves nothing."""

import ctypes
import gc
import linecache
import os
import subprocess
import sys
import tracemalloc
import weakref
from importlib import import_module

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.compiling import background

limited = pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is set and read as on Linux")

PROGRAM = """
import resource
import threading
import numpy as np
import jitlab as jl
from jitlab.api import Options, compile_trace
from tests.cell_runs import run_cell

def formula(x):
    return np.exp(x) * 3 + np.sin(x).sum() + np.float32(0.1)

def cell(x):
    space = dict(np=np, x=x)
    source = "r = np.exp(x) * 3 + np.sin(x).sum() + np.float32(0.1)"
    run_cell(source, space, "<a cell>", executor=lambda trace: compile_trace(trace, Options()))
    return space["r"]

@jl.function
def warm(x):
    return np.tanh(x)

f = {how}
if {is_warm}:
    warm(np.ones(3))

def go():
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * 4096
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + ({kib} << 10), before[1]))
    x = np.zeros(1000)
    try:
        print(float(f(x)[0]))  # NumPy itself may end the process where it has no room to write its own floats with
    except MemoryError as error:
        print(type(error).__name__, error)
    resource.setrlimit(resource.RLIMIT_AS, before)
    print(float(f(x)[0]))

if {in_thread}:
    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
else:
    go()
"""
RESULT = str(3 + float(np.float32(0.1)))


def printed(**given):
    program = PROGRAM.format(**given)
    environment = {**os.environ, "JITLAB_CACHE": "0", "OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


@limited
@pytest.mark.parametrize("is_warm", [True, False])
@pytest.mark.parametrize("kib", [0, 100, 1000, 8000, 20_000])
def test_a_first_call_without_memory_names_the_bytes_and_works_later(kib, is_warm):
    first, second = printed(how="jl.function(formula)", kib=kib, is_warm=is_warm, in_thread=False)
    assert second == RESULT
    assert first == RESULT or (first.startswith("MemoryError ") and " bytes" in first)


@limited
@pytest.mark.parametrize("kib", [0, 60, 120, 1000])
@pytest.mark.parametrize("how", ["jl.function(formula)", "jl.jit(formula)", 'jl.jit(capture_mode="trace")(formula)', "cell"])
def test_the_first_call_of_a_thread_without_memory_does_not_end_the_process(how, kib):
    """NumPy and LLVM keep blocks for each thread, and the C library ends the process where it has no room for one."""
    first, second = printed(how=how, kib=kib, is_warm=True, in_thread=True)
    assert second == RESULT
    assert first == RESULT or (first.startswith("MemoryError ") and " bytes" in first)


@limited
@pytest.mark.parametrize("kib", [1000, 20_000])
def test_under_jit_python_runs_what_cannot_be_compiled(kib):
    assert printed(how="jl.jit(formula)", kib=kib, is_warm=True, in_thread=False) == [RESULT, RESULT]


#: Of tables that keep so many of what came last: fewer, so that they are full when bytes are counted.
KEPT_LAST = {
    "api.retraces.definitions": "_copies.most", "capture.rewrite.convert": "_trees.most", "ir.graphs.called": "_known.most",
    "ir.texts": "KEPT", "runtime.compiled": "MOST_UNUSED", "runtime.dumps": "MOST_VERSIONS",
}  # fmt: skip
CHANGES = {
    "run again": "@jl.HOW\ndef f(x):\n    return np.sin(x) * 7 + x.sum()\n",
    "edited": "@jl.HOW\ndef f(x):\n    return np.sin(x) * TURN + x.sum()\n",
    "other argument": "@jl.HOW\ndef f(xTURN):\n    s = 0\n    for k in range(3):\n        s += xTURN[k] * 2\n    return s\n",
    "branch": "@jl.HOW\ndef f(x):\n    if x.sum() > TURN:\n        return x * 2\n    return x - TURN\n",
    "helper": "def g(x):\n    return x * TURN\n@jl.HOW\ndef f(x):\n    return g(x) + g(x[1:]).sum()\n",
}


def defined(how, change, turn, namespace):
    """The function of a cell that is executed again, and its calls, which need two traces or more."""
    source = CHANGES[change].replace("HOW", how).replace("TURN", str(turn))
    name = f"<ipython-input-{turn if 'TURN' in CHANGES[change] else 1}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    linecache.cache.pop(f"<ipython-input-{turn - 5}>", None)  # the notebook's own
    exec(compile(source, name, "exec"), namespace)
    for size in (5, 5, 5, 5, 5, 5, 5, 8):  # also the C function of a warm call
        namespace["f"](np.ones(size))


#: Turns before bytes are counted, and between one count and the next.
WARM_TURNS, TURNS = 25, 10


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("how", ["function", "jit"])
def test_a_cell_that_is_executed_again_leaves_little(how, change, monkeypatch):
    for module, name in KEPT_LAST.items():
        *table, most = name.split(".")
        owner = import_module(f"jitlab.{module}")
        monkeypatch.setattr(getattr(owner, *table) if table else owner, most, 10)
    namespace, counted = {"np": np, "jl": jl}, []
    tracemalloc.start(1)
    try:
        for turn in range(WARM_TURNS + 2 * TURNS + 1):
            if turn >= WARM_TURNS and (turn - WARM_TURNS) % TURNS == 0:
                counted.append(traced_bytes())
            defined(how, change, turn, namespace)
    finally:
        tracemalloc.stop()
    first, second, third = counted
    assert min(second - first, third - second) < 2000 * TURNS  # a table of other tests' that grows doubles once


def traced_bytes():
    background().submit(int).result()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_libraries_that_are_gone_leave_no_linker():
    text = "define i64 @run(ptr %x) {\n  ret i64 0\n}\n"
    code = machine.compile_object(text, "quick")
    kept = [machine.load(code, ["run"])]
    linkers = weakref.WeakSet()
    for _ in range(5 * machine._Linker.MOST):
        linkers.add(machine.load(code, ["run"])._linker)
    assert len(linkers) <= 2  # that of what is kept, and the one in use
    assert kept[0].address("run")


class Heap(ctypes.Structure):
    """What `mallinfo2` of glibc gives."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    ]


def heap_bytes():
    """In use, of the C library's heap."""
    gc.collect()
    read = ctypes.pythonapi.mallinfo2
    read.restype = Heap
    now = read()
    return now.uordblks + now.hblkhd


NUMBERED = "define i64 @run(ptr %x) {\n %a = load i64, ptr %x\n %b = mul i64 %a, NUMBER\n ret i64 %b\n}\n"
WAYS = {
    "compiled quickly": lambda text: machine.compile_object(text, "quick"),
    "compiled well": lambda text: machine.compile_object(text, "good"),
    "shown": lambda text: machine.optimized(text, "good"),
    "shown as assembly": lambda text: machine.asm(text, "good"),
    "loaded": lambda text: machine.load(machine.compile_object(text, "quick"), ["run"]),
}


@pytest.mark.skipif(not hasattr(ctypes.pythonapi, "mallinfo2"), reason="glibc 2.33 and later count their heap's bytes")
@pytest.mark.parametrize("way", WAYS)
def test_what_was_compiled_and_is_gone_leaves_little_in_the_heap(way):
    turns = 3 * machine._Linker.MOST
    for number in range(2 * turns):
        if number == turns:
            before = heap_bytes()
        WAYS[way](NUMBERED.replace("NUMBER", str(number)))
    assert heap_bytes() - before < 4000 * turns  # a list of passes is 28 kB, and 20 more when it has run


EACH_EVENT = """
import gc, signal, sys
from tests.faults.events import at_event, counter
from jitlab.targets.cpu_llvm import machine

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.unraisablehook = lambda _: None
number = 0

def tried(what, event):
    global number
    number += 1
    text, symbols, loaded = f"define i32 @f{number}() {{\\n ret i32 {number}\\n}}", [f"f{number}"], []
    made = machine.compile_object(text, "quick")
    if what == "frees":
        loaded.append(machine.load(made, symbols))
    try:
        with at_event(event, WRONG):
            if what == "compiles":
                machine.compile_object(text, "quick")
            elif what == "shows":
                machine.optimized(text, "quick")
            elif what == "loads":
                machine.load(made, symbols)
            loaded.clear()
    except (KeyboardInterrupt, MemoryError):
        pass
    return counter().seen.value

for what in ("compiles", "shows", "loads", "frees"):
    print(what, file=sys.stderr)
    tried(what, 0)
    for event in range(1, tried(what, 0)):
        tried(what, event)
gc.collect()
for _ in range(2 * machine._Linker.MOST):
    tried("loads", 0)
gc.collect()
linkers = sum(type(o) is machine._Linker for o in gc.get_objects())
assert linkers <= 2, linkers
try:
    signal.raise_signal(signal.SIGINT)
    raise AssertionError("interrupts are lost")
except KeyboardInterrupt:
    pass
"""


def test_what_the_collector_of_cycles_finds_is_freed(monkeypatch):
    code, raised = machine.compile_object("define i64 @run() {\n ret i64 0\n}\n", "quick"), []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    for _ in range(3 * machine._Linker.MOST):
        cycle = [machine.load(code, ["run"])]
        cycle.append(cycle)
    del cycle
    gc.collect()
    assert not raised


@pytest.mark.parametrize("wrong", [None, "MemoryError"])
def test_an_exception_at_no_event_frees_anything_of_llvm_twice(wrong):
    program = EACH_EVENT.replace("WRONG", str(wrong))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


CLASSES = {
    "method": "class C:\n    @HOW\n    def f(self, x):\n        return x * self.k\n    k = 2\ncall = lambda: C().f(np.ones(3))",
    "property": "class C:\n    @property\n    def k(self):\n        return 2\n@HOW\ndef f(c, x):\n    return x * c.k\n"
    "call = lambda: f(C(), np.ones(3))",
    "made up": "class C:\n    def __getattr__(self, name):\n        return 2\n@HOW\ndef f(c, x):\n    return x * c.any\n"
    "call = lambda: f(C(), np.ones(3))",
    "operator": "class C:\n    __array_ufunc__ = None\n    def __rmul__(self, x):\n        return x * 2\n@HOW\ndef f(c, x):\n"
    "    return x * c\ncall = lambda: f(C(), np.ones(3))",
}  # fmt: skip


@pytest.mark.parametrize("how", ["jl.function", "jl.jit"])
@pytest.mark.parametrize("case", CLASSES)
def test_a_class_that_a_function_met_goes_with_its_last_reference(case, how):
    source = CLASSES[case].replace("@HOW", f"@{how}")
    name = f"<a class, {case}, {how}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"np": np, "jl": jl, "__name__": "classes"}
    exec(compile(source, name, "exec"), space)
    for _ in range(3):
        assert space["call"]().tolist() == [2, 2, 2]
    gone = weakref.ref(space["C"])
    space.clear()
    gc.collect()
    assert gone() is None
