"""A call that ends early leaves its function and its thread as they were; threads share one trace; `del f` frees at once."""

import contextlib
import faulthandler
import gc
import os
import subprocess
import sys
import threading
import traceback
import warnings
import weakref
from collections import OrderedDict

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.capture import CallCapture, current_capture
from jitlab.capture.rewrite import cell_code
from jitlab.runtime import executable
from jitlab.support import locks, transactions
from jitlab.support.transactions import Whole
from jitlab.targets.cpu_llvm.calls.buffers import POOLED_BYTES, _Lease, pool
from tests.cell_runs import run_cell

BOTH = pytest.mark.parametrize("how", [jl.function, jl.jit, jl.jit(capture_mode="trace")], ids=["function", "jit", "path"])


def ended(*_, **__):
    raise KeyboardInterrupt


STAGES = [
    "jitlab.compile.run_passes", "jitlab.compile.cluster", "jitlab.compile.Executable",
    "jitlab.lower.memory.stages_of", "jitlab.ir.plans.lowered.texts_of", "jitlab.runtime.executable.compiled",
    "jitlab.targets.cpu_llvm.cpu_target.ContextLauncher", "jitlab.api.retraces.ledger.patterns",
    "jitlab.api.retraces.ledger.Ledger._tell",
]  # fmt: skip


@BOTH
@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_in_a_stage_leaves_a_function_that_was_never_traced(how, stage, monkeypatch):
    f = how(lambda x: np.sin(x) + x.sum())
    x = np.arange(4.0)
    with events.listen(lambda event: None):
        monkeypatch.setattr(stage, ended)
        with pytest.raises(KeyboardInterrupt):
            f(x)
        monkeypatch.undo()
        assert not events.busy.word.value - events.busy.listeners
        assert current_capture() is None
        for size in (4, 4, 9):
            np.testing.assert_allclose(f(np.arange(float(size))), np.sin(np.arange(size)) + np.arange(size).sum())
    assert f.experimental_get_tracing_count() == 2
    assert len(f.ledger) == 2


@BOTH
def test_an_interrupt_while_a_known_function_is_traced_again_keeps_what_it_knew(how, monkeypatch):
    f = how(lambda x: np.sin(x) * 2)
    f(np.ones(3))
    monkeypatch.setattr("jitlab.compile.cluster", ended)
    with pytest.raises(KeyboardInterrupt):
        f(np.ones(5))
    monkeypatch.undo()
    assert f.experimental_get_tracing_count() == len(f.ledger) == 1
    f(np.ones(3))
    f(np.ones(5))
    assert f.experimental_get_tracing_count() == len(f.ledger) == 2


@BOTH
def test_threads_that_make_the_first_call_together_trace_once(how):
    @how
    def smooth(a):
        b = np.empty_like(a)
        b[0] = a[0]
        for i in range(1, a.shape[0]):
            b[i] = 0.5 * b[i - 1] + 0.5 * a[i]
        return b

    barrier = threading.Barrier(6)

    def go():
        x = np.arange(200.0)
        barrier.wait()
        smooth(x)

    threads = [threading.Thread(target=go) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert smooth.experimental_get_tracing_count() == len(smooth.ledger) == 1


@BOTH
@pytest.mark.parametrize("calls", [0, 1, 12])
def test_a_function_goes_with_its_last_name(how, calls):
    gc.collect()
    gc.disable()
    try:
        f = how(lambda x: np.sin(x) + 1)
        for n in range(calls):
            f(np.ones(3))
            f(np.ones(3 + n % 3))
        gone = weakref.ref(f)
        code = [weakref.ref(e) for e in executable._live.values() if e.function == f.name]
        assert bool(code) == bool(calls)
        del f
        assert gone() is None
        assert all(made() is None for made in code)
    finally:
        gc.enable()


def test_a_concrete_function_outlives_the_name_of_its_function():
    f = jl.function(lambda x: x * 2)
    concrete = f.get_concrete_function(jl.TensorSpec([None], np.float64))
    del f
    gc.collect()
    assert list(concrete(np.ones(2))) == [2, 2]


def test_a_lease_that_an_interrupt_left_half_made_goes_in_silence(recwarn):
    lease = _Lease.__new__(_Lease)
    del lease
    gc.collect()
    assert not recwarn.list


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
class TestForks:
    """What a child finds of what its parent was in the midst of."""

    def child(self, action):
        """What `action` gives in a forked child, as text."""
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            faulthandler.dump_traceback_later(60, exit=True)
            try:
                told = repr(action())
            except BaseException:
                told = traceback.format_exc()
            os.write(writing, told.encode())
            os._exit(0)
        os.close(writing)
        with open(reading) as file:
            told = file.read()
        os.waitpid(pid, 0)
        return told

    def held(self, *entered):
        """A thread that stays inside of these until the event is set."""
        inside, leave = threading.Event(), threading.Event()

        def hold():
            with contextlib.ExitStack() as stack:
                for context in entered:
                    stack.enter_context(context)
                inside.set()
                leave.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait(60)
        return thread, leave

    def test_locks_of_objects_are_free_in_the_child(self):
        f = jl.function(lambda x: np.sin(x) * 3)
        g = jl.jit(lambda x: np.sin(x) * 3)
        f(np.ones(2))
        g(np.ones(2))
        (made,) = (e for e in executable._live.values() if e.function == f.name)
        thread, leave = self.held(f._lock, f._table, g._lock, made._lock, pool._lock, events.busy)
        try:
            large = POOLED_BYTES // 8
            found = self.child(lambda: (float(f(np.zeros(large)).sum() + g(np.zeros(7)).sum()), events.busy.word.value))
            assert found == "(0.0, 0)"
        finally:
            leave.set()
            thread.join()

    @pytest.mark.parametrize("name", sorted(locks._shared))
    def test_a_fork_waits_for_a_lock_of_the_process(self, name):
        """Else the child would find what it protects half changed, and the lock taken for ever."""
        lock = locks._shared[name]
        taken, free = threading.Event(), threading.Event()

        def hold():
            lock.acquire()
            taken.set()
            free.wait(60)
            order.append("free")
            lock.release()

        order, f = [], jl.function(lambda x: np.cos(x) - 1)
        thread = threading.Thread(target=hold)
        thread.start()
        taken.wait(60)
        threading.Timer(0.05, free.set).start()
        assert self.child(lambda: (order, float(f(np.zeros(3)).sum()))) == "(['free'], 0.0)"
        thread.join()

    def test_what_another_thread_was_tracing_is_not_half_there(self, monkeypatch):
        f = jl.function(lambda x: np.sin(x) * 5)
        f(np.ones(2))
        reached, leave = threading.Event(), threading.Event()

        def stop(*_):
            if not reached.is_set():
                reached.set()
                leave.wait(60)

        monkeypatch.setattr("jitlab.api.retraces.ledger.Ledger._tell", stop)  # the last step of all
        with events.listen(lambda event: None):
            thread = threading.Thread(target=f, args=(np.ones(3),))
            thread.start()
            reached.wait(60)
            count = self.child(lambda: (f.experimental_get_tracing_count(), len(f.ledger), float(f(np.zeros(3)).sum())))
            leave.set()
            thread.join()
        assert count == "(1, 1, 0.0)"

    @pytest.mark.parametrize("where", ["Segment.with_steps", "Statement.split", "Statement._of_step", "CellProgram.segment_of"])
    @pytest.mark.parametrize("number", range(3))
    def test_a_cell_that_another_thread_was_in_the_midst_of_runs_whole(self, where, number, monkeypatch):
        reached, leave = threading.Event(), threading.Event()
        kind, name = where.split(".")
        real, calls = getattr(getattr(cell_code, kind), name), []

        def stop(*args, **kwargs):
            found = real(*args, **kwargs)
            calls.append(args)
            if len(calls) == number + 1:
                reached.set()
                leave.wait(60)
            return found

        source = "y = np.sin(x) * 2\nseen = [complex(y[0])]\nr = [complex(np.exp(y)[0]), len(seen)]\nfor i in r[:]: r.append(i)"
        x = np.arange(1.0, 4.0)
        namespace, plain = {"np": np, "x": x}, {"np": np, "x": x}
        exec(source, plain)
        monkeypatch.setattr(getattr(cell_code, kind), name, stop)
        thread = threading.Thread(target=run_cell, args=(source, namespace, "<a cell of a thread>"))
        thread.start()
        thread.join(0.01)
        while thread.is_alive() and not reached.wait(0.01):
            pass

        def again():
            run_cell(source, namespace, "<a cell of a thread>")
            return namespace["r"] == plain["r"], [name for name in namespace if name.startswith("__jl_")]

        assert self.child(again) == "(True, [])"
        leave.set()
        thread.join()
        assert namespace["r"] == plain["r"]

    def test_a_child_tells_nothing_to_who_is_in_the_parent_alone(self):
        f, heard = jl.function(lambda x: np.sin(x) * 7), []
        events.add_listener(heard.append, in_children=False)
        try:
            found = self.child(lambda: (float(f(np.zeros(3)).sum()), heard, events.active(), events.busy.word.value))
        finally:
            events.remove_listener(heard.append)
        assert found == "(0.0, [], False, 0)"


def test_a_process_that_ends_with_functions_alive_says_nothing(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, numpy as np, jitlab as jl\n"
        "kept = [jl.function(lambda x: np.sin(x) * 3), jl.jit(lambda x: x + 1)]\n"
        "for f in kept * 7: f(np.ones(3))\n"
        "str(kept[0].check(np.ones(3)))\n"
        "sys.modules['kept by something that goes last'] = kept\n"
    )
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert found.stderr == ""


def test_a_fork_takes_our_locks_before_those_of_the_standard_library():
    """A thread that compiles holds ours while it hands work to a pool, whose lock a fork takes, too."""
    program = (
        "import os\n"
        "order, real = [], os.register_at_fork\n"
        "def register(**hooks):\n"
        "    if 'before' in hooks: order.append(hooks['before'].__module__ or '')\n"
        "    real(**hooks)\n"
        "os.register_at_fork = register\n"
        "import jitlab, logging, concurrent.futures.thread\n"
        "print(order[-1])\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "jitlab.support.locks"


@pytest.mark.parametrize("what", ["muted", "recording"])
def test_what_an_interrupt_left_open_is_not_ended_once_more_by_the_collector(what):
    before = events.busy.word.value
    manager = events.muted() if what == "muted" else CallCapture("f", strict=False).recording()
    with pytest.raises(KeyboardInterrupt), Whole():
        manager.__enter__()
        raise KeyboardInterrupt  # as at the first step of its `__exit__`
    assert events.busy.word.value == before
    with CallCapture("g", strict=False).recording() as capture:  # other work by then
        del manager
        gc.collect()
        assert current_capture() is capture
        assert events.busy.word.value == before + 1
    assert events.busy.word.value == before


@pytest.mark.parametrize("where", ["Segment.with_steps", "Statement.split", "Statement.converted"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_cell_that_was_interrupted_while_it_is_taken_apart_runs_whole_again(where, error, monkeypatch):
    source = "y = np.sin(x) * 2\nseen = [float(y[0])]\nr = [float(np.exp(y)[0]), len(seen)]\nz = y + r[0]"
    kind, name = where.split(".")
    real, calls = getattr(getattr(cell_code, kind), name), []

    def once(*args):
        calls.append(args)
        found = real(*args)
        if len(calls) == 2:
            raise error
        return found

    x = np.arange(1.0, 4.0)
    namespace = {"np": np, "x": x}
    monkeypatch.setattr(getattr(cell_code, kind), name, once)
    with contextlib.suppress(error):
        run_cell(source, namespace, "<a cell that is interrupted>")
    monkeypatch.undo()
    plain = {"np": np, "x": x}
    exec(source, plain)
    for _ in range(3):
        run_cell(source, namespace, "<a cell that is interrupted>")
        np.testing.assert_allclose(namespace["z"], plain["z"])
        assert namespace["r"] == plain["r"] and len(namespace["seen"]) == 1


def test_what_could_not_be_left_is_not_left_once_more_by_the_collector():
    """No memory for the step that leaves it: the generator behind `contextmanager` is still where it was."""

    def profile(frame, event, argument):
        if event == "c_call" and argument is next:
            raise MemoryError

    before = events.busy.word.value
    with pytest.raises(MemoryError), Whole(), events.muted():
        sys.setprofile(profile)
    sys.setprofile(None)
    gc.collect()
    assert events.busy.word.value == before


def test_a_table_is_copied_while_calls_of_other_threads_move_what_they_run_to_the_end():
    table = OrderedDict((number, [number]) for number in range(5))

    def another(*_):
        table.move_to_end(next(iter(table)))
        return another

    before = sys.gettrace()
    sys.settrace(lambda frame, *_: another if frame.f_code is transactions._copied.__code__ else None)  # at each line
    try:
        made = transactions._copied(table)
    finally:
        sys.settrace(before)
    assert {**made} == {number: [number] for number in range(5)} and not any(made[n] is table[n] for n in made)


def test_threads_may_ask_for_forms_of_a_cluster_while_others_make_them():
    f = jl.function(lambda x: np.sin(x) + x[::-1])
    f(np.ones((3, 3)))
    (made,) = (e for e in executable._live.values() if e.function == f.name)
    (key,) = made._variants

    class Asked(str):
        """A name that others' forms are made beside."""

        def __eq__(self, other):
            made._variants[f"other {len(made._variants)}", (), frozenset()] = None  # another form
            made._variants[key[0], ("F",), frozenset()] = made._variants[key]  # and the one that is asked for
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    made.clustering.clusters[0].name = Asked(key[0])
    for layout in (np.asfortranarray, np.ascontiguousarray):
        f(layout(np.ones((3, 3))))
