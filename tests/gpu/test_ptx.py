"""PTX of LLVM text, made without a GPU."""

import re
import threading

import pytest

from jitlab.errors import InternalError
from jitlab.targets.gpu_cuda import ptx

TEXT = """target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr addrspace(1) %p) {
  %v = load <4 x float>, ptr addrspace(1) %p, align 16
  %w = fmul <4 x float> %v, splat (float 3.0)
  %z = fadd <4 x float> %w, splat (float 1.0)
  store <4 x float> %z, ptr addrspace(1) %p, align 16
  ret void
}
"""


@pytest.mark.parametrize("arch", [70, 75, 80, 86, 89, 90, 100, 120])
def test_each_architecture_has_the_least_ptx_it_needs(arch):
    made = ptx.ptx_of(TEXT, f"sm_{arch}")
    assert f".version {ptx.KNOWN[arch][0] / 10}\n.target sm_{arch}\n" in made
    assert len(re.findall(r"ld\.global\.v(4\.b32|2\.b64)", made)) == len(re.findall(r"st\.global\.v(4\.b32|2\.b64)", made)) == 1
    pairs = arch >= 100  # which have instructions for two numbers
    assert len(re.findall(r"mul\.rn\.f32", made)) == len(re.findall(r"add\.rn\.f32", made)) == (2 if pairs else 4)
    assert "fma" not in made


def test_a_later_ptx_may_be_asked_for_and_no_earlier_one():
    assert ".version 8.3\n" in ptx.ptx_of(TEXT, "sm_90", 83)
    with pytest.raises(ValueError, match="7.8 and later, 7.0"):
        ptx.ptx_of(TEXT, "sm_90", 70)


@pytest.mark.parametrize(("version", "llvm", "arch"), [
    ((9, 0), 22, "sm_90"), ((8, 6), 22, "sm_86"), ((9, 5), 22, "sm_90"), ((13, 0), 22, "sm_121"), ((10, 3), 22, "sm_103"),
    ((10, 3), 20, "sm_101"), ((12, 1), 20, "sm_120"), ((7, 0), 22, "sm_70"), ((6, 1), 22, ""), ((5, 2), 22, ""),
])  # fmt: skip
def test_code_is_for_the_newest_architecture_that_the_gpu_runs(version, llvm, arch, monkeypatch):
    loaded = type("Binding", (), {"llvm_version_info": (llvm, 1, 0)})
    monkeypatch.setattr(ptx.machine, "llvm", lambda: loaded)
    assert ptx.arch_for(*version) == arch


def test_text_that_is_none_is_an_error_of_ours():
    with pytest.raises(InternalError, match="expected type"):
        ptx.ptx_of("define void @k( {", "sm_90")


def test_threads_that_compile_at_once():
    found = []
    threads = [threading.Thread(target=lambda n=n: found.append(ptx.ptx_of(TEXT, f"sm_{n}"))) for n in (80, 90) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 2
