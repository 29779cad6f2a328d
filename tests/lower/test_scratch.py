"""Temporaries share memory where no kernel uses both; stencils make the next version of an array in one pass."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jitlab as jl
from jitlab.ir.programs import traffic
from jitlab.ir.programs.traffic import ALIGNMENT, aligned, scratch_places


def placed(sizes, spans, rows=()):
    """The places of temporaries of so many bytes that live from one kernel to another."""
    temps = [SimpleNamespace(name=f"t{i}", nbytes=n) for i, n in enumerate(sizes)]
    program = SimpleNamespace(temps=temps, rows=[SimpleNamespace(name="e", nbytes=n) for n in rows], kernels=range(99))
    before = traffic.lives
    traffic.lives = lambda program: {buffer.name: span for buffer, span in zip(temps, spans, strict=True)}
    try:
        return scratch_places(program, lambda buffer: buffer.nbytes)
    finally:
        traffic.lives = before


spans = st.tuples(st.integers(0, 12), st.integers(0, 5)).map(lambda pair: (pair[0], sum(pair)))


@given(st.lists(st.tuples(st.integers(0, 2000), spans), max_size=25), st.lists(st.integers(0, 600), max_size=3))
def test_what_is_alive_at_once_shares_no_byte(temps, rows):
    places, total = placed([size for size, _ in temps], [span for _, span in temps], rows)
    ends = [at + max(size, 1) for at, size in zip(places, [*(size for size, _ in temps), *rows], strict=True)]
    assert all(at % ALIGNMENT == 0 for at in places) and total >= max(ends, default=0)
    alive = [span for _, span in temps] + [(0, 99)] * len(rows)
    for i in range(len(places)):
        for j in range(i):
            if alive[i][0] <= alive[j][1] and alive[j][0] <= alive[i][1]:
                assert places[i] >= ends[j] or places[j] >= ends[i]


def test_a_chain_takes_the_memory_of_two():
    assert placed([1000] * 9, [(i, i + 1) for i in range(9)])[1] == 2 * aligned(1000)


def heat(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


def test_a_step_of_a_stencil_is_one_pass_that_copies_its_rim():
    x = np.random.default_rng(0).random((40, 50))
    f = jl.function(lambda u: heat(u, 4))
    with jl.record() as recording:
        found = f(x)
    np.testing.assert_allclose(found, heat(x, 4), rtol=1e-13)
    report = recording.report()
    assert len(report.kernels) == 4
    assert all(kernel.bytes_written == x.nbytes for kernel in report.kernels)
    (cluster,) = report.data["clusters"]
    assert cluster["scratch_bytes"] <= 2 * (x.nbytes + ALIGNMENT)
    rim_bytes = x.nbytes - 38 * 48 * 8
    assert {copy["bytes"] for copy in report.data["copies"]} == {rim_bytes}
    first, *others = [copy["reason"]["code"] for copy in report.data["copies"]]
    assert first == "input_kept" and set(others) == {"rim"}


def one_row_left(u):
    u = u.copy()
    for _ in range(3):
        u[1:] = u[:-1] * 0.5 + u[1:]
    return u


def deep_rim(u):
    u = u.copy()
    u[3:-4] = u[1:-6] + u[5:-2]
    u[2:-2] = u[:-4] - u[4:]
    return u


def two_at_once(u):
    u, v = u.copy(), u * 2
    for _ in range(2):
        u[1:-1], v[1:-1] = v[2:] + u[:-2], u[2:] - v[:-2]
    return u, v


def the_old_one_is_wanted(u):
    v = u.copy()
    v[1:-1] += u[:-2] * v[:-2]
    old = v.copy()
    v[1:-1] += v[:-2] * old[2:]
    return v, old


def ahead(u):
    u = u.copy()
    u[:-1] = u[1:] * 2
    return u


def middle_read_later(u):
    u = u.copy()
    u[1:-1] = u[:-2] + u[2:]
    middle = u[1:-1]
    u[1:-1] = middle * u[2:] - u[:-2]
    return u, middle.copy()


def turned(u):
    u = u.copy()
    u[1:-1] = u[:-2][::-1] + u[2:]
    return u


def given_back(u):
    u[1:-1] += u[:-2] - 2 * u[1:-1] + u[2:]
    u[1:-1] += u[:-2] - 2 * u[1:-1] + u[2:]
    return u.sum()


PROGRAMS = [one_row_left, deep_rim, two_at_once, the_old_one_is_wanted, ahead, middle_read_later, turned, given_back]


@pytest.mark.parametrize("shape", [(9,), (40,), (9, 3), (12, 17), (10, 2, 5)], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("wrap", [jl.function, jl.jit])
def test_parts_that_read_what_they_overwrite(program, shape, wrap):
    x = np.random.default_rng(1).random(shape)
    wanted_from, given_to = x.copy(), x.copy()
    wanted = program(wanted_from)
    compiled = wrap(program)
    for _ in range(2):
        given_to = x.copy()
        found = compiled(given_to)
        both = (value if isinstance(value, tuple) else (value,) for value in (wanted, found))
        for one, other in zip(*both, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-13)
        np.testing.assert_allclose(given_to, wanted_from, rtol=1e-13)
