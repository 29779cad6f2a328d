"""What all tests share: which part of them a run takes, and text compared with a file in tests/golden/.

Hypothesis draws the same examples each time, so that a run can be repeated; with JITLAB_EXPLORE set it looks for new ones.
"""

import gc
import os
import re
import signal
import zlib
from collections import Counter
from datetime import date
from pathlib import Path

import hypothesis
import pytest

import jitlab as jl
from jitlab.api import settling

patient = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}  # a busy machine is no failure
hypothesis.settings.register_profile("same", derandomize=True, **patient)
hypothesis.settings.load_profile("default" if os.environ.get("JITLAB_EXPLORE") else "same")

# Which way calls go is decided by counts, as for everybody who has the plugin. Who wants "measure" says so, with planned times.
# The variable is for the processes that tests start: pytest's plugin has imported jitlab by now.
jl.config.settle = os.environ.setdefault("JITLAB_SETTLE", "model")
# A test that plans no times has none: calls take 0 ns, however busy the machine is.
settling.clock = settling.busy_clock = lambda: 0

GOLDEN = Path(__file__).parent / "golden"


TENTHS = 10
PARTS = ("quick", *map(str, range(TENTHS)), "all")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden/ with what was found")
    parser.addoption(
        "--part", choices=PARTS, default=os.environ.get("JITLAB_PART"),
        help="quick: the first case of each test that is neither slow nor long; 0 to 9: all tests, and of long ones that tenth "
        "of the cases; all: everything, also what is for the night. Without it, and without JITLAB_PART, today's tenth: ten "
        "days in a row take all but that",
    )  # fmt: skip


def pytest_configure(config):
    """The part is decided once: the processes of pytest-xdist are handed the option. A case that is asked for by name runs."""
    named = any("::" in argument for argument in config.args)
    config.option.part = config.option.part or ("all" if named else str(date.today().toordinal() % TENTHS))
    if config.option.part not in PARTS:
        raise pytest.UsageError(f"JITLAB_PART is {config.option.part!r}; it can be {', '.join(PARTS)}")


def pytest_report_header(config):
    return f"part: {config.option.part}"


def is_in(part, item, number):
    """Whether a case is of a part; `number` counts the cases of its test function."""
    long = item.get_closest_marker("long")
    if part == "all":
        return True
    if item.get_closest_marker("night"):
        return False
    if part == "quick":
        return not (number or long or item.get_closest_marker("slow"))
    return not long or (number + zlib.crc32(function_of(item).encode())) % TENTHS == int(part)


def function_of(item):
    return item.nodeid.partition("[")[0]


def pytest_collection_modifyitems(config, items):
    """Leaves the cases of the part, files of slow and long tests first: no process of several begins with one at the end."""
    counts, kept, left = Counter(), [], []
    for item in items:
        if re.search(r" at 0x[0-9a-f]{6}", item.nodeid):  # tests run in several processes, which must agree on their names
            raise pytest.UsageError(f"{item.nodeid} has an address in its name: give the parameter an id")
        (kept if is_in(config.option.part, item, counts[function_of(item)]) else left).append(item)
        counts[function_of(item)] += 1
    config.hook.pytest_deselected(items=left)
    late = {item.path for item in kept if item.path.suffix == ".py"}
    late -= {item.path for item in kept if item.get_closest_marker("long") or item.get_closest_marker("slow")}
    items[:] = sorted(kept, key=lambda item: item.path in late)


def pytest_terminal_summary(terminalreporter, config):
    part = config.option.part
    if part.isdigit():
        terminalreporter.write_line(f"Of long tests this was tenth {part}: --part={part} takes it again.")


@pytest.fixture(autouse=True, scope="session")
def interrupts_are_heard():
    """A shell starts what runs in its background deaf to interrupts, and tests of interrupts would wait for ever."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def no_kept_plans():
    """Stages run, whatever tests before have left on disk. With JITLAB_TEST_PLANS set plans are kept and found."""
    from jitlab.targets.cpu_llvm.cpu_target import CPU

    CPU.keeps_plans = bool(os.environ.get("JITLAB_TEST_PLANS"))


@pytest.fixture(autouse=True, scope="session")
def shipped_speeds():
    """The compiler decides and predicts as on the machine whose speeds are shipped, whatever was measured on this one, perhaps
    while others had it."""
    from jitlab.targets.cpu_llvm import cpu_target, speeds

    cpu_target._slowness = lambda: ()
    speeds.speeds = lambda: speeds.SHIPPED_SPEEDS


@pytest.fixture(autouse=True, scope="session")
def no_measured_peaks():
    """Reports say the same on every machine; tests of bounds name their own peaks."""
    from jitlab.report.build import build_report

    build_report.peak_sources.clear()


@pytest.fixture(autouse=True, scope="module")
def own_names(request):
    """Texts have TensorFlow's names for who uses `jitlab.compat.tensorflow`: for files that import it, whatever was imported
    before them in this process."""
    from jitlab.messages import message

    with pytest.MonkeyPatch.context() as patch:
        names = [getattr(value, "__name__", "") for value in vars(request.module).values()]
        if not any(name.startswith("jitlab.compat.tensorflow") for name in names):
            patch.setattr(message, "_CONTRACT", "")
        yield


@pytest.fixture(autouse=True, scope="module")
def no_listener_is_left(request):
    """Who listens makes calls take another way, and times them: a file of tests leaves nobody behind for the next."""
    from jitlab import events

    before = list(events._listeners)
    yield
    assert events._listeners == before, f"{request.node.name} leaves listeners"


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
