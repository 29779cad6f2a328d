"""Which tests a run takes: `--part`, and the marks `slow` and `long`."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.long
@pytest.mark.parametrize("seed", range(25))
def test_long(seed): pass

@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_slow(seed): pass

@pytest.mark.parametrize("seed", range(2))
def test_any(seed): pass
"""


@pytest.fixture
def taken(pytester, monkeypatch):
    """The names of the tests that a run takes."""
    monkeypatch.delenv("JITLAB_PART", raising=False)
    pytester.makeconftest((Path(__file__).parent / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers =\n  long\n  slow")

    def run(*args, part=None):
        pytester.makepyfile(test_it=TESTS)
        arguments = () if part is None else (f"--part={part}",)
        result = pytester.runpytest("-p", "no:cacheprovider", "-q", "--collect-only", *arguments, *args)
        return [line.partition("::")[2] for line in result.outlines if "::" in line]

    return run


def test_ten_tenths_are_all_cases_of_long_tests_and_none_comes_twice(taken):
    tenths = [[name for name in taken(part=part) if name.startswith("test_long")] for part in range(10)]
    assert sorted(sum(tenths, [])) == sorted(name for name in taken(part="all") if name.startswith("test_long"))
    assert {len(tenth) for tenth in tenths} == {2, 3}


def test_any_tenth_takes_all_cases_of_the_others(taken):
    others = [name for name in taken(part="all") if not name.startswith("test_long")]
    assert len(others) == 4
    for part in (0, 7):
        assert [name for name in taken(part=part) if not name.startswith("test_long")] == others


def test_a_quick_run_takes_the_first_case_of_what_is_neither_slow_nor_long(taken):
    assert taken(part="quick") == ["test_any[0]"]


def test_without_a_part_it_is_a_tenth(taken):
    assert taken() in [taken(part=part) for part in range(10)]


@pytest.mark.parametrize("seed", [0, 13, 24])
def test_a_case_that_is_asked_for_by_name_is_taken(taken, seed):
    assert taken(f"test_it.py::test_long[{seed}]") == [f"test_long[{seed}]"]


def test_an_unknown_part_is_refused(taken, monkeypatch, capfd):
    monkeypatch.setenv("JITLAB_PART", "ten")
    assert taken() == [] and "JITLAB_PART is 'ten'" in capfd.readouterr().err
