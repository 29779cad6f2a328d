"""Lets the tests here import their samples: `import report_samples`."""

import sys
from pathlib import Path

import pytest

from jitlab.report import recording

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def forget_plans():
    """The plans of the samples have names that real clusters of later tests have too."""
    yield
    forget()


def pytest_collection_finish():
    forget()  # files make samples when they are read, too


def forget():
    recording._plan_of_cluster.clear()
    recording._plan_of_trace.clear()
