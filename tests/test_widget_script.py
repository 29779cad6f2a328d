"""The built scripts: small enough for a notebook, whole, and safe to stand in a page."""

import re
from pathlib import Path

import pytest

import jitlab

STATIC = Path(jitlab.__file__).parent / "static"
BUNDLE = Path(jitlab.__file__).parent / "labextension/static"
SCRIPTS = ("anywidget.js", "loader.js", "html.js")

pytestmark = pytest.mark.skipif(not STATIC.is_dir(), reason="jlpm build:prod has not run in this checkout")


def test_the_widget_fits_in_60_kB():
    assert (STATIC / "anywidget.js").stat().st_size <= 60_000
    assert (STATIC / "loader.js").stat().st_size <= 1_000


def test_jupyterlab_starts_with_250_kB_and_the_sections_come_when_they_are_opened():
    entry, *others = BUNDLE.glob("remoteEntry.*.js")
    assert not others
    exposed = re.findall(r'"\./\w+":\(\)=>(.*?)\.then', entry.read_text(encoding="utf-8"))
    at_start = set(re.findall(r"\.e\((\d+)\)", "".join(exposed)))
    sizes = {path.name.split(".")[0]: path.stat().st_size for path in BUNDLE.glob("[0-9]*.js")}
    assert len(exposed) >= 3 and at_start < set(sizes)
    assert entry.stat().st_size + sum(sizes[chunk] for chunk in at_start) <= 250_000


@pytest.mark.parametrize("name", SCRIPTS[:2])
def test_a_module_imports_nothing_by_name(name):
    text = (STATIC / name).read_text(encoding="utf-8")
    assert not re.search(r"(^|[;}\n])import[ {*\"']", text) and not re.search(r"\bfrom ?[\"'][^\"']*[\"']", text)
    assert re.search(r"export ?{[^}]*as default", text)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_may_stand_in_a_page_and_asks_nobody(name):
    text = (STATIC / name).read_text(encoding="utf-8")
    assert "</script" not in text.lower() and "<!--" not in text
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    assert not re.search(r"(?<!async )(?<![.\w])fetch\(|XMLHttpRequest|\beval\(|new Function", text)
