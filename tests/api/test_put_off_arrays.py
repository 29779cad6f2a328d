"""Arrays that a loop stores under attributes and reads again (`self.x = self.x + …`): the loop carries their values, and
Python's own array stands there afterwards."""

import contextlib
import io

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell
from tests.faults.events import at_event


class State:
    def __init__(self, v=None):
        self.v = np.arange(4.0) if v is None else v
        self.u, self.m, self.n, self.history, self.last = np.ones(4), np.zeros(4), 0, [], None

    def step(self, x):
        self.v = self.v + 0.1 * (x - self.v)
        self.n += 1
        return self.v


class Loud(State):
    def __setattr__(self, name, value):
        print(name)
        object.__setattr__(self, name, value)


def relaxes(s, x):
    for _ in range(20):
        s.v = s.v + 0.1 * (x - s.v)
        s.n += 1
    return s.v.sum()


def gives_it(s, x):
    for _ in range(20):
        s.v = s.v * 0.9 + x
    return s.v, s


def gives_a_view(s, x):
    for _ in range(20):
        s.v = s.v * 0.9 + x
    return s.v[1:], s.v.reshape(2, 2), s


def adam(s, x):
    for k in range(20):
        g = 2 * (s.v - x)
        s.m = 0.9 * s.m + 0.1 * g
        s.u = 0.99 * s.u + 0.01 * g * g
        s.v = s.v - 0.1 * (s.m / (1 - 0.9 ** (k + 1))) / (np.sqrt(s.u) + 1e-8)
        s.history.append(float(np.abs(g).max()))
    return s.v


def by_a_method(s, x):
    for _ in range(20):
        y = s.step(x) * 2
    return y


def with_the_one_before(s, x):
    change = 0.0
    for _ in range(20):
        before = s.v
        s.v = s.v + 0.1 * x
        change = change + np.abs(s.v - before).max()
    return change


def in_turns_of_turns(s, x):
    for _ in range(4):
        for k in range(5):
            s.v = s.v + 0.1 * x * k
        s.u = s.u + s.v
    return s.u


def twice(s, x):
    for _ in range(10):
        s.v = s.v + x
    y = s.v
    for _ in range(10):
        s.v = s.v * 0.5
    return y, s.v, s


def shows(s, x):
    for k in range(6):
        s.v = s.v + x
        print(k, s.v, s.v[0])
    print(s.v)
    return s.v * 2


def sometimes(s, x):
    for k in range(20):
        if x[k % 4] > 1.5:
            s.v = s.v + x
    return s.v, s


def never(s, x):
    for _ in range(20):
        if x[0] > 100:
            s.v = s.v + x
    return s.v, s


def until(s, x):
    for _ in range(30):
        s.v = s.v * 0.5
        s.n += 1
        if s.v.sum() < 0.1:
            break
    return s.v, s


def while_large(s, x):
    while np.abs(s.v).max() > 0.01:
        s.v = s.v * 0.5
        s.n += 1
    return s.v, s


def no_turns(s, x):
    for _ in range(len(s.history)):
        s.v = s.v + x
    return s.v, s


def keeps_one(s, x):
    kept = x
    for k in range(20):
        if k == 10:
            kept = s.v
        s.v = s.v + x
    return kept, s


def keeps_the_last_but_one(s, x):
    before = x
    for _ in range(20):
        before = s.v
        s.v = s.v + x
    before[0] = 99
    return before, s


def collects(s, x):
    for _ in range(20):
        s.v = s.v + x
        s.history.append(s.v)
    return s.history[-1], s


def stores_twice(s, x):
    for _ in range(20):
        s.v = s.v + x
        s.u = s.v
    return s.u is s.v, s


def asks_which(s, x):
    n = 0
    for _ in range(20):
        before = s.v
        s.v = s.v + x
        n += (s.v is before) + 2 * (s.v is s.v)
    return n


def writes_into_it(s, x):
    for k in range(20):
        s.v = s.v + x
        s.v[k % 4] = k
    return s.v


def writes_before(s, x):
    for k in range(20):
        s.v[k % 4] += 1
        s.v = s.v + x
    return s.v


def steps_in_place(s, x):
    for _ in range(20):
        s.v = s.v + x
        s.v *= 0.5
    return s.v, s


def writes_behind(s, x):
    for _ in range(20):
        s.v = s.v + x
    s.v[0] = 7
    s.v += 1
    return s.v, s


def writes_what_it_was(s, x):
    first = s.v
    for k in range(20):
        first[k % 4] = k
        s.v = s.v + first
    return first, s


def writes_the_argument(s, x):
    for _ in range(20):
        x *= 0.5
        s.v = s.v + x
    return s.v


def stored_and_written(s, x):
    for k in range(20):
        y = s.v + x
        s.v = y
        y[0] = k
    return s.v


def carried_too(s, x):
    y = s.v
    for _ in range(20):
        y = y + x
        s.v = y
    return y, s


def written_through_a_view(s, x):
    for k in range(20):
        row = s.v[1:3]
        row[0] = k
        s.v = s.v + x
    return s.v


def chosen(s, x):
    for k in range(20):
        y = s.v if x[k % 4] > 1.5 else s.u
        s.v = y + x
        s.last = k
    return s.v


def grows(s, x):
    for _ in range(6):
        s.v = np.concatenate([s.v, x])
    return s.v


def of_another_type(s, x):
    for k in range(20):
        s.v = (s.v + k).astype(np.float32)
    return s.v


def becomes_a_number(s, x):
    for k in range(20):
        s.v = s.v * 0.5 if k < 10 else 3.0
    return s.v


def begins_as_none(s, x):
    for _ in range(20):
        s.last = x if s.last is None else s.last + x
    return s.last


def transposed(s, x):
    a = np.outer(x, x)
    s.u = np.ones((4, 4))
    for _ in range(20):
        s.u = (s.u + a).T * 2
    return s.u.ravel()[:6], s.u.flags.c_contiguous, s


def raises_in_a_turn(s, x):
    for k in range(20):
        s.v = s.v + x
        s.n += 1
        s.history.append([1, 2, 3, 4][k // 4])
    return s.v


def looks_at_all(s, x):
    for _ in range(20):
        s.v = s.v + x
        s.last = len(vars(s))
    return s.v


def makes_it(s, x):
    s.v = np.zeros(4)
    s.u = s.v
    for _ in range(20):
        s.v = s.v + x
    return s.u, s.v, s


def two_at_once(s, x):
    for _ in range(20):
        s.v, s.n = s.v + 0.1 * x, s.n + 1
    return s.v.sum()


def exchanges(s, x):
    for _ in range(5):
        s.v, s.u = s.u, s.v
        s.v, s.u = s.u + x, s.v * 2
    return s.v, s.u, s


def exchanges_once(s, x):
    y = x * 2
    s.v, s.u = s.u, s.v
    s.m, y, s.n = y, s.m, s.n + 1
    return y, s


def raises_at_the_second(s, x):
    y = x * 2
    s.v, s.u = y, [1, 2][int(s.n) + 2]
    return y


def items_and_attributes(s, x):
    table = {}
    for k in range(20):
        s.n, table["k"], y = k, k, x * k
        s.m, s.history = s.m + y, s.history + [k]
    return table, s


PROGRAMS = [
    relaxes, gives_it, gives_a_view, adam, by_a_method, with_the_one_before, in_turns_of_turns, twice, shows, sometimes, never,
    until, while_large, no_turns, keeps_one, keeps_the_last_but_one, collects, stores_twice, asks_which, writes_into_it,
    writes_before, steps_in_place, writes_behind, writes_what_it_was, writes_the_argument, stored_and_written, carried_too,
    written_through_a_view, chosen, grows, of_another_type, becomes_a_number, begins_as_none, transposed, raises_in_a_turn,
    looks_at_all, makes_it, two_at_once, exchanges, exchanges_once, raises_at_the_second, items_and_attributes,
]  # fmt: skip
WHOLE = (relaxes, gives_it, adam, by_a_method, with_the_one_before, in_turns_of_turns, twice, shows, two_at_once)


def digits(x):
    """Values to twelve digits, with types and layouts, and which of them are one array or share memory."""
    arrays = []

    def walk(x):
        if isinstance(x, State):
            return {name: walk(value) for name, value in vars(x).items()}
        if isinstance(x, np.ndarray):
            arrays.append(x)
            return type(x), x.dtype, x.shape, x.strides, np.array2string(x, precision=11), x.flags.writeable
        if isinstance(x, (list, tuple)):
            return type(x), [walk(item) for item in x]
        return type(x), f"{x:.11g}" if isinstance(x, float) else repr(x)

    found = walk(x)
    same = [[a is b for a in arrays] for b in arrays]
    together = [[np.shares_memory(a, b) for a in arrays] for b in arrays]
    return found, same, together


def outcome(function, *args):
    text, result, raised = io.StringIO(), None, None
    with contextlib.redirect_stdout(text):
        try:
            result = function(*args)
        except Exception as error:
            raised = type(error), str(error)
    return digits((result, args)), raised, text.getvalue()


def frozen():
    x = np.arange(4.0)
    x.flags.writeable = False
    return x


STARTS = {
    "array": lambda: np.arange(4.0), "strided": lambda: np.arange(8.0)[::2], "backwards": lambda: np.arange(4.0)[::-1],
    "frozen": frozen, "float32": lambda: np.arange(4, dtype=np.float32), "ints": lambda: np.arange(4),
    "matrix": lambda: np.matrix([1.0, 2.0, 3.0, 4.0]), "number": lambda: 2.0, "scalar": lambda: np.float64(2),
    "list": lambda: [1.0, 2.0, 3.0, 4.0], "row": lambda: np.ones((1, 4)), "square": lambda: np.asfortranarray(np.ones((4, 4))),
    "big": lambda: np.arange(4.0).astype(">f8"),
}  # fmt: skip


@pytest.mark.parametrize("kind", [State, Loud], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_stands_under_an_attribute(program, kind):
    traced = jl.jit(program)
    with contextlib.redirect_stdout(io.StringIO()):
        mine, theirs = kind(), kind()
    for n in range(4):
        x = np.linspace(0.5, 2, 4) + n % 3
        found, wanted = outcome(traced, mine, x.copy()), outcome(program, theirs, x.copy())
        assert found == wanted, n


@pytest.mark.parametrize("source", [
    "s.v, y = s.u * 2, s.v\nz = y + 1\n", "s.v, s.u = s.u, s.v\ns.v[0] = 9\n",
    "for k in range(9):\n    s.v, s.n = s.v + x, k\n",
    "s.n, x = x.sum(), x * 2\nprint(s.n)\n", "for k in range(9):\n    s.v = s.v + x\ny = s.v\n",
])  # fmt: skip
def test_cells(source):
    found = []
    for run in (lambda source, names: run_cell(source, names, "<arrays>"), lambda source, names: exec(source, names)):
        names, text = {"s": State(), "x": np.linspace(0.5, 2, 4)}, io.StringIO()
        with contextlib.redirect_stdout(text):
            for _ in range(3):
                run(source, names)
        found.append((digits([names.get(name) for name in "sxyzk"]), text.getvalue()))
    assert found[0] == found[1]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("program", [relaxes, gives_it, adam, with_the_one_before, until, sometimes, twice, makes_it])
def test_whatever_it_begins_as(program, start):
    traced = jl.jit(program)
    for kind in ("array", start, start, "array"):
        mine, theirs = State(STARTS[kind]()), State(STARTS[kind]())
        for _ in range(2):
            x = np.linspace(0.5, 2, 4)
            assert outcome(traced, mine, x) == outcome(program, theirs, x)


@pytest.mark.parametrize("program", [relaxes, gives_it, writes_the_argument, twice, with_the_one_before, keeps_one])
def test_the_argument_is_what_stands_there(program):
    traced = jl.jit(program)
    for _ in range(3):
        mine, theirs = State(), State()
        assert outcome(traced, mine, mine.v) == outcome(program, theirs, theirs.v)
        mine.u, theirs.u = mine.v, theirs.v
        assert outcome(traced, mine, mine.u) == outcome(program, theirs, theirs.u)
        assert outcome(traced, mine, np.ones(4)) == outcome(program, theirs, np.ones(4))


@pytest.mark.parametrize("program", WHOLE, ids=lambda program: program.__name__)
def test_it_is_captured_whole(program):
    traced, state = jl.jit(program), State()
    for n in range(4):
        outcome(traced, state, np.linspace(0.5, 2, 4) + n)
    assert len(traced.ledger.pieces) == 0 and traced.experimental_get_tracing_count() <= 3


def test_an_interrupt_leaves_the_first_turns(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    state, seen = State(), set()

    def program(x):
        for k in range(8):
            state.n = k
            state.v = state.v + x
        return state.v

    traced = jl.jit(program)

    def called():
        state.n, state.v = -1, np.zeros(3)
        try:
            traced(np.ones(3))
        finally:
            assert state.v[0] in (state.n, state.n + 1) and (state.v == state.v[0]).all()
            seen.add(state.n)

    for _ in range(3):
        called()
    with at_event(0) as counter:
        called()
    for number in range(1, counter.seen.value + 1):
        with contextlib.suppress(KeyboardInterrupt), at_event(number):
            called()
    called()
    assert len(seen) == 9
