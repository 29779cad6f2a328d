"""Decorated functions are copied as themselves, and arrive in other processes as the same function: by name or by value."""

import copy
import json
import linecache
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.runtime.compiled import forget_compiled

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import sending  # noqa: E402
import sent_functions  # noqa: E402

X, WANT = sending.X, sending.WANT
DECORATORS = [jl.jit, jl.function]
both = pytest.mark.parametrize("decorate", DECORATORS, ids=["jit", "function"])


def through_cloudpickle(value):
    return pickle.loads(cloudpickle.dumps(value))


def module_of(text, tmp_path, name="script.py"):
    """Names of a text that is run as a file of its own, as `__main__` is."""
    file = tmp_path / name
    file.write_text(text)
    space = {"__name__": "__main__", "np": np, "jl": jl}
    exec(compile(text, str(file), "exec"), space)  # noqa: S102
    return types.SimpleNamespace(**space)


# ---- in this process


@pytest.mark.parametrize("name", [*sent_functions.NAMED, *sent_functions.OTHERS])
def test_a_copy_is_the_function_itself(name):
    f = {**sent_functions.NAMED, **sent_functions.OTHERS}[name]
    for _ in range(10):
        np.testing.assert_array_equal(f(X), WANT)
        if not isinstance(f, types.MethodType):
            assert copy.copy(f) is f and copy.deepcopy([f])[0] is f


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_what_an_import_finds_is_pickled_by_its_name(dumps, protocol):
    for f in (sent_functions.jitted, sent_functions.traced, sent_functions.strict):
        for _ in range(10):
            assert pickle.loads(dumps(f, protocol)) is f
            f(X)


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_methods_of_a_class_that_an_import_finds_are_pickled_by_their_names(dumps):
    assert pickle.loads(dumps(sent_functions.Model.step)) is sent_functions.Model.step
    assert pickle.loads(dumps(sent_functions.Model)) is sent_functions.Model
    assert type(pickle.loads(dumps(sent_functions.model))) is sent_functions.Model


def test_a_module_that_is_registered_by_value_is_sent_by_value():
    cloudpickle.register_pickle_by_value(sent_functions)
    try:
        data = cloudpickle.dumps(sent_functions.jitted)
    finally:
        cloudpickle.unregister_pickle_by_value(sent_functions)
    arrived = pickle.loads(data)
    assert arrived is not sent_functions.jitted
    np.testing.assert_array_equal(arrived(X), WANT)


@both
def test_plain_pickle_says_what_it_says_of_a_plain_local_function(decorate):
    def local(x):
        return x

    with pytest.raises((pickle.PicklingError, AttributeError)) as plain:
        pickle.dumps(local)
    with pytest.raises(plain.type) as ours:
        pickle.dumps(decorate(local))
    assert str(ours.value) == str(plain.value)


@both
def test_a_function_sent_by_value_has_its_options_and_no_traces(decorate):
    def local(x, n=2):
        return x * n

    f = decorate(local)
    f(X)
    arrived = through_cloudpickle(f)
    assert arrived is not f and type(arrived).__name__ == type(f).__name__
    assert arrived.experimental_get_tracing_count() == 0
    np.testing.assert_array_equal(arrived(X), X * 2)
    np.testing.assert_array_equal(arrived(X, n=3), X * 3)
    assert arrived.__name__ == "local" and arrived.__qualname__ == local.__qualname__


def test_options_arrive():
    f = through_cloudpickle(jl.jit(lambda x: x + 1, jit_level="O0", fullgraph=True, capture_mode="trace"))
    assert (f.options.jit_level, f.options.fullgraph, type(f).__name__) == ("O0", True, "PathJit")
    spec = jl.TensorSpec([None], np.float64)
    g = through_cloudpickle(jl.function(lambda x: x + 1, input_signature=[spec], jit_compile=True))
    assert g.input_signature == (spec,) and g.options.jit_compile is True


@both
def test_two_arrivals_share_the_compiled_program_and_nothing_else(decorate, compiled):
    def local(x):
        y = np.cos(x) * 1.2345
        return y * y - y + state["n"]

    state = {"n": 1.0}
    data = cloudpickle.dumps(decorate(local))
    first, second = pickle.loads(data), pickle.loads(data)
    forget_compiled()
    heard = []
    with events.listen(lambda event: heard.append(event) if isinstance(event, events.ProgramCompiled) else None):
        first(X)
        assert heard[0].origin in ("compiled", "disk")
        del heard[:]
        second(X)
        assert "memory" in [event.origin for event in heard]
    first.python_function.__closure__[0].cell_contents["n"] = 5.0
    assert decorate is jl.function or first(X)[0] == local(X)[0] + 4.0
    np.testing.assert_array_equal(second(X), local(X))


@both
def test_functions_that_call_themselves_or_one_another_arrive_whole(decorate, tmp_path):
    script = module_of(
        "def f(x, n=3):\n    return x if n == 0 else g(x + 1, n - 1)\n"
        "def g(x, n=5):\n    return x if n == 0 else f(x * 2, n - 1)\n"
        "def h(x, *, n=2):\n    return h_(x, n=n - 1) if n else f(x)\n",
        tmp_path,
    )
    space = script.f.__globals__
    want = script.f(X)
    space.update(f=decorate(script.f), g=decorate(script.g), h_=decorate(script.h))
    for sent in (space["f"], space["g"], space["h_"]):
        np.testing.assert_array_equal(through_cloudpickle(sent)(X), sent(X))
    np.testing.assert_array_equal(through_cloudpickle(space["f"])(X), want)
    np.testing.assert_array_equal(through_cloudpickle(script.h)(X), want)  # plain: it leads to itself, decorated


@both
def test_a_local_class_with_a_decorated_method_arrives_with_its_objects(decorate):
    class Local:
        def __init__(self, w):
            self.w = w

        @decorate
        def times(self, x):
            return x * self.w

    held = Local(3.0)
    one, kind, method = through_cloudpickle((Local(2.0), Local, held.times))
    assert type(one) is kind
    np.testing.assert_array_equal(one.times(X), X * 2)
    np.testing.assert_array_equal(method(X), X * 3)  # though nothing else holds its object
    again = through_cloudpickle(method)
    np.testing.assert_array_equal(again(X), X * 3)


def test_a_method_by_name_keeps_the_object_that_came_with_it():
    method = pickle.loads(pickle.dumps(sent_functions.model.step))
    np.testing.assert_array_equal(method(X), WANT)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(method))(X), WANT)


# ---- sources


@both
def test_two_versions_of_a_file_arrive_each_with_its_own_lines(decorate, tmp_path, compiled):
    """A script that was edited between two runs on one cluster: names, places and arguments are the same, values are not."""
    sent = []
    for factor in (2, 3):
        text = f"def f(x):\n    y = np.sin(x) * 0.0 + x * {factor}\n    assert y is not None\n    return y\n"
        script = module_of(text, tmp_path)
        sent.append(cloudpickle.dumps(decorate(script.f)))
        linecache.clearcache()
    (tmp_path / "script.py").unlink()
    linecache.clearcache()
    arrived = [pickle.loads(data) for data in sent]
    for f, factor in reversed([*zip(arrived, (2, 3), strict=True)]):
        with jl.record() as recording:
            np.testing.assert_array_equal(f(X), X * factor)
        report = recording.report().data
        assert report["clusters"] and not report["statements"], "its source was found"


# ---- Variables


@pytest.mark.parametrize(
    ("body", "name", "line"),
    [
        ("v.assign_add(x)", "v", 3),
        ("v.assign(\n        v + x)", "v", 3),
        ("(lambda y: v.assign_sub(y))(x)", "v", 3),
        ("box.inner.v.assign(x)", "box.inner.v", 3),
        ("helper(x)", "v", 7),
    ],
)
@both
def test_a_sent_function_that_assigns_to_a_variable_of_its_closure_is_refused(decorate, body, name, line, tmp_path):
    text = f"def make(v, box):\n  def f(x):\n    {body}\n    return x\n"
    text += "\n" * (5 - text.count("\n")) + "  def helper(x):\n    v.assign(x)\n  return f\n"
    v = jl.Variable(np.zeros(7))
    box = types.SimpleNamespace(inner=types.SimpleNamespace(v=v))

    class Box:
        def __init__(self, **names):
            self.__dict__.update(names)

    box = Box(inner=Box(v=v))
    f = decorate(module_of(text, tmp_path).make(v, box))
    with pytest.raises(pickle.PicklingError) as refused:
        cloudpickle.dumps(f)
    assert f"the Variable {name} (script.py, line {line})" in str(refused.value)


def test_a_sent_function_that_reads_a_variable_has_its_value():
    v = jl.Variable(np.full(7, 3.0))
    f = jl.function(lambda x: v * x)
    np.testing.assert_array_equal(through_cloudpickle(f)(X), 3 * X)


# ---- tokens of Dask


def token(f):
    return pytest.importorskip("dask.base").tokenize(f)


TEXT = """
K = 2
def helper(x):
    return x + K
def f(x, n=1, *, m=2):
    return helper(x) * n + m + (x > 0 if "a" in {"a", "b", "c"} else 0)
"""


@both
def test_the_token_is_the_same_for_the_same_function_and_options(decorate, tmp_path):
    one = module_of(TEXT, tmp_path, "one.py").f
    two = module_of("\n\n" + TEXT, tmp_path, "two.py").f
    f, g = decorate(one), decorate(two)
    assert token(f) == token(g) == token(through_cloudpickle(f))
    before = token(f)
    for _ in range(10):
        f(X)
    assert token(f) == before
    assert token(sent_functions.model.step) == token(sent_functions.Model().step)


@both
def test_the_token_differs_with_text_options_closure_globals_defaults_and_helpers(decorate, tmp_path):
    found = [token(decorate(module_of(TEXT, tmp_path).f))]
    for before, after in [("* n", "/ n"), ("K = 2", "K = 3"), ("n=1", "n=4"), ("m=2", "m=3"), ("x + K", "x - K")]:
        assert before in TEXT
        found.append(token(decorate(module_of(TEXT.replace(before, after), tmp_path).f)))
    option = {"fullgraph": True} if decorate is jl.jit else {"jit_compile": True}
    found.append(token(decorate(module_of(TEXT, tmp_path).f, **option)))
    array = np.ones(3)
    for value in (1.0, 2.0, array, array + 1, jl.jit(lambda x: x), jl.jit(lambda x: -x)):
        found.append(token(decorate(returning(value))))
    assert len(set(found)) == len(found)


def returning(value):
    return lambda x: value


@both
def test_a_function_that_reaches_itself_has_a_token(decorate, tmp_path):
    space = module_of("def f(x, n=3):\n    return x if n == 0 else table['f'](x, n - 1)\n", tmp_path).f.__globals__
    f = space["f"] = decorate(space["f"])
    space["table"] = {"f": f}
    assert token(f) == token(f)


@pytest.mark.slow
def test_the_token_is_the_same_in_another_process():
    pytest.importorskip("dask")
    names = ("jitted", "traced", "strict", "inner", "of_lambda")
    program = f"import dask.base, sent_functions as s; print([dask.base.tokenize(getattr(s, name)) for name in {names}])"
    assert in_child(["-c", program]).strip() == str([token(getattr(sent_functions, name)) for name in names])


# ---- other processes


def in_child(arguments):
    paths = os.pathsep.join([str(HERE.parent.parent), str(HERE), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    assert run.returncode == 0, run.stderr[-4000:]
    return run.stdout


FUNCTIONS = (HERE / "sent_functions.py").read_text()
MAIN = """
if __name__ == "__main__":
    import sending
    sending.report(NAMED, {**sending.PLAIN, **sending.BY_VALUE})
    sending.report(OTHERS, sending.BY_VALUE)
"""
MODULE = 'if __name__ == "__main__":\n    from sent_functions import NAMED, OTHERS\n' + MAIN
CELLS = f"""
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

shell = InteractiveShell.instance(config=Config(HistoryManager=dict(enabled=False)))
shell.run_cell({FUNCTIONS!r}, store_history=True).raise_error()
shell.run_cell('''
import sending
del sending.PLAIN["spawn"]  # a process that is spawned cannot import a cell
{MAIN}
''', store_history=True).raise_error()
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["module", "main", "cell"])
def test_functions_run_compiled_with_their_lines_wherever_they_are_sent(place, tmp_path):
    script = tmp_path / "script.py"
    script.write_text({"module": MODULE, "main": FUNCTIONS + MAIN, "cell": CELLS}[place])
    found = [json.loads(line) for line in in_child([str(script)]).splitlines()]
    ways = 7 - (place == "cell")
    assert len(found) == 2 * (ways * len(sent_functions.NAMED) + 3 * len(sent_functions.OTHERS))
    for name, way, state, outcome in found:
        case = f"{name} by {way}, {state}: {outcome}"
        assert outcome.get("right") and outcome["compiled"], case
        assert outcome["elsewhere"] == (way in ("spawn", "fork", "joblib")), case
        assert {"return np.sqrt(x) * SCALE"} <= set(outcome["lines"]), case
        assert any("scaled(x) +" in line for line in outcome["lines"]), case


CLUSTER = """
    import dask.array as da
    import distributed
    client = distributed.Client(distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))
    results = {name: client.gather(client.map(sending.call, [f] * 4, pure=False)) for name, f in {**NAMED, **OTHERS}.items()}
    blocks = {name: bool(np.array_equal(da.from_array(sending.X, chunks=3).map_blocks(f, dtype=float).compute(), sending.WANT))
              for name, f in {**NAMED, **OTHERS}.items()}
    mapped = {name: all(np.array_equal(value, sending.WANT) for value in client.gather(client.map(f, [sending.X] * 4)))
              for name, f in {**NAMED, **OTHERS}.items()}
    print(sending.json.dumps([results, blocks, mapped]))
    client.shutdown()
"""


@pytest.mark.long
@pytest.mark.parametrize("place", ["module", "main", "cell"])
def test_a_dask_cluster_runs_them_compiled_with_their_lines(place, tmp_path):
    pytest.importorskip("distributed")
    script = tmp_path / "script.py"
    main = 'if __name__ == "__main__":\n    import sending\n' + CLUSTER
    imported = "import numpy as np\nfrom sent_functions import NAMED, OTHERS\n"
    script.write_text({"module": imported + main, "main": FUNCTIONS + main, "cell": CELLS.replace(MAIN, main)}[place])
    results, blocks, mapped = json.loads(in_child([str(script)]).splitlines()[-1])
    assert all(blocks.values()) and all(mapped.values()), (blocks, mapped)
    for name, outcomes in results.items():
        for outcome in outcomes:
            assert outcome["right"] and outcome["compiled"], (name, outcome)
            assert any("scaled(x) +" in line for line in outcome["lines"]), (name, outcome)
