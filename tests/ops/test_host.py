"""Host operations call what the program called, with arrays where arrays were."""

import numpy as np

import jitlab as jl
from jitlab.ir import ArrayType, Graph, interpret
from jitlab.ir.graphs.verify import verify
from jitlab.messages import Message
from jitlab.ops.host_operations import HostCall, Input, Item
from jitlab.ops.leaf_operations import Parameter

F8, I8 = np.dtype("f8"), np.dtype("i8")


def host(function, args, types, **options):
    return HostCall(function, args, options, types, "no_loop_body", Message("stays.no_body", {"name": function.__name__}))


def test_arrays_fill_their_places_inside_lists_dicts_and_slices():
    def call(first, pair, *, table):
        return first[pair[1]] + table["x"][0]

    op = host(call, (Input(0), [1, slice(None, Input(2))]), (ArrayType((2,), F8),), table={"x": (Input(1),)})
    x = np.arange(5.0)
    np.testing.assert_array_equal(op.numpy(x, 10.0, 2), [10.0, 11.0])


def test_a_host_operation_is_named_after_its_function_and_keeps_its_reason():
    op = host(np.argpartition, (Input(0), 1), (ArrayType((3,), I8),))
    assert (op.name, str(op)) == ("Argpartition", "Argpartition")
    assert str(op.why_not_compiled()) == "jitlab has no compiled code for argpartition"
    assert not op.has_effects
    named = HostCall(np.sort, (), {}, (), "effect", Message("stays.prints"), label="random_normal", effects=True)
    assert named.name == "RandomNormal" and named.has_effects


def test_several_results_are_read_as_items():
    graph = Graph()
    x = graph.add(Parameter(ArrayType((4,), F8)), name="x")
    types = (ArrayType((3,), F8), ArrayType((3,), I8))
    several = graph.add(host(np.unique, (Input(0),), types, return_counts=True), x)
    graph.outputs = [graph.add(Item(k, t), several) for k, t in enumerate(types)]
    values, counts = interpret(verify(graph), [np.array([3.0, 1.0, 3.0, 2.0])])
    np.testing.assert_array_equal(values, [1, 2, 3])
    np.testing.assert_array_equal(counts, [1, 1, 2])


def test_a_long_long_is_a_dtype_of_its_own():
    """As wide as an int64 and equal to it, but another number and letter, which programs can see."""
    programs = (
        lambda x: x.astype(np.longlong), lambda x: np.zeros(3, np.ulonglong), lambda x: np.array([1, 2], np.longlong),
        lambda x: np.zeros_like(x, dtype="q") + x, lambda x: x.sum(dtype="Q"), lambda x: np.add(x, 1, dtype="q"),
        lambda x: np.asarray(x, np.longlong), lambda x: np.arange(3, dtype="q"),
    )  # fmt: skip
    for program in programs:
        for transform in (jl.jit, jl.function):
            x = np.arange(3)
            want, got = program(x), transform(program)(x)
            assert got.dtype.char == want.dtype.char
            np.testing.assert_array_equal(got, want)
