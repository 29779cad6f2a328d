"""What the pages print is what is printed: every `pycon` block of docs/ runs, and the links between files lead somewhere."""

import builtins
import doctest
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
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


def test_every_page_is_in_the_table_of_contents():
    contents = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    tables = re.findall(r"```{toctree}\n(.*?)```", contents, re.DOTALL)
    listed = {"index", *(line.strip() for table in tables for line in table.splitlines())}
    assert sorted({page.stem for page in PAGES} - listed) == []


def test_the_table_of_operations_is_what_is_recorded_now(request):
    """Rewritten by `python scripts/operations_table.py`, or by --update-golden."""
    pytest.importorskip("scipy", reason="the table lists scipy.special")
    spec = importlib.util.spec_from_file_location("operations_table", ROOT / "scripts" / "operations_table.py")
    table = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = table  # dataclasses look their module up
    spec.loader.exec_module(table)
    now = table.page()
    if request.config.getoption("--update-golden"):
        table.PAGE.write_text(now, encoding="utf-8")
    kept = table.PAGE.read_text(encoding="utf-8")
    wrong = [f"- {a}\n+ {b}" for a, b in zip(kept.splitlines(), now.splitlines(), strict=False) if a != b]
    assert kept == now, "python scripts/operations_table.py writes it anew:\n" + "\n".join(wrong[:20])


def test_host_operations_of_the_table_all_say_why():
    lines = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").splitlines()
    host = [line for line in lines if "| host" in line]
    reasons = ("depends on the data", "only a run knows", "as its eigenvalues are", "depends on the rank", "random")
    assert 10 < len(host) < 40
    assert all(any(reason in line for reason in reasons) for line in host), host
