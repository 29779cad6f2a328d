"""What to do next and then, and where the time of a retrace went."""

from types import SimpleNamespace

import numpy as np
import pytest
import report_samples as samples

import jitlab as jl
from jitlab.messages import Message
from jitlab.report.build.advice import bounded, own_code, spent, things_to_do, to_be_left


def test_then_is_what_cost_the_most_after_the_next():
    data = samples.softmax_report().to_json()
    data["fallbacks"][0]["seconds"] = 0.002
    cure, host = things_to_do(data, 0.02)
    assert cure == data["verdict"]["next"]
    assert host["text"] == "ArgPartition is left to NumPy, 2.0 ms (10 % of the work)"
    assert things_to_do({**data, "fallbacks": []}, 0.02) == [cure]
    assert samples.softmax_report(retraces=0).verdict["then"] is None


def step(start, stop, **more):
    return SimpleNamespace(start_ns=start, duration_ns=stop - start, function="f", trace=2, **more)


def test_the_time_of_a_retrace_is_shared_out_once():
    recording = SimpleNamespace(
        plans=[step(60, 70)], charged={},
        passes={("f", 2): [step(40, 60)]},
        compiled={("f", 2): [step(50, 90, cluster="c0"), step(90, 100, cluster="c1"), step(200, 999, cluster="c0")]},
    )
    assert spent(step(0, 50), recording) == [
        ["capture", 40e-9], ["passes", 10e-9], ["planning", 10e-9], ["codegen", 40e-9],
    ]  # fmt: skip
    recording.charged["f", 2] = 200  # what its ledger says: divided as these are
    assert [seconds for _, seconds in spent(step(0, 50), recording)] == pytest.approx([80e-9, 20e-9, 20e-9, 80e-9])


def test_the_parts_of_a_retrace_are_all_of_its_time_and_it_names_what_did_not_change():
    @jl.jit
    def scaled(x, k, y):
        return x * k + y

    with jl.record() as recording:
        for k in (2, 3):
            scaled(np.ones(4), k, np.zeros(4))
    first, second = recording.report().to_json()["retraces"]
    assert (second["argument"], second["same"], second["same_count"]) == ("k", [["x", "float64[4]"], ["y", "float64[4]"]], 2)
    assert sum(seconds for _, seconds in second["spent"]) == second["seconds"]
    assert first["same"] == []


def bootstrap(v, rng, n):
    out = np.empty(n)
    for b in range(n):
        s = v * rng.poisson(1.0, len(v))
        out[b] = s.mean() / s.std()
    return out


def drawn_before(v, rng, n):
    out = np.empty(n)
    picks = rng.poisson(1.0, (n, len(v)))
    for b in range(n):
        s = v * picks[b]
        out[b] = s.mean() / s.std()
    return out


def test_a_loop_that_draws_is_told_to_draw_before_it_and_is_native_code_then():
    v = np.random.default_rng(1).normal(size=50)
    report = jl.explain(jl.jit(bootstrap), v, np.random.default_rng(0), 30)
    assert [f["op"] for f in report.to_json()["fallbacks"]] == ["While"]
    assert "Draw them before the loop, for all iterations at once (size=...)" in report.verdict["next"]["why"]
    cured = jl.explain(jl.jit(drawn_before), v, np.random.default_rng(0), 30)
    assert [f["op"] for f in cured.to_json()["fallbacks"]] == ["Poisson"] and len(cured.kernels) == 1
    found = (jl.jit(f)(v, np.random.default_rng(0), 30) for f in (bootstrap, drawn_before))
    np.testing.assert_allclose(*found, rtol=1e-12)


def plain_report(**changes):
    """A report of one kernel without retraces, host or statements."""
    data = jl.explain(jl.jit(lambda x: np.exp(x) * 2 + 1), np.ones(40_000)).to_json()
    (kernel,) = data["kernels"]
    kernel.update({"seconds": 1e-3, "bound": "memory", "of_peak": 0.93} | changes.pop("kernel", {}))
    told = {"text": "line 3", "file": "f", "lines": [3], "seconds": 1e-3, "share": 1.0, "kernels": [kernel["name"]]}
    data["verdict"].update({"first_run": None, "next": None, "retraces": 0, "slowest": told} | changes.pop("verdict", {}))
    return data | changes


def test_nothing_to_improve_is_said_only_where_no_change_helps():
    """One kernel does all the work, near a peak of the machine: else no fix was found, and what takes the time is said."""
    assert bounded(plain_report()) == {
        "code": "done", "args": {"where": "line 3", "share": 0.93, "peak": "memory"},
        "text": "Nothing to improve: all the work is in line 3, at 93 % of the memory's peak.",
    }  # fmt: skip
    stored = {"text": "1 intermediate array is stored, 8.0 MB a call", "count": 1, "bytes": 8_000_000}
    left = [
        plain_report(kernel={"of_peak": 0.36}), plain_report(kernel={"of_peak": None, "bound": None}),
        plain_report(kernel={"bound": "cache", "of_peak": None}), plain_report(statements=[{}]), plain_report(as_python=[{}]),
        plain_report(verdict={"stored": stored}), plain_report(cell={"error": "ValueError"}),
    ]  # fmt: skip
    found = [bounded(data) for data in left]
    assert [said["code"] for said in found] == ["left"] * len(left)
    assert {said["text"] for said in found} == {"Nothing to improve that jitlab knows of."}
    quick = {"quick_share": 0.5, "text": ""}
    others = {"next": {"text": "do"}, "retraces": 1, "host": 1, "slowest": None, "first_run": quick, "compiled": 0}
    for name, value in others.items():
        assert bounded(plain_report(verdict={name: value})) is None


def test_where_numpys_own_code_is_the_work_it_is_named_as_what_no_change_helps():
    def spread(x):
        return (x - np.percentile(x, 2)) / np.percentile(x, 98)

    def medians(x):
        y = np.zeros(len(x))
        for i in range(1, len(x) - 1):
            y[i] = np.median(x[i - 1 : i + 2])
        return y

    for function, name in ((spread, "np.percentile"), (medians, "np.median")):
        data = jl.explain(jl.jit(function), np.arange(3000.0)).to_json()
        calls = [kernel["name"] for kernel in data["kernels"] if kernel.get("libraries")]
        told = {"text": "line 3", "file": "f", "lines": [3], "seconds": 1e-3, "share": 0.8, "kernels": calls}
        said = f"{name} is NumPy's own code, which compiled code calls as it is: 80 % of the work is in line 3."
        assert str(own_code(data, told)) == said
        data["verdict"].update({"first_run": None, "slowest": told})
        assert bounded(data)["text"] == said
        others = [{**told, "share": 0.4}, {**told, "kernels": []}, None]
        assert [own_code(data, each) for each in others] == [None, None, None]
    assert own_code(plain_report(), {**told, "kernels": ["k0"]}) is None


def test_never_by_numbers_names_numpys_own_code_too():
    data = jl.explain(jl.jit(lambda x: np.percentile(x, 2) * 2), np.arange(3000.0)).to_json()
    for kernel in data["kernels"]:
        kernel["seconds"] = 1e-3 if kernel.get("libraries") else 1e-6
    paid = Message("waited.never", {"numpy": 0.115, "whole": 0.225}).to_json()
    left = to_be_left(data, None, {"pays": paid})
    assert left["why"].startswith("About 115 ms a run by NumPy, 225 ms compiled. np.percentile is NumPy's own code, ")


def test_a_bound_is_in_the_report_and_two_kernels_are_never_proven_the_best():
    function = jl.jit(lambda x: np.cumsum(x) + x.mean())
    function(np.ones(400_000))
    verdict = jl.explain(function, np.ones(400_000)).verdict
    assert verdict["kernels"] > 1 and verdict["bound"]["code"] == "left"
