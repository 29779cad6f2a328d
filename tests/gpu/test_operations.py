"""Operations and calls of NumPy on the simulated GPU equal NumPy, and give the same bits in whatever order its threads run."""

import importlib
import pkgutil
from collections import defaultdict

import numpy as np
import pytest

import jitlab.ops
from tests.gpu.on_gpu import GPUS, bits, host_copies, on_gpu
from tests.ops import test_table
from tests.runtime import test_compiled_operations, test_compiled_table
from tests.runtime.compiling import graph_of, run_compiled

for module in pkgutil.walk_packages(jitlab.ops.__path__, "jitlab.ops."):
    importlib.import_module(module.name)  # which operations there are depends on what was loaded
SAMPLES = list(test_compiled_operations.samples())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("op", "arrays"), SAMPLES)
def test_an_operation_equals_numpy(op, arrays):
    with on_gpu():
        test_compiled_operations.test_compiled_equals_numpy(op, arrays)


@pytest.mark.parametrize(("op", "arrays"), SAMPLES)
def test_an_operation_gives_the_same_bits_on_every_gpu(op, arrays):
    graph, found = graph_of(op, *arrays), []
    for processors, order in GPUS:
        with on_gpu(processors, order), np.errstate(all="ignore"):
            found.append(bits(run_compiled(graph, arrays)))
    assert found[0] == found[1] == found[2]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(20))
@pytest.mark.parametrize("family", test_table.FAMILIES)
def test_sample_calls(family, first):
    with on_gpu(*GPUS[first % len(GPUS)]):
        found = [test_compiled_table.outcome(p) for p in list(test_table.FAMILIES[family]())[first::20]]
    wrong = [text for text in found if text not in ("", "refused")]
    assert not wrong, f"{len(wrong)} of {len(found)} differ:\n" + "\n".join(wrong[:30])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_runs_on_the_host(monkeypatch, golden):
    """Of each operation why some sample of it does; every other sample launches kernels."""
    found = defaultdict(set)
    for op, arrays in (sample.values for sample in SAMPLES):
        with on_gpu() as gpu, host_copies(monkeypatch) as copies, np.errstate(all="ignore"):
            results = run_compiled(graph_of(op, *arrays), arrays)
        found[type(op).__name__].update(copies)
        works = any(np.size(a) for a in results) and type(op).__name__ not in ("Constant", "Length")  # known beforehand
        assert gpu.launched or copies or not works, op
    lines = [f"{name}: {reason}" for name in sorted(found) for reason in sorted(found[name])]
    assert "\n".join(lines) == golden


def test_they_ran_on_this_target(monkeypatch):
    monkeypatch.setattr("jitlab.targets.gpu_cuda.gpu_launcher.KernelLauncher.run", lambda *_: 1 / 0)
    with on_gpu(), pytest.raises(ZeroDivisionError):
        test_compiled_operations.test_compiled_equals_numpy(*SAMPLES[0].values)
