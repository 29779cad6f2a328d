"""Loops that threads do together: the same bits for any number of them, errors and interrupts as with one, forks, ends."""

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.cluster import cluster
from jitlab.compile import runnable
from jitlab.errors import OptionError
from jitlab.runtime.compiled import forget_compiled
from jitlab.targets.cpu_llvm.calls import launcher
from jitlab.targets.cpu_llvm.calls.context import ALONE, DONE, FAILED, PAUSED, ContextLayout
from jitlab.targets.cpu_llvm.emit import codegen
from jitlab.targets.cpu_llvm.threads import cut_phases, pool, pool_code, processors
from jitlab.targets.llvm.program_phases import phases_of
from tests.runtime.compiling import graph_of
from tests.runtime.random_graphs import random_graph
from tests.runtime.test_compiled_operations import layouts, samples

sys.path.insert(0, str(Path(__file__).parent))
from one_kernel import equal  # noqa: E402
from test_quick import PROGRAMS, SHAPES  # noqa: E402

COUNTS = (1, 2, 3, 5)
X = np.random.default_rng(3).standard_normal((37, 41))


@pytest.fixture(autouse=True)
def shares_at_once(monkeypatch):
    """Two threads; the code that runs first has regions, as the good tier's."""
    monkeypatch.setattr(jl.config, "threads", 2)
    monkeypatch.setattr(codegen, "quick_module_for", codegen.module_for)
    forget_compiled()


@pytest.fixture
def cut(monkeypatch):
    """Every loop that may be is cut, into pieces of one iteration."""
    for name in ("LEAST_NS", "PIECE_NS", "LONG_PIECE_NS", "VECTORS"):
        monkeypatch.setattr(cut_phases, name, 1)


def regions():
    """How many there were."""
    return pool._pool().word(pool_code.OPENED).value


def with_threads(count, run):
    jl.config.threads = count
    before = regions()
    result = run()
    return result, regions() - before


def same_bits(run):
    """How many loops were cut; all counts of threads give the same."""
    wanted, none = with_threads(1, run)
    assert none == 0
    for count in COUNTS[1:]:
        found, some = with_threads(count, run)
        assert all(equal(np.asarray(a), np.asarray(b)).all() for a, b in zip(found, wanted, strict=True)), count
    return some


# ---- the same bits


@pytest.mark.long
@pytest.mark.parametrize(("op", "arrays"), list(samples()))
def test_operations_give_the_same_bits(op, arrays, cut):
    code = runnable(cluster(graph_of(op, *arrays), jit_compile=True))
    for given in layouts(arrays):
        same_bits(lambda given=given: code.run(given))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_give_the_same_bits(program, cut):
    rng, f, some = np.random.default_rng(5), jl.function(program), 0
    for shape in [*SHAPES[-4:], (150_000,)]:  # a whole sum is one of blocks
        x = rng.normal(size=shape)
        f(x)
        some += same_bits(lambda x=x: f(x))
    assert some


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 400, 10))
def test_random_programs_give_the_same_bits(first, cut):
    for seed in range(first, first + 10):
        graph, arguments = random_graph(seed)
        code = runnable(cluster(graph, jit_compile=True))
        same_bits(lambda code=code, arguments=arguments: code.run(arguments))


def test_large_arrays_are_cut_as_they_are_and_small_ones_are_not():
    f = jl.function(lambda x: (np.exp(x) / 2, np.tanh(x).sum(axis=0), np.sin(x).sum(), np.exp(x).sum(axis=1)))
    x = np.random.default_rng(1).standard_normal((700, 800))
    f(x), f(X)
    assert same_bits(lambda: f(x)) >= 3
    assert same_bits(lambda: f(X)) == 0


def test_an_argument_that_is_changed_in_place(cut):
    @jl.jit
    def f(x):
        x *= 2
        x += np.sin(x)
        x[1:-1] = x[2:] + x[:-2]
        return x.sum()

    given = []

    def run():
        given[:] = [X.copy()]
        return f(given[0]), given[0]

    run()
    assert same_bits(run)


# ---- errors, interrupts


def chosen_rows(x, i, j):
    return np.exp(x[i]).sum(axis=1) + x[j].sum(axis=1)


@pytest.mark.parametrize("count", COUNTS)
def test_the_first_error_is_raised(count, cut):
    i, j = np.arange(37), np.arange(37)
    i[30], j[3] = 99, 77
    f = jl.function(chosen_rows)
    assert with_threads(count, lambda: f(X, np.arange(37), np.arange(37)))[1] == (count > 1)
    for _ in range(20):
        for given, number in (((i, j), 99), ((j, i), 77), ((j, j), 77)):
            with pytest.raises(IndexError, match=f"index {number} is out of bounds"):  # as in NumPy
                f(X, *given)


def test_a_loop_rests_between_pieces_and_goes_on(cut, monkeypatch):
    monkeypatch.setattr(launcher, "BUDGET", 0)
    f = jl.function(lambda x: (np.exp(x), np.cumsum(x, axis=1), np.exp(x).sum(axis=1)))
    x = np.random.default_rng(2).standard_normal((20_000, 3))
    wanted, none = with_threads(1, lambda: f(x))
    for _ in range(10_000):  # until one is opened again, as something is left after the first piece
        found, some = with_threads(3, lambda: f(x))
        assert all(equal(a, b).all() for a, b in zip(found, wanted, strict=True))
        if some > 2:
            break
    assert some > 2 and none == 0


# ---- the pool itself

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def region(function, end, piece, *, at=0, rows=0, budget=2**63 - 1):
    """What a region returns for a function of Python's, where it would go on, and how many threads helped."""
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 3
    open_region = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(pool._pool().word(pool_code.REGION).value)
    context, code, cut = np.zeros(20, np.int64), FUNCTION(function), (ctypes.c_int64 * 2)(piece, 0)
    context[ContextLayout.RESUME_AT], context[ContextLayout.ROWS] = at, rows
    given = ctypes.cast(code, ctypes.c_void_p), context.ctypes.data, ctypes.addressof(cut)
    status = open_region(pool.address(), *given, end, 0, budget)
    return status, context[ContextLayout.RESUME_AT], cut[1]


def test_a_thread_helps_each_piece_is_done_once_and_rows_are_its_own():
    pieces, rows_of, second = [], {}, threading.Event()

    def function(context, low, high, rows):
        pieces.append((low, high))
        rows_of[rows] = threading.get_native_id()
        if len({*rows_of.values()}) > 1:
            second.set()
        assert second.wait(60)  # nobody goes on until another thread is there
        return DONE

    assert region(function, 103, 10, rows=4096) == (DONE, 0, 1)
    assert sorted(pieces) == [(low, min(low + 10, 103)) for low in range(0, 103, 10)]
    assert len(rows_of) == 2 and None in rows_of
    assert not any(row and row % 128 for row in rows_of)


def test_the_caller_does_not_wait_for_threads_that_have_not_begun():
    busy, all_busy, go_on, held, threads = [], threading.Event(), threading.Event(), [], set()
    jl.config.threads = max(pool.helpers(), 2) + 1  # as many as there are

    def slow(context, low, high, rows):
        if rows is not None:
            busy.append(rows)
            if len(busy) == jl.config.threads - 1:
                all_busy.set()
            assert go_on.wait(60)
        else:
            assert all_busy.wait(60)
        return DONE

    holder = threading.Thread(target=lambda: held.append(region(slow, 100, 1)))
    holder.start()
    assert all_busy.wait(60)  # all threads of the pool are held there
    assert region(lambda *_: threads.add(threading.get_native_id()) or DONE, 50, 1) == (DONE, 0, 0)
    assert threads == {threading.get_native_id()}
    go_on.set()
    holder.join()
    assert held == [(DONE, 0, jl.config.threads - 1)]


def test_the_first_piece_that_fails_counts():
    for _ in range(20):
        status, _, _ = region(lambda context, low, high, rows: FAILED + low if low in (40, 70, 20) else DONE, 100, 10)
        assert status == FAILED + 20


def test_a_region_inside_a_region():
    def outer(context, low, high, rows):
        inner = []
        assert region(lambda context, low, high, rows: inner.append(low) or DONE, 20, 1)[0] in (DONE, ALONE)
        return DONE if sorted(inner) in ([*range(20)], []) else FAILED

    assert region(outer, 10, 1)[0] == DONE


def test_where_it_rests_all_pieces_before_are_done():
    done = []
    status, at, _ = region(lambda context, low, high, rows: done.append(low) or DONE, 10**8, 10, budget=0)
    assert status == PAUSED and sorted(done) == [*range(0, at, 10)] and at > 0
    assert region(lambda context, low, high, rows: done.append(low) or DONE, int(at) + 100, 10, at=at)[0] == DONE
    assert sorted(done) == [*range(0, at + 100, 10)]


def test_one_piece_or_one_thread_is_no_region():
    assert region(lambda *_: DONE, 10, 10)[0] == ALONE
    jl.config.threads = 1
    assert region(lambda *_: DONE, 100, 10)[0] == ALONE


def test_four_threads_of_the_user(cut):
    f = jl.function(lambda x: (np.exp(x - x.max(axis=1, keepdims=True)), x.sum(), x.sum(axis=0)))
    inputs = [X + k for k in range(4)]
    f(X)
    jl.config.threads = 1
    wanted, wrong = [f(x) for x in inputs], []
    jl.config.threads = 3

    def go(k):
        for _ in range(200):
            if not all(equal(a, b).all() for a, b in zip(f(inputs[k]), wanted[k], strict=True)):
                wrong.append(k)

    users = [threading.Thread(target=go, args=(k,)) for k in range(4)]
    for user in users:
        user.start()
    for _ in range(50):
        jl.config.threads = 1 + _ % 4
    for user in users:
        user.join()
    assert not wrong


# ---- processes

BEFORE = """
import os, sys, signal, threading, warnings
import numpy as np
import jitlab as jl
warnings.simplefilter("ignore")
from jitlab.targets.cpu_llvm.emit import codegen
codegen.quick_module_for = codegen.module_for
f = jl.function(lambda x: (np.exp(x), np.tanh(x).sum(), np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1)))
x = np.random.default_rng(0).standard_normal((800, 900))
jl.config.threads = 1
wanted = f(x)
from jitlab.targets.cpu_llvm.threads import pool
assert pool.helpers() == 0
jl.config.threads = 3
def is_right():
    return all((a == b).all() for a, b in zip(f(x), wanted))
"""


def run(code, **variables):
    return subprocess.run(
        [sys.executable, "-c", BEFORE + code], capture_output=True, text=True, timeout=300, env={**os.environ, **variables}
    )


def test_a_child_starts_threads_of_its_own():
    ended = run("""
assert is_right() and pool.helpers() == 2
stop = threading.Event()
busy = threading.Thread(target=lambda: [f(x) for _ in iter(stop.is_set, True)])
busy.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        assert pool.helpers() == 0
        right = is_right() and pool.helpers() == 2 and is_right()
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(0 if is_right() and pool.helpers() == 2 else 1)
        os._exit(0 if right and os.waitpid(grandchild, 0)[1] == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert is_right()
stop.set()
busy.join()
print("ended", is_right())
""")
    assert ended.stdout == "ended True\n", ended.stderr


def test_a_process_ends_while_threads_are_busy():
    ended = run("""
import atexit
atexit.register(lambda: print("still", is_right(), pool.helpers()))  # after the pool has ended
def go():
    while True:
        f(x)
for _ in range(2):
    threading.Thread(target=go, daemon=True).start()
print("right", is_right())
""")
    assert (ended.stdout, ended.returncode) == ("right True\nstill True 2\n", 0), ended.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_no_thread_of_the_pool_takes_signals():
    ended = run("""
assert is_right() and pool.helpers() == 2
def blocked(task, number):
    return bool(int(open(f"/proc/self/task/{task}/status").read().split("SigBlk:")[1].split()[0], 16) & 1 << number - 1)
others = {int(task) for task in os.listdir("/proc/self/task")} - {t.native_id for t in threading.enumerate()}
ours = [task for task in others if blocked(task, signal.SIGALRM)]  # NumPy's BLAS has threads, too
import time
end = time.monotonic() + 20
while any(blocked(task, signal.SIGSEGV) for task in ours) and time.monotonic() < end:
    time.sleep(0.01)  # while a thread begins, the C library blocks all of them
print(len(ours), any(blocked(task, signal.SIGSEGV) for task in ours), blocked(os.getpid(), signal.SIGALRM))
""", OPENBLAS_NUM_THREADS="1")
    assert ended.stdout == "2 False False\n", ended.stderr


# ---- how many


def test_settings_and_variables(monkeypatch):
    monkeypatch.setattr(processors, "granted", lambda: 6)
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    monkeypatch.delenv("JITLAB_NUM_THREADS", raising=False)
    allowed = pool._pool().word(pool_code.ALLOWED)
    for variable, setting, wanted in (("", 0, 3), ("4", 0, 4), ("4", 7, 7), ("no", 0, 3), ("0", 0, 3)):
        monkeypatch.setenv("JITLAB_NUM_THREADS", variable)
        jl.config.threads = setting
        assert allowed.value == wanted
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    jl.config.threads = 0
    assert allowed.value == 6
    with pytest.raises(OptionError, match="least value is 0"):
        jl.config.threads = -1
    with pytest.raises(OptionError, match="of type int"):
        jl.config.threads = "2"


def test_the_limit_of_blas_holds_where_nothing_is_said(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("JITLAB_NUM_THREADS", raising=False)
    one, two = (ctypes.CFUNCTYPE(ctypes.c_int32)(lambda n=n: n) for n in (1, 2))
    for function, setting, wanted in ((one, 0, ALONE), (two, 0, DONE), (one, 2, DONE)):
        monkeypatch.setattr(pool, "threads_address", lambda f=function: ctypes.cast(f, ctypes.c_void_p).value)
        jl.config.threads = setting
        assert region(lambda *_: DONE, 100, 10)[0] == wanted


def test_the_quota_of_control_groups(tmp_path):
    def group(path, text):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
        (tmp_path / path / "cpu.max").write_text(text)

    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    assert processors._quota(str(tmp_path), str(own)) == 0
    group("a/b", "max 100000\n")
    assert processors._quota(str(tmp_path), str(own)) == 0
    group("a", "250000 100000\n")
    assert processors._quota(str(tmp_path), str(own)) == 3
    group("a/b", "150000 100000\n")
    assert processors._quota(str(tmp_path), str(own)) == 2
    assert processors._quota(str(tmp_path), str(tmp_path / "none")) == 0
    own.write_text("5:memory:/a\n4:cpu,cpuacct:/c\n")
    (tmp_path / "cpu/c").mkdir(parents=True)
    (tmp_path / "cpu/c/cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu/c/cpu.cfs_period_us").write_text("100000\n")
    assert processors._quota(str(tmp_path), str(own)) == 0
    (tmp_path / "cpu/c/cpu.cfs_quota_us").write_text("50000\n")
    assert processors._quota(str(tmp_path), str(own)) == 1


# ---- what is said


@pytest.mark.parametrize(("function", "argument", "code"), [
    (lambda x: np.tanh(x) * 2, np.ones(1_000_000), "cut"),
    (lambda x: np.tanh(x) * 2, np.ones(1000), None),
    (lambda x: np.cumsum(np.tanh(x)), np.ones(1_000_000), "once"),
    (lambda x: x @ x, np.ones((600, 600)), "library"),
])  # fmt: skip
def test_the_report_says_why_a_kernel_runs_on_one_thread(function, argument, code):
    function = jl.function(function)
    (kernel,) = jl.explain(function, argument).to_json()["kernels"]
    said = kernel.get("threads")
    assert (said and said["code"]) == code
    if code == "cut":
        assert said["args"] == {"threads": 2, "pieces": said["args"]["pieces"]} and said["args"]["pieces"] > 8
        assert said["text"] == f"on up to 2 threads, in {said['args']['pieces']} pieces"


def test_a_loop_of_one_iteration_is_not_cut():
    trace = jl.function(PROGRAMS[0])._replayable((X,), {})[0]  # softmax of rows
    (cluster,) = trace.executable.clustering.clusters
    (phase,) = phases_of(trace.executable._lowered(cluster, ("C",), frozenset()).program)
    assert [cut_phases.cut_of(phase, {"n0": n, "n1": 10**6}, False).why for n in (1, 2)] == ["few", ""]
    assert cut_phases.cut_of(phase, {"n0": 30, "n1": 41}, False).why == "small"


def test_one_thread_is_said():
    jl.config.threads = 1
    report = jl.explain(jl.function(lambda x: np.tanh(x) + 1), np.ones(1_000_000))
    assert report.to_json()["kernels"][0]["threads"]["code"] == "one"


def test_a_loop_of_the_program_is_not_cut():
    def f(x):
        for i in range(1, x.shape[0]):
            x[i] = x[i - 1] * 0.5 + x[i]
        return x

    (kernel,) = jl.explain(jl.jit(f), np.ones(1_000_000)).to_json()["kernels"]
    assert kernel["threads"]["text"] == "on one thread: a loop of the program's goes from turn to turn"
