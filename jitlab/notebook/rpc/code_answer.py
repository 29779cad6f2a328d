"""The request `code`: a cluster's code at a stage, from the plans that are kept. It runs nothing of the user's, so it is
answered while a cell runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitlab.report.build.code import known_stages

from .requests import Json, Maybe, report_of, request

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import Session


@request("code", cell=str, cluster=str, stage=known_stages(), plan=Maybe(str))
def code(session: Session, cell: str, cluster: str, stage: str, plan: str | None = None) -> Json:
    """The lines of a stage, each with its lines of the program. `plan`: where two have a cluster of that name."""
    return {"code": report_of(session, cell).code(cluster, stage, plan=plan).to_json()}
