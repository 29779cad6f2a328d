"""The schema is what is written: each key of a report has a field, and each field says what it is."""

import copy
import json
import re
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import report_samples as samples

import jitlab as jl
from jitlab.report import read_report
from jitlab.report.answer_schema import ClusterListing, RunsCompared, SweepAnswer, WhatIfAnswer
from jitlab.report.schema import Report, bare, has, is_record, keys_of, lists
from jitlab.report.shape import misfit

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import report_schema

FIXTURES = Path(__file__).parents[2] / "extension/test/fixtures"


def unknown(value, kind=Report, where="report"):
    """The keys of a value that the schema does not name."""
    kind, _ = bare(kind)
    inner = get_args(kind)
    if is_record(kind) and isinstance(value, dict):
        known = {key.name: key.type for key in keys_of(kind)}
        yield from (f"{where}.{name}" for name in value.keys() - known.keys())
        for name in value.keys() & known.keys():
            yield from unknown(value[name], known[name], f"{where}.{name}")
    elif inner[1:] == (...,):
        for item in value:
            yield from unknown(item, inner[0], where)


def looped():
    def settle(u, n):
        for _ in range(n):
            u = np.where(u > 0.5, np.sin(u) * 0.5, u)
        return u / u.sum(), np.argpartition(u, 3)

    return jl.explain(jl.jit(settle), np.ones(500), 40).to_json()


def saved(name):
    data = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    return data.get("report", data)


@pytest.mark.parametrize(
    "made",
    [lambda: samples.softmax_report().to_json(), looped, *(lambda name=name: saved(name) for name in ("branch", "explained"))],
)
def test_each_key_that_is_written_is_in_the_schema(made):
    data = read_report(made()).data
    assert {key for key in unknown(data) if ".fix.args." not in key} == set()  # a fix has those of its text, too


def told(key):
    return json.loads((FIXTURES / "explained.json").read_text(encoding="utf-8"))[key]


@pytest.mark.parametrize("kind, answers", [
    (ClusterListing, lambda: told("code")),
    (RunsCompared, lambda: [told("comparison")]),
    (WhatIfAnswer, lambda: [job["result"] for job in told("jobs") if job["kind"] == "whatif"]),
    (SweepAnswer, lambda: [job["result"] for job in told("jobs") if job["kind"] == "sweep"]),
])  # fmt: skip
def test_each_answer_of_a_kernel_is_what_the_schema_says(kind, answers):
    given = answers()
    assert given and [misfit(answer, kind) for answer in given] == [None] * len(given)
    assert {key for answer in given for key in unknown(answer, kind)} == set()


@pytest.mark.parametrize("change, says", [
    (lambda d: d["ops"][0].update(called=3), "ops[0].called is no text"),
    (lambda d: d["plans"][0].update(calls=0.5), "plans[0].calls is no whole number"),
    (lambda d: d.update(summary={"clusters": {"cluster_0": {"ops": -1}}}), "summary.clusters.cluster_0.ops is less than 0"),
    (lambda d: d["retraces"][0].update(changes=[["a", "b", "c"]]), "retraces[0].changes[0] is no list of 4"),
    (lambda d: d.update(loops=None), "loops is no list"),
    (lambda d: d["timeline"]["lanes"][0]["spans"][0].update(duration=float("nan")), "duration is not finite, or too large"),
])  # fmt: skip
def test_what_is_not_of_its_type_is_named(change, says):
    data = copy.deepcopy(samples.softmax_report().to_json())
    change(data)
    assert says in misfit(data)


def test_null_stands_where_its_type_takes_none_and_a_key_is_left_out_where_it_has_a_default():
    data = samples.softmax_report().to_json()
    assert misfit({**data, "summary": None}) is None and misfit({**data, "frozen": None}) == "frozen is no list"
    del data["frozen"]
    assert misfit(data) is None and read_report(data).data == data


def test_facts_of_the_fields_are_those_that_lists_are_chosen_by():
    assert {name for name, entry in lists().items() if has(entry, "plan")} >= {"ops", "kernels", "clusters", "fallbacks"}
    assert not has(lists()["statements"], "plan") and has(lists()["statements"], "seconds", "spans")


def test_each_field_says_what_it_is():
    silent = {
        f"{r.__name__}.{key.name}"
        for r in report_schema.records()
        for key in keys_of(r)
        if not report_schema.docs_of(r).get(key.field)
    }
    assert not silent and len(report_schema.records()) > 30


def test_the_page_and_the_panel_have_the_schema_as_it_is():
    """`python scripts/report_schema.py` writes both."""
    page = report_schema.PAGE.read_text(encoding="utf-8")
    assert report_schema.page(page) == page
    assert report_schema.TABLE.read_text(encoding="utf-8") == report_schema.table()


def test_the_keys_of_a_report_keep_their_names_in_the_notebooks_widget():
    """Its build shortens names of the panel's own objects."""
    build = json.loads((FIXTURES.parents[2] / "package.json").read_text(encoding="utf-8"))["scripts"]["build:widget"]
    shortened = set(re.search(r"--mangle-props=\^\(([\w|]+)\)\$", build)[1].split("|"))
    keys = {key.name for record in report_schema.records() for key in keys_of(record)}
    assert len(shortened) > 30 and not shortened & keys
