"""Variables, lets, branches, run-time symbols and the user's loops as machine code: what a Program says, in its order."""

import sys
from pathlib import Path

import numpy as np
import pytest

from jitlab.ir.programs.program import (
    LANES,
    PARALLEL,
    Accumulator,
    Assign,
    CheckedIndex,
    Define,
    For,
    If,
    Index,
    IndexValue,
    Let,
    Load,
    Local,
    Read,
    Repeat,
    Scalar,
    Step,
    Store,
    Variable,
)
from jitlab.ops.elementwise.arithmetic import Abs, Add, Mul, RealDiv, Sub
from jitlab.ops.elementwise.comparison import Greater, Less
from jitlab.ops.reducing.axis_reductions import Sum

sys.path.insert(0, str(Path(__file__).parent))
from statement_programs import N, apply, assert_same, at, buffer, number, program  # noqa: E402

F8, I8, B1 = np.dtype("f8"), np.dtype("i8"), np.dtype("?")
x, y = buffer("x0", "input", "n0"), buffer("y0", "output", "n0")
one = buffer("y0", "output", 1)
ADD, MUL, SUB = Add(), Mul(), Sub()


def total_of_squares():
    """total = 0.0; for i in range(n): total = total + x[i] * x[i]"""
    total = Variable("v0", F8)
    load = Load(x, at(N("i0")))
    body = [Let("l0", Read(total)), Assign(total, apply(ADD, Local("l0", F8), apply(MUL, load, load)))]
    end = [Let("l1", Read(total)), Store(one, at(), Local("l1", F8))]
    body = [Assign(total, Scalar("c0", F8)), Repeat("i0", N("n0"), body), *end]
    return program([x], [one], body, symbols=["n0"], scalars=[("c0", F8)], variables=[total])


@pytest.mark.parametrize("n", [0, 1, 2, 17, 1000])
def test_a_variable_carries_a_value_from_turn_to_turn(n):
    values = np.random.default_rng(n).normal(size=n)
    assert_same(total_of_squares(), {"x0": values, "y0": np.zeros(1)}, {"n0": n}, {"c0": 0.5})


def test_lower_solve_in_place_reads_what_was_stored_before():
    """for i: for j in 0..i: b[i] -= L[i, j] * b[j]; b[i] /= L[i, i]: triangular solve, both loops the user's, b an argument."""
    b, lower = buffer("x0", "input", "n0"), buffer("x1", "input", "n0", "n0")
    i, j, n = N("i0"), N("i1"), N("n0")
    step = Store(b, at(i), apply(SUB, Load(b, at(i)), apply(MUL, Load(lower, at(i * n + j)), Load(b, at(j)))))
    last = Store(b, at(i), apply(RealDiv(), Load(b, at(i)), Load(lower, at(i * n + i))))
    p = program([b, lower], [], [Repeat("i0", n, [Repeat("i1", i, [step]), last])], symbols=["n0"])
    rng = np.random.default_rng(0)
    for size in (0, 1, 5, 33):
        matrix = np.tril(rng.normal(size=(size, size))) + 3 * np.eye(size)
        assert_same(p, {"x0": rng.normal(size=size), "x1": matrix}, {"n0": size})


def test_an_inner_vector_loop_has_bounds_of_the_loop_around():
    """for i in range(n): A[i, :i] += A[:i, :i][i - 1] * x[i]: lengths 0, 1, 2, ..."""
    a = buffer("x1", "input", "n0", "n0")
    i, n = N("i0"), N("n0")
    row = Index(i * n) + Index.var("a0")
    before = Index((i - number(1)) * n) + Index.var("a0")
    value = apply(ADD, Load(a, row), apply(MUL, Load(a, before), Load(x, at(i))))
    p = program([x, a], [], [Repeat("i0", n, [For("a0", (Index(i),), [Store(a, row, value)], PARALLEL)])], symbols=["n0"])
    rng = np.random.default_rng(1)
    for size in (1, 2, 16, 40):
        assert_same(p, {"x0": rng.normal(size=size), "x1": rng.normal(size=(size, size))}, {"n0": size})


def test_a_value_computed_before_a_store_is_not_used_after_it():
    """y[0] = x[0] + 1; x[0] = y[0] * 2; y[1] = x[0] + 1, where both sums are one shared expression."""
    out = buffer("y0", "output", 2)
    total = apply(ADD, Load(x, at()), Scalar("c0", F8))
    body = [
        Store(out, at(), total),
        Store(x, at(), apply(MUL, Load(out, at()), Scalar("c1", F8))),
        Store(out, at(const=1), total),
    ]
    p = program([x], [out], body, symbols=["n0"], scalars=[("c0", F8), ("c1", F8)])
    left = assert_same(p, {"x0": np.array([5.0]), "y0": np.zeros(2)}, {"n0": 1}, {"c0": 1.0, "c1": 2.0})
    assert left["y0"].tolist() == [6, 13]


def test_a_let_keeps_the_value_of_its_time():
    out = buffer("y0", "output", 2)
    load = Load(x, at())
    body = [
        Let("l0", load),
        Store(x, at(), apply(ADD, Local("l0", F8), Local("l0", F8))),
        Store(out, at(), Local("l0", F8)),
        Store(out, at(const=1), load),
    ]
    p = program([x], [out], body, symbols=["n0"])
    left = assert_same(p, {"x0": np.array([5.0]), "y0": np.zeros(2)}, {"n0": 1})
    assert left["y0"].tolist() == [5, 10]


def test_what_a_loop_changes_is_computed_anew_in_each_turn_and_after_it():
    """s = x[0] * c, before, in and after a loop that stores x[0]: three times the same expression object."""
    out = buffer("y0", "output", 8)
    scaled = apply(MUL, Load(x, at()), Scalar("c0", F8))
    body = [
        Store(out, at(), scaled),
        Repeat("i0", N("n1"), [Store(out, at(N("i0"), const=1), scaled), Store(x, at(), apply(ADD, scaled, Load(x, at())))]),
        Store(out, at(const=7), scaled),
    ]
    p = program([x], [out], body, symbols=["n0", "n1"], scalars=[("c0", F8)])
    for turns in (0, 1, 5):
        assert_same(p, {"x0": np.array([3.0]), "y0": np.zeros(8)}, {"n0": 1, "n1": turns}, {"c0": 2.0})


def newton():
    """while go: x = (x + c / x) / 2; n += 1; go = |x*x - c| > e   (no count: until the test says no)"""
    root, go, turns = Variable("v0", F8), Variable("v1", B1), Variable("v2", I8)
    out, steps = buffer("y0", "output", 1), buffer("y1", "output", 1, dtype="i8")
    c, half = Scalar("c0", F8), Scalar("c1", F8)
    old, new = Local("l0", F8), Local("l1", F8)
    body = [
        Let("l0", Read(root)),
        Let("l1", apply(MUL, apply(ADD, old, apply(RealDiv(), c, old)), half)),
        Assign(root, new),
        Let("l2", Read(turns)),
        Assign(turns, apply(ADD, Local("l2", I8), Scalar("c2", I8))),
        Assign(go, apply(Greater(), apply(Abs(), apply(SUB, apply(MUL, new, new), c)), Scalar("c3", F8), dtype="?")),
    ]
    ask = [Let("l3", Read(go))]
    start = [Assign(root, c), Assign(go, Scalar("c4", B1)), Assign(turns, Scalar("c5", I8))]
    end = [Let("l4", Read(root)), Let("l5", Read(turns))]
    end += [Store(out, at(), Local("l4", F8)), Store(steps, at(), Local("l5", I8))]
    return program(
        [], [out, steps], [*start, Repeat("i0", None, body, ask, Local("l3", B1)), *end],
        scalars=[("c0", F8), ("c1", F8), ("c2", I8), ("c3", F8), ("c4", B1), ("c5", I8)], variables=[root, go, turns],
    )  # fmt: skip


def test_a_while_loop_ends_when_its_test_says_no():
    scalars = {"c0": 2.0, "c1": 0.5, "c2": 1, "c3": 1e-12, "c4": True, "c5": 0}
    left = assert_same(newton(), {"y0": np.zeros(1), "y1": np.zeros(1, np.int64)}, scalars=scalars)
    assert abs(left["y0"][0] - 2**0.5) < 1e-12
    assert 3 < left["y1"][0] < 9
    never = assert_same(newton(), {"y0": np.zeros(1), "y1": np.zeros(1, np.int64)}, scalars={**scalars, "c4": False})
    assert never["y1"][0] == 0


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "c8", "c16"])
def test_variables_of_every_kind_live_across_kernels(dtype):
    """Assigned in one kernel, changed in a loop in the next, stored in the last, with a loop over elements in between."""
    dtype = np.dtype(dtype)
    v, source = Variable("v0", dtype), buffer("x0", "input", "n0", dtype=dtype)
    out = buffer("y0", "output", 1, dtype=dtype)
    copy = buffer("y1", "output", "n0", dtype=dtype)
    first = [Assign(v, Load(source, at()))]
    loop = [For("a0", (Index(N("n0")),), [Store(copy, at("a0"), Load(source, at("a0")))], PARALLEL)]
    again = [Repeat("i0", N("n0"), [Let("l0", Read(v)), Assign(v, apply(ADD, Local("l0", dtype), Load(source, at(N("i0")))))])]
    last = [Let("l1", Read(v)), Store(out, at(), Local("l1", dtype))]
    p = program([source], [out, copy], [first, loop, again, last], symbols=["n0"], variables=[v])
    rng = np.random.default_rng(2)
    values = (rng.integers(0, 4, 9) + (1j * rng.integers(0, 4, 9) if dtype.kind == "c" else 0)).astype(dtype)
    assert_same(p, {"x0": values, "y0": np.zeros(1, dtype), "y1": np.zeros(9, dtype)}, {"n0": 9})


def test_branches_choose_blocks_and_leave_variables():
    """for v in x: if v < 0: neg += v else: (if v > c: big = v); counts of both in one pass"""
    below, big = Variable("v0", F8), Variable("v1", F8)
    out = buffer("y0", "output", 2)
    value = Local("l0", F8)
    zero, c = Scalar("c0", F8), Scalar("c1", F8)
    nested = If(apply(Greater(), value, c, dtype="?"), [Assign(big, value)], [])
    branch = If(
        apply(Less(), value, zero, dtype="?"),
        [Let("l1", Read(below)), Assign(below, apply(ADD, Local("l1", F8), value))],
        [nested],
    )
    loop = Repeat("i0", N("n0"), [Let("l0", Load(x, at(N("i0")))), branch])
    body = [
        Assign(below, zero), Assign(big, zero), loop, Let("l2", Read(below)), Let("l3", Read(big)),
        Store(out, at(), Local("l2", F8)), Store(out, at(const=1), Local("l3", F8)),
    ]  # fmt: skip
    p = program([x], [out], body, symbols=["n0"], scalars=[("c0", F8), ("c1", F8)], variables=[below, big])
    values = np.random.default_rng(3).normal(size=50)
    assert_same(p, {"x0": values, "y0": np.zeros(2)}, {"n0": 50}, {"c0": 0.0, "c1": 0.7})


def sparse_product():
    """CSR matrix times vector: bounds of the inner loop are read from an array, indices from another."""
    pointers, columns = buffer("x1", "input", N("n1") + number(1), dtype="i8"), buffer("x2", "input", "n2", dtype="i8")
    values, out = buffer("x3", "input", "n2"), buffer("y0", "output", "n1")
    i = N("i0")
    begin, end = Load(pointers, at(i)), Load(pointers, at(i, const=1))
    accumulator = Accumulator("r0", Sum((0,)), F8, F8, Index(N("d1") - N("d0")))
    place = Index(N("d0")) + Index.var("a0")
    column = CheckedIndex(Load(columns, place), N("n0"), 0)
    product = apply(MUL, Load(values, place), Load(x, at(), ((column, number(1)),)))
    inner = For(
        "a0", (Index(N("d1") - N("d0")),), [Step(accumulator, product, Index.var("a0"))], LANES,
        accumulators=[accumulator],
    )  # fmt: skip
    body = [Define("d0", begin), Define("d1", end), inner, Store(out, at(i), Local("r0", F8))]
    return program(
        [x, pointers, columns, values], [out], [Repeat("i0", N("n1"), body)], symbols=["n0", "n1", "n2"], errors=1
    )


def csr(rng, rows, width):
    counts = rng.integers(0, 40, rows)
    pointers = np.concatenate([[0], np.cumsum(counts)])
    return pointers, rng.integers(-width, width, pointers[-1])


def test_bounds_read_from_an_array_become_symbols():
    rng = np.random.default_rng(4)
    pointers, columns = csr(rng, 30, 25)
    values = rng.integers(-8, 8, len(columns)).astype(float)  # sums are exact in any order
    memory = {"x0": rng.integers(-8, 8, 25).astype(float), "x1": pointers, "x2": columns, "x3": values, "y0": np.zeros(30)}
    assert_same(sparse_product(), memory, {"n0": 25, "n1": 30, "n2": len(columns)})


def test_an_index_out_of_range_ends_the_run_after_the_stores_before_it():
    rng = np.random.default_rng(5)
    pointers, columns = csr(rng, 30, 25)
    columns[pointers[17]] = 25
    values = np.ones(len(columns))
    memory = {"x0": rng.integers(-8, 8, 25) + 0.5, "x1": pointers, "x2": columns, "x3": values, "y0": np.zeros(30)}
    left = assert_same(sparse_product(), memory, {"n0": 25, "n1": 30, "n2": len(columns)})
    assert left["y0"][:17].any()
    assert not left["y0"][17:].any()


def test_a_symbol_of_the_top_level_serves_the_kernels_after_it():
    """n = count[0]; y[:n] = x[:n] * 2; for i in range(n): y[i] += 1"""
    count, out = buffer("x1", "input", 1, dtype="i8"), buffer("y0", "output", "n0")
    first = [Define("d0", Load(count, at()))]
    twice = apply(ADD, Load(x, at("a0")), Load(x, at("a0")))
    double = [For("a0", (Index(N("d0")),), [Store(out, at("a0"), twice)], PARALLEL)]
    i = at(N("i0"))
    again = [Repeat("i0", N("d0"), [Store(out, i, apply(ADD, Load(out, i), Scalar("c0", F8)))])]
    p = program([x, count], [out], [first, double, again], symbols=["n0"], scalars=[("c0", F8)])
    for n in (0, 3, 20):
        assert_same(p, {"x0": np.arange(20.0), "x1": np.array([n]), "y0": np.zeros(20)}, {"n0": 20}, {"c0": 1.0}, chunk=7)


def test_a_local_of_one_kernel_is_read_by_the_next():
    out = buffer("y0", "output", "n0")
    first = [Let("l0", apply(ADD, Load(x, at()), Scalar("c0", F8)))]
    second = [For("a0", (Index(N("n0")),), [Store(out, at("a0"), apply(MUL, Load(x, at("a0")), Local("l0", F8)))], PARALLEL)]
    p = program([x], [out], [first, second], symbols=["n0"], scalars=[("c0", F8)])
    assert_same(p, {"x0": np.arange(50.0) + 1, "y0": np.zeros(50)}, {"n0": 50}, {"c0": 1.0}, chunk=16)


def test_an_index_is_a_number_too():
    out = buffer("y0", "output", 20, dtype="i8")
    value = IndexValue(Index(N("i0") * N("i0") - number(3)))
    p = program([], [out], [Repeat("i0", number(20), [Store(out, at(N("i0")), value)])])
    assert_same(p, {"y0": np.zeros(20, np.int64)})
