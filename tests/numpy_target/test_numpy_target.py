"""What stands above targets works with a second one: calls, reports, caches, errors, in-place changes."""

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.cluster import cluster
from jitlab.compile import runnable
from jitlab.errors import OptionError
from jitlab.runtime.compiled import compiled
from jitlab.targets import devices
from jitlab.targets.target import Origin
from tests.lower.bodies import RandomProgram
from tests.numpy_target.target import Interpreted, on_numpy


@pytest.fixture
def numpy_target():
    with on_numpy() as target:
        yield target


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


X = np.random.default_rng(0).normal(size=(7, 9))


@pytest.mark.parametrize("how", [jl.function, jl.jit, jl.jit(capture_mode="trace"), jl.jit(jit_level="O0")])
def test_calls_run_on_it_the_first_and_the_hundredth(numpy_target, how, monkeypatch):
    ran, real = [], Interpreted.run
    monkeypatch.setattr(Interpreted, "run", lambda self, *args: ran.append(1) or real(self, *args))
    f = how(softmax)
    for _ in range(20):  # no C function comes in front of it
        np.testing.assert_allclose(f(X), softmax(X), rtol=1e-14)
    assert len(ran) == 20


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::2], lambda x: x[2:5, 1:4]])
def test_what_it_cannot_take_is_copied_and_the_copy_is_told(numpy_target, view):
    f, heard = jl.function(softmax), []
    with events.listen(heard.append):
        np.testing.assert_allclose(f(view(X)), softmax(view(X)), rtol=1e-14)
    assert [e.bytes for e in heard if isinstance(e, events.ArrayCopied)] == [view(X).nbytes]


def test_plans_events_and_kept_code_hold_its_key(numpy_target):
    def planned(x):
        return softmax(x)

    f, heard = jl.function(planned), []
    with events.listen(heard.append):
        f(X)
    mine = [e for e in heard if getattr(e, "function", "") == "planned"]  # what other tests began may still go on behind
    (made,), (code,) = ([e for e in mine if isinstance(e, kind)] for kind in (events.PlanMade, events.ProgramCompiled))
    assert set(made.targets.values()) == {"numpy"} and code.target == "numpy"
    (recording,) = f._recent.values()
    plan = recording.trace.executable.plan
    assert plan.targets == made.targets and {each.target for each in plan.codes.values()} == {"numpy"}


def test_two_targets_share_no_code_of_one_program(numpy_target):
    f = jl.function(softmax)
    f(X)
    (recording,) = f._recent.values()
    (lowered,) = recording.trace.executable._lowerings.values()
    mine = compiled(numpy_target, lowered.program, Origin())
    other = compiled(devices.DEVICES["CPU"], lowered.program, Origin())
    assert mine is compiled(numpy_target, lowered.program, Origin())
    assert other is compiled(devices.DEVICES["CPU"], lowered.program, Origin())
    assert mine is not other and mine.digest != other.digest


def test_its_stage_is_shown_and_a_stage_of_another_target_says_so(numpy_target):
    report = jl.explain(jl.function(softmax), X)
    (cluster,) = report.clusters
    code = report.code(cluster.name, "interpreted")
    first = softmax.__code__.co_firstlineno
    assert code.share == 1.0 and {at for line in code.lines for _, at in line.at} == {first + 1, first + 2}
    other = report.code(cluster.name, devices.DEVICES["CPU"].stages[-1])
    assert not other.lines and "interpreted" in other.note
    with pytest.raises(OptionError, match="interpreted"):
        report.code(cluster.name, "wasm")
    kernels = report.kernels
    assert len(kernels) == 1 and kernels[0].seconds > 0


def refused_index(x, i):
    return np.exp(x)[i] + 1


def test_data_that_numpy_refuses_raises_what_numpy_raises(numpy_target):
    f = jl.function(refused_index)
    np.testing.assert_allclose(f(X, np.array([1, -1])), refused_index(X, np.array([1, -1])), rtol=1e-14)
    with pytest.raises(IndexError, match="out of bounds"):
        f(X, np.array([1, 99]))


def test_an_operation_of_a_library_raises_its_own_error(numpy_target):
    f = jl.jit(lambda a: np.linalg.inv(a * 2.0) + 1.0)
    np.testing.assert_allclose(f(np.eye(3)), np.linalg.inv(np.eye(3) * 2.0) + 1.0)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        f(np.zeros((3, 3)))


def heat(a, b, steps):
    for _ in range(steps):
        b[1:-1] = 0.25 * (a[:-2] + a[2:]) + 0.5 * a[1:-1]
        a[1:-1] = 0.25 * (b[:-2] + b[2:]) + 0.5 * b[1:-1]


def test_arguments_are_changed_in_place(numpy_target):
    mine, theirs = (np.arange(12.0) ** 2, np.zeros(12)), (np.arange(12.0) ** 2, np.zeros(12))
    jl.jit(heat)(*mine, 5)
    heat(*theirs, 5)
    for got, want in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_random_loops_give_the_same_on_both_targets(seed):
    def run():
        program = RandomProgram(seed)
        executable = runnable(cluster(program.graph, jit_compile=True))
        return executable.run(program.arrays)

    want = run()
    with on_numpy():
        got = run()
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
