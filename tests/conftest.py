"""What all tests share: text compared with a file in tests/golden/, rewritten by --update-golden.

Hypothesis draws the same examples each time, so that a run can be repeated; with JITLAB_EXPLORE set it looks for new ones.
"""

import gc
import os
import re
import signal
from pathlib import Path

import hypothesis
import pytest

patient = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}  # a busy machine is no failure
hypothesis.settings.register_profile("same", derandomize=True, **patient)
hypothesis.settings.load_profile("default" if os.environ.get("JITLAB_EXPLORE") else "same")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden/ with what was found")
    parser.addoption("--every-program", action="store_true", help="compile all sample calls (minutes), not one in some")


def pytest_collection_modifyitems(items):
    """Tests run in several processes, which must agree on their names."""
    for item in items:
        if re.search(r" at 0x[0-9a-f]{6}", item.nodeid):
            raise pytest.UsageError(f"{item.nodeid} has an address in its name: give the parameter an id")


@pytest.fixture(autouse=True, scope="session")
def interrupts_are_heard():
    """A shell starts what runs in its background deaf to interrupts, and tests of interrupts would wait for ever."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def no_measured_peaks():
    """Reports say the same on every machine; tests of bounds name their own peaks."""
    from jitlab.report import build

    build.peak_sources.clear()


@pytest.fixture(autouse=True, scope="module")
def own_garbage():
    """What the files before left alive is not looked through again by each garbage collection of this one: there are a million
    objects of it in the end, and a test that collects often would take twenty times as long."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def golden(request):
    """Equal to a text when tests/golden/<folder>/<test>.txt holds that text: `assert str(graph) == golden`."""
    folder = Path(request.node.path).parent.relative_to(Path(__file__).parent)
    name = re.sub(r"[^\w.-]+", "-", request.node.name.removeprefix("test_")).strip("-")
    return Golden(GOLDEN / folder / f"{name}.txt", request.config.getoption("--update-golden"))


class Golden:
    def __init__(self, path: Path, update: bool) -> None:
        self.path, self.update = path, update

    def __eq__(self, other: object) -> bool:
        text = str(other).rstrip() + "\n"
        if self.update:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(text)
        return self.path.exists() and self.path.read_text() == text

    def __repr__(self) -> str:
        if not self.path.exists():
            return f"<no {self.path}: run pytest --update-golden>"
        return self.path.read_text()

    __hash__ = None  # type: ignore[assignment]
