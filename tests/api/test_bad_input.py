"""What NumPy refuses is refused with NumPy's type of exception, and the message tells the call, the shapes and the line.

Wrong ranks, axes out of range, impossible casts, shapes that do not fit: a hundred wrong calls, under a function that must
compile, one that may leave work to NumPy, under jit, and in a cell.
"""

import linecache
import re

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

X, Y, V, W = np.ones((3, 4)), np.ones((3, 5)), np.arange(4.0), np.arange(5.0)
J, B, Z, C = np.array([0, 1, 2]), np.array([True, False, True]), np.float64(2), np.ones((2, 3, 4))
NAMES = {"x": X, "y": Y, "v": V, "w": W, "i": J, "b": B, "z": Z, "c": C}

#: Expressions of x (3, 4), y (3, 5), v (4,), w (5,), i (3 integers), b (3 bools), z (a number), c (2, 3, 4).
WRONG = [
    # shapes that do not fit
    "x + y", "x * w", "np.maximum(x, y)", "np.arctan2(v, w)", "x @ y", "x @ x", "np.matmul(v, w)", "np.dot(x, y)",
    "np.dot(v, w)", "np.inner(x, y)", "np.tensordot(x, y, 1)", "np.vdot(v, w)", "np.where(b, x, y)", "x == y.T.copy()[:2]",
    "np.concatenate([x, v])", "np.concatenate([x, y])", "np.concatenate([x, y.T], axis=1)", "np.stack([x, y])",
    "np.vstack([x, y])", "np.hstack([x, x.T])", "np.dstack([x, y])", "np.column_stack([x, v])", "np.append(x, v, axis=0)",
    "np.block([[x, y], [x, x]])", "x.reshape(5, 5)", "x.reshape(-1, 5)", "np.reshape(x, (2, -1, -1))", "v.reshape(3)",
    "np.broadcast_to(x, (4, 4))", "np.broadcast_to(x, (4,))", "np.broadcast_arrays(x, y)", "np.full((2, 2), v)",
    "np.linspace(v, w, 3)", "np.clip(x, v, w)", "np.select([x > 0], [y])", "np.insert(x, 1, w, axis=0)",
    "np.take_along_axis(x, i, axis=0)", "np.einsum('ij,jk', x, y)", "np.einsum('ij->k', x)",
    "np.linalg.norm(x, axis=(0, 1, 1))", "np.convolve(x, v)", "np.average(x, weights=w)", "np.compress([True], x, axis=3)",
    "np.lib.stride_tricks.sliding_window_view(v, 7)", "np.vander(x)", "np.diag(c)", "np.pad(x, ((1, 2), (3, 4), (5, 6)))",
    # axes
    "x.sum(axis=2)", "np.sum(x, axis=-3)", "np.mean(x, axis=2)", "np.max(x, axis=(0, 0))", "np.argmax(x, axis=2)",
    "np.cumsum(x, axis=2)", "np.prod(v, axis=1)", "np.var(x, axis=5)", "np.any(b, axis=1)", "np.sort(x, axis=2)",
    "np.argsort(v, axis=1)", "np.expand_dims(x, 4)", "np.expand_dims(x, (0, 0))", "np.squeeze(x, axis=0)",
    "np.squeeze(x[None], axis=5)", "np.transpose(x, (0, 0))", "np.transpose(x, (0, 1, 2))", "x.transpose(1)",
    "np.swapaxes(x, 0, 2)", "np.moveaxis(x, 0, 2)", "np.moveaxis(x, (0, 1), (0,))", "np.rollaxis(x, 3)", "np.flip(x, axis=2)",
    "np.fliplr(v)", "np.flipud(z)", "np.roll(x, 1, axis=2)", "np.rot90(v)", "np.rot90(x, 1, (0, 0))",
    "np.stack([x, x], axis=3)",
    "np.concatenate([x, x], axis=2)", "np.concatenate([z, z])", "np.concatenate([])", "np.repeat(x, 2, axis=2)",
    "np.repeat(x, -1)", "np.tile(x, -1)", "np.split(x, 5, axis=1)", "np.split(x, 2, axis=2)", "np.array_split(x, 0)",
    "np.hsplit(z, 2)", "np.vsplit(v, 2)", "np.dsplit(x, 2)", "np.take(x, i, axis=2)", "np.delete(x, 0, axis=2)",
    "np.insert(x, 0, 1.0, axis=2)", "np.diagonal(v)", "np.diagonal(x, axis1=0, axis2=0)", "np.trace(v)", "np.unstack(z)",
    "np.matrix_transpose(v)", "v.mT", "np.diff(v, axis=1)", "np.diff(v, n=-1)", "np.take_along_axis(x, i[:, None], axis=2)",
    # positions
    "x[3]", "x[-4]", "x[0, 4]", "x[0, 0, 0]", "x[..., ...]", "x[1.0]", "x['a']", "x[i, i, i]", "x[[0, 3]]", "x[i[:2], i]",
    "v[i + 0.5]", "v[::0]", "np.take(v, [7])", "np.delete(v, 9)", "np.insert(v, 9, 1.0)",
    "np.take(v, i, mode='never')", "z[0]",
    # dtypes and casts
    "x.astype('i4', casting='safe')", "x.astype(np.int64, casting='same_kind')", "x & x", "~x", "x << 1", "np.bitwise_or(x, i)",
    "x.astype('no such dtype')", "np.concatenate([x, x], dtype='i4')", "np.add(i, i, dtype='i1', casting='no')",
    "np.subtract(b, b)", "-b", "np.sum(x, dtype='no such dtype')", "i + 2**70", "i.astype('u1') + 300", "1 << x",
    # sizes and other arguments
    "np.zeros((-1, 2))", "np.ones(-3)", "np.full((2, -2), z)", "np.eye(-1, 2)", "np.arange(0, 1, 0)",
    "np.linspace(z, 1, -2)", "np.reshape(x, (3, 4), order='never')", "np.pad(x, -1)", "np.pad(x, 1, 'never')",
    "np.pad(x, 1.5)", "np.meshgrid(v, w, indexing='never')", "np.geomspace(0, z, 3)", "np.vander(v, -1)",
    "np.unravel_index(v, (2, 2))", "np.ravel_multi_index((i, i), (3,))", "np.choose(v, [x, x])", "np.resize(x, (-1,))",
    "np.linalg.inv(x)", "np.linalg.det(v)", "np.linalg.solve(x, v)", "np.linalg.cholesky(x)", "np.fft.fft(z)",
    "np.fft.fft(v, axis=1)",
]  # fmt: skip
#: What NumPy says nothing of, because it is no call of NumPy's: the line alone is told.
OF_PYTHON = frozenset({"v.mT"})


def public(error):
    """The nearest type that has a public name."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ in ("builtins", "numpy.exceptions", "numpy.linalg"))


def refused(call, *args):
    try:
        with np.errstate(all="ignore"):
            call(*args)
    except Exception as error:
        return error
    return None


@pytest.fixture(scope="module")
def wrong_calls():
    """One function for each expression, with a source that can be read."""
    lines = ["import numpy as np", ""]
    for number, expression in enumerate(WRONG):
        lines += [f"def wrong_{number}(x, y, v, w, i, b, z, c):", f"    return {expression}", ""]
    text = "\n".join(lines)
    filename = "<wrong calls>"
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    namespace = {}
    exec(compile(text, filename, "exec"), namespace)
    return {expression: namespace[f"wrong_{number}"] for number, expression in enumerate(WRONG)}


def copies():
    return [value.copy() for value in NAMES.values()]


def told(error):
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def check(error, numpys, expression, line):
    """Type, call, shapes and line; "" when all are told."""
    if numpys is None or error is None:
        return "NumPy refuses nothing" if numpys is None else f"it is accepted; NumPy: {numpys!r}"
    text = told(error)
    if not isinstance(error, public(numpys)):
        return f"{type(error).__name__}: {text.splitlines()[0]}; NumPy: {type(numpys).__name__}: {numpys}"
    if expression not in OF_PYTHON and "why:" not in text:
        return f"no operation in {text!r}"
    if "[" not in text and re.search(r"\b[xyvwibzc]\b", expression) and expression not in OF_PYTHON:
        return f"no shapes in {text!r}"
    return "" if line in text else f"no line in {text!r}"


MODES = {
    "jit_compile": lambda f: jl.function(f, jit_compile=True),
    "function": jl.function,
    "jit": jl.jit,
    "fullgraph": lambda f: jl.jit(f, fullgraph=True),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_call_is_refused_as_numpy_refuses_it(mode, wrong_calls):
    wrong = []
    for expression, call in list(wrong_calls.items())[:: 4 if mode == "jit" else 1]:  # there each is a piece of its own
        numpys = refused(call, *copies())
        error = refused(MODES[mode](call), *copies())
        found = check(error, numpys, expression, f"return {expression}")
        if found:
            wrong.append(f"{expression}: {found}")
    assert not wrong, f"{len(wrong)} of {len(WRONG)}:\n" + "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
def test_a_wrong_statement_of_a_cell_is_refused_as_numpy_refuses_it(wrong_calls):
    wrong = []
    for number, (expression, call) in enumerate(wrong_calls.items()):
        numpys = refused(call, *copies())
        source, filename = f"a = v * 2\nresult = {expression}\n", f"<wrong cell {number}>"
        linecache.cache[filename] = len(source), None, source.splitlines(keepends=True), filename
        namespace = {"np": np, **dict(zip(NAMES, copies(), strict=True))}
        error = refused(run_cell, source, namespace, filename)
        np.testing.assert_array_equal(namespace["a"], V * 2)
        found = check(error, numpys, expression, f"result = {expression}")
        if found:
            wrong.append(f"{expression}: {found}")
    assert not wrong, f"{len(wrong)} of {len(WRONG)}:\n" + "\n".join(wrong)


def test_there_are_many():
    assert len(set(WRONG)) == len(WRONG) > 100
