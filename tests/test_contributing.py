"""Following CONTRIBUTING as a newcomer works: its operation is written into a copy of the house, and the house takes it up."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ASK = """
import numpy as np
import jitlab as jl
{imports}

@jl.function(jit_compile=True)
def loss(r):
    return special.huber(1, r * 2).sum()

r = np.linspace(-2, 2, 9)
np.testing.assert_allclose(loss(r), special.huber(1, r * 2).sum(), rtol=1e-14)
np.testing.assert_allclose(jl.grad(loss)(r), 2 * np.clip(2 * r, -1, 1), rtol=1e-14)
with jl.record() as record:
    loss(r)
assert "Huber" in [op.op for op in record.report().ops]
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy with the new file in it, which CONTRIBUTING prints whole."""
    if not (ROOT / "CONTRIBUTING.md").exists():
        pytest.skip("CONTRIBUTING.md is not part of this copy")
    copy = tmp_path_factory.mktemp("house")
    leave = shutil.ignore_patterns("labextension", "__pycache__")
    shutil.copytree(ROOT / "jitlab", copy / "jitlab", ignore=leave)
    shutil.copytree(ROOT / "scripts", copy / "scripts", ignore=leave)
    for folder in ("ops", "runtime", "targets"):  # the last one has helpers of the first two
        shutil.copytree(ROOT / "tests" / folder, copy / "tests" / folder, ignore=leave)
    for file in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / file, copy / file)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    name = re.search(r"as `(jitlab/ops/\w+/\w+\.py)`", text)[1]
    assert not (ROOT / name).exists(), f"{name} is there: CONTRIBUTING needs another example"
    (copy / name).write_text(re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1], encoding="utf-8")
    script = re.search(r"`python (scripts/\w+\.py)` notes in which file the rule stands", text)[1]
    run(copy, script)
    return copy


def run(house, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(house)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=house, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_generic_tests_check_the_new_operation(house):
    text = run(house, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/ops", "tests/runtime", "-k", "Huber")
    assert int(re.search(r"(\d+) passed", text)[1]) >= 5


def test_capture_gradient_and_report_know_the_new_operation(house):
    pytest.importorskip("scipy")
    run(house, "-c", ASK.format(imports="from scipy import special"))
