"""Handwritten digits for the lessons: those inside scikit-learn, and MNIST from files the user has."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jitlab.errors import DatasetError

MNIST_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")

#: The third byte of an IDX file names what its elements are.
IDX_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

_TEST_IMAGES = 297  # of the 1797 digits: the last ones, by writers of their own


class Digits(NamedTuple):
    """Images of handwritten digits and what they show: rows of grey values from 0 to 1, and labels from 0 to 9.

    Args:
        train_images: an array of shape `[count, pixels]`.
        train_labels: whole numbers of shape `[count]`.
        test_images: as `train_images`, of other writers.
        test_labels: as `train_labels`.

    Example:
        >>> from jitlab import datasets
        >>> datasets.drawn_digits(10).train_images.shape
        (9, 784)
    """

    train_images: np.ndarray[Any, Any]
    train_labels: np.ndarray[Any, Any]
    test_images: np.ndarray[Any, Any]
    test_labels: np.ndarray[Any, Any]


def digits() -> Digits:
    """The 1797 handwritten digits of 8 x 8 pixels that scikit-learn carries: 1500 to train with, 297 to test.

    Returns:
        Digits.

    Raises:
        DatasetError: scikit-learn is not installed.

    Example:
        >>> from jitlab import datasets
        >>> datasets.digits().train_images.shape
        (1500, 64)
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DatasetError(
            "the handwritten digits are part of scikit-learn, which is not installed here.", hint="pip install scikit-learn"
        ) from None
    images, labels = load_digits(return_X_y=True)
    images = images / 16.0
    return Digits(images[:-_TEST_IMAGES], labels[:-_TEST_IMAGES], images[-_TEST_IMAGES:], labels[-_TEST_IMAGES:])


#: The ten digits on seven segments: top, upper left, upper right, middle, lower left, lower right, bottom.
_SEGMENTS = ("1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011")


def drawn_digits(count: int = 2000, seed: int = 0) -> Digits:
    """Digits of 28 x 28 pixels as a clock shows them, each drawn a little elsewhere and with noise.

    Args:
        count: how many, 9 of 10 to train with.
        seed: of the random generator; equal seeds give equal digits.

    Returns:
        Digits.

    Example:
        >>> from jitlab import datasets
        >>> datasets.drawn_digits(100).test_labels.shape
        (10,)
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    images = np.zeros((count, 28, 28))
    for image, label, (down, right) in zip(images, labels, rng.integers(-3, 4, (count, 2)), strict=True):
        top, left = 5 + down, 9 + right
        bars = [(0, 0, 2, 10), (0, 0, 10, 2), (0, 8, 10, 2), (8, 0, 2, 10), (8, 0, 10, 2), (8, 8, 10, 2), (16, 0, 2, 10)]
        for on, (y, x, height, width) in zip(_SEGMENTS[label], bars, strict=True):
            if on == "1":
                image[top + y : top + y + height, left + x : left + x + width] = 1
    flat = np.clip(images.reshape(count, -1) * rng.uniform(0.6, 1, (count, 1)) + rng.normal(0, 0.15, (count, 784)), 0, 1)
    n = count * 9 // 10
    return Digits(flat[:n], labels[:n], flat[n:], labels[n:])


def mnist(folder: str | Path) -> Digits:
    """The 70 000 digits of 28 x 28 pixels from MNIST's four files (`train-images-idx3-ubyte`, ...; also with `.gz`).

    Args:
        folder: in which the files are.

    Returns:
        Digits.

    Raises:
        DatasetError: a file is not there, or is damaged.

    Example:
        >>> from jitlab import datasets
        >>> datasets.mnist("no such folder")
        Traceback (most recent call last):
            ...
        jitlab.errors.DatasetError: ...
    """
    arrays = [read_idx(_file(Path(folder).expanduser(), name)) for name in MNIST_FILES]
    for name, array, ndim in zip(MNIST_FILES, arrays, (3, 1, 3, 1), strict=True):
        if array.ndim != ndim:
            raise DatasetError(f"{name} holds an array of {array.ndim} axes, MNIST's has {ndim}.", where=str(folder))
    for what, images, labels in (("train", arrays[0], arrays[1]), ("t10k", arrays[2], arrays[3])):
        if len(images) != len(labels):
            raise DatasetError(
                f"the {what} files do not belong together: {len(images)} images, {len(labels)} labels.", where=str(folder)
            )
    train, test = (images.reshape(len(images), -1) / 255.0 for images in (arrays[0], arrays[2]))
    return Digits(train, arrays[1].astype(np.int64), test, arrays[3].astype(np.int64))


def _file(folder: Path, name: str) -> Path:
    """A file of MNIST: as it is or compressed, with the dashes or the dots that are both in use."""
    names = [name, name.replace("-idx", ".idx")]
    for candidate in [*names, *(f"{name}.gz" for name in names)]:
        if (folder / candidate).is_file():
            return folder / candidate
    what = f"{folder} is not a folder." if not folder.is_dir() else f"{name} (or {name}.gz) is not in {folder}."
    why = f"MNIST is four files: {', '.join(MNIST_FILES)}"
    raise DatasetError(what, why=why, hint="put them into one folder, or use jitlab.datasets.digits()")


def read_idx(path: str | Path) -> np.ndarray[Any, Any]:
    """The array in an IDX file, compressed with gzip or not.

    Args:
        path: of the file.

    Returns:
        An array of the shape and dtype that the file names.

    Raises:
        DatasetError: the file is no IDX file, or is damaged.
        OSError: it cannot be read.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from jitlab import datasets
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "two"
        ...     _ = file.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
        ...     print(datasets.read_idx(file))
        [7 9]
    """
    path = Path(path)
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise _corrupt(path, f"its compressed data ends or breaks: {error}") from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in IDX_DTYPES:
        found = data[:4].hex(" ") or "nothing"
        raise _corrupt(path, f"it begins with {found}, not with two zeros, a type and a number of axes")
    ndim, dtype = data[3], np.dtype(IDX_DTYPES[data[2]])
    start = 4 + 4 * ndim
    if len(data) < start:
        raise _corrupt(path, f"it ends within the {ndim} lengths of its axes")
    shape = struct.unpack(f">{ndim}I", data[4:start])
    needed = dtype.itemsize
    for length in shape:
        needed *= length
    if len(data) - start != needed:
        raise _corrupt(path, f"an array of {' x '.join(map(str, shape))} takes {needed} bytes, {len(data) - start} are there")
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def _corrupt(path: Path, why: str) -> DatasetError:
    return DatasetError(f"{path.name} is not a whole IDX file.", where=str(path), why=why, hint="fetch the file again")
