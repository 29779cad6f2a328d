"""Reports that come from files: those of jitlab are read, all else is refused in one sentence."""

import copy
import json
from pathlib import Path
from typing import get_args

import pytest
import report_samples as samples
from hypothesis import given, settings
from hypothesis import strategies as st

from jitlab.errors import OptionError
from jitlab.report import MIME, read_report
from jitlab.report.schema import VERSION, Report, bare, is_record, keys_of
from jitlab.report.store.baselines import read_baseline
from jitlab.report.store.older import upgraded

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
        (lambda d: d.update(version=9), "version 9, and this jitlab reads up to 4"),
        (lambda d: d.update(version=True), "no number"),
        (lambda d: d.pop("version"), "no version"),
        (lambda d: d.update(ops={}), "its ops is no list"),
        (lambda d: d.pop("kernels"), "its kernels is missing"),
        (lambda d: d["ops"].append(3), f"its ops[{len(DATA['ops'])}] is no object"),
        (lambda d: d["ops"][0].update(shape="3"), "its ops[0].shape is no list"),
        (lambda d: d["ops"][2]["lines"][0].pop(), "its ops[2].lines[0] is no list of 5"),
        (lambda d: d["timeline"].update(lanes=None), "its timeline.lanes is no list"),
        (lambda d: d["timeline"]["lanes"][0]["spans"][0].update(start="0"), "spans[0].start is no number"),
        (lambda d: d["timeline"]["lanes"][0]["spans"][0].update(duration=float("inf")), "duration is not"),
        (lambda d: d["clusters"][0].update(bytes_read=10**400), "bytes_read is not finite, or too large"),
        (lambda d: d["clusters"][0].update(calls=True), "its clusters[0].calls is no whole number"),
        (lambda d: d["boundaries"][0].update(reason={"text": ""}), "its boundaries[0].reason.code is missing"),
        (lambda d: d.update(cell=[]), "its cell is no object"),
        (lambda d: d["verdict"].update(lead=None), "its verdict.lead is no text"),
    ],
    ids=range(16),
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
    monkeypatch.setattr("jitlab.report.store.report_files.MOST_BYTES", 1000)
    with pytest.raises(OptionError, match="larger than"):
        read_report(tmp_path / "large.json")


def shown(report):
    """Everything that is made of a report."""
    for part in ("ops", "clusters", "kernels", "retraces", "fallbacks", "boundaries", "temporaries", "variants", "loops"):
        getattr(report, part)
    return str(report), report.to_html(), report.graph().source, report._repr_mimebundle_(), report.timeline.to_chrome()


def test_operations_that_are_inside_each_other_are_shown():
    data = copy.deepcopy(DATA)
    first, second = data["ops"][:2]
    first |= {"cluster": None, "kernel": None, "parent": second["name"]}
    second |= {"cluster": None, "kernel": None, "parent": first["name"]}
    report = read_report(data)
    assert data["verdict"]["lead"] in shown(report)[0]
    assert not report.why_not(first["name"], second["name"]).fused


def places(kind, value, path=()):
    """The way to every part of a report that the schema names, in the first entry of each list."""
    yield path
    kind, _ = bare(kind)
    if is_record(kind) and isinstance(value, dict):
        for key in keys_of(kind):
            if key.name in value:
                yield from places(key.type, value[key.name], (*path, key.name))
    elif get_args(kind)[1:] == (...,) and value:
        yield from places(get_args(kind)[0], value[0], (*path, 0))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(filter(None, places(Report, DATA)), key=str)), JSON | st.just(...))
def test_any_value_in_any_place_is_shown_or_refused(path, value):
    data = copy.deepcopy(DATA)
    holder = data
    for key in path[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    try:
        report = read_report(data)
    except OptionError:
        return
    shown(report)


@pytest.mark.parametrize("part", ["plans", "ops", "clusters", "kernels", "boundaries"])
def test_a_report_that_was_cut_is_shown_without_what_is_gone(part):
    report = read_report({**DATA, part: DATA[part][:1]})
    assert DATA["verdict"]["lead"] in shown(report)[0]
    for op in report.ops[1:]:
        if op.plan == report.ops[0].plan:
            report.why(report.ops[0].name, op.name)


def test_no_part_was_called_less_than_never():
    data = samples.softmax_report().to_json()
    for key in ("clusters", "kernels", "fallbacks", "retraces"):
        bad = copy.deepcopy(data)
        bad[key][0]["calls"] = -1
        with pytest.raises(OptionError, match=rf"{key}\[0\].calls is less than 0"):
            read_report(bad)


def test_of_a_device_no_more_is_read_than_a_report_or_baseline_may_have(monkeypatch):
    monkeypatch.setattr("jitlab.report.store.report_files.MOST_BYTES", 1000)
    monkeypatch.setattr("jitlab.report.store.baselines.MOST_BYTES", 1000)
    for read in (read_report, read_baseline):
        with pytest.raises(OptionError, match="larger than|more than"):
            read(Path("/dev/zero"))


def test_a_report_that_version_1_wrote_opens_and_says_the_same():
    """Its fixes are text; what they are is read off that text, once, when it is opened."""
    old = json.loads((Path(__file__).parents[2] / "extension/test/fixtures/version1.json").read_text(encoding="utf-8"))
    assert old["version"] == 1
    report = read_report(copy.deepcopy(old))
    assert report.data["version"] == VERSION
    assert [retrace["text"] for retrace in report.data["retraces"]] == [retrace["text"] for retrace in old["retraces"]]
    call = "step(x, np.asarray(0.5 + n, np.float64), s)"
    assert [(trace.fix, trace.fix_code, trace.fix_form) for trace in report.traces] == [
        (None, "", "words"), *[(call, "as_array", "call")] * 3, (None, "", "words"),
        ("pass `….astype(np.float64)` for `k` at the call in <cell 6>, line 1", "cast", "words"),
    ]  # fmt: skip
    assert f"       {call}\n" in f"{report}\n" and "No fix found. It cost tracing only" in str(report)
    assert "Nothing to fix." not in json.dumps([retrace["done"] for retrace in report.data["retraces"]])


def test_what_version_1_said_is_done_is_done():
    old = json.loads((Path(__file__).parents[2] / "extension/test/fixtures/version1.json").read_text(encoding="utf-8"))
    once = "Once: `k` was a number before, an array from now on. Nothing to fix."
    old["retraces"] = [{**old["retraces"][3], "fix": None, "proof": once}]
    assert once.rpartition(". ")[0] in " ".join(str(read_report(old)).split())


@pytest.mark.parametrize("version", [1, 2])
def test_reasons_that_were_one_text_are_split_when_they_are_read(version):
    """Said as they were when they were written: what a version before split itself."""
    new = samples.softmax_report().to_json()
    parts = {"text": "level O0 gives each operation its own kernel; p is 2.4 MB"}
    whole = {**parts, "clause": "level O0 gives each operation its own kernel", "rest": "p is 2.4 MB", "size_in": "rest"}
    new["boundaries"][1]["reason"] |= whole
    old = copy.deepcopy(new)
    old["version"] = version
    for entry in (*old["boundaries"], *old["temporaries"]):
        for key in ("clause", "rest", "size_in"):
            entry["reason"].pop(key, None)
    opened, saved = read_report(old), read_report(new)
    assert opened.data["version"] == VERSION and shown(opened) == shown(saved)
    reasons, again = ([edge.reason for edge in report.boundaries] for report in (opened, saved))
    assert reasons == again and (reasons[1].rest, reasons[1].size_in) == ("p is 2.4 MB", "rest")


def test_what_version_2_says_of_retraces_stays():
    data = copy.deepcopy(DATA)
    done = {"code": "array", "args": {"names": "`k`"}, "text": "Once: `k` was a number."}
    data["retraces"][0] |= {"fix": None, "done": done, "proof": "2 traces become 1"}
    retraces = copy.deepcopy(data["retraces"])
    assert read_report({**data, "version": 2}).data["retraces"] == retraces


def test_what_would_change_a_decision_opens_from_version_3_where_it_was_text():
    fixture = Path(__file__).parents[2] / "extension/test/fixtures/explained.json"
    old = json.loads(fixture.read_text(encoding="utf-8"))["report"]
    old = {**old, "ops": [{**old["ops"][0], "would_compile_if": "it were marked"}, *old["ops"][1:]]}
    told = [edge["would_fuse_if"] for edge in old["boundaries"]]
    report = read_report(old)
    assert old["version"] == 3 and any(told) and [edge.would_fuse_if for edge in report.boundaries] == told
    assert report.ops[0].would_compile_if == "it were marked" and report.ops[1].would_compile_if is None


def test_what_an_earlier_version_said_in_text_alone_is_read_as_the_panel_reads_it():
    cases = json.loads((Path(__file__).parents[2] / "extension/test/fixtures/older.json").read_text(encoding="utf-8"))
    for text, *expected in cases["reasons"]:
        (edge,) = upgraded({"version": 2, "boundaries": [{"reason": {"text": text}}]})["boundaries"]
        assert [edge["reason"].get(key, "") for key in ("clause", "rest", "size_in")] == expected
    for proof, is_done in cases["done"]:
        (entry,) = upgraded({"version": 1, "retraces": [{"fix": None, "proof": proof}]})["retraces"]
        assert (entry["done"] is not None) == is_done
    for fix, kind in cases["fixes"]:
        (entry,) = upgraded({"version": 1, "retraces": [{"fix": fix, "proof": "", "argument": "x"}]})["retraces"]
        assert ("words" if entry["fix"]["args"]["form"] == "words" else "code") == kind, fix
