"""The request `code`: a cluster's code at a stage, from the plans that are kept. It runs nothing of the user's, so it is
answered while a cell runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitlab.report.build.code import code_of, known_stages

from .jobs import Refused
from .requests import Json, Maybe, request, run_of

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import Session


@request("code", cell=str, cluster=str, stage=known_stages(), plan=Maybe(str))
def code(session: Session, cell: str, cluster: str, stage: str, plan: str | None = None) -> Json:
    """The lines of a stage, each with its lines of the program. `plan`: where two have a cluster of that name."""
    report = session.report_of(run_of(session, cell))
    if report is None:
        raise Refused("jitlab has no report of this cell.", hint="run the cell again")
    return {"code": code_of(report, cluster, stage, plan)}
