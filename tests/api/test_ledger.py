"""Every miss has causes of a closed list, undoing them makes a hit, and what is proposed was replayed."""

import logging
import threading
import time
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jitlab as jl
from jitlab import events
from jitlab.api.retraces.places import Summary, totals
from jitlab.events import Cause, VariantCause

f32, f64 = np.float32, np.float64
CLOSED = {*Cause, VariantCause.LAYOUT}


def causes(function):
    return [miss.causes for miss in function.ledger]


# ---- the property: causes are complete

SHAPES = st.sampled_from([(), (1,), (2,), (3,), (2, 3), (3, 2), (2, 1, 2)])
DTYPES = st.sampled_from([np.dtype(t) for t in ("f4", "f8", "i8", "?", "c16")])
ARRAYS = st.builds(np.zeros, SHAPES, DTYPES)
NUMBERS = st.sampled_from([0, 1, 2, True, False, 0.0, -0.0, 1.0, 2.5, float("nan"), 1j, None, "a", "b", b"a"])
LEAVES = st.one_of(ARRAYS, NUMBERS)
OPTIONS = (("jit_compile", True), ("autograph", False), ("reduce_retracing", True))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=2).map(tuple),
        st.dictionaries(st.sampled_from(["w", "b", 0]), inner, max_size=2),
    ),
    max_leaves=4,
)  # fmt: skip


@st.composite
def signatures(draw):
    """Calls of a function of two parameters; some give an array twice."""
    calls = []
    for _ in range(draw(st.integers(2, 5))):
        one, two = draw(TREES), draw(TREES)
        if draw(st.integers(0, 3)) == 0:
            shared = draw(ARRAYS)
            one, two = draw(st.sampled_from([(shared, shared), ([shared, shared], two), ({"w": shared}, shared)]))
        elif draw(st.booleans()) and calls:
            one = calls[-1][0]
        calls.append((one, two))
    return calls


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(signatures(), st.sampled_from([
    jl.jit, jl.function, *(partial(jl.function, **{option: value}) for option, value in OPTIONS),
]))  # fmt: skip
def test_each_miss_has_causes_and_undoing_them_all_makes_a_hit_and_all_but_one_does_not(calls, compiled):
    f = compiled(lambda one, two: None)
    made = {}
    for args in calls:
        explained, would = f.explain_key(*args), f.would_hit(*args)
        before = len(f.ledger)
        f(*args)
        assert would == explained.hit == (len(f.ledger) == before)
        assert f.would_hit(*args) and f.explain_key(*args).hit
        if would:
            continue
        miss = list(f.ledger)[-1]
        made[miss.number] = args
        assert miss.causes and set(miss.causes) <= CLOSED
        assert miss.nearest is None or explained.causes == miss.causes
        if miss.nearest is None or miss.nearest.owner != miss.owner:
            continue
        nearest = made[miss.nearest.number]
        if compiled is jl.jit and (are_shared(args) or are_shared(nearest) or Cause.ALIASING in miss.causes):
            continue  # which arrays and containers are one it guards where both are still there: test_causes.py
        assert f.would_hit(*undone(miss.changes, args, nearest))
        g = compiled(lambda one, two: None)
        g(*nearest)
        assert g.would_hit(*undone(miss.changes, args, nearest))
        if Cause.ALIASING in miss.causes and set(miss.causes) != {Cause.ALIASING}:
            continue  # an array that is put back is no other argument any more
        for one in miss.changes:
            left = [c for c in miss.changes if c is one or c.cause == one.cause == Cause.ALIASING or c.path == one.path]
            others = [change for change in miss.changes if change not in left]
            if any(one.path.startswith(f"{other.path}[") for other in others):
                continue  # its container has another form, too, and is put back with all that it holds
            assert not g.would_hit(*undone(others, args, nearest)), left


def undone(changes, args, nearest):
    """The arguments with each changed leaf as the nearest trace had it."""
    names = dict(zip(("one", "two"), nearest, strict=True))
    changed = {change.path for change in changes if change.cause != Cause.ALIASING}

    def rebuilt(path, value):
        if path in changed:
            return eval(path, dict(names))
        if isinstance(value, (list, tuple)):
            return type(value)(rebuilt(f"{path}[{n}]", item) for n, item in enumerate(value))
        if isinstance(value, dict):
            quoted = {key: f'"{key}"' if isinstance(key, str) else repr(key) for key in value}
            return {key: rebuilt(f"{path}[{quoted[key]}]", item) for key, item in value.items()}
        return value

    result = {name: rebuilt(name, value) for name, value in zip(("one", "two"), args, strict=True)}
    aliased = {change.path for change in changes if change.cause == Cause.ALIASING}
    if aliased:  # arrays are one where they were one: the aliasing of the nearest, with arrays of these types
        result = realiased(result, names)
    return result["one"], result["two"]


def are_shared(values):
    """Is an array given twice?"""
    every = [id(array) for path, array in arrays_in(values)]
    return len(set(every)) < len(every)


def realiased(values, nearest):
    by_path = dict(arrays_in(nearest))
    fresh = {}

    def replace(path, value):
        if isinstance(value, np.ndarray):
            return fresh.setdefault(id(by_path.get(path)), value.copy())
        if isinstance(value, (list, tuple)):
            return type(value)(replace((*path, n), item) for n, item in enumerate(value))
        if isinstance(value, dict):
            return {key: replace((*path, key), item) for key, item in value.items()}
        return value

    return {name: replace((name,), value) for name, value in values.items()}


def arrays_in(value, path=()):
    if isinstance(value, np.ndarray):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from arrays_in(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for n, item in enumerate(value):
            yield from arrays_in(item, (*path, n))


# ---- each cause


@jl.function
def leaf(params, k):
    return params["w"][0] * 2


def test_the_leaf_and_the_line_that_used_it():
    leaf({"w": [np.ones(3)]}, 1)
    leaf({"w": [np.ones(3, f32)]}, 1)
    miss = list(leaf.ledger)[-1]
    (change,) = miss.changes
    assert (change.cause, change.path, change.before, change.after) == ("dtype", 'params["w"][0]', "float64[3]", "float32[3]")
    assert miss.source.line == leaf.python_function.__code__.co_firstlineno + 2
    assert miss.site.line == test_the_leaf_and_the_line_that_used_it.__code__.co_firstlineno + 2


def test_arrays_that_are_one():
    f = jl.function(lambda a, b: a + b)
    x = np.ones(3)
    f(x, x.copy()), f(x, x)
    change = list(f.ledger)[-1].changes[0]
    assert (change.cause, change.path, change.before) == ("aliasing", "b", "an array of its own")
    assert change.after == "the array that `a` is, too"


def test_layout_is_a_variant_and_no_retrace():
    @jl.function
    def f(a):
        a.reshape(-1)[0] = 1
        return a

    x = np.ones((2, 3))
    with jl.record() as recording:
        f(x), f(np.asfortranarray(x))
    report = recording.report()
    assert causes(f)[-1] == ("layout",) and not list(f.ledger)[-1].is_retrace
    assert not report.retraces and [(v.cause, v.argument) for v in report.variants] == [("layout", "a")]


def test_another_layout_of_an_input_is_another_form_of_the_kernel(compiled):
    f = jl.function(lambda a: np.tanh(a) + 1)
    x = np.ones((40, 30))
    with jl.record() as recording:
        f(x), f(np.ones((80, 60))[::2, ::2])
    (variant,) = recording.report().variants
    assert (variant.cause, variant.argument, variant.before, variant.after) == ("layout", "a", "row by row", "strided")
    assert variant.cluster and variant.lines and not recording.report().retraces
    assert variant.message.code == "layout" and variant.message.text in str(recording.report().variants)
    (miss,) = f.ledger
    assert [v.cause for v in miss.costs.variants] == [VariantCause.LAYOUT] and len(miss.costs.kernels) >= 1
    assert "another form of" in str(f.ledger)


def test_a_trace_that_made_room(monkeypatch):
    monkeypatch.setattr(jl.config, "max_traces", 2)
    f = jl.function(lambda x: x + 1)
    for n in (1, 2, 3, 4, 1):
        f(np.ones(n))
    assert causes(f)[-1] == ("cache_evicted",)
    assert [miss.evicted_by is not None for miss in f.ledger] == [True, True, True, False, False]
    assert f.experimental_get_tracing_count() == 5
    assert not f.would_hit(np.ones(3)) and f.explain_key(np.ones(3)).causes == ("cache_evicted",)


def test_what_was_evicted_leaves_counts_and_no_graphs(monkeypatch):
    monkeypatch.setattr(jl.config, "max_traces", 3)
    monkeypatch.setattr("jitlab.api.retraces.ledger.EVICTED", 0)
    f = jl.function(lambda x: x + 1)
    for n in range(1, 20):
        f(np.ones(n)), f(np.ones(n))
    assert len(f.ledger) == 6 and f.ledger.dropped == 13
    assert all(miss.costs.all_calls == 2 for miss in f.ledger)
    assert f.ledger.seconds > sum(miss.seconds for miss in f.ledger)
    assert "19 traces" in str(f.ledger)


def made(k, **options):
    return jl.function(lambda x: x * k, **options)


def test_a_function_made_in_a_loop():
    x = np.ones(3)
    for _ in range(4):
        f = jl.function(lambda x: x * 2)
        f(x)
    assert causes(f) == [("redefined_function",)]
    fix = f.ledger.fix_for(list(f.ledger)[-1])
    assert (fix.before, fix.after) == (4, 1) and fix.what == "define `<lambda>` once, before the loop"


def test_a_closure_of_another_value():
    for k in (2.0, 3.0, 4.0):
        f = made(k)
        f(np.ones(3))
    (miss,) = f.ledger
    assert miss.causes == ("closure",) and miss.changes[0].path == "k" and miss.changes[0].before == "3.0"
    fix = f.ledger.fix_for(miss)
    assert "pass `k` to it as an argument" in fix.what and (fix.before, fix.after) == (3, 1)


def test_other_options():
    first, second = made(7.0), made(7.0, jit_compile=True)
    first(np.ones(3)), second(np.ones(3))
    assert causes(second) == [("options",)]


def test_jit_and_function_of_one_function_have_nothing_to_tell_of_each_other():
    def add(x):
        return x + 1

    for _ in range(3):
        one, other = jl.jit(add), jl.function(add)
        one(np.ones(3)), other(np.ones(3))
        assert ("options",) not in causes(one) + causes(other)


def test_a_cell_that_is_run_again_with_other_code():
    namespace = {"jl": jl, "np": np, "__name__": "__main__"}
    for number, constant in enumerate((2, 3)):
        text = f"@jl.function\ndef f(x):\n    return x + {constant}\n"
        exec(compile(text, f"<cell {number}>", "exec"), namespace)
        namespace["f"](np.ones(3))
    (miss,) = namespace["f"].ledger
    assert miss.causes == ("redefined_function",) and "other code" in miss.changes[0].after


def test_a_function_that_another_cell_defines_again_is_redefined():
    namespace = {"jl": jl, "np": np, "__name__": "__main__"}
    for number, constant in enumerate((2, 3)):
        with events.in_cell(f"cell-{number}"):
            text = f"@jl.function\ndef taken(x):\n    return x + {constant}\n"
            exec(compile(text, f"<cell {number}>", "exec"), namespace)
            namespace["taken"](np.ones(3))
    (miss,) = namespace["taken"].ledger
    assert miss.causes == ("redefined_function",) and not miss.renews


def test_nothing_is_to_do_about_a_cell_that_was_edited_or_run_again():
    namespace = {"jl": jl, "np": np, "__name__": "__main__"}
    edits = [("", "x + k", (2.0, 3.0)), ("", "x * k", (2.0, 3.0)), ("", "x * k", (np.array(2.0),))]
    for number, (options, body, values) in enumerate(edits):
        exec(compile(f"@jl.function{options}\ndef f(x, k):\n    return {body}\n", f"<cell {number}>", "exec"), namespace)
        for k in values:
            namespace["f"](np.ones(3), k)
    ledger = namespace["f"].ledger
    (miss,) = ledger
    assert miss.causes == ("redefined_function",)
    assert ledger.fix_for(miss) is None and ledger.fixes() == []


def test_methods_of_instances_begin_anew():
    class Layer:
        @jl.function
        def call(self, x):
            return x + 1

    one, two = Layer(), Layer()
    one.call(np.ones(2)), two.call(np.ones(2))
    assert causes(one.call) == causes(two.call) == [("first_call",)]


FACTOR = 2.0
OTHER = np.ones(3)


def test_jit_guards_what_names_give():
    global OTHER
    offset = [1]

    @jl.jit
    def f(x):
        return x * FACTOR + OTHER + offset[0]

    f(np.ones(3))
    OTHER = np.ones(3, f32)
    f(np.ones(3))
    OTHER = np.ones(3)
    assert causes(f) == [("first_call",), ("global",)]
    assert list(f.ledger)[-1].changes[0].path == "OTHER" and f.would_hit(np.ones(3))


# ---- what helps


def replayed(function, calls, remade):
    """The cheapest fix of a function that was called so, and how many traces are really left when it is applied."""
    for args in calls:
        function(*args)
    fix = function.ledger.fixes()[0]
    assert fix.before == function.experimental_get_tracing_count()
    assert remade(fix) == fix.after < fix.before
    return fix


def traces(function, calls):
    for args in calls:
        function(*args)
    return function.experimental_get_tracing_count()


def body(x, k):
    return np.tanh(x) * k


def test_a_number_becomes_an_array():
    calls = [(np.ones(4, f32), 0.1 * n) for n in range(9)]
    fix = replayed(jl.function(body), calls, lambda fix: traces(jl.function(body), [(x, np.asarray(k, f32)) for x, k in calls]))
    assert fix.what == "pass `k` as an array" and fix.code == "k = np.asarray(k, np.float32)" and fix.seconds > 0
    assert str(fix).startswith("pass `k` as an array: 9 traces become 1, saves ")


def test_a_number_that_decides_the_program_does_not():
    f = jl.function(lambda x, axis: np.sum(x, axis=axis))
    f(np.ones((2, 3)), 0), f(np.ones((2, 3)), 1)
    assert not f.ledger.fixes()


@pytest.mark.parametrize(
    ("power", "numbers", "note"),
    [
        (lambda x, k: (x / 255.0) ** k, (0.5, 1.0, 1.8, 2.2), ", with Pow for 0.5 (in place of Sqrt) and 1.0"),
        (lambda x, k: x ** (1 / k), (1.8, 2.0, 2.4), ", with Pow for 2.0 (in place of Sqrt)"),
        (lambda x, k: np.tanh(x) ** k + k, (3, 1, 2, 4), ", with Pow for 1 and 2 (in place of Square)"),
        (lambda x, k: x**k, (2.0, 0.5), ", with Pow for 2.0 (in place of Square) and 0.5 (in place of Sqrt)"),
        (lambda x, k: x**k, (1.8, 2.2), ""),
    ],
)
def test_an_exponent_of_which_numpy_makes_a_root_or_a_square_becomes_an_array_too(power, numbers, note):
    calls = [(np.ones((3, 4)), k) for k in numbers]
    again = [(x, np.asarray(k, f64)) for x, k in calls]
    fix = replayed(jl.function(power), calls, lambda fix: traces(jl.function(power), again))
    assert fix.count == f"pass `k` as an array: {len(calls)} traces become 1{note}"


def test_a_root_that_a_number_decides_does_not():
    f = jl.function(lambda x, k: np.sqrt(x) if k else x)
    f(np.ones(3), 0), f(np.ones(3), 1)
    assert not f.ledger.fixes()
    f = jl.function(lambda x, k: x**k if k > 2 else np.exp(x))
    f(np.ones(3), 3.5), f(np.ones(3), 1.5)
    assert not f.ledger.fixes()


def test_a_cast():
    calls = [(np.ones(4, t), 1.0) for t in (f64, f32, np.int64)]
    fix = replayed(jl.function(body), calls, lambda fix: traces(jl.function(body), [(x.astype(f64), k) for x, k in calls]))
    assert fix.code == "x = x.astype(np.float64)" and (fix.before, fix.after) == (3, 1)


def test_axes_become_dynamic_by_a_signature():
    def added(x, y):
        return x + y

    calls = [(np.ones((n, 3)), np.ones((n, 3))) for n in range(2, 11)]

    def remade(fix):
        signature = eval(fix.code.removeprefix("input_signature="), {"jl": jl, "np": np})
        return traces(jl.function(added, input_signature=signature), calls)

    fix = replayed(jl.function(added), calls, remade)
    assert str(fix) == "make axis 0 of `x` and axis 0 of `y` dynamic: 9 traces become 1"


def test_an_axis_becomes_dynamic_by_generalising():
    calls = [(np.ones((n, 3)), 1.0) for n in range(2, 11)]
    fix = replayed(jl.function(body), calls, lambda fix: traces(jl.function(body, reduce_retracing=True), calls))
    assert fix.code == "reduce_retracing=True" and str(fix) == "make axis 0 of `x` dynamic: 9 traces become 2"


def test_contiguous_copies():
    def write(a):
        a.reshape(-1)[0] = 1
        return a

    x = np.ones((2, 3))
    f = jl.function(write)
    f(x.copy()), f(np.asfortranarray(x))
    (fix,) = f.ledger.fixes()
    assert fix.code == "a = np.ascontiguousarray(a)" and (fix.before, fix.after) == (2, 1)


def test_nothing_is_proposed_that_leaves_as_many_traces():
    f = jl.function(lambda x, name: x)
    f(np.ones(2), "a"), f(np.ones(2), "b"), f([np.ones(2)], "b")
    assert not f.ledger.fixes()


# ---- the three classic mistakes, each in its one line


def warning_of(caplog, run):
    with caplog.at_level(logging.WARNING):
        run()
    return caplog.records[0].getMessage()


def in_a_loop():
    for _ in range(6):
        jl.function(lambda x: x + 1)(np.ones(2))


def by_shape():
    f = jl.function(lambda x: x + 1)
    for n in range(6):
        f(np.ones(n + 1))


def by_value():
    f = jl.function(lambda x, k: x + k)
    for n in range(6):
        f(np.ones(2), n)


def by_dtype():
    f = jl.function(lambda x: x + 1)
    for dtype in ("f8", "f4", "i8", "i4", "i2", "u1"):
        f(np.ones(3, dtype))


def made_with_a_number():
    def made(n):
        def shifted(x):
            return x + n

        return jl.function(shifted)

    for n in range(6):
        made(n)(np.ones(2))


def made_with_an_array():
    def made(w):
        def weighed(x):
            return x * w

        return jl.function(weighed)

    for n in range(6):
        made(np.full(2, n))(np.ones(2))


def by_value_and_then_by_shape():
    def scale(x, k):
        return x * k

    f = jl.function(scale)
    for n in range(4):
        f(np.ones(2), n)
    f(np.ones(3), 0)


def by_value_and_shape_at_once():
    f = jl.function(lambda x, k: x * k)
    for n in range(6):
        f(np.ones(n + 2), n)


#: Words of each cause and of each cure.
WORDS = {
    "made again": "loop", "Python value": "as an array", "each shape": "dynamic", "each dtype": "Cast",
    "closure holds": "argument",
}  # fmt: skip


@pytest.mark.parametrize(
    "run, cause, cure, words",
    [
        (in_a_loop, "It was made again of the same code", "once, before the loop: 5 traces become 1", ["made again"]),
        (by_shape, "`x` was float64[4] and is now float64[5]", "Make axis 0 of `x` dynamic: 5 traces become 1", ["each shape"]),
        (by_value, "`k` was 3 and is now 4", "Pass `k` as an array: 5 traces become 1", ["Python value"]),
        (by_dtype, "`x` was int32[3] and is now int16[3]", "Cast `x` to float64: 5 traces become 1", ["each dtype"]),
        (
            made_with_a_number, "`n` was 3 and is now 4 (each value that a closure holds",
            "Define `shifted` once, before the loop and pass `n` to it as an argument that is an array: 5 traces become 1",
            ["closure holds", "made again"],
        ),
        (
            made_with_an_array, "It was made again of the same code",
            "Define `weighed` once, before the loop and pass `w` to it as an argument: 5 traces become 1",
            ["made again", "closure holds"],
        ),
        (
            by_value_and_then_by_shape, "3 times it was this: `k` was 2 and is now 3",
            "Pass `k` as an array: 5 traces become 2", ["Python value"],
        ),
        (
            by_value_and_shape_at_once,
            "`k` was 3 and is now 4 (each new Python value is traced again) and `x` was float64[5] and is now float64[6]",
            "Pass `k` as an array and make axis 0 of `x` dynamic: 5 traces become 2", ["Python value", "each shape"],
        ),
    ],
)  # fmt: skip
def test_a_warning_says_the_cause_there_was_and_its_cure_and_no_other(caplog, run, cause, cure, words):
    text = warning_of(caplog, run)
    assert cause in text and cure in text and "\n" not in text
    assert "test_ledger.py, line " in text.partition("; called from ")[0]
    assert "test_ledger.py, line " in text.partition("; called from ")[2]
    for other_cause, other_cure in WORDS.items():
        if other_cause not in words:
            assert other_cause not in text
        if other_cause not in words and not (other_cure == "as an array" and "argument that is an array" in text):
            assert other_cure not in text.replace("At the call", "")


def test_a_warning_says_where_its_code_goes_and_where_the_rest_is_listed(caplog):
    @jl.function
    def damp(x, k):
        return x * k

    text = warning_of(caplog, lambda: [damp(np.ones(n + 2), n) for n in range(6)])
    assert text.startswith("4 out of the last 5 calls to damp triggered retracing. ")
    call = "damp(np.ones(n + 2), np.asarray(n, np.float64))"
    assert f"At the call, not inside of damp: `{call}`. Write `@jl.function(reduce_retr" in text
    assert text.endswith("print(damp.ledger) lists all of them.")


def test_a_warning_of_a_function_made_twice_knows_what_the_first_was_called_with(caplog):
    def scale(x, k):
        return x * k

    functions = [jl.function(scale), jl.function(scale)]
    for f, times in zip(functions, (4, 1), strict=True):
        for n in range(times):
            f(np.ones(2), n)
    text = caplog.records[0].getMessage()
    assert "3 times it was this: `k` was 2 and is now 3" in text and "Pass `k` as an array: 4 traces become 1" in text


def test_a_warning_without_a_cure_says_so(caplog):
    f = jl.function(lambda x, how: x.sum() if how == "sum" else x)
    text = warning_of(caplog, lambda: [f(np.ones(2), f"{n}") for n in range(6)])
    assert "`how` was '3' and is now '4' (each new Python value is traced again)" in text
    assert "No fix found: the changes that were tried do not avoid it." in text


# ---- what it costs


def test_the_ledger_s_total_is_the_time_that_was_waited_for(compiled):
    f = jl.function(lambda x, k: np.tanh(x) * k)
    x = np.ones(8)
    shares = []
    for k in range(4):
        started = time.perf_counter()
        f(x, k)
        shares.append(list(f.ledger)[-1].seconds / (time.perf_counter() - started))
    assert 0 < max(shares) <= 1


def test_what_a_call_takes_is_told_without_what_the_first_one_waited_for(compiled):
    f = jl.function(lambda x: np.tanh(x) + 1)
    with jl.record():
        f(np.ones(5)), f(np.ones(5))
    costs = f.ledger.misses[0].costs
    assert costs.timed_calls == 2 and costs.run_ns > costs.spent_ns > 0
    assert costs.each_ns == (costs.run_ns - costs.spent_ns) / 2


def test_nested_work_counts_once(compiled):
    inner = jl.function(lambda x: np.tanh(x) + 1)

    def outer_body(x):
        inner(np.ones(7))
        return x + 1

    outer = jl.function(outer_body, autograph=False)
    started = time.perf_counter()
    with events.listen(lambda event: None):
        outer(np.ones(3))
    took = time.perf_counter() - started
    assert outer.ledger.seconds + inner.ledger.seconds <= took


def test_sites_are_summed():
    f = jl.function(lambda x: x + 1)
    for n in range(3):
        f(np.ones(n + 1))
    here = test_sites_are_summed.__code__.co_firstlineno + 3
    (total,) = [t for t in totals() if t.site.line == here and t.site.file == __file__]
    assert (total.misses, total.retraces) == (3, 2) and total.seconds == pytest.approx(f.ledger.seconds)
    assert "test_ledger.py" in str(Summary([total])) and total in jl.ledger()


def test_calls_through_c_are_counted(compiled):
    f = jl.function(lambda x: x + 1)
    for _ in range(50):
        f(np.ones(4))
    (miss,) = f.ledger
    assert miss.costs.all_calls == 50
    with jl.record():
        f(np.ones(4))
    assert miss.costs.all_calls == 51 and miss.costs.timed_calls == 1 and miss.costs.run_ns > 0


def test_eight_threads_make_one_miss(compiled):
    f = jl.function(lambda x: np.tanh(x) * 2)
    start = threading.Barrier(8)

    def call():
        start.wait()
        for _ in range(20):
            f(np.ones(16))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (miss,) = f.ledger
    assert miss.causes == ("first_call",) and miss.costs.all_calls == 160


# ---- asking beforehand


def test_asking_changes_nothing():
    counted = []

    def noted(x):
        counted.append(1)
        return x + 1

    f = jl.function(noted)
    assert not f.would_hit(np.ones(2)) and f.explain_key(np.ones(2)).causes == ("first_call",)
    assert not counted and f.experimental_get_tracing_count() == 0 and not len(f.ledger)
    f(np.ones(2))
    assert f.would_hit(np.ones(2)) and not f.would_hit(np.ones(3))
    assert len(counted) == 1 and f.experimental_get_tracing_count() == 1 and len(f.ledger) == 1


def test_a_key_is_explained_leaf_by_leaf():
    f = jl.function(lambda x, k: x * k)
    f(np.ones(3), 2)
    found = f.explain_key(np.ones(3), 2)
    assert found.hit and found.trace == 1 and str(found).splitlines()[0] == "<lambda>: a hit, trace 1"
    found = f.explain_key(np.ones(3, f32), 3)
    assert not found.hit and found.causes == ("dtype", "python_value")
    assert [(leaf.path, leaf.text, leaf.traced, leaf.is_same) for leaf in found.leaves] == [
        ("x", "float32[3]", "float64[3]", False), ("k", "3", "2", False),
    ]  # fmt: skip
    assert found.where.line == f.python_function.__code__.co_firstlineno
    assert "dtype: `x` was float64[3] and would be float32[3]" in str(found)


def test_a_key_of_a_foreign_array_is_said_to_run_as_python():
    f = jl.function(lambda x: x + 1)
    found = f.explain_key(np.ma.masked_array([1], [0]))
    assert not found.hit and "MaskedArray" in found.refusal and not f.would_hit(np.ma.masked_array([1], [0]))


def test_jit_is_asked_in_the_same_words():
    @jl.jit
    def f(x, n):
        return np.sum(x[:n]) * FACTOR

    f(np.ones(5), 2)
    assert f.would_hit(np.ones(5), 2) and not f.would_hit(np.ones(5), 3)
    found = f.explain_key(np.ones(5), 3)
    assert found.causes == ("python_value",) and found.changes[0].path == "n"


def test_a_function_shows_itself_without_an_address():
    f, g = jl.function(scaled := (lambda x, k: x * k)), jl.jit(scaled)
    f(np.ones(2), 1), f(np.ones(2), 2), g(np.ones(2), 1)
    assert repr(f) == "<jl.function <lambda>: 2 traces>" and repr(g) == "<jl.jit <lambda>: 1 trace>"


def test_a_report_and_the_ledger_tell_the_same_seconds():
    @jl.function
    def f(x, k):
        return np.exp(x * k).sum()

    with jl.record() as recording:
        for k in (1, 2, 2, 3):
            f(np.ones(9), k)
    told = {row["trace"]: row["seconds"] for row in recording.report().data["retraces"]}
    assert told == pytest.approx({miss.number: miss.seconds for miss in f.ledger})


def test_numbers_of_many_digits_are_told_in_short_unless_that_makes_them_look_alike():
    @jl.function
    def f(x, k):
        return x * k

    for k in (0.1 + 0.2, 1.1 * 3, 0.3):
        f(np.ones(3), k)
    first, second = str(f.ledger).splitlines()[2:4]
    assert "`k` was 0.3 and is now 3.3 " in first and "`k` was 3.3000000000000003 and is now 0.3 " not in first
    assert "(0.3 in trace" in str(f.explain_key(np.ones(3), 3.3 / 7)) and " was 0.30000000000000004" not in second
