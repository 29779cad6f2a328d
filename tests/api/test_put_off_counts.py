"""Counts and histories (`d[k] += v`, `d[k] = d.get(k, 0) + 1`, `d.setdefault(k, []).append(v)`, `items += [v]`) are given out
as Python does it, and cut nothing where what stands there is plain."""

import contextlib
import copy
import io
import traceback
import warnings
from collections import Counter, defaultdict, deque

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

TOTALS = {"n": 0}
NAMES = []


class Box:
    def __init__(self):
        self.items, self.log, self.n = [], {"n": 0, "loss": []}, 0


class Told(Box):
    """What is stored is told."""

    def __setattr__(self, name, value):
        print("set", name)
        object.__setattr__(self, name, value)


class Loud:
    """A value that tells when something is added to it."""

    def __init__(self, value=0):
        self.value = value

    def __iadd__(self, other):
        print("added", other)
        self.value += other
        return self

    def __add__(self, other):
        print("plus", other)
        return Loud(self.value + other)

    def __repr__(self):
        return f"Loud({self.value})"


class Lists(list):
    def append(self, x):
        print("append", x)
        super().append(x)

    def __iadd__(self, other):
        print("iadd", other)
        return super().__iadd__(other)


class Table(dict):
    def __setitem__(self, key, value):
        print("item", key)
        super().__setitem__(key, value)


class Counts(Counter):
    __repr__ = dict.__repr__


# ---- statements one after the other
def adds(x, d):
    y = x * 2
    d["n"] += 1
    d["sum"] = d["sum"] + y.sum()
    d["best"] = max(d["best"], y.max())
    d["low"] = min(float(y[0]), d["low"])
    d["half"] /= 2
    return y + 1


def adds_there_or_nothing(x, d):
    y = x * 2
    d["calls"] = d.get("calls", 0) + 1
    d["total"] = y.sum() + d.get("total", 0.0)
    d.setdefault("sums", []).append(y.sum())
    d.setdefault("seen", set()).add(float(y[0]))
    d.setdefault("all", []).extend([y, 1])
    return y


def adds_global(x, d):
    y = x * 2
    TOTALS["n"] += 1
    TOTALS["n"] += y.sum()
    return y


def adds_to_lists(x, d):
    y = x * 2
    d["list"] += [y.sum()]
    d["list"] += [y, (1, y[0])]
    return y


def adds_by_traced_key(x, d):
    y = x * 2
    key = y[1]
    d[key] = d.get(key, 0) + 1
    d[float(key)] += y.sum()
    d[int(key), "a"] = d.get((int(key), "a"), 0) - 1
    return y


def misses(x, d):
    y = x * 2
    d["n"] += 1
    d["absent"] += y.sum()
    d["n"] += 1
    return y


def divides_by_nothing(x, d):
    y = x * 2
    d["n"] += 1
    d["n"] //= int(y[0])
    d["n"] += 1
    return y


def reads_behind(x, d):
    y = x * 2
    d["n"] += y.sum()
    return y * d["n"], len(d)


def of_other_kinds_between(x, d):
    y = x * 2
    d["n"] = y
    d["n"] += 1
    return y


def of_other_kinds_behind(x, d):
    y = x * 2
    d["n"] += 1
    d["n"] = y
    d["n"] += 1
    d["m"] = "text"
    d["m"] += "s"
    return y


def holds_what_is_read(x, d):
    y = x * 2
    d.setdefault("list", []).append(y.sum())
    return y * len(d["list"])


def array_in_a_dict(x, d):
    y = x * 2
    d["array"] += y
    return y, d["array"] * 2


# ---- turns
def counts(x, d):
    for k in range(20):
        x = x + 1
        d[k % 3] = d.get(k % 3, 0) + 1
    return x


def counts_by_data(x, d):
    for _ in range(20):
        x = x + 1
        key = int(x[1]) % 5
        d[key] = d.get(key, 0) + 1
        if x[0] % 2 > 0:
            d["odd"] += 1
        else:
            d["even"] -= x[0]
    return x


def groups(x, d):
    for k in range(20):
        x = x + 1
        d.setdefault(k % 4, []).append(x.sum())
        d.setdefault("arrays", []).append(x * 2)
    return x


def grows(x, d):
    for _ in range(20):
        x = x + 1
        d["list"] += [x.sum()]
        d["list"] += [x[0], x[1]]
    return x


def misses_in_a_turn(x, d):
    for k in range(20):
        x = x + 1
        d["n"] += k
        d[k % 13 - 3 if k < 9 else "gone"] = k
        d[k - 3] += 1
    return x


def divides_in_a_turn(x, d):
    for k in range(20):
        x = x + 1
        d["n"] += 1.0
        d["half"] /= 7 - k
    return x


def large(x, d):
    for _ in range(70):
        x = x + 1
        d["n"] *= 2
        d["n"] += 1
        d["best"] = max(d["best"], x[0])
    return x


def other_kinds_in_turns(x, d):
    for k in range(20):
        x = x + 1
        d["n"] += 1
        if k % 5 == 4:
            d["n"] = x * 1
    return x


# ---- of the function's own
def own_counts(x, d):
    c = {}
    for _ in range(20):
        x = x + 1
        key = int(x[0]) % 3
        c[key] = c.get(key, 0) + 1
    return c, x


def own_counts_from(x, d):
    c, e = {"odd": 0, "sum": 0.0}, {"odd": 0}
    for k in range(20):
        x = x + 1
        if x[0] % 2 > 0:
            c["odd"] += 1
            e["odd"] += k
        c["sum"] += x.sum()
    c["end"] = x[0]
    c["odd"] += 1
    return c, e, c


def own_histories(x, d):
    h = {"loss": [], "k": [5], "best": None}
    for k in range(20):
        x = x * 0.5
        h["loss"].append(x.sum())
        h["k"] += [k]
        if x[0] < 0.1:
            h["best"] = k
    h["loss"].append(1)
    h["x"] = x
    return {"h": h, "x": x}


def own_groups(x, d):
    g = {}
    for k in range(20):
        x = x + 1
        g.setdefault(k % 3, []).append(x[0])
    return g


def own_table(x, d):
    t = {}
    for k in range(20):
        x = x + 1
        t[k] = x[0]
        t["last"] = k
    return t


def own_list(x, d):
    items, more = [], [0]
    for k in range(20):
        x = x + 1
        items += [x.sum()]
        more += [k, x[0]]
        more.insert(0, -k)
    items += [1.5]
    return items, more


def own_list_read(x, d):
    items = []
    for _ in range(20):
        x = x + 1
        items += [x.sum()]
    return x * items[-1], np.array(items), len(items)


def own_misses(x, d):
    c = {"n": 0}
    for k in range(20):
        x = x + 1
        c["n"] += k
        c[k % 7] += 1
    return c


def own_misses_before_a_write(x, d):
    c, items = {0: 0}, [1, 2]
    for k in range(20):
        c[k // 20] += 1
        items[k // 10] = x[0] + k
    c["gone"] += 1
    x[1] = 9
    return c, items


def own_index_before_a_write(x, d):
    items = [1, 2]
    for k in range(20):
        items[k // 5] = x[0] + k
    x[1] = 9
    return items


def own_of_all_kinds(x, d):
    info = {"n": 0, "done": False, "sums": []}
    for _ in range(20):
        x = x * 0.5
        info["n"] += 1
        info["sums"].append(x.sum())
        if x.sum() < 0.5:
            info["done"] = True
            break
    return x, info


def stops_early(x, d):
    best, wait, history = float("inf"), 0, {"loss": [], "best": []}
    for k in range(30):
        loss = float(np.abs(x - k).sum())
        history["loss"].append(loss)
        if loss < best:
            best, wait = loss, 0
            history["best"].append(k)
        else:
            wait += 1
            if wait >= 3:
                break
        x = x * 0.5
    history["turns"] = k
    return x, best, history


def own_of_others(x, d):
    inner = []
    h = {"loss": inner, "n": 0}
    for k in range(20):
        x = x + 1
        h["loss"].append(k)
        h["n"] += len(inner)
    return h, x


def own_exchanged(x, d):
    inner, h = [], {"loss": []}
    for k in range(20):
        x = x + 1
        h["loss"] = inner
        h["loss"].append(k)
        x = x + len(inner)
    return h, x


def own_groups_of_others(x, d):
    inner, g = [7], {}
    g["a"] = inner
    for k in range(20):
        x = x + len(inner)
        g.setdefault("a", []).append(k)
    return g, x


def of_two_levels(x, d):
    for k in range(20):
        x = x + 1
        d["deep"]["list"].append(x.sum())
        d["deep"]["n"] += 1
        d["deep"]["last"] = k
        d["n"] += 1
    d["deep"]["list"].append(0)
    return x


def of_two_levels_exchanged(x, d):
    for k in range(20):
        x = x + 1
        d["deep"]["list"].append(x.sum())
        d["deep"]["list"] = [k] if k == 10 else []
        d["deep"]["n"] += 1
    return x


def of_two_levels_by_any_key(x, d):
    for k in range(20):
        x = x + 1
        d["deep"]["list"].append(x.sum())
        d["deep"]["list" if k == 10 else "n"] = []
    d["deep"]["list"].append(1)
    return x


def start():
    deep = {"list": [], "n": 0}
    return {"deep": deep, "n": 0, "sum": 0, "best": 0.0, "low": 9.0, "half": 3, "list": [], "odd": 0, "even": 1.5}


STRAIGHT = (
    adds, adds_there_or_nothing, adds_global, adds_to_lists, adds_by_traced_key, misses, divides_by_nothing, reads_behind,
    of_other_kinds_between, of_other_kinds_behind, holds_what_is_read,
)  # fmt: skip
TURNS = (
    counts, counts_by_data, groups, grows, misses_in_a_turn, divides_in_a_turn, large, other_kinds_in_turns,
    of_two_levels, of_two_levels_exchanged, of_two_levels_by_any_key,
)  # fmt: skip
OWN = (
    own_counts, own_counts_from, own_histories, own_groups, own_table, own_list, own_list_read, own_misses,
    own_of_all_kinds, stops_early, own_misses_before_a_write, own_index_before_a_write, own_of_others,
    own_exchanged, own_groups_of_others,
)  # fmt: skip


def outcome(function, *args):
    """What calls give, print, warn of, raise and leave."""
    TOTALS.clear()
    TOTALS["n"] = 0
    NAMES.clear()
    text, result, raised = io.StringIO(), None, None
    with contextlib.redirect_stdout(text), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as error:
            entries = traceback.extract_tb(error.__traceback__)[1:]
            raised = type(error), str(error), [(entry.name, entry.lineno) for entry in entries if entry.filename == __file__]
    left = [vars(x) if isinstance(x, Box) else x for x in args]
    told = [(w.category, str(w.message), w.lineno) for w in warned]
    return repr((result, left, TOTALS, NAMES, raised, told)), text.getvalue(), shared((result, args))


def shared(x):
    """Which places hold one object."""
    known, found = {}, []

    def walk(x, at):
        if isinstance(x, (list, tuple, dict, np.ndarray, Box)):
            found.append((at, known.setdefault(id(x), at)))
            items = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, (list, tuple)) else ()
            for key, item in items:
                walk(item, (*at, key))

    walk(x, ())
    return [pair for pair in found if pair[0] != pair[1]]


@pytest.mark.parametrize("function", [*STRAIGHT, *TURNS, *OWN])
def test_counts_are_what_python_counts(function):
    compiled, mine, others = jl.jit(function), start(), start()
    for n in range(5):
        x = np.array([n, 2.0, 3.0])
        assert outcome(compiled, x.copy(), mine) == outcome(function, x.copy(), others)


@pytest.mark.parametrize("function", [*STRAIGHT[:5], *TURNS[:4], *OWN[:7], own_of_all_kinds, stops_early, of_two_levels])
def test_they_cut_nothing(function):
    numbers = {key: value for key, value in start().items() if key not in ("list", "deep")} | {4.0: 1}
    d = {} if function is groups else numbers if function in (adds_by_traced_key, counts, counts_by_data) else start()
    report = jl.explain(jl.jit(function), np.array([1.0, 2.0, 3.0]), d)
    assert {statement.reason.code for statement in report.statements} <= {"put_off"}


VALUES = {
    "array": lambda: np.ones(3), "number": lambda: np.float32(3), "int8": lambda: np.int8(3), "text": lambda: "a",
    "nothing": lambda: None, "loud": Loud, "list": list, "lists": Lists, "tuple": lambda: (1,), "flag": lambda: True,
    "large": lambda: 10**30, "complex": lambda: 1j, "nan": lambda: np.nan, "zero": lambda: np.zeros(()),
}  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "function",
    [adds, adds_there_or_nothing, adds_to_lists, counts_by_data, groups, grows, reads_behind, array_in_a_dict],
)
def test_whatever_stands_there(function, value):
    compiled, x = jl.jit(function), np.array([1.0, 2.0, 3.0])
    make = VALUES[value]
    tables = []
    for _ in range(2):
        held = make()
        d = start() | dict.fromkeys(["n", "sum", "sums", "odd", "list", "arrays", "array", 1, 2], held)
        tables.append((d, held))
    for _ in range(3):
        (mine, _), (others, _) = tables
        assert outcome(compiled, x, start()) == outcome(function, x, start())  # traced for numbers
        assert outcome(compiled, x, mine) == outcome(function, x, others)
        assert repr(tables[0]) == repr(tables[1])


@pytest.mark.parametrize("kind", [Table, lambda d: defaultdict(int, d), lambda d: defaultdict(list, d), Counts])
@pytest.mark.parametrize("function", [adds, adds_there_or_nothing, counts, groups])
def test_dicts_of_other_classes(function, kind):
    compiled, x = jl.jit(function), np.array([1.0, 2.0, 3.0])
    mine, others = kind(start()), kind(start())
    for _ in range(3):
        assert outcome(compiled, x, mine) == outcome(function, x, others)
        assert outcome(compiled, x, start()) == outcome(function, x, start())


@pytest.mark.parametrize("kind", [Table, Counts])
def test_nothing_of_a_dicts_class_is_called_to_see_that_no_array_is_on_a_gpu(kind, monkeypatch):
    monkeypatch.setattr("jitlab.api.functions.dispatch.may_be_there", lambda: True)
    test_dicts_of_other_classes(adds, kind)


# ---- one object at several places
def gives_and_reads(x, d, other):
    y = x * 2
    d["n"] += 1
    d.setdefault("list", []).append(y.sum())
    d["list"] += [1]
    return y * len(other)


def adds_to_two(x, d, other):
    y = x * 2
    d["n"] += 1
    other["n"] = y
    d["n"] += 1
    return y


def turns_of_two(x, d, other):
    for k in range(20):
        x = x + 1
        d["n"] += 1
        other["m"] = k
        if k == 19:
            other["n"] = 2.5
    return x


@pytest.mark.parametrize("alike", [lambda d: d, lambda d: d["list"], lambda d: {"n": 1.0}, lambda d: [1]])
@pytest.mark.parametrize("function", [gives_and_reads, adds_to_two, turns_of_two])
def test_what_is_read_may_be_what_gets_something(function, alike):
    compiled, x = jl.jit(function), np.array([1.0, 2.0, 3.0])
    for _ in range(3):
        for other in (lambda d: {"n": 1.0, "list": []}, alike, lambda d: []):
            mine, others = start(), start()
            assert outcome(compiled, x, mine, other(mine)) == outcome(function, x, others, other(others))


# ---- lists that are added to where they stand
def adds_items(x, items):
    y = x * 2
    items += [y.sum()]
    items += [y, 1]
    return y


def adds_items_in_turns(x, items):
    for k in range(20):
        x = x + 1
        items += [x.sum()]
        if k % 2:
            items += [k, x[0]]
    return x


def adds_items_and_reads(x, items):
    for _ in range(20):
        x = x + 1
        items += [x.sum()]
    return x * len(items), items


def adds_numbers_to_an_array(x, items):
    items += [1, 2, 3]
    return items * 2, x * items


def gives_what_it_adds_to(x, items):
    y = x * 2
    items += [y[0]]
    return items, y


def binds_anew(x, items):
    y = x * 2
    same = items
    items += [y[0]]
    items = [1]
    items += [2]
    return same, items, y


ITEMS = (list, Lists, deque, lambda: np.ones(3), lambda: (1,), lambda: np.arange(3), lambda: "a", Loud)


@pytest.mark.parametrize("make", ITEMS)
@pytest.mark.parametrize(
    "function",
    [adds_items, adds_items_in_turns, adds_items_and_reads, adds_numbers_to_an_array, gives_what_it_adds_to, binds_anew],
)
def test_items_of_any_class(function, make):
    compiled, x = jl.jit(function), np.array([1.0, 2.0, 3.0])
    for kind in (list, make, make, list):
        mine, others = kind(), kind()
        assert outcome(compiled, x.copy(), mine) == outcome(function, x.copy(), others)


def adds_to_attributes(x, box):
    y = x * 2
    box.items += [y.sum()]
    box.log["loss"] += [y[0]]
    box.log["n"] += 1
    box.n += 1
    return y


def adds_to_attributes_in_turns(x, box):
    for k in range(20):
        x = x + 1
        box.items += [x.sum()]
        box.log["n"] += k
        box.log["loss"].append(k)
    return x


@pytest.mark.parametrize("kind", [Box, Told])
@pytest.mark.parametrize("function", [adds_to_attributes, adds_to_attributes_in_turns])
def test_containers_of_objects(function, kind):
    compiled, x = jl.jit(function), np.array([1.0, 2.0, 3.0])
    with contextlib.redirect_stdout(io.StringIO()):
        mine, others = kind(), kind()
    items = mine.items
    for _ in range(4):
        assert outcome(compiled, x, mine) == outcome(function, x, others)
    assert mine.items is items


# ---- NumPy's errors
def overflows(x, d):
    y = x * 2
    with np.errstate(over="ignore"):
        d["n"] += y[0]
        d["n"] += y[0]
    return y + 1


def overflows_aloud(x, d):
    y = x * 2
    d["n"] += y[0]
    d["n"] += y[0]
    return y + 1


@pytest.mark.parametrize("function", [overflows, overflows_aloud])
@pytest.mark.parametrize("over", ["warn", "raise", "ignore"])
def test_numpy_says_what_it_says(function, over):
    compiled, x = jl.jit(function), np.full(3, 8e307)
    for _ in range(3):
        with np.errstate(over=over):
            assert outcome(compiled, x, {"n": np.float64(0)}) == outcome(function, x, {"n": np.float64(0)})


# ---- cells
CELLS = (
    "y = x * 2\nd['n'] += 1\nd['sum'] = d.get('sum', 0) + y.sum()\nz = y + 1\n",
    "for k in range(20):\n    y = x * k\n    d[k % 3] = d.get(k % 3, 0) + y[0]\n    d['n'] += 1\n",
    "for k in range(20):\n    y = x * k\n    items += [y.sum()]\n    d.setdefault('all', []).append(k)\n",
    "for k in range(20):\n    y = x * k\n    d['n'] += 1\n    d[12 - k] += 1\n",
    "counts = {}\nfor k in range(20):\n    y = x * k\n    counts[k % 3] = counts.get(k % 3, 0) + 1\nz = counts[0]\n",
    "history = {'a': [], 'b': []}\nfor k in range(20):\n    y = x * k\n    history['a'].append(y[1])\n"
    "    history['b'] += [k]\n",
    "def told(x, d):\n    d['n'] += 1\n    return x * 2\ny = told(told(x, d), d)\nitems += [d['n']]\n",
    "if x[0] > 5:\n    d['n'] += 1\n    items += [1]\nelse:\n    d['m'] = d.get('m', 0) - 1\ny = x * 2\n",
)


@pytest.mark.parametrize("source", CELLS)
def test_cells(source):
    found = []
    for run in (lambda source, names: run_cell(source, names, "<counts>"), lambda source, names: exec(source, names)):
        names = {"x": np.array([1.0, 2.0, 3.0]), "d": {"n": 0, **dict.fromkeys(range(8, 13), 1)}, "items": []}
        raised, again = None, [names["d"], names["items"]]
        for _ in range(3):
            try:
                run(source, names)
            except Exception as error:
                raised = type(error), str(error)
        assert again[0] is names["d"] and again[1] is names["items"]
        shown = {name: value for name, value in names.items() if name not in ("__builtins__", "told")}
        found.append((repr(shown), raised))
    assert found[0] == found[1]


def test_a_long_table_is_looked_at_by_its_key():
    function, d = jl.jit(adds_there_or_nothing), {n: Loud() for n in range(5000)}
    others = copy.copy(d)
    for _ in range(3):
        assert outcome(function, np.ones(3), d) == outcome(adds_there_or_nothing, np.ones(3), others)
