"""Machine code kept on disk is found by what it depends on: the Program, the sources that write code, the processor, LLVM."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.ir.programs.program import Program
from jitlab.ops.base import Operation
from jitlab.ops.elementwise.arithmetic import Unary
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.cpu_llvm.compiling import background
from jitlab.targets.cpu_llvm.cpu_schedule import scheduled
from jitlab.targets.cpu_llvm.emit import codegen

PACKAGE = Path(jl.__file__).parent

RUN = """
import sys
import numpy as np
import jitlab as jl
from jitlab import events
from jitlab.targets.cpu_llvm.emit import codegen

written, heard = [], []
for name in ("module_for", "quick_module_for"):
    setattr(codegen, name, lambda program, write=getattr(codegen, name): written.append(program) or write(program))
events.add_listener(lambda e: heard.append(e.origin) if isinstance(e, events.ProgramCompiled) else None)
f = jl.function(lambda x: np.exp(x * 2).sum(axis=0) + x[0] ** 3)
print(f(np.arange(6.0).reshape(2, 3)).tolist(), bool(written), heard[0])
f.get_concrete_function(np.arange(6.0).reshape(2, 3))
from jitlab.targets.cpu_llvm.compiling import background
background().shutdown()
"""


def run(house, cache, **environment):
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=house, capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(house), "JITLAB_CACHE_DIR": str(cache)} | environment,
    )  # fmt: skip
    values, rest = done.stdout.split("]")
    return values, rest.split()


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the package that a test may edit."""
    copy = tmp_path_factory.mktemp("house")
    shutil.copytree(PACKAGE, copy / "jitlab", ignore=shutil.ignore_patterns("labextension", "static", "__pycache__"))
    return copy


def test_a_process_finds_what_another_compiled_without_writing_it_again(house, tmp_path):
    values, how = run(house, tmp_path, PYTHONHASHSEED="1")
    assert how == ["True", "compiled"]
    assert run(house, tmp_path, PYTHONHASHSEED="2") == (values, ["False", "disk"])


@pytest.mark.parametrize(("file", "before", "after"), [
    ("ops/elementwise/arithmetic.py", 'instruction: ClassVar[str] = "mul"', 'instruction: ClassVar[str] = "add"'),
    ("targets/llvm/llvm_arithmetic.py", "return self.mul(x, x) if power == 2", "return x if power"),
    ("ir/programs/program.py", '"""All kernels', '"""Each kernel'),
    ("passes/simplify.py", '"""The simplifying passes', '"""Simplifying passes'),
])  # fmt: skip
def test_an_edit_of_what_writes_code_finds_none_of_the_old(house, tmp_path, file, before, after):
    values, _ = run(house, tmp_path)
    path = house / "jitlab" / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    try:
        edited, how = run(house, tmp_path)
    finally:
        path.write_text(text)
    assert how == ["True", "compiled"] and (edited != values) == file.endswith("arithmetic.py")
    assert run(house, tmp_path)[1] == ["False", "disk"]  # what was there before the edit is there again


@pytest.fixture
def program():
    return scheduled(Program([], [], [], [], [], [], []))


def test_what_was_edited_since_it_was_imported_is_known_by_its_module(program, monkeypatch):
    monkeypatch.setattr(Operation, "has_others", False)  # which another test may have made
    codegen._sources.cache_clear()
    assert codegen.identity(program).endswith(program.text)
    monkeypatch.setattr(codegen, "_imported_ns", 0)
    codegen._sources.cache_clear()
    assert codegen.identity(program) == codegen.module_for(program)
    codegen._sources.cache_clear()


def test_an_operation_that_is_not_jitlabs_own_is_known_by_its_module(program, monkeypatch):
    monkeypatch.setattr(Operation, "has_others", False)
    assert codegen.identity(program) != codegen.module_for(program)

    @dataclass(frozen=True)
    class Thrice(Unary):
        ufunc = np.positive

    assert codegen.identity(program) == codegen.module_for(program)


def test_the_report_shows_llvm_code_of_a_program_that_came_from_disk():
    f = jl.function(lambda x: np.cos(x) * 2)
    with jl.record() as recording:
        f(np.ones(5))
    report = recording.report()
    assert "define i64 @run(" in report.ir(report.clusters[0].name, "llvm")


def test_better_code_belongs_to_the_cell_that_asked_for_it(monkeypatch):
    monkeypatch.setattr(jl.config, "cache", False)
    background().submit(lambda: None).result()  # what the tests before asked for is made
    made = []
    with events.listen(lambda event: made.append(event) if isinstance(event, events.ProgramCompiled) else None):
        with events.in_cell("asked"):
            jl.jit(lambda x: np.cosh(x) * 2.25 + 0.125)(np.ones(5))
        with events.in_cell("other"):
            background().submit(lambda: None).result()
    assert [(event.tier, event.cell) for event in made] == [("quick", "asked"), ("good", "asked")]
