"""The index of rules knows where each rule stands, and one that is looked up loads its module and no other."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jitlab.ops import load_all, registry, table

SCRIPT = Path(__file__).parents[2] / "scripts" / "rule_index.py"
TABLES = {name: getattr(table, name) for name in ("FUNCTIONS", "METHODS", "UPDATES", "UPDATE_METHODS")}


@pytest.mark.parametrize("kind", TABLES)
def test_every_rule_stands_where_the_index_says(kind):
    """A fresh table, for which nothing is loaded: what it finds by the index, and nothing else."""
    load_all()
    written, fresh = dict(getattr(registry, kind)), table.Rules(kind, {})
    for key, rule in written.items():
        module = rule.__module__.removeprefix("jitlab.ops.")
        if module != "numpy_api.rules_elementwise":  # is loaded with the table
            found = fresh.module_of(key)
            assert found in (module, "numpy_api.ufunc_methods"), f"{key}: python scripts/rule_index.py writes the index anew"
    assert {key for key in fresh.known() if key not in fresh} == set()
    assert all(fresh[key] for key in fresh.known())


def test_the_file_is_what_the_script_writes():
    if not SCRIPT.exists():
        pytest.skip("the scripts are not part of this copy")
    spec = importlib.util.spec_from_file_location("rule_index_script", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    if hasattr(np, "matvec") and not hasattr(np, "in1d"):  # a NumPy that has the names of today
        assert script.FILE.read_text(encoding="utf-8") == script.page()


def in_a_new_process(program):
    text = f"import sys, numpy as np\nfrom jitlab.ops import registry, table\n{program}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.split()


def test_a_rule_loads_its_module_alone():
    program = """
before = {name for name in sys.modules if name.startswith("jitlab.ops.")}
assert np.linalg.eigh in table.FUNCTIONS and "jitlab.ops.linear_algebra.eigenvalues" not in sys.modules
assert np.save not in table.FUNCTIONS and table.FUNCTIONS.get(np.save) is None
table.FUNCTIONS[np.pad]
print(*sorted({name for name in sys.modules if name.startswith("jitlab.ops.")} - before))
"""
    assert in_a_new_process(program) == ["jitlab.ops.layout.padding"]


@pytest.mark.parametrize("library", ["numpy.fft", "scipy.special"])
def test_functions_of_what_a_program_loads_later_are_known_from_then_on(library):
    pytest.importorskip(library)
    parent, _, name = library.partition(".")
    function = {"fft": "fft", "special": "erf"}[name]
    program = f"""
assert {library!r} not in sys.modules
import {library}
functions = table.FUNCTIONS
print({library}.{function} in functions, {library}.{function} in functions.keys(), {library}.test in functions)
"""
    assert in_a_new_process(program) == ["True", "True", "False"]


def test_an_interrupted_module_can_be_loaded_again():
    program = """
name = "jitlab.ops.reducing.sorting"
def broken(*callees, **options):
    raise KeyboardInterrupt
whole = registry.update
registry.update = broken  # in the midst of the module: some rules are written by then
try:
    table.FUNCTIONS[np.sort]
except KeyboardInterrupt:
    print("interrupted", name in sys.modules)
registry.update = whole
print(table.FUNCTIONS[np.sort].__name__, table.FUNCTIONS[np.median].__name__)
"""
    assert in_a_new_process(program) == ["interrupted", "False", "sort", "median"]


def test_whoever_goes_through_all_of_them_loads_all():
    program = """
keys = {*table.FUNCTIONS}
print(len(keys) == len(table.FUNCTIONS) == len(table.FUNCTIONS.items()), np.einsum in keys, np.sin in keys, np.sort in keys)
"""
    assert in_a_new_process(program) == ["True"] * 4
