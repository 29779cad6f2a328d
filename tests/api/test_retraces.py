"""Each miss has its causes; calls are told when somebody listens."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import jitlab as jl
from jitlab import events

f32 = np.float32


def traced_events(function, *calls):
    """The Traced event of each call that was traced."""
    heard = []
    with events.listen(heard.append):
        for call in calls:
            args, kwargs = call if isinstance(call, tuple) and len(call) == 2 and isinstance(call[1], dict) else (call, {})
            function(*args, **kwargs)
    return [e for e in heard if isinstance(e, events.Traced)]


def in_words(what):
    """Of a call that unpacks its arguments, as the one in `traced_events`."""
    line = traced_events.__code__.co_firstlineno + 6
    return f"pass {what} at the call in test_retraces.py, line {line}"


def test_first_call():
    (event,) = traced_events(jl.function(lambda x: x * 2), (np.ones(3),))
    assert event.causes == ("first_call",) and event.operations == 1 and event.duration_ns > 0 and event.trace == 1


@pytest.mark.parametrize(
    "before, after, cause, path, texts, fix",
    [
        ((np.ones((128, 10), f32), 0.1), (np.ones((64, 10), f32), 0.1), "shape", "x", ("float32[128, 10]", "float32[64, 10]"),
         ""),
        ((np.ones(3, f32), 0.1), (np.ones(3), 0.1), "dtype", "x", ("float32[3]", "float64[3]"),
         "`….astype(np.float32)` for `x`"),
        ((np.ones(3), 0.1), (np.ones((3, 1)), 0.1), "rank", "x", ("float64[3]", "float64[3, 1]"), ""),
        ((np.ones(3, f32), 0.1), (np.ones(3, f32), 0.095), "python_value", "lr", ("0.1", "0.095"),
         "`np.asarray(…, np.float32)` for `lr`"),
        ((np.ones(3), 2), (np.ones(3), 3), "python_value", "lr", ("2", "3"), "`np.asarray(…, np.float64)` for `lr`"),
        ((np.ones(3), f32(2)), (np.ones(3), 2.0), "argument_type", "lr", ("float32", "2.0"),
         "`np.asarray(…, np.float32)` for `lr`"),
        ((np.ones(3), 2), (np.ones(3), 2.0), "argument_type", "lr", ("2", "2.0"),
         "`np.asarray(…, np.float64)` for `lr`"),
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
    assert (second.before, second.after) == texts and f"{second.fix or ''}" == (in_words(fix) if fix else "")
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
    assert str(found[2].fix) == in_words("`np.asarray(…, np.float32)` for `opts['lr']`")


def test_a_fix_is_the_call_as_it_is_written():
    @jl.function
    def damp(x, rate, t=0.0, *, opts=None):
        return x * np.exp(-rate * t) * (opts["k"] if opts else 1)

    def fixes_of(run):
        heard = []
        with events.listen(heard.append):
            for step in (1.0, 2.0):
                run(np.ones(3), step)
        return [str(e.fix) for e in heard if isinstance(e, events.Traced) and e.causes[0] == "python_value"][-1]

    def called_with_names(xs, t):
        damp(xs, 0.1, t)

    def called_with_options(xs, step):
        settings = {"k": step}
        damp(xs, 0.2, opts=settings)

    assert fixes_of(lambda xs, step: damp(xs, 0.1, 0.05 * step)) == "damp(xs, 0.1, np.asarray(0.05 * step, np.float64))"
    assert fixes_of(lambda xs, step: damp(xs, rate=3 * step)) == "damp(xs, rate=np.asarray(3 * step, np.float64))"
    assert fixes_of(called_with_names) == "t = np.asarray(t, np.float64)"
    assert fixes_of(called_with_options) == "settings['k'] = np.asarray(settings['k'], np.float64)"
    words = fixes_of(lambda xs, step: damp(*(xs, 7 * step)))
    assert words.startswith("pass `np.asarray(…, np.float64)` for `rate` at the call in test_retraces.py, line ")
    assert fixes_of(lambda xs, step: (damp(xs, 8 * step), damp(xs, 9 * step))).startswith("pass `np.asarray(…, ")


def test_a_call_that_is_written_as_the_fix_says_is_settled_and_one_that_stands_beside_the_old_one_is_not():
    @jl.function
    def damp(x, k):
        return x * k

    def cell(number, source):
        heard = []
        with events.listen(heard.append):
            exec(compile(source, f"<cell {number}>", "exec"), {"damp": damp, "np": np})
        return [e for e in heard if isinstance(e, events.Traced)][-1]

    numbers = cell(901, "for n in range(9):\n    damp(np.ones(3), n / 2)")
    assert (numbers.fix.code, numbers.fix.args["form"]) == ("fix.as_array", "words")  # no source of it is kept
    assert numbers.proof.endswith("9 traces become 1")
    pasted = cell(902, "for n in range(9):\n    damp(np.ones(3), np.asarray(n / 2, np.float64))")
    assert (pasted.fix, pasted.proof) == (None, "")
    assert str(pasted.done) == "Once: `k` was a number before, an array from now on. Nothing to fix."
    both = cell(903, "damp(np.ones(4), 0.5)\ndamp(np.ones(4), np.asarray(0.5))")
    assert both.fix and both.proof


def test_a_fix_of_a_method_leaves_out_what_the_method_is_of():
    class Model:
        @jl.function
        def step(self, x, k):
            return x * k

    model, heard = Model(), []
    with events.listen(heard.append):
        for n in range(2):
            model.step(np.ones(3), n / 2)
    assert heard and [str(e.fix) for e in heard if isinstance(e, events.Traced)][-1] == (
        "model.step(np.ones(3), np.asarray(n / 2, np.float64))"
    )


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
    assert str(found[1].fix) == in_words("`np.ascontiguousarray(…)` for `a`")


def test_calls_are_told_only_when_somebody_listens():
    f = jl.function(lambda x: x * 2)
    f(np.ones(2))
    heard = []
    with events.listen(heard.append):
        f(np.ones(2))
    (called,) = heard
    assert isinstance(called, events.FunctionCalled) and called.trace == 1 and called.duration_ns > 0


def squares(x):
    total = 0.0
    for i in range(len(x)):
        total = total + x[i] * x[i]
    return total


def test_jit_warns_at_its_fifth_trace_as_function_does_and_says_what_would_help(caplog):
    grow = jl.jit(squares)
    for n in range(3, 7):
        grow(np.ones(n))
    assert not caplog.records
    for n in range(7, 12):
        assert grow(np.ones(n)) == n
    first, second = (record.getMessage() for record in caplog.records)  # no more than two
    cure = "ive `x` one length each time, and leave what is not needed of it unused: {} traces become 1"
    assert first.startswith("4 out of the last 5 calls to squares triggered retracing. `x` was float64[6] and is now ")
    assert f"G{cure.format(5)}. print(squares.ledger) lists all of them." in first and second.startswith("5 out of the last 6 ")
    assert f"  try: g{cure.format(9)}, saves " in f"{grow.ledger}"
    with pytest.raises(AssertionError, match="try: give `x` one length each time"), jl.expect(retraces=0):
        for n in range(12, 17):
            grow(np.ones(n))


def test_jit_counts_numbers_that_are_traced_and_what_would_help_is_code(caplog):
    power = jl.jit(lambda x, k: x**k)
    for k in range(5):
        power(np.ones(5), k)
    (record,) = caplog.records
    assert "`k` was 3 and is now 4 (each new Python value is traced again)" in record.getMessage()
    assert "  try: pass `k` as an array: 5 traces become 1" in f"{power.ledger}"


def test_jit_does_not_warn_of_sizes_that_known_code_serves_nor_of_traces_that_many_calls_use(caplog):
    plain, used = jl.jit(lambda x: np.tanh(x) * 2), jl.jit(lambda x, k: x**k)
    for n in range(3, 30):
        plain(np.ones(n))
    for k in range(9):
        for _ in range(20):
            used(np.ones(5), k)
    assert used.experimental_get_tracing_count() > 5 and not caplog.records


def test_gradients_of_different_functions_are_counted_apart_and_named_as_what_they_derive(caplog):
    def made(n):
        return eval(f"lambda x: (x ** {n}).sum()")

    for n in range(2, 9):
        jl.grad(made(n))(np.ones(3))
    assert not [record for record in caplog.records if "retracing" in record.getMessage()]

    def cube(x):
        return (x**3).sum()

    for _ in range(7):
        assert jl.grad(cube) is jl.grad(cube)
        jl.grad(cube)(np.ones(3))  # as a training step is written
    assert not [record for record in caplog.records if "retracing" in record.getMessage()]

    for n in range(7):
        jl.grad(cube)(np.ones(n + 3))
    messages = [record.getMessage() for record in caplog.records if "retracing" in record.getMessage()]
    assert messages and all("cube" in message and "Gradient" not in message for message in messages)


def test_the_gradient_of_a_wrapper_is_the_wrapper_s():
    def cube(x):
        return (x**3).sum()

    jl.grad(cube)

    @functools.wraps(cube)
    def doubled(x):
        return 2 * cube(x)

    np.testing.assert_allclose(jl.grad(doubled)(np.ones(2)), 6)
    np.testing.assert_allclose(jl.grad(cube)(np.ones(2)), 3)


def test_an_option_is_written_into_the_decorator_or_the_call_that_made_the_function():
    def loss(w, x):
        return ((x @ w) ** 2).mean()

    @jl.function
    def decorated(x, k):
        return x * k

    @jl.function(autograph=False, reduce_retracing=False)
    def with_options(x, k):
        return x * k

    gradient = jl.function(jl.value_and_grad(loss))
    curried = jl.function(autograph=False)(decorated.python_function)

    class Model:
        @jl.function
        def scaled(self, x, k):
            return x * k

    model = Model()
    first = test_an_option_is_written_into_the_decorator_or_the_call_that_made_the_function.__code__.co_firstlineno
    specs = "input_signature=[jl.TensorSpec([4], np.float64), jl.TensorSpec([None, 4], np.float64)]"
    for function, args, line, fix in (
        (gradient, (np.ones(4),), 12, f"jl.function(jl.value_and_grad(loss), {specs})"),
        (decorated, (), 4, "@jl.function(reduce_retracing=True)"),
        (with_options, (), 8, "@jl.function(autograph=False, reduce_retracing=True)"),
        (curried, (), 13, "jl.function(autograph=False, reduce_retracing=True)(decorated.python_function)"),
        (model.scaled, (), 16, "@jl.function(reduce_retracing=True)"),
    ):
        calls = [(*args, np.ones((n, 4))) if args else (np.ones(n), 2.0) for n in range(3, 9)]
        event = traced_events(function, *calls)[-1]
        assert (str(event.fix), event.fixed_at) == (fix, (__file__, first + line))
        fixed = eval(fix.removeprefix("@"), {"jl": jl, "np": np, "loss": loss, "decorated": decorated})
        assert callable(fixed)


def test_a_report_says_where_the_option_goes_and_hands_out_what_can_be_pasted():
    step = jl.function(lambda x, k: x * k)
    line = test_a_report_says_where_the_option_goes_and_hands_out_what_can_be_pasted.__code__.co_firstlineno + 1
    with jl.record() as recording:
        for n in range(6):
            step(np.ones(n + 3), 2.0)
    report = recording.report()
    known = report.to_json()["retraces"][-1]
    code = "jl.function(lambda x, k: x * k, reduce_retracing=True)"
    place = f"Write what makes the function in test_retraces.py, line {line} like this."
    assert (known["fix"]["text"], known["place"]) == (code, place)
    assert report.verdict["next"]["code"] == code and report.verdict["next"]["why"].endswith(place)
    assert f"       {code}\n" in f"{report}\n" and f"       {code}\n" in f"{step.ledger}\n"


def test_pieces_that_are_captured_again_are_in_the_ledger_in_the_report_and_in_a_warning(caplog):
    @jl.jit
    def tree(s, n):
        v = s * 2
        for i in range(n - 1, -1, -1):
            s = s[1 : i + 2] * 0.5
            v = np.maximum(v[1 : i + 2] + v[: i + 1], s)
        return v[0]

    first = test_pieces_that_are_captured_again_are_in_the_ledger_in_the_report_and_in_a_warning.__code__.co_firstlineno
    with jl.record() as recording, caplog.at_level("WARNING"):
        tree(np.ones(41), 40)
    report = recording.report().to_json()
    again = [retrace for retrace in report["retraces"] if not retrace["first"]]
    pieces = {piece.site.line - first: piece for piece in tree.ledger.pieces.values()}
    assert sum(piece.traces for piece in pieces.values()) == len(report["retraces"]) == 3 + len(again)
    assert pieces[5].traces == 6  # then the loop is left to Python
    assert f"{tree.ledger}".startswith(f"tree: {len(report['retraces'])} traces, ")
    assert f"test_retraces.py, line {first + 5}: {pieces[5].traces} traces, {pieces[5].calls} calls, " in f"{tree.ledger}"
    cure = "Give `s` one length each time, and leave what is not needed of it unused."
    message = caplog.records[0].getMessage()
    assert message.startswith("5 of the last ") and f"test_retraces.py, line {first + 5}. {cure} print(tree.ledger)" in message
    assert len(caplog.records) == 2 and cure in {retrace["fix"]["text"] for retrace in again if retrace["fix"]}
    (statement,) = report["statements"]
    assert "`s` has another length after each iteration; give it one" in statement["reason"]["text"]


def test_pieces_that_fit_again_are_no_retraces_and_warn_nobody(caplog, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")

    @jl.jit
    def waits(x):
        y = x * 2
        open("/dev/null").close()
        return y + x.mean()

    with caplog.at_level("WARNING"):
        for n in range(12):
            waits(np.full(5, float(n)))
    assert not caplog.records
    assert [(piece.traces, piece.calls, piece.change) for piece in waits.ledger.pieces.values()] == [(1, 12, None)] * 2


def test_a_jit_and_a_function_of_one_body_are_no_retraces_of_each_other():
    def b(x):
        return x + 1

    made = [how(b) for how in (jl.jit, jl.function)]
    for f in made:
        f(np.ones(3))
        assert [miss.causes for miss in f.ledger] == [("first_call",)]


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (jl.jit, jl.jit(jit_level="O0"), ("no options", "jit_level='O0'")),
        (jl.jit(fullgraph=True), jl.jit, ("fullgraph=True", "no options")),
        (jl.function, jl.function(jit_compile=True), ("jit_compile=None", "jit_compile=True")),
    ],
    ids=["level", "fullgraph", "jit_compile"],
)
def test_options_are_told_as_they_are_written(one, other, told):
    def b(x):
        return x + 1

    one(b)(np.ones(3))
    f = other(b)
    f(np.ones(3))
    ((change,),) = (miss.changes for miss in f.ledger)
    assert (change.cause, change.before, change.after) == ("options", *told)
