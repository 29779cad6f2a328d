"""What `extend`, `update`, `setdefault`, `discard` and `clear` give a list, dict, set or deque waits for the compiled part."""

import copy
from collections import OrderedDict, deque

import numpy as np
import pytest

import jitlab as jl
from tests.api.test_put_off_steps import outcome


class Box:
    def __init__(self):
        self.rows, self.table, self.seen, self.last = [], {"n": 1, "in": {"a": [1]}}, {3, "a"}, deque(maxlen=5)

    def __repr__(self):
        return f"{self.rows} {self.table} {sorted(map(str, self.seen))} {self.last}"


class Sub(list):
    def extend(self, items):
        print("extending")
        super().extend(items)


class Gives:
    def __iter__(self):
        print("asked")
        return iter([1, 2])

    def keys(self):
        print("asked for keys")
        return ["k"]

    def __getitem__(self, key):
        return 5


def extends(x, b, out):
    y = x * 2
    out.extend([y.sum(), y, 3, "a"])
    out.extend((y.max(), None))
    b.rows.extend([])
    b.rows.extend(y)
    b.last.extend([1, y[0]])
    return y + 1


def extends_by_whole_values(x, b, out):
    y = x * 2
    pair = [y[0], y]
    out.extend(pair)
    out.extend("ab")
    b.rows.extend((1, y.sum()))
    out.extend(y.shape)
    return y + 1, pair


def changes_what_it_gave(x, b, out):
    y = x * 2
    pair = [y[0], 1]
    out.extend(pair)
    pair.append(2)
    out.extend(y)
    y[0] = 100
    out.extend(y)
    return y, pair


def extends_by_rows(x, b, out):
    y = np.outer(x, x)
    out.extend(y)
    b.rows.extend(list(y[0]))
    return y + 1


def extends_by_itself(x, b, out):
    y = x * 2
    out.extend(out)
    b.rows.extend(b.rows)
    b.rows.append(b.rows)
    return y.sum()


def extends_by_others(x, b, out):
    y = x * 2
    out.extend(Gives())
    out.extend(k for k in range(3))
    out.extend({5: 6})
    out.extend(range(2))
    out.extend({7})
    return y + 1


def extends_by_no_items(x, b, out):
    y = x * 2
    out.append(1)
    out.extend(y.sum())
    out.append(2)
    return y


def updates(x, b, out):
    y = x * 2
    b.table.update(loss=y.sum(), n=2)
    b.table.update({"y": y, 3: y.max()})
    more = {"z": y[0]}
    b.table.update(more)
    more["z"] = 9
    return y + 1, more


def updates_by_others(x, b, out):
    y = x * 2
    b.table.update([("p", y[0])])
    b.table.update(Gives())
    b.table.update({y.size: 1}, a=2)
    b.table.update()
    return y


def sets_defaults(x, b, out):
    y = x * 2
    b.table.setdefault("n", y[0])
    b.table.setdefault("m", y)
    b.table.setdefault(("t", 1), [y])
    b.table.setdefault("l", []).append(y.sum())
    return y + 1


def discards(x, b, out):
    y = x * 2
    b.seen.add("b")
    b.seen.discard("a")
    b.seen.discard("no")
    b.seen.discard(float(y[0]))
    b.seen.add((1, float(y[1])))
    return y + 1


def discards_what_has_no_hash(x, b, out):
    y = x * 2
    b.seen.add(1)
    b.seen.discard(y)
    b.seen.add(2)
    return y


def clears(x, b, out):
    y = x * 2
    out.clear()
    out.append(y.sum())
    b.table.clear()
    b.table["in"] = y
    b.seen.clear()
    b.last.clear()
    b.last.appendleft(y[0])
    return y + 1


def reads_what_it_filled(x, b, out):
    y = x * 2
    out.extend([y.sum(), 1])
    n = len(out)
    b.table.update(a=n)
    return b.table["a"] * y


def removes_what_is_not_there(x, b, out):
    y = x * 2
    out.append(y.sum())
    b.table["in"]["a"].extend([y[0], y[1]])
    b.table["in"]["b"].extend([y[0]])
    return y


def in_turns(x, b, out):
    for k in range(20):
        x = x * 0.9 + 0.1
        out.extend((x.min(), k))
        b.rows.extend([x[0], "a", (k, x[1])])
        b.rows.extend(x * k)
        b.table.update(last=x.sum(), k=k)
        b.table.update({"max": float(x.max())})
        b.table.setdefault(k % 3, x[0])
        b.last.append(k)
        b.seen.add(k % 4)
        b.seen.discard((k + 1) % 4)
    return x


def clears_in_turns(x, b, out):
    for k in range(20):
        x = x * 0.9 + 0.1
        if k % 5 == 0:
            out.clear()
        if x[0] > 1:
            out.extend([x[0], k])
            b.rows.insert(0, x[1])
    return x


def raises_in_a_turn(x, b, out):
    for k in range(20):
        x = x * 0.9
        out.extend([k, x[0]])
        b.table.update(k=k)
        b.rows[k - 3].extend([k])
    return x


def gives_an_array_of_all_turns(x, b, out):
    for k in range(20):
        y = x * k
        out.extend([y, y])
    return x


METHODS = [
    extends, extends_by_whole_values, changes_what_it_gave, extends_by_rows, extends_by_itself, extends_by_others,
    extends_by_no_items, updates, updates_by_others, sets_defaults, discards, discards_what_has_no_hash, clears,
    reads_what_it_filled, removes_what_is_not_there, in_turns, clears_in_turns, raises_in_a_turn, gives_an_array_of_all_turns,
]  # fmt: skip


def boxes(kind):
    made = Box()
    made.rows = kind(made.rows)
    if kind is Sub:
        made.table, made.seen = OrderedDict(made.table), frozenset(made.seen)
    return made


@pytest.mark.parametrize("settle", ["off", "measure"])
@pytest.mark.parametrize("kind", [list, Sub], ids=["plain", "subclassed"])
@pytest.mark.parametrize("program", METHODS, ids=lambda program: program.__name__)
def test_each_gets_what_python_gives(monkeypatch, program, kind, settle):
    monkeypatch.setattr(jl.config, "settle", settle)
    traced = jl.jit(program)
    mine, theirs = (boxes(kind), kind()), (boxes(kind), kind())
    for n in range(6):
        x = np.linspace(0.5, 2, 4) + n % 3
        if n == 4:
            mine, theirs = (boxes(kind), kind([7.5])), (boxes(kind), kind([7.5]))
        found, wanted = outcome(traced, x.copy(), *mine), outcome(program, x.copy(), *theirs)
        assert found == wanted, n


@pytest.mark.parametrize("program", [extends, discards, clears, in_turns], ids=lambda program: program.__name__)
def test_it_is_captured_whole(program):
    traced, box = jl.jit(program), boxes(list)
    for n in range(4):
        outcome(traced, np.linspace(0.5, 2, 4) + n, box, [])
    assert (traced.experimental_get_tracing_count(), len(traced.ledger.pieces)) == (1, 0)


def test_an_array_that_was_given_is_the_array():
    def program(x, out, rows):
        y = x * 2
        out.extend([y, (y, 1)])
        out.extend([x])
        rows.update(y=y)
        return y

    traced = jl.jit(program)
    for _ in range(4):
        x, out, rows = np.arange(3.0), [], {}
        y = traced(x, out, rows)
        assert out[0] is y and out[1][0] is y and out[2] is x and rows["y"] is y


def test_the_same_list_under_two_names():
    def program(x, one, other):
        one.extend([x[0], 1])
        other.append(x.sum())
        one.clear()
        other.extend([3])
        return x * 2

    traced = jl.jit(program)
    for same in (False, True, False, True):
        one = []
        lists = [one, one if same else []]
        expected = copy.deepcopy(lists)
        outcome(traced, np.ones(3), *lists)
        outcome(program, np.ones(3), *expected)
        assert repr(lists) == repr(expected)
