"""Large results of calls that C answers lie in blocks that are recycled, and other threads run meanwhile."""

import gc
import re
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.cpu_llvm.calls import shelves
from jitlab.targets.cpu_llvm.calls.buffers import ALIGNMENT, BEHIND, LARGE_BYTES, LARGE_PAGE, PAGE, POOLED_BYTES, pool
from jitlab.targets.cpu_llvm.calls.entry import layout_is_known

pytestmark = pytest.mark.skipif(not layout_is_known(), reason="every call takes the Python way on this interpreter")

LARGE = np.linspace(0, 1, POOLED_BYTES // 8)


@pytest.fixture
def warm(monkeypatch):
    """A function that Python does not run any more."""

    def made(function, *args):
        traced = jl.function(function)
        for _ in range(8):
            traced(*args)
        monkeypatch.setattr(jl.Function, "_run", lambda *a: pytest.fail("Python ran it"))
        return traced

    jl.trim()
    yield made
    jl.trim()
    assert shelves.free_bytes() == 0


def test_blocks_are_recycled(warm):
    f = warm(lambda x: x + 1, LARGE)
    first = f(LARGE)
    place = first.ctypes.data
    assert place % ALIGNMENT == 0 and first.flags.writeable and first.flags.c_contiguous and not first.flags.owndata
    np.testing.assert_array_equal(first, LARGE + 1)
    second = f(LARGE)
    assert second.ctypes.data != place
    view = first[5:]
    del first
    assert f(LARGE).ctypes.data != place  # a view of it is left
    del view
    third = f(LARGE)
    assert third.ctypes.data == place
    np.testing.assert_array_equal(third, LARGE + 1)


def test_blocks_start_half_a_page_from_where_numpys_large_arrays_do(warm):
    f = warm(lambda x: x + 1, LARGE)
    kept = [f(LARGE) for _ in range(3)]
    assert {array.ctypes.data % PAGE for array in kept} == {BEHIND}
    assert {pool.empty((n,), np.dtype("f8")).ctypes.data % PAGE for n in (10_000, 100_000)} == {BEHIND}


def test_large_blocks_are_of_large_pages_where_linux_has_them(warm):
    x = np.zeros(LARGE_BYTES // 8)
    result = warm(lambda x: x + 1, x)(x)
    flags = flags_at(result.ctypes.data + LARGE_PAGE // 2)
    assert flags is None or "hg" in flags
    np.testing.assert_array_equal(result, 1)


def flags_at(address):
    """Those of the memory there, where the system tells them and has large pages."""
    maps = Path("/proc/self/smaps")
    if not maps.exists() or not Path("/sys/kernel/mm/transparent_hugepage").exists():
        return None
    inside = False
    for line in maps.read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    return []


def test_results_of_several_sizes(warm):
    def f(x):
        return x[:10] * 2, x + 1, np.outer(x[:500], x[:300]), x.sum()

    traced = warm(f, LARGE)
    kept = []
    for _ in range(20):
        kept.append(traced(LARGE))
        kept = kept[-3:]
    for results in kept:
        for found, wanted in zip(results, f(LARGE), strict=True):
            assert type(found) is type(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_free_blocks_take_no_more_than_their_share(warm):
    f = warm(lambda x: x + 1, LARGE)
    kept = [f(LARGE) for _ in range(5)]
    kept.clear()
    each = shelves.free_bytes() // 5
    assert LARGE.nbytes <= each <= LARGE.nbytes * 9 // 8
    kept = [f(LARGE) for _ in range(5)]
    assert shelves.free_bytes() == 0
    shelves._all[1] = 2 * each
    kept.clear()
    assert shelves.free_bytes() == 2 * each
    shelves.shelf(1)  # the limit is that of the machine again
    jl.trim()
    assert shelves.free_bytes() == 0


def test_memory_does_not_grow(warm):
    f = warm(lambda x: (x + 1, x * 2), LARGE)
    tracemalloc.start()
    try:
        f(LARGE)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(300):
            f(LARGE)
        assert tracemalloc.get_traced_memory()[0] - before < LARGE.nbytes
    finally:
        tracemalloc.stop()


def test_large_scratch(warm):
    def f(x):
        order = np.cumsum(np.sort(x * 3))
        return (order[::-1] * x).sum(), order[-1]

    x = np.linspace(1, 0, 5000)
    traced = warm(f, x)
    for _ in range(3):
        np.testing.assert_allclose(traced(x), f(x), rtol=1e-12)


def test_threads_take_and_give(warm):
    f = warm(lambda x: x * 2, LARGE)
    wrong = []

    def work(k):
        x, wanted = LARGE + k, (LARGE + k) * 2
        kept = []
        for n in range(300):
            kept.append(f(x))
            if n % 7 == 0:
                wrong.extend(k for found in kept if not np.array_equal(found, wanted))
                kept.clear()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_from_the_beginning(warm):
    """Threads are made to give no lock away: others run while machine code does, and after it."""

    def f(x, limit):
        total = x[0]
        while total < limit[0]:
            total = total + x[1]
        return x + total

    x = LARGE.copy()
    x[:2] = 0, 1
    traced = warm(f, x, np.array([5.0]))
    limit = np.array([1e6])
    seen = []
    stop = threading.Event()

    def count():
        while not stop.is_set():
            seen.append(1)
            time.sleep(0)  # gives the lock away

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    try:
        sys.setswitchinterval(1000)  # nobody is made to give the lock away
        thread.start()
        before = len(seen)
        for _ in range(20_000):  # the system says when a thread that may run does
            traced(x, limit)
            if len(seen) > before:
                break
        assert len(seen) > before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()


def test_it_ends_with_results_alive():
    """Blocks that are given back while the interpreter ends."""
    program = """
        import numpy as np
        import jitlab as jl

        f = jl.function(lambda x: x + 1)
        x = np.ones(100_000)
        for _ in range(8):
            kept = f(x)
        class Last:
            def __init__(self): self.kept = f(x)
            def __del__(self): print(self.kept[0])
        last = Last()
        cycle = [kept]; cycle.append(cycle)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and ended.stdout == "2.0\n", ended.stderr
