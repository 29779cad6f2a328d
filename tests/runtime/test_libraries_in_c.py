"""What NumPy's compiled functions do is called from machine code by C pointers: NumPy's bits, its errors, and no Python."""

import ctypes
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.cpu_llvm.libraries import call_records, numpy_functions

rng = np.random.default_rng(3)

LAYOUTS = {
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "apart": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "backwards": lambda x: x[::-1, ..., ::-1],
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "unaligned": lambda x: np.frombuffer(b"?" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
}


def numbers(shape, dtype):
    """Of each kind, zeros with both signs and NaNs among the floats."""
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        x = rng.standard_normal(shape) * rng.choice([0.0, -0.0, 1.0, np.nan], shape, p=[0.1, 0.1, 0.7, 0.1])
        return (x + (1j * rng.standard_normal(shape) if dtype.kind == "c" else 0)).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)


def assert_same(function, *args):
    """The compiled function gives NumPy's values to the bit, cold and warm."""
    compiled = jl.function(function)
    wanted = function(*args)
    for _ in range(3):
        result = compiled(*args)
        for x, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (result, wanted)), strict=True):
            x, y = np.asarray(x), np.asarray(y)
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            assert x.tobytes() == y.tobytes(), (x, y)


def calls_from_python(function, *args):
    """How often the function calls a library from Python, once it is warm: the `numpy` of its operations."""
    compiled = jl.function(function)
    for _ in range(3):
        compiled(*args)
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        code = frame.f_code
        count += event == "call" and code.co_name == "numpy" and f"{os.sep}ops{os.sep}" in code.co_filename

    sys.setprofile(profile)
    try:
        compiled(*args)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("dtype", ["d", *(pytest.param(dtype, marks=pytest.mark.long) for dtype in "?bhilqBHILQefFD")])
@pytest.mark.parametrize("function", [np.sort, np.argsort])
def test_sorts_are_numpys_to_the_bit(function, dtype):
    x = numbers((5, 40), dtype)
    for kind in (None, "stable", "heapsort"):
        assert_same(lambda x, kind=kind: tuple(function(x, axis=axis, kind=kind) for axis in (0, 1, None)), x)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_are_read_as_they_lie_and_stay_as_they_are(layout):
    x = LAYOUTS[layout](numbers((4, 6, 10), "f8"))
    before = x.tobytes()
    assert_same(lambda x: (np.sort(x, axis=1), np.sort(x[1]), np.argsort(x, axis=1), np.argsort(x[1])), x)
    z = LAYOUTS[layout](rng.standard_normal((4, 6, 10)))
    assert_same(lambda x: tuple(f(x, axis=axis) for f in (np.fft.rfft, np.fft.fft) for axis in (0, 1, 2)), z)
    assert x.tobytes() == before


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("dtype", "fdFD")
def test_transforms_are_numpys_to_the_bit(dtype, norm):
    for n in (1, 2, 5, 16, 30, 97):
        x = (rng.standard_normal((3, n, 2)) + (1j if dtype in "FD" else 0) * rng.standard_normal((3, n, 2))).astype(dtype)
        names = ["rfft"] if dtype in "fd" else ["fft", "ifft", *(["irfft"] if n > 1 else [])]
        functions = [getattr(np.fft, name) for name in names]
        assert_same(lambda x, fs=functions: tuple(f(x, axis=1, norm=norm) for f in fs), x)
        assert_same(lambda x, fs=functions: tuple(f(x[0, :, 0], norm=norm) for f in fs), x)
    if dtype in "FD":
        assert_same(lambda x: np.fft.irfft(x, 7, axis=1, norm=norm), x)


def test_transforms_in_double_precision_take_a_part_of_the_rows_after_the_other():
    """NumPy transforms single precision that nothing scales in double: the arrays in double are never there as a whole."""
    x = rng.standard_normal((700, 3, 250)).astype("f4")
    for axis in (0, 1, 2):
        assert_same(lambda x, axis=axis: np.fft.rfft(x, axis=axis), x)
        assert_same(lambda x, axis=axis: np.fft.ifft(x.astype("c8"), axis=axis, norm="forward"), x)
    assert_same(lambda x: np.fft.rfft(x.reshape(-1, 1, 25), axis=2), x)
    f = jl.function(lambda x: np.fft.rfft(x, axis=2))
    for _ in range(3):
        f(x)
    tracemalloc.start()
    f(x)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < x.size * 8


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_arrays_without_elements(shape):
    x = np.empty(shape)
    assert_same(lambda x: (np.sort(x, axis=0), np.argsort(x, axis=1)), x)
    if shape[1]:
        assert_same(lambda x: np.fft.fft(x), x)
        assert_same(lambda x: np.fft.rfft(x), x)


def test_sizes_that_differ_from_call_to_call():
    f = jl.function(lambda x: (np.sort(x) * 2, np.fft.rfft(x)))
    for n in (4, 7, 8, 9, 33, 0, 1, 12):
        x = rng.standard_normal(n)
        if not n:
            with pytest.raises(ValueError, match="Invalid number of FFT data points"):
                f(x)
            continue
        ordered, spectrum = f(x)
        assert ordered.tobytes() == (np.sort(x) * 2).tobytes()
        assert spectrum.tobytes() == np.fft.rfft(x).tobytes()


def test_loops_see_what_the_turn_before_has_made():
    def f(x):
        for _ in range(30):
            x = np.sort(np.fft.irfft(np.fft.rfft(x), 12) - x[::-1])
        return x

    assert_same(f, rng.standard_normal(12))
    assert calls_from_python(f, rng.standard_normal(12)) == 0


@pytest.mark.parametrize(
    "function", [np.sort, np.argsort, np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft], ids=lambda f: f.__name__
)
def test_a_warm_call_goes_through_no_python(function):
    x = rng.standard_normal((3, 8))
    if function in (np.fft.ifft, np.fft.irfft):
        x = x + 0j
    assert calls_from_python(lambda x: function(x), x) == 0


def test_what_is_not_as_it_is_known_is_called_from_python(monkeypatch):
    for name in ("loop", "sort_function"):
        monkeypatch.setattr(numpy_functions, name, lambda *_, name=name: 0 if name == "sort_function" else (0, 0))

    def f(x):
        return np.fft.fft(np.sort(x) + 0.5)

    x = rng.standard_normal(9)
    assert_same(f, x)
    assert calls_from_python(f, x) == 2


def test_without_memory_numpy_is_called(monkeypatch):
    """An allocation that fails, here of a row that is sorted beside its array."""
    given = numpy_functions.python_function
    zero = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lambda n: None)
    address = ctypes.cast(zero, ctypes.c_void_p).value
    monkeypatch.setattr(numpy_functions, "python_function", lambda name: address if name == "PyMem_RawMalloc" else given(name))
    x = rng.standard_normal((6, 5))
    assert_same(lambda x: np.sort(x, axis=0), x)
    assert calls_from_python(lambda x: np.sort(x, axis=0), x) == 1


WITHOUT_MEMORY = """
import resource
import numpy as np
import jitlab as jl

f = jl.function(lambda x: np.fft.fft(x))
x = np.random.default_rng(1).standard_normal(100_003) + 0j  # a prime: its transform needs several times as much
for _ in range(3):
    wanted = f(x)
del wanted
result = f(x)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (2 << 20), resource.RLIM_INFINITY))
try:
    f(x)
except MemoryError:
    print("MemoryError")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(f(x).tobytes() == result.tobytes() == np.fft.fft(x).tobytes())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_a_loop_that_finds_no_memory_raises_memory_error():
    done = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["MemoryError", "True"], done.stderr


@pytest.mark.parametrize("dtype", "dF")
def test_a_loop_that_writes_nothing_is_no_result(monkeypatch, dtype):
    nothing = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(lambda *_: None)
    address = ctypes.cast(nothing, ctypes.c_void_p).value
    monkeypatch.setattr(numpy_functions, "loop", lambda *_: (address, 0))
    x = (rng.standard_normal((2, 8)) + 1j).astype("D" if dtype == "d" else dtype)
    assert_same(lambda x: (np.fft.fft(x, axis=0, norm="forward"), np.fft.irfft(x, norm="ortho")), x)
    assert calls_from_python(lambda x: np.fft.fft(x) * 2, x) == 1


def test_records_of_equal_calls_are_one():
    x = rng.standard_normal(11)
    before = len(call_records._records)
    for _ in range(3):
        jl.function(lambda x: np.sort(x[::2]))(x)
    assert len(call_records._records) <= before + 1


FUNCTIONS = {
    "solve": lambda a: np.linalg.solve(a, a[..., :2]),
    "solve a vector": lambda a: np.linalg.solve(a, a[..., 0, :, np.newaxis]),
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": lambda a: tuple(np.linalg.slogdet(a)),
    "cholesky": np.linalg.cholesky,
    "cholesky of the other triangle": lambda a: np.linalg.cholesky(a, upper=True),
    "qr": lambda a: tuple(np.linalg.qr(a)),
    "qr, wide": lambda a: tuple(np.linalg.qr(a[..., :3, :])),
    "qr, tall": lambda a: tuple(np.linalg.qr(a[..., :, :3])),
    "qr, complete": lambda a: (*np.linalg.qr(a[..., :, :3], "complete"), *np.linalg.qr(a[..., :3, :], "complete")),
    "r": lambda a: np.linalg.qr(a[..., :3], "r"),
    "eigh": lambda a: tuple(np.linalg.eigh(a)),
    "eigh of the other triangle": lambda a: tuple(np.linalg.eigh(a, "U")),
    "eigvalsh": lambda a: (np.linalg.eigvalsh(a), np.linalg.eigvalsh(a, "U")),
    "svd": lambda a: tuple(np.linalg.svd(a[..., :3])),
    "svd, reduced": lambda a: tuple(np.linalg.svd(a[..., :3], full_matrices=False)),
    "svdvals": lambda a: np.linalg.svd(a[..., :3, :], compute_uv=False),
}


def matrices(stack, dtype, n=5):
    """Positive definite ones."""
    a = rng.standard_normal((*stack, n, n)) + (1j if dtype in "FD" else 0) * rng.standard_normal((*stack, n, n))
    return (a @ np.swapaxes(a.conj(), -1, -2) + n * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", ["d", *(pytest.param(dtype, marks=pytest.mark.long) for dtype in "fFD")])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_linear_algebra_is_numpys_to_the_bit(name, dtype):
    function = FUNCTIONS[name]
    for a in (matrices((), dtype), matrices((3, 2), dtype)):
        assert_same(function, a)
    assert_same(function, np.swapaxes(matrices((4,), dtype), -1, -2)[::-2])
    assert calls_from_python(function, matrices((3,), dtype)) == (2 if name == "qr, complete" else 0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_matrices_that_are_singular_not_finite_or_empty(name):
    """LinAlgError where NumPy raises it, NaNs where it gives them."""
    function = FUNCTIONS[name]
    singular = matrices((3,), "d")
    singular[1] = 0
    negative = -matrices((2,), "d")
    unknown = matrices((3,), "d")
    unknown[2, 1, 1] = np.nan
    endless = matrices((2,), "d")
    endless[0] = np.inf
    compiled = jl.function(function)
    for a in (singular, negative, unknown, endless, matrices((3,), "d"), matrices((0,), "d")) * 2:
        try:
            with np.errstate(all="ignore"):
                wanted = function(a)
        except np.linalg.LinAlgError as error:
            with pytest.raises(np.linalg.LinAlgError) as raised:
                compiled(a)
            assert str(raised.value).startswith(str(error))
            continue
        for x, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (compiled(a), wanted)), strict=True):
            np.testing.assert_array_equal(x, y, strict=True)


def test_stacks_of_systems_broadcast():
    a, b = matrices((2, 1, 3), "d"), rng.standard_normal((4, 1, 5, 2))
    assert_same(np.linalg.solve, a, b)
    assert_same(np.linalg.solve, a[0, 0, 0], b)
    assert_same(np.linalg.solve, a, b[0, 0])
    assert calls_from_python(lambda a, b: np.linalg.solve(a, b), a, b) == 0


def test_a_flag_of_before_raises_nothing():
    """Machine code that ran before in the same function has left the flag of invalid operations."""
    a = matrices((), "d")

    def f(a, x):
        return np.sqrt(x), np.linalg.inv(a), np.linalg.solve(a, x - np.inf + np.inf)

    with np.errstate(all="ignore"):
        compiled, x = jl.function(f), np.array([-1.0, 2.0, 3.0, 4.0, 5.0])
        for _ in range(3):
            for got, want in zip(compiled(a, x), f(a, x), strict=True):
                np.testing.assert_array_equal(got, want)
    assert calls_from_python(f, a, x) == 0


def test_an_error_in_a_loop_is_raised_at_its_turn():
    def f(a):
        total = 0.0
        for k in range(6):
            total += np.linalg.inv(a - k * np.eye(2)).sum()
        return total

    compiled = jl.function(f)
    for _ in range(3):
        assert compiled(np.eye(2) * 7.5) == pytest.approx(f(np.eye(2) * 7.5), rel=1e-13)
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            compiled(np.eye(2) * 4)


@pytest.mark.parametrize("dtype", "df")
def test_functions_of_scipy_are_scipys_to_the_bit(dtype):
    special = pytest.importorskip("scipy.special")

    def f(x, y):
        return special.psi(x), special.gammaln(x[:, ::2]), special.betaln(x, y), special.erfinv(x - 2), special.i1e(x.T)

    x, y = rng.uniform(0.5, 3.5, (6, 8)).astype(dtype), rng.uniform(0.5, 2, 8).astype(dtype)
    x[0, :3] = np.nan, np.inf, 0
    assert_same(f, x, y)
    assert_same(f, x[:0], y)
    assert calls_from_python(f, x, y) == 0


def test_scipys_errors_are_raised_where_its_user_asks_for_them():
    special = pytest.importorskip("scipy.special")
    f = jl.function(lambda x: special.psi(x) * 2)
    x, bad = np.array([1.5, 2.5]), np.array([0.5, 0.0])
    for _ in range(3):
        np.testing.assert_array_equal(f(bad), special.psi(bad) * 2)
    with special.errstate(singular="raise"):
        with pytest.raises(special.SpecialFunctionError):
            special.psi(bad)
        for _ in range(3):
            with pytest.raises(special.SpecialFunctionError):
                f(bad)
            np.testing.assert_array_equal(f(x), special.psi(x) * 2)
    np.testing.assert_array_equal(f(bad), special.psi(bad) * 2)


def in_place(x):
    x[:] = np.linalg.inv(x)


def sorted_in_place(x):
    x.sort(axis=0)
    x[1] = np.sort(x[1])[::-1]


def shifted(x):
    x[1:] = np.sort(x, axis=1)[:-1]


def in_a_loop(x):
    for _ in range(7):
        x[:] = np.linalg.qr(x.T)[0] + x
        x[0] = np.fft.irfft(np.fft.rfft(x[0]), 5)
    return x * 2


@pytest.mark.parametrize("wrap", [jl.function, jl.jit])
@pytest.mark.parametrize("program", [in_place, sorted_in_place, shifted, in_a_loop])
def test_arrays_that_are_changed_in_place(program, wrap):
    compiled = wrap(program)
    for _ in range(8):
        mine = matrices((), "d")
        theirs = mine.copy()
        compiled(mine)
        program(theirs)
        assert mine.tobytes() == theirs.tobytes()
