"""Calls of user functions, methods, lambdas, builtins and libraries inside a traced function."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
import warnings
from collections import namedtuple

import numpy as np
import pytest
from programs import a
from same import assert_same, leaves

import jitlab as jl
from jitlab import events
from jitlab.errors import CaptureError, InvalidArgumentError, OutOfScopeError, ValueOfTracedArrayError
from jitlab.messages import Message
from tests.left import assert_plain

WEIGHTS = a(4, 3)
LISTED = [np.ones(3), {"b": np.arange(3.0)}]
Pair = namedtuple("Pair", "first second")


@pytest.fixture(autouse=True)
def _op_by_op(op_by_op):
    pass


def assert_like_numpy(function, *arrays, traces=1):
    traced = jl.function(function)
    for _ in range(2):
        mine, theirs = ([x.copy() if isinstance(x, np.ndarray) else x for x in arrays] for _ in range(2))
        expected = function(*theirs)
        given = traced(*mine)
        assert_same(given, expected, numbers_become_scalars=True)
        assert_plain(given, mine)
        assert_same(mine, theirs)
    assert traced.experimental_get_tracing_count() == traces
    return traced


def ops(traced):
    (traces,) = traced._traces.values()
    return [node.op.name for node in traces[0].graph.nodes]


def scaled(x, by=2):
    return x * by


class Layer:
    """A layer with weights, called like a function."""

    count = 0

    def __init__(self, w):
        self.w = w
        self.__secret = 3.0

    def __call__(self, x):
        return self.hidden(x) + self.__secret

    def hidden(self, x):
        return np.tanh(x @ self.w)

    @staticmethod
    def double(x):
        return x * 2

    @classmethod
    def make(cls, x):
        return cls.double(x) + 1

    @property
    def size(self):
        return self.w.sum()


class Deeper(Layer):
    def hidden(self, x):
        return super().hidden(x) * 2


def test_calls_of_functions_with_defaults_and_keywords():
    assert_like_numpy(lambda x: scaled(x) + scaled(x, 3) + scaled(by=4, x=x), a(3))


def test_methods_and_inheritance():
    layer, deeper = Layer(WEIGHTS), Deeper(WEIGHTS)

    def f(x):
        return layer(x), deeper(x), layer.double(x), Layer.make(x), layer.size

    assert "Tanh" in ops(assert_like_numpy(f, a(2, 4)))


def test_lambdas_on_one_line():
    f, g = (lambda x: x + 1), (lambda x: x * WEIGHTS[:, 0])
    assert_like_numpy(lambda x: f(g(x)) - g(f(x)), a(4))
    pair = (lambda u: np.exp(u), lambda u: np.sin(u))
    assert ops(assert_like_numpy(pair[1], a(4))) == ["Sin"]
    assert ops(assert_like_numpy(pair[0], a(4))) == ["Exp"]


def test_closures_and_nested_functions():
    shift = a(3)

    def make(k):
        def inner(x):
            def deepest(y):
                return y + shift * k

            return deepest(x) - shift

        return inner

    assert_like_numpy(make(3), a(3))
    assert_like_numpy(lambda x: make(2)(x) + make(5)(x), a(3))


def test_nonlocal_and_recursion():
    def f(x):
        total = x

        def add(n):
            nonlocal total
            if n == 0:
                return
            total = total + n
            add(n - 1)

        add(3)
        return total

    assert_like_numpy(f, a(2))


def test_comprehensions_generators_and_star():
    def f(x):
        parts = [row * i for i, row in enumerate(x)]
        table = {i: row.sum() for i, row in enumerate(x) if i}
        total = sum(row.max() for row in x)
        first, *rest = parts
        return parts, table, total, first, rest, np.stack([*rest, first]), max(len(parts), 2)

    assert_like_numpy(f, a(3, 2))


def test_generator_function_runs_as_it_is():
    def rows(x):
        for row in x:
            yield row * 2

    assert_like_numpy(lambda x: [r + 1 for r in rows(x)], a(3, 2))


def test_partial_map_reduce_and_sorted():
    double = functools.partial(scaled, by=2)

    def f(x):
        mapped = list(map(scaled, [x, x + 1]))
        folded = functools.reduce(lambda u, v: u + v, mapped)
        return double(x), mapped, folded, sorted([3, 1], key=lambda k: -k)

    assert_like_numpy(f, a(3))


def test_containers_in_and_out():
    def f(batch, options):
        x, (y, *_) = batch
        options_used = options["scale"] * x
        return Pair(options_used, [y]), {"n": len(batch), "none": None}, (1, 2.5, True)

    f_traced = jl.function(f)
    args = (a(2), [a(3), 1]), {"scale": np.float32(2), "rest": {"z": a(1)}}
    result = f_traced(*args)
    assert_same(result, f(*args), numbers_become_scalars=True)
    assert type(result[0]) is Pair


def test_globals_closures_attributes_and_containers_are_inputs():
    held = Layer(a(3))

    def f(x):
        return x * WEIGHTS[0] + LISTED[0] + LISTED[1]["b"] + held.w

    traced = assert_like_numpy(f, a(3))
    WEIGHTS[0] += 1
    held.w *= 2
    try:
        assert_same(traced(a(3)), f(a(3)))
    finally:
        WEIGHTS[0] -= 1
    assert traced.experimental_get_tracing_count() == 1


def test_rebound_global_is_told_once():
    scope = {"np": np, "weights": a(3)}
    exec("def f(x):\n    return x * weights", scope)
    traced = jl.function(scope["f"], autograph=False)
    traced2 = jl.function(_make_reader(scope))
    assert_same(traced2(a(3)), a(3) * a(3))
    scope["weights"] = a(3) * 10
    heard = []
    with events.listen(heard.append), pytest.warns(UserWarning, match="weights .* has been bound to another object since"):
        assert_same(traced2(a(3)), a(3) * a(3))
    assert any(isinstance(e, events.ValueFrozen) and "weights" in e.what for e in heard)
    traced2(a(3))  # no second warning
    assert_same(traced(a(3)), a(3) * scope["weights"])


def _make_reader(scope):
    import linecache

    source = "def reader(x):\n    return x * weights\n"
    linecache.cache["<reader>"] = (len(source), None, source.splitlines(True), "<reader>")
    exec(compile(source, "<reader>", "exec"), scope)
    return scope["reader"]


def _loaded(scope, source, file):
    import linecache

    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), scope)


def test_a_helper_that_was_defined_again_is_told_once():
    scope = {"np": np}
    _loaded(scope, "def step(x):\n    return x + 1\n", "<step>")
    _loaded(scope, "def f(x):\n    return step(x) * 2\n", "<caller>")
    traced = jl.function(scope["f"], input_signature=[jl.TensorSpec([None], np.float64)])
    assert_same(traced(a(3)), scope["f"](a(3)))
    before = scope["f"](a(4))
    _loaded(scope, "def step(x):\n    return x + 10\n", "<step again>")
    heard = []
    text = r"step \(line 2\) .* defined again since\. Define f again"
    with events.listen(heard.append), pytest.warns(UserWarning, match=text) as told:
        assert_same(traced(a(4)), before)  # another size of the same trace: the same function
        traced(a(3))
    assert len(told) == 1 and told[0].filename == __file__
    assert [e.what for e in heard if isinstance(e, events.ValueFrozen)] == ["function step"]


def test_another_size_of_a_trace_reads_the_array_of_the_trace():
    scope = {"np": np, "weight": np.array(2.0)}
    _loaded(scope, "def g(x):\n    return x * weight\n", "<weighted>")
    traced = jl.function(scope["g"], input_signature=[jl.TensorSpec([None], np.float64)])
    traced(a(3))
    scope["weight"] = np.array(5.0)
    with pytest.warns(UserWarning, match="weight .* has been bound to another object since"):
        assert_same(traced(a(4)), a(4) * 2)


def test_a_property_that_makes_arrays_is_read_at_each_access():
    class Rows:
        k = 0

        @property
        def row(self):
            return np.arange(6.0)[self.k : self.k + 1] * 1

    rows = Rows()

    def f(x):
        rows.k = 0
        y = x * rows.row
        rows.k = 2
        return y + rows.row

    traced = jl.function(f, input_signature=[jl.TensorSpec([None], np.float64)])
    for n in (2, 3):
        assert_same(traced(a(n)), f(a(n)))


def test_a_helper_of_a_module_and_of_a_closure_are_watched():
    module = types.ModuleType("steps")
    _loaded(vars(module), "def step(x):\n    return x + 1\n", "<module step>")
    helper = module.step

    def f(x):
        return module.step(x) * helper(x)

    traced = jl.function(f)
    expected = traced(a(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced(a(3))
    _loaded(vars(module), "def step(x):\n    return x + 10\n", "<module step again>")
    with pytest.warns(UserWarning, match="the function that step"):
        assert_same(traced(a(3)), expected)
    helper = module.step
    with pytest.warns(UserWarning, match="the function that helper"):
        assert_same(traced(a(3)), expected)


def test_array_written_through_a_global():
    counter = np.zeros(2)

    @jl.function
    def f(x):
        counter[0] += x.sum()
        return counter

    assert f(a(2)) is counter and f(a(2)) is counter
    assert_same(counter, np.array([6.0, 0.0]))


def test_argument_that_is_also_a_global():
    shared = a(3)

    def f(x):
        x[0] = 100
        return shared.sum()

    traced = jl.function(f)
    assert traced(shared) == 105
    shared[0] = 1
    assert traced(a(3)) == 6
    assert traced(shared) == 105
    assert traced.experimental_get_tracing_count() == 1


def test_python_values_freeze_and_effects_happen_at_trace_only():
    log = []
    box = {"k": 2}

    @jl.function
    def f(x):
        log.append(1)
        return x * box["k"]

    assert_same(f(a(2)), a(2) * 2)
    box["k"] = 5
    assert_same(f(a(2)), a(2) * 2)
    assert log == [1]


def test_tensor_that_leaks_is_out_of_scope():
    kept = []

    @jl.function
    def f(x):
        kept.append(x * 2)
        return x

    f(a(2))
    for use in (lambda t: t + 1, lambda t: t.sum(), lambda t: t[0], np.sin, lambda t: t.__setitem__(0, 1), bool, float):
        with pytest.raises(OutOfScopeError, match="out of scope and cannot be used here"):
            use(kept[0])


def test_result_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="must return zero or more Tensors"):
        jl.function(lambda x: object())(a(2))


def test_functions_of_numpy_without_arrays():
    def f(x):
        listed = np.array([1, 2, 3]), np.array([x.sum(), 1.0])
        return np.zeros(3) + np.arange(3), listed, np.prod(x.shape), np.sqrt(2), np.pi * x

    assert_like_numpy(f, a(3, 2))


def test_array_made_inside_is_new_at_each_call():
    @jl.function
    def f(x):
        y = np.zeros(2)
        z = np.array([1.0, 2.0])
        y += x
        z *= x
        return y, z

    first, second = f(a(2)), f(a(2))
    assert_same(first, second)
    first[0][0] = 99
    assert_same(f(a(2)), second)


def test_isinstance_type_and_attributes():
    def f(x):
        s = x.sum()
        assert isinstance(x, np.ndarray) and isinstance(s, np.floating) and not isinstance(s, np.ndarray)
        assert type(x) is np.ndarray and hasattr(x, "shape") and not hasattr(x, "nothing") and callable(x.sum)
        assert np.shape(x) == x.shape and np.ndim(x) == 2 and np.size(x, 0) == len(x) and x.T.shape == x.shape[::-1]
        return x.dtype == np.float64, x.nbytes, x.itemsize, getattr(x, "size", None), math.sqrt(x.shape[0])

    assert_like_numpy(f, a(3, 2))


def test_missing_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'numpy.ndarray' object has no attribute 'nothing'"):
        jl.function(lambda x: x.nothing)(a(2))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sort(x)[::-1],
        lambda x: np.linalg.svd(x.reshape(2, 2)).S,
        lambda x: np.linalg.solve(x.reshape(2, 2) + np.eye(2), x[:2]),
        lambda x: np.cumprod(x) * 2,
        lambda x: np.searchsorted(x, [1.5, 2.5]),
        lambda x: x.argpartition(1)[0] + 1,
        lambda x: np.interp(2.5, x, x * 2),
        lambda x: np.histogram(x, bins=3),
        lambda x: np.unique(x[[0, 0, 1]]),
        lambda x: np.einsum("i,i->", x, x),
        lambda x: np.divmod.outer(x, x[:2]) if False else np.logaddexp(x, 1.0),
        lambda x: (x + 0.5).searchsorted(2.0),
    ],
)
def test_host_operations(function):
    assert_like_numpy(function, a(4))


def test_result_of_another_shape_runs_as_python():
    rng, other = np.random.default_rng(3), np.random.default_rng(3)

    def f(x, generator):
        return generator.random(2).sum() + np.unique(x) * 2

    traced = jl.function(lambda x: f(x, rng))
    heard = []
    with events.listen(heard.append):
        for x in (a(3), np.ones(3), a(3)):
            assert_same(traced(x), f(x, other))
    (ran,) = [e for e in heard if isinstance(e, events.StatementRan)]
    assert ran.reason == "data_dependent_shape" and ran.met == ("3", "1")
    line = inspect.getsourcelines(f)[1] + 1
    assert ran.text.endswith(f", because the length of `np.unique(x)` (line {line}) changes from run to run")
    assert ran.lines[0][1] == inspect.getsourcelines(test_result_of_another_shape_runs_as_python)[1] + 10  # of the call


def test_results_of_another_shape_or_dtype_are_told_as_that():
    def ask(what, x, y):
        heard = []
        f = jl.function(lambda x: what(x))
        f(x)
        with events.listen(heard.append):
            f(y)
        (ran,) = [e for e in heard if isinstance(e, events.StatementRan)]
        return ran.text, ran.met

    text, met = ask(lambda x: x[:, x[0] > 0] * 2, np.ones((2, 3)), np.float64([[1, 0, 1], [1, 1, 1]]))
    assert "the length in axis 1 of `x[:, x[0] > 0]` (line " in text and "changes from run to run" in text and met == ("3", "2")
    text, met = ask(lambda x: np.argwhere(x) * 2, np.ones((2, 3)), np.zeros((2, 3)))
    assert "`np.argwhere(x)` (line " in text and met == ("6", "0")


def test_host_operation_knows_its_line_and_reason():
    traced = jl.function(lambda x: np.unique(x * 2) + 1)
    traced(a(3))
    (traces,) = traced._traces.values()
    (node,) = [n for n in traces[0].graph.nodes if n.op.name == "Unique"]
    assert node.op.reason == Message("stays.count_of", {"name": "unique"}) and node.op.code == "data_dependent"
    assert {s.line for s in node.sources} == {test_host_operation_knows_its_line_and_reason.__code__.co_firstlineno + 1}


def test_must_compile_refuses_host_operations():
    @jl.function(jit_compile=True)
    def step(x):
        return helper(x) * 2

    def helper(x):
        return np.unique(x)

    with pytest.raises(InvalidArgumentError) as error:
        step(a(3))
    text = str(error.value)
    line = helper.__code__.co_firstlineno + 1
    for part in ("Detected unsupported operations when trying to compile graph", "step", "_XlaMustCompile=true", "unique",
                 f"line {line}", "return np.unique(x)"):  # fmt: skip
        assert part in text

    @jl.function
    def outer(x):
        return step(x)

    with pytest.raises(InvalidArgumentError, match="_XlaMustCompile=true"):
        outer(a(3))
    assert step.experimental_get_tracing_count() == 0


def test_host_function_without_array_result():
    with pytest.raises(CaptureError, match="may_share_memory gives a Python bool"):
        jl.function(lambda x: np.may_share_memory(x, x))(a(2))


def test_random_numbers_are_drawn_at_each_call_as_numpy_does():
    rng, other = np.random.default_rng(3), np.random.default_rng(3)

    def f(x, generator):
        return x + generator.normal(size=2) + generator.random()

    traced = jl.function(lambda x: f(x, rng))
    for _ in range(3):
        assert_same(traced(a(2)), f(a(2), other))
    np.random.seed(0)
    draw = jl.function(lambda x: x + np.random.rand(2))
    first = [draw(a(2)), draw(a(2))]
    np.random.seed(0)
    assert_same(first, [a(2) + np.random.rand(2) for _ in range(2)])


def test_generator_made_inside_begins_anew_at_each_call():
    def f(x):
        rng = np.random.default_rng(7)
        np.random.seed(3)
        y = x + rng.normal(size=2)
        rng.shuffle(y)
        return y + rng.random(), np.random.rand(2)

    traced = jl.function(f)
    for _ in range(3):
        assert_same(traced(a(2)), f(a(2)))


def test_unconverted_function_is_caught_by_the_protocols():
    scope = {"np": np}
    exec("def f(x, out):\n    np.add(x, 1, out=out)\n    return np.sin(x) * np.float64(2) + np.concatenate([x, x])[:3]", scope)
    out = np.empty(3)
    traced = jl.function(scope["f"])
    assert_same(traced(a(3), out), np.sin(a(3)) * 2 + a(3))
    assert_same(out, a(3) + 1)
    (traces,) = traced._traces.values()
    assert {n.op.name for n in traces[0].graph.nodes} >= {"Sin", "Mul", "AddV2"}


def test_autograph_off():
    traced = jl.function(lambda x: x * 2 + WEIGHTS[:, 0], autograph=False)
    assert_same(traced(a(4)), a(4) * 2 + WEIGHTS[:, 0])


def test_numpy_on_no_tensor_is_frozen_and_told():
    scope = {"np": np, "held": a(3)}
    heard = []

    def f(x):
        return x + np.frombuffer(b"\0" * 24)

    with events.listen(heard.append):
        assert_same(jl.function(f)(a(3)), a(3))
    (frozen,) = [e for e in heard if isinstance(e, events.ValueFrozen)]
    assert frozen.what == "np.frombuffer" and frozen.lines[0][1] == f.__code__.co_firstlineno + 1
    assert scope


def test_integer_scalar_as_a_count_is_part_of_the_recording():
    @jl.function
    def f(x, n):
        return x[:n] * 2, np.zeros(n), [x[i] for i in range(n)]

    assert [len(f(a(5), np.int64(n))[0]) for n in (2, 3, 2)] == [2, 3, 2]
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("use", [complex, lambda s: s.tobytes(), lambda s: [1, 2][s], lambda s: f"{s:.2f}"])
def test_values_of_traced_arrays(use):
    with pytest.raises(ValueOfTracedArrayError) as error:
        jl.function(lambda x: use(x.sum()))(a(3))
    for part in ("is known only when the program runs", "where: test_calls.py, line", "why: ", "try: "):
        assert part in str(error.value)


def test_tensors_have_shapes_and_text():
    seen = []

    @jl.function
    def f(x):
        seen.append((str(x), f"{x}", x.shape, x.shape[0] * 2, [n for n in x.shape]))
        return x

    f(a(2, 3))
    text = 'Tensor("x:0", shape=(2, 3), dtype=float64)'
    assert seen == [(text, text, (2, 3), 4, [2, 3])]


def test_zero_dimensional_arrays_and_scalars():
    def f(x, z):
        arrays = z[...], z.reshape(1), x[0, ...], np.where(True, x[0], 1.0), np.array(x[0]), z.copy()
        return arrays, z + 1, z[()], np.sum(x), x[0]

    assert_like_numpy(f, a(2), np.array(3.0))
    assert leaves(jl.function(lambda z: z)(np.array(3.0)))[0].shape == ()


def test_an_array_made_by_its_class_is_made_at_each_call(op_by_op):
    def program(x):
        made = np.ndarray((3, 2), dtype=np.float32)
        made[:] = x
        return made

    f = jl.function(program)
    first, second = f(np.float32(1)), f(np.float32(2))
    assert first.dtype == np.float32 and (first == 1).all() and (second == 2).all()


def test_an_array_that_numpy_made_at_capture_is_new_at_each_call(op_by_op):
    def program(x):
        window = np.hanning(5)
        window *= 2
        window[0] = x
        return window

    f = jl.function(program)
    for x in (7.0, 8.0):
        np.testing.assert_array_equal(f(np.float64(x)), program(x))


def sum_of(terms, tmp_path):
    """A function in a file, and the file's text: a sum of so many terms in one expression, as programs write them."""
    text = f"def f(x):\n    return {' + '.join(['x'] * terms)}\n"
    path = tmp_path / f"sum_of_{terms}.py"
    path.write_text(text)
    namespace = {}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace["f"]


@pytest.mark.parametrize("kind", [jl.function, jl.jit])
def test_an_expression_of_many_terms_has_room(kind, tmp_path):
    limit = sys.getrecursionlimit()
    assert kind(sum_of(700, tmp_path))(np.ones(2)).tolist() == [700, 700]
    assert sys.getrecursionlimit() == limit


def test_what_numpy_answers_with_a_bool_of_python_is_one():
    def ask(x):
        near = np.allclose(x, x + 1e-12)
        return near, np.array_equal(x, x + 1), np.array_equiv(x, x), near + 1, not near, x * near, np.isclose(x, x).all()

    x = np.arange(3.0)
    for ours, numpys in zip(jl.jit(ask)(x), ask(x), strict=True):
        assert type(ours) is type(numpys) and np.array_equal(ours, numpys)
