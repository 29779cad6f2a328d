"""Faults in the code generator and around it that the simulated GPU finds: what it tests is tested."""

import re

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets import devices
from jitlab.targets.gpu_cuda.kernels.kernel_writer import KernelWriter
from jitlab.targets.gpu_cuda.simulated_driver import SimulatedDriver
from tests.gpu.listed_programs import LISTED, normal
from tests.gpu.on_gpu import GPUS, on_gpu

WAIT = re.compile(r"\n *call void @llvm\.nvvm\.(?:barrier\.cta\.sync\.aligned\.all\(i32 0\)|bar\.warp\.sync\(i32 -1\))")


def outcome(name, planted=lambda text: text, gpu=GPUS[0], arguments=None):
    """ "" where a program gives NumPy's results on a GPU that loads its text with a fault in it, else what is wrong."""
    function, arguments = LISTED[name].function, arguments or LISTED[name].arguments
    want, before = function(*(a.copy() for a in arguments)), devices.default
    with jl.simulated_gpu(*gpu) as driver:
        load, devices.default = driver.load, "GPU"
        driver.load = lambda text, kernels: load(planted(text), kernels)
        try:
            got = jl.jit(function)(*(a.copy() for a in arguments))
        finally:
            devices.default = before
    if driver.faults:
        return driver.faults[0]
    assert driver.launched
    return "" if np.allclose(got, want, rtol=1e-4, atol=1e-5) else "other values"


def without(pattern, number, instead=""):
    """Changes one place in a text where a pattern is."""

    def planted(text):
        found = list(re.finditer(pattern, text))
        assert number < len(found)
        return text[: found[number].start()] + instead + text[found[number].end() :]

    return planted


def places(name, pattern):
    texts = []
    assert outcome(name, lambda text: texts.append(text) or text) == ""
    assert len(texts) == 1
    return range(len(re.findall(pattern, texts[0])))


@pytest.mark.slow
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", ["softmax_of_long_rows", "whole_sum", "product"])
def test_a_barrier_that_is_dropped(name, gpu):
    """Some stand in code for other rows, and some would be needed in a larger grid only."""
    found = [outcome(name, without(WAIT, number, "\n"), gpu) for number in places(name, WAIT)]
    wrong = [text for text in found if text]
    assert len(wrong) >= 2 and all("race" in text for text in wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", "row_sums", "sigmoid_of_doubles", "column_sums"])
def test_an_index_that_is_one_too_far(name):
    found = [outcome(name, without("icmp slt i64", number, "icmp sle i64")) for number in places(name, "icmp slt i64")]
    wrong = [text for text in found if "outside" in text or "other values" in text]
    assert len(wrong) >= max(len(found) - 1, 2)


@pytest.mark.parametrize("name", ["row_sums", "row_maxima", "row_positions"])
def test_vectors_where_rows_do_not_start_at_multiples_of_16_bytes(name, monkeypatch):
    arguments = [normal(5, 1001, dtype=a.dtype)[:, 1:] for a in LISTED[name].arguments]
    assert outcome(name, arguments=arguments) == ""
    odd = [normal(5, 1001, dtype=a.dtype) for a in LISTED[name].arguments]
    assert outcome(name, arguments=odd) == ""
    monkeypatch.setattr(KernelWriter, "_fits_all", lambda *_: "true")
    assert "misaligned" in outcome(name, arguments=odd)


def test_scratch_that_blocks_share():
    long = [normal(4, 20001)]
    assert outcome("softmax", arguments=long) == ""
    shared = without(r"(?<=%r\.e0 = getelementptr i8, ptr %b\.e0, i64 )%\w+", 0, "0")
    for gpu in GPUS:
        assert outcome("softmax", shared, gpu, long) != ""


@pytest.mark.parametrize("gpu", GPUS)
def test_a_tile_that_is_read_before_it_is_there(gpu):
    assert outcome("turned_beside_another", gpu=gpu) == ""
    assert "race" in outcome("turned_beside_another", without(WAIT, 0, "\n"), gpu)


def test_blocks_that_have_a_row_together():
    """A value that one of them does not tell, and memory to meet in that nobody cleared."""
    name, told = "softmax_of_rows_in_parts", r"store atomic i64 %\w+, ptr %\w+[^\n]*"
    assert len(places(name, told)) == 2
    for gpu in GPUS:
        for number in places(name, told):
            found = outcome(name, without(told, number), gpu)
            assert "divergence" in found and "sleep" in found
        assert outcome(name, without(r"store <2 x i64> [^\n]*", 0), gpu) != ""


def test_a_copy_that_is_missing(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedDriver, "copy_in", lambda *_: None)
        assert outcome("chain") == "other values"
    assert outcome("chain") == ""


def test_a_result_of_the_host_that_is_not_copied_back(monkeypatch):
    given = normal(100)
    with on_gpu():
        x = jl.to_device(given)
        np.testing.assert_array_equal(jl.jit(lambda x: np.sort(x) * 2)(x).to_numpy(), np.sort(given) * 2)
        monkeypatch.setattr(SimulatedDriver, "copy_in", lambda *_: None)
        assert np.isnan(jl.jit(lambda x: np.sort(x) * 3)(x).to_numpy()).all()
