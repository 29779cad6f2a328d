"""What steers conversion: functions left as they are, options of loops, TensorArray, missing source."""

import warnings

import numpy as np
import pytest
from same import assert_same
from test_control_flow import as_numpy

import jitlab as jl
from jitlab.autograph import Feature, TensorArray, do_not_convert, set_loop_options


def x20():
    return np.arange(20.0) - 5


def test_a_tensor_array_grows_with_a_loop(op_by_op):
    """The TensorArray of the seed gives [2, 3, 4]."""

    @jl.function
    def f(x):
        ta = TensorArray(dtype=np.int32, size=0, dynamic_size=True)
        for i in range(len(x)):
            ta = ta.write(i, x[i] + 1)
        return ta.stack()

    assert_same(f(np.array([1, 2, 3], np.int32)), np.array([2, 3, 4], np.int32))
    assert_same(f(np.arange(30, dtype=np.int32)), np.arange(30, dtype=np.int32) + 1)


def test_a_tensor_array_is_carried_by_a_staged_loop(op_by_op):
    def f(x):
        ta = TensorArray(np.float64, size=20)
        for i, v in enumerate(x):
            ta = ta.write(i, v * 2)
        return ta.stack(), ta.read(3), ta.gather([2, 0]), ta.size()

    assert as_numpy(f, x20()).count("While") == 1


def test_a_tensor_array_in_eager_code():
    ta = TensorArray(np.float32, size=2, dynamic_size=True).write(0, 1.0).write(2, 3.0)
    assert_same(ta.stack(), np.array([1, 0, 3], np.float32))
    assert_same(ta.unstack(np.eye(2, dtype=np.float32)).concat(), np.eye(2, dtype=np.float32).reshape(-1))
    assert_same(ta.scatter([1, 0], np.array([5.0, 6.0])).gather([0, 1]), np.array([6, 5], np.float32))
    assert ta.identity() is ta and ta.size() == 3
    with pytest.raises(IndexError, match="does not grow"):
        TensorArray(np.float32, size=1).write(1, 0.0)


@pytest.mark.parametrize("way", [lambda f: f, jl.jit, jl.function], ids=["plain", "jit", "function"])
@pytest.mark.parametrize(
    ("options", "given", "wanted"),
    [
        ({}, "concat", "no elements is concatenated"),
        ({"element_shape": (None, 3)}, "concat", (0, 3)),
        ({"element_shape": (2, 3)}, "concat", (0, 3)),
        ({"element_shape": (2, None)}, "concat", "leaves a size open"),
        ({"element_shape": (2,)}, "concat", (0,)),
        ({"element_shape": ()}, "concat", "scalars of a TensorArray"),
        ({"size": 2, "element_shape": ()}, "concat", "scalars of a TensorArray"),
        ({"size": 2, "element_shape": (2,)}, "concat", (4,)),
        ({"size": 2}, "concat", "read before it is written"),
        ({"size": 2, "element_shape": (None,)}, "stack", "read before it is written"),
        ({}, "stack", (0,)),
        ({"element_shape": (2, 3)}, "stack", (0, 2, 3)),
        ({"element_shape": (2, None)}, "stack", "leaves a size open"),
    ],
)
def test_a_tensor_array_without_elements_has_the_shape_it_was_given_or_an_error_that_says_so(options, given, wanted, way):
    def f(x):
        return getattr(TensorArray(np.float32, **options), given)()

    if isinstance(wanted, tuple):
        result = way(f)(np.ones(2))
        assert result.shape == wanted and result.dtype == np.float32 and not result.any()
    else:
        with pytest.raises(ValueError, match=wanted) as caught:
            way(f)(np.ones(2))
        assert "  try: " in str(caught.value)


def test_scalars_of_a_tensor_array_that_a_loop_carries_are_not_concatenated():
    @jl.function
    def f(x):
        ta = TensorArray(np.float64, size=20)
        for i in range(len(x)):
            ta = ta.write(i, x[i])
        return ta.concat()

    with pytest.raises(ValueError, match="scalars of a TensorArray"):
        f(np.arange(20.0))


def test_a_shape_that_changes_is_an_error_until_the_loop_says_that_it_may(op_by_op):
    """`shape_invariants`."""

    @jl.function
    def strict(x):
        while x.sum() < 100:
            x = np.concatenate([x, x])
        return x

    @jl.function
    def loose(x):
        while x.sum() < 100:
            set_loop_options(shape_invariants=[(x, None)])
            x = np.concatenate([x, x])
        return x

    with pytest.raises(ValueError, match=r"'x' has shape \(1,\) before the loop, but shape \(2,\) after one iteration"):
        strict(np.ones(1))
    assert loose(np.ones(1)).shape == (128,)


def test_the_number_of_iterations_can_be_bounded(op_by_op):
    @jl.function
    def f(x):
        while x.sum() > 0:
            set_loop_options(maximum_iterations=3)
            x = x - 1
        return x

    assert f(np.float64(100)) == 97 and f(np.float64(2)) == 0


def test_what_is_not_to_be_converted_stays_pythons(op_by_op):
    """Recursion into called functions, not into these."""

    @do_not_convert
    def helper(x):
        return x if x > 0 else -x

    with pytest.raises(jl.errors.BranchOnTracedArrayError):
        jl.function(lambda x: helper(x))(np.float64(3))


def test_a_function_without_source_is_told_of_once(op_by_op):
    """Missing source."""
    names: dict = {}
    exec("def helper(x):\n    return x * 2", names)
    helper = names["helper"]
    with pytest.warns(UserWarning, match="AutoGraph could not transform helper .* and will run it as-is"):
        assert jl.function(lambda x: helper(x) + 1)(np.float64(3)) == 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jl.function(lambda x: helper(x) - 1)(np.float64(3)) == 5


def test_features_have_the_contracts_names():
    assert {feature.name for feature in Feature} == {
        "ALL", "AUTO_CONTROL_DEPS", "ASSERT_STATEMENTS", "BUILTIN_FUNCTIONS", "EQUALITY_OPERATORS", "LISTS", "NAME_SCOPES"
    }  # fmt: skip
