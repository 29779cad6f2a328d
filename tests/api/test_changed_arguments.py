"""`jl.function` changes the lists, dicts and objects that it is passed as Python does, at each call.

With Python's values and types, with the caller's own arrays where these are stored, and up to where an exception comes from.
"""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field

import numpy as np
import pytest

import jitlab as jl


def v(n=3):
    return np.arange(float(n))


@dataclass
class Body:
    x: float
    speed: np.ndarray
    tags: list = field(default_factory=list)


@dataclass(slots=True)
class Slotted:
    x: float


@dataclass
class Momentum:
    rate: float = 0.1
    held: dict = field(default_factory=dict)
    steps: int = 0

    def step(self, params, gradients):
        self.steps += 1
        for key in params:
            self.held[key] = 0.9 * self.held.get(key, 0) + gradients[key]
            params[key] -= self.rate * self.held[key]


def appended(xs, x):
    xs.append(x * 2)
    xs.append(x)
    xs.append(3)
    xs.append(float(x.sum()))
    xs.append((x.sum(), [1, x.max()], {"k": None}))
    xs[0] = "text"
    return x + 1


def of_a_dict(d, x):
    d["w"] -= x
    d["b"] = d["b"] - 1
    d["new"] = {"k": x.mean(), 5: None}
    d["n"] += 1
    del d["old"]
    return d["w"].sum()


def in_another_order(d, x):
    d["a"] = d.pop("a")
    d["t"] += 1
    return x


def of_nested(grid, x):
    grid[0], grid[1] = grid[1], grid[0]
    grid[0][0] = 9
    grid.append([1])
    return x


def of_objects(bodies, dt):
    for body in bodies:
        body.speed += dt
        body.speed = body.speed * 2
        body.x += 1
        body.tags.append("moved")
        body.seen = True
    return sum(body.x for body in bodies)


def of_slots(slotted, x):
    slotted.x = slotted.x + 1
    return x * slotted.x


def trained(optimizer, params, x):
    for _ in range(3):
        optimizer.step(params, {"w": x * params["w"]})
    return params["w"].sum()


def of_a_subclass(ordered, found, x):
    ordered["b"] = x
    ordered.move_to_end("a")
    found["k"].append(1)
    return x


def by_index(xs, x):
    for i in range(len(xs)):
        xs[i] = x[i] * xs[i]
    return x


def solved(d, a, b):
    d["before"] = 1
    d["x"] = np.linalg.solve(a, b)
    return d["x"].sum()


def checked(xs, x):
    xs.append(1)
    if x.sum() < 0:
        raise ValueError("negative")
    xs.append(2)
    return x


def written(d, xs, x):
    x += 1
    xs.append(x)
    d["w"] -= x
    if x.sum() < 0:
        raise ValueError("negative")
    x *= 2
    xs.append(x.sum())
    d["solved"] = np.linalg.solve(np.eye(2) * x[0], x[:2])
    d["w"][x > 3] = 0
    return x


PROGRAMS = [
    (written, lambda: ({"w": np.ones(5)}, [], v(5))),
    (written, lambda: ({"w": np.ones(5)}, [], -v(5))),  # raises
    (written, lambda: ({"w": np.ones(5)}, [], v(5) - 1)),  # has a singular matrix
    (written, lambda: ({"w": np.ones(100_000)}, [], v(100_000))),
    (written, lambda: ({"w": np.ones(100_000)}, [], -v(100_000))),
    (appended, lambda: ([1, 2.5], v())),
    (of_a_dict, lambda: ({"w": np.ones(3), "b": np.ones(3), "n": 1, "old": 2}, v())),
    (in_another_order, lambda: ({"a": 1, "t": np.float64(2), "c": 3}, v())),
    (of_nested, lambda: ([[1, 2], [3, 4]], v())),
    (of_nested, lambda: ([[1, 2]] * 2, v())),  # two rows that are one
    (of_objects, lambda: ([Body(1.0, np.ones(2)), Body(2.0, np.zeros(2))], 0.5)),
    (of_slots, lambda: (Slotted(1.0), v())),
    (trained, lambda: (Momentum(), {"w": np.ones(3)}, v())),
    (of_a_subclass, lambda: (OrderedDict(a=1), defaultdict(list), v())),
    (by_index, lambda: ([1.0, 2.0, 3.0], v())),
    (solved, lambda: ({}, np.eye(2), np.ones(2))),
    (solved, lambda: ({}, np.zeros((2, 2)), np.ones(2))),
    (checked, lambda: ([], v())),
    (checked, lambda: ([], -v())),
]


def told(function, arguments):
    try:
        result = str(function(*arguments))
    except Exception as error:
        result = repr(error)
    return result, repr(arguments)


@pytest.mark.parametrize(("program", "arguments"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_each_call_leaves_what_python_leaves(program, arguments):
    recorded = jl.function(program)
    for _ in range(7):
        mine = arguments()
        assert told(recorded, mine) == told(program, copy.deepcopy(arguments()))


@pytest.mark.parametrize("program", [appended, of_objects])
def test_it_is_traced_once(program):
    recorded = jl.function(program)
    for _ in range(7):
        recorded(*next(arguments for known, arguments in PROGRAMS if known is program)())
    assert recorded.experimental_get_tracing_count() == 1


def test_what_is_stored_is_the_array_itself():
    @jl.function
    def stored(xs, d, x):
        xs[0], xs[1] = xs[1], xs[0]
        y = x * 2
        d.update(first=xs[0], x=x, y=y, again=y, tail=x[1:])
        xs.append(d)
        x += 1
        return y

    for _ in range(3):
        a, b, d, x = np.ones(2), np.zeros(2), {}, v()
        xs = [a, b]
        y = stored(xs, d, x)
        assert xs[0] is b and xs[1] is a and xs[2] is d
        assert d["first"] is b and d["x"] is x and d["y"] is d["again"] is y
        assert np.shares_memory(d["tail"], x) and d["tail"].tolist() == [2, 3]
        assert y.tolist() == [0, 2, 4] and x.tolist() == [1, 2, 3]


def test_an_object_is_one_wherever_it_stands():
    @jl.function
    def found(bodies, body, x):
        return x * sum(1 for other in bodies if other is body)

    @jl.function
    def moved(bodies, body, x):
        body.x += 1
        return x * bodies[0].x

    for _ in range(3):
        one, other = Body(1.0, v()), Body(1.0, v())
        assert found([one, other], one, v())[1] == 1
        assert found([one, other], Body(1.0, v()), v())[1] == 0
        assert found([one, one], one, v())[1] == 2
        assert moved([one], one, v())[1] == 2 == one.x
        assert moved([other], one, v())[1] == 1 and one.x == 3


SUN, SHARED = Body(1.0, v()), [1]


def test_the_object_of_a_name_is_the_one_that_is_passed():
    @jl.function
    def without_sun(bodies, x):
        return x * sum(1 for body in bodies if body is not SUN)

    assert without_sun([SUN, Body(1.0, v())], v())[1] == 1


def test_what_a_name_holds_too_stays_an_error():
    @jl.function
    def counted(xs, x):
        xs.append(2)
        return x + len(SHARED)

    with pytest.raises(ValueError, match="should not modify its Python input arguments"):
        counted(SHARED, v())
    assert SHARED == [1]


class Loud(Body):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class Rows(list):
    pass


@pytest.mark.parametrize(
    ("change", "arguments"),
    [
        (lambda xs: xs.append(object()), [[1]]),
        (lambda xs: xs.append(SUN), [[1]]),
        (lambda body: setattr(body, "x", 2.0), [Loud(1.0, v())]),
        (lambda rows: rows.append(1), [Rows()]),
        (lambda xs: (jl.print_("told"), xs.append(1)), [[1]]),
    ],
)
def test_what_a_run_could_not_do_stays_an_error(change, arguments, capsys):
    before = repr(arguments)

    def changing(*arguments):
        change(*arguments)
        return 0

    with pytest.raises(ValueError, match="should not modify its Python input arguments"):
        jl.function(changing)(*arguments)
    assert repr(arguments) == before and capsys.readouterr() == ("", "")


def test_a_default_a_concrete_function_and_jit_compile():
    def kept(x, found=[]):  # noqa: B006 - that is the point
        found.append(x.sum())
        return len(found)

    recorded = jl.function(kept)
    assert [int(recorded(v())) for _ in range(3)] == [1, 2, 3]
    assert kept.__defaults__ == ([3.0] * 3,)
    xs = [1, 2.5]
    concrete = jl.function(appended).get_concrete_function([1, 2.5], v())
    assert concrete(xs, v()).tolist() == [1, 2, 3] and len(xs) == 7
    xs = [1, 2.5]
    jl.function(appended, jit_compile=True)(xs, v())
    assert len(xs) == 7
    for n in (2, 3, 4):
        xs = [1, 2.5]
        jl.function(appended, reduce_retracing=True)(xs, v(n))
        assert xs[2].tolist() == (v(n) * 2).tolist()


def test_inside_another_function_it_changes_what_that_made():
    inner = jl.function(appended)

    def outer(x):
        xs = [0]
        inner(xs, x)
        return xs[1] + xs[2]

    assert jl.function(outer)(v()).tolist() == jl.jit(outer)(v()).tolist() == [0, 3, 6]


def test_explained_calls_change_it_once():
    xs = [1, 2.5]
    jl.explain(jl.function(appended), xs, v())
    assert len(xs) == 7
