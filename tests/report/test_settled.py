"""A cell that says nothing new keeps its output: what counts as new."""

import copy
import json

import pytest
import report_samples as samples

from jitlab.report.store.settled import Entry, essence, has_changed, neutral


@pytest.fixture(scope="module")
def data():
    return samples.softmax_report().to_json()


def changed(data, change):
    other = copy.deepcopy(data)
    change(other)
    return essence(other) != essence(data)


def all_times(value, factor):
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("seconds", "start", "duration", "offset", "of_peak", "numpy_seconds") and isinstance(item, float):
                value[key] = item * factor
            else:
                all_times(item, factor)
    elif isinstance(value, list):
        for item in value:
            all_times(item, factor)


def test_measurements_and_numbers_of_a_session_are_nothing_new(data):
    assert not changed(data, lambda d: all_times(d, 1.3))
    assert not changed(data, lambda d: d["verdict"].update(next=None))
    assert not changed(data, lambda d: d.update(timeline={"lanes": []}))
    assert not changed(data, lambda d: d["cell"].update(execution_count=99, title="In [99]", id="z"))

    def numbered(d):
        text = json.dumps(d).replace("cluster_0", "cluster_17").replace("<cell 7>", "<cell 31>")
        d.clear()
        d.update(json.loads(text))

    assert not changed(data, numbered)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["cell"].update(source=["x = 1"]),
        lambda d: d["cell"].update(error="ValueError"),
        lambda d: d["ops"][0].update(shape=[1, 2]),
        lambda d: d["ops"][0].update(cluster=None),
        lambda d: d["kernels"].pop(),
        lambda d: d["boundaries"].pop(),
        lambda d: d["boundaries"][0]["reason"].update(code="other"),
        lambda d: next(r for r in d["retraces"] if not r["first"]).update(argument="rate"),
        lambda d: d["clusters"][0].update(bytes_read=1),
        lambda d: d["verdict"].update(numpy_seconds=None if d["verdict"]["numpy_seconds"] else 1.0),
    ],
    ids=range(10),
)
def test_what_was_decided_is_new(data, change):
    assert changed(data, change)


def test_a_change_of_plan_that_only_renames_two_clusters_apart_is_new(data):
    def join(d):
        for op in d["ops"]:
            op["cluster"] = op["cluster"] and "cluster_0"

    assert len({op["cluster"] for op in data["ops"]}) > 2 and changed(data, join)


def test_one_run_shows_nothing_and_two_in_a_row_a_large_change():
    assert not has_changed([0.10], [5.0]) and not has_changed([0.10], [0.1, 5.0]) and not has_changed([0.10], [5.0, 0.1])
    assert not has_changed([0.10], [0.25, 0.26])
    assert has_changed([0.10], [0.31, 0.33])
    assert has_changed([0.10], [0.031, 0.030])
    assert not has_changed([0.10], [0.031, 0.33])
    assert not has_changed([200e-6], [900e-6, 950e-6])  # of so little a cold cache makes as much
    assert has_changed([0.010], []) and has_changed([], [0.01])


def test_a_first_run_that_was_slow_for_being_the_first_does_not_stay():
    entry = Entry.of({}, {"seconds": 4e-3})
    assert [entry.takes({"seconds": t}) for t in (67e-6, 66e-6)] == [True, False]
    entry = entry.renewed({}, {"seconds": 68e-6})
    assert all(entry.takes({"seconds": t}) for t in (67e-6, 66e-6, 70e-6, 66e-6, 68e-6) * 4)


def test_a_smaller_change_shows_when_later_runs_agree():
    entry = Entry.of({"text/plain": "old"}, {"seconds": 0.0100})
    assert all(entry.takes({"seconds": t}) for t in (0.0101, 0.0099, 0.0102, 0.0100))
    runs = [0.0131, 0.0130, 0.0132, 0.0129, 0.0131]
    shown = [entry.takes({"seconds": t}) for t in runs]
    assert shown == [True, True, True, True, False]
    entry = entry.renewed({"text/plain": "new"}, {"seconds": runs[-1]})
    assert entry.before["seconds"] == runs and entry.takes({"seconds": 0.0130})


def test_runs_that_only_scatter_change_nothing():
    entry = Entry.of({}, {"seconds": 0.0100})
    for n in range(60):
        assert entry.takes({"seconds": 0.0100 * (1 + 0.15 * ((n * 7919) % 13 - 6) / 6)})


def test_a_comparison_with_numpy_that_is_new_is_shown():
    assert not Entry.of({}, {"seconds": 0.01}).takes({"seconds": 0.01, "numpy_seconds": 0.1})


@pytest.mark.parametrize(
    "entry", [None, [], {}, {"version": 2}, {"version": 1, "bundle": 3, "before": {}, "after": {}},
              {"version": 1, "bundle": {}, "before": {"seconds": ["x"]}, "after": {}},
              {"version": 1, "bundle": {}, "before": {"seconds": [-1.0]}, "after": {}}], ids=str,
)  # fmt: skip
def test_a_file_that_is_no_entry_is_none(entry):
    assert Entry.from_json(entry) is None


def test_an_entry_survives_its_file():
    entry = Entry.of({"text/plain": "a"}, {"seconds": 0.01})
    entry.takes({"seconds": 0.02})
    assert Entry.from_json(entry.to_json()).to_json() == entry.to_json()


def test_the_counts_of_a_cell_are_left_out_of_what_is_saved(data):
    own = int(data["cell"]["execution_count"])
    saved = neutral(data, [own])
    assert saved["cell"]["title"] == "In [ ]" and saved["cell"]["execution_count"] is None
    files = {span[0] for op in saved["ops"] for span in op["lines"]}
    assert "In [ ]" in files and f"<cell {own}>" not in files
    assert saved["cell"]["source"] == data["cell"]["source"]
    assert neutral({**data, "cell": {**data["cell"], "id": f"cell {own}"}}, [own])["cell"]["id"].startswith("cell ")
