"""What leaves a recording (names, results, containers, closures, errors, what it hands to other code) is Python's own.

A size that two arguments make (`n = image.shape[0] - k`) is an extent while a piece is captured. What is behind the piece has
sizes of its own: it has to find an int.
"""

from __future__ import annotations

import collections
import copy
import functools
import operator
import pickle
import queue

import numpy as np
import pytest
from same import assert_same

import jitlab as jl
from jitlab.errors import CaptureError
from tests.cell_runs import run_cell
from tests.left import assert_plain, ours_in

Pair = collections.namedtuple("Pair", "first second")

#: What `h` of the first piece is to the next one: of six numbers `a`, and a function of Python's that ends the piece.
USES = {
    "a factor": "a * h",
    "a shape": "np.zeros(h) + a[0]",
    "two axes": "(np.ones(h * h) + 1.0).reshape(h, h)",
    "a slice": "a[:h] * 2.0",
    "a slice from the end": "a[-h:] + 1",
    "a position": "a[h] + 1",
    "an axis that is filled": "np.full(h, 2.0) + a[:h]",
    "as many iterations": "sum([a[i] for i in range(h)])",
    "a result": "(h, a + 1)",
    "a repeat": "np.repeat(a[:2], h)",
    "a divisor": "(a.size // h, a % h)",
    "a size in a product": "np.ones((h, 2)) @ np.ones((2, h)) * a[1]",
}

#: Sizes as the program may get at them.
SIZES = {
    "a size less a number": "image.shape[0] - k",
    "a number less a size": "k + 10 - image.shape[0]",
    "sizes of two arrays": "image.shape[0] - kernel.shape[0] + k",
    "half": "(image.shape[0] - k) // 1",
    "a length": "len(image) - k",
    "a number of elements": "image.size // image.shape[1] - k",
    "unpacked": "(lambda shape: shape[0] - k)(image.shape)",
    "the larger": "max(image.shape[0] - k, 1)",
    "in a list": "[image.shape[0] - k, 0][0]",
    "in a slice": "slice(0, image.shape[0] - k).stop",
    "in a dict": "{'h': image.shape[0] - k}['h']",
}


def function_of(source: str):
    """A function whose source can be read."""
    import linecache

    name = f"<leaving {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"np": np, "Pair": Pair, "functools": functools, "operator": operator}
    exec(compile(source, name, "exec"), space)  # noqa: S102
    return space["f"]


def arguments(n=8):
    return np.zeros((n, 5)), np.ones((2, 2)), np.arange(36.0), 2


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("size", SIZES)
def test_a_size_that_crosses_into_the_next_piece_of_a_call_is_an_int(size, use):
    f = function_of(f"def f(image, kernel, a, k):\n    h = {SIZES[size]}\n    print(end='')\n    return {USES[use]}\n")
    jitted = jl.jit(f)
    for n in (8, 9, 8):
        got = jitted(*arguments(n))
        assert_same(got, f(*arguments(n)))
        assert_plain(got)


@pytest.mark.parametrize("use", USES)
def test_a_size_that_crosses_into_the_next_cell_is_an_int(use):
    mine, theirs = ({"np": np, **dict(zip(("image", "kernel", "a", "k"), arguments(), strict=True))} for _ in range(2))
    for n, cell in enumerate(("h = image.shape[0] - k", f"y = {USES[use]}", "z = h + 1\nprint(end='')\nw = np.ones(z)")):
        for _ in range(2):
            run_cell(cell, mine, f"<cell {n}>")
            exec(cell, theirs)
        mine.pop("__builtins__"), theirs.pop("__builtins__")
        assert_plain(mine)
        for name, value in theirs.items():
            if name != "np":
                assert_same(mine[name], value)


#: What may hold a size: in a result, in a name.
HOLDERS = {
    "a tuple": "(h, a)",
    "a list in a list": "[[h], h]",
    "a slice": "slice(0, h)",
    "slices in a tuple": "(slice(h, None), slice(None, h, 2))",
    "a slice of read numbers": "slice(m[0], m[1])",
    "a range": "range(h)",
    "a dict": "{'h': h, 'a': a + 1}",
    "a key of a dict": "{h: 1, (h, 'x'): 2}",
    "a set": "{h, 1}",
    "a frozen set": "frozenset([h, 1])",
    "a named tuple": "Pair(h, slice(h))",
    "shapes": "[image.shape, (image.size, len(image))]",
    "a partial function": "functools.partial(pow, h)(2)",
    "text": "f'{h} {m[0]}'",
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_a_call_gives_holds_ints(holder):
    f = function_of(
        "def f(image, kernel, a, k):\n    h = image.shape[0] - k\n    m = np.maximum(a[:2].astype(int) - k, 0).tolist()\n"
        f"    return {HOLDERS[holder]}\n"
    )
    jitted = jl.jit(f)
    for n in (8, 9, 8):
        got, want = jitted(*arguments(n)), f(*arguments(n))
        assert_same(got, want)
        assert repr(got) == repr(want)
        assert_plain(got)


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_a_cell_names_holds_ints_and_can_be_copied(holder):
    names = {"np": np, "Pair": Pair, "functools": functools}
    names.update(zip(("image", "kernel", "a", "k"), arguments(), strict=True))
    cell = f"h = image.shape[0] - k\nm = np.maximum(a[:2].astype(int) - k, 0).tolist()\nz = {HOLDERS[holder]}\nn = a[h] + 1"
    theirs = dict(names)
    exec(cell, theirs)
    for _ in range(3):
        run_cell(cell, names, "<cell>")
        names.pop("__builtins__")
        assert_plain(names)
        assert repr(names["z"]) == repr(theirs["z"])
        assert repr(pickle.loads(pickle.dumps(names["z"]))) == repr(copy.deepcopy(names["z"])) == repr(theirs["z"])


KEPT = {
    "a method of an array": "g = (a * 2).sum\nb = g()",
    "a method of a list": "out = []\ng = out.append\ng(1.5)",
    "a view of a dict": "d = {'a': a + 1}\ng = d.values()\nd['b'] = 5",
    "a partial function of an array": "g = functools.partial(np.add, a)\nb = g(1)",
    "an array of texts": "g = np.array(['a', 'b'])\ng[0] = 'c'\nb = a + 1",
    "a dict whose key an array gives": "g = {a[1].item(): 1}\nb = g[1.0]",
    "an iterator": "g = iter([a, a + 1])\nb = next(g)",
}


@pytest.mark.parametrize("what", KEPT)
@pytest.mark.parametrize("after", ["", "\nprint(end='')\nc = a * 2"])
def test_what_would_go_on_looking_at_a_recording_is_made_by_python(what, after):
    mine, theirs = ({"np": np, "functools": functools, "a": np.arange(4.0)} for _ in range(2))
    for _ in range(2):
        run_cell(KEPT[what] + after, mine, "<cell>")
        exec(KEPT[what] + after, theirs)
    assert_plain(mine)
    assert type(mine["g"]) is type(theirs["g"])
    for name in "abc":
        if name in theirs:
            assert_same(mine[name], theirs[name])


# ---- a function that is recorded for every call stores while it is recorded


class Log:
    """Keeps what it is told."""

    def __init__(self):
        self.told = []
        self.size = None

    def tell(self, *what, **more):
        self.told.append((what, more))


LOG, LIST, DICT = Log(), [], {}
SIZE = 0


def into_a_list(x):
    n = x.shape[0] + 1
    LIST.append(n)
    LIST.append([n, (n, slice(n))])
    LIST.extend((n, {"n": n}))
    LIST[0] = n
    return x[:n]


def into_a_list_that_grows_later(x):
    inner = []
    LIST.append(inner)
    inner.append(x.shape[0] * 2)
    inner.append({x.shape[0] + 2: {x.shape[0] * 3}})
    return x + 1


def into_a_dict(x):
    n = x.shape[0] + 1
    DICT["n"] = n
    DICT[n] = slice(0, n)
    DICT.setdefault("list", []).append(n)
    DICT.update(m=n)
    return x + 1


def into_attributes(x):
    LOG.size = x.shape[0] + 1
    LOG.shape = x.T.shape
    return x + 1


def through_a_method(x):
    LOG.tell(x.shape[0] + 1, shape=x.shape, part=slice(x.shape[0] * 2))
    return x + 1


def into_a_global_name(x):
    global SIZE
    SIZE = x.shape[0] + 1
    return x + 1


def into_a_closure(x):
    n = x.shape[0] + 1
    LIST.append(lambda m, by=n: m + n + by)
    return x + 1


def into_a_partial_function(x):
    LIST.append(functools.partial(operator.add, x.shape[0] + 1))
    return x + 1


def into_a_sorted_list(x):
    import bisect

    bisect.insort(LIST, x.shape[0] + 1)
    return x + 1


STORES = [
    into_a_list, into_a_list_that_grows_later, into_a_dict, into_attributes, through_a_method, into_a_global_name,
    into_a_closure, into_a_partial_function, into_a_sorted_list,
]  # fmt: skip


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("wrap", [jl.function, jl.jit])
def test_what_a_function_stores_outside_holds_ints(store, wrap):
    def clear():
        LIST.clear(), DICT.clear(), LOG.__init__()

    def left():
        called = [item(1) if callable(item) else item for item in LIST]
        return repr((called, DICT, vars(LOG), globals()["SIZE"]))

    clear()
    store(np.ones((5, 3)))
    want = left()
    clear()
    jitted = wrap(store)
    got = jitted(np.ones((5, 3)))
    assert left() == want
    assert_plain(got, LIST, DICT, LOG, globals()["SIZE"])
    clear()


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(
    "wrap", [lambda f: jl.jit(f, capture_mode="trace"), lambda f: jl.function(f, autograph=False)], ids=["trace", "unconverted"]
)
def test_what_a_function_stores_that_is_not_converted_holds_ints(store, wrap):
    for container in (LIST, DICT, vars(LOG)):
        container.clear()
    LOG.__init__()
    got = wrap(store)(np.ones((5, 3)))
    assert_plain(got, LIST, DICT, LOG, globals()["SIZE"])
    LIST.clear(), DICT.clear()


def test_a_counter_of_an_enclosing_function_holds_an_int():
    total = 0

    def add(x):
        nonlocal total
        total = total + x.shape[0]
        return x + 1

    jl.function(add)(np.ones((5, 3)))
    assert type(total) is int and total == 5


class TooLarge(Exception):
    def __init__(self, n, **more):
        super().__init__(n, more)
        self.n = n


RAISES = {
    "a size": "raise ValueError(x.shape[0] + k)",
    "a shape and a slice": "raise KeyError((x.shape, slice(x.shape[0])))",
    "an array": "raise ValueError('negative', x + 1, [x])",
    "an attribute": "raise TooLarge(x.shape[0] * 2, shape=x.shape)",
    "with a cause": "raise ValueError(x.shape[0]) from KeyError(x.shape[0] + 1)",
    "behind another": "try:\n        raise KeyError(x.shape[0])\n    except KeyError:\n        raise ValueError(x.shape)",
}


@pytest.mark.parametrize("what", RAISES)
@pytest.mark.parametrize("wrap", [jl.function, jl.jit])
def test_an_error_holds_ints_and_text(what, wrap):
    f = function_of(f"class TooLarge(Exception): pass\ndef f(x, k):\n    {RAISES[what]}\n")
    f.__globals__["TooLarge"] = TooLarge
    with pytest.raises(Exception) as plain:
        f(np.ones((5, 3)), 2)
    with pytest.raises(type(plain.value)) as found:
        wrap(f)(np.ones((5, 3)), 2)
    assert_plain(found.value)
    if wrap is jl.jit:
        assert repr(found.value) == repr(plain.value)
    assert "Extent" not in str(found.value) and "Tensor object" not in str(found.value)


def test_a_type_of_a_size_is_int():
    f = function_of("def f(x, k):\n    n = x.shape[0] + 1\n    return type(n) is int, isinstance(n, int), type(n - k) is int\n")
    assert jl.jit(f)(np.ones(5), 2) == (True, True, True)
    assert all(jl.function(f)(np.ones(5), 2))


def test_what_NumPy_runs_is_given_ints():
    seen = []

    def kept(row, n):
        seen.append(n)
        return row.sum() + n

    f = function_of("def f(x, kept):\n    return np.apply_along_axis(kept, 0, x, x.shape[0] + 1)\n")
    for wrap in (jl.function, jl.jit):
        np.testing.assert_array_equal(wrap(f)(np.ones((5, 3)), kept), f(np.ones((5, 3)), kept))
    assert seen and {type(n) for n in seen} == {int}


def test_the_walk_finds_what_is_ours_wherever_it_is():
    from jitlab.ir import Extent

    n = Extent.symbol("n0", 5)

    class Holder:
        __slots__ = ("n",)

    slotted = Holder()
    slotted.n = n
    error = ValueError("x")
    error.__cause__ = KeyError(n)
    objects = np.empty(2, object)
    objects[1] = [n]
    for x in (
        [n], {n: 1}, {"a": (n,)}, slice(n), {n}, functools.partial(pow, n), lambda: n, slotted, error, objects, Pair(1, n),
        [{"a": [lambda m=n: m]}], collections.deque([n]),
    ):  # fmt: skip
        assert len(ours_in(x)) == 1 and "Extent" in ours_in(x)[0], x
    assert ours_in([int(n), "a", None, np.arange(3), slice(1, 2), jl.jit(lambda x: x)]) == []


def test_a_function_that_would_give_the_index_of_a_loop_says_so():
    f = function_of(
        "def f(n, x):\n    y = {'a': 0}\n    for i in range(n):\n        x = x + 1\n        y = {'a': i}\n"
        "    return y['a'], x\n"
    )
    want = f(np.int64(4), np.ones(3))
    assert_same(jl.jit(f)(np.int64(4), np.ones(3)), want)
    try:
        got = jl.function(f)(np.int64(4), np.ones(3))
    except CaptureError as error:
        assert "Symbolic" not in str(error) and "LoopIndex" not in str(error)
    else:
        assert_plain(got)
        assert got[0] == want[0]


# ---- every way into something that was there before, or into other code

QUEUE, DEQUE, SET, SEEN = queue.Queue(), collections.deque(), set(), []


def seen(value, *, k=0):
    SEEN.append(k)
    return value


def extended(x):
    LIST.extend([x.shape[0] + 1])
    same = LIST
    same += [x.shape[0] + 2]
    LIST[0:0] = [x.shape[0] + 3, (x.shape,)]
    list.append(LIST, x.shape[0] + 4)
    list(map(LIST.append, [x.shape[0] + 5]))
    return x + 1


def updated(x):
    DICT.update({"a": x.shape[0] + 1, x.shape[0] + 2: [x.shape[0] + 3]})
    dict.__setitem__(DICT, "z", x.shape[0] + 1)
    DICT["memo"] = {}
    DICT["memo"][x.shape] = {x.shape[0]}
    DICT.setdefault(x.shape[0] + 9, []).append(x.shape[0] + 2)
    return x + 1


def into_other_containers(x):
    QUEUE.put([x.shape[0] + 1])
    DEQUE.extend([x.shape[0] + 1])
    SET.update([x.shape[0] + 2])
    SET.add((x.shape[0] + 1,))
    return x + 1


def by_setattr(x):
    LOG.n = x.shape[0] + 1
    LOG.__dict__["m"] = x.shape[0] + 2
    LOG.told.append(x.shape[0] + 3)
    LOG.told += [x.shape[0] + 4]
    return x + 1


def errors_made(x):
    LIST.append(ValueError(x.shape[0] + 1))
    try:
        raise KeyError(x.shape[0] + 2)
    except KeyError as error:
        LIST.append(error)
    return x + 1


def called_back(x):
    np.fromfunction(seen, (3,), k=x.shape[0] + 1)
    np.vectorize(seen)([x.shape[0] + 1], k=x.shape[0])
    return x + 1


def objects_made(x):
    made = Log()
    made.size = [x.shape[0] + 1]
    LIST.append(made)
    made.told.append(slice(x.shape[0] + 2))
    return x + 1


WAYS = [extended, updated, into_other_containers, by_setattr, errors_made, called_back, objects_made]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrap", [jl.function, jl.jit])
def test_every_way_out_of_a_function_gives_ints(way, wrap):
    def clear():
        vars(LOG).clear()
        LOG.__init__()
        for container in (LIST, DICT, DEQUE, SET, SEEN, QUEUE.queue):
            container.clear()

    def left():
        return repr((LIST, DICT, DEQUE, sorted(SET, key=repr), set(SEEN), list(QUEUE.queue), vars(LOG))).split("<")[0]

    clear()
    way(np.ones((5, 3)))
    want = left()
    clear()
    wrap(way)(np.ones((5, 3)))
    assert_plain(LIST, DICT, DEQUE, SET, SEEN, list(QUEUE.queue), LOG)
    assert left() == want
    clear()
