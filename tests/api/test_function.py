"""`jl.function`: forms of the decorator, foreign arguments, functions inside functions."""

from __future__ import annotations

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.errors import InvalidArgumentError


def test_decorator_forms():
    @jl.function
    def plain(x):
        """Doubles."""
        return x * 2

    @jl.function(jit_compile=True)
    def with_options(x):
        return x * 2

    assert plain.__name__ == "plain" and plain.__doc__ == "Doubles." and plain.__wrapped__ is plain.python_function
    assert with_options.options.jit_compile is True
    for f in (plain, with_options, jl.function(lambda x: x * 2), jl.function()(lambda x: x * 2)):
        assert f(np.ones(2)).tolist() == [2, 2]
    with pytest.raises(TypeError, match="is not a callable object"):
        jl.function(3)


def test_foreign_arguments_run_as_python():
    f = jl.function(lambda x: x * 2)
    heard = []
    with events.listen(heard.append):
        assert type(f(np.ma.masked_array([1, 2], [0, 1]))) is np.ma.MaskedArray
        assert f(np.array([1, 2], ">i4")).tolist() == [2, 4]
        assert f(np.array([object.__name__, "b"], object)).tolist() == ["objectobject", "bb"]
    ran = [e for e in heard if isinstance(e, events.StatementRan)]
    assert [e.reason for e in ran] == ["foreign_type"] * 3 and "numpy.ma.MaskedArray" in ran[0].text
    assert f.experimental_get_tracing_count() == 0
    with pytest.raises(InvalidArgumentError, match="cannot be compiled for these arguments"):
        jl.function(lambda x: x * 2, jit_compile=True)(np.ma.masked_array([1, 2], [0, 1]))


def test_failed_traces_are_not_kept():
    state = {"fail": True}

    def body(x):
        if state["fail"]:
            raise RuntimeError("not now")
        return x * 2

    f = jl.function(body)
    with pytest.raises(RuntimeError, match="not now"):
        f(np.ones(2))
    assert f.experimental_get_tracing_count() == 0
    state["fail"] = False
    assert f(np.ones(2))[0] == 2


def test_inner_functions_are_recorded_in_the_outer_one():
    @jl.function
    def inner(x):
        return np.tanh(x)

    @jl.function
    def outer(x):
        return inner(x) + inner(x * 2)

    assert np.allclose(outer(np.ones(2)), np.tanh(1) + np.tanh(2))
    assert (outer.experimental_get_tracing_count(), inner.experimental_get_tracing_count()) == (1, 1)


def test_exported_names():
    assert {"Function", "function", "config", "errors"} <= set(jl.__all__)
    for name in jl.__all__:
        assert hasattr(jl, name)
