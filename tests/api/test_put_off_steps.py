"""What an object has of a name, changed (`self.n += 1`, `self.n = self.n + 1`, `self.v *= 0.9`), also in loops and branches."""

import contextlib
import copy
import io
import re

import numpy as np
import pytest

import jitlab as jl


class Meter:
    of_the_class = 5

    def __init__(self):
        self.n, self.total, self.mixed, self.best, self.wait, self.flag = 0, 0.0, 0, None, 0, False
        self.large, self.mean, self.small, self.byte = 2**63 - 20, np.float64(1), np.float32(2), np.int8(120)
        self.v, self.words, self.text, self.pair, self.same = np.arange(4.0), [], "", (), None
        self.inner = None

    def __repr__(self):
        return "a meter"

    def update(self, value, n=1):
        self.total += value * n
        self.n += n
        self.mean = self.total / self.n

    def tick(self):
        self.n += 1
        return self.n

    @property
    def looked_after(self):
        return self.n

    @looked_after.setter
    def looked_after(self, value):
        self.n = value * 2


class Slots:
    __slots__ = ("n", "v")

    def __init__(self):
        self.n, self.v = 0, np.arange(4.0)

    def __repr__(self):
        return "slots"


class Loud(Meter):
    def __setattr__(self, name, value):
        if name == "n":
            print("n is", value)
        object.__setattr__(self, name, value)


def outcome(function, *args):
    """What a call gives, prints, raises and leaves: all types and ints as they are, floats to twelve digits."""
    text, result, raised = io.StringIO(), None, None
    with contextlib.redirect_stdout(text):
        try:
            result = function(*args)
        except Exception as error:
            raised = type(error), str(error)
    left = [fields_of(x) for x in args]
    return re.sub(r"\d+\.\d{6,}", lambda digits: f"{float(digits[0]):.11g}", repr((result, left, raised, text.getvalue())))


def fields_of(x):
    if isinstance(x, Slots):
        return [getattr(x, name, None) for name in Slots.__slots__]
    return vars(x) if isinstance(x, Meter) else x


def counts(m, x):
    y = np.tanh(x)
    m.n += 1
    m.total += y.sum()
    m.n = m.n + 2
    return y * m.n


def averages(m, x):
    y = np.tanh(x)
    m.update(float(y.mean()), len(x))
    m.update(float(y.max()))
    return y + m.mean


def adam(m, x):
    m.n += 1
    m.v = 0.9 * m.v + 0.1 * x
    step = m.v / (1 - 0.9**m.n)
    m.same = step
    return step


def in_place(m, x):
    m.same = m.v
    m.v *= 0.9
    m.v -= x
    return m.v.sum(), m.v is m.same, m.v


def of_other_types(m, x):
    m.words += [x.sum()]
    m.text += "a"
    m.pair += (x.max(), 1)
    m.mixed += x[0]
    m.flag |= True
    m.flag += 1
    m.byte += 3
    m.small *= 2
    m.mean //= 3
    return x


def of_the_class(m, x):
    m.of_the_class += 1
    return x * m.of_the_class


def large_ints(m, x):
    y = x * 2
    m.large += 15
    return y, m.large


def by_zero(m, x):
    y = x * 2
    m.n += 1
    m.total = m.n / (m.n - 3)
    return y


def of_no_such_name(m, x):
    y = x * 2
    m.n += 1
    m.nothing += 1
    return y


def by_a_property(m, x):
    m.looked_after += 1
    return x * m.n


def of_two_names(m, x):
    o = m
    m.n += 1
    o.n += 1
    return x * (m.n + o.n)


def turns(m, x):
    for _ in range(20):
        x = x * 0.9 + 0.1
        m.n += 1
        m.total += x.sum()
        m.mean = m.mean + x[0]
    return x


def turns_of_a_method(m, x):
    for k in range(20):
        x = x * 0.9 + 0.1
        m.update(float(x.mean()), 4)
        if k % 5 == 0:
            print(m.n, m.mean)
    return x * m.n, m.total


def turns_start_anew(m, x):
    m.n = 0
    for _ in range(20):
        x = x * 0.9
        m.n = m.n + 1
    m.total = float(m.n)
    for _ in range(17):
        m.total += x[1]
        m.n -= 1
    return x, m.n, m.total


def turns_of_other_kinds(m, x):
    for k in range(20):
        m.mixed += x[k % 4]
        m.flag = m.flag + 1
        m.small = m.small + x[0]
        m.byte += np.int8(1)
    return m.mixed, m.flag, m.small


def turns_of_large_ints(m, x):
    for _ in range(30):
        x = x * 0.9
        m.large += 1
    return x


def turns_by_zero(m, x):
    for k in range(20):
        x = x * 0.9
        m.n += 1
        m.total += 1 / (m.n - 45 + k * 0)
    return x


def turns_in_turns(m, x):
    for _ in range(18):
        m.wait = 0
        for _ in range(17):
            x = x * 0.99
            m.wait += 1
            m.n += m.wait
        m.total += x.sum() * m.wait
    return x, m.n


def turns_with_a_choice(m, x):
    for k in range(20):
        x = x * 0.9 + k % 3
        if x.sum() > 4:
            m.n += 1
            m.total += x.sum()
        else:
            m.wait += 2
        if x[0] > 1.5:
            continue
        m.mean = m.mean + 1
    return x, m.n, m.wait


def patience(m, x):
    m.best = 1e9
    m.wait = 0
    for _ in range(30):
        x = x * 0.8 + 0.1
        loss = float(x.sum())
        if loss < m.best - 1e-3:
            m.best = loss
            m.wait = 0
        else:
            m.wait += 1
        if m.wait > 5:
            break
    return x, m.best, m.wait


def one_choice(m, x):
    y = x * 2
    if y.sum() > 12:
        m.n += 1
        m.best = y.sum()
    else:
        m.wait = m.wait + 1
        m.mixed = y.max()
    return y, m.n + m.wait


def while_it_lasts(m, x):
    m.n = 0
    while x.sum() > 1:
        x = x * 0.9
        m.n += 1
        m.total = m.total + x[0]
    return x, m.n


def turns_in_place(m, x):
    m.same = m.v
    for _ in range(20):
        m.v *= 0.9
        m.v += x
    return m.v, m.same is m.v


def turns_with_new_arrays(m, x):
    for _ in range(20):
        m.v = m.v * 0.9 + x
        m.n += 1
    return m.v


def turns_that_read_first(m, x):
    out = []
    for k in range(20):
        out.append(m.n)
        m.n = m.n + k
        x = x + m.n
    return out, x


def turns_that_print(m, x):
    for k in range(20):
        m.n += 1
        print(k, m.n)
        m.words.append(m.n)
        m.total += 0.5
        m.words.append(m.total)
    return x * m.n


def turns_of_two(m, x):
    o = m.inner or m
    for _ in range(20):
        m.n += 1
        o.n += 2
        x = x * 0.9
    return x


def turns_store_a_text(m, x):
    for k in range(20):
        m.text = f"{k}"
        m.best = None
        x = x * 0.5
    m.text += "!"
    return x


def turns_look_into_vars(m, x):
    for _ in range(20):
        m.n += 1
        x = x + vars(m)["n"]
    return x


def turns_with_a_tick(m, x):
    y = x * 0
    for _ in range(20):
        y = y + m.tick() * x
    return y


def turns_delete(m, x):
    for _ in range(20):
        m.n += 1
        x = x * 0.9
    del m.n
    m.n = 7
    return x


def raises_in_a_turn(m, x):
    for k in range(20):
        m.n += 1
        x = x * 0.9
        m.total += [1, 2, 3][k // 6]
    return x


STEPS = [
    counts, averages, adam, in_place, of_other_types, of_the_class, large_ints, by_zero, of_no_such_name, by_a_property,
    of_two_names, turns, turns_of_a_method, turns_start_anew, turns_of_other_kinds, turns_of_large_ints, turns_by_zero,
    turns_in_turns, turns_with_a_choice, patience, one_choice, while_it_lasts, turns_in_place, turns_with_new_arrays,
    turns_that_read_first, turns_that_print, turns_of_two, turns_store_a_text, turns_look_into_vars, turns_with_a_tick,
    turns_delete, raises_in_a_turn,
]  # fmt: skip


@pytest.mark.parametrize("kind", [Meter, Loud, Slots], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("program", STEPS, ids=lambda program: program.__name__)
def test_what_an_object_has_is_what_python_leaves(monkeypatch, program, kind):
    monkeypatch.setattr(jl.config, "settle", "off")
    traced = jl.jit(program)
    mine, theirs = kind(), kind()
    for n in range(6):
        x = np.linspace(0.5, 2, 4) + n % 3
        if n == 4:
            mine, theirs = kind(), kind()
        if n == 5 and kind is Meter:
            mine.inner, theirs.inner = Meter(), Meter()
        found, wanted = outcome(traced, mine, x.copy()), outcome(program, theirs, x.copy())
        assert found == wanted, n


WHOLE = [
    counts, averages, adam, turns, turns_of_a_method, turns_start_anew, turns_in_turns, turns_with_a_choice, patience,
    one_choice, while_it_lasts, turns_that_print, turns_with_a_tick,
]  # fmt: skip


@pytest.mark.parametrize("program", WHOLE, ids=lambda program: program.__name__)
def test_it_is_captured_whole(program):
    traced, meter = jl.jit(program), Meter()
    for n in range(4):
        outcome(traced, meter, np.linspace(0.5, 2, 4) + n)
    assert len(traced.ledger.pieces) == 0 and traced.experimental_get_tracing_count() <= 3


@pytest.mark.parametrize("first", [0, 2**62, 2**63 - 3, -(2**63), 2**70])
def test_ints_grow_beyond_64_bits_as_pythons_do(first):
    traced = jl.jit(turns)
    mine, theirs = Meter(), Meter()
    for n in (0, first, 5):
        mine.n = theirs.n = n
        for _ in range(2):
            assert outcome(traced, mine, np.ones(4)) == outcome(turns, theirs, np.ones(4))
        assert (type(mine.n), mine.n) == (int, n + 40)


def test_another_object_is_read_as_it_is():
    traced = jl.jit(turns_of_a_method)
    for _ in range(5):
        mine, theirs = Meter(), Meter()
        mine.total = theirs.total = np.float64(3)
        assert outcome(traced, mine, np.ones(4)) == outcome(turns_of_a_method, theirs, np.ones(4))


def test_a_class_that_gets_the_name_later():
    """An array that is changed in place is not stored again, as long as it is the object's own."""

    class Own:
        pass

    def program(o, x):
        o.v += x
        return o.v * 2

    traced, mine = jl.jit(program), Own()
    mine.v = np.zeros(3)
    for n in range(3):
        np.testing.assert_array_equal(traced(mine, np.ones(3)), np.full(3, 2.0 * (n + 1)))
    kept = mine.v
    Own.v = kept
    del mine.v
    np.testing.assert_array_equal(traced(mine, np.ones(3)), np.full(3, 8.0))
    assert vars(mine)["v"] is kept


def test_an_inner_object_is_not_the_outer_one():
    traced, mine = jl.jit(turns_of_two), Meter()
    mine.inner = Meter()
    theirs = copy.deepcopy(mine)
    for _ in range(3):
        assert outcome(traced, mine, np.ones(4)) == outcome(turns_of_two, theirs, np.ones(4))
    assert (mine.n, mine.inner.n) == (theirs.n, theirs.inner.n) == (60, 120)
