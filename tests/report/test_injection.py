"""Names are user data: whatever they hold, no exit of a report lets it act."""

import json
import linecache
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest
import report_samples as samples

import jitlab as jl
from jitlab import events
from jitlab.api.retraces import places
from jitlab.errors import ImpossiblePlanError, OptionError
from jitlab.ir.graphs.dot import text_dot
from jitlab.report.render import html
from jitlab.report.store import settled, summary
from jitlab.report.store.fitting import fitted

NASTY = [
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"'--><b>", "\x1b]0;title\x07\x1b[2J",
    'n"]; evil [label="', "<<b>html</b>>", "a:b:c", "back\\slash\\", "new\nline\r\tx", "\u202eright", "\ud800lone", "a\x00b",
    "${x}{{y}}", "]]>", "&amp;&#0;", "%s%n", "\u2028",
]  # fmt: skip


@pytest.fixture(scope="module", params=NASTY, ids=range(len(NASTY)))
def nasty(request):
    return request.param


@pytest.fixture(scope="module")
def report(nasty):
    a = samples.node(f"a{nasty}", f"Op{nasty}", line=1, scope=nasty)
    b = samples.node(f"b{nasty}", f"Op2{nasty}", [a], line=2)
    cluster = samples.Cluster(f"cluster_0{nasty}", [a], [], [a], samples.Reason(samples.Joined.AUTO, nasty), nasty)
    plan = samples.plan_of(
        [a, b], [cluster], {b: samples.Reason(samples.Stays.NO_LOOP_BODY, nasty)},
        [samples.KernelInfo(f"k0{nasty}", cluster.name, (a,), "nest", 1, 2, 3)],
        [samples.Edge(a, b, samples.Reason(samples.NotFused.READ_AGAIN, nasty), 3, samples.said(nasty))], function=f"f{nasty}",
    ).to_json()  # fmt: skip
    lines = ((f"<cell {nasty}>", 1, 0, 1, 2),)
    happened = [
        events.PlanMade(function=f"f{nasty}", trace=1, plan=plan, start_ns=0, duration_ns=1),
        events.ClusterRan(function=f"f{nasty}", trace=1, cluster=cluster.name, start_ns=0, duration_ns=10**6),
        events.HostOperationRan(
            function=f"f{nasty}", trace=1, operation=b.name, op=b.op.name, start_ns=0, duration_ns=10**6
        ),
        events.OperationRan(function=f"f{nasty}", trace=1, operation=b.name, op=b.op.name, start_ns=0, duration_ns=10**6),
        events.StatementRan(reason=nasty, said=samples.said(nasty), lines=lines, start_ns=0, duration_ns=10**6),
        events.ValueFrozen(function=nasty, what=nasty, lines=lines),
    ]  # fmt: skip
    for i in range(2):
        happened.append(
            events.Traced(
                function=f"f{nasty}", trace=i + 1, causes=("python_value",), argument=nasty, before=nasty, after=nasty,
                lines=lines, fix=samples.written("as_array", nasty), operations=2, start_ns=0, duration_ns=10**9,
            )
        )  # fmt: skip
    about = {
        "id": nasty, "execution_count": 7, "title": nasty, "source": [nasty, nasty], "running": False, "error": nasty
    }  # fmt: skip
    return samples.recorded(happened, about).report()


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.scripts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.lasttag == "script" and data.strip() and self.found[-1][0] == "script":
            self.scripts.append(data)


def test_svg_holds_it_as_text(report):
    svg = report.to_svg()
    names = {element.tag.split("}")[1] for element in ET.fromstring(svg.encode()).iter()}
    assert names <= {"svg", "title", "style", "rect", "path", "text"}


def test_html_holds_it_as_text(report):
    text = report.to_html()
    elements = Elements(text)
    scripts = [attrs for tag, attrs in elements.found if tag == "script"]
    ours = [{}] if html.script() else []  # the renderer, where it is built; the page allows it alone, by its hash
    assert scripts == [{"type": "application/vnd.jitlab.report+json"}, *ours]
    assert text.count(html.script()) == 1 or not ours
    (policy,) = [attrs["content"] for tag, attrs in elements.found if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'unsafe" not in policy
    assert not {"img", "b"} & {tag for tag, _ in elements.found}
    assert not any(name.startswith("on") for _, attrs in elements.found for name in attrs)
    assert text.encode()
    data = re.search(r'report\+json">(.*?)</script>', text, re.S)[1]
    assert json.loads(data) == report.to_json()


def test_the_saved_html_holds_it_as_text_and_attributes(report):
    html = report._repr_mimebundle_()["text/html"]
    elements = Elements(html).found
    if report.data["cell"]["error"]:  # folded
        assert elements[:2] == [("details", {}), ("summary", {})]
        elements = elements[2:]
    assert [tag for tag, _ in elements] == ["img", "p", "details", "summary", "pre"]
    assert set(elements[0][1]) == {"width", "height", "alt", "src"} and elements[0][1]["src"].startswith(
        "data:image/svg+xml;base64,"
    )
    assert all(not attrs for _, attrs in elements[1:])


def test_a_saved_report_is_what_it_was_after_its_file(report):
    """Canonical text, neutral names and cutting to size are for any strings."""
    data = json.loads(json.dumps(report.to_json()))
    assert settled.essence(data) == settled.essence(report.to_json())
    assert settled.neutral(data, [7])["ops"] and settled.key_of(data).isalnum()
    assert json.dumps(summary.summarised(data, 1000)) and json.dumps(fitted(data, 5000))


def test_text_has_no_terminal_codes(report):
    for text in (str(report), repr(report), str(report.timeline.compare(report.timeline))):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\u2028\u2029]", text)
        assert max(map(len, text.splitlines())) <= 100 or "before" in text


ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\u2028\u2029]")


def test_answers_and_operations_have_no_terminal_codes(report):
    said = [str(op) for op in report.ops]
    for edge in report.boundaries:
        said += [str(report.why(edge.producer, edge.consumer)), str(report.why_not(edge.producer, edge.consumer, check=True))]
    assert said and not [text for text in said if ACTING.search(text)]


def test_errors_and_the_text_of_a_stage_have_no_terminal_codes(nasty):
    for kind in (OptionError, ImpossiblePlanError):
        error = kind(f"what {nasty}", where=nasty, why=nasty, hint=f"{nasty}\tor\n{nasty}")
        assert not ACTING.search(str(error)) and "\tor\n" in str(error)

    def f(x):
        return np.exp(x) * 2

    f.__name__ = f.__qualname__ = nasty
    made = jl.function(f)
    with jl.record() as recording:
        made(np.ones(3))
    found = recording.report()
    assert not ACTING.search(found.ir(found.clusters[0].name, "graph"))
    for ask in (lambda: found.why(nasty, "exp"), lambda: found.ir(nasty), lambda: found.ir(found.clusters[0].name, nasty)):
        with pytest.raises(OptionError) as refused:
            ask()
        assert not ACTING.search(str(refused.value))


def test_bundle_can_be_sent(report):
    assert json.dumps(report._repr_mimebundle_(), ensure_ascii=False).encode()
    assert json.dumps(report.timeline.to_chrome(), ensure_ascii=False).encode()


def test_dot_holds_it_in_strings(report, nasty):
    for text in (report.graph().source, text_dot(nasty, nasty)):
        without = re.sub(r'"(?:[^"\\\n]|\\.)*"', "S", text)
        assert '"' not in without and "<" not in without.replace("->", "") and "evil" not in without
        assert not re.search("[\x00-\x08\x0b-\x1f]", text)
        assert text.isprintable() or "\n" in text


def test_plot_holds_it_as_text(report):
    text = report.plot().to_json()
    assert "<img" not in text and "<script" not in text and "\\u003cscript" not in text


def test_ledgers_and_keys_have_no_terminal_codes(monkeypatch):
    for table in ("live", "_places", "_gone"):  # a list of those that cost most, of this process
        monkeypatch.setattr(places, table, type(getattr(places, table))())
    monkeypatch.setattr("jitlab.api.retraces.ledger.live", places.live)
    name = "</script>\x1b]0;title\x07\u202egnp.exe\n"

    def body(d, k):
        return d[name] * k

    body.__name__ = name
    f = jl.function(body)
    for k in (2, 3):
        f({name: np.ones(3)}, k)
    texts = [str(said) for said in (f.ledger, jl.ledger(), f.explain_key({name: np.ones(4)}, 2), f)]
    assert all("gnp.exe" in text for text in texts)
    for text in (*texts, f.ledger.warning(f.ledger.retraces(2))):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_the_text_of_a_what_if_has_no_terminal_codes(monkeypatch):
    source = "def f(x):\n\ty = np.exp(x)  # \x1b[2J\u202e\n\treturn y + 1\n"
    monkeypatch.setitem(linecache.cache, "<codes>", (len(source), None, source.splitlines(True), "<codes>"))
    namespace = {"np": np}
    exec(compile(source, "<codes>", "exec"), namespace)
    answer = jl.jit(namespace["f"]).whatif(np.ones(5), cut=[("Exp", "AddV2")])
    assert any("\x1b" in line for line in answer.keep.lines)  # they are pasted as they stand
    assert not re.search("[\x1b\u202e]", str(answer)) and "\ty = np.exp(x)" in str(answer)
