"""Every node knows line and column of the user's program, whatever the program came from."""

from __future__ import annotations

import linecache
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.errors import BranchOnTracedArrayError
from jitlab.ir import Source
from tests.cell_runs import run_cell

SOURCE = """\
import numpy as np

def helper(u):
    return np.exp(u) - \\
        1

class Model:
    def call(self, x):
        y = x * 2 + helper(x)
        y[0] += 3; z = y.T
        return [t.sum() for t in (y, z)]
"""

ENVIRONMENT = {"PYTHONPATH": str(Path(jl.__file__).parent.parent)}

EXPECTED = {
    "Mul": (9, 12, 9, 17),
    "Exp": (4, 11, 4, 20),
    "Sub": (4, 11, 5, 9),
    "Sum": (11, 16, 11, 23),
}


def load(filename: str):
    linecache.cache[filename] = (len(SOURCE), None, SOURCE.splitlines(True), filename)
    namespace: dict = {}
    exec(compile(SOURCE, filename, "exec", dont_inherit=True), namespace)
    return namespace


@pytest.mark.parametrize("filename", ["<exec>", "/tmp/ipykernel_12345/1234567.py", "<ipython-input-4-abc>"])
def test_positions_in_source_that_linecache_knows(filename):
    f = jl.function(load(filename)["Model"]().call)
    f(np.ones((2, 3)))
    (traces,) = f._traces.values()
    found = {node.op.name: node.sources for node in traces[0].graph.nodes}
    for op, span in EXPECTED.items():
        assert found[op] == {Source(filename, *span)}, op
    lines = {s.line for node in traces[0].graph.nodes for s in node.sources}
    assert lines == {4, 9, 10, 11}


def test_positions_in_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SOURCE + textwrap.dedent("""
        import jitlab as jl
        f = jl.function(Model().call)
        f(np.ones((2, 3)))
        (traces,) = f._traces.values()
        for node in traces[0].graph.nodes:
            if node.op.name in ("Mul", "Exp", "Sub", "Sum"):
                (s,) = node.sources
                print(node.op.name, s.file.rsplit("/")[-1], *s[1:])
    """))  # fmt: skip
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert run.returncode == 0, run.stderr
    printed = {tuple(line.split()) for line in run.stdout.splitlines()}
    assert printed == {(op, "script.py", *map(str, span)) for op, span in EXPECTED.items()}


def test_decorated_and_indented_definition():
    def keep(f):
        return f

    if True:

        @keep
        @jl.function
        def f(x):
            return x * 2

    f(np.ones(2))
    (traces,) = f._traces.values()
    (node,) = [n for n in traces[0].graph.nodes if n.op.name == "Mul"]
    (source,) = node.sources
    assert linecache.getline(source.file, source.line)[source.column : source.end_column] == "x * 2"


def test_library_code_counts_for_the_line_that_called_it():
    def f(x):
        return np.linalg.norm(x)

    traced = jl.function(f)
    traced(np.ones(3))
    (traces,) = traced._traces.values()
    assert {s.line for n in traces[0].graph.nodes for s in n.sources} == {f.__code__.co_firstlineno + 1}


def test_error_names_cell_and_line():
    from jitlab.capture.positions import cell_names

    source = "def f(x):\n    y = x * 2\n    if y.sum() > 0:\n        return y\n    return x\n"
    filename = "/tmp/ipykernel_1/77.py"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    cell_names[filename] = "In[3]"
    namespace: dict = {}
    exec(compile(source, filename, "exec", dont_inherit=True), namespace)
    with pytest.raises(BranchOnTracedArrayError) as error:
        jl.function(namespace["f"], autograph=False)(np.ones(2))
    assert str(error.value) == (
        "Using a symbolic `jl.Tensor` as a Python `bool` is not allowed: `y.sum() > 0` has no value while jitlab records this"
        " function.\n"
        "  where: In[3], line 3: if y.sum() > 0:\n"
        "  why: one recording serves every input, so it cannot follow one branch of an `if`.\n"
        "  try: np.where(condition, a, b), or decide outside and pass a Python bool: each value is traced separately."
    )


def test_error_of_the_users_own_code_keeps_its_type_and_gets_the_lines():
    def inner(x):
        return {"a": x}["b"]

    def f(x):
        return inner(x) + 1

    with pytest.raises(KeyError) as error:
        jl.function(f)(np.ones(2))
    assert str(error.value) == (
        "in user code:\n\n"
        f'    File "{__file__}", line {f.__code__.co_firstlineno + 1}, in f  *\n'
        "        return inner(x) + 1\n"
        f'    File "{__file__}", line {inner.__code__.co_firstlineno + 1}, in inner  *\n'
        '        return {"a": x}["b"]\n\n'
        "    KeyError: b\n"
    )


def test_view_stands_where_it_was_made():
    names = {"np": np, "v": np.arange(24.0).reshape(4, 6)}
    result = run_cell("p = v * 2\nbest = np.argpartition(p, -3)[:, -3:]\nc = best + 1", names, "<views>")
    lines = {(node.op.name, s.line) for trace in result.traces for node in trace.graph.nodes for s in node.sources}
    assert {line for name, line in lines if name == "StridedSlice"} == {2}


def test_traceback_of_a_function_has_the_users_frames_alone():
    def inner(y):
        return list(y.sum())

    def outer(x):
        return (lambda y: inner(y))(x * 2)

    with pytest.raises(TypeError) as error:
        jl.function(outer)(np.ones(3))
    codes = [(f.f_code.co_filename, f.f_code.co_qualname) for f, _ in traceback.walk_tb(error.value.__traceback__)]
    here = "test_traceback_of_a_function_has_the_users_frames_alone"
    assert [name for file, name in codes if file == __file__] == [
        here, f"{here}.<locals>.outer", f"{here}.<locals>.outer.<locals>.<lambda>", f"{here}.<locals>.inner",
    ]  # fmt: skip
    assert len(codes) == 4


def test_gradient_names_the_users_line():
    with pytest.raises(jl.errors.CaptureError, match=r"where: test_positions\.py, line \d+: jl\.grad"):
        jl.grad(lambda x: x)(np.ones(3))
