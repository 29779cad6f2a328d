"""`device="gpu"`: what is captured runs as kernels, NumPy's arrays go in and come out, and each copy is told."""

import re
import sys

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.errors import DeviceError, DeviceLost, OptionError
from jitlab.notebook.extension import unload_ipython_extension
from jitlab.targets import devices
from jitlab.targets.gpu_cuda.gpu_target import GpuTarget
from jitlab.targets.gpu_cuda.simulated_driver import SimulatedDriver
from tests.gpu.fake_cuda import Fake, Result
from tests.notebook.shells import new_shell


@pytest.fixture
def gpu(monkeypatch):
    """A simulated one, in the place of the real one."""
    target = GpuTarget(SimulatedDriver())
    monkeypatch.setitem(devices.DEVICES, "GPU", target)
    monkeypatch.setattr(devices, "_unusable", [])
    return target


@pytest.fixture
def no_gpu(monkeypatch):
    """A machine without one."""
    monkeypatch.delitem(devices.DEVICES, "GPU", raising=False)
    monkeypatch.setattr(devices, "_unusable", [])
    monkeypatch.setitem(sys.modules, "cuda.core", None)


def launches(gpu):
    return sum(gpu.driver.launched.values())


X = np.random.default_rng(0).random((5, 7))


def chain(x):
    return np.sqrt(x) * 2 + np.exp(-x)


def both(x):
    y = chain(x)
    return y.sum(), {"y": y, "largest": y.max(0)}


@pytest.mark.parametrize("decorator", [jl.jit, jl.function])
@pytest.mark.parametrize(
    "x", [X, X[:3], X.T, X[::-1, ::2], X.astype("f4"), np.empty((0, 3)), np.array(2.5)], ids=lambda x: f"{x.dtype}{x.shape}"
)
def test_a_function_runs_on_the_gpu(gpu, decorator, x):
    f = decorator(chain, device="gpu")
    for n in range(1, 8):  # warm calls, too
        found = f(x)
        assert type(found) is type(chain(x)) and found.dtype == x.dtype
        np.testing.assert_allclose(found, chain(x), rtol=1e-6 if x.dtype == "f4" else 1e-14)
        assert launches(gpu) >= n or not x.size


@pytest.mark.parametrize("decorator", [jl.jit, jl.function])
def test_results_are_numpys(gpu, decorator):
    total, found = decorator(both, device="gpu")(X)
    assert type(total) is np.float64 and type(found["y"]) is type(found["largest"]) is np.ndarray
    np.testing.assert_allclose(total, both(X)[0], rtol=1e-14)
    np.testing.assert_allclose(found["largest"], both(X)[1]["largest"], rtol=1e-14)
    assert launches(gpu)


def test_each_copy_is_told_with_its_bytes(gpu):
    f = jl.jit(chain, device="gpu")
    f(X)
    heard = []
    with events.listen(heard.append):
        f(X)
    copies = [(e.direction, e.bytes, e.function) for e in heard if isinstance(e, events.DeviceCopied)]
    assert copies == [("in", X.nbytes, "chain"), ("out", X.nbytes, "chain")]


def test_what_numpy_does_is_done_on_the_host(gpu):
    f = jl.jit(lambda x: np.unique(chain(x).round(1)), device="gpu")
    np.testing.assert_array_equal(f(X), np.unique(chain(X).round(1)))
    assert launches(gpu)


def test_memory_of_a_call_goes_with_it(gpu):
    f = jl.jit(chain, device="gpu")
    f(X)
    held = gpu.driver.held_bytes
    for _ in range(5):
        f(X)
    assert gpu.driver.held_bytes == held


def test_arguments_are_changed_in_place(gpu):
    def add(x, y):
        x += np.exp(y)
        return x

    for decorator in (jl.jit, jl.function):
        x, want = X.copy(), X + np.exp(X)
        found = decorator(add, device="gpu")(x, X)
        np.testing.assert_allclose(x, want, rtol=1e-14)
        assert found is x or np.array_equal(found, x)


def test_an_index_out_of_bounds_is_numpys_error(gpu):
    f = jl.jit(lambda x, i: x[i] * 2, device="gpu")
    np.testing.assert_array_equal(f(X, np.array([4, 0])), X[[4, 0]] * 2)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        f(X, np.array([0, 9]))


def test_the_setting_holds_for_what_is_made_under_it(gpu):
    before = jl.jit(chain)
    jl.config.device = "gpu"
    try:
        made, asked = jl.jit(chain), jl.jit(chain, device="cpu")
        function = jl.function(chain)
    finally:
        jl.config.device = "cpu"
    for f, runs_there in ((before, False), (made, True), (asked, False), (function, True)):
        count = launches(gpu)
        np.testing.assert_allclose(f(X), chain(X), rtol=1e-14)
        assert (launches(gpu) > count) is runs_there


def test_a_method_runs_where_its_function_was_made_to(gpu):
    class Model:
        @jl.function
        def run(self, x):
            return np.exp(x)

    jl.config.device = "gpu"
    try:
        np.testing.assert_allclose(Model().run(X), np.exp(X), rtol=1e-14)
        assert not launches(gpu)
    finally:
        jl.config.device = "cpu"


@pytest.mark.parametrize("value", ["tpu", "GPU", 1, ""])
def test_another_device_is_an_error_that_names_the_three(value):
    for decorator in (jl.jit, jl.function):
        with pytest.raises(OptionError, match='"gpu" or "auto"'):
            decorator(chain, device=value)
    with pytest.raises(OptionError, match='"gpu" or "auto"|of type str'):
        jl.config.device = value


def test_a_call_is_not_decided_to_be_pythons(gpu):
    f = jl.jit(lambda x: x + 1, device="gpu")
    for n in range(1, 30):
        f(np.ones(2))
        assert launches(gpu) == n


def test_a_cell_runs_on_the_gpu(gpu):
    shell = new_shell()
    shell.user_ns["x"] = X
    try:
        for line, runs_there in (
            ("%%jit -q", False),
            ("%%jit -q --device gpu", True),
            ("%%jit -q --device cpu", False),
            ("%%jit --device gpu -q", True),
        ):
            count = launches(gpu)
            assert shell.run_cell(f"{line}\nimport numpy as np\ny = np.sqrt(x) + np.exp(x)\nz = y.sum()").success
            np.testing.assert_allclose(shell.user_ns["y"], np.sqrt(X) + np.exp(X), rtol=1e-14)
            assert type(shell.user_ns["y"]) is np.ndarray and (launches(gpu) > count) is runs_there
        count = launches(gpu)
        assert shell.run_cell("%jit on --device gpu").success
        assert shell.run_cell("w = np.exp(x) * 2", store_history=True).success
        assert launches(gpu) > count and shell.run_cell("%jit off").success
    finally:
        unload_ipython_extension(shell)


# ---- where there is none


@pytest.mark.parametrize("ask", [
    lambda: jl.jit(chain, device="gpu"), lambda: jl.function(chain, device="gpu"), lambda: jl.to_device(X),
], ids=["jit", "function", "to_device"])  # fmt: skip
def test_without_a_gpu_asking_for_it_is_an_error_of_one_sentence(no_gpu, ask):
    with pytest.raises(DeviceError, match=r"cuda-core is not installed: pip install 'jitlab\[gpu\]'") as found:
        ask()
    assert "\n" not in str(found.value)


def test_without_a_gpu_a_graph_that_prefers_it_runs_on_the_processor(no_gpu):
    assert devices.target_for("/device:GPU:0") is devices.default_target()
    graph = jl.Graph()
    with graph.as_default():
        x = jl.placeholder(np.float64, [None, 7])
        with jl.device("/GPU:0"):
            y = np.exp(x)
    from jitlab.compat import tensorflow as tf

    with jl.Session(graph, config=tf.ConfigProto(allow_soft_placement=True)) as session:
        np.testing.assert_allclose(session.run(y, {x: X}), np.exp(X), rtol=1e-14)
    with jl.Session(graph) as session, pytest.raises(jl.errors.InvalidArgumentError, match="explicitly assigned to"):
        session.run(y, {x: X})


def test_a_graph_that_names_the_gpu_opens_it(monkeypatch):
    monkeypatch.delitem(devices.DEVICES, "GPU", raising=False)
    monkeypatch.setattr(devices, "_unusable", [])
    monkeypatch.setattr(devices.gpu_driver, "open_driver", SimulatedDriver, raising=False)
    graph = jl.Graph()
    with graph.as_default():
        x = jl.placeholder(np.float64, [None, 7])
        with jl.device("/GPU:0"):
            y = np.exp(x) + 1
    try:
        with jl.Session(graph) as session:
            np.testing.assert_allclose(session.run(y, {x: X}), np.exp(X) + 1, rtol=1e-14)
        assert isinstance(devices.DEVICES["GPU"], GpuTarget)
    finally:
        devices.DEVICES.pop("GPU", None)


@pytest.mark.parametrize("name", ["gpu", "GPU:0", "/GPU:0", "/device:GPU:0", None])
def test_to_device_knows_the_names_of_the_gpu(gpu, name):
    x = jl.to_device(X, name)
    assert type(x) is jl.DeviceArray and jl.to_device(x) is x
    np.testing.assert_array_equal(x.to_numpy(), X)


@pytest.mark.parametrize("name", ["GPU:1", "cpu", "/device:TPU:0"])
def test_other_devices_have_no_arrays(gpu, name):
    with pytest.raises(DeviceError, match=re.escape(f"{name} cannot be used: programs run on CPU:0 and on GPU:0")):
        jl.to_device(X, name)


# ---- bad days, on a stand-in for NVIDIA's libraries


@pytest.fixture
def cuda(monkeypatch):
    fake = Fake().install(monkeypatch)
    monkeypatch.delitem(devices.DEVICES, "GPU", raising=False)
    monkeypatch.setattr(devices, "_unusable", [])
    yield fake
    devices.DEVICES.pop("GPU", None)


def test_a_loss_in_a_kernel_is_said_and_the_processor_goes_on(cuda):
    f = jl.jit(chain, device="gpu")
    cuda.kernels.update(dict.fromkeys(["phase0", "phase1"], lambda a: cuda.lose(Result.CUDA_ERROR_ILLEGAL_ADDRESS)))
    for _ in range(2):
        with pytest.raises(DeviceLost, match="ILLEGAL_ADDRESS"):
            f(X)
    np.testing.assert_allclose(jl.jit(chain)(X), chain(X), rtol=1e-14)


@pytest.mark.parametrize("decorator", [jl.jit, jl.function])
def test_memory_that_is_not_there_is_a_memory_error(cuda, decorator):
    f = decorator(chain, device="gpu")
    cuda.limit = 100
    with pytest.raises(MemoryError, match="a GPU has no memory for"):
        f(X)
