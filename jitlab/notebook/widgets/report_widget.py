"""A report as an ipywidget: the panel's views through anywidget where it is installed, else the still picture.

Widgets keep a script of some hundred bytes. The renderer is in one model that all of a kernel share, so a saved notebook has
it once, however many widgets it has.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from jitlab.report.store.fitting import fitted

if TYPE_CHECKING:
    from jitlab.report import Report

STATIC = Path(__file__).parents[2] / "static"
#: JSON of a report in a widget's state; what is saved with a notebook stays small.
STATE_BYTES = 100_000


class Renderer(ipywidgets.Widget):  # type: ignore[misc]
    """The script and the style that the widgets of a kernel share; it is never shown itself."""

    code = traitlets.Unicode().tag(sync=True)
    css = traitlets.Unicode().tag(sync=True)


@cache
def _shared() -> Renderer:
    return Renderer(code=_static("anywidget.js"), css=_static("widget.css"))


def renderer() -> Renderer:
    """The one of this kernel, made anew where somebody closed it."""
    if _shared().comm is None:
        _shared.cache_clear()
    return _shared()


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def has_views() -> bool:
    """Are anywidget and the built script there?"""
    return importlib.util.find_spec("anywidget") is not None and (STATIC / "anywidget.js").is_file()


@cache
def _view_class() -> Any:
    import anywidget

    class ReportWidget(anywidget.AnyWidget):
        """`report` is the JSON of docs/reference/report-format.md; the views follow it."""

        _esm = _static("loader.js")
        renderer = traitlets.Instance(Renderer).tag(sync=True, **ipywidgets.widget_serialization)
        report = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)

    return ReportWidget


class ReportBox(ipywidgets.VBox):  # type: ignore[misc]
    """Shows one report after the other: `show(report)`. `is_live`: the panel's views, not a picture."""

    def __init__(self, **options: Any) -> None:
        self.is_live = has_views()
        self.view = _view_class()(renderer=renderer()) if self.is_live else ipywidgets.HTML()
        super().__init__([self.view], **options)

    def show(self, report: Report | None) -> None:
        """The report in the views, as much of it as a widget's state may hold; None: nothing yet."""
        if self.is_live:
            self.view.report = None if report is None else fitted(report.data, STATE_BYTES)
        else:
            self.view.value = "" if report is None else report.to_svg()
