"""Every example of the seed on `mindspore.jit`, with only the import changed."""

import numpy as np

from jitlab.compat.mindspore import (
    Tensor,
    jit,
    ops,  # noqa: F401
)

x = Tensor(np.ones([1, 1, 3, 3]).astype(np.float32))
y = Tensor(np.ones([1, 1, 3, 3]).astype(np.float32))


# create a callable MindSpore graph by calling jit
def tensor_add(x, y):
    z = x + y
    return z


tensor_add_graph = jit(function=tensor_add)


# create a callable MindSpore graph through decorator @jit
@jit
def tensor_add_with_dec(x, y):
    z = x + y
    return z


# create a callable MindSpore graph and capture the entire function into the graph
@jit(fullgraph=True)
def tensor_add_fullgraph(x, y):
    z = x + y
    return z


def holds(out):
    assert isinstance(out, Tensor)
    assert out.dtype == np.float32
    assert out.shape == (1, 1, 3, 3)
    np.testing.assert_array_equal(out, np.full((1, 1, 3, 3), 2.0, np.float32))
    return True


def test_a_graph_made_by_calling_jit_adds():
    assert holds(tensor_add_graph(x, y))


def test_a_graph_made_by_the_decorator_adds():
    assert holds(tensor_add_with_dec(x, y))


def test_a_graph_captured_whole_adds():
    assert holds(tensor_add_fullgraph(x, y))


def test_each_was_captured_once_and_compiled():
    for graph in (tensor_add_graph, tensor_add_with_dec, tensor_add_fullgraph):
        for _ in range(3):
            assert holds(graph(x, y))
        assert graph.experimental_get_tracing_count() == 1
