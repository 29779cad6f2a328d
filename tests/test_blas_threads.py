"""BLAS runs on one thread where that is asked for, and on as many as before afterwards."""

import numpy as np
import pytest

from jitlab.api.check.replaying import Took
from jitlab.notebook.magics import blas_threads as blas
from jitlab.notebook.magics.blas_threads import blas_threads, on_one_thread

MS = 1_000_000


def test_numpys_own_blas_runs_on_one_thread_inside():
    before = blas_threads()
    with on_one_thread():
        assert blas_threads() == min(before, 1)
        np.ones((300, 300)) @ np.ones((300, 300))
    assert blas_threads() == before
    with pytest.raises(ValueError), on_one_thread():
        raise ValueError
    assert blas_threads() == before


def test_another_blas_is_left_alone(monkeypatch):
    monkeypatch.setattr(blas, "_functions", lambda: None)
    assert blas_threads() == 0
    with on_one_thread():
        assert blas_threads() == 0


@pytest.mark.parametrize(
    ("clock", "process", "thread", "ns"),
    [
        (10, 10, 10, 10),
        (10, 4, 4, 4),  # other programs had the processor
        (10, 19, 9, 10),  # two threads
        (10, 9, 4, 10),  # two threads, beside other programs
        (10, 11, 10, 10),
        (10, 0, 0, 10),  # a system that does not tell
    ],
)
def test_the_clock_counts_where_several_threads_worked_else_the_processor(clock, process, thread, ns):
    assert Took(clock * MS, process * MS, thread * MS).ns() == ns * MS


def test_all_runs_of_a_comparison_have_one_clock():
    one = Took(10 * MS, 4 * MS, 4 * MS)
    assert (one.ns(), one.ns(by_clock=True)) == (4 * MS, 10 * MS)
    assert (one + Took(10 * MS, 40 * MS, 5 * MS)).is_of_threads
