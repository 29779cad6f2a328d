"""What running compiled code promises: one compilation for all sizes, fused kernels, errors, interrupts, recycled memory."""

import _thread
import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitlab as jl
from jitlab import events
from jitlab.runtime import forget_compiled
from jitlab.targets.cpu_llvm.calls.buffers import ALIGNMENT, Pool, pool, size_class
from jitlab.targets.cpu_llvm.calls.device import layout_of
from jitlab.targets.cpu_llvm.compiling import background


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def heard(call, kind):
    """The events of one kind while `call` runs."""
    seen = []
    with events.listen(seen.append):
        call()
    return [e for e in seen if isinstance(e, kind)]


def test_a_second_shape_compiles_nothing():
    forget_compiled()
    f = jl.function(softmax)
    first = heard(lambda: f(np.ones((40, 33))), events.ProgramCompiled)
    assert first and all(e.origin in ("compiled", "disk") for e in first)
    second = heard(lambda: f(np.ones((41, 70))), events.ProgramCompiled)
    late = [e for e in second if (e.origin, e.tier) == ("compiled", "good")]  # better code of the first shape's
    assert [e.origin for e in second if e not in late] == ["memory"]
    np.testing.assert_allclose(f(np.ones((41, 70))), np.full((41, 70), 1 / 70))


LENGTHS = {
    "ones": lambda x: x + np.ones(len(x)),
    "arange": lambda x: x * np.arange(len(x)),
    "linspace": lambda x: x + np.linspace(0, 1, len(x)),
    "eye": lambda x: x @ np.eye(len(x)),
    "half": lambda x: x[len(x) // 2 :] * 2,
    "step": lambda x: x[::2] + 1,
    "last": lambda x: x[:-1] + x[1:],
    "rows": lambda x: x.reshape(-1, 2).sum(axis=1),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_a_length_computed_in_python_compiles_nothing_new(name):
    f = jl.function(LENGTHS[name])
    f(np.linspace(0, 1, 50))
    background().submit(int).result()  # its better code is there
    x = np.linspace(0, 1, 66)
    again = heard(lambda: f(x), events.ProgramCompiled)
    assert [e.origin for e in again] == ["memory"] * len(again)
    np.testing.assert_allclose(f(x), LENGTHS[name](x), rtol=1e-13)


def test_softmax_is_one_kernel_that_reads_x_once():
    x = np.random.default_rng(0).normal(size=(64, 100))
    with jl.record() as recording:
        y = jl.function(softmax)(x)
    np.testing.assert_allclose(y, softmax(x), rtol=1e-13)
    (kernel,) = recording.report().kernels
    assert (kernel.bytes_read, kernel.bytes_written) == (x.nbytes, x.nbytes)


def test_level_o0_gives_each_operation_its_kernel():
    from jitlab.cluster import cluster
    from jitlab.compile import runnable

    from .random_graphs import random_graph

    graph, arguments = random_graph(3)
    kernels = {}
    for level in ("O0", "O1"):
        executable = runnable(cluster(graph, jit_compile=True), level=level)
        executable.run(arguments)
        kernels[level] = len(executable.plan.kernels)
    assert kernels["O0"] > kernels["O1"]


@pytest.mark.parametrize("tier", ["quick", "good"])
def test_both_tiers_give_the_same_bits(tier, monkeypatch):
    import importlib

    module = importlib.import_module("jitlab.runtime.compiled")
    forget_compiled()
    monkeypatch.setattr(jl.config, "cache", False)
    x = np.random.default_rng(1).normal(size=(37, 211)).astype(np.float32)
    f = jl.function(softmax)
    y = f(x)
    if tier == "good":
        for compiled in module._by_text.values():
            compiled.wait()
    again = f(x)
    assert y.tobytes() == again.tobytes()


def test_an_index_out_of_range_is_numpys_error_at_its_line():
    f = jl.function(lambda x, i: x[i] + 1)
    x = np.arange(10.0)
    np.testing.assert_array_equal(f(x, np.array([-10, 9])), x[[-10, 9]] + 1)
    for bad in (10, -11):
        with pytest.raises(IndexError, match=rf"index {bad} is out of bounds for axis 0 with size 10 \(.*line \d+\)"):
            f(x, np.array([0, bad, 1]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["f4", "f8"]), st.sampled_from(["uniform", "huge first", "alternating"]))
def test_sums_keep_their_error_bound(seed, dtype, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30_000))
    x = rng.uniform(0, 1, n).astype(dtype)
    if kind == "huge first":
        x[0] = 1e7
    elif kind == "alternating":
        x *= np.where(np.arange(n) % 2, 1, -1).astype(dtype)
    exact = math.fsum(x.astype(np.float64))
    limit = (8 + np.log2(n)) * np.finfo(dtype).eps * float(np.abs(x).astype(np.float64).sum())
    assert abs(float(total(x)) - exact) <= limit
    rows = x[: n // 8 * 8].reshape(-1, 8)
    assert abs(float(columns(rows)[3]) - math.fsum(rows[:, 3].astype(np.float64))) <= limit


total = jl.function(lambda x: x.sum())
columns = jl.function(lambda x: x.sum(axis=0))


def test_an_interrupt_ends_a_long_run_before_it_is_done(monkeypatch):
    from jitlab.targets.cpu_llvm.compiling import MachineCode
    from jitlab.targets.cpu_llvm.emit import codegen

    statuses = []
    real = MachineCode.install

    def install(self, loaded, tier):
        real(self, loaded, tier)
        run = self.run

        def noting(context):
            statuses.append(run(context))
            if statuses.count(codegen.PAUSED) == 2:
                _thread.interrupt_main()  # a signal that comes while the machine code runs
            return statuses[-1]

        self.run = noting

    forget_compiled()
    monkeypatch.setattr(MachineCode, "install", install)

    @jl.function
    def f(x):
        for _ in range(16):
            x = np.sin(x) ** 3.7
        return x.sum()

    with pytest.raises(KeyboardInterrupt):
        f(np.random.default_rng(0).uniform(1, 2, 30_000_000))  # some seconds of work
    assert codegen.DONE not in statuses
    forget_compiled()


def test_an_interrupt_during_compilation_leaves_a_usable_function(monkeypatch):
    from jitlab.targets.cpu_llvm.emit import codegen

    forget_compiled()
    real = codegen.quick_module_for

    def interrupted(program):
        raise KeyboardInterrupt

    f = jl.function(lambda x: np.tanh(x) * 3 - 1)
    monkeypatch.setattr(jl.config, "cache", False)  # a run before may have kept its code
    monkeypatch.setattr(codegen, "quick_module_for", interrupted)
    with pytest.raises(KeyboardInterrupt):
        f(np.ones(7))
    monkeypatch.setattr(codegen, "quick_module_for", real)
    np.testing.assert_allclose(f(np.ones(7)), np.tanh(np.ones(7)) * 3 - 1)


def test_integer_edges_do_not_kill_the_process():
    program = """
import numpy as np, jitlab as jl
low = np.array([np.iinfo('i8').min, -7, 7, 0]); one = np.array([-1, 0, -2, 0])
f = jl.function(lambda a, b: (a // b, a % b, a << np.abs(b) * 40, a >> np.abs(b) * 40, abs(a)))
with np.errstate(all='ignore'):
    for got, want in zip(f(low, one), (low // one, low % one, low << np.abs(one) * 40, low >> np.abs(one) * 40, abs(low))):
        np.testing.assert_array_equal(got, want)
    x = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 3.7])
    np.testing.assert_array_equal(jl.function(lambda x: x.astype('i8'))(x), x.astype('i8'))
    np.testing.assert_array_equal(jl.function(lambda x: x.astype('i4'))(x), x.astype('i4'))
print('alive')
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ})
    assert done.stdout.strip() == "alive", done.stderr


def test_results_lie_in_recycled_memory():
    f = jl.function(lambda x: x + 1)
    x = np.zeros(100_000)
    y = f(x)
    where = y.ctypes.data
    assert where % ALIGNMENT == 0
    part = y[10:20]
    del y
    z = f(x)
    other = z.ctypes.data
    assert other != where, "a view keeps its block"
    np.testing.assert_array_equal(part, 1)
    del part, z
    again = f(x)
    assert again.ctypes.data in (where, other)


def test_the_pool_keeps_within_its_limit():
    own = Pool(limit_bytes=1 << 20)
    arrays = [own.empty((1 << 16,), np.dtype("f8")) for _ in range(4)]
    del arrays
    assert 0 < own.free_bytes <= 1 << 20
    own.trim()
    assert own.free_bytes == 0
    for n in (1, 1000, 65_536, 100_001, 10**8):
        assert n <= size_class(n) <= max(n * 9 // 8 + 128, 128)
    assert pool.empty((3,), np.dtype("f4")).flags.owndata


def test_layouts():
    x = np.zeros((4, 6))
    assert layout_of(x) == "C"
    assert layout_of(x.T) == "F"
    assert layout_of(x[:, :3]) == "R"
    assert layout_of(x[:, ::2]) == "S"
    assert layout_of(x[::-1]) == "S"
    assert layout_of(np.zeros((4, 6), ">f8")) == ""
    assert layout_of(np.frombuffer(bytes(81), np.uint8)[1:].view("f8")) in ("", "C")


def test_products_of_matrices_need_no_blas(monkeypatch):
    monkeypatch.setattr("jitlab.targets.cpu_llvm.cpu_target.blas_address", lambda name: 0)
    rng = np.random.default_rng(0)
    a, b, v = rng.normal(size=(7, 13)), rng.normal(size=(13, 5)), rng.normal(size=13)
    f = jl.function(lambda a, b, v: (a @ b, a @ v, v @ b, v @ v, np.stack([a, a]) @ b))
    for got, want in zip(f(a, b, v), (a @ b, a @ v, v @ b, v @ v, np.stack([a, a]) @ b), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_matrix_by_its_own_transpose_is_half_the_work(dtype, monkeypatch):
    """One triangle of the result is computed and stored twice, as NumPy does it: its last bits are not those of a product of
    two matrices."""
    rng = np.random.default_rng(0)
    stack = rng.normal(size=(3, 64, 64)).astype(dtype)
    functions = [lambda x: x.T @ x, lambda x: x @ x.T, lambda x: x[1:, 3:].T @ x[1:, 3:], lambda x: (x - 1).T @ (x - 1)]
    for function in functions:
        f = jl.function(function)
        for x in (stack[0], stack[0] * np.nan, stack[1], np.asfortranarray(stack[2])):
            assert np.asarray(f(x)).tobytes() == function(x).tobytes()
    f = jl.function(lambda x: x @ x.transpose(0, 2, 1))
    assert f(stack).tobytes() == (stack @ stack.transpose(0, 2, 1)).tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_compiles_and_runs():
    program = """
import os, numpy as np, jitlab as jl
x = np.linspace(0, 1, 50)
f = jl.function(lambda x: np.exp(x) + 1)
f(x)
child = os.fork()
if child == 0:
    g = jl.function(lambda x: np.exp(x) * np.tanh(x) - 7)
    fine = np.allclose(f(x), np.exp(x) + 1) and np.allclose(g(x), np.exp(x) * np.tanh(x) - 7)
    os._exit(0 if fine else 1)
_, status = os.waitpid(child, 0)
print('alive' if status == 0 else status)
"""
    for _ in range(3):  # with and without a compilation under way
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=os.environ | {"JITLAB_CACHE": "0"}
        )
        assert done.stdout.strip() == "alive", done.stderr


TALL = [((700, 300), 0), ((129, 2049), 0), ((3, 500, 300), 1), ((2, 2, 257, 900), 2), ((128, 1024), 0)]


@pytest.mark.parametrize("shape, axis", TALL)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_reductions_over_many_rows_are_taken_in_blocks(shape, axis, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)

    def f(x):
        total = x.sum(axis=axis)
        return total, 2 * x.max(axis=axis) - total, (x > 0).any(axis=axis), x.argmin(axis=axis), (x * x).mean(axis=axis)

    for got, want in zip(jl.function(f)(x), f(x.astype("f8")), strict=True):
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(got, want, rtol=20 * eps, atol=40 * eps * np.sqrt(shape[axis]))


def test_threads_plan_a_function_once():
    forget_compiled()
    f = jl.function(lambda x: np.exp(x) / np.exp(x).sum())
    x = np.linspace(0, 1, 99)
    barrier = threading.Barrier(8)
    wrong = []

    def work():
        barrier.wait()
        if not np.allclose(f(x), np.exp(x) / np.exp(x).sum()):
            wrong.append(1)

    seen = []
    with events.listen(seen.append):
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong
    assert [type(e).__name__ for e in seen].count("Traced") == 1
    assert [type(e).__name__ for e in seen].count("PlanMade") == 1


def test_a_listener_that_fails_is_told_once_and_hears_no_more():
    f = jl.function(lambda x: x + 1)

    def broken(event):
        raise ZeroDivisionError("mine")

    with pytest.warns(RuntimeWarning, match="ZeroDivisionError"), events.listen(broken):
        np.testing.assert_array_equal(f(np.zeros(3)), 1)
    assert events.busy.word.value == 0
