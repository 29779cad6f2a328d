"""Some of the cases of the fault harness, in processes of their own; all of it is `python -m tests.faults`."""

import sys

import pytest

from .running import SORTS, case_of, module_of, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals, forks and limits are as Linux has them")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("sort", SORTS)
def test_nothing_is_wrong_hung_or_broken_afterwards(sort, seed):
    count = run(sort, seed, module_of(sort).SHORT)
    assert not count.wrong, str(count)


@pytest.mark.parametrize("sort", SORTS)
def test_a_case_depends_on_its_seed_and_number_alone(sort):
    assert case_of(sort, 1, 2) == case_of(sort, 1, 2) != case_of(sort, 1, 3)
