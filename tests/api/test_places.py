"""What stays known of functions that are gone, or whose name is another function's now."""

import linecache

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.api.retraces import places
from jitlab.events import Cause


def defined(how, turn, space, name="f"):
    source = f"@jl.{how}\ndef {name}(x):\n    return np.sin(x) * {turn} + x\n"
    file = f"<definition {turn} of {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), space)
    return space[name]


def called(f, dtype):
    return f(np.ones(3, dtype))


def total_here():
    line = called.__code__.co_firstlineno + 1
    (found,) = [total for total in places.totals() if total.site == places.Site(__file__, line)]
    return found


@pytest.fixture
def space(monkeypatch):
    for table in ("live", "_places", "_gone"):  # of this test alone
        monkeypatch.setattr(places, table, type(getattr(places, table))())
    monkeypatch.setattr("jitlab.api.retraces.ledger.live", places.live)
    return {"np": np, "jl": jl}


@pytest.mark.parametrize("kept", [0, 1, 3, 6])
@pytest.mark.parametrize("how", ["function", "jit"])
def test_calls_of_functions_that_are_gone_are_counted_once(how, kept, space):
    alive, seconds = [], 0.0
    for turn in range(6):
        f = defined(how, turn, space)
        for dtype in ("f4", "f8"):
            called(f, dtype)
        seconds += f.ledger.seconds
        if turn < kept:
            alive.append(f)
    assert (total_here().misses, total_here().retraces) == (12, 11)
    assert total_here().seconds == pytest.approx(seconds)
    del f, space["f"]
    alive.clear()
    assert total_here().misses == 12


def test_a_call_that_was_timed_stands_in_the_ledger_before_it_is_handed_to_who_listens(space, monkeypatch):
    monkeypatch.setattr(events, "WAIT_NS", 1 << 62)
    f, heard = defined("function", 1, space), []
    with events.listen(heard.append, heard.append):
        called(f, "f4")
        (miss,) = f.ledger
        assert miss.costs.each_ns is not None
        assert "a call; from test_places.py" in str(f.ledger)


def test_a_function_whose_name_is_another_s_keeps_its_ledger(space):
    first = defined("function", 1, space)
    for dtype in ("f4", "f8"):
        called(first, dtype)
    before = str(first.ledger)
    for turn in (2, 3):
        called(defined("function", turn, space), "f4")
    assert str(first.ledger) == before


@pytest.mark.parametrize("others", [0, 5, 12])
def test_a_definition_is_compared_with_the_one_before_also_after_many_others(others, space, monkeypatch):
    monkeypatch.setattr(places, "MOST_WHOLE", 3)
    for dtype in ("f4", "f8"):
        called(defined("function", 1, space), dtype)
    for number in range(others):
        called(defined("function", number, space, f"g{number}"), "f8")
    f = defined("function", 2, space)
    called(f, "f8")
    (miss,) = f.ledger
    assert miss.causes == (Cause.REDEFINED_FUNCTION,)
    assert [leaf.text for leaf in miss.same] == ["float64[3]"]


def test_lines_with_costs_are_as_many_as_are_kept_and_the_newest(space, monkeypatch):
    monkeypatch.setattr(places, "MOST_TOTALS", 4)
    for turn in range(12):
        file = f"<call {turn}>"
        defined("function", turn, space)
        exec(compile("f(np.ones(2))", file, "exec"), space)
    files = [total.site.file for total in places.totals()]
    assert sorted(files) == sorted(f"<call {turn}>" for turn in range(7, 12))
