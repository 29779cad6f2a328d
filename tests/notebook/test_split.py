"""A run that fell back to Python offers the split that would help, and who follows it keeps what it says compiled."""

import re

import numpy as np
import pytest

import jitlab as jl
from jitlab.report.build.lines import line_costs

MONTE_CARLO = """\
paths, steps = 400, 20
z = rng.standard_normal((paths, steps))
s = np.exp(np.log(100.0) + np.cumsum(0.01 * z - 0.001, axis=1))
mean = s.mean(axis=1)
in_money = s[s[:, -1] > 100.0]
payoff = np.maximum(mean - 100.0, 0.0)
price = payoff.mean()
hard = (in_money * 2.0).sum(axis=0)
"""
SEVERAL_LINES = """\
a = np.exp(x) + 1
big = a[
    a > limit
]
c = np.log1p(big) * 3
"""
TWO = """\
a = np.exp(x) + 1
big = a[a > limit]
b = np.sqrt(a)
places = np.nonzero(b > limit)[0]
c = np.log1p(big) * 3 + b.sum()
d = places * 2
"""
NUMBER = """\
a = np.exp(x) + 1
most = a.max() * 2
k = np.unique(np.round(a[a > limit])).size
c = np.arange(k) * 2.0
"""
LOOP = """\
a = np.exp(x) + 1
for n in range(3):
    big = a[a > limit]
c = np.log1p(a) * 3
"""
BRANCH = """\
a = np.exp(x) + 1
if limit > 2:
    big = a[a > limit]
    b = big * 2
c = np.log1p(a) * 3
"""
SHARED_LINE = "a = np.exp(x) + 1\nbig = a[a > limit]; b = big * 2\n"
HELPER = "a = np.exp(x) + 1\nbig = above(a)\nc = big * 2\n"
DEFINED_INSIDE = "def over(a):\n    return a[a > limit]\na = np.exp(x) + 1\nbig = over(a)\nc = big * 2\n"


@pytest.fixture(autouse=True)
def numbers(ip, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    ip.run_cell("import numpy as np\nx = np.linspace(0, 2, 300)\ndef above(a):\n    return a[a > limit]").raise_error()
    ip.user_ns["rng"] = np.random.default_rng(7)


def fallen(ip, report_of, source, limits=(4.0, 5.0)):
    """The report of the first run whose compiled code did not fit."""
    for limit in limits:
        ip.user_ns["limit"] = limit
        data = report_of("%%jit -q\n" + source)
        if any(entry["fell_back"] for entry in data["statements"]):
            return data
    raise AssertionError("no run fell back")


def in_cells(source, lines):
    """The lines in a cell of their own each where they follow each other, what stands around them in cells to be compiled."""
    found = []
    for number, line in enumerate(source.splitlines(True), 2):  # below `%%jit`
        if not found or found[-1][0] != (number in lines):
            found.append((number in lines, ""))
        found[-1] = found[-1][0], found[-1][1] + line
    return [text if is_own else "%%jit -q\n" + text for is_own, text in found]


def numbers_in(text):
    found = re.findall(r"(\d+)(?:–(\d+))?", text)
    return {n for first, last in found for n in range(int(first), int(last or first) + 1)}


@pytest.mark.parametrize("source", [MONTE_CARLO, SEVERAL_LINES, TWO])
def test_who_follows_it_keeps_as_many_operations_compiled(ip, report_of, source):
    data = fallen(ip, report_of, source)
    advice = data["verdict"]["next"]
    assert advice["text"].startswith("Move line") and f"to keep {advice['args']['kept']} operations compiled" in advice["text"]
    assert advice["text"] in str(report_text_of(data))
    cells = in_cells(source, numbers_in(advice["args"]["lines"]))
    for limit in (4.0, 5.0, 6.0, 3.0):
        ip.user_ns["limit"] = limit
        state = ip.user_ns["rng"].bit_generator.state
        compiled = 0
        for cell in cells:
            if cell.startswith("%%jit"):
                part = report_of(cell)
                compiled += part["verdict"]["compiled"]
                assert not any(entry["fell_back"] for entry in part["statements"])
            else:
                ip.run_cell(cell).raise_error()
        assert compiled == advice["args"]["kept"]
        plain = {"np": np, "x": ip.user_ns["x"], "limit": limit, "rng": np.random.default_rng()}
        plain["rng"].bit_generator.state = state
        exec(source, plain)
        for name in re.findall(r"^(\w+) =", source, re.M):
            np.testing.assert_allclose(ip.user_ns[name], plain[name], rtol=1e-12)


def report_text_of(data):
    from jitlab.report.render.text import report_text

    return " ".join(report_text(data).split())


def test_a_number_that_is_read_below_is_no_array_and_what_reads_it_is_not_counted(ip, report_of):
    advice = fallen(ip, report_of, NUMBER)["verdict"]["next"]
    assert advice["args"] == {"lines": "line 4", "kept": 4}
    assert advice["why"] == "The next run is traced anew and may not need it."  # what rounds zeros counts one more


MASKS = """\
s = np.tanh(x + shift) * 2 - 1
pos = s[s > 0]
whole, mean = pos.sum(), pos.mean()
"""


def test_of_a_mask_it_says_how_to_write_it_and_who_does_so_has_all_compiled(ip, report_of):
    ip.user_ns["shift"] = 0.0
    said = report_of("%%jit\n" + MASKS)["fallbacks"]
    (mask,) = [fallback for fallback in said if fallback["reason"]["detail"] == "reading_mask"]
    assert mask["written"] == "s[s > 0]"
    ip.user_ns["shift"] = -0.3
    split = report_of("%%jit\n" + MASKS)["verdict"]["next"]
    row = "s[s > 0] compiles where its sum or mean is one expression with it, as s[s > 0].sum()"
    assert split["advice"].startswith("split") and split["why"].endswith(f"Or without that: {row}.")
    again = report_of("%%jit\n" + MASKS)
    (retrace,) = [retrace for retrace in again["retraces"] if not retrace["first"]]
    assert retrace["argument"] == "s[s > 0]" and retrace["fix"]["text"] == row + "."
    assert again["verdict"]["next"]["why"].count("S[s > 0] compiles where its sum") == 1
    first, _, rest = MASKS.partition("pos = ")
    followed = first + "whole, mean = s[s > 0].sum(), s[s > 0].mean()\n"
    for shift in (0.0, -0.3, 0.2):
        ip.user_ns["shift"] = shift
        data = report_of("%%jit\n" + followed)
        assert data["statements"] == [] and data["fallbacks"] == [] and data["verdict"]["compiled"] > 0
        plain = {"np": np, "x": ip.user_ns["x"], "shift": shift}
        exec(MASKS, plain)
        np.testing.assert_allclose([ip.user_ns["whole"], ip.user_ns["mean"]], [plain["whole"], plain["mean"]], rtol=1e-12)


READ = [("np.median(pos)", None), ("np.exp(pos).sum()", None), ("pos", "which is another array")]


@pytest.mark.parametrize(("read", "said"), READ)
def test_no_rewriting_is_offered_that_would_change_a_result(ip, report_of, read, said):
    """Zeros where nothing is selected alter a median, and the sum of what is made of them."""
    ip.user_ns["shift"] = 0.0
    source = f"%%jit\ns = np.tanh(x + shift) * 2 - 1\npos = s[s > 0]\nfound = {read}\n"
    report_of(source)
    ip.user_ns["shift"] = -0.3
    report = report_of(source)
    told = " ".join([report["verdict"]["next"]["why"] or "", *(str(r["fix"]) for r in report["retraces"])])
    assert ("np.where" in told) is (said is not None) and (said or "") in told


def test_what_selects_rows_is_told_of_without_a_rewriting_that_would_be_wrong(ip, report_of):
    ip.user_ns["m"] = np.arange(120.0).reshape(40, 3)
    source = "%%jit\nb = m * 2\nrows = b[b[:, 0] > limit]\ntotal = rows.sum()\n"
    ip.user_ns["limit"] = 7.0
    report_of(source)
    ip.user_ns["limit"] = 70.0
    assert "what keeps the length compiles" in report_of(source)["verdict"]["next"]["why"]


def test_why_a_run_fell_back_and_for_how_many_statements_is_said_once(ip, report_of):
    data = fallen(ip, report_of, TWO)
    said = report_text_of(data)
    assert said.count("changes from run to run") == 1 and "for the same reason" not in said
    assert said.count(f"{len(data['statements'])} statements") == 1
    assert data["statements"][0]["reason"]["args"]["met"]  # the values stand in the report


@pytest.mark.parametrize("source", [SHARED_LINE, HELPER, DEFINED_INSIDE])
def test_where_nobody_knows_that_it_helps_nothing_is_offered(ip, report_of, source):
    data = fallen(ip, report_of, source)
    assert data["verdict"]["lead"].startswith("This run fell back to Python for ")
    assert data["verdict"]["next"] is None


@pytest.mark.parametrize("source", [LOOP, BRANCH])
def test_what_is_a_piece_of_its_own_needs_no_split(ip, report_of, source):
    data = fallen(ip, report_of, source)
    assert data["verdict"]["compiled"] >= 4
    assert (data["verdict"]["next"] or {"advice": ""})["advice"] not in ("split", "split_several", "split_function")


FUNCTION = """\
def f(x, n):
    a = np.exp(x) + 1
    b = np.sqrt(a).sum()
    y = a[a > n]
    z = np.log1p(y) * b
    return z, y
"""
ABOVE = """
def f_above(x):
    a = np.exp(x) + 1
    b = np.sqrt(a).sum()
    return a, b
"""
BELOW = """
def f_below(y, b):
    z = np.log1p(y) * b
    return z, y
"""


@pytest.mark.parametrize("wrap", [jl.jit, jl.function])
def test_of_a_function_the_line_is_taken_out(ip, wrap):
    ip.run_cell(FUNCTION + ABOVE + BELOW).raise_error()
    x, (f, above, below) = ip.user_ns["x"], (wrap(ip.user_ns[name]) for name in ("f", "f_above", "f_below"))
    f(x, np.float64(3))
    data = jl.explain(f, x, np.float64(4)).data
    advice = data["verdict"]["next"]
    assert advice["text"] == f"Take line 4 out of f, to keep {advice['args']['kept']} operations compiled"
    for n in (3.0, 4.0, 5.0):
        first = jl.explain(above, x).data
        a, b = above(x)
        y = a[a > n]
        second = jl.explain(below, y, b).data
        assert first["verdict"]["compiled"] + second["verdict"]["compiled"] == advice["args"]["kept"]
        assert not any(entry["fell_back"] for entry in (*first["statements"], *second["statements"]))
        np.testing.assert_allclose(below(y, b)[0], ip.user_ns["f"](x, n)[0], rtol=1e-12)


def test_every_run_that_fell_back_says_so_whatever_did_not_fit(ip, report_of):
    """An int that no dtype holds, arrays that overlap: the statements ran again, and nothing counts as compiled."""
    for factor in (1.0, 1e30):
        ip.user_ns["factor"] = factor
        data = report_of("%%jit -q\ne = np.exp(x)\nn = int(e.sum() * factor)\nr = np.sqrt(e)")
    assert data["verdict"]["lead"] == "This run fell back to Python for 3 statements: a Python int does not fit"
    assert data["verdict"]["compiled"] == 0 and ip.user_ns["n"] == int(np.exp(ip.user_ns["x"]).sum() * 1e30)
    ip.run_cell("v = np.linspace(0, 2, 300)\nw = np.zeros(300)").raise_error()
    for _ in range(2):
        data = report_of("%%jit -q\ne = np.exp(v)\nw[:] = e * 2\nr = v * 3")
        ip.run_cell("w = v[1:]\nv = v[:-1]").raise_error()
    assert data["verdict"]["lead"] == "This run fell back to Python for 3 statements: w overlaps v in memory"
    assert data["verdict"]["compiled"] == 0 and data["verdict"]["next"] is None


def test_what_was_given_up_is_named_by_no_line(ip, report_of):
    """Neither as the slowest nor in the listing of the source: the time of these lines is Python's."""
    data = fallen(ip, report_of, MONTE_CARLO)
    assert data["kernels"] and all(plan["given_up"] for plan in data["plans"])
    assert data["verdict"]["slowest"]["kernels"] == [] and "run by Python" in data["verdict"]["slowest"]["text"]
    assert "on the host" not in data["verdict"]["slowest"]["text"] and "stored" not in data["verdict"]
    costs = [line.cost for line in line_costs(data) if line.cost]
    assert len(costs) > 4 and all(cost.startswith("Python ") for cost in costs)


def test_a_run_that_fell_back_has_no_factor_of_an_earlier_one(ip, report_of, capsys):
    source = "%%jit -q --compare\na = np.cosh(x)\nbig = a[a > limit]\nb = big * 2"
    ip.user_ns["limit"] = np.float64(1.5)
    assert report_of(source)["verdict"]["speed"]
    ip.user_ns["limit"] = np.float64(2.5)
    verdict = report_of(source)["verdict"]
    assert verdict["lead"].startswith("This run fell back") and "speed" not in verdict and "pays" not in verdict["waited"]
    assert "NumPy was not measured: this run fell back to Python" in capsys.readouterr().err


def test_what_was_recorded_anew_for_another_length_names_it(ip, report_of):
    source = "%%jit -q\na = np.expm1(x)\nbig = a[a > limit]\nb = big * 2"
    for limit in (2.0, 3.0, 4.0, 5.0):
        ip.user_ns["limit"] = limit
        data = report_of(source)
        (retrace,) = data["retraces"] or [None]
        if limit == 4.0:
            count = [int((np.expm1(ip.user_ns["x"]) > limit).sum()) for limit in (2.0, 3.0)]
            assert (retrace["cause"], retrace["argument"]) == ("shape", "a[a > limit]")
            assert (retrace["before"], retrace["after"]) == tuple(f"length {n}" for n in count)
    assert retrace is None and not data["statements"]  # the recordings of two lengths serve all
