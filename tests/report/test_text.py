import pytest
import report_samples as samples

from jitlab import events
from jitlab.report import wording


def test_text_of_six_runs_compared_with_numpy(golden):
    assert str(samples.softmax_report()) == golden


def test_text_of_one_run(golden):
    assert str(samples.softmax_report(retraces=0, compare=False)) == golden


def test_text_keeps_to_a_hundred_columns_without_colour_codes():
    for text in (str(samples.softmax_report()), str(samples.softmax_report(retraces=0))):
        assert max(map(len, text.splitlines())) <= 100
        assert "\x1b" not in text


def test_types_are_short_in_sentences():
    assert wording.short_type("float32[60000, 784] and 3") == "f32[60000,784] and 3"
    assert wording.short_type("my_float32[x]") == "my_float32[x]"


@pytest.mark.parametrize(
    "seconds, text",
    [
        (None, ""), (0, "0 µs"), (4.2e-8, "0.0 µs"), (4.25e-6, "4.2 µs"), (45.1e-6, "45 µs"), (0.00014, "0.14 ms"),
        (0.0098, "9.8 ms"), (0.287, "287 ms"), (1.5, "1.50 s"), (31.5, "31.5 s"), (4000, "4000 s"),
    ],
)  # fmt: skip
def test_durations_have_a_unit_and_no_digit_too_many(seconds, text):
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(
    "size, text", [(0, "0 B"), (512, "512 B"), (41_000, "41.0 kB"), (2_400_000, "2.4 MB"), (191e6, "191 MB")]
)
def test_sizes(size, text):
    assert wording.size(int(size)) == text


@pytest.mark.parametrize("numbers, text", [([], ""), ([8], "line 8"), ([3, 5, 4], "lines 3–5"), ([8, 9, 11], "lines 8–9, 11")])
def test_lines(numbers, text):
    assert wording.line_text(numbers) == text


@pytest.mark.parametrize(
    "numpy, ours, text", [(4.79, 0.98, "4.9 × faster"), (1, 2, "2.0 × slower"), (1, 1.02, "as fast as NumPy"), (None, 1, "")]
)
def test_ratio(numpy, ours, text):
    assert wording.ratio(numpy, ours) == text


def test_a_kernel_of_thousands_of_operations_stays_short():
    nodes = [samples.node(f"sin_{i}", "Sin", line=1) for i in range(5000)]
    cluster = samples.Cluster("cluster_0", nodes, [], nodes[-1:], samples.Reason(samples.Joined.AUTO, "auto"))
    kernels = [samples.KernelInfo("k0", "cluster_0", tuple(nodes), "nest", 1, 1, 1)]
    plan = samples.plan_of(nodes, [cluster], {}, kernels).to_json()
    report = samples.recorded([events.PlanMade(function="f", trace=1, plan=plan, start_ns=0, duration_ns=0)]).report()
    assert "+4960" in str(report) and len(str(report)) < 1000
    assert len(report.to_svg()) < 5000 and "+49" in report.to_svg()
