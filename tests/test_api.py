"""`jl.function`: traces by signature, retraces with their cause, methods, threads."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.errors import InvalidArgumentError

f32 = np.float32


@pytest.fixture(autouse=True)
def _op_by_op(monkeypatch):
    from jitlab.api import tracing
    from jitlab.capture.cells import interpreted

    monkeypatch.setattr(tracing, "compile_trace", lambda trace, options: interpreted(trace))


def traced_events(function, *calls):
    """The Traced event of each call that was traced."""
    heard = []
    with events.listen(heard.append):
        for call in calls:
            args, kwargs = call if isinstance(call, tuple) and len(call) == 2 and isinstance(call[1], dict) else (call, {})
            function(*args, **kwargs)
    return [e for e in heard if isinstance(e, events.Traced)]


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


def test_one_trace_for_each_way_to_pass_the_same():
    @jl.function
    def f(x, k=2, *rest, flag=False, **options):
        return x * k

    x = np.ones(2)
    f(x), f(x, 2), f(k=2, x=x), f(x, flag=False)
    assert f.experimental_get_tracing_count() == 1
    f(x, a=1, b=2), f(x, b=2, a=1)
    assert f.experimental_get_tracing_count() == 2
    f(x, 2, 1), f(x, 2, 1, 1)
    assert f.experimental_get_tracing_count() == 4


def test_python_values_are_told_apart_by_type_and_sign():
    @jl.function
    def f(x, k):
        return x * k

    x = np.ones(2)
    values = [1, 1.0, True, 0.0, -0.0, float("nan"), "a", b"a", None, 1j, (1,), [1], 2**70]
    for value in values:
        try:
            f(x, value)
        except TypeError:
            pass
    made = f.experimental_get_tracing_count()
    for value in [1, 1.0, True, 0.0, -0.0, float("nan"), 1j, 2**70]:
        f(x, value)
    assert f.experimental_get_tracing_count() == made
    assert np.copysign(1, f(x, -0.0))[0] == -1 and np.copysign(1, f(x, 0.0))[0] == 1


def test_numpy_scalars_are_tensors():
    f = jl.function(lambda x, k: x * k)
    for k in (1, 2, 3):
        assert f(np.ones(2, f32), f32(k)).tolist() == [k, k]
    assert f.experimental_get_tracing_count() == 1
    assert f(np.ones(2, f32), np.float64(2)).dtype == np.float64
    assert f.experimental_get_tracing_count() == 2


Point = namedtuple("Point", "a b")


def test_structures_in_the_key():
    f = jl.function(lambda tree: None)
    one, two = np.ones(2), np.zeros(2)
    for tree in ([one, two], [two, one], (one, two), Point(one, two), {"a": one, "b": two}, {"b": one, "a": two},
                 OrderedDict(a=one, b=two), [one, [two]]):  # fmt: skip
        f(tree)
    assert f.experimental_get_tracing_count() == 6


def test_objects_are_told_apart_by_identity_or_equality():
    class Config:
        def __init__(self, k):
            self.k = k

    class Equal(Config):
        def __eq__(self, other):
            return type(other) is Equal and self.k == other.k

        def __hash__(self):
            return hash(self.k)

    f = jl.function(lambda x, c: x * c.k)
    x, c = np.ones(1), Config(2)
    f(x, c), f(x, c)
    assert f.experimental_get_tracing_count() == 1
    assert f(x, Config(3))[0] == 3 and f.experimental_get_tracing_count() == 2
    one, other = Equal(1), Equal(1)
    f(x, one), f(x, other)
    assert f.experimental_get_tracing_count() == 3
    with pytest.raises(TypeError, match="Could not generate a generic TraceType"):
        f(x, {1, 2, 3})


def test_first_call():
    (event,) = traced_events(jl.function(lambda x: x * 2), (np.ones(3),))
    assert event.causes == ("first_call",) and event.operations == 1 and event.duration_ns > 0 and event.trace == 1


@pytest.mark.parametrize(
    "before, after, cause, path, texts, fix",
    [
        ((np.ones((128, 10), f32), 0.1), (np.ones((64, 10), f32), 0.1), "shape", "x", ("float32[128, 10]", "float32[64, 10]"),
         ""),
        ((np.ones(3, f32), 0.1), (np.ones(3), 0.1), "dtype", "x", ("float32[3]", "float64[3]"), "x = x.astype(np.float32)"),
        ((np.ones(3), 0.1), (np.ones((3, 1)), 0.1), "rank", "x", ("float64[3]", "float64[3, 1]"), ""),
        ((np.ones(3, f32), 0.1), (np.ones(3, f32), 0.095), "python_value", "lr", ("0.1", "0.095"),
         "lr = np.asarray(lr, np.float32)"),
        ((np.ones(3), 2), (np.ones(3), 3), "python_value", "lr", ("2", "3"), "lr = np.asarray(lr, np.float64)"),
        ((np.ones(3), f32(2)), (np.ones(3), 2.0), "argument_type", "lr", ("float32", "2.0"), "lr = np.asarray(lr, np.float32)"),
        ((np.ones(3), 2), (np.ones(3), 2.0), "argument_type", "lr", ("2", "2.0"),
         "lr = np.asarray(lr, np.float64)"),
        ((np.ones(3), "a"), (np.ones(3), "b"), "python_value", "lr", ("'a'", "'b'"), ""),
    ],
)  # fmt: skip
def test_cause_of_a_retrace(before, after, cause, path, texts, fix):
    @jl.function
    def step(x, lr):
        y = x + 1
        return y * lr if not isinstance(lr, str) else y

    first, second = traced_events(step, before, after)
    assert second.causes[0] == cause and second.argument == path and second.trace == 2
    assert (second.before, second.after) == texts and second.fix == fix
    line = {"x": 3, "lr": 2 if not isinstance(before[1], np.generic) else 4}[path]
    assert second.lines[0][1] == step.python_function.__code__.co_firstlineno + line - 1


def test_cause_names_the_leaf():
    f = jl.function(lambda params, opts: params[0] * opts["lr"])
    one = np.ones(2, f32)
    calls = [
        (([one, one], {"lr": 0.1}), {}), (([one, np.ones(3, f32)], {"lr": 0.1}), {}), (([one, one], {"lr": 0.2}), {}),
        (([one], {"lr": 0.1}), {}), (([one, one], {"lr": 0.1, "m": 1}), {}),
    ]  # fmt: skip
    found = traced_events(f, *calls)
    assert [(e.causes[0], e.argument) for e in found] == [
        ("first_call", ""), ("shape", "params[1]"), ("python_value", 'opts["lr"]'), ("structure", "params"),
        ("structure", "opts"),
    ]  # fmt: skip
    assert found[2].fix == 'opts["lr"] = np.asarray(opts["lr"], np.float32)'


def test_the_nearest_trace_is_compared_with():
    f = jl.function(lambda x, k: x * k)
    calls = [(np.ones(2), 1), (np.ones((2, 2)), 5), (np.ones((2, 3)), 5), (np.ones(2), 5)]
    found = traced_events(f, *calls)
    assert [(e.causes, e.argument) for e in found[1:]] == [
        (("rank", "python_value"), "x"), (("shape",), "x"), (("python_value",), "k"),
    ]  # fmt: skip
    assert found[3].before == "1"


def test_aliasing_and_layout_are_causes():
    x = np.ones((2, 3))
    f = jl.function(lambda a, b: a + b)
    found = traced_events(f, (x, x.copy()), (x, x), (x.copy(), x))
    assert [e.causes[0] for e in found] == ["first_call", "aliasing"]

    @jl.function
    def g(a):
        a.reshape(-1)[0] = 1
        return a

    found = traced_events(g, (x,), (np.asfortranarray(x),))
    assert [(e.causes[0], e.argument) for e in found] == [("first_call", ""), ("layout", "a")]
    assert found[1].fix == "a = np.ascontiguousarray(a)"


def test_calls_are_told_only_when_somebody_listens():
    f = jl.function(lambda x: x * 2)
    f(np.ones(2))
    heard = []
    with events.listen(heard.append):
        f(np.ones(2))
    (called,) = heard
    assert isinstance(called, events.FunctionCalled) and called.trace == 1 and called.duration_ns > 0


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


def test_binding_errors():
    f = jl.function(lambda x, y=1: x)
    for args, kwargs, text in [((), {}, "missing a required argument: 'x'"), ((1, 2, 3), {}, "too many positional arguments"),
                               ((1,), {"z": 1}, "got an unexpected keyword argument 'z'")]:  # fmt: skip
        with pytest.raises(TypeError, match="Binding inputs to tf.function failed due to") as error:
            f(*args, **kwargs)
        assert text in str(error.value)


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


class Model:
    def __init__(self, k):
        self.k = k
        self.w = np.full(2, float(k))

    @jl.function
    def scale(self, x):
        return x * self.k + self.w

    @staticmethod
    @jl.function
    def double(x):
        return x * 2


def test_methods_have_traces_for_each_instance():
    one, two, x = Model(1), Model(2), np.ones(2)
    assert one.scale is one.scale and one.scale is not two.scale
    assert one.scale(x).tolist() == [2, 2] and two.scale(x).tolist() == [4, 4]
    one.w[:] = 10  # contents are read at each call
    one.k = 100  # a Python value is part of the trace
    assert one.scale(x).tolist() == [11, 11]
    assert one.scale.experimental_get_tracing_count() == 1
    assert Model.scale(two, x).tolist() == [4, 4]
    assert Model.double(x).tolist() == [2, 2] == one.double(x).tolist()
    assert isinstance(Model.scale, jl.Function)


def test_instances_are_held_weakly():
    model = Model(1)
    model.scale(np.ones(2))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_arguments_are_not_kept_alive():
    f = jl.function(lambda x: x * 2)
    x = np.ones(1000)
    f(x)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_inner_functions_are_recorded_in_the_outer_one():
    @jl.function
    def inner(x):
        return np.tanh(x)

    @jl.function
    def outer(x):
        return inner(x) + inner(x * 2)

    assert np.allclose(outer(np.ones(2)), np.tanh(1) + np.tanh(2))
    assert (outer.experimental_get_tracing_count(), inner.experimental_get_tracing_count()) == (1, 1)


def test_threads_share_one_trace():
    def body(x):
        time.sleep(0.02)
        return x * 2

    f = jl.function(body)
    results, errors = [], []

    def work():
        try:
            results.append(f(np.ones(3)).sum())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [6.0] * 8 and not errors and f.experimental_get_tracing_count() == 1


def test_traces_in_other_threads_do_not_see_this_capture():
    outcome = []

    def body(x):
        thread = threading.Thread(target=lambda: outcome.append(np.ones(2) + 1))
        thread.start()
        thread.join()
        return x

    jl.function(body)(np.ones(2))
    assert isinstance(outcome[0], np.ndarray)


def test_oldest_traces_are_forgotten(monkeypatch):
    monkeypatch.setattr(jl.config, "max_traces", 2)
    f = jl.function(lambda x, k: x * k)
    x = np.ones(1)
    f(x, 1), f(x, 2), f(x, 1), f(x, 3)
    assert f.experimental_get_tracing_count() == 3
    f(x, 1)
    assert f.experimental_get_tracing_count() == 3
    f(x, 2)
    assert f.experimental_get_tracing_count() == 4


def test_exported_names():
    assert {"Function", "function", "config", "errors"} <= set(jl.__all__)
    for name in jl.__all__:
        assert hasattr(jl, name)
