"""§3.6 Threads share a trace, and see no recording but their own."""

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
