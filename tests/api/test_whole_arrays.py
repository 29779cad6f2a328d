"""Making, joining, moving and picking: functions that must compile give NumPy's arrays bit for bit, and have slopes."""

import linecache

import numpy as np
import pytest

import jitlab as jl

X, Y = np.linspace(-1, 1, 12).reshape(3, 4), np.linspace(3, -2, 12).reshape(3, 4)
NAMES = {
    "x": X, "y": Y, "v": np.array([3.0, 1, 2, 5]), "w": np.array([1.0, 2, 3, 4]), "i": np.array([2, 0, 1]),
    "s": np.float64(1.5),
    "q": np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]]), "m": np.array([True, False, True]), "k": np.array([10, 20, 30]),
    "t": np.zeros((8, 3)),
}  # fmt: skip

#: Expressions of x, y (3, 4), v, w (4,), i (positions), s (a number), q (3, 3), m (bools), k (integers), t (8, 3).
CALLS = [
    # joining
    "np.block([[x, y], [y, x]])", "np.block([1.0, v])", "np.insert(x, 1, 5.0, axis=1)", "np.insert(x, [1, 2], x[:2], axis=0)",
    "np.insert(v, 2, [7.0, 8.0])", "np.insert(x, 1, v[:3], axis=1)", "np.insert(x, -1, y[0], axis=0)",
    "np.delete(x, 1, axis=1)",
    "np.delete(x, [0, -1], axis=1)", "np.delete(x, slice(0, 2), axis=1)", "np.delete(x, 1)", "np.delete(v, np.array([0, 2]))",
    "np.repeat(x, [1, 0, 3], axis=0)", "np.tile(x, np.array([2, 1]))", "np.resize(x, (2, 3))", "np.resize(x, (5, 4))",
    "np.roll(x, (1, 2))", "np.roll(x, (1, -2), axis=(0, 1))", "np.roll(x, i[0] + i[2], axis=1)", "np.roll(x, i[0] * 9)",
    "np.concatenate((x, y), axis=1, dtype='f4', casting='unsafe')", "np.r_[v, 1.0, w]", "np.r_['0,2', v, w]", "np.c_[v, w]",
    "np.r_[i, 2, 0:3]", "np.atleast_2d(v, x)", "np.reshape(x, (2, -1), copy=True)", "np.ravel(x.T, 'K')",
    # borders
    "np.pad(x, ((1, 2), (0, 1)), constant_values=s)", "np.pad(x, 2, 'edge')", "np.pad(x, 2, 'reflect')",
    "np.pad(x, ((0, 7), (5, 0)), 'reflect')", "np.pad(x, 5, 'reflect', reflect_type='odd')", "np.pad(x, 2, 'symmetric')",
    "np.pad(x, 6, 'symmetric', reflect_type='odd')", "np.pad(x, (1, 9), 'wrap')", "np.pad(x, 2, 'linear_ramp', end_values=s)",
    "np.pad(k, 3, 'linear_ramp', end_values=(0, 7))", "np.pad(x, 1, 'maximum')", "np.pad(x, 2, 'mean')", "np.pad(k, 1, 'mean')",
    "np.pad(x, 2, 'minimum', stat_length=2)", "np.pad(x, 1, 'median')", "np.pad(x, {0: (1, 2)})", "np.pad(v[:1], 2, 'reflect')",
    # made from numbers
    "np.linspace(v, w, 5)", "np.linspace(v, w, 5, axis=-1)", "np.linspace(v, 2, 4, endpoint=False, retstep=True)",
    "np.linspace(s, s, 4)", "np.linspace(0, 1j, 5) * s", "np.logspace(v, 2, 3)[0]", "np.vander(v)",
    "np.vander(k, 3, increasing=True)", "np.ix_(i, i)", "np.zeros((2, 3), order='F') + s", "np.asarray_chkfinite(x)",
    "np.require(x, dtype='f4')", "np.astype(x, np.float32)", "np.arange(0, 2, 0.5) * s",
    # diagonals
    "np.diagflat(x, 1)", "np.tril_indices_from(q, -1)", "np.diag_indices_from(q)", "q[np.triu_indices(3, 1)]",
    "np.linalg.diagonal(x)",
    # picked
    "np.take(x, i + 2, axis=1, mode='wrap')", "np.take(x, i * 3, axis=1, mode='clip')", "np.choose(i, (k, 2 * k, -k))",
    "np.choose(k, (i, -i), mode='wrap')", "i.choose([1.0, 2.0, 3.0])", "np.compress([True, False, True], x, axis=0)",
    "x[[True, False, True]]", "x[:, np.array([True, False, True, True])]", "x[None, True]", "x[np.ix_([0, 2], [1, 3])]",
    "np.unravel_index(i * 4, (3, 5))", "np.ravel_multi_index((i, i), (3, 3))",
    "np.ravel_multi_index((k, i), (3, 4), mode='wrap')",
    "np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)", "np.lib.stride_tricks.sliding_window_view(x, (2, 3))",
    "np.piecewise(x, [x < 0, x > 0.5], [lambda t: t * t, 2.0, -1.0])", "x.astype(np.result_type(i, 'f4'))", "np.iterable(x)",
]  # fmt: skip
#: Statements that write, each followed by reading what was written into.
WRITES = [
    "np.put(x, [0, -2], [1.0, 2.0])", "np.put(x, i, s)", "np.put(x, i + 11, 5.0, mode='clip')",
    "np.place(x, x > 0, [1.0, 2.0])",
    "np.place(x, x > 0, s)", "np.putmask(x, x > 0, s)", "np.putmask(x, x > 0, y)", "np.putmask(x, x > 0, v[:3])",
    "np.put_along_axis(x, i[:, None], 5.0, axis=1)", "np.fill_diagonal(x, v)", "x[m] = v", "x[m] = y[:2]", "x[m, 1] = s",
    "x[x > 0] = np.arange(6.0)", "x[:, x[0] > -0.9] = 7.0", "x[[True, False, True]] = v", "x[1, v > 1] = s", "x[x > 2] = v[:0]",
]  # fmt: skip
SLOPES = [
    "np.block([[x, y], [y, x]])", "np.insert(x, [1, 2], x[:2], axis=0)", "np.delete(x, [0, -1], axis=1)",
    "np.resize(x, (5, 4))",
    "np.roll(x, i[0] + 0, axis=1)", "np.pad(x, 5, 'reflect', reflect_type='odd')", "np.pad(x, (1, 9), 'wrap')",
    "np.pad(x, 2, 'linear_ramp')", "np.pad(x, 2, 'mean')", "np.linspace(x, y, 3)", "np.vander(x[0])", "np.diagflat(x)",
    "np.take(x, i, axis=1, mode='wrap')", "np.choose(i, (x[:, 0], x[:, 1], x[:, 2]))", "np.repeat(x, [1, 0, 3], axis=0)",
    "np.lib.stride_tricks.sliding_window_view(x, (2, 2))", "np.c_[x, y]", "np.geomspace(x + 2, 4.0, 3)",
]  # fmt: skip


def functions(expressions, statement=False):
    """A function of the names for each text, with a source that can be read."""
    lines = ["import numpy as np", ""]
    for number, text in enumerate(expressions):
        body = [f"    {text}", "    return x"] if statement else [f"    return {text}"]
        lines += [f"def f{number}({', '.join(NAMES)}):", *body, ""]
    source, filename = "\n".join(lines), f"<whole arrays {len(expressions)}>"
    linecache.cache[filename] = len(source), None, source.splitlines(keepends=True), filename
    namespace = {}
    exec(compile(source, filename, "exec"), namespace)
    return [namespace[f"f{number}"] for number in range(len(expressions))]


def copies():
    return [value.copy() for value in NAMES.values()]


def differs(got, want):
    if isinstance(want, (tuple, list)):
        pairs = zip(got, want, strict=True)
        return type(got) is not type(want) or any(differs(mine, theirs) for mine, theirs in pairs)
    if not isinstance(want, (np.ndarray, np.generic)):
        return got != want
    return isinstance(got, np.ndarray) is not isinstance(want, np.ndarray) or got.dtype != want.dtype or (
        got.tobytes() != want.tobytes() or got.shape != want.shape
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("texts", [CALLS, WRITES], ids=["calls", "writes"])
def test_compiled_calls_give_numpys_bits(texts):
    wrong = []
    for text, f in zip(texts, functions(texts, texts is WRITES), strict=True):
        want = f(*copies())
        try:
            got = jl.function(f, jit_compile=True)(*copies())
        except Exception as error:
            wrong.append(f"{text}: {type(error).__name__}: {error}")
            continue
        if differs(got, want):
            wrong.append(f"{text}: {got!r}, NumPy gives {want!r}")
    assert not wrong, f"{len(wrong)} of {len(texts)}:\n" + "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
def test_slopes_are_finite_differences():
    for text, f in zip(SLOPES, functions(SLOPES), strict=True):
        weights = np.cos(np.arange(f(*copies()).size)).reshape(f(*copies()).shape)

        def total(x, f=f, weights=weights):
            return np.sum(f(x, *copies()[1:]) * weights)

        slope = jl.grad(total)(X)
        for place in [(0, 0), (1, 2), (2, 3)]:
            step = np.zeros_like(X)
            step[place] = 1e-6
            want = (total(X + step) - total(X - step)) / 2e-6
            assert slope[place] == pytest.approx(want, rel=1e-5, abs=1e-6), text


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("x[x > 0] = v", ValueError, "cannot assign 4 input values to the 6 output values"),
        ("x[0] = np.choose(i + 2, (i, i, i))[0]", ValueError, "invalid entry in choice array"),
        ("x[0] = np.unravel_index(k, (3, 4))[0][0]", ValueError, "index 20 is out of bounds for array with size 12"),
        ("x[0] = np.asarray_chkfinite(v / 0)", ValueError, "must not contain infs or NaNs"),
        ("np.put(x, k, 0.0)", IndexError, "index 20 is out of bounds"),
        ("np.place(x, x > 0, v[:0])", ValueError, "Cannot insert from an empty array"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_numpy_refuses_of_data_is_refused_at_run_time(statement, error, message):
    (f,) = functions([statement], True)
    with pytest.raises(error, match=message), np.errstate(all="ignore"):
        f(*copies())
    with pytest.raises(error, match=message):
        jl.function(f, jit_compile=True)(*copies())
