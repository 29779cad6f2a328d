"""The quick tier's text is shorter than the good one's, and its code gives the same bits."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.cpu_llvm import compiling, machine
from jitlab.targets.cpu_llvm.calls.launcher import ContextLauncher
from jitlab.targets.cpu_llvm.compiling import MachineCode
from jitlab.targets.cpu_llvm.cpu_schedule import scheduled
from jitlab.targets.cpu_llvm.emit import codegen, phase
from jitlab.targets.target import Origin

sys.path.insert(0, str(Path(__file__).parent))
from one_kernel import equal  # noqa: E402

SHAPES = [(1,), (7,), (8, 5), (3, 16), (33,), (64, 5), (2, 65), (257,), (3, 513), (1100,), (300, 3), (40, 9), (20, 12, 3)]


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def several_sums(x):
    return x.sum(), (x * x).mean(), x.min(), np.prod(1 + x / 1000), np.any(x > 1), np.count_nonzero(x > 0)


def over_rows(x):
    return x.sum(axis=0), x.max(axis=0), (x - x.mean(axis=0)) / (1 + x.std(axis=0)), x.argmin(axis=0)


def places(x):
    return x.argmax(), x.argmin(axis=-1), np.cumsum(x, axis=-1), np.cumsum(x, axis=0), np.maximum.accumulate(x)


def mathematics(x):
    y = np.abs(x) + 1
    return np.sin(x * 1e6) + np.log(y) ** 3 - np.tanh(x), np.hypot(x, y), np.arctan2(x, y), y**x, y**2.5, np.expm1(x) % y


def heavy_sum(x):
    return (np.exp(np.sin(x)) * np.log1p(x * x)).sum(axis=-1), np.sqrt(np.abs(x) ** 1.5).sum()


def moved(x):
    return x[..., ::-1] * 2, x.T + 1, np.take(x, np.arange(x.size) // 2), np.roll(x, 3) - x, np.where(x > 0, x, -x), x[..., ::2]


def whole_numbers(x):
    n = (x * 100).astype("i8")
    return n // 7, n % 5, (n * n).sum(), np.bitwise_xor.reduce(n.ravel()), n.astype("i1") + 1, n.astype("u2") // 3, n > 3


def bits_of_complex(x):
    z = x + 1j * x[..., ::-1]
    return z * z, np.abs(z), np.exp(z), z.sum(axis=-1), z.prod()


def narrow(x):
    h = x.astype("f2")
    return h * 3, np.exp(h), h.sum(axis=-1), x.astype("f4").sum(axis=0), np.cos(x.astype("f4")), h > 0


PROGRAMS = [
    softmax, several_sums, over_rows, places, mathematics, heavy_sum, moved, whole_numbers, bits_of_complex, narrow,
]  # fmt: skip


@pytest.fixture(params=[None, 0, 4], ids=["this machine", "no masks", "masks of wide elements"])
def masked_bytes(request, monkeypatch):
    """Texts are written for machines of other masks, too."""
    if request.param is not None:
        other = replace(machine.features(), masked_bytes=request.param)
        monkeypatch.setattr(phase, "features", lambda: other)
    return request.param


def of_both(lowered, inputs):
    """A cluster's outputs by the code that runs first and by the code that runs in the end."""
    program = scheduled(lowered.program)
    for write, tier in ((codegen.quick_module_for, "quick"), (codegen.module_for, "good")):
        code = MachineCode(machine.KEY, program)
        code.install(machine.load(machine.compile_object(write(program), tier), ["run"]), tier)
        launcher = ContextLauncher(lowered, code)
        outputs = [np.empty(shape, dtype) for shape, dtype in launcher.results]
        assert launcher.run(inputs, outputs, None) is None
        yield outputs


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_both_texts_give_the_same_bits(program, masked_bytes):
    rng = np.random.default_rng(5)
    checked = 0
    for shape in SHAPES if masked_bytes is None else SHAPES[6:9]:
        x = rng.normal(size=shape)
        trace = jl.function(program)._replayable((x,), {})[0]
        for cluster in trace.executable.clustering.clusters:
            if all(node.op.is_parameter for node in cluster.inputs):
                lowered = trace.executable._lowered(cluster, tuple("C" for _ in cluster.inputs), frozenset())
                quick, good = of_both(lowered, [x])
                assert all(equal(a, b).all() for a, b in zip(quick, good, strict=True)), shape
                checked += 1
    assert checked


@pytest.mark.parametrize(("size", "written"), [(1000, "quick_module_for"), (10_000_000, "module_for")])
def test_a_long_first_run_gets_the_text_of_the_faster_code(size, written, monkeypatch):
    x = np.ones(size)
    trace = jl.function(lambda x: np.exp(x) + np.log1p(x))._replayable((x,), {})[0]
    (cluster,) = trace.executable.clustering.clusters
    program = scheduled(trace.executable._lowered(cluster, ("C",), frozenset()).program)
    called = []
    writers = {"quick_module_for": codegen.quick_module_for, "module_for": codegen.module_for}
    for name, write in writers.items():

        def written_by(p, name=name, write=write):
            if p is program:  # others may be compiled behind
                called.append(name)
            return write(p)

        monkeypatch.setattr(codegen, name, written_by)
    monkeypatch.setattr(jl.config, "cache", False)
    compiling.machine_code(machine.KEY, program, Origin()).wait()
    assert called == [written, "module_for"]


def test_the_quick_text_of_one_body_a_loop_is_shorter(monkeypatch):
    monkeypatch.setattr(phase, "features", lambda: replace(machine.features(), masked_bytes=1))
    x = np.ones((50, 70))
    for program in (softmax, mathematics):
        trace = jl.function(program)._replayable((x,), {})[0]
        for cluster in trace.executable.clustering.clusters:
            lowered = trace.executable._lowered(cluster, tuple("C" for _ in cluster.inputs), frozenset())
            made = scheduled(lowered.program)
            assert codegen.quick_module_for(made).count("\n") < 0.8 * codegen.module_for(made).count("\n")
