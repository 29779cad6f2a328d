"""What stays of a report that is too long for a notebook file."""

import copy
import json

import pytest
import report_samples as samples

from jitlab.config import config
from jitlab.report import MIME, read_report


def bytes_in_a_file(bundle):
    """What a cell's output adds to a notebook file, which is JSON with a line for each item; of a text, for each line."""
    lines = {key: value.splitlines(keepends=True) if isinstance(value, str) else value for key, value in bundle.items()}
    book = {"cells": [{"outputs": [{"data": lines}]}]}
    return len(json.dumps(book, ensure_ascii=False, indent=1).encode())


def saved(data):
    """The bundle's JSON, which has to fit and to be readable."""
    bundle = read_report(json.loads(json.dumps(data)))._repr_mimebundle_()
    assert bytes_in_a_file(bundle) <= config.saved_bytes
    read_report(json.loads(json.dumps(bundle[MIME])))
    return bundle[MIME]


@pytest.fixture
def data():
    return copy.deepcopy(samples.softmax_report(retraces=1).to_json())


def with_source(data, lines, before=0):
    """The cell with these lines before its own; what stood on its lines stands as many lower."""

    def moved(value):
        if isinstance(value, list) and len(value) == 5 and value[0] == samples.CELL:
            return [value[0], value[1] + before, value[2], value[3] + before, value[4]]
        if isinstance(value, dict):
            return {key: moved(item) for key, item in value.items()}
        return [moved(item) for item in value] if isinstance(value, list) else value

    source = [*lines, *data["cell"]["source"]]
    piece = {"file": samples.CELL, "cell": "a1b2", "path": None, "first": 1, "lines": source}
    return {**moved(data), "cell": {**data["cell"], "source": source}, "sources": [piece]}


def test_a_long_literal_in_a_cell_takes_nothing_from_what_is_said_of_it(data):
    kept = saved(with_source(data, ["d = '" + "ab" * 70_000 + "'"], before=1))
    for key in ("plans", "ops", "clusters", "kernels", "boundaries", "retraces"):
        assert len(kept[key]) == len(data[key]), key
    assert kept["omitted"] == {"lines": 1}
    first, *rest = kept["sources"][0]["lines"]
    assert first.startswith("d = 'abab") and first.endswith("ab'") and len(first) < 1000 and rest == samples.SOURCE


def test_of_very_many_lines_those_that_are_spoken_of_stay_with_their_numbers(data):
    numbers = ["    1.2345678, 2.3456789,"] * 6000
    kept = saved(with_source(data, numbers, before=6000))
    for key in ("plans", "ops", "clusters", "kernels", "boundaries", "retraces"):
        assert len(kept[key]) == len(data[key]), key
    lines = {at: text for piece in kept["sources"] for at, text in enumerate(piece["lines"], piece["first"])}
    for op in kept["ops"]:
        for _, line, *_ in op["lines"]:
            assert lines[line] == samples.SOURCE[line - 6001]
    assert kept["omitted"] == {"lines": 6011 - len(lines)}


@pytest.mark.slow
def test_very_many_retraces_leave_room_for_plans_and_operations():
    data = samples.recorded(list(samples.softmax_events(retraces=300, compare=False))).report().to_json()
    kept = saved(data)
    names = {plan["name"] for plan in kept["plans"]}
    assert len(names) >= 2 and len(kept["retraces"]) >= 10
    assert {op["plan"] for op in kept["ops"]} == {cluster["plan"] for cluster in kept["clusters"]} == names
    assert len(kept["ops"]) == 22 * len(names)  # each with all of its own
    assert kept["omitted"]["plans"] == 301 - len(names)
    bundle = read_report(data)._repr_mimebundle_()
    assert bytes_in_a_file(bundle) > 0.8 * config.saved_bytes  # the room is used


@pytest.mark.parametrize(
    "path",
    [
        ("cell", "error"), ("cell", "title"), ("verdict", "lead"), ("run", "text"), ("retraces", 1, "argument"),
        ("retraces", 1, "before"), ("retraces", 1, "text"), ("ops", 0, "name"), ("clusters", 0, "reason", "text"),
        ("plans", 0, "function"), ("verdict", "next", "code"), ("timeline", "lanes", 0, "spans", 0, "label"),
    ],
    ids=lambda path: ".".join(map(str, path)),
)  # fmt: skip
@pytest.mark.parametrize("text", ["E" * 300_000, "\N{GRINNING FACE}" * 100_000], ids=["E", "face"])
def test_no_name_or_text_is_too_long_for_it(data, path, text):
    *way, last = path
    part = data
    for key in way:
        part = part[key]
    part[last] = text
    kept = saved(data)
    assert len(kept["ops"]) == len(data["ops"]) and len(kept["retraces"]) == len(data["retraces"])


STATEMENT = {"text": "y = g(x)", "reason": {"code": "call", "text": "it calls g"}, "lines": [], "seconds": 1.0, "calls": 1}
LOOP = {"function": "f", "text": "for", "reason": STATEMENT["reason"], "lines": [], "iterations": 3, "times": 1}
NUMERIC = {"cluster": "cluster_0", "plan": "In [7] #1", "output": "div", "lines": [3], "ok": True, "differing": 0}


@pytest.mark.parametrize("key", ["retraces", "statements", "fallbacks", "loops", "activity", "numerics", "temporaries"])
def test_a_list_of_very_many_leaves_the_others(data, key):
    report = data | {"statements": [STATEMENT], "loops": [LOOP], "numerics": [NUMERIC]}
    kept = saved({**report, key: report[key] * 5000})
    assert len(kept["ops"]) >= 22 and len(kept["kernels"]) >= 4 and len(kept["clusters"]) >= 2  # all of a plan
    assert 20 < len(kept[key]) < 5000 * len(report[key])


def test_a_plan_that_stands_for_others_has_the_time_of_those_that_are_left_out(data):
    plan = data["plans"][0]
    for trace in range(3, 60):
        data["plans"].append({**plan, "name": f"In [7] #{trace}", "trace": trace})
        for key in ("ops", "clusters", "kernels", "boundaries", "fallbacks", "temporaries"):
            mine = [entry for entry in data[key] if entry["plan"] == plan["name"]]
            data[key] += [{**entry, "plan": f"In [7] #{trace}"} for entry in mine]
    kept = saved(data)
    assert len(kept["ops"]) < len(data["ops"])
    plans = {op["plan"] for op in kept["ops"]}
    assert plan["name"] in plans and plans == {cluster["plan"] for cluster in kept["clusters"]}
    for key in ("clusters", "kernels", "fallbacks"):
        for what in ("seconds", "calls"):
            whole = sum(entry[what] for entry in data[key] if entry["seconds"] is not None)
            assert sum(entry[what] for entry in kept[key]) == pytest.approx(whole), (key, what)
