"""Positions out of range where no element is read: NumPy raises IndexError all the same."""

from copy import deepcopy

import numpy as np
import pytest

import jitlab as jl


def written(b, k):
    b[k] = 1
    return b


def read(b, k):
    return b[k] * 2


def read_beside(b, k):
    return b[:, None][k, :, ..., None]


def read_by_two(b, k):
    return b[..., None][k, k[::-1] * 0]


def taken(b, k):
    return np.take(b, k, 0)


def added(b, k):
    np.add.at(b, k, 1)
    return b


def written_down(b, k):
    return b[np.array([0, k[1]])]


def chosen(b, k):
    """How many columns there are, only the data tell."""
    some = b[:, b.sum(0) > 0]
    some[k] = 3
    return some


PROGRAMS = (written, read, read_beside, read_by_two, taken, added, written_down, chosen)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("way", (jl.jit, jl.function))
def test_positions_are_looked_through_where_nothing_is_read(program, way):
    compiled = way(program)
    for columns in (0, 2, 0):
        for positions in ([0, 1], [0, 3], [-4, 0], [-3, 2], [0, 3]):
            for value in (1.0, 0.0):
                arguments = np.full((3, columns), value), np.array(positions)
                ended = [outcome(f, *deepcopy(arguments)) for f in (program, compiled)]
                assert ended[1] == ended[0], (columns, positions, value)


def outcome(f, *arguments):
    try:
        result = f(*arguments)
    except IndexError as error:
        return str(error).split(" (")[0]
    return result.shape, result.dtype, result.tolist()


@pytest.mark.parametrize("way", (jl.jit, jl.function))
def test_no_positions_are_not_looked_at(way):
    """Where the positions have no element either, NumPy does not look at those of another axis."""

    def both(b, i, j):
        return b[i, j]

    arguments = np.zeros((3, 2)), np.array([[9]]), np.zeros((1, 0), int)
    assert way(both)(*arguments).shape == both(*arguments).shape == (1, 0)


def test_sizes_of_one_recording():
    """A signature of any number of columns stands for none, too."""
    compiled = jl.function(read, input_signature=[jl.TensorSpec([3, None], np.float64), jl.TensorSpec([2], np.int64)])
    for columns in (4, 0, 5, 0):
        assert compiled(np.ones((3, columns)), np.array([0, 1])).shape == (2, columns)
        with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
            compiled(np.ones((3, columns)), np.array([0, 3]))
