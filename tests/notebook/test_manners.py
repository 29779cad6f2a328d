"""The extension in a shell that is used as people and tools use it: nothing is disturbed, nothing stays behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from jitlab import events
from jitlab.notebook.extension import load_ipython_extension, session_of, unload_ipython_extension
from jitlab.notebook.rpc.link import Link
from jitlab.report import MIME


@pytest.fixture
def shell(ip):
    ip.reset(new_session=True)
    session_of(ip).clear()
    ip.display_pub.outputs.clear()
    ip.user_ns.update(np=np, x=np.arange(12.0))
    return ip


def reports(shell):
    return [shown["data"] for shown in shell.display_pub.outputs if MIME in shown["data"]]


def hooks(shell):
    return [callback for name in ("pre_run_cell", "post_run_cell") for callback in shell.events.callbacks[name]]


def test_requests_of_tools_are_no_cells(shell):
    session = session_of(shell)
    shell.run_cell("%%jit\ny = x + 1", silent=True)
    shell.run_cell("y = x + 2", store_history=False)
    assert session.running is None and not session._hooked and not session.jobs._cells
    shell.run_cell("%%jit\ny = x + 1", store_history=True)
    assert len(reports(shell)) >= 1


def test_a_cell_without_an_id_gets_a_name_that_no_other_one_has(shell):
    shell.run_cell("%%jit\ny = x + 1", store_history=True)
    (id,) = session_of(shell).cells
    shell.run_cell("%%jit\nz = x + 2", store_history=True)
    shell.run_cell("%%jit\ny = x + 1", store_history=True)
    ids = [*session_of(shell).cells]
    assert len(ids) == 2 and id in ids and all(name.startswith("cell ") for name in ids)  # the same text is the same cell


def test_loading_again_and_again_hooks_once(shell):
    before = len(hooks(shell))
    for _ in range(3):
        shell.run_line_magic("reload_ext", "jitlab.notebook.extension")
    load_ipython_extension(shell)
    assert len(hooks(shell)) == before
    shell.run_cell("%%jit\ny = x + 1", store_history=True)
    assert len(reports(shell)) == 1


def test_unloading_leaves_the_shell_as_it_was(shell):
    session = session_of(shell)
    session.jobs.cell_started("In [1]")
    ticket = session.jobs.submit("check", "a", "Check", lambda context: {})
    link = session.link = Link(lambda message: None)
    unload_ipython_extension(shell)
    try:
        assert not [hook for hook in hooks(shell) if getattr(hook, "__self__", None) is session]
        assert session.hear not in events._listeners
        assert not session.jobs.cancel(ticket)  # it has ended
        assert "unloaded" in link._reply({"want": "cells"})["error"]
        assert shell.run_cell("y = x + 1", store_history=True).success
    finally:
        load_ipython_extension(shell)


def test_an_interrupt_ends_the_cell_and_the_next_one_is_fine(shell):
    sleeps = shell.user_ns["sleeps"] = threading.Event()

    def interrupt():
        sleeps.wait(60)
        time.sleep(0.1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    result = shell.run_cell("%%jit\nimport time\ny = x + 1\nsleeps.set()\ntime.sleep(30)\nz = y * 2", store_history=True)
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    session = session_of(shell)
    assert session.running is None and not session.jobs._cells
    assert next(iter(session.cells.values())).error == "KeyboardInterrupt"
    assert shell.run_cell("%%jit\ny = x + 2", store_history=True).success
    assert shell.user_ns["y"][0] == 2 and "z" not in shell.user_ns


def test_an_error_in_the_middle_leaves_what_python_would_have_left(shell):
    result = shell.run_cell("%%jit\na = x + 1\nb = a / np.zeros(5)\nc = a * 2", store_history=True)
    assert isinstance(result.error_in_exec, ValueError)
    assert shell.user_ns["a"][0] == 1 and "c" not in shell.user_ns
    (report,) = reports(shell)
    assert report[MIME]["cell"]["error"] == "ValueError"
    assert session_of(shell).running is None


def test_a_cell_that_runs_a_cell_keeps_its_own_events(shell):
    shell.run_cell("import jitlab as jl\n@jl.function\ndef f(v):\n    return v * 2", store_history=True)
    shell.run_cell("f(x)\nget_ipython().run_cell('f(x); f(x)', store_history=True)\nf(x)", store_history=True)
    session = session_of(shell)
    assert session.running is None and not session._hooked
    calls = [session.report_of(run).clusters[0].calls for run in session.cells.values()]
    assert sorted(calls) == [2, 2]


def test_a_function_defined_again_later_is_traced_again_and_says_so(shell):
    define = "import jitlab as jl\n@jl.function\ndef g(v):\n    return v * {}"
    shell.run_cell(define.format(2), store_history=True)
    shell.run_cell("y = g(x)", store_history=True)
    shell.run_cell(define.format(3), store_history=True)
    shell.run_cell("y = g(x)", store_history=True)
    assert shell.user_ns["y"][1] == 3


def test_a_function_that_compiled_code_calls_may_be_defined_again_later(shell):
    define = "import jitlab as jl\ndef helper(v):\n    return v + {}"
    shell.run_cell(define.format(1), store_history=True)
    shell.run_cell("@jl.jit\ndef outer(v):\n    return helper(v) * 2", store_history=True)
    shell.run_cell("y = outer(x)", store_history=True)
    shell.run_cell(define.format(10), store_history=True)
    shell.run_cell("y = outer(x)", store_history=True)
    assert shell.user_ns["y"][0] == 20
    (retrace,) = session_of(shell).report_of(list(session_of(shell).cells.values())[-1]).retraces
    assert retrace.cause == "global" and retrace.argument == "helper" and retrace.lines == (3,)


def test_a_module_that_autoreload_loads_again_is_compiled_as_it_is_now(shell, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "reloaded_module.py"
    text = "import jitlab as jl\n@jl.function\ndef scaled(v):\n    return v * {0}\ndef plain(v):\n    return v + {0}"
    path.write_text(text.format(2))
    shell.run_cell("%load_ext autoreload\n%autoreload 2\nimport reloaded_module, jitlab as jl", store_history=True)
    shell.run_cell("inner = jl.jit(lambda v: reloaded_module.plain(v))", store_history=True)
    shell.run_cell("y, z = reloaded_module.scaled(x), inner(x)", store_history=True)
    assert (shell.user_ns["y"][1], shell.user_ns["z"][1]) == (2, 3)
    path.write_text(text.format(5))
    os.utime(path, (time.time() + 5, time.time() + 5))
    try:
        shell.run_cell("y, z = reloaded_module.scaled(x), inner(x)", store_history=True)
        assert (shell.user_ns["y"][1], shell.user_ns["z"][1]) == (5, 6)
    finally:
        shell.run_line_magic("autoreload", "0")
        sys.modules.pop("reloaded_module", None)


def test_without_ipywidgets_and_plotly_all_but_the_explorer_works():
    """In a process of its own: here they are imported already."""
    program = """\
import sys
sys.modules.update(dict.fromkeys(["ipywidgets", "anywidget", "plotly"]))
from IPython.core.interactiveshell import InteractiveShell
import numpy as np
shell = InteractiveShell.instance(colors="nocolor")
shell.run_line_magic("load_ext", "jitlab")
shell.user_ns.update(x=np.arange(4.0))
assert shell.run_cell("%%jit\\ny = x * 2 + 1\\ny.sum()").success
shell.run_cell("import jitlab as jl; jl.explorer(lambda v: v * 2, x)")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 cluster" in done.stdout and "np.float64(16.0)" in done.stdout
    assert "ipywidgets, which is not installed" in done.stdout and "jl.explain(f, *args)" in done.stdout


def test_a_function_of_the_cell_that_loads_jitlab_is_of_that_cell():
    """The cell began before anybody listened."""
    program = """\
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
shell.run_cell("1 + 1", store_history=True)
load = "%load_ext jitlab\\nimport numpy as np, jitlab as jl\\n@jl.function\\ndef f(x, k):\\n    return x * k\\n"
shell.run_cell(load, store_history=True)
shell.run_cell("for k in range(3): f(np.ones(3), k)\\nprint(f.ledger)", store_history=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "(each new Python value is traced again), In [2], line " in done.stdout
    assert "from In [3], line 1" in done.stdout and "ipython-input" not in done.stdout


def test_a_hook_that_fails_disturbs_no_cell(shell, monkeypatch):
    session = session_of(shell)
    monkeypatch.setattr(session, "begin", lambda *arguments: 1 / 0)
    assert shell.run_cell("y = x + 5", store_history=True).success
    assert shell.user_ns["y"][0] == 5 and not session.jobs._cells


def test_thousands_of_cells_are_remembered_only_by_the_last(shell):
    session = session_of(shell)
    shell.run_cell("import jitlab as jl\n@jl.function\ndef h(v):\n    return v * 2\nh(x)", store_history=True)
    for n in range(200):
        shell.run_cell(f"h(x)  # {n}", store_history=True)
    assert len(session.cells) == 64


def test_a_semicolon_hides_the_value_and_not_the_report(shell):
    shell.displayhook.flush()
    shell.run_cell("%%jit\ny = x + 1\ny.sum();", store_history=True)
    assert shell.execution_count - 1 not in shell.user_ns["Out"] and len(reports(shell)) == 1
