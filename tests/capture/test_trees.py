"""Syntax trees are walked, copied and given places as the standard library does it, in less time."""

import ast
import copy
from pathlib import Path

import pytest

import jitlab
from jitlab.support import trees

FILES = sorted(Path(jitlab.__file__).parent.joinpath("capture").rglob("*.py"))[::4]


def held(nodes):
    """Without contexts and operators."""
    return [n for n in nodes if not isinstance(n, (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_trees_are_those_of_the_standard_library(file):
    tree = ast.parse(file.read_text())
    assert trees.walk(tree) == held(ast.walk(tree))
    for node in ast.walk(tree):
        assert trees.children(node) == held(ast.iter_child_nodes(node))
    copied = trees.copied(tree)
    assert ast.dump(copied, include_attributes=True) == ast.dump(tree, include_attributes=True)
    own = {id(node) for node in ast.walk(tree) if node._fields}  # of operators and contexts Python has one object each
    assert own.isdisjoint(map(id, ast.walk(copied)))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_places_are_those_of_the_standard_library(file):
    tree = ast.parse(file.read_text())
    for number, node in enumerate(ast.walk(tree)):
        if "lineno" in node._attributes and number % 3:
            del node.lineno, node.col_offset
            node.end_lineno = None if number % 2 else node.end_lineno
    wanted = ast.fix_missing_locations(copy.deepcopy(tree))
    trees.place(tree)
    assert ast.dump(tree, include_attributes=True) == ast.dump(wanted, include_attributes=True)
