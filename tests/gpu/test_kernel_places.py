"""Lines of LLVM's text and of PTX say which lines of the program they came from."""

import inspect

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.gpu_cuda.ptx_gaps import filled
from tests.gpu.listed_programs import LISTED, normal


def twenty_lines(x, y):
    a = x * np.float32(0.5)
    b = a + y
    c = np.sqrt(np.abs(b))
    d = np.exp(-c)
    e = d / (d + np.float32(1))
    f = np.where(e > np.float32(0.25), e, a)
    g = f * f
    h = g - b
    i = np.floor(h)
    j = h - i
    k = np.maximum(j, x)
    m = np.log(k * k + np.float32(1))
    n = m * c
    o = np.tanh(n)
    p = o + e
    q = np.minimum(p, y)
    r = q * np.float32(3)
    s = r - o
    t = np.rint(s)
    return s - t * d


def normalized(x):
    biggest = x.max(1, keepdims=True)
    e = np.exp(x - biggest)
    total = e.sum(1, keepdims=True)
    return e / total


def code_of(function, *arguments, stage):
    with jl.simulated_gpu():
        report = jl.explain(jl.jit(function, device="gpu"), *arguments)
        return [report.code(cluster.name, stage) for cluster in report.clusters]


@pytest.mark.parametrize("stage", ["llvm", "ptx"])
def test_the_work_of_a_kernel_of_twenty_lines_carries_their_lines(stage):
    (code,) = code_of(twenty_lines, normal(64, 64), normal(64, 64), stage=stage)
    work = [line for line in code.lines if not line.noise]
    assert len(work) > 100
    assert code.share >= 0.95
    start = inspect.getsourcelines(twenty_lines)[1]
    assert {line for each in code.lines for _, line in each.at} == set(range(start + 1, start + 21))


@pytest.mark.parametrize("name", LISTED)
def test_nearly_every_instruction_of_ptx_has_a_line(name):
    program = LISTED[name]
    for code in code_of(program.function, *program.arguments, stage="ptx"):
        assert sum(not line.noise for line in code.lines) > 20
        assert code.share >= 0.95, repr(code)


@pytest.mark.parametrize(
    ("function", "word", "written"),
    [
        (twenty_lines, "sqrt.rn.f32", "np.sqrt("),
        (twenty_lines, "cvt.rmi.f32.f32", "np.floor("),
        (twenty_lines, "cvt.rni.f32.f32", "np.rint("),
        (normalized, "div.rn.f32", "return e / total"),
    ],
)
def test_an_instruction_is_of_the_line_that_asks_for_it(function, word, written):
    source, start = inspect.getsourcelines(function)
    (line,) = [start + k for k, text in enumerate(source) if written in text]
    (code,) = code_of(function, *(normal(64, 64) for _ in inspect.signature(function).parameters), stage="ptx")
    found = [each for each in code.lines if word in each.text]
    assert found
    for each in found:
        assert [number for _, number in each.at][-1] == line, each  # and the line that makes what it reads, as a number a row


def test_gaps_are_filled_along_registers_and_jumps():
    lines = [
        "\tld.param.b64 \t%rd1, [phase0_param_0];", "\tmov.b32 \t%r1, 0;", "\t@%p1 bra \t$L__BB0_2;",
        "\tadd.s64 \t%rd2, %rd1, 16;", "$L__BB0_2:", "\tld.global.v2.b64 \t{%rd3, %rd4}, [%rd2];",
        "\tst.global.b32 \t[%rd3], %r1;", "\tret;",
    ]  # fmt: skip
    none, five, seven = frozenset(), frozenset((5,)), frozenset((7,))
    known = [none, none, none, none, none, five, seven, none]
    assert filled(lines, known) == [five, seven, five, five, none, five, seven, none]
