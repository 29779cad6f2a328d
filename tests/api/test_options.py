"""The retrace warning, hints, options and old names, jit_compile, eager runs."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest

import jitlab as jl
from jitlab import TensorSpec
from jitlab.compat import tensorflow as tf
from jitlab.errors import BindingError, InvalidArgumentError, UnexpectedOptionError


def warnings_of(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "jitlab" and r.levelno == logging.WARNING]


def calls_warned(caplog, function, arguments):
    found = []
    for n, x in enumerate(arguments, 1):
        before = len(warnings_of(caplog))
        function(x)
        if len(warnings_of(caplog)) > before:
            found.append((n, " ".join(warnings_of(caplog)[-1].split()[:8])))
    return found


def test_a_trace_at_each_call(caplog):
    assert calls_warned(caplog, jl.function(lambda x: x), range(20)) == [
        (5, "4 out of the last 5 calls to"), (6, "5 out of the last 6 calls to"),
    ]  # fmt: skip
    assert "triggered retracing. `x` was 3 and is now 4" in warnings_of(caplog)[0]


def test_a_warning_has_no_time_so_a_notebook_that_runs_again_is_the_same(caplog):
    X = np.ones(5)
    f = jl.function(lambda x, lr: np.tanh(x) * lr)
    for i in range(8):
        f(X, 0.1 * i)
    for text in warnings_of(caplog):
        assert "Pass `lr` as an array: " in text and " traces become 1. " in text
        assert not re.search(r"\d[\d.,]*\s?(ns|µs|ms|s|min)\b", text)
    assert len(warnings_of(caplog)) == 2 and " ms" in str(f.ledger)  # it says what they cost


def test_a_trace_at_each_third_call(caplog):
    assert calls_warned(caplog, jl.function(lambda x: x), [n // 3 for n in range(40)]) == [
        (13, "4 out of the last 13 calls to"), (16, "5 out of the last 13 calls to"),
    ]  # fmt: skip


def test_a_trace_now_and_then_is_no_reason_to_warn(caplog):
    assert calls_warned(caplog, jl.function(lambda x: x), [n // 5 for n in range(60)]) == []


def test_a_function_made_in_a_loop_is_seen(caplog):
    def body(x):
        return x

    for _ in range(8):
        jl.function(body)(np.ones(1))
    assert len(warnings_of(caplog)) == 2


def test_concrete_functions_and_inner_calls_do_not_count(caplog):
    f = jl.function(lambda x: x)
    for n in range(8):
        f.get_concrete_function(n)()
    inner = jl.function(lambda x: x)
    outer = jl.function(lambda x: [inner(n) for n in range(8)])
    outer(np.ones(1))
    assert not warnings_of(caplog)


def test_calls_that_c_answers_count(caplog, compiled):
    f = jl.function(lambda x: x + 1)
    for n in range(2, 9):
        f(np.ones(n))
        for _ in range(20):
            f(np.ones(2))
    assert not warnings_of(caplog)


def test_hinted_arguments_become_arrays():
    @jl.function(experimental_follow_type_hints=True)
    def hinted(x: jl.Tensor):
        return x

    @jl.function
    def plain(x: jl.Tensor):
        return x

    assert [hinted(1), hinted(2)] == [1, 2] == [plain(1), plain(2)]
    assert (hinted.experimental_get_tracing_count(), plain.experimental_get_tracing_count()) == (1, 2)


def test_only_exact_hints_of_given_arguments():
    @jl.function(experimental_follow_type_hints=True)
    def f(x: jl.Tensor, y: jl.Tensor | None = None, *rest: jl.Tensor, k: jl.Tensor = 3, **more: jl.Tensor):
        return x * k

    f(1), f(2)
    assert f.experimental_get_tracing_count() == 1
    f(1, 5), f(1, 6)
    assert f.experimental_get_tracing_count() == 3
    f(1, 5, 7), f(1, 5, 8)
    assert f.experimental_get_tracing_count() == 4
    assert f(1, k=4) == 4 and f(1, k=5) == 5
    f(1, z=1), f(1, z=2)
    assert f.experimental_get_tracing_count() == 6


def test_old_names(caplog):
    f = jl.function(lambda x: x, experimental_relax_shapes=True)
    f(np.ones(1)), f(np.ones(2)), f(np.ones(3))
    assert f.experimental_get_tracing_count() == 2
    assert jl.function(lambda x: x, experimental_compile=True).options.jit_compile is True
    assert len(warnings_of(caplog)) == 2 and all("deprecated" in text for text in warnings_of(caplog))
    with pytest.raises(ValueError, match="Cannot specify both 'experimental_compile' and 'jit_compile'."):
        jl.function(lambda x: x, experimental_compile=True, jit_compile=True)


def test_implements():
    f = jl.function(lambda x: x * 2, experimental_implements="mine")
    assert f(1) == 2 and f(2) == 4 and f.experimental_get_tracing_count() == 1
    assert f(jl.Variable(3)) == 6
    assert f.get_concrete_function(1).function_def.attr["_implements"].s == b"mine"


def test_attributes():
    f = jl.function(lambda x: x, experimental_attributes={"_noinline": True})
    assert f.get_concrete_function(1).function_def.attr["_noinline"].b is True
    with pytest.raises(ValueError, match="is not supported by tf.function as an attribute"):
        jl.function(lambda x: x, experimental_attributes={"made_up": 1})


def test_the_decorator():
    def f(x):
        """Says so."""
        return x

    for decorated in (jl.function(f), jl.function()(f), jl.function(autograph=False)(f)):
        assert (decorated.__name__, decorated.__doc__) == ("f", "Says so.")
        assert decorated.__wrapped__ is decorated.python_function is f
    with pytest.raises(UnexpectedOptionError, match="unexpected keyword argument 'jit_compil'") as error:
        jl.function(f, jit_compil=True)
    assert "did you mean jit_compile?" in str(error.value)
    with pytest.raises(TypeError):
        jl.function(nothing_like_it=1)
    with pytest.raises(UnexpectedOptionError) as error:
        jl.function(fullgraph=True)
    assert str(error.value).split("\n")[0].endswith("'fullgraph': it belongs to jl.jit.")
    assert "try: jit_compile=True" in str(error.value) and "why:" not in str(error.value)


def test_arguments_that_do_not_fit_are_told_with_those_that_are_taken():
    long = np.ones(1000)

    @jl.function
    def f(x, k=long, *, q=0.5, **rest):
        return x

    with pytest.raises(BindingError) as error:
        f(1, 2, 3)
    assert str(error.value).endswith("\n  try: pass what it takes: (x, k=…, *, q=…, **rest)")
    with pytest.raises(BindingError, match=r"try: pass what it takes: \(a, \*more, last\)"):
        jl.function(lambda a, *more, last: a)(1)
    concrete = jl.function(lambda x: x).get_concrete_function(jl.TensorSpec([2]))
    with pytest.raises(BindingError, match="try: pass these, or call the function itself"):
        concrete(1, 2, 3)


def test_what_cannot_be_compiled():
    @jl.function(jit_compile=True)
    def bad(x):
        return np.flatnonzero(x)

    @jl.function
    def good(x):
        return x + 1

    @jl.function
    def outer(x):
        return bad(good(x))

    line = bad.python_function.__code__.co_firstlineno + 2
    for call in (bad, outer):
        with pytest.raises(InvalidArgumentError) as error:
            call(np.ones(3))
        text = str(error.value)
        assert "Detected unsupported operations when trying to compile graph bad[_XlaMustCompile=true]: flatnonzero" in text
        assert f"line {line}" in text and "np.flatnonzero(x)" in text
    with pytest.raises(InvalidArgumentError, match="PrintV2"):
        jl.function(lambda x: jl.print_(x), jit_compile=True)(np.ones(1))
    assert jl.function(bad.python_function, jit_compile=False)(np.ones(3)).tolist() == [0, 1, 2]


def test_an_unmarked_function_inside():
    inner = jl.function(lambda x: np.flatnonzero(x))
    with pytest.raises(InvalidArgumentError, match="Detected unsupported operations"):
        jl.function(lambda x: inner(x), jit_compile=True)(np.ones(3))


def test_compiler_ir(compiled):
    f = jl.function(lambda x, y: np.tanh(x) + y, jit_compile=True)
    ir = f.experimental_get_compiler_ir(np.ones(3), np.ones(3))
    assert "Tanh" in ir("hlo") and ir("hlo_serialized") == ir().encode()
    assert "tanh" in ir("optimized_hlo").lower() and ir("optimized_hlo_serialized") == ir("optimized_hlo").encode()
    assert ir("optimized_hlo_dot").startswith("digraph")
    specs = f.experimental_get_compiler_ir(TensorSpec([None], np.float64), TensorSpec([None], np.float64))
    assert "Tanh" in specs()
    with pytest.raises(ValueError, match="optimized_hlo_dot"):
        ir("other")
    with pytest.raises(ValueError, match="not both"):
        f.experimental_get_compiler_ir(np.ones(3), TensorSpec([3], np.float64))
    with pytest.raises(ValueError, match="Compiler IR can only be returned for functions marked with 'jit_compile=True'"):
        jl.function(lambda x: x).experimental_get_compiler_ir(1)


def test_eager_runs(compiled):
    seen = []

    @jl.function
    def f(x):
        seen.append(type(x))
        return x * 2

    for _ in range(8):
        f(np.ones(2))
    assert len(seen) == 1
    jl.run_functions_eagerly(True)
    try:
        assert jl.functions_run_eagerly()
        assert f(np.ones(2)).tolist() == [2, 2] and f("a") == "aa"
    finally:
        jl.run_functions_eagerly(False)
    assert seen[1:] == [np.ndarray, str] and f.experimental_get_tracing_count() == 1
    f(np.ones(2))
    assert len(seen) == 3


def test_the_warning_names_the_function_without_its_address(caplog):
    scale = jl.function(lambda x, k: x * k)
    for k in range(12):
        scale(np.ones(3), k)
    assert "calls to <lambda> triggered retracing" in caplog.text and "0x" not in caplog.text


def test_under_tensorflow_s_names_the_warning_has_its_words(caplog):
    scale = tf.function(lambda x, k: x * k)
    for k in range(12):
        scale(np.ones(3), k)
    assert len(warnings_of(caplog)) == 2 and "0x" not in caplog.text
    assert "<lambda>> triggered tf.function retracing. `k` was 3 and is now 4" in warnings_of(caplog)[0]
