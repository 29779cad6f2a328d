"""The `jitlab` command."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

TOUR = "01-softmax-regression.ipynb"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="jitlab", description="Compile NumPy, and see in JupyterLab what happened.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("lab", help="open JupyterLab on the tour; hands on what follows to it", add_help=False)
    chosen, rest = parser.parse_known_args(arguments)
    assert chosen.command == "lab"
    return open_lab(rest)


def open_lab(arguments: Sequence[str]) -> int:
    """Replaces this process by JupyterLab with the tour notebook open."""
    if importlib.util.find_spec("jupyterlab") is None:
        print('JupyterLab is not installed here. Try: pip install "jitlab[lab]"', file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "jupyterlab", *arguments]
    if not any(given in ("-h", "--help", "--help-all", "--version") for given in arguments):
        tour = tour_notebook()
        # As the default address, so that it is also the one that --no-browser prints.
        command[3:3] = [f"--ServerApp.root_dir={tour.parent}", f"--LabApp.default_url=/lab/tree/{tour.name}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in arguments:
            print("jitlab lab: running as root, so JupyterLab is started with --allow-root.", file=sys.stderr)
            command.append("--allow-root")
    os.execv(command[0], command)


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
