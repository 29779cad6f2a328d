"""Results and what is refused, effects in program order, exceptions with the user's lines."""

from __future__ import annotations

import sys
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import jitlab as jl
from jitlab.errors import AutoGraphError, CaptureError, OperatorNotAllowedInGraphError, OutOfScopeError, StagingError

Point = namedtuple("Point", "a b")


def test_results_keep_their_form():
    def f(x):
        return {"l": [x, None], "t": (x + 1, 2, 3.5, True), "p": Point(x, 1), "s": "text", "o": OrderedDict(x=x)}

    result = jl.function(f)(np.array(1.0))
    assert result["l"][1] is None and result["s"] == "text"
    assert type(result["p"]) is Point and type(result["o"]) is OrderedDict
    assert result["t"] == (2.0, 2, 3.5, True)
    assert [type(v) for v in result["t"]] == [np.float64, np.int64, np.float64, np.bool_]


def test_a_variable_is_given_back_as_its_value():
    v = jl.Variable([1.0, 2.0])
    result = jl.function(lambda: v)()
    assert type(result) is np.ndarray and result.tolist() == [1, 2]


def test_other_objects_are_no_results():
    with pytest.raises(TypeError, match="must return zero or more Tensors"):
        jl.function(lambda x: object())(np.ones(1))


@pytest.mark.parametrize("change", [lambda xs, d: xs.append(jl.TensorSpec([1])), lambda xs, d: d.update(k=object())])
def test_arguments_are_not_modified_by_what_a_run_does_not_make(change):
    with pytest.raises(ValueError, match="should not modify its Python input arguments"):
        jl.function(lambda xs, d: change(xs, d))([np.ones(1)], {"a": np.ones(1)})


def test_a_tensor_of_a_finished_trace(compiled):
    kept = []

    @jl.function
    def leak(x):
        kept.append(x + 1)
        return x

    leak(np.ones(2))
    leak(np.zeros(2))
    assert len(kept) == 1
    with pytest.raises(TypeError, match="is out of scope and cannot be used here"):
        kept[0] + 1
    with pytest.raises(OutOfScopeError):
        jl.function(lambda x: x + kept[0])(np.ones(2))


def test_a_symbolic_value_is_no_python_bool():
    @jl.function(autograph=False)
    def f(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(OperatorNotAllowedInGraphError, match="Using a symbolic `jl.Tensor` as a Python `bool` is not allowed"):
        f(np.ones(2))
    with pytest.raises(AttributeError):
        jl.function(lambda x: x.numpy())(np.ones(2))


def test_effects_run_in_program_order_each_once_at_each_call(capsys):
    v = jl.Variable(0.0)

    @jl.function
    def f():
        jl.print_("a", v)
        v.assign(1.0)
        jl.print_("b", v)
        y = v.read_value()
        v.assign_add(10.0)
        jl.print_("c", v)
        return y

    assert f() == 1 and v.numpy() == 11
    assert capsys.readouterr().err == "a 0\nb 1\nc 11\n"
    v.assign(0.0)
    assert f() == 1
    assert capsys.readouterr().err == "a 0\nb 1\nc 11\n"


def test_print_in_loops_and_of_structures(capsys):
    @jl.function
    def f(x):
        for i in range(3):
            jl.print_(i, x[i], [x[0], {"k": (1, "s")}], sep="|", end=";", output_stream=sys.stdout)

    f(np.arange(3.0))
    f(np.arange(3.0) * 2)
    assert capsys.readouterr().out == "".join(f"{i}|{i * k}|[0, {{'k': (1, 's')}}];" for k in (1, 2) for i in range(3))


@pytest.mark.parametrize(
    "value, text",
    [
        (np.arange(10), "[0 1 2 ... 7 8 9]"), (np.array([[1.0, 2.5], [3.0, 4.0]]), "[[1 2.5]\n [3 4]]"),
        (np.float32(0.1), "0.1"), (np.array([True, False]), "[1 0]"), (np.float64(1e-9), "1e-09"), (np.inf, "inf"),
        (1j * np.ones(1), "[(0,1)]"),
    ],
)  # fmt: skip
def test_print_shows_numbers_short(capsys, value, text):
    jl.print_(value)
    assert capsys.readouterr().err == text + "\n"


def test_python_prints_at_trace_only(capsys):
    @jl.function
    def f(a, b):
        print("this runs at trace time; a is", a, "and b is", b)
        return b

    one, two = np.array(1, np.int32), np.array(2, np.int32)
    assert [f(1, one), f(1, two), f(2, one), f(2, two)] == [1, 2, 1, 2]
    text = 'this runs at trace time; a is {} and b is Tensor("b:0", shape=(), dtype=int32)\n'
    assert capsys.readouterr().out == text.format(1) + text.format(2)


class OneText(Exception):
    pass


class Two(Exception):
    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


def failing(error):
    def helper(x):
        raise error

    def f(x):
        return helper(x)

    return f, helper


@pytest.mark.parametrize(
    "error",
    [AttributeError("text"), NameError("text"), NotImplementedError("text"), RuntimeError("text"), TypeError("text"),
     ValueError("text"), IndexError("text"), ZeroDivisionError("text"), OneText("text"), KeyError("text")],
    ids=lambda e: type(e).__name__,
)  # fmt: skip
def test_exceptions_keep_their_type_and_get_the_lines(error):
    f, helper = failing(error)
    with pytest.raises(type(error)) as found:
        jl.function(f)(np.ones(1))
    first, second = f.__code__.co_firstlineno + 1, helper.__code__.co_firstlineno + 1
    assert type(found.value).__name__ == type(error).__name__
    assert str(found.value) == (
        f'in user code:\n\n    File "{__file__}", line {first}, in f  *\n        return helper(x)\n'
        f'    File "{__file__}", line {second}, in helper  *\n        raise error\n\n'
        f"    {type(error).__name__}: text\n"
    )


def test_other_constructors_become_a_staging_error():
    f, _ = failing(Two("text", 7))
    with pytest.raises(StagingError, match="in user code") as found:
        jl.function(f)(np.ones(1))
    assert isinstance(found.value, AutoGraphError) and isinstance(found.value, Two) and found.value.code == 7
    assert "Two: text" in str(found.value)


def test_the_first_frame_that_is_not_converted():
    f = jl.function(lambda x: sorted([2, 1], key=no_source))
    with pytest.raises(ValueError, match="in user code") as found:
        f(np.ones(1))
    assert "in no_source  **" in str(found.value)


namespace: dict = {}
exec(compile("def no_source(x):\n    raise ValueError('no')\n", "/nowhere/to/be/found.py", "exec"), namespace)
no_source = namespace["no_source"]


def test_without_autograph_the_error_passes():
    f, _ = failing(ValueError("text"))
    with pytest.raises(ValueError, match="^text$"):
        jl.function(f, autograph=False)(np.ones(1))


def test_system_errors_keep_their_number():
    f, _ = failing(FileNotFoundError(2, "No such file", "name"))
    with pytest.raises(FileNotFoundError, match="in user code") as found:
        jl.function(f)(np.ones(1))
    assert found.value.errno == 2 and found.value.filename == "name"


@pytest.mark.parametrize(
    "of",
    [
        lambda a: np.nonzero(a)[0],
        lambda a: np.unique(a) * 1,
        lambda a: a[a < 1],
        lambda a: np.cumsum(a[a < 1]).sum(),
        lambda a: np.random.permutation(a).sum() * 1,
    ],
    ids=["nonzero", "unique", "a mask", "a sum over a mask", "a draw"],
)
def test_what_numpy_runs_in_a_branch_on_traced_values_is_refused_or_python_s(of):
    def program(a):
        if a.sum() > 0:
            found = a * 2
        else:
            found = of(a)
        return found

    for a in (np.ones(3), -np.ones(3)):
        with pytest.raises(CaptureError, match="NumPy runs this"):
            jl.function(program)(a)
        np.testing.assert_array_equal(jl.jit(program)(a), program(a))


REFUSING = ["np.unique(x)", "np.setdiff1d(x, x[:1])", "np.unique(x * 2)[::-1]", "np.union1d(x[:2], np.unique(x))"]


@pytest.mark.parametrize("what", REFUSING)
def test_what_happened_before_a_run_is_refused_happens_once(what, capsys, compiled):
    """The result of an operation has another length than at capture: Python runs the call from its first line."""
    space = {"np": np, "jl": jl}
    lines = [
        "v, w = jl.Variable(np.zeros(3)), jl.Variable(np.zeros(()))",
        "def f(x):",
        "    v.assign_add(x[:3])",
        "    jl.print_('first', x.sum())",
        f"    y = {what}",
        "    jl.print_('then', y.sum())",
        "    w.assign_add(1.0)",
        "    return y.sum() + w.read_value()",
    ]
    exec("\n".join(lines), space)
    f, v, w = jl.function(space["f"]), space["v"], space["w"]
    total = np.zeros(3)
    for number, x in enumerate([[1.0, 2, 3, 4], [1.0, 2, 3, 5], [2.0, 2, 0, 2], [1.0, 1, 1, 1], [4.0, 3, 2, 1]], 1):
        x = np.array(x)
        y = eval(what, {"np": np, "x": x})
        total += x[:3]
        assert f(x) == y.sum() + number
        np.testing.assert_array_equal(v.numpy(), total)
        assert w.numpy() == number
        told = capsys.readouterr()
        assert (told.out + told.err).splitlines() == [f"first {x.sum():g}", f"then {y.sum():g}"]


def test_an_error_after_what_may_be_refused_leaves_what_was_told_before_it(capsys, compiled):
    @jl.function
    def f(x, a):
        jl.print_("first", x.sum())
        y = np.unique(x)
        jl.print_("then", y.sum())
        return np.linalg.inv(a) + y.sum()

    x = np.arange(3.0)
    f(x, np.eye(2))
    capsys.readouterr()
    with pytest.raises(np.linalg.LinAlgError):
        f(x, np.zeros((2, 2)))
    told = capsys.readouterr()
    assert (told.out + told.err).splitlines() == ["first 3", "then 3"]
