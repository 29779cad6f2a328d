"""`x[mask]`: what needs only x and the mask stays in the graph; everything else takes the elements out."""

import inspect

import numpy as np
import pytest

import jitlab as jl
from jitlab import events

RNG = np.random.default_rng(0)
X = RNG.standard_normal((7, 9))
Y = RNG.random((7, 9))


def power_of_the_positive(x):
    r = x * 1.0
    r[r > 0] = r[r > 0] ** (-1.5)
    return r


def reciprocal_of_the_positive(x):
    r = x + 0.0
    r[r > 0] = 1.0 / r[r > 0]
    return r


def means_of_a_ring(x, y):
    values = y[np.logical_and(x > -0.5, x < 0.5)]
    return values.mean(), np.mean(values * 2), values.sum(), (values + 1).prod(), np.any(values > 2), (values < 2).all()


def functions_of_selected(x, y):
    m = x < 0
    return np.sqrt(y[m]).sum(), np.maximum(y[m], x[m]).mean(), (y[m] + x[m]).sum()


def in_place(x):
    x[x < 0] *= -2
    x[x > 1] = 1
    return x.sum()


def own_array(x):
    v = x[x > 0]
    w = v
    v *= 2
    return v.sum(), w.sum(), x.sum()


def into_another_dtype(x):
    n = np.zeros(x.shape, np.int32)
    n[x > 0] = x[x > 0] * 10
    return n


def of_nothing(x):
    return x[x > 100].mean(), x[x > 100].sum()


def float32(x):
    x = x.astype(np.float32)
    return x[x > 0].mean(), x[x > 0] .sum()


def integers(x):
    k = (x * 10).astype(np.int16)
    return k[k > 0].sum(), k[k > 0].mean(), k[k % 2 == 0].prod()


LAZY = [
    (power_of_the_positive, (X,)), (reciprocal_of_the_positive, (X,)), (means_of_a_ring, (X, Y)),
    (functions_of_selected, (X, Y)), (in_place, (X,)), (own_array, (X,)), (into_another_dtype, (X,)), (of_nothing, (X,)),
    (float32, (X,)), (integers, (X,)),
]  # fmt: skip


@pytest.mark.parametrize(("program", "arguments"), LAZY, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value encountered")
def test_what_needs_only_the_mask_is_compiled(program, arguments):
    mine, theirs = [a.copy() for a in arguments], [a.copy() for a in arguments]
    found, wanted = jl.function(program, jit_compile=True)(*mine), program(*theirs)
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, wanted)), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype and np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-6)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


ELEMENTS = [
    (lambda x: x[x > 0], (X,)),
    (lambda x: np.sort(x[x > 0]), (X,)),
    (lambda x: x[x > 0].max(), (X,)),
    (lambda x: x[x > 0] * np.arange(np.count_nonzero(X > 0)), (X,)),
    (lambda x, y: x[x > 0].sum() + y[y > 0.5][0], (X, Y)),
    (lambda x: x[0][x[0] > 0].cumsum(), (X,)),
]


@pytest.mark.parametrize(("program", "arguments"), ELEMENTS)
def test_what_needs_the_elements_takes_them_out_and_says_so(program, arguments):
    heard = []
    with events.listen(heard.append):
        result = jl.function(program)(*arguments)
    np.testing.assert_allclose(result, program(*arguments))
    assert any(event.kind == "host-operation-ran" and event.op == "Indexing" for event in heard)


def test_a_write_through_another_mask_takes_the_elements_out():
    def program(x, y):
        x[x > 0] = y[y > 0.5][:5]
        return x

    few = np.where(RNG.permutation(63).reshape(7, 9) < 5, 1.0, -1.0)
    np.testing.assert_array_equal(jl.function(program)(few.copy(), Y), program(few.copy(), Y))


def rows_above(x):
    y = x[x > 2]  # <- the line
    z = x + 1
    return y, z.sum()


def test_a_refusal_names_the_line_of_the_subscript():
    def caller(x):
        found, total = rows_above(x)
        return found, total

    line = inspect.getsourcelines(rows_above)[1] + 1
    for recorded in (jl.jit(fullgraph=True)(caller), jl.function(caller, jit_compile=True), jl.jit(fullgraph=True)(rows_above)):
        with pytest.raises(jl.errors.InvalidArgumentError) as caught:
            recorded(np.arange(5.0))
        assert f"line {line}: y = x[x > 2]" in caught.value.where
