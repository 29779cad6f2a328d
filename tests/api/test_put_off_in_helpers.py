"""A list, dict or set that a function passes to others which only give it something is read by none of them."""

import numpy as np
import pytest

import jitlab as jl
from tests.api.test_put_off_steps import outcome


def log(history, x):
    history.append(x)


def record(store, key, value, *, more=None):
    store[key] = value
    store.setdefault("more", more)


def note(x, seen, rows):
    seen.add(float(x[0]))
    log(rows, x.sum())


def count(history):
    return len(history)


def deep(n, history):
    history.append(n)
    if n:
        deep(n - 1, history)


def replaces(history, x):
    history = list(history)
    history.append(x)


def takes_any(*histories):
    histories[0].append(1)


class Logger:
    def __init__(self, rows):
        self.rows = rows

    def log(self, rows, x):
        rows.append(x)
        self.rows.append(x)


LOGGER = Logger([])


def logs(x, rows, table, seen):
    y = np.tanh(x) * 2
    log(rows, y.sum())
    log(x=1, history=rows)
    record(table, "loss", y.max())
    record(table, ("k", 1), y, more=y[0])
    note(y, seen, rows)
    return y + 1


def logs_in_turns(x, rows, table, seen):
    for k in range(20):
        x = x * 0.9 + 0.1
        log(rows, x.sum())
        record(table, k % 4, float(x[0]), more=k)
        if k % 3 == 0:
            note(x, seen, rows)
    return x


def logs_and_reads(x, rows, table, seen):
    y = x * 2
    log(rows, y[0])
    return y * count(rows)


def logs_itself(x, rows, table, seen):
    y = x * 2
    log(rows, rows)
    return y


def by_recursion(x, rows, table, seen):
    y = x * 2
    deep(3, rows)
    log(rows, y[0])
    return y


def by_another_name(x, rows, table, seen):
    log = replaces
    y = x * 2
    log(rows, y[0])
    return y + 1


def by_a_copy(x, rows, table, seen):
    y = x * 2
    replaces(rows, y[0])
    takes_any(rows, table)
    takes_any(*[rows])
    return y


def by_a_method(x, rows, table, seen):
    y = x * 2
    LOGGER.log(rows, y[0])
    return y + 1


def by_an_inner_function(x, rows, table, seen):
    def inner(given, value):
        given.append(value)
        return value

    y = x * 2
    inner(rows, y[0])
    return y + inner(rows, 3)


def raises_in_a_helper(x, rows, table, seen):
    y = x * 2
    log(rows, y[0])
    record(rows, 99, y[1])
    log(rows, "never")
    return y


def unhashable(x, rows, table, seen):
    y = x * 2
    log(rows, 1)
    record(table, y, 1)
    return y


PROGRAMS = [
    logs, logs_in_turns, logs_and_reads, logs_itself, by_recursion, by_another_name, by_a_copy, by_a_method,
    by_an_inner_function, raises_in_a_helper, unhashable,
]  # fmt: skip


class Sub(list):
    def append(self, x):
        print("appending")
        super().append(x)


@pytest.mark.parametrize("settle", ["off", "measure"])
@pytest.mark.parametrize("kind", [list, Sub], ids=["plain", "subclassed"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_each_gets_what_python_gives(monkeypatch, program, kind, settle):
    monkeypatch.setattr(jl.config, "settle", settle)
    traced = jl.jit(program)
    mine, theirs = (kind(), {}, set()), (kind(), {}, set())
    for n in range(6):
        x = np.linspace(0.5, 2, 4) + n % 3
        if n == 4:
            mine, theirs = (kind([7]), {"more": 1}, {2}), (kind([7]), {"more": 1}, {2})
        assert outcome(traced, x.copy(), *mine) == outcome(program, x.copy(), *theirs), n


@pytest.mark.parametrize("program", [logs, logs_in_turns], ids=lambda program: program.__name__)
def test_it_is_captured_whole_and_once_however_long_the_list(program):
    traced, rows = jl.jit(program), []
    for n in range(5):
        outcome(traced, np.linspace(0.5, 2, 4) + n, rows, {}, set())
    assert (traced.experimental_get_tracing_count(), len(traced.ledger.pieces)) == (1, 0)


def test_a_helper_that_is_another_function_later(monkeypatch):
    traced = jl.jit(logs)
    called = []

    def reads(history, x):
        called.append(len(history))
        history.append(-1)

    mine, theirs = ([], {}, set()), ([], {}, set())
    for n in range(9):
        if n == 3:
            monkeypatch.setitem(globals(), "log", reads)
        elif n == 6:
            monkeypatch.undo()
        x = np.linspace(0.5, 2, 4) + n
        assert outcome(traced, x.copy(), *mine) == outcome(logs, x.copy(), *theirs), n
    assert len(called) == 18


def test_one_list_under_two_names():
    def program(x, one, other):
        y = x * 2
        log(one, y[0])
        log(other, y[1])
        one.append(3)
        return y

    traced = jl.jit(program)
    for same in (False, True, False, True):
        mine, theirs = [], []
        outcome(traced, np.arange(3.0), mine, mine if same else [])
        outcome(program, np.arange(3.0), theirs, theirs if same else [])
        assert repr(mine) == repr(theirs)
