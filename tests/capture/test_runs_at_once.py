"""Runs of one function in pieces that are under way at once, by recursion or in threads: a statement that one of them takes
apart is whole for the others."""

import linecache
import sys
import threading

import numpy as np
import pytest

import jitlab as jl


def recursive(log):
    def note(y):
        log.append(float(y[0]))
        return 1.0

    def f(x, n):
        y = np.tanh(x) + n
        z = np.exp(y) * (note(y * 2) if n == 0 else 2.0)
        log.append(("before", n))
        if n > 0:
            z = z + f(x, n - 1)
        log.append(("after", n))
        return z

    return f


@pytest.mark.parametrize("depths", [(1,), (3, 3), (0, 2), (2, 0, 4)], ids=str)
def test_a_call_inside_takes_a_statement_apart(depths):
    logs = [], []
    plain = recursive(logs[0])
    compiled = recursive(logs[1])
    compiled.__closure__[compiled.__code__.co_freevars.index("f")].cell_contents = made = jl.jit(compiled)
    for depth in depths:
        x = np.linspace(0, 1, 4)
        np.testing.assert_allclose(made(x, depth), plain(x, depth), rtol=1e-14)
    assert logs[1] == logs[0]


@pytest.fixture
def often_switched():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("statement", ["log.append(float(y[0]))", "log[0:0] = [np.exp(y).sum() + float(y[0])]"])
def test_threads_take_statements_apart(often_switched, statement):
    for _ in range(3):
        log = []
        names = {"np": np, "log": log}
        source = f"def f(x):\n    y = np.tanh(x) + 1\n    {statement}\n    return y * 2\n"
        exec(compile(source, "<threads>", "exec"), names)
        linecache.cache["<threads>"] = (len(source), None, source.splitlines(True), "<threads>")
        f = jl.jit(names["f"])
        wrong = []

        def work(f=f, wrong=wrong):
            try:
                for _ in range(3):
                    if not np.array_equal(f(np.zeros(3)), [2, 2, 2]):
                        wrong.append("value")
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert len(log) == 12

