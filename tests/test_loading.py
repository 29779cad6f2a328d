"""What is loaded when: `import jitlab` takes what a first call needs, everything else comes when it is asked for."""

import ast
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import jitlab as jl
from jitlab.support.later import Later, load, names_of

#: Modules that `import jitlab` loads beyond NumPy's: counted, since a time says little on a machine that does other things.
MOST_OWN, MOST_OTHERS = 266, 35
#: What takes milliseconds, and a program may never need.
HEAVY = (
    "numpy.fft numpy.random hashlib _hashlib json urllib.parse pathlib tempfile shutil decimal fractions statistics difflib "
    "pkgutil zlib llvmlite scipy"
).split()

FIRST_CALL = """
import json, sys
sys.modules.pop("json")
import linecache
import numpy as np
before = {*sys.modules}
import jitlab as jl
after = {*sys.modules}
text = "def f(x):\\n    e = np.exp(x - x.max(axis=1, keepdims=True))\\n    return e / e.sum(axis=1, keepdims=True)\\n"
linecache.cache["<cell>"] = (len(text), None, text.splitlines(True), "<cell>")
names = {"np": np}
exec(compile(text, "<cell>", "exec"), names)
f = jl.jit(names["f"])
x = np.ones((3, 4))
assert np.array_equal(f(x), names["f"](x))
print(json.dumps([sorted(after - before), sorted({*sys.modules} - after)]))
"""


def run(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """What `import jitlab` loads, and what a first call does."""
    return json.loads(run(FIRST_CALL, JITLAB_CACHE_DIR=str(tmp_path_factory.mktemp("cache"))))


def test_an_import_loads_what_a_first_call_needs(loaded):
    own = [name for name in loaded[0] if name.partition(".")[0] == "jitlab"]
    others = [name for name in loaded[0] if name not in own]
    assert len(own) <= MOST_OWN, own
    assert len(others) <= MOST_OTHERS, others
    assert not {*others} & {*HEAVY}


def test_a_first_call_loads_no_report_no_graph_and_no_other_face(loaded):
    faces = ("report", "graph", "compat", "notebook", "differentiation", "variable", "nn", "datasets", "autograph")
    assert [name for name in loaded[0] + loaded[1] if name.startswith(tuple(f"jitlab.{face}" for face in faces))] == []


def test_names_come_when_they_are_asked_for():
    program = """
import sys, jitlab as jl
assert "jitlab.report" not in sys.modules and "Report" in dir(jl) and "Report" not in vars(jl)
from jitlab import Report, Session
print(Report is jl.Report is jl.report.Report, Session is jl.graph.Session, "Report" in vars(jl))
import jitlab.report.store.baselines
print(jl.report.store.baselines.__name__)
"""
    assert run(program).split() == ["True", "True", "True", "jitlab.report.store.baselines"]


def test_all_parts_are_attributes_without_an_import_of_their_own():
    """As when `import jitlab` loaded them."""
    parts = "api capture cluster compile differentiation graph ir lower notebook ops passes report runtime specs".split()
    assert run(f"import jitlab; print(*[getattr(jitlab, part).__name__ for part in {parts!r}])").split() == [
        f"jitlab.{part}" for part in parts
    ]


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'jitlab' has no attribute 'Sesion'"):
        jl.Sesion  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Sesion' from 'jitlab'"):
        exec("from jitlab import Sesion")
    assert not hasattr(jl, "__wrapped__")


def test_what_comes_late_is_pickled_by_its_name():
    program = "import pickle, sys; print(pickle.loads(pickle.dumps(__import__('jitlab').TensorSpec)).__name__)"
    assert run(program).strip() == "TensorSpec"
    assert pickle.loads(pickle.dumps(jl.grad)) is jl.grad


PACKAGE = Path(jl.__file__).parent


@pytest.mark.parametrize("folder", ["", "api", "passes", "cluster"])
def test_the_names_of_a_package_are_those_that_type_checkers_read(folder):
    """`names_of` beside `if TYPE_CHECKING`: one name, one home."""
    tree = ast.parse((PACKAGE / folder / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name: node.module for node in block.body for alias in node.names}
    (call,) = (node for node in ast.walk(block) if isinstance(node, ast.Call) and ast.unparse(node.func) == "names_of")
    homes = ast.literal_eval(call.args[1])
    assert {name: home for home, names in homes.items() for name in names.split()} == typed


def test_a_module_that_comes_late_stands_for_itself():
    decimal = Later("decimal")
    assert decimal.Decimal is load("decimal").Decimal
    with pytest.raises(AttributeError, match="module 'decimal' has no attribute 'Decimale'"):
        decimal.Decimale  # noqa: B018


def test_a_package_gives_its_names_and_its_modules():
    get = names_of("jitlab.support", {"lazy": "Kept OfEach", "trees": ""})
    assert get("Kept").__name__ == "Kept" and get("trees").__name__ == "jitlab.support.trees"
    with pytest.raises(AttributeError, match="module 'jitlab.support' has no attribute 'forest'"):
        get("forest")


def test_a_fork_waits_for_what_another_thread_loads(tmp_path):
    """A module that is half loaded in the child would never be whole there."""
    (tmp_path / "slow_to_load.py").write_text(
        "import threading, __main__\n__main__.begun.set()\n__main__.go_on.wait()\nvalue = 3\n"
    )
    program = f"""
import os, sys, threading
sys.path.insert(0, {str(tmp_path)!r})
import jitlab
from jitlab.support.later import Later
begun, go_on = threading.Event(), threading.Event()
slow = Later("slow_to_load")
loader = threading.Thread(target=lambda: slow.value)
loader.start()
begun.wait()
threading.Timer(0.2, go_on.set).start()  # the fork is waiting by then, or comes later
child = os.fork()
if not child:
    os._exit(slow.value)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    assert run(program).strip() == "3"


COLLECTIONS = """
import gc, json
import numpy
found = []
gc.callbacks.append(lambda phase, about: found.append(about["generation"]) if phase == "start" else None)
import jitlab as jl
print(json.dumps([found, gc.isenabled(), gc.get_count()[1]]))
"""


def test_an_import_is_looked_through_for_garbage_once():
    found, is_enabled, count = json.loads(run(COLLECTIONS))
    assert is_enabled and found.count(1) <= 2 and 2 not in found and len(found) < 20 and count < 5


def test_who_has_turned_collections_off_finds_them_off():
    program = "import gc; gc.disable(); import jitlab; print(gc.isenabled(), gc.get_count()[0] > 10_000)"
    assert run(program).split() == ["False", "True"]
