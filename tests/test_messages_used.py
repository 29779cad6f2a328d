"""Each row of the table of messages is somebody's: its code, its name, or the member of an enumeration that it is called after
stands in the package. After two wordings became one, the other's row would stay for ever."""

import ast
import json
import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "jitlab"
TABLE = json.loads((PACKAGE / "messages" / "table.json").read_text(encoding="utf-8"))

#: Rows whose names are made of a part that stands in the package: the part, and where it is put together.
MADE = {
    "_of": "cluster/flip_search.py", "_at": "report/build/advice.py", "_share": "report/build/advice.py",
    "of_": "notebook/magics/waiting.py",
}  # fmt: skip


@cache
def named():
    """Every string of the package, and every member of an enumeration that it uses: "NotFused.LOOP" as "loop"."""
    strings, members = set(), set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documents = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)}
        values = {id(node) for kind in ast.walk(tree) if _is_enumeration(kind) for node in ast.walk(kind)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents | values:
                strings.add(node.value)
            elif isinstance(node, ast.Attribute) and node.attr.isupper():
                members.add(node.attr.lower())
    return strings, members


def _has_docstring(node):
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    return isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)


def _is_enumeration(node):
    return isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases)


def is_used(group, row):
    strings, members = named()
    if f"{group}.{row}" in strings or row in strings or row in members:
        return True
    for part, path in MADE.items():
        if re.search(f"{part}$" if part.startswith("_") else f"^{part}", row):
            stem = row.removesuffix(part) if part.startswith("_") else row.removeprefix(part)
            made = (PACKAGE / path).resolve().read_text(encoding="utf-8")
            if (stem in strings or stem in members) and re.search(rf"{part}[{{\"']|[\"'}}]{part}", made):
                return True
    return False


def test_each_row_is_used():
    assert [f"{group}.{row}" for group, rows in TABLE.items() for row in rows if not is_used(group, row)] == []


def test_a_row_that_nobody_names_is_found():
    assert is_used("stays", "reading_mask") and not is_used("stays", "nobody_says_this_of_it")
    assert not is_used("flip", "nobody_says_this_of") and not is_used("waiting", "of_nothing_there_is")
