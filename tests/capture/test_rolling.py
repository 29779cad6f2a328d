"""Loops over Python ranges become one Loop of the graph where that can be."""

import numpy as np
import pytest
from same import assert_same
from test_control_flow import as_numpy

import jitlab as jl
from jitlab import events


def x20():
    return np.arange(20.0) - 5


def prefix_sums(x):
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]
    return x


def python_sum(x):
    s = 0
    for i in range(x.shape[0]):
        s += x[i]
    return s


def swapped_names(x):
    a, b = x, x * 2
    for _ in range(18):
        a, b = b, a + b
    return a, b


def largest_and_where(x):
    best, at = x[0], 0
    for i in range(1, 20):
        if x[i] > best:
            best, at = x[i], i
    return best, at


def triangle(x):
    for i in range(20):
        for j in range(i):
            x[i] -= x[j] * 0.01
        for j in range(i + 1, 20):
            x[j] += x[i]
    return x


def backwards_and_in_steps(x):
    t = 0
    for i in range(19, -1, -1):
        t = t * 2 + x[i]
    for i in range(0, 20, 1):
        x[i] += i % 3
    return t, x, i


def slices_that_move(x):
    y = np.zeros(20)
    for i in range(20):
        y[i] = x[: i + 1].sum()
        y[i:] += x[i]
    return y


def last_values(x):
    for i in range(20):
        y = x[: i + 1].sum()
        z = y * 2
    return y, z, i


def conditions_on_the_index(x):
    n = 0
    for i in range(20):
        if i % 3 == 0:
            n += i
        elif i > 15:
            n -= 1
        if i + 1 < 20:
            x[i] = x[i + 1]
    return n, x


def copies_in_the_body(x):
    for _ in range(20):
        old = x.copy()
        x[1:-1] = (old[:-2] + old[2:]) / 2
    return x


def the_same_array_by_two_names(x):
    u = np.zeros(20)
    for i in range(20):
        v = u
        v[i] = x[i]
        u = v
    return u


def found_and_stopped(x):
    found = False
    for i in range(20):
        if x[i] > 3:
            found = True
            break
    return found, i


def rows_of_a_matrix(x):
    m = np.outer(x, x)
    for i in range(20):
        row = m[i]
        row /= row.max() + 1
    return m


ROLLED = [
    prefix_sums, python_sum, swapped_names, largest_and_where, triangle, backwards_and_in_steps, slices_that_move, last_values,
    conditions_on_the_index, copies_in_the_body, the_same_array_by_two_names, found_and_stopped, rows_of_a_matrix,
]  # fmt: skip


@pytest.mark.parametrize("program", ROLLED, ids=lambda f: f.__name__)
def test_a_loop_is_rolled_and_gives_what_python_gives(op_by_op, program):
    names = as_numpy(program, x20())
    assert 1 <= names.count("While") <= 2 and len(names) < 20


def test_carried_python_numbers_stay_weak(op_by_op):
    """`0.0` with float32 arrays becomes float32, where NumPy's promotion says so."""

    def f(x):
        s, k = 0.0, 1.5
        for i in range(20):
            s += x[i] * k
            k = k * 0.5
        return s

    as_numpy(f, x20().astype(np.float32))


def appended(x):
    kept = []
    for i in range(20):
        kept.append(x[i])
    return kept


def dtype_changes(x):
    y = np.float32(0)
    for i in range(20):
        y = y + x[i]
    return y


def arrays_swapped_in_place(x):
    p, q = np.zeros(20), x
    for _ in range(20):
        p[:] = q + 1
        p, q = q, p
    return p, q


def shape_changes(x):
    for i in range(18):
        x = np.concatenate([x, x[:1] + i])
    return x


def none_at_first(x):
    best = None
    for i in range(20):
        best = x[i] if best is None else max(best, x[i])
    return best


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (appended, "effect"), (dtype_changes, "kind"), (arrays_swapped_in_place, "aliasing"), (shape_changes, "shape"),
        (none_at_first, "kind"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_what_cannot_be_rolled_is_unrolled_and_says_why(op_by_op, program, code):
    heard = []
    with events.listen(heard.append):
        names = as_numpy(program, x20())
    (kept,) = [event for event in heard if isinstance(event, events.LoopKept)]
    assert kept.code == code and kept.iterations in (18, 20) and kept.text and "While" not in names
    assert kept.lines[0][1] > program.__code__.co_firstlineno


FIRST, SECOND, NAMES = np.arange(20.0), np.arange(20.0) + 1, {n: n % 3 for n in range(20)}


def reads_in_the_inner_loop(x):
    total = 0.0
    for i in range(18):
        for j in range(18):
            total += FIRST[j] * x[i] * NAMES[j]
    return total


def reads_in_both_loops(x):
    for i in range(18):
        y = x * SECOND[i]
        for j in range(18):
            y[i] += (y * FIRST)[NAMES[j]]
        x[i] = y.sum()
    return x


def reads_in_the_third_loop(x):
    for i in range(17):
        for j in range(17):
            x[j] += SECOND[i]
            for k in range(3):
                x[k] += FIRST[NAMES[j]]
    return x


@pytest.mark.parametrize("program", [reads_in_the_inner_loop, reads_in_both_loops, reads_in_the_third_loop])
def test_a_loop_is_rolled_around_one_that_is_not_and_reads_an_array_first(op_by_op, program):
    heard = []
    with events.listen(heard.append):
        names = as_numpy(program, x20())
    assert {event.code for event in heard if isinstance(event, events.LoopKept)} == {"index_value"}
    assert names.count("While") == 1


def test_few_iterations_are_unrolled(op_by_op):
    def f(x):
        for i in range(16):
            x = x + i
        return x

    assert "While" not in as_numpy(f, x20())


def test_a_scope_in_the_body_unrolls_it(op_by_op):
    """the contract's nodes are seen one by one."""

    @jl.function
    def f(x):
        for _ in range(20):
            with jl.jit_scope():
                x = x * 2
        return x

    f(x20())
    (trace,) = next(iter(f._traces.values()))
    assert [node.attrs["_XlaScope"] for node in trace.graph.nodes if node.op.name == "Mul"][-1] == "jit_scope_19"


def test_effects_of_a_body_happen_in_each_iteration(op_by_op, capsys):
    @jl.function
    def f(x):
        for i in range(17):
            print(i)
            x = x + 1
        return x

    f(x20())
    assert capsys.readouterr().out == "".join(f"{i}\n" for i in range(17))


def test_a_loop_too_long_to_unroll_is_an_error_under_jit_compile(op_by_op):
    """Up to 1000 iterations, and the error names the line and the reason."""

    @jl.function(jit_compile=True)
    def f(x):
        y = np.float32(0)
        for i in range(1001):
            y = y + x[i % 20]
        return y

    with pytest.raises(jl.errors.InvalidArgumentError) as error:
        f(x20())
    assert "more than 1000 iterations" in str(error.value) and "has dtype float32 before the loop" in str(error.value)
    assert "for i in range(1001):" in str(error.value)


def test_loops_are_rolled_where_gradients_are_taken(op_by_op):
    def f(x):
        for _ in range(20):
            x = x * 1.1
        return x.sum()

    slope = jl.function(jl.grad(f))
    np.testing.assert_allclose(slope(np.ones(3)), np.full(3, 1.1**20))
    assert any(node.op.name == "While" for node in slope.get_concrete_function(np.ones(3)).graph.nodes)


CELLS = {
    "sum": "s = 0.0\nfor i in range(30):\n    s += v[i]\nt = s * 2",
    "recurrence": "for i in range(1, 30):\n    v[i] = v[i - 1] * 0.5 + v[i]\ny = v.sum()",
    "nest": "for i in range(30):\n    for j in range(30):\n        v[i] += v[j] * 0.01",
    "while": "k = 0\nwhile v[k] < 7:\n    k += 1",
    "last values": "n = 25\nfor i in range(n):\n    v[i] *= 2\n    w = v[i] + 1",
}


@pytest.mark.parametrize("source", CELLS.values(), ids=CELLS)
def test_a_loop_of_a_cell_is_rolled_whole(source):
    from tests.cell_runs import run_cell

    mine, theirs = {"np": np, "v": np.arange(30.0)}, {"np": np, "v": np.arange(30.0)}
    result = run_cell(source, mine, "<rolled>")
    exec(source, theirs)
    assert [node.op.name for trace in result.traces for node in trace.graph.nodes].count("While") == 1
    assert set(mine) == set(theirs)
    for name in set(theirs) - {"np", "__builtins__"}:
        assert_same(mine[name], theirs[name])


def test_a_loop_of_a_cell_with_effects_is_pythons(capsys):
    from tests.cell_runs import run_cell

    names = {"np": np, "v": np.arange(20.0)}
    run_cell("for i in range(20):\n    v[i] = v[i] + 1\n    print(i)", names, "<printed>")
    assert capsys.readouterr().out == "".join(f"{i}\n" for i in range(20)) and names["v"].sum() == 210


def test_a_while_true_has_a_first_turn_so_its_names_are_there_after_it():
    def largest(a):
        x, before = np.ones(a.shape[0]), 0.0
        while True:
            y = a @ x
            now = np.linalg.norm(y)
            x = y / now
            if abs(now - before) < 1e-12:
                break
            before = now
        return now, x

    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    for mine, theirs in zip(jl.function(largest, jit_compile=True)(a), largest(a), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-14)


# ---- loops of many iterations that are Python's


def halves(x):
    parts = []
    while x.size > 1:
        x[0], x[-1] = x[-1], x[0]
        x = x[:-1]
        parts.append(x)
    return parts[-1]


def shorter(x):
    for n in range(x.size - 1):
        x = x[1:] * (n % 3 + 0.5)
    return x


@pytest.mark.parametrize("program", [halves, shorter])
def test_a_loop_that_would_be_a_program_of_very_many_operations_is_pythons(op_by_op, monkeypatch, program):
    monkeypatch.setattr("jitlab.capture.control.rolling.MOST_RECORDED", 60)
    compiled = jl.jit(program)
    for _ in range(2):
        mine, theirs = np.arange(90.0), np.arange(90.0)
        assert_same(compiled(mine), program(theirs))
        assert_same(mine, theirs)
    few, same = np.arange(9.0), np.arange(9.0)
    with jl.record() as recording:
        assert_same(compiled(few), program(same))
    assert not recording.report().statements
