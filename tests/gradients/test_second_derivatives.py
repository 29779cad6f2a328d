"""The gradient of the gradient of every operation, on its samples, against differences of the first one along a direction."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.errors import NoGradientError
from jitlab.ir import ArrayType, Graph, interpret
from jitlab.ir.graphs.verify import verify
from jitlab.ops import operations
from jitlab.ops.build_nodes import apply, constant
from jitlab.ops.elementwise.arithmetic import FloorDiv, Real, Sign, add, conj, multiply
from jitlab.ops.elementwise.math_functions import Ceil, Floor, Rint, Trunc
from jitlab.ops.host_operations import SEVERAL, Item
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.linear_algebra.linear_systems import MatrixLibrary
from jitlab.ops.reducing.axis_reductions import Sum
from jitlab.ops.reducing.scans import CumProd
from jitlab.passes import gradients
from tests.gradients.slopes import slope_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
FLOATS = ("f8", "c16")
#: Of each operation; the first derivatives of all of them are tested in tests/ops.
MOST_SAMPLES = 2
#: Step functions, whose differences are not their slopes.
FLAT = (FloorDiv, Sign, Floor, Ceil, Trunc, Rint)


def samples():
    for kind in operations():
        if not kind.differentiable or not kind.__module__.startswith("jitlab.ops") or issubclass(kind, FLAT):
            continue
        if issubclass(kind, MatrixLibrary):
            continue  # symmetric and singular samples: below, on matrices that may be moved any way
        taken = 0
        for number, (op, *arrays) in enumerate(kind.samples()):
            if isinstance(op, CumProd) and any(np.any(np.asarray(a) == 0) for a in arrays):
                continue  # where an element is 0 the second derivative lacks terms: docs/internals/gradients.md says so
            if any(np.asarray(a).dtype in FLOATS for a in arrays) and all(np.all(np.isfinite(a)) for a in arrays):
                taken += 1
                if taken <= MOST_SAMPLES:
                    yield pytest.param(op, arrays, id=f"{kind.__name__}-{number}")


def total(node):
    """A real number: the sum of all elements, of complex ones the real parts."""
    node = apply(Real(), node) if node.dtype.kind == "c" else node
    return apply(Sum(tuple(range(node.ndim))), node) if node.ndim else node


def results(node, op, types):
    if node.dtype != SEVERAL:
        return [node]
    return [apply(Item(k, type), node) for k, type in enumerate(op.results(*types))]


def weighted(random, values):
    """The sum of the values, each element with a weight of its own."""
    parts = []
    for x in values:
        weights = random.normal(size=x.shape)
        if x.dtype.kind == "c":
            weights = weights + 1j * random.normal(size=x.shape)
        parts.append(total(multiply(conj(x), constant(weights.astype(x.dtype)))))
    result = parts[0]
    for part in parts[1:]:
        result = add(result, part)
    return result


def twice(op, arrays):
    """A graph with a weighted sum of the slopes of a weighted sum of the results, and the slopes of that; None without any."""
    random = np.random.default_rng(0)
    types = [ArrayType(np.shape(a), np.asarray(a).dtype) for a in arrays]
    graph = Graph()
    with graph.building():
        xs = [apply(Parameter(type)) for type in types]
        ys = [y for y in results(apply(op, *xs), op, types) if y.dtype in FLOATS and int(y.type.size)]
        active = [x for x in xs if x.dtype in FLOATS]
        first = gradients(graph, [weighted(random, ys)], active) if ys else []
        flows = [g for g in first if g is not None]
        if not flows:
            return None
        value = weighted(random, flows)
        graph.outputs = [value, *gradients(graph, [value], active, unconnected="zero")]
    return verify(graph)


@pytest.mark.parametrize(("op", "arrays"), samples())
def test_the_second_derivative_is_the_difference_of_the_first(op, arrays):
    try:
        graph = twice(op, arrays)
    except NoGradientError as error:  # a slope made of an operation without one says which that is
        assert "has no gradient" in str(error) and type(op).__name__ == "Special"
        return
    if graph is None:  # no slope, as of a step
        return
    value, *slopes = interpret(graph, arrays)
    if not np.isfinite(value):  # an infinite slope, as of a root at 0
        return
    random = np.random.default_rng(1)
    step, moves, expected = 1e-6, {}, 0.0
    positions = [k for k, a in enumerate(arrays) if np.asarray(a).dtype in FLOATS]
    for k, slope in zip(positions, slopes, strict=True):
        way = random.normal(size=np.shape(arrays[k]))
        if slope.dtype.kind == "c":
            way = way + 1j * random.normal(size=np.shape(arrays[k]))
        moves[k] = step * way
        expected += np.sum(np.real(np.conj(slope) * way))
    ends = [interpret(graph, [a + sign * moves.get(k, 0) for k, a in enumerate(arrays)])[0] for sign in (1, -1)]
    assert expected == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-5)


A = np.random.default_rng(2).normal(size=(3, 3))
MATRICES = {
    "det": lambda a: np.linalg.det(a),
    "slogdet": lambda a: np.linalg.slogdet(a @ a.T)[1],
    "inv": lambda a: np.linalg.inv(a) * A,
    "solve": lambda a: np.linalg.solve(a, A) ** 2,
    "cholesky": lambda a: np.linalg.cholesky(a @ a.T + 3 * np.eye(3)) * A,
    "eigvalsh": lambda a: np.linalg.eigvalsh(a + a.T) ** 3,
    "eigh": lambda a: np.linalg.eigh(a + a.T)[1] ** 2 * A,
    "svdvals": lambda a: np.linalg.svd(a, compute_uv=False) ** 3,
    "qr": lambda a: np.linalg.qr(a)[1] * A,
    "pinv": lambda a: np.linalg.pinv(a[:, :2]) * A[:2],
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_second_derivative_of_linear_algebra(name):
    function, random = MATRICES[name], np.random.default_rng(1)
    x, way, weights = (random.normal(size=(3, 3)) for _ in range(3))
    x += 2 * np.eye(3)

    def first(x):
        return jl.grad(lambda x: np.sum(function(x)))(x) * weights

    ends = [np.sum(slope_of(function, x + sign * 1e-6 * way) * weights) for sign in (1, -1)]
    assert np.sum(slope_of(first, x) * way) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-6)
