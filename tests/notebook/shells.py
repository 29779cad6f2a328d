"""Runs cells in a shell, and keeps what they leave behind."""

from __future__ import annotations

import contextlib
import io
import re
import types
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from jitlab.notebook.extension import load_ipython_extension
from jitlab.report import MIME


def new_shell() -> InteractiveShell:
    """A shell with jitlab loaded, which keeps no history; what it displays is caught."""
    settings = Config()
    settings.HistoryManager.enabled = False
    settings.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=settings)
    shell.display_pub = CapturingDisplayPublisher(parent=shell)
    load_ipython_extension(shell)
    return shell


@dataclass
class Left:
    """What some cells left behind: names, Out, what was printed and displayed, and how they ended."""

    names: dict[str, Any]
    values: dict[int, Any]
    printed: str
    shown: list[Any]
    errors: list[tuple[type | None, str, list[int]]]
    results: list[Any] = field(default_factory=list)


#: What IPython itself keeps in the namespace.
OWN = {
    "In",
    "Out",
    "get_ipython",
    "exit",
    "quit",
    "open",
    "__builtin__",
    "__builtins__",
    "_ih",
    "_oh",
    "_dh",
    "_i",
    "_ii",
    "_iii",
}


def run_cells(shell, cells: list[str], names: dict[str, Any], above: str = "") -> Left:
    """Run cells in a fresh session of the shell, with a line above each."""
    with patch("gc.collect"):  # of the whole test process, each time
        shell.reset(new_session=True)
    shell.user_ns.update(names)
    shell.display_pub.outputs.clear()
    np.random.seed(5)
    errors, results = [], []
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        for cell in cells:
            result = shell.run_cell(above + cell, store_history=True)
            results.append(result)
            error = result.error_in_exec or result.error_before_exec
            message = re.sub(r"line (\d+)", lambda found: f"line {int(found[1]) - bool(above)}", str(error).split("\n")[0])
            message = re.sub(r"<ipython-input-(\d+)-\w+>", r"In[\1]", message)
            errors.append((type(error) if error else None, message, lines_of(error, bool(above))))
    kept = {
        k: v
        for k, v in shell.user_ns.items()
        if k not in OWN and not k.startswith("_i") and not isinstance(v, types.ModuleType)
    }
    shown = [o["data"] for o in shell.display_pub.outputs if MIME not in o["data"]]
    return Left(kept, dict(shell.user_ns["Out"]), out.getvalue(), shown, errors, results)


def lines_of(error: BaseException | None, below: bool) -> list[int]:
    """The lines of cells in an error's traceback; `below`: each cell had a line more."""
    lines = []
    traceback = error.__traceback__ if error else None
    while traceback is not None:
        if "ipython-input" in traceback.tb_frame.f_code.co_filename:
            lines.append(traceback.tb_lineno - below)
        traceback = traceback.tb_next
    return lines
