"""Loops in pieces whose iterations Python does in less time than it takes to enter their pieces: after some of them Python does
the others, and all is as Python leaves it. What decides is counted, never timed."""

import linecache
import traceback

import numpy as np
import pytest

import jitlab as jl
from jitlab import events

PROGRAMS = {
    "a list that grows by a condition": """
        found = []
        for i in range(1, len(x) - 1):
            if x[i] > x[i - 1] and x[i] >= x[i + 1]:
                found.append(i)
        return found, i
    """,
    "a break, and an else that is not run": """
        for i in range(len(x)):
            log.append(float(x[i]))
            if i > 70 and x[i] > 0.5:
                break
        else:
            log.append("else")
        return i, len(log)
    """,
    "an else that is run": """
        for i in range(len(x)):
            if i % 3 == 0:
                continue
            log.append(float(x[i] * 2))
        else:
            log.append("else")
        return log[-2:], i
    """,
    "a return from an inner loop": """
        for i in range(len(x)):
            for j in range(5):
                log.append(float(x[i] + j))
                if i == 60 and j == 3:
                    return i, j, x[i]
    """,
    "while with a test of elements": """
        i = 0
        while x[i] < 2 and i < len(x) - 1:
            log.append(float(x[i]))
            i += 1
            if i == 90:
                break
        else:
            log.append("else")
        return i, len(log)
    """,
    "an error in a late iteration": """
        total = 0.0
        for i in range(len(x) + 5):
            total += float(x[i])
            log.append(total)
        return total
    """,
    "an error that the iteration catches": """
        for i in range(len(x) + 5):
            try:
                log.append(float(x[i]))
            except IndexError as error:
                log.append(str(error))
            finally:
                log.append(i)
        return len(log)
    """,
    "names that are deleted and closures": """
        made = []
        for i in range(len(x)):
            y = float(x[i])
            made.append(lambda: y)
            log.append(y)
            if i % 2:
                del y
                y = -1.0
        return [f() for f in made][-3:]
    """,
    "arrays that are written": """
        for i in range(len(x) - 1):
            x[i] = x[i] + x[i + 1] if x[i] > 0.5 else -x[i]
            log.append(float(x[i]))
        return x[:5], x.sum() > 0
    """,
    "a program of lists alone": """
        values = [int(v * 100) for v in x]
        best = [1] * len(values)
        for i in range(len(values)):
            for j in range(i):
                if values[j] < values[i] and best[j] + 1 > best[i]:
                    best[i] = best[j] + 1
        return max(best), best
    """,
    "a trace at each iteration": """
        table = np.zeros((len(x), 4))
        for i, v in enumerate(x.tolist()):
            row = [v] * (1 + i % 4)
            table[i, : len(row)] = row
            log.append(str(i))
        return table
    """,
    "an iterator that counts what it is asked": """
        class Steps:
            def __iter__(self):
                log.append("iter")
                return self
            def __next__(self):
                log.append("next")
                if len(log) > 150:
                    raise StopIteration
                return len(log)
        for n in Steps():
            y = float(x[n % 100])
            log.append(y)
        else:
            log.append("else")
            return n, y
    """,
    "a generator that is left early": """
        def numbers():
            try:
                for n in range(1000):
                    yield n, (n % 7, x[n])
            finally:
                log.append("closed")
        for n, (m, v) in numbers():
            log.append(float(v) + m)
            if n == 80:
                break
        else:
            log.append("else")
        return n, m, v
    """,
    "a generator that raises": """
        def numbers():
            for n in range(1000):
                if n == 60:
                    raise KeyError(n)
                yield n
        for n in numbers():
            log.append(float(x[n]))
        return n
    """,
    "what cannot be gone through": """
        for n in (None if len(x) > 5 else x):
            log.append(float(x[n]))
    """,
    "a loop whose else goes on with the loop around it": """
        for k in range(4):
            for i in range(k, 45):
                log.append(float(x[i]))
            else:
                if k < 2:
                    continue
                log.append("else")
                break
            log.append("never")
        return k, i
    """,
    "a loop whose else returns": """
        while True:
            for i in range(60):
                log.append(float(x[i]))
            else:
                return i, len(log)
    """,
    "a return and a raise from a late iteration, in a finally": """
        for i in range(100):
            try:
                log.append(float(x[i]))
                if i == 50:
                    raise ValueError(i)
                if i == 70:
                    return i
            except ValueError as error:
                log.append(repr(error))
            finally:
                log.append("finally")
    """,
    "loops inside a loop, each long": """
        best = {}
        for i in range(50):
            j = 0
            while j < 40:
                if x[j] < x[i]:
                    best[i] = j
                j += 1
            for j in reversed(range(i)):
                if x[j] > 0.9:
                    log.append((i, j))
                    break
        return best
    """,
}


def made(name):
    import textwrap

    source = "def f(x, log):\n" + textwrap.indent(textwrap.dedent(PROGRAMS[name]).strip("\n"), "    ") + "\n"
    names = {"np": np}
    file = f"<{name}>"
    exec(compile(source, file, "exec"), names)
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    return names["f"]


def outcome(f, x):
    log = []
    try:
        result = f(x, log)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        result = type(error), str(error), [(frame.name, frame.lineno, frame.colno, frame.end_colno) for frame in frames]
    return result, log, x


@pytest.mark.parametrize("settle", ["model", "off"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_does_what_python_does(name, settle, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", settle)
    x = np.random.default_rng(3).random(100)
    f = made(name)
    compiled = jl.jit(f)
    for _ in range(2):
        expected, found = outcome(f, x.copy()), outcome(compiled, x.copy())
        for a, b in zip(expected, found, strict=True):
            assert_same(b, a)


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, (np.ndarray, float)):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    else:
        assert found == expected


def entered(f, settle, *args):
    """The pieces that a second call enters, and the reasons for which Python ran statements."""
    before, jl.config.settle = jl.config.settle, settle
    try:
        compiled, heard = jl.jit(f), []
        compiled(*args)
        with events.listen(heard.append):
            compiled(*args)
    finally:
        jl.config.settle = before
    kinds = [event.kind for event in heard]
    return kinds.count("function-called"), {event.reason for event in heard if event.kind == "statement-ran"}


def peaks(x, found):
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] >= x[i + 1]:
            found[:] = [i]


def steps(x, found):
    y = x
    for i in range(100):
        y = np.tanh(y) * 2 + x
        found[:] = [i]
    return y


def test_an_iteration_of_a_few_scalars_is_pythons_after_some():
    x = np.random.default_rng(3).random(300)
    pieces, reasons = entered(peaks, "model", x, [])
    assert pieces < 100 and "settled" in reasons
    pieces, reasons = entered(peaks, "off", x, [])
    assert pieces >= 298 and "settled" not in reasons


def grows(x, found):
    for i in range(1, len(x)):
        if i < 0:
            found.clear()
        found.append(0.3 * x[i] + 0.7 * found[i - 1] if found else x[i])


def rarely(x, found):
    for i in range(100):
        found.append(i)
        if i == 95:
            x = np.tanh(x) * x
    return x


def test_what_never_fits_again_is_pythons_too():
    pieces, reasons = entered(grows, "model", np.ones(300), [1.0])
    assert "settled" in reasons


def test_a_branch_that_was_not_taken_yet_may_pay():
    pieces, reasons = entered(rarely, "model", np.ones(10_000), [])
    assert pieces >= 1 and "settled" not in reasons


def test_pieces_of_large_arrays_stay():
    pieces, reasons = entered(steps, "model", np.ones(10_000), [])
    assert pieces >= 100 and "settled" not in reasons


def test_who_asks_what_is_compiled_sees_all_pieces():
    report = jl.explain(jl.jit(peaks), np.random.default_rng(3).random(300), [])
    assert sum(cluster.calls for cluster in report.clusters) >= 298
