"""What several files of the project say twice."""

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

import jitlab
from jitlab import events

ROOT = Path(__file__).parent.parent


def test_every_place_names_the_same_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    package = json.loads((ROOT / "package.json").read_text())
    assert {jitlab.__version__, project["version"], package["version"]} == {project["version"]}


def sources_of(package):
    """The sources that package.json names: as such in its scripts, and as what is made of them."""
    made = [package["main"], package["jupyterlab"]["mimeExtension"]]
    assert all(re.fullmatch(r"extension/lib/[\w/-]+\.js", name) for name in made)
    named = [name for script in package["scripts"].values() for name in re.findall(r"extension/[\w/-]+\.(?:ts|css)\b", script)]
    return [re.sub(r"^extension/lib/(.*)\.js$", r"extension/src/\1.ts", name) for name in (*made, *named)]


def test_every_file_that_the_package_names_has_its_source():
    package = json.loads((ROOT / "package.json").read_text())
    sources = [*sources_of(package), package["style"], package["styleModule"]]
    assert {"extension/src/index.ts", "extension/src/mime.ts", "extension/src/html.ts"} <= set(sources) and len(sources) > 8
    assert [name for name in sources if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("lock", ["yarn.lock", "tests/browser/yarn.lock"])
def test_lock_files_name_no_host(lock):
    assert not re.search(r"https?://", (ROOT / lock).read_text())


def test_an_event_that_the_panel_reads_is_one_that_the_kernel_sends():
    text = (ROOT / "extension" / "src" / "core" / "report" / "events.ts").read_text()
    twins = re.findall(r"interface (\w+) extends Event \{\s*kind: '([\w-]+)';(.*?)\}", text, re.DOTALL)
    assert {name for name, _, _ in twins} == {"CellStarted", "CellFinished"}
    for name, kind, body in twins:
        ours = getattr(events, name)
        assert ours.kind == kind
        assert set(re.findall(r"(\w+):", body)) == {field.name for field in fields(ours)} - {"cell"}  # the batch says the cell


def test_every_lesson_is_in_the_table_of_lessons_and_in_what_is_installed():
    lessons = sorted(path.name for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
    table = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert [name for name in lessons if f"]({name})" not in table] == []
    assert [name for name in lessons if wheel.get(f"notebooks/{name}") != f"share/jitlab/notebooks/{name}"] == []
