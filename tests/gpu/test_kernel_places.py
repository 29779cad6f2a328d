"""Lines of LLVM's text, of PTX and of SASS say which lines of the program they came from."""

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.gpu_cuda import ptx
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


@pytest.mark.skipif(not all(map(ptx.nvidia_program, ptx.PROGRAMS)), reason="NVIDIA's assembler and disassembler are not there")
def test_instructions_of_a_gpu_have_the_lines_of_the_ptx_that_they_are_made_of():
    (code,) = code_of(twenty_lines, normal(64, 64), normal(64, 64), stage="sass")
    work = [line for line in code.lines if not line.noise]
    assert len(work) > 100 and code.share >= 0.95
    start = inspect.getsourcelines(twenty_lines)[1]
    assert {line for each in work for _, line in each.at} == set(range(start + 1, start + 21))
    roots = [each for each in work if "MUFU.RSQ" in each.text]
    assert roots and all((start + 3) in [number for _, number in each.at] for each in roots)
    assert not [each.text for each in work if "NOP" in each.text]
    assert "NVIDIA's assembler" in code.note and {line.kernel for line in work} == {"k0"}


#: What nvdisasm prints of the first kernel where ptxas left the PTX as it is: an instruction for each, and what stands around.
DISASSEMBLER = r"""
import sys
print("\t.target\tsm_90", ".text.phase0:", sep="\n")
for number, line in enumerate(open(sys.argv[-1]), 1):
    if line.startswith("\t") and line[1] not in "./{}":
        print(f'\t//## File ".nv_debug_ptx_txt", line {number}')
        print(f"        /*{16 * number:04x}*/   {line.split()[0]} ;")
print(".L_x_9:", "        /*ff00*/   BRA `(.L_x_9);", "        /*ff10*/   NOP;", sep="\n")
"""


def program(folder, name, text):
    script = folder / f"{name}.py"
    script.write_text(text)
    (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    (folder / name).chmod(0o755)


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """The folder of a toolkit's programs, where none is on the path or a package of Python's."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(ptx.importlib.util, "find_spec", lambda name: None)
    return tmp_path / "bin"


def test_the_stage_sass_says_which_package_is_missing(toolkit):
    (code,) = code_of(normalized, normal(64, 64), stage="sass")
    assert code.lines == code.absorbed == ()
    assert "ptxas and nvdisasm cannot be found: pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm" in code.note
    program(toolkit, "ptxas", "")
    (code,) = code_of(normalized, normal(64, 64), stage="sass")
    assert "NVIDIA's nvdisasm cannot be found: pip install nvidia-cuda-nvdisasm, " in code.note


def test_programs_of_a_package_are_found_without_importing_it(toolkit, tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_HOME")
    assert ptx.nvidia_program("ptxas") is None
    found = tmp_path / "nvidia" / "cu13" / "bin"
    found.mkdir(parents=True)
    program(found, "ptxas", "")
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ptx.nvidia_program("ptxas") == str(found / "ptxas")
    assert "nvidia" not in sys.modules or tmp_path / "nvidia" in map(Path, sys.modules["nvidia"].__path__)


def test_an_instruction_of_a_gpu_has_the_place_of_its_ptx(toolkit):
    program(toolkit, "ptxas", "import shutil, sys; shutil.copy(sys.argv[-1], sys.argv[-2])")
    program(toolkit, "nvdisasm", DISASSEMBLER)
    (made,), (code,) = (code_of(normalized, normal(64, 64), stage=stage) for stage in ("ptx", "sass"))
    words = {True: [], False: []}
    for line in made.lines:
        if line.text.startswith("\t") and line.text[1] not in "./{}":
            words[line.noise].append((line.text.split()[0], line.at, line.ops))
    ours = [(line.text.split()[1], line.at, line.ops) for line in code.lines if not line.noise]
    assert len(ours) > 50 and ours == words[False]
    assert [line.text.split()[1] for line in code.lines if line.noise and ptx.is_sass(line.text)][-2:] == ["BRA", "NOP;"]


def test_what_the_assembler_says_is_the_note(toolkit):
    program(toolkit, "ptxas", "import sys; sys.exit('ptxas fatal: no such architecture')")
    program(toolkit, "nvdisasm", "")
    (code,) = code_of(normalized, normal(64, 64), stage="sass")
    assert code.lines == () and code.note.endswith("NVIDIA's ptxas failed: ptxas fatal: no such architecture")


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
