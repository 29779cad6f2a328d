"""What can be called and is found under a name of an object, a class or a module is looked up at each call; an object of a
library is asked at each call, as it may hold something else by then."""

import functools
import math
import types

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell


class Scaled:
    def __init__(self, by):
        self.by = by

    def __call__(self, v):
        return v * self.by

    def plus(self, v):
        return v + self.by


def up(v):
    return v + 1


def down(v):
    return v - 1


PAIRS = {
    "ufuncs": (np.sin, np.cos),
    "functions of NumPy": (np.cumsum, np.sort),
    "functions": (up, down),
    "lambdas": (lambda v: v * 2, lambda v: v * 3),
    "objects": (Scaled(2.0), Scaled(3.0)),
    "methods of others": (Scaled(2.0).plus, Scaled(3.0).plus),
    "partial functions": (functools.partial(np.add, 1), functools.partial(np.add, 2)),
    "an object and a function": (Scaled(2.0), up),
}


class Layer:
    act = np.exp
    power = math.sqrt

    def step(self, v):
        return v + 0.5


def called(holder, x):
    return holder.act(x) * 2


def fetched(holder, x):
    act = holder.act
    return act(x) * 2


def inner(holder, x):
    return sum([called(holder, x), fetched(holder, x + 1)])


def got(holder, x):
    return getattr(holder, "act")(x) * 2  # noqa: B009


def holders():
    """An object, a class, and a module."""
    return [Layer(), type("Held", (), {}), types.ModuleType("held")]


def as_cell(program):
    names = {"program": program}

    def call(holder, x):
        names.update(holder=holder, x=x)
        run_cell("result = program(holder, x)\nagain = result", names, "<cell>")
        return names["again"]

    return call


@pytest.mark.parametrize("way", [jl.jit, as_cell], ids=["jit", "cell"])
@pytest.mark.parametrize("program", [called, fetched, inner, got], ids=lambda f: f.__name__)
@pytest.mark.parametrize("pair", PAIRS)
def test_another_one_is_called_from_then_on(pair, program, way, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    call, x = way(program), np.arange(3.0)
    first, second = PAIRS[pair]
    for holder in holders():
        for act in (first, first, second, second, first):
            holder.act = act if not isinstance(holder, type) else staticmethod(act)
            np.testing.assert_allclose(call(holder, x), program(holder, x), rtol=1e-14)


@pytest.mark.parametrize("way", [jl.jit, as_cell], ids=["jit", "cell"])
def test_an_object_gets_one_of_its_own_and_loses_it(way, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")

    def program(layer, x):
        return layer.step(x) * 2 + layer.power(4.0)

    call, layer, x = way(program), Layer(), np.arange(3.0)
    for name, value in (("step", down), ("step", None), ("power", abs), ("power", None), ("step", np.exp)):
        for change in (lambda: None, lambda name=name, value=value: setattr(layer, name, value)):
            if value is None and change.__defaults__ is not None:
                delattr(layer, name)
            else:
                change()
            np.testing.assert_allclose(call(layer, x), program(layer, x), rtol=1e-14)


def test_a_class_gets_another_method_by_whatever_name_it_is_fetched(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")

    class Own(Layer):
        pass

    def program(layer, x):
        step = layer.step
        return step(x) * 2

    call, layer, x = jl.jit(program), Own(), np.arange(3.0)
    for step in (None, None, lambda self, v: v * 7, Layer.step):
        if step is not None:
            Own.step = step
        np.testing.assert_allclose(call(layer, x), program(layer, x))


def test_a_spline_that_changed_gives_what_it_gives_now(monkeypatch):
    interpolate = pytest.importorskip("scipy.interpolate")
    monkeypatch.setattr(jl.config, "settle", "off")
    spline = interpolate.CubicSpline(np.arange(5.0), np.arange(5.0) ** 2)

    def number(s, x):
        return s(0.5) * x

    def method(s, x):
        return s.integrate(0, 1) * x

    def array(s, x):
        return s(x) + 1

    for program in (number, method, array):
        call = jl.jit(program)
        for _ in range(3):
            np.testing.assert_allclose(call(spline, np.ones(2)), program(spline, np.ones(2)))
            spline.c *= 2


def test_each_call_makes_a_spline_of_its_own(monkeypatch):
    interpolate = pytest.importorskip("scipy.interpolate")
    monkeypatch.setattr(jl.config, "settle", "off")
    call = jl.jit(lambda x: (interpolate.CubicSpline([0.0, 1, 2], [0.0, 1, 4]), x * 2))
    made = [call(np.ones(2))[0] for _ in range(3)]
    assert len({id(spline) for spline in made}) == 3


def test_distributions_of_the_library_are_captured_with_what_calls_them(monkeypatch):
    stats = pytest.importorskip("scipy.stats")
    monkeypatch.setattr(jl.config, "settle", "off")

    def program(x):
        return stats.norm.pdf(x) * stats.norm.cdf(0.5)

    call, x = jl.jit(program), np.linspace(-1, 1, 5)
    np.testing.assert_allclose(call(x), program(x))
    assert call.experimental_get_tracing_count() == 1
