"""Whether NumPy could work on a value is found out from a few items of a container, whatever its length."""

import numpy as np
import pytest

from jitlab.capture.drivers import driver

ARRAY = np.ones(2)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, False),
        (np.float64(3), True),
        (ARRAY, True),
        ([1.0] * 1000, False),
        ([[1.0, "a"]] * 1000, False),
        ([1, 2, 3, 4, 5, ARRAY], True),
        ([[1], [2], [ARRAY]], True),
        ([[[ARRAY]]], True),
        ({"name": "x", "size": 3, "parts": [{"w": ARRAY}]}, True),
        ({n: {"to": n} for n in range(100)}, False),
        ([], False),
        ((), False),
        (np, True),
    ],
)
def test_it_finds_what_numpy_works_on(value, expected):
    assert driver.holds_arrays(value) is expected


@pytest.mark.parametrize("length", [100, 10_000])
def test_what_it_looks_at_does_not_grow_with_a_list_of_lists(length, monkeypatch):
    looked_at, real = [], driver.holds_arrays
    monkeypatch.setattr(driver, "holds_arrays", lambda x, *depth: looked_at.append(x) or real(x, *depth))
    assert not driver.holds_arrays([[1.0, 2.0, 3.0] * length] * length)
    assert len(looked_at) == 1 + driver.ALIKE * (1 + driver.ALIKE)


def test_the_names_of_a_statement_are_looked_for_once(monkeypatch):
    import ast

    node = ast.parse("total = total + values[i]").body[0]
    walked, real = [], ast.walk
    monkeypatch.setattr(driver.ast, "walk", lambda node: walked.append(node) or real(node))
    names = [driver._names_read.of(node, driver._read_by, node) for _ in range(10)]
    assert set(names) == {frozenset({"total", "values", "i"})} and len(walked) == 1
