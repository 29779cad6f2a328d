import linecache

import numpy as np
import pytest
import report_samples as samples

import jitlab as jl
from jitlab import events
from jitlab.errors import OptionError
from jitlab.report import expect


def one_run():
    for event in samples.softmax_events(retraces=0, compare=False):
        events.send(event)


def test_what_holds_passes():
    with expect(retraces=0, traces=1, clusters=2, kernels="<=4", fallbacks=1, bytes="< 1 GB", fused=[("exp", "sum")]):
        one_run()


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"kernels": 3}, "kernels: 4, expected 3"),
        ({"kernels": "<4"}, "kernels: 4, expected <4"),
        ({"bytes": "<=200 MB"}, "bytes: 293 MB, expected <=200 MB"),
        ({"fused": [("div", "take")]}, r"fused: RealDiv .*and Take .*are not fused: p is stored"),
    ],
)
def test_what_does_not_hold_says_what_was_found(wrong, says):
    with pytest.raises(AssertionError, match=says), expect(**wrong):
        one_run()


def test_an_error_inside_stays_that_error():
    with pytest.raises(KeyError), expect(clusters=9):
        raise KeyError("mine")


@pytest.mark.parametrize("wrong", [{"cluster": 1}, {"clusters": "about 2"}, {"clusters": "<=2 MB"}])
def test_what_cannot_be_expected_is_refused(wrong):
    with pytest.raises(OptionError), expect(**wrong):
        pass


def test_retraces_are_told_with_cause_line_caller_and_the_replayed_fix():
    @jl.function
    def scale(x, k):
        return np.tanh(x) * k

    with pytest.raises(AssertionError) as error, expect(retraces=0):
        for k in (2.0, 3.0, 4.0):
            scale(np.ones(4), k)
    first, count, one, two, fix, code = str(error.value).splitlines()
    line = scale.python_function.__code__.co_firstlineno + 1
    assert count == "  retraces: 2, expected 0"
    change = "k was 2.0, then 3.0: each new Python number is traced again"
    assert one.startswith(f"    scale, test_expect.py, line {line}: {change}")
    assert one.endswith(f"called from test_expect.py, line {line + 5}")
    assert "k was 3.0, then 4.0" in two
    assert fix.startswith("    try: pass `k` as an array: 3 traces become 1, saves ")
    assert code.strip() == "k = np.asarray(k, np.float64)"


def test_what_numpy_ran_is_told():
    f = jl.function(lambda x: np.flatnonzero(x))
    found = r"fallbacks: 1, expected 0\n *np\.flatnonzero\(x\), line \d+: "
    with pytest.raises(AssertionError, match=found), expect(fallbacks=0):
        f(np.ones(4))


def test_a_variant_is_counted_apart():
    f = jl.function(lambda x: np.tanh(x) + 1)
    with expect(retraces=0, variants=1):
        f(np.ones((40, 30))), f(np.ones((80, 60))[::2, ::2])


def test_blocks_nest_and_count_what_other_threads_do():
    import threading

    f = jl.function(lambda x, k: x * k)
    with expect(traces=3):
        f(np.ones(2), 1)
        with expect(traces=1, retraces=1):
            f(np.ones(2), 2)
        thread = threading.Thread(target=f, args=(np.ones(2), 3))
        thread.start()
        thread.join()


def test_the_lines_of_a_cell_are_those_of_its_number(monkeypatch):
    from jitlab.capture import cell_names

    namespace = {"np": np, "jl": jl}
    file = "/tmp/ipykernel_1/3141.py"
    source = "@jl.function\ndef scale(x, k):\n    return x * k"
    monkeypatch.setitem(cell_names, file, "In [3]")
    monkeypatch.setitem(linecache.cache, file, (len(source), None, source.splitlines(keepends=True), file))
    exec(compile(source, file, "exec"), namespace)
    with pytest.raises(AssertionError, match=r"scale, In \[3\], line 2: k was"), expect(retraces=0):
        for k in range(2):
            namespace["scale"](np.ones(3), k)


def test_a_limit_may_be_an_integer_of_numpy_or_megabytes_with_a_fraction():
    f = jl.function(lambda x: np.tanh(x) + 1)
    with expect(clusters=np.int64(1), bytes="<=1.5 kB"):
        f(np.ones(90))
    with pytest.raises(AssertionError, match="bytes: 1440 B, expected <1.4 kB"), expect(bytes="<1.4 kB"):
        f(np.ones(90))


@pytest.mark.parametrize(
    "wanted",
    [{"clusters": 1.5}, {"clusters": "1.5"}, {"clusters": True}, {"bytes": "<=1.5 TB"}, {"fused": ("exp", "sum")},
     {"fused": [("exp", "sum", "max")]}, {"fused": [(1, 2)]}],
)  # fmt: skip
def test_what_is_no_limit_is_refused_before_the_block_runs(wanted):
    with pytest.raises(jl.errors.OptionError, match="jl.expect"), expect(**wanted):
        pytest.fail("the block ran")


@pytest.mark.parametrize("fused", [1, 0, 2.5, "exp", [1]])
def test_fused_takes_pairs_alone(fused):
    with pytest.raises(OptionError, match="no pair of operations"), jl.expect(fused=fused):
        pass
