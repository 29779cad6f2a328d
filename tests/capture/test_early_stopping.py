"""A loop that is left from within one side of an `if` whose other side assigns what nothing behind it reads."""

import numpy as np
import pytest

import jitlab as jl


def stops(x, patience=3):
    best, wait = float("inf"), 0
    for k in range(30):
        loss = np.abs(x - k).sum()
        if loss < best:
            best, wait = loss, 0
        else:
            wait += 1
            if wait >= patience:
                break
        x = x * 0.5
    return x, best, wait, k


def stops_with_a_last_word(x, patience=3):
    best, wait, kept = 1e9, 0, x
    for k in range(30):
        loss = np.abs(x - k).sum()
        if loss < best:
            best, wait, kept = loss, 0, x
        elif wait >= patience:
            break
        else:
            wait += 1
        x = x * 0.5
    return kept, best, k


def returns_from_within(x, patience=3):
    best, wait = 1e9, 0
    for k in range(30):
        loss = np.abs(x - k).sum()
        if loss < best:
            best, wait = loss, 0
        else:
            wait += 1
            if wait >= patience:
                return x, best
        x = x * 0.5
    return x * 2, best


def stops_while(x, patience=3):
    best, wait, n = 1e9, 0, 0
    while n < 30:
        loss = np.abs(x - n).sum()
        n += 1
        if loss < best:
            best, wait = loss, 0
        else:
            wait += 1
            if wait < patience:
                continue
            break
        x = x * 0.5
    return x, best, n


@pytest.mark.parametrize("patience", [1, 3, 40])
@pytest.mark.parametrize("function", [stops, stops_with_a_last_word, returns_from_within, stops_while])
def test_a_loop_that_stops_early_is_captured_whole(function, patience):
    whole, any_way = jl.jit(function, fullgraph=True), jl.jit(function)
    for start in (np.zeros(2), np.array([4.0, 8.0]), np.full(2, 64.0)):
        wanted = repr(function(start, patience))
        assert repr(whole(start, patience)) == wanted
        assert repr(any_way(start, patience)) == wanted
