"""What a panel asks about the runs of a cell: the history, comparisons, baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .requests import Json, Maybe, Only, Text, Whole, request, run_of

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import Session

NAME = Text(100, 1)


@request("runs", cell=str)
def runs(session: Session, cell: str) -> Json:
    """The last runs of a cell and the baselines it has a part in."""
    return {"history": session.history.to_json(run_of(session, cell))}


@request("compare", cell=str, against=Maybe(Only({"baseline": NAME, "run": Whole(1)})))
def compare(session: Session, cell: str, against: Json | None) -> Json:
    return {"comparison": session.history.compare(run_of(session, cell), against).to_json()}


@request("pin-baseline", cell=str, name=NAME)
def pin_baseline(session: Session, cell: str, name: str) -> Json:
    run = run_of(session, cell)
    session.history.pin(name, run)
    return {"history": session.history.to_json(run)}


@request("drop-baseline", cell=str, name=NAME)
def drop_baseline(session: Session, cell: str, name: str) -> Json:
    """Of this cell; the baseline goes when no cell is left in it."""
    run = run_of(session, cell)
    session.history.drop(name, run)
    return {"history": session.history.to_json(run)}
