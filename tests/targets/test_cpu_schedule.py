"""What the processor makes of a Program's loops: which take vectors, how many at a time, and what is stored past the caches."""

import re

import numpy as np
import pytest

import jitlab as jl
from jitlab.ir.programs.program import For, walk
from jitlab.runtime import Executable
from jitlab.targets.cpu_llvm import cpu_schedule
from jitlab.targets.cpu_llvm.cpu_schedule import SCANNED_ROWS, scheduled
from jitlab.targets.cpu_llvm.emit import codegen
from jitlab.targets.cpu_llvm.emit.codegen import module_for

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


def nearest(x, y):
    return ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)


@pytest.mark.parametrize(("function", "shapes", "fixed"), [
    (lambda x: x.sum(axis=1), [(40, 12)], {"n1": 12}),  # in each lane
    (lambda x: x.sum(axis=1), [(40, 13)], {}),  # over lanes
    (nearest, [(40, 4), (10, 4)], {"n1": 10, "n2": 4}),
    (nearest, [(40, 4), (13, 4)], {"n2": 4}),  # the vectors of the second axis are no more than one or two
    (lambda x: x[:, :, 0] + x[:, :, 1], [(20, 30, 3)], {"n2": 3}),  # elements lie near each other
    (lambda x: x[:, :, 0] + x[:, :, 1], [(20, 30, 13)], {}),
    (lambda x: x[:, :, 0].sum(), [(20, 30, 3)], {"n2": 3}),
    (lambda x: x * 2 + x[0], [(20, 3)], {}),
])  # fmt: skip
def test_short_sizes_that_vectors_gain_by_are_numbers_of_the_code(function, shapes, fixed, program_of):
    arrays = [np.random.default_rng(3).normal(size=shape) for shape in shapes]
    (program,), result = program_of(function, *arrays)
    assert program.fixed == fixed
    np.testing.assert_allclose(result, function(*arrays), rtol=1e-13)


@pytest.mark.parametrize(("function", "shape"), [
    (lambda x: 0.3 * x[:, :, 0] + 0.6 * x[:, :, 1] + 0.1 * x[:, :, 2], (50, 40, 3)),
    (lambda x: x.sum(axis=1), (1000, 5)),
    (lambda x: x.argmax(axis=1), (1000, 10)),
])  # fmt: skip
def test_whole_vectors_of_near_elements_are_not_gathered(function, shape, program_of):
    (program,), _ = program_of(function, np.random.default_rng(3).normal(size=shape))
    text = module_for(program)
    whole, _, last = text[text.index("@phase0(") :].partition("\nthen")  # the last few are under a mask
    assert "gather" not in whole and "gather" in last


def test_a_short_sum_is_written_without_a_stack_of_partial_sums(program_of):
    (program,), _ = program_of(lambda x: x.sum(axis=1), np.ones((40, 12)))
    (longer,), _ = program_of(lambda x: x.sum(axis=0), np.ones((40, 12)))
    assert "carry" not in module_for(program) and "carry" in module_for(longer)


@pytest.mark.parametrize("shape", [(40, 2), (41, 5), (50, 8), (33, 12), (20, 3, 3), (9, 10, 11)])
def test_a_size_that_the_code_knows_changes_no_bit(shape, program_of):
    def several(x):
        y = x - x.mean(axis=-1, keepdims=True)
        return y.sum(axis=-1), y.prod(axis=-1), (y * x).std(axis=1), x.argmin(axis=-1), x[..., 0] * x[..., -1], x[..., 1].sum()

    x = np.random.default_rng(3).normal(size=shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jl.config, "cache", False)
        known, results = program_of(several, x)
        patch.setattr(cpu_schedule, "SHORT", 0)
        unknown, others = program_of(several, x)
    assert any(p.fixed for p in known) and not any(p.fixed for p in unknown)
    for result, other, wanted in zip(results, others, several(x), strict=True):
        np.testing.assert_array_equal(result, other)
        np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-13)
