"""The last runs of a cell and named baselines: in a shell with `%jitlab`, over the wire, after a restart, in edited cells."""

import json
from types import SimpleNamespace

import pytest

import jitlab as jl
from jitlab.errors import OptionError
from jitlab.notebook.extension import load_ipython_extension, session_of, unload_ipython_extension
from jitlab.notebook.rpc.requests import answer

CELL = "for _ in range(6):\n    result = f(x)"


@pytest.fixture
def shell(ip, capsys):
    """A session without cells, and a function to call in them."""
    unload_ipython_extension(ip)
    load_ipython_extension(ip)
    ip.display_pub.outputs.clear()
    cell(ip, "import numpy as np, jitlab as jl\nx = np.linspace(0, 1, 3000).reshape(30, 100)")
    cell(ip, "@jl.function\ndef f(x):\n    return np.exp(x) / np.exp(x).sum()", id="definition")
    capsys.readouterr()
    return ip


def cell(ip, source, id=None):
    result = ip.run_cell(source, store_history=True, cell_id=id)
    return result.error_in_exec or result.error_before_exec


def told(ip, capsys, line):
    """What a `%jitlab` line prints or shows."""
    ip.display_pub.outputs.clear()
    capsys.readouterr()
    assert cell(ip, line) is None
    shown = [output["data"]["text/plain"] for output in ip.display_pub.outputs]
    return "\n".join([*shown, capsys.readouterr().out]).strip()


def refused(ip, line):
    error = cell(ip, line)
    assert isinstance(error, OptionError)
    return str(error)


def test_the_runs_of_a_cell_are_numbered_and_compared(shell, capsys):
    for _ in range(3):
        cell(shell, CELL, id="a")
    history = answer(session_of(shell), {"want": "runs", "cell": "a"})["history"]
    assert history["run"] == 3 and [run["run"] for run in history["runs"]] == [1, 2, 3] and history["baselines"] == []
    assert {run["calls"] for run in history["runs"]} == {6} and len({run["fingerprint"] for run in history["runs"]}) == 1
    text = told(shell, capsys, "%jitlab compare")
    assert text.startswith("run 3 against run 2") and "whole cell" in text and "Same plan." in text
    assert told(shell, capsys, "%jitlab compare --run 1").startswith("run 3 against run 1")
    assert "has no run 7" in refused(shell, "%jitlab compare --run 7")


def test_a_run_that_was_chosen_is_on_the_older_side(shell):
    for _ in range(11):
        cell(shell, "once = f(x)", id="a")
    for run in range(1, 11):
        found = answer(session_of(shell), {"want": "compare", "cell": "a", "against": {"run": run}})["comparison"]
        before, now = found["runs"]
        assert found["against"] == {"run": run} and max(before) == run and now == list(range(run + 1, 12))
        assert (found["needs"] is None) == (run in (5, 6))  # else one side has too few calls
    for asked in ({}, {"against": None}):  # nothing was chosen: both sides have as many as there are
        found = answer(session_of(shell), {"want": "compare", "cell": "a", **asked})["comparison"]
        assert found["needs"] is None and found["runs"][1][-1] == 11 and len(found["runs"][1]) > 1


def test_runs_of_a_cell_that_calls_once_are_compared_when_there_are_enough_of_them(shell):
    for _ in range(10):
        cell(shell, "result = f(x)", id="a")
    found = session_of(shell).history.compare(session_of(shell).cells["a"])
    assert found.rows[0]["change"] is not None
    assert min(found.data["samples"]) == 5 and "Run the cell again" not in (found.data["note"] or "")


def test_before_there_are_enough_runs_the_numbers_stand_and_how_many_more_it_takes(shell, capsys):
    history, sessions = session_of(shell).history, session_of(shell).cells
    told_needs = []
    for _ in range(10):
        cell(shell, "result = f(x)", id="a")
        if len(told_needs) or history.to_json(sessions["a"])["run"] > 1:
            found = history.compare(sessions["a"])
            told_needs.append((found.data["needs"] or {}).get("runs"))
            assert all(row["before"] and row["after"] for row in found.rows)
    assert told_needs == [*range(8, 0, -1), None] and found.rows[0]["change"] is not None
    oldest = history.compare(sessions["a"], {"run": 1}).data["needs"]
    assert oldest["text"] == "Run 1 has 1 timed call, too few to tell (5): compare with a later run."
    assert (oldest["runs"], oldest["code"], oldest["args"]["least"]) == (None, "later", 5)
    history.pin("early", sessions["a"])
    cell(shell, "result = f(x)", id="a")
    text = told(shell, capsys, "%jitlab compare early")
    assert "times of one call" in text and "Runs 2–10 (before) ran the same plan" in " ".join(text.split())
    needs = "Too few timed calls to tell: 9 before and 1 now, of 5 each. Run the cell 4 more times."
    assert needs in " ".join(text.split())


def test_of_old_code_that_gets_no_more_runs_no_number_of_them_is_promised(shell):
    for source in 2 * ["result = f(x)"] + 3 * ["result = f(x)  # again"]:
        cell(shell, source, id="a")
    found = session_of(shell).history.compare(session_of(shell).cells["a"])
    assert found.data["runs"] == [[1, 2], [3, 4, 5]] and found.data["needs"]["runs"] is None
    old = "The old code has 2 timed calls (runs 1–2) and gets no more, too few to tell (5): "
    assert found.data["needs"]["text"] == old + "%jitlab baseline NAME keeps runs of a code before it is changed."


def test_no_more_runs_are_kept_than_the_setting_says(shell, monkeypatch):
    monkeypatch.setattr(jl.config, "history_runs", 3)
    for _ in range(5):
        cell(shell, CELL, id="a")
    history = answer(session_of(shell), {"want": "runs", "cell": "a"})["history"]
    assert history["run"] == 5 and [run["run"] for run in history["runs"]] == [3, 4, 5]


def test_an_edited_cell_goes_on_with_its_history_and_a_note(shell, capsys):
    cell(shell, CELL, id="a")
    cell(shell, CELL.replace("6", "7"), id="a")
    text = told(shell, capsys, "%jitlab compare")
    assert "The cell was edited between these runs." in " ".join(text.split())


def test_a_function_that_was_defined_anew_is_a_changed_plan(shell, capsys):
    cell(shell, CELL, id="a")
    cell(shell, "@jl.function\ndef f(x):\n    return np.exp(x) / np.log(x + 2).sum()", id="definition")
    cell(shell, CELL, id="a")
    text = told(shell, capsys, "%jitlab compare")
    assert "Plan changed in cluster_" in text and "`x + 2` and `np.log(x + 2)` (line 3) are new" in " ".join(text.split())


def test_a_shell_without_cell_ids_knows_a_cell_by_its_source(shell, capsys):
    for _ in range(2):
        cell(shell, CELL)
    assert told(shell, capsys, "%jitlab compare").startswith("run 2 against run 1")


def test_a_baseline_is_pinned_compared_listed_and_dropped(shell, capsys):
    assert "There is no baseline" in told(shell, capsys, "%jitlab baseline")
    cell(shell, CELL, id="a")
    assert told(shell, capsys, "%jitlab baseline 'gather first'") == "Baseline 'gather first': 1 cell pinned."
    cell(shell, CELL, id="a")
    assert told(shell, capsys, "%jitlab compare 'gather first'").startswith("run 2 against baseline “gather first”")
    assert told(shell, capsys, "%jitlab baseline") == "gather first: 1 cell"
    assert "one of gather first" in refused(shell, "%jitlab compare nonsense")
    assert told(shell, capsys, "%jitlab baseline 'gather first' --drop") == "Dropped 'gather first'."
    assert "There is no baseline 'gather first'." in refused(shell, "%jitlab compare 'gather first'")


def test_a_baseline_of_a_file_is_found_again_after_a_restart(shell, capsys, tmp_path):
    path = tmp_path / "base.json"
    cell(shell, CELL, id="a")
    assert str(path) in told(shell, capsys, f"%jitlab baseline first --save {path}")
    unload_ipython_extension(shell)
    load_ipython_extension(shell)
    cell(shell, CELL, id="a")
    assert told(shell, capsys, f"%jitlab baseline yesterday --load {path}").startswith("Baseline 'yesterday': 1 cell read")
    assert told(shell, capsys, "%jitlab compare yesterday").startswith("run 1 against baseline “yesterday”")
    cell(shell, "y = 5\n" + CELL, id="another id, another source, the same plan")
    assert "Same plan." in told(shell, capsys, "%jitlab compare yesterday")


def test_clear_forgets_the_runs_and_keeps_the_baselines(shell, capsys):
    cell(shell, CELL, id="a")
    told(shell, capsys, "%jitlab baseline kept")
    told(shell, capsys, "%jitlab clear")
    cell(shell, CELL, id="a")
    assert told(shell, capsys, "%jitlab compare kept").startswith("run 1 against baseline “kept”")


def test_arguments_that_say_nothing_are_refused_with_what_to_try(shell):
    for line in ("%jitlab compare --nonsense", "%jitlab baseline --save x", "%jitlab compare a --run 2", "%jitlab baseline 'a"):
        assert "try: " in refused(shell, line)
    assert "There is no recorded run" in refused(shell, "%jitlab compare --cell 99")


def test_the_panel_pins_compares_and_drops_over_the_wire(shell):
    session = session_of(shell)
    for _ in range(2):
        cell(shell, CELL, id="a")
    pinned = answer(session, {"want": "pin-baseline", "cell": "a", "name": "gather first"})
    assert pinned["history"]["baselines"] == ["gather first"]
    cell(shell, CELL, id="a")
    for against in ({"baseline": "gather first"}, {"run": 1}):
        found = answer(session, {"want": "compare", "cell": "a", "against": against})["comparison"]
        assert (found["run"], found["against"]) == (3, against)
        assert [row["kind"] for row in found["rows"]] == ["cell", "cluster"]
        assert json.loads(json.dumps(found, allow_nan=False)) == found
    dropped = answer(session, {"want": "drop-baseline", "cell": "a", "name": "gather first"})
    assert dropped["history"]["baselines"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"want": "compare", "cell": "a", "against": {"run": 0}},
        {"want": "compare", "cell": "a", "against": {"run": 1, "baseline": "b"}},
        {"want": "compare", "cell": "a", "against": {"baseline": "nothing"}},
        {"want": "compare", "cell": "no cell", "against": {"run": 1}},
        {"want": "pin-baseline", "cell": "a", "name": ""},
        {"want": "pin-baseline", "cell": "a", "name": "x" * 101},
        {"want": "drop-baseline", "cell": "a", "name": "nothing"},
        {"want": "runs", "cell": 5},
        {"want": "runs"},
    ],
    ids=str,
)
def test_a_request_that_does_not_fit_is_answered_with_a_sentence(shell, body):
    cell(shell, CELL, id="a")
    reply = answer(session_of(shell), body)
    assert list(reply) == ["error"] and reply["error"]


def test_a_live_report_has_the_history_and_a_saved_one_has_not(shell):
    cell(shell, CELL, id="a")
    session = session_of(shell)
    run = session.cells["a"]
    assert session.wire_report(run)["history"]["runs"][0]["run"] == 1
    assert "history" not in session.report_of(run).data


def test_the_report_of_a_run_that_ends_while_an_older_one_is_sent_is_sent_too(shell, monkeypatch):
    """The reports' thread may be kept waiting at any place: here between the look-up of a run and its report."""
    session, sent = session_of(shell), []
    link = SimpleNamespace(
        attached=True, mark=lambda cell: None, emit=lambda *_: None, emit_calls=lambda *_: None,
        report=lambda cell, data, mark, number: sent.append(data["history"]["run"]),
    )  # fmt: skip
    monkeypatch.setattr(session, "link", link)
    monkeypatch.setattr(session, "_keep_live", lambda: None)  # this thread is the reports' thread
    cell(shell, CELL, id="a")
    found = session.run_with_id

    def later(id):
        run = found(id)
        monkeypatch.setattr(session, "run_with_id", found)
        cell(shell, CELL, id="a")
        return run

    session.push_dirty()
    monkeypatch.setattr(session, "run_with_id", later)
    session.push_soon(found("a"))
    session.push_dirty()
    session.push_dirty()
    assert sent[0] == 1 and sent[-1] == 2
