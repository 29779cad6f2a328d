"""`get_concrete_function`, calls of a ConcreteFunction, signatures as text."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import jitlab as jl
from jitlab import TensorSpec
from jitlab.errors import InvalidArgumentError

f32 = np.float32
Point = namedtuple("Point", "a b")


@jl.function
def scaled(x, n, *, k="a"):
    return {"r": x * n}


def test_one_object_for_each_type():
    f = jl.function(lambda x: abs(x))
    assert f.get_concrete_function(1) is not f.get_concrete_function(2)
    assert f.get_concrete_function(1) is f.get_concrete_function(1)
    assert f.get_concrete_function(np.array(1)) is f.get_concrete_function(np.array(2))
    assert f.get_concrete_function(TensorSpec([2], f32)) is f.get_concrete_function(np.ones(2, f32))
    assert f.experimental_get_tracing_count() == 4
    f(np.array(3)), f(1), f(np.ones(2, f32))
    assert f.experimental_get_tracing_count() == 4


def test_seed_003_a_trace_has_a_graph_and_vectors_share_none_with_matrices():
    f = jl.function(lambda x: x + 1)
    assert isinstance(f.get_concrete_function(1).graph, jl.Graph)
    vector, matrix = np.array([1.0, 1.0], f32), np.array([[3.0]], f32)
    assert f.get_concrete_function(vector) is not f.get_concrete_function(matrix)
    f = jl.function(lambda x: x + 1, input_signature=[TensorSpec(shape=None, dtype=f32)])
    assert f.get_concrete_function(vector) is f.get_concrete_function(matrix)
    assert f(vector).tolist() == [2, 2] and f(matrix).tolist() == [[4]]


def test_the_body_is_tried_without_effects_until_a_size_fits():
    runs = []

    @jl.function
    def f(x):
        runs.append(x.shape)
        return x[10] + x @ np.ones(x.shape[0])

    concrete = f.get_concrete_function(TensorSpec(None, np.float64))
    assert len(runs) == 1 and concrete(np.ones(20)) == 21


def test_an_error_for_every_size_is_the_users():
    with pytest.raises(ValueError, match="never") as error:

        @jl.function
        def f(x):
            raise ValueError("never")

        f.get_concrete_function(TensorSpec([None], f32))
    assert "in user code" in str(error.value)
    assert f.experimental_get_tracing_count() == 0


def test_called_by_structure():
    concrete = scaled.get_concrete_function(np.ones(1, f32), 2)
    for call in (
        lambda: concrete(np.array([3.0], f32)), lambda: concrete(np.array([3.0], f32), 2), lambda: concrete([3]),
        lambda: concrete(np.array([3.0])), lambda: concrete(x=np.array([3.0], f32), n=2, k="a"),
    ):  # fmt: skip
        result = call()
        assert result["r"].tolist() == [6] and result["r"].dtype == f32


def test_called_flat():
    f = jl.function(lambda a, pair: a + pair["x"] * pair["y"])
    concrete = f.get_concrete_function(TensorSpec([], f32), {"x": TensorSpec([], f32), "y": TensorSpec([], f32, name="why")})
    assert concrete(f32(1), f32(2), f32(3)) == 7
    assert concrete(a=f32(1), pair=f32(2), why=f32(3)) == 7
    other = jl.function(lambda xs: xs[0] - xs[1]).get_concrete_function([np.ones(1), np.ones(1)])
    assert other(xs=np.full(1, 5.0), xs_1=np.full(1, 2.0)).tolist() == [3]


@pytest.mark.parametrize(
    "args, kwargs, error, texts",
    [
        ((np.ones(1, f32), 3), {}, TypeError, ["Can not cast 3 to Literal[2]", "Fallback to flat signature also failed"]),
        ((), {}, TypeError, ["missing a required argument: 'x'", "Fallback to flat signature also failed"]),
        ((np.ones(1, f32),), {"z": 1}, TypeError, ["'z'", "Fallback to flat signature also failed"]),
        ((np.ones(1, np.int32),), {}, InvalidArgumentError, ["was expected to be a float tensor but is a int32 tensor"]),
        ((np.ones(3, f32),), {}, InvalidArgumentError, ["was expected to have shape (1,) but has shape (3,)"]),
    ],
)
def test_what_fits_neither_way(args, kwargs, error, texts):
    concrete = scaled.get_concrete_function(np.ones(1, f32), 2)
    with pytest.raises(error) as found:
        concrete(*args, **kwargs)
    assert all(text in str(found.value) for text in texts)


def test_attributes():
    weights, v = np.ones(3), jl.Variable(np.full(3, 2.0))
    f = jl.function(lambda x, k, point: (x @ weights * k + point.a, v + x), experimental_implements=None)
    concrete = f.get_concrete_function(np.ones((2, 3)), 2, Point(np.float64(1), 5))
    assert isinstance(concrete.graph, jl.Graph)
    assert [tuple(map(int, n.shape)) for n in concrete.inputs] == [(2, 3), (), (3,), (3,)]
    assert [tuple(map(int, n.shape)) for n in concrete.outputs] == [(2,), (2, 3)]
    assert concrete.captured_inputs[0] is weights and concrete.captured_inputs[1] is v
    assert concrete.variables == concrete.trainable_variables == (v,)
    assert concrete.structured_input_signature == (
        (TensorSpec((2, 3), np.float64, "x"), 2, Point(TensorSpec((), np.float64, "point"), 5)), {},
    )  # fmt: skip
    assert concrete.structured_outputs == (TensorSpec((2,), np.float64), TensorSpec((2, 3), np.float64))
    assert concrete.name.startswith("__inference__lambda__")
    assert scaled.get_concrete_function(np.ones(1, f32), 2).name.split("_")[-2] == "scaled"


def test_sizes_that_are_open_are_open_in_the_results():
    f = jl.function(lambda x, y: (x, x @ y, x.sum(0), x.reshape(-1)))
    concrete = f.get_concrete_function(TensorSpec([None, 3], f32), TensorSpec([3, 4], f32))
    assert [spec.shape.dims for spec in concrete.structured_outputs] == [(None, 3), (None, 4), (3,), (None,)]
    rank = jl.function(lambda x: (x + 1, x.sum())).get_concrete_function(TensorSpec(None, f32))
    assert [spec.shape.dims for spec in rank.structured_outputs] == [None, ()]


def test_inside_another_function():
    seen = []

    @jl.function
    def f(x, n):
        seen.append(n)
        return x * n

    concrete = f.get_concrete_function(TensorSpec([None], f32), 3)
    assert jl.function(lambda x: concrete(x) + 1)(np.ones(2, f32)).tolist() == [4, 4]
    assert seen == [3]


def test_verbose_and_short():
    f = jl.function(lambda x, n, *, k: {"r": x * n})
    f(np.ones(1, f32), 2, k="a")
    f([np.ones(2), (True, None)], 2.5, k=[1]) if False else None
    f(np.ones((2, 2)), 2, k="a")
    first, second = f.pretty_printed_concrete_signatures(verbose=False).split("\n")
    assert first == (
        "(x: TensorSpec(shape=(1,), dtype=float32, name=None), n: Literal[2], *, k: Literal['a']) -> "
        "Dict[['r', TensorSpec(shape=(1,), dtype=float32, name=None)]]"
    )
    assert second.startswith("(x: TensorSpec(shape=(2, 2), dtype=float64, name=None)")
    assert f.pretty_printed_concrete_signatures().split("\n\n")[0] == (
        "Input Parameters:\n"
        "  x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(1,), dtype=float32, name=None)\n"
        "  n (POSITIONAL_OR_KEYWORD): Literal[2]\n"
        "  k (KEYWORD_ONLY): Literal['a']\n"
        "Output Type:\n"
        "  Dict[['r', TensorSpec(shape=(1,), dtype=float32, name=None)]]\n"
        "Captures:\n"
        "  None"
    )


def test_containers_and_captures():
    table = np.ones(2, f32)
    f = jl.function(lambda xs, *rest: (xs[0] + table, None))
    f([np.ones(2, f32), 1], (True, "s"))
    text = f.pretty_printed_concrete_signatures()
    assert "xs (POSITIONAL_OR_KEYWORD): List[TensorSpec(shape=(2,), dtype=float32, name=None), Literal[1]]" in text
    assert "rest (VAR_POSITIONAL): Tuple[Tuple[Literal[True], Literal['s']]]" in text
    assert "Tuple[TensorSpec(shape=(2,), dtype=float32, name=None), Literal[None]]" in text
    assert f"Captures:\n  {id(table)}: TensorSpec(shape=(2,), dtype=float32, name=None)" in text


def test_concrete_functions_count_no_calls(caplog):
    f = jl.function(lambda x: x)
    for n in range(9):
        f.get_concrete_function(n)
    assert not caplog.records
