"""jit_scope: the contract's marks, numbers, forms and errors."""

import contextlib

import numpy as np
import pytest

import jitlab as jl
import jitlab.errors
from jitlab.cluster import jit_scope
from jitlab.ir import ArrayType, Graph, Node
from jitlab.ops.build_nodes import apply, constant
from jitlab.ops.elementwise.math_functions import Exp
from jitlab.ops.leaf_operations import Parameter
from tests.cell_runs import run_cell

EAGER = "jl.jit_scope is not supported when eager execution is enabled. Try use it inside jl.function."


@pytest.fixture
def graph():
    graph = Graph("f")
    with graph.building():
        graph.add(Parameter(ArrayType((3,), np.dtype("f8"))), name="x")
        yield graph


def exp(graph: Graph) -> Node:
    return apply(Exp(), graph.parameters[0])


def scopes(*nodes: Node) -> list[str | None]:
    return [node.attrs.get("_XlaScope") for node in nodes]


def compiles(*nodes: Node) -> list[bool | None]:
    return [node.attrs.get("_XlaCompile") for node in nodes]


def test_operations_outside_every_scope_have_no_attributes(graph):
    assert exp(graph).attrs == {}


def test_operations_inside_get_all_three_attributes(graph):
    with jit_scope() as nothing:
        y = exp(graph)
    assert nothing is None
    assert y.attrs == {"_XlaCompile": True, "_XlaSeparateCompiledGradients": False, "_XlaScope": "jit_scope_0"}


def test_constants_made_inside_get_them_too(graph):
    with jit_scope():
        assert compiles(constant(2.0)) == [True]


def test_numbers_count_the_outermost_entries(graph):
    with jit_scope():
        a = exp(graph)
    with jit_scope():
        with jit_scope():
            with jit_scope():
                b = exp(graph)
        c = exp(graph)
    with jit_scope(compile_ops=False):
        d = exp(graph)
    assert scopes(a, b, c, d) == ["jit_scope_0", "jit_scope_1", "jit_scope_1", "jit_scope_2"]


def test_a_fresh_graph_starts_again_at_0(graph):
    with jit_scope():
        pass
    other = Graph("g")
    with other.building():
        with jit_scope():
            assert scopes(constant(1.0)) == ["jit_scope_0"]
    with jit_scope():
        assert scopes(exp(graph)) == ["jit_scope_1"]


def test_an_inner_scope_decides_inside_and_is_undone_outside(graph):
    with jit_scope(False):
        a = exp(graph)
        with jit_scope(True, separate_compiled_gradients=True):
            b = exp(graph)
        c = exp(graph)
    assert compiles(a, b, c) == [False, True, False]
    assert [n.attrs["_XlaSeparateCompiledGradients"] for n in (a, b, c)] == [False, True, False]


def test_a_callable_is_asked_once_for_each_operation_before_its_attributes_are_set(graph):
    asked = []

    def choose(node_def):
        asked.append((node_def.op, node_def.name, node_def.input, node_def.device, "_XlaScope" in node_def.attr))
        return node_def.op == "Exp"

    with jit_scope(compile_ops=choose):
        y, two = exp(graph), constant(2.0)
    assert asked == [("Exp", "exp", ("x",), "", False), ("Const", two.name, (), "", False)]
    assert compiles(y, two) == [True, False]


def test_a_callable_must_answer_with_a_bool(graph):
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"), jit_scope(compile_ops=lambda node_def: "yes"):
        exp(graph)


@pytest.mark.parametrize(("form", "means"), [(1, True), (0, False), (np.True_, True), (np.int64(0), False)])
def test_integers_stand_for_bools(graph, form, means):
    with jit_scope(form):
        assert compiles(exp(graph)) == [means]


@pytest.mark.parametrize("form", ["yes", None, 1.0])
def test_other_forms_are_refused_at_entry(graph, form):
    scope = jit_scope(form)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"), scope:
        raise AssertionError("the block must not run")
    assert graph.scopes == [] and graph.scope_count == 0


def test_everything_is_restored_after_an_exception(graph):
    with pytest.raises(KeyError), jit_scope():
        with jit_scope(False):
            raise KeyError
    assert exp(graph).attrs == {}
    with jit_scope():
        assert scopes(exp(graph)) == ["jit_scope_1"]


def test_as_a_decorator_each_call_is_a_new_scope(graph):
    @jit_scope()
    def f():
        return exp(graph)

    assert scopes(f(), f()) == ["jit_scope_0", "jit_scope_1"]


def test_eager_entry_says_the_contracts_words_and_what_to_do():
    scope = jit_scope()  # making one is allowed
    with pytest.raises(RuntimeError) as caught, scope:
        raise AssertionError("the block must not run")
    lines = str(caught.value).splitlines()
    assert lines[0] == EAGER
    assert "@jl.function" in lines[-1] and "%%jit" in lines[-1]
    assert isinstance(caught.value, jitlab.errors.JitlabError)


def test_strict_is_the_graphs_business(graph):
    assert not graph.marked_only
    with jit_scope(strict=True):
        pass
    with jit_scope():
        pass
    assert graph.marked_only


@jl.function
def tripled(x):
    return x * 3


@jl.function
def marked_inside(x):
    with jl.jit_scope():
        return np.exp(x)


def marks(operations):
    """Which attributes a scope has put on operations, by their type."""
    found = {}
    for op in operations:
        found.setdefault(op.type, []).append([name for name in op.node_def.attr if name.startswith("_Xla")])
    return found


def test_a_called_functions_own_operations_carry_no_marks_of_the_scope_around_the_call():
    @jl.function
    def f(x):
        with jl.jit_scope():
            y = tripled(x) + 1
        return tripled(y) - marked_inside(y)

    x = np.ones(3)
    operations = f.get_concrete_function(x).graph.get_operations()
    found = marks(operations)
    assert all(not names for names in found["Mul"]) and not any(found["Sub"])
    three = ["_XlaCompile", "_XlaScope", "_XlaSeparateCompiledGradients"]
    assert [sorted(names) for names in (*found["AddV2"], *found["Exp"])] == [three, three]
    for op in operations:
        if op.type == "Mul":
            with pytest.raises(ValueError, match="[Nn]o attr named"):
                op.get_attr("_XlaCompile")
    np.testing.assert_allclose(f(x), 3 * 4 - np.exp(4 * x))


def test_what_is_called_inside_a_scope_compiles_with_it():
    @jl.function(jit_compile=False)
    def f(x):
        with jl.jit_scope():
            y = tripled(x) + 1
        return y * 2

    with jl.record() as recording:
        f(np.ones(3))
    ops = {op.name: op.cluster is not None for op in recording.report().ops}
    assert list(ops.values()) == [True, True, False]


def test_the_bodies_of_branches_and_loops_carry_no_marks():
    @jl.function
    def f(x):
        with jl.jit_scope():
            if x.sum() > 0:
                y = x * 2
            else:
                y = np.sin(x)
            while y.sum() < 100:
                y = y * 2 + tripled(y)
        return y

    graph = f.get_concrete_function(np.ones(3)).graph
    control = [node for node in graph.nodes if hasattr(node.op, "graphs")]
    assert len(control) == 2 and all(node.attrs["_XlaScope"] == "jit_scope_0" for node in control)
    inner = [node for made in control for body in made.op.graphs for node in body.nodes]
    assert inner and not any(key.startswith("_Xla") for node in inner for key in node.attrs)


# ---- what a compiled function or a cell leaves to Python


def scaled(x):
    with jl.jit_scope():
        return x * 2 + 1


def scaled_unless_it_raises(x):
    try:
        return scaled(x)
    except ValueError:
        return x


def scaled_after_a_print(x):
    y = scaled(x)
    print(f"{y[0]}", end="")
    names = {int(y[0]): scaled(y)}
    return scaled(names[int(y[0])])


def scaled_by_elements(x):
    return np.array([float(scaled(v)) if v > 0 else 0.0 for v in x.tolist()])


@pytest.mark.parametrize("program", [scaled_unless_it_raises, scaled_after_a_print, scaled_by_elements])
@pytest.mark.parametrize("compiled", [jl.jit, jl.jit(capture_mode="trace"), jl.function])
def test_a_scope_in_a_called_function_that_runs_as_python_marks_nothing(compiled, program, monkeypatch, capsys):
    x = np.arange(1.0, 4)
    with monkeypatch.context() as plain:
        plain.setattr(jl, "jit_scope", contextlib.nullcontext)
        want = program(x)
    found = compiled(program)
    for _ in range(3):
        try:
            np.testing.assert_array_equal(found(x), want)
        except jl.errors.CaptureError:  # jl.function may refuse a program; it does not do so for the scope
            assert compiled is jl.function
    with pytest.raises(RuntimeError, match="eager execution"):
        scaled(x)  # as before, outside


def test_a_scope_in_a_function_that_a_cell_calls_as_python_marks_nothing():
    names = {"scaled": scaled, "x": np.arange(3.0), "jl": jl}
    run_cell("try:\n    y = scaled(x)\nexcept ValueError:\n    y = x\nz = [scaled(v) for v in x.tolist()]", names, "<cell>")
    assert names["y"].tolist() == names["z"] == [1, 3, 5]
