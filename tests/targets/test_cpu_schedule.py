"""What the processor makes of a Program's loops: which take vectors, how many at a time, and what is stored past the caches."""

import re

import numpy as np
import pytest

import jitlab as jl
from jitlab.ir.programs.program import For, walk
from jitlab.runtime import Executable
from jitlab.targets.cpu_llvm.cpu_schedule import SCANNED_ROWS, scheduled
from jitlab.targets.cpu_llvm.emit import codegen

X = np.ones((40, 30))


@pytest.fixture
def program_of(monkeypatch):
    """The scheduled Programs of a call, and what it gave."""

    def found(function, *arrays):
        programs, real = [], Executable._lower
        monkeypatch.setattr(Executable, "_lower", lambda *args: programs.append(real(*args)) or programs[-1])
        result = jl.jit(function)(*(a.copy("K") for a in arrays))
        monkeypatch.undo()
        return [scheduled(lowered.program) for lowered in programs], result

    return found


def shifted(x):
    x[:-1] = x[1:] * 2
    return x


def scattered(x, i):
    y = np.zeros(5)
    y[i] = x
    return y


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def recurrence(x):
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] * 2 + x[i]
    return x


@pytest.mark.parametrize(("function", "arrays", "wanted"), [
    (lambda x: x * 2 + 1, [X], "1"),
    (shifted, [X[0]], "1"),  # a vector reads before it writes
    (lambda x: x[:, 1:] * 2, [X], ".1"),
    (lambda x: x.sum(axis=0), [X], "1."),
    (lambda x: x.sum(axis=0), [np.ones((40, 300))], "4."),  # rows are long
    (lambda x: x.sum(axis=0), [np.ones((300, 40)).T], ".."),  # over lanes: neighbours lie along the reduced axis
    (lambda x: x.sum(axis=0), [np.ones((40, 40))], "2."),
    (lambda x: x.sum(axis=1), [np.ones((300, 40)).T], "2."),  # neighbours are of different sums
    (lambda x: x.std(axis=1), [np.ones((300, 40)).T], "2.."),
    (lambda x: x.T.max(axis=1), [X], "1."),
    (lambda x: x.sum(), [np.ones((300, 40)).T], ".."),
    (lambda x: x.sum(axis=1), [X], ".."),  # over lanes, as the Program says
    (lambda x: x.sum(axis=1), [X[:, :3].copy()], "1."),  # rows are short
    (softmax, [X], "...1"),
    (lambda x: np.cumsum(x, axis=1), [X], ".."),  # along memory
    (lambda x: np.cumsum(x, axis=0), [X], "1."),
    (scattered, [np.arange(3.0), np.array([1, 1, 0])], "1."),  # in order
    (recurrence, [X], "1"),  # each row, after the one before it
])  # fmt: skip
def test_loops_that_take_whole_vectors(function, arrays, wanted, program_of):
    programs, result = program_of(function, *arrays)
    np.testing.assert_allclose(result, function(*(a.copy() for a in arrays)))
    loops = [(p, s) for p in programs for k in p.kernels for s in walk(k.body) if isinstance(s, For) and s.var != "z"]
    assert "".join(str(p.vectors.get(id(s), ".")) for p, s in loops) == wanted


@pytest.mark.parametrize("function", [
    lambda x: np.cumsum(x, axis=-1),
    lambda x: np.maximum.accumulate(x, axis=-1),
    lambda x: np.minimum.accumulate(x[..., ::-1], axis=-1)[..., ::-1],
    lambda x: np.cumprod(x * 2, axis=-1) + x,
    lambda x: x / np.cumsum(x * x, axis=-1) * x[..., :1],
    lambda x: np.cumsum(x.astype("f4"), axis=-1),
    lambda x: np.cumsum(x > 0, axis=-1),
    lambda x: np.cumsum(x + 1j, axis=-1),
])  # fmt: skip
def test_scans_of_rows_side_by_side_have_numpys_bits(function, program_of):
    rng = np.random.default_rng(0)
    for shape in ((1, 9), (3, 9), (4, 1), (9, 30), (2, 3, 5), (3, 0), (0, 3)):
        x = rng.standard_normal(shape) * rng.choice([0.0, -0.0, 1.0, np.nan], shape, p=[0.1, 0.1, 0.78, 0.02])
        _, result = program_of(function, x)
        with np.errstate(all="ignore"):
            wanted = np.ascontiguousarray(function(x))
        assert np.asarray(result).tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("function", "additions"), [
    (lambda x: np.cumsum(x, axis=1), SCANNED_ROWS + 2),  # several rows in a turn, those that are left, and the end of one
    (lambda x: np.cumsum(x[0]), 2),
    (lambda x: np.cumsum(x, axis=0), 4),  # over vectors: the columns of whole ones, and the last few
    (lambda x: np.cumsum(1 / x / x / x / x, axis=1), 2),  # the processor has work enough while it waits
])  # fmt: skip
def test_scans_along_memory_take_several_rows_in_a_turn(function, additions, program_of):
    (program,), _ = program_of(function, X)
    assert len(re.findall("fadd (<.*>|double)", codegen.module_for(program))) == additions


@pytest.mark.parametrize(("function", "shapes", "streamed"), [
    (lambda x: x * 2, [3_000_000], {"y0"}),
    (lambda x: x * 2, [1_000_000], set()),  # a cache holds it
    (lambda x: x[:, 1:] * 2, [(1000, 3001)], set()),  # rows start between two lines
    (lambda x: x[:, 1:] * 2, [(1000, 3009)], {"y0"}),
    (lambda x, y: np.concatenate([x, y]), [3, 3_000_000], set()),
    (lambda x, y: np.concatenate([x, y]), [16, 3_000_000], {"y0"}),
])  # fmt: skip
def test_outputs_are_streamed_that_no_cache_holds_where_vectors_start_on_lines(function, shapes, streamed, program_of):
    arrays = [np.arange(np.prod(shape), dtype=float).reshape(shape) for shape in shapes]
    (program,), result = program_of(function, *arrays)
    assert program.streamed == streamed
    np.testing.assert_array_equal(result, function(*arrays))


def test_what_sizes_decide_is_part_of_the_text(program_of):
    (small,), _ = program_of(lambda x: x * 2, np.ones(1000))
    (large,), _ = program_of(lambda x: x * 2, np.ones(3_000_000))
    assert small.unscheduled == large.unscheduled and small.text != large.text
