"""How often a function retraced is one number: in the warning, the verdict, the text, the list, the advice and the ledger."""

import re

import pytest

from jitlab.report.render.text import report_text


@pytest.fixture
def ran(ip, report_of):
    ip.run_cell("import numpy as np, jitlab as jl\nx = np.ones(30)")
    return report_of


def test_all_places_count_the_same_retraces(ran, ip, caplog):
    ip.run_cell("@jl.function\ndef f(x, k):\n    return np.exp(x * k)")
    data = ran("for n in range(5):\n    f(x, 0.5 + n)")
    listed = [retrace for retrace in data["retraces"] if not retrace["first"]]
    (warning,) = [record.getMessage() for record in caplog.records if "retracing" in record.getMessage()]
    said = [re.search(r"(\d+) retraces?", text)[1] for text in (report_text(data), str(ip.user_ns["f"].ledger))]
    said.append(re.match(r"(\d+) out of the last 5 calls", warning)[1])
    said.append(re.search(r"(\d+) times", data["verdict"]["next"]["text"])[1])
    assert said == ["4"] * 4 and data["verdict"]["retraces"] == len(listed) == 4


def test_an_argument_that_is_a_part_of_the_cause_is_said_to_be(ran, ip):
    ip.run_cell("@jl.function\ndef g(x, k):\n    return np.exp(x * k)")
    verdict = ran("for n in range(4):\n    g(x, 0.5 + n)\ng(x[:7], 0.5)")["verdict"]
    assert verdict["retraces"] == 4 and verdict["next"]["text"].endswith(" it retraced 3 of the 4 times")


def test_functions_made_anew_are_counted_together(ran, caplog):
    data = ran("def body(x):\n    return x + 1.5\nfor n in range(6):\n    jl.function(body)(np.ones(3 + n))")
    warnings = [record.getMessage() for record in caplog.records if "retracing" in record.getMessage()]
    assert [re.match(r"(\d+) out of the last (\d+) calls", text).groups() for text in warnings] == [("4", "5"), ("5", "6")]
    assert data["verdict"]["traces"] == 6 and data["verdict"]["retraces"] == 5
