"""Arrays that NumPy makes as parts of one of its own: elements of others lie between theirs, so that a conversion is a copy."""

import linecache

import numpy as np
import pytest

import jitlab as jl

MADE = {
    "np.nonzero, two axes": "np.nonzero(B > .5)[0]",
    "np.nonzero, three axes": "np.nonzero(A > .5)[2]",
    "np.nonzero, one axis": "np.nonzero(v > .5)[0]",
    "np.where": "np.where(A > .5)[1]",
    "method": "(B > .5).nonzero()[1]",
    "np.argwhere": "np.argwhere(B > .5)",
    "np.unravel_index": "np.unravel_index(I, (4, 5))[0]",
    "np.linspace along another axis": "np.linspace(B, B + 1, 3, axis=1)",
    "np.linspace along the first": "np.linspace(B, B + 1, 3)",
    "np.geomspace along another axis": "np.geomspace(B + 1, B + 2, 3, axis=-1)",
    "np.histogram2d": "np.histogram2d(v, v)[0]",
    "a mask of the second axis": "A[:, B[:, 0] > .2]",
    "positions along the second axis": "A[:, I]",
}
CONVERSIONS = [
    "np.asfortranarray(x)", "np.ascontiguousarray(x)", "x.reshape(-1)", "x.ravel()", "np.ravel(x, order='K')",
    "np.asarray(x, order='F')", "np.asarray(x, order='C')", "x.astype(x.dtype, copy=False)",
    "x.astype(x.dtype, order='F', copy=False)", "x.ravel(order='F')", "np.array(x, copy=None, order='F')",
]  # fmt: skip


def function(source):
    """The function f of a text, whose lines are known where it was made."""
    name = f"<gaps {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"np": np}
    exec(compile(source, name, "exec"), names)
    return names["f"]


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_what_is_written_into_a_conversion_reaches_the_array_where_numpys_does(made):
    lines = [f"    y{n} = {text}\n    y{n}[...] = {n}\n    found.append(x.copy())\n" for n, text in enumerate(CONVERSIONS)]
    f = function(f"def f(A, B, v, I):\n    x = {made}\n    found = []\n{''.join(lines)}    return found")
    compiled = jl.jit(f)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        arguments = rng.random((4, 5, 6)), rng.random((5, 6)), rng.random(7), np.array([0, 2, 3])
        for theirs, ours in zip(f(*arguments), compiled(*arguments), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_a_part_of_one_element_is_the_array_itself(count):
    f = function("def f(m):\n    x = np.nonzero(m)[0]\n    y = np.asfortranarray(x)\n    y[...] = 7\n    return x, y, x is y")
    compiled = jl.jit(f)
    for number in (count, 3, count):
        m = np.zeros((4, 5), bool)
        m.flat[3 : 3 + number] = True
        for theirs, ours in zip(f(m), compiled(m), strict=True):
            np.testing.assert_array_equal(ours, theirs)
