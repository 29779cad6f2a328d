"""What NumPy's calls give is NumPy's in memory, too: which results are an argument or share its memory, what may be written
into, and in which order axes lie: for arguments row by row, column by column, with gaps, backwards, repeated, read-only."""

import linecache
import re
import warnings

import numpy as np
import pytest

import jitlab as jl

ARRAYS = {
    "x": np.linspace(0.1, 0.9, 12).reshape(4, 3), "z": np.arange(24.0).reshape(2, 3, 4) + 0.5, "v": np.arange(5.0) + 1,
    "i": np.arange(12).reshape(3, 4), "c": np.arange(6.0).reshape(2, 3) + 1j, "o": np.ones((1, 3, 1)), "s": np.array(2.5),
    "e": np.zeros((0, 3)), "m": np.array([[4.0, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]]),
}  # fmt: skip


def rows(x):
    return x.copy()


def columns(x):
    return x.copy("F")


def with_gaps(x):
    if not x.ndim:
        return x.copy()
    wide = np.zeros([2 * n for n in x.shape], x.dtype)[tuple(slice(None, None, 2) for _ in x.shape)]
    wide[...] = x
    return wide


def backwards(x):
    return x[::-1].copy()[::-1] if x.ndim else x.copy()


def turned(x):
    """The first two axes lie the other way round."""
    return np.swapaxes(np.swapaxes(x, 0, 1).copy(), 0, 1) if x.ndim > 1 else x.copy()


def repeated(x):
    return np.broadcast_to(x[:1], x.shape) if x.size and x.ndim else x.copy()


def readonly(x):
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS = (rows, columns, with_gaps, backwards, turned, repeated, readonly)

#: Of each array: what converts, what gives views, what copies. `a` stands for x, z, v, i, c, o, s and e in turn.
OF_ANY = """
    np.array(a) | np.array(a, copy=False) | np.array(a, copy=None) | np.array(a, copy=None, ndmin=4) | np.array(a, order="F")
    np.array(a, order="C") | np.array(a, order="A") | np.array(a, copy=None, order="F") | np.array(a, copy=None, order="A")
    np.array(a, "c16", copy=None) | np.array(a, a.dtype, copy=False) | np.array(a, "f4", copy=False)
    np.array(a, order="F", copy=False) | np.asarray(a) | np.asanyarray(a) | np.asarray(a, order="F")
    np.asarray(a, order="C") | np.asarray(a, copy=True) | np.asarray(a, copy=False) | np.asarray(a, dtype=a.dtype)
    np.asarray(a, "c16") | np.ascontiguousarray(a) | np.asfortranarray(a) | np.ascontiguousarray(a, a.dtype)
    np.float64(a) | np.float64(a.T) | np.float64(a[::2]) | np.float32(a) | np.complex128(a)
    np.asarray_chkfinite(a) | np.asarray_chkfinite(a, order="F") | np.require(a) | np.require(a, requirements="C")
    np.require(a, requirements="F") | np.require(a, requirements=["W"]) | np.require(a, requirements=["O"])
    np.require(a, requirements=["C", "W", "O", "A"]) | np.require(a, "c16", ["F"]) | a.astype(a.dtype)
    a.astype(a.dtype, copy=False) | a.astype(a.dtype, order="F", copy=False) | a.astype("c16", order="C")
    np.astype(a, a.dtype) | np.astype(a, a.dtype, copy=False) | a.copy() | a.copy("K") | a.copy("F") | a.copy("A")
    np.copy(a) | np.copy(a, "C") | np.copy(a, order="F") | a.view() | a[...] | a[()] | a.T | a.transpose() | a.swapaxes(0, -1)
    np.squeeze(a) | a.squeeze() | np.atleast_1d(a) | np.atleast_2d(a) | np.atleast_3d(a) | np.broadcast_to(a, a.shape)
    np.broadcast_to(a, (2, *a.shape)) | a.reshape(a.shape) | np.reshape(a, a.shape) | a.reshape(-1)
    np.reshape(a, -1, order="F") | a.reshape(-1, order="A") | np.ravel(a) | a.ravel() | a.ravel("F") | a.ravel("A")
    a.ravel("K") | a.flatten() | a.flatten("K") | a.flatten("F") | np.real(a) | np.imag(a) | a.real | a.imag | a.conj()
    np.conj(a) | np.nan_to_num(a) | np.nan_to_num(a, copy=False) | np.round(a) | np.round(a, 2) | np.clip(a.real, 0, 1)
    np.diff(a, n=0) | np.diff(a) | np.flip(a) | np.broadcast_arrays(a, a) | np.meshgrid(a, copy=False)
    np.meshgrid(a, a, copy=False, sparse=True) | np.ix_(a.ravel()) | np.expand_dims(a, ()) | np.expand_dims(a, 0)
    np.rot90(a, 4) | np.roll(a, 0) | np.roll(a, 1, -1) | np.tile(a, 1) | np.repeat(a, 1) | np.resize(a, a.shape)
    np.append(a, []) | np.concatenate([a]) | np.stack([a, a], -1) | np.split(a, 1) | np.hstack([a, a]) | np.vstack([a])
    np.dstack([a]) | np.pad(a, 1) | np.unstack(a) | np.diagonal(a) | np.diag(a) | np.tril(a) | np.where(a == 0, a, a)
    np.sort(a) | np.sort(a, 0) | np.argsort(a, 0) | np.partition(a, 0) | np.positive(a) | -a | a * 2 | a**2
    np.add(a, 1, order="F") | np.add(a, 1, order="C") | a + a.T.copy().T | np.sum(a, 0) | np.cumsum(a, 0) | np.cumsum(a)
    np.mean(a, -1) | np.var(a, 0) | np.max(a, 0) | np.argmax(a, 0) | np.any(a, 1) | np.prod(a, (0, 1))
    np.sum(a, 1, keepdims=True) | np.median(a.real, 0) | np.take(a, [0], 0) | np.take(a, [0, 1], 1) | a[[0]] | a[:, [0]]
    a[:, [0, 1]] | a[..., [0, 1]] | a[[0], :, [1]] | a[:, [[0, 1]], 1] | np.compress([True], a, 0) | np.repeat(a, 2, 0)
    np.repeat(a, 2, -1) | np.delete(a, 0, 1) | np.insert(a, 0, 1, 1) | np.einsum("...->...", a) | np.matrix_transpose(a)
    np.permute_dims(a) | np.moveaxis(a, 0, -1) | np.zeros_like(a) | np.ones_like(a, order="C") | np.full_like(a, 3)
    np.zeros_like(a, shape=(4, 5)) | np.gradient(a.real, axis=0) | a * (2 if np.isfortran(a) else 3)
    np.fft.fft(a, axis=0) | np.fft.fftn(a)
    np.fft.fftshift(a) | np.frexp(a.real) | np.divmod(a.real, 2) | np.nonzero(a) | np.apply_along_axis(np.sort, 0, a)
    np.real_if_close(a.real) | np.select([a == 1], [a]) | np.piecewise(a, [a == 1], [1]) | np.isin(a, [1]) | np.angle(a)
    np.sinc(a) | np.i0(a.real) | np.unwrap(a.real) | np.trapezoid(a, axis=0) | np.average(a, 0) | np.quantile(a.real, 0.3, 0)
    np.cumulative_sum(a, axis=-1) | np.add.reduceat(a, [0, 1], -1) | np.add.outer(a, a) | np.multiply.accumulate(a, 0)
    np.lexsort((a.real, a.real)) | np.searchsorted([0.5, 1.0], a.real) | a.take([0], 0) | a.repeat(2, 0) | np.fliplr(a)
    np.array_split(a, 2) | np.argpartition(a, 0) | np.cumsum(a, -1) | np.take(a, 0, 0) | np.logical_not(a) | np.fix(a.real)
"""
#: Of some arrays.
OTHERS = """
    x @ m | np.matmul(z, z.swapaxes(1, 2)) | np.dot(z, z[0].T) | np.inner(x, x) | np.outer(v, v) | np.kron(m, x)
    np.cross(m, m) | np.tensordot(z, z, ([0], [0])) | np.einsum("ij,jk->ik", m, m) | np.einsum("ij->ji", m)
    np.einsum("ii->i", m) | np.einsum("ijk->kji", z) | np.linalg.inv(m) | np.linalg.solve(m, m) | np.linalg.qr(m)
    np.linalg.svd(m) | np.linalg.cholesky(m) | np.linalg.eigh(m) | np.linalg.pinv(x) | np.linalg.matrix_power(m, 2)
    np.cov(x) | np.vander(v) | np.meshgrid(v, v) | np.where(x > 0.5, x, 0) | np.broadcast_to(v, (4, 5)) * 2
    np.broadcast_to(v, (4, 5)).copy("K") | np.take_along_axis(x, np.argsort(x, 1), 1) | x + x.T[0, 0]
    np.maximum(x, x.copy("F")) | np.concatenate([x, x.copy("F")], 1) | np.block([[x, x], [x, x]]) | (x * 2).T | (x * 2)[::2]
    (x * 2)[1] | (z * 2)[:, ::-1].swapaxes(0, 2) | np.diagonal(m * 2) | np.broadcast_to(x * 2, (2, 4, 3))
    (x.T * 2).ravel("K") | (x * 2).ravel() | np.lib.stride_tricks.sliding_window_view(v * 2, 2)
    np.lib.stride_tricks.sliding_window_view(x, 2, 0) | x.copy("F").ravel("K") | np.ones((3, 4), order="F")
    np.full((2, 3), 1.5, order="F") | np.zeros((2, 3, 4), "f4", "F") | np.eye(3, order="F") | np.empty((0, 3))
    np.asfortranarray(x).reshape(-1, order="A") | np.array([x, x], order="F") | np.array([[1, 2], [3, 4]], order="F")
    x.copy("F").flatten("A") | np.unique(i) | np.digitize(x, [0.2, 0.5]) | np.interp(x, v, v) | np.polyval([1.0, 2.0], x)
    np.histogram(v, 3) | np.indices((2, 3)) | i[i > 3] | x[x > 0.5] | x[np.array([True, False, True, False])]
    z[:, [0, 1], [1, 0]] | z[np.array([[0, 1], [1, 0]])] | z[[0], :, [0, 1]] | np.clip(0.5, None, x) | np.clip(0.5, x, None)
    np.clip(0.5, a_min=0.1, a_max=z) | np.clip(z, min=z, max=0.9) | np.round(a=x, decimals=1) | np.power(2.0, x)
"""


def calls():
    for text in (part.strip() for line in OF_ANY.splitlines() for part in re.split(r" \| ", line.strip()) if part.strip()):
        for name in "xzvicose":
            yield re.sub(r"\ba\b", name, text)
    yield from (part.strip() for line in OTHERS.splitlines() for part in re.split(r" \| ", line.strip()) if part.strip())


def program(call, names, is_cut):
    """The call as a function of the arrays that it names; `is_cut`: with a statement behind it that Python runs."""
    cut = "    print(end='')\n" if is_cut else ""
    text = f"def program({', '.join(names)}):\n    result = {call}\n{cut}    return result\n"
    file = f"<memory of {call}{is_cut}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    namespace = {"np": np}
    exec(compile(text, file, "exec"), namespace)
    return namespace["program"]


def leaves(x):
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, (list, tuple)) else [x]


def seen(x, arguments):
    """All that a program can see of a result, besides its values."""
    if not isinstance(x, np.ndarray):
        return type(x), getattr(x, "dtype", None)
    return {
        "type": type(x), "dtype": x.dtype, "shape": x.shape, "writeable": x.flags.writeable,
        "strides": [s for s, n in zip(x.strides, x.shape, strict=True) if n > 1] if x.size else [],
        "contiguous": (x.flags.c_contiguous, x.flags.f_contiguous),
        "is": [n for n, a in enumerate(arguments) if a is x],
        "shares": [n for n, a in enumerate(arguments) if np.shares_memory(a, x)],
    }  # fmt: skip


def ran(call, arguments):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = call(*arguments)
        except Exception as error:
            return type(error), None
    return [type(result), *(seen(x, arguments) for x in leaves(result))], leaves(result)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["jit", "function", "jit after a cut"])
@pytest.mark.parametrize("call", list(dict.fromkeys(calls())))
def test_a_result_lies_in_memory_as_numpys_does(call, mode):
    transform = jl.function if mode == "function" else jl.jit
    names = [name for name in ARRAYS if re.search(rf"(?<![\w.\"']){name}\b(?![\"'=(])", call)]
    for layout in LAYOUTS:
        theirs, mine = ([layout(ARRAYS[name]) for name in names] for _ in range(2))
        plain = program(call, names, "cut" in mode)
        want, values = ran(plain, theirs)
        got, found = ran(transform(plain), mine)
        if values is None:
            assert found is None and (transform is jl.function or got is want), f"{layout.__name__}: {got} for {want}"
            continue
        if transform is jl.function:  # Python's own numbers come back as NumPy's
            numbers = [n for n, x in enumerate(values) if not isinstance(x, (np.ndarray, np.generic))]
            got, want = ([item for n, item in enumerate(items) if n - 1 not in numbers] for items in (got, want))
        assert got == want, layout.__name__
        for x, y in zip(found, values, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-8, err_msg=layout.__name__)


def test_a_call_with_another_order_of_axes_has_its_own():
    """The same shapes, first row by row and then not: what was recorded for the one does not answer for the other."""
    for transform in (jl.jit, jl.function):
        f = transform(lambda x: (x * 2, x.ravel("K") + 1, np.asfortranarray(x), np.ascontiguousarray(x)))
        for layout in (*LAYOUTS, rows, columns, *LAYOUTS[::-1]):
            x, y = layout(ARRAYS["z"]), layout(ARRAYS["z"])
            want = [seen(r, [y]) for r in (y * 2, y.ravel("K") + 1, np.asfortranarray(y), np.ascontiguousarray(y))]
            assert [seen(r, [x]) for r in f(x)] == want, layout.__name__
            np.testing.assert_array_equal(f(x)[1], y.ravel("K") + 1)


def test_writes_go_through_what_shares_memory():
    def program(x, y):
        np.asarray(x)[0] = 1
        np.array(x, copy=False)[1] = 2
        np.array(x, copy=None)[2] = 3
        np.ascontiguousarray(x)[3] = 4
        np.require(x, requirements=["C", "W"])[0, 1] = 5
        np.squeeze(x)[1, 1] = 6
        x.astype(x.dtype, copy=False)[2, 1] = 7
        x.ravel()[-1] = 8
        y.ravel("K")[1] = 9
        np.asfortranarray(x)[0, 2] = 10  # a copy
        np.array(x)[0] = 11
        x.copy("F").ravel("K")[0] = 12
        np.atleast_3d(x)[1, 2] = 13
        np.ix_(x[0])[0][0] = 14
        return x.sum() + y.sum()

    plain = rows(ARRAYS["x"]), columns(ARRAYS["x"])
    want = program(*plain)
    for transform in (jl.jit, jl.function):
        mine = rows(ARRAYS["x"]), columns(ARRAYS["x"])
        np.testing.assert_allclose(transform(program)(*mine), want)
        for x, y in zip(mine, plain, strict=True):
            np.testing.assert_array_equal(x, y)


def test_a_conversion_that_has_to_copy_is_refused_where_none_is_wanted():
    for program in (
        lambda x: np.array(x, np.float32, copy=False), lambda x: np.asarray(x, order="F", copy=False),
        lambda x: np.array([1.0, 2.0], copy=False) + x[0, 0], lambda x: np.array(x[0, 0], copy=False),
    ):  # fmt: skip
        for transform in (lambda f: f, jl.jit, jl.function):
            with pytest.raises(ValueError, match="Unable to avoid copy"):
                transform(program)(rows(ARRAYS["x"]))
