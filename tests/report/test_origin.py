"""Of which run a report is: said live, in the file and below a saved cell, without a difference where nothing changed."""

import re
from datetime import datetime, timedelta, timezone

import numpy as np
import report_samples as samples

import jitlab as jl
from jitlab.report import MIME, Report, origin
from jitlab.report.store.settled import essence

BEGAN = datetime(2031, 3, 5, 16, 7, 9, tzinfo=timezone(timedelta(hours=2))).timestamp()


def recorded():
    @jl.jit
    def doubled(x):
        return x * 2

    with jl.record() as recording:
        doubled(np.ones(8))
    return recording.report()


def test_a_report_says_when_its_run_began_with_what_and_where():
    before = datetime.now().astimezone().replace(microsecond=0)
    run = recorded().data["run"]
    assert before <= datetime.fromisoformat(run["at"]) <= datetime.now().astimezone()
    assert run["versions"]["numpy"] == np.__version__ and run["versions"]["jitlab"] == jl.__version__
    assert run["machine"]["cores"] >= 1 and run["machine"]["cpu"]


def test_two_reports_of_one_recording_are_of_the_same_moment():
    with jl.record() as recording:
        pass
    assert recording.report().data["run"] == recording.report().data["run"]


def test_the_line_gives_the_zone_of_its_hour(monkeypatch):
    monkeypatch.setattr(origin, "_machine", lambda: {"cpu": "Any 7", "cores": 1, "system": "Linux x86_64"})
    text = origin.origin(BEGAN)["text"]
    when, versions, where = text.split(" · ")
    assert re.fullmatch(r"Ran on [4-6] March 2031 at \d\d:\d\d \S+", when)
    assert re.fullmatch(r"jitlab \S+, Python \S+, NumPy \S+", versions) and where == "Any 7, 1 core"


def test_a_processor_that_the_system_does_not_name_is_called_as_llvm_does(monkeypatch, tmp_path):
    monkeypatch.setattr(origin, "CPUINFO", tmp_path / "absent")
    assert re.fullmatch(r"\S+", origin._processor())
    named = tmp_path / "cpuinfo"
    named.write_text("processor\t: 0\nmodel name\t: Some(R) Chip(TM) 9000 CPU @ 2.00GHz\n")
    monkeypatch.setattr(origin, "CPUINFO", named)
    assert origin._processor() == "Some Chip 9000 @ 2.00GHz"


def test_every_saved_form_has_the_line():
    report = Report(samples.softmax_report().data | {"run": {"text": "Ran on 5 March 2031 at 16:07 UTC · <b>"}})
    bundle = report._repr_mimebundle_()
    assert "<p>Ran on 5 March 2031 at 16:07 UTC · &lt;b&gt;</p>" in bundle["text/html"]
    assert bundle[MIME]["run"] == report.data["run"]
    assert "Ran on 5 March 2031 at 16:07 UTC · &lt;b&gt;" in report.to_html()
    assert "2031" not in report.to_svg() and "2031" not in str(report)  # which stay the same


def test_a_report_without_the_line_or_with_another_thing_in_its_place_is_shown_as_well():
    for run in (None, "yesterday", {"text": 7}, []):
        report = Report(samples.softmax_report().data | {"run": run})
        assert "21 of 22" in report._repr_mimebundle_()["text/html"] and "21 of 22" in report.to_html()


def test_the_moment_makes_no_two_reports_differ():
    data = recorded().data
    later = data | {"run": origin.origin(BEGAN)}
    assert essence(data) == essence(later)
