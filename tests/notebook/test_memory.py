"""A cell that is edited and run again, many times: what is kept of its earlier sources has a bound."""

import gc
import tracemalloc
from importlib import import_module
from itertools import pairwise

import pytest

import jitlab as jl
from jitlab.capture.drivers import cells
from jitlab.notebook import cell_session as session
from jitlab.report import recording
from jitlab.targets.cpu_llvm.compiling import background
from tests.cell_runs import run_cell

CELL = "%%jit -q\ny = np.exp(x) * TURN + x.sum()"
#: Tables that keep so many of what came last: fewer, so that they are full when bytes are counted.
TABLES = {
    cells: "MOST_PROGRAMS", recording: "PLANS", session: "KEPT_SOURCES",
    import_module("jitlab.runtime.compiled"): "MOST_UNUSED", import_module("jitlab.ir.texts"): "KEPT",
    import_module("jitlab.runtime.dumps"): "MOST_VERSIONS",
}  # fmt: skip
FULL, TURNS = 75, 15


@pytest.mark.slow
@pytest.mark.parametrize("id", ["a", None], ids=["in a notebook", "in a terminal, where cells have no ids"])
def test_a_cell_that_is_edited_and_run_again_leaves_little(ip, id, monkeypatch):
    for module, name in TABLES.items():
        monkeypatch.setattr(module, name, 10)
    monkeypatch.setattr(session, "KEPT_CELLS", 5)
    monkeypatch.setattr("jitlab.notebook.history.MOST_CELLS", 5)
    monkeypatch.setattr(jl.config, "history_runs", 5)
    ip.run_cell("import numpy as np\nx = np.linspace(0, 1, 300)", store_history=True)
    counted = []
    tracemalloc.start(1)
    try:
        for turn in range(FULL + 3 * TURNS + 1):
            if turn >= FULL and (turn - FULL) % TURNS == 0:
                background().submit(int).result()
                gc.collect()
                counted.append(tracemalloc.get_traced_memory()[0])
            ip.run_cell(CELL.replace("TURN", str(turn)), store_history=True, cell_id=id)
    finally:
        tracemalloc.stop()
    grown = [after - before for before, after in pairwise(counted)]  # a table of another test's may still fill in one of them
    assert min(grown) < 3000 * TURNS  # of which IPython's own history is a third


def test_of_one_cell_the_newest_sources_keep_their_traces():
    namespace, made = {}, []

    def run(source, place="<cell>"):
        before = cells._programs.copy()
        run_cell(source, namespace, place)
        made.append(any(cells._programs[key] is not before.get(key) for key in cells._programs))

    for source in ("a = 1", "a = 2", "a = 1"):
        run(source)
    run("a = 1", "<another cell>")
    assert made == [True, True, False, True]
    for number in range(2 * cells.MOST_SOURCES):
        run(f"b = {number}")
    kept = [known for known in cells._programs.values() if known.place[0] == "<cell>" and known.namespace is namespace]
    assert len(kept) == cells.MOST_SOURCES
    run("a = 1", "<another cell>")
    run(f"b = {number}")
    run("a = 1")
    assert made[-3:] == [False, False, True]
