"""The answers that need nothing but the session's reports and jobs. Files with other answers are imported below: that puts
them on the list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitlab.report.store import summary

from .jobs import Refused
from .requests import Json, Maybe, Whole, report_of, request, run_of

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import Session


@request("report", cell=str)
def report(session: Session, cell: str) -> Json:
    """The newest report of a cell, as it goes over the wire."""
    return {"report": session.wire_report(run_of(session, cell))}


@request("cells")
def cells(session: Session) -> Json:
    return {"cells": list(session.cells)}


@request("part", cell=str, part=summary.PARTS, cluster=Maybe(str), start=Whole(), stop=Whole())
def part(session: Session, cell: str, part: str, cluster: str | None, start: int, stop: int) -> Json:
    """Details of a report that went as a summary."""
    if not 0 <= stop - start <= summary.MOST_PART:
        raise Refused(f"start and stop are {stop - start} apart", why=f"one part has at most {summary.MOST_PART} items")
    return {"part": summary.part(report_of(session, cell).data, part, cluster, start, stop)}


@request("cancel", job=str)
def cancel(session: Session, job: str) -> Json:
    waiting = session.waiting
    if waiting is not None and waiting.ticket == job:  # the compiler, while a cell runs
        return {"cancelled": waiting.stop()}
    return {"cancelled": session.jobs.cancel(job)}
