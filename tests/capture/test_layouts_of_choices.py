"""Whether NumPy gives a view or a copy hangs on how an array lies in memory, also where the data decide which array that is."""

import linecache
from itertools import product

import numpy as np
import pytest

import jitlab as jl

SOURCES = {
    "one of two": "    w = a if a.sum() > 0 else b\n",
    "it or a copy": "    w = a if a.sum() > 0 else a.copy()\n",
    "of a loop": "    for i in range(2):\n        w = a if b.sum() < i else b * 1\n",
    "a part": "    w = np.stack([a, b])[int(a[0, 0]) % 2]\n",
    "a part of an argument": "    w = both[int(a[0, 0]) % 2]\n",
    "a part of a choice": "    w = (both if a.sum() > 0 else both[::-1])[int(a[0, 0]) % 2]\n",
}
WAYS = (
    "np.ascontiguousarray(w)", "np.asfortranarray(w)", "w.reshape(-1)", "w.ravel()", "w.ravel('K')", "w.ravel('F')",
    "np.require(w, requirements='C')", "np.asarray(w, order='C')", "w.astype(w.dtype, order='F', copy=False)",
    "w.T.reshape(-1)", "w[:, 1:].reshape(-1)", "np.array(w, copy=None, order='F')", "np.ravel(w.T)", "w[0].reshape(1, -1)",
    "np.ascontiguousarray(w[:, 0])",
)  # fmt: skip


def lying(values, how):
    """The same numbers in memory of another form."""
    made = np.zeros((2, 4, 6))
    found = {
        "rows": lambda: np.zeros((2, 2, 3)), "columns": lambda: np.zeros((3, 2, 2)).T.swapaxes(0, 1),
        "steps": lambda: made[:, ::2, ::2], "backwards": lambda: made[:, 1::-1, 2::-1],
    }[how]()  # fmt: skip
    found[...] = values
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_what_is_written_reaches_what_it_reaches_in_numpy(source, way, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    text = f"def f(a, b, both):\n{source}    v = {way}\n    v[0] = 77.0\n    return v\n"
    name = f"<layouts {len(linecache.cache)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    names = {"np": np}
    exec(compile(text, name, "exec"), names)
    compiled = jl.jit(names["f"])
    numbers = np.arange(1.0, 13.0).reshape(2, 2, 3)
    forms = ("rows", "columns", "steps", "backwards"), ("rows", "steps")
    for first, second, signs in product(*forms, ((1, 1), (-1, 1), (-1, -1))):
        signed = numbers * np.reshape(signs, (2, 1, 1))
        plain, ours = ([lying(signed, first)[0], lying(signed, second)[1], lying(signed, first)] for _ in range(2))
        for _ in range(2):
            expected, found = names["f"](*plain), compiled(*ours)
            assert repr((expected, plain)) == repr((found, ours)), (first, second, signs)
