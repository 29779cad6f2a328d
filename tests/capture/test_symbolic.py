"""The index of a rolled loop: arithmetic, subscripts, slices and shapes that move with it, as Python and NumPy have them."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from jitlab.capture import HOOKS, Capture
from jitlab.ir import NotRolled

from .by_hand import check, operations, rolled


def square(n=9, m=None):
    m = n if m is None else m
    return np.sin(np.arange(1.0, n * m + 1)).reshape(n, m)


def vector(n=9):
    return np.cos(np.arange(1.0, n + 1))


def proved(do):
    """Nothing was left to be found or checked at run time."""
    return not {"Define", "Position"} & {name for body in do.bodies for name in operations(body)}


# ---- subscripts


def test_elements_and_slices_of_a_triangular_nest():
    def cholesky(do, a):
        def row(i, a):
            def column(j, a):
                a[i, j] -= a[i, :j] @ a[j, :j]
                a[i, j] /= a[j, j]

            do.loop(column, i, a)
            a[i, i] -= a[i, :i] @ a[i, :i]
            a[i, i] = np.sqrt(np.abs(a[i, i]))

        do.loop(row, a.shape[0], a)

    assert proved(check(cholesky, square(12) + 12 * np.eye(12)))


def test_rows_columns_and_neighbours():
    def sweep(do, a, b):
        def row(i, a, b):
            a[i, 1:-1] = a[i, :-2] + a[i, 2:] + b[i - 1, 1:-1]
            b[:, i] = a[i, ::-1] * 2
            b[i - 1 : i + 2, 0] += 1.0

        do.loop(row, (1, a.shape[0] - 1), a, b)

    assert proved(check(sweep, square(), square() + 1))


def test_reversed_ranges_and_steps():
    def back(do, x, y):
        def body(k, x, y):
            x[k] += x[k + 1]
            y[-k - 1] = x[k] * k
            y[2 * (k // 2)] += 1

        do.loop(body, (x.shape[0] - 2, -1, -1), x, y)
        do.loop(body, (0, x.shape[0] - 1, 3), x, y)

    check(back, vector(), vector())


def test_steps_that_move():
    def sieve(do, flags):
        n = flags.shape[0]

        def prime(i, flags):
            def cross(j, flags):
                flags[j] += 1

            do.loop(cross, (i * i, n, i), flags)
            do.loop(cross, (n - 1, i, -i), flags)

        do.loop(prime, (2, n), flags)

    do = check(sieve, np.zeros(60, np.int64))
    assert "Position" not in operations(do.bodies[-1])


def test_negative_subscripts_wrap():
    def wrap(do, x, y):
        def body(i, x, y):
            y[i] = x[-i] + x[-(i + 1)] + x[i - 3]

        do.loop(body, x.shape[0], x, y)

    do = check(wrap, vector(), vector())
    assert operations(do.bodies[0]).count("Position") == 2  # -i and i - 3 change their sign, -(i + 1) does not


@pytest.mark.parametrize("shift", [1, -12])
def test_an_index_out_of_range_raises_at_run_time(shift):
    def outside(do, x, y):
        def body(i, x, y):
            y[i] = x[i + shift]

        do.loop(body, x.shape[0], x, y)

    check(outside, vector(), vector())


def test_an_index_that_is_written_out_of_range_raises_at_run_time():
    def outside(do, x):
        def body(i, x):
            x[2 * i] = 1.0

        do.loop(body, x.shape[0], x)

    check(outside, vector())


def test_indices_read_from_an_array():
    def gather(do, x, y, where):
        def body(i, x, y, where):
            y[i] = x[where[i]]
            y[where[i]] += 1.0

        do.loop(body, y.shape[0], x, y, where)

    check(gather, vector(), vector(), np.array([3, -1, 0, 8, 8, 2, -9, 4, 1]))
    check(gather, vector(), vector(), np.array([3, -1, 0, 8, 9, 2, -9, 4, 1]))


def test_rows_of_a_sparse_matrix():
    def spmv(do, y, data, columns, starts, x):
        def body(i, y, data, columns, starts, x):
            where = columns[starts[i] : starts[i + 1]]
            values = data[starts[i] : starts[i + 1]]
            y[i] = values @ x[where]

        do.loop(body, y.shape[0], y, data, columns, starts, x)

    starts = np.array([0, 2, 2, 5, 6])
    check(spmv, np.zeros(4), vector(6), np.array([0, 3, 1, 2, 3, 0]), starts, vector(4))


def test_a_row_found_at_run_time_is_a_view():
    def rows(do, a, where):
        def body(i, a, where):
            row = a[where[i]]
            row[1:] += a[i, :-1]
            a[where[i], 0] = row[-1]

        do.loop(body, where.shape[0], a, where)

    check(rows, square(5), np.array([4, 0, 0, -1]))


def test_slices_are_clamped_as_python_does():
    def window(do, x, y):
        def body(i, x, y):
            y[i] = np.sum(x[i - 2 : i + 3]) + np.sum(x[i:][:4]) + np.sum(x[: i - 4])

        do.loop(body, x.shape[0], x, y)

    check(window, vector(11), vector(11))


def test_slices_with_steps():
    def strided(do, x, y):
        def body(i, x, y):
            y[i] = np.sum(x[i::2]) + np.sum(x[i::-1]) + np.sum(x[: 2 * i : 2]) + np.sum(x[::-1][i:])

        do.loop(body, x.shape[0], x, y)

    check(strided, vector(12), vector(12))


def test_bounds_that_are_minima_and_maxima():
    def window(do, x, y):
        n = x.shape[0]

        def body(i, x, y):
            low, high = do.max(0, i - 3), do.min(n, i + 4)
            y[i] = np.sum(x[low:high]) + x[do.min(i + 1, n - 1)] * do.max(i, 0)

        do.loop(body, n, x, y)

    check(window, vector(11), vector(11))


def test_a_periodic_border():
    def ring(do, x, y):
        n = x.shape[0]

        def body(i, x, y):
            y[i] = x[(i + 1) % n] - x[(i - 1) % n] + x[i // 2] + x[i >> 1]

        do.loop(body, n, x, y)

    assert "Position" not in operations(check(ring, vector(), vector()).bodies[0])


def test_views_of_views_move_too():
    def views(do, a, b):
        def body(i, a, b):
            part = a[i:, : i + 1]
            part.T[0] += b[0, i:]
            np.flip(part)[0, 0] = 3.0
            b[i] = a[i][::-1]

        do.loop(body, a.shape[0], a, b)

    assert proved(check(views, square(8), square(8)))


numbers = st.integers(-3, 3)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.integers(5, 9), st.integers(5, 9), st.lists(numbers, min_size=9, max_size=9), st.booleans(),
    st.sampled_from(["element", "row", "slice", "strided", "write"]),
)  # fmt: skip
def test_random_affine_subscripts_are_pythons(n, m, k, triangular, kind):
    def program(do, a, y):
        def outer(i, a, y):
            def inner(j, a, y):
                u = k[0] * i + k[1] * j + k[2] + k[3] * a.shape[0]
                v = k[4] * i + k[5] * j + k[6]
                if kind == "element":
                    y[i] += a[u, v]
                elif kind == "row":
                    y[i] += np.sum(a[u] * a[u])
                elif kind == "slice":
                    y[i] += np.sum(a[u:v, 1])
                elif kind == "strided":
                    y[i] += np.sum(a[0, v : u : k[7] or 1])
                else:
                    a[u % n :, v] = y[i] + j

            do.loop(inner, i if triangular else m, a, y)

        do.loop(outer, n, a, y)

    try:
        check(program, square(n, m), np.zeros(n))
    except NotRolled as refusal:
        assume(refusal.code != "extents")
        raise


# ---- numbers


def test_an_index_computes_as_a_python_int_does():
    def numbers(do, x, y, single):
        n = x.shape[0]

        def body(i, x, y, single):
            x[i] = i * 0.5 + i / (i + 1) + i**2 + 2**i + i**0.5 + (i - n) * 3 + abs(i - 4) - -i
            y[i] = (i // 3) * 10 + i % 4 + (7 - i) // 2 + do.int(i) + do.round(i) + (i & 3)
            single[i] = single[i] * i + i * 0.1 + (i if i < n else 5)

        do.loop(body, n, x, y, single)

    check(numbers, vector(), np.zeros(9, np.int64), vector().astype(np.float32))


def test_comparisons_are_proved_or_become_values():
    answers = []

    def compare(do, x):
        n = x.shape[0]

        def body(i, x):
            answers.append((i < n, i >= 0, i == n, i != -1, i + 1 > i, n - 1 < i))
            x[i] = np.where(i > 3, 1.0, 2.0) + (i == 4) + (i < 2.5)

        do.loop(body, n, x)

    check(compare, vector())
    assert answers[0] == (True, True, False, True, True, False)


def test_weak_numbers_give_way_to_arrays():
    def promote(do, single, half, whole):
        def body(i, single, half, whole):
            single[:] = single * i + i / 2 + do.float(i)
            half[i] = half[i] + np.float16(1) * i
            whole[i] += np.int8(3) + i
            assert (single * i).dtype == "f4" and (single[0] + i * 0.5).dtype == "f4" and (half * do.float(i)).dtype == "f2"
            assert (single[0] * np.sqrt(i)).dtype == "f8" and np.add(i, 1).dtype == "i8"

        do.loop(body, 9, single, half, whole)

    check(promote, vector().astype("f4"), vector().astype("f2"), np.arange(9, dtype="i1"))


def test_what_needs_the_number_is_not_rolled():
    def refuse(use, code="index_value"):
        def program(do, x):
            do.loop(lambda i, x: use(i, x), x.shape[0], x)

        with pytest.raises(NotRolled) as refusal:
            rolled(program, vector())
        assert refusal.value.code == code and str(refusal.value)

    refuse(lambda i, x: [1, 2, 3][i])
    refuse(lambda i, x: {i: 1})
    refuse(lambda i, x: bool(i))
    refuse(lambda i, x: f"{i}")
    refuse(lambda i, x: int(i))
    refuse(lambda i, x: range(i))
    refuse(lambda i, x: np.sum(x, axis=i))
    refuse(lambda i, x: HOOKS.call(np.eye, 4, k=i))
    refuse(lambda i, x: 1 / i, "zero_division")
    refuse(lambda i, x: 3 % i, "zero_division")
    refuse(lambda i, x: np.max(x[:i]), "extents")
    refuse(lambda i, x: x[:i] + x[i:], "extents")
    refuse(lambda i, x: x[:i].reshape(-1, 2))
    refuse(lambda i, x: np.unique(x), "host_operation")


def test_indices_become_elements_and_operands_of_functions():
    def uses(do, x, whole, flags):
        def body(i, x, whole, flags):
            x[i] = do.call(np.array, [i, 2, i + 1]).sum() + do.call(np.full, 3, i).sum() + np.where(x[0] > 2, i, -i)
            x[i] += do.call(np.float64, i) + do.call(np.maximum, i, 3) + np.clip(x[i], i, i + 1) + np.sqrt(i)
            x[i] += do.call(np.arange, i, 9).sum()
            x[i] += np.power(whole, 2 * i % 3)[1] + do.call(np.arange, 20, 2 * i, -2).sum() + (np.float64(2.5) * i)
            whole[:] = i
            flags[i] = i > 3

        do.loop(body, 9, x, whole, flags)

    check(uses, vector(), np.arange(4), np.zeros(9, bool))


def test_numbers_of_a_loop_know_their_types():
    seen = []

    def ask(do, x):
        def body(i, x):
            seen.append((do.isinstance(i, int), do.isinstance(i, float), do.type(i) is int, do.type(i / 2) is float))
            x[i] = do.abs(i - 3) + do.divmod(i, 4)[1] + do.bool(i) + do.float(do.int(i)) + do.round(i, 1)

        do.loop(body, 9, x)

    check(ask, vector())
    assert set(seen) == {(True, False, True, True)}


def test_what_a_loop_learnt_is_taken_back_with_it():
    capture = Capture("f")
    with capture.recording():
        x = capture.add_input(vector(), "x")
        mark = capture.mark()
        first = capture.enter_loop(x.shape[0])
        _ = x[capture.integer(first) - 4]
        assert capture.bounds.symbols == ("i0", "d0") and capture.bounds.depth == 1
        capture.rollback(mark)
        assert capture.bounds.symbols == () and capture.loops == [] and not capture.graph.nodes
        assert capture.enter_loop(x.shape[0]) == first
        capture.leave_loop()
        assert capture.bounds.depth == 0 and str(capture.enter_loop(3).expr) == "i1"


def test_samples_are_apart_and_tell_lengths_from_ones():
    capture = Capture("f")
    with capture.recording():
        outer, inner = capture.enter_loop(30), capture.enter_loop(30)
        short = capture.enter_loop(outer - 2)
        assert len({int(outer), int(inner), int(short)}) == 3 and all(2 <= int(i) <= 27 for i in (outer, inner, short))
        with pytest.raises(NotRolled, match="too short"):
            capture.enter_loop(outer - 29)


# ---- shapes


def test_lengths_that_move_are_indices():
    def shapes(do, x, y):
        def body(i, x, y):
            part = x[i:]
            y[i] = part.shape[0] + do.len(part) * 10 + part.size * 100 + do.max(part.shape[0], 4)

        do.loop(body, x.shape[0], x, y)

    check(shapes, vector(), vector())


def test_functions_pass_lengths_along():
    def functions(do, a, y):
        def body(i, a, y):
            row, column = a[i, : i + 1], a[: i + 1, i]
            total = row.sum() + np.mean(column) + np.max(np.abs(row)) + np.dot(row, column) + row @ a[: i + 1] @ y
            new = do.call(np.zeros, i + 1) + do.call(np.arange, i + 1) + np.ones_like(row) + np.minimum(row, column)
            both = np.concatenate([new, row, np.flip(column)])
            table = np.outer(row, new) + do.call(np.eye, i + 1)
            table = np.where(table > 0, table, -table)[:, ::-1].T.copy()
            y[i] = total + both.sum() + table.sum() + np.vstack([row, new]).sum() + table.ravel().sum() + np.std(new)

        do.loop(body, a.shape[0], a, y)

    assert proved(check(functions, square(7), vector(7)))


def test_extents_are_equal_by_proof_in_rectangles():
    def square_only(do, a, y):
        def body(i, a, y):
            a[i, i:] += a[i:, i]
            y[i] = a[i, i:] @ a[i:, i]

        do.loop(body, a.shape[0], a, y)

    assert proved(check(square_only, square(7), vector(7)))
    with pytest.raises(NotRolled, match="equal"):
        rolled(square_only, square(7, 8), vector(7))


def test_a_loop_over_what_another_loop_found():
    def ragged(do, y, starts, x):
        def row(i, y, starts, x):
            def add(k, y, starts, x):
                y[i] += x[k] * k

            do.loop(add, (starts[i], starts[i + 1]), y, starts, x)

        do.loop(row, y.shape[0], y, starts, x)

    check(ragged, np.zeros(4), np.array([0, 2, 2, 5, 6]), vector(6))
