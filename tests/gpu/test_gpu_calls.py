"""Calls with arrays in a GPU's memory: results stay there, as NumPy would have them; what would read them is an error."""

import functools
import gc
import pickle
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.compat import mindspore, tensorflow
from jitlab.targets import devices


@pytest.fixture
def gpu():
    with jl.simulated_gpu() as driver:
        yield driver


BOTH = pytest.mark.parametrize("decorator", [jl.jit, jl.function])
X = np.random.default_rng(0).random((5, 7))
Y = np.random.default_rng(1).random((5, 7))


def compare(found, want):
    """Arrays on the device where NumPy has arrays; numbers where it has numbers."""
    if isinstance(want, (list, tuple)):
        assert type(found) is type(want) and len(found) == len(want)
        for a, b in zip(found, want, strict=True):
            compare(a, b)
    elif isinstance(want, dict):
        assert type(found) is type(want) and list(found) == list(want)
        compare(list(found.values()), list(want.values()))
    elif isinstance(want, str) or want is None:
        assert found == want
    elif isinstance(want, np.ndarray) and want.ndim:
        assert type(found) is jl.DeviceArray and found.dtype == want.dtype and found.shape == want.shape
        np.testing.assert_allclose(found.to_numpy(), want, rtol=1e-13)
    else:
        assert type(found) is type(want)
        np.testing.assert_allclose(found, want, rtol=1e-13)


def chosen(x, y):
    if x.sum() > 3:
        return x + 1
    return y - 1


def repeated(x, y):
    while x.sum() < 200:
        x = x * 2 + y
    return x


def looped(x, y):
    z = y * 1
    for k in range(3):
        z = z + x * k
    return z


PROGRAMS = {
    "one": lambda x, y: np.exp(x) + y,
    "scalar": lambda x, y: (x * y).sum(),
    "several": lambda x, y: (x + y, {"a": x.sum(0), "b": [y.max(), "text", None]}),
    "twice the same": lambda x, y: (lambda z: (z, z))(x + y),
    "argument": lambda x, y: (x, y + 1),
    "view of an argument": lambda x, y: (x[1:, ::2], y.T, x.reshape(7, 5), x[0]),
    "view of a result": lambda x, y: (x + y).T,
    "parts of a result": lambda x, y: (lambda z: (z[:2], z[2:]))(x * y),
    "copy of an argument": lambda x, y: x.copy(),
    "matmul": lambda x, y: x @ y.T,
    "host operation": lambda x, y: np.sort(x + y, axis=1),
    "host operation alone": lambda x, y: np.sort(x, axis=1),
    "branch": lambda x, y: np.where(x > y, x, y) if x.ndim == 2 else x,
    "choice": chosen,
    "loop": looped,
    "constant": lambda x, y: (np.arange(4), x * 0 + 1),
    "index": lambda x, y: x[np.array([2, 0])] + y[0],
    "other dtype": lambda x, y: (x > 0.5, (x * 10).astype("i4"), x.astype("f4")),
    "empty": lambda x, y: x[:0] + 1,
    "zeros": lambda x, y: np.zeros_like(x) + y.mean(),
    "masked": lambda x, y: x[x > 0.5].sum() + y,
    "gradient": lambda x, y: jl.value_and_grad(lambda x: (x * y).sum())(x),
    "while": repeated,
    "einsum": lambda x, y: np.einsum("ij,kj->ik", x, y),
    "stack": lambda x, y: (np.stack([x, y]), np.concatenate([x.T, y.T])),
    "keepdims": lambda x, y: x - x.mean(1, keepdims=True),
    "host inverse": lambda x, y: np.linalg.inv(x @ x.T + np.eye(5)),
    "float": lambda x, y: (x + float(len(x)), x * 2.5),
}


@BOTH
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_stay_there(gpu, decorator, name):
    f = PROGRAMS[name]
    g = decorator(f)
    want = f(X, Y)
    for _ in range(8):
        x, y = jl.to_device(X), jl.to_device(Y)
        found = g(x, y)
        if name == "constant":
            assert np.array_equal(found[0] if isinstance(found[0], np.ndarray) else found[0].to_numpy(), want[0])
        else:
            compare(found, want)
        np.testing.assert_array_equal(x.to_numpy(), X)
    assert gpu.launched or "argument" in name or "host" in name


@BOTH
def test_an_argument_that_is_given_back_is_that_array(gpu, decorator):
    x = jl.to_device(X)
    for _ in range(3):
        found, other = decorator(lambda x: (x, x + 1))(x)
        assert found is x and other is not x


@BOTH
def test_a_view_of_an_argument_shares_its_memory(gpu, decorator):
    x = jl.to_device(X)
    found = decorator(lambda x: x[1:, ::2])(x)
    assert found.owner is x.owner and found.address == x[1:, ::2].address and found.strides == x[1:, ::2].strides


@BOTH
@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::3], lambda x: x[2], lambda x: x[:0]])
def test_views_go_in(gpu, decorator, view):
    g = decorator(lambda x: np.exp(x) * 2)
    for _ in range(2):
        compare(g(view(jl.to_device(X))), np.exp(view(X)) * 2)


@BOTH
def test_nothing_is_copied_between_the_memories(gpu, decorator):
    g = decorator(lambda x, y: np.exp(x) + y)
    x, y = jl.to_device(X), jl.to_device(Y)
    heard = []
    with events.listen(heard.append):
        for _ in range(3):
            z = g(x, y)
            x = g(z, y)
    assert not [e for e in heard if isinstance(e, events.DeviceCopied)]


@BOTH
def test_numpys_arrays_may_be_among_them(gpu, decorator):
    g = decorator(lambda x, y, k: x * y + k)
    compare(g(jl.to_device(X), Y, 2.5), X * Y + 2.5)
    compare(g(X, jl.to_device(Y), np.float64(1)), X * Y + 1)
    assert type(g(X, Y, 1)) is np.ndarray


@BOTH
def test_they_may_stand_in_containers(gpu, decorator):
    g = decorator(lambda p, more: p["w"] @ p["b"] + more[0][1])
    w, b, c = X, np.random.default_rng(2).random(7), np.ones(5)
    compare(g({"w": jl.to_device(w), "b": jl.to_device(b)}, [(0, jl.to_device(c))]), w @ b + c)


@BOTH
def test_keywords_and_methods(gpu, decorator):
    class Model:
        @decorator
        def run(self, x, *, scale=2.0):
            return x * scale

    compare(Model().run(jl.to_device(X), scale=3.0), X * 3)
    compare(Model().run(jl.to_device(X)), X * 2)


@BOTH
def test_a_number_on_the_device_is_read_where_it_decides(gpu, decorator):
    g = decorator(lambda x, n: x[:n] * 2)
    for n in (2, 3, 2):
        compare(g(jl.to_device(X), jl.to_device(np.array(n))), X[:n] * 2)


@BOTH
def test_memory_goes_with_the_results(gpu, decorator):
    g = decorator(lambda x: (np.exp(x), x.sum(0)))
    x = jl.to_device(X)
    g(x)
    gc.collect()
    gc.disable()  # reference counts alone
    try:
        held = gpu.held_bytes
        for _ in range(20):
            g(x)
            assert gpu.held_bytes == held
        del x
        assert gpu.held_bytes < held
    finally:
        gc.enable()


def in_place(x):
    x += 1
    return x


def asks(x):
    return x * len(str(x.tolist()))


def of_unknown_size(x):
    return np.unique((x * 3).round())


def by_python(x):
    with open("/dev/null") as file:
        return x * len(file.read())


KEPT = []


def trained(params, x):
    error = x @ params["w"] - params["b"]
    params["w"] = params["w"] - 0.1 * (x.T @ error)
    params["new"] = x[0] * 1
    return params, (error**2).mean()


def test_lists_and_dicts_hold_what_a_call_puts_there(gpu):
    w, b = np.random.default_rng(3).random(7), np.ones(5)
    params, plain = {"w": jl.to_device(w), "b": jl.to_device(b), "k": 3}, {"w": w, "b": b, "k": 3}
    f, x = jl.function(trained), jl.to_device(X)
    for _ in range(6):
        kept = params["b"]
        found, loss = f(params, x)
        _, want = trained(plain, X)
        assert params["b"] is kept and list(params) == list(plain)
        compare(params, plain)
        compare([found["w"], found["new"]], [plain["w"], plain["new"]])
        np.testing.assert_allclose(loss, want, rtol=1e-12)


def test_what_is_printed_and_kept_are_the_arrays(gpu, capsys):
    f = jl.jit(prints_and_keeps)
    for n in range(1, 8):
        x = jl.to_device(X)
        compare(f(x), X * 2)
        assert capsys.readouterr().out == f"sum {X.sum().round(3)}\n" and len(KEPT) == 2 * n
        assert KEPT[-1] is x
        compare(KEPT[-2], X + 1)
    KEPT.clear()


def prints_and_keeps(x):
    print("sum", x.sum().round(3))
    KEPT.append(x + 1)
    KEPT.append(x)
    return x * 2


@BOTH
@pytest.mark.parametrize("function", [in_place, asks, by_python, of_unknown_size])
def test_what_would_read_or_change_one_is_an_error(gpu, decorator, function):
    x = jl.to_device(X)
    g = decorator(function)
    for _ in range(3):
        KEPT.clear()
        try:
            found = g(x)
        except (TypeError, ValueError, jl.errors.JitlabError) as error:
            text = str(error)
            said = "to_numpy" in text or "keeps an argument" in text or "destination is read-only" in text
            assert said or decorator is jl.function and isinstance(error, jl.errors.JitlabError)
        else:  # what `jl.function` does once, when it is traced
            assert decorator is jl.function and not any(type(kept) is np.ndarray for kept in KEPT)
            compare(found, decorator(function)(X.copy()))
        np.testing.assert_array_equal(x.to_numpy(), X)


@BOTH
def test_errors_are_numpys(gpu, decorator):
    x = jl.to_device(X)
    with pytest.raises(ValueError, match="could not be broadcast"):
        decorator(lambda x: x + np.ones(3))(x)
    with pytest.raises(IndexError, match="out of bounds"):
        decorator(lambda x, i: x[i] * 2)(x, jl.to_device(np.array([1, 9])))
    with pytest.raises(np.linalg.LinAlgError):
        decorator(lambda x: np.linalg.inv(x[:2, :2] * 0))(x)


def test_a_function_that_never_saw_one_runs_as_before(gpu):
    g = jl.jit(lambda x: x + 1)
    for _ in range(20):
        assert type(g(X)) is np.ndarray
    compare(g(jl.to_device(X)), X + 1)
    assert type(g(X)) is np.ndarray and g.experimental_get_tracing_count() == 1


def test_no_value_of_what_stands_for_one_is_read(gpu, monkeypatch):
    """A process that may not even read it runs the programs: one that did would end here."""
    program = """
import mmap, numpy as np, jitlab as jl
from tests.gpu import test_gpu_calls as tests
mmap.PROT_READ = 0
with jl.simulated_gpu():
    for decorator in (jl.jit, jl.function):
        for name, f in tests.PROGRAMS.items():
            g = decorator(f)
            for _ in range(3):
                g(jl.to_device(tests.X), jl.to_device(tests.Y))
print("whole")
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "whole\n", (found.returncode, found.stderr[-2000:])


def test_other_kinds_of_functions_give_them_too(gpu):
    x = jl.to_device(X)
    for f in (
        jl.jit(chain, fullgraph=True), jl.jit(chain, capture_mode="trace"), jl.jit(chain, capture_mode="bytecode"),
        jl.jit(chain, jit_level="O0"), jl.function(chain, jit_compile=True), mindspore.jit(chain), tensorflow.function(chain),
        jl.function(chain, input_signature=[jl.TensorSpec([None, 7], np.float64)]),
        pickle.loads(pickle.dumps(jl.jit(chain))), functools.partial(jl.jit(chain)),
    ):  # fmt: skip
        for _ in range(2):
            compare(f(x), chain(X))


def chain(x):
    return np.exp(x) + 1


def test_a_check_runs_its_clusters_on_the_gpu(gpu):
    count = gpu.launched.total()
    found = jl.jit(chain, device="gpu").check(X)
    assert found.outputs[0].max_rel < 1e-14 and gpu.launched.total() > count


# ---- other libraries' arrays


class Theirs:
    """An array of a library that computes on a stream of its own, in memory of the simulated GPU."""

    def __init__(self, array, stream=77, **more):
        self.array, self.told = array, {**array.__cuda_array_interface__, "stream": stream, **more}

    @property
    def __cuda_array_interface__(self):
        return self.told


@pytest.fixture
def library(monkeypatch):
    """A module that is called as CuPy is, whose arrays are these."""
    made = type("ndarray", (Theirs,), {"__module__": "cupy._core.core"})
    module = types.ModuleType("cupy")
    module.asarray = lambda x: made(x.array, x.__cuda_array_interface__["stream"])
    monkeypatch.setitem(sys.modules, "cupy", module)
    return made


@pytest.fixture
def waits(gpu):
    found = []
    gpu.before = lambda stream: found.append(("before", stream, gpu.launched.total()))
    gpu.after = lambda stream: found.append(("after", stream, gpu.launched.total()))
    return found


@BOTH
def test_results_are_of_the_class_of_the_arguments(gpu, library, waits, decorator):
    g = decorator(lambda x, y: (np.exp(x) + y, x[1:], x, (x * y).sum()))
    for _ in range(3):
        x, y = library(jl.to_device(X)), library(jl.to_device(Y))
        waits.clear()
        count = gpu.launched.total()
        new, part, same, total = g(x, y)
        assert waits == [("before", 77, count), ("after", 77, gpu.launched.total())]  # once for both arrays
        assert type(new) is type(part) is library and same is x and new.told["stream"] is None
        compare(new.array, np.exp(X) + Y)
        assert part.array.address == x.array.address + X.strides[0]
        np.testing.assert_allclose(total, (X * Y).sum(), rtol=1e-13)


@BOTH
def test_warm_calls_of_another_librarys_arrays_are_answered_by_c(gpu, library, waits, decorator):
    recorded, f = [], lambda x, y: (np.exp(x) + y, y, (x * y).sum())  # noqa: E731
    g = decorator(f)
    for turn in range(14):
        x, y = library(jl.to_device(X)), library(jl.to_device(Y))
        waits.clear()
        sys.setprofile(lambda frame, event, _: event == "call" and recorded.append(frame.f_code.co_name))
        new, same, total = g(x, y)
        sys.setprofile(None)
        assert [name for name, *_ in waits] == ["before", "after"]
        assert type(new) is library and same is y and new.told["stream"] is None
        compare(new.array, np.exp(X) + Y)
        np.testing.assert_allclose(total, (X * Y).sum(), rtol=1e-13)
        if turn == 12:
            recorded.clear()
    assert "standing" not in recorded and "_answered" in recorded, "the Python way"
    square = library(jl.to_device(X))
    new, same, _ = g(square, square)
    assert same is square
    compare(new.array, np.exp(X) + X)
    with pytest.raises(TypeError, match="the arrays of one library"):
        g(square, jl.to_device(Y))
    compare(g(jl.to_device(X), jl.to_device(Y))[0], np.exp(X) + Y)


@BOTH
def test_an_unknown_librarys_arrays_give_ours(gpu, waits, decorator):
    x = Theirs(jl.to_device(X), 5)
    compare(decorator(lambda x: x * 2)(x), X * 2)
    assert waits[0][:2] == ("before", 5) and waits[-1][:2] == ("after", 5)


@BOTH
def test_a_library_that_tells_no_stream_is_waited_for(gpu, waits, decorator):
    x = Theirs(jl.to_device(X), None)
    x.block_until_ready = lambda: waits.append(("ready", 0, gpu.launched.total()))
    gpu.wait = lambda: waits.append(("wait", 0, gpu.launched.total()))
    g = decorator(lambda x: x * 2)
    compare(g(x), X * 2)
    count = gpu.launched.total()
    assert count and [name for name, *_ in waits] == ["ready", "before", "wait"]
    assert [launched for *_, launched in waits] == [0, 0, count]


@BOTH
def test_classes_are_not_mixed(gpu, library, decorator):
    g = decorator(lambda x, y: x + y)
    with pytest.raises(TypeError, match="the arrays of one library, not of cupy.ndarray and jitlab.DeviceArray"):
        g(library(jl.to_device(X)), jl.to_device(Y))
    compare(g(jl.to_device(library(jl.to_device(X))), jl.to_device(Y)), X + Y)


@BOTH
@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1, ::2], lambda x: x[:0]])
def test_their_views_go_in(gpu, library, decorator, view):
    compare(decorator(lambda x: x + 1)(library(view(jl.to_device(X)))).array, view(X) + 1)


def test_what_they_say_is_checked(gpu):
    x = jl.to_device(X)
    with pytest.raises(TypeError, match="no array of numbers"):
        jl.to_device(Theirs(x, typestr="|O8"))
    with pytest.raises(TypeError, match="no array of numbers"):
        jl.to_device(Theirs(x, mask=x))
    taken = jl.to_device(Theirs(x, data=(x.address, True)))
    assert taken.is_readonly and taken.address == x.address and type(taken.owner) is Theirs


def test_where_nothing_has_opened_a_gpu_nobody_looks_for_arrays(monkeypatch):
    monkeypatch.setattr(devices, "is_there", lambda x: pytest.fail("looked at"))
    for name in ("cupy", "torch", "numba.cuda"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delitem(devices.DEVICES, "GPU", raising=False)
    assert not devices.may_be_there() and jl.jit(lambda x: x + 1)(np.ones(2)).tolist() == [2, 2]


@BOTH
def test_without_a_gpu_their_arrays_are_pythons(library, monkeypatch, decorator):
    """As before: NumPy's functions hand them on to their library."""
    monkeypatch.delitem(devices.DEVICES, "GPU", raising=False)
    monkeypatch.setattr(devices, "_unusable", [])
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    library.__add__ = lambda self, other: "theirs"

    class Array:
        __cuda_array_interface__ = {"shape": (1,), "typestr": "<f8", "data": (256, False), "version": 3, "strides": None}

    x = library(Array())
    assert decorator(lambda x: x + 1)(x) == "theirs"


def test_threads_call_with_their_own_arrays(gpu):
    g = jl.jit(lambda x, y: (np.exp(x) + y, x.sum()))
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(5):
            x, y = rng.random((3, 4 + seed)), rng.random((3, 4 + seed))
            found, total = g(jl.to_device(x), jl.to_device(y))
            if not (np.allclose(found.to_numpy(), np.exp(x) + y) and np.isclose(total, x.sum())):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def sorted_between(x):
    y = np.sort(np.exp(x) + 1, axis=1)
    return y * 2, y[0]


@BOTH
def test_what_no_kernel_does_is_told_with_its_copies(gpu, decorator):
    f = decorator(sorted_between)
    x = jl.to_device(X)
    for _ in range(3):
        compare(f(x), sorted_between(X))
    heard = []
    with events.listen(heard.append):
        report = jl.explain(f, x)
    copies = [(e.direction, e.bytes, e.reason) for e in heard if isinstance(e, events.DeviceCopied)]
    assert copies == [("out", X.nbytes, "host_copy"), *[("in", X.nbytes, "host_copy")] * 2]  # of its cluster
    found = [copy for copy in report.data["copies"] if copy["reason"]["code"] == "host_copy"]
    assert [(copy["bytes"], copy["reason"]["detail"]) for copy in found] == [
        (X.nbytes, "to_host"), *[(X.nbytes, "to_gpu")] * 2,
    ]  # fmt: skip
    assert "is copied to the host, which does what no kernel does: 280 B, 1 time" in str(report)
    said = str(f.ledger)
    assert "runs on the host (host_copy): No kernel does Sort, " in said and "12 copies between the GPU and the host" in said


def test_large_copies_for_the_host_are_warned_of_once(gpu):
    x = jl.to_device(np.ones((256, 512)))
    f = jl.function(sorted_between)
    with pytest.warns(UserWarning, match=r"sorted_between: No kernel does Sort, .* Here that is 1.0 MB in each call") as caught:
        f(x)
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, sorted_between.__code__.co_firstlineno + 1)]
    f(x)  # a warning is an error in tests
