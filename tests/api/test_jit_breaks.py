"""What no graph can hold runs as Python would run it, with an event that names the line; fullgraph=True says what it is."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab import errors, events
from tests.left import assert_plain

sys.path.insert(0, str(Path(__file__).parent))
from breaking_programs import PROGRAMS  # noqa: E402

CALLS = 3


def same(a, b):
    """Equal in type and value, whatever is inside."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-12)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            same(left, right)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (float, np.floating)):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    else:
        assert a == b
    return True


def marked_line(name):
    """The line of the construct in its program."""
    with open(sys.modules["breaking_programs"].__file__, encoding="utf-8") as file:
        lines = file.read().split("\n")
    start = next(n for n, line in enumerate(lines) if line == f"def {name}():")
    return next(n for n, line in enumerate(lines[start:], start + 1) if "# <-" in line)


def made(name, wrap):
    """The program as it is called, with its function wrapped; its arguments; and a look at its effects."""
    call, function, arguments, seen = PROGRAMS[name]()
    wrapped = wrap(function)
    if call is not function:  # the result has to be taken apart
        return (lambda *a: list(wrapped(*a))), arguments, seen
    return wrapped, arguments, seen


def test_there_are_forty():
    assert len(PROGRAMS) >= 40


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs_as_python_runs_it(name, capsys):
    """The same results and the same effects, on every call."""
    plain, arguments, seen = made(name, lambda function: function)
    expected = [plain(*arguments) for _ in range(CALLS)]
    expected_effects, expected_text = seen(), capsys.readouterr().out
    jitted, arguments, seen = made(name, jl.jit)
    found = [jitted(*arguments) for _ in range(CALLS)]
    assert same(found, expected)
    effects = seen()
    assert same(effects, expected_effects)
    assert_plain(found, effects, arguments)
    assert capsys.readouterr().out == expected_text


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_event_names_its_line(name):
    """Best effort is never silent."""
    jitted, arguments, _ = made(name, jl.jit)
    heard = []
    with events.listen(heard.append):
        jitted(*arguments)
    line = marked_line(name)
    told = [event for event in heard if event.kind == "statement-ran"]
    assert any(first <= line <= last for event in told for _, first, _, last, _ in event.lines), [e.lines for e in told]


@pytest.mark.parametrize("name", PROGRAMS)
def test_fullgraph_refuses_it_and_says_where(name):
    jitted, arguments, _ = made(name, jl.jit(fullgraph=True))
    with pytest.raises(errors.JitlabError) as caught:
        jitted(*arguments)
    error = caught.value
    assert error.what and error.where and error.why and error.hint
    assert int(re.search(r"line (\d+)", error.where)[1]) == marked_line(name)


shadowed = np.full(3, 100.0)


def test_a_local_name_is_not_a_global_of_the_same_name():
    def program(shadowed):
        print("start", end="")
        shadowed = np.tanh(shadowed)
        print("end", end="")
        for _ in range(20):
            shadowed = np.sort(shadowed) + 1
        return shadowed

    np.testing.assert_allclose(jl.jit(program)(np.arange(3.0)), program(np.arange(3.0)))


def test_what_is_put_off_is_no_break(capsys):
    """A call that prints, keeps and counts is captured whole."""
    kept, box = [], types.SimpleNamespace(n=0)

    @jl.jit(fullgraph=True)
    def program(x):
        y = x * 2
        print("sum", y.sum())
        kept.append(y)
        kept.extend([])
        box.n += 1
        return y + 1

    x = np.arange(3.0)
    for n in range(1, 3):
        np.testing.assert_array_equal(program(x), x * 2 + 1)
        assert box.n == len(kept) == n and (kept[-1] == x * 2).all()
    assert capsys.readouterr().out == "sum 6.0\n" * 2
