"""What a report says of a run on a GPU: its lanes, what each kernel was launched with, how full it makes a multiprocessor."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.report.render.wording import launches_text
from jitlab.targets import devices
from jitlab.targets.gpu_cuda import cuda_driver
from jitlab.targets.gpu_cuda.gpu_driver import Resources, Shape2
from jitlab.targets.gpu_cuda.kernels.occupancy import launch_facts, occupancy
from jitlab.targets.target import DevicePeaks
from tests.gpu.fake_cuda import Fake

X = np.random.default_rng(6).normal(size=(300, 64)).astype("f4")


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def report_of(function, *arguments, calls=3):
    f = jl.function(function, device="gpu")
    f(*arguments)
    with jl.record() as recording:
        for _ in range(calls):
            f(*arguments)
    return recording.report()


def test_copies_and_kernels_have_lanes_of_their_own():
    with jl.simulated_gpu():
        data = report_of(softmax, X).data
    lanes = {lane["name"]: lane for lane in data["timeline"]["lanes"]}
    assert {"compiled", "simulated GPU", "to GPU", "to host"} <= lanes.keys()
    assert not {"kernels", "GPU"} & lanes.keys()
    assert [span["bytes"] for span in lanes["to GPU"]["spans"]] == [X.nbytes] * 3
    assert [span["bytes"] for span in lanes["to host"]["spans"]] == [X.nbytes] * 3
    assert {span["kind"] for span in lanes["simulated GPU"]["spans"]} == {"kernel"}
    for kernel, launch in zip(lanes["simulated GPU"]["spans"], lanes["compiled"]["spans"], strict=True):
        assert kernel["start"] + kernel["duration"] == pytest.approx(launch["start"] + launch["duration"], abs=0.01)
        assert kernel["duration"] <= launch["duration"]
    for there, launch, back in zip(*(lanes[name]["spans"] for name in ("to GPU", "compiled", "to host")), strict=True):
        assert there["start"] < launch["start"] < back["start"]


def test_a_kernel_says_what_it_was_launched_with():
    with jl.simulated_gpu():
        report = report_of(softmax, X)
    (kernel,) = report.data["kernels"]
    (launch,) = kernel["launches"]
    assert (launch["grid"], launch["threads"]) == ([38, 1], 256)  # a warp a row, 8 rows a block
    assert launch["registers"] is launch["occupancy"] is None  # nobody assembles it
    assert kernel["seconds"] > 0
    assert launch["simulated"] and "simulated, 38 blocks of 256" in str(report)


def test_what_a_gpu_ran_is_apart_from_what_the_host_took_to_enqueue_it(monkeypatch):
    with jl.simulated_gpu() as gpu:
        monkeypatch.setattr(type(gpu), "simulated", False)
        monkeypatch.setattr(type(gpu), "elapsed_ns", lambda self, before, after: 5000)
        report = report_of(softmax, X)
    lanes = {lane["name"]: lane["spans"] for lane in report.data["timeline"]["lanes"]}
    assert [span["duration"] for span in lanes["GPU"]] == [5.0] * 3
    assert all(0 < span["enqueued"] <= span["duration"] for span in lanes["compiled"])
    assert "simulated" not in str(report)


def test_times_are_those_of_the_gpu(monkeypatch):
    with jl.simulated_gpu() as gpu:
        monkeypatch.setattr(type(gpu), "elapsed_ns", lambda self, before, after: 5000)
        data = report_of(softmax, X, calls=4).data
    (kernel,) = data["kernels"]
    assert kernel["seconds"] == pytest.approx(4 * 5e-6)


def test_the_share_of_the_peak_is_that_of_the_gpu(monkeypatch):
    x = np.ones(1 << 19, "f4")
    with jl.simulated_gpu() as gpu:
        peaks = DevicePeaks(2 * x.nbytes / 10e-6, 1e15, 1e9, 1e9, 1e-6, "a GPU", True)
        monkeypatch.setattr(devices.DEVICES["GPU"], "_peaks", peaks)
        monkeypatch.setattr(type(gpu), "elapsed_ns", lambda self, before, after: 20000)
        (kernel,) = report_of(lambda x: x + 1, x).data["kernels"]
    assert (kernel["bound"], kernel["of_peak"]) == ("memory", pytest.approx(0.5))


@pytest.mark.parametrize(
    ("threads", "resources", "arch", "share", "limited_by"),
    [
        (256, Resources(32, 0, 0), 90, 1.0, "threads"),
        (256, Resources(40, 0, 0), 90, 0.75, "registers"),
        (256, Resources(255, 0, 8), 80, 0.125, "registers"),
        (256, Resources(16, 64 << 10, 0), 90, 0.375, "shared memory"),
        (32, Resources(16, 0, 0), 90, 0.5, "blocks"),
        (1024, Resources(16, 0, 0), 75, 1.0, "threads"),
    ],
)
def test_occupancy(threads, resources, arch, share, limited_by):
    found = occupancy(threads, resources, arch)
    assert (found.share, found.limited_by) == (share, limited_by)


def test_a_driver_says_what_a_kernel_takes(monkeypatch):
    Fake().install(monkeypatch)
    driver = cuda_driver.open_driver()
    found = launch_facts(Shape2(7, 2), 256, driver.resources(("phase0", "phase0")), 90)
    assert (found["registers"], found["shared_bytes"], found["spilled_bytes"]) == (40, 2048, 16)
    said = "7×2 blocks of 256, 40 registers, 2.0 kB shared, 16 B spilled, 75 % occupied (by registers)"
    assert launches_text([found]) == said
    assert occupancy(256, Resources(16, 0, 0), 60) is None


def test_the_recorded_report_of_a_gpu_is_what_is_made_now(tmp_path):
    """Of extension/test/fixtures/gpu.json all but times, names of machines and LLVM's choice of instructions."""
    root, made = Path(__file__).parents[2], tmp_path / "gpu.json"
    subprocess.run([sys.executable, str(root / "tests" / "explained_fixture.py"), "gpu", str(made)], check=True)
    kept, now = (json.loads(path.read_text()) for path in (root / "extension/test/fixtures/gpu.json", made))

    def told(data):
        report, (ptx,), (answer,) = data["report"], [c for c in data["code"] if c["stage"] == "ptx"], data["jobs"]
        refusal = answer["result"]["refusal"]
        return {
            "lanes": [
                (lane["name"], [(span["name"], span["kind"], span.get("bytes")) for span in lane["spans"]])
                for lane in report["timeline"]["lanes"]
            ],
            "launches": [kernel["launches"] for kernel in report["kernels"]],
            "keys": [sorted(record) for key in ("ops", "kernels", "clusters", "plans") for record in report[key]],
            "ptx": sorted({tuple(map(tuple, line["at"])) for line in ptx["lines"]}),
            "refusal": (refusal["code"], refusal["detail"], sorted(refusal["args"])),
            "device": [part["clusters"][0].get("device") for part in (report, data["on_processor"])],
        }

    assert told(now) == told(kept)
