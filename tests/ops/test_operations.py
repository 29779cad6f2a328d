"""What holds for every operation: its class alone tells meaning, type, gradient and loop body, and they agree."""

import dataclasses
import inspect
import warnings

import numpy as np
import pytest

from jitlab.ir import ArrayType, Graph, interpret, plain
from jitlab.ir.graphs.verify import verify
from jitlab.ops import Cost, Elementwise, Generated, Reduction, operations, table
from jitlab.ops.control_flow import Branch, Loop
from jitlab.ops.elementwise.arithmetic import Abs, FloorDiv, Sign, Sqrt
from jitlab.ops.elementwise.math_functions import Ceil, Floor, Rint, Trunc
from jitlab.ops.host_operations import HostCall, Item
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.linear_algebra.eigenvalues import Hermitian
from jitlab.ops.linear_algebra.factorizations import Cholesky
from jitlab.ops.random_draws import generators_of, random_states, set_random_states
from jitlab.ops.runtime_checks import Check
from tests.numpy_target import emitter
from tests.ops.backprop import finite_differences, gradients
from tests.ops.programs import F, same

CLASSES = sorted(set(operations()), key=lambda c: c.__name__)
SAMPLES = [(c, k, sample) for c in CLASSES for k, sample in enumerate(c.samples())]
each_class = pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)


def each(wanted=lambda op, arrays: True):
    found = [(f"{c.__name__}-{k}", s[0], s[1:]) for c, k, s in SAMPLES if wanted(s[0], s[1:])]
    return pytest.mark.parametrize(("op", "arrays"), [f[1:] for f in found], ids=[f[0] for f in found])


each_sample = each()


def has_body(op, arrays):
    looped = isinstance(op, (Elementwise, Generated, Reduction))
    return looped and not op.why_not_compiled(*(ArrayType(np.shape(a), np.asarray(a).dtype) for a in arrays))


def has_slope(op, arrays):
    """Floats, all finite, as is the result: no slope at infinity."""
    if not op.differentiable or flat(op) or not any(np.asarray(a).dtype in ("f8", "c16") for a in arrays):
        return False
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = op.numpy(*arrays)
    if isinstance(out, tuple):  # several results: tests of their own
        return False
    return all(np.all(np.isfinite(a)) for a in (*arrays, out)) and out.dtype in ("f8", "c16")


def rooted(op, arrays):
    """The length of a complex number, and its roots, are functions: not bit for bit."""
    return isinstance(op, (Abs, Sign, Sqrt)) and arrays[0].dtype.kind == "c"


def flat(op):
    """Step functions: no slope flows, though a difference across a step is not 0."""
    return isinstance(op, (FloorDiv, Sign, Floor, Ceil, Trunc, Rint))



def reads_one_triangle(op):
    """Of a symmetric or Hermitian matrix."""
    return isinstance(op, (Hermitian, Cholesky)) or getattr(op, "hermitian", False)


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def graph_of(op, arrays):
    graph = Graph()
    parameters = [graph.add(Parameter(ArrayType(np.shape(a), np.asarray(a).dtype)), name=f"x{k}") for k, a in enumerate(arrays)]
    graph.outputs = [graph.add(op, *parameters)]
    return verify(graph)


@each_class
def test_a_class_is_documented_frozen_and_has_samples(kind):
    assert kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}(")
    assert dataclasses.is_dataclass(kind) and kind.__setattr__ is not object.__setattr__
    if kind not in (Parameter, Item, Branch, Loop):  # the last two: tests/ops/test_control.py
        assert list(kind.samples())


@each_sample
def test_the_result_type_is_that_of_numpys_result(op, arrays):
    drawn = random_states(generators_of(arrays))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = op.numpy(*arrays)
    set_random_states(drawn)
    types = [ArrayType(np.shape(a), np.asarray(a).dtype) for a in arrays]
    values, results = (value, op.results(*types)) if isinstance(value, tuple) else ((value,), (op.result(*types),))
    assert [(v.dtype, v.shape) for v in values] == [(t.dtype, plain(t.shape)) for t in results]
    (interpreted,) = interpret(graph_of(op, arrays), arrays)
    for mine, theirs in zip(interpreted if isinstance(value, tuple) else (interpreted,), values, strict=True):
        same(mine, theirs)


@each_sample
def test_an_operation_prints_compares_and_costs(op, arrays):
    assert str(op).startswith(op.name)
    types = [ArrayType(np.shape(a), np.asarray(a).dtype) for a in arrays]
    cost = op.cost(op.result(*types), *types)
    assert isinstance(cost, Cost) and min(cost.flops, cost.read_bytes, cost.written_bytes) >= 0
    if not isinstance(op, (HostCall, Check)):  # each of them is its own: what it calls stands in one place of the program
        assert hash(op) == hash(dataclasses.replace(op)) and op == dataclasses.replace(op)


@each(has_body)
def test_the_body_computes_what_numpy_computes(op, arrays):
    got = emitter.run(op, *arrays)
    if got is not None:
        with np.errstate(all="ignore"):
            same(got, op.numpy(*arrays), exact=op.exact and not rooted(op, arrays))


@each(has_slope)
def test_the_gradient_is_the_finite_difference(op, arrays):
    graph = graph_of(op, arrays)
    (out,) = interpret(graph, arrays)
    random = np.random.default_rng(0)
    weights = random.normal(size=out.shape)
    if out.dtype.kind == "c":
        weights = weights + 1j * random.normal(size=out.shape)
    want = finite_differences(graph, list(arrays), weights)
    got = interpret(verify(gradients(graph_of(op, arrays), weights)), arrays)
    for mine, theirs in zip(got, want, strict=True):
        if theirs is not None and theirs.dtype in ("f8", "c16"):
            if reads_one_triangle(op) and theirs.ndim > 1:  # it reads one triangle; its gradient is that of both
                theirs = (theirs + np.conj(np.swapaxes(theirs, -1, -2))) / 2
            np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-7)


def program(build, *arrays):
    """The graph of a function of nodes, and its gradients for a cotangent of ones."""
    graph = Graph()
    nodes = [graph.add(Parameter(ArrayType(np.shape(a), np.asarray(a).dtype)), name=f"x{k}") for k, a in enumerate(arrays)]
    with graph.building():
        graph.outputs = [build(*nodes)]
    (out,) = interpret(graph, arrays)
    return interpret(gradients(graph, np.ones(np.shape(out))), arrays)


O, M = table.OPERATORS, table.METHODS  # noqa: E741


@pytest.mark.parametrize(
    "inner",
    [
        F[np.sqrt],
        F[np.log],
        F[np.log1p],
        F[np.reciprocal],
        lambda x: O["__rtruediv__"](x, 1.0),
        lambda x: O["__pow__"](x, -1.5),
        lambda x: O["__pow__"](x, 0.5),
        lambda x: F[np.exp](O["__truediv__"](1.0, x)),
        lambda x: F[np.hypot](x, 0.0),
        lambda x: F[np.abs](F[np.complex128](x)),
        lambda x: F[np.arctan2](x, F[np.square](x)),
    ],
)
def test_the_branch_that_where_did_not_take_puts_no_nan_into_a_gradient(inner):
    x = np.array([-1.0, 0.0, 0.25, 1e-320])
    (slope,) = program(lambda x: F[np.where](O["__gt__"](x, 0.1), inner(x), 0.0), x)
    assert np.all(np.isfinite(slope)) and slope[2] != 0 and not slope[:2].any()


def test_the_stable_sigmoid_has_a_finite_slope_everywhere():
    def sigmoid(x):
        e = F[np.exp](x)
        right = O["__rtruediv__"](O["__add__"](F[np.exp](O["__neg__"](x)), 1), 1)
        return F[np.where](O["__lt__"](x, 0), O["__truediv__"](e, O["__add__"](e, 1)), right)

    (slope,) = program(sigmoid, np.array([-1000.0, -1.0, 0.0, 1.0, 1000.0]))
    np.testing.assert_allclose(slope, [0, 0.19661193, 0.25, 0.19661193, 0], atol=1e-8)


def test_equal_elements_share_the_slope_of_a_maximum():
    x = np.array([[1.0, 3.0, 3.0], [2.0, np.nan, 0.0]])
    (slope,) = program(lambda x: F[np.max](x, axis=1), x)
    np.testing.assert_array_equal(slope, [[0, 0.5, 0.5], [0, 0, 0]])
    left, right = program(F[np.maximum], np.array([1.0, 2.0, 5.0]), np.array([1.0, 3.0, 4.0]))
    np.testing.assert_array_equal(left, [0.5, 0, 1])
    np.testing.assert_array_equal(right, [0.5, 1, 0])


def test_what_a_later_write_replaced_has_no_slope():
    x, v, i = np.zeros(3), np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0])
    dx, dv, _ = program(lambda x, v, i: M_setitem(x, i, v), x, v, i)
    np.testing.assert_array_equal(dx, [0, 0, 1])
    np.testing.assert_array_equal(dv, [0, 1, 1])


M_setitem = table.UPDATE_METHODS["__setitem__"]


def test_the_compositions_have_gradients_too():
    x = np.array([[0.3, -1.2, 2.0], [1.1, 0.4, -0.7]])
    for build in (
        lambda x: F[np.var](x, axis=1, ddof=1),
        lambda x: F[np.std](x),
        lambda x: F[np.linalg.norm](x, axis=0),
        lambda x: F[np.pad](x, 1),
        lambda x: F[np.tile](x, (2, 2)),
        lambda x: F[np.repeat](x, 2, 1),
        lambda x: F[np.roll](x, 1),
        lambda x: F[np.diff](x),
        lambda x: F[np.tensordot](x, x, ((0,), (0,))),
        lambda x: F[np.outer](x, x),
        lambda x: F[np.trace](x),
        lambda x: F[np.tril](x),
        lambda x: F[np.diag](F[np.sum](x, axis=0)),
        lambda x: M["__getitem__"](x, (slice(None), np.array([0, 2, 0]))),
        lambda x: M["__getitem__"](x, (np.array([0, 1]), np.array([2, 2]))),
        lambda x: F[np.clip](x, -0.5, 1.0),
        lambda x: F[np.prod](x, axis=0),
        lambda x: O["__pow__"](x, 3),
        lambda x: F[np.mean](x, axis=0, keepdims=True),
    ):
        graph = Graph()
        node = graph.add(Parameter(ArrayType(x.shape, x.dtype)), name="x")
        with graph.building():
            graph.outputs = [build(node)]
        verify(graph)
        weights = np.random.default_rng(1).normal(size=np.shape(interpret(graph, [x])[0]))
        want = finite_differences(graph, [x], weights)
        got = interpret(verify(gradients(graph, weights)), [x])
        np.testing.assert_allclose(got[0], want[0], rtol=1e-6, atol=1e-8, err_msg=inspect.getsource(build))
