"""Each pass, before and after, as text; and that passes change neither a bit of a result nor where its lines went."""

import inspect
import itertools
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitlab.api.check.replaying import keeping_random_state
from jitlab.cluster import jit_scope
from jitlab.ir import ArrayType, Extent, Graph, Node, Source, interpret, positions
from jitlab.ir.graphs.verify import verify
from jitlab.ops.base import Operation
from jitlab.ops.build_nodes import apply, cast, constant, elementwise
from jitlab.ops.elementwise.arithmetic import add, divide, multiply, negative, subtract
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.elementwise.math_functions import Exp
from jitlab.ops.host_operations import SEVERAL
from jitlab.ops.layout.concatenation import Concatenate
from jitlab.ops.layout.creation import fill, zeros
from jitlab.ops.layout.indexing import read_index, write_index
from jitlab.ops.layout.views import Reshape, Update, View, broadcast_to, expand_dims, identity_map, squeeze, transpose
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.library_operations import results_of
from jitlab.ops.reducing.axis_reductions import Sum
from jitlab.passes import PASSES, run_passes
from jitlab.passes.simplify import (
    compose_views,
    drop_what_does_nothing,
    fold_constants,
    forward_updates,
    merge_equal,
    read_whole_updates,
    reduce_strength,
    remove_dead,
    reshape_by_views,
)

N, M = Extent.symbol("n0", 4), Extent.symbol("m0", 3)


def built(program: Any, *types: ArrayType) -> Graph:
    """The graph of `program(*parameters)`; each node it makes is on a line of its own."""
    graph = Graph(program.__name__)
    lines = itertools.count(1)
    with graph.building(), positions(lambda: Source("<cell 1>", next(lines))):
        parameters = [graph.add(Parameter(t), name=name, sources=frozenset()) for t, name in zip(types, "xyz", strict=False)]
        results = program(*parameters)
    graph.outputs = [results] if isinstance(results, Node) else list(results)
    return verify(graph)


def exp(x: Node) -> Node:
    return elementwise(Exp(), x)


MATRIX = ArrayType((N, M), np.dtype("f8"))
VECTOR = ArrayType((N,), np.dtype("f8"))


def dead_ends(x):
    exp(x)
    return negative(x)


def equal_operations(x):
    left = multiply(exp(subtract(x, 1.0)), 2.0)
    return add(left, multiply(exp(subtract(x, 1.0)), 2.0))


def equal_outputs(x):
    return exp(x), exp(x), negative(exp(x))


def equal_arrays_of_which_one_changes(x):
    changed = write_index(exp(x), 0, 0.0)
    return add(changed, exp(x))


def equal_operations_of_two_marks(x):
    with jit_scope():
        a = exp(x)
    with jit_scope(False):
        b = exp(x)
    c = exp(x)
    return add(add(a, b), add(c, exp(x)))


def numbers(x):
    half = divide(constant(1.0), constant(2.0))
    return multiply(x, cast(cast(add(half, constant(3.0)), "f4"), "f8"))


def numbers_numpy_refuses(x):
    return add(x, elementwise(Cast(np.dtype("f8")), constant(3)))


def identities(x):
    y = divide(multiply(multiply(x, 1.0), 1.0), 1.0)
    return negative(negative(negative(subtract(y, 0.0))))


def not_identities(x):
    return add(subtract(x, -0.0), 0.0)  # each turns -0.0 into 0.0


def one_that_broadcasts(x):
    return exp(multiply(multiply(read_index(x, 0), fill((N,), 1.0, "f8")), fill((N,), 1.0, "f8")))


def casts_there_and_back(x):
    return cast(cast(cast(cast(x, "f4"), "f8"), "f4"), "f8")


def reshapes(x):
    y = apply(Reshape((M, N)), apply(Reshape((N * M,)), x))
    return add(apply(Reshape((M, 1, N)), y), apply(Reshape((1, M, N)), y))


def views_of_views(x):
    return add(
        transpose(read_index(transpose(x), slice(1, None))),
        read_index(read_index(x, slice(None, None, -1)), (slice(None), 0, None)),
    )


def transposes_that_cancel(x):
    return exp(transpose(transpose(x)))


def elements_just_written(x):
    y = write_index(x, slice(1, 3), exp(read_index(x, slice(0, 2))))
    return add(read_index(y, slice(1, 3)), read_index(y, slice(0, 2)))


def whole_arrays_assigned_through_views(x):
    flipped = write_index(zeros(x.shape, x.dtype), (slice(None), slice(None, None, -1)), x)
    transposed = apply(Update(((0, 1, 1), (0, 1, 0)), (M, N)), zeros(x.shape, x.dtype), transpose(x))
    squeezed = apply(Update(((0, 1, 0), (0, 1, 2)), (N, 1, M)), zeros(x.shape, x.dtype), expand_dims(x, (1,)))
    part = write_index(zeros(x.shape, x.dtype), (slice(None), slice(1, None)), read_index(x, (slice(None), slice(1, None))))
    changed = write_index(write_index(zeros(x.shape, x.dtype), slice(None, None, -1), x), 0, 7.0)
    return exp(flipped), exp(transposed), exp(squeezed), exp(part), exp(changed)


def nothing(x):
    y = apply(View(identity_map(2), x.shape), x)
    y = apply(Concatenate(0), apply(Reshape(x.shape), y))
    return exp(write_index(y, (slice(2, 2), slice(None)), 7.0))


def whole_array_assigned(x):
    y = write_index(zeros(x.shape, x.dtype), slice(None), exp(x))
    return negative(y), write_index(zeros(x.shape, x.dtype), slice(None), exp(x))


@pytest.mark.parametrize(
    ("one", "program", "type"),
    [
        (remove_dead, dead_ends, VECTOR),
        (merge_equal, equal_operations, VECTOR),
        (merge_equal, equal_outputs, VECTOR),
        (merge_equal, equal_arrays_of_which_one_changes, VECTOR),
        (merge_equal, equal_operations_of_two_marks, VECTOR),
        (fold_constants, numbers, VECTOR),
        (reduce_strength, identities, VECTOR),
        (reduce_strength, not_identities, VECTOR),
        (reduce_strength, one_that_broadcasts, VECTOR),
        (reduce_strength, casts_there_and_back, VECTOR),
        (reshape_by_views, reshapes, MATRIX),
        (compose_views, views_of_views, ArrayType((4, 4), np.dtype("f8"))),
        (compose_views, transposes_that_cancel, MATRIX),
        (forward_updates, elements_just_written, VECTOR),
        (read_whole_updates, whole_arrays_assigned_through_views, MATRIX),
        (drop_what_does_nothing, nothing, MATRIX),
        (drop_what_does_nothing, whole_array_assigned, VECTOR),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_pass(one, program, type, golden):
    before = built(program, type)
    after = verify(one(before))
    check_bits(before, after)
    if one is not remove_dead:
        assert lines(after) == lines(before)
    assert f"{inspect.getdoc(one)}\n\nbefore\n{before}\n\nafter\n{after}" == golden


def test_softmax_is_left_as_it_is():
    def softmax(x):
        e = exp(subtract(x, expand_dims(apply(Sum((1,)), x), (1,))))
        return divide(e, expand_dims(apply(Sum((1,)), e), (1,)))

    graph = built(softmax, MATRIX)
    assert run_passes(graph) is graph


def check_sample(op: Operation, arrays: list[Any]) -> bool:
    """The operation between a view and a cast that do nothing, through every pass."""
    graph = Graph("sample")
    lines_ = itertools.count(1)
    with graph.building(), positions(lambda: Source("<cell 1>", next(lines_))):
        xs = [graph.add(Parameter(ArrayType(np.shape(a), np.asarray(a).dtype)), sources=frozenset()) for a in arrays]
        result = apply(op, *(apply(View(identity_map(x.ndim), x.shape), x) for x in xs))
        results = results_of(result) if result.dtype == SEVERAL else [result]
        graph.outputs = [apply(Reshape((1, *y.shape)), apply(Cast(y.dtype), y)) for y in results]
    after = verify(run_passes(verify(graph)))
    assert lines(after) == lines(graph)
    with keeping_random_state(arguments=arrays):
        wanted = interpret(graph, arrays)
    with keeping_random_state(arguments=arrays):
        found = interpret(after, arrays)
    for want, got in zip(wanted, found, strict=True):
        assert want.dtype == got.dtype and want.tobytes() == got.tobytes(), f"{op} on {arrays}"
    return True


def operations(base: type[Operation] = Operation) -> list[type[Operation]]:
    return [c for kind in base.__subclasses__() for c in (kind, *operations(kind)) if c.__module__.startswith("jitlab.")]


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_every_operation_on_its_samples_keeps_every_bit_and_line():
    seen = 0
    for kind in operations():
        if not kind.is_family and not kind.is_parameter and kind.__module__ != "jitlab.ops.host_operations":
            seen += sum(check_sample(op, arrays) for op, *arrays in kind.samples())
    assert seen > 100


def test_the_graph_given_stays_as_it_is():
    graph = built(equal_operations, VECTOR)
    text = str(graph)
    assert str(run_passes(graph)) != text and str(graph) == text


def test_an_observer_sees_each_pass_with_its_time():
    seen = []
    graph = built(dead_ends, VECTOR)
    after = run_passes(graph, lambda name, before, after, start, time: seen.append((name, before, after, start, time)))
    assert [name for name, *_ in seen] == [one.__name__ for one in PASSES]
    assert seen[0][1] is graph and seen[-1][2] is after
    assert all(time >= 0 for *_, time in seen)


def test_numbers_that_numpy_refuses_to_compute_are_left_for_the_run():
    graph = built(lambda x: elementwise_power(x), ArrayType((), np.dtype("i8")))
    assert run_passes(graph).nodes[-1].op.name == "Pow"


def elementwise_power(x: Node) -> Node:
    from jitlab.ops.elementwise.arithmetic import Pow

    return apply(Pow(), constant(2), constant(-1))


def test_extents_that_only_agree_today_are_not_taken_for_equal():
    def program(x, y):
        ones = fill(x.shape, 1.0, "f8"), fill(y.shape, 1.0, "f8"), fill(x.shape, 1.0, "f8")
        return [exp(one) for one in ones]

    graph = built(program, VECTOR, ArrayType((Extent.symbol("m0", 4),), np.dtype("f8")))
    assert [str(node.type) for node in run_passes(graph).nodes if node.op.name == "Fill"] == ["f64[n0]", "f64[m0]"]


def check_bits(before: Graph, after: Graph) -> None:
    r = np.random.default_rng(0)
    arguments = []
    for node in before.parameters:
        x = r.integers(-4, 5, size=[int(n) for n in node.shape]) / 2  # zeros of both signs among them
        arguments.append(np.copysign(x, r.normal(size=x.shape)).astype(node.dtype)[()])
    kept = [np.copy(a) for a in arguments]
    for want, got in zip(interpret(before, arguments), interpret(after, arguments), strict=True):
        want, got = np.asarray(want), np.asarray(got)
        assert (want.dtype, want.shape) == (got.dtype, got.shape)
        assert want.tobytes() == got.tobytes() or np.array_equal(np.isnan(want), np.isnan(got)) and same_bits(want, got)
    for a, b in zip(arguments, kept, strict=True):
        np.testing.assert_array_equal(a, b)


def same_bits(want: np.ndarray, got: np.ndarray) -> bool:
    """Bit for bit, but any NaN for any NaN."""
    nan = np.isnan(want)
    return np.where(nan, 0, want).tobytes() == np.where(nan, 0, got).tobytes()


def lines(graph: Graph) -> set[int]:
    return {source.line for node in (*graph.parameters, *graph.nodes) for source in node.sources}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_programs_keep_every_bit_and_line(data):
    graph = built(lambda *xs: random_program(data.draw, list(xs)), MATRIX, VECTOR, ArrayType((), np.dtype("i4")))
    before = graph
    for one in PASSES:
        after = verify(one(before))
        if one is not remove_dead:
            assert lines(after) == lines(before)
        assert len({id(n) for n in after.outputs}) == len({id(n) for n in graph.outputs})
        before = after
    check_bits(graph, before)


def random_program(draw: Any, values: list[Node]) -> list[Node]:
    for _ in range(draw(st.integers(1, 12))):
        x, y = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        with draw(st.sampled_from([nullcontext(), nullcontext(), jit_scope(), jit_scope(False)])):
            values.append(random_operation(draw, x, y))
    return values[3:][-3:]


def random_operation(draw: Any, x: Node, y: Node) -> Node:
    number = constant(draw(st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.5])))
    kind = draw(
        st.sampled_from("add sub mul div neg cast transpose slice flip reshape expand squeeze write whole number".split())
    )
    match kind:
        case "add" | "sub" | "mul" | "div":
            function = {"add": add, "sub": subtract, "mul": multiply, "div": divide}[kind]
            try:
                return function(x, draw(st.sampled_from([y, number])))
            except ValueError:
                return function(x, number)
        case "neg":
            return negative(x)
        case "cast":
            return apply(Cast(np.dtype(draw(st.sampled_from(["f4", "f8", "i4", "i8"])))), x)
        case "transpose":
            return transpose(x, draw(st.permutations(range(x.ndim))))
        case "slice" if x.ndim:
            return read_index(x, slice(draw(st.integers(-2, 1)), None))
        case "flip" if x.ndim:
            return read_index(x, (Ellipsis, slice(None, None, -1)))
        case "reshape":
            shape = draw(st.sampled_from([(x.type.size,), x.shape, (1, *x.shape), (*x.shape[::-1],)]))
            return apply(Reshape(shape), x)
        case "expand":
            return expand_dims(x, (draw(st.integers(0, x.ndim)),))
        case "squeeze":
            return squeeze(x)
        case "write" if x.ndim and int(x.shape[0]) > 1:
            where = draw(st.sampled_from([0, slice(1, None), slice(None, None, 2), slice(1, 1), slice(None, None, -1)]))
            written = write_index(x, where, draw(st.sampled_from([1.5, 2])))
            return read_index(written, draw(st.sampled_from([where, slice(None)])))
        case "whole" if x.ndim:
            return write_index(zeros(x.shape, x.dtype), slice(None, None, draw(st.sampled_from([1, -1]))), x)
        case "number":
            return add(number, cast(constant(draw(st.integers(-3, 3))), "f8"))
    return broadcast_to(x, (2, *x.shape))
