"""Views, writes and aliasing of traced functions are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from programs import ONE, PROGRAMS, a
from same import assert_same, assert_same_sharing, leaves

import jitlab as jl
from jitlab.errors import CaptureError, ShapeError
from tests.left import assert_plain


def assert_like_numpy(function, *arrays, calls=2):
    """Results, arguments and which of them share memory are what plain NumPy leaves, on each of several calls."""
    traced = jl.function(function)
    for _ in range(calls):
        mine, theirs = ([x.copy(order="K") for x in arrays] for _ in range(2))
        expected = function(*theirs)
        result = traced(*mine)
        assert_same(mine, theirs)
        assert_same(result, expected, numbers_become_scalars=True)
        assert_plain(result, mine)
        assert_same_sharing([*leaves(result), *mine], [*leaves(expected), *theirs])
    assert traced.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("function, x", PROGRAMS, ids=[f"{f.__name__}-{x.ndim}d" for f, x in PROGRAMS])
def test_program_of_views_and_writes(function, x, op_by_op):
    assert_like_numpy(function, x)


@pytest.mark.parametrize("function, x", PROGRAMS, ids=[f"{f.__name__}-{x.ndim}d" for f, x in PROGRAMS])
def test_program_of_views_and_writes_compiled(function, x):
    mine, theirs = x.copy(), x.copy()
    expected = leaves(function(theirs))
    result = leaves(jl.function(function)(mine))
    np.testing.assert_allclose(mine, theirs, rtol=1e-14)
    for r, e in zip(result, expected, strict=True):
        assert type(r) is type(np.asarray(e)[()] if not isinstance(e, np.ndarray) else e)
        np.testing.assert_allclose(r, e, rtol=1e-14)


@pytest.mark.parametrize("make", [np.asfortranarray, lambda x: x[::-1], lambda x: np.repeat(x, 2, 1)[:, ::2]])
@pytest.mark.parametrize("order", ["C", "F"])
def test_reshape_of_a_strided_argument_shares_memory_where_numpys_does(make, order, op_by_op):
    def f(x):
        y = x.reshape(-1, order=order)
        y[1] = 50
        return x, y

    x = make(a(3, 4))
    mine, theirs = x.copy(order="K"), x.copy(order="K")
    if not (x.flags.c_contiguous or x.flags.f_contiguous):
        mine, theirs = make(a(3, 4)), make(a(3, 4))
    expected, result = f(theirs), jl.function(f)(mine)
    assert_same(result, expected)
    assert_same_sharing(list(result), list(expected))


def test_the_same_function_for_another_memory_layout_is_recorded_again(op_by_op):
    @jl.function
    def f(x):
        y = x.reshape(-1)
        y[1] = 50
        return y

    for x in (a(2, 3), np.asfortranarray(a(2, 3)), a(2, 3)):
        expected = x.copy(order="K")
        y = expected.reshape(-1)
        y[1] = 50
        assert_same(f(x), y)
        assert_same(x, expected)
    assert f.experimental_get_tracing_count() == 1


def test_two_arguments_written_crosswise(op_by_op):
    def f(x, y):
        x[:], y[:] = y, x.copy()
        x[0] += y[0]
        return x + y

    assert_like_numpy(f, a(3), 10 * a(3))


def test_one_array_passed_twice(op_by_op):
    @jl.function
    def f(x, y):
        x[0] = 100
        return y.sum()

    x = a(3)
    assert f(x, x) == 105 and x[0] == 100
    assert f(a(3), a(3)) == 6
    assert f.experimental_get_tracing_count() == 1


def test_overlapping_arguments_run_as_python_when_one_is_written():
    @jl.function
    def f(x, y):
        x += y
        x += y
        return x

    base, expected = a(5), a(5)
    result = f(base[1:], base[:-1])
    u, w = expected[1:], expected[:-1]
    u += w
    u += w
    assert_same(base, expected)
    assert np.shares_memory(result, base)


def test_read_only_argument_is_refused_as_numpy_does(op_by_op):
    @jl.function
    def f(x):
        x[0] = 1
        return x

    x = a(3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        f(x)
    assert f(a(3))[0] == 1
    y = a(3)
    y.flags.writeable = False
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        f(y)


def test_broadcast_and_diagonal_views_are_read_only(op_by_op):
    def into_broadcast(x):
        np.broadcast_to(x, (2, 4))[0, 0] = 1

    def into_diagonal(x):
        np.diagonal(np.ones((2, 2))).fill(1)

    for function in (into_broadcast, into_diagonal):
        with pytest.raises(ValueError, match="read-only"):
            jl.function(function)(ONE)


def test_scalars_cannot_be_assigned_into(op_by_op):
    def f(x):
        s = x.sum()
        s[0] = 1

    with pytest.raises(TypeError, match="does not support item assignment"):
        jl.function(f)(ONE)


@pytest.mark.parametrize(
    "function, error",
    [
        (lambda x: x.__iadd__(np.ones((2, 4))), "non-broadcastable output operand"),
        (lambda x: x.__setitem__(slice(2), np.ones(3)), "could not broadcast input array from shape (3,) into shape (2,)"),
        (lambda x: x + np.ones(3), "operands could not be broadcast together with shapes (4,) (3,)"),
        (lambda x: x @ np.ones((3, 2)), "matmul"),
        (lambda x: x.reshape(3), "cannot reshape array of size 4 into shape (3,)"),
    ],
)
def test_shapes_that_do_not_fit(function, error):
    with pytest.raises(ShapeError) as raised:
        jl.function(function)(ONE.copy())
    text = str(raised.value)
    assert error in text and "where: test_mutation.py, line" in text and "why: " in text and "try: " in text


def test_in_place_cast_is_refused_with_numpys_exception(op_by_op):
    def f(x):
        y = x.astype(int)
        y += 0.5

    with pytest.raises(np._core._exceptions._UFuncOutputCastingError, match="same_kind"):
        jl.function(f)(ONE)


def test_nothing_is_written_when_recording_fails(op_by_op):
    def f(x):
        x[0] = 100
        return x + np.ones(3)

    x = a(4)
    with pytest.raises(ShapeError):
        jl.function(f)(x)
    assert_same(x, a(4))


def test_writing_into_a_view_that_was_copied_is_refused(op_by_op):
    def f(x):
        z = x + 1j
        z.imag[0] = 3
        return z

    with pytest.raises(CaptureError, match="writing through this array"):
        jl.function(f)(ONE)


# ---- random programs of views: each step makes a view of an earlier array, or writes through one

SLICES = st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([-2, -1, 1, 2]))
STEPS = st.one_of(
    st.tuples(st.just("slice"), st.integers(0, 9), SLICES),
    st.tuples(st.just("transpose"), st.integers(0, 9), st.none()),
    st.tuples(st.just("flip"), st.integers(0, 9), st.integers(0, 1)),
    st.tuples(st.just("ravel"), st.integers(0, 9), st.none()),
    st.tuples(st.just("row"), st.integers(0, 9), st.integers(0, 2)),
    st.tuples(st.just("expand"), st.integers(0, 9), st.none()),
    st.tuples(st.just("fill"), st.integers(0, 9), st.integers(-9, 9)),
    st.tuples(st.just("add"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("assign"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("copy"), st.integers(0, 9), st.none()),
    st.tuples(st.just("double"), st.integers(0, 9), st.none()),
)  # fmt: skip


def run_steps(x, steps):
    arrays = [x]
    for kind, which, detail in steps:
        t = arrays[which % len(arrays)]
        if kind == "slice":
            arrays.append(t[slice(*detail)])
        elif kind == "transpose":
            arrays.append(t.T)
        elif kind == "flip":
            arrays.append(np.flip(t, detail if detail < t.ndim else 0))
        elif kind == "ravel":
            arrays.append(t.reshape(-1))
        elif kind == "row" and t.shape[0] > detail and t.ndim > 1:
            arrays.append(t[detail])
        elif kind == "expand" and t.ndim < 3:
            arrays.append(t[:, None])
        elif kind == "fill":
            t[...] = detail
        elif kind == "add":
            other = arrays[detail % len(arrays)]
            if other.shape == t.shape:
                t += other
        elif kind == "assign":
            other = arrays[detail % len(arrays)]
            if other.shape == t.shape:
                t[:] = other
        elif kind == "copy":
            arrays.append(t.copy())
        elif kind == "double":
            arrays.append(t * 2)
    return arrays


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(STEPS, min_size=2, max_size=9), fortran=st.booleans())
@example(steps=[("transpose", 0, None), ("copy", 0, None), ("ravel", 2, None)], fortran=True)
@example(steps=[("transpose", 0, None), ("double", 1, None), ("transpose", 2, None), ("ravel", 3, None)], fortran=False)
def test_random_programs_of_views(steps, fortran):
    from jitlab.api.functions import traces
    from jitlab.capture.drivers.driver import interpreted

    compiled, traces.compile_trace = traces.compile_trace, lambda trace, options: interpreted(trace)
    try:
        x = np.asfortranarray(a(3, 4)) if fortran else a(3, 4)
        mine, theirs = x.copy(order="K"), x.copy(order="K")
        expected = run_steps(theirs, steps)
        result = jl.function(lambda x: run_steps(x, steps))(mine)
    finally:
        traces.compile_trace = compiled
    assert_same(mine, theirs)
    assert_same(result, expected)
    assert_same_sharing([*result, mine], [*expected, theirs])


def test_an_empty_view_can_be_written_as_numpys_can():
    backwards, tail = jl.jit(lambda x: (x[::-1], x[1:]))(np.zeros(0))
    assert backwards.flags.writeable and tail.flags.writeable


@pytest.mark.parametrize("decorated", [jl.jit, jl.function])
def test_an_array_copied_into_itself_is_left_alone_even_where_it_is_read_only(decorated):
    def copied(x):
        np.copyto(x, x)
        np.copyto(x, x, where=x < 0)
        return x * 2

    fixed = np.broadcast_to(np.float64(3), (4,))
    for x in (fixed, np.arange(4.0)):
        np.testing.assert_array_equal(decorated(copied)(x), copied(x))
    with pytest.raises(ValueError, match="read-only"):
        decorated(lambda x, y: np.copyto(x, y))(fixed, np.ones(4))
