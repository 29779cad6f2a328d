"""Threads share a trace, and see no recording but their own."""

from __future__ import annotations

import threading
import time

import numpy as np

import jitlab as jl


def test_threads_share_one_trace():
    def body(x):
        time.sleep(0.02)
        return x * 2

    f = jl.function(body)
    results, errors = [], []

    def work():
        try:
            results.append(f(np.ones(3)).sum())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [6.0] * 8 and not errors and f.experimental_get_tracing_count() == 1


def test_traces_in_other_threads_do_not_see_this_capture():
    outcome = []

    def body(x):
        thread = threading.Thread(target=lambda: outcome.append(np.ones(2) + 1))
        thread.start()
        thread.join()
        return x

    jl.function(body)(np.ones(2))
    assert isinstance(outcome[0], np.ndarray)


def test_functions_that_call_one_another_are_traced_from_both_ends():
    start = threading.Barrier(2)

    @jl.function
    def even(x, n):
        time.sleep(0.01)
        return x if n == 0 else odd(x + 1, n - 1)

    @jl.function
    def odd(x, n):
        time.sleep(0.01)
        return x if n == 0 else even(x + 1, n - 1)

    results = []

    def work(function):
        start.wait()
        results.append(function(np.zeros(2), 5).tolist())

    threads = [threading.Thread(target=work, args=(f,), daemon=True) for f in (even, odd)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [[5, 5]] * 2
