"""What stands in the notebook: the report's JSON, its picture as HTML, its text. Within a size, the most telling first."""

from __future__ import annotations

import base64
import re
from html import escape
from typing import TYPE_CHECKING, Any

from jitlab.config import config
from jitlab.report.origin import run_text
from jitlab.report.report import MIME
from jitlab.report.store.fitting import fitted, weight, without_long_texts

from .svg import MOST_BYTES, report_svg
from .text import MOST_BYTES as MOST_TEXT
from .text import report_text, stopped_text

if TYPE_CHECKING:
    from jitlab.report.report import Report


def bundle(report: Report) -> dict[str, Any]:
    """All forms of a report that a notebook keeps, together at most `config.saved_bytes` of its file."""
    data = report.data if weight(report.data) <= config.saved_bytes else without_long_texts(report.data)
    text = _at_most(report_text(data), min(MOST_TEXT, config.saved_bytes // 5))
    html = saved_html(report_svg(data, min(MOST_BYTES, config.saved_bytes // 4)), text, run_text(data))
    room = config.saved_bytes - weight(html) - 2 * weight(text) - 1500
    if data["cell"].get("error"):  # the traceback above is what counts
        text = stopped_text(data)
        html = f"<details><summary>jitlab: {escape(text, quote=False)}</summary>\n{html}\n</details>"
    return {MIME: fitted(report.data, room), "text/html": html, "text/plain": text}


def _at_most(text: str, most: int) -> str:
    """As many of its lines as so many bytes hold, and of a single one that is longer its beginning."""
    if len(text.encode("utf-8", "backslashreplace")) <= most:
        return text
    short = text.encode("utf-8", "backslashreplace")[:most].decode("utf-8", "ignore")
    return (short.rpartition("\n")[0] or short) + "\n…"


def saved_html(svg: str, text: str, run: str = "") -> str:
    """The picture as an image, of which run it is, and the text. GitHub takes an `<svg>` out of a notebook's HTML, and
    JupyterLab out of that of a notebook nobody trusts; both keep an image of data, in which nothing can run. Sources:
    IRkernel/IRkernel#145, activeviam/atoti-notebooks#425, `allowedSchemesByTag` of JupyterLab's sanitizer."""
    size = re.match(r'<svg[^>]* width="(\d+)" height="(\d+)"[^>]* aria-label="([^"]*)"', svg)
    assert size is not None
    data = base64.b64encode(svg.encode()).decode()
    return (
        f'<img width="{size[1]}" height="{size[2]}" alt="{size[3]}" src="data:image/svg+xml;base64,{data}">\n'
        + (f"<p>{escape(run, quote=False)}</p>\n" if run else "")
        + f"<details><summary>Text version</summary>\n<pre>{escape(text, quote=False)}</pre>\n</details>"
    )
