"""A pytest plugin (`-p tests.peers.jitted`): the body of each test function runs under `jl.jit`.

What became of each test is written to the file that JITLAB_OUTCOMES names as soon as it is known, and the name of a test
before it starts: who reads the file of a process that died sees in which test. JITLAB_NUMPY_PART is the tenth of the tests that
is run, JITLAB_PLAIN=1 runs them without jitlab.
"""

from __future__ import annotations

import faulthandler
import functools
import inspect
import json
import os
import signal
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import jitlab as jl

SECONDS = 120  # of the processor, for one test: what goes on and on is a failure, and the others still run
WAITING = 1200  # by the clock: what waits for ever ends with its process
PLAIN = os.environ.get("JITLAB_PLAIN") == "1"
PART = os.environ.get("JITLAB_NUMPY_PART", "all")


@pytest.hookimpl(tryfirst=True)  # a test that is left away moves no other into another tenth
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if PART != "all":
        items[:] = items[int(PART) :: 10]


@functools.cache
def jitted(function: types.FunctionType) -> Any:
    return jl.jit(function)


def compiled(test: Any) -> Any:
    """The test with its body under `jl.jit`; what has no body of its own (a wrapper of hypothesis) as it is."""
    function = getattr(test, "__func__", test)
    if PLAIN or not inspect.isfunction(function) or hasattr(test, "__wrapped__") or hasattr(test, "hypothesis"):
        return test
    owner = getattr(test, "__self__", None)
    return jitted(function) if owner is None else types.MethodType(jitted(function), owner)


def write(**fact: Any) -> None:
    with open(os.environ["JITLAB_OUTCOMES"], "a", encoding="utf-8") as file:
        print(json.dumps(fact), file=file)


@contextmanager
def ends_in_time() -> Iterator[None]:
    """What takes too long is interrupted, and what hears no interrupt ends with its process. Time of the processor, which a
    busy machine makes no longer."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"longer than {SECONDS} s of the processor")

    faulthandler.dump_traceback_later(WAITING, exit=True)
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, too_long)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        if hasattr(signal, "SIGPROF"):
            signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    write(started=item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    pyfuncitem.obj = compiled(pyfuncitem.obj)
    with ends_in_time():
        return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        write(test=report.nodeid, outcome=outcome, why=str(report.longrepr)[-3000:] if report.failed else "")
