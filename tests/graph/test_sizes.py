"""Sizes that only a run knows: each size gives what NumPy gives, and no size that stands for them reaches the program."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.compat import tensorflow as tf
from jitlab.errors import BranchOnTracedArrayError, FailedPreconditionError, InvalidArgumentError

#: Open in front, 4 columns: the last sizes that a graph is put together for, 1 and 0 are other programs.
ROWS = (3, 1, 0, 2, 10)

PROGRAMS = {
    "elementwise": lambda x: np.exp(x) * 2 - x,
    "mean": lambda x: x.mean(),
    "mean of columns": lambda x: x.mean(axis=0),
    "deviation": lambda x: x.std(axis=0),
    "largest": lambda x: x.max(axis=0),
    "largest, kept": lambda x: x - x.max(axis=1, keepdims=True),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
    "product": lambda x: x.T @ x,
    "product of rows": lambda x: x @ x.T,
    "outer": lambda x: np.outer(x[:, 0], x[:, 1]),
    "rows and columns": lambda x: x[:, :1] + x[:, 0],
    "first rows": lambda x: x[:2],
    "more rows than there are": lambda x: x[:9] + 1,
    "last row": lambda x: x[-1],
    "every other": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
    "neighbours": lambda x: x[1:] - x[:-1],
    "differences": lambda x: np.diff(x, axis=0),
    "flat": lambda x: x.reshape(-1),
    "pairs": lambda x: x.reshape(-1, 2),
    "two rows": lambda x: x.reshape(2, -1),
    "sums so far": lambda x: x.cumsum(axis=0),
    "sorted": lambda x: np.sort(x, axis=0),
    "where it is largest": lambda x: x.argmax(axis=0),
    "twice": lambda x: np.concatenate([x, x]),
    "with a row": lambda x: np.concatenate([x, np.ones((1, 4))]),
    "stacked": lambda x: np.stack([x, x], axis=1),
    "padded": lambda x: np.pad(x, 1),
    "rolled": lambda x: np.roll(x, 1, axis=0),
    "halves": lambda x: np.split(x, 2)[0],
    "thirds": lambda x: np.array_split(x, 3)[2],
    "norm": lambda x: np.linalg.norm(x),
    "singular values": lambda x: np.linalg.svd(x)[1],
    "spectrum": lambda x: np.abs(np.fft.fft(x, axis=0)),
    "of the data's size": lambda x: x[x > 0],
    "median": lambda x: np.median(x, axis=0),
    "taken": lambda x: np.take(x, [0, 0], axis=0),
    "sum and count": lambda x: x.sum() / np.size(x),
    "with five rows": lambda x: x + np.ones((5, 4)),
    "of no array": lambda x: np.zeros_like(x) + 1,
}


def outcome(compute):
    """What it gives, or the kind of error."""
    with np.errstate(all="ignore"):
        try:
            return np.asarray(compute())
        except (ValueError, IndexError) as error:
            return next(kind for kind in (IndexError, ValueError) if isinstance(error, kind))


@pytest.fixture
def sess():
    with jl.Graph().as_default() as graph, jl.Session(graph) as session:
        yield session


def check(sess, fetch, feeds, numpy):
    """A run gives what NumPy gives, in a shape that the tensor has said."""
    given, wanted = outcome(lambda: sess.run(fetch, feeds)), outcome(numpy)
    if isinstance(wanted, type):
        assert given is wanted
        return
    assert fetch.shape.is_compatible_with(given.shape), (fetch.shape, given.shape)
    np.testing.assert_allclose(given, wanted, rtol=1e-9, atol=1e-12, strict=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shape", [(None, 4), (None, None), None], ids=str)
def test_each_size_gives_what_numpy_gives(sess, name, shape):
    program = PROGRAMS[name]
    x = jl.placeholder(np.float64, shape)
    y = program(x)
    for rows in ROWS:
        array = np.random.default_rng(rows).normal(size=(rows, 4))
        check(sess, y, {x: array}, lambda array=array: program(array))


MEETINGS = {
    "sum": lambda x, y: x + y,
    "loss": lambda x, y: ((x @ np.ones((3, 3)) - y) ** 2).mean(),
    "choice": lambda x, y: np.where(x > y, x, y),
    "product": lambda x, y: x.T @ y,
    "beside each other": lambda x, y: np.concatenate([x, y], axis=1),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", MEETINGS)
def test_two_sizes_that_meet_are_the_same_or_one_or_an_error(sess, name):
    x, y = jl.placeholder(np.float64, [None, 3]), jl.placeholder(np.float64, [None, 3])
    z = MEETINGS[name](x, y)
    for m, n in ((4, 4), (1, 4), (4, 1), (1, 1), (0, 1), (1, 0), (0, 0), (3, 4), (2, 0)):
        a, b = np.arange(3.0 * m).reshape(m, 3), np.ones((n, 3))
        check(sess, z, {x: a, y: b}, lambda a=a, b=b: MEETINGS[name](a, b))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (2, 1, 3), (2, 2, 2, 3)], ids=str)
def test_any_number_of_axes_may_come(sess, shape):
    x = jl.placeholder(np.float64)
    array = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    for program in (lambda x: np.tanh(x) + 1, lambda x: x.sum(), lambda x: x.T, lambda x: x * np.ones(3)):
        y = program(x)
        check(sess, y, {x: array}, lambda program=program: program(array))


def test_a_gradient_where_sizes_meet_is_of_the_run(sess):
    x, y = jl.placeholder(np.float64, [None, 3]), jl.placeholder(np.float64)
    w = jl.Variable(np.ones((3, 2)))
    loss = ((x @ w - y) ** 2).sum()
    by_w, by_y = jl.gradients(loss, [w, y])
    sess.run(w.initializer)
    for rows, of_y in ((4, (4, 2)), (4, (2,)), (1, (3, 2)), (0, (0, 2)), (4, ())):
        a, b = np.arange(3.0 * rows).reshape(rows, 3), np.full(of_y, 2.0)
        found = sess.run([by_w, by_y], {x: a, y: b})
        rest = 2 * (a @ np.ones((3, 2)) - b)
        np.testing.assert_allclose(found[0], a.T @ rest if len(rest) == rows else a.T @ rest.sum(axis=0, keepdims=True))
        summed = tuple(range(rest.ndim - b.ndim))
        wanted = -rest.sum(axis=summed)
        for axis, n in enumerate(of_y):
            wanted = wanted.sum(axis=axis, keepdims=True) if n == 1 else wanted
        np.testing.assert_allclose(found[1], wanted)


# ---- what is known of a shape before


@pytest.mark.parametrize(
    ("program", "shape"),
    [
        (lambda x: x[:3], "(None, 4)"),
        (lambda x: np.exp(x[:3])[1:], "(None, 4)"),
        (lambda x: x[:, :3], "(None, 3)"),
        (lambda x: x[0], "(4,)"),
        (lambda x: np.split(x, 5)[0], "(None, 4)"),
        (lambda x: x.reshape(2, -1), "(2, None)"),
        (lambda x: x.reshape(-1, 2, 2), "(None, 2, 2)"),
        (lambda x: x.sum(axis=0, keepdims=True), "(1, 4)"),
        (lambda x: np.nonzero(x)[0], "<unknown>"),
    ],
)
def test_what_is_said_of_a_shape_holds_for_every_size(sess, program, shape):
    assert str(program(jl.placeholder(np.float64, [None, 4])).shape) == shape


# ---- control flow on sizes


def test_python_gets_no_size_that_a_run_decides(sess):
    x, n = jl.placeholder(np.float64, [None]), jl.placeholder(np.int64, [])
    assert x.shape[0] is None
    for size in (x.size, x.nbytes, np.size(x), x[:3].size):
        with pytest.raises(BranchOnTracedArrayError):
            bool(size > 3)
    for use in (len, list, lambda x: len(x[:3]), lambda x: range(x.size), lambda x: np.zeros(n)):
        with pytest.raises(TypeError):
            use(x)


def test_a_size_as_a_number_of_the_program_is_the_runs(sess):
    x = jl.placeholder(np.float32, [None])
    mean = x.sum() / x.size
    part = x[: tf.shape(x)[0] // 2]
    counted = x * np.size(x) + x.nbytes
    assert mean.dtype == np.float32
    for rows in (4, 1, 9):
        array = np.arange(rows, dtype=np.float32)
        found = sess.run([mean, part, counted, x.size], {x: array})
        for value, wanted in zip(found, (array.mean(), array[: rows // 2], array * rows + 4 * rows, rows), strict=True):
            np.testing.assert_allclose(value, wanted, strict=False)


def test_a_subscript_that_is_fed_is_the_one_of_the_run(sess):
    x, n = jl.placeholder(np.float64, [None]), jl.placeholder(np.int64, [])
    parts = [x[n:], x[:n], x[n], x[::n]]
    array = np.arange(6.0)
    for k in (2, 4, 1, 2):
        found = sess.run(parts, {x: array, n: k})
        for value, wanted in zip(found, (array[k:], array[:k], array[k], array[::k]), strict=True):
            np.testing.assert_array_equal(value, wanted)


def test_a_side_of_cond_and_a_loop_that_sizes_choose(sess):
    x = jl.placeholder(np.float64, [None])
    rows = tf.shape(x)[0]
    side = jl.cond(rows > 2, lambda: x.sum() / x.size, lambda: x.sum() * np.size(x))
    _, total = jl.while_loop(lambda i, s: i < rows, lambda i, s: (i + 1, s + x.sum() / s.size), [0, np.zeros(2)])
    for size in (0, 1, 2, 3, 7):
        array = np.arange(1.0, size + 1)
        found = sess.run([side, total], {x: array})
        np.testing.assert_allclose(found[0], array.mean() if size > 2 else array.sum() * size)
        np.testing.assert_allclose(found[1], np.full(2, size * array.sum() / 2))


def test_sizes_in_the_body_of_a_loop_are_the_runs(sess):
    x = jl.placeholder(np.float64, [None])

    def body(i, y):
        assert y.shape[0] is None
        return i + 1, y + y.sum() / y.size + y[:3].sum() / y[:3].size

    _, found = jl.while_loop(lambda i, y: i < 2, body, [0, x])
    for size in (1, 2, 8):
        wanted = np.arange(1.0, size + 1)
        for _ in range(2):
            wanted = wanted + wanted.mean() + wanted[:3].mean()
        np.testing.assert_allclose(sess.run(found, {x: np.arange(1.0, size + 1)}), wanted)


def test_as_many_results_as_a_size_are_no_results_of_every_size(sess):
    x = jl.placeholder(np.float64)
    places = np.nonzero(x)
    assert len(places) == 2
    np.testing.assert_array_equal(sess.run(places[1], {x: np.eye(2)}), [0, 1])
    with pytest.raises(ValueError, match="1 results for these sizes, and 2 when the graph was put together"):
        sess.run(places[0], {x: np.ones(3)})


def test_a_variable_has_a_shape_from_the_start(sess):
    with pytest.raises(ValueError, match="shape"):
        jl.Variable(jl.placeholder(np.float64, [None]))


def test_what_a_function_reads_has_to_have_a_value(sess):
    v = jl.Variable(2.0, name="v")
    y = jl.function(lambda x: x * v)(jl.placeholder(np.float64, [], name="x"))
    with pytest.raises(FailedPreconditionError, match="uninitialized value v"):
        sess.run(y, {"x:0": 3.0})
    sess.run(v.initializer)
    assert sess.run(y, {"x:0": 3.0}) == 6
    with pytest.raises(InvalidArgumentError, match="must feed a value"):
        sess.run(y)
