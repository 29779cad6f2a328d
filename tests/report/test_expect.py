import pytest
import report_samples as samples

from jitlab import events
from jitlab.errors import OptionError
from jitlab.report import expect


def one_run():
    for event in samples.softmax_events(retraces=0, compare=False):
        events.send(event)


def test_what_holds_passes():
    with expect(retraces=0, traces=1, clusters=2, kernels="<=4", fallbacks=1, bytes="< 1 GB", fused=[("exp", "sum")]):
        one_run()


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"kernels": 3}, "kernels: 4, expected 3"),
        ({"kernels": "<4"}, "kernels: 4, expected <4"),
        ({"bytes": "<=200 MB"}, "bytes: 293 MB, expected <=200 MB"),
        ({"fused": [("div", "take")]}, "fused: div and take are not fused: p is read again"),
    ],
)
def test_what_does_not_hold_says_what_was_found(wrong, says):
    with pytest.raises(AssertionError, match=says), expect(**wrong):
        one_run()


def test_an_error_inside_stays_that_error():
    with pytest.raises(KeyError), expect(clusters=9):
        raise KeyError("mine")


@pytest.mark.parametrize("wrong", [{"cluster": 1}, {"clusters": "about 2"}, {"clusters": "<=2 MB"}])
def test_what_cannot_be_expected_is_refused(wrong):
    with pytest.raises(OptionError), expect(**wrong):
        pass
