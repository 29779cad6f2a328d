"""Each cluster runs on the device that it is placed on, in that device's memory; between devices values go through NumPy's."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets import devices
from tests.numpy_target.target import HostArrays, Interpreted, NumpyTarget


class Remote:
    """An array of a device whose memory NumPy cannot read."""

    def __init__(self, memory):
        self.memory = memory
        self.ndim, self.shape, self.nbytes = memory.ndim, memory.shape, memory.nbytes

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("memory of the device was read by NumPy")

    def reshape(self, shape):
        return Remote(self.memory.reshape(shape))


class RemoteMemory(HostArrays):
    """The arrays of such a device; `moved`: the shapes that were copied, by direction."""

    array_type = Remote

    def __init__(self):
        self.moved = []

    def array(self, value):
        assert isinstance(value, (np.ndarray, np.generic))
        self.moved.append(("in", np.shape(value)))
        return Remote(np.array(value))

    def on_host(self, array):
        self.moved.append(("out", array.shape))
        return array.memory.copy()

    def layout_of(self, array):
        return super().layout_of(array.memory)

    def contiguous(self, array):
        return Remote(super().contiguous(array.memory))

    def empty(self, shape, dtype):
        return Remote(super().empty(shape, dtype))

    def may_store_into(self, array, others):
        return False


class InRemoteMemory(Interpreted):
    def run(self, inputs, outputs, times):
        return super().run([x.memory for x in inputs], [y.memory for y in outputs], times)


class RemoteTarget(NumpyTarget):
    key = "remote"

    def __init__(self):
        self.device, self.launcher_type = RemoteMemory(), InRemoteMemory


@pytest.fixture
def remote(monkeypatch):
    target = RemoteTarget()
    monkeypatch.setitem(devices.DEVICES, "GPU", target)
    return target


def placed(steps, *fetched):
    """A session's fetches of a graph; `steps(x)` gives them."""
    graph = jl.Graph()
    with graph.as_default():
        x = jl.placeholder(np.float64, [None, 3])
        results = steps(x)
    with jl.Session(graph=graph) as session:
        given = np.arange(6.0).reshape(2, 3)
        return [session.run(results, {x: given}) for _ in range(2)], given


def test_a_cluster_runs_where_it_is_placed_and_its_values_stay_there(remote):
    def steps(x):
        with jl.device("XLA_GPU:0"):
            e = np.exp(x)
            return e / e.sum()

    runs, x = placed(steps)
    for found in runs:
        np.testing.assert_allclose(found, np.exp(x) / np.exp(x).sum(), rtol=1e-14)
        assert type(found) is np.ndarray
    assert remote.device.moved == [("in", (2, 3)), ("out", (2, 3))] * 2


def test_values_go_from_one_device_to_the_other(remote):
    def steps(x):
        with jl.device("XLA_CPU:0"):
            a = np.exp(x) + 1
        with jl.device("XLA_GPU:0"):
            b = np.sqrt(a).sum()
        with jl.device("XLA_CPU:0"):
            return a * b, b

    runs, x = placed(steps)
    a = np.exp(x) + 1
    for product, total in runs:
        np.testing.assert_allclose(product, a * np.sqrt(a).sum(), rtol=1e-14)
        assert isinstance(total, np.float64) and total == pytest.approx(np.sqrt(a).sum(), rel=1e-14)
    assert {way for way, _ in remote.device.moved} == {"in", "out"}


def test_what_numpy_runs_reads_values_of_a_device_in_its_own_memory(remote):
    def steps(x):
        with jl.device("XLA_GPU:0"):
            a = np.exp(x)
        return np.sort(a.ravel()), np.unique(a)

    runs, x = placed(steps)
    for found in runs:
        for one, other in zip(found, (np.sort(np.exp(x).ravel()), np.unique(np.exp(x))), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)


def test_the_plan_and_the_code_say_which_target_made_them(remote):
    graph = jl.Graph()
    with graph.as_default():
        x = jl.placeholder(np.float64, [4])
        with jl.device("XLA_CPU:0"):
            a = np.exp(x)
        with jl.device("XLA_GPU:0"):
            b = np.sqrt(a)
    with jl.Session(graph=graph) as session, jl.record() as recording:
        session.run(b, {x: np.ones(4)})
    report = recording.report()
    stages = {c.device.rpartition(":")[0].rpartition(":")[2]: report.code(c.name, "interpreted").lines for c in report.clusters}
    assert stages.keys() == {"XLA_CPU", "XLA_GPU"} and stages["XLA_GPU"] and not stages["XLA_CPU"]


@pytest.mark.parametrize(("name", "kind"), [
    ("", "CPU"), ("/device:GPU:0", "GPU"), ("XLA_GPU:0", "GPU"), ("/job:localhost/replica:0/task:0/device:XLA_CPU:0", "CPU"),
    ("/device:TPU:0", "CPU"),
])  # fmt: skip
def test_a_device_has_the_target_of_its_kind_or_the_default(remote, name, kind):
    assert devices.target_for(name) is devices.DEVICES[kind]
