"""Masked arrays, matrices and the like keep their own meaning: they are never turned into plain arrays."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import jitlab as jl
from jitlab.errors import CaptureError, InvalidArgumentError
from tests.cell_runs import run_cell

PROGRAMS = [
    "made = np.ma.masked_less(np.arange(5.0), 2)\nmade.mean()",
    "made = np.ma.masked_less(x * 2, 2)\nnp.mean(made) + made.sum()",
    "ma.mean()", "np.mean(ma)", "ma.sum()", "ma + x", "x + ma", "ma * 2.0", "np.sqrt(ma)", "ma[1:].sum()", "ma.filled(0) + x",
    "mean = ma.mean\nmean()", "np.ma.mean(ma)", "np.ma.concatenate([ma, x])", "np.where(ma > 2, ma, 0)", "(x + 1)[ma > 2]",
    "np.ma.array(x + 1, mask=x > 2).mean()", "np.add.reduce(ma)", "x * 2 + np.ma.masked_less(x, 2)", "[ma][0].mean()",
    "m * square", "square @ m", "m * m", "m.T", "m.A", "np.asmatrix(square) * square", "x.view(np.matrix)", "m.sum(axis=0)",
    "np.linalg.inv(m)", "rec.b", "rec.b.sum() + x", "other + x", "x + other", "np.add(x, other)",
]  # fmt: skip


class Other:
    """A container that NumPy can read, of a library that wants it otherwise."""

    __array_priority__ = 2000.0

    def __array__(self, dtype=None, copy=None):
        return np.zeros(5)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "other's own"

    def __add__(self, x):
        np.asarray(x)
        return "other's own"

    __radd__ = __add__


def names():
    return {
        "np": np, "x": np.arange(5.0), "ma": np.ma.masked_less(np.arange(5.0), 2), "m": np.matrix([[1.0, 2.0], [3.0, 4.0]]),
        "square": np.ones((2, 2)), "rec": np.rec.array([(n, 2.0 * n) for n in range(5)], dtype=[("a", "i4"), ("b", "f8")]),
        "other": Other(),
    }  # fmt: skip


def of_python(source):
    *before, last = source.split("\n")
    namespace = names()
    exec("\n".join(before), namespace)
    return eval(last, namespace)


def as_function(source, filename, **options):
    *before, last = source.split("\n")
    text = "\n".join(["def f(x):", *(f"    {line}" for line in before), f"    return {last}"])
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace = names()
    exec(compile(text, filename, "exec"), namespace)
    return jl.function(namespace["f"], **options), namespace["x"]


@pytest.mark.parametrize("source", PROGRAMS)
def test_cell_keeps_foreign_arrays(source):
    result, expected = run_cell(source, names(), "<foreign>").value, of_python(source)
    assert type(result) is type(expected) and repr(result) == repr(expected)


@pytest.mark.parametrize("source", PROGRAMS)
def test_function_keeps_foreign_arrays(source):
    f, x = as_function(source, f"<foreign {PROGRAMS.index(source)}>")
    expected = of_python(source)
    for _ in range(2):
        result = f(x)
        assert type(result) is type(expected) and repr(result) == repr(expected)


def test_statement_with_a_masked_array_says_why():
    result = run_cell(PROGRAMS[0], names(), "<foreign why>")
    assert [code for code, _, _ in result.statements] == ["foreign_type"] * 2


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("q = np.array(['a', 'b'])[k % 2]", "a part of it is an array of <U1"),
        ("q = names[k % 2]", "names is an array of <U1"),
        ("q = k + 0 * len(next(file))", "file is an open file"),
        ("q = k + next(items)", "items is an iterator"),
    ],
)
def test_what_a_statement_reads_is_called_by_the_programs_names_and_by_what_it_is(source, said, tmp_path):
    (tmp_path / "lines").write_text("one\n")
    with open(tmp_path / "lines") as file:
        values = {"np": np, "k": np.arange(4), "names": np.array(["a", "b"]), "file": file, "items": iter([1, 2])}
        result = run_cell(source, values, "<cell>")
    assert said in [text for _, text, _ in result.statements]


def test_function_that_catches_everything_is_run_as_python():
    f, x = as_function("y = [x * 2]\ntry:\n    y.append(ma + x)\nexcept Exception:\n    y = []\nlen(y)", "<foreign catch>")
    assert f(x) == 2


def test_jit_compile_refuses_foreign_arrays():
    f, x = as_function("x * 2 + ma", "<foreign must>", jit_compile=True)
    with pytest.raises(InvalidArgumentError, match=r"works on a numpy\.ma\.MaskedArray"):
        f(x)


def test_gradient_through_a_foreign_array_is_an_error():
    ma = names()["ma"]
    with pytest.raises(CaptureError, match="not recorded"):
        jl.grad(lambda x: (x * ma).sum())(np.arange(5.0))
