"""Bytes, times and counts are written alike by Python and by the panel, whose tests read the same file."""

import json
import random
from pathlib import Path

import pytest

from jitlab.messages import units

CASES = json.loads((Path(__file__).parents[1] / "extension/test/fixtures/units.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "given", "shown"), [(name, given, shown) for name, cases in CASES.items() for given, shown in cases]
)
def test_a_number_is_written_as_the_panel_writes_it(name, given, shown):
    assert getattr(units, name)(*(given if isinstance(given, list) else [given])) == shown


def test_what_is_not_known_is_empty():
    assert units.duration(None) == ""


@pytest.mark.parametrize(("write", "least", "most"), [(units.size, 0, 11.99), (units.duration, -8, 2.99)])
def test_a_number_has_at_most_three_digits_before_its_point(write, least, most):
    draw = random.Random(5)
    for value in (10 ** draw.uniform(least, most) for _ in range(5000)):
        assert len(write(value).split(" ")[0].split(".")[0]) <= 3, value
