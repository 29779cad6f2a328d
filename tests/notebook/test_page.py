"""What the panel saves as a file: the very text that `to_html` and `to_svg` give, in pieces, and nothing else."""

import numpy as np
import pytest

from jitlab.notebook.extension import session_of
from jitlab.notebook.rpc import page_answer
from jitlab.notebook.rpc.requests import answer


@pytest.fixture
def ran(ip):
    """A cell that was compiled."""
    ip.reset(new_session=True)
    ip.user_ns.update(np=np, x=np.arange(12.0))
    assert ip.run_cell("%%jit\ny = np.exp(x) + 1", store_history=True).success
    session = session_of(ip)
    return session, next(reversed(session.cells))


def pages(session, cell, form):
    """All pieces, as a panel asks for them."""
    text, pieces = "", 0
    while True:
        reply = answer(session, {"want": "page", "cell": cell, "form": form, "start": len(text)})["page"]
        text, pieces = text + reply["text"], pieces + 1
        assert reply["stop"] == len(text)
        if reply["stop"] >= reply["total"]:
            return text, pieces


def test_the_page_is_what_the_report_itself_writes(ran):
    session, cell = ran
    report = session.report_of(session.cells[cell])
    assert pages(session, cell, "html") == (report.to_html(), 1)
    assert pages(session, cell, "svg") == (report.to_svg(), 1)


def test_a_page_says_of_which_notebook_it_is_and_what_needs_the_panel(ran):
    session, cell = ran
    body = {"want": "page", "cell": cell, "form": "html", "start": 0, "notebook": "a<b>.ipynb"}
    text = answer(session, body)["page"]["text"]
    title = session.report_of(session.cells[cell]).data["cell"]["title"]
    assert f"<title>a&lt;b&gt;.ipynb, {title}: " in text
    assert f"<h1>a&lt;b&gt;.ipynb, {title}</h1>" in text
    assert "What-if and Compare need the kernel" in text


def test_a_long_page_comes_in_pieces_of_one_run(ran, ip, monkeypatch):
    session, cell = ran
    report = session.report_of(session.cells[cell])
    whole = report.to_html()
    monkeypatch.setattr(page_answer, "PIECE", len(whole) * 7 // 20)  # three pieces, also of a page that is a little longer
    first = answer(session, {"want": "page", "cell": cell, "form": "html", "start": 0})["page"]["text"]
    assert ip.run_cell("%%jit\ny = np.exp(x) + 1", store_history=True).success
    more = answer(session, {"want": "page", "cell": cell, "form": "html", "start": len(first)})["page"]["text"]
    assert whole.startswith(first + more)
    assert pages(session, cell, "html")[1] == 3


def test_a_piece_of_a_page_that_nobody_asked_for_is_refused(ran):
    session, cell = ran
    pages(session, cell, "svg")
    assert "no longer here" in answer(session, {"want": "page", "cell": cell, "form": "svg", "start": 5})["error"]
    for fields in ({"form": "exe", "start": 0}, {"form": "html", "start": -1}, {"form": "html"}):
        assert "error" in answer(session, {"want": "page", "cell": cell, **fields})
    assert "no report" in answer(session, {"want": "page", "cell": "other", "form": "html", "start": 0})["error"]
