"""A real shell with jitlab loaded; lets the tests here import their programs."""

import sys
from itertools import count
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from jitlab.notebook.extension import unload_ipython_extension
from jitlab.report import build
from tests.notebook.shells import new_shell

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def own_outputs(tmp_path_factory):
    """No report of an earlier run of the tests is kept for one of this run that says the same."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jitlab.notebook.saved.default_cache_folder", lambda: folder)
        yield


@pytest.fixture
def planned_times(monkeypatch):
    """Reports say about 1 ms of good code, none quite the same as another, whatever the runs of this machine took."""
    measured, number = build.verdict, count()

    def verdict(*args):
        result, seconds = measured(*args), 1e-3 + 1e-7 * next(number)
        result.pop("statement_seconds", None)
        result |= {key: seconds for key in ("seconds", "numpy_seconds") if result[key] is not None}
        if "first_run" in result:
            result["first_run"]["quick_share"] = 0.0
        return result

    monkeypatch.setattr(build, "verdict", verdict)


@pytest.fixture(scope="module")
def ip(own_outputs):
    """A shell with jitlab loaded; its names outlive a test."""
    shell = new_shell()
    yield shell
    unload_ipython_extension(shell)
    InteractiveShell.clear_instance()
