"""Requests that measure: `whatif`, `sweep`, `measure`. Each becomes a job. Names are looked up in the plan, not evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitlab.api.check.replaying import Call, drawing_again
from jitlab.api.whatif.plan_questions import Place, Question, at
from jitlab.api.whatif.whatif import SWEEP_SECONDS, ask, sweep, swept_so_far, titled
from jitlab.support.later import Later

from .jobs import JobContext, Refused
from .requests import Json, Many, Maybe, Pair, Text, request, run_of

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import CellRun, Session
    from jitlab.report import speed
else:
    speed = Later("jitlab.report.speed")

KINDS = ("cut", "fuse", "keep_out", "target")
MOST_EDGES = 64
#: Seconds that a comparison takes, about: rounds, and before them machine code.
ROUNDS_SECONDS, BUILD_SECONDS = 1.0, 0.5


@request(
    "whatif", cell=str, plan=str, kind=KINDS, edges=Maybe(Many(Pair(str, str), most=MOST_EDGES)),
    ops=Maybe(Many(str, most=MOST_EDGES)), target=Maybe(Text(40)),
)  # fmt: skip
def whatif(
    session: Session, cell: str, plan: str, kind: str, edges: list[tuple[str, str]] | None, ops: list[str] | None,
    target: str | None,
) -> Json:  # fmt: skip
    """Cut or fuse edges, keep operations out, of one plan of a cell."""
    asked_in = run_of(session, cell)
    call, note = session.inputs.call(cell, plan)
    asked: dict[str, Any] = {"cut": edges or (), "fuse": edges or (), "keep_out": ops or (), "target": target}
    question = Question.of(**{kind: asked[kind]})
    names = getattr(session.shell, "user_ns", {})

    def run(context: JobContext) -> Json:
        with drawing_again(call):
            answer = ask(
                call.executable, call.arguments, question, names=names, seconds=ROUNDS_SECONDS, between=context.between,
                memory=context.memory, aside=context.aside,
            )  # fmt: skip
        result = answer.to_json()
        if result["keep"] is not None:
            result["keep"]["file"] = session.file_name(result["keep"]["file"])
        said = " ".join(filter(None, (note, answer.note)))
        return {**result, "note": said or None, "in_cell": _in_cell(session, asked_in, plan)}

    title = _title(call, question)
    return {"job": session.jobs.submit("whatif", cell, title, run, ROUNDS_SECONDS + BUILD_SECONDS)}


@request("sweep", cell=str, plan=str)
def try_all(session: Session, cell: str, plan: str) -> Json:
    """Every single cut of a plan, ranked."""
    title = run_of(session, cell).title
    call, note = session.inputs.call(cell, plan)

    def run(context: JobContext) -> Json:
        seconds = SWEEP_SECONDS * (1 + context.continued)
        memory = context.memory
        with drawing_again(call):
            found = sweep(
                call.executable, call.arguments, seconds=seconds, between=context.between, memory=memory, aside=context.aside
            )  # fmt: skip
        if found.stopped:
            context.is_unfinished()
        return {**found.to_json(), "note": note or None}

    def so_far(memory: dict[str, Any]) -> Json | None:
        tried, total = len(memory.get("tried", ())), memory.get("total", 0)
        if not tried or tried == total:
            return None
        stopped = f"Stopped by you: {total - tried} of {total} cuts {'was' if total - tried == 1 else 'were'} not tried."
        return {**swept_so_far(call.executable, memory, stopped).to_json(), "note": note or None}

    return {"job": session.jobs.submit("sweep", cell, f"Try every cut of {_name(plan, title)}", run, so_far=so_far)}


@request("continue", job=Text(40))
def go_on(session: Session, job: str) -> Json:
    """A sweep that was stopped tries the cuts that are left; what was measured stays."""
    session.jobs.resume(job)
    return {"job": job}


@request("measure", cell=str)
def measure(session: Session, cell: str) -> Json:
    """Time NumPy, as `%%jit --compare` does; the cell's report is sent anew."""
    run = run_of(session, cell)
    if run.running:
        raise Refused("This cell still runs.", hint="measure NumPy when it has ended")
    comparison = session.inputs.calls(run, getattr(session.shell, "user_ns", {}))
    if comparison.refused:
        raise Refused(f"NumPy can't be timed: {comparison.refused}.")
    recording = run.recording

    def work(context: JobContext) -> Json:
        assert recording is not None
        with session.deaf():
            why = comparison.replay(recording, context.between, context.is_due)
        if why:
            raise Refused(f"NumPy can't be timed: {why}.")
        session.push_soon(run)
        assert recording.compared is not None
        seconds, numpy_seconds = speed.seconds_of(recording.compared)
        return {"numpy_seconds": numpy_seconds, "seconds": seconds}

    return {"job": session.jobs.submit("measure", cell, "Time NumPy", work)}


def _title(call: Call, question: Question) -> str:
    """ "Split `batch` from `batch @ W` (line 10)"; raises OptionError for names that the plan does not have."""
    place = Place(call.executable.plan)
    text, lines = titled(place, place.resolved(question))
    return text + at(lines)


def _in_cell(session: Session, run: CellRun, plan: str) -> Json | None:
    """How long the calls of a plan took in the cell itself: more than those of a what-if, which are warm, with no Python around
    them. None: nobody timed them."""
    report = session.report_of(run)
    found = next((p for p in report.data["plans"] if p["name"] == plan), None) if report is not None else None
    if found is None or not found.get("calls") or found.get("seconds") is None:
        return None
    return {"calls": found["calls"], "seconds": found["seconds"]}


def _name(plan: str, title: str) -> str:
    """The function's, or what the cell is called now: its trace is named by the number of its first run."""
    name = plan.rsplit(" #", 1)[0]
    return title if name.startswith("In [") else name


__all__ = ["measure", "try_all", "whatif"]
