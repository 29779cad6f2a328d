"""What random programs are made of: each entry draws operands from a Maker and gives (lines, operands, exact), or None.

In the lines `$` is the name of the new value. The ufuncs come from the table itself; `UNCOVERED` says which of its other
callees no entry draws, and why.
"""

from __future__ import annotations

import numpy as np

from jitlab.ops import Elementwise, operations, table

#: Functions whose result docs/reference/numerics.md fixes to NumPy's bit for every dtype, besides the ufuncs of exact classes.
EXACT_REDUCTIONS = ("max", "min", "any", "all", "argmax", "argmin", "count_nonzero")
INEXACT_REDUCTIONS = ("sum", "prod", "mean", "var", "std", "ptp")

EXACT = {cls.ufunc for cls in operations(Elementwise) if "ufunc" in vars(cls) and cls.exact}
EXACT |= {np.positive, np.conjugate, np.fabs}

EXACT_OF_COMPLEX = {
    *(np.add, np.subtract, np.negative, np.positive, np.conjugate, np.maximum, np.minimum, np.fmax, np.fmin),
    *(np.less, np.less_equal),
    *(np.greater, np.greater_equal, np.equal, np.not_equal, np.isnan, np.isinf, np.isfinite),
    *(np.logical_and, np.logical_or, np.logical_xor, np.logical_not),
}

#: NumPy's ufunc -> is it exact?
UFUNCS = {
    ufunc: ufunc in EXACT
    for ufunc in table.FUNCTIONS
    if isinstance(ufunc, np.ufunc) and ufunc.nout == 1 and ufunc.signature is None
    if getattr(np, ufunc.__name__, None) is ufunc  # the table learns SciPy's when a program uses them
}
UNARY = [f for f in UFUNCS if f.nin == 1]
BINARY = [f for f in UFUNCS if f.nin == 2]
ARITHMETIC = ["+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", ">", "&", "|", "^"]


def entries(text: str) -> list[str]:
    """The parts of a text that semicolons divide."""
    return [part.strip() for part in text.split(";")]


ASSIGNMENTS = entries(
    """
    $[...] = 1; $[1:] = $[:-1]; $[::2] += 1; $[$ > 0] = 0; $[0] = {y}; $ += {y}; $[...] = {y}; $[:-1] *= $[1:]; $[[0, -1]] = 2;
    np.add.at($, [0, 0, -1], 1); $.sort(); $[$ < 0] *= -1
    """
)
METHODS = entries(
    """
    copy(); T; ravel(); astype(np.float32); astype(np.float64); astype(np.int64); round(1); clip(-1, 2); conj(); real;
    imag; any(); max(0); swapaxes(0, -1); squeeze()
    """
)
SHAPING = entries(
    """
    np.transpose({x}); np.flip({x}, {a}); np.roll({x}, 1, axis={a}); np.expand_dims({x}, {a}); np.reshape({x}, -1);
    np.broadcast_to({x}, (2, *{x}.shape)); np.moveaxis({x}, 0, -1); np.concatenate([{x}, {x}], axis={a});
    np.stack([{x}, {x}], axis={a}); np.tile({x}, 2); np.repeat({x}, 2, axis={a}); np.pad({x}, 1); np.diff({x}, axis={a});
    np.triu({x}); np.tril({x}, -1); np.rot90({x}); np.hstack([{x}, {x}]); np.vstack([{x}, {x}]); np.atleast_2d({x});
    np.squeeze({x}); np.diagonal({x}); np.zeros_like({x}); np.full_like({x}, 3); np.take({x}, [0, -1], axis={a});
    np.swapaxes({x}, 0, {a}); np.ravel({x}); np.split({x}, 1, axis={a})[0]; np.meshgrid({x}, {x})[1];
    np.arange({x}.shape[0]) * 2; np.linspace(0, 1, {x}.shape[0]); np.eye({x}.shape[0]);
    np.take_along_axis({x}, np.argsort({x}, axis={a}, kind='stable'), axis={a}); np.fliplr({x}); np.flipud({x});
    np.indices({x}.shape)[0]; np.insert({x}, 0, 1, axis={a}); np.delete({x}, 0, axis={a}); np.append({x}, {x});
    np.permute_dims({x})
    """
)
ORDERING = entries(
    """
    np.sort({x}, axis={a}); np.argsort({x}, axis={a}, kind='stable'); np.cumsum({x}, axis={a});
    np.cumprod({x}, axis={a}); np.maximum.accumulate({x}, axis={a}); np.searchsorted(np.sort({x}, axis=None), {x});
    np.median({x}, axis={a}); np.quantile({x}, 0.3, axis={a}); np.nansum({x}, axis={a}); np.nanmax({x}, axis={a});
    np.nanmean({x}, axis={a}); np.unique({x}); np.nonzero({x})[0]; np.add.reduce({x}, axis={a});
    np.partition({x}, 0, axis={a}); np.isin({x}, [1, 2]); np.clip({x}, -1, 1); np.digitize({x}, [-1.0, 0.0, 1.0]);
    np.nan_to_num({x}); np.logical_xor.reduce({x}, axis={a}); np.histogram({x}, bins=5, range=(-3, 3))[0];
    np.interp({x}, [-1.0, 0.0, 1.0], [2.0, 3.0, 5.0]); np.trapezoid({x}, axis={a}); np.average({x}, axis={a});
    np.convolve({x}, [1, 2, 1]); np.subtract.accumulate({x}, axis={a}); np.nanstd({x}, axis={a})
    """
)
#: Functions of ORDERING that round.
ROUNDED = (
    *("median", "quantile", "nansum", "mean", "add.reduce", "interp", "trapezoid", "average", "convolve", "nanstd"),
    *("cumsum", "cumprod", "subtract.accumulate"),
)
LINEAR = entries(
    """
    {x} @ {x}.T; {x} @ {y}; np.dot({x}, {y}.T); np.einsum('ij,kj->ik', {x}, {x}); np.einsum('ij->j', {x});
    np.tensordot({x}, {x}, 2); np.outer({x}, {y}); np.kron({x}, {y}); np.inner({x}, {x}); np.trace({x});
    np.linalg.norm({x}); np.vdot({x}, {x}); {x} @ {x}[0]; np.linalg.det({x} @ {x}.T + np.eye({x}.shape[0]));
    np.linalg.solve({x} @ {x}.T + 9 * np.eye({x}.shape[0]), {x}); np.linalg.inv({x} @ {x}.T + 9 * np.eye({x}.shape[0]));
    np.fft.fft({x}).real; np.fft.irfft(np.fft.rfft({x}), {x}.shape[1]); np.linalg.eigvalsh({x} @ {x}.T);
    np.matmul({x}.T, {x}); np.cov({x}); np.linalg.svd({x}, compute_uv=False)
    """
)


def is_exact(ufunc, *operands) -> bool:
    """Of complex numbers only what rounds each part once at most is."""
    return UFUNCS[ufunc] and (not any(x.dtype.kind == "c" for x in operands) or ufunc in EXACT_OF_COMPLEX)


def unary(m):
    f, x = m.rng.choice(UNARY), m.pick()
    return f"$ = np.{f.__name__}({x})", (x,), is_exact(f, m.values[x])


def binary(m):
    f, x = m.rng.choice(BINARY), m.pick()
    y = m.like(m.values[x])
    return f"$ = np.{f.__name__}({x}, {y})", (x, y), is_exact(f, m.values[x], m.values[y])


def operator(m):
    sign, x = m.rng.choice(ARITHMETIC), m.pick()
    other = m.rng.random()
    y = m.like(m.values[x]) if other < 0.7 else None
    right = y or m.rng.choice(["2", "-1", "0.5", "3"])
    left, right = (x, right) if m.rng.random() < 0.8 else (right, x)
    exact = not (sign in "*/" and "c" in (m.values[x].dtype.kind, m.values[y].dtype.kind if y else "f"))
    return f"$ = {left} {sign} {right}", (x, y) if y else (x,), exact


def power(m):
    x = m.pick()
    exponent = m.rng.choice(["2", "3", "0.5", "-1", "1"])
    return f"$ = {x} ** {exponent}", (x,), exponent == "1" or (m.values[x].dtype.kind in "biu" and exponent in "23")


def reduction(m):
    x = m.pick()
    f = m.rng.choice(EXACT_REDUCTIONS + INEXACT_REDUCTIONS)
    value = m.values[x]
    axis = m.rng.choice(["None", *map(str, range(value.ndim))])
    keep = m.rng.choice(["", ", keepdims=True"])
    kinds = {"sum": "biu", "prod": "biu", "ptp": "biuf"}.get(f, "")
    exact = f in EXACT_REDUCTIONS or value.dtype.kind in kinds
    return f"$ = np.{f}({x}, axis={axis}{keep})", (x,), exact


def method(m):
    x = m.pick(lambda x: isinstance(x, np.ndarray) and x.ndim)
    if x is None:
        return None
    text = m.rng.choice(METHODS)
    if text == "astype(np.int64)" and not np.all(np.abs(m.values[x].astype("c16")) < 1e9):
        return None
    return f"$ = {x}.{text}", (x,), text != "round(1)"


def subscript(m):
    x = m.pick(lambda x: isinstance(x, np.ndarray) and x.ndim and 0 not in x.shape)
    if x is None:
        return None
    value = m.values[x]
    parts = []
    for n in value.shape[: m.rng.randrange(1, value.ndim + 1)]:
        one, start = m.rng.randrange(-n, n), m.rng.randrange(n)
        parts.append(m.rng.choice([str(one), ":", "::2", "::-1", "1:", ":-1", f"[0, {n - 1}, -1]", "np.newaxis", f"{start}:"]))
    if m.rng.random() < 0.2:
        parts.insert(m.rng.randrange(len(parts) + 1), "...")
    return f"$ = {x}[{', '.join(parts)}]", (x,), True


def masked(m):
    x = m.pick(lambda x: isinstance(x, np.ndarray) and x.ndim)
    if x is None:
        return None
    how = m.rng.choice(["{x}[{x} > 0]", "np.sum({x}[{x} > 0])", "np.where({x} > 0, {x}, 0)", "np.where({x} != {x}, 0, {x})"])
    return f"$ = {how.format(x=x)}", (x,), "sum" not in how


def assignment(m):
    x = m.pick(lambda x: isinstance(x, np.ndarray) and x.ndim and x.dtype.kind != "b")
    if x is None:
        return None
    y = m.like(m.values[x])
    how = m.rng.choice(ASSIGNMENTS).replace("{y}", y)
    exact = "*=" not in how or m.values[x].dtype.kind != "c"
    return [f"$ = {x}.copy()", how], (x, y) if y in how else (x,), exact


def loop(m):
    x = m.pick(lambda x: isinstance(x, np.ndarray) and 1 < x.shape[0] < 40 if x.ndim else False)
    if x is None:
        return None
    body = m.rng.choice(["$[i] = $[i] + $[i - 1]", "$[i] -= $[0]", "$[i, ...] = np.maximum($[i], $[i - 1])", "$[i:] += 1"])
    return [f"$ = {x}.copy()", "for i in range(1, $.shape[0]):", f"    {body}"], (x,), True


def branch(m):
    x = m.pick(lambda x: x.dtype.kind in "fiu" and x.size)
    if x is None:
        return None
    return [f"if np.max({x}) > 1:", f"    $ = {x} - 1", "else:", f"    $ = {x} + 1"], (x,), True


def shaping(m):
    x = m.pick(lambda x: isinstance(x, np.ndarray) and x.ndim)
    if x is None:
        return None
    axis = m.axis(m.values[x])
    how = m.rng.choice(SHAPING)
    return f"$ = {how.format(x=x, a=axis)}", (x,), "linspace" not in how


def ordering(m):
    x = m.pick(lambda x: isinstance(x, np.ndarray) and x.ndim)
    if x is None:
        return None
    axis = m.axis(m.values[x])
    how = m.rng.choice(ORDERING)
    exact = not any(f in how for f in ROUNDED)
    return f"$ = {how.format(x=x, a=axis)}", (x,), exact or ("cum" in how and m.values[x].dtype.kind in "biu")


def linear(m):
    x = m.pick(lambda x: isinstance(x, np.ndarray) and x.ndim == 2)
    if x is None:
        return None
    y = m.pick(lambda y: isinstance(y, np.ndarray) and y.ndim == 2)
    how = m.rng.choice(LINEAR)
    exact = all(m.values[v].dtype.kind in "biu" for v in (x, y)) and not any(w in how for w in ("linalg", "fft", "cov"))
    return f"$ = {how.format(x=x, y=y)}", (x, y) if "{y}" in how else (x,), exact


#: (name, how often, entry)
KINDS = [
    ("unary", 6, unary),
    ("binary", 6, binary),
    ("operator", 8, operator),
    ("power", 1, power),
    ("reduction", 6, reduction),
    ("method", 4, method),
    ("subscript", 6, subscript),
    ("masked", 2, masked),
    ("assignment", 3, assignment),
    ("loop", 1, loop),
    ("branch", 1, branch),
    ("shaping", 8, shaping),
    ("ordering", 5, ordering),
    ("linear", 3, linear),
]
