"""Random calls of warm functions: values of other types, layouts, bits and identities among those that C answers."""

import copy
import random

import numpy as np
import pytest

import jitlab as jl


def arrays(rng):
    """Arrays of a few kinds, so that calls often meet the same form again."""
    base = np.arange(24.0) - rng.choice([0, 5])
    return [
        base[:4], base[4:8], base[8:16:2], base[7:3:-1], base[:12].reshape(3, 4)[1], base[:16].reshape(4, 4).T[0],
        np.float32(base[:4]), np.arange(4), np.array([np.nan, -0.0, 0.0, np.inf]), base[20:21], np.broadcast_to(base[3], 4),
    ]  # fmt: skip


NUMBERS = [2.5, -0.0, 0.0, float("nan"), 2, True, 1, 10**20, 1j, np.float64(2.5), np.float32(2.5), np.int64(3), None, "a"]


def plain(x, y):
    return x + y, x * 2


def is_one(x, y):
    return x + 1 if x is y else x - y


def keyword(x, *, y, scale=2.0):
    return {"sum": x + y, "scaled": [x * scale]}


def nested(x, y):
    return x["a"] * y + x["b"][0], x["b"]


def changed(x, y):
    x += y
    return x


def changed_inside(x, y):
    part = x["a"]
    part *= 2
    part += y
    return part, y


GAIN, BIAS = 1.5, np.ones(4)


def names(x, y):
    return x * GAIN + BIAS * y


def call_of(function, rng, pool):
    x, y = rng.choice(pool), rng.choice(pool)
    if rng.random() < 0.3:
        y = rng.choice(NUMBERS)
    if rng.random() < 0.1:
        y = x
    if function in (nested, changed_inside):
        other = (rng.choice(pool), 1) if rng.random() < 0.7 else [rng.choice(pool)]
        x = {"a": x, "b": other} if rng.random() < 0.7 else {"b": other, "a": x}
    if function is keyword:
        return (x,), {"y": y, **({"scale": rng.choice(NUMBERS)} if rng.random() < 0.3 else {})}
    return (x, y), {}


def put_back(arrays, values):
    for array, value in zip(arrays, values, strict=True):
        array[...] = value


def outcome(call, args, kwargs):
    try:
        return call(*args, **kwargs)
    except jl.errors.UnsupportedError:
        return None  # it cannot be traced whole
    except Exception:
        return "raised"  # in what words and class is tested elsewhere


def alike(found, wanted):
    if type(wanted) in (list, tuple, dict):
        assert type(found) is type(wanted) and len(found) == len(wanted)
        if type(wanted) is dict:
            assert list(found) == list(wanted)
            found, wanted = list(found.values()), list(wanted.values())
        for a, b in zip(found, wanted, strict=True):
            alike(a, b)
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert type(found) is type(wanted) and found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)
        if wanted.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(found) | np.isnan(found), np.signbit(wanted) | np.isnan(wanted))
    elif isinstance(found, np.generic):  # what `function` makes of Python's numbers
        assert repr(found.item()) == repr(wanted)
    else:
        assert type(found) is type(wanted) and repr(found) == repr(wanted)


FUNCTIONS = [plain, is_one, keyword, nested, changed, changed_inside, names]
DECORATORS = {"function": jl.function, "jit": jl.jit, "fullgraph": jl.jit(fullgraph=True)}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(210))
def test_random_calls(seed, monkeypatch):
    rng = random.Random(seed)
    function, how = FUNCTIONS[seed % 7], list(DECORATORS)[seed // 7 % 3]
    traced = DECORATORS[how](function)
    pool = arrays(rng)
    own = [pool[0].base, *(x for x in pool if x.base is None)]
    for _ in range(25):
        if function is names and how != "function" and rng.random() < 0.3:
            monkeypatch.setitem(globals(), rng.choice(["GAIN", "BIAS"]), rng.choice([2.5, -0.0, 3, pool[0], np.ones(4)]))
        args, kwargs = call_of(function, rng, pool)
        for _ in range(rng.choice([1, 2, 12])):
            before = [x.copy() for x in own]
            made = outcome(function, args, kwargs)
            wanted, after = copy.deepcopy(made), [x.copy() for x in own]
            put_back(own, before)
            found = outcome(traced, args, kwargs)
            if found is None:
                put_back(own, after)
                continue
            alike(found, wanted)
            if isinstance(wanted, str):  # while it was recorded, nothing was changed
                put_back(own, after)
                continue
            alike(own, after)
            for one, other in zip(parts(found), parts(made), strict=True):
                assert any(one is x for x in parts((args, kwargs))) == any(other is x for x in parts((args, kwargs)))


def parts(x):
    """The arrays of a structure."""
    if isinstance(x, dict):
        x = tuple(x.values())
    if isinstance(x, (list, tuple)):
        return [array for item in x for array in parts(item)]
    return [x] if isinstance(x, np.ndarray) else []
