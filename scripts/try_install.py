"""Installs a built jitlab into an empty environment and tries it there: `python scripts/try_install.py dist "*.whl"`."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

#: Runs in the new environment, in an empty folder: what is imported is what was installed.
PROGRAM = """\
import sys
from pathlib import Path

import numpy as np

import jitlab as jl

assert Path(sys.prefix) in Path(jl.__file__).resolve().parents, jl.__file__


@jl.jit
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


x = np.random.default_rng(0).normal(size=(100, 50))
report = jl.explain(softmax, x)
assert len(report.kernels) == 1, str(report)
np.testing.assert_allclose(softmax(x), softmax.python_function(x), rtol=1e-14)
np.testing.assert_allclose(jl.grad(lambda x: (x * x).sum())(x), 2 * x, rtol=1e-15)
assert "<script" in report.to_html()  # the page carries the panel, which only a built extension has
assert (Path(sys.prefix) / "share/jupyter/labextensions/jitlab/package.json").is_file()
assert len(list((Path(sys.prefix) / "share/jitlab/notebooks").glob("*.ipynb"))) >= 8
"""


def main(folder: str, pattern: str) -> None:
    (package,) = Path(folder).resolve().glob(pattern)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:  # Windows keeps loaded libraries
        environment, empty = Path(place).resolve() / "environment", Path(place).resolve() / "empty"
        venv.create(environment, with_pip=True)
        empty.mkdir()
        (empty / "program.py").write_text(PROGRAM, encoding="utf-8")
        commands = environment / ("Scripts" if sys.platform == "win32" else "bin")
        for command in (
            ["python", "-m", "pip", "install", "--quiet", package],
            ["python", "-I", "program.py"],
            ["jitlab", "report", "program.py"],
        ):
            subprocess.run([commands / command[0], *command[1:]], cwd=empty, check=True)
    print(f"{package.name} works in an environment of its own")


if __name__ == "__main__":
    main(*sys.argv[1:])
