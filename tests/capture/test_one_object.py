"""A tuple, list, dict or slice that stands at several places of what a program leaves is one object there, as in Python."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

X = np.arange(3.0)
PAIR = (X, np.ones(2))
Both = namedtuple("Both", "a b")  # noqa: PYI024


def tuple_twice(x):
    t = (x + 1, x * 2)
    return t, t


def list_twice(x):
    t = [x + 1]
    return t, (t, t)


def dict_twice(x):
    t = {"a": x + 1}
    return [t, t], t


def within_another(x):
    t = (x + 1,)
    return {"a": t, "b": [t]}, t


def several_deep(x):
    t = (x + 1, x.sum())
    u = [t, t]
    return [u, u], t, u


def named(x):
    t = Both(x + 1, x)
    return t, [t], t._asdict()


def other_dicts(x):
    t, u = OrderedDict(a=x + 1), defaultdict(list, b=[x])
    return t, u, [t, u]


def repeated(x):
    return [None] * 3, ((x + 1, x),) * 2, [[x + 1]] * 2


def bound_on_both_ways(x):
    t = u = (x + 1,)
    if x.shape[0] > 5:
        u = (x + 1,)
    return t, u


def a_shape_that_is_kept(x):
    s = x.shape
    return s, (s, x + 1), x.shape


def through_a_helper(x):
    def same(t):
        return t

    t = (x + 1,)
    return same(t), [same(t)]


def slices(x):
    t = slice(0, x.shape[0])
    return t, [t], x[t]


def sets(x):
    t, u = {1, x.shape[0]}, frozenset([2, x.shape[0]])
    return t, u, [t, u], x + 1


def a_global(x):
    return PAIR, [PAIR], x + 1


def plain_numbers(x):
    t = (1, 2.5, x.shape[0])
    return t, [t], x + 1


ALIKE = [
    tuple_twice, list_twice, dict_twice, within_another, several_deep, named, other_dicts, repeated, bound_on_both_ways,
    through_a_helper,
]  # fmt: skip
PYTHON_S_OWN = [slices, sets, a_global, plain_numbers, a_shape_that_is_kept]  # a `function` copies or refuses them


def places(*roots):
    """Each place of what is no number or text, and the first place at which this very object stands."""
    seen, found, todo = {}, [], [(f"#{n}", root) for n, root in enumerate(roots)]
    while todo:
        path, x = todo.pop(0)
        if isinstance(x, (int, float, str, type(None))):
            continue
        first = seen.setdefault(id(x), path)
        found.append((path, type(x), first))
        if first == path and isinstance(x, (list, tuple, dict)):
            items = x.items() if isinstance(x, dict) else enumerate(x)
            todo.extend((f"{path}[{key}]", item) for key, item in items)
    return found


@pytest.mark.parametrize(
    ("program", "way"), [(p, jl.jit) for p in [*ALIKE, *PYTHON_S_OWN]] + [(p, jl.function) for p in ALIKE],
    ids=lambda x: x.__name__,
)  # fmt: skip
def test_a_call_gives_it_once(program, way):
    transformed = way(program)
    for x in (X, X, np.arange(5.0)):
        assert places(transformed(x), X, PAIR) == places(program(x), X, PAIR)


@pytest.mark.parametrize("program", [*ALIKE, *PYTHON_S_OWN], ids=lambda x: x.__name__)
def test_each_call_makes_another(program):
    """But for what Python finds again: what is built once is built once a call."""
    compiled = jl.jit(program)
    assert places(compiled(X), compiled(X), X, PAIR) == places(program(X), program(X), X, PAIR)


@pytest.mark.parametrize("program", [*ALIKE, *PYTHON_S_OWN], ids=lambda x: x.__name__)
def test_a_cell_binds_its_names_to_it(program):
    mine, theirs = ({"program": program, "x": X, "again": {}} for _ in range(2))
    cell = "made = program(x)\nfirst, *rest = made\nagain['k'] = first\nboth = [made, first]"
    exec(cell, theirs)
    for _ in range(2):
        run_cell(cell, mine, "<cell>")
    names = ["made", "first", "rest", "again", "both"]
    assert places(*map(mine.get, names), X, PAIR) == places(*map(theirs.get, names), X, PAIR)


@pytest.mark.parametrize(
    "mine",
    [slice(0, 3), slice(np.int64(1), 3), {1, 2}, frozenset([1, 2]), OrderedDict(a=X), defaultdict(list, b=[X]), {"a": 1}, [1],
     (1, X), range(3), Both(X, 1)],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
def test_an_object_of_the_users_stays_that_object(mine):
    class Holder:
        kept = mine

    def program(v, held, x):
        return v, [v], {"k": v}, held.kept, held.kept is v, mine, x + 1

    compiled = jl.jit(program)
    names = {"program": program, "v": mine, "held": Holder(), "x": X}
    for _ in range(2):
        assert places(compiled(mine, Holder(), X), mine, X) == places(program(mine, Holder(), X), mine, X)
        run_cell("made = program(v, held, x)\nw, both = v, [v, x + 1]", names, "<cell>")
        assert places(names["made"], mine, X) == places(program(mine, Holder(), X), mine, X)
        assert names["w"] is mine and names["both"][0] is mine


def test_an_equal_object_is_given_back_itself():
    """A range and a frozenset serve a trace by their value: what comes back is that of the call."""
    compiled = jl.jit(lambda v, x: (v, x + len(v)))
    for make in (lambda: range(4), lambda: frozenset([1, 2])):
        for v in (make(), make()):
            assert compiled(v, X)[0] is v


def test_a_list_that_holds_itself_is_pythons_or_an_error_that_says_so():
    def f(x):
        t = [x + 1]
        t.append(t)
        return t

    made = jl.jit(f)(X)
    assert made[1] is made
    with pytest.raises(jl.errors.CaptureError, match="a list that holds itself"):
        jl.function(f)(X)
