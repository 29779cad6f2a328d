"""The outputs of cells as they were shown last, in the user's cache folder: who runs a notebook again gets the same bytes.

See jitlab/report/store/settled.py for when that is. What stands in the folder is used as data only: text, and JSON that the
panel reads as it reads any saved notebook.
"""

from __future__ import annotations

import atexit
import json
import os
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jitlab
import jitlab.report as report_package
from jitlab.config import cache_folder, config
from jitlab.report import MIME, Report
from jitlab.report.render.outline import PARTS
from jitlab.report.store.settled import Entry, key_of, neutral, ran_beside_others, ran_quick, times_of

#: The variable in which a server tells the kernel what notebook it is of.
NOTEBOOK = "JPY_SESSION_NAME"

KEPT_IN_MEMORY = 64
MOST_FILES = 500
MOST_BYTES = 4_000_000  # of one file, opened


class SavedOutputs:
    """Remembers outputs by what they say. `folder` None: for this session only. `stay` False: no notebook holds them, as in a
    terminal, so that each run shows its own times."""

    def __init__(self, folder: Path | None, stay: bool = True) -> None:
        self.folder, self.stay = folder, stay
        self._known: OrderedDict[str, Entry] = OrderedDict()
        self._unwritten: set[str] = set()  # entries whose files lack the times of their latest runs
        atexit.register(self.write_times)

    @classmethod
    def of_user(cls, stay: bool = True) -> SavedOutputs:
        folder = cache_folder() if config.cache else None
        return cls(Path(folder) / "outputs" if folder is not None else None, stay)

    def settle(self, report: Report, own_numbers: list[int], show: tuple[str, ...] = PARTS) -> Report:
        """The report as it is shown below its cell: with the bytes of the last time, when it says nothing new. `show`: which
        parts are shown besides the verdict."""
        data = neutral(report.data, own_numbers)
        if show != PARTS:
            data["show"] = list(show)
        fresh = Report(data)
        if not (config.stable_outputs and self.stay):
            report.saved = fresh._repr_mimebundle_()
            return report
        notebook = os.environ.get(NOTEBOOK, "")  # the same cell of another one has taken times of its own
        key, times = key_of(data, drawn_by(), str(config.saved_bytes), notebook, *show), times_of(data)
        known = self._known.get(key)
        entry = known or self._read(key)
        if entry is None:
            entry = Entry.of(fresh._repr_mimebundle_(), times)
        elif known and ran_quick(entry.bundle[MIME]) and not ran_quick(data):
            entry = Entry.of(fresh._repr_mimebundle_(), times)  # somebody ran it again for the times that last
        elif ran_beside_others(entry.bundle[MIME]) and not ran_beside_others(data):
            entry = Entry.of(fresh._repr_mimebundle_(), times)
        elif not entry.takes(times):
            entry = entry.renewed(fresh._repr_mimebundle_(), times)
        self._known[key] = entry
        self._known.move_to_end(key)
        if entry is known:
            self._unwritten.add(key)
        else:
            self._write(key, entry)
        while len(self._known) > KEPT_IN_MEMORY:
            oldest, given_up = self._known.popitem(last=False)
            if oldest in self._unwritten:
                self._write(oldest, given_up)
        report.saved = self._of_this_cell(entry.bundle, data)
        return report

    def write_times(self) -> None:
        """Write what files lack: the times of runs whose output stayed. Called when the interpreter ends: a run whose output
        stays writes no file."""
        for key in sorted(self._unwritten):
            self._write(key, self._known[key])

    def _of_this_cell(self, bundle: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
        """Two cells with the same source have the same output but for the cell's id."""
        shown = bundle[MIME]
        return {**bundle, MIME: {**shown, "cell": {**shown["cell"], "id": data["cell"]["id"]}}}

    # ---- files
    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key}.json.z"

    def _read(self, key: str) -> Entry | None:
        """What was kept; None where there is nothing, or nothing that can be trusted."""
        if self.folder is None:
            return None
        with suppress(OSError, ValueError, zlib.error, RecursionError):
            path = self._path(key)
            if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
                return None
            unpacked = zlib.decompressobj().decompress(path.read_bytes(), MOST_BYTES)
            entry = Entry.from_json(json.loads(unpacked))
            bundle = entry.bundle if entry else {}
            if isinstance(bundle.get(MIME), dict) and isinstance(bundle[MIME].get("cell"), dict):
                return entry
        return None

    def _write(self, key: str, entry: Entry) -> None:
        """Written beside and then moved, so that nobody reads half of it. Never raises: it is a cache."""
        self._unwritten.discard(key)
        if self.folder is None:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            packed = zlib.compress(json.dumps(entry.to_json(), ensure_ascii=False).encode("utf-8", "backslashreplace"), 1)
            beside = self.folder / f"{key}.{os.getpid()}.tmp"
            beside.write_bytes(packed)
            is_new = not self._path(key).exists()
            beside.replace(self._path(key))
            if is_new:
                self._make_room()

    def _make_room(self) -> None:
        files = list(self.folder.glob("*.json.z")) if self.folder is not None else []
        if len(files) > MOST_FILES:
            files.sort(key=lambda path: path.stat().st_mtime)
            for path in files[: len(files) - MOST_FILES]:
                path.unlink(missing_ok=True)


@cache
def drawn_by() -> str:
    """The version of what makes reports: another one may say or draw them otherwise."""
    files = Path(report_package.__file__).parent.rglob("*.py")
    return f"{jitlab.__version__} {max(path.stat().st_mtime_ns for path in files)}"
