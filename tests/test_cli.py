import os
import subprocess
import sys

import pytest

from jitlab import __main__ as cli


@pytest.fixture
def started(monkeypatch):
    """What the process would be replaced by."""
    commands = []
    monkeypatch.setattr(os, "execv", lambda path, command: commands.append(command))
    return commands


def test_lab_opens_the_tour_and_hands_its_arguments_on(started, monkeypatch, tmp_path):
    tour = tmp_path / "tour.ipynb"
    monkeypatch.setattr(cli, "tour_notebook", lambda: tour)
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    cli.main(["lab", "--no-browser", "--port", "8899"])
    opens = [f"--ServerApp.root_dir={tmp_path}", "--LabApp.default_url=/lab/tree/tour.ipynb", *cli.QUIET]
    assert started == [[sys.executable, "-m", "jupyterlab", *opens, "--no-browser", "--port", "8899"]]


@pytest.mark.parametrize(
    "given",
    [["--ServerApp.root_dir=X"], ["--ServerApp.root_dir", "X"], ["--notebook-dir=X"], ["--LabApp.default_url=/lab"], ["X"],
     ["--no-browser", "X"], ["--port", "8899", "some.ipynb"], ["--port=8899", "X"]],
    ids=" ".join,
)  # fmt: skip
def test_what_the_person_wants_opened_is_opened_and_not_the_tour(started, monkeypatch, given):
    monkeypatch.setattr(cli, "tour_notebook", lambda: pytest.fail("the tour is not wanted"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    cli.main(["lab", *given])
    assert started == [[sys.executable, "-m", "jupyterlab", *cli.QUIET, *given]]


def test_lab_opens_without_the_pop_up_of_jupyterlab_over_the_panel():
    labapp = pytest.importorskip("jupyterlab.labapp")
    app = labapp.LabApp()
    app.parse_command_line(list(cli.QUIET))
    assert app.news_url is None
    assert app.check_for_updates_class.__name__ == "NeverCheckForUpdate"


def test_lab_says_so_when_it_has_to_allow_root(started, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(cli, "tour_notebook", lambda: tmp_path / "tour.ipynb")
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    cli.main(["lab"])
    assert started[0][-1] == "--allow-root"
    assert "--allow-root" in capsys.readouterr().err


def test_help_of_jupyterlab_needs_no_notebook(started, monkeypatch):
    monkeypatch.setattr(cli, "tour_notebook", lambda: pytest.fail("no notebook is needed"))
    cli.main(["lab", "--version"])
    assert started == [[sys.executable, "-m", "jupyterlab", "--version"]]


def test_an_installed_jitlab_opens_a_copy_of_its_tour_and_never_overwrites_it(monkeypatch, tmp_path):
    installed = tmp_path / "prefix" / "share" / "jitlab" / "notebooks"
    installed.mkdir(parents=True)
    (installed / cli.TOUR).write_text("new")
    monkeypatch.setattr(cli.sysconfig, "get_path", lambda name: str(tmp_path / "prefix"))
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "site-packages" / "jitlab" / "__main__.py"))
    monkeypatch.chdir(tmp_path)
    copy = cli.tour_notebook()
    assert (copy, copy.read_text()) == (tmp_path / "jitlab-tour" / cli.TOUR, "new")
    copy.write_text("my notes")
    assert cli.tour_notebook().read_text() == "my notes"


def test_lab_without_jupyterlab_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    assert cli.main(["lab"]) == 1
    assert 'pip install "jitlab[lab]"' in capsys.readouterr().err


def test_the_package_runs_as_the_command_does(tmp_path):
    (tmp_path / "small.py").write_text("print('ran')\n")
    command = [sys.executable, "-m", "jitlab", "report"]
    done = subprocess.run([*command, "small.py"], cwd=tmp_path, capture_output=True, text=True, env=_with_the_package())
    assert done.returncode == 0 and done.stdout.startswith("ran"), done.stderr
    done = subprocess.run([*command, "smal.py"], cwd=tmp_path, capture_output=True, text=True, env=_with_the_package())
    assert done.returncode == 2 and done.stderr == "jitlab report: there is no script smal.py.\n  try: small.py\n"


def test_a_file_that_is_like_none_is_looked_for_where_the_command_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for command in (["report", "none.py"], ["check", "not/there.ipynb", "--baseline", "b.json"]):
        assert cli.main(command) == 2
        assert capsys.readouterr().err.endswith(f"  try: a path from {tmp_path}\n")


def _with_the_package():
    """The environment of another process, which imports the package that is tested."""
    folder = os.path.dirname(os.path.dirname(cli.__file__))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))}
