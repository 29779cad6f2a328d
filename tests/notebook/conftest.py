"""A real shell with jitlab loaded; lets the tests here import their programs."""

import sys
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from jitlab.notebook.extension import unload_ipython_extension
from tests.notebook.shells import new_shell
from tests.planned_times import plan_times

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def own_outputs(tmp_path_factory):
    """No report of an earlier run of the tests is kept for one of this run that says the same."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jitlab.notebook.saved_outputs.cache_folder", lambda: folder)
        yield


@pytest.fixture
def planned_times(monkeypatch):
    plan_times(monkeypatch.setattr)


@pytest.fixture(scope="module")
def ip(own_outputs):
    """A shell with jitlab loaded; its names outlive a test."""
    shell = new_shell()
    yield shell
    unload_ipython_extension(shell)
    InteractiveShell.clear_instance()


@pytest.fixture
def report_of(ip):
    """Runs a cell, and gives the data of its report."""

    def ran(source):
        ip.run_cell(source, store_history=True).raise_error()
        session = ip.find_line_magic("jitlab").__self__.session
        return session.report_of(next(reversed(session.cells.values()))).data

    return ran
