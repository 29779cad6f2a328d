"""What C functions answer beyond plain arrays: keywords, containers, numbers, strides, arguments that are changed; what differs
from the form that they were made for gives what Python gives."""

import gc
import sys
import threading
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.cpu_llvm.calls.entry import layout_is_known

pytestmark = pytest.mark.skipif(not layout_is_known(), reason="every call takes the Python way on this interpreter")


class Counted:
    """A function that counts the calls that came through Python, warm for the calls it was given."""

    def __init__(self, monkeypatch, function, *calls, decorate=jl.function):
        self.slow = []
        run = jl.Function._run
        monkeypatch.setattr(jl.Function, "_run", lambda *a: (self.slow.append(1), run(*a))[1])
        self.plain, self.traced = function, decorate(function)
        for args, kwargs in calls:
            for _ in range(6):
                self.traced(*args, **kwargs)
        self.slow.clear()

    def fast(self, *args, **kwargs):
        """What a call gives that C answers."""
        result = self.traced(*args, **kwargs)
        assert not self.slow, "Python ran it"
        return result

    def otherwise(self, *args, **kwargs):
        """What a call gives that Python answers."""
        result = self.traced(*args, **kwargs)
        assert self.slow, "C answered it"
        self.slow.clear()
        return result


@pytest.fixture
def warm(monkeypatch):
    return lambda function, *args, **kwargs: Counted(monkeypatch, function, (args, kwargs))


X, W = np.arange(6.0), np.linspace(1, 2, 6)


def same(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        found, wanted = found.values(), wanted.values()
    elif not isinstance(wanted, (list, tuple)):
        np.testing.assert_array_equal(found, wanted)
        assert getattr(found, "dtype", None) == getattr(wanted, "dtype", None) and np.shape(found) == np.shape(wanted)
        return
    for a, b in zip(found, wanted, strict=True):
        same(a, b)


# ---- how arguments are given


def scaled(x, *, w, power=2):
    return x * w**power


def test_keywords(warm):
    f = warm(scaled, X, w=W)
    same(f.fast(X, w=W), scaled(X, w=W))
    same(f.fast(W, w=X), scaled(W, w=X))
    same(f.otherwise(X, w=W, power=3), scaled(X, w=W, power=3))
    same(f.otherwise(x=X, w=W), scaled(X, w=W))
    same(f.otherwise(X, w=2.0), scaled(X, w=2.0))
    other = "".join(["", "w"])  # the same name, and perhaps another object
    same(f.traced(X, **{other: W}), scaled(X, w=W))


def test_keywords_in_another_order_are_another_form(monkeypatch):
    def f(a, b, c=1):
        return a - b * c

    calls = [((), {"a": X, "b": W}), ((), {"b": W, "a": X}), ((X,), {"b": W})]
    counted = Counted(monkeypatch, f, *calls, *calls, *calls)
    for args, kwargs in calls:
        same(counted.fast(*args, **kwargs), X - W)
    same(counted.fast(b=X, a=W), W - X)
    same(counted.otherwise(X, W), X - W)


@pytest.mark.parametrize("kwargs", [{"w": W, "v": W}, {"v": W}, {}, {"x": X, "w": W}])
def test_wrong_keywords_raise_what_they_raised(warm, kwargs):
    cold = jl.function(scaled)
    f = warm(scaled, X, w=W)
    errors = []
    for call in (cold, f.traced):
        with pytest.raises(TypeError) as raised:
            call(X, **kwargs)
        errors.append((type(raised.value), str(raised.value)))
    assert errors[0] == errors[1]


def test_many_arguments_and_keywords_of_any_name(warm):
    def f(*xs, **named):
        return xs[0] + xs[1] * named["b"] - named["a"]

    counted = warm(f, X, W, b=X, a=W)
    same(counted.fast(W, X, b=W, a=X), f(W, X, b=W, a=X))
    same(counted.otherwise(W, X, a=W, b=X), f(W, X, a=W, b=X))
    same(counted.otherwise(W, X, X, b=W, a=X), f(W, X, X, b=W, a=X))


# ---- what the arguments are


def weighted(p, x):
    return (x * p["a"]["w"] + p["a"]["b"]) * p["c"][0] + p["c"][1]


def parameters():
    return {"a": {"w": W.copy(), "b": X.copy()}, "c": (X + 1, X + 2)}


def test_containers(warm):
    f = warm(weighted, parameters(), X)
    same(f.fast(parameters(), W), weighted(parameters(), W))
    for change in (
        lambda p: p["a"].update(w=W[:3]),
        lambda p: p["a"].update(w=np.float32(W)),
        lambda p: p["a"].update(more=1),
        lambda p: p["a"].update(b=p["a"]["w"]),
        lambda p: p.update(c=list(p["c"])),
        lambda p: p.update(a=type("D", (dict,), {})(p["a"])),
        lambda p: p.update(a={"b": p["a"]["b"], "w": p["a"]["w"]}),  # another order
        lambda p: p.update(c=(*p["c"], 1)),
    ):
        changed = parameters()
        change(changed)
        x = X[:3] if changed["a"]["w"].shape == (3,) else X
        if x is not X:
            changed = {"a": {"w": W[:3], "b": X[:3]}, "c": (X[:3], X[:3] + 1)}
        same(f.otherwise(changed, x), weighted(changed, x))
    same(f.fast(parameters(), W), weighted(parameters(), W))
    with pytest.raises(KeyError):
        f.traced({"a": {"w": W, "c": X}, "c": (X, X)}, X)


def test_a_list_that_grows_is_another_form(warm):
    xs = [X, W]
    f = warm(lambda xs: sum(xs[1:], xs[0]), xs)
    same(f.fast(xs), X + W)
    xs.append(X.copy())
    same(f.otherwise(xs), X + W + X)
    xs.pop()
    xs[0] = W.copy()
    same(f.fast(xs), W + W)


def power(x, n):
    return x * n


@pytest.mark.parametrize(
    ("first", "others"),
    [
        (2, [3, True, 2.0, np.int64(2), np.float32(2)]),
        (1, [True, 1.0, 0, 1 + 0j]),
        (10**30, [10**30 + 1]),
        (0.0, [-0.0, 0, False, float("nan"), 0j]),
        (float("nan"), [0.0, float("inf")]),
        (True, [False, 1]),
        (1 + 2j, [1 + 2.5j, 1.0]),
    ],
)
def test_numbers_are_told_apart(warm, first, others):
    f = warm(power, X, first)
    same(f.fast(X, first), power(X, first))
    for other in others:
        same(f.otherwise(X, other), power(X, other))
        assert np.array_equal(np.signbit(np.real(f.traced(X, other))), np.signbit(np.real(power(X, other))))
    f.slow.clear()
    same(f.fast(X, first), power(X, first))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8, np.bool_, np.complex128, np.uint64])
def test_scalars_of_numpy_may_have_any_value(warm, kind):
    scalar = kind(1)
    f = warm(power, X, scalar)
    for value in (scalar, kind(0), kind(3)):
        same(f.fast(X, value), power(X, value))
    same(f.otherwise(X, np.int16(3)), power(X, np.int16(3)))


def test_the_same_scalar_twice_is_two_arguments(warm):
    one = np.float64(2)
    f = warm(lambda x, a, b: x * a + b, X, one, one)
    same(f.fast(X, np.float64(3), np.float64(5)), X * 3 + 5)


def test_words(warm):
    def f(x, how, more=None):
        return x + 1 if how == "plus" else x - 1 if more is None else x * more

    counted = warm(f, X, "plus")
    same(counted.fast(X, "plus"), X + 1)
    same(counted.fast(X, "".join(["pl", "us"])), X + 1)
    same(counted.otherwise(X, "minus"), X - 1)
    same(counted.otherwise(X, "minus", 3), X * 3)
    same(counted.otherwise(X, type("Word", (str,), {})("plus")), X + 1)


def test_the_same_array_twice(monkeypatch):
    def f(x, y):
        return x + 1 if x is y else x - y

    once = Counted(monkeypatch, f, ((X, W), {}))
    same(once.fast(W, X), W - X)
    same(once.otherwise(X, X), X + 1)
    twice = Counted(monkeypatch, f, ((X, X), {}))
    same(twice.fast(W, W), W + 1)
    same(twice.otherwise(W, W.copy()), W - W)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0)[::-2], np.arange(12.0)[::2], np.arange(12.0)[:6], np.arange(36.0).reshape(6, 6).T[2],
        np.broadcast_to(np.float64(3), 6), np.arange(6.0)[::-1],
    ],
)
def test_strides(warm, array):
    f = warm(lambda x, w: x * w + 1, array, W)
    same(f.fast(array, W), array * W + 1)
    other = np.array(array) if not array.flags.c_contiguous else np.arange(18.0)[::3]
    same(f.otherwise(other, W), other * W + 1)
    same(f.otherwise(W, other), other * W + 1)


@pytest.mark.parametrize(
    "matrix",
    [
        np.arange(12.0).reshape(3, 4).T, np.arange(24.0).reshape(4, 6)[:, ::2], np.arange(24.0).reshape(4, 6)[:, :3],
        np.arange(12.0).reshape(4, 3)[::-1], np.arange(12.0).reshape(4, 3)[:, ::-1],
    ],
)
def test_layouts_of_matrices(warm, matrix):
    f = warm(lambda x: (x.sum(axis=0), (x * 2).max(axis=1)), matrix)
    wanted = matrix.sum(axis=0), (matrix * 2).max(axis=1)
    for found, value in zip(f.fast(matrix), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-14)
    for found, value in zip(f.otherwise(np.ascontiguousarray(matrix)), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-14)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (), (1,), (1, 1)])
def test_sizes_at_the_edge(warm, shape):
    x = np.ones(shape)
    f = warm(lambda x: (x + 1, x.reshape(-1).sum()), x)
    same(f.fast(x), (x + 1, x.sum()))


@pytest.mark.parametrize(
    "other",
    [X.astype(">f8"), np.float32(X), X.view(type("Sub", (np.ndarray,), {})), np.ma.array(X), X[:5], X.reshape(2, 3), X > 2],
)
def test_other_arrays_take_the_python_way(warm, other):
    f = warm(lambda x: x + 1, X)
    same(f.otherwise(other), other + 1)


def test_what_is_not_aligned_takes_the_python_way(warm):
    x = np.zeros(49, np.uint8)[1:].view(np.float64)
    f = warm(lambda x: x + 1, X)
    same(f.otherwise(x), x + 1)


# ---- arguments that are changed


def add(x, y):
    x += y
    return x


def test_arguments_changed_in_place(warm):
    f = warm(add, X.copy(), W)
    x = X.copy()
    assert f.fast(x, W) is x
    same(x, X + W)


@pytest.mark.parametrize("at", [lambda b: (b[:6], b[1:7]), lambda b: (b[:6], b[5::-1]), lambda b: (b[1:7], b[:6])])
def test_memory_that_two_share(warm, at):
    f = warm(add, X.copy(), W)
    mine, theirs = np.arange(9.0), np.arange(9.0)
    f.otherwise(*at(mine))
    add(*at(theirs))
    same(mine, theirs)
    same(f.otherwise(*(2 * [mine[:6]])), add(*(2 * [theirs[:6]])))
    same(mine, theirs)
    side_by_side = np.arange(12.0)
    same(f.fast(side_by_side[:6], side_by_side[6:]), np.arange(6.0) + np.arange(6.0, 12))


def test_what_cannot_be_written(warm):
    f = warm(add, X.copy(), W)
    locked = X.copy()
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f.traced(locked, W)
    same(locked, X)
    f.slow.clear()
    same(f.fast(W.copy(), locked), W + X)


def test_strided_arguments_are_changed(warm):
    base = np.arange(12.0)
    f = warm(add, base.copy()[::2], W)
    mine, theirs = base.copy(), base.copy()
    f.fast(mine[::2], W)
    add(theirs[::2], W)
    same(mine, theirs)
    f.otherwise(mine[::2], mine[1::2])  # between one another: the first and last bytes do not tell
    add(theirs[::2], theirs[1::2])
    same(mine, theirs)


def test_what_may_fail_changes_nothing_when_it_does(warm):
    def f(x, i):
        x *= 2
        return x[i[0]]

    counted = warm(f, X.copy(), np.array([1]))
    x = X.copy()
    assert counted.fast(x, np.array([2])) == 4
    with pytest.raises(IndexError):
        counted.traced(x, np.array([9]))
    same(x, X * 2)


def test_results_in_containers(warm):
    def f(x):
        return {"a": x + 1, "b": (x.sum(), [x * 2, None, "word"])}

    counted = warm(f, X)
    first = counted.fast(X)
    same(first, {"a": X + 1, "b": (X.sum(), [X * 2, None, "word"])})
    assert counted.fast(X)["a"] is not first["a"] and counted.fast(X) is not first


# ---- memory


def test_nothing_is_leaked(warm):
    f = warm(lambda p, x, n: {"a": (p["w"] * n, x.sum()), "b": x}, {"w": W}, X, 2.5)
    p = {"w": W.copy()}
    f.fast(p, X, 2.5)
    objects = (p, p["w"], X, np.dtype(float), "a", None, 2.5)
    before = [sys.getrefcount(x) for x in objects], sys.getallocatedblocks()
    for _ in range(5000):
        f.traced(p, X, 2.5)
    assert all(abs(sys.getrefcount(x) - n) < 50 for x, n in zip(objects, before[0], strict=True))
    assert abs(sys.getallocatedblocks() - before[1]) < 1000
    assert not f.slow


def counting(p, limit):
    total = p["x"][0]
    while total < limit[0]:
        total = total + p["x"][1]
    return total


def test_what_a_container_held_stays_while_it_is_used(warm):
    """Other threads run during a long call, and take the array out of the dict."""
    f = warm(counting, {"x": np.array([0.0, 1.0])}, np.array([5.0]))
    p = {"x": np.array([0.0, 1.0])}
    ended = threading.Event()

    def take_out():
        while not ended.is_set():
            p["x"] = np.array([0.0, 1.0])
            gc.collect()
            np.full(2, -1e300)  # what is free is used again

    thread = threading.Thread(target=take_out)
    thread.start()
    try:
        assert f.fast(p, np.array([3e8])) == 3e8
    finally:
        ended.set()
        thread.join()


def test_threads(warm):
    f = warm(weighted, parameters(), X)
    wrong = []

    def work(k):
        p, x = parameters(), X + k
        wanted = weighted(p, x)
        for _ in range(2000):
            if not np.array_equal(f.traced(p, x), wanted):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and not f.slow


# ---- `jit`: what names give is asked at each call, too


@pytest.fixture
def warm_jit(monkeypatch):
    """A function under `jit` that is captured whole; calls that C does not answer are counted."""

    def made(function, *args, **kwargs):
        compiled = Counted.__new__(Counted)
        compiled.slow, compiled.plain = [], function
        run = jl.jit(function).in_front._otherwise.call
        monkeypatch.setattr("jitlab.api.functions.jit.Jit.__call__", lambda *a, **k: (compiled.slow.append(1), run(*a, **k))[1])
        compiled.traced = jl.jit(function, fullgraph=True)
        for _ in range(8):
            compiled.traced(*args, **kwargs)
        compiled.slow.clear()
        return compiled

    return made


GAIN, BIAS, TABLE = 2.0, np.ones(6), {"w": W}


def helper(x):
    return x * 2


def with_names(x, s):
    return helper(x) * GAIN + BIAS * s


def test_names_are_asked_at_each_call(warm_jit, monkeypatch):
    f = warm_jit(with_names, X, 0.5)
    same(f.fast(X, 0.5), with_names(X, 0.5))
    same(f.fast(W, -1.5), with_names(W, -1.5))
    monkeypatch.setitem(globals(), "GAIN", 3.0)
    same(f.fast(X, 0.5), with_names(X, 0.5))
    monkeypatch.setitem(globals(), "BIAS", np.arange(6.0))
    same(f.fast(X, 0.5), with_names(X, 0.5))
    for name, value in {"GAIN": 3, "BIAS": np.float32(BIAS), "helper": lambda x: x * 5}.items():
        with monkeypatch.context() as patch:
            patch.setitem(globals(), name, value)
            same(f.otherwise(X, 0.5), with_names(X, 0.5))
        f.slow.clear()
    same(f.fast(X, 0.5), with_names(X, 0.5))
    monkeypatch.setattr(helper, "__code__", (lambda x: x - 7).__code__)
    same(f.otherwise(X, 0.5), with_names(X, 0.5))
    monkeypatch.delitem(globals(), "GAIN")
    with pytest.raises(NameError):
        f.traced(X, 0.5)


def test_a_function_of_numpy_that_is_another(warm_jit, monkeypatch):
    f = warm_jit(lambda x: np.exp(x) + 1, X)
    f.fast(X)
    monkeypatch.setattr(np, "exp", np.sin)
    same(f.otherwise(X), np.sin(X) + 1)


def test_arguments_and_names_that_are_one_array(warm_jit):
    f = warm_jit(lambda x: x + BIAS if x is not BIAS else x - 1, X)
    same(f.fast(W), W + BIAS)
    same(f.otherwise(BIAS), BIAS - 1)


def test_arguments_of_jit(warm_jit):
    def f(p, x, *, s=2.0, flag=False):
        total = p["sum"]
        total += x
        return (p["w"] * s, p["sum"], x) if not flag else p["w"]

    compiled = warm_jit(f, {"w": W, "sum": X.copy()}, X, s=1.5)
    mine, theirs = ({"w": W, "sum": X.copy()} for _ in range(2))
    for s in (1.5, -0.0, float("nan"), 1e300):
        found, wanted = compiled.fast(mine, X, s=s), f(theirs, X, s=s)
        same(found, wanted)
        assert found[1] is mine["sum"] and found[2] is X
    same(compiled.otherwise(mine, W, s=1.5), f(theirs, W, s=1.5))
    for kwargs in ({"s": 2}, {"flag": True}, {}, {"s": 1.5, "flag": False}):
        same(compiled.otherwise(mine, X, **kwargs), f(theirs, X, **kwargs))
        same(mine, theirs)
    both = np.arange(12.0)
    mine, theirs = ({"w": base[:6], "sum": base[1:7]} for base in (both, both.copy()))
    same(compiled.otherwise(mine, X, s=1.5), f(theirs, X, s=1.5))
    same(mine, theirs)


def test_a_float_that_decides_is_looked_at(warm_jit):
    def f(x, s):
        return x * s if s > 1 else x - s

    compiled = warm_jit(f, X, 2.0)
    same(compiled.traced(X, 2.0), f(X, 2.0))
    for s in (0.5, 3.0, float("nan"), 2.0):
        same(compiled.traced(X, s), f(X, s))


def test_the_same_float_twice_is_two_arguments(warm_jit):
    def f(x, a, b):
        return x * a + b

    one = 0.5
    compiled = warm_jit(f, X, one, one)
    same(compiled.fast(X, 2.0, 3.0), f(X, 2.0, 3.0))


def test_calls_of_jit_are_counted_and_told(warm_jit):
    compiled = warm_jit(lambda x: np.tanh(x) * 2, X)
    before = compiled.traced._last.costs.all_calls
    with jl.record() as recording:
        for _ in range(500):
            compiled.traced(X)
    assert len(compiled.slow) < 20
    assert [tally.calls for tally in recording.functions.values()] == [500]
    assert [tally.calls for tally in recording.clusters.values()] == [500]
    assert compiled.traced._last.costs.all_calls == before + 500


def test_another_python_function_of_jit(warm_jit):
    compiled = warm_jit(lambda x: x + 1, X)
    compiled.fast(X)
    compiled.traced.python_function = lambda x: x - 1
    fresh = jl.jit(lambda x: x + 1, fullgraph=True)
    fresh(X)
    fresh.python_function = lambda x: x - 1
    same(compiled.otherwise(X), X - 1)
    same(fresh(X), X - 1)


def test_a_function_of_jit_that_is_dropped_goes(warm_jit):
    compiled = warm_jit(with_names, X, 0.5)
    alive = weakref.ref(compiled.traced)
    del compiled.traced
    gc.collect()
    assert alive() is None


def with_defaults(x, k=2.0, *, more=None):
    return x * k if more is None else x + more


def test_defaults_of_functions_are_asked(warm_jit, monkeypatch):
    def f(x):
        return with_defaults(x) + 1

    compiled = warm_jit(f, X)
    same(compiled.fast(W), f(W))
    monkeypatch.setattr(with_defaults, "__defaults__", (3.0,))
    same(compiled.otherwise(W), f(W))
    monkeypatch.undo()
    monkeypatch.setitem(with_defaults.__kwdefaults__, "more", 5.0)
    same(compiled.traced(W), f(W))
    monkeypatch.setattr(with_defaults, "__kwdefaults__", {"more": -5.0})
    same(compiled.traced(W), f(W))


def test_defaults_of_the_function_itself(warm_jit, monkeypatch):
    def f(x, s=2.0, *, t=0.5):
        return x * s + t

    compiled = warm_jit(f, X)
    same(compiled.fast(W), f(W))
    same(compiled.otherwise(W, 3.0), f(W, 3.0))
    same(compiled.otherwise(W, t=1.0), f(W, t=1.0))
    monkeypatch.setattr(f, "__kwdefaults__", {"t": 0.25})
    fresh = jl.jit(f, fullgraph=True)
    same(fresh(W), f(W))
    assert compiled.otherwise(W) is not None


def test_what_closures_hold_is_asked_at_each_call(warm_jit):
    gain, bias = 2.0, np.ones(6)

    def f(x):
        return x * gain + bias

    compiled = warm_jit(f, X)
    same(compiled.fast(W), f(W))
    gain, bias = -0.0, np.arange(6.0)
    same(compiled.fast(W), f(W))
    gain = 3
    same(compiled.otherwise(W), f(W))
    gain, bias = 1.0, np.float32(bias)
    same(compiled.otherwise(W), f(W))
    del f.__closure__[f.__code__.co_freevars.index("gain")].cell_contents
    with pytest.raises(NameError):
        compiled.traced(W)


def test_what_names_hold_is_asked_at_each_call(warm_jit, monkeypatch):
    def f(x):
        return x * TABLE["w"]

    compiled = warm_jit(f, X)
    same(compiled.fast(np.ones(6)), f(np.ones(6)))
    monkeypatch.setitem(TABLE, "w", np.arange(6.0) - 3)
    same(compiled.fast(X), f(X))
    same(compiled.otherwise(TABLE["w"]), f(TABLE["w"]))
    monkeypatch.setitem(TABLE, "more", 1)
    same(compiled.otherwise(X), f(X))
    monkeypatch.setitem(globals(), "TABLE", {"w": 2.0})
    same(compiled.otherwise(X), f(X))


def test_a_trace_that_c_answers_is_not_the_first_to_be_forgotten(warm_jit, monkeypatch):
    monkeypatch.setattr(jl.config, "max_traces", 3)
    compiled = warm_jit(lambda x: x + x.shape[0], X)  # what looks at a size is recorded for each
    for n in range(8, 13):
        compiled.fast(X)
        compiled.otherwise(np.ones(n))
    assert sum(map(len, compiled.traced._traces.values())) == 3
    compiled.fast(X)
    assert any(trace.costs.native_calls for trace, _ in compiled.traced._recent.values())
    for n in range(13, 20):
        compiled.otherwise(np.ones(n))
    assert not any(trace.costs.native_calls for trace, _ in compiled.traced._recent.values())
    same(compiled.traced(X), X + len(X))


# ---- named tuples


class Pair(NamedTuple):
    first: np.ndarray
    second: object


class Halved(NamedTuple("Halved", [("total", float), ("rest", object)])):
    """One that holds other items than it is made of."""

    def __new__(cls, total, rest):
        return super().__new__(cls, total / 2, rest)


def of_qr(x):
    return np.linalg.qr(x)


def of_svd(x):
    return np.linalg.svd(x)


def of_ours(x):
    return Pair(x * 2, (Pair(x + 1, None), [x + 1]))


def halves(x):
    return Halved(x.sum(), Halved(x.max(), x * 2))


@pytest.mark.parametrize("function", [of_qr, of_svd, of_ours, halves])
def test_named_tuples_are_given(warm, function):
    f = warm(function, np.eye(3))
    for n in range(3):
        x = np.arange(9.0).reshape(3, 3) + n * np.eye(3)
        result, wanted = f.fast(x), function(x)
        same(result, wanted)
        assert result._fields == wanted._fields


def test_named_tuples_without_python_hold_no_memory(warm):
    x = np.arange(4.0)
    f = warm(of_ours, x)
    kept = weakref.ref(f.fast(x).first)
    gc.collect()
    assert kept() is None
    before = sys.getrefcount(Pair)
    for _ in range(100):
        f.fast(x)
    assert sys.getrefcount(Pair) <= before + 1
