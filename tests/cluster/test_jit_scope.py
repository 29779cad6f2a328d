"""jit_scope: the contract's marks, numbers, forms and errors (semantics §1)."""

import numpy as np
import pytest

import jitlab.errors
from jitlab.cluster import jit_scope
from jitlab.ir import ArrayType, Graph, Node
from jitlab.ops.build import apply, constant
from jitlab.ops.functions import Exp
from jitlab.ops.sources import Parameter

EAGER = "xla.experimental.jit_scope is not supported when eager execution is enabled. Try use it inside tf.function."


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
