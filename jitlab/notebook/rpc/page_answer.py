"""The report as a file that the panel saves: the text of `Report.to_html()` or `to_svg()`, in pieces that a message holds."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from .jobs import Refused
from .requests import Json, Maybe, Text, Whole, report_of, request

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import Session

FORMS = ("html", "svg")
PIECE = 500_000  # characters of one answer


@request("page", cell=str, form=FORMS, start=Whole(), notebook=Maybe(Text()))
def page(session: Session, cell: str, form: str, start: int, notebook: str | None = None) -> Json:
    """The characters of the page from `start` on, as many as one message holds. It is made when it is asked for from its
    start; who asks on gets more of that one, also when the cell has run again meanwhile.
    `notebook`: the name of its file, for the title."""
    if start == 0:
        _made[session] = cell, form, _text(session, cell, form, notebook or "")
    of, kind, text = _made.get(session, ("", "", ""))
    if (of, kind) != (cell, form) or start > len(text):
        raise Refused("This page is no longer here.", hint="save it again")
    piece = text[start : start + PIECE]
    stop = start + len(piece)  # in characters, which another language may count otherwise
    if stop >= len(text):
        _made.pop(session, None)
    return {"page": {"form": form, "start": start, "stop": stop, "total": len(text), "text": piece}}


def _text(session: Session, cell: str, form: str, notebook: str) -> str:
    report = report_of(session, cell)
    text = report.to_html(notebook=notebook) if form == "html" else report.to_svg()
    return text.encode("utf-8", "backslashreplace").decode()  # what user text holds may not be sent as it is


_made: WeakKeyDictionary[Session, tuple[str, str, str]] = WeakKeyDictionary()
