"""`items += v` and its like change a container where it stands: in a loop or a branch on data each run decides whether."""

import copy
from collections import deque

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

X = np.linspace(0.0, 1.0, 50)


def list_in_a_branch(x):
    items = []
    same = items
    if x.sum() > 30:
        items += [3]
    return items, same


def list_in_both_sides(x):
    items = [0]
    for k in range(20):
        x = np.sin(x + 1)
        if x.sum() > 40:
            items += [k]
        else:
            items += [-k, k]
    return items


def list_in_a_loop(x):
    items = []
    for k in range(20):
        x = np.sin(x + 1)
        items += [x.max()]
        items += (k, 1.5)
    return items


def list_times_number(x):
    items = [1]
    if x.sum() > 30:
        items *= 3
    return items


def list_of_a_dict(x):
    table = {"loss": [], "n": [1]}
    for k in range(20):
        x = np.sin(x + 1)
        table["loss"] += [x.max()]
        if x.sum() > 40:
            table["n"] *= 1
            table["n"] += [k]
    return table


def set_in_a_branch(x):
    items, more, both = {1}, {1, 2}, {1, 2}
    if x.sum() > 30:
        items |= {2}
        more &= {2}
        both -= {2}
        both ^= {7}
    return sorted(items), sorted(more), sorted(both)


def dict_in_a_loop(x):
    table = {}
    for k in range(20):
        x = np.sin(x + 1)
        table |= {"last": x.max(), k % 3: k}
    return table


def deque_in_a_branch(x):
    items = deque([1], 3)
    if x.sum() > 30:
        items += [2, 3, 4]
    return list(items)


def bytes_in_a_branch(x):
    items = bytearray(b"a")
    if x.sum() > 30:
        items += b"b"
    return bytes(items)


def of_a_turn(x):
    for k in range(20):
        items = [k]
        items += [k + 1, x.max()]
        x = np.sin(x + items[1])
    return x, items


FUNCTIONS = (
    list_in_a_branch, list_in_both_sides, list_in_a_loop, list_times_number, list_of_a_dict, set_in_a_branch, dict_in_a_loop,
    deque_in_a_branch, bytes_in_a_branch, of_a_turn,
)  # fmt: skip


def is_same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, dict):
        return is_same([*a], [*b]) and all(is_same(a[key], b[key]) for key in a)
    return np.allclose(a, b, rtol=1e-12) if isinstance(a, (np.ndarray, float)) else a == b


@pytest.mark.parametrize("factor", [1.0, 1.5])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_changed_in_a_loop_or_branch_is_what_python_changes(function, factor):
    wanted, compiled = function(X * factor), jl.jit(function)
    results = [compiled(X * factor) for _ in range(3)]
    assert all(is_same(result, wanted) for result in results), results
    if function is list_in_a_branch:
        assert results[-1][0] is results[-1][1]


@pytest.mark.parametrize("function", [list_in_both_sides, list_times_number, dict_in_a_loop, list_of_a_dict])
def test_under_function_too(function):
    compiled = jl.function(function)
    for factor in (1.0, 1.5, 1.0):
        assert values(compiled(X * factor)) == pytest.approx(values(function(X * factor)))


def values(x):
    """The numbers that a result holds."""
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, list) else None
    return [x] if parts is None else [value for part in parts for value in values(part)]


@pytest.mark.parametrize("form", ["items += [3]", "items *= 2", "table['a'] += [3]", "table |= {'b': 1}", "box.items += [3]"])
@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_branch_of_a_cell(form, factor):
    class Box:
        pass

    source = f"if x.sum() > 30:\n    {form}\ny = x * 2\n"
    states = []
    for run in (lambda names: exec(source, names), lambda names: run_cell(source, names, "<cell>")):
        box = Box()
        box.items = [1]
        names = {"x": X * factor, "items": [1], "table": {"a": [1]}, "box": box}
        held = copy.copy(names["items"]), names["items"], names["table"]
        run(names)
        assert names["items"] is held[1] and names["table"] is held[2]
        states.append((names["items"], names["table"], box.items))
    assert states[0] == states[1]


class Kept:
    pass


def added_to_beside_a_store(x, others, kept):
    items, names, table = [], set(), {}
    for k in range(1):
        items += [1.5]
        names |= {k}
        table |= {k: 1}
        kept.v = x + 1
        items += [float(x[1])]
    others.sort()
    return items, sorted(names), table


def multiplied_beside_a_store(x, others, kept):
    items = [1]
    if len(others) == 2:
        items *= 2
        others.sort()
        items += [x[0]]
    return items


@pytest.mark.parametrize("function", [added_to_beside_a_store, multiplied_beside_a_store])
def test_what_ends_a_piece_half_way_changes_nothing_twice(monkeypatch, function):
    monkeypatch.setattr(jl.config, "settle", "off")
    compiled = jl.jit(function)
    for _ in range(4):
        assert is_same(compiled(X, [2, 1], Kept()), function(X, [2, 1], Kept()))
