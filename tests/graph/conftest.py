"""What is put together outside of blocks is gone after each test."""

import pytest

from jitlab.graph import reset_default_graph


@pytest.fixture(autouse=True)
def own_default_graph():
    yield
    reset_default_graph()
