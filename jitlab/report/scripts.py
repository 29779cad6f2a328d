"""A script run recorded, as `python script.py` would run it."""

from __future__ import annotations

import builtins
import sys
import threading
import traceback
from collections.abc import Collection, Sequence
from concurrent.futures import thread as pools
from pathlib import Path
from types import ModuleType, TracebackType

from .recording import record
from .report import Report

STARTED_BY = (__file__,)  # frames of who started the script


def run_script(path: str | Path, arguments: Sequence[str] = ()) -> tuple[Report, int]:
    """Run a script as `__main__` with these arguments; returns the report and the exit status. An exception is printed with the
    script's own traceback, as Python prints it, and ends with status 1: the report is of what ran until then."""
    source = Path(path).absolute()  # as Python makes it: the script may change the folder
    kept, sys.argv = sys.argv, [str(path), *arguments]
    folder = str(source.resolve().parent)
    sys.path.insert(0, folder)
    status = 0
    try:
        with record() as recording:
            recording.cell = {
                "id": source.name, "execution_count": None, "title": source.name, "source": _lines(source), "running": False,
                "error": None,
            }  # fmt: skip
            try:
                _run(source)
            except SystemExit as leaving:
                status = _status(leaving.code)
            except BaseException as error:
                recording.cell["error"] = type(error).__name__
                traceback.print_exception(type(error), error, _own(error.__traceback__))
                status = 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        sys.argv = kept
        if folder in sys.path:
            sys.path.remove(folder)
    return recording.report(), status


def _run(source: Path) -> None:
    """As `__main__`, which it stays for its threads. `sys.argv` keeps the name that was typed; `__file__` is the whole path."""
    threads = set(threading.enumerate())
    code = compile(source.read_bytes(), str(source), "exec", dont_inherit=True)
    before, module = sys.modules["__main__"], ModuleType("__main__")
    module.__dict__.update(__file__=str(source), __builtins__=builtins)
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    finally:
        _wait_for_threads(threads)
        sys.modules["__main__"] = before


def _wait_for_threads(before: Collection[threading.Thread]) -> None:
    """As Python does at its end: a script ends with the last of its threads that are no daemons. Those of a pool end with the
    process, jitlab's own among them: of their kind `concurrent.futures` keeps a list, which has no public name."""
    pooled = getattr(pools, "_threads_queues", {})
    while started := [t for t in threading.enumerate() if not t.daemon and t not in before and t not in pooled]:
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
