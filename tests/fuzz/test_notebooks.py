"""Random notebooks about sizes leave what plain Python leaves: values, types, containers, shared memory, printed text."""

import pytest

from jitlab.capture.drivers import trace
from tests.fuzz import notebooks


@pytest.mark.long
@pytest.mark.parametrize("seed", range(400))
def test_a_random_notebook_leaves_what_plain_python_leaves(seed):
    text = notebooks.failure(seed)
    if text:
        pytest.fail("\n# ----\n".join([text, *notebooks.Notebook(seed).cells]), pytrace=False)


def test_a_size_that_is_left_as_an_extent_is_found(monkeypatch):
    """The fuzzer itself: with a size that stays what it is in a recording, notebooks fail."""
    monkeypatch.setattr(trace, "plain_value", lambda x: x)
    assert "left it" in "".join(notebooks.failure(seed) for seed in range(30))
