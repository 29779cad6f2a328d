"""The built scripts: small enough for a notebook, whole, and safe to stand in a page."""

import re
from pathlib import Path

import pytest

import jitlab

STATIC = Path(jitlab.__file__).parent / "static"
SCRIPTS = ("anywidget.js", "loader.js", "html.js")

pytestmark = pytest.mark.skipif(not STATIC.is_dir(), reason="jlpm build:prod has not run in this checkout")


def test_the_widget_fits_in_60_kB():
    assert (STATIC / "anywidget.js").stat().st_size <= 60_000
    assert (STATIC / "loader.js").stat().st_size <= 1_000


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
