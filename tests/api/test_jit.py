"""`jit`: NumPy programs with Python's own meaning, recorded and compiled."""

import dataclasses
import gc
import types
import warnings
import weakref
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import jitlab as jl
from jitlab import errors, events

x = np.linspace(0.5, 2.5, 5)
SCALE = 2.0
TABLE = {"w": np.arange(5.0), "k": 3}


def traces(function, *calls):
    """How many traces these calls make, after the results were compared with plain Python's."""
    for arguments in calls:
        expected = function.python_function(*arguments)
        found = function(*arguments)
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12 if found.dtype == np.float64 else 1e-6)
    return function.experimental_get_tracing_count()


# ---- what is a trace


def test_arrays_count_by_type_and_floats_not_at_all():
    f = jl.jit(lambda x, rate: np.tanh(x) * rate)
    assert traces(f, (x, 1.5), (x * 2, 2.5), (x, np.float64(3.0)), (x, 4.5)) == 2
    assert traces(f, (x.astype(np.float32), 1.5), (x[:3], 1.5)) == 4


def test_whether_an_array_that_is_only_read_may_be_written_makes_no_trace():
    def smooth(a):
        b = np.empty_like(a)
        b[0] = a[0]
        for i in range(1, a.shape[0]):
            b[i] = 0.5 * b[i - 1] + 0.5 * a[i]
        return b

    locked = np.arange(20.0)
    locked.flags.writeable = False
    for order in ((locked, np.arange(20.0)), (np.arange(20.0), locked)):
        assert traces(jl.jit(smooth), *((a,) for a in order)) == 1


def test_python_integers_strings_and_bools_are_constants():
    f = jl.jit(lambda x, n, name, flag: x * n + len(name) if flag else x)
    assert traces(f, (x, 2, "ab", True), (x, 2, "ab", True), (x, 3, "ab", True), (x, 3, "a", True), (x, 3, "a", False)) == 4


def test_one_integer_and_true_and_one_point_are_told_apart():
    f = jl.jit(lambda x, n: x + n)
    assert traces(f, (np.arange(3), 1), (np.arange(3), True), (np.arange(3), 1.0)) == 3


def test_a_float_keeps_numpys_weak_promotion():
    f = jl.jit(lambda x, rate: x * rate)
    assert f(np.ones(3, np.float32), 2.5).dtype == np.float32
    assert f(np.ones(3, np.int32), 2.5).dtype == np.float64


# ---- results

Pair = namedtuple("Pair", "left right")


def test_results_are_what_python_gives():
    def program(x, rate, name):
        return {"a": x * rate, "b": [rate * 2, name, None, 3], "c": Pair(x.sum(), (1, True)), "d": name.upper()}

    expected, found = program(x, 1.5, "n"), jl.jit(program)(x, 1.5, "n")
    assert list(found) == list(expected)
    np.testing.assert_array_equal(found["a"], expected["a"])
    assert found["b"] == expected["b"] and type(found["b"][0]) is float
    assert type(found["c"]) is Pair and type(found["c"].left) is np.float64 and found["c"].right == (1, True)
    assert found["d"] == "N"


def test_an_argument_that_is_returned_is_that_object():
    parts = [x, x + 1]
    f = jl.jit(lambda x, parts: (x, parts, x[1:], parts[1]))
    for _ in range(2):
        same, again, view, part = f(x, parts)
        assert same is x and again is parts and part is parts[1]
        assert np.shares_memory(view, x)


def test_nothing_is_given_back_twice():
    f = jl.jit(lambda x: x * 2)
    first = f(x)
    kept = first.copy()
    f(x + 1)
    np.testing.assert_array_equal(first, kept)


# ---- writes into arguments


def test_writes_into_arguments_are_seen_by_the_caller():
    def program(a, parts):
        a[1:] += a[:-1]
        parts["w"][...] = a.sum()
        return a

    for run in (program, jl.jit(program), jl.jit(fullgraph=True)(program)):
        a, parts = x.copy(), {"w": np.zeros(2)}
        assert run(a, parts) is a
        np.testing.assert_allclose(a, [0.5, 1.5, 2.5, 3.5, 4.5])
        np.testing.assert_allclose(parts["w"], 12.5)


def test_overlapping_arguments_are_python_s():
    def program(a, b):
        a[...] = b * 2
        return a.sum() + b.sum()

    f = jl.jit(program)
    f(np.ones(4), np.ones(4))
    for run in (program, f):
        base = np.arange(5.0)
        found = run(base[1:], base[:-1])
        assert found == 18.0
        np.testing.assert_array_equal(base, [0, 0, 2, 4, 6])


def test_a_read_only_argument_raises_numpys_error():
    def program(a):
        a[0] = 1
        return a

    a = np.ones(3)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        jl.jit(program)(a)


# ---- what is read from outside


def test_a_global_array_is_read_again_and_may_be_another():
    namespace = {"jl": jl, "w": np.arange(5.0)}
    f = _defined("def f(x):\n    return x * w", namespace)
    jitted = jl.jit(f)
    np.testing.assert_array_equal(jitted(x), x * namespace["w"])
    namespace["w"][0] = 7.0
    np.testing.assert_array_equal(jitted(x), x * namespace["w"])
    namespace["w"] = np.ones(5)
    np.testing.assert_array_equal(jitted(x), x)
    assert jitted.experimental_get_tracing_count() == 1


def test_another_type_behind_a_global_is_a_retrace_with_that_cause():
    namespace = {"w": np.arange(5.0)}
    jitted = jl.jit(_defined("def f(x):\n    return x * w", namespace))
    heard = []
    jitted(x)
    namespace["w"] = np.arange(5, dtype=np.float32)
    with events.listen(lambda event: heard.append(event) if event.kind == "traced" else None):
        np.testing.assert_array_equal(jitted(x), x * namespace["w"])
    assert [(event.causes[0], event.argument) for event in heard] == [("global", "w")]


def test_a_global_number_is_a_parameter():
    namespace = {"rate": 1.5}
    jitted = jl.jit(_defined("def f(x):\n    return x * rate", namespace))
    for rate in (1.5, 2.5, 3.5):
        namespace["rate"] = rate
        np.testing.assert_array_equal(jitted(x), x * rate)
    assert jitted.experimental_get_tracing_count() == 1


def test_a_closure_is_read_at_each_call():
    w = np.ones(5)
    f = jl.jit(lambda x: x * w)
    np.testing.assert_array_equal(f(x), x)
    w = np.full(5, 3.0)
    np.testing.assert_array_equal(f(x), x * 3)
    w = 4
    np.testing.assert_array_equal(f(x), x * 4)
    assert f.experimental_get_tracing_count() == 2


def test_attributes_and_items_are_read_at_each_call():
    class Model:
        def __init__(self):
            self.w, self.layers = np.ones(5), [np.ones(5), 2.0]

        @property
        def half(self):
            return self.w / 2

        @jl.jit
        def forward(self, x):
            return x * self.w + self.layers[0] * self.layers[1] + self.half

    model = Model()
    for change in ("", "model.w = np.arange(5.0)", "model.layers[1] = 5.0", "model.layers[0][2] = -1"):
        exec(change)
        expected = x * model.w + model.layers[0] * model.layers[1] + model.w / 2
        np.testing.assert_allclose(model.forward(x), expected)
    assert Model.forward.experimental_get_tracing_count() == 1


def test_an_instance_is_not_kept_alive():
    class Model:
        def __init__(self):
            self.w = np.ones(5)

        @jl.jit
        def forward(self, x):
            return x * self.w

    model = Model()
    model.forward(x)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_arrays_are_not_kept_alive():
    f = jl.jit(lambda x, parts: x + parts["w"] * 2)
    array = np.ones(5)
    gone = weakref.ref(array)
    f(x, {"w": array})
    del array
    gc.collect()
    assert gone() is None


def _defined(text, namespace):
    """A function defined by text, with source that can be read."""
    import linecache

    name = f"<defined {len(linecache.cache)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


# ---- Python in between


def test_print_happens_on_every_call(capsys):
    @jl.jit
    def f(x):
        y = x * 2
        print("sum", y.sum())
        return y

    for _ in range(3):
        f(np.ones(2))
    assert capsys.readouterr().out == "sum 4.0\n" * 3


def test_a_user_raise_under_a_condition_happens_when_it_is_met():
    @jl.jit
    def f(x):
        if x.sum() < 0:
            raise ValueError("negative")
        return x * 2

    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
    with pytest.raises(ValueError, match="^negative$"):
        f(-np.ones(2))
    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])


def test_an_assertion_that_fails_is_pythons():
    @jl.jit
    def f(x):
        assert x.sum() > 0, "must be positive"
        return x

    f(np.ones(2))
    with pytest.raises(AssertionError, match="must be positive"):
        f(-np.ones(2))


def test_a_name_undefined_on_the_way_taken_is_an_unbound_local():
    @jl.jit
    def f(x):
        if x.sum() > 0:
            y = x * 2
        return y

    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
    with pytest.raises(UnboundLocalError):
        f(-np.ones(2))


def test_an_unknown_name_is_a_name_error():
    with pytest.raises(NameError, match="unknown_name"):
        jl.jit(lambda x: x + unknown_name)(x)  # noqa: F821


def test_an_error_half_way_leaves_what_python_would_have_left():

    def program(a, log):
        a[0] = 5.0
        log.append("before")
        a[1] = 6.0
        b = a[np.array([1, 99])]
        a[2] = 7.0
        return b

    found = []
    for run in (program, jl.jit(program)):
        a, log = np.zeros(4), []
        with pytest.raises(IndexError) as caught:
            run(a, log)
        found.append((a.tolist(), log, caught.traceback[-1].lineno if run is program else None))
    assert found[0][:2] == found[1][:2] == ([5.0, 6.0, 0.0, 0.0], ["before"])


def test_an_error_half_way_of_an_in_place_program_leaves_what_python_would_have_left():

    def program(a, i):
        a += 1
        b = a[i]
        a *= 10
        return b

    found = []
    for run in (program, jl.jit(program)):
        a = np.zeros(4)
        run(a, np.array([1, 2]))
        with pytest.raises(IndexError) as caught:
            run(a, np.array([1, 99]))
        found.append((a.tolist(), str(caught.value), caught.traceback[-1].lineno))
    assert found[0] == found[1]


def test_random_numbers_are_drawn_as_numpy_draws_them():
    def program(rng, x):
        return x + rng.standard_normal(5)

    f = jl.jit(program)
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        np.testing.assert_allclose(f(one, x), program(two, x))


def test_a_jitted_function_inside_another_is_part_of_it():

    @jl.jit(capture_mode="bytecode")
    def inner(x):
        return np.tanh(x) * SCALE

    @jl.jit
    def outer(x):
        return inner(x) + 1

    with jl.record() as recording:
        np.testing.assert_allclose(outer(x), np.tanh(x) * 2 + 1)
    assert len(recording.report().clusters) == 1
    assert inner.experimental_get_tracing_count() == 0


def test_foreign_arrays_run_as_python():
    masked = np.ma.masked_less(x, 1.0)
    f = jl.jit(lambda x: x * 2)
    assert type(f(masked)) is type(masked)
    np.testing.assert_array_equal(f(x), x * 2)


def test_containers_keep_their_aliasing():
    shared = np.zeros(3)

    def program(a, parts):
        a += 1
        return parts[0] * 2

    for run in (program, jl.jit(program)):
        shared[:] = 0
        np.testing.assert_array_equal(run(shared, [shared]), [2, 2, 2])


def test_methods_partials_and_callable_objects():
    import functools

    class Thing:
        w = 3.0

        def scaled(self, x, by):
            return x * self.w * by

        def __call__(self, x):
            return x * self.w

    thing = Thing()
    np.testing.assert_array_equal(jl.jit(thing.scaled)(x, 2.0), x * 6)
    np.testing.assert_array_equal(jl.jit(functools.partial(thing.scaled, by=2.0))(x), x * 6)
    np.testing.assert_array_equal(jl.jit(thing)(x), x * 3)


# ---- fullgraph


def test_fullgraph_refuses_a_store_into_an_object():
    class Box:
        v = 1

    box = Box()

    def program(x):
        box.v = 2
        return x

    with pytest.raises(ValueError, match="stores into a Box"):
        jl.jit(fullgraph=True)(program)(x)
    assert box.v == 1


def test_fullgraph_refuses_a_python_value():
    with pytest.raises(AttributeError, match="In JIT strict mode"):
        jl.jit(fullgraph=True)(lambda x: x.tobytes())(x)


def test_fullgraph_refuses_statements_by_name():
    def program(x):
        try:
            x = x + 1
        finally:
            return x  # noqa: B012 - it drops what was raised

    with pytest.raises(RuntimeError, match="Unsupported statement 'Try'"):
        jl.jit(fullgraph=True)(program)(x)


def test_bytecode_with_fullgraph_calls_the_function_unsupported():
    with pytest.raises(errors.UnsupportedError, match="Unsupported function"):
        jl.jit(fullgraph=True, capture_mode="bytecode")(lambda x: print(x))(x)


def test_fullgraph_takes_comprehensions_containers_and_globals():
    def program(x):
        parts = [x * i for i in range(3)]
        named = {"a": parts[0], "b": sum(parts)}
        return named["b"] * SCALE + TABLE["w"] * TABLE["k"]

    np.testing.assert_allclose(jl.jit(fullgraph=True)(program)(x), program(x))


def test_fullgraph_refuses_a_name_that_one_branch_binds():
    def program(x):
        if x.sum() > 0:
            y = x * 2
        return y

    with pytest.raises(UnboundLocalError, match="'y' is not defined in false branch, but defined in true branch"):
        jl.jit(fullgraph=True)(program)(x)


def test_fullgraph_refuses_branches_of_different_dtypes():
    def program(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = np.zeros(5, np.int32)
        return y

    with pytest.raises(TypeError, match="Type Join Failed"):
        jl.jit(fullgraph=True)(program)(x)
    np.testing.assert_array_equal(jl.jit(program)(-x), np.zeros(5))


def test_fullgraph_raises_the_users_own_errors():
    with pytest.raises(ZeroDivisionError):
        jl.jit(fullgraph=True)(lambda x: x / (1 // 0))(x)


# ---- mode trace


def test_mode_trace_runs_the_body_once_and_freezes_its_path():
    kept = []

    @jl.jit(capture_mode="trace")
    def f(x):
        kept.append(1)
        if x.sum() > 0:
            return 2 * x
        return -x

    np.testing.assert_array_equal(f(x), 2 * x)
    np.testing.assert_array_equal(f(-x), -2 * x)
    assert kept == [1]


def test_mode_trace_tells_what_it_froze():
    heard = []
    with events.listen(lambda event: heard.append(event) if event.kind == "value-frozen" else None):
        jl.jit(capture_mode="trace")(lambda x: x * float(x.sum()))(x)
    assert [event.what for event in heard] == ["float() of float64[]"]
    assert heard[0].lines


@dataclasses.dataclass
class Scaled:
    x: Any
    k: int
    __attrs_attrs__ = (types.SimpleNamespace(name="x"), types.SimpleNamespace(name="k"))


def test_mode_trace_takes_arrays_in_structures_and_variables_as_arguments():
    f = jl.jit(capture_mode="trace")(lambda p: p.x * 2 + p.k)
    for p in (Scaled(x, 2), Scaled(-x, 2), Scaled(x, 3)):
        np.testing.assert_array_equal(f(p), p.x * 2 + p.k)
    assert f.experimental_get_tracing_count() == 2

    @jl.jit(capture_mode="trace")
    def added(v, w, x):
        v.assign_add(x)
        return v * w

    v, w = jl.Variable(x), jl.Variable(x + 5)
    np.testing.assert_array_equal(added(v, v, x), (2 * x) ** 2)
    np.testing.assert_array_equal(added(v, w, x), 3 * x * (x + 5))
    np.testing.assert_array_equal(added(w, v, x), (2 * x + 5) * 3 * x)
    np.testing.assert_array_equal(v.numpy(), 3 * x)
    assert added.experimental_get_tracing_count() == 2


def test_mode_trace_tells_an_argument_from_the_array_of_a_name():
    y, v = x + 1, jl.Variable(x)
    f = jl.jit(capture_mode="trace")(lambda x: x * y)
    g = jl.jit(capture_mode="trace")(lambda x: x * v)
    for argument in (y, x, y):
        np.testing.assert_array_equal(f(argument), argument * y)
    for argument in (v, jl.Variable(x + 5), v):
        np.testing.assert_array_equal(g(argument), argument.numpy() * x)
    assert f.experimental_get_tracing_count() == 2
    assert g.experimental_get_tracing_count() == 1


def test_mode_trace_records_each_signature():
    f = jl.jit(capture_mode="trace")(lambda x: x + 1)
    np.testing.assert_array_equal(f(x), x + 1)
    np.testing.assert_array_equal(f(x[:2]), x[:2] + 1)
    assert f.experimental_get_tracing_count() == 2


# ---- warm calls


def test_warm_calls_give_what_the_first_ones_gave():
    """The C function behind a trace that is called often takes floats and scalars, too."""

    def program(x, y, rate):
        z = np.tanh(x + rate * y)
        return z, z.sum(), rate * 2

    f = jl.jit(program)
    y = np.arange(5.0)
    for n in range(20):
        found, expected = f(x, y, n / 7), program(x, y, n / 7)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)
        assert type(found[1]) is np.float64 and found[2] == expected[2]
    np.testing.assert_allclose(f(x[::-1], y, 0.5)[0], program(x[::-1], y, 0.5)[0], rtol=1e-12)
    assert f.experimental_get_tracing_count() == 1


def test_no_warning_from_ordinary_programs():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(jl.jit(lambda x: x + 1)(x), x + 1)


def test_a_long_loop_that_cannot_be_rolled_is_pythons_around_a_body_that_is_captured_once():
    def program(x, n):
        for i in range(n):
            x = np.unique(x)[::-1] * 0.99 + i
        return x

    with jl.record() as recording:
        found = jl.jit(program)(np.arange(5.0), 40)
    report = recording.report()
    np.testing.assert_array_equal(found, program(np.arange(5.0), 40))
    assert len(report.clusters) == 1 and sum(f.op == "Unique" for f in report.fallbacks) == 1
    assert "a loop of 40 iterations cannot be rolled: NumPy runs unique" in str(report).replace("\n  ", " ")
