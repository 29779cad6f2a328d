"""Which way calls go is kept on disk: another process begins with it, for the same code and kind of call alone."""

import itertools
import linecache
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.api import kept_decisions, settling
from jitlab.api.functions import jit as jit_module
from jitlab.api.settling import COMPILED, PYTHON
from jitlab.ops.base import Operation
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.compiling import background
from jitlab.targets.cpu_llvm.cpu_target import CPU

PROGRAM = """
import numpy as np

SCALE = 3
TABLE = np.ones(100)

class Box:
    def __init__(self, n):
        self.n = n

    def twice(self):
        return self.n * 2

def helper(x):
    return x * SCALE

def f(x, log, box=None):
    y = helper(np.tanh(x)) + 1
    log.__iadd__([y.shape])
    return y * 2
"""
X = np.linspace(0, 1, 10)


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A folder of its own, and times that are planned: as Python calls take a third."""
    made = machine.ObjectCache(tmp_path)
    monkeypatch.setattr(machine, "object_cache", lambda: made)
    monkeypatch.setattr(CPU, "keeps_plans", True)
    monkeypatch.setattr(Operation, "has_others", False)  # which another test may have made
    monkeypatch.setattr(jl.config, "cache", True)
    monkeypatch.setattr(jl.config, "settle", "measure")
    monkeypatch.setattr(jit_module, "_is_measurable", lambda: True)
    plan(monkeypatch, python=3000)
    return made


def plan(monkeypatch, python):
    now = [0]
    monkeypatch.setattr(settling, "clock", lambda: now[0])
    monkeypatch.setattr(settling, "busy_clock", lambda: now[0])

    def timed(way, call):
        def run():
            result = call()
            now[0] += {COMPILED: 9000, PYTHON: python}[way]
            return result

        return run

    def tried(trial, ways, is_ready, before=settling_tried):
        return before(trial, {way: timed(way, call) for way, call in ways.items()}, is_ready)

    monkeypatch.setattr(settling, "tried", tried)


settling_tried = settling.tried


def defined(program=PROGRAM, file="a program", **options):
    """The function of a program as another process has it: other objects, of the same code."""
    file = f"<{next(numbers)} {file}>"
    linecache.cache[file] = (len(program), None, program.splitlines(True), file)
    names = {"__name__": "__main__"}
    exec(compile(program, file, "exec"), names)
    return jl.jit(names["f"], **options)


numbers = itertools.count()


def called(f, times=30, x=X):
    for _ in range(times):
        log = []
        np.testing.assert_allclose(f(x, log), (np.tanh(x) * 3 + 1) * 2, rtol=1e-14)
        assert log == [x.shape]
    return f


def trial_of(f):
    (trial,) = f._trials.values()
    return trial


def decisions(store):
    background().submit(lambda: None).result()  # other code may be written meanwhile
    return [key for key in os.listdir(store.folder) if b'"way"' in (Path(store.folder) / key).read_bytes()]


def begins_with(f):
    """Which way the first call of a function goes that is decided already, or ""."""
    called(f, 1)
    return trial_of(f).way


def test_another_process_begins_with_the_decision_and_captures_nothing():
    first = called(defined())
    assert trial_of(first).way == PYTHON and first.ledger.pieces
    f = called(defined(), 20)
    assert trial_of(f).way == PYTHON and not f.ledger.pieces and not len(f.ledger)
    told = str(f.ledger)
    assert "runs as Python up to 15 elements: 3.0 µs beside 9.0 µs compiled in pieces (5 calls each); because" in told
    assert "(line 19); as a process before this one has found" in told
    with jl.record() as recording:
        called(f, 1)
    (ran,) = recording.report().as_python
    assert ran.calls == 1 and not ran.plans and "as a process before this one" in ran.text


def test_who_asks_what_the_compiler_does_gets_it_compiled_all_the_same():
    called(defined())
    f = called(defined(), 3)
    assert trial_of(f).way == PYTHON and not len(f.ledger)
    report = jl.explain(f, X, [])
    assert report.kernels and all(cluster.calls == 1 for cluster in report.clusters) and not report.as_python
    with jl.expect(kernels=">=1", fallbacks=0):
        f(X, [])
    assert trial_of(f).way == PYTHON and trial_of(f).kept


def test_that_calls_run_compiled_is_kept_too(monkeypatch):
    plan(monkeypatch, python=90_000)
    assert trial_of(called(defined())).way == COMPILED
    plan(monkeypatch, python=1)
    f = called(defined(), 30)
    assert trial_of(f).way == COMPILED and not any(trial_of(f).times.values())


def test_a_whole_call_that_is_known_to_stay_compiled_is_served_by_c_as_others(monkeypatch):
    program = "import numpy as np\ndef f(x):\n    return np.tanh(x) * 2\n"
    plan(monkeypatch, python=90_000)
    for _ in range(2):
        f = defined(program)
        for _ in range(30):
            np.testing.assert_allclose(f(X), np.tanh(X) * 2, rtol=1e-15)
        assert trial_of(f).way == COMPILED and f.in_front._compiled
    f = defined(program)
    f(X)
    assert not f.in_front._compiled  # not in the first call


OTHERS = {
    "its code": ("y * 2", "y * 2 + 0"),
    "a helper": ("x * SCALE", "SCALE * x"),
    "a number that it reads": ("SCALE = 3", "SCALE = 3.0"),
    "a default": ("box=None", "box=0"),
    "a name": ("log.__iadd__([y.shape])", "log.__iadd__([x.shape])"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_code_finds_no_decision(what):
    called(defined())
    assert begins_with(defined(PROGRAM.replace(*OTHERS[what]))) == ""
    assert begins_with(defined()) == PYTHON


READS = """
import functools
import numpy as np

N = {n}
TABLE = np.ones({size})
def inner(x, n={n}):
    return x * n
class Box:
    def twice(self):
        return {n} * 2
    @property
    def half(self):
        return 2
bound = functools.partial(inner, n=3)
def made(k):
    def f(x, log, box=Box()):
        log.__iadd__([[{read}]])
        return np.tanh(x) * k
    return f
f = made({k})
"""


@pytest.mark.parametrize(
    ("read", "one", "other", "finds"),
    [
        ("N", {"n": 1}, {"n": 2}, False),
        ("TABLE", {"size": 10}, {"size": 1000}, False), ("TABLE", {"size": 10}, {"size": 11}, True),
        ("inner", {"n": 1}, {"n": 2}, False), ("Box", {"n": 1}, {"n": 2}, False), ("bound", {"n": 1}, {"n": 2}, False),
        ("0", {"k": 2}, {"k": 3}, False), ("0", {"k": 2}, {"k": 2}, True), ("0", {"size": 10}, {"size": 1000}, True),
        ("box.twice()", {"n": 1}, {"n": 2}, False), ("0", {"n": 1}, {"n": 2}, False),  # the default is a Box
    ],
)  # fmt: skip
def test_what_it_reads_outside_is_part_of_it(read, one, other, finds):
    def of(values):
        return defined(READS.format(**{"n": 1, "size": 10, "k": 2, **values, "read": read}))

    f = of(one)
    for _ in range(30):
        f(X, [])
    assert trial_of(f).way == PYTHON
    g, again = of(other), of(one)
    g(X, []), again(X, [])
    assert trial_of(again).way == PYTHON
    assert (trial_of(g).way == PYTHON) == finds


def test_another_kind_of_call_another_setting_and_another_option_find_none(monkeypatch):
    called(defined())
    assert begins_with(defined()) == PYTHON
    for x in (np.linspace(0, 1, 100), X[:, None]):
        f = called(defined(), 1, x)
        assert trial_of(f).way == ""
    f = defined()
    f(X.astype(np.float32), [])
    assert trial_of(f).way == ""
    assert begins_with(defined(jit_level="O0")) == ""
    with monkeypatch.context() as changed:
        changed.setattr(jl.config, "min_cluster_size", 2)
        assert begins_with(defined()) == ""
    with monkeypatch.context() as changed:
        changed.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
        assert begins_with(defined()) == ""
    assert begins_with(defined()) == PYTHON


def test_a_function_that_stands_elsewhere_says_where_it_is_now():
    called(defined())
    f = called(defined("\n\n\n\n" + PROGRAM, "elsewhere"), 1)
    assert trial_of(f).way == PYTHON and "(line 23); as" in str(f.ledger)


@pytest.mark.parametrize("setting", ["model", "off", "no cache", "no folder"])
def test_who_asks_for_no_kept_decision_neither_finds_nor_leaves_one(store, monkeypatch, setting):
    def changed():
        if setting == "no cache":
            monkeypatch.setattr(jl.config, "cache", False)
        elif setting == "no folder":
            monkeypatch.setattr(CPU, "keeps_plans", False)
        else:
            monkeypatch.setattr(jl.config, "settle", setting)

    with monkeypatch.context() as here:
        monkeypatch, outer = here, monkeypatch
        changed()
        f = called(defined())
        assert not decisions(store)
    monkeypatch = outer
    called(defined())
    assert len(decisions(store)) == 1
    changed()
    f = called(defined(), 1)
    assert not [trial for trial in f._trials.values() if trial.way]


@pytest.mark.parametrize(
    "kept",
    [
        b"", b"{", b"[]", b"null", b'{"way": "Python"}', b'{"way": "sideways", "pieces": true, "said": []}', b"\xff\xfe",
        b'{"way": "Python", "pieces": true, "said": []}',
        b'{"way": "compiled", "pieces": 1, "said": [["settled.nothing", {}]]}',
        b'{"way": "Python", "pieces": true, "said": [["settled.unheard_of", {}]]}',
        b'{"way": "Python", "pieces": true, "said": [["refused.call", {}]]}',
        b'{"way": "Python", "pieces": true, "said": [["settled.measured", {}]]}',
        b'{"way": "Python", "pieces": true, "said": [["settled.because_in_line", {"why": "x", "line": "y"}]]}',
        b'{"way": "Python", "pieces": true, "said": [[["settled"], {}]]}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_decision_says_nothing(monkeypatch, kept):
    f = called(defined())
    CPU.keep_plan(kept_decisions.form_of(f.python_function, f.options, next(iter(f._trials))), kept)
    assert begins_with(defined()) == ""


def test_a_damaged_file_is_ignored(store):
    called(defined())
    (key,) = decisions(store)
    path = Path(store.folder) / key
    path.write_bytes(path.read_bytes().replace(b'"Python"', b'"compil"'))
    assert begins_with(defined()) == "" and not path.exists()


def test_a_decision_whose_code_has_changed_meanwhile_is_not_kept(store):
    f = defined()
    called(f, 5)
    f.python_function.__globals__["helper"] = lambda x: 3 * x
    called(f, 30)
    assert trial_of(f).way == PYTHON and not decisions(store)


class Touchy:
    """Nobody looks at it but the program."""

    def __getattr__(self, name):
        raise AssertionError(f"somebody asks for {name}")

    def __repr__(self):
        raise AssertionError("somebody wants its text")

    __hash__ = __eq__ = __bool__ = __len__ = __iter__ = __repr__


def test_looking_for_a_decision_runs_none_of_the_programs_code_and_few_calls():
    touchy, names = Touchy(), {}
    exec(compile(PROGRAM, "<a program>", "exec"), names)
    names.update(np=np, SCALE=touchy, helper=names["helper"])
    f = jl.jit(names["f"])
    kind = settling.kind_of_call((X, [], touchy), {})
    calls = []

    def profile(frame, event, argument):
        if event == "call":
            calls.append(frame.f_code)

    form = kept_decisions.form_of(f.python_function, f.options, kind)
    sys.setprofile(profile)
    try:
        assert kept_decisions.form_of(f.python_function, f.options, kind) == form != b""
    finally:
        sys.setprofile(None)
    assert not [code for code in calls if code.co_filename == __file__ and code is not profile.__code__]
    assert len(calls) < 150, len(calls)


def test_what_would_take_long_to_look_into_has_no_decision(store):
    def chain(length):
        inner = "".join(f"def g{n}(x): return g{n - 1}(x)\n" for n in range(1, length))
        return defined(f"def g0(x): return x\n{inner}def f(x): return g{length - 1}(x)\n").python_function

    assert kept_decisions.form_of(chain(200), None, ()) == b""
    assert kept_decisions.form_of(chain(90), None, ()) != kept_decisions.form_of(chain(91), None, ()) != b""


TWO = """
import sys
import numpy as np
import jitlab as jl
from jitlab.api import settling
from jitlab.api.functions import jit as jit_module

jit_module._is_measurable = lambda: True
now, tried = [0], settling.tried
settling.clock = settling.busy_clock = lambda: now[0]

def timed(way, call):
    def run():
        result = call()
        now[0] += 3000 if way == "Python" else 9000
        return result
    return run

settling.tried = lambda trial, ways, is_ready: tried(trial, {w: timed(w, c) for w, c in ways.items()}, is_ready)

@jl.jit
def f(x, log):
    y = np.tanh(x) + 1
    log.append(len(log))
    return y * 2

for n in range(int(sys.argv[1])):
    log = []
    f(np.ones(5), log)
    assert log == [0]
(trial,) = f._trials.values()
print(trial.way or "undecided", len(f.ledger.pieces))
"""


@pytest.mark.slow
def test_two_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(TWO)
    root = Path(__file__).parents[2]
    environment = os.environ | {"JITLAB_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(root)}
    environment["JITLAB_SETTLE"] = "measure"

    def run(times):
        done = subprocess.run([sys.executable, script, str(times)], env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert run(1) == ["undecided", "2"]
    assert run(30) == ["Python", "2"]
    assert run(1) == ["Python", "0"]
    script.write_text(TWO.replace("y * 2", "y * 3"))
    assert run(1) == ["undecided", "2"]
