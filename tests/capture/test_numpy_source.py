"""NumPy's functions that are recorded by running NumPy's own source."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.capture.numpy_calls.numpy_source import FROM_SOURCE
from jitlab.ir import poly
from jitlab.ops.host_operations import HostCall
from jitlab.ops.layout.creation import Eye
from jitlab.ops.table import FUNCTIONS, VIEWS

X = np.arange(12.0).reshape(3, 4)
SQUARE = np.array([[2.0, 1.0], [0.5, 3.0]])


def recorded(function, *arguments):
    return jl.function(function).get_concrete_function(*arguments).graph.nodes


def test_they_have_no_rule():
    assert not FROM_SOURCE & {*FUNCTIONS, *VIEWS}


def test_rows_of_an_array_are_joined_in_the_graph():
    """The source iterates over them."""
    for function in (np.vstack, np.hstack, np.dstack, np.column_stack):
        assert not any(isinstance(node.op, HostCall) for node in recorded(lambda x, f=function: f(x), X))
        np.testing.assert_array_equal(jl.function(lambda x, f=function: f(x))(X), function(X))


def test_what_the_program_wrote_down_is_a_constant():
    assert not any(isinstance(node.op, HostCall) for node in recorded(lambda x: np.vstack([x, [1, 2, 3, 4]]), X))


def test_a_size_stays_a_symbol():
    """Of arrays that the source makes itself, too."""
    (eye,) = (node for node in recorded(lambda x: np.linalg.matrix_power(x, 0) @ x, SQUARE) if isinstance(node.op, Eye))
    assert [str(poly(n)) for n in eye.shape] == ["n0", "n0"] or [str(poly(n)) for n in eye.shape] == ["n0", "n1"]


def test_an_error_speaks_of_the_call_in_the_program():
    with pytest.raises(jl.errors.ShapeError, match=r"np\.vstack of float64\[3, 4\] and float64\[3, 3\]"):
        jl.function(lambda x: np.vstack([x, x[:, 1:]]))(X)
    with pytest.raises(np.exceptions.AxisError, match="source: axis 5 is out of bounds"):
        jl.function(lambda x: np.moveaxis(x, 5, 0))(X)


@pytest.mark.parametrize("transform", [jl.jit, jl.function])
def test_where_the_source_asks_for_a_value_numpy_runs_the_function(transform):
    """How often to take the difference is a traced number."""
    program = transform(lambda x, n: np.diff(x, n=(n + n).astype(int)))
    for n in (np.float64(0.5), np.float64(1.0)):
        np.testing.assert_array_equal(program(X, n), np.diff(X, n=int(2 * n)))


def test_a_loop_over_parts_that_grow_is_rolled():
    def grown(x):
        total = 0.0
        for k in range(2, len(x)):
            total = total + np.trapezoid(x[:k]) + np.vstack([x[:k], x[:k]]).sum() + np.diff(x[:k])[-1]
        return total

    long = np.linspace(0.0, 1.0, 40)
    assert [node.op.name for node in recorded(grown, long)].count("While") == 1
    np.testing.assert_allclose(jl.function(grown)(long), grown(long))


def test_a_placeholder_has_its_sizes_while_the_source_runs():
    graph = jl.Graph()
    with graph.as_default():
        x = jl.placeholder(np.float64, [None, 4])
        fetches = [np.fft.fftshift(x), np.split(x, 2, axis=1)[1], np.linalg.vector_norm(x, axis=(0, 1)), np.diff(x, axis=0)]
        with jl.Session() as session:
            for rows in (3, 4):
                fed = np.arange(4.0 * rows).reshape(rows, 4)
                got = session.run(fetches, {x: fed})
                wanted = np.fft.fftshift(fed), fed[:, 2:], np.linalg.norm(fed), np.diff(fed, axis=0)
                for mine, want in zip(got, wanted, strict=True):
                    np.testing.assert_allclose(mine, want)


@pytest.mark.parametrize("make", [np.vstack, np.hstack, np.dstack, np.column_stack], ids=lambda f: f.__name__)
@pytest.mark.parametrize("decorate", [jl.jit, jl.function], ids=["jit", "function"])
def test_what_is_made_of_numbers_alone_is_new_in_each_call(make, decorate):
    @decorate
    def made(x):
        return make([0, 1]), x + 1

    for _ in range(4):
        found = made(np.ones(3))[0]
        np.testing.assert_array_equal(found, make([0, 1]))
        found[...] = 7
