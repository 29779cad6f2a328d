"""The cost model: weights of instructions, what a kernel is taken for, and what a machine's own measurement changes."""

import math
from dataclasses import replace

import numpy as np
import pytest

import jitlab as jl
from jitlab.ops.base import Elementwise, Reduction
from jitlab.ops.elementwise.arithmetic import Add, FloorDiv, Mul, RealDiv, Sqrt
from jitlab.ops.elementwise.instruction_weights import KINDS, SHIPPED, Counting, Typed, Weights, counted, in_additions, run
from jitlab.ops.elementwise.math_functions import Exp
from jitlab.targets.cpu_llvm import cpu_shape, speeds
from jitlab.targets.devices import default_target

F8, F4, I8 = np.dtype("f8"), np.dtype("f4"), np.dtype("i8")


def every(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from every(sub)


def kernels_of(function, *args):
    with jl.record() as recording:
        jl.jit(function, fullgraph=True)(*args)
    return recording.report().to_json()["kernels"]


def predicted(function, *args):
    return sum(kernel["predicted"] for kernel in kernels_of(function, *args))


# ---- weights


def test_instructions_are_counted_by_the_type_of_their_operands():
    assert counted(Exp(), (F8,), F8) == {("exp", "f8"): 1}
    assert counted(Mul(), (F4, F4), F4) == {("mul", "f4"): 1}
    assert SHIPPED.operation(FloorDiv(), (I8, I8), I8) > 50 * SHIPPED.operation(Add(), (I8, I8), I8)


def test_what_has_a_body_is_counted_by_its_body():
    kinds = [c for c in {*every(Elementwise), *every(Reduction)} if not c.is_family and c.__module__.startswith("jitlab.")]
    assert len(kinds) > 100
    for op, *arrays in (sample for cls in kinds for sample in list(cls.samples())[:3]):
        dtypes = tuple(np.asarray(array).dtype for array in arrays)
        e = Counting()
        run(op, e, [Typed(dtype) for dtype in dtypes])  # raises nothing
        assert all(times >= 0 for times in e.found.values())
        assert 0 <= SHIPPED.operation(op, dtypes, dtypes[0]) < 1e3


def test_weights_are_in_the_order_that_everybody_measures():
    order = [in_additions(op(), (F8,) * n, F8) for op, n in ((Add, 2), (RealDiv, 2), (Sqrt, 1), (Exp, 1))]
    assert order == sorted(order) and order[0] == 1 and order[-1] > 15


def test_a_kind_that_is_slow_on_a_machine_is_slow_there_alone():
    slow = Weights((("division", 4.0),))
    assert slow.operation(RealDiv(), (F8, F8), F8) == 4 * SHIPPED.operation(RealDiv(), (F8, F8), F8)
    assert slow.operation(Exp(), (F8,), F8) == SHIPPED.operation(Exp(), (F8,), F8)


# ---- predictions


def test_a_report_has_the_prediction_beside_the_measurement():
    (kernel,) = kernels_of(lambda x: np.exp(x) + 1, np.linspace(0, 1, 20_000))
    assert kernel["seconds"] > 0 and 1e-6 < kernel["predicted"] < 1e-3


@pytest.mark.parametrize(("less", "more"), [
    (lambda x: x + 1, lambda x: np.exp(x)),
    (lambda x: np.exp(x), lambda x: np.exp(np.sin(x))),
    (lambda x: x * 2, lambda x: 2 / x),
    (lambda x: (x * 2).sum(), lambda x: np.cumsum(x * 2)),
    (lambda x: np.cumsum(x.reshape(1000, -1), axis=1), lambda x: np.cumsum(x)),  # rows do not wait for each other
    (lambda x: x[:50] + 1, lambda x: x + 1),
])  # fmt: skip
def test_more_work_is_predicted_to_take_longer(less, more):
    x = np.linspace(0.1, 1, 100_000)
    assert predicted(less, x) < predicted(more, x)


def test_twice_the_elements_take_about_twice_as_long():
    def f(x):
        return np.sin(x) * x

    half, whole = (predicted(f, np.linspace(0, 1, n)) for n in (400_000, 800_000))
    assert 1.9 < whole / half < 2.1


def test_what_is_computed_again_counts_again():
    x = np.linspace(0.1, 1, 100_000)
    once = predicted(lambda x: np.exp(x) + 1, x)
    twice = predicted(lambda x: np.exp(x)[1:] + np.exp(x)[:-1], x)
    assert 1.7 < twice / once < 2.3


def test_memory_far_away_is_slower_than_a_cache():
    def f(x):
        return x * 2

    near, far = (predicted(f, np.zeros(n)) / n for n in (20_000, 8_000_000))
    assert far > 2 * near


def test_nothing_is_said_of_what_a_library_does():
    assert [k.get("predicted") for k in kernels_of(lambda a: np.linalg.inv(a), np.eye(5))] == [None]
    assert predicted(lambda a: a @ a, np.eye(200)) > 1e-5


def test_other_sizes_are_predicted_without_a_run():
    function = jl.function(lambda x: np.exp(x))
    with jl.record() as recording:
        function(np.zeros(1000))
    program = next(iter(recording.codes.values())).program
    target = default_target()
    (small,) = target.predicted_seconds(program).values()
    (large,) = target.predicted_seconds(program, dict.fromkeys(program.sizes, 100_000)).values()
    assert 50 < large / small < 110


# ---- what a machine measured


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(speeds, "cache_folder", lambda: str(tmp_path))
    return tmp_path


def write(folder, **factors):
    path = folder / f"speeds-{speeds.machine.cpu_name()}.txt"
    path.write_text("".join(f"{name} {factor}\n" for name, factor in factors.items()))
    return path


ALIKE = dict.fromkeys(speeds.MEASURED, 1.0)


class Measures:
    """Stands for the calibration: each measurement takes so many times as long as shipped."""

    def __init__(self, *factors):
        self.factors = list(factors)

    def measure(self):
        factor = self.factors.pop(0)
        return {name: factor * ns for name, ns in speeds.MEASURED.items()}


def test_a_measurement_is_kept_and_read_again(folder, monkeypatch):
    monkeypatch.setattr(speeds, "calibration", calibration := Measures(*[3] * speeds.PROCESSES))
    for _ in range(speeds.PROCESSES + 2):
        assert dict(speeds.measured()) == dict.fromkeys(speeds.MEASURED, 3.0)
    assert not calibration.factors
    known = speeds.of_factors(speeds.measured())
    assert known.weights.instruction("div", F8) == 3 * SHIPPED.instruction("div", F8)
    assert known.caches[0].gives == pytest.approx(speeds.SHIPPED_SPEEDS.caches[0].gives / 3)


def test_of_the_first_processes_the_least_counts(folder, monkeypatch):
    """Who measures while others have half of the core finds everything twice as slow."""
    monkeypatch.setattr(speeds, "calibration", Measures(2.0, 1.1, 2.2))
    assert [dict(speeds.measured())["plain"] for _ in range(3)] == [2.0, 1.1, 1.1]
    assert speeds.kept() == dict.fromkeys(speeds.MEASURED, 1.1)


@pytest.mark.parametrize("text", ["", "plain", "plain 1\n", "plain nan\n", "\0\0", "division -1\n" + "\n"])
def test_a_damaged_file_is_no_measurement(folder, text):
    write(folder, **ALIKE).write_text(text)
    assert speeds.kept() is None and speeds.slowness() == ()


def test_decisions_see_steps_and_no_noise(folder):
    write(folder, **(ALIKE | {"division": 1.15, "root": 0.9}))
    assert speeds.slowness() == ()
    write(folder, **(ALIKE | {"division": 4.1, "function": 0.5}))
    assert speeds.slowness() == (("division", 4.0), ("function", 0.5))
    assert {name for name, _ in speeds.slowness()} <= {*KINDS}


def shifted(x):
    y = 1 / x
    return y[:-2] + y[1:-1] + y[2:]


def test_slow_division_is_stored_and_the_bits_stay(monkeypatch):
    x, target = np.linspace(0.1, 1, 300), default_target()
    shape = target.shape
    before = jl.jit(shifted)(x)
    assert len(kernels_of(shifted, x)) == 1
    monkeypatch.setattr(type(target), "shape", replace(shape, slowness=(("division", 4.0),)))
    assert len(kernels_of(lambda x: shifted(x), x)) == 2
    np.testing.assert_array_equal(jl.jit(lambda x: shifted(x))(x), before)


def test_the_calibration_gives_a_time_for_everything():
    from jitlab.targets.cpu_llvm import calibration

    found = calibration.measure()
    assert found.keys() == speeds.MEASURED.keys()
    assert all(0 < ns < math.inf for ns in found.values())


@pytest.mark.parametrize(("text", "bytes"), [
    ("32768K\n", 32 << 20), ("2M", 2 << 20), ("393216K", 32 << 20), ("", 7), ("none", 7), ("0K", 7), (None, 7),
])  # fmt: skip
def test_a_cache_holds_what_linux_says_within_reason(text, bytes, tmp_path, monkeypatch):
    if text is not None:
        (tmp_path / "size3").write_text(text)
    monkeypatch.setattr(cpu_shape, "CACHES", str(tmp_path / "size{}"))
    assert cpu_shape.cache_bytes.__wrapped__(3, 7) == bytes
