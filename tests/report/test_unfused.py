"""What keeps kernels apart is told once for equal reasons, with a count, and small values are counted."""

import re

import numpy as np
import pytest

import jitlab as jl
from jitlab.report.equal_reasons import told_edges
from jitlab.report.render.html import report_html
from jitlab.report.render.unfused import cuts

X = np.random.default_rng(0).normal(size=(64, 256))


def filtered(x):
    a = np.fft.rfft(np.fft.irfft(np.fft.rfft(x * 2) * 3) * 4) * 5
    return np.fft.irfft(a) + 1


def text_of(function, *args):
    return str(jl.explain(jl.function(function), *args))


def edge(producer, consumer, detail, nbytes, flip=None):
    reason = {"detail": detail, "text": f"{producer} {detail} {consumer}"}
    return {"producer": producer, "consumer": consumer, "bytes": nbytes, "reason": reason, "flip": flip}


def told(kernels, traffic=10_000):
    """Each kernel of a cluster as the edges that end there; what they read is made in the kernels before."""
    readers = [{e["consumer"] for e in row} for row in kernels]
    made = {e["producer"] for row in kernels for e in row}.difference(*readers)
    names = [sorted(made), *map(sorted, readers)]
    plan = {
        "ops": [{"name": name, "op": "Call", "cluster": "c"} for name in set().union(*names)],
        "kernels": [{"cluster": "c", "ops": ops} for ops in names],
        "clusters": [{"name": "c", "bytes_read": traffic, "bytes_written": 0}],
        "boundaries": [e for row in kernels for e in row],
    }
    return told_edges(plan)


def heads(kernels, traffic=10_000):
    edges = iter(told(kernels, traffic))
    rows, small = cuts([[next(edges) for _ in row] for row in kernels])
    return [[cut.head for cut in row] for row in rows], small


def test_equal_reasons_are_one_line_with_their_count():
    text = text_of(filtered, X)
    assert text.count("// Not fused: 4 results of np.fft must be complete before the next loop, ") == 1
    assert "returns its result in one piece, " not in text


def test_the_report_says_which_edges_are_told_together():
    explained = jl.explain(jl.function(filtered), X)
    said = {boundary.told for boundary in explained.boundaries if boundary.told}
    assert {re.sub(r",[^,]*$", "", text) for text in said} >= {"4 results of np.fft must be complete before the next loop"}
    page = report_html(explained.to_json(), {})
    table = page[page.index("<summary>Not fused</summary>") :].partition("</table>")[0]
    assert table.count("4 results of np.fft must be complete before the next loop, ") == 1
    assert (table.count("<tr>"), len(explained.boundaries)) == (2, 4)  # with the heads


def test_a_reason_that_stands_alone_says_its_names():
    text = text_of(lambda x: np.tanh(x / x.sum(axis=1, keepdims=True)) @ X.T, X)
    why = r"matrix multiplication is a library call \(BLAS\), which cannot be fused, 131 kB"
    assert re.search(rf"// Not fused: `.+` → `.+`: {why}", " ".join(text.split()))


def test_the_count_is_of_values_and_stands_where_the_first_is():
    result = [edge("a", "p", "whole_result", 800)]
    again = [edge("a", "q", "whole_result", 800), edge("b", "q", "whole_result", 200)]
    rows, small = heads([result, again])
    assert rows == [["Not fused: 2 results of library calls must be complete before the next loop, 1.0 kB"], []]
    assert small == 0


@pytest.mark.parametrize(("nbytes", "folded"), [(99, 1), (100, 0)])
def test_what_is_below_a_hundredth_of_the_traffic_is_counted_beside_what_is_not(nbytes, folded):
    (row,), small = heads([[edge("b", "q", "number", nbytes), edge("a", "q", "whole_result", 800)]])
    assert (len(row), small) == (2 - folded, folded)
    assert "Not fused: a → q: a whole_result q, 800 B" in row


def test_a_small_value_is_told_where_nothing_else_is():
    rows, small = heads([[edge("a", "q", "number", 8), edge("b", "q", "later", 8)]])
    assert (rows, small) == ([["Not fused: a → q: a number q, 8 B"]], 1)
    assert heads([[edge("a", "q", "whole_reduction", 8)]]) == ([["Not fused: a → q: a whole_reduction q, 8 B"]], 0)


def test_an_edge_within_a_kernel_or_from_another_cluster_is_told_by_itself():
    inside = edge("q", "q", "whole_result", 8)
    (first, second) = told([[edge("a", "q", "whole_result", 800)], [inside]])
    assert not {"told", "small"}.intersection(first, second)


def test_what_can_be_changed_is_told_by_itself_and_what_saves_nothing_is_not():
    useful = {"code": "earlier", "text": "it came earlier"}
    nothing = {"code": "twice_for_nothing", "text": "`a` were recomputed"}
    edges = [edge(name, "q", "reshaped", 800, flip) for name, flip in (("a", useful), ("b", nothing), ("c", None))]
    (row,), _ = cuts([told([edges])])
    assert [(cut.head, cut.flip) for cut in row] == [
        ("Not fused: a → q: a reshaped q, 800 B", "Would fuse if it came earlier."),
        ("Not fused: 2 values read in another shape, 1.6 kB", None),
    ]


def test_one_value_with_several_readers_is_told_as_if_it_had_one():
    rows, _ = heads([[edge("a", "q", "loop_ends", 800)], [edge("a", "r", "loop_ends", 800)]])
    assert rows == [["Not fused: a loop_ends q, 800 B"], []]


def test_a_kernel_says_of_which_expression_it_computes_a_part():
    text = text_of(lambda x: (x - x.mean(axis=0)) / x.std(axis=0), X)
    assert re.search(r"k\d.* part of x\.std\(axis=0\)", text) and "astype" not in text and "[None]" not in text


def test_a_call_with_several_results_is_named_as_it_is_written():
    names = [op.written for op in jl.explain(jl.function(lambda x: np.linalg.eigh(x @ x.T)[1] * 2), X[:9]).ops]
    assert "np.linalg.eigh(x @ x.T)" in names


def test_an_operations_own_parts_without_bytes_are_no_edge():
    assert told([[edge("a", "q", "whole_result", 800)], [edge("q", "q", "whole_result", 0)]])[1:] == []
