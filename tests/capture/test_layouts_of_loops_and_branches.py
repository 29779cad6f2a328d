"""What loops and branches on data give lies in memory as NumPy's own results do: `ravel`, `ascontiguousarray` and `reshape`
copy it where NumPy copies, and writes reach what they reach there."""

import numpy as np
import pytest
from same import assert_same_sharing

import jitlab as jl


def while_loop(a):
    v, k = a, 0
    while np.abs(v).max() > 0.2 and k < 12:
        v = v * 0.5
        k += 1
    w, u = v.ravel(), v.reshape(-1)
    w[0], u[1] = 9, 7
    return v, w, u


def rolled(a):
    v = a
    for _ in range(200):
        v = v * 0.99
    w = np.ascontiguousarray(v)
    w[0] = 9
    return v, w


def in_the_body(a):
    v, total = a, 0.0
    for _ in range(200):
        v = v * 0.99
        w = np.ascontiguousarray(v)
        w[0] = 9
        total = total + v[0, 1]
    return v, total


def branch(a):
    if a.sum() > 0:  # noqa: SIM108 - what is tested
        v = a * 2
    else:
        v = a * 3
    w = v.ravel()
    w[0] = 9
    return v, w


def one_side(a):
    v = a
    if a.sum() > 0:
        v = a * 0.5
    w = np.ascontiguousarray(v)
    w[0] = 9
    return v, w


def unlike(a):
    v = a * 2
    if a.sum() > 0:
        v = np.asfortranarray(v)
    w = v.ravel()
    w[0] = 9
    return v, w


def another_after_the_first(a):
    v = a
    for _ in range(200):
        v = np.ascontiguousarray(v * 0.99)
    w = v.ravel()
    w[0] = 9
    return v, w


def handed_out(a):
    v = a
    if a.sum() > 0:
        v = a * 2
    return v, v.tobytes("A"), v.strides


@pytest.mark.parametrize(
    "f", [while_loop, rolled, in_the_body, branch, one_side, unlike, another_after_the_first, handed_out],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("layout", ["rows", "columns", "part", "three axes"])
def test_what_numpy_copies_is_copied(f, sign, layout):
    values = np.random.default_rng(1).random((4, 3, 2)) * sign
    a = {
        "rows": values[:, :, 0].copy(), "columns": values[:, :, 0].T.copy().T, "part": np.asfortranarray(values)[:, :, 0],
        "three axes": values.transpose(2, 0, 1),
    }[layout]  # fmt: skip
    compiled = jl.jit(f)
    for _ in range(3):
        one, other = a.copy(order="K"), a.copy(order="K")
        expected, found = f(one), compiled(other)
        np.testing.assert_array_equal(other, one)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, y)
            if isinstance(y, np.ndarray):
                assert x.strides == y.strides
        assert_same_sharing(found, expected)


def chosen_of_two(a, c):
    v = a * 2
    w = v
    if c > 0:
        w = v * 3
    return w, v


def chosen_argument(a, c):
    w = a
    if c > 0:
        w = a * 3
    return w, a


def chosen_part(a, c):
    v = a * 2
    w = v
    if c > 0:
        w = v * 3
    return w[1:], v


def chosen_by_a_loop(a, c):
    v = np.ceil(a * 9) + c
    w, k = v, 0
    while np.abs(w).max() > 9.5 and k < 12:
        w = w * 0.5
        k += 1
    return w, v


@pytest.mark.parametrize("f", [chosen_of_two, chosen_argument, chosen_part, chosen_by_a_loop], ids=lambda f: f.__name__)
@pytest.mark.parametrize("settle", ["off", "model"])
def test_an_array_that_data_choose_is_that_array_whichever_way_it_lies(f, settle, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", settle)
    values = np.random.default_rng(1).random((3, 3, 3))
    compiled = jl.jit(f)
    for a in (values, np.asfortranarray(values), values.transpose(1, 2, 0), values[::-1]):
        for c in (0.0, 1.0, -1.0, 5.0):
            expected, found = f(a, np.float64(c)), compiled(a, np.float64(c))
            for x, y in zip(found, expected, strict=True):
                np.testing.assert_array_equal(x, y)
                assert x.strides == y.strides
            assert (found[0] is found[1]) == (expected[0] is expected[1])
            assert_same_sharing(found, expected)
