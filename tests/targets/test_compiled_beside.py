"""The good tier is compiled beside what other threads compile: nobody waits for it but forks, and who asks for it."""

import os
import threading
import time
from queue import Empty
from types import SimpleNamespace

import pytest

from jitlab.targets.cpu_llvm import compiling, machine

TEXT = "define i64 @run(ptr %x) {\n %a = load i64, ptr %x\n %b = mul i64 %a, NUMBER\n ret i64 %b\n}\n"


def text(number):
    return TEXT.replace("NUMBER", str(number))


def test_its_code_is_that_of_the_good_tier():
    for number in (3, 5):
        assert machine.compile_beside(text(number)) == machine.compile_object(text(number), "good")


def test_a_text_that_is_none_says_so_and_the_next_one_is_compiled():
    with pytest.raises(RuntimeError, match="expected type"):
        machine.compile_beside("define nonsense")
    assert machine.compile_beside(text(7)) == machine.compile_object(text(7), "good")


@pytest.fixture
def stopped(monkeypatch):
    """A thread that compiles stands inside LLVM's passes until `go_on` is set; its result, and whether it was."""
    inside, go_on, found = threading.Event(), threading.Event(), []
    long = machine._long

    def stopping(context, function):
        if context is not None and "Run" in function:
            inside.set()
            found.append(go_on.wait(60))
        return long(context, function)

    monkeypatch.setattr(machine, "_long", stopping)
    thread = threading.Thread(target=lambda: found.append(machine.compile_beside(text(11))))
    thread.start()
    inside.wait()
    yield go_on, found
    go_on.set()
    thread.join()


def test_other_threads_compile_and_link_meanwhile(stopped):
    go_on, found = stopped
    loaded = machine.load(machine.compile_object(text(13), "quick"), ["run"])
    assert loaded.address("run") and machine.asm(text(13), "good")
    assert found == []  # it has not gone on
    go_on.set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_it(stopped):
    go_on, found = stopped
    threading.Timer(0.2, go_on.set).start()
    child = os.fork()
    if not child:
        made = machine.compile_beside(text(17))
        os._exit(0 if found[:1] == [True] and machine.load(made, ["run"]).address("run") else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def background():
    made = compiling.Background()
    yield made
    made.shutdown()


@pytest.fixture
def clock(monkeypatch, background):
    """Seconds that pass while somebody waits to be woken."""
    now = [100.0]

    class Wake:
        def get(self, timeout):
            now[0] += timeout
            raise Empty

        def put(self, _):
            pass

    monkeypatch.setattr(compiling, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(background, "_wake", Wake())
    return now


def test_it_begins_when_nothing_was_compiled_for_a_while(clock, background):
    background.wait_for_quiet()
    assert clock == [100.0]
    background.tell_busy()
    background.wait_for_quiet()
    assert clock == [100 + compiling.QUIET]


@pytest.mark.parametrize("why", ["hurry", "shutdown"])
def test_it_begins_at_once_for_who_waits_and_where_the_process_ends(why, clock, background):
    background.tell_busy()
    getattr(background, why)()
    background.wait_for_quiet()
    assert clock == [100.0]


def test_who_waits_wakes_it(background):
    background._busy_until = time.monotonic() + 3600
    job = background.submit(background.wait_for_quiet)
    background.hurry()
    assert job.result(timeout=60) is None


def test_a_hurry_ends_with_the_work_that_there_was(background):
    go_on = threading.Event()
    jobs = [background.submit(go_on.wait), background.submit(lambda: background._hurries), background.submit(int)]
    background.hurry()
    go_on.set()
    assert jobs[1].result() is True
    jobs[2].result()
    while background.is_busy:
        time.sleep(0.001)
    assert not background._hurries
