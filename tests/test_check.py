"""`jitlab report` and `jitlab check`, on scripts and notebooks written here."""

import json
import os
import subprocess
import sys

import nbformat
import pytest

from jitlab import __main__ as cli
from jitlab.config import config

SCRIPT = """\
import sys
import numpy as np
import jitlab as jl

@jl.function
def f(x, k):
    return np.exp(x).sum() * k

for i in range(3):
    f(np.ones(1000), np.float64(i))
print(__name__, sys.argv[1:], sys.path[0] == {folder!r})
"""
RETRACED = SCRIPT.replace("np.float64(i)", "i")
FAILING = SCRIPT + "\n\ndef last():\n    return 1 / 0\n\n\nlast()\n"


@pytest.fixture
def script(tmp_path):
    """Writes the script and returns its path."""

    def write(text=SCRIPT):
        path = tmp_path / "script.py"
        path.write_text(text.replace("{folder!r}", repr(str(tmp_path))))
        return str(path)

    return write


def test_a_script_runs_as_ever_and_its_report_is_printed(script, capsys):
    assert cli.main(["report", script(), "--", "--fast", "2"]) == 0
    printed = capsys.readouterr().out
    assert "__main__ ['--fast', '2'] True" in printed
    assert "3 of 3 operations compiled" in printed and "■ cluster_" in printed


ENDINGS = [("r.html", "<!doctype html>"), ("r.svg", "<svg"), ("r.json", "{"), ("r.txt", "")]


@pytest.mark.parametrize(("name", "starts"), ENDINGS)
def test_the_ending_says_what_is_written(script, tmp_path, name, starts):
    target = tmp_path / name
    assert cli.main(["report", script(), "-o", str(target)]) == 0
    text = target.read_text()
    assert text.startswith(starts) and ("3 of 3 operations compiled" in text or name != "r.txt")


def test_an_exception_keeps_the_scripts_own_traceback_and_the_report_is_of_what_ran(script, tmp_path, capsys):
    path, target = script(FAILING), tmp_path / "r.txt"
    assert cli.main(["report", path, "-o", str(target)]) == 1
    shown = capsys.readouterr().err
    assert "ZeroDivisionError" in shown and "in last" in shown and "runpy" not in shown and "scripts.py" not in shown
    assert "\n3 of 3 operations compiled" in target.read_text()


def test_a_scripts_exit_status_is_handed_on(script):
    assert cli.main(["report", script("import sys\nsys.exit(7)\n")]) == 7
    assert cli.main(["report", script("raise SystemExit\n")]) == 0


def test_a_script_without_jitlab_has_nothing_to_compile(script, capsys):
    assert cli.main(["report", script("print('hello')\n")]) == 0
    assert capsys.readouterr().out.split("\n")[:2] == ["hello", "Nothing to compile"]


def test_what_is_wrong_is_said(script, tmp_path, capsys):
    assert cli.main(["report", str(tmp_path / "none.py")]) == 2
    assert cli.main(["report", script(), "-o", "report.pdf"]) == 2
    assert cli.main(["check", script(), "--baseline", str(tmp_path / "none.json")]) == 2
    (tmp_path / "bad.json").write_text("{")
    assert cli.main(["check", script(), "--baseline", str(tmp_path / "bad.json")]) == 2
    assert cli.main(["check", str(tmp_path / "none.ipynb"), "--baseline", "b.json"]) == 2
    said = capsys.readouterr().err
    for part in ("no script", "ends with none of .html", "--update, which writes it", "it is no JSON", "no program"):
        assert part in said


def test_a_script_is_checked_against_its_baseline(script, tmp_path, capsys):
    base = str(tmp_path / "base.json")
    assert cli.main(["check", script(), "--baseline", base, "--update"]) == 0
    assert json.loads((tmp_path / "base.json").read_text())["cells"][0]["retraces"] == 0
    assert cli.main(["check", script(), "--baseline", base]) == 0
    assert "1 cell as before" in capsys.readouterr().out
    assert cli.main(["check", script(RETRACED), "--baseline", base]) == 1
    told = capsys.readouterr().out
    assert "script.py: worse" in told and "retraces: 0 → 2 (k was 0, then 1: each new Python number is traced again" in told
    assert cli.main(["check", script("print(1)\n"), "--baseline", base]) == 1  # compiles nothing any more
    assert cli.main(["check", script(FAILING), "--baseline", base]) == 2
    assert cli.main(["check", script(RETRACED), "--baseline", base, "--update"]) == 0
    assert cli.main(["check", script(RETRACED), "--baseline", base]) == 0
    capsys.readouterr()
    assert cli.main(["check", script(), "--baseline", base]) == 0  # better
    assert "1 changed, none of them worse" in capsys.readouterr().out


SAYS_HOW = "import os, jitlab as jl\nassert jl.config.settle == os.environ['JITLAB_SETTLE'] == 'model'\n"


@pytest.fixture
def no_setting(monkeypatch):
    """Nobody has said how calls settle."""
    monkeypatch.delenv("JITLAB_SETTLE")
    monkeypatch.setattr(config, "settle", "measure")


def test_what_a_script_does_is_decided_by_counts(script, tmp_path, no_setting):
    assert cli.main(["check", script(SAYS_HOW + SCRIPT), "--baseline", str(tmp_path / "base.json"), "--update"]) == 0
    assert config.settle == "measure" and "JITLAB_SETTLE" not in os.environ


CELLS = (
    f"import numpy as np, jitlab as jl\n{SAYS_HOW}",
    "%%jit\ny = np.exp(np.ones(1000)) * 2",
    "@jl.function\ndef f(x, k):\n    return np.exp(x).sum() * k",
    "for i in range(3):\n    f(y, np.float64(i))",
)


def notebook(path, cells):
    made = [nbformat.v4.new_code_cell(source, id=f"cell-{i}") for i, source in enumerate(cells)]
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return str(path)


@pytest.mark.slow
def test_a_notebook_is_executed_and_checked_cell_by_cell(tmp_path, capsys, no_setting):
    path, base = tmp_path / "lesson.ipynb", str(tmp_path / "base.json")
    assert cli.main(["check", notebook(path, CELLS), "--baseline", base, "--update"]) == 0
    facts = json.loads((tmp_path / "base.json").read_text())["cells"]
    assert [(cell["cell"], cell["title"]) for cell in facts] == [("cell-1", "In [2]"), ("cell-3", "In [4]")]
    before = path.read_bytes()
    worse = [CELLS[0], "moved = 1", *CELLS[1:3], CELLS[3].replace("np.float64(i)", "i")]
    made = [nbformat.v4.new_code_cell(source, id=f"cell-{i}") for source, i in zip(worse, (0, 9, 1, 2, 3), strict=True)]
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    assert before != path.read_bytes()
    before = path.read_bytes()
    capsys.readouterr()
    assert cli.main(["check", str(path), "--baseline", base]) == 1
    assert path.read_bytes() == before
    told = capsys.readouterr().out
    assert "In [5]: worse\n  retraces: 0 → 2" in told and "1 cell as before, 1 worse" in told and "--update" in told


@pytest.mark.slow
def test_cells_that_raise_are_told_of_and_the_others_are_checked(tmp_path, capsys):
    base, path = str(tmp_path / "base.json"), tmp_path / "lesson.ipynb"
    notebook(path, [CELLS[0], "1 / 0", CELLS[1], "n = 1", "{}['expected']"])
    made = nbformat.read(path, 4)
    made.cells[4].metadata["tags"] = ["raises-exception"]
    nbformat.write(made, path)
    assert cli.main(["check", str(path), "--baseline", base, "--update"]) == 0
    told = capsys.readouterr()
    assert f"In [2] of {path} raised:" in told.err and "ZeroDivisionError" in told.err
    assert "In [2] raised ZeroDivisionError: division by zero. From now on that is as before." in told.out
    assert "expected" not in told.out + told.err
    facts = json.loads((tmp_path / "base.json").read_text())
    assert [cell["title"] for cell in facts["cells"]] == ["In [3]"] and len(facts["raised"]) == 1

    made.cells[2].source += "\ny.reshape(7)"
    made.cells[3].source = "int('n')"
    nbformat.write(made, path)
    assert cli.main(["check", str(path), "--baseline", base]) == 1
    told = capsys.readouterr().out
    assert "In [3]: worse" in told and "ended with ValueError" in told  # it compiled something first
    assert "In [4]: worse\n  raised ValueError: invalid literal" in told
    assert "In [2]" not in told and "expected" not in told and "2 worse" in told


@pytest.mark.slow
def test_a_cell_that_does_not_end_leaves_nothing_to_check(tmp_path, capsys):
    base = tmp_path / "base.json"
    path = notebook(tmp_path / "lesson.ipynb", ["while True: pass"])
    assert cli.main(["check", path, "--baseline", str(base), "--update", "--timeout", "1"]) == 2
    assert f"In [1] of {path} ran longer than 1 s (--timeout); nothing was checked." in capsys.readouterr().err
    assert not base.exists()


def test_a_file_that_is_no_notebook_is_refused(tmp_path, capsys):
    path = tmp_path / "lesson.ipynb"
    path.write_text("no JSON")
    assert cli.main(["check", str(path), "--baseline", "b.json", "--update"]) == 2
    assert "is no notebook" in capsys.readouterr().err


def test_a_notebook_of_another_language_is_not_run_as_python(tmp_path, capsys):
    path = tmp_path / "lesson.ipynb"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")])
    book.metadata["kernelspec"] = {"name": "julia-1.10", "language": "julia", "display_name": "Julia"}
    nbformat.write(book, path)
    assert cli.main(["check", str(path), "--baseline", str(tmp_path / "b.json"), "--update"]) == 2
    assert "lesson.ipynb is a notebook of julia." in capsys.readouterr().err


MOVES = """
import os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
assert os.path.isabs(__file__) and sys.argv[0] == "script.py"
sys.path.pop(0)

def later():
    time.sleep(0.2)
    print("the last thread", f(np.arange(8.0), 7) > 0)

threading.Thread(target=later).start()
pool = ThreadPoolExecutor(1)  # nobody shuts it down
pool.submit(f, np.arange(8.0), 7).result()
os.chdir("/")
"""


def test_a_script_may_change_the_folder_and_the_path_and_end_with_a_thread(script, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script(SCRIPT + MOVES)
    assert cli.main(["report", "script.py", "-o", "r.txt"]) == 0
    assert "the last thread" in capsys.readouterr().out
    assert "compiled" in (tmp_path / "r.txt").read_text()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", "script.py", "--baseline", "b.json", "--update"]) == 0
    assert (tmp_path / "b.json").is_file()


def test_a_baseline_that_cannot_be_written_is_said_before_anything_runs(script, tmp_path, capsys):
    for base, why in ((tmp_path / "none" / "b.json", "there is no folder"), (tmp_path, "it is a folder")):
        assert cli.main(["check", script("print('it ran')\n"), "--baseline", str(base), "--update"]) == 2
        said = capsys.readouterr()
        assert why in said.err and "it ran" not in said.out


def test_a_script_that_closes_stdout_ends_with_a_sentence(script):
    path = script(SCRIPT + "import sys\nsys.stdout.close()\n")
    done = subprocess.run([sys.executable, "-m", "jitlab", "report", path], capture_output=True, text=True)
    assert done.returncode == 2 and "can't be printed" in done.stderr and "Traceback" not in done.stderr
