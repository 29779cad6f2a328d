"""A first run says that it was one: what it waited for, and that quickly compiled code ran."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.cpu_llvm.compiling import background


@pytest.fixture
def cold(monkeypatch):
    """Nothing is on the disk: the quick tier has to answer."""
    monkeypatch.setattr(jl.config, "cache", False)


def recorded(f, *args, calls=1):
    with jl.record() as recording:
        for _ in range(calls):
            f(*args)
    return recording.report()


def test_a_first_run_is_marked_with_what_it_waited_for(cold):
    f = jl.function(lambda x: np.exp(x).sum(axis=0) * 17.25)
    x = np.ones((300, 40))
    first = recorded(f, x)
    told = first.data["verdict"]["first_run"]
    assert told["seconds"] == pytest.approx(sum(trace["seconds"] for trace in first.data["retraces"]))
    assert (told["calls"], told["quick_calls"], told["quick_share"]) == (1, 1, 1.0)
    assert told["text"].startswith("Measured with quickly compiled code. Optimised code is ")
    assert told["text"] in str(first).replace("\n", " ")
    background().submit(int).result()  # its jobs before it are done
    assert "first_run" not in recorded(f, x).data["verdict"]


def test_calls_that_the_good_code_ran_are_not_counted_as_quick(cold):
    f = jl.function(lambda x: np.log1p(x).sum(axis=1) * 18.5)
    x = np.ones((200, 30))
    with jl.record() as recording:
        f(x)
        background().submit(int).result()  # its jobs before it are done
        for _ in range(5):
            f(x)
    told = recording.report().data["verdict"]["first_run"]
    assert (told["calls"], told["quick_calls"]) == (6, 1)
    assert "being built" not in told["text"]
