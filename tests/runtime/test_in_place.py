"""Arguments that a function changes are changed where they lie: no second copy, whatever way they lie in memory."""

import numpy as np
import pytest

import jitlab as jl


def shift(x):
    x[1:-1] = x[:-2] + x[2:]


def scale(x):
    x *= 2
    x += 1


def replace(x):
    x[:] = np.sin(x) * np.arange(x.shape[-1])


def twice(x):
    x[0] = x[-1]
    x[1:] = x[:-1] * 3
    return x.sum()


def returned(x):
    x -= x.mean()
    return x


def two(x):
    half = x / 2
    x[::-1] = half
    return half


FUNCTIONS = [shift, scale, replace, twice, returned, two]


def layouts():
    rng = np.random.default_rng(0)
    big = rng.normal(size=(40, 60))
    return {
        "C": lambda: rng.normal(size=(7, 33)),
        "F": lambda: np.asfortranarray(rng.normal(size=(7, 33))),
        "rows apart": lambda: big[3:10, :33],
        "strided": lambda: big[::3, ::2],
        "backwards": lambda: big[::-1, ::-1],
        "a line": lambda: rng.normal(size=1000),
        "every other": lambda: rng.normal(size=301)[::2],
        "float32": lambda: rng.normal(size=(5, 9)).astype("f4"),
    }


@pytest.mark.parametrize("layout", layouts())
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_caller_sees_the_change(function, layout):
    x = layouts()[layout]()
    base = x if x.base is None else x.base
    before = base.copy()
    wanted = x.copy()
    result = function(wanted)
    untouched = np.ones(base.shape, bool)
    untouched_view = np.lib.stride_tricks.as_strided(
        untouched.reshape(-1)[(x.ctypes.data - base.ctypes.data) // x.itemsize :],
        x.shape, tuple(s // x.itemsize for s in x.strides), writeable=True,
    ) if all(s > 0 for s in x.strides) else untouched[::-1, ::-1]  # fmt: skip
    untouched_view[...] = False
    got = jl.function(function)(x)
    np.testing.assert_allclose(x, wanted, rtol=1e-5 if x.dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(base[untouched], before[untouched])
    if function is returned:
        assert got is x
    elif result is not None:
        np.testing.assert_allclose(got, result, rtol=1e-5 if x.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_no_memory_is_taken_for_the_new_version(function, monkeypatch):
    from jitlab.targets.cpu_llvm.calls.device import Memory

    taken = []
    real = Memory.empty

    def empty(shape, dtype):
        taken.append(shape)
        return real(shape, dtype)

    monkeypatch.setattr(Memory, "empty", staticmethod(empty))
    x = np.random.default_rng(0).normal(size=500)
    wanted = x.copy()
    function(wanted)
    jl.function(function)(x)
    np.testing.assert_allclose(x, wanted, rtol=1e-12)
    assert [shape for shape in taken if shape == x.shape] == ([(500,)] if function is two else [])


def test_a_read_only_argument_is_numpys_error_and_nothing_runs():
    x = np.arange(5.0)
    y = np.zeros(5)

    def f(y, x):
        y[:] = 1
        x[:] = 2

    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        jl.function(f)(y, x)
    np.testing.assert_array_equal(x, np.arange(5.0))
    np.testing.assert_array_equal(y, 0)


def test_arguments_that_overlap_are_changed_as_python_changes_them():
    def f(x, y):
        x += y
        y *= 2

    base, wanted = np.arange(10.0), np.arange(10.0)
    traced = jl.function(f)
    f(wanted[:8], wanted[2:])
    traced(base[:8], base[2:])
    np.testing.assert_array_equal(base, wanted)
    apart, other = np.arange(8.0), np.arange(8.0)
    traced(apart, other)
    np.testing.assert_array_equal(apart, np.arange(8.0) * 2)


def test_an_argument_with_elements_on_top_of_one_another():
    x = np.lib.stride_tricks.as_strided(np.arange(6.0), (5, 2), (8, 8))
    y = np.lib.stride_tricks.as_strided(np.arange(6.0), (5, 2), (8, 8))

    def f(x):
        x += 1

    jl.function(f)(x)
    y[...] = y + 1
    np.testing.assert_array_equal(x, y)


def test_two_results_never_share_the_arguments_memory():
    def f(x):
        old = x.copy()
        x[0] = 9
        old[1] = 7
        return old, x.copy()

    x, wanted = np.arange(4.0), np.arange(4.0)
    old, new = jl.function(f)(x)
    w_old, w_new = f(wanted)
    np.testing.assert_array_equal(x, wanted)
    np.testing.assert_array_equal(old, w_old)
    np.testing.assert_array_equal(new, w_new)
    x[:] = -1
    np.testing.assert_array_equal(old, w_old)
    np.testing.assert_array_equal(new, w_new)


def stored_at(x, k):
    x[k] = 5


def inverted(x, a):
    np.linalg.inv(a)


def refused(x, k):
    if (k > 3).any():
        raise ValueError("too far")


FAILING = [
    (stored_at, np.array([1, 2]), np.array([1, 9])), (stored_at, np.array([1, 2]), np.array([-1, -7])),
    (inverted, np.eye(4), np.zeros((4, 4))), (refused, np.array([1, 2]), np.array([1, 9])),
]  # fmt: skip


@pytest.mark.parametrize("fails, good, bad", FAILING)
def test_a_call_that_raises_changes_no_argument_but_variables_as_far_as_it_came(fails, good, bad, capsys):
    v, w = jl.Variable(np.zeros(4)), jl.Variable(0.0)

    def f(x, y, k):
        x += 1
        v.assign_add(x)
        w.assign(1.0)
        jl.print_("before")
        fails(x, k)
        w.assign(2.0)
        jl.print_("behind")
        y += x
        return x.sum()

    traced = jl.function(f)
    traced(np.zeros(4), np.zeros(4), good)
    assert w.numpy() == 2 and capsys.readouterr().err == "before\nbehind\n"
    x, y = np.arange(4.0), np.zeros(4)
    for times in (1, 2):
        v.assign(np.zeros(4))
        with pytest.raises((IndexError, ValueError, np.linalg.LinAlgError)):
            traced(x, y, bad)
        assert x.tolist() == [0, 1, 2, 3] and y.tolist() == [0] * 4
        assert v.numpy().tolist() == [1, 2, 3, 4] and w.numpy() == 1
        assert capsys.readouterr().err == "before\n", times


def test_running_again_for_a_report_changes_no_argument():
    x = np.arange(6.0)
    traced = jl.function(scale)
    traced(x)
    after = x.copy()
    from jitlab.runtime import watching

    seen = []
    with watching(lambda executable, arguments: seen.append((executable, [a.copy() for a in arguments]))):
        traced(x)
    ((executable, arguments),) = seen
    again = executable.run(arguments)
    np.testing.assert_array_equal(arguments[0], after)
    np.testing.assert_array_equal(again[0], after * 2 + 1)


# ---- results of operations that give several stay as they are: they are inputs of the cluster that reads them


def counted(x):
    _, counts = np.unique(x, return_counts=True)
    more = counts.copy()
    more[0] += 5
    return counts, more


def found(x):
    (places,) = np.nonzero(x > 1)
    others = places.copy()
    others[0] = 7
    return places, others


def branched(x):
    if x[0] > 0:
        v = x - 1
    else:
        v = x + 1
    with jl.jit_scope():
        w = v.copy()
        w[1:] *= 2
    return v, w


def repeated(x):
    v = x + 1
    while v[0] < 9:
        v = v * 2
    with jl.jit_scope():
        w = v.copy()
        for i in range(1, 5):
            w[i] -= w[0]
    return v, w


@pytest.mark.parametrize(("function", "want"), [
    (counted, ([2, 1, 1, 1], [7, 1, 1, 1])),
    (found, ([0, 3, 4], [7, 3, 4])),
    (branched, ([2.5, 0, 0, 1, 4], [2.5, 0, 0, 2, 8])),
    (repeated, ([9, 4, 4, 6, 12], [9, -5, -5, -3, 3])),
])  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"jit_compile": False}], ids=["everywhere", "in scopes"])
def test_a_change_of_a_copy_leaves_the_result_of_a_host_operation_alone(function, want, options):
    compiled = jl.function(function, **options)
    for _ in range(3):
        kept = [np.full(5, 77.0) for _ in range(20)]  # what new memory holds is nothing that could be right by chance
        del kept
        for got, wanted in zip(compiled(np.array([3.5, 1, 1, 2, 5])), want, strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("transform", [jl.function, jl.jit])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, lambda x: np.repeat(x, 2, 1)[:, ::2]])
@pytest.mark.parametrize(
    "change",
    [
        lambda b, n: b.__setitem__(([[0, 1], [1, 0]], 0), n),
        lambda b, n: b.__setitem__([0, 1], n),
        lambda b, n: b.__setitem__((slice(None), 1), n),
        lambda b, n: np.add.at(b, [0, 0], n),
    ],
    ids=["positions and a number", "rows", "a column", "added at"],
)
def test_an_argument_is_changed_and_then_read_row_by_row(change, layout, transform):
    """Whatever its layout: what reads it next may want it contiguous (a product of matrices, a flat view)."""

    def program(b, n):
        change(b, n)
        return np.vdot(b, b), b @ b

    x = layout(np.arange(16.0).reshape(4, 4))
    y = x.copy("K")
    want, got = program(x, 4), transform(program)(y, 4)
    np.testing.assert_array_equal(y, x)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b)
