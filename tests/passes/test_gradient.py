"""The gradient: finite differences on compositions, what is connected, and the contract's scopes."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitlab.cluster import cluster, jit_scope
from jitlab.errors import NoGradientError
from jitlab.ir import ArrayType, Graph, Node, Source, Stays, interpret, positions
from jitlab.ir.graphs.verify import verify
from jitlab.ir.plans.decisions import OWN
from jitlab.ops.base import Operation
from jitlab.ops.build_nodes import apply, cast, constant, elementwise
from jitlab.ops.elementwise.arithmetic import Maximum, Sqrt, Square, add, divide, greater, multiply, negative, select, subtract
from jitlab.ops.elementwise.math_functions import Exp, Log, Sin, Tanh
from jitlab.ops.layout.concatenation import concatenate
from jitlab.ops.layout.indexing import read_index, write_index
from jitlab.ops.layout.views import broadcast_to, expand_dims, reshape, transpose
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.library_operations import Library, call, results_of
from jitlab.ops.linear_algebra.matrix_products import MatMul, matmul
from jitlab.ops.reducing.axis_reductions import Max, Mean, Sum, reduce
from jitlab.passes import gradients, run_passes, sum_to_shape

R = np.random.default_rng(3)
FLOAT = np.dtype("f8")


def total(x: Node) -> Node:
    return apply(Sum(tuple(range(x.ndim))), x) if x.ndim else x


def sin(x: Node) -> Node:
    return elementwise(Sin(), x)


def built(program: Callable[..., Node], arguments: Any, **options: Any) -> Graph:
    """The graph of a program and its gradients with respect to every argument; outputs: the value, then the gradients."""
    graph = Graph("f")
    lines = itertools.count(1)
    with graph.building(), positions(lambda: Source("<cell 1>", next(lines))):
        xs = [graph.add(Parameter(ArrayType(np.shape(a), np.asarray(a).dtype)), sources=frozenset()) for a in arguments]
        y = program(*xs)
        grads = gradients(graph, [y], xs, **options)
    graph.outputs = [y, *(g for g in grads if g is not None)]
    for x, g in zip(xs, grads, strict=True):
        assert g is None or (g.shape, g.dtype) == (x.shape, x.dtype)
    return verify(graph)


def softmax_cross_entropy(x, w, b):
    logits = add(matmul(x, w), b)
    shifted = subtract(logits, reduce(Max, logits, (1,), keepdims=True))
    log_sum = elementwise(Log(), reduce(Sum, elementwise(Exp(), shifted), (1,), keepdims=True))
    picked = read_index(subtract(shifted, log_sum), (np.arange(4), np.array([0, 2, 1, 2])))
    return negative(reduce(Mean, picked, (0,)))


def layer_norm(x, scale, shift):
    centred = subtract(x, reduce(Mean, x, (1,), keepdims=True))
    variance = reduce(Mean, elementwise(Square(), centred), (1,), keepdims=True)
    normal = divide(centred, elementwise(Sqrt(), add(variance, 1e-5)))
    return total(sin(add(multiply(normal, scale), shift)))


def chain_of_products(a, b, c, v):
    return total(sin(matmul(matmul(elementwise(Tanh(), matmul(a, b)), transpose(c)), v)))


def batched_products(a, b):
    return total(sin(matmul(a, b)))


def inner_and_outer(u, v):
    return add(matmul(u, v), total(sin(multiply(expand_dims(u, (1,)), expand_dims(v, (0,))))))


def broadcasts(x, row, column, number):
    y = add(multiply(x, row), divide(column, add(number, 3.0)))
    return total(sin(add(y, broadcast_to(number, (3, 4)))))


def views(x):
    y = read_index(transpose(x), (slice(1, None), slice(None, None, -2)))
    return add(total(sin(reshape(y, (y.type.size,)))), read_index(sin(x), (1, 2)))


def slices_changed_in_place(x, y):
    x = write_index(x, slice(1, None), multiply(read_index(x, slice(1, None)), read_index(x, slice(0, -1))))
    x = write_index(x, (slice(None), 0), sin(read_index(y, 0)))
    x = write_index(x, (0, 1), multiply(read_index(x, (0, 1)), read_index(x, (1, 1))))
    return total(elementwise(Square(), x))


def columns_swept(x):
    for j in range(1, 4):
        x = write_index(x, (slice(None), j), sin(add(read_index(x, (slice(None), j)), read_index(x, (slice(None), j - 1)))))
    return total(x)


def choices(x, y):
    picked = select(greater(x, 0.0), elementwise(Sqrt(), x), multiply(y, y))  # NaN where it is not taken
    return total(elementwise(Maximum(), sin(picked), multiply(y, 0.5)))


def used_many_times(x):
    return total(
        multiply(multiply(x, x), add(sin(x), concatenate([read_index(x, slice(2, None)), read_index(x, slice(0, 2))], 0)))
    )


def positions_read_twice(x):
    return total(sin(multiply(read_index(x, np.array([0, 2, 0, -1])), x)))


PROGRAMS = [
    (softmax_cross_entropy, (4, 5), (5, 3), (3,)),
    (layer_norm, (3, 5), (5,), (5,)),
    (chain_of_products, (2, 3), (3, 4), (5, 4), (5,)),
    (batched_products, (2, 1, 3, 4), (5, 4, 2)),
    (inner_and_outer, (3,), (3,)),
    (broadcasts, (3, 4), (4,), (3, 1), ()),
    (views, (3, 4)),
    (slices_changed_in_place, (3, 4), (2, 3)),
    (columns_swept, (2, 4)),
    (choices, (3, 4), (4,)),
    (used_many_times, (4, 3)),
    (positions_read_twice, (4,)),
]


@pytest.mark.parametrize(
    ("program", "shapes"), [(p, s) for p, *s in PROGRAMS], ids=lambda value: getattr(value, "__name__", "")
)
def test_gradient_equals_finite_differences(program, shapes):
    arguments = [R.normal(size=shape)[()] for shape in shapes]
    graph = built(program, arguments)
    _, *grads = interpret(graph, arguments)
    assert len(grads) == len(arguments)
    for position, grad in enumerate(grads):
        np.testing.assert_allclose(grad, differences(graph, arguments, position), rtol=1e-5, atol=1e-7)
    simple = verify(run_passes(graph))
    for want, got in zip(interpret(graph, arguments), interpret(simple, arguments), strict=True):
        np.testing.assert_array_equal(got, want)
    used = {source.line for node in graph.without_dead().nodes for source in node.sources}
    assert {source.line for node in simple.nodes for source in node.sources} <= used


def differences(graph: Graph, arguments: list[Any], position: int) -> Any:
    step = 1e-6
    x = np.asarray(arguments[position])
    result = np.empty_like(x)
    for index in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[index] += sign * step
            ends.append(interpret(graph, [*arguments[:position], moved[()], *arguments[position + 1 :]])[0])
        result[index] = (ends[0] - ends[1]) / (2 * step)
    return result


def test_float32_stays_float32():
    x = R.normal(size=(3, 4)).astype("f4")
    graph = built(lambda x, w: total(multiply(cast(x, "f8"), w)), [x, R.normal(size=(4,))])
    assert [node.dtype for node in graph.outputs[1:]] == [np.float32, np.float64]


def test_the_second_derivative_is_the_gradient_of_the_gradient():
    graph = Graph("f")
    with graph.building():
        x = graph.add(Parameter(ArrayType((), FLOAT)))
        (slope,) = gradients(graph, [sin(multiply(x, x))], [x])
        assert slope is not None
        graph.outputs = gradients(graph, [slope], [x])
    (second,) = interpret(graph, [np.float64(0.7)])
    assert second == pytest.approx(2 * np.cos(0.49) - 4 * 0.49 * np.sin(0.49))


@pytest.fixture
def graph():
    graph = Graph("f")
    with graph.building():
        yield graph


def parameter(graph: Graph, *shape: int, dtype: Any = FLOAT) -> Node:
    return graph.add(Parameter(ArrayType(shape, np.dtype(dtype))))


def test_what_is_not_connected_is_none_or_zeros(graph):
    x, other, n = parameter(graph, 3), parameter(graph, 2), parameter(graph, dtype="i8")
    y = total(multiply(sin(x), cast(n, "f8")))
    assert [g is None for g in gradients(graph, [y], [x, other, n])] == [False, True, True]
    zero = gradients(graph, [y], [other], unconnected="zero")[0]
    assert zero is not None and zero.op.name == "Fill" and zero.shape == (2,)


def test_nothing_flows_through_integers_and_comparisons(graph):
    x = parameter(graph, 3)
    y = total(cast(cast(x, "i8"), "f8"))
    z = total(select(greater(x, 0.0), constant(1.0), constant(2.0)))
    assert gradients(graph, [y, z], [x]) == [None]
    assert gradients(graph, [cast(x, "i8")], [x]) == [None]


def test_an_intermediate_value_can_be_differentiated_by_and_passes_on(graph):
    x = parameter(graph, 3)
    y = sin(x)
    graph.outputs = gradients(graph, [total(multiply(y, y))], [x, y])
    a = np.array([0.1, 0.2, 0.3])
    dx, dy = interpret(graph, [a])
    np.testing.assert_allclose(dy, 2 * np.sin(a))
    np.testing.assert_allclose(dx, 2 * np.sin(a) * np.cos(a))


def test_several_ys_are_summed_and_weighed(graph):
    x, weight = parameter(graph, 3), parameter(graph, 3)
    graph.outputs = gradients(graph, [sin(x), x, multiply(x, 2.0)], [x], [weight, None, constant(10.0)])
    a, w = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(interpret(graph, [a, w])[0], w * np.cos(a) + 1 + 20)


def test_gradient_operations_stand_on_the_lines_of_what_they_differentiate(graph):
    x = parameter(graph, 3)
    with positions(lambda: Source("<cell 1>", 5)):
        y = sin(x)
    with positions(lambda: Source("<cell 1>", 9)):
        gradients(graph, [y], [x])
    lines = {node.name: {source.line for source in node.sources} for node in graph.nodes}
    assert lines == {"sin": {5}, "constant": {5, 9}, "fill": {5, 9}, "cos": {5}, "mul": {5}}


def test_an_operation_without_a_gradient_is_an_error_that_names_its_line(graph):
    class Opaque(Operation):
        def result(self, *types):
            return types[0]

    with positions(lambda: Source("<cell 1>", 5)):
        y = apply(Opaque(), parameter(graph, 3))
    with pytest.raises(NoGradientError, match="opaque has no gradient") as caught:
        gradients(graph, [y], [graph.parameters[0]])
    assert "line 5" in str(caught.value)


class Polar(Library):
    """x*cos(a), x*sin(a), and the whole part of x: three results, two of them with a slope."""

    def results(self, *types):
        return types[0], types[0], types[0].with_dtype(np.dtype("i8"))

    def numpy(self, *arrays):
        x, a = arrays
        return x * np.cos(a), x * np.sin(a), np.asarray(x).astype("i8")

    def gradient(self, g, out, *inputs):
        assert len(g) == 3 and g[2] is None
        x, a = inputs
        along, across, _ = results_of(out)
        by_x = [multiply(part, divide(value, x)) for part, value in zip(g, (along, across), strict=False) if part is not None]
        by_a = [multiply(part, by) for part, by in zip(g, (negative(across), along), strict=False) if part is not None]
        return [functools.reduce(add, by_x), functools.reduce(add, by_a)]


def test_the_cotangents_of_several_results_reach_the_operation_together():
    x, a = R.normal(size=3), R.normal(size=3)

    def both(x, a):
        along, across, whole = call(Polar(), sin(x), a)
        return total(add(add(multiply(along, across), elementwise(Square(), along)), cast(whole, "f8")))

    def one(x, a):
        return total(elementwise(Square(), call(Polar(), sin(x), a)[1]))

    for program in (both, one):
        graph = built(program, [x, a])
        _, *grads = interpret(graph, [x, a])
        for position, grad in enumerate(grads):
            np.testing.assert_allclose(grad, differences(graph, [x, a], position), rtol=1e-5, atol=1e-7)


def test_sum_to_shape_is_the_transpose_of_broadcasting(graph):
    g = parameter(graph, 2, 3, 4)
    graph.outputs = [sum_to_shape(g, shape) for shape in [(2, 3, 4), (3, 1), (1, 1, 4), (), (1,)]]
    a = R.normal(size=(2, 3, 4))
    full, column, row, number, one = interpret(graph, [a])
    assert full is a
    np.testing.assert_allclose(column, a.sum(axis=(0, 2))[:, None])
    np.testing.assert_allclose(row, a.sum(axis=(0, 1))[None, None])
    np.testing.assert_allclose(number, a.sum())
    np.testing.assert_allclose(one, [a.sum()])


# The contract's scopes


def scopes(nodes: list[Node]) -> list[str | None]:
    return [node.attrs.get("_XlaScope") for node in nodes]


def marks(node):
    """Its attributes that the contract knows."""
    return {name: value for name, value in node.attrs.items() if name not in OWN}


def new_nodes(graph: Graph, make: Callable[[], Any]) -> list[Node]:
    count = len(graph.nodes)
    make()
    return graph.nodes[count:]


def marked_product(graph: Graph, **options: Any) -> tuple[Node, Node, Node]:
    a, b = parameter(graph, 3, 3), parameter(graph, 3, 3)
    with jit_scope(**options):
        return a, b, apply(MatMul(), a, b)


def of_kind(nodes: list[Node], *kinds: str) -> list[Node]:
    return [node for node in nodes if node.op.name in kinds]


def test_the_gradient_of_a_marked_operation_is_in_its_scope(graph):
    a, b, f = marked_product(graph)
    made = new_nodes(graph, lambda: gradients(graph, [f], [a, b], name="g"))
    inside = of_kind(made, "MatMul", "Transpose")
    assert len(inside) == 4 and set(scopes(inside)) == {"jit_scope_0"}
    assert all(marks(node) == {"_XlaCompile": True, "_XlaScope": "jit_scope_0"} for node in inside)
    assert set(scopes(of_kind(made, "Fill", "Const"))) == {None}  # the first cotangent belongs to no operation


def test_seed_f_g_and_h_are_compiled_in_separate_scopes(graph):
    a, b, f = marked_product(graph, separate_compiled_gradients=True)
    g = gradients(graph, [f], [a, b], name="mygrads1")
    h = gradients(graph, [f], [a, b], name="mygrads2")
    assert scopes([f, *g, *h]) == ["jit_scope_0", *["jit_scope_0_grad_mygrads1"] * 2, *["jit_scope_0_grad_mygrads2"] * 2]
    graph.outputs = [f, *g, *h]
    simple = run_passes(graph)
    off = cluster(simple, level="OFF", min_size=2)
    assert len(off.clusters) == 5  # the two products of one gradient share no edge
    assert [c.scope for c in off.clusters] == [
        "jit_scope_0",
        *["jit_scope_0_grad_mygrads1"] * 2,
        *["jit_scope_0_grad_mygrads2"] * 2,
    ]
    assert {reason.code for reason in off.stays.values()} <= {Stays.JIT_OFF}
    x, y, ones = R.normal(size=(3, 3)), R.normal(size=(3, 3)), np.ones((3, 3))
    for got, want in zip(interpret(simple, [x, y])[1:], [ones @ y.T, x.T @ ones] * 2, strict=True):
        np.testing.assert_allclose(got, want)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["gradients", "gradients"], ["gradients", "gradients_1"]),
        (["mine", "mine", "other"], ["mine", "mine_1", "other"]),
        (["ns/GG"], ["ns_GG"]),
        (["ns/GG/"], ["ns_GG"]),
    ],
)
def test_separate_scopes_are_named_after_the_call(graph, names, expected):
    a, b, f = marked_product(graph, separate_compiled_gradients=True)
    results = [gradients(graph, [f], [a], name=name)[0] for name in names]
    assert scopes(results) == [f"jit_scope_0_grad_{name}" for name in expected]


def test_the_gradient_of_an_unmarked_operation_gets_what_the_calling_scope_sets(graph):
    a, b, f = marked_product(graph, compile_ops=False)
    outside = new_nodes(graph, lambda: gradients(graph, [f], [a]))
    assert all(marks(node) == {} for node in outside)
    with jit_scope():
        inside = new_nodes(graph, lambda: gradients(graph, [f], [a]))
    assert set(scopes(inside)) == {"jit_scope_1"}


def test_inside_a_scope_the_gradients_own_attributes_win(graph):
    a, b, f = marked_product(graph, separate_compiled_gradients=True)
    asked = []

    def refuse(node_def):
        asked.append(node_def.op)
        return False

    with jit_scope(compile_ops=refuse):
        made = new_nodes(graph, lambda: gradients(graph, [f], [a], name="mygrads1"))
    assert asked == ["Const", "Fill"]
    (product,) = [node for node in of_kind(made, "MatMul") if node.inputs[0].op.name == "Fill"]
    assert marks(product) == {
        "_XlaCompile": True,
        "_XlaScope": "jit_scope_0_grad_mygrads1",
        "_XlaSeparateCompiledGradients": False,
    }
    (ones,) = of_kind(made, "Fill")
    assert ones.attrs["_XlaCompile"] is False and ones.attrs["_XlaScope"] == "jit_scope_1"


def test_sums_of_several_cotangents_belong_to_no_operation(graph):
    x = parameter(graph, 3)
    with jit_scope():
        y = multiply(sin(x), x)
    made = new_nodes(graph, lambda: gradients(graph, [y], [x]))
    assert set(scopes(of_kind(made, "AddN"))) == {None}


def test_a_training_step_is_one_cluster():
    arguments = [R.normal(size=shape) for shape in [(4, 5), (5, 3), (3,)]]

    def step(x, w, b):
        return softmax_cross_entropy(x, w, b)

    graph = run_passes(built(step, arguments))
    clustering = cluster(graph)
    assert len(clustering.clusters) == 1 and not clustering.stays
