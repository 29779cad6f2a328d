"""The reason of an edge between kernels is the true one, in words of the program."""

import re

import numpy as np
import pytest

import jitlab as jl
from jitlab.messages import units

X = np.random.default_rng(0).random((60, 40))


def softmax(x):
    e = np.exp(x)
    return e / e.sum()


def softmax_of_columns(x):
    e = np.exp(x)
    return e / e.sum(axis=0)


def sums_of_both(x):
    e = np.exp(x)
    return e.mean(), e.std()


@pytest.mark.parametrize(
    ("program", "edge", "text"),
    [
        (lambda x: x.cumsum(0).cumsum(1), ("cumsum", "cumsum_1"), "in opposite directions along one: each needs its own loop"),
        (lambda x: (np.exp(x).cumsum(0), np.exp(x).cumsum(1)), ("exp", "cumsum_1"), "in the loops of `np.exp(x).cumsum(0)`"),
        (lambda x: x.T @ (1 + x @ x[0]), ("matmul", "add"), "reduces an outer axis (as down the columns)"),
        (lambda x: x.T @ np.tanh(x @ x[0]), ("tanh", "matmul_1"), "other loops than those that compute `np.tanh"),
        (softmax, ("exp", "realdiv"), "also needs `e.sum()`, which must be complete first"),
        (softmax_of_columns, ("exp", "realdiv"), "also needs `e.sum(axis=0)`, which must be complete first"),
        (softmax_of_columns, ("sum", "realdiv"), "`e.sum(axis=0)` is reduced over an outer axis"),
        (sums_of_both, ("exp", "sum"), "`e` end with `e.mean()`, and part of `e.std()` (sum) comes after that"),
    ],
)  # fmt: skip
def test_a_reason_says_what_keeps_the_reader_out_of_the_loops(program, edge, text):
    found = {(b.producer, b.consumer): b.reason.text for b in jl.explain(jl.jit(program), X).boundaries}
    assert text in found[edge] and "is read again" not in found[edge]


def diffused(u):
    u = u.copy()
    for _ in range(20):
        n = u[:-2, 1:-1] - u[1:-1, 1:-1]
        s = u[2:, 1:-1] - u[1:-1, 1:-1]
        flux = np.exp(-((n / 20) ** 2)) * n + np.exp(-((s / 20) ** 2)) * s
        u[1:-1, 1:-1] += 0.2 * flux
    return u, n


def test_a_value_that_is_read_where_it_is_made_waits_for_what_is_overwritten():
    report = jl.explain(jl.jit(diffused), X)
    kept = next(t for t in report.temporaries if t.name == "loop/sub")
    edge = next(b for b in report.boundaries if b.producer == "loop/sub")
    assert kept.reason.text == edge.reason.text  # one reason, wherever it is told
    line = diffused.__code__.co_firstlineno + 6
    assert kept.reason.text.startswith(f"`n` is computed from elements of `u` that line {line} overwrites")


def in_turns(x):
    for _ in range(20):
        e = np.exp(x)
        x = x - e / e.sum(axis=1, keepdims=True)
    return x


def test_what_is_changed_in_place_is_the_reason_where_the_same_value_in_new_memory_would_share_the_rows():
    kept = next(t for t in jl.explain(jl.jit(in_turns), X).temporaries if t.name == "loop/exp")
    assert kept.reason.code == "updated" and kept.reason.text.startswith("`x` is written in place, in separate loops")
    anew = jl.explain(jl.jit(lambda x: x - (e := np.exp(x)) / e.sum(axis=1, keepdims=True)), X)
    assert not anew.boundaries


def moved_centres(points, start):
    C = start.copy()
    for _ in range(15):
        nearest = ((points[:, None] - C[None]) ** 2).sum(axis=2).argmin(axis=1)
        for k in range(4):
            here = (nearest == k)[:, None]
            C[k] = np.where(here, points, 0).sum(axis=0) / here.sum()
    return C


def copy_in_turns(x):
    z = x.copy()
    for _ in range(20):
        z -= z.max(axis=1, keepdims=True)
        z += np.exp(z).sum(axis=1, keepdims=True)
    return z.sum()


def copy_changed(x, v):
    y = x.copy()
    y[1:] = v[1:] * 2
    return y, np.exp(y).sum()


@pytest.mark.parametrize(
    ("program", "arguments", "own"),
    [
        (moved_centres, (np.random.default_rng(1).random((200, 2)), np.random.default_rng(1).random((4, 2))), "C"),
        (copy_in_turns, (X,), "z"),
        (copy_changed, (X[0], X[0]), "y"),
    ],
)
def test_a_copy_that_is_changed_has_its_own_name_and_not_that_of_the_argument_it_is_of(program, arguments, own):
    before = [argument.copy() for argument in arguments]
    text = str(jl.explain(jl.jit(program), *arguments))
    joined = re.sub(r"\s+", " ", text)
    told = re.findall(r"`(\w+)` (?:is written in place|is changed in place|comes from a separate loop)", joined)
    assert told and {*told} == {own}
    for argument, was in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(argument, was)


# ---- order: the lines stand in another one, and nothing else is changed


def doubled_last(x):
    e = np.exp(x)
    s = e.sum()
    p = e / s
    return p, e * 2


def doubled_first(x):
    e = np.exp(x)
    t = e * 2
    s = e.sum()
    p = e / s
    return p, t


def doubled_on_one_line(x):
    e = np.exp(x); s = e.sum(); p = e / s; return p, e * 2  # noqa: E702


def rows_doubled_last(x):
    e = np.sqrt(x)
    m = e.max()
    return e, (e - m).sum(axis=1), np.tanh(e)


def rows_doubled_first(x):
    e = np.sqrt(x)
    t = np.tanh(e)
    m = e.max()
    return e, (e - m).sum(axis=1), t


@pytest.mark.parametrize(
    ("program", "moved", "edge", "line"),
    [
        (doubled_last, doubled_first, ("exp", "mul"), 2),
        (doubled_on_one_line, doubled_first, ("exp", "mul"), 1),
        (rows_doubled_last, rows_doubled_first, ("sqrt", "tanh"), 2),
    ],
)  # fmt: skip
def test_where_only_the_order_of_the_lines_is_in_the_way_moving_one_is_told_and_fuses(program, moved, edge, line):
    report = jl.explain(f := jl.jit(program), X)
    found = next(b for b in report.boundaries if (b.producer, b.consumer) == edge)
    assert found.reason.code == "order"
    before = program.__code__.co_firstlineno + line
    assert re.fullmatch(rf"`.*` came before `.*` \(line {before}\)", found.would_fuse_if)
    (first, *_) = found.rejections
    assert (found.flip.code, first.code, first.flip) == ("move", "order", found.flip) and first.bytes == found.bytes
    assert set(first.operands) <= {op.name for op in report.ops}
    assert report.why_not(*edge, check=True).checked is True and f is not None
    after = jl.explain(jl.jit(moved), X)
    assert edge not in {(b.producer, b.consumer) for b in after.boundaries} and len(after.kernels) <= len(report.kernels)


def summed_twice(x):
    e = np.exp(x)
    a = e.sum()
    return e, a, e.max()



def test_no_line_is_told_to_move_where_another_edge_would_be_cut_for_it():
    found = next(b for b in jl.explain(jl.jit(summed_twice), X).boundaries if b.producer == "exp")
    assert found.reason.code == "order" and "came before" not in (found.would_fuse_if or "")


def diffused_with_edges(u):
    u = u.copy()
    for _ in range(20):
        n = u[:-2, 1:-1] - u[1:-1, 1:-1]
        s = u[2:, 1:-1] - u[1:-1, 1:-1]
        flux = sum(np.exp(-((d / 20) ** 2)) * d for d in (n, s))
        u[1:-1, 1:-1] += 0.2 * flux
    return u, n, flux


def test_a_value_that_a_loop_hands_on_is_stored_because_its_source_changes():
    kept = next(t for t in jl.explain(jl.jit(diffused_with_edges), X).temporaries if t.name == "loop/sub")
    assert kept.reason.code == "source_changes"
    assert kept.reason.text.startswith("`n` is read after the array that it is taken from changes")


def test_a_value_of_another_shape_is_told_to_be_that():
    def grey(image, w):
        y = np.einsum("ijk,k->ij", image, w)
        return y, y.astype(np.uint8)

    report = jl.explain(jl.jit(grey), np.ones((20, 30, 3), np.uint8), np.ones(3))
    assert [edge.reason.code for edge in report.boundaries] == ["reshaped"]


def shifted_exponential(z):
    x = np.maximum(np.exp(z) - 1.5, 0)
    return x.mean(), x.std()


def kept_and_centred(x):
    e = np.sqrt(x)
    return e, e - e.mean(axis=0)


@pytest.mark.parametrize(
    ("program", "says"),
    [(softmax, False), (softmax_of_columns, False), (shifted_exponential, True), (kept_and_centred, True)],
)
def test_a_second_copy_that_saves_no_traffic_says_so(program, says):
    x = np.random.default_rng(0).random((500, 400))
    f = jl.function(program)
    told = [b for b in jl.explain(f, x).boundaries if "recomputed" in (b.would_fuse_if or "")]
    assert told
    for edge in told:
        assert edge.would_fuse_if.endswith(", which saves no memory traffic") == says
        answer = f.whatif(x, fuse=(edge.producer, edge.consumer), seconds=0.01)
        assert (answer.after.bytes >= answer.before.bytes) == says


WEIRD = "a. b: 3 MB; c"
OF_WEIRD = [
    lambda t: np.exp(t[WEIRD]) / np.exp(t[WEIRD]).sum(),
    lambda t: t["a. b: 3 MB; c"].T @ np.tanh(t["a. b: 3 MB; c"] @ t["a. b: 3 MB; c"][0]),
    lambda t: np.exp(t["a. b: 3 MB; c"]) @ np.tanh(t["a. b: 3 MB; c"].T @ t["a. b: 3 MB; c"]),
    lambda t: np.exp(t["a. b: 3 MB; c"]).cumsum(0).cumsum(1),
    lambda t: (np.exp(t["a. b: 3 MB; c"]).mean(), np.exp(t["a. b: 3 MB; c"]).std()),
    lambda t: np.exp(t["a. b: 3 MB; c"])[np.argsort(t["a. b: 3 MB; c"][:, 0])] + 1,
    lambda t: np.sort(np.exp(t["a. b: 3 MB; c"]), axis=0) * 2,
]


@pytest.mark.parametrize("program", OF_WEIRD, ids=range(len(OF_WEIRD)))
def test_a_reason_is_split_by_whoever_decides_whatever_the_names_in_it_look_like(program):
    """A full stop, a colon or a number of bytes in a name of the program ends no clause and is no size."""
    report = jl.explain(jl.jit(program), {WEIRD: X})
    assert report.boundaries
    for entry in (*report.boundaries, *report.temporaries):
        reason, size = entry.reason, units.size(entry.bytes)
        first = reason.clause or reason.text
        assert reason.text.startswith(first) and reason.text.endswith(reason.rest) and bool(reason.clause) == bool(reason.rest)
        assert reason.text in (first, *(f"{first}{mark} {reason.rest}" for mark in ".:;"))
        assert first.count("`") % 2 == 0 and reason.rest.count("`") % 2 == 0
        assert [size in first, size in reason.rest] == [reason.size_in == "clause", reason.size_in == "rest"]
    shown = " ".join(str(report).split())
    heads = {f"Not fused: {edge.pair}: {edge.reason.clause or edge.reason.text}" for edge in report.boundaries}
    several = {f"Not fused: {n} {word}s " for n in (2, 3, 4) for word in ("array", "value", "result", "operand", "reduction")}
    assert any(head in shown for head in heads | several)  # some are within a kernel's line
