"""The saved picture where notebooks are read: behind a sanitiser as strict as GitHub's, and in what nbconvert makes."""

import base64
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
import report_samples as samples

from jitlab.report import MIME

#: What GitHub's HTML pipeline lets through of what we use (its public allow-list; no svg, style, script, class or style=), and
#: the schemes that it, and JupyterLab's sanitizer for notebooks nobody trusts, allow for an image.
TAGS = {"img", "details", "summary", "pre", "code", "p", "div", "table", "tr", "td", "th", "b", "i", "a", "br"}
ATTRIBUTES = {"src", "alt", "width", "height", "title", "open", "href", "align"}
SCHEMES = ("http:", "https:", "data:image/")


class Sanitiser(HTMLParser):
    """Keeps what is allowed; of what is not, keeps the text, and nothing of a script or style."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.kept, self.images, self.removed, self._skip = [], [], [], 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag in ("script", "style"):
            self._skip += 1
        if tag not in TAGS:
            self.removed.append(tag)
            return
        kept = {k: v for k, v in attrs if k in ATTRIBUTES and (k not in ("src", "href") or v.startswith(SCHEMES))}
        self.removed += [k for k, v in attrs if k not in kept]
        if tag == "img":
            self.images.append(kept)

    def handle_endtag(self, tag):
        self._skip -= tag in ("script", "style")

    def handle_data(self, data):
        if not self._skip:
            self.kept.append(data)


@pytest.fixture(scope="module")
def bundle():
    return samples.softmax_report()._repr_mimebundle_()


def picture(html):
    (image,) = Sanitiser(html).images
    return base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,")).decode()


def test_a_strict_sanitiser_finds_nothing_to_remove(bundle):
    assert Sanitiser(bundle["text/html"]).removed == []


def test_picture_verdict_retraces_and_timeline_survive_it(bundle):
    drawn = "".join(ET.fromstring(picture(bundle["text/html"])).itertext())
    for words in ("21 of 22 operations compiled", "cluster_0", "5 × lr", "op by op", "→ Take: p is stored", "k3"):
        assert words in drawn
    (image,) = Sanitiser(bundle["text/html"]).images
    assert image["alt"].startswith("100 ms this run: 58.6 ms work") and "5 retraces. Make lr an array" in image["alt"]
    assert (image["width"], int(image["height"]) > 200) == ("760", True)


def test_the_text_stands_below_for_who_cannot_see_the_picture(bundle):
    assert bundle["text/plain"] in "".join(Sanitiser(bundle["text/html"]).kept)


def test_the_picture_stays_below_forty_kilobytes(bundle):
    assert len(picture(bundle["text/html"]).encode()) <= 40_000


def test_an_inline_svg_would_not_survive_it(bundle):
    """Why it is an image."""
    assert "svg" in Sanitiser(samples.softmax_report().to_svg()).removed


@pytest.fixture(scope="module")
def notebook(bundle):
    nbformat = pytest.importorskip("nbformat", reason="notebooks are part of the `lab` extra")
    pytest.importorskip("nbconvert", reason="notebooks are part of the `lab` extra")
    cell = nbformat.v4.new_code_cell("%%jit\ny = x", outputs=[nbformat.v4.new_output("display_data", data=bundle)])
    return nbformat.v4.new_notebook(cells=[cell])


@pytest.mark.parametrize("sanitise", [False, True])
def test_nbconvert_to_html_has_the_picture(notebook, sanitise):
    from nbconvert import HTMLExporter

    html, _ = HTMLExporter(sanitize_html=sanitise).from_notebook_node(notebook)
    assert ("data:image/svg+xml;base64," in html) or sanitise
    assert "21 of 22 operations compiled" in html


def test_nbconvert_to_markdown_latex_and_text_has_the_words(notebook):
    from nbconvert import LatexExporter, MarkdownExporter, RSTExporter, ScriptExporter

    markdown, _ = MarkdownExporter().from_notebook_node(notebook)
    assert "data:image/svg+xml" in markdown and "k0 (lines 3–6) MatMul" in markdown
    latex, _ = LatexExporter().from_notebook_node(notebook)
    assert "21 of 22 operations compiled" in latex and "data:image" not in latex
    rst, _ = RSTExporter().from_notebook_node(notebook)
    assert "21 of 22 operations compiled" in rst
    assert "y = x" in ScriptExporter().from_notebook_node(notebook)[0]


def test_no_form_of_the_bundle_needs_a_tool_that_may_be_absent(bundle):
    """An image/svg+xml beside it would make nbconvert's LaTeX ask for Inkscape."""
    assert list(bundle) == [MIME, "text/html", "text/plain"]
    assert not re.search(r"url\(|@import|<script|javascript:", picture(bundle["text/html"]))
