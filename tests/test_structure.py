"""The one direction of imports (a line imports from lines below it only), the public names, and what `import jitlab` loads."""

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import jitlab

PACKAGE = Path(jitlab.__file__).parent

# From top to bottom. Parts on one line never import one another: what one hands to the next is a type of `ir`.
LINES = (
    ("__main__", "pytest_plugin"),
    ("notebook",),
    ("compat",),
    ("report",),
    ("differentiation", "graph"),
    ("api",),
    ("autograph", "variable", "datasets", "nn"),
    ("compile",),
    ("runtime",),
    ("targets",),
    ("capture", "passes", "cluster", "lower"),
    ("ops",),
    ("ir",),
    ("config", "flags"),
    ("specs",),
    ("costs",),
    ("errors", "events"),
    ("messages",),
    ("support",),
)
DEPTH = {part: depth for depth, line in enumerate(LINES) for part in line}
FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if "labextension" not in path.parts)


def part_of(file):
    """The line's name of a file: its folder, or the module itself where it is in none."""
    return file.parts[0].removesuffix(".py")


def imported(file):
    """(part, line number) of each import of ours in a file, also inside functions and for types only."""
    for node in ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            folder = ["jitlab", *file.parts[:-1]]
            base = folder[: len(folder) - node.level + 1] if node.level else []
            module = base + (node.module.split(".") if node.module else [])
            names = [[*module, alias.name] for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] == "jitlab":
                yield name[1] if len(name) > 1 and name[1] in DEPTH else "", node.lineno


def test_every_part_stands_on_a_line():
    assert {part_of(file) for file in FILES} - {"__init__"} == set(DEPTH)


def test_contributing_shows_the_same_lines():
    page = PACKAGE.parent / "CONTRIBUTING.md"
    if not page.exists():
        pytest.skip("CONTRIBUTING.md is not part of this copy")
    tree = re.search(r"^(    __main__\.py.*?)\n\n", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[1]
    shown = [re.match(r"    (\S+(?: · \S+)*)  ", line)[1].split(" · ") for line in tree.splitlines()]
    names = [[f"{part}/" if (PACKAGE / part).is_dir() else f"{part}.py" for part in line] for line in LINES]
    assert [sorted(line) for line in shown] == [sorted(line) for line in names]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_point_down(file):
    mine = part_of(file)
    if mine == "__init__":
        pytest.skip("the package itself hands out names of every line")
    wrong = []
    for part, line in imported(file):
        if part == "":
            if DEPTH[mine] > DEPTH["notebook"]:
                wrong.append(f"{file}:{line} imports the package itself")
        elif part != mine and DEPTH[part] <= DEPTH[mine]:
            wrong.append(f"{file}:{line} imports {part}, which is {'beside' if DEPTH[part] == DEPTH[mine] else 'above'} {mine}")
    assert not wrong, "\n".join(wrong)


MOST_FILES = 15
FOLDERS = sorted({file.parent for file in FILES})


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_folder_is_small_and_shows_its_parts(folder):
    """Its `__init__` names what is in it in the order in which data go through; CONTRIBUTING shows the root."""
    inside = [file for file in FILES if file.parent == folder]
    assert len(inside) <= MOST_FILES
    if folder.parts:
        text = ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text(encoding="utf-8")))
        shown = text.partition("Parts, in the order of the data: ")[2].rstrip(".").replace("\n", " ").split(", ")
        parts = {file.stem for file in inside} - {"__init__"} | {sub.name for sub in FOLDERS if sub.parent == folder}
        assert sorted(shown) == sorted(parts - {""})


#: The folders of `targets/`, and those that are targets: in `llvm/` stands what several of them print.
IN_TARGETS = {file.parts[1] for file in FILES if file.parts[0] == "targets" and len(file.parts) > 2}
TARGETS = IN_TARGETS - {"llvm"}


def names_given_twice(files):
    """Names of more than one file; two targets may name their files alike."""
    own = {"": []}
    for file in files:
        is_own = file.parts[0] == "targets" and len(file.parts) > 2 and file.parts[1] != "llvm"
        own.setdefault(file.parts[1] if is_own else "", []).append(file.stem)
    shared = own.pop("")
    counts = [Counter(shared + names) for names in (own.values() or [[]])]
    return sorted({name for one in counts for name, count in one.items() if count > 1 and name != "__init__"})


def test_no_two_files_have_one_name():
    assert names_given_twice(FILES) == []


@pytest.mark.parametrize(("files", "twice"), [
    ("ops/casts.py targets/target.py targets/cpu_llvm/machine.py targets/gpu_xyz/machine.py", []),
    ("ops/__init__.py ir/__init__.py targets/cpu_llvm/__init__.py targets/cpu_llvm/emit/__init__.py", []),
    ("ops/casts.py ir/casts.py", ["casts"]),
    ("ops/emitter.py targets/cpu_llvm/emitter.py", ["emitter"]),
    ("targets/target.py targets/cpu_llvm/machine.py targets/gpu_xyz/target.py", ["target"]),
    ("targets/cpu_llvm/machine.py targets/cpu_llvm/emit/machine.py", ["machine"]),
    ("targets/cpu_llvm/values.py targets/llvm/values.py", ["values"]),
])  # fmt: skip
def test_a_name_that_is_given_twice_is_found(files, twice):
    assert names_given_twice([Path(file) for file in files.split()]) == twice


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_file_begins_with_one_line_that_says_what_it_is(file):
    first = (PACKAGE / file).read_text(encoding="utf-8").splitlines()[0]
    assert re.match(r'"""[A-Z`%_a-z].*[.:;,\w)"]$', first), first


def test_one_file_names_every_stage():
    stages = {"capture", "passes", "cluster", "lower", "targets"}
    naming = [str(file) for file in FILES if part_of(file) != "__init__" and stages <= {part for part, _ in imported(file)}]
    assert naming == ["compile.py"]
    assert {part_of(file) for file in FILES if "lower" in {part for part, _ in imported(file)}} == {"lower", "compile"}


STAGE = re.compile(r"^\| (\w+) \| `(\w+)` → `(\w+)`[^|]*\| `([\w/]+)\.py` `([\w.]+)` \|", re.MULTILINE)


def test_each_stage_is_from_the_type_to_the_type_that_contributing_shows():
    page = PACKAGE.parent / "CONTRIBUTING.md"
    if not page.exists():
        pytest.skip("CONTRIBUTING.md is not part of this copy")
    stages = STAGE.findall(page.read_text(encoding="utf-8"))
    assert [name for name, *_ in stages] == ["passes", "clustering", "lowering", "target"]
    for _, before, after, file, name in stages:
        function = importlib.import_module(f"jitlab.{file.replace('/', '.')}")
        for part in name.split("."):
            function = getattr(function, part)
        *parameters, result = function.__annotations__.values()
        assert before in parameters and result == after


#: What of their names code would spell.
SPELLED = IN_TARGETS | {part for name in IN_TARGETS for part in name.split("_") if part not in ("cpu", "gpu")}


def names_of_targets(text, folders=IN_TARGETS, spelled=SPELLED):
    """The line of each import of a target's folder, and of each string in code that names one; docstrings may."""
    tree = ast.parse(text)
    bodies = (node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list) and node.body)
    docs = {id(body[0].value) for body in bodies if isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found = {*(node.module or "").split("."), *(alias.name for alias in node.names)} & folders
        elif isinstance(node, ast.Import):
            found = {part for alias in node.names for part in alias.name.split(".")} & folders
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            found = {name for name in spelled if name in node.value.lower()}
        else:
            continue
        if found:
            yield node.lineno


@pytest.mark.parametrize("file", [f for f in FILES if f.parts[0] != "targets" or len(f.parts) == 2], ids=str)
def test_only_the_table_of_devices_names_a_target(file):
    named = list(names_of_targets((PACKAGE / file).read_text(encoding="utf-8")))
    assert bool(named) == (file.parts == ("targets", "devices.py")), f"{file}: lines {named}"


@pytest.mark.parametrize("file", [f for f in FILES if f.parts[:2] == ("targets", "llvm")], ids=str)
def test_what_targets_share_names_none_of_them(file):
    named = list(names_of_targets((PACKAGE / file).read_text(encoding="utf-8"), TARGETS, TARGETS))
    assert not named, f"{file}: lines {named}"


@pytest.mark.parametrize("text", [
    "from jitlab.targets.cpu_llvm import machine", "from .cpu_llvm.target import CPU", "import jitlab.targets.cpu_llvm.machine",
    "def f():\n    from jitlab.targets import cpu_llvm", "key = 'cpu_llvm'", "stage == f'llvm-{x}'",
    "from jitlab.targets.llvm.values import Val",
    "def f():\n    'Of llvm.'\n    return 'llvm'",
])  # fmt: skip
def test_a_name_of_a_target_is_found(text):
    assert len(list(names_of_targets(text))) == 1
    assert not list(names_of_targets("'Of cpu_llvm.'\nfrom jitlab.targets.devices import target_of"))


def test_all_is_what_is_there():
    submodules = {part_of(file) for file in FILES}
    hooks = {"load_ipython_extension", "unload_ipython_extension", "annotations", "Any", "TYPE_CHECKING", "names_of"}
    hooks |= {"collected_once"}
    assert all(hasattr(jitlab, name) for name in jitlab.__all__)  # those that are loaded when somebody asks for them, too
    there = {name for name in vars(jitlab) if not name.startswith(("_", "@"))} - hooks  # "@": pytest's
    assert sorted(jitlab.__all__) == list(jitlab.__all__)
    assert set(jitlab.__all__) - there == set()
    assert there - submodules == set(jitlab.__all__) - submodules


def test_completion_offers_the_public_names_alone():
    assert [name for name in dir(jitlab) if not name.startswith("_")] == jitlab.__all__
    assert {"__doc__", "__version__", "__file__"} <= set(dir(jitlab))


@pytest.mark.parametrize("folder", sorted({file.parts[0] for file in FILES if len(file.parts) > 1}))
def test_all_of_a_folder_is_there(folder):
    module = __import__(f"jitlab.{folder}", fromlist=["__all__"])
    missing = [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
    assert not missing


def test_import_loads_no_heavy_library():
    """What a script that only wants NumPy faster does not use is not loaded: `import jitlab` stays quick."""
    heavy = ("numba", "scipy", "plotly", "graphviz", "IPython", "ipykernel", "ipywidgets", "llvmlite", "sklearn", "jax")
    program = f"import sys, jitlab; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert found.stdout.strip() == "[]"
