"""Baselines in files: the facts of some cells, to compare later runs with. JSON, versioned, checked when it is read."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jitlab.errors import OptionError
from jitlab.report.duration_samples import MOST
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.devices import default_target

from .bounded_files import text_of
from .comparing import aligned

Json = dict[str, Any]

FORMAT, VERSION = "jitlab-baseline", 1
MOST_BYTES = 64_000_000
MOST_CELLS = 10_000
MOST_ITEMS = 100_000  # of a list
MOST_TEXT = 10_000

TEXTS = ("cell", "title", "source", "lead", "fingerprint")
COUNTS = ("operations", "compiled", "clusters", "kernels", "host", "statements", "bytes", "calls", "retraces")
PART_TEXTS = ("kind", "name", "function", "fingerprint", "reason")


@dataclass(frozen=True)
class Baseline:
    """The facts of cells under a name."""

    name: str
    cells: tuple[Json, ...]
    machine: str = ""
    target: str = ""  # the key of the target that its programs ran on; "" in files that do not say
    raised: tuple[Json, ...] = ()  # cells of a notebook that raised: "cell", "title", "error"

    @property
    def is_of_here(self) -> bool:
        """Were its times taken on this machine, by code for the target that programs run on here?"""
        return self.machine == this_machine() and self.target in ("", default_target().key)

    def of(self, facts: Mapping[str, Any]) -> Json | None:
        """The cell that these facts belong to: of the same id, else the same source, else the same plan; else the one whose
        parts are alike, where there is no doubt."""
        for key in ("cell", "source", "fingerprint"):
            found = [cell for cell in self.cells if facts[key] and cell[key] == facts[key]]
            if len(found) == 1 or (found and key != "fingerprint"):
                return found[-1]
        alike = [cell for cell in self.cells if _has_in_common(cell["parts"], facts["parts"])]
        return alike[0] if len(alike) == 1 else None


def _has_in_common(before: Sequence[Json], after: Sequence[Json]) -> bool:
    return any(a is not None and b is not None for a, b in aligned(before, after))


def taken_here(name: str, cells: Iterable[Json], raised: Iterable[Json] = ()) -> Baseline:
    """The facts of cells that have run in this process. `raised`: cells of a notebook that raised."""
    return Baseline(name, tuple(cells), this_machine(), default_target().key, tuple(raised))


def write_baseline(path: str | Path, baseline: Baseline) -> Path:
    """Write a baseline to a file; returns its path."""
    file = Path(path).expanduser()
    data = {
        "format": FORMAT, "version": VERSION, "name": baseline.name, "machine": baseline.machine, "target": baseline.target,
        "cells": list(baseline.cells),
    }  # fmt: skip
    if baseline.raised:
        data["raised"] = list(baseline.raised)
    file.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return file


def read_baseline(path: str | Path) -> Baseline:
    """Read facts from a file. OptionError: it is not there, is no baseline, is damaged, too big, or of a newer jitlab."""
    source = Path(path).expanduser()
    try:
        text = text_of(source, MOST_BYTES)
        if text is None:
            raise _refused(source, f"it has more than {MOST_BYTES // 1_000_000} MB")
        data = json.loads(text)
    except OSError as error:
        raise OptionError(f"The baseline {source} can't be read.", why=error.strerror or type(error).__name__) from None
    except (ValueError, RecursionError) as error:
        raise _refused(source, f"it is no JSON: {str(error)[:200]}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise _refused(source, f'it is no baseline: "format" is not "{FORMAT}"')
    version = data.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _refused(source, '"version" is no number from 1 on')
    if version > VERSION:
        raise _refused(source, f"it is of version {version}, and this jitlab reads up to {VERSION}", "a newer jitlab")
    try:
        cells = tuple(_facts(cell, f"cells[{i}]") for i, cell in enumerate(_list(data.get("cells"), "cells", MOST_CELLS)))
        failed = _list(data.get("raised", []), "raised", MOST_CELLS)
        raised = tuple(_raised(cell, f"raised[{i}]") for i, cell in enumerate(failed))
        name = _text(data.get("name"), "name")
        machine, target = (_text(data.get(key, ""), key) for key in ("machine", "target"))
    except _Unfit as error:
        raise _refused(source, str(error)) from None
    return Baseline(name, cells, machine, target, raised)


def this_machine() -> str:
    """The processor and its system: times of another one are no measure."""
    return f"{default_target().machine} {platform.machine()} {platform.system()}"


class _Unfit(Exception):
    pass


def _refused(path: Path, why: str, hint: str = "") -> OptionError:
    return OptionError(f"The baseline {path} can't be used.", why=why, hint=hint or "write it anew")


def _facts(value: Any, where: str) -> Json:
    """Facts as `runs.run_facts` makes them; what else a file has is left out."""
    if not isinstance(value, dict):
        raise _Unfit(f"{where} is no object")
    made: Json = {key: _text(value.get(key), f"{where}.{key}") for key in TEXTS}
    made |= {key: int(_number(value.get(key), f"{where}.{key}")) for key in COUNTS}
    made["error"] = _text(value["error"], f"{where}.error") if value.get("error") is not None else None
    made["causes"] = [_text(cause, f"{where}.causes") for cause in _list(value.get("causes", []), f"{where}.causes", 100)]
    made["seconds"] = _number(value["seconds"], f"{where}.seconds") if value.get("seconds") is not None else None
    made["others"] = min(1.0, _number(value["others"], f"{where}.others")) if value.get("others") is not None else None
    made["between"] = min(10.0, _number(value.get("between", 0.0), f"{where}.between"))
    made["span"] = _number(value.get("span"), f"{where}.span")
    made["samples"] = _samples(value.get("samples"), f"{where}.samples")
    made["runs"] = [int(_number(run, f"{where}.runs")) for run in _list(value.get("runs", []), f"{where}.runs")]
    parts = _list(value.get("parts"), f"{where}.parts")
    made["parts"] = [_part(part, f"{where}.parts[{i}]") for i, part in enumerate(parts)]
    return made


def _raised(value: Any, where: str) -> Json:
    if not isinstance(value, dict):
        raise _Unfit(f"{where} is no object")
    return {key: _text(value.get(key), f"{where}.{key}") for key in ("cell", "title", "error")}


def _part(value: Any, where: str) -> Json:
    if not isinstance(value, dict) or value.get("kind") not in ("cluster", "host"):
        raise _Unfit(f"{where} is no part")
    made: Json = {key: _text(value.get(key), f"{where}.{key}") for key in PART_TEXTS}
    made |= {key: int(_number(value.get(key), f"{where}.{key}")) for key in ("kernels", "bytes", "calls")}
    made["color"] = int(_number(value["color"], f"{where}.color")) if value.get("color") is not None else None
    made["seconds"] = _number(value.get("seconds"), f"{where}.seconds")
    made["samples"] = _samples(value.get("samples"), f"{where}.samples")
    made["lines"] = _lines(value.get("lines"), where)
    made |= _written(value, where)
    made["ops"] = [_op(op, f"{where}.ops[{i}]") for i, op in enumerate(_list(value.get("ops"), f"{where}.ops"))]
    return made


def _op(value: Any, where: str) -> Json:
    if not isinstance(value, dict):
        raise _Unfit(f"{where} is no object")
    kernel = value.get("kernel")
    return {
        "op": _text(value.get("op"), f"{where}.op"), "lines": _lines(value.get("lines"), where),
        "kernel": _text(kernel, f"{where}.kernel") if kernel is not None else None, **_written(value, where),
    }  # fmt: skip


def _written(value: Json, where: str) -> Json:
    """How the program writes it; older baselines do not say it."""
    found = value.get("written")
    return {} if found is None else {"written": _text(found, f"{where}.written")}


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise _Unfit(f"{where} is no text of at most {MOST_TEXT} characters")
    return value


def _number(value: Any, where: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value) or not 0 <= value <= 2**62:
        raise _Unfit(f"{where} is no number from 0 on")
    return value


def _list(value: Any, where: str, most: int = MOST_ITEMS) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise _Unfit(f"{where} is no list of at most {most} items")
    return value


def _lines(value: Any, where: str) -> list[int]:
    return [int(_number(line, f"{where}.lines")) for line in _list(value, f"{where}.lines")]


def _samples(value: Any, where: str) -> list[float]:
    samples = [_number(sample, where) for sample in _list(value, where, MOST)]
    if not all(sample > 0 for sample in samples):
        raise _Unfit(f"{where} has a duration of 0")
    return samples
