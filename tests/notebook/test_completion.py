"""What the Tab key offers behind the magics, in the shell and by the message that JupyterLab sends."""

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

from jitlab import events
from jitlab.notebook.extension import load_ipython_extension, session_of, unload_ipython_extension
from tests.notebook.shells import new_shell

OPTIONS = ["--level", "--device", "--strict", "--compare", "--check", "--show", "-n", "-r", "-q", "-o"]
COMMANDS = ["status", "explain", "baseline", "compare", "export", "clear", "help"]


@pytest.fixture(params=[True, False], ids=["jedi", "no jedi"])
def shell(request):
    shell = new_shell()
    shell.Completer.use_jedi = request.param
    yield shell
    unload_ipython_extension(shell)
    InteractiveShell.clear_instance()


def offered(shell, text, end=""):
    """The line as it reads with each completion, the cursor having stood before `end`."""
    with provisionalcompleter():
        found = list(shell.Completer.completions(text + end, len(text)))
    return [text[: one.start] + one.text for one in found]


@pytest.mark.parametrize(
    "text, words",
    [
        ("%%jit ", OPTIONS),
        ("%%jit --", OPTIONS[:6]),
        ("%%jit --c", ["--compare", "--check"]),
        ("%%jit --level ", ["O0", "O1"]),
        ("%%jit --level=", ["O0", "O1"]),
        ("%%jit --device ", ["cpu", "gpu", "auto"]),
        ("%%jit --level O0 ", [option for option in OPTIONS if option != "--level"]),
        ("%%jit --compare ", ["anew", *(option for option in OPTIONS if option != "--compare")]),
        ("%%jit --show ", ["graph", "retraces", "timeline", "verdict", "none"]),
        ("%%jit --show re", ["retraces"]),
        ("%%jit --show graph,", ["retraces", "timeline"]),
        ("%%jit --show=graph,t", ["timeline"]),
        ("%jit ", ["on", "off", *OPTIONS]),
        ("%jit --l", ["--level"]),
        ("%jit on ", [option for option in OPTIONS if option not in ("-n", "-r", "-o")]),
        ("%jit on --level ", ["O0", "O1"]),
        ("value = %jit --st", ["--strict"]),
        ("%jitlab ", COMMANDS),
        ("%jitlab c", ["compare", "clear"]),
        ("%jitlab baseline ", ["--cell", "--save", "--load", "--drop"]),
        ("%jitlab compare --", ["--cell", "--run"]),
    ],
)
def test_options_and_commands_are_offered_and_nothing_else(shell, text, words):
    assert sorted(offered(shell, text)) == sorted(
        text[: max(text.rfind(" "), text.rfind("="), text.rfind(",")) + 1] + word for word in words
    )


def test_the_text_behind_the_cursor_does_not_matter(shell):
    assert offered(shell, "%%jit --che", "\nx = 1\n") == ["%%jit --check"]
    assert offered(shell, "x = 1\n%jit of", "f\n") == ["x = 1\n%jit off"]


def test_an_expression_behind_jit_is_completed_as_python(shell):
    shell.run_cell("only_mine = 1")
    names = [] if shell.Completer.use_jedi else ["only_mine"]  # Jedi completes no first name behind a line magic
    assert offered(shell, "%jit on") == [f"%jit {name}" for name in ["on", *names]]
    assert "%jit only_mine + only_mine" in offered(shell, "%jit only_mine + only_m")
    assert not any("--" in line for line in offered(shell, "%jit only_mine "))
    assert "%%jit\nonly_mine" in offered(shell, "%%jit\nonly_m")
    assert "%jitx --" not in offered(shell, "%jitx --")


def test_cells_runs_and_baselines_are_offered_by_what_they_are_called(shell):
    for _ in range(2):
        shell.run_cell("%%jit -q\nimport numpy as np\nv = np.ones(3) * 2", store_history=True)
    shell.run_cell("%jitlab baseline mine", store_history=True)
    number = shell.execution_count - 2
    assert offered(shell, "%jitlab explain ") == [f"%jitlab explain {number}"]
    assert offered(shell, "%jitlab compare --cell ") == [f"%jitlab compare --cell {number}"]
    assert offered(shell, "%jitlab compare m") == ["%jitlab compare mine"]
    assert offered(shell, "%jitlab compare --run ") == ["%jitlab compare --run 1"]


def test_what_a_compiler_does_for_a_cell_of_an_earlier_shell_is_no_cells_of_this_one():
    earlier = new_shell()
    earlier.run_cell("%%jit -q\nimport numpy as np\nv = np.ones(3) * 2", store_history=True)
    (cell,) = session_of(earlier).cells
    unload_ipython_extension(earlier)
    InteractiveShell.clear_instance()
    later = new_shell()
    later.user_ns["happen"] = lambda: events.send(events.DumpWritten(cell=cell, path="late"))
    later.run_cell("happen()", store_history=True)
    heard = dict(session_of(later).cells)
    unload_ipython_extension(later)
    InteractiveShell.clear_instance()
    assert not heard


def test_names_of_the_package_are_the_public_ones(shell):
    import jitlab

    shell.run_cell("import jitlab as jl")
    assert {line.removeprefix("jl.") for line in offered(shell, "jl.")} == set(jitlab.__all__) - {"__version__"}


def test_unloading_takes_them_away(shell):
    unload_ipython_extension(shell)
    assert not [line for line in offered(shell, "%%jit --") if "--strict" in line]
    load_ipython_extension(shell)
    assert "%%jit --strict" in offered(shell, "%%jit --")
