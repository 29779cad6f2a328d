"""The plugin's marker, fixture and options, in test sessions of their own."""

from importlib.metadata import entry_points

import pytest

from jitlab.config import config

pytest_plugins = ["pytester"]

PROGRAM = """
import numpy as np
import pytest
import jitlab as jl

@jl.function
def scale(x, k):
    return np.tanh(x) * k

x = np.ones(8)
"""


@pytest.fixture
def session(pytester):
    """Runs pytest on a test file that starts with PROGRAM."""
    installed = any(entry.value == "jitlab.pytest_plugin" for entry in entry_points(group="pytest11"))

    def run(tests, *args, ini=""):
        pytester.makepyfile(test_it=PROGRAM + tests)
        if ini:
            pytester.makeini(f"[pytest]\n{ini}")
        plugin = () if installed else ("-p", "jitlab.pytest_plugin")
        return pytester.runpytest(*plugin, "-p", "no:cacheprovider", "--strict-markers", *args)

    return run


def test_what_holds_passes(session):
    result = session(
        """
        @pytest.mark.jitlab(retraces=0, traces=1, kernels="<=2", fallbacks=0, fused=[("tanh", "mul")])
        def test_once():
            scale(x, 2.0), scale(x, 2.0)
        """.replace("\n        ", "\n")
    )
    result.assert_outcomes(passed=1)


def test_a_retrace_fails_with_its_line_its_cause_and_the_fix(session):
    result = session(
        """
        @pytest.mark.jitlab(retraces=0)
        def test_twice():
            for k in (2.0, 3.0):
                scale(x, k)
        """.replace("\n        ", "\n")
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_twice: not what jitlab was expected to do",
            "retraces: 1, expected 0",
            "*scale, test_it.py, line 6: k was 2.0, then 3.0: each new Python number is traced again, called from *, line *",
            "*try: pass `k` as an array: 2 traces become 1, saves *",
            "*k = np.asarray(k, np.float64)",
        ]
    )
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_the_nearest_marker_holds_and_the_others_add_to_it(session):
    result = session(
        """
        @pytest.mark.jitlab(retraces=0, fallbacks=0)
        class TestScale:
            @pytest.mark.jitlab(retraces=1)
            def test_twice(self):
                scale(x, 2.0), scale(x, 3.0)

            @pytest.mark.jitlab(retraces=0)
            def test_on_the_host(self):
                jl.function(lambda x: np.flatnonzero(x))(x)
        """.replace("\n        ", "\n")
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*fallbacks: 1, expected 0", "*np.flatnonzero(x), line *: *"])


def test_fixtures_are_not_counted_and_the_fixture_checks_a_block(session):
    result = session(
        """
        @pytest.fixture
        def warm():
            scale(x, 5.0)

        @pytest.mark.jitlab(traces=0)
        def test_warm(warm):
            scale(x, 5.0)

        def test_block(jitlab_expect):
            scale(x, 6.0)
            with jitlab_expect(traces=0):
                scale(x, 6.0)
            with pytest.raises(AssertionError, match="k was"), jitlab_expect(retraces=0):
                scale(x, 7.0)
        """.replace("\n        ", "\n")
    )
    result.assert_outcomes(passed=2)


TWO_RETRACES = """
def test_two():
    for k in (2.0, 3.0, 4.0):
        scale(x, k)

@pytest.mark.jitlab(retraces=2)
def test_its_own_word():
    for k in (5.0, 6.0):
        scale(x, k)
"""


@pytest.mark.parametrize("limit, failed", [(1, 1), (2, 0)])
def test_a_limit_for_every_test_that_has_none(session, limit, failed):
    for how in ({"ini": f"jitlab_max_retraces = {limit}"}, {"args": ["--jitlab-max-retraces", str(limit)]}):
        result = session(TWO_RETRACES, *how.get("args", ()), ini=how.get("ini", ""))
        result.assert_outcomes(passed=2 - failed, failed=failed)


def test_the_test_s_own_failure_stays(session):
    result = session(
        """
        @pytest.mark.jitlab(retraces=0)
        def test_wrong():
            scale(x, 2.0), scale(x, 3.0)
            assert 1 == 2
        """.replace("\n        ", "\n")
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*"])


@pytest.mark.parametrize("mark, says", [("retrace=0", "*does not know 'retrace'*"), ("0", "*takes keywords*")])
def test_a_word_that_is_none_is_refused(session, mark, says):
    result = session(f"@pytest.mark.jitlab({mark})\ndef test_it():\n    pass\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([says])
    shown = result.stdout.str().split("short test summary")[0]
    assert "During handling" not in shown and shown.count(says.strip("*")) == 1


def test_what_is_not_as_expected_is_told_at_the_tests_line_alone(session):
    result = session("""
def test_block(jitlab_expect):
    with jitlab_expect(retraces=5):
        scale(x, 2.0)

@jl.expect(traces=7)
def calls():
    scale(x, 3.0)

def test_decorated():
    calls()
    calls()
""")
    result.assert_outcomes(failed=2)
    shown = result.stdout.str().split("short test summary")[0]
    assert "retraces: 0, expected 5" in shown and "expected 7" in shown
    assert "expect.py" not in shown and "_expecting" not in shown and "def __exit__" not in shown


@pytest.mark.parametrize("said, found", [(None, "model"), ("measure", "measure"), ("off", "off")])
def test_calls_settle_by_counts_where_nobody_says_otherwise(session, monkeypatch, said, found):
    monkeypatch.setattr(config, "settle", said or "measure")
    monkeypatch.delenv("JITLAB_SETTLE")
    if said is not None:
        monkeypatch.setenv("JITLAB_SETTLE", said)
    result = session(
        f"""
        import os

        def test_setting():
            assert jl.config.settle == "{found}" and os.environ["JITLAB_SETTLE"] == "{found}"
        """.replace("\n        ", "\n")
    )
    result.assert_outcomes(passed=1)
    assert config.settle == (said or "measure")


IN_PIECES = """
@jl.jit
def f(x, log):
    y = np.tanh(x) + 1
    log.extend([len(log)])
    return y * 2

def many():
    for _ in range(20):
        f(x, [])
"""


def test_what_is_expected_is_said_of_what_is_compiled_in_every_thread(session):
    """By counts its pieces do not pay: without an expectation it would be Python's by now."""
    result = session(
        IN_PIECES
        + """
from threading import Thread

@pytest.mark.jitlab(kernels=2, statements=1)
def test_of_a_marker():
    many()

def test_of_a_block_and_its_threads(jitlab_expect):
    many()
    (trial,) = f._trials.values()
    assert trial.way == "Python"
    with jitlab_expect(kernels=2, statements=1):
        many()
        thread = Thread(target=many)
        thread.start()
        thread.join()
    with pytest.raises(AssertionError, match="kernels: 2, expected 0"), jitlab_expect(kernels=0):
        many()
""",
    )
    result.assert_outcomes(passed=2)
