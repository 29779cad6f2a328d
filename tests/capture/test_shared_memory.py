"""What shares memory in NumPy and is no slice: windows, grids, arrays that are broadcast together, parts of complex numbers."""

import numpy as np
import pytest

import jitlab as jl

windows, strided = np.lib.stride_tricks.sliding_window_view, np.lib.stride_tricks.as_strided


def windows_see_a_later_write(v):
    w = windows(v, 3)
    v[0] = 99
    return w.mean(axis=1), windows(v, 2)[::2].sum(axis=0)


def windows_are_views(v):
    w = windows(v, 3)
    return w, w[1:, ::-1].T, v


def windows_of_what_is_made_here(v):
    return windows(v * 2, 3)


def windows_of_rows_and_columns(v):
    x = v.reshape(2, 3)
    return windows(x, (2, 2)).max(axis=(2, 3)), windows(x, 2, axis=1) * 2, windows(x, (2, 2), axis=(1, 1)).shape


def windows_in_a_loop(v):
    w, s = windows(v, 2), 0.0
    for i in range(3):
        s = s + w[i].sum()
        v[i + 1] = s
    return s, w.mean(axis=1)


def windows_under_another_shape(v):
    w = windows(v, 2).reshape(-1)
    v[0] = 7
    return w


def grids_without_copies(v):
    a, b = np.meshgrid(v, v * 2, copy=False)
    c, d = np.meshgrid(v, v, copy=False, sparse=True, indexing="ij")
    v[0] = 9
    return a.sum(), b, c + d


def broadcast_together(v):
    a, b = np.broadcast_arrays(v, v[:, None])
    v[0] = 5
    return a.sum(), b


def nan_in_place(v):
    v[2] = np.nan
    y = np.nan_to_num(v, copy=False, nan=3.0)
    y[0] = -1
    return v + 0


PROGRAMS = [
    windows_see_a_later_write, windows_are_views, windows_of_what_is_made_here, windows_of_rows_and_columns, windows_in_a_loop,
    windows_under_another_shape, grids_without_copies, broadcast_together, nan_in_place,
]  # fmt: skip
MODES = {"function": jl.function, "jit": jl.jit}


def ran(call):
    v = np.arange(6.0)
    results = call(v)
    results = results if isinstance(results, tuple) else (results,)
    arrays = [v, *(x for x in results if isinstance(x, np.ndarray))]
    return v, results, [[np.shares_memory(x, y) for y in arrays] for x in arrays]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_shares_memory_in_numpy_does_here(program, mode):
    (before, numpys, shared), (after, ours, sharing) = ran(program), ran(MODES[mode](program))
    assert np.array_equal(before, after, equal_nan=True) and sharing == shared
    for numpy, mine in zip(numpys, ours, strict=True):
        np.testing.assert_array_equal(numpy, mine)


@pytest.mark.parametrize("mode", MODES)
def test_windows_are_read_only(mode):
    @MODES[mode]
    def f(v):
        w = windows(v, 3)
        w[0, 0] = 5
        return w

    with pytest.raises(ValueError, match="assignment destination is read-only"):
        f(np.arange(6.0))


def test_windows_that_are_returned_take_no_memory_of_their_own():
    v = np.arange(100_000.0)
    w = jl.function(lambda v: windows(v + 1, 5000))(v)
    assert w.shape == (95_001, 5000) and w.strides == (8, 8) and w.base is not None and not w.flags.writeable


def test_windows_have_a_gradient():
    v = np.arange(6.0)
    (found,) = jl.grad(lambda v: (windows(v, 3).max(axis=1) ** 2).sum(), (0,))(v)
    np.testing.assert_allclose(found, [0, 0, 4, 6, 8, 10])


def strided_before_a_write(v):
    y = strided(v, (3, 3), (8, 8))
    v[0] = 9
    return y.sum()


def part_before_a_write(v):
    z = v + 1j
    w = z.real
    z[0] = 9
    return w.sum()


def writeable_windows(v):
    windows(v, 3, writeable=True)[0, 1] = 50
    return v + 0


@pytest.mark.parametrize("program", [strided_before_a_write, part_before_a_write, writeable_windows], ids=lambda p: p.__name__)
def test_a_copy_of_what_numpy_shares_is_never_taken_for_the_view(program):
    """Where jitlab has a copy, jit lets Python run the lines, and function says that it can't."""
    assert np.array_equal(jl.jit(program)(np.arange(6.0)), program(np.arange(6.0)))
    with pytest.raises(jl.errors.CaptureError, match="returned a view of another array"):
        jl.function(program)(np.arange(6.0))


def test_a_copy_that_is_read_before_the_write_or_made_again_behind_it_is_right():
    @jl.function
    def f(v):
        z = v + 1j
        before = z.imag.sum()
        z[0] = 9 + 5j
        return before, z.imag.sum()

    assert f(np.arange(6.0)) == (6.0, 10.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: windows(x, 2, writeable=True),
        lambda x: np.lib.stride_tricks.as_strided(x, (3, 2), (8, 8)),
        lambda x: np.lib.stride_tricks.as_strided(x, (4, 2), (0, 8)),
    ],
)
@pytest.mark.parametrize("decorate", [jl.jit, jl.function])
def test_an_argument_whose_elements_overlap_is_written_as_numpy_writes_it(make, decorate):
    def f(v):
        v[1, 0] = 30
        return v.sum()

    traced = decorate(f)
    for _ in range(3):
        mine, theirs = np.arange(6.0), np.arange(6.0)
        assert traced(make(mine)) == f(make(theirs)) and np.array_equal(mine, theirs)


def test_a_view_that_overlaps_itself_is_seen_after_a_statement_that_python_runs():
    def f(x):
        v = windows(x, 2, writeable=True)
        v[0, 1] = 50
        text = str(x)
        return x + 1, text

    assert_equal = np.testing.assert_array_equal
    mine, theirs = jl.jit(f)(np.arange(5.0)), f(np.arange(5.0))
    assert_equal(mine[0], theirs[0])
    assert mine[1] == theirs[1]


@pytest.mark.parametrize("decorate", [jl.function, jl.jit])
@pytest.mark.parametrize("write", [
    lambda x: (np.broadcast_to(x, (2, 2)), x * 2),
    lambda x: (np.broadcast_to(x, (2, 2)), np.full(3, 7), x + 1),
    lambda x: [np.atleast_1d(x), np.atleast_2d(x), np.exp(x)],
    lambda x: {"a": np.reshape(x, (1, 1)), "b": np.broadcast_to(x, 3), "c": x - 1},
], ids=["broadcast", "then full", "at least", "dict"])  # fmt: skip
def test_a_view_of_a_scalar_argument_takes_no_other_results_place(decorate, write):
    traced = decorate(write)
    for x in (np.float32(3), np.float64(-2.5), np.int16(4)):
        got, want = traced(x), write(x)
        pairs = zip(got.values(), want.values(), strict=True) if isinstance(want, dict) else zip(got, want, strict=True)
        for mine, theirs in pairs:
            assert type(mine) is type(theirs) and mine.dtype == theirs.dtype
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)
