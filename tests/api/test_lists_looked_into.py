"""A list that a function makes and appends to in loops stays in the graph where the function looks into it."""

import numpy as np
import pytest

import jitlab as jl
from tests.api.test_put_off import HISTORY, outcome
from tests.api.test_put_off_in_loops import compare


def mean_of_losses(x, out):
    w, losses = x * 0.0, []
    for _ in range(40):
        r = w - x
        w = w - 0.1 * r
        losses.append(float((r * r).mean()))
    return np.round(w, 9), np.round(np.mean(losses), 9), np.round(np.array(losses), 9), len(losses)


def last_and_extremes(x, out):
    losses = [float(x[1])]
    for k in range(30):
        losses.append(float(x[k % 4] * k))
    print(f"last {losses[-1]:.3f} first {losses[0]}", losses[3], losses[-31])
    return min(losses), max(losses), sum(losses) / len(losses), losses[-2] + 1


def numpy_scalars(x, out):
    found = [x[0], x[1]]
    for k in range(30):
        found.append(x[k % 4] * k)
    found.append(x[2])
    return sum(found), min(found), max(found), found[-1], found[0], found[5], np.argmax(found), np.diff(found[-5:])


def ints(x, out):
    found = []
    for k in range(20):
        found.append(k * 3 - 10)
    return np.array(found), sum(found), found[-1], len(found), np.mean(found), min(found), max(found)


def large_ints(x, out):
    found, n = [], 1
    for _ in range(40):
        n = n * 5
        found.append(n)
    return sum(found), found[-1]


def bools(x, out):
    hits, flags = [], []
    for k in range(20):
        hits.append(x[k % 4] > 1.2)
        flags.append(bool(x[k % 4] > 1.2))
    return sum(hits), sum(flags), np.mean(hits), np.array(flags), sum(hits) / len(hits), hits[-1], flags[-1]


def float32(x, out):
    x = x.astype(np.float32)
    found = []
    for k in range(20):
        found.append(x[k % 4] * k)
    return np.array(found), np.mean(found), found[-1], max(found)


def sum_of_float32(x, out):
    x = x.astype(np.float32)
    found = []
    for k in range(20):
        found.append(x[k % 4] * k)
    return sum(found)


def complex_numbers(x, out):
    found = []
    for k in range(20):
        found.append(x[k % 4] * 1j ** k)
    return np.array(found), sum(found), found[-1]


def negative_zeros(x, out):
    found = []
    for k in range(20):
        found.append(-0.0 * float(x[k % 4]))
    return sum(found), np.copysign(1, sum(found)), found[0]


def nans(x, out):
    found = []
    for k in range(20):
        found.append(float(x[k % 4]) if k % 3 else float("nan"))
    return min(found), max(found), np.nanmax(np.array(found))


def kinds_differ(x, out):
    found = [0]
    for k in range(20):
        found.append(float(x[k % 4]))
    return np.array(found), sum(found), found[0]


def kinds_change(x, out):
    found, best = [], 0
    for k in range(20):
        if x[k % 4] * k > 10:
            best = x[k % 4] * k
        found.append(best)
    return found[-1], np.array(found)


def trajectory(x, out):
    path = [x]
    for _ in range(30):
        x = x * 0.9 + 0.1
        path.append(x)
    return np.array(path), np.stack(path)[:, 0], len(path), np.mean(path, axis=0)


def frames(x, out):
    grid, kept = np.zeros(4), []
    for k in range(30):
        grid[1:-1] = 0.5 * (grid[:-2] + grid[2:]) + x[k % 4]
        kept.append(grid.copy())
    return np.stack(kept), grid


def one_grid(x, out):
    grid, kept = np.zeros(4), []
    for k in range(30):
        grid[k % 4] = k
        kept.append(grid)
    return np.stack(kept), grid


def grid_with_a_new_name(x, out):
    grid, kept = np.zeros(4), []
    for k in range(30):
        grid = grid + x
        kept.append(grid)
        grid[k % 4] = k
    return np.stack(kept), grid


def written_before_it_is_carried(x, out):
    y, kept = x * 1, []
    for k in range(30):
        y[0] = k
        kept.append(y)
        y = y * 2 if k % 7 == 0 else y
    return np.stack(kept)


def written_in_the_next_turn(x, out):
    last, kept = x * 1, []
    for k in range(30):
        last[0] = -k
        y = x * k
        kept.append(y)
        last = y
    return np.stack(kept), last


def written_after_the_loop(x, out):
    y, kept = x * 1, []
    for k in range(30):
        y = y * 0.5 + k
        kept.append(y)
    y[0] = 77
    return np.stack(kept), y


def a_view_is_written_after_the_loop(x, out):
    y, kept = x * 1, []
    for k in range(30):
        y = y * 0.5 + k
        kept.append(y)
    v = y.reshape(2, 2)[1:]
    v += 5
    return np.stack(kept), y


def written_in_another_loop(x, out):
    y, kept = x * 1, []
    for k in range(30):
        y = y * 0.5 + k
        kept.append(y)
    for k in range(20):
        y[k % 4] += k
    return np.stack(kept), y


def written_in_a_branch(x, out):
    y, kept = x * 1, []
    for k in range(30):
        y = y * 0.5 + k
        kept.append(y)
    if x[0] > 1:
        y[0] = 5
    return np.stack(kept), y


def the_first_is_written(x, out):
    y = z = x * 1
    kept = []
    for k in range(30):
        kept.append(y)
        y = y * 0.5 + k
    z[0] = 77
    return np.stack(kept), z


def the_argument_is_written(x, out):
    y, kept = x, []
    for k in range(30):
        kept.append(y)
        y = y * 0.5 + k
    x[0] = 77
    return np.stack(kept)


def the_argument_is_written_in_turns(x, out):
    kept = []
    for k in range(30):
        kept.append(x[1:])
        x[k % 4] = k
    return np.stack(kept)


def another_array_is_written(x, out):
    y, energy, kept = x * 1, np.zeros(30), []
    for k in range(30):
        y = y * 0.5 + k
        kept.append(y)
        energy[k] = (y * y).sum()
    energy[0] = 1
    return np.stack(kept), energy


def chosen_array(x, out):
    y, kept = x * 1, []
    for k in range(30):
        if x[k % 4] > 1:
            y = y * 0.5
        kept.append(y)
    return np.stack(kept)


def given_and_looked_into(x, out):
    losses = []
    for _ in range(30):
        x = x * 0.5
        losses.append(x.sum())
    print(np.mean(losses), len(losses))
    return losses, losses[-1], np.array(losses)


def given_with_arrays(x, out):
    rows = []
    for k in range(20):
        rows.append(x * k)
    return rows, np.array(rows), len(rows)


def carried_arrays_are_given(x, out):
    rows = []
    for _ in range(20):
        x = x * 0.5
        rows.append(x)
    return rows, np.array(rows), x


def in_branches(x, out):
    kept = []
    for k in range(30):
        if x[k % 4] * k > 5:
            kept.append(x[k % 4] * k)
    return np.array(kept), len(kept)


def last_in_branches(x, out):
    kept = []
    for k in range(30):
        if x[k % 4] * k > 50 + len(out):
            kept.append(float(x[k % 4] * k))
    return kept[-1], kept[0], sum(kept), max(kept), len(kept) / 2


def ends_early(x, out):
    losses, w = [], x * 0
    for _ in range(100):
        r = w - x
        w = w - 0.5 * r
        losses.append((r * r).mean())
        if losses_are_small(r):
            break
    return w, len(losses), np.array(losses), losses[-1]


def losses_are_small(r):
    return (r * r).mean() < 1e-3


def stops_by_itself(x, out):
    seen = []
    while x.sum() > 0.01:
        x = x * 0.5
        seen.append(float(x.sum()))
    return np.array(seen), len(seen), seen[-1]


def looks_while_it_appends(x, out):
    losses = [1.0]
    for k in range(30):
        losses.append(losses[-1] * 0.5 + float(x[k % 4]))
    return np.array(losses)


def stops_by_what_it_has(x, out):
    losses = []
    for k in range(30):
        losses.append(float(x[k % 4]) / (k + 1))
        if len(losses) > 2 and abs(losses[-1] - losses[-2]) < 0.01:
            break
    return losses[-1], len(losses)


def two_loops(x, out):
    found = []
    for k in range(20):
        found.append(x[k % 4])
    found.append(x[0] * 2)
    for k in range(18):
        found.append(x[k % 4] * k)
    return np.array(found), found[20], found[-1], len(found), found[19], found[21]


def two_in_a_turn(x, out):
    found = []
    for k in range(20):
        found.append(x[k % 4])
        found.append(x[k % 4] * k)
    return np.array(found), found[-1], len(found)


def one_of_two(x, out):
    found = []
    for k in range(20):
        if x[k % 4] > 1:
            found.append(x[k % 4])
        else:
            found.append(x[k % 4] * k)
    return np.array(found), len(found)


def nested(x, out):
    found, rows = [], []
    for i in range(17):
        for j in range(3):
            found.append(x[j] * i)
        rows.append(x[0] + i)
    return np.array(found).reshape(17, 3), np.array(rows), found[4]


def in_a_helper(x, out):
    return path_of(x, 20) + path_of(x * 2, 30)[:20], path_of(x, 3)


def path_of(x, n):
    path = []
    for k in range(n):
        x = x * 0.5 + k
        path.append(x)
    return np.array(path)


def helper_in_a_loop(x, out):
    total = x * 0
    for _ in range(20):
        total = total + path_of(x, 18)[-1]
    return total


def kept_elsewhere(x, out):
    found = []
    out.append(found)
    for k in range(20):
        found.append(x[0] * k)
    return np.array(found)


def given_to_others(x, out):
    found = []
    HISTORY.append(found)
    for k in range(20):
        found.append(x[0] * k)
    HISTORY.append(found)
    return len(found)


def keeps(found, out):
    out.append(found)


class Keeper:
    def keep(self, x):
        self.x = x

    def look(self):
        return sum(self.x) + len(self.x)


def given_to_a_function(x, out):
    found, keeper = [], Keeper()
    keeper.keep(found)
    for k in range(20):
        found.append(x[0] * k)
    return np.array(found), keeper.look()


def stacked(x, out):
    numbers, rows, more = [], [], []
    for k in range(20):
        numbers.append(x[0] * k)
        rows.append(x * k)
        more.append(x.reshape(2, 2) + k)
    first = np.vstack(numbers), np.hstack(numbers), np.stack(numbers), np.column_stack(numbers)
    second = np.vstack(rows), np.hstack(rows), np.stack(rows, axis=1), np.column_stack(rows), np.concatenate(rows)
    third = np.vstack(more), np.hstack(more), np.stack(more, axis=-1), np.concatenate(more, axis=1)
    return first, second, third


def as_other_dtypes(x, out):
    floats, whole = [], []
    for k in range(20):
        floats.append(float(x[k % 4]))
        whole.append(k)
    return np.array(floats, dtype=np.float32), np.asarray(whole, dtype=float), np.array(whole, dtype=complex)


def as_ints(x, out):
    floats = []
    for k in range(20):
        floats.append(float(x[k % 4]) / (float(x[0]) - 0.5))
    return np.array(floats, dtype=int)


def as_small_ints(x, out):
    whole: list[int] = []
    for k in range(200):
        whole.append(k)
    return np.array(whole, np.int8)


def as_it_is(x, out):
    floats = []
    for k in range(20):
        floats.append(float(x[k % 4]))
    return np.array(floats, copy=False)


def zero_axes(x, out):
    floats = []
    for k in range(20):
        floats.append(float(x[k % 4]))
    return np.concatenate(floats)


def annotated(x, out):
    whole: list[float] = []
    for k in range(20):
        whole.append(float(x[k % 4]) * k)
    return np.interp(1.5, [1, 2, 3], whole[:3]), np.array(whole), np.allclose(whole, whole)


def shuffled(x, out):
    found, rng = [], np.random.default_rng(3)
    for k in range(20):
        found.append(x[0] * k)
    rng.shuffle(found)
    return np.array(found)


def returned_in_a_branch(x, out):
    found = []
    for k in range(20):
        found.append(x[0] * k)
    if x[0] > 1:
        return found, len(found)
    return found, np.array(found)


def looked_into_in_a_branch(x, out):
    found, y = [], 0.0
    for k in range(20):
        found.append(x[0] * k)
    if x[0] > 1:
        y = found[-1]
    return y


def looked_into_in_a_loop(x, out):
    found, y = [], 0.0
    for k in range(20):
        found.append(x[0] * k)
    for k in range(20):
        y = y + found[-1] * k
    return y


def few_turns(x, out):
    found, y = [], 0.0
    for k in range(3):
        found.append(x[k])
    for k in range(20):
        y = y + found[1] * k
    return y, found[-1], np.array(found), found[:2]


def no_turns(x, out):
    found = []
    for k in range(len(out) - len(out)):
        found.append(x[k])
    return np.array(found), len(found)


def outside(x, out):
    found = []
    for k in range(20):
        found.append(x[0] * k)
    return found[30]


def as_many_as_elements(x, out):
    y, found = np.arange(40.0) * x[0], []
    for k in range(len(y)):
        found.append(y[k] * 2)
    return np.array(found), len(found), found[-1]


def appends_after_it_looked(x, out):
    found = []
    for k in range(20):
        found.append(x[0] * k)
    first = np.array(found)
    for k in range(20):
        found.append(x[1] * k)
    return first, np.array(found), len(found)


def strings(x, out):
    found = []
    for k in range(20):
        found.append(f"{x[0] * k:.2f}")
    return len(found), found[-1]


def draws(x, out):
    rng, found = np.random.default_rng(5), []
    for _ in range(30):
        found.append(rng.normal())
    return np.round(np.mean(found), 9), np.round(np.std(found), 9), found[-1]


def tries(x, out):
    found = []
    try:
        for k in range(20):
            found.append(x[0] * k)
        y = out[50]
    except IndexError:
        y = len(found) + found[-1]
    return y


def raises_in_a_turn(x, out):
    found = []
    for k in range(20):
        found.append(x[0] * k)
        if x[0] * k > 20:
            raise ValueError("too much", k)
    return np.mean(found)


def pairs(x, out):
    found = []
    for k in range(20):
        found.append((k, x[0] * k))
    return np.array(found), found[-1]


def rows_of_lists(x, out):
    found = []
    for k in range(20):
        found.append([x[0] * k, x[1]])
    return np.array(found)


PROGRAMS = [value for value in list(globals().values()) if getattr(value, "__code__", None) and value.__module__ == __name__]
PROGRAMS = [f for f in PROGRAMS if f.__code__.co_varnames[:2] == ("x", "out")]
#: How many there are of something only a run knows: a second recording says for which numbers the first one holds.
OF_DATA = [in_branches, ends_early, stops_by_itself]
WHOLE = [
    mean_of_losses, last_and_extremes, numpy_scalars, ints, bools, float32, complex_numbers, negative_zeros, trajectory, frames,
    another_array_is_written, two_in_a_turn, given_and_looked_into, given_with_arrays, two_loops,
    nested, in_a_helper, as_many_as_elements, appends_after_it_looked, few_turns,
    stacked, as_other_dtypes, annotated,
]  # fmt: skip


@pytest.mark.parametrize("settle", ["off", "measure"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_that_looks_into_its_lists(monkeypatch, program, settle):
    monkeypatch.setattr(jl.config, "settle", settle)
    compare(program)


@pytest.mark.parametrize("program", [*WHOLE, *OF_DATA], ids=lambda program: program.__name__)
def test_it_is_captured_whole(program):
    traced = jl.jit(program)
    for n in range(4):
        outcome(traced, np.linspace(0.5, 2, 4) + n % 2, [])
    assert (traced.experimental_get_tracing_count(), len(traced.ledger.pieces)) == (2 if program in OF_DATA else 1, 0)
