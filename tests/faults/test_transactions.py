"""A call that ends early leaves its function and its thread as they were; threads share one trace; `del f` frees at once."""

import gc
import threading
import weakref

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.capture import current_capture
from jitlab.runtime import executable
from jitlab.runtime.buffers import _Lease

BOTH = pytest.mark.parametrize("how", [jl.function, jl.jit, jl.jit(capture_mode="trace")], ids=["function", "jit", "path"])


def ended(*_, **__):
    raise KeyboardInterrupt


STAGES = [
    "jitlab.api.stages.run_passes", "jitlab.api.stages.cluster", "jitlab.api.stages.Executable",
    "jitlab.runtime.executable.lower", "jitlab.runtime.executable.texts_of", "jitlab.runtime.executable.compiled",
    "jitlab.runtime.executable.make_variant", "jitlab.api.ledger.patterns", "jitlab.api.ledger.Ledger._tell",
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
    monkeypatch.setattr("jitlab.api.stages.cluster", ended)
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
        code = [weakref.ref(e) for e in executable._live if e.function == f.name]
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
