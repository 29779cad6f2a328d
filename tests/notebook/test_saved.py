"""What stays in the notebook: the same bytes when nothing changed, whoever runs it; something else when something did."""

import json
import os
import zlib
from itertools import count

import numpy as np
import pytest

from jitlab.config import config
from jitlab.notebook.extension import session_of
from jitlab.notebook.rpc.link import Link
from jitlab.notebook.saved_outputs import SavedOutputs
from jitlab.report import MIME
from jitlab.report.schema import VERSION

pytestmark = pytest.mark.usefixtures("planned_times")
SOURCE = "%%jit\ny = np.tanh(x).sum(axis=1)\nz = np.flatnonzero(y > 0) + 1"
_count = count()


@pytest.fixture
def shell(ip, tmp_path):
    """A shell whose outputs are kept in a folder of the test."""
    ip.reset(new_session=True)
    session = session_of(ip)
    before, session.saved = session.saved, SavedOutputs(tmp_path)
    ip.user_ns.update(np=np, x=np.arange(12.0).reshape(3, 4))
    ip.source = f"{SOURCE}  # {next(_count)}"  # another trace than that of the test before
    yield ip
    session.saved = before


def output(shell, source=None):
    """What the notebook file would hold of a cell's report."""
    source = source or shell.source
    shell.display_pub.outputs.clear()
    result = shell.run_cell(source, store_history=True)
    assert result.success, result.error_in_exec
    (data,) = [shown["data"] for shown in shell.display_pub.outputs if MIME in shown["data"]]
    return json.dumps(data)


def fresh(shell):
    """What a kernel that starts now knows: the files."""
    session_of(shell).saved = SavedOutputs(session_of(shell).saved.folder)


def test_a_cell_that_runs_again_keeps_its_bytes(shell):
    first = output(shell)
    output(shell, "%%jit\nother = x + 1")  # counts go on
    assert output(shell) == first
    fresh(shell)
    assert output(shell) == first
    assert "In [ ]" in first and json.loads(first)[MIME]["cell"]["execution_count"] is None


def test_the_newest_report_comes_beside_an_output_that_keeps_an_earlier_one(shell, monkeypatch):
    """Not in the file: `transient` is for who looks now. With a panel that is shown nothing comes twice."""
    session = session_of(shell)
    monkeypatch.setattr(session, "link", Link(lambda message: None))
    first = output(shell)
    assert not shell.display_pub.outputs[-1]["transient"]  # it is this run's
    assert output(shell) == first
    beside = shell.display_pub.outputs[-1]["transient"]["jitlab"]["report"]
    assert beside["cell"]["execution_count"] and beside["verdict"]["seconds"] != json.loads(first)[MIME]["verdict"]["seconds"]
    session.link.attached = True
    assert output(shell) == first
    assert not shell.display_pub.outputs[-1]["transient"]


def test_what_a_cell_calls_may_be_defined_anew_with_no_difference(shell):
    define = "import jitlab as jl\n@jl.function\ndef f(a):\n    return np.tanh(a) + 1"
    shell.run_cell(define, store_history=True)
    first = output(shell, "%%jit\nf(x);")
    shell.run_cell(define, store_history=True)
    assert output(shell, "%%jit\nf(x);") == first


def test_another_plan_another_shape_or_another_source_is_shown(shell):
    first = output(shell)
    shell.user_ns["x"] = np.arange(20.0).reshape(4, 5)
    other = output(shell)
    assert other != first
    assert output(shell, shell.source + "\nw = z * 2") not in (first, other)
    shell.user_ns["x"] = np.arange(12.0).reshape(3, 4)
    assert output(shell) == first


def test_a_time_that_has_really_changed_is_shown(shell):
    first = output(shell)
    folder = session_of(shell).saved.folder
    (file,) = folder.iterdir()
    entry = json.loads(zlib.decompress(file.read_bytes()))
    entry["before"]["seconds"] = [1.0] * 5  # so slow was it, it says
    file.write_bytes(zlib.compress(json.dumps(entry).encode()))
    fresh(shell)
    assert output(shell) == first  # once is chance
    again = output(shell)
    assert again != first
    assert output(shell) == again


def test_times_of_quick_code_give_way_once_to_those_of_the_code_that_stays(shell):
    output(shell)
    (entry,) = session_of(shell).saved._known.values()
    entry.bundle[MIME]["verdict"]["first_run"] = {"seconds": 1.0, "quick_calls": 1, "calls": 1, "quick_share": 1.0, "text": ""}
    session_of(shell).saved._write(*session_of(shell).saved._known.popitem())
    first = output(shell)  # of another session: the same file
    assert '"quick_share": 1.0' in first
    again = output(shell)
    assert again != first and '"quick_share": 1.0' not in again
    assert output(shell) == again
    fresh(shell)
    assert output(shell) == again


def test_a_comparison_beside_other_programs_gives_way_to_one_that_had_the_processors(shell):
    output(shell)
    ((key, entry),) = session_of(shell).saved._known.items()
    speed = {"text": "about 2 × faster", "code": "about", "args": {"ratio": "2"}, "ratio": 2.0, "rounds": 9, "others": 0.6}
    entry.bundle[MIME]["verdict"]["speed"] = speed
    session_of(shell).saved._write(key, entry)
    fresh(shell)
    assert entry.bundle[MIME]["verdict"]["speed"] == session_of(shell).saved._read(key).bundle[MIME]["verdict"]["speed"]
    quiet = output(shell)
    assert '"others": 0.6' not in quiet
    assert output(shell) == quiet


def test_another_notebook_has_outputs_of_its_own(shell, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "one.ipynb")
    first = output(shell)
    monkeypatch.setenv("JPY_SESSION_NAME", "two.ipynb")
    assert output(shell) != first
    monkeypatch.setenv("JPY_SESSION_NAME", "one.ipynb")
    assert output(shell) == first


def test_in_a_terminal_each_run_shows_its_own_times(ip):
    ip.reset(new_session=True)
    ip.user_ns.update(np=np, x=np.arange(12.0).reshape(3, 4))
    assert not session_of(ip).saved.stay
    assert output(ip, SOURCE) != output(ip, SOURCE)


@pytest.mark.parametrize(
    "content", [b"", b"no zlib", zlib.compress(b"{"), zlib.compress(b'{"version": 9}'), zlib.compress(b"[" * 100_000),
                zlib.compress(b'{"version":1,"bundle":{"application/vnd.jitlab.report+json":3},"before":{},"after":{}}'),
                zlib.compress(b" " * 50_000_000)], ids=range(7),
)  # fmt: skip
def test_a_file_that_is_damaged_or_not_ours_is_made_anew(shell, content):
    session_of(shell).saved = SavedOutputs(session_of(shell).saved.folder / "outputs")
    output(shell)
    (file,) = session_of(shell).saved.folder.iterdir()
    file.write_bytes(content)
    fresh(shell)
    assert json.loads(output(shell))[MIME]["version"] == VERSION
    assert len(file.read_bytes()) > 1000


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_memory(shell, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    session_of(shell).saved = SavedOutputs(blocked / "outputs")
    assert output(shell) == output(shell)


def test_the_folder_keeps_the_newest(shell, tmp_path, monkeypatch):
    monkeypatch.setattr("jitlab.notebook.saved_outputs.MOST_FILES", 3)
    for n in range(5):
        output(shell, f"%%jit\nq = x + {n}")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_run_whose_output_stays_writes_no_file_and_its_times_are_kept_at_the_end(shell):
    output(shell)
    saved = session_of(shell).saved
    (file,) = saved.folder.iterdir()
    before, changed = file.read_bytes(), file.stat().st_mtime_ns
    for _ in range(3):
        output(shell)
    assert file.stat().st_mtime_ns == changed
    saved.write_times()
    runs = [json.loads(zlib.decompress(data)) for data in (before, file.read_bytes())]
    assert [sum(len(run[side].get("seconds", ())) for side in ("before", "after")) for run in runs] == [1, 4]


def test_an_output_that_makes_room_in_memory_takes_its_times_to_its_file(shell, monkeypatch):
    monkeypatch.setattr("jitlab.notebook.saved_outputs.KEPT_IN_MEMORY", 1)
    output(shell)
    output(shell)
    saved = session_of(shell).saved
    (key,) = saved._known
    output(shell, "%%jit\nother = x + 1")
    entry = saved._read(key)
    assert key not in saved._known and entry is not None
    assert len(entry.before["seconds"]) + len(entry.after.get("seconds", ())) == 2


def test_who_wants_the_newest_times_says_so(shell):
    config.stable_outputs = False
    try:
        seconds = {json.loads(output(shell))[MIME]["verdict"]["seconds"] for _ in range(4)}
        assert len(seconds) > 1
    finally:
        config.stable_outputs = True


def test_the_report_that_is_handed_out_has_the_times_of_this_run(shell):
    output(shell)
    shell.run_cell(shell.source.replace("%%jit", "%%jit -o r1"), store_history=True)
    shell.run_cell(shell.source.replace("%%jit", "%%jit -o r1"), store_history=True)
    assert shell.user_ns["r1"].verdict["seconds"] == shell.user_ns["r1"].data["verdict"]["seconds"]
    assert shell.user_ns["r1"].data["cell"]["execution_count"] == shell.execution_count - 1


def test_a_report_below_a_cell_stays_within_its_size(shell):
    config.saved_bytes = 40_000
    try:
        lines = "\n".join(f"a{n} = np.tanh(x + {n}).sum()" for n in range(120))
        text = output(shell, f"%%jit\n{lines}")
        assert len(text.encode()) < 42_000 and json.loads(text)[MIME]["omitted"]
    finally:
        config.saved_bytes = 150_000


CELLS = [
    "%load_ext jitlab\nimport numpy as np\nimport jitlab as jl\nx = np.arange(120.0).reshape(30, 4)",
    SOURCE,
    "@jl.function\ndef f(a, rate):\n    return np.tanh(a) * rate\nfor n in range(3):\n    f(x, 0.5 + n)",
    "%%jit --compare\nz = (np.exp(x) - x).sum(axis=1)",
    "%%jit --level O0\nfor i in range(3):\n    x = x * 2\nif x.sum() > 0:\n    x = x - 1",
    "%jit (x * 2).sum()",
    "%jitlab explain 2",
]


@pytest.mark.slow
def test_a_notebook_that_is_executed_twice_in_fresh_kernels_is_the_same_file(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="notebooks are part of the `lab` extra")
    execute = pytest.importorskip("nbclient", reason="notebooks are part of the `lab` extra").NotebookClient
    monkeypatch.setenv("JITLAB_CACHE_DIR", str(tmp_path / "cache"))
    files = []
    for _ in range(2):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell, id=f"c{n}") for n, cell in enumerate(CELLS)])
        execute(book, timeout=120, record_timing=False, resources={"metadata": {"path": os.fspath(tmp_path)}}).execute()
        files.append(nbformat.writes(book))
    assert files[0].count(MIME) == 5
    assert files[0] == files[1]
