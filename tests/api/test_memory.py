"""What a function keeps: traces least-recently-used, no arguments, nothing of traces that made room."""

from __future__ import annotations

import gc
import weakref

import numpy as np

import jitlab as jl


def test_arguments_are_not_kept_alive():
    f = jl.function(lambda x: x * 2)
    x = np.ones(1000)
    f(x)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_oldest_traces_are_forgotten(monkeypatch):
    monkeypatch.setattr(jl.config, "max_traces", 2)
    f = jl.function(lambda x, k: x * k)
    x = np.ones(1)
    f(x, 1), f(x, 2), f(x, 1), f(x, 3)
    assert f.experimental_get_tracing_count() == 3
    f(x, 1)
    assert f.experimental_get_tracing_count() == 3
    f(x, 2)
    assert f.experimental_get_tracing_count() == 4
