"""What `jl.jit` and cells found under names of modules and classes, and defaults of helpers, are read again at each call."""

from __future__ import annotations

import gc
import types
import weakref

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

SETTINGS = types.ModuleType("settings")


def scaled(x, k=1.0, *, shift=0.0):
    return x * k + shift


class Model:
    def forward(self, x):
        return x + 1

    @classmethod
    def made(cls, x):
        return x + 2


MODEL = Model()


def reset():
    SETTINGS.helper, SETTINGS.flag, SETTINGS.mode = scaled, True, "plus"
    scaled.__defaults__, scaled.__kwdefaults__ = (1.0,), {"shift": 0.0}


def a_ufunc(x):
    return np.sin(x) + np.cos(x) * np.exp(x)


def a_function_of_a_part(x):
    return np.linalg.norm(x) + np.maximum(x, 2)


def a_function_in_a_name(x):
    f = np.sin
    return f(x)


def a_helper_of_a_module(x):
    return SETTINGS.helper(x)


def a_flag(x):
    return x + 1 if SETTINGS.flag else x


def a_text(x):
    return x + 1 if SETTINGS.mode == "plus" else x - 1


def a_method(x):
    return MODEL.forward(x)


def a_class_method(x):
    return Model.made(x)


def defaults(x):
    return scaled(x)


def defaults_of_a_helper_of_a_helper(x):
    return defaults(x) + 1


def patch_keyword():
    scaled.__kwdefaults__["shift"] = 3.0


def patch_defaults():
    scaled.__defaults__ = (5.0,)


PATCHES = {
    "a ufunc": (a_ufunc, lambda m: m.setattr(np, "sin", lambda v: v * 0 + 42.0)),
    "one ufunc of several": (a_ufunc, lambda m: m.setattr(np, "exp", np.log1p)),
    "a function of a part": (a_function_of_a_part, lambda m: m.setattr(np.linalg, "norm", lambda v: v.sum())),
    "the part": (a_function_of_a_part, lambda m: m.setattr(np, "linalg", types.SimpleNamespace(norm=lambda v: v.max()))),
    "a function in a name": (a_function_in_a_name, lambda m: m.setattr(np, "sin", np.cos)),
    "a helper of a module": (a_helper_of_a_module, lambda m: m.setattr(SETTINGS, "helper", lambda v: v - 1)),
    "a flag": (a_flag, lambda m: m.setattr(SETTINGS, "flag", False)),
    "a text": (a_text, lambda m: m.setattr(SETTINGS, "mode", "minus")),
    "a method": (a_method, lambda m: m.setattr(Model, "forward", lambda self, v: v * 3)),
    "a class method": (a_class_method, lambda m: m.setattr(Model, "made", classmethod(lambda cls, v: v * 4))),
    "defaults": (defaults, lambda m: patch_defaults()),
    "a keyword's default": (defaults, lambda m: patch_keyword()),
    "far defaults": (defaults_of_a_helper_of_a_helper, lambda m: patch_defaults()),
}


@pytest.mark.parametrize("what", PATCHES)
def test_a_patched_attribute_counts_at_the_next_call(what, monkeypatch):
    reset()
    function, patch = PATCHES[what]
    compiled, x = jl.jit(function), np.arange(1.0, 4.0)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x), function(x), rtol=1e-12)
    first = function(x)
    with monkeypatch.context() as patched:
        patch(patched)
        assert not np.array_equal(function(x), first)
        for _ in range(3):
            np.testing.assert_allclose(compiled(x), function(x), rtol=1e-12)
    reset()
    with jl.expect(retraces=0):
        np.testing.assert_allclose(compiled(x), first, rtol=1e-12)


def test_the_retrace_names_the_attribute(monkeypatch):
    compiled, x = jl.jit(a_ufunc), np.ones(3)
    compiled(x)
    monkeypatch.setattr(np, "cos", np.tan)
    compiled(x)
    assert "numpy.cos" in str(compiled.ledger)


def test_a_cell_reads_them_again(monkeypatch):
    names = {"np": np, "x": np.ones(3)}
    for _ in range(2):
        run_cell("y = np.sin(x) + np.cos(x)", names, "<cell>")
    monkeypatch.setattr(np, "sin", lambda v: v * 0 + 42.0)
    run_cell("y = np.sin(x) + np.cos(x)", names, "<cell>")
    np.testing.assert_allclose(names["y"], 42 + np.cos(1.0))


def test_reading_them_again_calls_no_python(monkeypatch):
    import sys

    compiled, x = jl.jit(a_ufunc), np.ones(3)
    for _ in range(10):
        compiled(x)
    called = []
    sys.setprofile(lambda frame, event, argument: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        compiled._last.gather((x,))
    finally:
        sys.setprofile(None)
    assert called == ["gather"]


def test_none_in_the_place_of_an_object_that_is_gone_is_another():
    box = [Model()]

    @jl.jit
    def f(x):
        return x * 2 if box[0] is not None else x * 3

    assert f(np.ones(2)).tolist() == [2, 2]
    box[0] = None
    assert f(np.ones(2)).tolist() == [3, 3]


def test_a_piece_of_a_cell_keeps_nothing_of_the_users_alive():
    names = {"np": np, "model": Model(), "arrays": [np.ones(3), np.zeros(3)]}
    names["model"].w = np.ones(3)
    kept = [weakref.ref(x) for x in (names["model"], names["model"].w, *names["arrays"])]
    source = "same = arrays\ny = same[0] * 2 + model.w\nother = model\n"
    run_cell(source, names, "<cell of weak references>")
    assert names["same"] is names["arrays"] and names["other"] is names["model"] and names["y"].tolist() == [3, 3, 3]
    names.clear()
    gc.collect()
    assert [reference() for reference in kept] == [None] * 4


def test_attributes_may_have_names_that_no_program_writes():
    model = Model()
    setattr(model, "two words", np.ones(2))
    setattr(model, "class", 2.0)

    def f(x):
        return x * getattr(model, "two words") + getattr(model, "class")

    names = {"f": f, "x": np.ones(2)}
    run_cell("y = f(x)", names, "<cell of attributes>")
    assert jl.jit(f)(np.ones(2)).tolist() == names["y"].tolist() == [3, 3]
