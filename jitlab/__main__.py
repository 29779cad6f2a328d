"""The `jitlab` command, `python -m jitlab`."""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitlab.messages.escape import clean, clean_lines

if TYPE_CHECKING:
    from jitlab.report import Report

TOUR = "01-softmax-regression.ipynb"

GOOD, WORSE, NOT_CHECKED = 0, 1, 2  # exit statuses of `jitlab check`


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    given, rest = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    parser, _ = parsers()
    chosen, unknown = parser.parse_known_args(given)
    if chosen.command == "lab":
        return open_lab([*unknown, *(["--", *rest] if rest else [])])
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return report_script(chosen, rest) if chosen.command == "report" else check_program(chosen, rest)


def parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser of the command line, and those of its commands that have options of their own."""
    parser = argparse.ArgumentParser(prog="jitlab", description="Compile NumPy, and see in JupyterLab what happened.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("lab", help="open JupyterLab on the tour; hands on what follows to it", add_help=False)
    report = commands.add_parser("report", help="run a script and report what jitlab did", usage=REPORT_USAGE)
    report.add_argument("script", help="is run as `python script.py` runs it, recorded; what follows -- is handed on to it")
    report.add_argument("-o", "--output", metavar="PATH", help=f"a file ({', '.join(WRITERS)}); without it the text is printed")
    check = commands.add_parser("check", help="run a notebook or script: is it compiled as well as it was?", usage=CHECK_USAGE)
    check.add_argument("program", help="a notebook, executed in a new kernel, or a script; what follows -- is handed on to it")
    check.add_argument("--baseline", required=True, metavar="PATH", help="how it was: retraces, kernels, ... as JSON")
    check.add_argument("--update", action="store_true", help="write the baseline anew")
    check.add_argument("--times", action="store_true", help="slow-downs count, too, where the baseline is of this machine")
    check.add_argument("--timeout", type=int, default=600, metavar="SECONDS", help="that a cell may take (600)")
    return parser, {"report": report, "check": check}


REPORT_USAGE = "jitlab report SCRIPT [-o PATH] [-- ARGUMENTS OF THE SCRIPT]"
CHECK_USAGE = "jitlab check NOTEBOOK_OR_SCRIPT --baseline PATH [--update] [--times] [-- ARGUMENTS OF THE SCRIPT]"

#: What a report is written as, by the ending of its path.
WRITERS: dict[str, Callable[[Report], str]] = {
    ".html": lambda report: report.to_html(),
    ".svg": lambda report: report.to_svg(),
    ".txt": lambda report: f"{report}\n",
    ".ctf.json": lambda report: json.dumps(report.timeline.to_chrome(), separators=(",", ":")),
    ".json": lambda report: json.dumps(report.to_json(), indent=1),
}


def report_script(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Returns the script's exit status; the report is also written of a script that failed."""
    from jitlab.report.scripts import run_script

    ending = next((ending for ending in WRITERS if chosen.output and chosen.output.endswith(ending)), None)
    if chosen.output and ending is None:
        return _complain(f"jitlab report: {chosen.output} ends with none of {', '.join(WRITERS)}.")
    if not Path(chosen.script).is_file():
        return _complain(f"jitlab report: there is no script {chosen.script}.{_from_here(chosen.script)}")
    output = Path(chosen.output).absolute() if chosen.output else Path()  # the script may change the folder
    report, status = run_script(chosen.script, arguments)
    if ending is None:
        try:
            print(report)
        except (OSError, ValueError) as error:  # the script closed it, or who read it did
            return status or _complain(f"jitlab report: the report can't be printed: {error}\n  try: -o PATH, which writes it")
        return status
    try:
        output.write_text(WRITERS[ending](report), encoding="utf-8")
    except OSError as error:
        return _complain(f"jitlab report: {chosen.output} can't be written: {error.strerror}.")
    print(clean(f"Written: {chosen.output} ({_lead(report)})"), file=sys.stderr)
    return status


def check_program(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    """0: as before, or changed and no worse. 1: worse; a cell that raises now is. 2: it could not be checked."""
    from jitlab.config import by_counts
    from jitlab.errors import OptionError
    from jitlab.notebook.notebook_check import Stopped, executed
    from jitlab.report.scripts import run_script
    from jitlab.report.store.baselines import Baseline, read_baseline, taken_here, write_baseline
    from jitlab.report.store.regressions import checked

    program, path = Path(chosen.program), Path(chosen.baseline)
    if not program.is_file():
        return _complain(f"jitlab check: there is no program {program}.{_from_here(program)}")
    if not path.exists() and not chosen.update:
        return _complain(f"jitlab check: there is no baseline {path}.\n  try: --update, which writes it")
    program, path = program.absolute(), path.absolute()  # the script may change the folder
    if chosen.update and (why := _unwritable(path)):
        return _complain(f"jitlab check: {chosen.baseline} can't be written: {why}.")
    try:
        baseline = read_baseline(path) if path.exists() else Baseline(program.name, ())
        raised: Sequence[dict[str, Any]] = ()
        cells: Sequence[dict[str, Any]]
        if program.suffix == ".ipynb":
            with by_counts():
                run = executed(program, chosen.timeout)
            cells, raised = run.cells, run.raised
            for cell, traceback in zip(raised, run.tracebacks, strict=True):
                print(f"{cell['title']} of {chosen.program} raised:\n{traceback}", file=sys.stderr)
        else:
            with by_counts():
                report, status = run_script(chosen.program, arguments)
            if status:
                return _complain(f"jitlab check: {chosen.program} ended with status {status}; nothing was checked.")
            cells = [report.facts] if report.facts["operations"] or report.facts["statements"] else []
    except Stopped as stopped:
        return _complain(f"jitlab check: {stopped.title} of {chosen.program} {stopped.why}; nothing was checked.")
    except OptionError as error:
        return _complain(f"jitlab check: {error}")
    found = checked(baseline, cells, chosen.times, raised)
    if path.exists():
        print(f"{chosen.program} against {chosen.baseline}\n{found}")
    if chosen.update:
        try:
            write_baseline(path, taken_here(program.name, cells, raised))
        except OSError as error:
            return _complain(f"jitlab check: {chosen.baseline} can't be written: {error.strerror}.")
        print(f"Written: {chosen.baseline}, {len(cells)} {'cell' if len(cells) == 1 else 'cells'}.")
        for cell in raised:
            print(f"{cell['title']} raised {cell['error']}. From now on that is as before.")
        return GOOD
    if found.is_changed:
        print(f"If this is meant: jitlab check {chosen.program} --baseline {chosen.baseline} --update")
    return WORSE if found.is_worse else GOOD


def _unwritable(path: Path) -> str:
    """Why a file can't be written, as far as that shows beforehand; "" where nothing speaks against it."""
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    return "" if os.access(path if path.exists() else path.parent, os.W_OK) else "writing is not allowed there"


def _from_here(path: str | Path) -> str:
    """What to try where a file is missing: those in its folder that are called alike, else where one is looked for."""
    folder = Path(path).parent
    there = sorted(at.name for at in folder.iterdir() if at.suffix in (".py", ".ipynb")) if folder.is_dir() else []
    near = difflib.get_close_matches(Path(path).name, there, 3)
    return f"\n  try: {' or '.join(str(folder / name) for name in near) if near else f'a path from {Path.cwd()}'}"


def _complain(text: str) -> int:
    print(clean_lines(text), file=sys.stderr)
    return NOT_CHECKED


def _lead(report: Report) -> str:
    return str(report.verdict["lead"])


#: JupyterLab's question about its news, and its word of a newer version, pop up over the panel's corner. What is given
#: to `jitlab lab` comes later and wins.
QUIET = ("--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate")


def open_lab(arguments: Sequence[str]) -> int:
    """Replaces this process by JupyterLab with the tour notebook open."""
    if importlib.util.find_spec("jupyterlab") is None:
        print('JupyterLab is not installed here. Try: pip install "jitlab[lab]"', file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "jupyterlab", *arguments]
    if not any(given in ("-h", "--help", "--help-all", "--version") for given in arguments):
        command[3:3] = [*_opening(arguments), *QUIET]
        if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in arguments:
            print("jitlab lab: running as root, so JupyterLab is started with --allow-root.", file=sys.stderr)
            command.append("--allow-root")
    os.execv(command[0], command)


#: Options of JupyterLab that say what it opens: given, they stand alone, for it takes each but once.
PLACES = ("root_dir", "notebook_dir", "preferred_dir", "default_url", "file_to_run")


def _opening(arguments: Sequence[str]) -> list[str]:
    """The folder and the address of the tour, unless the arguments name what is to be opened: an option, a folder, a file."""
    takes = False  # `--port 8899`: what follows an option in two words belongs to it
    for given in arguments:
        name = given.lstrip("-").split("=")[0].split(".")[-1].replace("-", "_")
        if given.startswith("-") and name in PLACES:
            return []
        if not given.startswith("-") and (not takes or Path(given).exists()):
            return []
        takes = given.startswith("-") and "=" not in given and name not in FLAGS
    tour = tour_notebook()
    # As the default address, so that it is also the one that --no-browser prints.
    return [f"--ServerApp.root_dir={tour.parent}", f"--LabApp.default_url=/lab/tree/{tour.name}"]


#: Those that take no value, as they are typed.
FLAGS = frozenset({"no_browser", "allow_root", "debug", "y", "core_mode", "dev_mode", "watch", "collaborative", "no_mathjax"})


def tour_notebook() -> Path:
    """The tour of the checkout that jitlab runs from, else a copy of the installed one in the current folder."""
    checkout = Path(__file__).resolve().parent.parent / "notebooks" / TOUR
    if checkout.is_file():
        return checkout
    installed = Path(sysconfig.get_path("data")) / "share" / "jitlab" / "notebooks"
    copy = Path.cwd() / "jitlab-tour"
    if not copy.exists():  # never over the notebooks someone has worked in
        shutil.copytree(installed, copy)
    return copy / TOUR


if __name__ == "__main__":
    sys.exit(main())
