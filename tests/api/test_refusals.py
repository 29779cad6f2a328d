"""What cannot be is answered in the program's own names and lines: the cycle, the type, the loop, what stands between."""

import re

import numpy as np
import pytest

import jitlab as jl

pytestmark = pytest.mark.usefixtures("compiled")
X = np.random.default_rng(5).random((60, 40))
ROWS = np.array([3, 1, 2])


def through_numpy(x):
    scores = np.exp(x)
    order = np.unique(scores[:, 0]).sum()
    return scores * order


def through_a_scope(x):
    with jl.jit_scope(strict=True):
        e = np.exp(x)
    t = np.sin(e)
    with jl.jit_scope(strict=True):
        return e * t


def smoothed(x):
    y = np.exp(x)
    for i in range(1, 50):
        y[i] = y[i - 1] * 0.5 + y[i]
    return y + 2


def scattered(x):
    y = np.exp(x)
    y[ROWS] += 1
    return y * 2


def chosen(x):
    y = np.exp(x)
    if y.sum() > 3:
        y = y * 2
    else:
        y = y + 1
    return np.sqrt(y)


def columns(x):
    n = x.sum(axis=0)
    return x / n


def shares(x):
    total = x.sum()
    return x / total


def singular(x):
    u, s, v = np.linalg.svd(x)
    return s * 2


def picked(x):
    e = np.exp(x)
    some = e[ROWS]
    return some + 1, e


def product(x):
    m = x.T @ x
    return np.tanh(m)


def rows(x):
    y = x.copy()
    for i in range(1, 50):
        s = y[i - 1].sum()
        y[i] = y[i] * s
    return y


def apart(x):
    a = np.exp(x)
    return a, x.mean(axis=1) * 3


def with_nested(x):
    y = x * 1.5
    for t in range(20):
        s = y[t] * 2
        for i in range(1, 50):
            y[i] = np.exp(-y[i - 1]) + s
    return y


CASES = [
    (through_numpy, {"fuse": ("Exp", "Mul")}, "cycle",
     ["`scores` (line", "`np.unique(scores[:, 0])` (line", "in NumPy has to run between them"]),
    (through_numpy, {"fuse": ("Unique", "Mul")}, "not_adjacent",
     ["does not read the result of", "`order` (line", "is between them"]),
    (through_numpy, {"keep_out": "Unique"}, "host", ["NumPy already runs `np.unique(scores[:, 0])` (line"]),
    (through_a_scope, {"fuse": ("Exp", "Mul")}, "cycle", ["`e` (line", "`t` (line", "in NumPy has to run between them"]),
    (smoothed, {"fuse": ("exp", "loop/mul")}, "loop", ["runs inside `for i in range(1, 50)`", "in each iteration", "outside"]),
    (smoothed, {"fuse": ("loop/add", "add")}, "loop", ["outside: they cannot share loops"]),
    (smoothed, {"fuse": ("loop", "add")}, "loop", ["with loops of its own, and ends before `y + 2`"]),
    (smoothed, {"keep_out": "loop/mul"}, "loop", ["`y[i - 1] * 0.5` (line", "which is compiled, or left to NumPy, as a whole"]),
    (scattered, {"fuse": ("Exp", "Mul")}, "not_adjacent", ["`y[ROWS]` (line", "is between them"]),
    (chosen, {"fuse": ("exp", "branch/then/mul")}, "loop", ["inside `if y.sum() > 3`", "where its condition says so"]),
    (chosen, {"fuse": ("branch", "sqrt")}, "loop", ["is a branch", "ends before `np.sqrt(y)`"]),
    (columns, {"fuse": ("Sum", "RealDiv")}, "space", ["`n` (line", "reduced over an outer axis"]),
    (columns, {"cut": ("Sum", "RealDiv")}, "apart", ["already in different kernels"]),
    (shares, {"fuse": ("Sum", "RealDiv")}, "space", ["`total` (line", "known only when all elements have been read"]),
    (singular, {"fuse": ("Svd", "Mul")}, "library", ["`s * 2` (line", "is a library call"]),
    (picked, {"fuse": ("Exp", "GatherV2")}, "memory", ["`some` (line", "an index array says which"]),
    (picked, {"fuse": ("Exp", "AddV2")}, "not_adjacent", ["`some` (line", "is between them"]),
    (product, {"fuse": ("MatMul", "Tanh")}, "library", ["`m` (line", "is a library call"]),
    (rows, {"fuse": ("Sum", "Mul")}, "register", ["`s` (line", "a single number goes between them, in a register"]),
    (rows, {"cut": ("Sum", "Mul")}, "register", ["there is nothing to store"]),
    (apart, {"fuse": ("Exp", "Mean")}, "not_adjacent", ["nothing leads from one to the other"]),
    (with_nested, {"fuse": ("loop/mul_1", "loop/loop/add")}, "loop", ["in different parts of `for t in range(20)`"]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "question", "code", "words"), CASES, ids=lambda value: getattr(value, "__name__", None))
def test_what_forbids_it_is_named_as_the_program_names_it(program, question, code, words):
    with pytest.raises(jl.errors.ImpossiblePlanError) as caught:
        jl.jit(program).whatif(X, seconds=0.01, **question)
    error = caught.value
    assert error.code == code, str(error)
    for word in words:
        assert word in str(error)
    first = program.__code__.co_firstlineno
    last = max(line for *_, line in program.__code__.co_lines() if line)
    assert error.path and all(first < line <= last for step in error.path for line in step["lines"])
    assert all(step["called"] or step["op"] for step in error.path)
    assert ".." not in str(error)


def test_a_value_read_through_a_view_is_computed_a_second_time():
    @jl.jit
    def gram(x):
        e = np.exp(x)
        return e.T @ e, (e[1:] * 3).sum(axis=0)

    answer = gram.whatif(X, fuse=("Exp", "Mul"), seconds=0.01)
    assert any("is computed a second time" in line for line in answer.moved)
    assert answer.keep is not None


def test_a_type_that_nothing_compiles_forbids_a_fusion():
    @jl.function
    def typed(x):
        total = x.sum()
        most = max(total, x[0, 0].astype(np.float32))
        return most * 2

    ops = jl.explain(typed, X).ops
    name = next(op.name for op in ops if op.reason is not None and op.reason.code == "dtype")
    reader = next(op.name for op in ops if name in op.inputs)
    with pytest.raises(jl.errors.ImpossiblePlanError, match="does not compile: ") as caught:
        typed.whatif(X, fuse=(name, reader), seconds=0.01)
    assert caught.value.code == "type" and "the dtype of " in str(caught.value)


@pytest.mark.parametrize("write", [
    lambda x: [1] if bool(x.sum() > 0) else [], lambda x: sorted(x), lambda x: any(v > 0 for v in x), lambda x: max(x[0], x[1]),
    lambda x: range(x.sum()), lambda x: {"a": 1}[x[0]], lambda x: f"{x[0]:.2f}", lambda x: np.random.normal(size=2) + x[0],
])  # fmt: skip
@pytest.mark.parametrize("mode", ["ast", "trace"])
def test_jit_never_speaks_of_tensorflow(write, mode):
    x = np.array([1.0, 2.0])
    for options in ({"fullgraph": True}, {}):
        with jl.record() as recording:
            try:
                jl.jit(write, capture_mode=mode, **options)(x)
            except Exception as error:
                assert not re.search(r"\btf\.|[Tt]ensor", str(error)), error
        assert not re.search(r"\btf\.", str(recording.report()))
