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


@pytest.mark.parametrize("lock", ["yarn.lock", "tests/browser/yarn.lock"])
def test_lock_files_name_no_host(lock):
    assert not re.search(r"https?://", (ROOT / lock).read_text())


def test_the_events_that_the_panel_reads_are_twins_of_ours():
    text = (ROOT / "extension" / "src" / "core" / "events.ts").read_text()
    twins = re.findall(r"interface (\w+) extends Event \{\s*kind: '([\w-]+)';(.*?)\}", text, re.DOTALL)
    assert len(twins) == 2
    for name, kind, body in twins:
        ours = getattr(events, name)
        assert ours.kind == kind
        assert set(re.findall(r"(\w+):", body)) <= {field.name for field in fields(ours)}
