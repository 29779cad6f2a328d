"""Aliases that a traced value chooses: what a name stands for behind an `if` or a loop is the very array that Python has."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import jitlab as jl
from jitlab.ir.plans.call_forms import Output
from tests.capture.same import assert_same, leaves

LOW, HIGH = np.array([0.5, 1.25, 2.0]), np.array([5.0, 6.0, 7.0])
ROWS = np.arange(90.0).reshape(30, 3)


def assert_as_python(function, *arguments, decorate=jl.jit, whole=True):
    """Values, written arguments and which arrays are which, over calls on other data that reuse the trace."""
    traced = decorate(function)
    for offset in (0.0, -9.0, 4.0, 0.0):
        mine, theirs = ([copy.deepcopy(x + offset) for x in arguments] for _ in range(2))
        result, expected = traced(*mine), function(*theirs)
        assert_same(result, expected, numbers_become_scalars=decorate is jl.function)
        assert_same(mine, theirs)
        assert identities(mine, result) == identities(theirs, expected)
    if whole:
        assert traced.experimental_get_tracing_count() == 1
    return traced


def identities(arguments, result):
    """For each array of a result: which argument it is, which earlier result, and with which of both it shares memory."""
    found = [x for x in leaves(result) if isinstance(x, np.ndarray)]
    everything = [*arguments, *found]
    return [
        ([n for n, y in enumerate(everything) if y is x], [n for n, y in enumerate(everything) if np.shares_memory(x, y)])
        for x in found
    ]


def conditional_expression(x):
    v = x if x.max() > x.mean() * 1.5 else x.copy()
    v[...] = 3
    return v


def view_of_the_choice(x):
    if x.sum() > 4:
        v = x
    else:
        v = x.copy()
    v[0:1][...] = 3
    v[1:] += v[:-1]
    return v[1:], x


def either_argument(x, y):
    if x.sum() > y.sum() / 3:
        return x
    return y


def in_a_helper(x, y):
    v, w = either_argument(x * 2, y), either_argument(y, x)
    v += 1
    w *= 2
    return v, w


def writes_to_all_of_them(x, y):
    v = x if x.sum() < 4 else y
    x[0], y[1] = 9, 8
    z = v + 1
    v[2] = 7
    return z, v, v[1:], x


def a_choice_of_choices(x, y, z):
    v = x if x.sum() < 4 else y
    w = v if y.sum() > 9 else z[:]
    v[0] = 1
    w[1] = 2
    return w, v, z


def by_and_or(x, y):
    v = (x.sum() > 4 and x.max() > 2) or x.min() > 0
    w = x if v else y
    w[0] = -1
    return w


def two_names_for_one_new_array(x, y):
    if x.sum() > 4:
        v = w = x * 2
    else:
        v = w = y * 2
    v[0] = 1
    return v, w


def in_a_list_and_a_dict(x, y):
    if x.sum() > 4:
        found = {"a": [x, 1], "b": y}
    else:
        found = {"a": [y, 2], "b": y}
    found["a"][0][1] = 11
    return found


def identity_asked_for(x, y):
    v = x if x.sum() > 4 else y
    return v is x, v is not y, v is v, x is y, 1.0 if v is y else 2.0


def unchanged_on_one_side(x):
    if x.sum() > 4:
        x = x * 2
    return x


BRANCHES = [
    (conditional_expression, LOW), (view_of_the_choice, LOW), (either_argument, LOW, HIGH), (in_a_helper, LOW, HIGH),
    (writes_to_all_of_them, LOW, HIGH), (a_choice_of_choices, LOW, HIGH, ROWS[0]), (by_and_or, LOW, HIGH),
    (two_names_for_one_new_array, LOW, HIGH), (in_a_list_and_a_dict, LOW, HIGH), (identity_asked_for, LOW, HIGH),
    (unchanged_on_one_side, LOW),
]  # fmt: skip


@pytest.mark.parametrize("decorate", [jl.jit, jl.function])
@pytest.mark.parametrize("case", BRANCHES, ids=lambda case: case[0].__name__)
def test_what_a_branch_leaves_is_the_array_that_python_has(case, decorate):
    assert_as_python(*case, decorate=decorate)


def maybe_no_iteration(x):
    while x.sum() > 4:
        x = x * 0.5
    x[0] = 3
    return x


def another_in_some_iteration(x, y):
    best = x
    for i in range(20):
        if (x.sum() * i) % 3 > 1:
            best = y
    best[0] = 11
    return best


def swapped(x, y):
    for _ in range(21):
        x, y = y, x
    x[0] = 5
    return x, y


def swapped_until(x, y):
    n = 0.0
    while n < x.sum():
        x, y = y, x
        n += 2
    x[0] = 5
    return x, y


def returned_from_a_loop(x, y):
    for i in range(20):
        if (x * i).sum() > 10:
            return x
        y = y + 1
    return y


def last_row(m):
    total = 0.0
    for row in m:
        total += row.sum()
    row[0] = 77
    return total, row


def last_row_by_index(m):
    total = 0.0
    for i in range(m.shape[0] - 1, 0, -1):
        row = m[i, 1:]
        total += row.sum()
    m[1] = 5
    return total, row, row.sum()


def inner_loop(m):
    total = 0.0
    for i in range(m.shape[0]):
        for j in range(m.shape[0] - 1):
            row = m[j + 1]
            total += row[0] * i
        row[1] += total
    return total


def written_through_in_a_loop(x, y):
    v = x if x.sum() < 4 else y
    for i in range(20):
        v[i % 3] += 1
        y[1] = v[0] + x[2]
    return v


def an_older_one_is_kept(x):
    old = x
    for _ in range(20):
        old = x
        x = x * 0.5
    old[0] = 1
    return old, x


def identity_asked_for_in_a_loop(x, y):
    v, n, found = x, 0.0, 0.0
    while n < 5:
        n += 1
        found = found + (1.0 if v is y else 2.0)
        v = y if n > x.sum() / 4 else x
    return found, v


LOOPS = [
    (maybe_no_iteration, LOW), (another_in_some_iteration, LOW, HIGH), (swapped, LOW, HIGH), (swapped_until, LOW, HIGH),
    (returned_from_a_loop, LOW, HIGH), (last_row, ROWS), (last_row_by_index, ROWS), (inner_loop, ROWS),
    (written_through_in_a_loop, LOW, HIGH), (an_older_one_is_kept, LOW),
]  # fmt: skip


@pytest.mark.parametrize("decorate", [jl.jit, jl.function])
@pytest.mark.parametrize("case", LOOPS, ids=lambda case: case[0].__name__)
def test_what_a_loop_leaves_is_the_array_that_python_has(case, decorate):
    assert_as_python(*case, decorate=decorate)


@pytest.mark.parametrize("decorate", [jl.jit, jl.function])
def test_identity_asked_for_of_what_a_loop_carries_is_python_s(decorate):
    assert_as_python(identity_asked_for_in_a_loop, LOW, HIGH, decorate=decorate, whole=False)


def row_of_a_break(m):
    total = 0.0
    for i in range(30):
        row = m[i]
        total += row.sum()
        if total > 100:
            break
    row[0] = 77
    return total, row


def changed_in_turns(x, d):
    kept = d
    while x.sum() > 3:
        x = x * 0.5
        kept = kept + 1
    return kept


def made_in_turns(x, d):
    kept = d
    while x.sum() > 3:
        x = x * 0.5
        kept = d * 2
    return kept


def replaced_in_turns(x, d):
    kept = d
    while x.sum() > 3:
        x = x * 0.5
        kept = x[0]
    return kept


@pytest.mark.parametrize("decorate", [jl.jit, jl.function])
@pytest.mark.parametrize("program", [changed_in_turns, made_in_turns, replaced_in_turns], ids=lambda program: program.__name__)
def test_an_array_without_axes_is_itself_behind_a_loop_of_no_turn(program, decorate):
    traced = decorate(program)
    for x in (np.ones(3), np.full(3, 4.0), np.zeros(3)):
        d = np.array(2.5)
        expected, result = program(x, d), traced(x, d)
        assert result == expected
        assert (result is d) == (expected is d)
        assert decorate is jl.function or type(result) is type(expected)


def test_an_array_without_axes_or_a_number_of_python_s():
    def program(x, d):
        kept = d
        while x.sum() > 3:
            x = x * 0.5
            kept = 1.0
        return kept

    traced = jl.jit(program)
    for x in (np.ones(3), np.full(3, 4.0)):
        d = np.array(2.5)
        expected, result = program(x, d), traced(x, d)
        assert result == expected
        assert (result is d) == (expected is d)
        assert type(result) is type(expected)


def test_a_view_of_which_only_the_data_says_the_part_is_python_s():
    assert_as_python(row_of_a_break, ROWS, whole=False)
    with pytest.raises(jl.errors.CaptureError, match="of which part only the data says"):
        jl.function(row_of_a_break)(ROWS.copy())


def row_found_by_data(m):
    row = m[m.sum(axis=1).argmax() - 3]
    row[1:] = -1
    m[0] = 5
    return row, row[::2], m.sum()


def column_and_block_found_by_data(m):
    k = np.abs(m).sum(axis=0).argmin()
    column, block = m[2:9, k], m[..., k, None]
    m += 1
    column *= 2
    return column, block.sum(), block


def changed_in_place(m):
    k = m.sum(axis=1).argmin()
    m[k] += m[0]
    m[k, 1:] *= 2
    return m[k], k


def row_of_a_new_array(m):
    double = m * 2
    row = double[m[:, 0].argmin()]
    double[0] = 7
    return row


def row_of_a_choice(m, n):
    either = m if m.sum() > 4 else n
    row = either[n.sum(axis=1).argmax()]
    row[0] = 11
    return row, either


def choice_of_rows(m):
    k = m[:, 0].argmax()
    row = m[k] if m.sum() > 4 else m[0]
    row[1] = 12
    return row


PICKED = [
    (row_found_by_data, ROWS), (column_and_block_found_by_data, ROWS), (changed_in_place, ROWS), (row_of_a_new_array, ROWS),
    (row_of_a_choice, ROWS, -ROWS),
]  # fmt: skip


@pytest.mark.parametrize("decorate", [jl.jit, jl.function])
@pytest.mark.parametrize("case", PICKED, ids=lambda case: case[0].__name__)
def test_a_part_that_the_data_find_is_a_view(case, decorate):
    assert_as_python(*case, decorate=decorate)


def test_a_part_that_the_data_find_in_one_side_of_a_branch_is_python_s():
    assert_as_python(choice_of_rows, ROWS, whole=False)
    with pytest.raises(jl.errors.CaptureError, match="of which part only the data says"):
        jl.function(choice_of_rows)(ROWS.copy())


def test_an_update_of_a_part_that_the_data_find_writes_once():
    @jl.jit
    def f(m):
        k = m.sum(axis=1).argmin()
        m[k] += 1.0

    f(ROWS.copy())
    (trace,) = (trace for traces in f._traces.values() for trace in traces)
    assert sum(type(node.op).__name__ == "ScatterUpdate" for node in trace.graph.nodes) == 1


def swapped_by_data_in_unrolled_turns(x, y):
    for i in range(12):
        if x.sum() > i:
            x, y = y, x
        y[0] = i
    return x, y, x is y


def made_anew_in_some_unrolled_turns(x, y):
    for i in range(12):
        if x.sum() > i:
            x, y = y, x
        else:
            x = x + 1
        y[0] = i
    return x, y


@pytest.mark.parametrize("decorate", [jl.jit, jl.function])
def test_choices_of_choices_grow_with_the_program_only(decorate):
    """What a choice may be is kept flat: twelve in a row are two arrays, or twelve, and not two to the twelfth."""
    assert_as_python(swapped_by_data_in_unrolled_turns, LOW, HIGH, decorate=decorate)
    assert_as_python(made_anew_in_some_unrolled_turns, LOW, HIGH, decorate=decorate, whole=False)


def test_what_both_sides_make_anew_costs_nothing():
    """No number is carried along where nobody can tell which array it is."""

    @jl.jit
    def f(x):
        y = x * 2 if x.sum() > 4 else x * 3
        z = np.zeros(3)
        while z.sum() < y.sum():
            z = z + y
        return z

    f(LOW)
    (trace,) = (trace for traces in f._traces.values() for trace in traces)
    assert len(trace.graph.outputs) == 1 and trace.gives(int) == Output(0, False)
