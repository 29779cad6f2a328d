"""Digits: what scikit-learn carries, and MNIST's files, whole, compressed, absent and damaged."""

import gzip
import struct

import numpy as np
import pytest

from jitlab.datasets import MNIST_FILES, digits, drawn_digits, mnist, read_idx
from jitlab.errors import DatasetError

IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
LABELS = np.array([7, 1], np.uint8)


def idx(array):
    code = {"u1": 0x08, "i4": 0x0C, "f8": 0x0E}[array.dtype.str[1:]]
    return (
        struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape)
        + array.astype(array.dtype.newbyteorder(">")).tobytes()
    )


@pytest.fixture
def folder(tmp_path):
    for name in MNIST_FILES:
        (tmp_path / name).write_bytes(idx(IMAGES if "images" in name else LABELS))
    return tmp_path


def test_digits_are_rows_from_0_to_1_with_their_labels():
    pytest.importorskip("sklearn")
    found = digits()
    assert [array.shape for array in found] == [(1500, 64), (1500,), (297, 64), (297,)]
    assert found.train_images.min() == 0.0 and found.train_images.max() == 1.0
    assert sorted(set(found.test_labels)) == list(range(10))


def test_mnist_reads_its_four_files(folder):
    found = mnist(folder)
    np.testing.assert_array_equal(found.train_images, IMAGES.reshape(2, 12) / 255.0)
    np.testing.assert_array_equal(found.test_labels, [7, 1])
    assert found.train_labels.dtype == np.int64


def test_mnist_reads_compressed_files_and_names_with_dots(folder):
    for name in MNIST_FILES:
        data = (folder / name).read_bytes()
        (folder / name).unlink()
        (folder / (name.replace("-idx", ".idx") + ".gz")).write_bytes(gzip.compress(data))
    np.testing.assert_array_equal(mnist(folder).test_images, IMAGES.reshape(2, 12) / 255.0)


@pytest.mark.parametrize("array", [IMAGES, np.array([1, -2], np.int32), np.array([[0.5]]), np.zeros((0, 3), np.uint8)])
def test_idx_files_keep_dtype_and_shape(tmp_path, array):
    (tmp_path / "x").write_bytes(idx(array))
    found = read_idx(tmp_path / "x")
    assert found.dtype == array.dtype and found.dtype.isnative
    np.testing.assert_array_equal(found, array)


def test_what_is_absent_is_named(folder, tmp_path):
    with pytest.raises(DatasetError, match="is not a folder"):
        mnist(tmp_path / "nowhere")
    (folder / MNIST_FILES[3]).unlink()
    with pytest.raises(DatasetError, match=r"t10k-labels-idx1-ubyte \(or t10k-labels-idx1-ubyte.gz\) is not in"):
        mnist(folder)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data[:-1], "takes 24 bytes, 23 are there"),
        (lambda data: data + b"x", "takes 24 bytes, 25 are there"),
        (lambda data: data[:9], "ends within the 3 lengths"),
        (lambda data: b"", "begins with nothing"),
        (lambda data: b"<!DOCTYPE html>", "begins with 3c 21 44 4f"),
        (lambda data: gzip.compress(data)[:-9], "compressed data ends or breaks"),
        (lambda data: gzip.compress(data)[:12] + b"damaged" + gzip.compress(data)[19:], "compressed data ends or breaks"),
    ],
)
def test_what_is_damaged_says_how(folder, change, why):
    path = folder / MNIST_FILES[0]
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DatasetError, match=why) as caught:
        mnist(folder)
    assert str(path) in str(caught.value)


def test_files_that_do_not_belong_together_are_refused(folder):
    (folder / MNIST_FILES[1]).write_bytes(idx(np.zeros(3, np.uint8)))
    with pytest.raises(DatasetError, match="2 images, 3 labels"):
        mnist(folder)
    (folder / MNIST_FILES[1]).write_bytes(idx(IMAGES))
    with pytest.raises(DatasetError, match="holds an array of 3 axes"):
        mnist(folder)


def test_drawn_digits_need_no_files_and_are_the_same_for_a_seed():
    first, again = drawn_digits(200), drawn_digits(200)
    assert first.train_images.shape == (180, 784) and first.test_images.shape == (20, 784)
    assert 0 <= first.train_images.min() and first.train_images.max() <= 1
    np.testing.assert_array_equal(first.train_images, again.train_images)
    assert set(drawn_digits(500).train_labels) == set(range(10))
