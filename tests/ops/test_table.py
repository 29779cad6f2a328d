"""The table builds what NumPy computes: dtype, shape, values and errors of every entry."""


import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitlab.ir import ArrayType, Extent, Graph, interpret, poly
from jitlab.ir.graphs.verify import verify
from jitlab.ops import Elementwise, Generated, Reduction, Unsupported, table
from jitlab.ops.layout.indexing import basic_index
from jitlab.ops.leaf_operations import Parameter
from tests.numpy_target import emitter
from tests.ops import programs
from tests.ops.programs import F, Program, same

FAMILIES = {
    "elementwise functions": programs.elementwise_programs,
    "operators": programs.operator_programs,
    "reductions": programs.reduction_programs,
    "creation": programs.creation_programs,
    "joining": programs.joining_programs,
    "linear algebra": programs.linear_programs,
    "views": programs.view_programs,
    "indexing": programs.index_programs,
}


def outcome(program: Program) -> str:
    """Run one program both ways; "" when they agree, else what differs."""
    try:
        want, error = program.expected(), None
    except Exception as raised:
        want, error = None, raised
    try:
        graph, arrays = program.graph()
        got = interpret(verify(graph), arrays)
    except Unsupported:
        return "unsupported"
    except Exception as raised:
        if error is not None and isinstance(error, type(raised)):
            return ""
        return f"{program}: {type(raised).__name__}: {raised}; NumPy {error!r}"
    if error is not None:
        return f"{program}: no error, NumPy raises {error!r}"
    wanted = list(want) if isinstance(want, (list, tuple)) else [want]
    if len(wanted) != len(got):
        return f"{program}: {len(got)} results, NumPy has {len(wanted)}"
    try:
        for mine, theirs, node in zip(got, wanted, graph.outputs, strict=True):
            same(mine, theirs, program.exact)
            assert node.dtype == theirs.dtype if hasattr(theirs, "dtype") else True
    except AssertionError as wrong:
        return f"{program}: {wrong}"
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_the_table_computes_what_numpy_computes(family):
    found = [outcome(program) for program in FAMILIES[family]()]
    wrong = [text for text in found if text not in ("", "unsupported")]
    assert not wrong, f"{len(wrong)} of {len(found)} differ:\n" + "\n".join(wrong[:40])


CALLS = st.one_of(
    programs.elementwise_calls(), programs.reduction_calls(), programs.subscript_calls(), programs.product_calls()
)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(CALLS)
def test_any_call_computes_what_numpy_computes(program):
    assert outcome(program) in ("", "unsupported")


def build(make, *types):
    """The graph of `make(*parameters)`."""
    graph = Graph()
    nodes = [graph.add(Parameter(t), name=f"x{k}") for k, t in enumerate(types)]
    with graph.building():
        result = make(*nodes)
    graph.outputs = list(result) if isinstance(result, tuple) else [result]
    return verify(graph)


def f8(*shape):
    return ArrayType(shape, np.dtype("f8"))


def symbols(**sizes):
    return [Extent.symbol(name, value) for name, value in sizes.items()]


O, M = table.OPERATORS, table.METHODS  # noqa: E741


LEFT_TO_NUMPY = [
    (lambda x, mask, k: F[np.add](x, x, out=x), "out"),
    (lambda x, mask, k: F[np.add](x, x, x), "out"),
    (lambda x, mask, k: F[np.add](x, x, nonsense=1), "does not know"),
    (lambda x, mask, k: F[np.sum](x, nonsense=1), "does not know"),
    (lambda x, mask, k: F[np.zeros](k), "known only at run time"),
    (lambda x, mask, k: F[np.arange](k), "depends on the data"),
    (lambda x, mask, k: F[np.where](mask), "depends on the data"),
    (lambda x, mask, k: M["__getitem__"](x, mask), "depends on the data"),
    (lambda x, mask, k: M["__getitem__"](x, slice(k)), "known only at run time"),
    (lambda x, mask, k: F[np.repeat](x, k), "each element"),
    (lambda x, mask, k: F[np.add](x, np.longdouble(1)), "longdouble|float128"),
    (lambda x, mask, k: F[np.add](x, "text"), "class str"),
    (lambda x, mask, k: F[np.add](x, np.ma.masked_array([1.0, 2, 3])), "MaskedArray"),
    (lambda x, mask, k: M["astype"](x, object), "dtype object"),
    (lambda x, mask, k: O["__pow__"](k, k), "negative"),
    (lambda x, mask, k: F[np.concatenate](x), "sequence"),
    (lambda x, mask, k: F[np.linalg.eigvals](np.eye(3)), "real or complex numbers depends"),
    (lambda x, mask, k: F[max](x), "one array"),
    (lambda x, mask, k: F[max](k, 1.5), "the dtype of Python.s max or min"),
]


@pytest.mark.parametrize(("call", "words"), LEFT_TO_NUMPY)
def test_what_is_left_to_numpy_says_why_and_leaves_no_node(call, words):
    graph = Graph()
    types = f8(4, 3), ArrayType((4, 3), np.dtype(bool)), ArrayType((), np.dtype("i8"))
    inputs = [graph.add(Parameter(t), name=f"x{k}") for k, t in enumerate(types)]
    with graph.building(), pytest.raises(Unsupported, match=words) as caught:
        call(*inputs)
    assert caught.value.code in ("argument", "data_dependent", "dtype", "foreign_type")
    assert not graph.nodes


def test_a_call_that_fails_leaves_the_graph_as_it_was():
    graph = Graph()
    x, y = graph.add(Parameter(f8(4, 3)), name="x"), graph.add(Parameter(f8(2, 5)), name="y")
    with graph.building():
        for wrong in (
            lambda: F[np.var](x, axis=7),
            lambda: F[np.add](x, y),
            lambda: F[np.concatenate]([x, y]),
            lambda: F[np.stack]([x, y]),
            lambda: F[np.pad](x, -1),
            lambda: F[np.array]([[x, 1.0], [x]]),
            lambda: M["__getitem__"](x, (0, 0, 0)),
            lambda: O["__matmul__"](x, y),
        ):
            with pytest.raises((ValueError, IndexError)):
                wrong()
            assert not graph.nodes


def test_extents_keep_their_polynomials():
    n, m = symbols(n=6, m=4)
    x = f8(n, m)

    def shape(view):
        return [str(poly(extent)) for extent in view.shape]

    assert shape(basic_index(x, slice(None, -1))) == ["n-1", "m"]
    assert shape(basic_index(x, (slice(2, None), None, -1))) == ["n-2", "1"]
    assert str(poly(basic_index(x, -1).map[0][0])) == "n-1"
    assert shape(basic_index(x, (slice(1, 4), slice(None, None, -1)))) == ["3", "m"]
    assert str(poly(basic_index(x, (0, slice(None, None, -1))).map[1][0])) == "m-1"
    assert shape(basic_index(x, slice(1, n - 1))) == ["n-2", "m"]
    graph = build(
        lambda x: (
            F[np.concatenate]([x, x]),
            F[np.zeros]((x.shape[0] + 1, 2)),
            F[np.arange](x.shape[0]),
            F[np.arange](1, x.shape[1]),
            F[np.pad](x, 1),
            F[np.tile](x, (2, 1)),
            F[np.outer](x, x),
            F[np.linspace](0, 1, x.shape[0]),
            F[np.diff](x),
        ),
        x,
    )
    assert [str(node.type) for node in graph.outputs] == [
        "f64[2*n, m]",
        "f64[n+1, 2]",
        "i64[n]",
        "i64[m-1]",
        "f64[n+2, m+2]",
        "f64[2*n, m]",
        "f64[m*n, m*n]",
        "f64[n]",
        "f64[n, m-1]",
    ]
    (step,) = table.VIEW_METHODS["reshape"](x, -1, 2)
    assert step.shape == (12, 2) and step.shape[0] == 12
    (step,) = table.VIEW_METHODS["reshape"](x, -1)
    assert str(poly(step.shape[0])) == "m*n"
    (step,) = table.VIEW_METHODS["reshape"](f8(n, 4, m), (n, -1))
    assert str(poly(step.shape[1])) == "4*m"


def test_a_length_is_read_at_run_time_and_weak_beside_arrays():
    (n,) = symbols(n=6)
    graph = build(lambda x: (O["__truediv__"](x, x.shape[0]), F[np.array]([x.shape[0], 2])), ArrayType((n,), np.dtype("f4")))
    assert [str(node.type) for node in graph.outputs] == ["f32[n]", "i64[2]"]
    assert "Size(extent=n)" in str(graph)
    got = interpret(graph, [np.ones(6, "f4")])
    np.testing.assert_array_equal(got[1], [6, 2])


def test_scipys_functions_are_known_once_scipy_is_loaded():
    special = pytest.importorskip("scipy.special")
    x = np.linspace(-3, 3, 12).reshape(3, 4)
    for function, options in (
        (special.erf, {}),
        (special.expit, {}),
        (special.softmax, {"axis": 1}),
        (special.log_softmax, {"axis": -1}),
    ):
        graph = build(lambda x, f=function, o=options: table.FUNCTIONS[f](x, **o), f8(3, 4))
        np.testing.assert_allclose(interpret(graph, [x])[0], function(x, **options), rtol=1e-13)


def test_traced_positions_out_of_range_raise_numpys_error_when_run():
    graph = build(lambda x, i: M["__getitem__"](x, (slice(None), i)), f8(2, 3), ArrayType((2,), np.dtype("i8")))
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(interpret(graph, [x, np.array([-3, 2])])[0], x[:, [-3, 2]])
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 1 with size 3"):
        interpret(graph, [x, np.array([0, 3])])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ["elementwise functions", "operators", "reductions", "creation"])
def test_every_loop_body_that_the_table_reaches_computes_what_numpy_computes(family):
    seen, wrong = set(), []

    def check(node, value):
        op, types = node.op, tuple(source.type for source in node.inputs)
        key = (op, *((t.dtype, t.ndim, int(t.size) == 0) for t in types))
        if key in seen or not isinstance(op, (Elementwise, Generated, Reduction)) or op.why_not_compiled(*types):
            return
        seen.add(key)
        try:
            got = emitter.run(op, *(values[source] for source in node.inputs))
            if got is not None:
                same(got, value, op.exact and not any(t.dtype.kind == "c" for t in types))
        except (AssertionError, AttributeError, TypeError, ValueError) as error:
            wrong.append(f"{program}: {op} of {', '.join(map(str, types))}: {error!r}")

    for program in FAMILIES[family]():
        try:
            graph, arrays = program.graph()
        except (Unsupported, ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError):
            continue
        values = dict(zip(graph.parameters, arrays, strict=True))
        try:
            interpret(graph, arrays, values.__setitem__)
        except ValueError:
            continue
        for node in graph.nodes:
            check(node, values[node])
    assert not wrong, f"{len(wrong)} of {len(seen)}:\n" + "\n".join(wrong[:30])
