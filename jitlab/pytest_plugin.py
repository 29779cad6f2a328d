"""pytest with the words of `jl.expect`: a marker, a fixture and two options.

    @pytest.mark.jitlab(retraces=0, fallbacks=0)
    def test_training_step(): ...

    def test_two_sizes(jitlab_expect):
        warm_up()
        with jitlab_expect(retraces=0):
            step(...)

`--jitlab-max-retraces N` (or `jitlab_max_retraces = N` in the ini file) holds for every test that has no limit of its own.
Which calls run as Python is decided by counts (`jl.config.settle` is "model", where JITLAB_SETTLE says nothing else): no test's
outcome depends on a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from jitlab.config import by_counts

if TYPE_CHECKING:
    from jitlab.report.expect import Expectations

OPTION = "jitlab_max_retraces"


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "a test fails that retraces a function more than N times"
    parser.getgroup("jitlab").addoption("--jitlab-max-retraces", metavar="N", type=int, default=None, help=text)
    parser.addini(OPTION, help=text)


def pytest_configure(config: pytest.Config) -> None:
    text = 'jitlab(retraces=0, kernels="<=2", fallbacks=0, fused=[("exp", "sum")]): what the test may do, in jl.expect\'s words'
    config.addinivalue_line("markers", text)
    stack = ExitStack()
    stack.enter_context(by_counts())
    config.add_cleanup(stack.close)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    """Record the test's call when something is expected of it; fixtures are not counted."""
    expectations = expectations_of(item)
    if expectations is None:
        return (yield)
    from jitlab.report.expect import planned

    with planned() as recording:
        result = yield
    wrong = expectations.wrong(recording.report())
    if wrong:
        pytest.fail("\n".join([f"{item.nodeid}: not what jitlab was expected to do", *wrong]), pytrace=False)
    return result


@pytest.fixture
def jitlab_expect() -> Callable[..., AbstractContextManager[None]]:
    """`jl.expect`: `with jitlab_expect(retraces=0): ...`."""
    from jitlab.report import expect

    return expect


def expectations_of(item: pytest.Item) -> Expectations | None:
    """What the test's markers and the options say; the nearest marker's word holds. None when nothing is said."""
    limits: dict[str, Any] = {}
    for marker in item.iter_markers("jitlab"):
        if marker.args:
            pytest.fail("@pytest.mark.jitlab takes keywords, as jl.expect does: retraces=0", pytrace=False)
        limits = {**marker.kwargs, **limits}
    most = most_retraces(item.config)
    if most is not None:
        limits.setdefault("retraces", f"<={most}")
    if not limits:
        return None
    from jitlab.errors import OptionError
    from jitlab.report.expect import Expectations

    fused = limits.pop("fused", None) or ()
    try:
        return Expectations(limits, fused)
    except OptionError as error:
        wrong = str(error)
    pytest.fail(f"@pytest.mark.jitlab: {wrong}", pytrace=False)  # with no error before it, which pytest would show, too


def most_retraces(config: pytest.Config) -> int | None:
    """The limit that the command line, else the ini file, sets for every test."""
    if config.option.jitlab_max_retraces is not None:
        return int(config.option.jitlab_max_retraces)
    text = config.getini(OPTION)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"{OPTION} = {text}: a number of retraces is wanted") from None
