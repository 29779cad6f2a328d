"""The text that was compiled is in the report, and line numbers are the same wherever the program stands."""

import json
import linecache
import subprocess
import sys

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import jitlab as jl
from jitlab.notebook.extension import unload_ipython_extension
from tests.notebook.shells import new_shell

PROGRAM = '''\
import numpy as np
import jitlab as jl

@jl.function
def smooth(x):
    y = np.exp(-x)  # the third line of the function
    return (y[1:] + y[:-1]) / 2

report = jl.explain(smooth, np.ones(50))
code = report.code(report.clusters[0].name, "asm")
lines = sorted({n for op in report.ops for n in op.lines}), sorted({n for line in code.lines for _, n in line.at})
'''
LINES = ([6, 7], [6, 7])


def test_lines_in_a_script(tmp_path):
    script = tmp_path / "smooth.py"
    script.write_text(PROGRAM + "import json\nprint(json.dumps([lines, report.data['sources']]))\n")
    out = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    lines, (source,) = json.loads(out)
    assert tuple(lines) == LINES
    assert source["path"] == source["file"] == str(script) and source["cell"] is None
    assert source["first"] == 4 and source["lines"] == PROGRAM.splitlines()[3:7]


def test_lines_in_exec():
    names: dict[str, object] = {}
    exec(compile(PROGRAM, "<a program>", "exec"), names)
    assert names["lines"] == LINES
    assert names["report"].data["sources"] == []  # its text is nowhere


@pytest.fixture
def shell():
    shell = new_shell()
    yield shell
    unload_ipython_extension(shell)
    InteractiveShell.clear_instance()


def test_lines_in_ipython(shell):
    shell.run_cell(PROGRAM, store_history=True)
    assert shell.user_ns["lines"] == LINES
    (source,) = shell.user_ns["report"].data["sources"]
    assert source["first"] == 1 and source["lines"] == PROGRAM.splitlines() and source["path"] is None


def test_a_jit_cell_is_kept_as_it_was_written_and_knows_its_cell(shell):
    shell.run_cell("import numpy as np\nx = np.ones(20)", store_history=True)
    shell.run_cell("%%jit -o kept\n\ny = np.exp(x)\nz = y + 1", store_history=True)
    report = shell.user_ns["kept"]
    (source,) = report.data["sources"]
    assert source["lines"] == ["%%jit -o kept", "", "y = np.exp(x)", "z = y + 1"] and source["first"] == 1
    assert source["cell"] == report.data["cell"]["id"]
    assert {span[0] for op in report.data["ops"] for span in op["lines"]} == {source["file"]}
    code = report.code(report.clusters[0].name, "asm")
    assert {place for line in code.lines for place in line.at} == {(source["file"], 3), (source["file"], 4)}


def test_the_compiled_text_stays_when_the_file_is_edited(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text("import numpy as np\ndef f(x):\n    return np.exp(x) + 1\n")
    names: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    f = jl.jit(names["f"])
    report = jl.explain(f, np.ones(5))
    path.write_text("import numpy as np\ndef f(x):\n    return np.cos(x)\n")
    linecache.checkcache()
    again = jl.explain(f, np.ones(5))  # the plan is known: what runs is the old text
    for each in (report, again):
        (source,) = each.data["sources"]
        assert source["lines"] == ["def f(x):", "    return np.exp(x) + 1"] and source["first"] == 2
