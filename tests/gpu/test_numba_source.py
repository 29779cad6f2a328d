"""Kernels as numba.cuda functions: what is shown runs in numba's simulator, and each line has its place in the program."""

import ast
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import jitlab as jl
from jitlab.errors import DeviceError, OptionError
from tests.gpu.listed_programs import LISTED, few

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="numba-cuda is not made for macOS")


def in_simulator(*arguments):
    """What tests.gpu.numba_simulated prints, in a process of its own."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "tests.gpu.numba_simulated", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def on_device(function, *arguments):
    """The report of a call on the simulated GPU."""
    with jl.simulated_gpu():
        yield jl.explain(jl.function(function, device="gpu"), *arguments)


def code_of(function, *arguments, stage="numba"):
    """A report's code of the only cluster of a call, and the Program's numbers and sizes."""
    for report in on_device(function, *arguments):
        (cluster,) = report.clusters
        return report.code(cluster.name, stage), report._code_of(report._plan(cluster), cluster.name)


@pytest.mark.slow
def test_what_is_shown_runs_as_it_is_pasted(tmp_path):
    for name in ("softmax", "layernorm", "black_scholes"):
        program = LISTED[name]
        arguments = few(program)
        code, kept = code_of(program.function, *arguments)
        (tmp_path / f"{name}.py").write_text("\n".join(line.text for line in code.lines))
        names = program.function.__code__.co_varnames
        arrays = {f"a{k}": arguments[names.index(name)] for k, name in enumerate(kept.inputs)}
        np.savez(tmp_path / f"{name}.npz", want=program.function(*arguments), **arrays)
        p = kept.program
        scalars = [(dtype.str, value) for (_, dtype), value in zip(p.scalars, map(float, kept.scalars), strict=True)]
        sizes = [p.sizes[size] for size in p.symbols]
        (tmp_path / f"{name}.json").write_text(json.dumps({"scalars": scalars, "sizes": sizes}))
    assert in_simulator("pasted", str(tmp_path)) == {"pasted": 3}


@pytest.mark.slow
def test_jitlab_launches_what_is_shown():
    counted = in_simulator("launched")
    assert counted["launches"] >= 14
    assert counted["by_llvm"] == 1  # of complex numbers
    assert "out of bounds" in counted["error"]


def test_each_line_of_work_has_its_place_in_the_program():
    code, _ = code_of(LISTED["softmax"].function, *LISTED["softmax"].arguments)
    assert code.share >= 0.95
    own = [line for line in code.lines if not line.noise]
    assert any("math.exp" in line.text for line in own)
    assert all(line.kernel for line in own)
    assert {line for _, line in own[0].at} <= {line for each in own for _, line in each.at}
    assert len({line.at for line in own}) > 1
    ast.parse("\n".join(line.text for line in code.lines))
    assert re.match(r"# .*y0 is ", code.lines[0].text)


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (lambda x: x * x + 1, (np.ones(40, "c16"),), "complex128"),
        (lambda x: x * x + 1, (np.ones(40, "f2"),), "float16"),
        (lambda x, y: x @ y, (np.ones((40, 40)), np.ones((40, 40))), "Products of matrices"),
        (lambda x, y: np.nextafter(x, y), (np.ones(40), np.zeros(40)), "nextafter"),
        (lambda x: np.sort(x), (np.ones(40),), "the host"),
    ],
)
def test_what_cannot_be_written_says_why(function, arguments, said):
    code, _ = code_of(function, *arguments)
    assert not [line for line in code.lines if line.text]
    assert said in code.note


def test_numba_is_asked_for_where_it_is_of_use(monkeypatch):
    with pytest.raises(OptionError):
        jl.config.gpu_compiler = "nvcc"
    monkeypatch.setattr(jl.config, "gpu_compiler", "numba")
    with jl.simulated_gpu(), pytest.raises(DeviceError, match="NUMBA_ENABLE_CUDASIM"):
        jl.function(lambda x: x + 1, device="gpu")(np.ones(3))
    monkeypatch.setitem(sys.modules, "numba", None)
    with jl.simulated_gpu(), pytest.raises(DeviceError, match="numba-cuda is not installed"):
        jl.function(lambda x: x + 1, device="gpu")(np.ones(3))


def test_numba_is_not_loaded_before_it_is_asked_for():
    code = (
        "import sys, numpy as np, jitlab as jl\n"
        "with jl.simulated_gpu():\n"
        "    jl.function(lambda x: x + 1, device='gpu')(np.ones(3))\n"
        "assert 'numba' not in sys.modules, sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
