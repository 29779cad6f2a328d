"""A part whose position is a number of the namespace changes in place: what reads the whole array before has its old values."""

import linecache

import numpy as np
import pytest

import jitlab as jl
from jitlab.api import Options, compile_trace
from tests.cell_runs import run_cell

PROGRAMS = [
    "M = B.copy()\nB[k] += 1",
    "M = B.T.copy().T\nB[k % B.shape[0]] += 1",
    "M = B * 2\nB[k] = 7",
    "M = B[1:] + B[:-1]\nB[k:k + 2] *= 2",
    "M = B.sum(axis=0)\nB[k] += 1\nN = M * 2",
    "s = B[k] * 2\nM = B.copy()\nB[k] += 1\nt = B[k] + 0",
    "M = np.sort(B, axis=None)\nB[k] += 1\nN = np.cumsum(M)",
    "M = B[k].copy()\nB[k] += 1\nN = B[k - 1] * 3",
    "M = B.copy()\nN = B.reshape(-1).copy()\nB[:, k] = M[:, 0]",
    "for i in range(3):\n    M = B.copy()\n    B[i] += M[k]",
    "M = np.asarray(B)\nB[k] += 1",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_cell_leaves_what_python_leaves(program):
    mine, theirs = ({"np": np, "B": np.arange(12.0).reshape(4, 3), "k": 1} for _ in range(2))
    for _ in range(3):
        run_cell(program, mine, "<cell>", executor=lambda trace: compile_trace(trace, Options(replays=True)))
        exec(program, theirs)
    for name in "BMNst":
        if name in theirs:
            np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_call_in_pieces_gives_what_python_gives(program):
    lines = program.replace("\n", "\n    ")
    source = f"def f(B, n):\n    k = int(n)\n    log.append(k)\n    {lines}\n    log.append(k)\n    return B, M\n"
    name = f"<parts {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"np": np, "log": []}
    exec(compile(source, name, "exec"), space)  # noqa: S102
    jitted = jl.jit(space["f"])
    for n in (1.0, 2.0, 1.0):
        got, want = (f(np.arange(12.0).reshape(4, 3), n) for f in (jitted, space["f"]))
        for x, y in zip(got, want, strict=True):
            np.testing.assert_array_equal(x, y)
