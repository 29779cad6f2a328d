"""`%jitlab baseline` and `%jitlab compare`: runs of a cell side by side, in text."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any, NoReturn

from jitlab.errors import OptionError
from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.report.store.comparing import RunComparison

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import CellRun, Session

HINTS = {
    "baseline": "%jitlab baseline [NAME] [--cell N] [--save PATH] [--load PATH] [--drop]",
    "compare": "%jitlab compare [NAME] [--run N] [--cell N]",
}


def baseline(session: Session, line: str) -> str:
    """Pin the newest run of every cell (or of one) under a name; write it to a file, read one, drop it; list all without a
    name. Returns what is told."""
    asked = _parsed(BASELINE, line)
    history = session.history
    if asked.load is not None:
        found = history.load(asked.load, asked.name)
        return f"Baseline {found.name!r}: {units.counted(len(found.cells), 'cell')} read from {asked.load}."
    if asked.name is None:
        if asked.save is not None or asked.drop:
            raise OptionError("There is no baseline without a name.", hint=HINTS["baseline"])
        lines = [f"{name}: {units.counted(count, 'cell')}" for name, count in history.names.items()]
        return "\n".join(lines) or f"There is no baseline. Try: {HINTS['baseline']}"
    runs = _ended(session) if asked.cell is None else [_cell(session, asked.cell)]
    if asked.drop:
        history.drop(asked.name, runs[-1] if asked.cell is not None else None)
        return f"Dropped {asked.name!r}."
    told = []
    if asked.save is None or asked.name not in history.names or asked.cell is not None:
        told.append(f"Baseline {asked.name!r}: {units.counted(history.pin(asked.name, *runs), 'cell')} pinned.")
    if asked.save is not None:
        told.append(f"Written: {clean(history.save(asked.name, asked.save))}")
    return "\n".join(told)


def compare(session: Session, line: str) -> RunComparison:
    """The newest run of a cell against a baseline, an earlier run, or the run before."""
    asked = _parsed(COMPARE, line)
    if asked.name is not None and asked.run is not None:
        raise OptionError("A run is compared with a baseline or with another run, not with both.", hint=HINTS["compare"])
    against: dict[str, Any] | None = {"run": asked.run} if asked.run is not None else None
    if asked.name is not None:
        against = {"baseline": asked.name}
    if asked.cell is not None:
        return session.history.compare(_cell(session, asked.cell), against)
    runs = _ended(session)
    if not runs:
        raise _no_runs()
    return session.history.compare(runs[-1], against)


class Parser(argparse.ArgumentParser):
    """A wrong argument ends no process."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(self.usage or "", why=message)


def _parser(command: str) -> Parser:
    parser = Parser(prog=f"%jitlab {command}", add_help=False, allow_abbrev=False)
    parser.add_argument("name", nargs="?", help="of the baseline; in quotes, where it has spaces")
    parser.add_argument("--cell", type=int, metavar="N", help="In [N] alone")
    return parser


BASELINE = _parser("baseline")
BASELINE.add_argument("--save", metavar="PATH", help="write it to a file")
BASELINE.add_argument("--load", metavar="PATH", help="read it from a file")
BASELINE.add_argument("--drop", action="store_true", help="forget it")
COMPARE = _parser("compare")
COMPARE.add_argument("--run", type=int, metavar="N", help="the run of this cell to compare with")


def _parsed(parser: Parser, line: str) -> argparse.Namespace:
    command = parser.prog.split()[1]
    try:
        return parser.parse_args(shlex.split(line))
    except (OptionError, ValueError) as error:  # ValueError: quotes that do not close
        why = error.why if isinstance(error, OptionError) else str(error)
        raise OptionError(f"%jitlab {command} {line}".rstrip(), why=why, hint=HINTS[command]) from None


def _ended(session: Session) -> list[CellRun]:
    return [run for run in session.cells.values() if run is not session.running]


def _cell(session: Session, number: int) -> CellRun:
    found = next((run for run in reversed(_ended(session)) if run.count == number), None)
    if found is None:
        raise _no_runs(number)
    return found


def _no_runs(number: int | None = None) -> OptionError:
    what = f"There is no recorded run of In [{number}]." if number is not None else "There is no recorded run yet."
    return OptionError(what, hint="run a cell with %%jit or a jl.function; %jitlab status lists them")
