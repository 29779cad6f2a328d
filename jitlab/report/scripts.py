"""A script run recorded, as `python script.py` would run it."""

from __future__ import annotations

import runpy
import sys
import threading
import traceback
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType

from .recording import record
from .report import Report

STARTED_BY = ("<frozen runpy>", runpy.__file__ or "", __file__)  # frames of who started the script


def run_script(path: str | Path, arguments: Sequence[str] = ()) -> tuple[Report, int]:
    """Run a script as `__main__` with these arguments; returns the report and the exit status. An exception is printed with the
    script's own traceback, as Python prints it, and ends with status 1: the report is of what ran until then."""
    source = Path(path).absolute()  # as Python makes it: the script may change the folder
    kept, sys.argv = sys.argv, [str(path), *arguments]
    folder = str(source.resolve().parent)
    sys.path.insert(0, folder)
    before = set(threading.enumerate())
    status = 0
    try:
        with record() as recording:
            recording.cell = {
                "id": source.name, "execution_count": None, "title": source.name, "source": _lines(source), "running": False,
                "error": None,
            }  # fmt: skip
            try:
                runpy.run_path(str(source), run_name="__main__")
            except SystemExit as leaving:
                status = _status(leaving.code)
            except BaseException as error:
                recording.cell["error"] = type(error).__name__
                traceback.print_exception(type(error), error, _own(error.__traceback__))
                status = 130 if isinstance(error, KeyboardInterrupt) else 1
            _wait_for_threads(before)
    finally:
        sys.argv = kept
        if folder in sys.path:
            sys.path.remove(folder)
    return recording.report(), status


def _wait_for_threads(before: Collection[threading.Thread]) -> None:
    """As Python does at its end: a script ends with the last of its threads that are no daemons."""
    while started := [thread for thread in threading.enumerate() if not thread.daemon and thread not in before]:
        for thread in started:
            thread.join()


def _own(whole: TracebackType | None) -> TracebackType | None:
    """From the script's first frame on."""
    while whole is not None and whole.tb_frame.f_code.co_filename in STARTED_BY:
        whole = whole.tb_next
    return whole


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError):
        return []
