"""if, while, for, break, continue and return on traced values are Branch and Loop nodes."""

import numpy as np
import pytest
from same import assert_same

import jitlab as jl
from jitlab.ir.graphs.verify import verify
from tests.left import assert_plain


def x20():
    return np.arange(20.0) - 5


def operations(traced):
    (trace,) = [trace for traces in traced._traces.values() for trace in traces]
    verify(trace.graph)
    return [node.op.name for node in trace.graph.nodes]


def as_numpy(function, *arguments):
    """Traced once, the function gives what Python gives, and writes what Python writes; its operations are returned."""
    traced = jl.function(function)
    mine, theirs = ([x.copy() if isinstance(x, np.ndarray) else x for x in arguments] for _ in range(2))
    result = traced(*mine)
    assert_same(result, function(*theirs), numbers_become_scalars=True)
    assert_plain(result, mine)
    for x, y in zip(mine, theirs, strict=True):
        assert_same(x, y)
    return operations(traced)


def square_or_half(x):
    if x.sum() > 0:
        return x * x
    return -x // 2


def one_name(x):
    if x.sum() > 0:
        y = x * 2
    elif x[0] > 100:
        y = x * 3
    else:
        y = x - 1
    return y


def written_in_a_branch(x):
    if x[0] < 0:
        x[1:] = 7
    else:
        x[0] = 3
    return x


def state_of_a_tuple(x):
    pair = (x, 1.0)
    if x.sum() > 0:
        pair = (pair[0] + 1, 2.0)
    return pair[0] * pair[1]


def ternary_and_lazy_operators(x):
    y = x.max() if x.sum() > 0 and x[0] < 0 or not x[1] < 5 else x.min()
    return y if 0 < x[7] <= 2 < x[8] else -y


def break_and_continue(x):
    n = 0
    for v in x:
        if v < 0:
            continue
        if v > 9:
            break
        n += 1
    return n


def else_of_a_loop(x):
    for v in x:
        if v > 300:
            break
    else:
        x[0] = 99
    return x


def return_inside_nested_loops(x):
    for i in range(20):
        for j in range(i, 20):
            if x[i] + x[j] > 10:
                return i * 100 + j
    return -1


def while_with_two_conditions(x):
    i = n = 0
    while i < 20 and x[i] < 7:
        if x[i] < 0:
            i += 1
            continue
        n += 1
        i += 2
    return n, i


def endless_with_break(x):
    k = 0
    while True:
        k += 1
        if x[k] > 2:
            break
    return k


def endless_with_return(x):
    while True:
        x = x * 2
        if x.max() > 1000:
            return x


def array_halved_in_place(x):
    while x.sum() > 1:
        x[:] = x / 2
        x -= 0.1
    return x


def branches_in_a_called_function(x):
    def positive(u, v):
        if v > 0:
            return u + v
        return u

    total = 0.0
    for v in x:
        total = positive(total, v)
    return total


def counted_by_an_element(x):
    total = 0.0
    for i in range(int(x[9])):
        total += x[i]
    return total


def numbers_of_python(x):
    k = int(x[7] * 1.5)
    return k / 2, float(x[3]) / 4, abs(x[0]), bool(x[5]), sum(x), len(x), max(x[1], x[2], 0.5)


def enumerated_and_zipped(x):
    s = 0.0
    for i, v in enumerate(x, 1):
        s += i * v
    for a, b in zip(x, reversed(x), strict=True):
        s -= a * b
    return s


PROGRAMS = [
    square_or_half, one_name, written_in_a_branch, state_of_a_tuple, ternary_and_lazy_operators, break_and_continue,
    else_of_a_loop, return_inside_nested_loops, while_with_two_conditions, endless_with_break, endless_with_return,
    array_halved_in_place, branches_in_a_called_function, counted_by_an_element, numbers_of_python, enumerated_and_zipped,
]  # fmt: skip


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_traced_control_flow_gives_what_python_gives(op_by_op, program, sign):
    if sign < 0 and program in (endless_with_break, counted_by_an_element, numbers_of_python):
        pytest.skip("Python's own meaning is an error")
    as_numpy(program, x20() if sign > 0 else -x20() - 3)


def test_loop_over_an_array_is_one_node(op_by_op):
    """Dispatch is by the type of what is iterated over, not by its length."""
    assert as_numpy(break_and_continue, x20()).count("While") == 1
    assert as_numpy(break_and_continue, x20()[:3]).count("While") == 1


def test_one_trace_serves_both_branches(op_by_op):
    """`if reduce_sum(x) > 0: x*x else -x//2`."""
    f = jl.function(square_or_half)
    assert [f(np.int64(3)), f(np.int64(-2))] == [9, 1]
    assert f.experimental_get_tracing_count() == 1


def test_python_values_are_unrolled_as_python_does(op_by_op):
    """Everything that is not a tensor is ordinary Python at trace."""
    seen = []

    @jl.function
    def f(x, n):
        for i in range(n):
            if i == 1:
                continue
            if i == 5:
                break
            seen.append(i)
            x = x + i
        else:
            x = x * 100
        return x

    assert f(np.float64(1), 3) == 300 and f(np.float64(1), 9) == 10
    assert seen == [0, 2, 0, 2, 3, 4]


def test_branch_has_the_scope_of_its_statement_and_its_operations_none(op_by_op):
    """Attributes do not cross the border of a body."""

    @jl.function
    def f(x):
        with jl.jit_scope():
            if x.sum() > 0:
                x = x * 2
            return x + 1

    f(x20())
    (trace,) = next(iter(f._traces.values()))
    branch = next(node for node in trace.graph.nodes if node.op.name == "If")
    assert branch.attrs["_XlaScope"] == "jit_scope_0"
    assert all(not node.attrs for graph in branch.op.graphs for node in graph.nodes)


def defined_in_one_branch(x):
    if x.sum() > 0:
        y = x
    return y


def none_in_one_branch(x):
    y = None
    if x.sum() > 0:
        y = x
    return y


def dtypes_differ(x):
    if x.sum() > 0:
        y = x.astype(np.int32)
    else:
        y = x.astype(np.float32)
    return y


def structures_differ(x):
    if x.sum() > 0:
        y = (x, x)
    else:
        y = [x]
    return y


def one_returns(x):
    if x.sum() > 0:
        return x


def number_as_condition(x):
    if x.astype(np.int32).sum():
        return x
    return -x


def dtype_changes_in_a_loop(x):
    y = np.int32(0)
    for v in x:
        y = y + v
    return y


def structure_changes_in_a_loop(x):
    y = x[0]
    for v in x:
        y = (y, v)
    return y


def none_at_the_end(x):
    y = x[0]
    for v in x:
        y = y + v
        y = None
    return y


def none_before_the_loop(x):
    y = None
    for v in x:
        y = v if y is None else y + v
    return y


def number_in_while(x):
    n = x.astype(np.int32).sum()
    while n:
        n = n - 1
    return n


@pytest.mark.parametrize(
    ("program", "kind", "text"),
    [
        (defined_in_one_branch, ValueError, "'y' must also be initialized in the else branch"),
        (none_in_one_branch, ValueError, "'y' is None at the end of the else branch."),
        (dtypes_differ, TypeError, "'y' has dtype int32 in the main branch, but dtype float32 in the else branch"),
        (structures_differ, TypeError, "'y' must have the same nested structure in the main and else branches"),
        (one_returns, ValueError, "the else branch must also have a return statement."),
        (number_as_condition, ValueError, "condition of if statement expected to be `bool` scalar"),
        (dtype_changes_in_a_loop, TypeError, "'y' has dtype int32 before the loop, but dtype float64 after one iteration"),
        (structure_changes_in_a_loop, TypeError, "does not have the same nested structure after one iteration"),
        (none_at_the_end, ValueError, "is None at the end of the iteration"),
        (none_before_the_loop, ValueError, "'y' must be defined before the loop"),
        (number_in_while, ValueError, "condition of while loop expected"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_facts_about_the_program_are_errors(op_by_op, program, kind, text):
    """What the branches or iterations give does not fit together."""
    with pytest.raises(kind) as error:
        jl.function(program)(x20())
    assert text in str(error.value)


def test_branches_of_different_shapes_run_as_python(op_by_op):
    """Upstream gives the result an unknown dimension; an exact trace has none, so the call runs as Python."""

    @jl.function
    def f(x):
        if x.sum() > 0:
            y = x[:2]
        else:
            y = x
        return y

    assert f(x20()).shape == (2,) and f(-x20()).shape == (20,)


def test_names_that_nobody_reads_later_may_differ(op_by_op):
    """Dead symbols may differ freely."""

    def f(x):
        if x.sum() > 0:
            t = x * 2
            y = t + 1
        else:
            t = "no"
            y = x
        return y

    as_numpy(f, x20())


def test_a_name_that_only_a_loop_gives_needs_an_iteration(op_by_op):
    """Used after zero iterations."""

    @jl.function
    def f(x):
        while x.sum() < 10:
            y = x * 2
            x = x + 1
        return y

    assert_same(f(np.zeros(3)), np.full(3, 6.0))
    with pytest.raises(jl.errors.InvalidArgumentError, match="loop must iterate at least once to initialize y"):
        f(np.full(3, 100.0))


def test_an_assertion_is_asked_at_each_call(op_by_op):
    """`assert` on a tensor, under every entry point."""

    @jl.function
    def f(x):
        assert x.sum() > 0, "must be positive"
        return x * 2

    assert_same(f(np.ones(3)), np.full(3, 2.0))
    for kind in (AssertionError, jl.errors.InvalidArgumentError):
        with pytest.raises(kind, match="must be positive"):
            f(-np.ones(3))


def test_a_list_that_a_staged_loop_appends_to_holds_one_value_that_cannot_be_used(op_by_op):
    """`l.append` in `for i in x`."""
    kept = []

    @jl.function
    def f(x):
        for v in x:
            kept.append(v)
        return x

    f(x20())
    f(x20() + 1)
    assert len(kept) == 1
    with pytest.raises(TypeError, match="is out of scope and cannot be used here"):
        kept[0] + 1


def test_a_value_of_a_body_cannot_be_used_outside_it_in_the_same_trace(op_by_op):
    """From a loop body, through a list from outside: what happens to that happens while the function is traced."""
    kept = []

    @jl.function
    def f(x):
        for v in x:
            kept.append(v)
        return kept[0] + 1

    with pytest.raises(jl.errors.InaccessibleTensorError, match="is out of scope and cannot be used here"):
        f(x20())


def test_what_is_printed_in_a_staged_body_is_printed_once(op_by_op, capsys):
    """Python's print is an effect of the trace; tracing a body again for wider types repeats nothing."""

    @jl.function
    def f(x):
        s = 0
        for v in x:
            print("traced")
            s = s + v
        return s

    f(x20())
    assert capsys.readouterr().out == "traced\n"


def test_unbound_names_are_pythons_error(op_by_op):
    @jl.function
    def f(x):
        for i in range(2):
            if i > 5:
                y = x
            z = y
        return z

    with pytest.raises(UnboundLocalError, match="cannot access local variable 'y'"):
        f(x20())


def test_methods_with_super_and_globals_keep_their_meaning(op_by_op):
    class Base:
        def shifted(self, x):
            return x + 1

    class Derived(Base):
        def shifted(self, x):
            global times
            for i in range(2):
                if x.ndim == 1:
                    times = i
                    x = super().shifted(x)
            return x

    b = Derived()
    f = jl.function(b.shifted)
    assert_same(f(np.zeros(2)), np.full(2, 2.0))
    assert globals()["times"] == 1


def test_tracebacks_show_each_line_once(op_by_op):
    import traceback

    @jl.function
    def f(x):
        for i in range(3):
            if i == 1:
                return x.nothing
        return x

    with pytest.raises(AttributeError) as error:
        f(x20())
    lines = [line for frame, line in traceback.walk_tb(error.value.__traceback__) if frame.f_code.co_name == "f"]
    assert lines == [f.python_function.__code__.co_firstlineno + 4]
