"""Loop bodies in native code give NumPy's bits."""

import ctypes
import json
import mmap
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jitlab.targets.cpu_llvm.machine import features
from jitlab.targets.llvm.function_text import FunctionText, module_text
from jitlab.targets.llvm.values import BOOL, C64, F32, F64, I64, Val
from jitlab.targets.llvm.vector_emitter import VectorEmitter

sys.path.insert(0, str(Path(__file__).parent))
from edges import UFUNCS, cases, compare  # noqa: E402
from one_kernel import call, equal, run  # noqa: E402

CASES = [name for name, *_ in cases()]


@pytest.fixture(scope="module")
def findings():
    """What differed, by case: all of them in one child, which a trap may end."""
    script = Path(__file__).with_name("edges.py")
    child = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    found = dict(json.loads(line) for line in child.stdout.splitlines())
    return found, f"child ended with {child.returncode}: {child.stderr[-2000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name.split()[0] for name in CASES}))
def test_edge_values_as_in_numpy(name, findings):
    found, end = findings
    wrong = {case: found.get(case, end) for case in CASES if case.split()[0] == name}
    assert not {case: what for case, what in wrong.items() if what}


EXACT = sorted(
    (name, char) for name, (_, chars) in UFUNCS.items() for char in chars if name not in ("fmin", "fmax", "pow")
)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(EXACT), st.data())
def test_any_values_as_in_numpy(case, data):
    name, char = case
    ufunc = UFUNCS[name][0]
    arrays = [data.draw(hnp.arrays(np.dtype(char), 16)) for _ in range(ufunc.nin)]
    if char in "FD":  # signed zeros of sums of products with infinities aside, parts round as NumPy's vectors do
        arrays = [np.resize(a, 16) for a in arrays]
    with np.errstate(all="ignore"):
        assert compare(name, lambda e, *xs: getattr(e, name)(*xs), ufunc, arrays) is None


# lanes and memory


def kernel(write, width, *params, **other):
    """A module with one function `k` of pointers and numbers (`n...`), written by `write(e, *texts)`; `other`: features."""
    fn = FunctionText("k", [("i64" if name.startswith("n") else "ptr", name) for name in params])
    write(VectorEmitter(fn, width, replace(features(), **other)), *(f"%{name}" for name in params))
    fn.ret()
    return module_text([fn])


DTYPES = [np.dtype(char) for char in "?bHiqefdFD"]


def sample(dtype, count):
    values = np.arange(1, count + 1)
    if dtype.kind == "b":
        return values % 3 == 0
    return (values + 1j * (values + 0.5)).astype(dtype) if dtype.kind == "c" else values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", [1, 4, 8, 32])
def test_masked_memory_is_not_touched(dtype, width):
    def write(e, source, target, n):
        mask = e.mask_first(n)
        e.store(target, e.load(source, dtype, mask=mask), mask=mask)

    text = kernel(write, width, "source", "target", "n")
    for n in {0, 1, width // 2, width}:
        source, target = sample(dtype, width), np.zeros(width, dtype)
        call(text, source, target, n)
        assert target.tolist() == [*source[:n].tolist(), *np.zeros(width - n, dtype).tolist()]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", [1, 8])
def test_strided_elements(dtype, width):
    def write(e, source, target, n_from, n_to):
        e.store_strided(target, n_to, e.load_strided(source, n_from, dtype))

    text = kernel(write, width, "source", "target", "n_from", "n_to")
    source, target = sample(dtype, 3 * width), np.zeros(2 * width, dtype)
    call(text, source[::3][::-1][:1], target, -3 * dtype.itemsize, 2 * dtype.itemsize)
    assert target[::2].tolist() == source[::3][::-1].tolist()
    assert not target[1::2].any()


@pytest.mark.skipif(sys.platform == "win32", reason="there memory is protected otherwise")
@pytest.mark.parametrize("vector_bytes", [16, 64])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_at_a_known_distance_are_read_from_the_first_to_the_last(dtype, vector_bytes):
    """The last one lies at the end of a page; the memory behind it is another mapping's, which says no."""
    page, width = mmap.PAGESIZE, 16
    with mmap.mmap(-1, 3 * page) as memory:
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + 2 * page), page, 0) == 0
        for apart in (2, 3, 4, 7, 12, 13):

            def write(e, source, target, apart=apart):
                e.store(target, e.load_strided(source, str(apart * dtype.itemsize), dtype))

            count = (width - 1) * apart + 1
            source, target = np.ndarray(count, dtype, memory, 2 * page - count * dtype.itemsize), np.zeros(width, dtype)
            source[:] = sample(dtype, count)
            call(kernel(write, width, "source", "target", vector_bytes=vector_bytes), source, target)
            assert target.tolist() == source[::apart].tolist()
            del source


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_strided_elements_end_at_the_count(dtype):
    def write(e, source, target, n):
        e.store_strided(target, str(dtype.itemsize), e.load_strided(source, str(dtype.itemsize), dtype, n), n)

    text = kernel(write, 8, "source", "target", "n")
    source, target = sample(dtype, 8), np.zeros(8, dtype)
    call(text, source, target, 5)
    assert target.tolist() == [*source[:5].tolist(), *np.zeros(3, dtype).tolist()]


def test_the_last_of_equal_places_stays():
    def write(e, target):
        e.store_at(target, e.value("zeroinitializer", I64, 8), e.cast(e.lane_index(), F64))

    target = np.full(1, -1.0)
    call(kernel(write, 8, "target"), target)
    assert target.tolist() == [7.0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_element_for_all_lanes(dtype):
    def write(e, source, target):
        e.store(target, e.splat(e.load(source, dtype, lanes=0)))

    source, target = sample(dtype, 3)[2:], np.zeros(8, dtype)
    call(kernel(write, 8, "source", "target"), source, target)
    assert target.tolist() == source.tolist() * 8


def test_nontemporal_store():
    def write(e, source, target):
        e.store(target, e.load(source, F64), align=64, nontemporal=True)

    text = kernel(write, 8, "source", "target")
    buffer = np.zeros(16)
    start = -buffer.ctypes.data % 64 // 8
    call(text, np.arange(8.0), buffer[start:])
    assert buffer[start : start + 8].tolist() == np.arange(8.0).tolist()


def test_reduction_is_a_tree_of_halves():
    seen = []

    def write(e, source, target):
        def combine(left, right):
            seen.append(left.lanes)
            return e.add(left, right)

        e.store(target, e.reduce(e.load(source, F32), combine))

    text = kernel(write, 8, "source", "target")
    x = np.array([1e8, 1, -1e8, 1, 3, 1e-3, 7, 1e7], "f4")
    target = np.zeros(1, "f4")
    call(text, x, target)
    halves = x.copy()
    while halves.size > 1:
        halves = halves[: halves.size // 2] + halves[halves.size // 2 :]
    assert seen == [4, 2, 1] and target.tolist() == halves.tolist()


def test_reduction_of_several_values_at_once():
    def write(e, source, target, position):
        def greater(left, right):
            keep = e.ge(left[0], right[0])
            return e.select(keep, left[0], right[0]), e.select(keep, left[1], right[1])

        value, index = e.reduce((e.load(source, F64), e.lane_index()), greater)
        e.store(target, value)
        e.store(position, index)

    x, target, position = np.array([3.0, 9, 2, 7]), np.zeros(1), np.zeros(1, "i8")
    call(kernel(write, 4, "source", "target", "position"), x, target, position)
    assert (target[0], position[0]) == (9.0, 1)


def test_reduction_of_complex_numbers():
    def write(e, source, target):
        e.store(target, e.reduce(e.load(source, C64), e.add))

    target = np.zeros(1, "c8")
    call(kernel(write, 4, "source", "target"), sample(C64, 4), target)
    assert target[0] == sample(C64, 4).sum()


@pytest.mark.parametrize("width", [1, 4])
def test_any_and_all(width):
    def write(e, source, some, every):
        x = e.load(source, BOOL)
        e.store(some, Val(BOOL, e.any(x)))
        e.store(every, Val(BOOL, e.all(x)))

    text = kernel(write, width, "source", "some", "every")
    for x in (np.zeros(width, "?"), np.ones(width, "?"), np.arange(width) == 0):
        some, every = np.zeros(1, "?"), np.zeros(1, "?")
        call(text, x, some, every)
        assert (some[0], every[0]) == (x.any(), x.all())


def test_reverse_and_extract():
    def write(e, source, target, third):
        x = e.load(source, F64)
        e.store(target, e.reverse(x))
        e.store(third, e.extract(x, 2))

    target, third = np.zeros(4), np.zeros(1)
    call(kernel(write, 4, "source", "target", "third"), np.arange(4.0), target, third)
    assert target.tolist() == [3, 2, 1, 0] and third[0] == 2


def test_uniform_operands_stay_scalar():
    fn = FunctionText("k", [("double", "a")])
    e = VectorEmitter(fn, 8, features())
    a = e.value("%a", F64)
    total = e.add(e.mul(a, a), e.constant(1, F64))
    assert total.lanes == 0 and "<8" not in fn.render()
    assert e.add(total, e.value("%v", F64, 8)).lanes == 8


@pytest.mark.parametrize("dtype", [np.dtype(char) for char in "?bBhHiIqQefdFD"], ids=str)
def test_constants_are_exact(dtype):
    rng = np.random.default_rng(1)
    values = np.frombuffer(rng.bytes(8 * dtype.itemsize), dtype) if dtype.kind != "b" else np.array([False, True])
    extra = [np.inf, -np.inf, np.nan, -0.0, 0.1, np.finfo(dtype).smallest_subnormal] if dtype.kind in "fc" else []
    for value in [*values, *np.array(extra, dtype)]:
        got = run(lambda e, x, value=value: e.constant(value, dtype), np.zeros(4, dtype), width=4)
        assert equal(got, np.full(4, value)).all()


def test_no_instruction_may_assume_anything():
    """Fast-math flags and undefined behaviour would change results without a word."""
    fn = FunctionText("k", [("<8 x double>", "x"), ("<8 x i32>", "i")])
    e = VectorEmitter(fn, 8, features())
    x, i = e.value("%x", F64, 8), e.value("%i", np.int32, 8)
    for name, (ufunc, chars) in UFUNCS.items():
        for value in [v for v, char in ((x, "d"), (i, "i")) if char in chars]:
            getattr(e, name)(*[value] * ufunc.nin)
    for name in "exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sinh cosh arctan".split():
        getattr(e, name)(x)
    e.pow(x, x), e.hypot(x, x)
    words = set(fn.render().replace(",", " ").split())
    flags = {"fast", "reassoc", "contract", "nnan", "ninf", "nsz", "arcp", "afn"}
    assert not words & (flags | {"nsw", "nuw", "exact", "inbounds"})


# the text of a function


def test_a_loop_with_late_incoming_values():
    fn = FunctionText("k", [("ptr", "out"), ("i64", "n")])
    head, body, done = fn.label("head"), fn.label("body"), fn.label("done")
    total_memory = fn.alloca("i64")
    fn.branch(head)
    fn.block(head)
    i = fn.phi("i64", [(0, "entry")])
    total = fn.phi("i64", [(0, "entry")])
    fn.branch_if(fn.instr(f"icmp slt i64 {i}, %n"), body, done)
    fn.block(body)
    total.add_incoming(fn.instr(f"add i64 {total}, {i}"), fn.current)
    i.add_incoming(fn.instr(f"add i64 {i}, 1"), fn.current)
    fn.branch(head)
    fn.block(done)
    fn.emit(f"store i64 {total}, ptr {total_memory}")
    fn.emit(f"store i64 {fn.instr(f'load i64, ptr {total_memory}')}, ptr %out")
    fn.ret()
    out = np.zeros(1, "i8")
    call(module_text([fn]), out, 10)
    assert out[0] == 45


def test_modules_declare_once():
    functions = []
    for name in ("first", "k"):
        fn = FunctionText(name, [("ptr", "out")])
        fn.declare("@table = internal unnamed_addr constant [2 x i64] [i64 4, i64 5], align 64")
        e = VectorEmitter(fn, 1, features())
        place = fn.instr("getelementptr i64, ptr @table, i64 1")
        e.store("%out", e.sqrt(e.cast(e.load(place, I64), F64)))
        fn.ret()
        functions.append(fn)
    text = module_text(functions)
    assert text.count("declare double @llvm.sqrt.f64") == 1 and text.count("@table =") == 1
    out = np.zeros(1)
    call(text, out)
    assert out[0] == np.sqrt(5)
