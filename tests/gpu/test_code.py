"""What the code of programs for a GPU is like, without one: how it reads memory, and which instructions it has and has not."""

import os
import re
import subprocess
from functools import cache

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.gpu_cuda.ptx import nvidia_program, ptx_of
from tests.gpu.listed_programs import LISTED
from tests.gpu.on_gpu import on_gpu

ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]

#: Code for a GPU and LLVM move a little; more than that is looked at.
MORE_INSTRUCTIONS = 1.1

WIDE = r"{}\.global[.a-z]*\.v(?:4\.[a-z]32|2\.[a-z]64)"


@cache
def run(name):
    """The texts of a program's modules, the GPU it ran on, its results and NumPy's."""
    program, texts = LISTED[name], []
    with on_gpu() as gpu:
        load = gpu.load
        gpu.load = lambda text, kernels: texts.append(text) or load(text, kernels)
        got = jl.jit(program.function)(*(a.copy() for a in program.arguments))
    want = program.function(*(a.copy() for a in program.arguments))
    return texts, gpu, *(x if isinstance(x, tuple) else (x,) for x in (got, want))


@cache
def ptx(name, arch):
    return "\n".join(ptx_of(text, arch) for text in run(name)[0])


def instructions(text):
    return re.findall(r"^\t(?:@!?%p\d+ )?([a-z][\w.]*)", text, re.MULTILINE)


@pytest.mark.parametrize("name", LISTED)
def test_a_program_reads_what_it_needs_and_writes_its_results_once(name):
    program = LISTED[name]
    texts, gpu, got, want = run(name)
    assert texts and gpu.launched
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    if program.once:  # partial results of whole sums are few
        given, made = (sum(np.asarray(a).nbytes for a in arrays) for arrays in (program.arguments, want))
        assert gpu.read_bytes <= given * 1.001
        assert made <= gpu.written_bytes <= made + given / 1000


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", LISTED)
def test_code_has_the_instructions_that_are_asked_for(name, arch):
    program, found = LISTED[name], instructions(ptx(name, arch))
    assert found
    if program.wide:
        assert re.search(WIDE.format("ld"), ptx(name, arch)) or program.arguments[0].itemsize == 1
        assert re.search(WIDE.format("st"), ptx(name, arch)) or run(name)[2][0].itemsize == 1
    assert not re.search(r"\.approx|\.ftz|\.full", " ".join(found))
    assert not re.search(r"\b(ld|st)\.local|\.local \.align", ptx(name, arch))
    assert {"_$_huge_$_" in called for called in re.findall(r"\bcall\b[^;]*", ptx(name, arch))} <= {True}  # what is rare
    if program.single:
        assert not any(".f64" in name for name in found)


_FMA = re.compile(r"(%\S+) = call (\w+|<[^>]+>) @llvm\.fma\.\w+\(\2 (.+), \2 (.+), \2 (.+)\)")


@pytest.mark.parametrize("name", LISTED)
def test_code_multiplies_and_adds_in_one_step_only_where_that_is_asked_for(name):
    """Without those that the text asks for there are none."""
    for text in run(name)[0]:
        apart = _FMA.sub(r"\1.product = fmul \2 \3, \4\n  \1 = fadd \2 \1.product, \5", text)
        assert not re.search(r"call .*@llvm\.fma", apart)
        assert not [name for name in instructions(ptx_of(apart, "sm_90")) if re.match(r"fma|mad\.f", name)]


def test_code_is_not_longer_than_it_was(golden):
    lines = [f"{name} {len(instructions(ptx(name, 'sm_90')))}" for name in LISTED]
    if "\n".join(lines) == golden:
        return
    known = dict(line.split() for line in golden.path.read_text().splitlines())
    longer = [line for line in lines if int(line.split()[1]) > MORE_INSTRUCTIONS * int(known.get(line.split()[0], 0))]
    assert longer == []


def assembler():
    """NVIDIA's assembler: named by JITLAB_PTXAS, or found."""
    return os.environ.get("JITLAB_PTXAS") or nvidia_program("ptxas")


#: Bytes that kernels put out of registers, of which they get fewer so that more threads fit: at most these.
SPILLED = {
    ("softmax", "sm_100"): 4, ("log_softmax", "sm_100"): 4, ("softmax_of_long_rows", "sm_100"): 16,
    ("softmax_of_rows_in_parts", "sm_90"): 12, ("layernorm_of_rows_in_parts", "sm_100"): 8,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(assembler() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", LISTED)
def test_the_assembler_takes_it_and_spills_nothing(name, arch, tmp_path):
    for number, text in enumerate(run(name)[0]):
        source = tmp_path / f"{number}.ptx"
        source.write_text(ptx_of(text, arch))
        command = [assembler(), "-v", f"-arch={arch}", "-o", str(tmp_path / "cubin"), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        spilled = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
        assert spilled
        assert all(int(b) <= SPILLED.get((name, arch), 0) for both in spilled for b in both), done.stderr
