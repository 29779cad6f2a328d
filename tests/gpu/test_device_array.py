"""DeviceArrays: views, copies and borders, as NumPy has them, over memory that NumPy does not read."""

import gc
import pickle
import threading

import numpy as np
import pytest

from jitlab.targets.gpu_cuda import dlpack
from jitlab.targets.gpu_cuda.device_array import GpuMemory
from tests.gpu.host_driver import HostDriver


@pytest.fixture
def memory():
    return GpuMemory(HostDriver())


X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_what_goes_in_comes_out(memory, dtype):
    x = X.astype(dtype)
    there = memory.array(x)
    assert (there.shape, there.dtype, there.strides, there.nbytes) == (x.shape, x.dtype, x.strides, x.nbytes)
    np.testing.assert_array_equal(there.to_numpy(), x, strict=True)


@pytest.mark.parametrize("value", [
    np.float32(2.5), 3, True, 2j, [1, 2], np.empty((0, 3)), np.zeros((2, 0), "i4"), X[::-1, :, ::2], X.T,
    np.broadcast_to(X[0], (5, 3, 4)), np.arange(4, dtype=">i4"), np.frombuffer(b"abcdefgh", "u1"),
    np.frombuffer(b"x" + bytes(range(16)), "i4", 4, 1),
])  # fmt: skip
def test_any_array_of_numbers_goes_in(memory, value):
    there = memory.array(value)
    want = np.asarray(value)
    assert there.dtype.isnative and there.is_contiguous and there.shape == want.shape
    np.testing.assert_array_equal(there.to_numpy(), want)


@pytest.mark.parametrize(
    "value", [np.array(["a"]), np.array([None]), np.zeros(2, "M8[s]"), np.zeros(2, [("a", "i4")]), np.longdouble(1)]
)
def test_what_no_kernel_computes_with_stays_out(memory, value):
    with pytest.raises(TypeError, match="stay in NumPy's memory"):
        memory.array(value)
    assert not memory.driver.blocks


def test_the_array_in_numpys_memory_may_change_afterwards(memory):
    x = np.ones(3)
    there = memory.array(x)
    x[:] = 7
    assert there.to_numpy().tolist() == [1, 1, 1]
    there.to_numpy()[:] = 5
    assert there.to_numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("index", [
    np.s_[0], np.s_[-1], np.s_[1:], np.s_[::-1], np.s_[:, ::-2], np.s_[..., 1], np.s_[0, 1, 2], np.s_[:, None, 1],
    np.s_[()], np.s_[...], np.s_[5:], np.s_[:, 1:1], np.s_[np.int64(1)], np.s_[1, ..., ::-1], np.s_[:, :, -2::-1],
], ids=str)  # fmt: skip
def test_views_are_numpys(memory, index):
    there, want = memory.array(X)[index], X[(*index, ...) if type(index) is tuple and ... not in index else index]
    np.testing.assert_array_equal(there.to_numpy(), want)
    assert there.shape == np.shape(want)
    np.testing.assert_array_equal(there.copy().to_numpy(), want)
    assert there.copy().is_contiguous


def test_a_view_shares_memory_and_keeps_it(memory):
    x = memory.array(X)
    view = x[1, ::2]
    assert x.address < view.address < x.address + x.nbytes and view.strides == X[1, ::2].strides
    del x
    gc.collect()
    assert len(memory.driver.blocks) == 1
    np.testing.assert_array_equal(view.to_numpy(), X[1, ::2])
    del view
    gc.collect()
    assert not memory.driver.blocks


@pytest.mark.parametrize("view", [
    lambda x: x.T, lambda x: x.transpose(1, 0, 2), lambda x: x.transpose((2, 0, 1)), lambda x: x.reshape(4, 6),
    lambda x: x.reshape(-1), lambda x: x.reshape((3, -1)), lambda x: x[1].reshape(2, 6), lambda x: x[:1].reshape(12),
])  # fmt: skip
def test_other_axes_are_views(memory, view):
    x = memory.array(X)
    got = view(x)
    np.testing.assert_array_equal(got.to_numpy(), view(X))
    assert len(memory.driver.blocks) == 1 and got.owner is x.owner


def test_a_reshape_that_would_copy_says_so(memory):
    with pytest.raises(ValueError, match="x.copy"):
        memory.array(X).T.reshape(24)
    with pytest.raises(ValueError, match="cannot reshape"):
        memory.array(X).reshape(5)


@pytest.mark.parametrize(
    "index", [[0, 1], np.array([0]), True, np.bool_(True), 1.5, "a", (0, [1]), np.array([True, False])], ids=str
)
def test_other_indices_are_refused(memory, index):
    with pytest.raises(TypeError, match="take integers, slices"):
        memory.array(X)[index]


@pytest.mark.parametrize("index", [2, -3, (0, 0, 0, 0), (0, 3)])
def test_an_index_out_of_bounds_is_numpys_error(memory, index):
    with pytest.raises(IndexError) as wanted:
        X[index]
    with pytest.raises(IndexError) as found:
        memory.array(X)[index]
    if index != (0, 0, 0, 0):
        assert str(found.value) == str(wanted.value)


@pytest.mark.parametrize("read", [
    np.asarray, np.array, np.sum, np.exp, lambda x: x + np.ones(4), lambda x: np.ones(4) + x, lambda x: np.ones(4) @ x, float,
    lambda x: np.concatenate([x, x]), lambda x: np.multiply(2, x), lambda x: np.ones(4).__iadd__(x),
    lambda x: np.zeros(4).__setitem__(slice(None), x),
])  # fmt: skip
def test_numpy_never_reads_one(memory, read):
    x = memory.array(np.ones(4))
    memory.driver.copies.clear()
    with pytest.raises(TypeError):
        read(x)
    assert not memory.driver.copies


def test_the_error_names_the_cure(memory):
    with pytest.raises(TypeError, match=r"to_numpy\(\)"):
        np.asarray(memory.array(np.ones(4)))


def test_a_pickle_says_what_to_do(memory):
    with pytest.raises(TypeError, match=r"to_numpy\(\)"):
        pickle.dumps(memory.array(np.ones(4)))


def test_it_looks_like_an_array(memory):
    x = memory.array(X)
    assert (len(x), x.ndim, x.size, x.itemsize) == (2, 3, 24, 8) and [y.shape for y in x] == [(3, 4)] * 2
    assert repr(x) == "DeviceArray(shape=(2, 3, 4), dtype=float64, device='a device on the host')"
    assert memory.array(2.5)[()].shape == () and bool(memory.array(2.5))
    with pytest.raises(TypeError, match="unsized"):
        len(memory.array(2.5))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    assert len({x, x[0]}) == 2


def test_the_interface_of_cuda_arrays(memory):
    x = memory.array(X)
    assert x.__cuda_array_interface__ == {
        "version": 3, "shape": (2, 3, 4), "typestr": "<f8", "strides": None, "data": (x.address, False), "stream": None
    }  # fmt: skip
    view = x[:, ::-1].__cuda_array_interface__
    assert view["strides"] == (96, -32, 8) and view["data"][0] == x.address + 64
    assert memory.array(np.empty(0)).__cuda_array_interface__["data"][0] == 0


def test_how_arrays_lie(memory):
    x = memory.array(X)
    assert [memory.layout_of(y) for y in (x, x[1], x[:, :1], x.T, x[..., ::2], x[:1, ..., :1].T, x[5:, ::-1])] == [
        "C",
        "C",
        "",
        "",
        "",
        "",
        "C",
    ]
    assert memory.contiguous(x) is x and memory.layout_of(memory.contiguous(x.T)) == "C"
    assert memory.contiguous(x.T).to_numpy().tolist() == X.T.tolist()


def test_what_may_be_stored_into(memory):
    x, y = memory.array(X), memory.array(X)
    assert memory.may_store_into(x, [y]) and memory.may_store_into(x[0], [x[1], y])
    assert not memory.may_store_into(x, [y, x[1, :1]]) and not memory.may_store_into(x.T, [])
    x.is_readonly = True
    assert not memory.may_store_into(x, []) and not memory.may_store_into(x[0], [])


def test_memory_of_size_0_is_still_some(memory):
    x = memory.empty((3, 0), np.dtype("f8"))
    assert len(memory.driver.blocks) == 1 and x.address % 256 == 0 and x.to_numpy().shape == (3, 0)


def test_arrays_of_many_threads_are_all_freed(memory):
    found = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x = rng.random(rng.integers(0, 20))
            found.append(np.array_equal(memory.array(x)[::-1].copy().to_numpy(), x[::-1]))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert len(found) == 200 and all(found) and not memory.driver.blocks


def test_an_allocation_that_fails_leaves_nothing(memory, monkeypatch):
    def allocate(nbytes):
        raise MemoryError("full")

    monkeypatch.setattr(memory.driver, "allocate", allocate)
    for _ in range(2):
        with pytest.raises(MemoryError):
            memory.empty((3,), np.dtype("f8"))
    gc.collect()


@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.T, lambda x: x[::-1, :, ::2], lambda x: x[1, 2, 3], lambda x: x[:0]])
def test_dlpack_hands_over_the_memory(memory, dtype, view):
    x = memory.array(X.astype(dtype))
    there = np.from_dlpack(view(x))
    np.testing.assert_array_equal(there, view(X.astype(dtype)), strict=True)
    if there.size:
        assert there.ctypes.data == view(x).address
    del x
    gc.collect()
    assert len(memory.driver.blocks) == 1 and not dlpack._held == {}
    del there
    gc.collect()
    assert not memory.driver.blocks and not dlpack._held


def test_a_capsule_that_nobody_takes_lets_go(memory):
    x = memory.array(X)
    streams = []
    memory.driver.after = streams.append
    capsules = [x.__dlpack__(), x.__dlpack__(stream=-1), x.__dlpack__(stream=7, max_version=(1, 0))]
    assert streams == [1, 7] and x.__dlpack_device__() == (1, 0) and len(dlpack._held) == 3
    del capsules, x
    gc.collect()
    assert not memory.driver.blocks and not dlpack._held


def test_what_dlpack_cannot_say_is_an_error(memory):
    x = memory.array(X)
    x.is_readonly = True
    with pytest.raises(BufferError, match="nobody may store into"):
        x.__dlpack__()
