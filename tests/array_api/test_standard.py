"""The Array API standard 2024.12 through functions that must compile: each call gives what NumPy gives."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import jitlab as jl
from jitlab.errors import InvalidArgumentError

from .standard_calls import CALLS, ELEMENTWISE, EXACT

#: The functions of the standard, by its chapters.
STANDARD = """
    arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros zeros_like
    astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift
    bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag
    isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum
    minimum multiply negative nextafter not_equal positive pow real reciprocal remainder round sign signbit sin sinh square sqrt
    subtract tan tanh trunc
    take take_along_axis
    matmul matrix_transpose tensordot vecdot
    concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack
    argmax argmin count_nonzero nonzero searchsorted where
    unique_all unique_counts unique_inverse unique_values
    argsort sort
    cumulative_prod cumulative_sum max mean min prod std sum var
    all any diff
    linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv linalg.matmul
    linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose linalg.outer linalg.pinv linalg.qr
    linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm
    fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft fft.fftfreq fft.rfftfreq
    fft.fftshift fft.ifftshift
""".split()

#: What stays with NumPy, and why; anything else that is refused fails here.
HOST = {
    "nonzero": "depends on the data",
    "unique_all": "depends on the data",
    "unique_counts": "depends on the data",
    "unique_inverse": "depends on the data",
    "unique_values": "depends on the data",
}
#: What tells of dtypes, in Python; and what hands memory over to or takes it from another library.
NO_ARRAYS = {"can_cast", "finfo", "iinfo", "isdtype", "result_type", "from_dlpack"}


def function_of(name):
    module, _, attribute = name.rpartition(".")
    return getattr(getattr(np, module) if module else np, attribute)


def test_every_function_of_the_standard_is_called_or_listed():
    assert set(STANDARD) - set(CALLS) == set(HOST) | NO_ARRAYS
    assert set(CALLS) - set(STANDARD) == {"isin"}  # of 2025.12


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_compiled_call_gives_what_numpy_gives(name):
    function = function_of(name)
    compiled = jl.function(function, jit_compile=True)

    @settings(
        max_examples=3, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )  # fmt: skip
    @given(CALLS[name])
    def check(made):
        args, options = made
        try:
            with np.errstate(all="ignore"):
                want, refused = function(*args, **options), None
        except Exception as error:
            want, refused = None, error
        if refused is not None:
            with pytest.raises(Exception) as found:
                compiled(*args, **options)
            assert isinstance(found.value, type(refused).__mro__[0 if type(refused).__module__ == "builtins" else 1])
            return
        is_function = name in ELEMENTWISE and any(np.iscomplexobj(a) for a in args)  # |z| is a hypotenuse
        same(compiled(*args, **options), want, name in EXACT and not is_function)

    check()


def same(got, want, exact):
    """Structure, type, dtype, shape and values."""
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want) and len(got) == len(want)
        for mine, theirs in zip(got, want, strict=True):
            same(mine, theirs, exact)
        return
    assert isinstance(got, np.ndarray) is isinstance(want, np.ndarray), f"{type(got)}, NumPy gives {type(want)}"
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind not in "fc" or exact:
        np.testing.assert_array_equal(got, want)
        if want.dtype.kind == "f":
            real = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(want[real]))
        return
    eps = np.finfo(want.dtype).eps
    largest = float(np.max(np.abs(want[np.isfinite(want)]), initial=0))
    np.testing.assert_allclose(got, want, rtol=16 * eps, atol=64 * eps * max(1.0, largest))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HOST)
def test_what_stays_with_numpy_says_why(name):
    x = np.array([1.0, 0.0, 1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match=HOST[name]):
        jl.function(function_of(name), jit_compile=True)(x)
    same(jl.function(function_of(name))(x), function_of(name)(x), True)


def test_the_namespace_of_a_traced_array_is_numpys():
    def normalised(x):
        xp = x.__array_namespace__()
        return xp.astype(x - xp.mean(x, axis=0), xp.result_type(x, xp.float32)) if x.device == "cpu" else x

    x = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(jl.function(normalised, jit_compile=True)(x), x - 2 - np.array([0, 1.0]))
