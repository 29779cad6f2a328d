"""Random programs run as NumPy runs them: 3000 of fixed seeds here, a night of them by `python -m tests.fuzz operations`."""

import numpy as np
import pytest

from jitlab.ops import table
from tests.fuzz import catalogue, fuzzing


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 3000, 25))
def test_random_programs_give_what_numpy_gives(first):
    for seed in range(first, first + 25):
        program = fuzzing.make(seed)
        text = fuzzing.failure(program)
        if text:
            least = fuzzing.smaller(program)
            pytest.fail(f"{fuzzing.failure(least) or text}\n{least}", pytrace=False)


def test_a_wrong_result_is_found_and_made_small(monkeypatch):
    """The fuzzer itself: with a sine that is off by a thousandth, a program of one statement is left."""
    sine = table.FUNCTIONS[np.sin]
    monkeypatch.setitem(table.FUNCTIONS, np.sin, lambda x, **options: table.FUNCTIONS[np.multiply](sine(x, **options), 1.001))
    x = np.linspace(-1, 1, 5)
    statements = [
        fuzzing.Statement("v0", ["v0 = x0 + 1"], ("x0",), True, "operator"),
        fuzzing.Statement("v1", ["v1 = np.sin(x0)"], ("x0",), False, "unary"),
        fuzzing.Statement("v2", ["v2 = v1[::2]"], ("v1",), True, "subscript"),
    ]
    program = fuzzing.Program({"x0": x}, statements, ["v2", "v0"])
    assert "NumPy's" in fuzzing.failure(program)
    assert [s.target for s in fuzzing.smaller(program).statements] == ["v1"]


def test_rounding_may_move_what_it_moves_in_numpy_and_nothing_else():
    x = np.array([1e16, 1.0, -1e16])
    statements = [fuzzing.Statement("v0", ["v0 = np.sum(x0)"], ("x0",), False, "reduction")]
    program = fuzzing.Program({"x0": x}, statements, ["v0"])
    runs = [fuzzing.perturbed(program, np.random.default_rng(seed))["v0"] for seed in range(4)]
    assert not fuzzing.difference(np.float64(1.0), np.float64(0.0), runs, "v0")  # the sum cancels
    assert fuzzing.difference(np.float64(1.0), np.float64(0.0), None, "v0")
    assert fuzzing.difference(np.float64(1e6), np.float64(0.0), runs, "v0")


def test_the_catalogue_draws_from_the_whole_table():
    assert len(catalogue.UFUNCS) > 60
