"""The explorer's widget: controls at the left, the report's views and figures at the right. It runs when it is told to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ipywidgets

from jitlab.api.whatif.variants import compiled_as
from jitlab.errors import OptionError
from jitlab.ir import display_name
from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.report import Report, record

from .controls import WIDE, controls_for
from .report_widget import ReportBox

PLOTLY = "application/vnd.plotly.v1+json"
#: A run repeats its call until it took that long, or that often, so that the time is one of warm code; a slow one stays alone.
ENOUGH_SECONDS, MOST_CALLS, SLOW_SECONDS = 0.2, 20, 5.0


class Explorer(ipywidgets.VBox):  # type: ignore[misc]
    """Controls for one function, and the report of its last run. `arguments` has the controls by name."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not callable(function):
            raise OptionError(f"jl.explorer({function!r})", why="it is not callable", hint="jl.explorer(f, *args)")
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.report: Report | None = None
        self.result: Any = None
        self.last_check: Any = None
        self._twins: dict[tuple[str, bool], Any] = {}
        self.arguments, self.sizes, self._call = controls_for(
            getattr(function, "python_function", function), args, kwargs
        )  # fmt: skip
        self.level = ipywidgets.ToggleButtons(
            options=["O0", "O1"], value=_level(function), description="level", style={**WIDE, "button_width": "44px"},
            tooltips=["each operation is a kernel of its own", "operations share kernels"],
        )  # fmt: skip
        self.scopes = ipywidgets.Checkbox(value=True, description="Use jit_scope", indent=False, style=WIDE)
        self.run_button = ipywidgets.Button(description="Run", button_style="primary", tooltip="Call it and show the report")
        self.check_button = ipywidgets.Button(description="Check", tooltip="Compare its results with NumPy's")
        self.status = ipywidgets.Label("Nothing has run yet. Set the arguments and press Run: the report comes here.")
        self.views = ReportBox()
        self.figures = ipywidgets.Output()
        self.text = ipywidgets.Output()
        self.run_button.on_click(lambda _: self.run())
        self.check_button.on_click(lambda _: self.check())
        self.views.layout.display = "none"
        controls = ipywidgets.VBox(
            [
                ipywidgets.HTML(f"<b>{_escaped(self.name)}</b>"), *(c.widget for c in self.arguments.values()),
                self.sizes.box, self.level, self.scopes, ipywidgets.HBox([self.run_button, self.check_button]),
            ],
            layout=ipywidgets.Layout(flex="0 0 auto", min_width="300px", max_width="420px"),
        )  # fmt: skip
        shown = ipywidgets.VBox(
            [self.status, self.views, self.text, self.figures], layout=ipywidgets.Layout(flex="1 1 480px", min_width="0")
        )
        super().__init__(
            [ipywidgets.HBox([controls, shown], layout=ipywidgets.Layout(flex_flow="row wrap", align_items="flex-start"))]
        )

    @property
    def compiled(self) -> Any:
        """The function as the controls ask for it: compiled once for each level, with scopes and without."""
        key = str(self.level.value), bool(self.scopes.value)
        if key not in self._twins:
            self._twins[key] = compiled_as(self.function, *key)
        return self._twins[key]

    def run(self) -> Report | None:
        """Call the function on copies of the arguments, some times, and show its report; None where it raised."""
        with self._working("Running …"):
            function = self.compiled
            with record() as recording:
                spent: list[float] = []
                while _goes_on(spent):
                    args, kwargs = self._call()
                    started = time.perf_counter()
                    self.result = function(*args, **kwargs)
                    spent.append(time.perf_counter() - started)
            recording.file_name = display_name
            self.report = recording.report()
            self.views.show(self.report)
            self.views.layout.display = ""
            self._plot(self.report)
            self.text.outputs = ()
            first = units.duration(spent[0])
            warm = f"A call takes {units.duration(min(spent[1:]))}, the first took" if spent[1:] else "The call took"
            every = f" The report adds up all {len(spent)} calls." if spent[1:] else ""
            self.status.value = f"{warm} {first}. {self.report.verdict['lead']}.{every}"
            return self.report
        return None

    def check(self) -> Any:
        """NumPy op by op beside the compiled clusters, on these arguments; shown as text."""
        with self._working("Checking …"):
            args, kwargs = self._call()
            self.last_check = self.compiled.check(*args, **kwargs)
            self.text.outputs = (_output({"text/plain": str(self.last_check)}),)
            self.status.value = str(self.last_check).split("\n")[0]
            return self.last_check
        return None

    def _plot(self, report: Report) -> None:
        """As plotly's JSON: no script is stored, and every front end that knows plotly draws it."""
        figure = report.plot()
        self.figures.outputs = (
            _output({PLOTLY: json.loads(figure.to_json()), "text/plain": f"time, bytes and roofline of {self.name}"}),
        )

    @contextmanager
    def _working(self, text: str) -> Iterator[None]:
        """While something runs the buttons rest; an error of the function is told in the status, as its last line says it."""
        self.status.value = text
        self.run_button.disabled = self.check_button.disabled = True
        try:
            yield
        except Exception as error:
            line = str(error).strip().split("\n")[0]
            self.status.value = clean(f"{type(error).__name__}: {line}")
        finally:
            self.run_button.disabled = self.check_button.disabled = False


def _goes_on(spent: Sequence[float]) -> bool:
    """The first call may have compiled; the others tell the time of warm code. What takes seconds runs once."""
    warm = spent[1:]
    return not spent or (spent[0] < SLOW_SECONDS and sum(warm) < ENOUGH_SECONDS and len(warm) < MOST_CALLS)


def _level(function: Any) -> str:
    """The level that a function has."""
    options = getattr(function, "options", None)
    return str(getattr(options, "jit_level", getattr(options, "level", "O1")))


def _output(data: dict[str, Any]) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _escaped(text: str) -> str:
    from html import escape

    return escape(clean(text))
