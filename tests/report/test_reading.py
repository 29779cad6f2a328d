"""Reports that come from files: those of jitlab are read, all else is refused in one sentence."""

import copy
import json

import pytest
import report_samples as samples
from hypothesis import given
from hypothesis import strategies as st

from jitlab.errors import OptionError
from jitlab.report import MIME
from jitlab.report.reading import NEEDED, read_report

DATA = samples.softmax_report().to_json()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_what_was_written_is_read(tmp_path):
    file = tmp_path / "report.json"
    file.write_text(json.dumps(DATA), encoding="utf-8")
    for source in (file, file.read_text(encoding="utf-8"), DATA, {MIME: DATA, "text/plain": ""}):
        report = read_report(source)
        assert str(report) == str(samples.softmax_report()) and report.to_svg() == samples.softmax_report().to_svg()
        assert report.clusters[0].name == "cluster_0"


def test_the_output_of_a_cell_is_read_after_it_was_cut_to_size():
    assert read_report(samples.softmax_report()._repr_mimebundle_()).verdict["operations"] == 22


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda d: d.update(version=9), "version 9, and this jitlab reads up to 1"),
        (lambda d: d.update(version=True), "no number"),
        (lambda d: d.pop("version"), "no version"),
        (lambda d: d.update(ops={}), "ops are missing"),
        (lambda d: d["ops"].append(3), "of its ops is no object"),
        (lambda d: d["ops"][0].update(shape="3"), "entry 0 of its ops has no shape"),
        (lambda d: d["timeline"].update(lanes=None), "timeline.lanes"),
        (lambda d: d["timeline"]["lanes"][0]["spans"][0].update(start="0"), "has no start"),
        (lambda d: d.update(cell=[]), "its cell"),
        (lambda d: d["verdict"].update(lead=None), "no lead"),
    ],
    ids=range(10),
)
def test_what_is_damaged_or_newer_is_refused_with_its_reason(change, says):
    data = copy.deepcopy(DATA)
    change(data)
    with pytest.raises(OptionError, match="can be read") as refused:
        read_report(data)
    assert says in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "3", "null", '{"version": 1}', "NaN"])
def test_text_that_is_no_report_is_refused(text):
    with pytest.raises(OptionError, match="can be read"):
        read_report(text)


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="No such file"):
        read_report(tmp_path / "none.json")
    (tmp_path / "large.json").write_text(json.dumps(DATA))
    monkeypatch.setattr("jitlab.report.reading.MOST_BYTES", 1000)
    with pytest.raises(OptionError, match="larger than"):
        read_report(tmp_path / "large.json")


@given(st.sampled_from(["version", "cell", "verdict", "timeline", *NEEDED]), JSON)
def test_any_value_in_any_place_is_read_or_refused(key, value):
    try:
        read_report({**DATA, key: value})
    except OptionError:
        pass


@given(st.sampled_from(sorted(NEEDED)), st.data())
def test_any_value_in_any_entry_is_read_or_refused(key, draw):
    field = draw.draw(st.sampled_from(sorted(NEEDED[key])))
    data = {**DATA, key: [{**DATA[key][0], field: draw.draw(JSON)}, *DATA[key][1:]]}
    try:
        read_report(data)
    except OptionError:
        pass
