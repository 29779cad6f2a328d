"""What the pages print is what is printed: every `pycon` block of docs/ runs, and the links between files lead somewhere. Pages
that are made of the code are what it would make now."""

import builtins
import doctest
import fnmatch
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl

ROOT = Path(__file__).parent.parent
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "lessons" not in page.parts]
BLOCK = re.compile(r"^```pycon\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#:]+?)(?:#[^)]*)?\)")

pytestmark = pytest.mark.skipif(not PAGES, reason="the documentation is not part of this copy")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))], ids=lambda p: p.stem
)
def test_the_examples_print_what_the_page_says(page):
    text = page.read_text(encoding="utf-8")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    names = {"np": np, "jl": jl}
    said = []
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        test = doctest.DocTestParser().get_doctest(block[1], names, page.name, str(page), line)
        runner.run(test, out=said.append, clear_globs=False)
        names = test.globs
    vars(builtins).pop("_", None)  # doctest's display leaves it, and IPython then keeps none of its own
    assert not runner.failures, "".join(said)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda p: p.stem)
def test_links_lead_to_files(page):
    targets = [page.parent / link for link in LINK.findall(page.read_text(encoding="utf-8"))]
    missing = [str(target.relative_to(ROOT)) for target in targets if not target.exists()]
    assert not missing


#: A file of Python or TypeScript, with or without its folders; `tests/test_*.py` is some of them.
NAMED = re.compile(r"(?<![\w./*<>{}-])(?:\.\./)*((?:[\w*-]+/)*[\w*-]+(?:\.test|\.spec)?\.(?:py|ts))\b(?![(/.]?\w)")
#: What is named as an example, or is NumPy's.
NOT_OURS = {"script.py", "softmax.py", "jitlab/ops/elementwise/huber.py", "_core/tests/test_indexing.py"}
FOLDERS = ("jitlab", "extension/src", "extension/test", "tests", "scripts", "benchmarks", "docs")
NAMING = [
    *PAGES,
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "notebooks/README.md", "hatch_build.py")),
    *sorted(file for folder in ("jitlab", "extension/src", "scripts") for file in (ROOT / folder).rglob("*.[pt][ys]")),
]


@pytest.fixture(scope="module")
def there():
    """Every file that a text may name, with a slash before it."""
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.[pt][ys]") if "node_modules" not in file.parts]
    return [f"/{file.relative_to(ROOT).as_posix()}" for file in (*files, *ROOT.glob("*.py"))]


def gone(text, there):
    """The names of files in a text that are the end of no file's path."""
    return sorted(name for name in {*NAMED.findall(text)} - NOT_OURS if not fnmatch.filter(there, f"*/{name}"))


@pytest.mark.parametrize("file", NAMING, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_files_that_a_text_names_are_there(file, there):
    assert gone(file.read_text(encoding="utf-8"), there) == []


@pytest.mark.parametrize(("text", "names"), [
    ("as in `kinds.py`", ["kinds.py"]), ("(lower/lower.py, ops/arguments.py).", ["ops/arguments.py"]),
    ("`core/section.ts` and `panel/section.ts`", ["core/section.ts"]), ("tests/test_docs.py, linalg_*.py", ["linalg_*.py"]),
    ("[x](../../jitlab/passes/pipeline.py) [y](../../jitlab/pipeline.py)", ["jitlab/pipeline.py"]),
    ("python script.py, x.python, passes/*.py, f.pyx, `report.test.ts`", []),
])  # fmt: skip
def test_a_name_of_a_file_that_is_gone_is_found(text, names, there):
    assert gone(text, there) == names


#: Places of documents that are not here: "\u00a7 2", "design D10", "(D3)", "semantics 3.3", "seed 003", "issue 12"; and pages.
CITED = re.compile(
    "\u00a7|\\b[Dd]esign,? D\\d|\\(D\\d+\\)|\\b[Ss]emantics,? (?:section )?\\d|\\b[Ss]eed \\d{3}\\b|\\b[Ii]ssue #?\\d"
    r"|(?<![\w*<{-])[\w-]+\.md\b"
)
CITING = [
    *NAMING, ROOT / "CHANGELOG.md", *sorted((ROOT / "notebooks").glob("*.ipynb")),
    *(file for folder in ("tests", "benchmarks", "extension/test") for file in sorted((ROOT / folder).rglob("*.[pt][ys]"))
      if "node_modules" not in file.parts and file != Path(__file__)),
]  # fmt: skip


@pytest.fixture(scope="module")
def pages():
    found = [*ROOT.glob("*.md"), *(page for folder in (*FOLDERS, "notebooks") for page in (ROOT / folder).rglob("*.md"))]
    return {page.name for page in found if "node_modules" not in page.parts}


def cited(text, pages):
    """What a text refers to that is in no file here."""
    return sorted({*CITED.findall(text)} - pages)


@pytest.mark.parametrize("file", CITING, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_what_a_text_cites_is_there(file, pages):
    assert cited(file.read_text(encoding="utf-8"), pages) == []


@pytest.mark.parametrize(("text", "names"), [
    ("as design D10 says (D3)", ["(D3)", "design D1"]), ("see \u00a7 2.3 of loops.md", ["loops.md", "\u00a7"]),
    ("semantics 3.3, seed 003, issue #12", ["issue #1", "seed 003", "semantics 3"]),
    ("[the walk](../internals/walk.md), seed 3, an issue of GitHub, a 2-D design, *.md", []),
])  # fmt: skip
def test_a_citation_of_a_document_that_is_not_here_is_found(text, names, pages):
    assert cited(text, pages) == names


def test_every_page_is_in_the_table_of_contents():
    listed, todo = set(), [ROOT / "docs" / "index.md"]
    while todo:
        page = todo.pop()
        listed.add(page)
        for table in re.findall(r"```{toctree}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            todo += [page.parent / f"{line}.md" for line in table.split() if (page.parent / f"{line}.md").is_file()]
    assert sorted(str(page) for page in set(PAGES) - listed) == []


def script(name):
    """A file of scripts/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["magics.md", "commands.md", "compat.md"])
def test_the_pages_of_magics_commands_and_other_frameworks_names_are_what_they_say_now(request, name):
    """Rewritten by `python scripts/reference_pages.py`, or by --update-golden."""
    made = script("reference_pages")
    now, file = made.PAGES[name](), made.REFERENCE / name
    if request.config.getoption("--update-golden"):
        file.write_text(now, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == now, "python scripts/reference_pages.py writes it anew"


def test_no_name_of_another_framework_is_without_a_word():
    rows = [line for line in (ROOT / "docs/reference/compat.md").read_text(encoding="utf-8").splitlines() if "| `" in line]
    assert len(rows) > 200
    assert [row for row in rows if not row.rstrip(" |").rpartition("|")[2].strip()] == []


def test_the_table_of_operations_is_what_is_recorded_now(request):
    """Rewritten by `python scripts/operations_table.py`, or by --update-golden."""
    pytest.importorskip("scipy", reason="the table lists scipy.special")
    table = script("operations_table")
    now = table.page()
    if request.config.getoption("--update-golden"):
        table.PAGE.write_text(now, encoding="utf-8")
    kept = table.PAGE.read_text(encoding="utf-8")
    wrong = [f"- {a}\n+ {b}" for a, b in zip(kept.splitlines(), now.splitlines(), strict=False) if a != b]
    assert kept == now, "python scripts/operations_table.py writes it anew:\n" + "\n".join(wrong[:20])


def test_host_operations_of_the_table_all_say_why():
    lines = (ROOT / "docs" / "reference" / "operations.md").read_text(encoding="utf-8").splitlines()
    host = [line for line in lines if "| host" in line]
    reasons = ("depends on the data", "known only at run time", "depends on the rank", "random")
    assert 10 < len(host) < 40
    assert all(any(reason in line for reason in reasons) for line in host), host
