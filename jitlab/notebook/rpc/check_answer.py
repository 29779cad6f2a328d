"""The request `check`: the clusters of a cell beside NumPy, on what they were given when it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitlab import events
from jitlab.api.check.check import OutputCheck, check_calls
from jitlab.api.check.replaying import drawing_again

from .jobs import JobContext, Refused
from .requests import Json, request, run_of

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import Session


@request("check", cell=str)
def check(session: Session, cell: str) -> Json:
    """Errors, bounds, and who broke one; the cell's report is sent anew with `numerics`."""
    run = run_of(session, cell)
    if run.running:
        raise Refused("This cell still runs.", hint="check it when it has ended")
    recording = run.recording
    plans = session.inputs.plans(cell)
    if not plans or recording is None:
        raise Refused("Nothing was compiled in this cell.")
    kept = [session.inputs.call(cell, plan) for plan in plans]

    def work(context: JobContext) -> Json:
        rows: list[OutputCheck] = []
        for done, (call, _) in enumerate(kept):
            context.between(done, len(kept))
            with drawing_again(call):
                found = check_calls(run.title, [(call.executable, call.arguments)], context.checkpoint)
            if found.refusal:
                raise Refused(found.refusal)
            rows += found.outputs
        numerics = [row.to_json() for row in rows]
        recording.listen(events.NumericsChecked(cell=cell, numerics=tuple(numerics)))
        session.push_soon(run)
        note = next((note for _, note in kept if note), None)
        return {"ok": all(row.ok for row in rows), "numerics": numerics, "note": note}

    return {"job": session.jobs.submit("check", cell, "Check beside NumPy", work)}


__all__ = ["check"]
