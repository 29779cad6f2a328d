"""The walk of docs/internals/walk.md: each function in its tables is called when the page's cell runs, in the page's order."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "internals" / "walk.md"
SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"\| \[([^\]]+)\]\(([^)]+)\) `([\w.]+)` \|$", re.MULTILINE)

#: Prints the functions of the package in the order of their first calls, for the first and the second run of the cell.
PROGRAM = """
import contextlib, io, json, sys
from pathlib import Path
import jitlab
from tests.notebook.shells import new_shell

package = Path(jitlab.__file__).parent
called = {{}}

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(str(package)):
        called.setdefault((Path(code.co_filename).relative_to(package).as_posix(), code.co_qualname))

shell = new_shell()
shell.run_cell({before!r})
runs = []
for _ in range(2):
    called.clear()
    with contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(note)
        done = shell.run_cell({cell!r})
        sys.setprofile(None)
    done.raise_error()
    runs.append(list(called))
print(json.dumps(runs))
"""

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of this copy")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What is called in the first run of the page's cell, and in the second, in a process that knows no kernel yet."""
    cells = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    program = PROGRAM.format(before="import numpy as np\n" + cells[0], cell=cells[1])
    environment = {**os.environ, "JITLAB_CACHE_DIR": str(tmp_path_factory.mktemp("cache")), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return [[tuple(entry) for entry in run] for run in json.loads(done.stdout.splitlines()[-1])]


def rows(title):
    text = next(body for name, body in SECTION.findall(PAGE.read_text(encoding="utf-8")) if name == title)
    found = ROW.findall(text)
    assert len(found) == text.count("\n| ") - 1, "a row of the table names no file and function"
    return found


@pytest.mark.parametrize(
    ("title", "run"),
    [
        ("The value `x`, in the first run", 0),
        ("The value `x`, in the second run", 1),
        ("The decision: `e` and the division are not one loop", 0),
    ],
)
def test_each_hop_is_called_in_the_order_of_the_page(title, run, runs):
    hops = [(shown, name) for shown, _, name in rows(title) if not shown.startswith("extension/")]
    assert [hop for hop in hops if hop not in runs[run]] == []
    assert hops == sorted(hops, key=runs[run].index)


def test_the_links_of_the_walk_lead_to_the_files_they_name():
    for title, _ in SECTION.findall(PAGE.read_text(encoding="utf-8")):
        for shown, link, name in rows(title):
            file = (PAGE.parent / link).resolve()
            assert file.relative_to(ROOT if shown.startswith("extension/") else ROOT / "jitlab").as_posix() == shown
            if file.suffix == ".ts":
                assert re.search(rf"\b(?:function )?{name.rpartition('.')[2]}\(", file.read_text(encoding="utf-8")), name
