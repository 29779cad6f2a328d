"""A cell's report begins with what its run took by the clock: its own statements, without what jitlab measures afterwards."""

import time
from itertools import count

import pytest

from jitlab import events
from jitlab.messages import units
from jitlab.report import MIME
from jitlab.report.render.text import report_text

CELL = "import numpy as np\nx = np.linspace(0, 1, 300)\n"


@pytest.fixture(autouse=True)
def numbers(ip):
    ip.run_cell(CELL)


def test_the_first_run_says_what_it_waited_for_and_the_next_one_what_it_took(report_of):
    source = "%%jit -q\ny = np.exp(x) * 2.125 + np.sqrt(x)"
    first, second = (report_of(source)["verdict"]["waited"] for _ in range(2))
    assert first["compiling"] > 0 and " compiling" in first["text"]
    assert first["seconds"] >= first["work"] + first["compiling"]
    assert second["compiling"] == 0 and "compiling" not in second["text"]
    assert first["python"] == second["python"] == 0  # nothing of it is Python's: the rest is what jitlab takes
    assert second["overhead"] + second["waiting"] == pytest.approx(second["seconds"] - second["work"])


def test_what_others_had_of_the_processor_is_not_jitlabs(report_of, monkeypatch):
    source = "%%jit -q\ny = np.exp(x) * 7.125 + np.sqrt(x)"
    report_of(source)
    ticks = count()
    monkeypatch.setattr(events, "thread_ns", lambda: next(ticks))  # its thread never had one
    told = report_of(source)["verdict"]["waited"]
    assert told["waiting"] > 0 and told["overhead"] == pytest.approx(0.0, abs=1e-6)
    assert " waiting for a processor" in told["text"] and " jitlab" not in told["text"]


def test_what_others_took_of_the_processors_is_read_once_for_a_run(ip, report_of, monkeypatch):
    """The output is made before the cell has ended, the panel's report after it: both say the same."""
    shares = iter([0.9, 0.3, 0.6])
    monkeypatch.setattr("jitlab.api.check.load.Load.others", lambda self: next(shares))
    ip.display_pub.outputs.clear()
    later = report_of("%%jit\ny = np.exp(x) * 5.125 + np.sqrt(x)")
    shown = next(output["data"][MIME] for output in ip.display_pub.outputs if MIME in output["data"])
    told = [data["verdict"]["waited"]["text"] for data in (shown, later)]
    assert told[0] == told[1] and "other programs took 90 % of the processors" in told[0]


def test_what_python_ran_of_a_cell_is_pythons(report_of):
    told = report_of("%%jit -q\nimport time\nv = np.exp(x) * 4.5\ntime.sleep(0.03)")["verdict"]["waited"]
    assert told["python"] >= 0.03 and told["seconds"] >= told["python"] + told["work"] + told["compiling"]


def test_what_is_measured_afterwards_is_no_part_of_the_run(report_of):
    began = time.perf_counter()
    told = report_of("%%jit -q --compare\nz = np.log1p(x) * 3.375")["verdict"]
    whole, rounds = time.perf_counter() - began, told["speed"]["rounds"]
    assert rounds >= 3 and told["waited"]["seconds"] < whole
    assert told["waited"]["next"] == told["seconds"]  # of the rounds' middle
    assert told["waited"]["text"].endswith(f"; next runs {units.duration(told['seconds'])} of work")


def test_the_compiling_of_earlier_runs_is_set_against_what_later_ones_save(report_of, ip):
    source = "%%jit -q{}\nw = np.cosh(x) * 1.375"
    first = report_of(source.format(""))["verdict"]["waited"]
    report_of(source.format(""))
    session = ip.find_line_magic("jitlab").__self__.session
    recording = next(reversed(session.cells.values())).recording
    assert recording.compiled_before == pytest.approx(first["compiling"])


def test_a_cell_that_calls_compiled_functions_says_it_too(report_of, ip):
    ip.run_cell("import jitlab as jl\nf = jl.function(lambda x: np.tanh(x) * 1.875)")
    told = report_of("import time\nfor _ in range(3):\n    f(x)\ntime.sleep(0.05)")["verdict"]["waited"]
    assert told["python"] >= 0.05 and told["compiling"] > 0


def test_a_cell_with_several_expressions_that_are_compiled_is_waited_for_as_a_whole(report_of, ip):
    ip.run_cell("import time")
    source = "a = %jit np.exp(x + 1.3125).sum()\nb = %jit np.tanh(x * 1.3125).mean()\ntime.sleep(0.05)"
    data = report_of(source)
    told = data["verdict"]["waited"]
    assert told["work"] > 0 < told["compiling"] and told["python"] >= 0.05
    assert len({plan["name"] for plan in data["plans"]}) == len(data["retraces"]) == 2  # each has its own costs
    assert data["retraces"][0]["spent"] != data["retraces"][1]["spent"]
    assert told["work"] + told["compiling"] + told["python"] + told["overhead"] == pytest.approx(told["seconds"])
    report_of("c = %jit -n 2 -r 2 np.tanh(x * 1.3125).mean()")
    run = next(reversed(ip.find_line_magic("jitlab").__self__.session.cells.values()))
    assert 0 < run.aside_ns and run.run_ns < time.perf_counter_ns() - run.start_ns - run.aside_ns  # -n is no part of it


def test_a_run_that_fell_back_says_so_first_and_the_reason_once(report_of, ip):
    source = "%%jit -q\ns = np.cumsum(np.exp(x + 1.625))\npart = s[s > limit]\nm = part.mean()\nu = np.unique(np.round(s))"
    for limit in (200.0, 400.0):
        ip.user_ns["limit"] = limit
        data = report_of(source)
    met = [entry for entry in data["statements"] if (entry["reason"]["args"] or {}).get("met")]
    assert len(met) >= 2 and data["verdict"]["lead"].startswith(f"This run fell back to Python for {len(met)} statements: ")
    assert data["verdict"]["lead"].endswith("(line 3) changes from run to run")
    lines = [[span[1] for span in entry["lines"]] for entry in met]
    assert lines == [[line] for (line,) in lines] and len({line for (line,) in lines}) == len(met)  # each on its own line


def test_what_a_run_that_fell_back_had_compiled_does_not_count_as_compiled(report_of, ip):
    source = "%%jit -q\nd = np.cumsum(np.exp(x + 1.875))\nbig = d[d > least]\nn = big.mean()\nv = np.unique(np.round(d))"
    for least in (200.0, 400.0, 600.0):
        ip.user_ns["least"] = least
        data = report_of(source)
        verdict, fell = data["verdict"], any((e["reason"]["args"] or {}).get("met") for e in data["statements"])
        assert [plan.get("given_up", False) for plan in data["plans"]] == [fell] * len(data["plans"])
        counts = [verdict[key] for key in ("compiled", "clusters", "kernels", "host")]
        assert verdict["operations"] == 8 and counts == ([0] * 4 if fell else [6, 2, 2, 2])
        said = report_text(data)
        assert ("■" in said, "□" in said) == (not fell, fell)
        assert not fell or verdict["next"]["advice"] == "split_several"  # nothing of its operations
        assert fell == (least == 400.0)


def test_of_a_function_that_fell_back_nothing_counts_until_a_call_comes_to_its_end(report_of, ip):
    ip.run_cell("import jitlab as jl")
    ip.run_cell("@jl.function\ndef above(x, n):\n    s = np.exp(x + 1.1875)\n    return s[s > n], np.unique(s)")
    ip.run_cell("above(x, np.float64(4))").raise_error()
    data = report_of("above(x, np.float64(5))")
    assert data["verdict"]["compiled"] == data["verdict"]["host"] == 0 < data["verdict"]["operations"]
    assert data["verdict"]["lead"].startswith("This run fell back to Python for 1 statement: above, because ")
    data = report_of("for n in (5, 5, 6):\n    above(x, np.float64(n))")
    assert data["verdict"]["compiled"] > 0 and not any(plan.get("given_up") for plan in data["plans"])


def test_the_rest_of_a_run_that_fell_back_is_counted(report_of, ip):
    ip.run_cell("import time")
    source = "%%jit -q\ne = np.exp(x * 1.4375)\nat = time.time()\nover = e[e > least]\nw = np.unique(np.round(over))"
    for least in (2.0, 3.0):
        ip.user_ns["least"] = least
        verdict = report_of(source)["verdict"]
    assert verdict["lead"].startswith("This run fell back to Python for ")
    assert verdict["lead"].endswith(f"; {verdict['compiled']} of {verdict['operations']} operations compiled")
    assert 0 < verdict["compiled"] < verdict["operations"]
