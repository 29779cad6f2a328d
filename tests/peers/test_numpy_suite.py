"""NumPy's own tests, each under `jl.jit`, for the night; `python -m tests.peers.numpy_suite` runs all of them by module."""

import pytest

from tests.peers.numpy_suite import GROUPS, NUMPY, Ended, differences, reason_for, run


@pytest.mark.night
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("group", GROUPS)
def test_numpys_own_tests_end_as_without_jitlab(group, part):
    modules = GROUPS[group]
    if not (NUMPY / modules[0]).exists():
        pytest.skip("this NumPy was installed without its tests")
    found = [
        f"{name}: {compiled.outcome}, without jl.jit {plain.outcome}\n{compiled.why}"
        for name, compiled, plain in differences(modules, part=str(part))
        if reason_for(name) is None
    ]
    assert not found, "\n\n".join(found)


OWN = """
import os
import sys

import numpy as np
import pytest

def test_that_passes():
    assert (np.arange(3) * 2).sum() == 6

class TestIt:
    @pytest.mark.parametrize("n", [1, 2])
    def test_that_looks_who_runs_it(self, n):
        assert n == 1 or sys._getframe(1).f_code.co_filename.endswith("python.py")

    def test_that_ends_the_process(self):
        if os.environ.get("JITLAB_PLAIN") != "1":
            os._exit(3)

    def test_that_is_left_away(self):
        pytest.skip("today")

    def test_that_fails_anyway(self):
        assert np.zeros(2).sum() == 1
"""


def test_a_test_that_ends_otherwise_and_one_that_ends_its_process_are_found(tmp_path):
    path = tmp_path / "test_own.py"
    path.write_text(OWN)
    found = {name.partition("::")[2]: how for name, how in run([str(path)]).items()}
    ended = {name: how.outcome for name, how in found.items()}
    assert ended == {
        "test_that_passes": "passed", "TestIt::test_that_looks_who_runs_it[1]": "passed",
        "TestIt::test_that_looks_who_runs_it[2]": "failed", "TestIt::test_that_ends_the_process": "died",
        "TestIt::test_that_is_left_away": "skipped", "TestIt::test_that_fails_anyway": "failed",
    }  # fmt: skip
    assert "ended with 3" in found["TestIt::test_that_ends_the_process"].why
    plain = {name.partition("::")[2]: how for name, how in run([str(path)], JITLAB_PLAIN="1").items()}
    assert plain["TestIt::test_that_looks_who_runs_it[2]"] == Ended("passed") == plain["TestIt::test_that_ends_the_process"]
