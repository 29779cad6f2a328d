"""The seeds were written for graphs that are put together at the top of a script: each test has a default graph of its own."""

import pytest

from jitlab.compat import tensorflow as tf


@pytest.fixture(autouse=True)
def own_default_graph():
    yield
    tf.reset_default_graph()
