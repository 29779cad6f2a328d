import re
import xml.etree.ElementTree as ET

import pytest
import report_samples as samples

from jitlab import events
from jitlab.report.render.svg import cut, merged, width, wrapped


@pytest.fixture(scope="module")
def svg():
    return samples.softmax_report().to_svg()


def texts(svg):
    return ["".join(t.itertext()) for t in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_picture_is_well_formed_small_and_scalable(svg):
    root = ET.fromstring(svg)
    assert root.get("viewBox") == f"0 0 760 {root.get('height')}"
    assert root.get("role") == "img" and "21 of 22 operations compiled" in root.get("aria-label")
    assert len(svg.encode()) <= 40_000


def test_picture_is_made_of_attributes_only(svg):
    names = {element.tag.split("}")[1] for element in ET.fromstring(svg).iter()}
    assert names == {"svg", "title", "style", "rect", "path", "text"}
    for forbidden in ("class=", "id=", "<script", "var(", "foreignObject", "url(", "href", "onload"):
        assert forbidden not in svg


def test_dark_form_recolours_every_colour_of_the_light_one(svg):
    style = re.search("<style>(.*)</style>", svg)[1]
    used = set(re.findall(r'(?:fill|stroke)="(#\w+)"', svg.replace(style, "")))
    assert used and all(f'[fill="{color}"]' in style and f'[stroke="{color}"]' in style for color in used)


def test_picture_says_what_the_text_says(svg):
    said = texts(svg)
    for words in (
        "100 ms this run: 58.6 ms work, 20.6 ms tracing and compiling, 20.8 ms Python; next runs 58.6 ms of…",
        "cluster_0", "32.9 ms",
        "Not fused: RealDiv → Take: p is stored, 2.4 MB", "Runs in NumPy: jitlab cannot compile it",
        "5 × lr: 0.1 → 0.095 (+4 more)", "Make lr an array: it retraced 5 times", "lr = np.asarray(lr, np.float32)",
        "op by op", "compiled",
    ):  # fmt: skip
        assert words in said
    assert any(text.startswith("about 4.9 × faster, NumPy 287 ms; 20.6 ms of compiling pays for itself") for text in said)
    assert any(text.startswith("21 of 22 operations compiled · 2 clusters") for text in said)


def test_a_ratio_of_two_single_runs_is_said_to_be_one(svg):
    once = samples.softmax_report(rounds=1)
    assert any(text.startswith("4.9 × faster, one run each, NumPy 287 ms; ") for text in texts(once.to_svg()))
    assert "4.9 × faster, one run each, NumPy 287 ms; " in " ".join(str(once).split())
    assert "one run each" not in svg


def test_the_load_beside_a_comparison_is_said(svg):
    busy = samples.softmax_report(others=0.6)
    assert "after 1 run; other programs took 60 % of the processors meanwhile" in " ".join(str(busy).split())
    assert "other programs took 60 %" in "".join(texts(busy.to_svg()))
    assert "other programs" not in svg


def test_words_of_the_program_have_no_marks_in_pictures_and_are_code_in_a_page():
    report = samples.softmax_report()
    report.data["boundaries"][0]["reason"]["text"] = "`p` is read again"
    report.data["verdict"]["next"].update(text="Make `lr` an array", why="`lr` < 1 changes")
    assert report.data["verdict"]["next"]["code"] == "lr = np.asarray(lr, np.float32)"
    said = [*texts(report.to_svg()), report.graph().source]
    assert "Make lr an array" in said and not [text for text in said if "`" in text]
    page = report.to_html()
    assert "<code>p</code> is read again" in page


def test_nothing_stands_outside_the_picture(svg):
    for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        x, wide = float(text.get("x")), width("".join(text.itertext()), float(text.get("font-size", 12)))
        left, right = (x - wide, x) if text.get("text-anchor") == "end" else (x, x + wide)
        assert left >= 15 and right <= 746


def test_above_twelve_boxes_the_slowest_stay_and_the_rest_is_counted():
    rec = samples.recorded([])
    nodes = [samples.node(f"n{i}", f"Op{i}", line=i + 1) for i in range(30)]
    stays = {n: samples.Reason(samples.Stays.NO_LOOP_BODY, "no loop") for n in nodes}
    plan = samples.plan_of(nodes, [], stays).to_json()
    rec.listen(events.PlanMade(function="In [7]", trace=1, plan=plan, start_ns=0, duration_ns=0))
    for i, n in enumerate(nodes):
        rec.listen(
            events.HostOperationRan(
                function="In [7]", trace=1, operation=n.name, op=n.op.name, start_ns=i * 10**6, duration_ns=i * 1000
            )
        )
    said = texts(rec.report().to_svg())
    assert [t for t in said if t.startswith("Op") and "NumPy" not in t] == [f"Op{i}" for i in range(18, 30)]
    assert "… and 18 more, each faster than these" in said


@pytest.mark.slow
def test_a_picture_of_far_too_much_still_fits():
    rec = samples.recorded([])
    for i in range(3000):
        rec.listen(
            events.StatementRan(
                reason="r" * 300, said=samples.said(f"<&>{'x' * 500}{i}"), lines=(("f", i, 0, i, 1),), start_ns=i * 10**6,
                duration_ns=i,
            )
        )
    svg = rec.report().to_svg()
    ET.fromstring(svg)
    assert len(svg.encode()) <= 40_000


def test_spans_in_one_pixel_become_one_bar_and_the_longest_stay():
    spans = [{"start": i * 0.1, "duration": 0.1, "kind": "launch", "cluster": "c"} for i in range(1000)]
    assert len(merged(spans, 0.5, 50, {("c", ""): 0})) == 1
    apart = [{"start": i * 10, "duration": i, "kind": "op", "cluster": None} for i in range(100)]
    assert [bar[1] for bar in merged(apart, 1, 3, {})] == [97, 98, 99]


def test_text_is_measured_cut_and_wrapped():
    assert width("il", 12) < width("MW", 12)
    assert cut("short", 12, 100) == "short"
    assert cut("a rather long sentence", 12, 60).endswith("…")
    assert width(cut("a rather long sentence", 12, 60), 12) <= 60
    assert wrapped("one two three", 12, 50) == ["one two", "three"]


@pytest.mark.parametrize("dot", [None, "/usr/bin/dot"])
def test_the_graph_is_drawn_by_dot_and_is_its_text_where_dot_is_absent(dot, monkeypatch):
    graph = samples.softmax_report(retraces=0).graph()
    monkeypatch.setattr("shutil.which", lambda name: dot)
    monkeypatch.setattr("graphviz.Digraph._repr_mimebundle_", lambda self, *args, **options: {"image/svg+xml": "<svg/>"})
    shown = graph._repr_mimebundle_()
    assert shown == ({"image/svg+xml": "<svg/>"} if dot else {"text/plain": graph.source})
    assert "ArgPartition" in graph.source
