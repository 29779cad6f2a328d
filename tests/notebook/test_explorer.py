"""`jl.explorer(f, *args)` driven from Python, in a kernel without a front end, and what a saved notebook keeps of it."""

import itertools
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import jitlab as jl

ipywidgets = pytest.importorskip("ipywidgets")
from jitlab.notebook.widgets import exploring  # noqa: E402

rng = np.random.default_rng(1)


@pytest.fixture
def explored():
    @jl.jit
    def step(x, w, turns, rate=0.5, name="a", often=True):
        y = x @ w
        for _ in range(turns):
            y = np.tanh(y) * rate
        with jl.jit_scope(compile_ops=False):
            z = y.sum(axis=1)
        return z

    return jl.explorer(step, rng.random((100, 30)), rng.random((30, 8)), 3)


def test_nothing_runs_before_it_is_asked_for():
    calls = []
    explored = jl.explorer(lambda x: calls.append(1) or x, 2.0)
    assert calls == [] and explored.report is None
    assert explored.status.value == "Nothing has run yet. Set the arguments and press Run: the report comes here."


def test_each_argument_has_the_control_of_its_kind(explored):
    kinds = {name: type(control.widget).__name__ for name, control in explored.arguments.items()}
    assert kinds == {
        "x": "HBox", "w": "HBox", "turns": "IntSlider", "rate": "FloatSlider", "name": "Text", "often": "Checkbox",
    }  # fmt: skip
    assert list(explored.sizes.controls) == [100, 30, 8]


def test_run_shows_the_report_and_the_figures(explored, monkeypatch):
    ticks = itertools.count(0, 0.01)
    monkeypatch.setattr(exploring, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    report = explored.run()
    assert report is explored.report and report.verdict["operations"] > 0
    assert explored.status.value.startswith("A call takes 10.0 ms, the first took 10.0 ms.")
    (figure,) = explored.figures.outputs
    assert figure["data"]["application/vnd.plotly.v1+json"]["data"]
    assert "<script" not in json.dumps(figure)


def test_a_size_changes_every_array_that_has_it(explored):
    explored.sizes.controls[30].value = 50
    (x, w, *_), _ = explored._call()
    assert x.shape == (100, 50) and w.shape == (50, 8)
    assert explored.run() is not None


def test_dtype_number_and_text_reach_the_call(explored):
    explored.arguments["x"].dtype.value = "float32"
    explored.arguments["turns"].widget.value = 1
    args, kwargs = explored._call()
    assert args[0].dtype == np.float32 and args[2] == 1 and type(args[2]) is int and kwargs == {}


def test_the_level_decides_what_is_fused(explored):
    explored.level.value = "O1"
    fused = len(explored.run().kernels)
    explored.level.value = "O0"
    assert len(explored.run().kernels) > fused


def test_without_scopes_the_clusterer_decides_alone(explored):
    assert [fallback.op for fallback in explored.run().fallbacks] == ["Sum"]
    explored.scopes.value = False
    assert explored.run().fallbacks == []


def test_a_run_leaves_the_arguments_as_they_are():
    @jl.jit
    def double(x):
        x *= 2
        return x

    x = np.ones(10)
    explored = jl.explorer(double, x)
    explored.run()
    assert (x == 1).all() and (explored.result == 2).all()


def test_an_error_is_told_in_a_line_and_the_buttons_work_again():
    explored = jl.explorer(jl.jit(lambda x, w: x @ w), np.ones((3, 4)), np.ones((5, 2)))
    assert explored.run() is None
    assert explored.status.value.startswith("ValueError: matmul") and not explored.run_button.disabled


def test_check_shows_errors_and_bounds(explored):
    explored.check_button.click()
    assert explored.last_check.ok and "within" in explored.status.value
    assert "the bound is checked against" in explored.text.outputs[0]["data"]["text/plain"]


def test_any_function_and_function_objects_can_be_explored():
    assert jl.explorer(jl.function(lambda x: x + 1), np.ones(5)).run().verdict["compiled"] == 1
    assert jl.explorer(lambda x: np.exp(x), np.ones(5)).run().verdict["compiled"] == 1


def test_what_is_no_number_and_no_array_is_shown_and_passed_on():
    explored = jl.explorer(jl.jit(lambda x, axes: x.sum(axis=axes)), np.ones((2, 3)), (0, 1))
    assert type(explored.arguments["axes"].widget).__name__ == "Label"
    explored.run()
    assert explored.result == 6


def test_user_text_is_text_in_the_controls():
    f = jl.jit(lambda x: x + 1)
    f.__name__ = "<img src=x onerror=alert(1)>"
    explored = jl.explorer(f, "<script>")
    heading = explored.children[0].children[0].children[0]
    assert "<img" not in heading.value and "&lt;img" in heading.value


def test_without_anywidget_the_still_picture_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    from jitlab.notebook.widgets import report_widget

    monkeypatch.setattr(report_widget, "has_views", lambda: False)
    explored = jl.explorer(jl.jit(lambda x: x + 1), np.ones(5))
    explored.run()
    assert explored.views.view.value.startswith("<svg") and "<script" not in explored.views.view.value


def test_widgets_share_one_script():
    pytest.importorskip("anywidget")
    from jitlab.notebook.widgets import report_widget

    if not report_widget.has_views():
        pytest.skip("the script is not built")
    first, second = (jl.explorer(jl.jit(lambda x: x + 1), np.ones(5)) for _ in range(2))
    assert first.views.view.renderer is second.views.view.renderer
    states = [json.dumps(explored.views.view.get_state(), default=str) for explored in (first, second)]
    assert max(map(len, states)) < 3000
    assert len(first.views.view.renderer.code) > 20_000


def test_a_host_gets_the_widget_as_plain_json(explored):
    pytest.importorskip("anywidget")
    explored.run()
    view = explored.views.view
    for model in (view, view.renderer):
        json.dumps(model.get_state())  # raises TypeError for what would have to come beside it
    assert view.get_state()["renderer"] == f"IPY_MODEL_{view.renderer.model_id}" and len(view.get_state()["_esm"]) < 1000
    report = view.get_state()["report"]
    assert report["version"] and report["verdict"]["lead"] == explored.report.verdict["lead"]
