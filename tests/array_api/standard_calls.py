"""Calls of every function of the Array API standard 2024.12, as hypothesis makes them: name -> strategy of (args, options)."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

FLOATS, INTEGERS, COMPLEX = ("f4", "f8"), ("i1", "i4", "i8", "u1"), ("c8", "c16")
NUMBERS, REALS = (*FLOATS, "i4", "i8", "c16"), (*FLOATS, "i1", "i8", "u1")
SHAPES = ((3,), (2, 3), (4, 3))
PLAIN = [3.25, 0.0, 1.0, -1.5, 2.0, 0.5, -7.0, 100.0]  # hypothesis begins with the first
SPECIAL = [*PLAIN, -0.0, np.nan, np.inf, -np.inf]


def values(dtype, special=False):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        numbers = [3, 0, 1, 2, 7, 100, np.iinfo(dtype).max]
        return st.sampled_from(numbers if dtype.kind == "u" else [*numbers, -1, -5, np.iinfo(dtype).min])
    parts = st.sampled_from(SPECIAL if special else PLAIN)
    return parts if dtype.kind == "f" else st.builds(complex, st.sampled_from(PLAIN), st.sampled_from(PLAIN))


def arrays(dtypes=NUMBERS, shapes=SHAPES, special=False, elements=None):
    return st.sampled_from(dtypes).flatmap(
        lambda dtype: st.sampled_from(shapes).flatmap(
            lambda shape: hnp.arrays(dtype, shape, elements=elements or values(dtype, special))
        )
    )


@st.composite
def pairs(draw, dtypes=NUMBERS, special=False):
    """Two arrays of one dtype whose shapes broadcast; now and then the second is a Python number."""
    dtype = draw(st.sampled_from(dtypes))
    one, other = draw(st.sampled_from([((2, 3), (2, 3)), ((4, 3), (3,)), ((3, 1), (1, 2)), ((3,), ())]))
    x = draw(hnp.arrays(dtype, one, elements=values(dtype, special)))
    if draw(st.integers(0, 3)) == 0 and np.dtype(dtype).kind in "if":
        return (x, draw(st.sampled_from([2, 3] if np.dtype(dtype).kind == "i" else [2.0, 0.5, 3]))), {}
    return (x, draw(hnp.arrays(dtype, other, elements=values(dtype, special)))), {}


def call(*args, **options):
    """A strategy of one call, of strategies and of plain arguments."""
    made = [a if isinstance(a, st.SearchStrategy) else st.just(a) for a in args]
    named = {k: v if isinstance(v, st.SearchStrategy) else st.just(v) for k, v in options.items()}
    return st.tuples(st.tuples(*made), st.fixed_dictionaries(named))


def unary(dtypes, special=True):
    return call(arrays(dtypes, special=special))


def reduction(dtypes, **options):
    return call(arrays(dtypes, ((2, 3), (4, 3))), axis=st.sampled_from([None, 0, 1, -1]), keepdims=st.booleans(), **options)


def matrices(dtypes=FLOATS, n=(2, 3), definite=False):
    """Matrices that are far from singular; `definite`: symmetric and positive."""

    def made(dtype, size, numbers):
        a = np.array(numbers[: size * size], dtype).reshape(size, size) / 8
        a = a + a.T if definite else a
        return (a + 5 * np.eye(size)).astype(dtype)

    numbers = st.lists(st.integers(-4, 4), min_size=9, max_size=9)
    return st.builds(made, st.sampled_from(dtypes), st.sampled_from(n), numbers)


TALL = ((4, 3), (3, 3))
ANY, EVERY = ("bool", "i4", "f4", "f8", "c16"), (*FLOATS, *COMPLEX)
BITS = ("bool", "i1", "i8", "u1")
small = st.sampled_from([2.0, -3.0, 1.0, 4.0, 0.0, -1.0])
positions = hnp.arrays("i8", (4,), elements=st.integers(-2, 1))
shifts = hnp.arrays("i4", (3,), elements=st.integers(0, 7))

CREATION = {
    "arange": st.one_of(call(5), call(2, 9, 3), call(0.5, 3.0, 0.25), call(6, dtype=np.dtype("f4")), call(9, 2, -2)),
    "asarray": call(arrays(ANY), dtype=st.sampled_from([None, np.dtype("c16")]), copy=st.sampled_from([None, True])),
    "empty": call((2, 0), dtype=np.dtype("f4")),
    "empty_like": call(arrays(ANY, ((0, 3),))),
    "eye": call(3, st.sampled_from([None, 4]), k=st.sampled_from([-1, 0, 2])),
    "full": call((2, 3), values("f8"), dtype=st.sampled_from([None, np.dtype("f4")])),
    "full_like": call(arrays(FLOATS), values("f4")),
    "linspace": call(st.sampled_from([0.0, -2.5]), st.sampled_from([1.0, 7]), st.sampled_from([1, 5]), endpoint=st.booleans()),
    "meshgrid": call(arrays(FLOATS, ((3,),)), arrays(FLOATS, ((2,),)), indexing=st.sampled_from(["xy", "ij"])),
    "ones": call((2, 3), dtype=st.sampled_from([None, np.dtype("i4")])),
    "ones_like": call(arrays(ANY)),
    "tril": call(arrays(ANY, ((2, 3), (4, 3))), k=st.sampled_from([-1, 0, 1])),
    "triu": call(arrays(ANY, ((2, 3), (4, 3))), k=st.sampled_from([-1, 0, 1])),
    "zeros": call((2, 3), dtype=st.sampled_from([None, np.dtype("c8")])),
    "zeros_like": call(arrays(ANY)),
}
DATA_TYPES = {
    "astype": call(arrays(("i4", "f4", "f8")), st.sampled_from([np.dtype(d) for d in ("f8", "f4", "c16", "bool")])),
    "broadcast_arrays": call(arrays(FLOATS, ((2, 3),)), arrays(FLOATS, ((3,), (2, 1)))),
    "broadcast_to": call(arrays(ANY, ((3,), (2, 1))), (2, 3)),
}
SPLIT = "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 sin sinh tan tanh"
ELEMENTWISE = {
    **{name: unary((*FLOATS, "c16")) for name in SPLIT.split()},
    **{name: unary((*REALS, "c16")) for name in "abs conj isfinite isinf isnan negative positive sign sqrt square".split()},
    **{name: unary((*FLOATS, "i8")) for name in "ceil floor trunc round".split()},
    **{name: unary(("c8", "c16")) for name in "real imag".split()},
    **{name: unary(FLOATS) for name in "signbit reciprocal".split()},
    **{name: pairs(NUMBERS) for name in "add subtract multiply equal not_equal".split()},
    **{name: pairs((*FLOATS, "c16")) for name in ["divide"]},
    **{name: pairs(REALS, special=True) for name in "less less_equal greater greater_equal maximum minimum".split()},
    **{name: pairs(FLOATS, special=True) for name in "atan2 copysign hypot logaddexp nextafter".split()},
    **{name: pairs(("i4", "u1", "f4", "f8")) for name in "floor_divide remainder".split()},
    **{name: pairs(BITS) for name in "bitwise_and bitwise_or bitwise_xor".split()},
    **{name: pairs(("bool", "f8")) for name in "logical_and logical_or logical_xor".split()},
    **{name: call(arrays(("i4", "i8"), ((3,), (2, 3))), shifts) for name in "bitwise_left_shift bitwise_right_shift".split()},
    "bitwise_invert": unary(BITS),
    "logical_not": unary(("bool", "f8")),
    "clip": call(arrays(FLOATS, special=True), st.sampled_from([None, -1.0]), st.sampled_from([0.5, 3.0])),
    "pow": st.one_of(pairs(FLOATS), call(arrays(("i4",)), st.sampled_from([0, 1, 2]))),
}
INDEXING = {
    "take": call(arrays(ANY, ((2, 3), (4, 3))), positions, axis=st.sampled_from([0, 1])),
    "take_along_axis": call(arrays(FLOATS, ((2, 3),)), hnp.arrays("i8", (2, 2), elements=st.integers(-3, 2)), axis=1),
}
LINEAR = {
    "matmul": call(arrays(NUMBERS, ((4, 3), (3,)), elements=small), arrays(FLOATS, ((3, 2), (3,)), elements=small)),
    "matrix_transpose": call(arrays(ANY, ((2, 3), (4, 3)))),
    "tensordot": call(arrays(FLOATS, ((4, 3),), elements=small), arrays(FLOATS, ((3, 2),), elements=small), axes=1),
    "vecdot": call(arrays(EVERY, ((2, 3),), elements=small), arrays(FLOATS, ((3,),), elements=small)),
}
MANIPULATION = {
    "concat": call(st.tuples(arrays(ANY, ((2, 3),)), arrays(ANY, ((2, 3),))), axis=st.sampled_from([0, 1, None])),
    "expand_dims": call(arrays(ANY), axis=st.sampled_from([0, -1])),
    "flip": call(arrays(ANY), axis=st.sampled_from([None, 0, -1])),
    "moveaxis": call(arrays(ANY, ((2, 3), (4, 3))), 0, -1),
    "permute_dims": call(arrays(ANY, ((2, 3), (4, 3))), (1, 0)),
    "repeat": call(arrays(ANY), st.sampled_from([0, 2]), axis=st.sampled_from([None, 0])),
    "reshape": call(arrays(ANY, ((2, 3), (4, 3))), st.sampled_from([(-1,), (3, -1)]), copy=st.sampled_from([None, True])),
    "roll": call(arrays(ANY), st.sampled_from([1, -2, 7]), axis=st.sampled_from([None, 0])),
    "squeeze": call(arrays(ANY, ((1, 3),)), axis=0),
    "stack": call(st.tuples(arrays(ANY, ((2, 3),)), arrays(ANY, ((2, 3),))), axis=st.sampled_from([0, 1, -1])),
    "tile": call(arrays(ANY), st.sampled_from([(2,), (2, 1)])),
    "unstack": call(arrays(ANY), axis=st.sampled_from([0, -1])),
}
SEARCHING = {
    "argmax": reduction(REALS),
    "argmin": reduction(REALS),
    "count_nonzero": call(arrays(ANY), axis=st.sampled_from([None, 0])),
    "searchsorted": call(hnp.arrays("f8", (5,), elements=small).map(np.sort), arrays(("f8",))),
    "where": call(arrays(("bool",), ((3,), (2, 3))), arrays(FLOATS, ((3,), (2, 3))), arrays(("f8", "i4"), ((3,),))),
}
SETS = {"isin": call(arrays(("f8", "i4")), arrays(("f8", "i4"), ((3,),)), invert=st.booleans())}
SORTING = {
    "argsort": call(arrays(("f8", "i4"), special=True), axis=st.sampled_from([0, -1]), stable=True),
    "sort": call(arrays((*FLOATS, "i4"), special=True), axis=st.sampled_from([0, -1])),
}
STATISTICAL = {
    **{name: reduction((*FLOATS, "i4", "c16")) for name in "prod sum".split()},
    **{name: reduction(REALS) for name in "max min".split()},
    "mean": reduction(EVERY),
    **{name: reduction(FLOATS, correction=st.sampled_from([0, 1])) for name in "std var".split()},
    **{name: call(arrays((*FLOATS, "i4"), ((2, 3),)), axis=st.sampled_from([0, 1]), include_initial=st.booleans())
       for name in "cumulative_prod cumulative_sum".split()},
}  # fmt: skip
UTILITY = {
    "all": reduction(("bool", "f8", "c16")),
    "any": reduction(("bool", "f8", "c16")),
    "diff": call(arrays(NUMBERS), axis=st.sampled_from([0, -1]), n=st.sampled_from([1, 2])),
}
LINALG = {
    "cholesky": call(matrices(definite=True), upper=st.booleans()),
    "cross": call(arrays(FLOATS, ((2, 3), (3,)), elements=small), arrays(FLOATS, ((3,),), elements=small)),
    "det": call(matrices(EVERY)),
    "diagonal": call(arrays(ANY, ((2, 3), (4, 3))), offset=st.sampled_from([0, 1])),
    "eigh": call(matrices(definite=True)),
    "eigvalsh": call(matrices(definite=True)),
    "inv": call(matrices(EVERY)),
    "matmul": LINEAR["matmul"],
    "matrix_norm": call(matrices(), ord=st.sampled_from(["fro", "nuc", 1, 2, np.inf])),
    "matrix_power": call(matrices(), st.sampled_from([0, 2, -1])),
    "matrix_rank": call(matrices()),
    "matrix_transpose": LINEAR["matrix_transpose"],
    "outer": call(arrays(FLOATS, ((3,),)), arrays(FLOATS, ((2,),))),
    "pinv": call(matrices()),
    "qr": call(matrices(), mode=st.sampled_from(["reduced", "complete"])),
    "slogdet": call(matrices()),
    "solve": call(matrices(("f8",), (3,)), arrays(("f8",), ((3,), (3, 2)), elements=small)),
    "svd": call(arrays(FLOATS, TALL, elements=small), full_matrices=st.booleans()),
    "svdvals": call(arrays(FLOATS, TALL, elements=small)),
    "tensordot": LINEAR["tensordot"],
    "trace": call(arrays((*FLOATS, "i8"), ((3, 3), (2, 3)), elements=small), offset=st.sampled_from([0, 1])),
    "vecdot": LINEAR["vecdot"],
    "vector_norm": call(arrays(FLOATS, elements=small), axis=st.sampled_from([None, 0]), ord=st.sampled_from([1, 2, np.inf])),
}
NORMS = st.sampled_from(["backward", "ortho", "forward"])
FFT = {
    **{name: call(arrays(COMPLEX, ((4, 3), (6,)), elements=small), norm=NORMS) for name in "fft ifft hfft irfft".split()},
    **{name: call(arrays(FLOATS, ((4, 3), (6,)), elements=small), norm=NORMS) for name in "rfft ihfft".split()},
    **{name: call(arrays(COMPLEX, ((4, 3),), elements=small), norm=NORMS) for name in "fftn ifftn irfftn".split()},
    "rfftn": call(arrays(FLOATS, ((4, 3),), elements=small), norm=NORMS),
    "fftfreq": call(st.sampled_from([4, 5]), d=st.sampled_from([1.0, 0.5])),
    "rfftfreq": call(st.sampled_from([4, 5]), d=st.sampled_from([1.0, 0.5])),
    "fftshift": call(arrays(EVERY)),
    "ifftshift": call(arrays(EVERY)),
}

CALLS = {
    **CREATION, **DATA_TYPES, **ELEMENTWISE, **INDEXING, **LINEAR, **MANIPULATION, **SEARCHING, **SETS, **SORTING,
    **STATISTICAL, **UTILITY, **{f"linalg.{k}": v for k, v in LINALG.items()}, **{f"fft.{k}": v for k, v in FFT.items()},
}  # fmt: skip

#: Bit for bit NumPy's, for real numbers; others (functions, sums, products) within the bounds of docs/reference/numerics.md.
EXACT = {
    *CREATION, *DATA_TYPES, *INDEXING, *MANIPULATION, *SEARCHING, *SETS, *SORTING, "all", "any", "diff", "max", "min",
    "matrix_transpose", "linalg.matrix_transpose", "linalg.diagonal", "linalg.outer", "fft.fftshift", "fft.ifftshift",
    *(set(ELEMENTWISE) - set(SPLIT.split()) - {"atan2", "hypot", "logaddexp", "pow"}),
}  # fmt: skip
