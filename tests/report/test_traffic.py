"""What is moved, what fusion saves and what still reaches memory: exact where it can be worked out, and as allocated."""

import re

import numpy as np
import pytest

import jitlab as jl
from jitlab.report.render import plot
from jitlab.report.store.summary import _reaching_memory as summary_of
from jitlab.targets.cpu_llvm.calls import buffers
from jitlab.targets.cpu_llvm.calls.device import Memory

M, N = 1024, 256
X = np.random.default_rng(3).random((M, N))
W = np.random.default_rng(4).random((N, 16))
NBYTES = X.nbytes


def report_of(function, *args, **options):
    return jl.explain(jl.jit(function, **options), *args)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layernorm(x):
    d = x - x.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5)


def dense(x, w):
    return np.tanh(x @ w) * 2


def standardise(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def whole(x):
    return x - x.sum()


def solve(x):
    return np.linalg.inv(x[:16].T[:16] @ x[:16] + np.eye(16)[:16] * 9) + 1


def running(x):
    return np.cumsum(x, axis=1) - np.concatenate([x[:, 1:], x[:, :1]], axis=1)


def gathered(x):
    y = np.exp(x)
    return y[::-1] + y[np.array([0, 1, 2, 3])].sum()


def looped(x):
    total = np.zeros(N)
    for i in range(100):
        total = total * 0.5 + x[i]
    return total + np.sort(total)


PROGRAMS = [softmax, layernorm, standardise, whole, running, gathered, looped]


def test_a_fused_chain_moves_its_input_and_output_and_saves_what_lies_between():
    report = report_of(lambda x: np.sqrt(x * 2 + 1), X)
    (cluster,) = report.clusters
    assert (cluster.bytes_read, cluster.bytes_written) == (NBYTES, NBYTES)
    assert cluster.bytes_saved == 4 * NBYTES + 2 * 8  # two arrays written and read; two numbers read
    assert report.verdict["bytes_moved"] == 2 * NBYTES and report.verdict["bytes_saved"] == cluster.bytes_saved
    assert report.temporaries == [] and cluster.allocated_bytes == 0


def test_a_softmax_saves_what_op_by_op_moves_more():
    report = report_of(softmax, X)
    rows = M * 8
    op_by_op = (NBYTES + rows) + (2 * NBYTES + rows) + 2 * NBYTES + (NBYTES + rows) + (2 * NBYTES + rows)
    assert report.verdict["bytes_saved"] == op_by_op - 2 * NBYTES


@pytest.mark.parametrize(
    ("f", "times"),
    [
        (lambda x: np.tile(x, (2, 3)), 6),
        (lambda x: np.repeat(x, 3, axis=0), 3),
        (lambda x: np.roll(x, 3), 1),
        (lambda x: np.roll(x, 3, axis=1), 1),
        (lambda x: x.T.ravel(), 1),
        (lambda x: np.concatenate([x, x]).reshape(-1), 2),
        (lambda x: (x @ x.T).reshape(-1), 3),
    ],
)
def test_a_result_of_another_shape_is_made_where_it_lies(f, times):
    x = np.random.default_rng(2).random((600, 200))
    compiled = jl.jit(f)
    report = jl.explain(compiled, x)
    assert report.verdict["bytes_moved"] == (1 + times) * x.nbytes  # read once, written once, as NumPy does or better
    assert report.temporaries == [] and len(report.kernels) == 1
    for given in (x, x[:311].copy(), x):
        np.testing.assert_allclose(compiled(given), f(given), rtol=1e-12)


def two_shapes(x):
    both = np.concatenate([x, x])
    return both.reshape(-1), both.reshape(x.shape[1], -1)


def read_on(x):
    flat = np.tile(x, 2).reshape(-1)
    return flat, flat[::2] * 3, flat.sum()


def written_on(x):
    both = np.concatenate([x, x])
    flat = both.reshape(-1).copy()
    both[3] = 7.0
    return flat, both


def seen_and_written(x):
    both = np.concatenate([x, x])
    flat = both.reshape(-1)
    flat[::3] = -1.0
    return flat


@pytest.mark.parametrize("form", [jl.function, jl.jit])
@pytest.mark.parametrize("f", [two_shapes, read_on, written_on, seen_and_written])
def test_what_is_read_or_changed_besides_keeps_its_own_memory(f, form):
    compiled = form(f)
    for x in (X[:61, :23].copy(), X, X.astype("f4")):
        mine, theirs = compiled(x), f(x)
        for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (mine, theirs)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4 if x.dtype == "f4" else 1e-11)


def test_a_kernel_lists_what_it_computes_under_another_shape():
    def strided(x):
        e = np.exp(x)
        return e.reshape(-1)[::2] * 3, e.sum(axis=0)

    report = report_of(strided, X)
    flat, summed = report.kernels
    assert flat.ops == ("exp", "reshape", "stridedslice", "mul") and summed.ops == ("exp", "sum")
    assert [(edge.producer, edge.consumer) for edge in report.boundaries] == []


def test_what_one_operation_reads_twice_counts_once():
    (cluster,) = report_of(lambda x: x * x, X).clusters
    assert cluster.bytes_saved == 0
    (cluster,) = report_of(lambda x: x[1:] + x[:-1], X).clusters
    assert cluster.bytes_saved == 0


def test_kernels_add_up_to_their_cluster():
    report = report_of(dense, X, W)
    for cluster in report.clusters:
        mine = [kernel for kernel in report.kernels if kernel.cluster == cluster.name]
        assert sum(kernel.bytes_saved for kernel in mine) == cluster.bytes_saved


def test_calls_are_counted_in_what_a_run_moves():
    step = jl.jit(lambda x: np.exp(x) + 1)
    with jl.record() as recording:
        for _ in range(3):
            step(X)
    assert recording.report().verdict["bytes_moved"] == 3 * 2 * NBYTES


def test_level_O0_saves_nothing_and_every_value_reaches_memory():
    report = report_of(lambda x: np.sqrt(x * 2 + 1), X, jit_level="O0")
    assert report.verdict["bytes_saved"] == 2 * 8  # the numbers of the program lie in registers
    assert [(t.name, t.consumers, t.bytes) for t in report.temporaries] == [
        ("mul", ("add",), NBYTES), ("add", ("sqrt",), NBYTES),
    ]  # fmt: skip
    assert {t.reason.code for t in report.temporaries} == {"level"}


def test_a_value_that_still_reaches_memory_says_where_why_and_how_much():
    report = report_of(dense, X, W)
    (temporary,) = report.temporaries
    assert temporary.producer == "matmul" and temporary.consumers == ("tanh",) and temporary.bytes == M * 16 * 8
    assert temporary.reason.code == "library_call" and temporary.place == "scratch"
    assert temporary.lines == temporary.consumer_lines != ()


def test_a_value_that_leaves_its_cluster_is_told_of():
    @jl.jit
    def f(x):
        with jl.jit_scope(compile_ops=False):
            y = np.exp(x)
        return np.sqrt(y * 2)

    report = jl.explain(f, X)
    assert not report.temporaries or all(t.place in ("scratch", "result") for t in report.temporaries)

    @jl.jit
    def g(x):
        y = x * 2
        with jl.jit_scope(compile_ops=False):
            z = np.exp(y)
        return z

    (temporary,) = jl.explain(g, X).temporaries
    assert temporary.place == "result" and temporary.bytes == NBYTES and "NumPy runs `z`" in str(temporary.reason)


@pytest.mark.parametrize("level", ["O1", "O0"])
@pytest.mark.parametrize("program", [*PROGRAMS, dense, solve], ids=lambda program: program.__name__)
def test_predicted_bytes_are_the_allocators(monkeypatch, program, level):
    args = (X, W) if program is dense else (X[:, :16],) if program is solve else (X,)
    args = [np.ascontiguousarray(a) for a in args]
    f = jl.jit(program, jit_level=level)
    f(*args)
    asked = []
    take = buffers.Pool.take
    empty = Memory.empty

    def watched(self, nbytes):
        asked.append(nbytes)
        return take(self, nbytes)

    def results(shape, dtype):  # results are not temporaries
        with monkeypatch.context() as within:
            within.setattr(buffers.Pool, "take", take)
            return empty(shape, dtype)

    monkeypatch.setattr(buffers.Pool, "take", watched)
    monkeypatch.setattr(Memory, "empty", staticmethod(results))
    report = jl.explain(f, *args)
    data = report.to_json()
    assert sum(asked) == sum(c["scratch_bytes"] for c in data["clusters"])
    for cluster in data["clusters"]:
        assert cluster["allocated_bytes"] == cluster["scratch_bytes"]
        inside = [t["bytes"] for t in data["temporaries"] if t["cluster"] == cluster["name"] and t["place"] == "scratch"]
        assert sum(inside) == cluster["temporary_bytes"]
        if level == "O0":  # no rows of scratch: temporaries are all there is, and those that are not alive at once share
            assert max(inside, default=0) <= cluster["allocated_bytes"] <= sum(-(-max(n, 1) // 128) * 128 for n in inside)


def test_what_never_ran_has_unknown_bytes_not_zero():
    f = jl.jit(softmax)
    with jl.record() as recording:
        f.check(X)  # captured and planned, not run
    data = recording.report().to_json()
    assert data["verdict"]["bytes_moved"] is None and data["verdict"]["bytes_saved"] is None
    assert all(cluster["allocated_bytes"] is None for cluster in data["clusters"])


def test_a_loop_without_a_count_has_unknown_traffic_and_savings():
    @jl.jit
    def f(x):
        while x.max() > 1:
            x = x * 0.5 + 0.1
        return x

    report = jl.explain(f, X * 8)
    assert report.verdict["bytes_moved"] is None and report.verdict["bytes_saved"] is None


@pytest.mark.parametrize("turns", [1, 50])
def test_a_stencil_in_a_loop_moves_its_grid_in_each_turn(turns):
    def heat(u, n):
        for _ in range(n):
            u[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        return u

    grid = np.random.default_rng(0).random((120, 90))
    inner = 118 * 88 * 8
    report = jl.explain(jl.jit(heat), grid, turns)
    (cluster,) = report.clusters
    assert turns * inner < cluster.bytes_read <= turns * grid.nbytes
    assert turns * inner <= cluster.bytes_written <= turns * 2 * grid.nbytes
    assert 0 < cluster.bytes_saved < turns * 7 * 3 * grid.nbytes  # op by op: seven operations, three arrays each


def test_the_text_tells_it_in_a_line():
    text = str(report_of(dense, X, W))
    assert "; NumPy's " in text and "(cost model)" in text and "1 intermediate array is stored, 131 kB a call" in text


def test_a_named_result_is_no_value_that_still_reaches_memory():
    def both(x, w):
        product = x @ w
        return np.tanh(product) * 2, product

    report = report_of(both, X, W)
    assert report.temporaries == [] and "intermediate array" not in str(report)
    assert report.verdict["bytes_moved"] == NBYTES + W.nbytes + 3 * M * 16 * 8  # the product is written, and read again


@pytest.mark.parametrize(
    "f, picked",
    [
        (lambda x, rows: x[rows], 3 * 200),
        (lambda x, rows: x[rows[0]], 200),
        (lambda x, rows: x[np.argmax(x[:, 0])], 200),
        (lambda x, rows: x[rows][:, rows], 3 * 3),
    ],
)
def test_integers_that_say_which_elements_move_no_more_than_they_name(f, picked):
    x, rows = np.ones((3000, 200)), np.array([5, 1, 5])
    kernel = jl.explain(jl.function(f), x, rows).kernels[-1]
    assert 8 * picked <= kernel.bytes_read <= 8 * picked + rows.nbytes + 8
    assert kernel.bytes_written == 8 * picked


def test_what_a_kernel_changes_in_place_is_read_once():
    @jl.jit
    def bumped(x):
        x[2:4] += 1
        return x

    (kernel,) = jl.explain(bumped, np.zeros((50, 40))).kernels
    assert (kernel.bytes_read, kernel.bytes_written) == (640, 640)

    @jl.jit
    def shrunk(x):
        for _ in range(20):
            x *= 0.9

    (kernel,) = jl.explain(shrunk, np.zeros((50, 40))).kernels
    assert (kernel.bytes_read, kernel.bytes_written) == (20 * 16000, 20 * 16000)  # each turn goes over the array


@pytest.mark.parametrize("f", [lambda x: np.cumsum(x, axis=1) * 2, lambda x: np.maximum.accumulate(x, axis=0) + x])
def test_a_running_sum_that_is_read_at_once_is_not_written(f):
    (cluster,) = report_of(f, X).clusters
    assert (cluster.bytes_read, cluster.bytes_written) == (NBYTES, NBYTES)


def test_a_copy_of_a_view_moves_what_numpy_moves_too():
    report = report_of(lambda x: x[::-1].copy(), X)
    assert report.verdict["bytes_moved"] == 2 * NBYTES and report.verdict["bytes_saved"] == 0
    assert "as much as NumPy's" in str(report)


def test_a_saving_of_a_few_bytes_beside_arrays_is_none():
    assert "memory traffic 4.2 MB, as much as NumPy's" in str(report_of(lambda x: x * 2, X))


def iterated(x, least):
    error = 1.0
    while error > least:
        y = np.cos(x)
        error = np.abs(y - x).max()
        x = y
    return x * 2


def test_of_a_loop_whose_turns_nobody_counts_one_is_counted_and_it_says_so():
    report = report_of(iterated, X, 1e-2)
    (cluster,) = report.data["clusters"]
    (loop,) = [kernel for kernel in report.data["kernels"] if kernel.get("per_turn")]
    assert cluster["per_turn"] and loop["bytes_read"] >= NBYTES and (loop["bound"], loop["of_peak"]) == (None, None)
    assert report.verdict["bytes_moved"] is None and report.verdict["bytes_saved"] is None
    text = " ".join(str(report).split())
    assert "for one iteration of its loop" in text and "(cost model)" not in text and "for one iteration" in report.to_svg()
    counted = report_of(lambda x: [x := np.cos(x) for _ in range(3)][-1], X)
    assert "per_turn" not in counted.data["clusters"][0]


def test_numpy_casts_an_operand_in_passing_and_not_as_an_array():
    a = np.ones((480, 640), np.uint8)
    for program, numpys in (
        (lambda a: a / 255.0, 9 * a.size + 8),
        (lambda a: np.add.reduce(a, axis=1, dtype=np.float64), a.size + 8 * len(a)),
        (lambda a: a.astype(np.float64) / 255.0, 25 * a.size + 8),  # the program asks for that one
    ):
        (kernel,) = jl.explain(jl.jit(program), a).data["kernels"]
        assert kernel["bytes_read"] + kernel["bytes_written"] + kernel["bytes_saved"] == numpys


def test_a_value_that_several_traces_store_is_listed_once_with_their_count():
    @jl.function
    def centred(x, power):
        e = np.exp(x)
        y = e - e.mean(axis=0)
        for _ in range(power):
            y = np.tanh(y)
        return y

    with jl.record() as recording:
        for power in range(3):
            centred(np.ones((500 + 100 * power, 200)), power)
    lines = [line.strip() for line in str(recording.report()).splitlines()]
    (head,) = [line for line in lines if "intermediate array" in line]
    assert head == "1 intermediate array is stored, 1.1 MB a call"
    data = recording.report().to_json()
    assert data["verdict"]["stored"] == {"text": head, "count": 1, "bytes": 1_120_000}
    assert [t["plan"] for t in data["temporaries"] if t.get("counted")] == ["centred #3"]  # what the panel lists
    assert sum(line.startswith("`e` (line") for line in lines) == 1
    assert "(in 3 traces, here the largest)" in " ".join(lines)


def by_hand():
    """Programs, an argument, and what each kernel computes: of elementwise operations one for an element, of exp 20."""
    m, n = 300, 400
    x = np.random.default_rng(0).random((m, n))

    def read_twice(x):  # each element of the product needs two of y, which are computed for it
        y = x * x + 1.0
        return y[1:] * y[:-1], y.sum()

    def once_a_row(x):  # a kernel's loop over columns does not change it
        return np.exp(x[:, :1]) * x

    def in_two_kernels(x):
        y = x * x * 2
        return y - y.mean(axis=0)

    def part_of_it(x):  # the second kernel needs one row
        e = np.exp(x)
        return e.sum(axis=1), e[0] * x.sum(axis=0)

    def product(x):
        return x @ x.T + 1

    def rolled(x):
        total = 0.0
        for i in range(len(x)):
            total = total + x[i, 0] * 2
        return total

    return {
        read_twice: [5 * (m - 1) * n, 3 * m * n],
        once_a_row: [20 * m + m * n],
        in_two_kernels: [2 * m * n + m * n, 2 * m * n + m * n],
        part_of_it: [21 * m * n, None],
        product: [2 * m * m * n, m * m],
        rolled: [2 * m],
    }, x


HAND, ARGUMENT = by_hand()


@pytest.mark.parametrize("function", HAND, ids=lambda function: function.__name__)
def test_what_fusion_computes_once_more_counts_once_more(function):
    report = jl.explain(jl.jit(function), ARGUMENT)
    found = [kernel.flops for kernel in report.kernels]
    assert len(found) == len(HAND[function])
    assert all(want is None or flops == want for flops, want in zip(found, HAND[function], strict=True))
    assert sum(cluster.flops for cluster in report.clusters) == sum(found)
    for kernel in report.to_json()["kernels"]:  # the roofline's marks are of the same counts
        moved = kernel["bytes_read"] + kernel["bytes_written"]
        assert plot._row(kernel, {}, "k")["intensity"] == kernel["flops"] / moved


def test_windows_that_slide_are_a_view_that_moves_nothing():
    report = report_of(lambda x: np.lib.stride_tricks.sliding_window_view(x, 64)[::16].sum(axis=1), np.ones(65_536))
    by_numpy = report.verdict["bytes_moved"] + report.verdict["bytes_saved"]
    rows = (65_536 - 64) // 16 + 1
    assert by_numpy == 65_536 * 8 + rows * 8  # each element once, whatever windows it is in


def added(a, b):
    a[1:] += b[:-1]


def written_there(a, b):
    np.add(a[1:], b[:-1], out=a[1:])


def put_there(a, b):
    a[1:] = a[1:] + b[:-1]


@pytest.mark.parametrize("change, arrays", [(added, 3), (written_there, 3), (put_there, 5)])
def test_numpy_writes_the_result_of_a_ufunc_once_where_it_is_to_be(change, arrays):
    def program(b):
        a = -4 * b
        change(a, b)
        return a

    verdict = report_of(program, np.ones((101, 1000))).verdict
    assert verdict["bytes_moved"] + verdict["bytes_saved"] == 8 + 8 * 1000 * (2 * 101 + arrays * 100)  # and -4


def test_arrays_that_are_stored_are_one_number_in_text_page_summary_and_boxes():
    """Ten small values and two large ones reach memory: the verdict counts the large ones, and so does all that shows it."""

    def program(x):
        for _ in range(5):
            x = x / x.sum(axis=1, keepdims=True)
            x = x - x.mean(axis=0)
        return np.sort(x, axis=1)

    report = report_of(program, X)
    stored, every = report.verdict["stored"], report.data["temporaries"]
    assert 0 < stored["count"] < len(every)
    assert stored["count"] == sum(bool(t.get("counted")) for t in every)
    assert str(report).count(stored["text"]) == 1
    rows = summary_of(every)
    assert sum(row["inside"] for row in rows) == stored["count"] and sum(row["inside_bytes"] for row in rows) == stored["bytes"]
    page = report.to_html()
    listed = page.partition("Intermediate arrays that are stored")[2].partition("</table>")[0]
    assert listed.count("<tr>") == 1 + stored["count"] + 1  # the heads, and the rest in a row
    assert f"and {len(every) - stored['count']} smaller one" in listed


@pytest.mark.parametrize(
    "function, args, called",
    [
        (softmax, (X,), ""),
        (dense, (X, W), ", 1 calls a library (BLAS)"),
        (lambda x: np.abs(np.fft.rfft(x, axis=1)) * 2, (X,), ", 1 calls a library (FFT)"),
        (lambda x: np.linalg.eigvalsh(x.T @ x) + np.sort(x[0]), (X,), ", 3 call a library (BLAS, LAPACK, NumPy)"),
        (lambda x: (np.arange(12).reshape(3, 4) @ np.arange(8).reshape(4, 2)) * 2, (X,), ""),  # a loop of our own
    ],
    ids=["none", "product", "transform", "several", "integers"],
)
def test_the_lead_says_how_many_operations_call_a_library_and_whose(function, args, called):
    report = report_of(function, *args)
    lead = report.verdict["lead"]
    assert re.fullmatch(r"(\d+) of \1 operations? compiled", lead.removesuffix(called)) and lead.endswith(called)
    kinds = [kernel.kind for kernel in report.kernels if kernel.libraries]
    assert set(kinds) <= {"library"} and (called == "") == (kinds == [])


def test_a_product_in_a_loop_is_a_library_call_too():
    def program(x, w):
        for _ in range(20):
            x = np.abs(w @ x) + 1
        return x

    assert report_of(program, X[:N, :64], np.eye(N)).verdict["lead"].endswith(", 1 calls a library (BLAS)")
