"""Where a program runs: `whatif(target="gpu")` measures both, and `device="auto"` takes what a model says is faster."""

from dataclasses import replace

import numpy as np
import pytest

import jitlab as jl
from jitlab.errors import DeviceError, ImpossiblePlanError, OptionError
from jitlab.runtime.predicted import predicted
from jitlab.targets import devices
from jitlab.targets.gpu_cuda import gpu_peaks
from jitlab.targets.gpu_cuda.gpu_driver import Driver
from jitlab.targets.target import DevicePeaks, Peaks

X = np.random.default_rng(4).normal(size=(32, 64))

HOST = Peaks(10e9, 100e9)
SLOW_BUS = DevicePeaks(1e12, 1e13, 1e9, 1e9, 5e-6, "a GPU", True)
FAST_BUS = replace(SLOW_BUS, to_device=1e12, to_host=1e12, launch_seconds=1e-9)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(devices, "_unusable", [DeviceError("No GPU can be used here.")])


def plan_of(function, *arguments):
    executable = function._replayable(arguments, {})[0].executable
    executable.prepare(arguments)
    return executable.plan


def test_without_a_gpu_the_refusal_is_a_prediction(no_gpu):
    match = r"No GPU can be used here\. A prediction for an H100: .*32.8 kB.* on the proc"
    with pytest.raises(ImpossiblePlanError, match=match) as said:
        jl.function(softmax).whatif(X, target="gpu")
    assert said.value.code == "target"


def test_both_run_in_turns_with_and_without_copies():
    with jl.simulated_gpu() as gpu:
        answer = jl.function(softmax).whatif(X, target="gpu", seconds=0.01)
        assert gpu.launched.total() > 12
    assert answer.rounds >= 12
    assert answer.before.largest_error_ulp is not None
    assert answer.after.largest_error_ulp < 8
    assert answer.kept_seconds > 0
    assert "with arrays that stay in the GPU's memory" in str(answer)
    assert answer.to_json()["kept_seconds"] == answer.kept_seconds
    assert 'device="gpu"' in answer.keep_text


def test_a_plan_on_a_gpu_is_tried_on_the_processor():
    with jl.simulated_gpu():
        f = jl.function(softmax, device="gpu")
        answer = f.whatif(X, target="cpu", seconds=0.01)
        assert answer.kept_seconds > 0  # of the plan as it is built
        assert answer.before.fingerprint and "Run on cpu" in str(answer)
        with pytest.raises(ImpossiblePlanError, match="already runs on the GPU"):
            f.whatif(X, target="gpu")


@pytest.mark.parametrize(
    ("seconds", "kept", "said"),
    [(0.046, 0.005, " Keep its arrays on the GPU (jl.to_device): 41.0 ms of 46.0 ms are copies."), (0.046, 0.04, "")],
)
def test_advice_on_copies(seconds, kept, said):
    from jitlab.api.whatif.whatif import _of_copies

    assert _of_copies(seconds, kept) == said


def test_the_model_counts_kernels_launches_and_copies():
    plan = plan_of(jl.function(softmax), X)
    found = predicted(plan, HOST, SLOW_BUS)
    (kernel,) = plan.kernels
    moved = kernel.bytes_read + kernel.bytes_written
    assert found.copied_bytes == 2 * X.nbytes
    assert found.copy_seconds == pytest.approx(2 * (1e-5 + X.nbytes / 1e9))
    assert found.device_seconds == pytest.approx(5e-6 + max(moved / 1e12, kernel.flops / (0.25 * 1e13)))
    assert found.host_seconds == pytest.approx(max(moved / 10e9, kernel.flops / (0.25 * 100e9)))
    assert found.ratio == pytest.approx(found.host_seconds / (found.copy_seconds + found.device_seconds))


@pytest.mark.parametrize(("peaks", "host", "taken"), [(SLOW_BUS, HOST, False), (FAST_BUS, Peaks(1e6, 1e6), True)])
def test_auto_takes_the_gpu_where_the_model_says_so(peaks, host, taken, monkeypatch):
    monkeypatch.setattr(devices.DEVICES["CPU"], "known_peaks", lambda: host)
    with jl.simulated_gpu() as gpu:
        monkeypatch.setattr(devices.DEVICES["GPU"], "_peaks", peaks)
        f = jl.function(softmax, device="auto")
        np.testing.assert_allclose(f(X), softmax(X), rtol=1e-14)
        assert bool(gpu.launched) is taken
        (cluster,) = jl.explain(f, X).data["clusters"]
    assert cluster["placed"]["code"] == ("on_gpu" if taken else "on_cpu")
    assert cluster["placed"]["args"]["bytes"] == 2 * X.nbytes
    assert ("placed on a GPU: predicted" if taken else "left on the processor") in cluster["placed"]["text"]


def test_auto_places_each_trace_by_its_sizes(monkeypatch):
    peaks = replace(SLOW_BUS, to_device=1e11, to_host=1e11)
    monkeypatch.setattr(devices.DEVICES["CPU"], "known_peaks", lambda: Peaks(1e9, 1e12))
    with jl.simulated_gpu() as gpu:
        monkeypatch.setattr(devices.DEVICES["GPU"], "_peaks", peaks)
        f = jl.jit(lambda x: x * 2 + 1, device="auto")
        f(np.ones(8))
        assert not gpu.launched
        f(np.ones(1 << 16))
        assert gpu.launched
        before = gpu.launched.total()
        f(np.ones(8))
        assert gpu.launched.total() == before


def test_auto_without_a_gpu_is_the_processor(no_gpu):
    f = jl.jit(softmax, device="auto")
    np.testing.assert_allclose(f(X), softmax(X), rtol=1e-14)
    assert "placed" not in jl.explain(f, X).data["clusters"][0]
    with pytest.raises(OptionError, match="auto"):
        jl.jit(softmax, device="tpu")


class Planned(Driver):
    """A driver whose clock says planned times: of each byte on the device, of each launch; of each byte over the bus."""

    key, name, processors = "sm_90", "a planned GPU", 100

    def __init__(self):
        self.now = 0

    def allocate(self, nbytes):
        return 256

    def free(self, address): ...
    def load(self, text, kernels): ...
    def launch(self, *arguments): ...
    def wait(self): ...

    def copy_in(self, address, array):
        self.now += array.nbytes // 8

    def copy_out(self, array, address):
        self.now += array.nbytes // 4

    def copy_within(self, target, source, nbytes):
        self.now += 3000 + nbytes // 1024

    def mark(self):
        return self.now

    def elapsed_ns(self, before, after):
        return after - before


def test_peaks_of_a_gpu_are_measured(monkeypatch):
    driver = Planned()
    monkeypatch.setattr(gpu_peaks.time, "perf_counter_ns", lambda: driver.now)
    found = gpu_peaks.measured(driver)
    assert found.bytes_per_second == pytest.approx(2 * 1024e9, rel=0.02)
    assert found.launch_seconds == pytest.approx(3e-6)
    assert (found.to_device, found.to_host) == (pytest.approx(8e9), pytest.approx(4e9))
    assert (found.measured, found.name) == (True, "a planned GPU")
    assert found.flops_per_second == 100 * gpu_peaks.PROCESSOR_FLOPS
